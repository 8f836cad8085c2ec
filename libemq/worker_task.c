/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: jobs in a worker's hands, from the hand-over to the settle; what they tell, and how they
 * are settled by a call. */
#include <emq/read.h>
#include <string.h>
#include <time.h>

#include "memory.h"
#include "wire.h"
#include "worker.h"

#define ERROR_MAX 65536
#define MS_PER_S 1000

void emq_task_line_init(emq_task_line *line) {
    line->first = NULL;
    line->end = &line->first;
    line->count = 0;
}

void emq_task_line_add(emq_task_line *line, emq_task *task) {
    task->after = NULL;
    *line->end = task;
    line->end = &task->after;
    line->count++;
}

emq_task *emq_task_line_take(emq_task_line *line) {
    emq_task *task = line->first;
    if (task != NULL) {
        line->first = task->after;
        line->count--;
        if (line->first == NULL) {
            line->end = &line->first;
        }
    }
    return task;
}

/* The watch looks at it in time. */
static void watch_until(emq_worker *worker, int64_t time) {
    if (time < worker->watch_at) {
        worker->watch_at = time;
        (void)pthread_cond_signal(&worker->watching);
    }
}

emq_task *emq_task_take(emq_work_queue *queue, emq_job *job, int64_t now) {
    emq_worker *worker = queue->worker;
    emq_task *task = emq_calloc(1, sizeof(*task));
    if (task == NULL) {
        return NULL;
    }
    task->worker = worker;
    task->queue = queue;
    task->job = *job;
    job->payload = NULL;
    task->delay_ms = -1;
    task->is_told = 1;
    task->taken_at = now;
    task->run_until = TIME_NEVER;
    task->lease_until = now + (int64_t)queue->options.lease_ms * EMQ_NS_PER_MS;
    task->next = worker->tasks;
    if (task->next != NULL) {
        task->next->previous = task;
    }
    worker->tasks = task;
    watch_until(worker, task->lease_until);
    return task;
}

void emq_task_destroy(emq_task *task) {
    if (task->previous != NULL) {
        task->previous->next = task->next;
    } else {
        task->worker->tasks = task->next;
    }
    if (task->next != NULL) {
        task->next->previous = task->previous;
    }
    freeReplyObject(task->job.payload);
    emq_free(task->error);
    emq_free(task);
}

void emq_task_drop(emq_task *task) {
    int is_wanted = task->state != TASK_DONE || task->is_in_handler || task->is_pinned ||
                    !task->is_told || (task->is_kept && !task->is_freed);
    if (!is_wanted) {
        emq_task_destroy(task);
    }
}

static int is_full(const emq_worker *worker) {
    return worker->held >= worker->options.concurrency + worker->options.prefetch;
}

void emq_task_free_slot(emq_task *task) {
    emq_worker *worker = task->worker;
    if (task->has_slot) {
        task->has_slot = 0;
        worker->full_at = is_full(worker) ? emq_now_ns() : worker->full_at;
        worker->held--;
        emq_worker_offer_slots(worker);
    }
}

void emq_task_finish(emq_task *task) {
    emq_worker *worker = task->worker;
    task->state = TASK_DONE;
    emq_task_free_slot(task);
    emq_task_drop(task);
    emq_worker_check_ended(worker);
}

int emq_task_is_gone(const emq_task *task) {
    return task->notice == EMQ_NOTICE_LOST || task->notice == EMQ_NOTICE_RETURNED;
}

void emq_task_notify(emq_task *task, emq_task_notice notice) {
    if (task->notice < notice) {
        task->notice = notice;
        task->is_told = 0;
        task->worker->watch_at = 0;
        (void)pthread_cond_signal(&task->worker->watching);
    }
}

/* Of one that was sent it is not known what became of it. */
void emq_task_check_lease(emq_task *task, int64_t now) {
    emq_worker *worker = task->worker;
    if (emq_task_is_gone(task) || task->state >= TASK_SENT || task->lease_until > now) {
        return;
    }
    if (task->tries > 0 || task->is_refused) {
        worker->stats.unsettled++;
    } else {
        worker->stats.lost++;
    }
    emq_task_notify(task, EMQ_NOTICE_LOST);
    (void)pthread_cond_signal(&worker->settles); /* it may be in its line */
}

void emq_task_stop_running(emq_task *task) {
    task->worker->running--;
    emq_worker_wake_handlers(task->worker);
}

void emq_task_decide(emq_task *task, emq_task_verdict verdict) {
    emq_worker *worker = task->worker;
    if (task->state == TASK_RUNNING) {
        emq_task_stop_running(task);
    }
    task->verdict = verdict;
    task->state = TASK_DECIDED;
    task->decided_at = emq_now_ns();
    emq_task_line_add(&worker->decided, task);
    (void)pthread_cond_signal(&worker->settles);
}

/* Whether it is another process than the one that opened the worker. */
static int is_forked(const emq_task *task) {
    return emq_owner_is_other(&task->worker->owner);
}

/* What is told. */

const emq_id *emq_task_get_id(const emq_task *task) {
    return task == NULL ? NULL : &task->job.lease.id;
}

const char *emq_task_get_queue(const emq_task *task) {
    return task == NULL ? NULL : task->job.lease.queue;
}

const void *emq_task_get_payload(const emq_task *task, size_t *n) {
    return emq_job_get_payload(task == NULL ? NULL : &task->job, n);
}

int64_t emq_task_get_attempts(const emq_task *task) {
    return task == NULL ? 0 : task->job.lease.token;
}

const emq_lease *emq_task_get_lease(const emq_task *task) {
    return task == NULL ? NULL : &task->job.lease;
}

/* The server's now where it is known, else the host's. */
static int64_t get_unix_ms(emq_worker *worker) {
    struct timespec now = {0, 0};
    emq_worker_lock(worker);
    int is_known = worker->has_offset;
    int64_t offset = worker->server_offset_ms;
    emq_worker_unlock(worker);
    if (is_known) {
        return emq_now_ns() / EMQ_NS_PER_MS + offset;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / EMQ_NS_PER_MS;
}

int64_t emq_task_get_age_ms(const emq_task *task) {
    int64_t minted = 0;
    if (task == NULL || is_forked(task) || emq_id_unix_ms(&minted, &task->job.lease.id) != EMQ_OK) {
        return 0;
    }
    int64_t now = get_unix_ms(task->worker);
    return now > minted ? now - minted : 0;
}

static int64_t left_ms(int64_t until) {
    if (until == TIME_NEVER) {
        return INT64_MAX;
    }
    int64_t left = until - emq_now_ns();
    return left > 0 ? left / EMQ_NS_PER_MS : 0;
}

int64_t emq_task_get_lease_left_ms(const emq_task *task) {
    if (task == NULL || is_forked(task)) {
        return 0;
    }
    emq_worker_lock(task->worker);
    int64_t until = emq_task_is_gone(task) ? 0 : task->lease_until;
    emq_worker_unlock(task->worker);
    return left_ms(until);
}

int64_t emq_task_get_time_left_ms(const emq_task *task) {
    if (task == NULL || is_forked(task)) {
        return 0;
    }
    emq_worker *worker = task->worker;
    emq_worker_lock(worker);
    int64_t until = task->run_until < worker->stop_at ? task->run_until : worker->stop_at;
    emq_worker_unlock(worker);
    return left_ms(until);
}

emq_task_notice emq_task_get_notice(const emq_task *task) {
    if (task == NULL || is_forked(task)) {
        return EMQ_NOTICE_NONE;
    }
    emq_worker *worker = task->worker;
    emq_worker_lock(worker);
    emq_task_notice notice = task->notice;
    if (notice == EMQ_NOTICE_NONE && worker->phase >= EMQ_PHASE_DRAINING) {
        notice = EMQ_NOTICE_STOPPING;
    }
    emq_worker_unlock(worker);
    return notice;
}

int emq_task_is_lost(const emq_task *task) {
    return emq_task_get_notice(task) >= EMQ_NOTICE_LOST;
}

int emq_task_read_row(emq_row **out, const emq_task *task) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (task == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(task)) {
        return EMQ_EFORKED;
    }
    emq_worker *worker = task->worker;
    (void)pthread_mutex_lock(&worker->reader_mutex);
    int result = emq_client_is_open(worker->reader) ? EMQ_OK : emq_client_reconnect(worker->reader);
    if (result == EMQ_OK) {
        result = emq_row_read(out, worker->reader, task->queue->name, &task->job.lease.id);
    }
    (void)pthread_mutex_unlock(&worker->reader_mutex);
    return result;
}

/* What is set. */

static int is_delay(int64_t delay_ms) {
    const emq_value_facts *facts = emq_value_get_facts(EMQ_VALUE_DELAY_MS);
    return delay_ms >= facts->min && delay_ms <= facts->max;
}

/* A copy of the text, which may be NULL when there is none. */
static int copy_error(char **out, size_t *size, const void *error, size_t n) {
    *out = NULL;
    *size = n < ERROR_MAX ? n : ERROR_MAX;
    if (error == NULL && n > 0) {
        return EMQ_EINVAL;
    }
    if (n == 0) {
        return EMQ_OK;
    }
    *out = emq_malloc(*size);
    if (*out == NULL) {
        return EMQ_ENOMEM;
    }
    memcpy(*out, error, *size);
    return EMQ_OK;
}

/* The same for a call that sets the text of a task. */
static int take_error(char **out, size_t *size, const emq_task *task, const void *error, size_t n) {
    if (task == NULL) {
        return EMQ_EINVAL;
    }
    return is_forked(task) ? EMQ_EFORKED : copy_error(out, size, error, n);
}

/* With the mutex held: why it can't be given a verdict, or 0. */
static int check_open(const emq_task *task) {
    if (emq_task_is_gone(task)) {
        return EMQ_ESTALE;
    }
    return task->state == TASK_RUNNING ? EMQ_OK : EMQ_EINVAL;
}

int emq_task_set_error(emq_task *task, const void *error, size_t n) {
    char *copy = NULL;
    size_t size = 0;
    int result = take_error(&copy, &size, task, error, n);
    if (result != EMQ_OK) {
        return result;
    }
    emq_worker_lock(task->worker);
    char *old = copy;
    if (task->state == TASK_RUNNING) {
        old = task->error;
        task->error = copy;
        task->error_size = size;
    } else {
        result = EMQ_EINVAL;
    }
    emq_worker_unlock(task->worker);
    emq_free(old);
    return result;
}

int emq_task_set_delay(emq_task *task, int64_t delay_ms) {
    if (task == NULL || !is_delay(delay_ms)) {
        return EMQ_EINVAL;
    }
    if (is_forked(task)) {
        return EMQ_EFORKED;
    }
    emq_worker_lock(task->worker);
    int result = task->state == TASK_RUNNING ? EMQ_OK : EMQ_EINVAL;
    if (result == EMQ_OK) {
        task->delay_ms = delay_ms;
    }
    emq_worker_unlock(task->worker);
    return result;
}

/* Settling by a call. */

/* With the mutex held: a verdict of the program's. One that comes too late frees the slot. */
static int settle(emq_task *task, emq_task_verdict verdict) {
    int result = check_open(task);
    if (result == EMQ_OK) {
        emq_task_decide(task, verdict);
    } else if (result == EMQ_ESTALE && task->state == TASK_RUNNING) {
        emq_task_stop_running(task);
        emq_task_finish(task);
    }
    return result;
}

static int settle_with_error(emq_task *task, emq_task_verdict verdict, const void *error,
                             size_t n) {
    char *copy = NULL;
    size_t size = 0;
    int result = take_error(&copy, &size, task, error, n);
    if (result != EMQ_OK) {
        return result;
    }
    emq_worker *worker = task->worker;
    emq_worker_lock(worker);
    char *old = copy;
    if (copy != NULL && check_open(task) == EMQ_OK) {
        old = task->error;
        task->error = copy;
        task->error_size = size;
    }
    result = settle(task, verdict);
    emq_worker_unlock(worker);
    emq_free(old);
    return result;
}

int emq_task_complete(emq_task *task) {
    return settle_with_error(task, EMQ_TASK_COMPLETE, NULL, 0);
}

int emq_task_requeue(emq_task *task) {
    return settle_with_error(task, EMQ_TASK_REQUEUE, NULL, 0);
}

int emq_task_fail(emq_task *task, const void *error, size_t n) {
    return settle_with_error(task, EMQ_TASK_FAIL, error, n);
}

int emq_task_bury(emq_task *task, const void *error, size_t n) {
    return settle_with_error(task, EMQ_TASK_BURY, error, n);
}

int emq_task_delay(emq_task *task, int64_t delay_ms) {
    if (task == NULL || !is_delay(delay_ms)) {
        return EMQ_EINVAL;
    }
    if (is_forked(task)) {
        return EMQ_EFORKED;
    }
    emq_worker *worker = task->worker;
    emq_worker_lock(worker);
    if (check_open(task) == EMQ_OK) {
        task->delay_ms = delay_ms;
    }
    int result = settle(task, EMQ_TASK_DELAY);
    emq_worker_unlock(worker);
    return result;
}

void emq_task_free(emq_task *task) {
    if (task == NULL || is_forked(task)) {
        return;
    }
    emq_worker *worker = task->worker;
    emq_worker_lock(worker);
    task->is_freed = 1;
    if (task->is_kept && task->state == TASK_RUNNING) {
        (void)settle(task, EMQ_TASK_REQUEUE); /* frees it when the lease is lost */
    } else {
        emq_task_drop(task);
    }
    emq_worker_unlock(worker);
}
