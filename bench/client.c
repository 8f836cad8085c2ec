/* SPDX-License-Identifier: Apache-2.0 */
/* What libemq costs: the same jobs enqueued with bare hiredis, in a pipeline, and by the
 * asynchronous client. The bare one has its lines made before the clock runs; libemq mints the ids
 * and makes the lines while it does. */
#include <stdlib.h>
#include <string.h>

#include "async_run.h"
#include "wire.h"

typedef struct client_run {
    bench *b;
    char *payloads;
    size_t submitted; /* of the asynchronous client */
    size_t answered;
    async_run async;
} client_run;

static const char *payload_of(const client_run *run, size_t job) {
    return run->payloads + job * run->b->payload;
}

/* All lines of the run, made before it. */
static emq_line *lines_new(const client_run *run) {
    emq_line *lines = bench_alloc(run->b, run->b->jobs, sizeof(*lines));
    emq_id *ids = bench_ids_new(run->b, run->b->jobs);
    for (size_t i = 0; i < run->b->jobs; i++) {
        int result =
            emq_line_enqueue(&lines[i], BENCH_QUEUE, &ids[i], payload_of(run, i), run->b->payload);
        bench_expect(run->b, result, "emq_line_enqueue", "");
    }
    free(ids); /* a line has a copy */
    return lines;
}

static void run_bare(client_run *run) {
    bench *b = run->b;
    emq_line *lines = lines_new(run);
    redisContext *link = wire_connect(b);
    bench_clock start = bench_clock_read(b);
    for (size_t first = 0; first < b->jobs; first += b->in_flight) {
        size_t end = first + b->in_flight < b->jobs ? first + b->in_flight : b->jobs;
        for (size_t i = first; i < end; i++) {
            int result =
                redisAppendCommandArgv(link, lines[i].argc, lines[i].argv, lines[i].argvlen);
            bench_check(b, result == REDIS_OK, "no memory");
        }
        for (size_t i = first; i < end; i++) {
            redisReply *reply = wire_reply(b, link);
            bench_check(b, reply->integer == 1, "a job was not admitted");
            freeReplyObject(reply);
        }
    }
    bench_add_clock(b, "enqueue", bench_clock_since(b, start));
    redisFree(link);
    for (size_t i = 0; i < b->jobs; i++) {
        emq_line_clear(&lines[i]);
    }
    free(lines);
}

static void run_pipeline(client_run *run) {
    bench *b = run->b;
    emq_client *client = bench_open(b);
    emq_pipeline *p = NULL;
    bench_expect(b, emq_pipeline_new(&p, client), "emq_pipeline_new", "");
    bench_clock start = bench_clock_read(b);
    for (size_t first = 0; first < b->jobs; first += b->in_flight) {
        size_t end = first + b->in_flight < b->jobs ? first + b->in_flight : b->jobs;
        for (size_t i = first; i < end; i++) {
            emq_id id = {{0}};
            int result = emq_pipeline_enqueue(p, &id, BENCH_QUEUE, payload_of(run, i), b->payload);
            bench_expect(b, result, "emq_pipeline_enqueue", "");
        }
        int result = emq_pipeline_run(p);
        bench_expect(b, result, "emq_pipeline_run", emq_client_get_error(client));
        for (size_t i = 0; i < end - first; i++) {
            bench_expect(b, emq_pipeline_get_result(p, i), "an entry", "");
        }
    }
    bench_add_clock(b, "enqueue", bench_clock_since(b, start));
    emq_pipeline_free(p);
    emq_client_close(client);
}

static void on_enqueued(emq_request *request, int result, void *user);

static void submit_next(client_run *run) {
    emq_request *request = NULL;
    size_t job = run->submitted++;
    int result =
        emq_request_enqueue(&request, NULL, BENCH_QUEUE, payload_of(run, job), run->b->payload);
    bench_expect(run->b, result, "emq_request_enqueue", "");
    bench_expect(run->b, emq_async_submit(run->async.client, request, on_enqueued, run),
                 "emq_async_submit", "");
}

static void on_enqueued(emq_request *request, int result, void *user) {
    client_run *run = user;
    bench_expect(run->b, result, "an enqueue", emq_request_get_error(request));
    run->answered++;
    if (run->submitted < run->b->jobs) {
        submit_next(run);
    } else if (run->answered == run->b->jobs) {
        async_run_close(&run->async);
    }
}

static void run_async(client_run *run) {
    bench *b = run->b;
    async_run_open(&run->async, b);
    bench_clock start = bench_clock_read(b);
    while (run->submitted < b->in_flight && run->submitted < b->jobs) {
        submit_next(run);
    }
    async_run_wait(&run->async);
    bench_add_clock(b, "enqueue", bench_clock_since(b, start));
}

void bench_client(bench *b) {
    client_run run = {.b = b, .payloads = bench_payloads_new(b)};
    if (strcmp(b->contender, "bare") == 0) {
        run_bare(&run);
    } else if (strcmp(b->contender, "pipeline") == 0) {
        run_pipeline(&run);
    } else if (strcmp(b->contender, "async") == 0) {
        run_async(&run);
    } else {
        bench_die(b, "no such contender");
    }
    bench_drain(b);
    free(run.payloads);
}
