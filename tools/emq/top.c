/* SPDX-License-Identifier: Apache-2.0 */
/* `emq top`: the queues as they go, on the terminal, or reading by reading for logs and machines.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top.h"

#define INTERVAL_MS 1000
#define SLICE_MS 50 /* between two slices */
#define INTERVAL_MIN_MS 100
#define INTERVAL_MAX_MS 3600000

/* What was asked for. */
typedef struct asked {
    const char *order;
    const char *pattern;
    int64_t interval_ms;
    int64_t readings;
} asked;

/* --- a reading as text --- */

static void print_header(int width) {
    (void)printf("%-*s", width, top_columns[TOP_NAME].title);
    for (top_column i = TOP_NAME + 1; i < TOP_COLUMNS; i++) {
        (void)printf(" %*s", top_columns[i].width, top_columns[i].title);
    }
    (void)printf("\n");
}

static void print_row(const top_row *row, int width) {
    char cell[TOP_CELL_MAX];
    (void)printf("%-*s", width, row->name);
    if (row->sizes.result != EMQ_OK) {
        (void)printf("  ");
        sizes_print_result(&row->sizes);
        (void)printf("\n");
        return;
    }
    for (top_column i = TOP_NAME + 1; i < TOP_COLUMNS; i++) {
        top_format_cell(cell, row, i);
        (void)printf(" %*s", top_columns[i].width, cell);
    }
    (void)printf("%s%s%s\n", (row->flags & TOP_PAUSED) != 0 ? "  paused" : "",
                 (row->flags & TOP_LAPSED) != 0 ? "  lapsed" : "",
                 (row->flags & TOP_OVERDUE) != 0 ? "  overdue" : "");
}

static void print_text(const top *all) {
    char time[TOOL_TIME_MAX];
    int width = (int)strlen(top_columns[TOP_NAME].title);
    for (size_t i = 0; i < all->shown_count; i++) {
        int length = (int)strlen(all->shown[i]->name);
        width = length > width ? length : width;
    }
    tool_format_time(time, all->read_at_ms);
    (void)printf("%s  %zu queues\n", time, all->shown_count);
    print_header(width);
    for (size_t i = 0; i < all->shown_count; i++) {
        print_row(all->shown[i], width);
    }
    (void)printf("\n");
}

/* --- a reading as a document --- */

static void set_rate(json_t *object, const char *name, double rate) {
    (void)json_object_set_new(object, name, rate < 0 ? json_null() : json_real(rate));
}

static json_t *row_to_json(const top_row *row) {
    json_t *object = sizes_to_json(row->name, &row->sizes);
    if (row->sizes.result == EMQ_OK) {
        set_rate(object, "completed_rate", row->completed_rate);
        set_rate(object, "failed_rate", row->failed_rate);
        (void)json_object_set_new(object, "lapsed", json_boolean((row->flags & TOP_LAPSED) != 0));
        (void)json_object_set_new(object, "overdue", json_boolean((row->flags & TOP_OVERDUE) != 0));
    }
    return object;
}

static void print_document(const top *all) {
    json_t *object = json_object();
    json_t *queues = json_array();
    for (size_t i = 0; i < all->shown_count; i++) {
        (void)json_array_append_new(queues, row_to_json(all->shown[i]));
    }
    (void)json_object_set_new(object, "time_ms", json_integer(all->read_at_ms));
    (void)json_object_set_new(object, "queues", queues);
    tool_print_json(object);
}

/* --- reading by reading --- */

/* The first round must be whole, before anything is told. */
static int find_all(top *all) {
    int result = EMQ_OK;
    while (result == EMQ_OK && all->rounds == 0 && tool_stop == 0) {
        result = top_find(all);
    }
    return result;
}

static int read_once(top *all) {
    int result = find_all(all);
    return result == EMQ_OK ? top_read(all) : result;
}

/* What a loss is to a reading: it is told, and the next one tries again. */
static int is_passing(int result) {
    emq_class class = emq_err_class(result);
    return class == EMQ_CLASS_RETRYABLE || class == EMQ_CLASS_UNKNOWN;
}

/* Until the next reading: the slices of one more round, in the background. */
static void pass_time(top *all, int64_t interval_ms) {
    int64_t end_ms = top_monotonic_ms() + interval_ms;
    int64_t left_ms = interval_ms;
    int is_searching = 1;
    while (left_ms > 0 && tool_stop == 0) {
        if (is_searching && emq_client_is_open(all->t->client)) {
            uint64_t rounds = all->rounds;
            is_searching = top_find(all) == EMQ_OK && all->rounds == rounds;
        }
        int64_t step_ms = is_searching ? SLICE_MS : left_ms;
        (void)poll(NULL, 0, (int)(step_ms < left_ms ? step_ms : left_ms));
        left_ms = end_ms - top_monotonic_ms();
    }
}

static int read_and_print(top *all) {
    int result = emq_client_is_open(all->t->client) ? EMQ_OK : top_reconnect(all);
    if (result == EMQ_OK) {
        result = read_once(all);
    }
    if (tool_stop != 0) {
        return TOOL_DONE;
    }
    if (result != EMQ_OK) {
        int status = tool_fail_client(all->t, "cannot read the queues", result);
        return is_passing(result) ? TOOL_DONE : status;
    }
    if (all->t->json) {
        print_document(all);
    } else {
        print_text(all);
    }
    /* main tells why nobody can read it */
    return fflush(stdout) == 0 ? TOOL_DONE : TOOL_BROKEN;
}

static int run_batch(tool *t, const asked *a) {
    top all;
    int status = tool_open(t);
    if (status != TOOL_DONE) {
        return status;
    }
    int result = top_open(&all, t);
    if (result != EMQ_OK) {
        status = tool_fail(t, "cannot go on", result, "");
    }
    all.order = top_column_find(a->order);
    (void)snprintf(all.pattern, sizeof(all.pattern), "%s", a->pattern);
    for (int64_t i = 0; i < a->readings && status == TOOL_DONE && tool_stop == 0; i++) {
        if (i > 0) {
            pass_time(&all, a->interval_ms);
        }
        status = tool_stop == 0 ? read_and_print(&all) : status;
    }
    top_close(&all);
    return status;
}

/* --- the verb --- */

static int read_asked(const tool *t, asked *a) {
    const char *order = tool_value(t, "sort");
    const char *pattern = tool_value(t, "match");
    a->order = order == NULL ? "pending" : order;
    a->pattern = pattern == NULL ? "" : pattern;
    if (top_column_find(a->order) == TOP_COLUMNS) {
        return tool_usage(t, "--sort takes name, pending, oldest, active, scheduled, dead, "
                             "completed or failed");
    }
    if (strlen(a->pattern) > EMQ_QUEUE_MAX) {
        return tool_usage(t, "--match is longer than a name may be");
    }
    int status =
        tool_duration(t, &a->interval_ms, "delay", INTERVAL_MS, INTERVAL_MIN_MS, INTERVAL_MAX_MS);
    if (status == TOOL_DONE) {
        status = tool_number(t, &a->readings, "count", INT64_MAX, 1, INT64_MAX);
    }
    return status;
}

static int run_top(tool *t) {
    asked a = {.order = "", .pattern = ""};
    int status = read_asked(t, &a);
    int is_batch = t->json || tool_value(t, "batch") != NULL || tool_value(t, "count") != NULL;
    if (status == TOOL_DONE && !is_batch && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))) {
        status = tool_usage(t, "there is no terminal: --batch prints lines");
    }
    if (status != TOOL_DONE) {
        return status;
    }
    tool_watch_signals();
    return is_batch ? run_batch(t, &a) : top_screen_run(t, a.order, a.pattern, a.interval_ms);
}

static const tool_option options[] = {
    {"batch", 'b', NULL, "reading by reading on standard output, as --json does, too"},
    {"count", 'n', "N", "end after N readings; implies --batch"},
    {"delay", 'd', "TIME", "between two readings (default 1s)"},
    {"match", 'm', "PATTERN", "queues whose name matches, as a shell's file names"},
    {"sort", 's', "WORD", "by that column (default pending)"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_top = {
    .name = "top",
    .arguments = "",
    .least = 0,
    .most = 0,
    .summary = "Watch all queues: depths, rates, the oldest job, what needs a look",
    .details =
        "On the terminal: h shows the keys, q quits. DONE/s and DIED/s are the jobs completed\n"
        "and buried a second, over the last five readings (in a batch: the last one). A ! at\n"
        "ACTIVE tells that a lease has lapsed and no sweep took it back; at SCHED, that a job\n"
        "is overdue and nobody promoted it: is there a worker? Queues are found with SCAN, in\n"
        "slices of about 1000 keys, which is an operator's right; all sizes are read by one\n"
        "pipeline. In a batch the first reading has no rates. --sort takes name, pending,\n"
        "oldest, active, scheduled, dead, completed or failed.\n",
    .example = "emq top --sort dead\nemq top --batch -n 2 --match 'orders*'\n",
    .options = options,
    .run = run_top,
};
