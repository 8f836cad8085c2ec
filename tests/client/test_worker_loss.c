/* SPDX-License-Identifier: Apache-2.0 */
/* Workers and servers that go away: restarts, connections that are cut at every point of a settle,
 * a thousand disconnects, replicas, servers that hang. Each time it goes on by itself. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "crew.h"
#include "cutter.h"

static emq_client_options client;

static int start_server_of_crew(void **state) {
    (void)start_server(state);
    client = options_for_server(&server);
    return 0;
}

static emq_worker_options quick(void) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    options.claim_wait_ms = 300;
    options.backoff_max_ms = 200;
    return options;
}

static emq_worker *start(emq_task_handler handler, void *user, uint32_t concurrency) {
    emq_worker_options options = quick();
    options.concurrency = concurrency;
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", handler, user, NULL);
    crew_start(worker);
    return worker;
}

static void a_server_that_is_not_there_yet(void **state) {
    int verdict = EMQ_TASK_COMPLETE;
    int reserved = -1;
    char error[256];
    (void)state;
    emq_client_options nowhere = EMQ_CLIENT_OPTIONS_INIT;
    emq_worker_options options = quick();
    nowhere.port = closed_port(&reserved);
    emq_worker *worker = crew_open(&nowhere, &options);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    crew_start(worker); /* it goes on trying */
    assert_int_equal(emq_worker_copy_error(error, sizeof(error), worker), EMQ_OK);
    assert_int_not_equal(error[0], '\0');
    crew_end(worker);
    (void)close(reserved);
}

static void a_restart_loses_no_job(void **state) {
    crew_gate gate = {0};
    (void)state;
    crew_enqueue_many("q", 20);
    emq_worker *worker = start(crew_wait_at_gate, &gate, 4);
    crew_await_int("four run", &gate.arrived, 4);
    server_restart(&server);
    CREW_AWAIT(worker, reconnects, 1);
    crew_enqueue_many("q", 20);
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(worker, completed, 40);
    assert_int_equal(atomic_load(&gate.passed), 40); /* each ran once */
    assert_int_equal(crew_counts("q").completed, 40);
    crew_end(worker);
}

static void a_thousand_disconnects(void **state) {
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    emq_worker *worker = start(crew_return, &verdict, 2);
    for (int i = 0; i < 1000; i++) {
        run(server.admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
        if (i % 100 == 0) {
            crew_enqueue("q", "x", NULL);
        }
        crew_nap(1);
    }
    CREW_AWAIT(worker, reconnects, 1);
    crew_enqueue_many("q", 10);
    CREW_AWAIT(worker, completed, 10);
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    assert_int_equal(emq_worker_get_health(&health, worker, "q"), EMQ_OK);
    assert_int_equal(health.is_healthy, 1);
    crew_end(worker);
}

static void waits_that_are_ended_go_on(void **state) {
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    emq_worker *worker = start(crew_return, &verdict, 1);
    for (int i = 0; i < 5; i++) {
        long long calls = crew_calls("EMQ.CLAIMS");
        redisReply *list = redisCommand(server.admin, "CLIENT LIST");
        for (const char *at = list->str; at != NULL && *at != '\0';) {
            const char *end = strchr(at, '\n');
            long long id = strtoll(at + 3, NULL, 10);
            freeReplyObject(redisCommand(server.admin, "CLIENT UNBLOCK %lld ERROR", id));
            at = end == NULL ? NULL : end + 1;
        }
        freeReplyObject(list);
        while (crew_calls("EMQ.CLAIMS") == calls) {
            crew_nap(5);
        }
    }
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
}

static atomic_int troubles;
static atomic_int last_trouble;
static atomic_int refusals; /* of claims */
static atomic_int sick;
static atomic_int well;
static atomic_int reconnects;

static void note_troubles(const emq_worker_event *event, void *user) {
    (void)user;
    if (event->kind == EMQ_WORKER_TROUBLE) {
        atomic_store(&last_trouble, event->result);
        atomic_fetch_add(&troubles, 1);
        atomic_fetch_add(&refusals, event->queue != NULL && event->result == EMQ_EFENCE);
    } else if (event->kind == EMQ_WORKER_RECONNECT) {
        atomic_fetch_add(&reconnects, 1);
    } else if (event->kind == EMQ_WORKER_HEALTH) {
        atomic_fetch_add(event->result < 0 ? &sick : &well, 1);
    }
}

static void a_server_that_became_a_replica_is_left(void **state) {
    emq_worker_options options = quick();
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    options.hook = note_troubles;
    atomic_store(&troubles, 0);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    crew_start(worker);
    run(server.admin, "REPLICAOF", "127.0.0.1", "1", NULL);
    crew_await_int("the hook is told", &troubles, 1);
    run(server.admin, "REPLICAOF", "NO", "ONE", NULL);
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
}

/* The loss alone would let an operator believe that it is over once the server is there. */
static void a_refusal_behind_a_loss_is_told(void **state) {
    emq_worker_options options = quick();
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    options.hook = note_troubles;
    atomic_store(&refusals, 0);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    crew_start(worker);
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    run(server.admin, "SET", "{emq}:version", "another wire", NULL);
    run(server.admin, "CLIENT", "KILL", "SKIPME", "yes", NULL);
    crew_await_int("the hook is told", &refusals, 1);
    assert_int_equal(emq_worker_get_health(&health, worker, "q"), EMQ_OK);
    assert_int_equal(health.result, EMQ_EFENCE);
    crew_end(worker);
}

static void a_server_that_hangs_is_found_and_forgiven(void **state) {
    emq_worker_options options = quick();
    emq_client_options impatient = client;
    int verdict = EMQ_TASK_COMPLETE;
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    (void)state;
    impatient.connect_timeout_ms = impatient.command_timeout_ms = 300;
    options.health_limit_ms = 1000;
    options.hook = note_troubles;
    atomic_store(&sick, 0);
    atomic_store(&well, 0);
    atomic_store(&troubles, 0);
    atomic_store(&reconnects, 0);
    emq_worker *worker = crew_open(&impatient, &options);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    crew_start(worker);
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    assert_int_equal(kill((pid_t)server.pid, SIGSTOP), 0);
    crew_await_int("it is found", &sick, 1);
    crew_await_int("a connection was given up, and can't be opened anew", &troubles, 1);
    assert_int_equal(emq_worker_get_health(&health, worker, NULL), EMQ_OK);
    assert_int_equal(health.is_healthy, 0);
    assert_int_equal(emq_worker_get_health(&health, worker, "other"), EMQ_EINVAL);
    assert_int_equal(kill((pid_t)server.pid, SIGCONT), 0);
    crew_await_int("it is forgiven", &well, 1);
    crew_await_int("the hook was told", &reconnects, 1);
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 2);
    crew_end(worker);
}

/* Settles whose connection is cut. */

typedef struct cut_case {
    const char *verb;
    emq_task_verdict verdict;
    cut_point point;
} cut_case;

static atomic_int verdict_now;

static int settle_once(emq_task *task, void *user) {
    (void)user;
    if (emq_task_get_attempts(task) > 1) {
        return EMQ_TASK_COMPLETE;
    }
    (void)emq_task_set_delay(task, 3600000);
    (void)emq_task_set_error(task, "e", 1);
    return atomic_load(&verdict_now);
}

static unsigned long long count_of(const emq_worker_stats *stats, emq_task_verdict verdict) {
    switch (verdict) {
    case EMQ_TASK_COMPLETE:
        return stats->completed;
    case EMQ_TASK_DELAY:
        return stats->delayed;
    case EMQ_TASK_REQUEUE:
        return stats->requeued;
    default:
        return stats->failed;
    }
}

static void expect_settled_once(const cut_case *c, emq_worker *worker, const emq_id *id) {
    emq_worker_stats stats = crew_stats(worker);
    assert_int_equal(count_of(&stats, c->verdict), 1);
    assert_int_equal(stats.lost, 0);
    assert_int_equal(stats.unsettled, 0);
    emq_counts counts = crew_counts("q");
    if (c->verdict == EMQ_TASK_COMPLETE || c->verdict == EMQ_TASK_REQUEUE) {
        assert_int_equal(counts.completed, 1);
        return;
    }
    emq_row *row = crew_row("q", id);
    int is_dead = c->verdict == EMQ_TASK_BURY;
    assert_string_equal(emq_row_get_state(row), is_dead ? "dead" : "scheduled");
    assert_int_equal(emq_row_get_failures(row), c->verdict == EMQ_TASK_DELAY ? 0 : 1);
    emq_row_free(row);
}

static int is_settled(void *data) {
    emq_worker *worker = data;
    emq_worker_stats stats = crew_stats(worker);
    emq_counts counts = crew_counts("q");
    return stats.completed + stats.delayed + stats.failed + stats.unsettled + stats.lost > 0 &&
           stats.settling == 0 && stats.running == 0 && counts.pending == 0 && counts.active == 0;
}

static void try_cut(const cut_case *c) {
    emq_client_options options = client;
    emq_worker_options works = quick();
    emq_id id = {{0}};
    (void)crew_clean(NULL);
    cutter *proxy = cutter_start(&server);
    options.unix_path = cutter_socket(proxy);
    options.host = NULL;
    works.claim_wait_ms = 20000; /* none of its requests comes in between */
    works.no_sweeps = 1;
    atomic_store(&verdict_now, (int)c->verdict);
    crew_enqueue("q", "x", &id);
    emq_worker *worker = crew_open(&options, &works);
    crew_add(worker, "q", settle_once, NULL, NULL);
    cutter_arm(proxy, c->point, c->verb, 1);
    crew_start(worker);
    cutter_wait(proxy);
    wait_until("it is settled", is_settled, worker);
    expect_settled_once(c, worker, &id);
    crew_end(worker);
    cutter_stop(proxy);
}

static void a_settle_whose_connection_is_cut_is_done_once(void **state) {
    static const struct {
        const char *verb;
        emq_task_verdict verdict;
    } settles[] = {{"EMQ.COMPLETE", EMQ_TASK_COMPLETE},
                   {"EMQ.FAIL", EMQ_TASK_FAIL},
                   {"EMQ.FAIL", EMQ_TASK_BURY},
                   {"EMQ.DELAY", EMQ_TASK_DELAY},
                   {"EMQ.REQUEUE", EMQ_TASK_REQUEUE}};
    (void)state;
    for (size_t i = 0; i < sizeof(settles) / sizeof(settles[0]); i++) {
        for (int point = CUT_REQUEST; point < CUT_POINTS; point++) {
            const cut_case c = {settles[i].verb, settles[i].verdict, (cut_point)point};
            print_message("%s, cut %d\n", c.verb, point);
            try_cut(&c);
        }
    }
}

static void a_renewal_that_is_cut_is_repeated(void **state) {
    emq_client_options options = client;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    crew_gate gate = {0};
    (void)state;
    cutter *proxy = cutter_start(&server);
    options.unix_path = cutter_socket(proxy);
    options.host = NULL;
    queue.lease_ms = 2000;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = crew_open(&options, NULL);
    crew_add(worker, "q", crew_wait_at_gate, &gate, &queue);
    crew_start(worker);
    crew_await_int("it runs", &gate.arrived, 1);
    for (int point = CUT_REQUEST; point <= CUT_ANSWER; point++) {
        cutter_arm(proxy, (cut_point)point, "EMQ.EXTENDS", 1);
        cutter_wait(proxy);
        CREW_AWAIT(worker, beats, crew_stats(worker).beats + 2);
    }
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(worker, completed, 1);
    assert_int_equal(crew_stats(worker).lost, 0);
    crew_end(worker);
    cutter_stop(proxy);
}

static int is_complete_refused(void *data) {
    (void)data;
    return crew_calls("EMQ.COMPLETE") > 0;
}

/* Counts troubles that say nothing. */
static void note_silent_trouble(const emq_worker_event *event, void *user) {
    if (event->kind == EMQ_WORKER_TROUBLE && event->text[0] == '\0') {
        atomic_fetch_add((atomic_int *)user, 1);
    }
}

/* What an operator mends within a lease costs the job no second run. */
static void a_settle_that_is_refused_for_a_moment_is_sent_again(void **state) {
    crew_gate gate = {0};
    atomic_int silent = 0;
    emq_worker_options options = quick();
    (void)state;
    options.hook = note_silent_trouble;
    options.hook_user = &silent;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", crew_wait_at_gate, &gate, NULL);
    crew_start(worker);
    crew_await_int("it runs", &gate.arrived, 1);
    run(server.admin, "DEL", "{emq}:version", NULL);
    atomic_store(&gate.is_open, 1);
    wait_until("the settle was refused", is_complete_refused, NULL);
    run(server.admin, "EMQ.INSTALL", "1", "{emq}:version", NULL);
    CREW_AWAIT(worker, completed, 1);
    assert_int_equal(atomic_load(&gate.passed), 1);
    assert_int_equal(crew_stats(worker).unsettled, 0);
    crew_end(worker);
    assert_int_equal(atomic_load(&silent), 0);
}

/* One that nobody mends keeps the job no longer than a lease. */
static void a_settle_that_is_refused_for_good_keeps_no_job(void **state) {
    crew_gate gate = {0};
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    emq_worker_options options = quick();
    (void)state;
    queue.lease_ms = 1000;
    options.sweep_interval_ms = 50;
    run(server.admin, "ACL", "SETUSER", "default", "-emq.complete", NULL);
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", crew_wait_at_gate, &gate, &queue);
    crew_start(worker);
    atomic_store(&gate.is_open, 1);
    CREW_AWAIT(worker, unsettled, 1);
    crew_await_int("it runs again", &gate.passed, 2);
    run(server.admin, "ACL", "SETUSER", "default", "+emq.complete", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_server_that_is_not_there_yet, crew_clean),
        cmocka_unit_test_setup(a_restart_loses_no_job, crew_clean),
        cmocka_unit_test_setup(a_thousand_disconnects, crew_clean),
        cmocka_unit_test_setup(waits_that_are_ended_go_on, crew_clean),
        cmocka_unit_test_setup(a_server_that_became_a_replica_is_left, crew_clean),
        cmocka_unit_test_setup(a_refusal_behind_a_loss_is_told, crew_clean),
        cmocka_unit_test_setup(a_server_that_hangs_is_found_and_forgiven, crew_clean),
        cmocka_unit_test_setup(a_settle_whose_connection_is_cut_is_done_once, crew_clean),
        cmocka_unit_test_setup(a_renewal_that_is_cut_is_repeated, crew_clean),
        cmocka_unit_test_setup(a_settle_that_is_refused_for_a_moment_is_sent_again, crew_clean),
        cmocka_unit_test_setup(a_settle_that_is_refused_for_good_keeps_no_job, crew_clean),
    };
    return RUN_SERVER_TESTS("worker_loss", tests, start_server_of_crew, stop_server);
}
