/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a job from enqueue to complete, on one connection: windows of jobs that are enqueued
 * in one write, then claimed in one, then completed in one; the asynchronous client has as many
 * jobs under way at once. */
#include <stdlib.h>
#include <string.h>

#include "async_run.h"
#include "lifecycle.h"
#include "peer.h"

/* Over bare hiredis. */

static void run_wire(bench *b) {
    wire w;
    wire_open(&w, b);
    redisContext *link = wire_connect(b);
    bench_clock start = bench_clock_read(b);
    for (size_t first = 0; first < w.calls; first += b->in_flight) {
        size_t left = w.calls - first;
        size_t count = left < b->in_flight ? left : b->in_flight;
        for (wire_phase phase = WIRE_ENQUEUE; phase < WIRE_PHASES; phase++) {
            wire_send(&w, link, phase, first, count);
            wire_receive(&w, link, phase, first, count);
        }
    }
    bench_add_clock(b, "job", bench_clock_since(b, start));
    redisFree(link);
    wire_close(&w);
}

/* Through libemq's pipeline. */

typedef struct piped {
    bench *b;
    emq_client *client;
    emq_pipeline *p;
    char *payloads;
    emq_lease *leases;
    size_t *jobs; /* whose lease it is */
    bench_ledger ledger;
} piped;

static void run_entries(piped *run, size_t count) {
    bench_expect(run->b, emq_pipeline_run(run->p), "emq_pipeline_run",
                 emq_client_get_error(run->client));
    for (size_t i = 0; i < count; i++) {
        bench_expect(run->b, emq_pipeline_get_result(run->p, i), "an entry", "");
    }
}

static void piped_enqueue(piped *run, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        emq_id id = {{0}};
        const char *payload = run->payloads + i * run->b->payload;
        int result = emq_pipeline_enqueue(run->p, &id, BENCH_QUEUE, payload, run->b->payload);
        bench_expect(run->b, result, "emq_pipeline_enqueue", "");
    }
    run_entries(run, count);
}

static void piped_claim(piped *run, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int result = emq_pipeline_claim(run->p, BENCH_QUEUE, BENCH_LEASE_MS);
        bench_expect(run->b, result, "emq_pipeline_claim", "");
    }
    run_entries(run, count);
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        emq_job *job = emq_pipeline_take_job(run->p, i);
        const void *payload = emq_job_get_payload(job, &size);
        run->leases[i] = *emq_job_get_lease(job);
        run->jobs[i] = bench_payload_read(run->b, payload, size);
        bench_ledger_claim(&run->ledger, run->b, run->jobs[i]);
        emq_job_free(job);
    }
}

static void piped_complete(piped *run, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int result = emq_pipeline_complete(run->p, &run->leases[i]);
        bench_expect(run->b, result, "emq_pipeline_complete", "");
    }
    run_entries(run, count);
    for (size_t i = 0; i < count; i++) {
        bench_ledger_complete(&run->ledger, run->b, run->jobs[i]);
    }
}

static void run_pipeline(bench *b) {
    piped run = {.b = b, .client = bench_open(b), .payloads = bench_payloads_new(b)};
    run.leases = bench_alloc(b, b->in_flight, sizeof(*run.leases));
    run.jobs = bench_alloc(b, b->in_flight, sizeof(*run.jobs));
    bench_ledger_open(&run.ledger, b);
    bench_expect(b, emq_pipeline_new(&run.p, run.client), "emq_pipeline_new", "");
    wire_fill(b);
    bench_clock start = bench_clock_read(b);
    for (size_t first = 0; first < b->jobs; first += b->in_flight) {
        size_t left = b->jobs - first;
        size_t count = left < b->in_flight ? left : b->in_flight;
        piped_enqueue(&run, first, count);
        piped_claim(&run, count);
        piped_complete(&run, count);
    }
    bench_add_clock(b, "job", bench_clock_since(b, start));
    emq_pipeline_free(run.p);
    emq_client_close(run.client);
    bench_ledger_close(&run.ledger, b);
    wire_check_server(b);
    free(run.payloads);
    free(run.leases);
    free(run.jobs);
}

/* Through libemq's batches: each window is three calls. */

static void enqueue_all(const bench *b, emq_client *client, const char *payloads, size_t count) {
    static emq_id ids[EMQ_MEMBERS_MAX];
    static emq_bytes bytes[EMQ_MEMBERS_MAX];
    static int results[EMQ_MEMBERS_MAX];
    for (size_t i = 0; i < count; i++) {
        ids[i] = (emq_id){{0}};
        bytes[i] = (emq_bytes){payloads + i * b->payload, b->payload};
    }
    bench_expect(b, emq_enqueues(results, ids, client, BENCH_QUEUE, bytes, count), "emq_enqueues",
                 emq_client_get_error(client));
    for (size_t i = 0; i < count; i++) {
        bench_expect(b, results[i], "enqueuing a job", "");
    }
}

void lifecycle_enqueue_all(const bench *b) {
    emq_client *client = bench_open(b);
    char *payloads = bench_payloads_new(b);
    for (size_t first = 0; first < b->jobs; first += b->in_flight) {
        size_t left = b->jobs - first;
        enqueue_all(b, client, payloads + first * b->payload,
                    left < b->in_flight ? left : b->in_flight);
    }
    emq_client_close(client);
    free(payloads);
}

static void run_batches(bench *b) {
    emq_client *client = bench_open(b);
    char *payloads = bench_payloads_new(b);
    bench_ledger ledger;
    bench_check(b, b->in_flight <= EMQ_MEMBERS_MAX, "the window is larger than a batch");
    bench_ledger_open(&ledger, b);
    wire_fill(b);
    bench_clock start = bench_clock_read(b);
    for (size_t first = 0; first < b->jobs; first += b->in_flight) {
        size_t left = b->jobs - first;
        size_t count = left < b->in_flight ? left : b->in_flight;
        enqueue_all(b, client, payloads + first * b->payload, count);
        bench_drain_some(b, client, &ledger, count);
    }
    bench_add_clock(b, "job", bench_clock_since(b, start));
    emq_client_close(client);
    bench_ledger_close(&ledger, b);
    wire_check_server(b);
    free(payloads);
}

/* Through the asynchronous client: as many chains of requests as jobs may be in flight. A chain's
 * claim may get another chain's job. */

typedef struct chains {
    bench *b;
    async_run async;
    char *payloads;
    size_t begun;
    bench_ledger ledger;
} chains;

typedef struct chain {
    chains *all;
    size_t job; /* that was claimed last */
} chain;

static void on_enqueued(emq_request *request, int result, void *user);
static void on_claimed(emq_request *request, int result, void *user);
static void on_completed(emq_request *request, int result, void *user);

static void submit(chain *c, int built, emq_request *request, emq_request_fn callback) {
    bench_expect(c->all->b, built, "building a request", "");
    bench_expect(c->all->b, emq_async_submit(c->all->async.client, request, callback, c),
                 "emq_async_submit", "");
}

static void begin_chain(chain *c) {
    emq_request *request = NULL;
    const bench *b = c->all->b;
    const char *payload = c->all->payloads + c->all->begun++ * b->payload;
    int built = emq_request_enqueue(&request, NULL, BENCH_QUEUE, payload, b->payload);
    submit(c, built, request, on_enqueued);
}

static void on_enqueued(emq_request *request, int result, void *user) {
    chain *c = user;
    emq_request *next = NULL;
    bench_expect(c->all->b, result, "an enqueue", emq_request_get_error(request));
    int built = emq_request_claim(&next, BENCH_QUEUE, BENCH_LEASE_MS);
    submit(c, built, next, on_claimed);
}

static void on_claimed(emq_request *request, int result, void *user) {
    chain *c = user;
    emq_request *next = NULL;
    size_t size = 0;
    bench_expect(c->all->b, result, "a claim", emq_request_get_error(request));
    const emq_job *job = emq_request_get_job(request);
    const void *payload = emq_job_get_payload(job, &size);
    c->job = bench_payload_read(c->all->b, payload, size);
    bench_ledger_claim(&c->all->ledger, c->all->b, c->job);
    int built = emq_request_complete(&next, emq_job_get_lease(job));
    submit(c, built, next, on_completed);
}

static void on_completed(emq_request *request, int result, void *user) {
    chain *c = user;
    chains *all = c->all;
    bench_expect(all->b, result, "a complete", emq_request_get_error(request));
    bench_ledger_complete(&all->ledger, all->b, c->job);
    if (all->begun < all->b->jobs) {
        begin_chain(c);
    } else if (all->ledger.completed == all->b->jobs) {
        async_run_close(&all->async);
    }
}

static void run_async(bench *b) {
    chains all = {.b = b, .payloads = bench_payloads_new(b)};
    chain *each = bench_alloc(b, b->in_flight, sizeof(*each));
    bench_ledger_open(&all.ledger, b);
    wire_fill(b);
    async_run_open(&all.async, b);
    bench_clock start = bench_clock_read(b);
    for (size_t i = 0; i < b->in_flight && all.begun < b->jobs; i++) {
        each[i].all = &all;
        begin_chain(&each[i]);
    }
    async_run_wait(&all.async);
    bench_add_clock(b, "job", bench_clock_since(b, start));
    bench_ledger_close(&all.ledger, b);
    wire_check_server(b);
    free(all.payloads);
    free(each);
}

void bench_lifecycle(bench *b) {
    static const struct {
        const char *contender;
        void (*run)(bench *b);
    } runs[] = {
        {"worker", lifecycle_worker},
        {"worker-prefetch", lifecycle_worker},
        {"native", run_wire},
        {"script", run_wire},
        {"bare", run_wire},
        {"pipeline", run_pipeline},
        {"batches", run_batches},
        {"async", run_async},
        {"beanstalkd", peer_beanstalkd},
        {"gearmand", peer_gearmand},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        if (strcmp(runs[i].contender, b->contender) == 0) {
            runs[i].run(b);
            return;
        }
    }
    bench_die(b, "no such contender");
}
