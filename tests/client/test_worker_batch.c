/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker sends together: completes that were decided while its settler was busy, and the
 * claim of the next jobs behind them. The settler is kept busy by the hook, which it calls. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "crew.h"
#include "cutter.h"

#define JOBS 5 /* one, and those that are decided behind it */
#define RIDERS 8
#define MANY 1000

static emq_client_options client;

static int start_server_of_crew(void **state) {
    (void)start_server(state);
    client = options_for_server(&server);
    return 0;
}

/* A hook that keeps the settler at the first success, and counts. */
typedef struct desk {
    atomic_int arrived;
    atomic_int is_open;
    atomic_int successes;
    atomic_int losses;
    atomic_int failures;
    atomic_int failure; /* the result that the last failure told */
} desk;

static void keep_the_settler(const emq_worker_event *event, void *user) {
    desk *d = user;
    if (event->kind == EMQ_WORKER_SUCCESS && atomic_fetch_add(&d->successes, 1) == 0) {
        atomic_store(&d->arrived, 1);
        while (!atomic_load(&d->is_open)) {
            crew_nap(1);
        }
    } else if (event->kind == EMQ_WORKER_LOST) {
        atomic_fetch_add(&d->losses, 1);
    } else if (event->kind == EMQ_WORKER_FAILURE) {
        atomic_fetch_add(&d->failures, 1);
        atomic_store(&d->failure, event->result);
    }
}

static int are_decided(void *data) {
    emq_worker_stats stats = crew_stats(data);
    return stats.claimed == JOBS && stats.running == 0 && stats.waiting == 0;
}

/* A worker whose settler is busy, and that has decided to complete the jobs of `ids`. */
static emq_worker *decide_together(desk *d, emq_id ids[JOBS], const emq_client_options *options) {
    static int verdict = EMQ_TASK_COMPLETE;
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    memset(d, 0, sizeof(*d));
    works.concurrency = JOBS;
    works.backoff_max_ms = 200;
    works.hook = keep_the_settler;
    works.hook_user = d;
    emq_worker *worker = crew_open(options, &works);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    crew_start(worker);
    crew_enqueue("q", "x", &ids[0]);
    crew_await_int("the settler is busy", &d->arrived, 1);
    for (int i = 1; i < JOBS; i++) {
        crew_enqueue("q", "x", &ids[i]);
    }
    wait_until("they are decided", are_decided, worker);
    return worker;
}

static void jobs_that_end_together_are_completed_in_one_call(void **state) {
    emq_id ids[JOBS] = {{{0}}};
    desk d;
    (void)state;
    emq_worker *worker = decide_together(&d, ids, &client);
    assert_int_equal(crew_calls("EMQ.COMPLETES"), 0);
    atomic_store(&d.is_open, 1);
    CREW_AWAIT(worker, completed, JOBS);
    crew_end(worker);
    assert_int_equal(crew_calls("EMQ.COMPLETE"), 1);
    assert_int_equal(crew_calls("EMQ.COMPLETES"), 1);
    assert_int_equal(atomic_load(&d.successes), JOBS);
    assert_int_equal(crew_counts("q").completed, JOBS);
}

/* One is stale, one has become a lane's, and one is gone: each is told what it is. */
static void what_a_batch_refuses_is_asked_alone(void **state) {
    emq_id ids[JOBS] = {{{0}}};
    char row[128];
    desk d;
    (void)state;
    emq_worker *worker = decide_together(&d, ids, &client);
    run(server.admin, "ZREM", "emq:{q}:active", ids[1].text, NULL);
    (void)snprintf(row, sizeof(row), "emq:{q}:job:%s", ids[2].text);
    run(server.admin, "HSET", row, "group", "g", NULL);
    atomic_store(&d.is_open, 1);
    CREW_AWAIT(worker, completed, JOBS - 2);
    CREW_AWAIT(worker, refused, 1);
    CREW_AWAIT(worker, unsettled, 1);
    crew_await_int("the hook was told of the lost one", &d.losses, 1);
    crew_await_int("and of the other", &d.failures, 1);
    assert_int_equal(atomic_load(&d.failure), EMQ_ELANE);
    crew_end(worker);
    assert_int_equal(crew_calls("EMQ.COMPLETES"), 1);
    assert_int_equal(crew_calls("EMQ.COMPLETE"), 3);
    emq_row *left = crew_row("q", &ids[2]);
    emq_row_free(left);
}

/* The right to EMQ.COMPLETE is enough. */
static void a_batch_without_the_right_to_it_is_sent_one_by_one(void **state) {
    emq_id ids[JOBS] = {{{0}}};
    desk d;
    (void)state;
    run(server.admin, "ACL", "SETUSER", "default", "-emq.completes", NULL);
    emq_worker *worker = decide_together(&d, ids, &client);
    atomic_store(&d.is_open, 1);
    CREW_AWAIT(worker, completed, JOBS);
    crew_end(worker);
    run(server.admin, "ACL", "SETUSER", "default", "+emq.completes", NULL);
    assert_int_equal(crew_calls("EMQ.COMPLETE"), JOBS);
}

/* A claim rides into slots that a refusal does not free: what it hands over has been given to a
 * worker in vain, and that often counts. */
static void no_claim_rides_behind_what_is_refused(void **state) {
    static int verdict = EMQ_TASK_COMPLETE;
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    (void)state;
    run(server.admin, "ACL", "SETUSER", "default", "-emq.completes", NULL);
    works.concurrency = RIDERS;
    works.backoff_max_ms = 50;
    crew_enqueue_many("q", MANY);
    emq_worker *worker = crew_open(&client, &works);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    crew_start(worker);
    CREW_AWAIT(worker, completed, MANY);
    emq_worker_stats stats = crew_stats(worker);
    crew_end(worker);
    run(server.admin, "ACL", "SETUSER", "default", "+emq.completes", NULL);
    assert_in_range(stats.overshoot, 0, RIDERS);
}

static void a_batch_whose_connection_is_cut_is_done_once(void **state) {
    (void)state;
    for (int point = CUT_REQUEST; point < CUT_POINTS; point++) {
        emq_client_options options = client;
        emq_id ids[JOBS] = {{{0}}};
        desk d;
        (void)crew_clean(NULL);
        cutter *proxy = cutter_start(&server);
        options.unix_path = cutter_socket(proxy);
        options.host = NULL;
        emq_worker *worker = decide_together(&d, ids, &options);
        cutter_arm(proxy, (cut_point)point, "EMQ.COMPLETES", 1);
        atomic_store(&d.is_open, 1);
        cutter_wait(proxy);
        CREW_AWAIT(worker, completed, JOBS);
        emq_worker_stats stats = crew_stats(worker);
        assert_int_equal(stats.lost + stats.refused + stats.unsettled, 0);
        assert_int_equal(crew_counts("q").completed, JOBS);
        crew_end(worker);
        cutter_stop(proxy);
    }
}

static void count_losses(const emq_worker_event *event, void *user) {
    atomic_int *lost = user;
    if (event->kind == EMQ_WORKER_TROUBLE && event->queue == NULL &&
        event->result == EMQ_ECONNLOST) {
        atomic_fetch_add(lost, 1);
    }
}

/* The complete was answered, and the job that was handed over is lost until its lease lapses: the
 * program is told. */
static void the_loss_of_a_claim_that_rode_is_told(void **state) {
    static int verdict = EMQ_TASK_COMPLETE;
    emq_client_options options = client;
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    atomic_int lost = 0;
    (void)state;
    cutter *proxy = cutter_start(&server);
    options.unix_path = cutter_socket(proxy);
    options.host = NULL;
    works.hook = count_losses;
    works.hook_user = &lost;
    works.backoff_max_ms = 200;
    queue.lease_ms = 1000;
    crew_enqueue_many("q", 2);
    cutter_arm(proxy, CUT_BEHIND, "EMQ.COMPLETE", 1);
    emq_worker *worker = crew_open(&options, &works);
    crew_add(worker, "q", crew_return, &verdict, &queue);
    crew_start(worker);
    cutter_wait(proxy);
    CREW_AWAIT(worker, completed, 2);
    crew_end(worker);
    cutter_stop(proxy);
    assert_int_equal(atomic_load(&lost), 1);
}

static int open_the_desk(emq_task *task, void *user) {
    desk *d = user;
    if (strcmp(emq_task_get_payload(task, NULL), "1") == 0) {
        atomic_store(&d->is_open, 1);
    }
    return EMQ_TASK_COMPLETE;
}

/* The claim of the second job went out behind the complete of the first, so that it runs while the
 * hook is told of that. */
static void the_next_job_does_not_wait_for_the_hook(void **state) {
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    desk d;
    (void)state;
    memset(&d, 0, sizeof(d));
    works.hook = keep_the_settler;
    works.hook_user = &d;
    crew_enqueue_many("q", 2);
    emq_worker *worker = crew_open(&client, &works);
    crew_add(worker, "q", open_the_desk, &d, NULL);
    crew_start(worker);
    CREW_AWAIT(worker, completed, 2);
    crew_end(worker);
    assert_int_equal(atomic_load(&d.successes), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(jobs_that_end_together_are_completed_in_one_call, crew_clean),
        cmocka_unit_test_setup(what_a_batch_refuses_is_asked_alone, crew_clean),
        cmocka_unit_test_setup(a_batch_without_the_right_to_it_is_sent_one_by_one, crew_clean),
        cmocka_unit_test_setup(no_claim_rides_behind_what_is_refused, crew_clean),
        cmocka_unit_test_setup(a_batch_whose_connection_is_cut_is_done_once, crew_clean),
        cmocka_unit_test_setup(the_loss_of_a_claim_that_rode_is_told, crew_clean),
        cmocka_unit_test_setup(the_next_job_does_not_wait_for_the_hook, crew_clean),
    };
    return RUN_SERVER_TESTS("worker_batch", tests, start_server_of_crew, stop_server);
}
