/* SPDX-License-Identifier: Apache-2.0 */
/* The run of `emq bench`: a thread for each connection takes window after window of jobs from
 * enqueue to complete, and a ledger holds what was delivered. A claim may get another connection's
 * job: each has enqueued as many as it claims, so that there is one. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define LEASE_MS 3600000 /* no lease lapses while its job is measured */
#define LOOK_MS 20       /* how often it is looked for a signal */

/* What the ledger knows of a job. */
enum { MARK_NONE, MARK_SENT, MARK_CLAIMED, MARK_COMPLETED };

typedef struct shared {
    const bench_plan *plan;
    atomic_uchar *marks; /* of each job */
    atomic_size_t next;  /* job that nobody has begun */
    atomic_size_t enqueued;
    atomic_size_t completed;
    atomic_size_t wrong;
    atomic_size_t running; /* threads */
    atomic_int has_failed; /* the first failure is known; others may follow from it */
    atomic_int stop;       /* no window is begun any more */
} shared;

/* One connection. */
typedef struct lane {
    shared *all;
    pthread_t thread;
    int is_started;
    emq_client *client;
    emq_pipeline *pipeline;
    char *payload;
    emq_lease *leases;             /* of the window */
    uint64_t *jobs;                /* whose leases these are */
    size_t first;                  /* job of the window */
    size_t count;                  /* jobs of it */
    size_t held;                   /* leases of it */
    double *samples[BENCH_PHASES]; /* milliseconds of each window */
    size_t windows;
    size_t done; /* jobs that went through all phases */
    double end_ms;
    int result;
    int is_first; /* to fail, of all */
    const char *what;
    char detail[256];
} lane;

static double now_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1000000;
}

/* --- the ledger --- */

static void move_mark(shared *all, uint64_t job, unsigned char from, unsigned char to) {
    if (job >= all->plan->jobs || !atomic_compare_exchange_strong(&all->marks[job], &from, to)) {
        (void)atomic_fetch_add(&all->wrong, 1);
    }
}

/* --- the phases of a window: what is sent, and what is made of the answers --- */

static int add_enqueue(lane *l, size_t i) {
    const bench_plan *plan = l->all->plan;
    emq_id id = {{0}};
    uint64_t job = l->first + i;
    memcpy(l->payload, &job, sizeof(job));
    move_mark(l->all, job, MARK_NONE, MARK_SENT);
    return emq_pipeline_enqueue(l->pipeline, &id, plan->queue, l->payload, plan->payload);
}

static int add_claim(lane *l, size_t i) {
    (void)i;
    return emq_pipeline_claim(l->pipeline, l->all->plan->queue, LEASE_MS);
}

static int add_complete(lane *l, size_t i) {
    return i < l->held ? emq_pipeline_complete(l->pipeline, &l->leases[i]) : EMQ_OK;
}

static void take_enqueue(lane *l, size_t i) {
    (void)i;
    (void)atomic_fetch_add(&l->all->enqueued, 1);
}

static void take_claim(lane *l, size_t i) {
    size_t n = 0;
    uint64_t number = UINT64_MAX;
    emq_job *job = emq_pipeline_take_job(l->pipeline, i);
    const void *payload = emq_job_get_payload(job, &n);
    if (n == l->all->plan->payload) {
        memcpy(&number, payload, sizeof(number));
    }
    move_mark(l->all, number, MARK_SENT, MARK_CLAIMED);
    l->leases[l->held] = *emq_job_get_lease(job);
    l->jobs[l->held++] = number;
    emq_job_free(job);
}

static void take_complete(lane *l, size_t i) {
    move_mark(l->all, l->jobs[i], MARK_CLAIMED, MARK_COMPLETED);
    (void)atomic_fetch_add(&l->all->completed, 1);
}

static const struct {
    const char *what;
    int (*add)(lane *l, size_t i);
    void (*take)(lane *l, size_t i);
} phases[BENCH_PHASES] = {
    [BENCH_ENQUEUE] = {"cannot enqueue", add_enqueue, take_enqueue},
    [BENCH_CLAIM] = {"cannot claim", add_claim, take_claim},
    [BENCH_COMPLETE] = {"cannot complete", add_complete, take_complete},
};

/* --- a connection --- */

static void note_failure(lane *l, int result, const char *what, const char *detail) {
    if (l->result == EMQ_OK && result != EMQ_OK) {
        l->result = result;
        l->what = what;
        (void)snprintf(l->detail, sizeof(l->detail), "%s", detail);
        l->is_first = !atomic_exchange(&l->all->has_failed, 1);
        atomic_store(&l->all->stop, 1);
    }
}

/* Those of a window that were answered count, also when others were not. */
static void run_phase(lane *l, bench_phase phase) {
    int result = EMQ_OK;
    double start_ms = now_ms();
    for (size_t i = 0; i < l->count && result == EMQ_OK; i++) {
        result = phases[phase].add(l, i);
    }
    size_t entries = emq_pipeline_get_count(l->pipeline);
    if (result == EMQ_OK && entries != 0) {
        result = emq_pipeline_run(l->pipeline);
    }
    l->samples[phase][l->windows] = now_ms() - start_ms;
    note_failure(l, result, phases[phase].what, emq_client_get_error(l->client));
    for (size_t i = 0; i < entries; i++) {
        result = emq_pipeline_get_result(l->pipeline, i);
        if (result == EMQ_OK) {
            phases[phase].take(l, i);
        } else {
            note_failure(l, result, phases[phase].what, emq_pipeline_get_error(l->pipeline, i));
        }
    }
    emq_pipeline_clear(l->pipeline);
}

/* The next window of jobs that nobody has begun. 0: there is none. */
static int begin_window(lane *l) {
    const bench_plan *plan = l->all->plan;
    if (atomic_load(&l->all->stop) != 0) {
        return 0;
    }
    l->first = atomic_fetch_add(&l->all->next, plan->depth);
    if (l->first >= plan->jobs) {
        return 0;
    }
    size_t left = plan->jobs - l->first;
    l->count = left < plan->depth ? left : plan->depth;
    l->held = 0;
    return 1;
}

/* A window is taken to its end, whatever happens meanwhile: so little is left to be removed. */
static void *run_lane(void *user) {
    lane *l = user;
    while (l->result == EMQ_OK && begin_window(l)) {
        for (bench_phase phase = BENCH_ENQUEUE; phase < BENCH_PHASES; phase++) {
            run_phase(l, phase);
        }
        if (l->result == EMQ_OK) {
            l->windows++;
            l->done += l->count;
        }
    }
    l->end_ms = now_ms();
    (void)atomic_fetch_sub(&l->all->running, 1);
    return NULL;
}

static void open_lane(lane *l, shared *all) {
    const bench_plan *plan = all->plan;
    size_t windows = plan->jobs / plan->depth + 2;
    l->all = all;
    l->payload = malloc(plan->payload);
    l->leases = calloc(plan->depth, sizeof(*l->leases));
    l->jobs = calloc(plan->depth, sizeof(*l->jobs));
    int is_whole = l->payload != NULL && l->leases != NULL && l->jobs != NULL;
    for (size_t i = 0; i < BENCH_PHASES; i++) {
        l->samples[i] = calloc(windows, sizeof(*l->samples[i]));
        is_whole = is_whole && l->samples[i] != NULL;
    }
    if (!is_whole) {
        note_failure(l, EMQ_ENOMEM, "cannot begin", "");
        return;
    }
    memset(l->payload, 'x', plan->payload);
    int result = emq_client_open(&l->client, &plan->options);
    if (result == EMQ_OK) {
        result = emq_pipeline_new(&l->pipeline, l->client);
    }
    note_failure(l, result, "cannot connect", emq_client_get_error(l->client));
}

static void close_lane(lane *l) {
    emq_pipeline_free(l->pipeline);
    emq_client_close(l->client);
    free(l->payload);
    free(l->leases);
    free(l->jobs);
    for (size_t i = 0; i < BENCH_PHASES; i++) {
        free(l->samples[i]);
    }
}

/* --- the run --- */

static void start_lanes(shared *all, lane *lanes) {
    for (size_t i = 0; i < all->plan->connections && atomic_load(&all->stop) == 0; i++) {
        (void)atomic_fetch_add(&all->running, 1);
        int error = pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]);
        if (error != 0) {
            (void)atomic_fetch_sub(&all->running, 1);
            note_failure(&lanes[i], EMQ_ESYSTEM, "cannot start a thread", strerror(error));
            return;
        }
        lanes[i].is_started = 1;
    }
}

static void wait_for_lanes(shared *all, lane *lanes) {
    double end_ms = now_ms() + (double)all->plan->limit_ms;
    while (atomic_load(&all->running) != 0) {
        static const struct timespec look = {0, LOOK_MS * 1000000L};
        (void)nanosleep(&look, NULL);
        if (tool_stop != 0 || now_ms() >= end_ms) {
            atomic_store(&all->stop, 1);
        }
    }
    for (size_t i = 0; i < all->plan->connections; i++) {
        if (lanes[i].is_started) {
            (void)pthread_join(lanes[i].thread, NULL);
        }
    }
}

static int compare(const void *a, const void *b) {
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

/* Over all connections: the sum of their rates, the points of all samples together. */
static void sum_up_phase(bench_outcome *out, const lane *lanes, size_t count, bench_phase phase) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += lanes[i].windows;
    }
    double *all = calloc(total + 1, sizeof(*all));
    if (all == NULL) {
        out->result = EMQ_ENOMEM;
        return;
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        double spent_ms = 0;
        for (size_t j = 0; j < lanes[i].windows; j++) {
            all[at] = lanes[i].samples[phase][j];
            spent_ms += all[at++];
        }
        out->rates[phase] += spent_ms > 0 ? (double)lanes[i].done * 1000 / spent_ms : 0;
    }
    qsort(all, total, sizeof(*all), compare);
    out->p50_ms[phase] = all[total / 2 < total ? total / 2 : 0];
    out->p99_ms[phase] = all[total * 99 / 100 < total ? total * 99 / 100 : 0];
    free(all);
}

static void sum_up(bench_outcome *out, const shared *all, const lane *lanes, double start_ms) {
    for (size_t i = 0; i < all->plan->connections; i++) {
        double seconds = (lanes[i].end_ms - start_ms) / 1000;
        out->seconds = seconds > out->seconds ? seconds : out->seconds;
        if (lanes[i].is_first) {
            out->result = lanes[i].result;
            (void)snprintf(out->what, sizeof(out->what), "%s", lanes[i].what);
            (void)snprintf(out->detail, sizeof(out->detail), "%s", lanes[i].detail);
        }
    }
    out->enqueued = atomic_load(&all->enqueued);
    out->completed = atomic_load(&all->completed);
    out->wrong = atomic_load(&all->wrong);
    for (bench_phase phase = BENCH_ENQUEUE; phase < BENCH_PHASES; phase++) {
        sum_up_phase(out, lanes, all->plan->connections, phase);
    }
}

void bench_run(bench_outcome *out, const bench_plan *plan) {
    shared all = {.plan = plan};
    memset(out, 0, sizeof(*out));
    all.marks = calloc(plan->jobs, sizeof(*all.marks));
    lane *lanes = calloc(plan->connections, sizeof(*lanes));
    if (all.marks == NULL || lanes == NULL) {
        out->result = EMQ_ENOMEM;
        (void)snprintf(out->what, sizeof(out->what), "cannot begin");
        free(all.marks);
        free(lanes);
        return;
    }
    for (size_t i = 0; i < plan->connections; i++) {
        open_lane(&lanes[i], &all);
    }
    double start_ms = now_ms();
    start_lanes(&all, lanes);
    wait_for_lanes(&all, lanes);
    sum_up(out, &all, lanes, start_ms);
    for (size_t i = 0; i < plan->connections; i++) {
        close_lane(&lanes[i]);
    }
    free(all.marks);
    free(lanes);
}
