/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way of a job, by contender. */
#ifndef BENCH_LIFECYCLE_H
#define BENCH_LIFECYCLE_H

#include "wire.h"

void lifecycle_worker(bench *b);

/* Enqueues all jobs of the run, in batches of as many as may be in flight. */
void lifecycle_enqueue_all(const bench *b);

#endif
