/* SPDX-License-Identifier: Apache-2.0 */
/* The worker runtime: claims jobs of one or more queues, runs a handler for each on threads of its
 * own, keeps the leases, settles, retries, sweeps, and stops without leaving anything behind.
 *
 *     emq_worker_open     options; connects to nothing
 *     emq_worker_add      once for each queue: its handler
 *     emq_worker_start    threads and connections; the caller goes on
 *     emq_worker_stop     drains; a second call ends it at once
 *     emq_worker_wait     until it has ended
 *     emq_worker_free     joins every thread, closes every connection
 *
 * docs/worker.md tells what it does in between, and what it costs.
 *
 * Thread rule: every function here may be called by any thread at any time, handlers and hooks
 * included, unless it says otherwise.
 *
 * Fork rule: a worker belongs to the process that opened it. In a forked child every call answers
 * EMQ_EFORKED, and emq_worker_free does nothing.
 */
#ifndef EMQ_WORKER_H
#define EMQ_WORKER_H

#include <emq/client.h>
#include <emq/error.h>
#include <emq/id.h>
#include <emq/job.h>
#include <emq/read.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMQ_WORKER_CONCURRENCY_MAX 1000 /**< handler threads of one worker */
#define EMQ_WORKER_PREFETCH_MAX 1000    /**< jobs that wait in a worker */
#define EMQ_WORKER_QUEUES_MAX 256       /**< queues of one worker */

/** A time or a count that means: no limit. */
#define EMQ_WORKER_UNLIMITED UINT32_MAX

/** A worker. Opaque. */
typedef struct emq_worker emq_worker;

/** A job in a worker's hands. Opaque. */
typedef struct emq_task emq_task;

/** What a handler returns: how the job is settled. */
typedef enum emq_task_verdict {
    EMQ_TASK_COMPLETE = 0, /**< done */
    EMQ_TASK_FAIL = 1,     /**< count a failure; tried again behind the backoff, or dead */
    EMQ_TASK_DELAY = 2,    /**< later, no failure: behind emq_task_set_delay */
    EMQ_TASK_REQUEUE = 3,  /**< back at once, no failure */
    EMQ_TASK_BURY = 4,     /**< count a failure, and no further try: dead */
    EMQ_TASK_LATER = 5     /**< not settled yet: the task is yours, see emq_task_free */
} emq_task_verdict;

/**
 * Handles one job, on one of the worker's handler threads. The lease is renewed while it runs,
 * whatever it does; emq_task_get_notice tells when going on is in vain.
 *
 * @param task the job; borrowed until the handler returns, unless it returns EMQ_TASK_LATER.
 * @param user as given to emq_worker_add.
 * @return an emq_task_verdict; any other number counts as EMQ_TASK_FAIL. Not looked at when the
 *         handler has settled the task itself.
 */
typedef int (*emq_task_handler)(emq_task *task, void *user);

/** What a handler should know about its job beyond its work. */
typedef enum emq_task_notice {
    EMQ_NOTICE_NONE = 0,
    EMQ_NOTICE_STOPPING =
        1, /**< the worker drains: finish if it takes no longer than its deadline */
    EMQ_NOTICE_OVERTIME = 2, /**< max_run_ms is over: the lease is not renewed any more */
    EMQ_NOTICE_LOST = 3,     /**< the lease is lost: no settle will be sent, drop the result */
    EMQ_NOTICE_RETURNED = 4  /**< given back, since the worker ends at once: likewise */
} emq_task_notice;

/* Retrying. */

/** How the pause before the next try grows with the failures. */
typedef enum emq_backoff_policy {
    EMQ_BACKOFF_JITTER = 0,      /**< anywhere between 0 and what the exponential one gives */
    EMQ_BACKOFF_EXPONENTIAL = 1, /**< base, 2 × base, 4 × base, … up to max */
    EMQ_BACKOFF_FIXED = 2,       /**< base */
    EMQ_BACKOFF_FUNCTION = 3     /**< what the function says */
} emq_backoff_policy;

/**
 * Computes a pause, on one of the worker's threads.
 *
 * @param task     the job that failed; borrowed.
 * @param failures how often it has failed, this time included: 1 or more.
 * @param user     as given to emq_worker_add.
 * @return milliseconds, 0 to 315360000000; what is outside of that is taken to its nearest end.
 */
typedef int64_t (*emq_backoff_function)(const emq_task *task, int64_t failures, void *user);

/* Options. */

/** How a worker treats one queue. Start from EMQ_WORKER_QUEUE_INIT or emq_worker_queue_init. */
typedef struct emq_worker_queue {
    size_t size;              /**< sizeof(emq_worker_queue), set by the initialisers */
    uint32_t lease_ms;        /**< renewed every third of it; 1000 or more; 0 means 30000 */
    uint32_t weight;          /**< its share beside the other queues, 1 to 1000; 0 means 1 */
    uint32_t max_run_ms;      /**< of one run; then the lease is not renewed any more. 0 means
                                   3600000; EMQ_WORKER_UNLIMITED */
    uint32_t max_failures;    /**< a job is dead at this many; 0 means 10 */
    uint32_t max_stalled;     /**< a job is dead when its lease lapsed this often; 0 means 3 */
    uint32_t max_attempts;    /**< a job that was claimed more often is buried before its handler
                                   runs; 0 means 25; EMQ_WORKER_UNLIMITED */
    int backoff;              /**< an emq_backoff_policy */
    uint32_t backoff_base_ms; /**< 0 means 1000 */
    uint32_t backoff_max_ms;  /**< 0 means 300000. EMQ_EINVAL below backoff_base_ms, so below
                                   1000 where that is 0 */
    emq_backoff_function backoff_function; /**< of EMQ_BACKOFF_FUNCTION */
} emq_worker_queue;

#define EMQ_WORKER_QUEUE_INIT                                                                      \
    { sizeof(emq_worker_queue), 0, 0, 0, 0, 0, 0, EMQ_BACKOFF_JITTER, 0, 0, NULL }

/**
 * Sets all options of a queue to their defaults, as EMQ_WORKER_QUEUE_INIT does.
 *
 * @param options the options. Since 0.1.0.
 */
EMQ_API void emq_worker_queue_init(emq_worker_queue *options);

/** What a hook is told of. */
typedef enum emq_worker_event_kind {
    EMQ_WORKER_START = 1,     /**< a handler is about to run; on its thread */
    EMQ_WORKER_SUCCESS = 2,   /**< a job was completed */
    EMQ_WORKER_FAILURE = 3,   /**< a job's failure was counted: result is 0 (tried again) or
                                   EMQ_DEAD; or it could not be settled: result says why */
    EMQ_WORKER_RETURN = 4,    /**< a job was delayed or requeued */
    EMQ_WORKER_LOST = 5,      /**< a lease is lost, or renewals stopped: notice says which */
    EMQ_WORKER_RECONNECT = 6, /**< a connection that was lost is there again */
    EMQ_WORKER_TROUBLE = 7,   /**< a connection can't be opened, or the server refuses: result; of
                                   a queue when it is about its claims. Told once, and again when
                                   another refusal of class EMQ_CLASS_SERVER follows */
    EMQ_WORKER_HEALTH = 8     /**< a queue became healthy (result 0) or stopped to be (negative) */
} emq_worker_event_kind;

/** An event. Everything in it is borrowed until the hook returns. */
typedef struct emq_worker_event {
    size_t size;        /**< sizeof(emq_worker_event) of the library */
    emq_worker *worker; /**< whose */
    int kind;           /**< an emq_worker_event_kind */
    int result;         /**< see the kinds; 0 where there is nothing to say */
    int notice;         /**< an emq_task_notice, of EMQ_WORKER_LOST */
    const char *queue;  /**< NULL when it is about no queue */
    emq_task *task;     /**< NULL when it is about no job; ask it, don't settle it */
    const char *text;   /**< a sentence for a person, "" where there is none */
    int64_t waited_us;  /**< from the hand-over to the handler's start */
    int64_t ran_us;     /**< from the handler's start to its verdict; 0 before it */
    int64_t settled_us; /**< from the verdict to the server's answer; 0 before it */
    int64_t silent_ms;  /**< of EMQ_WORKER_HEALTH: since the last claim's round trip */
} emq_worker_event;

/** Is told of events. Keep it short: what it is called from waits. START comes on handler threads,
 * several at once; SUCCESS, FAILURE and RETURN on the thread that settles; the others on the thread
 * that keeps watch. */
typedef void (*emq_worker_hook)(const emq_worker_event *event, void *user);

/** How a worker works. Start from EMQ_WORKER_OPTIONS_INIT or emq_worker_options_init. */
typedef struct emq_worker_options {
    size_t size;                /**< sizeof(emq_worker_options), set by the initialisers */
    uint32_t concurrency;       /**< handler threads, and jobs that run at once, those settled later
                                     included; 1 to EMQ_WORKER_CONCURRENCY_MAX; 0 means 1 */
    uint32_t prefetch;          /**< jobs that wait in the worker beside those that run; 0: none */
    uint32_t claim_wait_ms;     /**< how long the server holds back the answer that there is no job,
                                     at most 60000; 0 means 2000 */
    uint32_t sweep_interval_ms; /**< the beat in which queues are looked at for lapsed leases and
                                     jobs that are due; 10 to 3600000; 0 means 1000 */
    uint32_t health_limit_ms;   /**< a queue without a claim's round trip for that long is not
                                     healthy; 0 means 15000 */
    uint32_t backoff_min_ms;    /**< caps the first pause before connecting again; 0 means 50 */
    uint32_t backoff_max_ms;    /**< caps all of them; 0 means 5000. EMQ_EINVAL below
                                     backoff_min_ms, so below 50 where that is 0 */
    int no_sweeps;              /**< 1: somebody else sweeps and promotes */
    int systemd;                /**< 1: tell systemd READY=1, STOPPING=1 and, while healthy,
                                     WATCHDOG=1, where it asks to be told */
    emq_worker_hook hook;       /**< NULL: none */
    void *hook_user;            /**< handed to the hook */
} emq_worker_options;

#define EMQ_WORKER_OPTIONS_INIT                                                                    \
    { sizeof(emq_worker_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL }

/**
 * Sets all options to their defaults, as EMQ_WORKER_OPTIONS_INIT does.
 *
 * @param options the options. Since 0.1.0.
 */
EMQ_API void emq_worker_options_init(emq_worker_options *options);

/* A worker's life. */

/**
 * Makes a worker. Connects to nothing yet, and starts no thread.
 *
 * @param out     receives the worker, yours to free with emq_worker_free; NULL unless 0 is
 *                returned.
 * @param client  how to reach the server, copied; NULL means all defaults.
 * @param options how to work, copied; NULL means all defaults.
 * @return 0; EMQ_EINVAL (an option out of range); EMQ_ENOTLS; EMQ_ENOMEM; EMQ_ESYSTEM.
 *         Since 0.1.0.
 */
EMQ_API int emq_worker_open(emq_worker **out, const emq_client_options *client,
                            const emq_worker_options *options);

/**
 * Adds a queue, before the start.
 *
 * @param worker  a worker that was not started.
 * @param queue   the queue name.
 * @param handler handles its jobs.
 * @param user    handed to the handler and to the backoff function; may be NULL.
 * @param options how to treat it, copied; NULL means all defaults.
 * @return 0; EMQ_EINVAL (an option out of range, the queue was added already, too many queues, or
 *         the worker was started); EMQ_EQUEUE; EMQ_EFORKED; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_worker_add(emq_worker *worker, const char *queue, emq_task_handler handler,
                           void *user, const emq_worker_queue *options);

/**
 * Starts the worker, once. Connects one time before it returns, so that a wrong password or a
 * server without the module is told here. A server that can't be reached just now is no failure:
 * the worker goes on trying, as it does after a loss.
 *
 * The threads have every signal blocked.
 *
 * @param worker a worker with a queue.
 * @return 0; EMQ_EINVAL (no queue, or started already); a refusal of class EMQ_CLASS_USAGE,
 *         EMQ_CLASS_SERVER or EMQ_CLASS_PROTOCOL as of emq_client_open, with its sentence in
 *         emq_worker_copy_error: nothing was started then, and it may be tried again; EMQ_EFORKED;
 * EMQ_ENOMEM; EMQ_ESYSTEM (no more threads). Since 0.1.0.
 */
EMQ_API int emq_worker_start(emq_worker *worker);

/**
 * Stops the worker; returns at once. No further job is claimed, claims that wait are cancelled, and
 * jobs that wait in the worker go back. Handlers that run may finish within the deadline; then
 * what is left is given back with EMQ.REQUEUE, which counts no failure and no stall, and their
 * handlers are told (EMQ_NOTICE_RETURNED). A second call means: at once.
 *
 * @param worker      a worker.
 * @param deadline_ms for the handlers that run; 0 means at once.
 * @return 0; EMQ_EINVAL (not started); EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_worker_stop(emq_worker *worker, uint32_t deadline_ms);

/**
 * Waits until a worker that was stopped has ended: nothing is claimed, and every job was settled,
 * given back or lost. Not to be called by its handlers and hooks.
 *
 * @param left       receives how many handlers have not returned all the same; may be NULL.
 *                   emq_worker_free waits for them; a program that can't may just exit.
 * @param worker     a worker.
 * @param timeout_ms how long to wait at most; EMQ_WORKER_UNLIMITED.
 * @return 0; EMQ_EMPTY (not yet: the time is over); EMQ_EINVAL (not started; called by one of the
 *         worker's threads); EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_worker_wait(size_t *left, emq_worker *worker, uint32_t timeout_ms);

/**
 * Blocks SIGTERM and SIGINT in the calling thread, and thereby in the threads that it creates from
 * now on: the first line of a program that calls emq_worker_run.
 *
 * @return 0; EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_worker_block_signals(void);

/**
 * For the main thread of a program that is a worker: waits for SIGTERM or SIGINT, stops the worker,
 * at the second signal at once, and waits until it has ended. No signal handler is installed: the
 * signals are taken by sigtimedwait, and are blocked in the calling thread until this returns. They
 * must be blocked in all other threads, too: see emq_worker_block_signals.
 *
 * @param left        as of emq_worker_wait; may be NULL.
 * @param worker      a worker that was started.
 * @param deadline_ms as of emq_worker_stop, for the first signal.
 * @return 0 (it has ended, also when somebody else stopped it); EMQ_EINVAL; EMQ_EFORKED;
 *         EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_worker_run(size_t *left, emq_worker *worker, uint32_t deadline_ms);

/**
 * Ends the worker at once if it still works, waits for every handler, joins all threads, closes all
 * connections, and frees it with all tasks that were not freed. Not to be called by its handlers
 * and hooks. Calls of other threads must have returned.
 *
 * @param worker a worker, or NULL. Since 0.1.0.
 */
EMQ_API void emq_worker_free(emq_worker *worker);

/**
 * Copies the sentence of the last failure: of emq_worker_start, or of a connection.
 *
 * @param error  receives it, cut to cap - 1 bytes; "" when there was none.
 * @param cap    bytes at error, 1 or more.
 * @param worker a worker.
 * @return 0; EMQ_EINVAL; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_worker_copy_error(char *error, size_t cap, emq_worker *worker);

/* What a worker tells of itself. */

/** Counters since the start, and what is in hand now. Fill it with EMQ_WORKER_STATS_INIT first. */
typedef struct emq_worker_stats {
    size_t size;         /**< sizeof(emq_worker_stats) */
    uint64_t claimed;    /**< jobs that were taken in */
    uint64_t overshoot;  /**< jobs that were handed over beyond the limit, and given back */
    uint64_t malformed;  /**< jobs that can't be handed out: emq_jobs_get_malformed */
    uint64_t completed;  /**< jobs that were completed */
    uint64_t failed;     /**< failures that were counted, those of dead jobs included */
    uint64_t dead;       /**< jobs that died of a failure, or were buried */
    uint64_t exhausted;  /**< of these: more attempts than max_attempts */
    uint64_t delayed;    /**< jobs that were delayed */
    uint64_t requeued;   /**< jobs that were given back, overshoot left out */
    uint64_t lost;       /**< leases that were lost: no settle was sent */
    uint64_t refused;    /**< settles that the server refused: not ours any more, or gone */
    uint64_t unsettled;  /**< settles whose outcome is not known, or that were given up */
    uint64_t overtime;   /**< runs beyond max_run_ms */
    uint64_t beats;      /**< EMQ.EXTENDS that were answered */
    uint64_t sweeps;     /**< EMQ.STALLED.CHECK that were answered */
    uint64_t recovered;  /**< lapsed leases that were taken back */
    uint64_t stalled;    /**< jobs that these sweeps found stalled too often */
    uint64_t promotions; /**< EMQ.PROMOTE that were answered */
    uint64_t promoted;   /**< jobs that became ready by them */
    uint64_t reconnects; /**< connections that were opened anew */
    uint32_t running;    /**< jobs whose handler runs or that are settled later, now */
    uint32_t waiting;    /**< jobs that wait in the worker, now */
    uint32_t settling;   /**< jobs whose settle is on its way, now */
    uint32_t reserved;   /**< 0 */
} emq_worker_stats;

#define EMQ_WORKER_STATS_INIT                                                                      \
    {                                                                                              \
        sizeof(emq_worker_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   \
            0, 0, 0                                                                                \
    }

/**
 * Reads the counters.
 *
 * @param out    filled with EMQ_WORKER_STATS_INIT; receives them.
 * @param worker a worker.
 * @return 0; EMQ_EINVAL; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_worker_get_stats(emq_worker_stats *out, emq_worker *worker);

/** How a queue is served. Fill it with EMQ_WORKER_HEALTH_INIT first. */
typedef struct emq_worker_health {
    size_t size;       /**< sizeof(emq_worker_health) */
    int is_healthy;    /**< 1: is_full, or the silence is shorter than health_limit_ms */
    int is_full;       /**< 1: no job can be taken in, so that none is claimed */
    int64_t silent_ms; /**< since the last claim's round trip, or since the start */
    int result;        /**< why the last claim failed; 0 when it did not */
    int reserved;      /**< 0 */
} emq_worker_health;

#define EMQ_WORKER_HEALTH_INIT                                                                     \
    { sizeof(emq_worker_health), 0, 0, 0, 0, 0 }

/**
 * Tells how a queue is served: a claim made the round trip, or it did not.
 *
 * @param out    filled with EMQ_WORKER_HEALTH_INIT; receives it.
 * @param worker a worker that was started.
 * @param queue  a queue of the worker; NULL means the one that is served worst.
 * @return 0; EMQ_EINVAL (not started; not a queue of this worker); EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_worker_get_health(emq_worker_health *out, emq_worker *worker, const char *queue);

/*
 * Tasks. What is borrowed from a task is valid as long as the task is: until its handler returns,
 * or, behind EMQ_TASK_LATER, until emq_task_free.
 */

/** The job's id; borrowed. @param task a task. Since 0.1.0. */
EMQ_API const emq_id *emq_task_get_id(const emq_task *task);

/** The queue's name; borrowed. @param task a task. Since 0.1.0. */
EMQ_API const char *emq_task_get_queue(const emq_task *task);

/**
 * The payload, as emq_job_get_payload.
 *
 * @param task a task.
 * @param n    receives the number of bytes; may be NULL.
 * @return borrowed. Since 0.1.0.
 */
EMQ_API const void *emq_task_get_payload(const emq_task *task, size_t *n);

/** How often the job was claimed, this time included. @param task a task. Since 0.1.0. */
EMQ_API int64_t emq_task_get_attempts(const emq_task *task);

/** The lease: queue, id and token; borrowed. Don't settle with it. @param task a task.
 * Since 0.1.0. */
EMQ_API const emq_lease *emq_task_get_lease(const emq_task *task);

/**
 * How long ago the job's id was minted, by the server's clock where the worker knows it, against
 * the clock of who minted it.
 *
 * @param task a task.
 * @return milliseconds, 0 or more. Since 0.1.0.
 */
EMQ_API int64_t emq_task_get_age_ms(const emq_task *task);

/**
 * How much is left of the lease if it is not renewed again, by the worker's own clock.
 *
 * @param task a task.
 * @return milliseconds; 0 when it has passed. Since 0.1.0.
 */
EMQ_API int64_t emq_task_get_lease_left_ms(const emq_task *task);

/**
 * How much is left until the deadline of the run, which is that of max_run_ms or, while the worker
 * stops, of emq_worker_stop, whichever comes first.
 *
 * @param task a task.
 * @return milliseconds; 0 when it has passed; INT64_MAX when there is none. Since 0.1.0.
 */
EMQ_API int64_t emq_task_get_time_left_ms(const emq_task *task);

/** Whether the lease is lost: nothing will be settled. @param task a task. @return 1 or 0.
 * Since 0.1.0. */
EMQ_API int emq_task_is_lost(const emq_task *task);

/** What the handler should know, the worst of it. @param task a task. @return an emq_task_notice.
 * Since 0.1.0. */
EMQ_API emq_task_notice emq_task_get_notice(const emq_task *task);

/**
 * Reads the job's row: failures, stalls, last error. Each time a round trip, on a connection that
 * the worker opens when this is first called.
 *
 * @param out  receives the row, yours to free with emq_row_free; NULL unless 0 is returned.
 * @param task a task.
 * @return as emq_row_read; what emq_client_open answers; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_task_read_row(emq_row **out, const emq_task *task);

/**
 * Sets the text of a failure, for EMQ_TASK_FAIL and EMQ_TASK_BURY as the handler's verdict.
 *
 * @param task  a task that is not settled.
 * @param error what went wrong, any bytes, copied; those behind the first 65536 are cut off. May be
 *              NULL when n is 0.
 * @param n     its bytes.
 * @return 0; EMQ_EINVAL (also: settled already); EMQ_ENOMEM; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_task_set_error(emq_task *task, const void *error, size_t n);

/**
 * Sets the pause: for EMQ_TASK_DELAY, and for EMQ_TASK_FAIL instead of the backoff.
 *
 * @param task     a task that is not settled.
 * @param delay_ms 0 to 315360000000 milliseconds.
 * @return 0; EMQ_EINVAL (also: settled already); EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_task_set_delay(emq_task *task, int64_t delay_ms);

/*
 * Settling by a call, from any thread and without waiting: the verdict is sent by the worker, and
 * the hook is told what came of it. A task is settled once: by its handler's return, or by one of
 * these, while the handler runs or, behind EMQ_TASK_LATER, after it. Each returns 0; EMQ_EINVAL
 * (settled already); EMQ_ESTALE (the lease is lost, or the job was given back: drop the result, and
 * free the task); EMQ_ENOMEM (emq_task_fail, emq_task_bury: no room for the text, not settled);
 * EMQ_EFORKED. Since 0.1.0.
 */

/** Settles with EMQ_TASK_COMPLETE. */
EMQ_API int emq_task_complete(emq_task *task);
/** Settles with EMQ_TASK_FAIL; error as of emq_task_set_error. */
EMQ_API int emq_task_fail(emq_task *task, const void *error, size_t n);
/** Settles with EMQ_TASK_DELAY; 0 to 315360000000 milliseconds. */
EMQ_API int emq_task_delay(emq_task *task, int64_t delay_ms);
/** Settles with EMQ_TASK_REQUEUE. */
EMQ_API int emq_task_requeue(emq_task *task);
/** Settles with EMQ_TASK_BURY; error as of emq_task_set_error. */
EMQ_API int emq_task_bury(emq_task *task, const void *error, size_t n);

/**
 * Frees a task whose handler returned EMQ_TASK_LATER, or is about to; other tasks are the worker's,
 * and it is harmless for them. Behind it the task must not be used. One that is not settled goes
 * back with EMQ.REQUEUE.
 *
 * @param task a task, or NULL. Since 0.1.0.
 */
EMQ_API void emq_task_free(emq_task *task);

#ifdef __cplusplus
}
#endif

#endif
