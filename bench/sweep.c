/* SPDX-License-Identifier: Apache-2.0 */
/* What EMQ.PROMOTE and EMQ.STALLED.CHECK cost the server for each job that they move, by their
 * limit, in a set of as many jobs as the run has. Leaves an empty server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire.h"

#define WINDOW 500
#define LAPSE_NS 20000000 /* leases of a millisecond have lapsed by then */

/* How many calls with which limit: more than 20000 jobs are not needed. */
static const struct {
    uint32_t limit;
    size_t calls;
} steps[] = {{10, 100}, {100, 20}, {1000, 4}, {10000, 1}};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* All jobs are due since long. */
static void load_schedule(const bench *b, redisContext *link, const emq_id *ids,
                          const char *payload) {
    emq_line line = EMQ_LINE_INIT;
    const emq_when when = {EMQ_AT, 1};
    for (size_t first = 0; first < b->jobs; first += WINDOW) {
        const size_t end = first + WINDOW < b->jobs ? first + WINDOW : b->jobs;
        for (size_t i = first; i < end; i++) {
            int result = emq_line_schedule(&line, BENCH_QUEUE, &ids[i], payload, b->payload, when);
            bench_expect(b, result, "emq_line_schedule", "");
            (void)redisAppendCommandArgv(link, line.argc, line.argv, line.argvlen);
        }
        for (size_t i = first; i < end; i++) {
            freeReplyObject(wire_reply(b, link));
        }
    }
    emq_line_clear(&line);
}

/* All leases have lapsed. */
static void load_active(const bench *b, emq_client *client, emq_id *ids, const char *payload) {
    static int results[WINDOW];
    emq_bytes payloads[WINDOW];
    const struct timespec pause = {0, LAPSE_NS};
    for (size_t i = 0; i < WINDOW; i++) {
        payloads[i] = (emq_bytes){payload, b->payload};
    }
    for (size_t first = 0; first < b->jobs; first += WINDOW) {
        size_t count = first + WINDOW < b->jobs ? WINDOW : b->jobs - first;
        emq_jobs *jobs = NULL;
        int result = emq_enqueues(results, ids + first, client, BENCH_QUEUE, payloads, count);
        bench_expect(b, result, "emq_enqueues", emq_client_get_error(client));
        result = emq_claims(&jobs, client, BENCH_QUEUE, 1, (uint32_t)count, 0);
        bench_expect(b, result, "emq_claims", emq_client_get_error(client));
        emq_jobs_free(jobs);
    }
    (void)nanosleep(&pause, NULL);
}

static void sweep_once(const bench *b, emq_client *client, uint32_t limit) {
    int64_t moved = 0;
    int result = EMQ_OK;
    if (strcmp(b->contender, "promote") == 0) {
        result = emq_promote(&moved, client, BENCH_QUEUE, limit);
    } else {
        emq_ids *recovered = NULL;
        result = emq_stalled_check(&recovered, NULL, client, BENCH_QUEUE, 1000, limit);
        moved = (int64_t)emq_ids_get_count(recovered);
        emq_ids_free(recovered);
    }
    bench_expect(b, result, "a sweep", emq_client_get_error(client));
    bench_check(b, moved == (int64_t)limit, "a sweep moved too few jobs");
}

static void run_step(bench *b, emq_client *client, size_t step) {
    char name[64];
    const uint32_t limit = steps[step].limit;
    bench_clock start = bench_clock_read(b);
    for (size_t i = 0; i < steps[step].calls; i++) {
        sweep_once(b, client, limit);
    }
    bench_clock spent = bench_clock_since(b, start);
    (void)snprintf(name, sizeof(name), "limit_%u_server_us", limit);
    bench_add_number(b, name, (double)spent.server_ns / 1000 / (double)(steps[step].calls * limit));
}

void bench_sweep(bench *b) {
    redisContext *link = wire_connect(b);
    wire_reset(b, link);
    emq_client *client = bench_open(b);
    emq_id *ids = bench_ids_new(b, b->jobs);
    char *payload = bench_alloc(b, b->payload + 1, 1);
    memset(payload, 'x', b->payload);
    if (strcmp(b->contender, "promote") == 0) {
        load_schedule(b, link, ids, payload);
    } else {
        load_active(b, client, ids, payload);
    }
    for (size_t step = 0; step < STEPS; step++) {
        run_step(b, client, step);
    }
    emq_client_close(client);
    wire_reset(b, link);
    redisFree(link);
    free(ids);
    free(payload);
}
