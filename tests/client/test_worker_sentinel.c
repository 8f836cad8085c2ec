/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that finds its primary through sentinels: three real ones, which watch a primary and its
 * replica. What was replicated before a failover is worked to its end behind it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "crew.h"
#include "watch.h"

#define JOBS 200
#define BEFORE 40 /* jobs that are done when the primary goes */
#define WORK_MS 20

/* Long enough for a slow machine, and short enough to try again in time. */
#define CONNECT_MS 6000

static atomic_int runs[JOBS];

static emq_client_options patient_options(void) {
    emq_client_options options = options_for_watch(&watched);
    options.connect_timeout_ms = CONNECT_MS;
    options.command_timeout_ms = CONNECT_MS;
    return options;
}

/* Jobs that the replica has as well: what was not replicated is lost with its primary. */
static void enqueue_jobs(const char *queue) {
    static const char *const words[] = {"WAIT", "1", "0"};
    char payload[16];
    emq_reply *reply = NULL;
    emq_client_options options = options_for_watch(&watched);
    emq_client *client = open_client(&options);
    for (int i = 0; i < JOBS; i++) {
        emq_id id = {{0}};
        int n = snprintf(payload, sizeof(payload), "%d", i);
        EXPECT_RESULT(client, emq_enqueue(&id, client, queue, payload, (size_t)n), EMQ_OK);
        atomic_store(&runs[i], 0);
    }
    EXPECT_RESULT(client, emq_client_command(&reply, client, 3, words, NULL), EMQ_OK);
    assert_int_equal(emq_reply_get_integer(reply), 1);
    emq_reply_free(reply);
    emq_client_close(client);
}

static int work(emq_task *task, void *user) {
    (void)user;
    crew_nap(WORK_MS);
    atomic_fetch_add(&runs[atoi(emq_task_get_payload(task, NULL))], 1);
    return EMQ_TASK_COMPLETE;
}

static emq_worker *start_worker(const char *queue) {
    emq_client_options client = patient_options();
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue settings = EMQ_WORKER_QUEUE_INIT;
    options.concurrency = 4;
    options.sweep_interval_ms = 100;
    options.backoff_max_ms = 200;
    settings.lease_ms = 3000;
    settings.max_attempts = EMQ_WORKER_UNLIMITED;
    settings.max_stalled = 1000; /* a slow machine buries nothing */
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, queue, work, NULL, &settings);
    crew_start(worker);
    return worker;
}

/* The queue as the primary of the moment has it; a failover may be going on. */
typedef struct look {
    const char *queue;
    int64_t wanted;
    emq_client *client;
    emq_counts counts;
} look;

static int is_done(void *data) {
    look *l = data;
    int result = emq_client_is_open(l->client) ? EMQ_OK : emq_client_reconnect(l->client);
    l->counts = (emq_counts)EMQ_COUNTS_INIT;
    result = result ? result : emq_counts_read(&l->counts, l->client, l->queue);
    return result == EMQ_OK && l->counts.completed >= l->wanted;
}

static void expect_done(const char *queue, int64_t jobs) {
    emq_client_options options = patient_options();
    look l = {.queue = queue, .wanted = jobs, .client = open_client(&options)};
    wait_until("all jobs are completed", is_done, &l);
    emq_client_close(l.client);
    assert_int_equal(l.counts.completed, jobs); /* each once, whatever ran twice */
    assert_int_equal(l.counts.pending + l.counts.active + l.counts.scheduled + l.counts.dead, 0);
    for (int i = 0; i < JOBS; i++) {
        assert_true(atomic_load(&runs[i]) > 0);
    }
}

static void a_killed_primary_costs_no_job(void **state) {
    (void)state;
    watch_settle(&watched);
    test_server *old = watch_primary(&watched);
    enqueue_jobs("killed");
    emq_worker *worker = start_worker("killed");
    CREW_AWAIT(worker, completed, BEFORE);
    server_kill(old);
    CREW_AWAIT(worker, completed, BEFORE + JOBS / 4); /* on another server */
    assert_true(crew_stats(worker).reconnects > 0);
    expect_done("killed", JOBS);
    crew_end(worker);
    server_revive(old);
    watch_settle(&watched);
    assert_ptr_not_equal(watch_primary(&watched), old);
}

static int is_left(void *old) {
    return watch_primary(&watched) != old;
}

/* The old one is there, and a replica now: its refusals lead to the new one. */
static void a_primary_that_is_demoted_is_left(void **state) {
    (void)state;
    watch_settle(&watched);
    test_server *old = watch_primary(&watched);
    enqueue_jobs("demoted");
    emq_worker *worker = start_worker("demoted");
    CREW_AWAIT(worker, completed, BEFORE);
    run(watched.sentinels[0].admin, "SENTINEL", "FAILOVER", WATCH_NAME, NULL);
    wait_until("another one is the primary", is_left, old);
    watch_settle(&watched);
    enqueue_jobs("demoted");
    expect_done("demoted", 2 * JOBS);
    crew_end(worker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_primary_costs_no_job),
        cmocka_unit_test(a_primary_that_is_demoted_is_left),
    };
    return RUN_SERVER_TESTS("worker_sentinel", tests, start_watch, stop_watch);
}
