/* SPDX-License-Identifier: Apache-2.0 */
/* The watch: waits for nothing but time, so that a server that hangs can't hold it up. It finds
 * leases that ran out by the worker's own clock and runs that take too long, wakes handlers whose
 * wake was lost, ends a drain at its deadline, calls the hooks that nobody else calls, and speaks
 * to systemd. */
#include <string.h>

#include "worker.h"
#include "worker_systemd.h"

#define GIVE_UP_MS 2000 /* for what is given back at the end to be answered */
#define HEALTH_LOOK_MS 1000
#define WATCHDOG_PARTS 3 /* told that often within its time */
#define STRUCT_SIZE_MAX 4096

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t after_ms(int64_t time, int64_t ms) {
    return time + ms * EMQ_NS_PER_MS;
}

static void find_overtime(emq_task *task, int64_t now) {
    if (task->state == TASK_RUNNING && task->run_until <= now &&
        task->notice < EMQ_NOTICE_OVERTIME) {
        task->worker->stats.overtime++;
        emq_task_notify(task, EMQ_NOTICE_OVERTIME);
    }
}

/* When something of it is due next. */
static int64_t next_of(const emq_task *task) {
    int64_t next = TIME_NEVER;
    if (task->state < TASK_SENT && !emq_task_is_gone(task)) {
        next = task->lease_until;
    }
    if (task->state == TASK_RUNNING && task->notice < EMQ_NOTICE_OVERTIME) {
        next = earlier(next, task->run_until);
    }
    return next;
}

static int64_t look_at_tasks(emq_worker *worker, int64_t now) {
    int64_t next = TIME_NEVER;
    for (emq_task *task = worker->tasks; task != NULL; task = task->next) {
        emq_task_check_lease(task, now);
        find_overtime(task, now);
        next = earlier(next, next_of(task));
    }
    return next;
}

/* The end. */

/* Gives back what runs. What is lost already has nothing to give. */
static void return_tasks(emq_worker *worker) {
    for (emq_task *task = worker->tasks; task != NULL;) {
        emq_task *next = task->next;
        if (task->state == TASK_RUNNING && !emq_task_is_gone(task)) {
            emq_task_notify(task, EMQ_NOTICE_RETURNED);
            emq_task_decide(task, EMQ_TASK_REQUEUE);
        } else if (task->state == TASK_RUNNING) {
            emq_task_stop_running(task);
            emq_task_finish(task);
        }
        task = next;
    }
}

static void cut_claims(emq_worker *worker) {
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        if (q->is_out) {
            emq_worker_link_cut(&q->link, 0);
        }
    }
}

/* Nothing waits for the server any more: what it was not told lapses. */
static void give_up(emq_worker *worker) {
    worker->has_given_up = 1;
    for (emq_task *task = emq_task_line_take(&worker->decided); task != NULL;
         task = emq_task_line_take(&worker->decided)) {
        worker->stats.unsettled++;
        emq_task_finish(task);
    }
    cut_claims(worker);
    emq_worker_link_cut(&worker->settle_link, 0);
}

static int64_t look_at_phase(emq_worker *worker, int64_t now) {
    if (worker->phase == EMQ_PHASE_DRAINING && worker->stop_at <= now) {
        worker->phase = EMQ_PHASE_ENDING;
        worker->give_up_at = after_ms(now, GIVE_UP_MS);
        return_tasks(worker);
        emq_worker_wake_all(worker);
    }
    if (worker->phase >= EMQ_PHASE_DRAINING && worker->cut_at <= now) {
        worker->cut_at = TIME_NEVER;
        cut_claims(worker);
    }
    if (worker->phase == EMQ_PHASE_ENDING && worker->give_up_at <= now) {
        worker->give_up_at = after_ms(now, GIVE_UP_MS);
        give_up(worker);
    }
    emq_worker_check_ended(worker);
    int64_t next = worker->phase == EMQ_PHASE_DRAINING ? worker->stop_at : TIME_NEVER;
    if (worker->phase == EMQ_PHASE_ENDING) {
        next = worker->give_up_at;
    }
    return worker->phase >= EMQ_PHASE_DRAINING ? earlier(next, worker->cut_at) : next;
}

/* Health. */

/* With the mutex held. */
static void read_health(emq_worker_health *out, const emq_work_queue *q, int64_t now) {
    const emq_worker *worker = q->worker;
    int64_t since = q->answered_at > worker->full_at ? q->answered_at : worker->full_at;
    out->is_full = worker->held >= worker->options.concurrency + worker->options.prefetch;
    out->silent_ms = (now - since) / EMQ_NS_PER_MS;
    out->is_healthy = out->is_full || out->silent_ms < worker->options.health_limit_ms;
    out->result = q->link.is_failing ? q->link.result : EMQ_OK;
}

/* Tells of one queue whose health has changed, without the mutex meanwhile; whether there was one.
 */
static int tell_health(emq_worker *worker, int64_t now) {
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    emq_work_queue *q = worker->queues;
    for (; q != NULL; q = q->next) {
        read_health(&health, q, now);
        if (q->is_unhealthy == health.is_healthy) {
            break;
        }
    }
    if (q == NULL || worker->phase != EMQ_PHASE_WORKING) {
        return 0;
    }
    q->is_unhealthy = !health.is_healthy;
    int result = health.result != EMQ_OK ? health.result : EMQ_ETIMEOUT;
    emq_worker_event event = {.kind = EMQ_WORKER_HEALTH,
                              .queue = q->name,
                              .result = health.is_healthy ? EMQ_OK : result,
                              .silent_ms = health.silent_ms};
    emq_worker_unlock(worker);
    emq_worker_tell(worker, &event);
    emq_worker_lock(worker);
    return 1;
}

static int is_worse(const emq_worker_health *a, const emq_worker_health *b) {
    return a->is_healthy != b->is_healthy ? !a->is_healthy : a->silent_ms > b->silent_ms;
}

/* With the mutex held: of the named queue, or the worst of all; whether there is one. */
static int find_health(emq_worker_health *out, const emq_worker *worker, const char *queue) {
    int64_t now = emq_now_ns();
    int is_found = 0;
    for (const emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
        read_health(&health, q, now);
        if (queue == NULL ? !is_found || is_worse(&health, out) : strcmp(queue, q->name) == 0) {
            *out = health;
            is_found = 1;
        }
    }
    return is_found;
}

int emq_worker_get_health(emq_worker_health *out, emq_worker *worker, const char *queue) {
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    if (out == NULL || worker == NULL || out->size < sizeof(out->size) ||
        out->size > STRUCT_SIZE_MAX) {
        return EMQ_EINVAL;
    }
    if (emq_owner_is_other(&worker->owner)) {
        return EMQ_EFORKED;
    }
    emq_worker_lock(worker);
    int is_found = worker->phase != EMQ_PHASE_NEW && find_health(&health, worker, queue);
    emq_worker_unlock(worker);
    if (!is_found) {
        return EMQ_EINVAL;
    }
    size_t size = out->size;
    health.size = size;
    memset(out, 0, size);
    memcpy(out, &health, size < sizeof(health) ? size : sizeof(health));
    return EMQ_OK;
}

/* Hooks: each of these tells of one thing, without the mutex meanwhile, and says whether there was
 * one. */

static int tell_notice(emq_worker *worker) {
    emq_task *task = worker->tasks;
    while (task != NULL && task->is_told) {
        task = task->next;
    }
    if (task == NULL) {
        return 0;
    }
    task->is_told = 1;
    task->is_pinned = 1;
    emq_worker_event event = emq_worker_task_event(task, EMQ_WORKER_LOST);
    event.notice = (int)task->notice;
    emq_worker_unlock(worker);
    emq_worker_tell(worker, &event);
    emq_worker_lock(worker);
    task->is_pinned = 0;
    emq_task_drop(task);
    return 1;
}

static int tell_of_link(emq_worker_link *link, const char *queue) {
    emq_worker *worker = link->worker;
    char text[EMQ_TEXT_MAX];
    emq_worker_event event = {.queue = queue, .text = link->name};
    if (link->trouble != EMQ_OK) {
        event.kind = EMQ_WORKER_TROUBLE;
        event.result = link->trouble;
        memcpy(text, link->words.bytes, sizeof(text));
        event.text = text[0] != '\0' ? text : emq_strerror(event.result);
        link->trouble = EMQ_OK;
    } else if (link->is_regained) {
        event.kind = EMQ_WORKER_RECONNECT;
        link->is_regained = 0;
    } else {
        return 0;
    }
    emq_worker_unlock(worker);
    emq_worker_tell(worker, &event);
    emq_worker_lock(worker);
    return 1;
}

static int tell_links(emq_worker *worker) {
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        if (tell_of_link(&q->link, q->name)) {
            return 1;
        }
    }
    return tell_of_link(&worker->settle_link, NULL) || tell_of_link(&worker->renew_link, NULL) ||
           tell_of_link(&worker->keep_link, NULL);
}

/* systemd. */

typedef struct unit {
    int64_t watchdog_ns; /* 0: none */
    int64_t next_at;
    int is_ready;
    int is_stopping;
} unit;

static int is_ready(const emq_worker *worker) {
    for (const emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        if (!q->has_answered) {
            return 0;
        }
    }
    return 1;
}

static int64_t speak_to_systemd(unit *u, const emq_worker *worker, int64_t now) {
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    if (!worker->options.systemd) {
        return TIME_NEVER;
    }
    if (!u->is_ready && is_ready(worker)) {
        u->is_ready = 1;
        emq_systemd_notify("READY=1");
    }
    if (!u->is_stopping && worker->phase >= EMQ_PHASE_DRAINING) {
        u->is_stopping = 1;
        emq_systemd_notify("STOPPING=1");
    }
    if (u->watchdog_ns == 0) {
        return TIME_NEVER;
    }
    if (u->next_at <= now) {
        u->next_at = now + u->watchdog_ns / WATCHDOG_PARTS;
        if (u->is_stopping || (find_health(&health, worker, NULL) && health.is_healthy)) {
            emq_systemd_notify("WATCHDOG=1");
        }
    }
    return u->next_at;
}

/* With the mutex held: everything that is due; when the next is. */
static int64_t look(emq_worker *worker, unit *u) {
    int64_t now = emq_now_ns();
    int64_t next = look_at_phase(worker, now);
    next = earlier(next, look_at_tasks(worker, now));
    emq_worker_wake_again(worker);
    while (tell_notice(worker) || tell_links(worker) || tell_health(worker, now)) {
        worker->watch_at = 0; /* meanwhile there may be more */
    }
    next = earlier(next, speak_to_systemd(u, worker, now));
    return earlier(next, after_ms(now, HEALTH_LOOK_MS));
}

void *emq_worker_watch(void *data) {
    emq_worker *worker = data;
    unit u = {0};
    u.watchdog_ns = worker->options.systemd ? emq_systemd_get_watchdog_ns() : 0;
    emq_worker_lock(worker);
    for (;;) {
        worker->watch_at = TIME_NEVER;
        int64_t next = look(worker, &u);
        if (worker->phase == EMQ_PHASE_ENDED) {
            break;
        }
        if (worker->watch_at > next) {
            worker->watch_at = next;
        }
        if (worker->watch_at > emq_now_ns()) {
            emq_worker_await(worker, &worker->watching, worker->watch_at);
        }
    }
    emq_worker_unlock(worker);
    return NULL;
}
