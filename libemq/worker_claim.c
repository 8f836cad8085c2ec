/* SPDX-License-Identifier: Apache-2.0 */
/* The claimers: one for each queue, on a connection of its own, since a claim that waits holds up
 * its connection.
 *
 * A queue that is believed to have jobs is claimed from without waiting, into slots that were
 * granted before: by weight, so that no more is handed over than there is room for. Only one that
 * was found empty is waited on. Several queues can wait at once for the same free slots; what one
 * hands over when another has filled them goes back. */
#include <emq/verbs.h>

#include "chance.h"
#include "worker.h"

/* A job that worker after worker hands on would come to its max_attempts without having run: from
 * that attempt on it goes back for a moment later, by when fewer of them wait without room. */
#define HANDED_ON_MAX 8
#define HANDED_ON_DELAY_MS 500

#define FRESH_MS 50 /* a look is as good as a new one */

#define PASS_UNIT 1000000 /* of a queue of weight 1, for each job */

static uint32_t capacity(const emq_worker *worker) {
    return worker->options.concurrency + worker->options.prefetch;
}

static uint32_t free_slots(const emq_worker *worker) {
    uint32_t used = worker->held + worker->granted;
    return used < capacity(worker) ? capacity(worker) - used : 0;
}

/* What that many jobs cost a queue, by its weight. */
static uint64_t price(const emq_work_queue *q, uint32_t count) {
    return (uint64_t)count * (PASS_UNIT / q->options.weight);
}

/* Whether its claimer waits for any free slot, to wait on the queue with. */
static int wants_look(const emq_work_queue *q) {
    return q->is_waiting && q->is_empty && !q->is_ahead;
}

/* Whether this queue is next among those that wait for slots. One whose claim is on its way, and
 * will ask for more at once, is one of them: slots that become free together are not for those who
 * happen to wait just then. One that was found empty comes before all of them: it takes no slot,
 * and where every one that becomes free is granted at once it would never see one. */
static int is_next(const emq_work_queue *q) {
    for (const emq_work_queue *other = q->worker->queues; other != NULL; other = other->next) {
        int is_out = other->is_out || other->is_ahead;
        int is_after_some = other->wants_grant || (is_out && !other->is_empty);
        if (wants_look(other) || (is_after_some && other->pass < q->pass)) {
            return 0;
        }
    }
    return 1;
}

/* Its share of some slots, beside the others that want some. */
static uint32_t draw_share(const emq_work_queue *q, uint32_t slots) {
    uint64_t weights = q->options.weight;
    for (const emq_work_queue *other = q->worker->queues; other != NULL; other = other->next) {
        weights += other != q && other->wants_grant ? other->options.weight : 0;
    }
    uint64_t share = (uint64_t)slots * q->options.weight / weights;
    share = share > 0 ? share : 1;
    return share < EMQ_MEMBERS_MAX ? (uint32_t)share : EMQ_MEMBERS_MAX;
}

static void take_grant(emq_claim_ask *out, emq_work_queue *q, uint32_t slots) {
    *out = (emq_claim_ask){.queue = q, .count = draw_share(q, slots)};
    q->worker->granted += out->count;
    q->worker->virtual_time = q->pass;
    q->pass += price(q, out->count); /* until it is known how many there are */
    q->wants_grant = 0;
    emq_worker_offer_slots(q->worker); /* somebody else is next now */
}

void emq_worker_offer_slots(emq_worker *worker) {
    if (free_slots(worker) > 0) {
        (void)pthread_cond_broadcast(&worker->slots);
    }
}

/* A queue that was empty for a while saves nothing up. */
static void ask_for_grant(emq_work_queue *q) {
    if (!q->wants_grant) {
        q->wants_grant = 1;
        if (q->pass < q->worker->virtual_time) {
            q->pass = q->worker->virtual_time;
        }
    }
}

/* With the mutex held: the keeper is to look at the queue. */
static void ask_for_look(emq_work_queue *q) {
    q->look_now = 1;
    (void)pthread_cond_signal(&q->worker->chores);
}

/* Nobody tells a worker of what was scheduled while none of its claims waited. */
static void look_unless_fresh(emq_work_queue *q) {
    if (q->looked_at + FRESH_MS * EMQ_NS_PER_MS < emq_now_ns()) {
        ask_for_look(q);
    }
}

/* Waits until there is something to claim for; 0 when the worker stops. */
static int await_claim(emq_claim_ask *out, emq_work_queue *q) {
    emq_worker *worker = q->worker;
    emq_worker_lock(worker);
    for (;;) {
        if (worker->phase != EMQ_PHASE_WORKING) {
            break;
        }
        if (!q->is_empty && !q->is_ahead) {
            ask_for_grant(q);
        }
        uint32_t room = q->is_ahead ? 0 : free_slots(worker);
        if (room > 0 && q->is_empty) {
            look_unless_fresh(q);
            *out = (emq_claim_ask){q, room < EMQ_MEMBERS_MAX ? room : EMQ_MEMBERS_MAX,
                                   worker->options.claim_wait_ms};
            emq_worker_offer_slots(worker); /* to those who had to wait for this look */
            break;
        }
        if (room > 0 && is_next(q)) {
            take_grant(out, q, room);
            break;
        }
        q->is_waiting = 1;
        emq_worker_await(worker, &worker->slots, TIME_NEVER);
        q->is_waiting = 0;
    }
    int goes_on = worker->phase == EMQ_PHASE_WORKING;
    q->is_out = goes_on;
    worker->claims_out += (uint32_t)goes_on;
    emq_worker_unlock(worker);
    return goes_on;
}

static void line_up(emq_task *task) {
    emq_worker *worker = task->worker;
    task->state = TASK_WAITING;
    emq_task_line_add(&worker->waiting, task);
}

/* Gives back what there is no room for. */
static void hand_on(emq_task *task) {
    task->is_overshoot = 1;
    task->worker->stats.overshoot++;
    if (task->job.lease.token > HANDED_ON_MAX) {
        task->delay_ms = HANDED_ON_DELAY_MS + emq_draw(HANDED_ON_DELAY_MS);
        emq_task_decide(task, EMQ_TASK_DELAY);
    } else {
        emq_task_decide(task, EMQ_TASK_REQUEUE);
    }
}

static int is_exhausted(const emq_task *task) {
    uint32_t most = task->queue->options.max_attempts;
    return most != EMQ_WORKER_UNLIMITED && task->job.lease.token > (int64_t)most;
}

/* With the mutex held: one job that was handed over. */
static void take_in(emq_work_queue *q, emq_job *job, int64_t now) {
    emq_worker *worker = q->worker;
    emq_task *task = emq_task_take(q, job, now);
    if (task == NULL) {
        worker->stats.unsettled++; /* without memory its lease lapses */
        return;
    }
    if (worker->held + worker->granted >= capacity(worker)) {
        q->is_empty = 0; /* it has that one again: now into a slot of its own */
        hand_on(task);
        return;
    }
    q->pass += price(q, 1);
    worker->held++;
    worker->stats.claimed++;
    task->has_slot = 1;
    if (worker->phase != EMQ_PHASE_WORKING) {
        emq_task_decide(task, EMQ_TASK_REQUEUE);
    } else if (is_exhausted(task)) {
        task->is_exhausted = 1;
        emq_task_decide(task, EMQ_TASK_BURY);
    } else {
        line_up(task);
    }
}

/* What came of a claim. That there was nothing to hand out may say that there is a new earliest
 * time: whether the answer came before its time can't be told from when it was read. */
static void take_answer(const emq_claim_ask *asked, int result, emq_jobs *jobs, int64_t now) {
    emq_work_queue *q = asked->queue;
    emq_worker *worker = q->worker;
    size_t count = emq_jobs_get_count(jobs);
    if (asked->wait_ms == 0) {
        worker->granted -= asked->count;
        q->pass -= price(q, asked->count);
    }
    int is_answered = result >= 0 || result == EMQ_EBADJOB;
    if (is_answered) {
        q->answered_at = now;
        q->has_answered = 1;
        q->is_empty = count < asked->count;
        worker->stats.malformed += emq_jobs_get_malformed(jobs) + (result == EMQ_EBADJOB);
    }
    if (result == EMQ_EMPTY && asked->wait_ms > 0) {
        ask_for_look(q);
    }
    for (size_t i = 0; i < count; i++) {
        take_in(q, &jobs->jobs[i], now);
    }
    emq_worker_wake_handlers(worker);
    if (is_answered && !q->is_empty) {
        ask_for_grant(q); /* its claimer is on its way to, and others are woken now */
    }
    worker->claims_out--;
    emq_worker_offer_slots(worker);
    emq_worker_check_ended(worker);
}

static void claim_once(const emq_claim_ask *asked) {
    emq_work_queue *q = asked->queue;
    emq_jobs *jobs = NULL;
    int result = emq_claims(&jobs, q->link.client, q->name, q->options.lease_ms, asked->count,
                            asked->wait_ms);
    (void)emq_worker_link_note(&q->link, result == EMQ_EBADJOB ? EMQ_OK : result);
    int64_t now = emq_now_ns();
    emq_worker_lock(q->worker);
    q->is_out = 0;
    take_answer(asked, result, jobs, now);
    emq_worker_unlock(q->worker);
    emq_jobs_free(jobs);
}

int emq_worker_claim_ahead(emq_claim_ask *out, emq_worker *worker, uint32_t slots) {
    emq_work_queue *q = worker->queues;
    while (q != NULL && !(q->wants_grant && !q->is_out && is_next(q))) {
        q = q->next;
    }
    if (slots == 0 || q == NULL || worker->phase != EMQ_PHASE_WORKING ||
        worker->settle_link.is_failing) {
        return 0;
    }
    take_grant(out, q, slots);
    q->is_ahead = 1;
    worker->claims_out++;
    return 1;
}

void emq_worker_claimed_ahead(const emq_claim_ask *asked, int result, emq_jobs *jobs, int64_t now) {
    asked->queue->is_ahead = 0;
    take_answer(asked, result, jobs, now);
}

void *emq_worker_claim(void *queue) {
    emq_work_queue *q = queue;
    emq_worker *worker = q->worker;
    emq_claim_ask asked = {q, 0, 0};
    for (;;) {
        int result = emq_worker_link_open(&q->link, &worker->slots, EMQ_PHASE_DRAINING);
        if (result == EMQ_ECLOSED) {
            return NULL;
        }
        if (result == EMQ_OK) {
            emq_worker_link_learn_id(&q->link, &worker->settle_link);
        }
        if (result == EMQ_OK && await_claim(&asked, q)) {
            claim_once(&asked);
        }
    }
}
