/* SPDX-License-Identifier: Apache-2.0 */
/* How long a job is under way: from emq_enqueue to a client that waits for it, while as many as
 * asked for wait; and from the moment that it was scheduled for until somebody has it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <uv.h>

#include "latency.h"

#define WAIT_MS 60000
#define SPARE_FILES 64

static const struct timespec look = {0, 50000};

static int compare(const void *a, const void *b) {
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

void latency_add(bench *b, double *samples) {
    static const struct {
        const char *name;
        size_t of_1000;
    } points[] = {{"p50_us", 500}, {"p99_us", 990}, {"p999_us", 999}};
    qsort(samples, b->jobs, sizeof(*samples), compare);
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        size_t at = b->jobs * points[i].of_1000 / 1000;
        bench_add_number(b, points[i].name, samples[at < b->jobs ? at : b->jobs - 1]);
    }
}

/* Blocked claims. */

typedef struct waiting {
    bench *b;
    uv_loop_t loop;
    uv_async_t stop;
    struct waiter *waiters;
    uint64_t *sent_ns;
    double *samples; /* microseconds */
    bench_ledger ledger;
} waiting;

typedef struct waiter {
    waiting *all;
    emq_async *client;
    char queue[EMQ_QUEUE_MAX + 1];
    size_t job;
} waiter;

static void wait_for_work(waiter *w);

static void on_completed(emq_request *request, int result, void *user) {
    waiter *w = user;
    bench_expect(w->all->b, result, "a complete", emq_request_get_error(request));
    bench_ledger_complete(&w->all->ledger, w->all->b, w->job);
}

static void on_claimed(emq_request *request, int result, void *user) {
    const uint64_t now = bench_now_ns();
    waiter *w = user;
    waiting *all = w->all;
    emq_request *next = NULL;
    size_t size = 0;
    if (result == EMQ_ECLOSED) {
        return;
    }
    if (result == EMQ_OK) {
        const emq_job *job = emq_jobs_get_job(emq_request_get_jobs(request), 0);
        const void *payload = emq_job_get_payload(job, &size);
        w->job = bench_payload_read(all->b, payload, size);
        bench_ledger_claim(&all->ledger, all->b, w->job);
        all->samples[w->job] = (double)(now - all->sent_ns[w->job]) / 1000;
        bench_expect(all->b, emq_request_complete(&next, emq_job_get_lease(job)),
                     "emq_request_complete", "");
        bench_expect(all->b, emq_async_submit(w->client, next, on_completed, w), "emq_async_submit",
                     "");
    } else if (result != EMQ_EMPTY) {
        bench_die(all->b, "a claim: %s: %s", emq_err_name(result), emq_request_get_error(request));
    }
    wait_for_work(w);
}

static void wait_for_work(waiter *w) {
    emq_request *request = NULL;
    int built = emq_request_claims(&request, w->queue, BENCH_LEASE_MS, 1, WAIT_MS);
    bench_expect(w->all->b, built, "emq_request_claims", "");
    bench_expect(w->all->b, emq_async_submit(w->client, request, on_claimed, w), "emq_async_submit",
                 "");
}

static void on_stop(uv_async_t *stop) {
    waiting *all = stop->data;
    for (size_t i = 0; i < all->b->waiters; i++) {
        (void)emq_async_close(all->waiters[i].client, NULL, NULL);
    }
    uv_close((uv_handle_t *)stop, NULL);
}

static void *run_loop(void *user) {
    waiting *all = user;
    (void)uv_run(&all->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void open_waiters(waiting *all) {
    bench *b = all->b;
    emq_client_options options;
    struct rlimit files = {0, 0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < b->waiters + SPARE_FILES && files.rlim_max != RLIM_INFINITY
                         ? files.rlim_max
                         : b->waiters + SPARE_FILES;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    bench_client_options(&options, b);
    all->waiters = bench_alloc(b, b->waiters, sizeof(*all->waiters));
    bench_check(b, uv_loop_init(&all->loop) == 0, "no loop");
    bench_check(b, uv_async_init(&all->loop, &all->stop, on_stop) == 0, "no loop");
    all->stop.data = all;
    for (size_t i = 0; i < b->waiters; i++) {
        waiter *w = &all->waiters[i];
        w->all = all;
        wire_queue_name(w->queue, sizeof(w->queue), b, i);
        int result = emq_async_open(&w->client, &all->loop, &options, NULL);
        bench_expect(b, result, "emq_async_open", "");
        wait_for_work(w);
    }
}

void latency_await_waiters(const bench *b, redisContext *link, size_t count) {
    while (wire_info(b, link, "clients", "blocked_clients:") < (long long)count) {
        (void)nanosleep(&look, NULL);
    }
}

static void run_blocked(bench *b) {
    waiting all = {.b = b};
    pthread_t thread;
    bench_check(b, b->waiters > 0, "nobody waits");
    bench_ledger_open(&all.ledger, b);
    all.sent_ns = bench_alloc(b, b->jobs, sizeof(*all.sent_ns));
    all.samples = bench_alloc(b, b->jobs, sizeof(*all.samples));
    char *payloads = bench_payloads_new(b);
    redisContext *link = wire_connect(b);
    emq_client *client = bench_open(b);
    open_waiters(&all);
    bench_check(b, pthread_create(&thread, NULL, run_loop, &all) == 0, "no thread");
    for (size_t i = 0; i < b->jobs; i++) {
        emq_id id = {{0}};
        char queue[EMQ_QUEUE_MAX + 1];
        wire_queue_name(queue, sizeof(queue), b, i);
        latency_await_waiters(b, link, b->waiters);
        all.sent_ns[i] = bench_now_ns();
        int result = emq_enqueue(&id, client, queue, payloads + i * b->payload, b->payload);
        bench_expect(b, result, "emq_enqueue", emq_client_get_error(client));
    }
    while (atomic_load(&all.ledger.completed) < b->jobs) {
        (void)nanosleep(&look, NULL);
    }
    (void)uv_async_send(&all.stop);
    (void)pthread_join(thread, NULL);
    (void)uv_loop_close(&all.loop);
    bench_ledger_close(&all.ledger, b);
    latency_add(b, all.samples);
    emq_client_close(client);
    redisFree(link);
    wire_check_server(b);
    free(all.waiters);
    free(all.sent_ns);
    free(all.samples);
    free(payloads);
}

/* Scheduled jobs: what a worker does that knows the earliest time. */

double latency_unix_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1000000;
}

static double read_earliest(const bench *b, redisContext *link) {
    char key[EMQ_KEY_MAX + 1];
    (void)emq_key_queue(key, sizeof(key), BENCH_QUEUE, EMQ_KEY_SCHEDULE);
    redisReply *reply =
        wire_ask(b, link, 5, (const char *[]){"ZRANGE", key, "0", "0", "WITHSCORES"});
    bench_check(b, reply->elements == 2, "no job is scheduled");
    double earliest = strtod(reply->element[1]->str, NULL);
    freeReplyObject(reply);
    return earliest;
}

static void sleep_until(double due_ms) {
    const double left = due_ms - latency_unix_ms();
    if (left > 0) {
        const struct timespec pause = {0, (long)(left * 1000000)};
        (void)nanosleep(&pause, NULL);
    }
}

static double run_scheduled_job(const bench *b, emq_client *client, redisContext *link,
                                bench_ledger *ledger, const char *payload, size_t job) {
    emq_id id = {{0}};
    emq_job *claimed = NULL;
    int64_t moved = 0;
    const emq_when when = {EMQ_IN, LATENCY_AHEAD_MS};
    int result = emq_schedule(&id, client, BENCH_QUEUE, payload, b->payload, when);
    bench_expect(b, result, "emq_schedule", emq_client_get_error(client));
    const double due = read_earliest(b, link);
    sleep_until(due);
    while (moved == 0) {
        result = emq_promote(&moved, client, BENCH_QUEUE, 1);
        bench_expect(b, result, "emq_promote", emq_client_get_error(client));
    }
    result = emq_claim(&claimed, client, BENCH_QUEUE, BENCH_LEASE_MS);
    bench_expect(b, result, "emq_claim", emq_client_get_error(client));
    const double late_us = (latency_unix_ms() - due) * 1000;
    bench_ledger_claim(ledger, b, job);
    bench_expect(b, emq_complete(client, emq_job_get_lease(claimed)), "emq_complete",
                 emq_client_get_error(client));
    bench_ledger_complete(ledger, b, job);
    emq_job_free(claimed);
    return late_us;
}

static void run_scheduled(bench *b) {
    bench_ledger ledger;
    char *payloads = bench_payloads_new(b);
    double *samples = bench_alloc(b, b->jobs, sizeof(*samples));
    redisContext *link = wire_connect(b);
    emq_client *client = bench_open(b);
    bench_ledger_open(&ledger, b);
    for (size_t i = 0; i < b->jobs; i++) {
        samples[i] = run_scheduled_job(b, client, link, &ledger, payloads + i * b->payload, i);
    }
    bench_ledger_close(&ledger, b);
    latency_add(b, samples);
    emq_client_close(client);
    redisFree(link);
    wire_check_server(b);
    free(samples);
    free(payloads);
}

void bench_latency(bench *b) {
    if (strcmp(b->contender, "blocked") == 0) {
        run_blocked(b);
    } else if (strcmp(b->contender, "scheduled") == 0) {
        run_scheduled(b);
    } else if (strcmp(b->contender, "worker") == 0 ||
               strcmp(b->contender, "worker-scheduled") == 0) {
        latency_worker(b);
    } else {
        bench_die(b, "no such contender");
    }
}
