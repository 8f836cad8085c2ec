/* SPDX-License-Identifier: Apache-2.0 */
/* What the measurements share: failing, clocks, payloads and ids, the ledger. */
#include "bench.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Noreturn void bench_die(const bench *b, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "bench: %s: ", b->cell);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, two lines above */
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void bench_check(const bench *b, int ok, const char *what) {
    if (!ok) {
        bench_die(b, "%s", what);
    }
}

void bench_expect(const bench *b, int result, const char *call, const char *text) {
    if (result != EMQ_OK) {
        bench_die(b, "%s: %s: %s", call, emq_err_name(result), text);
    }
}

void *bench_alloc(const bench *b, size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    bench_check(b, memory != NULL, "no memory");
    return memory;
}

void bench_client_options(emq_client_options *out, const bench *b) {
    emq_client_options_init(out);
    out->host = b->host;
    out->unix_path = b->path;
    out->port = (uint16_t)b->port;
    out->connect_timeout_ms = BENCH_TIMEOUT_MS;
    out->command_timeout_ms = BENCH_TIMEOUT_MS;
}

emq_client *bench_open(const bench *b) {
    emq_client_options options;
    bench_client_options(&options, b);
    emq_client *client = NULL;
    int result = emq_client_open(&client, &options);
    bench_expect(b, result, "emq_client_open", emq_client_get_error(client));
    return client;
}

static uint64_t read_clock(clockid_t clock) {
    struct timespec now = {0, 0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t bench_now_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

bench_clock bench_clock_read(const bench *b) {
    bench_clock now = {bench_now_ns(), 0, read_clock(CLOCK_PROCESS_CPUTIME_ID)};
    clockid_t server = CLOCK_MONOTONIC;
    if (b->pid != 0) {
        bench_check(b, clock_getcpuclockid((pid_t)b->pid, &server) == 0, "the server is gone");
        now.server_ns = read_clock(server);
    }
    return now;
}

bench_clock bench_clock_since(const bench *b, bench_clock start) {
    bench_clock now = bench_clock_read(b);
    return (bench_clock){now.wall_ns - start.wall_ns, now.server_ns - start.server_ns,
                         now.client_ns - start.client_ns};
}

void bench_add_number(bench *b, const char *name, double value) {
    bench_check(b, json_object_set_new(b->result, name, json_real(value)) == 0, "no memory");
}

void bench_add_clock(bench *b, const char *name, bench_clock spent) {
    char key[64];
    const double jobs_us = (double)b->jobs * 1000;
    (void)snprintf(key, sizeof(key), "%s_us", name);
    bench_add_number(b, key, (double)spent.wall_ns / jobs_us);
    (void)snprintf(key, sizeof(key), "%s_server_us", name);
    bench_add_number(b, key, (double)spent.server_ns / jobs_us);
    (void)snprintf(key, sizeof(key), "%s_client_us", name);
    bench_add_number(b, key, (double)spent.client_ns / jobs_us);
}

char *bench_payloads_new(const bench *b) {
    bench_check(b, b->payload >= BENCH_PAYLOAD_MIN, "the payload is too small for a number");
    char *payloads = bench_alloc(b, b->jobs, b->payload);
    memset(payloads, 'x', b->jobs * b->payload);
    for (size_t i = 0; i < b->jobs; i++) {
        char number[BENCH_PAYLOAD_MIN + 1];
        (void)snprintf(number, sizeof(number), "%0*zu", BENCH_PAYLOAD_MIN, i % 1000000000U);
        memcpy(payloads + i * b->payload, number, BENCH_PAYLOAD_MIN);
    }
    return payloads;
}

size_t bench_payload_read(const bench *b, const void *p, size_t n) {
    char number[BENCH_PAYLOAD_MIN + 1] = "";
    if (p == NULL || n != b->payload) {
        bench_die(b, "a payload of %zu bytes instead of %zu", n, b->payload);
    }
    memcpy(number, p, BENCH_PAYLOAD_MIN);
    return (size_t)strtoull(number, NULL, 10);
}

int bench_payload_waits(const void *p, size_t n) {
    return n > 0 && *(const char *)p == 'x';
}

emq_id *bench_ids_new(const bench *b, size_t count) {
    emq_id *ids = bench_alloc(b, count, sizeof(*ids));
    for (size_t i = 0; i < count; i++) {
        bench_expect(b, emq_id_mint(&ids[i], "JOB"), "emq_id_mint", "");
    }
    return ids;
}

void bench_ledger_open(bench_ledger *ledger, const bench *b) {
    ledger->marks = bench_alloc(b, b->jobs, sizeof(*ledger->marks));
    atomic_init(&ledger->completed, 0);
}

static void mark(bench_ledger *ledger, const bench *b, size_t job, unsigned char from,
                 const char *what) {
    if (job >= b->jobs) {
        bench_die(b, "job %zu %s, and there is none", job, what);
    }
    if (atomic_fetch_add(&ledger->marks[job], 1) != from) {
        bench_die(b, "job %zu %s at the wrong time, or twice", job, what);
    }
}

void bench_ledger_claim(bench_ledger *ledger, const bench *b, size_t job) {
    mark(ledger, b, job, 0, "was claimed");
}

void bench_ledger_complete(bench_ledger *ledger, const bench *b, size_t job) {
    mark(ledger, b, job, 1, "was completed");
    (void)atomic_fetch_add(&ledger->completed, 1);
}

void bench_ledger_close(bench_ledger *ledger, const bench *b) {
    size_t completed = atomic_load(&ledger->completed);
    if (completed != b->jobs) {
        bench_die(b, "%zu of %zu jobs were completed", completed, b->jobs);
    }
    free(ledger->marks);
    ledger->marks = NULL;
}
