/* SPDX-License-Identifier: Apache-2.0 */
/* How long a job is under way to the handler of a worker: from emq_enqueue, or from the moment that
 * it was scheduled for. */
#include <emq/worker.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "latency.h"

#define STOP_MS 60000

typedef struct handled {
    bench *b;
    bench_ledger ledger;
    double *samples;  /* microseconds */
    double *begun_ms; /* when the job was sent, or is due */
} handled;

static int handle(emq_task *task, void *user) {
    const double now = latency_unix_ms();
    handled *all = user;
    size_t size = 0;
    const void *payload = emq_task_get_payload(task, &size);
    const size_t job = bench_payload_read(all->b, payload, size);
    bench_ledger_claim(&all->ledger, all->b, job);
    all->samples[job] = (now - all->begun_ms[job]) * 1000;
    bench_ledger_complete(&all->ledger, all->b, job);
    return EMQ_TASK_COMPLETE;
}

static emq_worker *start_worker(handled *all) {
    const bench *b = all->b;
    emq_worker *worker = NULL;
    emq_client_options client;
    bench_client_options(&client, b);
    bench_expect(b, emq_worker_open(&worker, &client, NULL), "emq_worker_open", "");
    bench_expect(b, emq_worker_add(worker, BENCH_QUEUE, handle, all, NULL), "emq_worker_add", "");
    bench_expect(b, emq_worker_start(worker), "emq_worker_start", "");
    return worker;
}

static void send_job(handled *all, emq_client *client, const char *payload, size_t job) {
    const bench *b = all->b;
    emq_id id = {{0}};
    int result = EMQ_OK;
    if (strcmp(b->contender, "worker") == 0) {
        all->begun_ms[job] = latency_unix_ms();
        result = emq_enqueue(&id, client, BENCH_QUEUE, payload, b->payload);
    } else {
        const emq_when when = {EMQ_AT, (int64_t)latency_unix_ms() + LATENCY_AHEAD_MS};
        all->begun_ms[job] = (double)when.ms;
        result = emq_schedule(&id, client, BENCH_QUEUE, payload, b->payload, when);
    }
    bench_expect(b, result, "sending a job", emq_client_get_error(client));
}

static void await_completed(const bench *b, emq_worker *worker, size_t count) {
    const struct timespec look = {0, 50000};
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    do {
        (void)nanosleep(&look, NULL);
        bench_expect(b, emq_worker_get_stats(&stats, worker), "emq_worker_get_stats", "");
    } while (stats.completed < count);
}

void latency_worker(bench *b) {
    handled all = {.b = b};
    bench_ledger_open(&all.ledger, b);
    all.samples = bench_alloc(b, b->jobs, sizeof(*all.samples));
    all.begun_ms = bench_alloc(b, b->jobs, sizeof(*all.begun_ms));
    char *payloads = bench_payloads_new(b);
    redisContext *link = wire_connect(b);
    emq_client *client = bench_open(b);
    emq_worker *worker = start_worker(&all);
    for (size_t i = 0; i < b->jobs; i++) {
        latency_await_waiters(b, link, 1);
        send_job(&all, client, payloads + i * b->payload, i);
        await_completed(b, worker, i + 1);
    }
    bench_expect(b, emq_worker_stop(worker, STOP_MS), "emq_worker_stop", "");
    bench_expect(b, emq_worker_wait(NULL, worker, STOP_MS), "emq_worker_wait", "");
    emq_worker_free(worker);
    bench_ledger_close(&all.ledger, b);
    latency_add(b, all.samples);
    emq_client_close(client);
    redisFree(link);
    wire_check_server(b);
    free(all.samples);
    free(all.begun_ms);
    free(payloads);
}
