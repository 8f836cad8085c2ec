/* SPDX-License-Identifier: Apache-2.0 */
/* What `emq bench` is made of: the run over several connections (bench_run.c), its queue and what
 * is left of that (bench_queue.c), and the verb that asks and tells (bench.c). */
#ifndef EMQ_TOOL_BENCH_H
#define EMQ_TOOL_BENCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "tool.h"

#define BENCH_PAYLOAD_MIN 8 /* bytes: a payload begins with the number of its job */

typedef enum bench_phase { BENCH_ENQUEUE, BENCH_CLAIM, BENCH_COMPLETE, BENCH_PHASES } bench_phase;

/* What is to be done. */
typedef struct bench_plan {
    emq_client_options options;
    char queue[EMQ_QUEUE_MAX + 1];
    size_t jobs; /* at most; fewer when the time is over before */
    size_t payload;
    size_t depth; /* jobs of one write */
    size_t connections;
    int64_t limit_ms;
} bench_plan;

/* What came of it. */
typedef struct bench_outcome {
    int result;       /* 0, or what failed first */
    char what[64];    /* what that was */
    char detail[256]; /* what the server said of it */
    size_t enqueued;  /* known to be */
    size_t completed;
    size_t wrong;                /* deliveries that were none of one job's two */
    double seconds;              /* from the first write to the last answer */
    double rates[BENCH_PHASES];  /* jobs a second, while all connections are in that phase */
    double p50_ms[BENCH_PHASES]; /* from a write to the last of its answers */
    double p99_ms[BENCH_PHASES];
} bench_outcome;

/* Runs it until the end or a signal; what was begun is ended, as far as the connections live. */
void bench_run(bench_outcome *out, const bench_plan *plan);

/* A name that no other queue has. */
int bench_queue_name(char out[EMQ_QUEUE_MAX + 1]);

/* Removes the queue and its jobs, over a client that may have to connect again. 0 or what failed.
 */
int bench_queue_remove(emq_client *client, const char *queue);

#endif
