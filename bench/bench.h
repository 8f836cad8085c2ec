/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark's measurements share: their arguments, clocks, the ledger of deliveries, and
 * the line of JSON that each run prints. A measurement that goes wrong ends the program. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <emq/emq.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_QUEUE "bench"
#define BENCH_PAYLOAD_MIN 12     /* bytes: a payload begins with the number of its job */
#define BENCH_LEASE_MS 3600000U  /* no lease lapses while its job is measured */
#define BENCH_TIMEOUT_MS 120000U /* of a call: a machine that is busy with other work is slow */

/* The arguments of a run. */
typedef struct bench {
    const char *measure;   /* what is measured: a function of bench_measures */
    const char *contender; /* of whom */
    const char *cell;      /* the name of the run in the report */
    const char *host;      /* of the server: a numeric address, or NULL */
    const char *path;      /* of the server: a Unix socket, or NULL */
    const char *scripts;   /* the folder of the reference scripts */
    size_t port;
    size_t pid;         /* of the server, whose time is taken */
    size_t round;       /* counts from 1 */
    size_t jobs;        /* of the run */
    size_t payload;     /* bytes */
    size_t in_flight;   /* jobs that are under way at once, on each connection */
    size_t connections; /* of the client */
    size_t pending;     /* jobs that wait behind those of the run the whole time */
    size_t queues;      /* over which the jobs are spread */
    size_t waiters;     /* clients that wait for work */
    json_t *result;     /* the line of JSON */
} bench;

/* The measurements. Each leaves the server as it found it. */
void bench_verbs(bench *b);
void bench_client(bench *b);
void bench_lifecycle(bench *b);
void bench_latency(bench *b);
void bench_memory(bench *b);
void bench_sweep(bench *b);

/* Says why, with the cell's name, and ends the program with 1. */
_Noreturn void bench_die(const bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void bench_check(const bench *b, int ok, const char *what);

/* The result of a call of libemq, which has to be 0; `text` is its sentence. */
void bench_expect(const bench *b, int result, const char *call, const char *text);

void *bench_alloc(const bench *b, size_t count, size_t size);

/* A client of libemq for the server of the run. */
emq_client *bench_open(const bench *b);
void bench_client_options(emq_client_options *out, const bench *b);

/* What has gone by: wall time, and the processor time of the server and of this program. */
typedef struct bench_clock {
    uint64_t wall_ns;
    uint64_t server_ns;
    uint64_t client_ns;
} bench_clock;

uint64_t bench_now_ns(void);
bench_clock bench_clock_read(const bench *b);
bench_clock bench_clock_since(const bench *b, bench_clock start);

/* Adds "<name>_us", "<name>_server_us" and "<name>_client_us": each per job. */
void bench_add_clock(bench *b, const char *name, bench_clock spent);
void bench_add_number(bench *b, const char *name, double value);

/* Payloads, each with the number of its job. */
char *bench_payloads_new(const bench *b); /* jobs times payload bytes */
size_t bench_payload_read(const bench *b, const void *p, size_t n);
int bench_payload_waits(const void *p, size_t n); /* of a job that fills the queue: it has none */

/* Ids of `count` jobs, in the order of their minting. */
emq_id *bench_ids_new(const bench *b, size_t count);

/* Exact delivery: each job was claimed once and then completed once. Any thread may tell it. */
typedef struct bench_ledger {
    atomic_uchar *marks;
    atomic_size_t completed;
} bench_ledger;

void bench_ledger_open(bench_ledger *ledger, const bench *b);
void bench_ledger_claim(bench_ledger *ledger, const bench *b, size_t job);
void bench_ledger_complete(bench_ledger *ledger, const bench *b, size_t job);
void bench_ledger_close(bench_ledger *ledger, const bench *b);

/* Claims and completes jobs, EMQ_MEMBERS_MAX at most. */
void bench_drain_some(const bench *b, emq_client *client, bench_ledger *ledger, size_t max);

/* Claims and completes the jobs that a run has enqueued, and checks that each was there once. */
void bench_drain(const bench *b);

#endif
