/* SPDX-License-Identifier: Apache-2.0 */
/* Admitting jobs: enqueue and schedule, from arguments or from standard input, in batches. What is
 * told at the end is what is known: an answer that was lost makes a batch unknown, and the ids of
 * its jobs are said, so that somebody can look. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "feed.h"
#include "tool.h"

#define BATCH_BYTES ((size_t)4 * 1024 * 1024)
#define PROGRESS_MS 200

typedef struct admission {
    tool *t;
    const char *queue;
    const emq_when *when; /* NULL: at once */
    int is_quiet;
    int has_progress;
    int64_t progress_at_ms;
    int64_t started_at_ms;
    size_t max_payload;
    emq_pipeline *pipeline; /* of schedules */
    /* the batch */
    emq_id *ids;
    emq_bytes *payloads;
    int *results;
    char *bytes; /* what the payloads of records point into */
    size_t used;
    size_t count;
    /* what became of all so far */
    int64_t admitted;
    int64_t duplicates;
    int64_t unknown;
    int64_t refused;
} admission;

static int out_of_memory(const admission *a) {
    return tool_fail(a->t, "cannot go on", EMQ_ENOMEM, "");
}

static int admission_open(admission *a, tool *t, const char *queue, const emq_when *when) {
    memset(a, 0, sizeof(*a));
    a->t = t;
    a->queue = queue;
    a->when = when;
    a->is_quiet = tool_value(t, "quiet") != NULL;
    a->has_progress = isatty(STDERR_FILENO) && (a->is_quiet || !isatty(STDOUT_FILENO));
    int status = tool_open(t);
    if (status != TOOL_DONE) {
        return status;
    }
    a->started_at_ms = tool_now_ms();
    a->max_payload = emq_url_get_options(t->parsed)->max_payload;
    a->max_payload = a->max_payload == 0 ? (size_t)8 * 1024 * 1024 : a->max_payload;
    a->ids = calloc(EMQ_MEMBERS_MAX, sizeof(*a->ids));
    a->payloads = calloc(EMQ_MEMBERS_MAX, sizeof(*a->payloads));
    a->results = calloc(EMQ_MEMBERS_MAX, sizeof(*a->results));
    if (a->ids == NULL || a->payloads == NULL || a->results == NULL) {
        return out_of_memory(a);
    }
    int result = when == NULL ? EMQ_OK : emq_pipeline_new(&a->pipeline, t->client);
    return result == EMQ_OK ? TOOL_DONE : tool_fail(t, "cannot go on", result, "");
}

static void admission_close(admission *a) {
    emq_pipeline_free(a->pipeline);
    free(a->ids);
    free(a->payloads);
    free(a->results);
    free(a->bytes);
}

static void show_progress(admission *a, int is_last) {
    int64_t now = tool_now_ms();
    if (!a->has_progress || (!is_last && now < a->progress_at_ms)) {
        return;
    }
    int64_t ms = now - a->started_at_ms;
    a->progress_at_ms = now + PROGRESS_MS;
    (void)fprintf(stderr, "\r%" PRId64 " admitted, %" PRId64 " a second   %s", a->admitted,
                  ms > 0 ? a->admitted * 1000 / ms : 0, is_last ? "\n" : "");
}

static void print_json(const admission *a, size_t i) {
    json_t *object = json_object();
    (void)json_object_set_new(object, "queue", json_string(a->queue));
    (void)json_object_set_new(object, "id", json_string(a->ids[i].text));
    tool_json_result(object, a->results[i]);
    tool_print_json(object);
}

static void print_text(const admission *a, size_t i) {
    if (a->results[i] == EMQ_OK) {
        (void)puts(a->ids[i].text);
    } else if (a->results[i] == EMQ_DUPLICATE) {
        tool_note(a->t, "%s: %s", a->ids[i].text, emq_strerror(EMQ_DUPLICATE));
    } else if (emq_err_class(a->results[i]) == EMQ_CLASS_UNKNOWN) {
        tool_note(a->t, "unknown: %s", a->ids[i].text);
    }
}

static void account_for(admission *a) {
    for (size_t i = 0; i < a->count; i++) {
        int result = a->results[i];
        int is_unknown = emq_err_class(result) == EMQ_CLASS_UNKNOWN;
        a->admitted += result == EMQ_OK;
        a->duplicates += result == EMQ_DUPLICATE;
        a->unknown += is_unknown;
        a->refused += result < 0 && !is_unknown;
        if (a->t->json && (!a->is_quiet || result != EMQ_OK)) {
            print_json(a, i);
        } else if (!a->t->json && (!a->is_quiet || result != EMQ_OK)) {
            print_text(a, i);
        }
    }
}

static int send_schedules(admission *a) {
    for (size_t i = 0; i < a->count; i++) {
        a->results[i] = emq_pipeline_schedule(a->pipeline, &a->ids[i], a->queue,
                                              a->payloads[i].data, a->payloads[i].size, *a->when);
        if (a->results[i] != EMQ_OK) { /* nothing was sent */
            for (size_t j = 0; j < a->count; j++) {
                a->results[j] = a->results[i];
            }
            return a->results[i];
        }
    }
    int result = emq_pipeline_run(a->pipeline);
    for (size_t i = 0; i < a->count; i++) {
        a->results[i] = emq_pipeline_get_result(a->pipeline, i);
        a->ids[i] = *emq_pipeline_get_id(a->pipeline, i);
        result = result == EMQ_OK && a->results[i] < 0 ? a->results[i] : result;
    }
    return result;
}

static int send_jobs(admission *a) {
    if (a->when != NULL) {
        return send_schedules(a);
    }
    return emq_enqueues(a->results, a->ids, a->t->client, a->queue, a->payloads, a->count);
}

/* Sends the batch, and tells what became of it. An exit status. */
static int flush_batch(admission *a) {
    if (a->count == 0) {
        return TOOL_DONE;
    }
    int result = send_jobs(a);
    account_for(a);
    int status = TOOL_DONE;
    if (result < 0) {
        const char *detail = emq_client_get_error(a->t->client);
        for (size_t i = 0; i < a->count && a->pipeline != NULL && detail[0] == '\0'; i++) {
            detail = emq_pipeline_get_error(a->pipeline, i);
        }
        status = tool_fail(a->t, "cannot admit", result, detail);
    } else if (fflush(stdout) != 0) {
        status = TOOL_BROKEN; /* main says so; nobody would learn the ids of what comes */
    }
    memset(a->ids, 0, a->count * sizeof(*a->ids));
    a->count = 0;
    a->used = 0;
    show_progress(a, 0);
    return status;
}

static void add(admission *a, const void *payload, size_t n) {
    a->payloads[a->count] = (emq_bytes){payload, n};
    a->count++;
}

/* Keeps a record until its batch is sent: the memory behind it is reserved at once, so that nothing
 * that points into it moves. */
static int add_record(admission *a, const char *record, size_t n) {
    if (a->count > 0 &&
        (a->count == EMQ_MEMBERS_MAX || n > BATCH_BYTES || a->used > BATCH_BYTES - n)) {
        int status = flush_batch(a);
        if (status != TOOL_DONE) {
            return status;
        }
    }
    if (n > 0) {
        memcpy(a->bytes + a->used, record, n);
    }
    add(a, a->bytes + a->used, n);
    a->used += n;
    return TOOL_DONE;
}

static int end_of_feed(admission *a, feed_result result) {
    switch (result) {
    case FEED_TOO_BIG:
        a->refused++;
        return tool_fail(a->t, "the next record", EMQ_ETOOBIG, "");
    case FEED_ERROR:
        return tool_fail(a->t, "standard input", EMQ_ESYSTEM, strerror(errno));
    default:
        return TOOL_DONE;
    }
}

static int admit_records(admission *a, feed *f) {
    const char *record = NULL;
    size_t n = 0;
    int status = TOOL_DONE;
    while (status == TOOL_DONE && tool_stop == 0) {
        feed_result next = feed_next(f, &record, &n, a->count == 0);
        if (next == FEED_RECORD) {
            status = add_record(a, record, n);
        } else if (next == FEED_WAIT) {
            status = flush_batch(a);
        } else {
            status = flush_batch(a);
            return status == TOOL_DONE ? end_of_feed(a, next) : status;
        }
    }
    return status;
}

static void tell_counts(const admission *a) {
    if (a->t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "verb", json_string(a->t->verb->name));
        (void)json_object_set_new(object, "admitted", json_integer(a->admitted));
        (void)json_object_set_new(object, "duplicates", json_integer(a->duplicates));
        (void)json_object_set_new(object, "unknown", json_integer(a->unknown));
        (void)json_object_set_new(object, "refused", json_integer(a->refused));
        tool_print_json_error(object);
        return;
    }
    tool_note(a->t,
              "%" PRId64 " admitted; %" PRId64 " unknown, which may have been admitted; %" PRId64
              " not admitted; nothing behind these was sent",
              a->admitted, a->unknown, a->refused);
}

/* Jobs of standard input, and at the end how many: whoever stopped it knows where to go on. */
static int admit_input(admission *a) {
    feed f;
    feed_init(&f, STDIN_FILENO, tool_value(a->t, "null") != NULL ? '\0' : '\n', a->max_payload);
    a->bytes = malloc(a->max_payload > BATCH_BYTES ? a->max_payload : BATCH_BYTES);
    if (a->bytes == NULL) {
        return out_of_memory(a);
    }
    tool_watch_signals();
    (void)signal(SIGPIPE, SIG_IGN); /* the reader of the ids has gone: say how far it came */
    int status = admit_records(a, &f);
    feed_clear(&f);
    show_progress(a, 1);
    if (status != TOOL_DONE || tool_stop != 0) {
        tell_counts(a);
    }
    return status;
}

static int admit_arguments(admission *a) {
    int status = TOOL_DONE;
    for (int i = 1; i < a->t->argc && status == TOOL_DONE; i++) {
        add(a, a->t->argv[i], strlen(a->t->argv[i]));
        if (a->count == EMQ_MEMBERS_MAX) {
            status = flush_batch(a);
        }
    }
    return status == TOOL_DONE ? flush_batch(a) : status;
}

static int admit(tool *t, const emq_when *when) {
    admission a;
    emq_id id = {{0}};
    const char *given = tool_value(t, "id");
    int is_input = t->argc == 2 && strcmp(t->argv[1], "-") == 0;
    int status = tool_queue(t, t->argv[0]);
    if (status == TOOL_DONE && given != NULL) {
        status = is_input || t->argc != 2 ? tool_usage(t, "--id goes with one PAYLOAD")
                                          : tool_id(t, &id, given);
    }
    if (status == TOOL_DONE && tool_value(t, "null") != NULL && !is_input) {
        status = tool_usage(t, "--null goes with -, for standard input");
    }
    if (status != TOOL_DONE) {
        return status;
    }
    status = admission_open(&a, t, t->argv[0], when);
    if (status == TOOL_DONE) {
        a.ids[0] = id;
        status = is_input ? admit_input(&a) : admit_arguments(&a);
    }
    if (status == TOOL_DONE && a.duplicates > 0) {
        status = TOOL_OTHER;
    }
    admission_close(&a);
    return status;
}

static int run_enqueue(tool *t) {
    return admit(t, NULL);
}

static const tool_option enqueue_options[] = {
    {"id", 'i', "ID", "the job's id, for a repeat; else one is minted"},
    {"null", '0', NULL, "records of standard input end in a NUL, not in a line break"},
    {"quiet", 'q', NULL, "don't print the ids of what was admitted"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_enqueue = {
    .name = "enqueue",
    .arguments = "QUEUE PAYLOAD...|-",
    .least = 2,
    .most = TOOL_ANY,
    .summary = "Admit jobs, and print their ids",
    .details = "Each PAYLOAD is a job. With - each line of standard input is one, an empty line\n"
               "too; they are sent in batches of up to 1000, and at once when the input pauses.\n"
               "\n"
               "When the connection is lost in the middle, it says how many are admitted, and of\n"
               "how many nobody knows: their ids are on standard error, and emq job tells whether\n"
               "one is there. Nothing behind them was sent.\n",
    .example = "emq enqueue orders '{\"order\":17}'\n"
               "find /srv/in -type f -print0 | emq enqueue -0 -q files -\n",
    .options = enqueue_options,
    .run = run_enqueue,
};

static int run_schedule(tool *t) {
    emq_when when = {EMQ_IN, 0};
    int status = tool_when(t, &when);
    return status == TOOL_DONE ? admit(t, &when) : status;
}

static const tool_option schedule_options[] = {
    {"in", 0, "TIME", "how long from now, as 30s, 5m, 2h, 1d"},
    {"at", 0, "MOMENT", "when, as 2026-01-02T03:04:05Z or @UNIX-SECONDS"},
    {"id", 'i', "ID", "the job's id, for a repeat; else one is minted"},
    {"null", '0', NULL, "records of standard input end in a NUL, not in a line break"},
    {"quiet", 'q', NULL, "don't print the ids of what was admitted"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_schedule = {
    .name = "schedule",
    .arguments = "QUEUE PAYLOAD...|-",
    .least = 2,
    .most = TOOL_ANY,
    .summary = "Admit jobs that become ready at a time, and print their ids",
    .details =
        "As emq enqueue, with one of --in and --at. The server's clock counts; a job becomes\n"
        "ready with the first sweep past its time, which workers do, or emq promote.\n",
    .example = "emq schedule orders 'remind 17' --in 2h\n",
    .options = schedule_options,
    .run = run_schedule,
};
