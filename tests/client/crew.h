/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the worker share: a queue filled and looked at, a worker that must start, and
 * waiting for what it counts. */
#ifndef EMQ_TESTS_CLIENT_CREW_H
#define EMQ_TESTS_CLIENT_CREW_H

#include <stdatomic.h>
#include <stddef.h>

#include "server_fixture.h"

/* Of a test: clean_server, and the server has counted no call yet. */
int crew_clean(void **state);

/* Admits a job; its id goes to `id` when that is not NULL. */
void crew_enqueue(const char *queue, const char *payload, emq_id *id);

/* Admits that many jobs, payloads "0", "1", … */
void crew_enqueue_many(const char *queue, int count);

emq_counts crew_counts(const char *queue);

/* The number behind `calls=` of a command; 0 when it was never called. */
long long crew_calls(const char *name);

/* Reads a row, which must be there. */
emq_row *crew_row(const char *queue, const emq_id *id);

/* A worker of one queue, not started. */
emq_worker *crew_open(const emq_client_options *client, const emq_worker_options *options);
void crew_add(emq_worker *worker, const char *queue, emq_task_handler handler, void *user,
              const emq_worker_queue *options);
void crew_start(emq_worker *worker);

/* Drains it, expects that it ends, and frees it. */
void crew_end(emq_worker *worker);

emq_worker_stats crew_stats(emq_worker *worker);

/* Waits until a counter of emq_worker_stats is `count` or more. */
#define CREW_AWAIT(worker, counter, count)                                                         \
    crew_await((worker), #counter, offsetof(emq_worker_stats, counter),                            \
               sizeof(((emq_worker_stats *)0)->counter), (count))
void crew_await(emq_worker *worker, const char *name, size_t offset, size_t size,
                unsigned long long count);

/* Waits until `*value` is `count` or more. */
void crew_await_int(const char *what, atomic_int *value, int count);

/* A handler that returns `*(int *)user`. */
int crew_return(emq_task *task, void *user);

/* A handler that waits until its gate is opened, and completes. */
typedef struct crew_gate {
    atomic_int arrived;
    atomic_int is_open;
    atomic_int passed;
    atomic_int lost; /* how many of those that passed were told that the lease is lost */
} crew_gate;

int crew_wait_at_gate(emq_task *task, void *gate);

/* A handler that keeps its task for later, in the `emq_task *_Atomic` that user points to; and
 * waits for such a task and takes it. */
int crew_keep(emq_task *task, void *kept);
emq_task *crew_take_kept(void *kept);

void crew_nap(long ms);

#endif
