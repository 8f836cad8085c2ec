/* SPDX-License-Identifier: Apache-2.0 */
/* The renewer: every third of a queue's lease, one EMQ.EXTENDS for all of its jobs in hand. It runs
 * nothing of the program's, so that no handler and no hook can hold it up. */
#include <emq/verbs.h>
#include <string.h>

#include "memory.h"
#include "worker.h"

#define BEATS_IN_A_LEASE 3

typedef struct emq_beat {
    emq_work_queue *queue;
    unsigned int number;
    size_t count;
    emq_lease leases[EMQ_MEMBERS_MAX];
    int results[EMQ_MEMBERS_MAX];
} beat;

static int64_t beat_ns(const emq_work_queue *q) {
    return (int64_t)q->options.lease_ms * EMQ_NS_PER_MS / BEATS_IN_A_LEASE;
}

/* A job whose settle was sent has no lease any more, perhaps; one whose settle is refused must not
 * be kept for ever. */
static int is_renewable(const emq_task *task) {
    return task->notice < EMQ_NOTICE_OVERTIME && task->tries == 0 && !task->is_refused &&
           (task->state == TASK_WAITING || task->state == TASK_RUNNING ||
            task->state == TASK_DECIDED);
}

/* Gathers leases that this beat has not renewed yet; with the mutex held. */
static size_t gather(beat *b) {
    emq_task *task = b->queue->worker->tasks;
    b->count = 0;
    for (; task != NULL && b->count < EMQ_MEMBERS_MAX; task = task->next) {
        if (task->queue == b->queue && task->beat != b->number && is_renewable(task)) {
            task->beat = b->number;
            task->beat_place = b->count;
            b->leases[b->count++] = task->job.lease;
        }
    }
    return b->count;
}

/* With the mutex held. A job that was settled meanwhile is none of ours any more. */
static void take_results(const beat *b, int64_t sent_at) {
    emq_worker *worker = b->queue->worker;
    worker->stats.beats++;
    for (emq_task *task = worker->tasks; task != NULL; task = task->next) {
        if (task->queue != b->queue || task->beat != b->number || task->beat_place >= b->count ||
            memcmp(&task->job.lease.id, &b->leases[task->beat_place].id, sizeof(emq_id)) != 0) {
            continue;
        }
        if (b->results[task->beat_place] == EMQ_OK) {
            task->lease_until = sent_at + (int64_t)b->queue->options.lease_ms * EMQ_NS_PER_MS;
        } else if (is_renewable(task)) {
            worker->stats.lost += !emq_task_is_gone(task);
            emq_task_notify(task, EMQ_NOTICE_LOST);
        }
    }
}

/* One call; whether it was answered. An answer that would come behind the next beat is of no use,
 * and a new connection may be faster. */
static int extend(beat *b) {
    emq_worker_link *link = &b->queue->worker->renew_link;
    uint32_t patience_ms = b->queue->worker->settings.options.command_timeout_ms;
    uint32_t beat_ms = b->queue->options.lease_ms / BEATS_IN_A_LEASE;
    link->client->settings.options.command_timeout_ms =
        patience_ms < beat_ms ? patience_ms : beat_ms;
    int result =
        emq_extends(b->results, link->client, b->leases, b->count, b->queue->options.lease_ms);
    (void)emq_worker_link_note(link, result);
    return result == EMQ_OK;
}

/* Renews what a queue has in hand; 0 when that has to be tried again. */
static int renew(beat *b) {
    emq_worker *worker = b->queue->worker;
    b->number++;
    for (;;) {
        emq_worker_lock(worker);
        size_t count = gather(b);
        emq_worker_unlock(worker);
        if (count == 0) {
            return 1;
        }
        if (emq_worker_link_open(&worker->renew_link, &worker->beats, EMQ_PHASE_ENDED) != EMQ_OK) {
            return 0;
        }
        int64_t sent_at = emq_now_ns();
        if (!extend(b)) {
            return 0;
        }
        emq_worker_lock(worker);
        take_results(b, sent_at);
        emq_worker_unlock(worker);
    }
}

/* The queue whose beat is next. */
static emq_work_queue *find_next(const emq_worker *worker) {
    emq_work_queue *next = worker->queues;
    for (emq_work_queue *q = next; q != NULL; q = q->next) {
        if (q->beat_at < next->beat_at) {
            next = q;
        }
    }
    return next;
}

/* Waits for the next beat; NULL at the end. */
static emq_work_queue *await_beat(emq_worker *worker) {
    emq_work_queue *q = NULL;
    emq_worker_lock(worker);
    for (;;) {
        q = find_next(worker);
        if (worker->phase == EMQ_PHASE_ENDED || q->beat_at <= emq_now_ns()) {
            break;
        }
        emq_worker_await(worker, &worker->beats, q->beat_at);
    }
    int goes_on = worker->phase != EMQ_PHASE_ENDED;
    emq_worker_unlock(worker);
    return goes_on ? q : NULL;
}

/* The pauses between the connection's tries must leave room for some within a lease. */
static void bound_backoff(emq_worker *worker) {
    for (const emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        uint32_t most = q->options.lease_ms / (2 * BEATS_IN_A_LEASE);
        if (worker->renew_link.backoff_max_ms > most) {
            worker->renew_link.backoff_max_ms = most;
        }
    }
}

/* A beat that failed comes again at once: the connection has a pause of its own. */
static void plan_next(emq_work_queue *q, int is_done) {
    int64_t now = emq_now_ns();
    if (is_done) {
        q->beat_at += beat_ns(q);
        if (q->beat_at < now) {
            q->beat_at = now + beat_ns(q);
        }
    } else {
        q->beat_at = now;
    }
}

struct emq_beat *emq_worker_new_beat(void) {
    return emq_calloc(1, sizeof(beat));
}

void *emq_worker_renew(void *data) {
    emq_worker *worker = data;
    beat *b = worker->beat;
    bound_backoff(worker);
    for (emq_work_queue *q = await_beat(worker); q != NULL; q = await_beat(worker)) {
        b->queue = q;
        int is_done = renew(b);
        emq_worker_lock(worker);
        plan_next(q, is_done);
        emq_worker_unlock(worker);
    }
    return NULL;
}
