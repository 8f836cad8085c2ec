/* SPDX-License-Identifier: Apache-2.0 */
/* Many small bursts of jobs of two queues, some of whose tasks end later or come back: none may
 * wait while handlers are idle, and what is counted in hand must come to nothing. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "crew.h"
#include "worker.h"

#define BURSTS 120
#define BURST_MAX 6
#define SETTLERS 2
#define STOPS 60
#define STOP_JOBS 120
#define KEPT_MAX 256

static emq_client_options client;

static int start_server_of_crew(void **state) {
    (void)start_server(state);
    client = options_for_server(&server);
    return 0;
}

/* Numbers by chance that are the same in each run; of one thread. */
static uint32_t draw(uint32_t *seed, uint32_t end) {
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 16) % end;
}

/* Tasks that are settled later, by threads of the test. */
typedef struct shelf {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    emq_task *tasks[KEPT_MAX];
    size_t count;
    int is_over;
    atomic_uint turn;
} shelf;

static void keep(shelf *s, emq_task *task) {
    (void)pthread_mutex_lock(&s->mutex);
    if (s->count == KEPT_MAX) {
        fail_msg("more tasks than may be in hand");
    }
    s->tasks[s->count++] = task;
    (void)pthread_cond_signal(&s->filled);
    (void)pthread_mutex_unlock(&s->mutex);
}

static emq_task *take(shelf *s) {
    (void)pthread_mutex_lock(&s->mutex);
    while (s->count == 0 && !s->is_over) {
        (void)pthread_cond_wait(&s->filled, &s->mutex);
    }
    emq_task *task = s->count > 0 ? s->tasks[--s->count] : NULL;
    (void)pthread_mutex_unlock(&s->mutex);
    return task;
}

static void *settle(void *data) {
    shelf *s = data;
    uint32_t seed = 7;
    for (emq_task *task = take(s); task != NULL; task = take(s)) {
        if (draw(&seed, 2) == 0) {
            crew_nap(1);
        }
        (void)emq_task_complete(task);
        emq_task_free(task);
    }
    return NULL;
}

/* Completed here, or by another thread later; or given back first. */
static int end_in_some_way(emq_task *task, void *user) {
    shelf *s = user;
    unsigned int turn = atomic_fetch_add(&s->turn, 1);
    if (turn % 3 == 0) {
        keep(s, task);
        return EMQ_TASK_LATER;
    }
    if (emq_task_get_attempts(task) == 1 && turn % 16 == 1) {
        return EMQ_TASK_REQUEUE;
    }
    return EMQ_TASK_COMPLETE;
}

static unsigned long long send_burst(emq_client *sender, uint32_t *seed) {
    uint32_t count = 1 + draw(seed, BURST_MAX);
    const char *queue = draw(seed, 3) == 0 ? "b" : "a";
    for (uint32_t i = 0; i < count; i++) {
        emq_id id = {{0}};
        EXPECT_RESULT(sender, emq_enqueue(&id, sender, queue, "x", 1), EMQ_OK);
    }
    return count;
}

static int count_run(emq_task *task, void *user) {
    (void)task;
    atomic_fetch_add((atomic_int *)user, 1);
    return EMQ_TASK_COMPLETE;
}

static void check_counts(emq_worker *worker) {
    emq_worker_lock(worker);
    assert_int_equal(worker->held, 0);
    assert_int_equal(worker->granted, 0);
    assert_int_equal(worker->claims_out, 0);
    assert_int_equal(worker->running, 0);
    assert_int_equal(worker->in_handlers, 0);
    assert_int_equal(worker->waiting.count, 0);
    assert_int_equal(worker->decided.count, 0);
    assert_int_equal(worker->stats.settling, 0);
    emq_worker_unlock(worker);
}

/* Every other burst is waited for, so that the next one finds all handlers asleep. */
static void run_bursts(emq_worker *worker) {
    emq_client *sender = open_client(&client);
    unsigned long long sent = 0;
    uint32_t seed = 1;
    for (int i = 0; i < BURSTS; i++) {
        sent += send_burst(sender, &seed);
        if (i % 2 == 0) {
            CREW_AWAIT(worker, completed, sent);
        }
    }
    CREW_AWAIT(worker, completed, sent);
    emq_client_close(sender);
}

static void run_worker(shelf *s, uint32_t concurrency, uint32_t prefetch) {
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    works.concurrency = concurrency;
    works.prefetch = prefetch;
    emq_worker *worker = crew_open(&client, &works);
    crew_add(worker, "a", end_in_some_way, s, NULL);
    crew_add(worker, "b", end_in_some_way, s, NULL);
    crew_start(worker);
    run_bursts(worker);
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    assert_string_equal(emq_err_name(emq_worker_wait(NULL, worker, LONG_MS)), "EMQ_OK");
    check_counts(worker);
    emq_worker_free(worker);
}

static void no_job_waits_while_handlers_are_idle(void **state) {
    static const uint32_t concurrencies[] = {1, 2, 3, 6, 16, 64};
    static shelf s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};
    pthread_t settlers[SETTLERS];
    (void)state;
    for (int i = 0; i < SETTLERS; i++) {
        assert_int_equal(pthread_create(&settlers[i], NULL, settle, &s), 0);
    }
    for (size_t i = 0; i < sizeof(concurrencies) / sizeof(concurrencies[0]); i++) {
        run_worker(&s, concurrencies[i], 0);
        run_worker(&s, concurrencies[i], 3);
    }
    (void)pthread_mutex_lock(&s.mutex);
    s.is_over = 1;
    (void)pthread_cond_broadcast(&s.filled);
    (void)pthread_mutex_unlock(&s.mutex);
    for (int i = 0; i < SETTLERS; i++) {
        (void)pthread_join(settlers[i], NULL);
    }
}

/* A claim may be on its way, alone or behind completes, and jobs in any state: on a server that
 * answers, none is left under a lease, and each that was not taken back in its run runs once. */
static void a_stop_at_any_moment_leaves_nothing_in_hand(void **state) {
    uint32_t seed = 3;
    (void)state;
    for (int i = 0; i < STOPS; i++) {
        emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
        atomic_int ran = 0;
        (void)crew_clean(NULL);
        crew_enqueue_many("a", STOP_JOBS);
        works.concurrency = 1 + draw(&seed, 8);
        works.prefetch = draw(&seed, 3);
        emq_worker *worker = crew_open(&client, &works);
        crew_add(worker, "a", count_run, &ran, NULL);
        crew_add(worker, "b", count_run, &ran, NULL);
        crew_start(worker);
        crew_await_int("some ran", &ran, (int)draw(&seed, STOP_JOBS));
        assert_int_equal(emq_worker_stop(worker, i % 2 == 0 ? 0 : LONG_MS), EMQ_OK);
        assert_string_equal(emq_err_name(emq_worker_wait(NULL, worker, LONG_MS)), "EMQ_OK");
        check_counts(worker);
        emq_worker_stats stats = crew_stats(worker);
        emq_worker_free(worker);
        emq_counts counts = crew_counts("a");
        assert_int_equal(counts.active, 0);
        assert_int_equal(counts.pending + counts.completed, STOP_JOBS);
        assert_int_equal(stats.completed, counts.completed);
        if (i % 2 != 0) {
            assert_int_equal(atomic_load(&ran), counts.completed);
        }
    }
}

static int are_idle(void *data) {
    emq_worker *worker = data;
    emq_worker_lock(worker);
    int found = worker->idle == worker->options.concurrency;
    emq_worker_unlock(worker);
    return found;
}

/* As if those that are said to be on their way had never been woken. */
static void a_wake_that_was_lost_is_made_up_for(void **state) {
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    atomic_int ran = 0;
    (void)state;
    works.concurrency = 4;
    emq_worker *worker = crew_open(&client, &works);
    crew_add(worker, "a", count_run, &ran, NULL);
    crew_start(worker);
    wait_until("all handlers are idle", are_idle, worker);
    emq_worker_lock(worker);
    worker->waking = works.concurrency;
    emq_worker_unlock(worker);
    crew_enqueue("a", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_job_waits_while_handlers_are_idle, crew_clean),
        cmocka_unit_test_setup(a_stop_at_any_moment_leaves_nothing_in_hand, crew_clean),
        cmocka_unit_test_setup(a_wake_that_was_lost_is_made_up_for, crew_clean),
    };
    return RUN_SERVER_TESTS("worker_bursts", tests, start_server_of_crew, stop_server);
}
