/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps and promotion by workers that know nothing of each other: due jobs start in time, lapsed
 * leases come back, and many workers call hardly more often than one. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "crew.h"
#include "peek.h"

#define CROWD 100

static emq_client_options client;

static int start_server_of_crew(void **state) {
    (void)start_server(state);
    client = options_for_server(&server);
    return 0;
}

static emq_worker *start(emq_task_handler handler, void *user) {
    emq_worker *worker = crew_open(&client, NULL);
    crew_add(worker, "q", handler, user, NULL);
    crew_start(worker);
    return worker;
}

static void a_look_tells_what_is_due(void **state) {
    emq_peek peek;
    emq_id id = {{0}};
    (void)state;
    emq_client *c = open_client(&client);
    EXPECT_RESULT(c, emq_peek_read(&peek, c, "q"), EMQ_OK);
    assert_true(peek.now_ms > 1704067200000);
    assert_true(peek.active_ms == EMQ_PEEK_NONE && peek.schedule_ms == EMQ_PEEK_NONE);
    EXPECT_RESULT(c, emq_schedule(&id, c, "q", "x", 1, (emq_when){EMQ_AT, 5000}), EMQ_OK);
    run(server.admin, "ZADD", "emq:{q}:active", "1234567890123", "JOB0KHTOWnGLuC", NULL);
    EXPECT_RESULT(c, emq_peek_read(&peek, c, "q"), EMQ_OK);
    assert_int_equal(peek.schedule_ms, 5000);
    assert_int_equal(peek.active_ms, 1234567890123);
    run(server.admin, "ZADD", "emq:{q}:active", "-inf", "a", NULL);
    run(server.admin, "ZADD", "emq:{q}:schedule", "XX", "inf", id.text, NULL);
    EXPECT_RESULT(c, emq_peek_read(&peek, c, "q"), EMQ_OK);
    assert_int_equal(peek.active_ms, 0);
    assert_true(peek.schedule_ms == EMQ_PEEK_NONE);
    run(server.admin, "SET", "emq:{q}:active", "no set", NULL);
    EXPECT_RESULT(c, emq_peek_read(&peek, c, "q"), EMQ_EWRONGTYPE);
    assert_int_equal(emq_client_is_open(c), 1);
    EXPECT_RESULT(c, emq_peek_read(&peek, c, "a:b"), EMQ_EQUEUE);
    emq_client_close(c);
}

/* How late jobs start, in microseconds of the host's clock, which is the server's here. */

static atomic_int late_us[64];
static atomic_int late_count;

static int64_t unix_us(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int note_lateness(emq_task *task, void *user) {
    int64_t due_ms = 0;
    (void)user;
    memcpy(&due_ms, emq_task_get_payload(task, NULL), sizeof(due_ms));
    int at = atomic_fetch_add(&late_count, 1);
    atomic_store(&late_us[at % 64], (int)(unix_us() - due_ms * 1000));
    return EMQ_TASK_COMPLETE;
}

static int count_run(emq_task *task, void *user) {
    (void)task;
    (void)user;
    atomic_fetch_add(&late_count, 1);
    return EMQ_TASK_COMPLETE;
}

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static int get_median(int count) {
    int values[64];
    for (int i = 0; i < count; i++) {
        values[i] = atomic_load(&late_us[i]);
        assert_true(values[i] >= 0); /* never before its time */
    }
    qsort(values, (size_t)count, sizeof(values[0]), compare);
    return values[count / 2];
}

static void schedule_in(emq_client *producer, int64_t ms) {
    emq_id id = {{0}};
    int64_t due_ms = unix_us() / 1000 + ms;
    int result =
        emq_schedule(&id, producer, "q", &due_ms, sizeof(due_ms), (emq_when){EMQ_AT, due_ms});
    EXPECT_RESULT(producer, result, EMQ_OK);
}

/* The beat is so long that only the early answer to a claim that waits can tell of the job. The
 * lateness is printed; what is held is that each runs, and none before its time. */
static void a_scheduled_job_starts_in_time(void **state) {
    const int count = 30;
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    (void)state;
    options.sweep_interval_ms = 600000;
    atomic_store(&late_count, 0);
    emq_client *producer = open_client(&client);
    emq_worker *workers[3];
    for (int i = 0; i < 3; i++) {
        workers[i] = crew_open(&client, &options);
        crew_add(workers[i], "q", note_lateness, NULL, NULL);
        crew_start(workers[i]);
    }
    for (int i = 0; i < count; i++) {
        schedule_in(producer, 100);
        crew_await_int("it has run", &late_count, i + 1);
    }
    print_message("scheduled 100 ms ahead: %d us late at the median\n", get_median(count));
    for (int i = 0; i < 3; i++) {
        crew_end(workers[i]);
    }
    emq_client_close(producer);
}

/* A lease that has lapsed, as a worker that died leaves it; nobody can claim the job before. */
static void lapse_one(void) {
    char row[EMQ_KEY_MAX + 1];
    emq_id id = {{0}};
    assert_int_equal(emq_id_mint(&id, "JOB"), EMQ_OK);
    assert_true(emq_key_job(row, sizeof(row), "q", &id) > 0);
    run(server.admin, "HSET", row, "state", "active", "attempts", "1", "payload", "12345678", NULL);
    run(server.admin, "ZADD", "emq:{q}:active", "1", id.text, NULL);
}

static void a_lapsed_lease_comes_back(void **state) {
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    lapse_one();
    emq_worker *worker = start(crew_return, &verdict);
    CREW_AWAIT(worker, completed, 1);
    assert_int_equal(crew_stats(worker).recovered, 1);
    crew_end(worker);
}

static void who_must_not_sweep_does_not(void **state) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    options.no_sweeps = 1;
    lapse_one();
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    crew_start(worker);
    crew_enqueue("q", "y", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_nap(1500);
    assert_int_equal(crew_calls("EMQ.STALLED.CHECK"), 0);
    assert_int_equal(crew_calls("EMQ.PROMOTE"), 0);
    assert_int_equal(crew_counts("q").active, 1);
    crew_end(worker);
}

/* A sweep passes over what is another sweep's, and it stays due for ever. */
static void what_no_sweep_moves_is_not_swept_at_for_ever(void **state) {
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    run(server.admin, "HSET", "emq:{q}:job:JOB0KHTOWnGLuC", "state", "active", "attempts", "1",
        "payload", "x", "group", "lane", NULL);
    run(server.admin, "ZADD", "emq:{q}:active", "1", "JOB0KHTOWnGLuC", NULL);
    emq_worker *worker = start(crew_return, &verdict);
    CREW_AWAIT(worker, sweeps, 2);
    assert_int_equal(crew_stats(worker).recovered, 0);
    crew_nap(3000);
    assert_in_range(crew_stats(worker).sweeps, 2, 6);
    crew_end(worker);
}

/* A hundred idle workers, and what they find to do: the calls of all of them are few, whoever does
 * them. When all but one are gone, he does the same alone. */
static void a_crowd_sweeps_no_more_than_it_must(void **state) {
    static emq_worker *crowd[CROWD];
    const int rounds = 10;
    (void)state;
    atomic_store(&late_count, 0);
    emq_client *c = open_client(&client);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = start(count_run, NULL);
    }
    crew_nap(1000);
    run(server.admin, "CONFIG", "RESETSTAT", NULL);
    int64_t start_us = unix_us();
    for (int i = 0; i < rounds; i++) {
        schedule_in(c, 500);
        lapse_one();
        crew_await_int("both have run", &late_count, 2 * (i + 1));
        crew_nap(200);
    }
    double seconds = (double)(unix_us() - start_us) / 1e6;
    long long calls = crew_calls("EMQ.STALLED.CHECK") + crew_calls("EMQ.PROMOTE");
    print_message("%d workers, %d rounds in %.1f s: %lld sweep calls, %.1f a second\n", CROWD,
                  rounds, seconds, calls, (double)calls / seconds);
    assert_true((double)calls <= 10 * seconds);
    for (int i = 1; i < CROWD; i++) {
        assert_int_equal(emq_worker_stop(crowd[i], 0), EMQ_OK);
    }
    for (int i = 1; i < CROWD; i++) {
        emq_worker_free(crowd[i]);
    }
    lapse_one();
    crew_await_int("the last one found it", &late_count, 2 * rounds + 1);
    crew_end(crowd[0]);
    emq_client_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_look_tells_what_is_due, crew_clean),
        cmocka_unit_test_setup(a_scheduled_job_starts_in_time, crew_clean),
        cmocka_unit_test_setup(a_lapsed_lease_comes_back, crew_clean),
        cmocka_unit_test_setup(who_must_not_sweep_does_not, crew_clean),
        cmocka_unit_test_setup(what_no_sweep_moves_is_not_swept_at_for_ever, crew_clean),
        cmocka_unit_test_setup(a_crowd_sweeps_no_more_than_it_must, crew_clean),
    };
    return RUN_SERVER_TESTS("worker_sweep", tests, start_server_of_crew, stop_server);
}
