/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client with sentinels: three real ones through failovers, and scripted ones. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "listener.h"
#include "watch.h"

#define REQUESTS 5

static test_loop t;

static emq_client_options options_for_list(char list[32], unsigned port) {
    emq_client_options options = options_for_watch(&watched);
    (void)snprintf(list, 32, "127.0.0.1:%u", port);
    options.sentinels = list;
    return options;
}

/* The port of the server at the other end, as it tells it; 0 when there was no answer. */
static int port_there(void) {
    static const char *const words[] = {"CONFIG", "GET", "port"};
    emq_request *request = NULL;
    assert_int_equal(emq_request_command(&request, 3, words, NULL), EMQ_OK);
    outcome out = do_request(&t, request);
    int port = out.result == EMQ_OK
                   ? atoi(emq_reply_get_string(emq_reply_get_element(out.reply, 1), NULL))
                   : 0;
    outcome_clear(&out);
    return port;
}

static void expect_opens_at_primary(const emq_client_options *options) {
    loop_open(&t, options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    assert_int_equal(port_there(), watch_primary(&watched)->port);
    loop_finish(&t);
}

static void expect_told(const emq_client_options *options, emq_async_state state, int reason,
                        const char *says) {
    loop_open(&t, options, NULL);
    loop_until_told(&t, state, reason);
    if (strstr(emq_async_get_error(t.client), says) == NULL) {
        fail_msg("'%s' does not say '%s'", emq_async_get_error(t.client), says);
    }
    loop_finish(&t);
}

static void it_opens_on_the_primary(void **state) {
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    loop_open(&t, &options, NULL);
    outcome out = do_request(&t, enqueue_request("jobs", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_OK);
    assert_int_equal(t.told, 2); /* the steps between are nobody's concern */
    assert_int_equal(t.states[0], EMQ_ASYNC_CONNECTING);
    assert_int_equal(port_there(), watch_primary(&watched)->port);
    loop_finish(&t);
}

static void refusals_and_failures_have_their_results(void **state) {
    char list[32];
    int reserved = -1;
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    options.primary_name = "nobody";
    expect_told(&options, EMQ_ASYNC_REFUSED, EMQ_EPRIMARYNAME, "knows no primary of this name");
    options = options_for_watch(&watched);
    options.sentinel_password = "wrong";
    expect_told(&options, EMQ_ASYNC_REFUSED, EMQ_EAUTH, "AUTH");
    options.sentinel_password = NULL;
    options.sentinel_password_env = "EMQ_TEST_NO_SUCH_VARIABLE";
    expect_told(&options, EMQ_ASYNC_REFUSED, EMQ_EINVAL, "EMQ_TEST_NO_SUCH_VARIABLE");
    options = options_for_list(list, closed_port(&reserved));
    expect_told(&options, EMQ_ASYNC_CLOSED, EMQ_ESENTINEL, "refused");
    (void)close(reserved);
}

static void a_silent_one_gets_a_share_of_the_time(void **state) {
    const peer_script silent = {.steps = {{PEER_HOLD, NULL, 0}}};
    char list[WATCH_LIST_MAX + 32];
    (void)state;
    peer *p = peer_start(&silent);
    emq_client_options options = options_for_list(list, peer_port(p));
    options.connect_timeout_ms = SHORT_MS;
    expect_told(&options, EMQ_ASYNC_CLOSED, EMQ_ESENTINEL, "in time");
    peer_stop(p);
    p = peer_start(&silent);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u,%s", peer_port(p), watched.list);
    options = options_for_watch(&watched);
    options.sentinels = list;
    options.connect_timeout_ms = 6000;
    loop_open(&t, &options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    assert_int_equal(t.told, 2);
    assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
    loop_until_told(&t, EMQ_ASYNC_CONNECTING, EMQ_OK);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    assert_int_equal(peer_connections(p), 1); /* it is not asked first any more */
    loop_finish(&t);
    peer_stop(p);
}

static void one_that_names_a_replica_is_not_believed(void **state) {
    char list[WATCH_LIST_MAX + 32];
    (void)state;
    peer *liar = start_liar("127.0.0.1", watch_replica(&watched)->port);
    emq_client_options options = options_for_list(list, peer_port(liar));
    options.connect_timeout_ms = SHORT_MS;
    expect_told(&options, EMQ_ASYNC_CLOSED, EMQ_ENOPRIMARY, "its role is slave");
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u,%s", peer_port(liar), watched.list);
    options = options_for_watch(&watched);
    options.sentinels = list;
    expect_opens_at_primary(&options);
    peer_stop(liar);
}

static void names_are_looked_up(void **state) {
    char list[64];
    (void)state;
    peer *p = start_liar("localhost", watch_primary(&watched)->port);
    emq_client_options options = options_for_watch(&watched);
    (void)snprintf(list, sizeof(list), "no.such.host.invalid,localhost:%u", peer_port(p));
    options.sentinels = list;
    expect_opens_at_primary(&options);
    peer_stop(p);
}

/* While a sentinel is asked, while a name is looked up, in a pause, while a server is tried. */
static void it_closes_in_every_step(void **state) {
    const peer_script silent = {.steps = {{PEER_HOLD, NULL, 0}}};
    char list[64];
    (void)state;
    peer *p = peer_start(&silent);
    peer *to_silence = start_liar("127.0.0.1", peer_port(p));
    emq_client_options options = options_for_list(list, peer_port(p));
    loop_open(&t, &options, NULL);
    loop_rest(&t);
    loop_finish(&t);
    options = options_for_list(list, peer_port(to_silence));
    loop_open(&t, &options, NULL);
    loop_rest(&t);
    assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
    loop_rest(&t);
    loop_finish(&t);
    options.sentinels = "no.such.host.invalid";
    loop_open(&t, &options, NULL);
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    loop_finish(&t);
    peer_stop(to_silence);
    peer_stop(p);
    peer *liar = start_liar("127.0.0.1", watch_replica(&watched)->port);
    options = options_for_list(list, peer_port(liar));
    for (int i = 0; i < 5; i++) { /* mostly in a pause */
        loop_open(&t, &options, NULL);
        loop_rest(&t);
        loop_finish(&t);
    }
    peer_stop(liar);
}

/* All that was sent is refused as clearly; what comes later waits for a primary. */
static void a_demoted_server_is_left(void **state) {
    test_server server;
    char list[32];
    char nowhere[16];
    int reserved = -1;
    outcome outcomes[REQUESTS + 1] = {{0}};
    (void)state;
    server_start(&server, NULL);
    peer *p = start_liar("127.0.0.1", server.port);
    (void)snprintf(nowhere, sizeof(nowhere), "%u", closed_port(&reserved));
    emq_client_options options = options_for_list(list, peer_port(p));
    options.connect_timeout_ms = SHORT_MS;
    loop_open(&t, &options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    run(server.admin, "REPLICAOF", "127.0.0.1", nowhere, NULL);
    for (int i = 0; i < REQUESTS; i++) {
        loop_submit(&t, enqueue_request("jobs", "p", 1), &outcomes[i]);
    }
    loop_until_ended(&t, outcomes, REQUESTS);
    for (int i = 0; i < REQUESTS; i++) {
        EXPECT_OUTCOME(&outcomes[i], EMQ_EREADONLY);
    }
    loop_submit(&t, enqueue_request("jobs", "p", 1), &outcomes[REQUESTS]);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_EREADONLY);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ENOPRIMARY);
    run(server.admin, "REPLICAOF", "NO", "ONE", NULL);
    loop_until_ended(&t, outcomes, REQUESTS + 1);
    EXPECT_OUTCOME(&outcomes[REQUESTS], EMQ_OK);
    loop_finish(&t);
    (void)close(reserved);
    peer_stop(p);
    server_stop(&server);
}

/* A server that refuses one request, and takes its time with the next. */
static void nothing_more_is_sent_to_a_demoted_server(void **state) {
    const peer_script script = {.steps = {PEER_SENDS("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
                                          PEER_HANDSHAKE, PEER_SENDS("-READONLY a replica\r\n")}};
    const int sent = 1 + PEER_HANDSHAKE_COMMANDS + 2;
    char list[32];
    outcome refused = {0};
    outcome late[2] = {{0}};
    (void)state;
    peer *server = peer_start(&script);
    peer *p = start_liar("127.0.0.1", peer_port(server));
    emq_client_options options = options_for_list(list, peer_port(p));
    loop_open(&t, &options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_submit(&t, enqueue_request("jobs", "p", 1), &refused);
    loop_submit(&t, enqueue_request("jobs", "p", 1), &late[0]);
    loop_until_ended(&t, &refused, 1);
    EXPECT_OUTCOME(&refused, EMQ_EREADONLY);
    loop_submit(&t, enqueue_request("jobs", "p", 1), &late[1]);
    loop_rest(&t);
    assert_int_equal(peer_commands(server), sent);
    assert_int_equal(late[0].calls, 0);
    peer_act(server, (peer_step){.action = PEER_SEND, .bytes = ":1\r\n"});
    loop_until_ended(&t, late, 2);
    EXPECT_OUTCOME(&late[0], EMQ_OK);
    EXPECT_OUTCOME(&late[1], EMQ_EREADONLY); /* of the next connection, whose script is the same */
    assert_int_equal(peer_connections(server), 2);
    loop_finish(&t);
    peer_stop(p);
    peer_stop(server);
}

/* ---- failovers ---- */

static int start_following(void) {
    emq_client_options options = options_for_watch(&watched);
    options.connect_timeout_ms = 6000;
    watch_settle(&watched);
    loop_open(&t, &options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    int port = port_there();
    assert_int_equal(port, watch_primary(&watched)->port);
    return port;
}

/* Until an enqueue is done on another server than before. The job has one id all the time. */
static void finish_following(int from) {
    emq_id id = {{0}};
    outcome out = {0};
    assert_int_equal(emq_id_mint(&id, "JOB"), EMQ_OK);
    do {
        emq_request *request = NULL;
        assert_int_equal(emq_request_enqueue(&request, &id, "jobs", "p", 1), EMQ_OK);
        out = do_request(&t, request);
        emq_class class = emq_err_class(out.result);
        if (class != EMQ_CLASS_OK && class != EMQ_CLASS_RETRYABLE && class != EMQ_CLASS_UNKNOWN) {
            fail_msg("%s '%s'", emq_err_name(out.result), out.error);
        }
    } while (out.result < 0 || port_there() == from || port_there() == 0);
    loop_finish(&t);
}

static void publish_at_primary(void) {
    redisContext *c = server_connect(watch_primary(&watched));
    run(c, "EMQ.PUBLISH", "1", "emq:{q}:", "event", "job", NULL);
    redisFree(c);
}

static void a_subscription_follows_a_failover_by_hand(void **state) {
    listener l;
    (void)state;
    const emq_client_options options = options_for_watch(&watched);
    watch_settle(&watched);
    listener_open(&l, &options, "q");
    listener_until_open(&l);
    publish_at_primary();
    listener_until_messages(&l, 1);
    run(watched.sentinels[0].admin, "SENTINEL", "FAILOVER", WATCH_NAME, NULL);
    listener_until_reconnects(&l, 1);
    watch_settle(&watched);
    loop_rest(&l.t); /* what was lost meanwhile is noticed */
    listener_until_open(&l);
    publish_at_primary();
    listener_until_messages(&l, 2);
    assert_int_equal(l.resumed[1], 1);
    listener_finish(&l);
}

static void a_killed_primary_is_left(void **state) {
    (void)state;
    int port = start_following();
    test_server *old = watch_primary(&watched);
    server_kill(old);
    finish_following(port);
    server_revive(old);
    watch_settle(&watched);
    assert_int_not_equal(watch_primary(&watched)->port, port);
}

/* Over a connection that no failover has ended. */
static void wait_for_replica(const test_server *primary) {
    redisContext *c = server_connect(primary);
    run(c, "SET", "written", "last", NULL);
    assert_int_equal(get_integer(c, "WAIT", "1", "0", NULL), 1);
    redisFree(c);
}

/* The complete was sent to the old primary, and goes to the new one by itself. */
static void what_may_be_sent_twice_goes_to_the_new_primary(void **state) {
    outcome enqueued = {0};
    outcome completed = {0};
    (void)state;
    int port = start_following();
    test_server *old = watch_primary(&watched);
    outcome out = do_request(&t, enqueue_request("twice", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_OK);
    out = do_request(&t, claim_request("twice"));
    EXPECT_OUTCOME(&out, EMQ_OK);
    wait_for_replica(old);
    assert_int_equal(kill((pid_t)old->pid, SIGSTOP), 0);
    loop_submit(&t, complete_request(emq_job_get_lease(out.job)), &completed);
    emq_request *request = enqueue_request("twice", "p", 1);
    emq_request_set_timeout(request, SHORT_MS);
    loop_submit(&t, request, &enqueued);
    loop_until_ended(&t, &enqueued, 1);
    EXPECT_OUTCOME(&enqueued, EMQ_ETIMEOUT);
    loop_until_ended(&t, &completed, 1);
    EXPECT_OUTCOME(&completed, EMQ_OK);
    assert_int_not_equal(port_there(), port);
    outcome_clear(&out);
    loop_finish(&t);
    assert_int_equal(kill((pid_t)old->pid, SIGCONT), 0);
    watch_settle(&watched);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_on_the_primary),
        cmocka_unit_test(refusals_and_failures_have_their_results),
        cmocka_unit_test(a_silent_one_gets_a_share_of_the_time),
        cmocka_unit_test(one_that_names_a_replica_is_not_believed),
        cmocka_unit_test(names_are_looked_up),
        cmocka_unit_test(it_closes_in_every_step),
        cmocka_unit_test(a_demoted_server_is_left),
        cmocka_unit_test(nothing_more_is_sent_to_a_demoted_server),
        cmocka_unit_test(a_subscription_follows_a_failover_by_hand),
        cmocka_unit_test(a_killed_primary_is_left),
        cmocka_unit_test(what_may_be_sent_twice_goes_to_the_new_primary),
    };
    return RUN_SERVER_TESTS("async_sentinel", tests, start_watch, stop_watch);
}
