/* SPDX-License-Identifier: Apache-2.0 */
/* gearmand: background jobs submitted, grabbed and completed in windows, by its binary protocol.
 * Jobs that wait behind those of a run have the lowest priority. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "stream.h"

#define FUNCTION "bench"
#define HEADER 12     /* bytes: magic, type, size */
#define HANDLE_MAX 64 /* bytes of a job's handle, which the protocol limits */
#define FILL_WINDOW 1000

enum {
    CAN_DO = 1,
    JOB_CREATED = 8,
    GRAB_JOB = 9,
    JOB_ASSIGN = 11,
    WORK_COMPLETE = 13,
    ECHO_REQ = 16,
    ECHO_RES = 17,
    SUBMIT_JOB_BG = 18,
    SUBMIT_JOB_LOW_BG = 34
};

typedef struct assigned {
    char handle[HANDLE_MAX];
    size_t job;
} assigned;

static void put_header(stream *s, uint32_t type, size_t size) {
    char header[HEADER] = "\0REQ";
    const uint32_t numbers[2] = {htonl(type), htonl((uint32_t)size)};
    memcpy(header + 4, numbers, sizeof(numbers));
    stream_put(s, header, sizeof(header));
}

/* The body of the next packet, which must be of this type. */
static const char *take_packet(stream *s, uint32_t type, size_t *size) {
    uint32_t numbers[2];
    memcpy(numbers, stream_take(s, HEADER) + 4, sizeof(numbers));
    if (ntohl(numbers[0]) != type) {
        bench_die(s->b, "gearmand answers with packet %u instead of %u", ntohl(numbers[0]), type);
    }
    *size = ntohl(numbers[1]);
    return stream_take(s, *size);
}

static void put_job(stream *s, uint32_t type, const char *payload) {
    static const char names[] = FUNCTION "\0"; /* the function, and no unique name */
    put_header(s, type, sizeof(names) + s->b->payload);
    stream_put(s, names, sizeof(names));
    stream_put(s, payload, s->b->payload);
}

static void take_created(stream *s, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        (void)take_packet(s, JOB_CREATED, &size);
    }
}

static void take_assigned(stream *s, bench_ledger *ledger, assigned *out) {
    size_t size = 0;
    const char *body = take_packet(s, JOB_ASSIGN, &size);
    const char *payload = body + size - (size < s->b->payload ? size : s->b->payload);
    (void)snprintf(out->handle, sizeof(out->handle), "%s", body);
    out->job = bench_payload_read(s->b, payload, s->b->payload);
    bench_ledger_claim(ledger, s->b, out->job);
}

/* A completion is not answered: an echo behind the last one is. */
static void complete_all(stream *s, bench_ledger *ledger, const assigned *window, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(window[i].handle) + 1;
        put_header(s, WORK_COMPLETE, length);
        stream_put(s, window[i].handle, length);
    }
    put_header(s, ECHO_REQ, 0);
    (void)take_packet(s, ECHO_RES, &size);
    for (size_t i = 0; i < count; i++) {
        bench_ledger_complete(ledger, s->b, window[i].job);
    }
}

static void run_window(stream *s, const char *payloads, bench_ledger *ledger, assigned *window,
                       size_t count) {
    for (size_t i = 0; i < count; i++) {
        put_job(s, SUBMIT_JOB_BG, payloads + i * s->b->payload);
    }
    take_created(s, count);
    for (size_t i = 0; i < count; i++) {
        put_header(s, GRAB_JOB, 0);
    }
    for (size_t i = 0; i < count; i++) {
        take_assigned(s, ledger, &window[i]);
    }
    complete_all(s, ledger, window, count);
}

/* How many jobs there are, by the text that gearmand answers to administrators. */
static size_t count_jobs(const bench *b) {
    stream s;
    size_t total = 0;
    stream_open(&s, b);
    stream_put(&s, "status\n", 7);
    for (const char *line = stream_take_line(&s); strcmp(line, ".") != 0;
         line = stream_take_line(&s)) {
        if (strncmp(line, FUNCTION "\t", sizeof(FUNCTION)) == 0) {
            total = (size_t)strtoull(line + sizeof(FUNCTION), NULL, 10);
        }
    }
    stream_close(&s);
    return total;
}

static void fill(stream *s) {
    const bench *b = s->b;
    size_t there = count_jobs(b);
    bench_check(b, there <= b->pending, "there are jobs in the queue");
    char *payload = bench_alloc(b, b->payload, 1);
    while (there < b->pending) {
        size_t left = b->pending - there;
        size_t count = left < FILL_WINDOW ? left : FILL_WINDOW;
        for (size_t i = 0; i < count; i++) {
            put_job(s, SUBMIT_JOB_LOW_BG, payload);
        }
        take_created(s, count);
        there += count;
    }
    free(payload);
}

void peer_gearmand(bench *b) {
    stream s;
    bench_ledger ledger;
    char *payloads = bench_payloads_new(b);
    assigned *window = bench_alloc(b, b->in_flight, sizeof(*window));
    bench_ledger_open(&ledger, b);
    stream_open(&s, b);
    fill(&s);
    put_header(&s, CAN_DO, strlen(FUNCTION));
    stream_put(&s, FUNCTION, strlen(FUNCTION));
    bench_clock start = bench_clock_read(b);
    for (size_t first = 0; first < b->jobs; first += b->in_flight) {
        size_t left = b->jobs - first;
        run_window(&s, payloads + first * b->payload, &ledger, window,
                   left < b->in_flight ? left : b->in_flight);
    }
    bench_add_clock(b, "job", bench_clock_since(b, start));
    stream_close(&s);
    bench_check(b, count_jobs(b) == b->pending, "gearmand has jobs left");
    bench_ledger_close(&ledger, b);
    free(payloads);
    free(window);
}
