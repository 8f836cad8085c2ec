/* SPDX-License-Identifier: Apache-2.0 */
/* The worker from the inside. One mutex guards everything that more than one thread touches, and is
 * never held while something waits on a peer or runs code of the program's.
 *
 *     thread          file              connection   does
 *     claimers        worker_claim.c    one each     one for each queue: claims
 *     handlers        worker_handle.c   none         run the program's code
 *     the settler     worker_settle.c   one          sends verdicts, and the claims that may ride
 *                                                    with them; calls hooks of settled jobs
 *     the renewer     worker_renew.c    one          renews leases
 *     the keeper      worker_sweep.c    one          sweeps and promotes
 *     the watch       worker_watch.c    none         deadlines, hooks, health, systemd
 *
 * Times are nanoseconds of CLOCK_MONOTONIC; TIME_NEVER is later than all of them. */
#ifndef EMQ_LIBEMQ_WORKER_H
#define EMQ_LIBEMQ_WORKER_H

#include <emq/pipeline.h>
#include <emq/worker.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "client.h"
#include "deadline.h"
#include "job.h"
#include "owner.h"

#define TIME_NEVER INT64_MAX

typedef struct emq_work_queue emq_work_queue;

/* A connection of the worker: belongs to one thread, apart from what the mutex guards. */
typedef struct emq_worker_link {
    emq_worker *worker;
    emq_client *client;
    const char *name; /* what it is for, in sentences */
    /* guarded by the mutex */
    int cut;            /* a descriptor of the same socket, to end it from another thread; -1 */
    int is_failing;     /* the last attempt to connect, or the last request, failed */
    int trouble;        /* a failure that the hook was not told of yet; 0: none */
    emq_text words;     /* of it */
    int is_regained;    /* a reconnect likewise */
    int result;         /* of the last attempt or request */
    uint64_t opened_at; /* by the worker's logical clock */
    struct sockaddr_storage peer;
    int64_t client_id; /* of this connection, on the server; 0: not known */
    uint64_t asked_at; /* when it was last asked for, by that clock */
    /* the thread's own */
    uint32_t backoff_max_ms;
    unsigned int failures;
    int was_open;
} emq_worker_link;

typedef enum emq_task_state {
    TASK_WAITING, /* for a handler thread */
    TASK_RUNNING, /* its handler runs, or it is settled later */
    TASK_DECIDED, /* there is a verdict, which waits to be sent */
    TASK_SENT,
    TASK_DONE /* settled, or given up */
} emq_task_state;

struct emq_task {
    emq_task *next; /* of all tasks */
    emq_task *previous;
    emq_task *after; /* in the line for a handler, or for the settler */
    emq_worker *worker;
    emq_work_queue *queue;
    emq_job job;
    /* guarded by the mutex */
    emq_task_state state;
    emq_task_verdict verdict;
    emq_task_notice notice; /* OVERTIME, LOST or RETURNED, once it is so */
    int is_told;            /* the hook knows of the notice, or there is none */
    int is_pinned;          /* a hook looks at it */
    int has_slot;           /* it counts as held */
    int is_in_handler;
    int is_kept;      /* its handler returned EMQ_TASK_LATER */
    int is_freed;     /* emq_task_free was called */
    int is_exhausted; /* more attempts than allowed */
    int is_overshoot; /* handed over beyond the limit */
    int tries;        /* how often it was sent with an unknown outcome */
    int is_alone;     /* its complete goes in a call of its own */
    int is_refused;   /* its verdict waits for an operator: no longer than its lease */
    char *error;
    size_t error_size;
    int64_t delay_ms; /* -1: not set */
    int64_t lease_until;
    int64_t run_until;
    unsigned int beat; /* that renewed it last, and its place in it */
    size_t beat_place;
    int64_t taken_at;
    int64_t started_at;
    int64_t decided_at;
};

/* A line of tasks, by `after`. */
typedef struct emq_task_line {
    emq_task *first;
    emq_task **end;
    size_t count;
} emq_task_line;

/* When something is due on a queue, as it was last seen. The keeper's own. */
typedef struct emq_due {
    int64_t at;         /* when to look, and call if it still is */
    uint32_t spread_ms; /* the chance in it: wider, the more others do the same */
    uint32_t rest_ms;   /* behind a call that moved nothing, this long none is made */
    int64_t not_before;
} emq_due;

struct emq_work_queue {
    emq_worker *worker;
    emq_work_queue *next;
    char name[EMQ_QUEUE_MAX + 1];
    emq_task_handler handler;
    void *user;
    emq_worker_queue options;
    emq_worker_link link; /* of its claimer */
    pthread_t thread;
    int has_thread;
    /* guarded by the mutex */
    int is_empty;        /* the last look found fewer jobs than were asked for */
    int wants_grant;     /* it is to have slots of its own, and has none yet */
    int is_waiting;      /* its claimer waits for free slots */
    int is_out;          /* its claimer's claim is on its way */
    int is_ahead;        /* a claim of the settler's is */
    int has_answered;    /* a claim has made the round trip */
    uint64_t pass;       /* how much it has had, by its weight */
    int64_t answered_at; /* the last claim's round trip */
    int is_unhealthy;    /* as the hook was told */
    int look_now;        /* for the keeper: there is a new earliest time */
    int64_t looked_at;   /* by the keeper */
    int64_t beat_at;     /* for the renewer */
    /* the keeper's own */
    int64_t look_at;
    emq_due promote;
    emq_due sweep;
};

/* What a claim asks for. */
typedef struct emq_claim_ask {
    emq_work_queue *queue;
    uint32_t count;
    uint32_t wait_ms; /* 0: not at all, and into granted slots */
} emq_claim_ask;

typedef enum emq_worker_phase {
    EMQ_PHASE_NEW,
    EMQ_PHASE_WORKING,
    EMQ_PHASE_DRAINING, /* no further claims; handlers may finish */
    EMQ_PHASE_ENDING,   /* what is left goes back */
    EMQ_PHASE_ENDED     /* nothing is in hand; threads go home */
} emq_worker_phase;

struct emq_worker {
    emq_owner owner; /* in a child the mutex may be locked for ever: nothing is touched there */
    pthread_mutex_t mutex;
    emq_settings settings; /* of the clients */
    emq_worker_options options;
    emq_work_queue *queues;
    uint32_t queue_count;
    emq_worker_link settle_link;
    emq_worker_link renew_link;
    emq_worker_link keep_link;
    emq_pipeline *pipeline; /* of the settler */
    struct emq_beat *beat;  /* of the renewer */
    emq_client *reader;     /* of emq_task_read_row, under a mutex of its own */
    pthread_mutex_t reader_mutex;
    pthread_t *handlers;
    uint32_t handler_count;
    pthread_t settler;
    pthread_t renewer;
    pthread_t keeper;
    pthread_t watch;
    int has_settler;
    int has_renewer;
    int has_keeper;
    int has_watch;
    atomic_int is_over; /* ends connects that are under way */
    /* guarded by the mutex */
    emq_worker_phase phase;
    int is_starting;    /* somebody connects, to start it */
    int64_t stop_at;    /* the handlers' deadline, once it stops */
    int64_t cut_at;     /* then claims that were cancelled are cut off */
    int64_t give_up_at; /* then nothing waits for the server any more */
    int has_given_up;   /* that is over: nothing is sent a second time */
    int64_t full_at;    /* when the last slot was in use last */
    emq_task *tasks;
    emq_task_line waiting; /* for a handler */
    emq_task_line decided; /* for the settler */
    uint32_t held;         /* slots in use: waiting, running, decided, sent */
    uint32_t granted;      /* slots that claims on their way may fill */
    uint32_t running;
    uint32_t in_handlers;
    uint32_t idle;   /* handler threads that wait for a job */
    uint32_t waking; /* of these, those that were woken and are on their way */
    uint32_t claims_out;
    uint64_t logical_clock;   /* counts connects, and questions for the id of a connection */
    uint64_t virtual_time;    /* of the fair choice */
    int64_t watch_at;         /* when the watch looks next */
    int64_t server_offset_ms; /* unix time of the server less CLOCK_MONOTONIC, once known */
    int has_offset;
    emq_worker_stats stats;
    emq_text error;
    pthread_cond_t slots;    /* for claimers */
    pthread_cond_t work;     /* for handlers */
    pthread_cond_t settles;  /* for the settler */
    pthread_cond_t beats;    /* for the renewer */
    pthread_cond_t chores;   /* for the keeper */
    pthread_cond_t watching; /* for the watch */
    pthread_cond_t ended;    /* for emq_worker_wait */
};

/* worker.c */

void emq_worker_lock(emq_worker *worker);
void emq_worker_unlock(emq_worker *worker);

/* Waits with the mutex held, until a signal or a time. */
void emq_worker_await(emq_worker *worker, pthread_cond_t *condition, int64_t until);

/* Wakes everybody, for a change of the phase. */
void emq_worker_wake_all(emq_worker *worker);

/* Nothing is in hand any more while it stops: the phase becomes ENDED. */
void emq_worker_check_ended(emq_worker *worker);

/* Calls the hook, without the mutex. */
void emq_worker_tell(emq_worker *worker, emq_worker_event *event);

/* An event about a task, with its timings. */
emq_worker_event emq_worker_task_event(emq_task *task, emq_worker_event_kind kind);

/* worker_handle.c */

/* With the mutex held, when there is a job more to run, or one running less: sees to it that
 * handlers are on their way to what waits. */
void emq_worker_wake_handlers(emq_worker *worker);

/* Likewise, from time to time, whoever is believed to be on their way: glibc before 2.41 loses a
 * signal once in a long while (its bug 25847), and a job would wait for the next one. */
void emq_worker_wake_again(emq_worker *worker);

/* worker_claim.c: with the mutex held. */

/* Wakes the claimers if there are free slots. */
void emq_worker_offer_slots(emq_worker *worker);

/* Grants slots that are about to become free to the queue that is next, for a claim of the
 * settler's, behind what frees them in the same write: one round trip and one wake less for each
 * job than to let its claimer know. 0 when no queue waits for slots, or when what the settler sent
 * last was refused or lost, so that no slot may become free. */
int emq_worker_claim_ahead(emq_claim_ask *out, emq_worker *worker, uint32_t slots);

/* What came of it, at this time. */
void emq_worker_claimed_ahead(const emq_claim_ask *asked, int result, emq_jobs *jobs, int64_t now);

/* worker_link.c: none of these is called with the mutex held. */

/* 0; EMQ_EINVAL; EMQ_ENOTLS; EMQ_ENOMEM. Connects to nothing. */
int emq_worker_link_init(emq_worker_link *link, emq_worker *worker, const char *name);
void emq_worker_link_clear(emq_worker_link *link);

/* Makes it an open connection, behind the backoff's pause where it failed before; waits at `wake`,
 * at which a change of the phase ends the pause. One attempt: 0, or what went wrong. EMQ_ECLOSED:
 * the worker has come to `last`, or further. */
int emq_worker_link_open(emq_worker_link *link, pthread_cond_t *wake, emq_worker_phase last);

/* Notes what came of a request, closes the connection where it has to be another one, and tells
 * whether the request failed in a way that a later one may not. */
int emq_worker_link_note(emq_worker_link *link, int result);

/* With the mutex held: ends the connection from another thread. Half: nothing is sent any more, so
 * that the server drops what waits there, and an answer that is under way can still be read. */
void emq_worker_link_cut(emq_worker_link *link, int half);

/* Learns the id of an open connection, unless it was asked for since this one and `other` were
 * opened. A user without the right to ask has none, and works all the same. */
void emq_worker_link_learn_id(emq_worker_link *link, const emq_worker_link *other);

/* With the mutex held: whether `other`, which is open, goes to the process that gave `link` its id:
 * ids are counted by each process of a server anew. It was there already when the id was asked for,
 * so that its process has run since, and has been at the address that both are connected to. */
int emq_worker_link_knows_id(const emq_worker_link *link, const emq_worker_link *other);

/* worker_task.c: with the mutex held, unless said otherwise. */

/* Takes the job in. NULL without memory: it is left where it is. */
emq_task *emq_task_take(emq_work_queue *queue, emq_job *job, int64_t now);

/* It counts as running no more. */
void emq_task_stop_running(emq_task *task);

/* Gives it a verdict, and hands it to the settler; one whose lease is lost is done. */
void emq_task_decide(emq_task *task, emq_task_verdict verdict);

/* There is room for another. */
void emq_task_free_slot(emq_task *task);

/* It is settled or given up: the slot is free, and the task too, unless somebody still has it. */
void emq_task_finish(emq_task *task);

/* Frees it when nobody has it any more. */
void emq_task_drop(emq_task *task);

/* Frees it, whoever has it: for the end of the worker. */
void emq_task_destroy(emq_task *task);

/* Sets a notice, unless a worse one stands; the watch tells of it. */
void emq_task_notify(emq_task *task, emq_task_notice notice);

/* Finds out whether the lease ran out by the worker's own clock. */
void emq_task_check_lease(emq_task *task, int64_t now);

int emq_task_is_gone(const emq_task *task); /* lost or given back */

void emq_task_line_init(emq_task_line *line);
void emq_task_line_add(emq_task_line *line, emq_task *task);
emq_task *emq_task_line_take(emq_task_line *line);

/* Room for a beat, made beforehand: a renewal must not fail for want of memory. */
struct emq_beat *emq_worker_new_beat(void);

/* The threads. */
void *emq_worker_claim(void *queue);
void *emq_worker_handle(void *worker);
void *emq_worker_settle(void *worker);
void *emq_worker_renew(void *worker);
void *emq_worker_keep(void *worker);
void *emq_worker_watch(void *worker);

/* worker_backoff.c: the pause behind that many failures. */
int64_t emq_worker_pause_ms(const emq_task *task, int64_t failures);

#endif
