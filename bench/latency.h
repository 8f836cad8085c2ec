/* SPDX-License-Identifier: Apache-2.0 */
/* What measurements of latency share. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "wire.h"

#define LATENCY_AHEAD_MS 10 /* how far ahead a job is scheduled */

/* Adds p50, p99 and p99.9 of one sample for each job, microseconds. Sorts them. */
void latency_add(bench *b, double *samples);

/* Returns when so many clients wait for work. */
void latency_await_waiters(const bench *b, redisContext *link, size_t count);

double latency_unix_ms(void);

/* From a producer to the handler of a worker runtime, at once or at a time. */
void latency_worker(bench *b);

#endif
