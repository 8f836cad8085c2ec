/* SPDX-License-Identifier: Apache-2.0 */
/* beanstalkd: put, reserve and delete in windows. Jobs that wait behind those of a run have the
 * lowest priority. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "stream.h"

#define RUN_PRIORITY 0U
#define BEHIND_PRIORITY 4294967295U
#define FILL_WINDOW 1000

static void put_job(stream *s, unsigned priority, const char *payload) {
    char text[64];
    const size_t size = s->b->payload;
    int n = snprintf(text, sizeof(text), "put %u 0 3600 %zu\r\n", priority, size);
    stream_put(s, text, (size_t)n);
    stream_put(s, payload, size);
    stream_put(s, "\r\n", 2);
}

static void expect_line(stream *s, const char *start) {
    const char *line = stream_take_line(s);
    if (strncmp(line, start, strlen(start)) != 0) {
        bench_die(s->b, "beanstalkd answers %s", line);
    }
}

/* The numbers of the next line, which has to begin with that word. */
static void take_numbers(stream *s, const char *word, uint64_t *out, size_t count) {
    const char *line = stream_take_line(s);
    const char *rest = line + strlen(word);
    int ok = strncmp(line, word, strlen(word)) == 0;
    for (size_t i = 0; i < count && ok; i++) {
        char *end = NULL;
        out[i] = strtoull(rest, &end, 10);
        ok = *rest == ' ' && end > rest;
        rest = end;
    }
    if (!ok) {
        bench_die(s->b, "beanstalkd answers %s", line);
    }
}

/* A number of the tube's state. */
static size_t read_state(stream *s, const char *name) {
    char text[4096];
    uint64_t size = 0;
    stream_put(s, "stats-tube default\r\n", 20);
    take_numbers(s, "OK", &size, 1);
    bench_check(s->b, size < sizeof(text), "beanstalkd tells too much");
    memcpy(text, stream_take(s, size), size);
    text[size] = '\0';
    (void)stream_take(s, 2);
    const char *found = strstr(text, name);
    bench_check(s->b, found != NULL, "beanstalkd tells no state");
    return found == NULL ? 0 : (size_t)strtoull(found + strlen(name) + 2, NULL, 10);
}

static void fill(stream *s) {
    const bench *b = s->b;
    size_t there = read_state(s, "current-jobs-ready");
    bench_check(b, there <= b->pending, "there are jobs in the queue");
    char *payload = bench_alloc(b, b->payload, 1);
    memset(payload, 'x', b->payload);
    while (there < b->pending) {
        size_t left = b->pending - there;
        size_t count = left < FILL_WINDOW ? left : FILL_WINDOW;
        for (size_t i = 0; i < count; i++) {
            put_job(s, BEHIND_PRIORITY, payload);
        }
        for (size_t i = 0; i < count; i++) {
            expect_line(s, "INSERTED ");
        }
        there += count;
    }
    free(payload);
}

typedef struct reserved {
    uint64_t id;
    size_t job;
} reserved;

static void run_window(stream *s, const char *payloads, bench_ledger *ledger, reserved *window,
                       size_t count) {
    const bench *b = s->b;
    for (size_t i = 0; i < count; i++) {
        put_job(s, RUN_PRIORITY, payloads + i * b->payload);
    }
    for (size_t i = 0; i < count; i++) {
        expect_line(s, "INSERTED ");
    }
    for (size_t i = 0; i < count; i++) {
        stream_put(s, "reserve-with-timeout 0\r\n", 24);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t numbers[2]; /* id and size */
        take_numbers(s, "RESERVED", numbers, 2);
        window[i].id = numbers[0];
        window[i].job = bench_payload_read(b, stream_take(s, numbers[1]), numbers[1]);
        (void)stream_take(s, 2);
        bench_ledger_claim(ledger, b, window[i].job);
    }
    for (size_t i = 0; i < count; i++) {
        char text[32];
        int n = snprintf(text, sizeof(text), "delete %" PRIu64 "\r\n", window[i].id);
        stream_put(s, text, (size_t)n);
    }
    for (size_t i = 0; i < count; i++) {
        expect_line(s, "DELETED");
        bench_ledger_complete(ledger, b, window[i].job);
    }
}

void peer_beanstalkd(bench *b) {
    stream s;
    bench_ledger ledger;
    char *payloads = bench_payloads_new(b);
    reserved *window = bench_alloc(b, b->in_flight, sizeof(*window));
    bench_ledger_open(&ledger, b);
    stream_open(&s, b);
    fill(&s);
    bench_clock start = bench_clock_read(b);
    for (size_t first = 0; first < b->jobs; first += b->in_flight) {
        size_t left = b->jobs - first;
        run_window(&s, payloads + first * b->payload, &ledger, window,
                   left < b->in_flight ? left : b->in_flight);
    }
    bench_add_clock(b, "job", bench_clock_since(b, start));
    bench_check(b,
                read_state(&s, "current-jobs-ready") == b->pending &&
                    read_state(&s, "current-jobs-reserved") == 0,
                "beanstalkd has jobs left");
    bench_ledger_close(&ledger, b);
    stream_close(&s);
    free(payloads);
    free(window);
}
