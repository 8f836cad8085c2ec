/* SPDX-License-Identifier: Apache-2.0 */
/* The settler: sends verdicts, many in one write, and decides what their answers mean. Where that
 * makes room, the claim of the next jobs goes with them.
 *
 * What is not known to have been done is not simply sent again. A complete and a requeue may be,
 * under their token; behind a fail or a delay the row is looked at first. Both only while the lease
 * lives. What is refused until an operator has mended something is sent again as long. */
#include <emq/pipeline.h>
#include <emq/read.h>
#include <string.h>

#include "wire.h"
#include "worker.h"

#define BATCH 128
#define CANCEL_AGAIN_MS 20 /* a claim may not have been waiting yet */
#define EXHAUSTED_TEXT "attempts exhausted"

typedef enum meaning {
    MEANS_DONE,
    MEANS_LOST,   /* not ours any more */
    MEANS_AGAIN,  /* nothing was done */
    MEANS_UNSURE, /* it may have been done */
    MEANS_REFUSED /* for good */
} meaning;

/* A verdict of the batch. */
typedef struct item {
    emq_task *task;
    int is_added; /* to the pipeline, as this entry of it */
    size_t entry;
    int is_member; /* one of the jobs of its entry */
    size_t member;
    int result;
    meaning means;
    int is_over; /* settled or given up */
} item;

typedef struct batch {
    emq_worker *worker;
    emq_pipeline *pipeline;
    size_t count;
    item items[BATCH];
    emq_lease leases[BATCH];
    uint64_t refused_on; /* the opening of the connection whose user may not complete batches */
    int is_one_by_one;   /* since it is that one */
    int has_claim;       /* behind them, into the slots that they free */
    emq_claim_ask claim;
    int is_claim_added;
    int claim_result;
    emq_jobs *jobs;
} batch;

/* With the mutex held: jobs whose lease is lost are not settled. */
static void drop_lost(emq_worker *worker) {
    emq_task_line rest;
    int64_t now = emq_now_ns();
    emq_task_line_init(&rest);
    for (emq_task *task = emq_task_line_take(&worker->decided); task != NULL;
         task = emq_task_line_take(&worker->decided)) {
        emq_task_check_lease(task, now);
        if (task->notice == EMQ_NOTICE_LOST) {
            emq_task_finish(task);
        } else {
            emq_task_line_add(&rest, task);
        }
    }
    worker->decided = rest;
    worker->decided.end = rest.first == NULL ? &worker->decided.first : rest.end;
    emq_worker_check_ended(worker);
}

/* With the mutex held. */
static void gather(batch *b) {
    emq_worker *worker = b->worker;
    uint32_t slots = 0;
    b->count = 0;
    b->is_one_by_one = b->refused_on == worker->settle_link.opened_at;
    drop_lost(worker);
    while (b->count < BATCH && worker->decided.first != NULL) {
        emq_task *task = emq_task_line_take(&worker->decided);
        task->state = TASK_SENT;
        worker->stats.settling++;
        b->items[b->count++] = (item){.task = task};
        /* what goes back is for others first */
        slots += (uint32_t)(task->has_slot && task->verdict == EMQ_TASK_COMPLETE);
    }
    b->has_claim = emq_worker_claim_ahead(&b->claim, worker, slots);
}

/* How often the job has failed, this time included: the row knows, unless it is the first attempt.
 */
static int64_t count_failures(const batch *b, const emq_task *task) {
    emq_row *row = NULL;
    if (task->job.lease.token <= 1) {
        return 1;
    }
    int result =
        emq_row_read(&row, b->worker->settle_link.client, task->queue->name, &task->job.lease.id);
    int64_t failures = result == EMQ_OK ? emq_row_get_failures(row) : -1;
    emq_row_free(row);
    return failures >= 0 ? failures + 1 : task->job.lease.token;
}

static int64_t choose_pause(const batch *b, const emq_task *task) {
    return task->delay_ms >= 0 ? task->delay_ms
                               : emq_worker_pause_ms(task, count_failures(b, task));
}

static int add(const batch *b, const emq_task *task) {
    const emq_lease *lease = &task->job.lease;
    int64_t delay_ms = task->delay_ms >= 0 ? task->delay_ms : 0;
    switch (task->verdict) {
    case EMQ_TASK_COMPLETE:
        return emq_pipeline_complete(b->pipeline, lease);
    case EMQ_TASK_DELAY:
        return emq_pipeline_delay(b->pipeline, lease, (emq_when){EMQ_IN, delay_ms});
    case EMQ_TASK_REQUEUE:
        return emq_pipeline_requeue(b->pipeline, lease);
    case EMQ_TASK_BURY:
        return task->is_exhausted
                   ? emq_pipeline_fail(b->pipeline, lease, 0, 1, EXHAUSTED_TEXT,
                                       strlen(EXHAUSTED_TEXT))
                   : emq_pipeline_fail(b->pipeline, lease, 0, 1, task->error, task->error_size);
    default:
        return emq_pipeline_fail(b->pipeline, lease, choose_pause(b, task),
                                 task->queue->options.max_failures, task->error, task->error_size);
    }
}

static int is_repeatable(const emq_task *task) {
    return task->verdict == EMQ_TASK_COMPLETE || task->verdict == EMQ_TASK_REQUEUE;
}

/* What a row says about a fail or a delay whose answer was lost: 1 when it was not done, else 0 and
 * its result. */
static int judge_row(int *result, const emq_row *row, const emq_task *task) {
    const char *state = emq_row_get_state(row);
    int is_ours = emq_row_get_attempts(row) == task->job.lease.token;
    if (is_ours && strcmp(state, EMQ_STATE_ACTIVE) == 0) {
        return 1;
    }
    *result = EMQ_ESTALE;
    if (is_ours && strcmp(state, EMQ_STATE_SCHEDULED) == 0) {
        *result = EMQ_OK;
    } else if (is_ours && strcmp(state, EMQ_STATE_DEAD) == 0) {
        *result = EMQ_DEAD;
    }
    return 0;
}

/* Whether it is to be sent; otherwise its result is known. */
static int look_first(int *result, const batch *b, const emq_task *task) {
    emq_row *row = NULL;
    if (task->tries == 0 || is_repeatable(task)) {
        return 1;
    }
    *result =
        emq_row_read(&row, b->worker->settle_link.client, task->queue->name, &task->job.lease.id);
    if (*result == EMQ_GONE) {
        *result = EMQ_EJOBGONE;
        return 0;
    }
    int is_open = *result == EMQ_OK && judge_row(result, row, task);
    emq_row_free(row);
    return is_open;
}

static int is_batched(const batch *b, const item *it) {
    return it->task->verdict == EMQ_TASK_COMPLETE && !it->task->is_alone && !b->is_one_by_one;
}

static void note_added(batch *b, item *it, int result) {
    it->result = result;
    it->is_added = result == EMQ_OK;
    it->entry = it->is_added ? emq_pipeline_get_count(b->pipeline) - 1 : 0;
}

/* Adds the completes of one queue as one entry: this one, and those behind it. */
static void add_completes(batch *b, item *first) {
    item *members[BATCH];
    size_t count = 0;
    for (item *it = first; it < b->items + b->count; it++) {
        if (is_batched(b, it) && it->task->queue == first->task->queue) {
            members[count] = it;
            b->leases[count++] = it->task->job.lease;
        }
    }
    if (count == 1) {
        note_added(b, first, add(b, first->task));
        return;
    }
    int result = emq_pipeline_completes(b->pipeline, b->leases, count);
    for (size_t i = 0; i < count; i++) {
        members[i]->is_member = 1;
        members[i]->member = i;
        note_added(b, members[i], result);
    }
}

static void add_item(batch *b, item *it) {
    if (it->is_member) {
        return; /* it came with another */
    }
    if (is_batched(b, it)) {
        add_completes(b, it);
    } else if (look_first(&it->result, b, it->task)) {
        note_added(b, it, add(b, it->task));
    }
}

static void add_claim(batch *b) {
    const emq_work_queue *q = b->claim.queue;
    b->claim_result =
        emq_pipeline_claims(b->pipeline, q->name, q->options.lease_ms, b->claim.count);
    b->is_claim_added = b->claim_result == EMQ_OK;
}

/* It is the last entry. */
static void read_claim(batch *b) {
    size_t last = emq_pipeline_get_count(b->pipeline) - 1;
    b->jobs = NULL;
    if (b->is_claim_added) {
        b->claim_result = emq_pipeline_get_result(b->pipeline, last);
        b->jobs = emq_pipeline_take_jobs(b->pipeline, last);
    }
}

/* Sends the batch, and sets its results. */
static void send_batch(batch *b) {
    emq_pipeline_clear(b->pipeline);
    for (size_t i = 0; i < b->count; i++) {
        add_item(b, &b->items[i]);
    }
    if (b->has_claim) {
        add_claim(b);
    }
    (void)emq_pipeline_run(b->pipeline);
    if (b->has_claim) {
        read_claim(b);
    }
    for (item *it = b->items; it < b->items + b->count; it++) {
        if (it->is_member && it->is_added) {
            it->result = emq_pipeline_get_member(b->pipeline, it->entry, it->member);
        } else if (it->is_added) {
            it->result = emq_pipeline_get_result(b->pipeline, it->entry);
        }
    }
}

/* Nothing was done, and nothing will be until an operator has mended it. */
static int is_operators(int result) {
    return result == EMQ_EFENCE_ABSENT || result == EMQ_EFENCE || result == EMQ_EAUTH ||
           result == EMQ_ENOPERM;
}

/* What one of them says about the connection: the first failure that is not about its own job, or
 * that of the claim when the connection ended with it. */
static int find_trouble(const batch *b) {
    for (size_t i = 0; i < b->count; i++) {
        int result = b->items[i].result;
        emq_class class = emq_err_class(result);
        if (class == EMQ_CLASS_RETRYABLE || class == EMQ_CLASS_UNKNOWN ||
            class == EMQ_CLASS_PROTOCOL || class == EMQ_CLASS_INTERNAL || result == EMQ_ECLOSED ||
            is_operators(result)) {
            return result;
        }
    }
    int is_ended = b->has_claim && !emq_client_is_open(b->worker->settle_link.client);
    return is_ended && b->claim_result < 0 ? b->claim_result : EMQ_OK;
}

/* What it means of a settle that was handed to the connection, or was not. */
static meaning read_result(const emq_task *task, int result, int was_handed) {
    if (result == EMQ_ENOMEM) { /* there may have been none for the answer alone */
        return was_handed ? MEANS_UNSURE : MEANS_AGAIN;
    }
    switch (emq_err_class(result)) {
    case EMQ_CLASS_OK:
        /* "gone" to a repeat says that the first one was done */
        return result == EMQ_GONE && task->tries == 0 ? MEANS_REFUSED : MEANS_DONE;
    case EMQ_CLASS_STALE:
        return task->tries > 0 && task->verdict == EMQ_TASK_REQUEUE ? MEANS_DONE : MEANS_LOST;
    case EMQ_CLASS_RETRYABLE:
        return MEANS_AGAIN;
    case EMQ_CLASS_UNKNOWN:
    case EMQ_CLASS_PROTOCOL:
        return MEANS_UNSURE;
    default:
        return result == EMQ_ECLOSED || is_operators(result) ? MEANS_AGAIN : MEANS_REFUSED;
    }
}

static void count_failure(emq_worker_stats *stats, const emq_task *task, int result) {
    stats->failed++;
    stats->dead += result == EMQ_DEAD;
    stats->exhausted += (uint64_t)task->is_exhausted;
}

static void count_done(emq_worker_stats *stats, const emq_task *task, int result) {
    switch (task->verdict) {
    case EMQ_TASK_COMPLETE:
        stats->completed++;
        break;
    case EMQ_TASK_DELAY:
        stats->delayed += !task->is_overshoot;
        break;
    case EMQ_TASK_REQUEUE:
        stats->requeued += !task->is_overshoot;
        break;
    default:
        count_failure(stats, task, result);
    }
}

static emq_worker_event_kind choose_kind(const emq_task *task, meaning means) {
    if (means == MEANS_LOST) {
        return EMQ_WORKER_LOST;
    }
    if (means != MEANS_DONE || task->verdict == EMQ_TASK_FAIL || task->verdict == EMQ_TASK_BURY) {
        return EMQ_WORKER_FAILURE;
    }
    return task->verdict == EMQ_TASK_COMPLETE ? EMQ_WORKER_SUCCESS : EMQ_WORKER_RETURN;
}

/* Without the mutex: tells of a task that is settled or given up. */
static void tell(emq_worker *worker, const item *it, int64_t now) {
    emq_worker_event event = emq_worker_task_event(it->task, choose_kind(it->task, it->means));
    event.result = it->means == MEANS_DONE && it->result != EMQ_DEAD ? EMQ_OK : it->result;
    event.notice = it->means == MEANS_LOST ? EMQ_NOTICE_LOST : EMQ_NOTICE_NONE;
    event.settled_us = (now - it->task->decided_at) / 1000;
    event.text = event.result < 0 ? emq_strerror(event.result) : NULL;
    if (!it->task->is_overshoot) {
        emq_worker_tell(worker, &event);
    }
}

static void count_end(emq_worker *worker, const item *it) {
    if (it->means == MEANS_DONE) {
        count_done(&worker->stats, it->task, it->result);
    } else if (it->means == MEANS_LOST || it->result == EMQ_GONE) {
        worker->stats.refused++;
    } else {
        worker->stats.unsettled++;
    }
}

/* With the mutex held: what the answer means. A batch does not say why it refused one of its jobs,
 * and a user may have the right to EMQ.COMPLETE alone: such a job is asked for once more by itself.
 */
static void judge(batch *b, item *it) {
    emq_worker *worker = b->worker;
    it->means = read_result(it->task, it->result, it->is_added);
    if (it->is_member &&
        (it->result == EMQ_ESTALE || it->result == EMQ_ENOTFLAT || it->result == EMQ_ENOPERM)) {
        it->task->is_alone = 1;
        it->means = MEANS_AGAIN;
    }
    if (it->is_member && it->result == EMQ_ENOPERM) {
        b->refused_on = worker->settle_link.opened_at;
    }
    it->is_over = (it->means != MEANS_AGAIN && it->means != MEANS_UNSURE) || worker->has_given_up;
    if (it->is_over) {
        count_end(worker, it);
        emq_task_free_slot(it->task);
    }
}

/* With the mutex held: it is done, or goes back into the line. */
static void let_go(const item *it) {
    emq_task *task = it->task;
    task->worker->stats.settling--;
    if (it->is_over) {
        emq_task_finish(task);
        return;
    }
    task->tries += it->means == MEANS_UNSURE;
    task->is_refused = task->is_refused || is_operators(it->result);
    task->state = TASK_DECIDED;
    emq_task_line_add(&task->worker->decided, task);
}

/* The hook is told before they are done: who waits for the end of a worker knows all then. The next
 * jobs do not wait for it. */
static void take_results(batch *b) {
    emq_worker *worker = b->worker;
    int64_t now = emq_now_ns();
    emq_worker_lock(worker);
    for (size_t i = 0; i < b->count; i++) {
        judge(b, &b->items[i]);
    }
    if (b->has_claim) {
        emq_worker_claimed_ahead(&b->claim, b->claim_result, b->jobs, now);
    }
    emq_worker_unlock(worker);
    for (size_t i = 0; i < b->count; i++) {
        if (b->items[i].is_over) {
            tell(worker, &b->items[i], now);
        }
    }
    emq_worker_lock(worker);
    for (size_t i = 0; i < b->count; i++) {
        let_go(&b->items[i]);
    }
    emq_worker_unlock(worker);
    if (b->has_claim) {
        emq_jobs_free(b->jobs);
    }
}

/* Claims that wait while the worker stops. */

/* With the mutex held: the connections of those that are out, where their ids name them on the
 * server that is settled on; the others are closed, which costs no more than a job that is handed
 * over just then. How many there are. */
static size_t find_waiting(int64_t *ids, emq_worker *worker) {
    size_t count = 0;
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        if (q->is_out && emq_worker_link_knows_id(&q->link, &worker->settle_link)) {
            ids[count++] = q->link.client_id;
        } else if (q->is_out) {
            emq_worker_link_cut(&q->link, 1);
        }
    }
    return count;
}

/* Ends them as their timeouts would. One that is not there yet, or was handed a job just now, is
 * none that waits, and nothing happens to it. */
static void cancel_claims(emq_worker *worker) {
    int64_t ids[EMQ_WORKER_QUEUES_MAX];
    char id[EMQ_DECIMAL_MAX];
    emq_worker_lock(worker);
    size_t count = worker->phase >= EMQ_PHASE_DRAINING ? find_waiting(ids, worker) : 0;
    emq_worker_unlock(worker);
    for (size_t i = 0; i < count; i++) {
        emq_reply *reply = NULL;
        size_t digits = emq_decimal_format(id, ids[i]);
        const char *const words[] = {"CLIENT", "UNBLOCK", id, "TIMEOUT"};
        const size_t lengths[] = {6, 7, digits, 7};
        (void)emq_client_command(&reply, worker->settle_link.client, 4, words, lengths);
        emq_reply_free(reply);
    }
}

/* Whether there is something to send; while claims are to be cancelled, from time to time. */
static int has_work(const emq_worker *worker) {
    return worker->decided.first != NULL ||
           (worker->phase >= EMQ_PHASE_DRAINING && worker->claims_out > 0);
}

/* Waits until something is to be sent; 0 at the end. */
static int await_work(emq_worker *worker, int64_t not_before) {
    emq_worker_lock(worker);
    drop_lost(worker);
    while (worker->phase != EMQ_PHASE_ENDED && worker->decided.first == NULL) {
        int64_t now = emq_now_ns();
        int is_early = now < not_before;
        if (!is_early && has_work(worker)) {
            break;
        }
        emq_worker_await(worker, &worker->settles, is_early ? not_before : TIME_NEVER);
    }
    int goes_on = worker->phase != EMQ_PHASE_ENDED;
    emq_worker_unlock(worker);
    return goes_on;
}

static void settle_some(batch *b) {
    emq_worker *worker = b->worker;
    emq_worker_lock(worker);
    gather(b);
    emq_worker_unlock(worker);
    if (b->count == 0) {
        return;
    }
    send_batch(b);
    (void)emq_worker_link_note(&worker->settle_link, find_trouble(b));
    take_results(b);
}

void *emq_worker_settle(void *data) {
    emq_worker *worker = data;
    batch b = {.worker = worker, .pipeline = worker->pipeline};
    int64_t not_before = 0;
    while (await_work(worker, not_before)) {
        int result = emq_worker_link_open(&worker->settle_link, &worker->settles, EMQ_PHASE_ENDED);
        if (result == EMQ_OK) {
            settle_some(&b);
            cancel_claims(worker);
            not_before = emq_deadline_in(CANCEL_AGAIN_MS).at_ns;
        }
    }
    return NULL;
}
