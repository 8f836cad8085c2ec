/* SPDX-License-Identifier: Apache-2.0 */
/* The handler threads: they run the program's code, and nothing else. */
#include "worker.h"

/* To wake a thread costs more than a short job. So few are woken at a time, and each of them sees
 * to the next when it has come: by then, those that are awake may have run what waited. Long jobs
 * keep their threads, and all are woken soon. */
#define WAKING_MAX 2

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* How many handlers could run what waits. */
static uint32_t count_wanted(const emq_worker *worker) {
    uint32_t most = worker->options.concurrency;
    uint32_t free_runs = worker->running < most ? most - worker->running : 0;
    uint32_t wanted =
        worker->waiting.count < free_runs ? (uint32_t)worker->waiting.count : free_runs;
    return smaller(wanted, smaller(worker->idle, WAKING_MAX));
}

void emq_worker_wake_handlers(emq_worker *worker) {
    for (uint32_t wanted = count_wanted(worker); worker->waking < wanted; worker->waking++) {
        (void)pthread_cond_signal(&worker->work);
    }
}

void emq_worker_wake_again(emq_worker *worker) {
    worker->waking = 0;
    emq_worker_wake_handlers(worker);
}

/* Who wakes by itself is taken for one that was woken: then one more is. */
static void await_task(emq_worker *worker) {
    worker->idle++;
    emq_worker_await(worker, &worker->work, TIME_NEVER);
    worker->idle--;
    worker->waking -= worker->waking > 0;
}

/* The next job to run; NULL when there will be none. */
static emq_task *next_task(emq_worker *worker) {
    while (worker->phase < EMQ_PHASE_DRAINING &&
           (worker->waiting.first == NULL || worker->running >= worker->options.concurrency)) {
        await_task(worker);
    }
    if (worker->phase >= EMQ_PHASE_DRAINING) {
        return NULL;
    }
    return emq_task_line_take(&worker->waiting);
}

/* A lease may be lost while its job waits: then it does not run. */
static int begin(emq_task *task) {
    emq_worker *worker = task->worker;
    if (emq_task_is_gone(task)) {
        emq_task_finish(task);
        return 0;
    }
    uint32_t most = task->queue->options.max_run_ms;
    task->state = TASK_RUNNING;
    task->is_in_handler = 1;
    task->started_at = emq_now_ns();
    if (most != EMQ_WORKER_UNLIMITED) {
        task->run_until = task->started_at + (int64_t)most * EMQ_NS_PER_MS;
        if (task->run_until < worker->watch_at) {
            worker->watch_at = task->run_until;
            (void)pthread_cond_signal(&worker->watching);
        }
    }
    worker->running++;
    worker->in_handlers++;
    emq_worker_wake_handlers(worker);
    return 1;
}

static emq_task_verdict read_verdict(int returned) {
    return returned >= EMQ_TASK_COMPLETE && returned <= EMQ_TASK_LATER ? (emq_task_verdict)returned
                                                                       : EMQ_TASK_FAIL;
}

/* With the mutex held, behind the handler. */
static void end(emq_task *task, emq_task_verdict verdict) {
    emq_worker *worker = task->worker;
    task->is_in_handler = 0;
    worker->in_handlers--;
    if (worker->in_handlers == 0) {
        (void)pthread_cond_broadcast(&worker->ended);
    }
    if (verdict == EMQ_TASK_LATER) {
        task->is_kept = 1;
        if (task->is_freed && task->state == TASK_RUNNING) {
            verdict = EMQ_TASK_REQUEUE; /* freed without a verdict */
        }
    }
    if (task->state != TASK_RUNNING) {
        emq_task_drop(task); /* settled by a call, or given back */
    } else if (verdict == EMQ_TASK_LATER) {
        return;
    } else if (emq_task_is_gone(task)) {
        emq_task_stop_running(task);
        emq_task_finish(task);
    } else {
        emq_task_decide(task, verdict);
    }
}

void *emq_worker_handle(void *data) {
    emq_worker *worker = data;
    emq_worker_lock(worker);
    for (emq_task *task = next_task(worker); task != NULL; task = next_task(worker)) {
        if (!begin(task)) {
            continue;
        }
        emq_worker_event event = emq_worker_task_event(task, EMQ_WORKER_START);
        emq_worker_unlock(worker);
        emq_worker_tell(worker, &event);
        int returned = task->queue->handler(task, task->queue->user);
        emq_worker_lock(worker);
        end(task, read_verdict(returned));
    }
    emq_worker_unlock(worker);
    return NULL;
}
