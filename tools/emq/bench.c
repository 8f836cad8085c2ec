/* SPDX-License-Identifier: Apache-2.0 */
/* `emq bench`: how fast a user's own server takes jobs from enqueue to complete, in a queue of its
 * own that is gone in the end. */
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define JOBS 20000
#define JOBS_MAX 10000000
#define PAYLOAD 100
#define PAYLOAD_MAX (1 << 20)
#define DEPTH 100
#define CONNECTIONS_MAX 64
#define LIMIT_MS 10000
#define LIMIT_MAX_MS 3600000

static const char *const phase_names[BENCH_PHASES] = {"enqueue", "claim", "complete"};

/* --- what is asked for --- */

static int read_size(const tool *t, size_t *out, const char *option, int64_t fallback, int64_t min,
                     int64_t max) {
    int64_t number = 0;
    int status = tool_number(t, &number, option, fallback, min, max);
    *out = (size_t)number;
    return status;
}

static int read_plan(tool *t, bench_plan *plan) {
    int status = read_size(t, &plan->jobs, "jobs", JOBS, 1, JOBS_MAX);
    if (status == TOOL_DONE) {
        status = read_size(t, &plan->payload, "payload", PAYLOAD, BENCH_PAYLOAD_MIN, PAYLOAD_MAX);
    }
    if (status == TOOL_DONE) {
        status = read_size(t, &plan->depth, "depth", DEPTH, 1, EMQ_MEMBERS_MAX);
    }
    if (status == TOOL_DONE) {
        status = read_size(t, &plan->connections, "connections", 1, 1, CONNECTIONS_MAX);
    }
    if (status == TOOL_DONE) {
        status = tool_duration(t, &plan->limit_ms, "for", LIMIT_MS, 1, LIMIT_MAX_MS);
    }
    if (status == TOOL_DONE && plan->payload * plan->depth > EMQ_PIPELINE_BYTES_MAX / 2) {
        status = tool_usage(t, "--payload times --depth is more than one write may have, %zu bytes",
                            EMQ_PIPELINE_BYTES_MAX / 2);
    }
    if (status == TOOL_DONE) {
        status = tool_address(t, &plan->options);
    }
    return status;
}

/* --- what is told --- */

static void print_text(const bench_plan *plan, const bench_outcome *o) {
    (void)printf("%zu jobs of %zu bytes, %zu in a write, on %zu connection%s: %.0f jobs a second\n",
                 o->completed, plan->payload, plan->depth, plan->connections,
                 plan->connections == 1 ? "" : "s",
                 o->seconds > 0 ? (double)o->completed / o->seconds : 0);
    (void)printf("%-10s %12s %12s %12s\n", "", "JOBS/s", "p50 ms", "p99 ms");
    for (size_t i = 0; i < BENCH_PHASES; i++) {
        (void)printf("%-10s %12.0f %12.3f %12.3f\n", phase_names[i], o->rates[i], o->p50_ms[i],
                     o->p99_ms[i]);
    }
}

static void print_document(const bench_plan *plan, const bench_outcome *o) {
    json_t *object = json_object();
    (void)json_object_set_new(object, "queue", json_string(plan->queue));
    (void)json_object_set_new(object, "jobs", json_integer((json_int_t)o->completed));
    (void)json_object_set_new(object, "payload", json_integer((json_int_t)plan->payload));
    (void)json_object_set_new(object, "depth", json_integer((json_int_t)plan->depth));
    (void)json_object_set_new(object, "connections", json_integer((json_int_t)plan->connections));
    (void)json_object_set_new(object, "seconds", json_real(o->seconds));
    (void)json_object_set_new(object, "rate",
                              json_real(o->seconds > 0 ? (double)o->completed / o->seconds : 0));
    for (size_t i = 0; i < BENCH_PHASES; i++) {
        json_t *phase = json_object();
        (void)json_object_set_new(phase, "rate", json_real(o->rates[i]));
        (void)json_object_set_new(phase, "p50_ms", json_real(o->p50_ms[i]));
        (void)json_object_set_new(phase, "p99_ms", json_real(o->p99_ms[i]));
        (void)json_object_set_new(object, phase_names[i], phase);
    }
    tool_print_json(object);
}

/* --- what is checked --- */

/* Each job was claimed once and completed once, by this program's ledger and by the server's. */
static int check_delivery(const tool *t, const bench_plan *plan, const bench_outcome *o) {
    emq_counts counts = EMQ_COUNTS_INIT;
    int result = emq_counts_read(&counts, t->client, plan->queue);
    if (result == EMQ_ECONNECT) { /* a server closes connections that are idle */
        result = emq_client_reconnect(t->client);
        result = result == EMQ_OK ? emq_counts_read(&counts, t->client, plan->queue) : result;
    }
    if (result != EMQ_OK) {
        return tool_fail_client(t, "cannot read the sizes", result);
    }
    int64_t left = counts.pending + counts.active + counts.scheduled + counts.dead;
    if (o->wrong != 0 || o->completed != o->enqueued || left != 0 ||
        counts.completed != (int64_t)o->completed) {
        tool_note(t,
                  "the delivery is not exact: %zu enqueued, %zu completed (by the server's count "
                  "%" PRId64 "), %" PRId64 " left, %zu out of turn",
                  o->enqueued, o->completed, counts.completed, left, o->wrong);
        return TOOL_BROKEN;
    }
    if (!t->json) {
        (void)printf("each of them was delivered once, by this program's count and the server's\n");
    }
    return TOOL_DONE;
}

/* A job that is not there to be claimed or completed is another one's: nothing was measured. */
static int tell_failure(const tool *t, const bench_outcome *o) {
    int status = tool_fail(t, o->what, o->result, o->detail);
    emq_class class = emq_err_class(o->result);
    return class == EMQ_CLASS_OK || class == EMQ_CLASS_STALE ? TOOL_BROKEN : status;
}

static int tell(const tool *t, const bench_plan *plan, const bench_outcome *o) {
    if (o->result != EMQ_OK) {
        return tell_failure(t, o);
    }
    if (t->json) {
        print_document(plan, o);
    } else {
        print_text(plan, o);
    }
    if (o->enqueued < plan->jobs) {
        tool_note(t, "it ended before all of the %zu jobs were begun", plan->jobs);
    }
    return check_delivery(t, plan, o);
}

/* --- the verb --- */

static int fail_removal(const tool *t, const bench_plan *plan, int result) {
    tool_note(t, "the queue %s may still have keys", plan->queue);
    return tool_fail_client(t, "cannot remove the queue", result);
}

/* The removal is tried before, so that whoever has no right to it writes nothing either. */
static int run_on_queue(tool *t, const bench_plan *plan) {
    bench_outcome outcome;
    int result = bench_queue_remove(t->client, plan->queue);
    if (result != EMQ_OK) {
        return tool_fail_client(t, "cannot remove a queue, and so makes none", result);
    }
    bench_run(&outcome, plan);
    int status = tell(t, plan, &outcome);
    result = bench_queue_remove(t->client, plan->queue);
    int removal = result == EMQ_OK ? TOOL_DONE : fail_removal(t, plan, result);
    return removal > status ? removal : status;
}

static int run_bench(tool *t) {
    bench_plan plan = {.options = EMQ_CLIENT_OPTIONS_INIT};
    int status = read_plan(t, &plan);
    int result = bench_queue_name(plan.queue);
    if (status == TOOL_DONE && result != EMQ_OK) {
        status = tool_fail(t, "cannot name a queue", result, "");
    }
    if (status == TOOL_DONE) {
        status =
            tool_confirm(t, "Write up to %zu jobs of %zu bytes to the queue %s, and remove it?",
                         plan.jobs, plan.payload, plan.queue);
    }
    if (status == TOOL_DONE) {
        status = tool_connect(t, &plan.options);
    }
    if (status != TOOL_DONE) {
        return status;
    }
    tool_watch_signals();
    return run_on_queue(t, &plan);
}

static const tool_option options[] = {
    {"jobs", 'n', "N", "how many jobs at most (default 20000)"},
    {"for", 'f', "TIME", "begin no job behind that time (default 10s)"},
    {"payload", 'p', "BYTES", "of a job (default 100)"},
    {"depth", 'd', "N", "jobs of one write, of which all answers are awaited (default 100)"},
    {"connections", 'c', "N", "at once, each with a thread (default 1)"},
    TOOL_OPTION_YES,
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_bench = {
    .name = "bench",
    .arguments = "",
    .least = 0,
    .most = 0,
    .summary = "Measure how fast the server takes jobs from enqueue to complete",
    .details =
        "It asks before, and writes to a queue of its own, emq-bench-..., which it removes in\n"
        "the end, also when a signal stops it: its user needs the rights of a worker and a\n"
        "producer, and DEL, ZRANGE, ZCARD and HGETALL on the keys of that queue. The rate of\n"
        "a phase is what the connections reach while they are in it; p50 and p99 are the\n"
        "times from a write of --depth jobs to the last of their answers (--depth 1: of one\n"
        "job). A server that others use gets slower meanwhile.\n",
    .example = "emq bench --connections 4 --depth 20\n",
    .options = options,
    .run = run_bench,
};
