/* SPDX-License-Identifier: Apache-2.0 */
/* An asynchronous client on a loop of its own, for a measurement. */
#ifndef BENCH_ASYNC_RUN_H
#define BENCH_ASYNC_RUN_H

#include <uv.h>

#include "bench.h"

typedef struct async_run {
    bench *b;
    emq_async *client;
    uv_loop_t loop;
} async_run;

/* Returns when the client is open. */
void async_run_open(async_run *run, bench *b);

/* Runs the loop until async_run_close, called by a callback, has done its work. */
void async_run_wait(async_run *run);
void async_run_close(async_run *run);

#endif
