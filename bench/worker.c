/* SPDX-License-Identifier: Apache-2.0 */
/* The worker runtime with a handler that does nothing: the jobs are enqueued in batches, then
 * worked by as many handler threads as jobs may be in flight. */
#include "lifecycle.h"

#include <emq/worker.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_NS 200000 /* how often is looked whether all are done */
#define STOP_MS 60000

typedef struct handled {
    bench *b;
    bench_ledger *ledger;
} handled;

static int handle(emq_task *task, void *user) {
    const handled *all = user;
    size_t size = 0;
    const char *payload = emq_task_get_payload(task, &size);
    if (bench_payload_waits(payload, size)) {
        return EMQ_TASK_LATER; /* behind the last job: it is given back at the end */
    }
    size_t job = bench_payload_read(all->b, payload, size);
    bench_ledger_claim(all->ledger, all->b, job);
    bench_ledger_complete(all->ledger, all->b, job); /* the server's count is looked at later */
    return EMQ_TASK_COMPLETE;
}

static emq_worker *open_worker(handled *all, int prefetches) {
    const bench *b = all->b;
    emq_worker *worker = NULL;
    emq_client_options client;
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    bench_client_options(&client, b);
    options.concurrency = (uint32_t)b->in_flight;
    options.prefetch = prefetches ? (uint32_t)b->in_flight : 0;
    queue.lease_ms = BENCH_LEASE_MS;
    bench_expect(b, emq_worker_open(&worker, &client, &options), "emq_worker_open", "");
    bench_expect(b, emq_worker_add(worker, BENCH_QUEUE, handle, all, &queue), "emq_worker_add", "");
    return worker;
}

static void wait_for_all(const bench *b, emq_worker *worker) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    const struct timespec pause = {0, LOOK_NS};
    do {
        (void)nanosleep(&pause, NULL);
        bench_expect(b, emq_worker_get_stats(&stats, worker), "emq_worker_get_stats", "");
    } while (stats.completed < b->jobs);
}

void lifecycle_worker(bench *b) {
    bench_ledger ledger;
    handled all = {b, &ledger};
    bench_ledger_open(&ledger, b);
    emq_worker *worker = open_worker(&all, strcmp(b->contender, "worker-prefetch") == 0);
    wire_fill(b);
    bench_clock start = bench_clock_read(b);
    lifecycle_enqueue_all(b);
    bench_add_clock(b, "enqueue", bench_clock_since(b, start));
    bench_clock begun = bench_clock_read(b);
    bench_expect(b, emq_worker_start(worker), "emq_worker_start", "");
    wait_for_all(b, worker);
    bench_add_clock(b, "work", bench_clock_since(b, begun));
    bench_add_clock(b, "job", bench_clock_since(b, start));
    bench_expect(b, emq_worker_stop(worker, 0), "emq_worker_stop", "");
    bench_expect(b, emq_worker_wait(NULL, worker, STOP_MS), "emq_worker_wait", "");
    emq_worker_free(worker);
    bench_ledger_close(&ledger, b);
    wire_check_server(b);
}
