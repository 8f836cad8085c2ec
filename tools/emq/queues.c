/* SPDX-License-Identifier: Apache-2.0 */
/* Queues as a whole: which there are, and how they stand. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "finder.h"
#include "sizes.h"
#include "tool.h"

/* A queue and its sizes, as they are sorted. */
typedef struct queue_row {
    const char *name;
    sizes sizes;
} queue_row;

/* --- the order --- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const queue_row *)a)->name, ((const queue_row *)b)->name);
}

static int greater_first(int64_t a, int64_t b, const void *row_a, const void *row_b) {
    return a != b ? (a < b ? 1 : -1) : by_name(row_a, row_b);
}

static int by_pending(const void *a, const void *b) {
    return greater_first(((const queue_row *)a)->sizes.pending,
                         ((const queue_row *)b)->sizes.pending, a, b);
}

static int by_active(const void *a, const void *b) {
    return greater_first(((const queue_row *)a)->sizes.active, ((const queue_row *)b)->sizes.active,
                         a, b);
}

static int by_scheduled(const void *a, const void *b) {
    return greater_first(((const queue_row *)a)->sizes.scheduled,
                         ((const queue_row *)b)->sizes.scheduled, a, b);
}

static int by_dead(const void *a, const void *b) {
    return greater_first(((const queue_row *)a)->sizes.dead, ((const queue_row *)b)->sizes.dead, a,
                         b);
}

/* The smallest time is the oldest job; those without one come last. */
static int64_t age_rank(const queue_row *row) {
    return row->sizes.oldest_ms == SIZES_NONE ? INT64_MIN : -row->sizes.oldest_ms;
}

static int by_oldest(const void *a, const void *b) {
    return greater_first(age_rank(a), age_rank(b), a, b);
}

typedef int (*order)(const void *a, const void *b);

static const struct {
    const char *name;
    order compare;
} orders[] = {
    {"name", by_name},           {"pending", by_pending}, {"active", by_active},
    {"scheduled", by_scheduled}, {"dead", by_dead},       {"oldest", by_oldest},
};

static order find_order(const char *name) {
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (name != NULL && strcmp(orders[i].name, name) == 0) {
            return orders[i].compare;
        }
    }
    return NULL;
}

/* --- printing --- */

static void format_oldest(char out[TOOL_TIME_MAX], const sizes *s) {
    if (s->oldest_ms == SIZES_NONE) {
        (void)snprintf(out, TOOL_TIME_MAX, "-");
    } else {
        tool_format_age(out, tool_now_ms() - s->oldest_ms);
    }
}

static void print_rows(const tool *t, const queue_row *rows, size_t count) {
    int width = (int)strlen("QUEUE");
    for (size_t i = 0; i < count; i++) {
        int length = (int)strlen(rows[i].name);
        width = length > width ? length : width;
    }
    if (!t->json) {
        (void)printf("%-*s  %9s  %-10s  %9s  %9s  %9s  %11s\n", width, "QUEUE", "PENDING", "OLDEST",
                     "ACTIVE", "SCHEDULED", "DEAD", "COMPLETED");
    }
    for (size_t i = 0; i < count; i++) {
        const sizes *s = &rows[i].sizes;
        char oldest[TOOL_TIME_MAX];
        if (t->json) {
            tool_print_json(sizes_to_json(rows[i].name, s));
        } else if (s->result != EMQ_OK) {
            (void)printf("%-*s  ", width, rows[i].name);
            sizes_print_result(s);
            (void)printf("\n");
        } else {
            format_oldest(oldest, s);
            (void)printf("%-*s  %9" PRId64 "  %-10s  %9" PRId64 "  %9" PRId64 "  %9" PRId64
                         "  %11" PRId64 "%s\n",
                         width, rows[i].name, s->pending, oldest, s->active, s->scheduled, s->dead,
                         s->completed, s->is_paused ? "  paused" : "");
        }
    }
}

/* --- reading --- */

/* Reads the sizes of the rows. An exit status, which is that of the worst of them. */
static int read_rows(const tool *t, queue_row *rows, size_t count) {
    emq_pipeline *pipeline = NULL;
    const char **names = calloc(count + 1, sizeof(*names));
    sizes *all = calloc(count + 1, sizeof(*all));
    int result = names == NULL || all == NULL ? EMQ_ENOMEM : emq_pipeline_new(&pipeline, t->client);
    for (size_t i = 0; i < count && result == EMQ_OK; i++) {
        names[i] = rows[i].name;
    }
    if (result == EMQ_OK) {
        result = sizes_read(all, pipeline, names, count);
    }
    int status = result == EMQ_OK ? TOOL_DONE : tool_fail_client(t, "cannot read sizes", result);
    for (size_t i = 0; i < count; i++) {
        rows[i].sizes = result == EMQ_OK ? all[i] : (sizes){.result = result};
        int one = tool_status(rows[i].sizes.result);
        status = one > status ? one : status;
    }
    emq_pipeline_free(pipeline);
    free(names);
    free(all);
    return status;
}

/* --- queues --- */

static int find_queues(tool *t, finder *f) {
    int has_progress = isatty(STDERR_FILENO);
    while (!f->is_done) {
        int result = finder_step(f, t->client);
        if (result != EMQ_OK) {
            return tool_fail_client(t, "cannot look for queues", result);
        }
        if (has_progress) {
            (void)fprintf(stderr, "\r%zu queues among %" PRIu64 " keys%s", f->count, f->looked_at,
                          f->is_done ? "\r\033[K" : "");
        }
    }
    return TOOL_DONE;
}

static void print_names(const tool *t, const queue_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (t->json) {
            json_t *object = json_object();
            (void)json_object_set_new(object, "queue", json_string(rows[i].name));
            tool_print_json(object);
        } else {
            (void)puts(rows[i].name);
        }
    }
}

static int print_found(tool *t, const finder *f, const char *pattern, order compare) {
    size_t count = 0;
    queue_row *rows = calloc(f->count + 1, sizeof(*rows));
    if (rows == NULL) {
        return tool_fail(t, "cannot go on", EMQ_ENOMEM, "");
    }
    for (size_t i = 0; i < f->count; i++) {
        if (pattern == NULL || fnmatch(pattern, f->queues[i], 0) == 0) {
            rows[count++].name = f->queues[i];
        }
    }
    if (tool_value(t, "names") != NULL) {
        print_names(t, rows, count);
        free(rows);
        return count == 0 ? TOOL_OTHER : TOOL_DONE;
    }
    int status = read_rows(t, rows, count);
    if (emq_client_is_open(t->client)) {
        qsort(rows, count, sizeof(*rows), compare);
        print_rows(t, rows, count);
    }
    free(rows);
    return status == TOOL_DONE && count == 0 ? TOOL_OTHER : status;
}

static int run_queues(tool *t) {
    finder f;
    const char *sort = tool_value(t, "sort");
    order compare = sort == NULL ? by_name : find_order(sort);
    if (compare == NULL) {
        return tool_usage(t, "--sort takes name, pending, active, scheduled, dead or oldest");
    }
    if (sort != NULL && tool_value(t, "names") != NULL) {
        return tool_usage(t, "--names goes without --sort");
    }
    int status = tool_open(t);
    if (status != TOOL_DONE) {
        return status;
    }
    finder_init(&f);
    status = find_queues(t, &f);
    if (status == TOOL_DONE) {
        status = print_found(t, &f, tool_value(t, "match"), compare);
    }
    finder_clear(&f);
    return status;
}

static const tool_option queues_options[] = {
    {"match", 'm', "PATTERN", "those whose name matches, as a shell's file names"},
    {"sort", 's', "WORD", "by name, pending, active, scheduled, dead or oldest"},
    {"names", 'n', NULL, "the names alone, without a look at the sizes"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_queues = {
    .name = "queues",
    .arguments = "",
    .least = 0,
    .most = 0,
    .summary = "List the queues of the database, with their sizes",
    .details =
        "They are found by their keys, with SCAN, in slices of about 1000 keys, which is an\n"
        "operator's right; a queue without keys doesn't exist. The age of the oldest pending\n"
        "job counts from the minting of its id. Exit status 1: there is no queue.\n",
    .example = "emq queues --sort dead\n",
    .options = queues_options,
    .run = run_queues,
};

/* --- stats --- */

static void print_time(const char *name, int64_t ms) {
    char time[TOOL_TIME_MAX];
    if (ms != SIZES_NONE) {
        tool_format_time(time, ms);
        (void)printf("%-11s %s\n", name, time);
    }
}

static void print_sizes(const char *queue, const sizes *s) {
    (void)printf("%-11s %s%s\n", "queue", queue, s->is_paused ? " (paused)" : "");
    (void)printf("%-11s %" PRId64 "\n%-11s %" PRId64 "\n%-11s %" PRId64 "\n%-11s %" PRId64 "\n",
                 "pending", s->pending, "active", s->active, "scheduled", s->scheduled, "dead",
                 s->dead);
    (void)printf("%-11s %" PRId64 "\n%-11s %" PRId64 "\n", "completed", s->completed, "failed",
                 s->failed);
    if (s->oldest_ms != SIZES_NONE) {
        char oldest[TOOL_TIME_MAX];
        format_oldest(oldest, s);
        (void)printf("%-11s %s\n", "oldest", oldest);
    }
    print_time("next due", s->next_ms);
}

static int print_stats(const tool *t, const queue_row *row) {
    if (row->sizes.result != EMQ_OK) {
        return tool_fail(t, row->name, row->sizes.result, row->sizes.detail);
    }
    if (t->json) {
        tool_print_json(sizes_to_json(row->name, &row->sizes));
    } else {
        print_sizes(row->name, &row->sizes);
    }
    if (sizes_is_nothing(&row->sizes)) {
        sizes_note_nothing(t, row->name);
        return TOOL_OTHER;
    }
    return TOOL_DONE;
}

static int run_stats(tool *t) {
    size_t count = t->argc < 0 ? 0 : (size_t)t->argc;
    queue_row *rows = calloc(count + 1, sizeof(*rows));
    if (rows == NULL) {
        return tool_fail(t, "cannot go on", EMQ_ENOMEM, "");
    }
    int status = TOOL_DONE;
    for (size_t i = 0; i < count && status == TOOL_DONE; i++) {
        rows[i].name = t->argv[i];
        status = tool_queue(t, t->argv[i]);
    }
    if (status == TOOL_DONE) {
        status = tool_open(t);
    }
    if (status == TOOL_DONE) {
        status = read_rows(t, rows, count);
    }
    for (size_t i = 0; i < count && emq_client_is_open(t->client); i++) {
        int one = print_stats(t, &rows[i]);
        status = one > status ? one : status;
    }
    free(rows);
    return status;
}

const tool_verb verb_stats = {
    .name = "stats",
    .arguments = "QUEUE...",
    .least = 1,
    .most = TOOL_ANY,
    .summary = "Show how queues stand: sizes, counts so far, the oldest job, the next one due",
    .details = "Exit status 1: a queue has no jobs and no counts, as one that doesn't exist.\n",
    .example = "emq stats orders\n",
    .run = run_stats,
};
