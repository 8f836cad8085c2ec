/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: options, what handlers get and what becomes of their verdicts, budgets, settling from
 * other threads, several queues and the limit of jobs in hand. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "crew.h"
#include "worker.h"

static emq_client_options client;

static int start_server_of_crew(void **state) {
    (void)start_server(state);
    client = options_for_server(&server);
    return 0;
}

static emq_worker *start_one(const char *queue, emq_task_handler handler, void *user,
                             uint32_t concurrency, const emq_worker_queue *queue_options) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    options.concurrency = concurrency;
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, queue, handler, user, queue_options);
    crew_start(worker);
    return worker;
}

static void options_out_of_range_are_refused(void **state) {
    emq_worker *worker = NULL;
    int verdict = 0;
    (void)state;
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    options.concurrency = EMQ_WORKER_CONCURRENCY_MAX + 1;
    assert_int_equal(emq_worker_open(&worker, &client, &options), EMQ_EINVAL);
    assert_null(worker);
    emq_worker_options_init(&options);
    options.claim_wait_ms = 60001;
    assert_int_equal(emq_worker_open(&worker, &client, &options), EMQ_EINVAL);
    emq_worker_options_init(&options);
    options.backoff_max_ms = 49; /* backoff_min_ms is 50 */
    assert_int_equal(emq_worker_open(&worker, &client, &options), EMQ_EINVAL);
    emq_worker_options_init(&options);
    options.size = 1;
    assert_int_equal(emq_worker_open(&worker, &client, &options), EMQ_EINVAL);
    assert_int_equal(emq_worker_open(NULL, &client, NULL), EMQ_EINVAL);
    worker = crew_open(&client, NULL);
    assert_int_equal(emq_worker_start(worker), EMQ_EINVAL); /* no queue */
    assert_int_equal(emq_worker_stop(worker, 0), EMQ_EINVAL);
    assert_int_equal(emq_worker_wait(NULL, worker, 0), EMQ_EINVAL);
    assert_int_equal(emq_worker_add(worker, "a:b", crew_return, NULL, NULL), EMQ_EQUEUE);
    assert_int_equal(emq_worker_add(worker, "q", NULL, NULL, NULL), EMQ_EINVAL);
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    queue.lease_ms = 999;
    assert_int_equal(emq_worker_add(worker, "q", crew_return, NULL, &queue), EMQ_EINVAL);
    emq_worker_queue_init(&queue);
    queue.backoff_max_ms = 999; /* backoff_base_ms is 1000 */
    assert_int_equal(emq_worker_add(worker, "q", crew_return, NULL, &queue), EMQ_EINVAL);
    emq_worker_queue_init(&queue);
    queue.backoff = EMQ_BACKOFF_FUNCTION;
    assert_int_equal(emq_worker_add(worker, "q", crew_return, NULL, &queue), EMQ_EINVAL);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    assert_int_equal(emq_worker_add(worker, "q", crew_return, NULL, NULL), EMQ_EINVAL);
    emq_worker_free(worker); /* was never started */
    emq_worker_free(NULL);
}

static void a_start_tells_what_is_wrong(void **state) {
    char error[256];
    int verdict = 0;
    (void)state;
    emq_client_options wrong = client;
    wrong.password = "wrong";
    wrong.username = "nobody";
    emq_worker *worker = crew_open(&wrong, NULL);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    assert_string_equal(emq_err_name(emq_worker_start(worker)), "EMQ_EAUTH");
    assert_int_equal(emq_worker_copy_error(error, sizeof(error), worker), EMQ_OK);
    assert_non_null(strstr(error, "WRONGPASS"));
    assert_int_equal(emq_worker_wait(NULL, worker, 0), EMQ_EINVAL); /* it was not started */
    emq_worker_free(worker);
}

/* What the handler of the next test saw. */
static struct {
    char id[EMQ_ID_LEN + 1];
    char queue[16];
    char payload[16];
    size_t size;
    int64_t attempts;
    int64_t age_ms;
    int64_t lease_left_ms;
    int64_t time_left_ms;
    int64_t failures;
    int notice;
} seen;

static int note_all(emq_task *task, void *user) {
    emq_row *row = NULL;
    (void)user;
    (void)snprintf(seen.id, sizeof(seen.id), "%s", emq_task_get_id(task)->text);
    (void)snprintf(seen.queue, sizeof(seen.queue), "%s", emq_task_get_queue(task));
    memcpy(seen.payload, emq_task_get_payload(task, &seen.size), 5);
    seen.attempts = emq_task_get_attempts(task);
    seen.age_ms = emq_task_get_age_ms(task);
    seen.lease_left_ms = emq_task_get_lease_left_ms(task);
    seen.time_left_ms = emq_task_get_time_left_ms(task);
    seen.notice = (int)emq_task_get_notice(task);
    seen.failures = emq_task_read_row(&row, task) == EMQ_OK ? emq_row_get_failures(row) : -1;
    emq_row_free(row);
    return EMQ_TASK_COMPLETE;
}

static void a_handler_gets_its_job(void **state) {
    emq_id id = {{0}};
    (void)state;
    crew_enqueue("q", "bytes", &id);
    emq_worker *worker = start_one("q", note_all, NULL, 1, NULL);
    CREW_AWAIT(worker, completed, 1);
    assert_string_equal(seen.id, id.text);
    assert_string_equal(seen.queue, "q");
    assert_int_equal(seen.size, 5);
    assert_memory_equal(seen.payload, "bytes", 5);
    assert_int_equal(seen.attempts, 1);
    assert_true(seen.age_ms >= 0 && seen.age_ms < LONG_MS);
    assert_true(seen.lease_left_ms > 0 && seen.lease_left_ms <= 30000);
    assert_true(seen.time_left_ms > 0 && seen.time_left_ms <= 3600000);
    assert_int_equal(seen.notice, EMQ_NOTICE_NONE);
    assert_int_equal(seen.failures, 0);
    assert_int_equal(crew_counts("q").completed, 1);
    assert_int_equal(crew_counts("q").active, 0);
    crew_end(worker);
}

static void many_jobs_on_many_threads(void **state) {
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    crew_enqueue_many("q", 500);
    emq_worker *worker = start_one("q", crew_return, &verdict, 8, NULL);
    CREW_AWAIT(worker, completed, 500);
    crew_enqueue_many("q", 100);
    CREW_AWAIT(worker, completed, 600);
    emq_worker_stats stats = crew_stats(worker);
    assert_int_equal(stats.claimed, 600);
    assert_int_equal(stats.overshoot, 0);
    assert_int_equal(crew_counts("q").completed, 600);
    crew_end(worker);
}

static int fail_with_text(emq_task *task, void *user) {
    (void)user;
    (void)emq_task_set_error(task, "no \0 luck", 9);
    (void)emq_task_set_delay(task, 0);
    return EMQ_TASK_FAIL;
}

static void failures_are_counted_until_a_job_is_dead(void **state) {
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    emq_id id = {{0}};
    size_t n = 0;
    (void)state;
    queue.max_failures = 3;
    crew_enqueue("q", "x", &id);
    emq_worker *worker = start_one("q", fail_with_text, NULL, 1, &queue);
    CREW_AWAIT(worker, dead, 1);
    emq_row *row = crew_row("q", &id);
    assert_string_equal(emq_row_get_state(row), "dead");
    assert_int_equal(emq_row_get_failures(row), 3);
    assert_memory_equal(emq_row_get_last_error(row, &n), "no \0 luck", 9);
    assert_int_equal(n, 9);
    emq_row_free(row);
    assert_int_equal(crew_stats(worker).failed, 3);
    assert_int_equal(crew_stats(worker).promoted, 2);
    crew_end(worker);
}

static void a_job_is_buried_at_its_first_failure(void **state) {
    int verdict = EMQ_TASK_BURY;
    (void)state;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start_one("q", crew_return, &verdict, 1, NULL);
    CREW_AWAIT(worker, dead, 1);
    assert_int_equal(crew_counts("q").dead, 1);
    crew_end(worker);
}

static int delay_at_first(emq_task *task, void *user) {
    (void)user;
    (void)emq_task_set_delay(task, 1);
    return emq_task_get_attempts(task) == 1   ? EMQ_TASK_DELAY
           : emq_task_get_attempts(task) == 2 ? EMQ_TASK_REQUEUE
                                              : EMQ_TASK_COMPLETE;
}

static void delays_and_requeues_count_no_failure(void **state) {
    (void)state;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start_one("q", delay_at_first, NULL, 1, NULL);
    CREW_AWAIT(worker, completed, 1);
    emq_worker_stats stats = crew_stats(worker);
    assert_int_equal(stats.delayed, 1);
    assert_int_equal(stats.requeued, 1);
    assert_int_equal(stats.failed, 0);
    assert_int_equal(stats.claimed, 3);
    crew_end(worker);
}

static atomic_int runs;

static int count_runs(emq_task *task, void *user) {
    (void)task;
    atomic_fetch_add(&runs, 1);
    return *(int *)user;
}

static void a_job_with_too_many_attempts_is_buried_before_it_runs(void **state) {
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    emq_id id = {{0}};
    int verdict = EMQ_TASK_REQUEUE;
    (void)state;
    queue.max_attempts = 4;
    atomic_store(&runs, 0);
    crew_enqueue("q", "x", &id);
    emq_worker *worker = start_one("q", count_runs, &verdict, 1, &queue);
    CREW_AWAIT(worker, exhausted, 1);
    assert_int_equal(atomic_load(&runs), 4);
    emq_row *row = crew_row("q", &id);
    assert_string_equal(emq_row_get_state(row), "dead");
    assert_string_equal(emq_row_get_last_error(row, NULL), "attempts exhausted");
    assert_int_equal(emq_row_get_attempts(row), 5);
    emq_row_free(row);
    crew_end(worker);
}

/* Settling later, by another thread. */

static emq_task *_Atomic kept;

static void a_task_is_settled_later_and_once(void **state) {
    (void)state;
    crew_enqueue_many("q", 5);
    emq_worker *worker = start_one("q", crew_keep, &kept, 1, NULL);
    emq_task *task = crew_take_kept(&kept);
    crew_nap(20);
    assert_int_equal(crew_stats(worker).running, 1); /* and no other is begun meanwhile */
    assert_null(atomic_load(&kept));
    assert_int_equal(emq_task_set_error(task, "e", 1), EMQ_OK);
    assert_int_equal(emq_task_delay(task, -1), EMQ_EINVAL);
    assert_int_equal(emq_task_complete(task), EMQ_OK);
    assert_int_equal(emq_task_complete(task), EMQ_EINVAL);
    assert_int_equal(emq_task_fail(task, "e", 1), EMQ_EINVAL);
    assert_int_equal(emq_task_set_delay(task, 1), EMQ_EINVAL);
    emq_task_free(task);
    CREW_AWAIT(worker, completed, 1);
    task = crew_take_kept(&kept);
    assert_int_equal(emq_task_fail(task, "later", 5), EMQ_OK);
    emq_task_free(task);
    CREW_AWAIT(worker, failed, 1);
    task = crew_take_kept(&kept);
    assert_int_equal(emq_task_delay(task, 3600000), EMQ_OK);
    emq_task_free(task);
    CREW_AWAIT(worker, delayed, 1);
    task = crew_take_kept(&kept);
    assert_int_equal(emq_task_bury(task, "b", 1), EMQ_OK);
    emq_task_free(task);
    CREW_AWAIT(worker, dead, 1);
    task = crew_take_kept(&kept);
    emq_task_free(task); /* without a verdict: it goes back, and comes again */
    CREW_AWAIT(worker, requeued, 1);
    task = crew_take_kept(&kept);
    assert_int_equal(emq_task_get_attempts(task), 2);
    assert_int_equal(emq_task_requeue(task), EMQ_OK);
    emq_task_free(task);
    task = crew_take_kept(&kept);
    assert_int_equal(emq_task_complete(task), EMQ_OK);
    CREW_AWAIT(worker, completed, 2);
    assert_int_equal(emq_task_get_attempts(task), 3); /* still there: it was not freed */
    assert_int_equal(crew_stats(worker).settling, 0);
    crew_end(worker);
}

static int settle_twice(emq_task *task, void *results) {
    int *r = results;
    r[0] = emq_task_complete(task);
    r[1] = emq_task_requeue(task);
    emq_task_free(task);
    return EMQ_TASK_FAIL; /* not looked at any more */
}

static void a_handler_that_settles_itself_has_decided(void **state) {
    int results[2] = {1, 1};
    (void)state;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start_one("q", settle_twice, results, 1, NULL);
    CREW_AWAIT(worker, completed, 1);
    assert_int_equal(crew_stats(worker).failed, 0);
    crew_end(worker);
    assert_int_equal(results[0], EMQ_OK);
    assert_int_equal(results[1], EMQ_EINVAL);
}

/* Leases. */

static void a_handler_that_blocks_for_many_leases_runs_once(void **state) {
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    crew_gate gate = {0};
    (void)state;
    queue.lease_ms = 1000;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start_one("q", crew_wait_at_gate, &gate, 4, &queue);
    CREW_AWAIT(worker, beats, 10);
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(worker, completed, 1);
    assert_int_equal(atomic_load(&gate.arrived), 1);
    assert_int_equal(crew_stats(worker).lost, 0);
    crew_end(worker);
}

static void many_leases_are_renewed_by_one_call(void **state) {
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    crew_gate gate = {0};
    (void)state;
    queue.lease_ms = 1500;
    crew_enqueue_many("q", 20);
    emq_worker *worker = start_one("q", crew_wait_at_gate, &gate, 20, &queue);
    crew_await_int("all run", &gate.arrived, 20);
    CREW_AWAIT(worker, beats, 6);
    emq_worker_stats stats = crew_stats(worker);
    assert_in_range(crew_calls("EMQ.EXTENDS"), stats.beats, stats.beats + 1);
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(worker, completed, 20);
    crew_end(worker);
}

static atomic_int told_notice;

static void note_losses(const emq_worker_event *event, void *user) {
    (void)user;
    if (event->kind == EMQ_WORKER_LOST) {
        assert_non_null(event->task);
        assert_string_equal(event->queue, "q");
        atomic_store(&told_notice, event->notice);
    }
}

static void a_lost_lease_is_told_and_not_settled(void **state) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    crew_gate gate = {0};
    emq_id id = {{0}};
    (void)state;
    options.hook = note_losses;
    queue.lease_ms = 1000;
    atomic_store(&told_notice, 0);
    crew_enqueue("q", "x", &id);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", crew_wait_at_gate, &gate, &queue);
    crew_start(worker);
    crew_await_int("it runs", &gate.arrived, 1);
    /* somebody takes it away */
    run(server.admin, "ZREM", "emq:{q}:active", id.text, NULL);
    CREW_AWAIT(worker, lost, 1);
    crew_await_int("the hook was told", &told_notice, EMQ_NOTICE_LOST);
    atomic_store(&gate.is_open, 1);
    crew_await_int("the handler was told", &gate.lost, 1);
    crew_end(worker);
    emq_row *row = crew_row("q", &id); /* it was not completed */
    emq_row_free(row);
    assert_int_equal(crew_calls("EMQ.COMPLETE"), 0);
}

static int wait_for_overtime(emq_task *task, void *user) {
    (void)user;
    while (emq_task_get_notice(task) < EMQ_NOTICE_OVERTIME) {
        crew_nap(2);
    }
    while (!emq_task_is_lost(task)) {
        crew_nap(2);
    }
    return EMQ_TASK_COMPLETE;
}

static void a_run_that_takes_too_long_is_renewed_no_more(void **state) {
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    (void)state;
    queue.lease_ms = 1000;
    queue.max_run_ms = 100;
    queue.max_stalled = 1;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start_one("q", wait_for_overtime, NULL, 1, &queue);
    CREW_AWAIT(worker, overtime, 1);
    CREW_AWAIT(worker, lost, 1);
    CREW_AWAIT(worker, stalled, 1); /* its lease lapsed, and the sweep found it */
    assert_int_equal(crew_counts("q").dead, 1);
    crew_end(worker);
}

/* Several queues. */

static void held_jobs_never_exceed_the_limit(void **state) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    crew_gate gate = {0};
    crew_gate open = {.is_open = 1};
    char name[16];
    (void)state;
    options.concurrency = 2;
    emq_worker *busy = crew_open(&client, &options);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        crew_add(busy, name, crew_wait_at_gate, &gate, NULL);
    }
    crew_start(busy);
    /* a burst on all of them: two stay, the others go back at once */
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        crew_enqueue(name, "x", NULL);
    }
    crew_await_int("two run", &gate.arrived, 2);
    /* a second worker, which is idle, gets them */
    emq_worker *idle = crew_open(&client, &options);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        crew_add(idle, name, crew_wait_at_gate, &open, NULL);
    }
    crew_start(idle);
    CREW_AWAIT(idle, completed, 8);
    emq_worker_stats stats = crew_stats(busy);
    assert_int_equal(stats.claimed, 2);
    assert_int_equal(stats.running, 2);
    assert_int_equal(stats.waiting, 0);
    print_message("handed over beyond the limit: %d\n", (int)stats.overshoot);
    assert_int_equal(atomic_load(&gate.arrived), 2);
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(busy, completed, 2);
    crew_end(busy);
    crew_end(idle);
}

static int two_wait(void *data) {
    (void)data;
    redisReply *reply = redisCommand(server.admin, "INFO clients");
    assert_non_null(reply);
    int found = strstr(reply->str, "blocked_clients:2\r\n") != NULL;
    freeReplyObject(reply);
    return found;
}

/* Worker after worker could hand it on until its attempts are used up, without a run. */
static void a_job_that_is_handed_on_too_often_goes_back_for_later(void **state) {
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    crew_gate gate = {0};
    emq_id id = {{0}};
    char row[EMQ_KEY_MAX + 1];
    (void)state;
    emq_worker *worker = crew_open(&client, NULL);
    crew_add(worker, "a", crew_wait_at_gate, &gate, NULL);
    crew_add(worker, "b", crew_wait_at_gate, &gate, NULL);
    crew_start(worker);
    wait_until("both claims wait", two_wait, NULL);
    crew_enqueue("a", "x", NULL);
    crew_await_int("it runs", &gate.arrived, 1);
    assert_int_equal(emq_worker_get_health(&health, worker, "b"), EMQ_OK);
    assert_int_equal(health.is_full, 1);
    assert_int_equal(health.is_healthy, 1);
    assert_int_equal(emq_id_mint(&id, "JOB"), EMQ_OK);
    assert_true(emq_key_job(row, sizeof(row), "b", &id) > 0);
    run(server.admin, "HSET", row, "state", "pending", "attempts", "8", "payload", "x", NULL);
    run(server.admin, "ZADD", "emq:{b}:pending", "0", id.text, NULL);
    CREW_AWAIT(worker, overshoot, 1);
    assert_int_equal(crew_stats(worker).claimed, 1);
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(worker, completed, 2);
    emq_worker_stats stats = crew_stats(worker);
    assert_int_equal(stats.overshoot, 1);
    assert_int_equal(stats.promoted, 1);
    assert_int_equal(stats.delayed, 0); /* counted as overshoot */
    crew_end(worker);
}

static char order[1000];
static atomic_int ordered;

static int note_order(emq_task *task, void *user) {
    (void)user;
    int at = atomic_fetch_add(&ordered, 1);
    if (at < (int)sizeof(order)) {
        order[at] = emq_task_get_queue(task)[0];
    }
    return EMQ_TASK_COMPLETE;
}

static void queues_are_served_by_their_weight(void **state) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue heavy = EMQ_WORKER_QUEUE_INIT;
    (void)state;
    heavy.weight = 4;
    atomic_store(&ordered, 0);
    crew_enqueue_many("heavy", 400);
    crew_enqueue_many("light", 400);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "heavy", note_order, NULL, &heavy);
    crew_add(worker, "light", note_order, NULL, NULL);
    crew_start(worker);
    CREW_AWAIT(worker, completed, 800);
    int light = 0;
    for (int i = 0; i < 300; i++) {
        light += order[i] == 'l';
    }
    print_message("of 300 jobs %d were of the light queue\n", light);
    assert_in_range(light, 40, 80); /* 60 by weight */
    assert_int_equal(crew_stats(worker).overshoot, 0);
    crew_end(worker);
}

static int note_order_slowly(emq_task *task, void *user) {
    crew_nap(5);
    return note_order(task, user);
}

/* Slots that become free together are not for the queues that happen to wait just then. */
static void weights_count_among_many_threads(void **state) {
    static const char *const light[] = {"l1", "l2", "l3", "l4", "l5", "l6", "l7"};
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue heavy = EMQ_WORKER_QUEUE_INIT;
    int count = 0;
    (void)state;
    heavy.weight = 1000;
    options.concurrency = 4;
    atomic_store(&ordered, 0);
    crew_enqueue_many("heavy", 300);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "heavy", note_order_slowly, NULL, &heavy);
    for (size_t i = 0; i < sizeof(light) / sizeof(light[0]); i++) {
        crew_enqueue_many(light[i], 50);
        crew_add(worker, light[i], note_order_slowly, NULL, NULL);
    }
    crew_start(worker);
    CREW_AWAIT(worker, completed, 250);
    for (int i = 0; i < 250; i++) {
        count += order[i] == 'l';
    }
    print_message("of 250 jobs %d were of the light queues\n", count);
    assert_in_range(count, 0, 60); /* each is served once before it is known what it costs */
    assert_int_equal(emq_worker_stop(worker, 0), EMQ_OK);
    crew_end(worker);
}

static void prefetched_jobs_wait_and_are_renewed(void **state) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    crew_gate gate = {0};
    (void)state;
    options.prefetch = 3;
    queue.lease_ms = 1000;
    crew_enqueue_many("q", 10);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", crew_wait_at_gate, &gate, &queue);
    crew_start(worker);
    CREW_AWAIT(worker, waiting, 3);
    CREW_AWAIT(worker, beats, 5);
    assert_int_equal(crew_counts("q").active, 4);
    assert_int_equal(atomic_load(&gate.arrived), 1);
    assert_int_equal(crew_stats(worker).lost, 0);
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(worker, completed, 10);
    crew_end(worker);
}

/* Hooks and retries. */

static atomic_int events[EMQ_WORKER_HEALTH + 1];
static atomic_int wrong_events;

static void note_event(const emq_worker_event *event, void *user) {
    int is_right = event->size == sizeof(*event) && event->worker != NULL && event->text != NULL &&
                   user == &server;
    if (event->task != NULL) {
        is_right = is_right && strcmp(event->queue, emq_task_get_queue(event->task)) == 0;
    }
    if (event->kind == EMQ_WORKER_START) {
        is_right = is_right && event->waited_us >= 0 && event->ran_us == 0;
    }
    if (event->kind == EMQ_WORKER_SUCCESS) {
        is_right =
            is_right && event->result == EMQ_OK && event->ran_us >= 20000 && event->settled_us > 0;
    }
    if (event->kind == EMQ_WORKER_FAILURE) {
        is_right = is_right && (event->result == EMQ_OK || event->result == EMQ_DEAD);
    }
    atomic_fetch_add(&wrong_events, !is_right);
    atomic_fetch_add(&events[event->kind], 1);
}

static int fail_twice_then_go_on(emq_task *task, void *user) {
    (void)user;
    crew_nap(20);
    (void)emq_task_set_delay(task, 0);
    switch (emq_task_get_attempts(task)) {
    case 1:
    case 2:
        return EMQ_TASK_FAIL;
    case 3:
        return EMQ_TASK_REQUEUE;
    default:
        return EMQ_TASK_COMPLETE;
    }
}

static void hooks_are_told_with_timings(void **state) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    (void)state;
    options.hook = note_event;
    options.hook_user = &server;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", fail_twice_then_go_on, NULL, NULL);
    crew_start(worker);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
    assert_int_equal(atomic_load(&events[EMQ_WORKER_START]), 4);
    assert_int_equal(atomic_load(&events[EMQ_WORKER_FAILURE]), 2);
    assert_int_equal(atomic_load(&events[EMQ_WORKER_RETURN]), 1);
    assert_int_equal(atomic_load(&events[EMQ_WORKER_SUCCESS]), 1);
    assert_int_equal(atomic_load(&events[EMQ_WORKER_LOST]), 0);
    assert_int_equal(atomic_load(&wrong_events), 0);
}

static atomic_int asked_failures[8];
static atomic_int asked;

static int64_t note_failures(const emq_task *task, int64_t failures, void *user) {
    int at = atomic_fetch_add(&asked, 1);
    atomic_store(&asked_failures[at % 8], (int)failures);
    return emq_task_get_queue(task)[0] == 'q' && user == &server ? 0 : 1000000;
}

static int requeue_then_fail(emq_task *task, void *user) {
    (void)user;
    return emq_task_get_attempts(task) % 2 == 1 ? EMQ_TASK_REQUEUE : EMQ_TASK_FAIL;
}

/* Requeues between them are attempts, but no failures. */
static void a_backoff_function_is_asked_with_the_failures(void **state) {
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    (void)state;
    queue.backoff = EMQ_BACKOFF_FUNCTION;
    queue.backoff_function = note_failures;
    queue.max_failures = 4;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start_one("q", requeue_then_fail, &server, 1, &queue);
    CREW_AWAIT(worker, dead, 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(atomic_load(&asked_failures[i]), i + 1);
    }
    crew_end(worker);
}

static int64_t pause_behind(int policy, int64_t failures) {
    emq_work_queue q = {
        .options = {.backoff = policy, .backoff_base_ms = 100, .backoff_max_ms = 5000}};
    const emq_task task = {.queue = &q};
    return emq_worker_pause_ms(&task, failures);
}

static void pauses_grow_as_their_policy_says(void **state) {
    int64_t most = 0;
    (void)state;
    assert_int_equal(pause_behind(EMQ_BACKOFF_FIXED, 1), 100);
    assert_int_equal(pause_behind(EMQ_BACKOFF_FIXED, 100), 100);
    assert_int_equal(pause_behind(EMQ_BACKOFF_EXPONENTIAL, 0), 100);
    assert_int_equal(pause_behind(EMQ_BACKOFF_EXPONENTIAL, 1), 100);
    assert_int_equal(pause_behind(EMQ_BACKOFF_EXPONENTIAL, 2), 200);
    assert_int_equal(pause_behind(EMQ_BACKOFF_EXPONENTIAL, 6), 3200);
    assert_int_equal(pause_behind(EMQ_BACKOFF_EXPONENTIAL, 7), 5000);
    assert_int_equal(pause_behind(EMQ_BACKOFF_EXPONENTIAL, INT64_MAX), 5000);
    for (int i = 0; i < 1000; i++) {
        int64_t pause = pause_behind(EMQ_BACKOFF_JITTER, 3);
        assert_in_range(pause, 0, 400);
        most = pause > most ? pause : most;
    }
    assert_true(most > 200);
}

/* A job of another client, under an id that is no branded one: it is counted, and others run. */
static void a_malformed_job_keeps_nobody(void **state) {
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    run(server.admin, "HSET", "emq:{q}:job:odd", "state", "pending", "attempts", "0", "payload",
        "x", NULL);
    run(server.admin, "ZADD", "emq:{q}:pending", "0", "odd", NULL);
    emq_worker *worker = start_one("q", crew_return, &verdict, 1, NULL);
    CREW_AWAIT(worker, malformed, 1);
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
}

static void a_forked_child_has_no_part_in_it(void **state) {
    int verdict = 0;
    int status = -1;
    (void)state;
    emq_worker *worker = start_one("q", crew_return, &verdict, 1, NULL);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
        int is_right = emq_worker_stop(worker, 0) == EMQ_EFORKED &&
                       emq_worker_wait(NULL, worker, 0) == EMQ_EFORKED &&
                       emq_worker_start(worker) == EMQ_EFORKED &&
                       emq_worker_get_stats(&stats, worker) == EMQ_EFORKED;
        emq_worker_free(worker);
        _exit(is_right ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(options_out_of_range_are_refused, crew_clean),
        cmocka_unit_test_setup(a_start_tells_what_is_wrong, crew_clean),
        cmocka_unit_test_setup(a_handler_gets_its_job, crew_clean),
        cmocka_unit_test_setup(many_jobs_on_many_threads, crew_clean),
        cmocka_unit_test_setup(failures_are_counted_until_a_job_is_dead, crew_clean),
        cmocka_unit_test_setup(a_job_is_buried_at_its_first_failure, crew_clean),
        cmocka_unit_test_setup(delays_and_requeues_count_no_failure, crew_clean),
        cmocka_unit_test_setup(a_job_with_too_many_attempts_is_buried_before_it_runs, crew_clean),
        cmocka_unit_test_setup(a_task_is_settled_later_and_once, crew_clean),
        cmocka_unit_test_setup(a_handler_that_settles_itself_has_decided, crew_clean),
        cmocka_unit_test_setup(a_handler_that_blocks_for_many_leases_runs_once, crew_clean),
        cmocka_unit_test_setup(many_leases_are_renewed_by_one_call, crew_clean),
        cmocka_unit_test_setup(a_lost_lease_is_told_and_not_settled, crew_clean),
        cmocka_unit_test_setup(a_run_that_takes_too_long_is_renewed_no_more, crew_clean),
        cmocka_unit_test_setup(held_jobs_never_exceed_the_limit, crew_clean),
        cmocka_unit_test_setup(a_job_that_is_handed_on_too_often_goes_back_for_later, crew_clean),
        cmocka_unit_test_setup(queues_are_served_by_their_weight, crew_clean),
        cmocka_unit_test_setup(weights_count_among_many_threads, crew_clean),
        cmocka_unit_test_setup(prefetched_jobs_wait_and_are_renewed, crew_clean),
        cmocka_unit_test_setup(hooks_are_told_with_timings, crew_clean),
        cmocka_unit_test_setup(a_backoff_function_is_asked_with_the_failures, crew_clean),
        cmocka_unit_test(pauses_grow_as_their_policy_says),
        cmocka_unit_test_setup(a_malformed_job_keeps_nobody, crew_clean),
        cmocka_unit_test_setup(a_forked_child_has_no_part_in_it, crew_clean),
    };
    return RUN_SERVER_TESTS("worker", tests, start_server_of_crew, stop_server);
}
