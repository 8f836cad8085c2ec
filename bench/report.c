/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the report of a benchmark's run: medians with their ranges and ratios as text, all of it as
 * one JSON file, and the data of the plot. A ratio is taken in each round, then its median. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096
#define ROUNDS_MAX 1000
#define FIELDS 4 /* of a line of the targets */

typedef struct stats {
    double median;
    double least;
    double most;
    size_t count;
} stats;

_Noreturn static void die(const char *text, const char *name) {
    (void)fprintf(stderr, "bench: %s: %s\n", name, text);
    exit(1);
}

static FILE *open_file(const char *folder, const char *name, const char *mode) {
    char path[LINE_MAX_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        die("cannot be opened", path);
    }
    return file;
}

static json_t *member(json_t *object, const char *name) {
    json_t *found = json_object_get(object, name);
    if (found == NULL) {
        found = json_object();
        if (json_object_set_new(object, name, found) != 0) {
            die("no memory", name);
        }
    }
    return found;
}

/* A line of the results goes to cells[cell].metrics[metric][round]. */
static void add_line(json_t *cells, json_t *line) {
    const char *name = json_string_value(json_object_get(line, "cell"));
    char round[32];
    const char *key = NULL;
    json_t *value = NULL;
    if (name == NULL) {
        die("a line names no cell", "results");
    }
    json_t *cell = member(cells, name);
    (void)snprintf(round, sizeof(round), "%lld",
                   (long long)json_integer_value(json_object_get(line, "round")));
    json_object_foreach(line, key, value) {
        if (json_is_real(value)) {
            (void)json_object_set(member(member(cell, "metrics"), key), round, value);
        } else if (strcmp(key, "cell") != 0 && strcmp(key, "round") != 0) {
            (void)json_object_set(cell, key, value);
        }
    }
}

static json_t *read_results(const char *folder) {
    FILE *file = open_file(folder, "results.jsonl", "r");
    json_t *cells = json_object();
    json_t *line = NULL;
    while ((line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        add_line(cells, line);
        json_decref(line);
    }
    if (!feof(file)) {
        die("a line is no JSON", "results");
    }
    (void)fclose(file);
    return cells;
}

static int compare(const void *a, const void *b) {
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static stats stats_of(double *values, size_t count) {
    if (count == 0) {
        return (stats){0, 0, 0, 0};
    }
    qsort(values, count, sizeof(*values), compare);
    double median =
        count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (stats){median, values[0], values[count - 1], count};
}

/* The metric's values by round, from "cell metric"; NULL where there are none. */
static json_t *find_metric(json_t *cells, const char *text) {
    char cell[LINE_MAX_BYTES];
    const char *space = strchr(text, ' ');
    if (space == NULL) {
        die("is not `cell metric`", text);
    }
    (void)snprintf(cell, sizeof(cell), "%.*s", (int)(space - text), text);
    return json_object_get(json_object_get(json_object_get(cells, cell), "metrics"), space + 1);
}

/* In each round that has both. */
static stats ratio_of(json_t *over, json_t *under) {
    double values[ROUNDS_MAX];
    size_t count = 0;
    const char *round = NULL;
    json_t *value = NULL;
    json_object_foreach(over, round, value) {
        const double beside = under == NULL ? 1 : json_number_value(json_object_get(under, round));
        if (beside > 0 && count < ROUNDS_MAX) {
            values[count++] = json_number_value(value) / beside;
        }
    }
    return stats_of(values, count);
}

static json_t *json_of(stats s) {
    return json_pack("{s:f, s:f, s:f, s:I}", "median", s.median, "least", s.least, "most", s.most,
                     "rounds", (json_int_t)s.count);
}

/* The targets. */

static char *trim(char *text) {
    while (*text == ' ') {
        text++;
    }
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\n')) {
        text[--n] = '\0';
    }
    return text;
}

static const char *verdict_of(const char *goal, double median) {
    if (goal[0] == '-') {
        return "";
    }
    const double bound = strtod(goal + 2, NULL);
    return (goal[0] == '<' ? median <= bound : median >= bound) ? "reached" : "missed";
}

/* Why there is no figure: the first cell that says so. */
static const char *reason_of(json_t *cells, const char *text) {
    char cell[LINE_MAX_BYTES];
    (void)snprintf(cell, sizeof(cell), "%.*s", (int)strcspn(text, " "), text);
    const char *reason =
        json_string_value(json_object_get(json_object_get(cells, cell), "unmeasured"));
    return reason;
}

/* A line of the table for the docs; the figure has three digits, as the printed one. */
static void write_row(FILE *table, char **fields, const stats *s, const char *verdict) {
    (void)fprintf(table, "| %s | %s | ", fields[0], fields[3][0] == '-' ? "" : fields[3]);
    if (s != NULL) {
        (void)fprintf(table, "%.3g (%.3g to %.3g) | %s |\n", s->median, s->least, s->most, verdict);
    } else {
        (void)fprintf(table, "unmeasured | %s |\n", verdict);
    }
}

static json_t *report_target(FILE *table, json_t *cells, char **fields) {
    json_t *over = find_metric(cells, fields[1]);
    const int is_plain = strcmp(fields[2], "-") == 0;
    json_t *under = is_plain ? NULL : find_metric(cells, fields[2]);
    stats s =
        over != NULL && (under != NULL || is_plain) ? ratio_of(over, under) : (stats){0, 0, 0, 0};
    if (s.count == 0) {
        const char *reason = reason_of(cells, fields[1]);
        reason = reason != NULL || is_plain ? reason : reason_of(cells, fields[2]);
        reason = reason != NULL ? reason : "not part of this run";
        (void)printf("%-76s %8s  unmeasured: %s\n", fields[0], fields[3], reason);
        write_row(table, fields, NULL, reason);
        return json_pack("{s:s, s:s, s:s}", "what", fields[0], "goal", fields[3], "unmeasured",
                         reason);
    }
    const char *verdict = verdict_of(fields[3], s.median);
    (void)printf("%-76s %8s %9.3g (%.3g to %.3g) %s\n", fields[0], fields[3], s.median, s.least,
                 s.most, verdict);
    write_row(table, fields, &s, verdict);
    return json_pack("{s:s, s:s, s:s, s:o}", "what", fields[0], "goal", fields[3], "verdict",
                     verdict, "figure", json_of(s));
}

static json_t *report_targets(json_t *cells, const char *folder, const char *path) {
    char line[LINE_MAX_BYTES];
    json_t *targets = json_array();
    FILE *table = open_file(folder, "targets.md", "w");
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        die("cannot be opened", path);
    }
    (void)printf("%-76s %8s %9s\n", "what", "goal", "median (range)");
    (void)fputs("| what | goal | median (range) | |\n|---|---|---|---|\n", table);
    while (fgets(line, sizeof(line), file) != NULL) {
        char *fields[FIELDS];
        char *rest = NULL;
        size_t count = 0;
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        for (char *field = strtok_r(line, "|", &rest); field != NULL && count < FIELDS;
             field = strtok_r(NULL, "|", &rest)) {
            fields[count++] = trim(field);
        }
        if (count != FIELDS) {
            die("a line has not four fields", path);
        }
        (void)json_array_append_new(targets, report_target(table, cells, fields));
    }
    (void)fclose(file);
    (void)fclose(table);
    return targets;
}

/* All that was measured. */

static json_t *report_cells(json_t *cells) {
    json_t *out = json_object();
    const char *name = NULL;
    const char *metric = NULL;
    json_t *cell = NULL;
    json_t *values = NULL;
    (void)printf("\n%-44s %-22s median (range) of its rounds\n", "cell", "metric");
    json_object_foreach(cells, name, cell) {
        json_t *summary = json_deep_copy(cell);
        const char *reason = json_string_value(json_object_get(cell, "unmeasured"));
        if (reason != NULL) {
            (void)printf("%-44s unmeasured: %s\n", name, reason);
        }
        (void)json_object_del(summary, "metrics");
        json_object_foreach(json_object_get(cell, "metrics"), metric, values) {
            stats s = ratio_of(values, NULL);
            (void)printf("%-44s %-22s %9.4g (%.4g to %.4g) of %zu\n", name, metric, s.median,
                         s.least, s.most, s.count);
            (void)json_object_set_new(member(summary, "metrics"), metric, json_of(s));
        }
        (void)json_object_set_new(out, name, summary);
    }
    return out;
}

/* The facts are lines of name=value. */
static json_t *report_facts(const char *folder) {
    char line[LINE_MAX_BYTES];
    FILE *file = open_file(folder, "facts", "r");
    json_t *facts = json_object();
    while (fgets(line, sizeof(line), file) != NULL) {
        char *value = strchr(line, '=');
        if (value != NULL) {
            *value++ = '\0';
            (void)printf("%s: %s\n", line, trim(value));
            (void)json_object_set_new(facts, line, json_string(value));
        }
    }
    (void)printf("\n");
    (void)fclose(file);
    return facts;
}

/* The plot: what each verb costs the server, the reference scripts being 1. */
static void plot_verbs(json_t *cells, const char *folder) {
    static const char *const verbs[] = {"enqueue", "claim", "complete"};
    static const char *const sides[] = {"script", "native", "bare", "batch"};
    FILE *file = open_file(folder, "verbs.dat", "w");
    (void)fputs("verb \"reference Lua\" \"native verb\" \"bare commands\" \"batch of 32\"\n", file);
    for (size_t v = 0; v < 3; v++) {
        (void)fputs(verbs[v], file);
        for (size_t s = 0; s < 4; s++) {
            char metric[64];
            (void)snprintf(metric, sizeof(metric), "verbs/%s %s_server_us", sides[s], verbs[v]);
            json_t *over = find_metric(cells, metric);
            (void)snprintf(metric, sizeof(metric), "verbs/script %s_server_us", verbs[v]);
            stats ratio = ratio_of(over, find_metric(cells, metric));
            (void)fprintf(file, " %.4f", ratio.median);
        }
        (void)fputc('\n', file);
    }
    (void)fclose(file);
}

/* The plot of lifecycles: rates, libemq's pipeline being 1. */
static void plot_lifecycle(json_t *cells, const char *folder) {
    static const char *const contenders[] = {"pipeline", "batches",    "async",    "worker", "bare",
                                             "script",   "beanstalkd", "gearmand", "bullmq"};
    static const char *const columns[] = {"1/off", "16/off", "256/off", "256/everysec"};
    FILE *file = open_file(folder, "lifecycle.dat", "w");
    (void)fputs("who \"1 in flight\" \"16 in flight\" \"256 in flight\" \"256, AOF everysec\"\n",
                file);
    for (size_t i = 0; i < sizeof(contenders) / sizeof(contenders[0]); i++) {
        (void)fputs(contenders[i], file);
        for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
            char metric[96];
            (void)snprintf(metric, sizeof(metric), "lifecycle/pipeline/%s job_us", columns[c]);
            json_t *over = find_metric(cells, metric);
            (void)snprintf(metric, sizeof(metric), "lifecycle/%s/%s job_us", contenders[i],
                           columns[c]);
            json_t *under = find_metric(cells, metric);
            (void)fprintf(file, " %.4f", under == NULL ? 0 : ratio_of(over, under).median);
        }
        (void)fputc('\n', file);
    }
    (void)fclose(file);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        (void)fputs("Usage: emq_bench_report FOLDER TARGETS\n", stderr);
        return 2;
    }
    json_t *cells = read_results(argv[1]);
    json_t *facts = report_facts(argv[1]);
    json_t *targets = report_targets(cells, argv[1], argv[2]);
    json_t *summary = report_cells(cells);
    json_t *report =
        json_pack("{s:o, s:o, s:o}", "facts", facts, "targets", targets, "cells", summary);
    FILE *file = open_file(argv[1], "report.json", "w");
    if (report == NULL || json_dumpf(report, file, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0 ||
        fclose(file) != 0) {
        die("cannot be written", "report.json");
    }
    plot_verbs(cells, argv[1]);
    plot_lifecycle(cells, argv[1]);
    json_decref(report);
    json_decref(cells);
    return fflush(stdout) == 0 ? 0 : 1;
}
