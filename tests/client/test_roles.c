/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that have the rules of a role and no other rights: the connect path and the verbs of the
 * role work without one refusal, each word of the connect path is needed, and another role's verb
 * is refused. */
#include "roles.h"

#include <stdio.h>
#include <string.h>

#include "command.h"
#include "fixture.h"

static test_server server;

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

static int clean(void **state) {
    (void)state;
    run(server.admin, "FLUSHALL", NULL);
    run(server.admin, "EMQ.INSTALL", "1", "{emq}:version", NULL);
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    return 0;
}

/* A user with the rules of this role, and what `more` takes away or adds. */
static emq_client_options options_of(emq_role role, const char *more) {
    char rules[EMQ_ROLE_RULES_MAX];
    char all[EMQ_ROLE_RULES_MAX + 64];
    emq_client_options options = options_for_server(&server);
    assert_true(emq_role_rules(rules, sizeof(rules), role, "q") > 0);
    (void)snprintf(all, sizeof(all), "%s%s", rules, more);
    redisFree(server_connect_as(&server, emq_role_name(role), all));
    options.username = emq_role_name(role);
    options.password = "password";
    return options;
}

static size_t count_refusals(void) {
    redisReply *log = call(server.admin, "ACL", "LOG", NULL);
    size_t count = log->elements;
    freeReplyObject(log);
    return count;
}

static void a_job_goes_from_producer_to_worker(void **state) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    (void)state;
    emq_client_options produces = options_of(EMQ_ROLE_PRODUCER, "");
    emq_client_options works = options_of(EMQ_ROLE_WORKER, "");
    emq_client *producer = open_client(&produces);
    emq_client *worker = open_client(&works);
    EXPECT_RESULT(producer, emq_enqueue(&id, producer, "q", "payload", 7), EMQ_OK);
    EXPECT_RESULT(producer, emq_enqueue(&id, producer, "q", "payload", 7), EMQ_DUPLICATE);
    EXPECT_RESULT(worker, emq_claim(&job, worker, "q", 60000), EMQ_OK);
    EXPECT_RESULT(worker, emq_complete(worker, emq_job_get_lease(job)), EMQ_OK);
    EXPECT_RESULT(worker, emq_complete(worker, emq_job_get_lease(job)), EMQ_GONE);
    emq_job_free(job);
    EXPECT_RESULT(worker, emq_claim(&job, worker, "q", 60000), EMQ_EMPTY);
    assert_int_equal(count_refusals(), 0);
    /* neither may do the other's part, nor his own on another queue; the connection stays */
    EXPECT_RESULT(worker, emq_enqueue(&id, worker, "q", "payload", 7), EMQ_ENOPERM);
    EXPECT_RESULT(producer, emq_claim(&job, producer, "q", 60000), EMQ_ENOPERM);
    EXPECT_RESULT(producer, emq_enqueue(&id, producer, "r", "payload", 7), EMQ_ENOPERM);
    EXPECT_RESULT(worker, emq_claim(&job, worker, "r", 60000), EMQ_ENOPERM);
    assert_int_equal(count_refusals(), 4);
    EXPECT_RESULT(producer, emq_enqueue(&id, producer, "q", "payload", 7), EMQ_OK);
    emq_client_close(producer);
    emq_client_close(worker);
}

static void a_service_has_the_broad_form(void **state) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    (void)state;
    emq_client_options options = options_for_server(&server);
    redisFree(server_connect_as(&server, "service", EMQ_BROAD_RULES("q")));
    options.username = "service";
    options.password = "password";
    emq_client *client = open_client(&options);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "payload", 7), EMQ_OK);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 60000), EMQ_OK);
    EXPECT_RESULT(client, emq_complete(client, emq_job_get_lease(job)), EMQ_OK);
    emq_job_free(job);
    assert_int_equal(count_refusals(), 0);
    EXPECT_RESULT(client, emq_claim(&job, client, "r", 60000), EMQ_ENOPERM);
    emq_client_close(client);
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_ENOPERM);
}

static void every_role_of_a_queue_opens(void **state) {
    (void)state;
    for (int role = EMQ_ROLE_PRODUCER; role < EMQ_ROLE_INSTALLER; role++) {
        emq_client_options options = options_of((emq_role)role, "");
        EXPECT_OPEN(&options, EMQ_OK, NULL);
        assert_int_equal(count_refusals(), 0);
        options = options_of((emq_role)role, " -emq.version");
        EXPECT_OPEN(&options, EMQ_ENOPERM, "NOPERM");
        options = options_of((emq_role)role, " -get");
        EXPECT_OPEN(&options, EMQ_ENOPERM, "NOPERM");
        run(server.admin, "ACL", "LOG", "RESET", NULL);
        /* a client without a name opens, but each connect leaves an entry in the log */
        options = options_of((emq_role)role, " -client|setname");
        EXPECT_OPEN(&options, EMQ_OK, NULL);
        assert_int_equal(count_refusals(), 1);
        run(server.admin, "ACL", "LOG", "RESET", NULL);
    }
}

/* The rules are for database 0, where a connection starts; another one takes SELECT. */
static void another_database_takes_select(void **state) {
    (void)state;
    redisContext *admin = server_connect(&server);
    run(admin, "SELECT", "1", NULL);
    run(admin, "EMQ.INSTALL", "1", "{emq}:version", NULL);
    redisFree(admin);
    emq_client_options options = options_of(EMQ_ROLE_WORKER, "");
    options.database = 1;
    EXPECT_OPEN(&options, EMQ_ENOPERM, "NOPERM");
    options = options_of(EMQ_ROLE_WORKER, " +select");
    options.database = 1;
    EXPECT_OPEN(&options, EMQ_OK, NULL);
}

static void an_installer_installs(void **state) {
    (void)state;
    emq_client_options options = options_of(EMQ_ROLE_INSTALLER, "");
    run(server.admin, "DEL", "{emq}:version", NULL);
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_OK);
    assert_int_equal(count_refusals(), 0);
    char fence[32];
    assert_string_equal(get_text(fence, sizeof(fence), server.admin, "GET", "{emq}:version", NULL),
                        "echomq:6.0.0");
    /* and is no client of any queue */
    EXPECT_OPEN(&options, EMQ_ENOPERM, "NOPERM");
}

static int fail_once(emq_task *task, void *user) {
    (void)user;
    (void)emq_task_set_delay(task, 0);
    return emq_task_get_attempts(task) == 1 ? EMQ_TASK_FAIL : EMQ_TASK_COMPLETE;
}

static emq_worker *start_worker(const emq_client_options *options) {
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    emq_worker *worker = NULL;
    works.claim_wait_ms = 10000;
    assert_int_equal(emq_worker_open(&worker, options, &works), EMQ_OK);
    assert_int_equal(emq_worker_add(worker, "q", fail_once, NULL, NULL), EMQ_OK);
    assert_int_equal(emq_worker_start(worker), EMQ_OK);
    return worker;
}

static int has_completed(void *worker) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    return emq_worker_get_stats(&stats, worker) == EMQ_OK && stats.completed > 0;
}

static int has_blocked(void *data) {
    redisReply *list = call(data, "CLIENT", "LIST", NULL);
    int found = strstr(list->str, " flags=b") != NULL;
    freeReplyObject(list);
    return found;
}

static void end_worker(emq_worker *worker) {
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    assert_int_equal(emq_worker_wait(NULL, worker, LONG_MS), EMQ_OK);
    emq_worker_free(worker);
}

/* The runtime does all of its work with the rules of a worker, and is not refused once. */
static void a_worker_program_needs_no_more_than_its_rules(void **state) {
    emq_id id = {{0}};
    (void)state;
    emq_client_options produces = options_of(EMQ_ROLE_PRODUCER, "");
    emq_client_options works = options_of(EMQ_ROLE_WORKER, "");
    emq_client *producer = open_client(&produces);
    emq_worker *worker = start_worker(&works);
    EXPECT_RESULT(producer, emq_enqueue(&id, producer, "q", "x", 1), EMQ_OK);
    wait_until("a job is done that failed first", has_completed, worker);
    wait_until("its claim waits", has_blocked, server.admin);
    end_worker(worker);
    assert_int_equal(count_refusals(), 0);
    emq_client_close(producer);
}

/* Without the words for it, the claim that waits ends with its connection. */
static void a_worker_program_ends_without_the_right_to_unblock(void **state) {
    (void)state;
    emq_client_options works = options_of(EMQ_ROLE_WORKER, " -client|id -client|unblock");
    emq_worker *worker = start_worker(&works);
    wait_until("its claim waits", has_blocked, server.admin);
    end_worker(worker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_job_goes_from_producer_to_worker, clean),
        cmocka_unit_test_setup(a_worker_program_needs_no_more_than_its_rules, clean),
        cmocka_unit_test_setup(a_worker_program_ends_without_the_right_to_unblock, clean),
        cmocka_unit_test_setup(a_service_has_the_broad_form, clean),
        cmocka_unit_test_setup(every_role_of_a_queue_opens, clean),
        cmocka_unit_test_setup(another_database_takes_select, clean),
        cmocka_unit_test_setup(an_installer_installs, clean),
    };
    return RUN_SERVER_TESTS("roles", tests, start_server, stop_server);
}
