/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's life: options, queues, threads, the phases from start to end. */
#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "condition.h"
#include "memory.h"

#define CANCEL_MS 1000       /* for a claim that was cancelled to come back by itself */
#define STRUCT_SIZE_MAX 4096 /* no version's struct is that large: such a size was never set */
#define WEIGHT_MAX 1000
#define LEASE_MS_MIN 1000
#define CLAIM_WAIT_MS_MAX 60000
#define SWEEP_INTERVAL_MS_MIN 10
#define SWEEP_INTERVAL_MS_MAX 3600000

void emq_worker_options_init(emq_worker_options *options) {
    if (options != NULL) {
        *options = (emq_worker_options)EMQ_WORKER_OPTIONS_INIT;
    }
}

void emq_worker_queue_init(emq_worker_queue *options) {
    if (options != NULL) {
        *options = (emq_worker_queue)EMQ_WORKER_QUEUE_INIT;
    }
}

static void set_default(uint32_t *option, uint32_t value) {
    if (*option == 0) {
        *option = value;
    }
}

static int read_options(emq_worker_options *out, const emq_worker_options *options) {
    emq_worker_options_init(out);
    if (options != NULL && emq_options_read(out, sizeof(*out), options, options->size) != EMQ_OK) {
        return EMQ_EINVAL;
    }
    out->size = sizeof(*out);
    set_default(&out->concurrency, 1);
    set_default(&out->claim_wait_ms, 2000);
    set_default(&out->sweep_interval_ms, 1000);
    set_default(&out->health_limit_ms, 15000);
    set_default(&out->backoff_min_ms, 50);
    set_default(&out->backoff_max_ms, 5000);
    int fits = out->concurrency <= EMQ_WORKER_CONCURRENCY_MAX &&
               out->prefetch <= EMQ_WORKER_PREFETCH_MAX &&
               out->claim_wait_ms <= CLAIM_WAIT_MS_MAX &&
               out->sweep_interval_ms >= SWEEP_INTERVAL_MS_MIN &&
               out->sweep_interval_ms <= SWEEP_INTERVAL_MS_MAX &&
               out->backoff_min_ms <= out->backoff_max_ms;
    return fits ? EMQ_OK : EMQ_EINVAL;
}

static int read_queue_options(emq_worker_queue *out, const emq_worker_queue *options) {
    emq_worker_queue_init(out);
    if (options != NULL && emq_options_read(out, sizeof(*out), options, options->size) != EMQ_OK) {
        return EMQ_EINVAL;
    }
    out->size = sizeof(*out);
    set_default(&out->lease_ms, 30000);
    set_default(&out->weight, 1);
    set_default(&out->max_run_ms, 3600000);
    set_default(&out->max_failures, 10);
    set_default(&out->max_stalled, 3);
    set_default(&out->max_attempts, 25);
    set_default(&out->backoff_base_ms, 1000);
    set_default(&out->backoff_max_ms, 300000);
    int has_policy = out->backoff >= EMQ_BACKOFF_JITTER && out->backoff <= EMQ_BACKOFF_FUNCTION &&
                     (out->backoff != EMQ_BACKOFF_FUNCTION || out->backoff_function != NULL);
    int fits = has_policy && out->lease_ms >= LEASE_MS_MIN && out->lease_ms <= INT32_MAX &&
               out->weight <= WEIGHT_MAX && out->max_failures <= INT32_MAX &&
               out->max_stalled <= INT32_MAX && out->backoff_base_ms <= out->backoff_max_ms;
    return fits ? EMQ_OK : EMQ_EINVAL;
}

void emq_worker_lock(emq_worker *worker) {
    (void)pthread_mutex_lock(&worker->mutex);
}

void emq_worker_unlock(emq_worker *worker) {
    (void)pthread_mutex_unlock(&worker->mutex);
}

void emq_worker_await(emq_worker *worker, pthread_cond_t *condition, int64_t until) {
    if (until == TIME_NEVER) {
        (void)pthread_cond_wait(condition, &worker->mutex);
        return;
    }
    const struct timespec time = emq_deadline_timespec((emq_deadline){until, NULL});
    (void)pthread_cond_timedwait(condition, &worker->mutex, &time);
}

#define CONDITIONS 7

static void list_conditions(pthread_cond_t *out[CONDITIONS], emq_worker *worker) {
    pthread_cond_t *const all[CONDITIONS] = {&worker->slots, &worker->work,   &worker->settles,
                                             &worker->beats, &worker->chores, &worker->watching,
                                             &worker->ended};
    memcpy(out, all, sizeof(all));
}

void emq_worker_wake_all(emq_worker *worker) {
    pthread_cond_t *conditions[CONDITIONS];
    list_conditions(conditions, worker);
    for (int i = 0; i < CONDITIONS; i++) {
        (void)pthread_cond_broadcast(conditions[i]);
    }
}

/* Nobody needs an answer any more. */
static void cut_links(emq_worker *worker) {
    atomic_store(&worker->is_over, 1);
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        emq_worker_link_cut(&q->link, 0);
    }
    emq_worker_link_cut(&worker->settle_link, 0);
    emq_worker_link_cut(&worker->renew_link, 0);
    emq_worker_link_cut(&worker->keep_link, 0);
}

void emq_worker_check_ended(emq_worker *worker) {
    if (worker->phase >= EMQ_PHASE_DRAINING && worker->phase < EMQ_PHASE_ENDED &&
        worker->claims_out == 0 && worker->held == 0 && worker->decided.count == 0 &&
        worker->stats.settling == 0) {
        worker->phase = EMQ_PHASE_ENDED;
        cut_links(worker);
        emq_worker_wake_all(worker);
    }
}

void emq_worker_tell(emq_worker *worker, emq_worker_event *event) {
    if (worker->options.hook != NULL) {
        event->size = sizeof(*event);
        event->worker = worker;
        event->text = event->text == NULL ? "" : event->text;
        worker->options.hook(event, worker->options.hook_user);
    }
}

static int64_t to_us(int64_t ns) {
    return ns > 0 ? ns / 1000 : 0;
}

emq_worker_event emq_worker_task_event(emq_task *task, emq_worker_event_kind kind) {
    emq_worker_event event = {.kind = (int)kind, .queue = task->queue->name, .task = task};
    if (task->started_at != 0) {
        event.waited_us = to_us(task->started_at - task->taken_at);
    }
    if (task->started_at != 0 && task->decided_at != 0) {
        event.ran_us = to_us(task->decided_at - task->started_at);
    }
    return event;
}

static int is_forked(const emq_worker *worker) {
    return emq_owner_is_other(&worker->owner);
}

static void destroy_conditions(emq_worker *worker, int count) {
    pthread_cond_t *conditions[CONDITIONS];
    list_conditions(conditions, worker);
    for (int i = 0; i < count; i++) {
        (void)pthread_cond_destroy(conditions[i]);
    }
}

static int init_locks(emq_worker *worker) {
    pthread_cond_t *conditions[CONDITIONS];
    list_conditions(conditions, worker);
    for (int i = 0; i < CONDITIONS; i++) {
        if (!emq_condition_init(conditions[i])) {
            destroy_conditions(worker, i);
            return EMQ_ESYSTEM;
        }
    }
    if (pthread_mutex_init(&worker->mutex, NULL) != 0) {
        destroy_conditions(worker, CONDITIONS);
        return EMQ_ESYSTEM;
    }
    if (pthread_mutex_init(&worker->reader_mutex, NULL) != 0) {
        (void)pthread_mutex_destroy(&worker->mutex);
        destroy_conditions(worker, CONDITIONS);
        return EMQ_ESYSTEM;
    }
    return EMQ_OK;
}

static int init_links(emq_worker *worker) {
    int result = emq_worker_link_init(&worker->settle_link, worker, "settling");
    if (result == EMQ_OK) {
        result = emq_worker_link_init(&worker->renew_link, worker, "renewing leases");
    }
    if (result == EMQ_OK) {
        result = emq_worker_link_init(&worker->keep_link, worker, "sweeping");
    }
    if (result == EMQ_OK) {
        result = emq_client_new(&worker->reader, &worker->settings.options);
    }
    if (result == EMQ_OK) {
        result = emq_pipeline_new(&worker->pipeline, worker->settle_link.client);
    }
    if (result == EMQ_OK) {
        worker->beat = emq_worker_new_beat();
        result = worker->beat == NULL ? EMQ_ENOMEM : EMQ_OK;
    }
    return result;
}

static void release(emq_worker *worker) {
    for (emq_work_queue *q = worker->queues; q != NULL;) {
        emq_work_queue *next = q->next;
        emq_worker_link_clear(&q->link);
        emq_free(q);
        q = next;
    }
    while (worker->tasks != NULL) {
        emq_task_destroy(worker->tasks);
    }
    emq_pipeline_free(worker->pipeline);
    emq_free(worker->beat);
    emq_worker_link_clear(&worker->settle_link);
    emq_worker_link_clear(&worker->renew_link);
    emq_worker_link_clear(&worker->keep_link);
    emq_client_close(worker->reader);
    emq_settings_clear(&worker->settings);
    (void)pthread_mutex_destroy(&worker->reader_mutex);
    (void)pthread_mutex_destroy(&worker->mutex);
    destroy_conditions(worker, CONDITIONS);
    emq_owner_clear(&worker->owner);
    emq_free(worker->handlers);
    emq_free(worker);
}

int emq_worker_open(emq_worker **out, const emq_client_options *client,
                    const emq_worker_options *options) {
    emq_worker_options own;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    int result = read_options(&own, options);
    if (result != EMQ_OK) {
        return result;
    }
    emq_worker *worker = emq_calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return EMQ_ENOMEM;
    }
    emq_owner_set(&worker->owner);
    worker->options = own;
    worker->stop_at = worker->cut_at = TIME_NEVER;
    worker->give_up_at = worker->watch_at = TIME_NEVER;
    worker->stats.size = sizeof(worker->stats);
    emq_task_line_init(&worker->waiting);
    emq_task_line_init(&worker->decided);
    result = emq_settings_init(&worker->settings, client);
    if (result == EMQ_OK && init_locks(worker) != EMQ_OK) {
        emq_settings_clear(&worker->settings);
        result = EMQ_ESYSTEM;
    }
    if (result != EMQ_OK) {
        emq_owner_clear(&worker->owner);
        emq_free(worker);
        return result;
    }
    result = init_links(worker);
    if (result != EMQ_OK) {
        release(worker);
        return result;
    }
    *out = worker;
    return EMQ_OK;
}

static emq_work_queue *find_queue(const emq_worker *worker, const char *name) {
    emq_work_queue *q = worker->queues;
    while (q != NULL && strcmp(q->name, name) != 0) {
        q = q->next;
    }
    return q;
}

static int make_queue(emq_work_queue **out, emq_worker *worker, const char *name,
                      const emq_worker_queue *options) {
    emq_work_queue *q = emq_calloc(1, sizeof(*q));
    if (q == NULL) {
        return EMQ_ENOMEM;
    }
    q->worker = worker;
    q->options = *options;
    memcpy(q->name, name, strlen(name) + 1);
    int result = emq_worker_link_init(&q->link, worker, "claiming");
    if (result != EMQ_OK) {
        emq_free(q);
        return result;
    }
    *out = q;
    return EMQ_OK;
}

int emq_worker_add(emq_worker *worker, const char *queue, emq_task_handler handler, void *user,
                   const emq_worker_queue *options) {
    emq_worker_queue own;
    emq_work_queue *q = NULL;
    if (worker == NULL || queue == NULL || handler == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(worker)) {
        return EMQ_EFORKED;
    }
    if (!emq_queue_valid(queue)) {
        return EMQ_EQUEUE;
    }
    if (read_queue_options(&own, options) != EMQ_OK) {
        return EMQ_EINVAL;
    }
    emq_worker_lock(worker);
    int result = EMQ_EINVAL;
    if (worker->phase == EMQ_PHASE_NEW && !worker->is_starting &&
        worker->queue_count < EMQ_WORKER_QUEUES_MAX && find_queue(worker, queue) == NULL) {
        result = make_queue(&q, worker, queue, &own);
    }
    if (result == EMQ_OK) {
        q->handler = handler;
        q->user = user;
        q->next = worker->queues;
        worker->queues = q;
        worker->queue_count++;
    }
    emq_worker_unlock(worker);
    return result;
}

/* Threads. */

static int create_thread(pthread_t *thread, int *has_thread, void *(*body)(void *), void *data) {
    int failed = pthread_create(thread, NULL, body, data) != 0;
    *has_thread = !failed;
    return failed ? EMQ_ESYSTEM : EMQ_OK;
}

static int create_handlers(emq_worker *worker) {
    worker->handlers = emq_calloc(worker->options.concurrency, sizeof(worker->handlers[0]));
    if (worker->handlers == NULL) {
        return EMQ_ENOMEM;
    }
    int result = EMQ_OK;
    while (result == EMQ_OK && worker->handler_count < worker->options.concurrency) {
        int is_there = 0;
        result = create_thread(&worker->handlers[worker->handler_count], &is_there,
                               emq_worker_handle, worker);
        worker->handler_count += (uint32_t)is_there;
    }
    return result;
}

static int create_claimers(emq_worker *worker) {
    int result = EMQ_OK;
    for (emq_work_queue *q = worker->queues; q != NULL && result == EMQ_OK; q = q->next) {
        result = create_thread(&q->thread, &q->has_thread, emq_worker_claim, q);
    }
    return result;
}

static int create_threads(emq_worker *worker) {
    int result = create_thread(&worker->watch, &worker->has_watch, emq_worker_watch, worker);
    if (result == EMQ_OK) {
        result = create_thread(&worker->renewer, &worker->has_renewer, emq_worker_renew, worker);
    }
    if (result == EMQ_OK) {
        result = create_thread(&worker->settler, &worker->has_settler, emq_worker_settle, worker);
    }
    if (result == EMQ_OK && !worker->options.no_sweeps) {
        result = create_thread(&worker->keeper, &worker->has_keeper, emq_worker_keep, worker);
    }
    if (result == EMQ_OK) {
        result = create_handlers(worker);
    }
    return result == EMQ_OK ? create_claimers(worker) : result;
}

static void join_thread(pthread_t thread, int *has_thread) {
    if (*has_thread) {
        (void)pthread_join(thread, NULL);
        *has_thread = 0;
    }
}

static void join_threads(emq_worker *worker) {
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        join_thread(q->thread, &q->has_thread);
    }
    for (uint32_t i = 0; i < worker->handler_count; i++) {
        (void)pthread_join(worker->handlers[i], NULL);
    }
    worker->handler_count = 0;
    emq_free(worker->handlers);
    worker->handlers = NULL;
    join_thread(worker->settler, &worker->has_settler);
    join_thread(worker->renewer, &worker->has_renewer);
    join_thread(worker->keeper, &worker->has_keeper);
    join_thread(worker->watch, &worker->has_watch);
}

/* With every signal blocked, which the threads inherit: the program's signals are the program's. */
static int create_threads_quietly(emq_worker *worker) {
    sigset_t all;
    sigset_t saved;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &saved) != 0) {
        return EMQ_ESYSTEM;
    }
    int result = create_threads(worker);
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return result;
}

/* What no further try can mend by itself. */
static int is_refusal(int result) {
    emq_class class = emq_err_class(result);
    return result < 0 && class != EMQ_CLASS_RETRYABLE && class != EMQ_CLASS_UNKNOWN;
}

/* With the mutex held: none of the threads claims a job, or asks who it is, before all are there.
 * When one is missing, those that are there find that it is over. */
static int begin(emq_worker *worker) {
    int64_t now = emq_now_ns();
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        q->answered_at = now;
        q->beat_at = now;
    }
    int result = create_threads_quietly(worker);
    worker->phase = result == EMQ_OK ? EMQ_PHASE_WORKING : EMQ_PHASE_ENDED;
    return result;
}

/* Only one of several callers may start it; nobody adds a queue from now on. */
static int claim_start(emq_worker *worker) {
    emq_worker_lock(worker);
    int is_startable =
        worker->phase == EMQ_PHASE_NEW && !worker->is_starting && worker->queues != NULL;
    worker->is_starting = worker->is_starting || is_startable;
    emq_worker_unlock(worker);
    return is_startable;
}

int emq_worker_start(emq_worker *worker) {
    if (worker == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(worker)) {
        return EMQ_EFORKED;
    }
    if (!claim_start(worker)) {
        return EMQ_EINVAL;
    }
    int result = emq_worker_link_open(&worker->settle_link, &worker->settles, EMQ_PHASE_ENDED);
    int is_refused = is_refusal(result);
    emq_worker_lock(worker);
    worker->is_starting = 0;
    result = is_refused ? result : begin(worker);
    emq_worker_unlock(worker);
    if (result != EMQ_OK && !is_refused) {
        join_threads(worker);
    }
    return result;
}

/* Takes back what waits, and tells those who run. */
static void start_drain(emq_worker *worker) {
    for (emq_task *task = emq_task_line_take(&worker->waiting); task != NULL;
         task = emq_task_line_take(&worker->waiting)) {
        emq_task_decide(task, EMQ_TASK_REQUEUE);
    }
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        if (q->is_out && q->link.client_id == 0) {
            emq_worker_link_cut(&q->link, 1);
        }
    }
    worker->phase = EMQ_PHASE_DRAINING;
    worker->cut_at = emq_deadline_in(CANCEL_MS).at_ns;
}

int emq_worker_stop(emq_worker *worker, uint32_t deadline_ms) {
    if (worker == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(worker)) {
        return EMQ_EFORKED;
    }
    int64_t now = emq_now_ns();
    emq_worker_lock(worker);
    int result = worker->phase == EMQ_PHASE_NEW ? EMQ_EINVAL : EMQ_OK;
    if (worker->phase == EMQ_PHASE_WORKING) {
        worker->stop_at = emq_deadline_in(deadline_ms).at_ns;
        start_drain(worker);
    } else if (worker->phase == EMQ_PHASE_DRAINING) {
        worker->stop_at = now;
    }
    emq_worker_check_ended(worker);
    emq_worker_wake_all(worker);
    emq_worker_unlock(worker);
    return result;
}

static int is_own_thread(const emq_worker *worker) {
    pthread_t self = pthread_self();
    for (uint32_t i = 0; i < worker->handler_count; i++) {
        if (pthread_equal(worker->handlers[i], self)) {
            return 1;
        }
    }
    return (worker->has_settler && pthread_equal(worker->settler, self)) ||
           (worker->has_watch && pthread_equal(worker->watch, self));
}

int emq_worker_wait(size_t *left, emq_worker *worker, uint32_t timeout_ms) {
    if (worker == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(worker)) {
        return EMQ_EFORKED;
    }
    int64_t until =
        timeout_ms == EMQ_WORKER_UNLIMITED ? TIME_NEVER : emq_deadline_in(timeout_ms).at_ns;
    emq_worker_lock(worker);
    int result = EMQ_OK;
    if (worker->phase == EMQ_PHASE_NEW || is_own_thread(worker)) {
        result = EMQ_EINVAL;
    }
    while (result == EMQ_OK && worker->phase != EMQ_PHASE_ENDED) {
        if (emq_now_ns() >= until) {
            result = EMQ_EMPTY;
        } else {
            emq_worker_await(worker, &worker->ended, until);
        }
    }
    if (left != NULL) {
        *left = worker->in_handlers;
    }
    emq_worker_unlock(worker);
    return result;
}

void emq_worker_free(emq_worker *worker) {
    if (worker == NULL || is_forked(worker)) {
        return;
    }
    emq_worker_lock(worker);
    int has_begun = worker->phase != EMQ_PHASE_NEW;
    emq_worker_unlock(worker);
    if (has_begun) {
        (void)emq_worker_stop(worker, 0);
        (void)emq_worker_stop(worker, 0);
        (void)emq_worker_wait(NULL, worker, EMQ_WORKER_UNLIMITED);
        join_threads(worker);
    }
    release(worker);
}

int emq_worker_copy_error(char *error, size_t cap, emq_worker *worker) {
    if (error == NULL || cap == 0 || worker == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(worker)) {
        return EMQ_EFORKED;
    }
    emq_worker_lock(worker);
    (void)snprintf(error, cap, "%s", worker->error.bytes);
    emq_worker_unlock(worker);
    return EMQ_OK;
}

/* Gives a struct to a caller whose headers may be older, and have fewer fields. */
static void give(void *out, size_t size, const void *from, size_t from_size) {
    memset(out, 0, size);
    memcpy(out, from, size < from_size ? size : from_size);
}

int emq_worker_get_stats(emq_worker_stats *out, emq_worker *worker) {
    if (out == NULL || worker == NULL || out->size < sizeof(out->size) ||
        out->size > STRUCT_SIZE_MAX) {
        return EMQ_EINVAL;
    }
    if (is_forked(worker)) {
        return EMQ_EFORKED;
    }
    emq_worker_lock(worker);
    emq_worker_stats stats = worker->stats;
    stats.running = worker->running;
    stats.waiting = (uint32_t)worker->waiting.count;
    stats.settling += (uint32_t)worker->decided.count;
    emq_worker_unlock(worker);
    stats.size = out->size;
    give(out, out->size, &stats, sizeof(stats));
    return EMQ_OK;
}
