/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client with peers that misbehave: each request has its callback once, a reply is
 * never matched to another request, and a client can be closed wherever it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async.h"
#include "loop.h"

#define ID "$14\r\nJOB0KHTOWnGLuC\r\n"
#define JOB_REPLY "*3\r\n" ID "$7\r\npayload\r\n:1\r\n"
#define MANY 5

static const emq_lease some_lease = {"q", {"JOB0KHTOWnGLuC"}, 1};

/* A pause that a test does not see the end of. */
#define LONG_PAUSE                                                                                 \
    { .size = sizeof(emq_async_options), .backoff_min_ms = LONG_MS, .backoff_max_ms = LONG_MS }

static void open_on_peer(test_loop *t, const peer *p, const emq_async_options *async_options) {
    emq_client_options options = options_for_peer(p);
    loop_open(t, &options, async_options);
}

static peer *start_peer(peer_step first, peer_step second) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, first, second}};
    return peer_start(&script);
}

static const peer_step hold = {PEER_HOLD, NULL, 0};

static emq_request *with_timeout(emq_request *request, uint32_t timeout_ms) {
    emq_request_set_timeout(request, timeout_ms);
    return request;
}

/* Attempts that fail. */

static void a_refused_connect_is_tried_again(void **state) {
    test_loop t;
    outcome out = {0};
    int reserved = -1;
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = closed_port(&reserved);
    loop_open(&t, &options, &loop_short_pause);
    loop_submit(&t, with_timeout(ping_request(), SHORT_MS), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_ECONNTIMEOUT); /* never sent */
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNECT);
    assert_true(t.told > 4); /* connecting, closed, connecting, closed, … */
    for (int i = 0; i < t.told; i++) {
        assert_int_equal(t.states[i], i % 2 == 0 ? EMQ_ASYNC_CONNECTING : EMQ_ASYNC_CLOSED);
    }
    assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_TIMEOUTS), 1);
    assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_CONNECTS), 0);
    loop_finish(&t);
    (void)close(reserved);
}

static void an_attempt_has_a_deadline(void **state) {
    static const peer_script scripts[] = {
        {.greeting = {PEER_HOLD, NULL, 0}},
        {.steps = {PEER_SENDS(PEER_OK)}},
        {.steps = {PEER_SENDS(PEER_OK), {PEER_DRIP, PEER_VERSION, 0}}},
        {.steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), PEER_SENDS("$12\r\necho")}}};
    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        test_loop t;
        outcome out = {0};
        peer *p = peer_start(&scripts[i]);
        emq_client_options options = options_for_peer(p);
        options.connect_timeout_ms = 100;
        loop_open(&t, &options, &loop_short_pause);
        loop_submit(&t, ping_request(), &out);
        loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
        loop_until_connections(&t, p, 2);
        assert_int_equal(out.calls, 0); /* it waits until its own deadline */
        loop_close_client(&t);
        loop_until_ended(&t, &out, 1);
        EXPECT_OUTCOME(&out, EMQ_ECLOSED);
        loop_finish(&t);
        peer_stop(p);
    }
}

static void a_deaf_address_has_a_deadline(void **state) {
    test_loop t;
    int sockets[2];
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = deaf_port(sockets);
    options.connect_timeout_ms = 100;
    loop_open(&t, &options, NULL);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
    loop_finish(&t);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
}

static void a_loss_on_the_connect_path_is_tried_again(void **state) {
    static const peer_script scripts[] = {
        {.greeting = {PEER_CLOSE, NULL, 0}},
        {.greeting = {PEER_RESET, NULL, 0}},
        {.greeting = {PEER_SEND_AND_CLOSE, "-ERR max number of clients reached\r\n", 0}},
        {.steps = {{PEER_CLOSE, NULL, 0}}},
        {.steps = {PEER_SENDS(PEER_OK), {PEER_RESET, NULL, 0}}},
        {.steps = {PEER_SENDS(PEER_OK),
                   PEER_SENDS(PEER_VERSION),
                   {PEER_SEND_AND_CLOSE, "$12\r\necho", 0}}}};
    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        test_loop t;
        peer *p = peer_start(&scripts[i]);
        open_on_peer(&t, p, &loop_short_pause);
        loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNECT);
        loop_until_connections(&t, p, 3);
        loop_finish(&t);
        peer_stop(p);
    }
}

static void a_loading_server_is_tried_again(void **state) {
    test_loop t;
    const peer_script script = {.steps = {PEER_SENDS(PEER_OK),
                                          PEER_SENDS("-LOADING dataset in memory\r\n"),
                                          PEER_SENDS("-LOADING dataset in memory\r\n")}};
    (void)state;
    peer *p = peer_start(&script);
    open_on_peer(&t, p, &loop_short_pause);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ELOADING);
    loop_until_connections(&t, p, 3);
    loop_finish(&t);
    peer_stop(p);
}

static void a_refusal_rests_until_it_is_asked_again(void **state) {
    static const struct {
        peer_step fence;
        int result;
    } cases[] = {{PEER_SENDS("$-1\r\n"), EMQ_EFENCE_ABSENT},
                 {PEER_SENDS("$12\r\nechomq:5.0.0\r\n"), EMQ_EFENCE},
                 {PEER_SENDS("-NOPERM no\r\n"), EMQ_ENOPERM},
                 {PEER_SENDS("what?\r\n"), EMQ_EPROTOCOL},
                 {PEER_SENDS("*2147483647\r\n"), EMQ_EPROTOCOL},
                 {PEER_SENDS(PEER_WIRE ":1\r\n"), EMQ_EPROTOCOL}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_loop t;
        outcome out = {0};
        const peer_script script = {
            .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), cases[i].fence}};
        peer *p = peer_start(&script);
        open_on_peer(&t, p, &loop_short_pause);
        loop_submit(&t, ping_request(), &out);
        loop_until_ended(&t, &out, 1);
        EXPECT_OUTCOME(&out, cases[i].result);
        loop_until_state(&t, EMQ_ASYNC_REFUSED);
        assert_string_equal(out.error, emq_async_get_error(t.client));
        emq_request *request = ping_request();
        assert_int_equal(emq_async_submit(t.client, request, note_outcome, &out), EMQ_ECLOSED);
        outcome other = {0};
        assert_int_equal(emq_async_submit_threadsafe(t.client, request, note_outcome, &other),
                         EMQ_OK);
        loop_until_ended(&t, &other, 1);
        EXPECT_OUTCOME(&other, cases[i].result);
        loop_rest(&t);
        assert_int_equal(peer_connections(p), 1);
        assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
        loop_until_connections(&t, p, 2);
        loop_until_state(&t, EMQ_ASYNC_REFUSED);
        loop_finish(&t);
        peer_stop(p);
    }
}

static void a_wrong_password_is_a_refusal(void **state) {
    test_loop t;
    const peer_script script = {
        .steps = {PEER_SENDS("-WRONGPASS invalid username-password pair\r\n")}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.password = "secret";
    loop_open(&t, &options, &loop_short_pause);
    loop_until_told(&t, EMQ_ASYNC_REFUSED, EMQ_EAUTH);
    assert_int_equal(peer_commands(p), 1);
    loop_finish(&t);
    peer_stop(p);
}

/* Names. */

static void a_name_is_resolved(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer((peer_step)PEER_SENDS("+PONG\r\n"), hold);
    emq_client_options options = options_for_peer(p);
    options.host = "localhost";
    loop_open(&t, &options, NULL);
    loop_submit(&t, ping_request(), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_finish(&t);
    peer_stop(p);
}

static void an_unknown_name_is_tried_again(void **state) {
    test_loop t;
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.host = "no-such-host.invalid";
    options.connect_timeout_ms = LONG_MS;
    loop_open(&t, &options, &loop_short_pause);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ERESOLVE);
    loop_finish(&t);
}

/* Losses with requests in flight. */

/* What is sent more than once, and what is not. */
static void a_loss_is_an_unknown_outcome(void **state) {
    static const peer_step ends[] = {{PEER_CLOSE, NULL, 0},
                                     {PEER_RESET, NULL, 0},
                                     {PEER_SEND_AND_CLOSE, "*3\r\n" ID, 0},
                                     {PEER_SEND_AND_CLOSE, ":", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        test_loop t;
        outcome outs[2] = {{0}};
        peer *p = start_peer(hold, ends[i]);
        open_on_peer(&t, p, &loop_short_pause);
        loop_submit(&t, enqueue_request("q", "p", 1), &outs[0]);
        loop_submit(&t, claim_request("q"), &outs[1]);
        loop_until_ended(&t, outs, 2);
        EXPECT_OUTCOME(&outs[0], EMQ_ECONNLOST);
        EXPECT_OUTCOME(&outs[1], EMQ_ECONNLOST);
        loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNLOST);
        loop_until_state(&t, EMQ_ASYNC_OPEN);
        loop_rest(&t);
        assert_int_equal(peer_commands(p), 2 * PEER_HANDSHAKE_COMMANDS + 2);
        assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_RECONNECTS), 1);
        loop_finish(&t);
        peer_stop(p);
    }
}

static void a_complete_is_sent_once_more(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer((peer_step){PEER_CLOSE, NULL, 0}, hold);
    open_on_peer(&t, p, &loop_short_pause);
    loop_submit(&t, complete_request(&some_lease), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_ECONNLOST);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_rest(&t);
    assert_int_equal(peer_commands(p), 3 * PEER_HANDSHAKE_COMMANDS + 2); /* twice, and no more */
    char *first = peer_command(p, PEER_HANDSHAKE_COMMANDS);
    char *second = peer_command(p, 2 * PEER_HANDSHAKE_COMMANDS + 1);
    assert_string_equal(first, second);
    assert_memory_equal(first, "EMQ.COMPLETE ", 13);
    free(first);
    free(second);
    loop_finish(&t);
    peer_stop(p);
}

/* It may have been done the first time, whatever keeps it from being sent once more. */
static void a_complete_that_waits_to_be_sent_once_more_is_unknown(void **state) {
    static const peer_script refusing = {
        .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), PEER_SENDS("$-1\r\n")}};
    static const emq_async_options long_pause = LONG_PAUSE;
    (void)state;
    for (int is_refused = 0; is_refused <= 1; is_refused++) {
        char path[64];
        test_loop t;
        outcome outs[2] = {{0}};
        const peer_script losing = {.steps = {PEER_HANDSHAKE, {PEER_CLOSE, NULL, 0}},
                                    .unix_path = path};
        peer_script second = refusing;
        second.unix_path = path;
        (void)snprintf(path, sizeof(path), "/tmp/emq-once-more-%d.sock", (int)getpid());
        peer *p = peer_start(&losing);
        emq_client_options options = options_for_peer(p);
        options.unix_path = path;
        loop_open(&t, &options, &long_pause);
        loop_until_state(&t, EMQ_ASYNC_OPEN);
        emq_request *complete = complete_request(&some_lease);
        loop_submit(&t, is_refused ? complete : with_timeout(complete, SHORT_MS), &outs[0]);
        loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNLOST);
        peer_stop(p);
        (void)unlink(path);
        if (is_refused) {
            loop_submit(&t, ping_request(), &outs[1]);
            p = peer_start(&second);
            assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
            loop_until_ended(&t, outs, 2);
            EXPECT_OUTCOME(&outs[1], EMQ_EFENCE_ABSENT);
            peer_stop(p);
            (void)unlink(path);
        }
        loop_until_ended(&t, outs, 1);
        EXPECT_OUTCOME(&outs[0], is_refused ? EMQ_ECONNLOST : EMQ_ETIMEOUT);
        loop_finish(&t);
    }
}

static void a_complete_is_not_repeated_when_that_is_off(void **state) {
    test_loop t;
    outcome out = {0};
    emq_async_options async_options = loop_short_pause;
    (void)state;
    async_options.complete_once = 1;
    peer *p = start_peer((peer_step){PEER_CLOSE, NULL, 0}, hold);
    open_on_peer(&t, p, &async_options);
    loop_submit(&t, complete_request(&some_lease), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_ECONNLOST);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_rest(&t);
    assert_int_equal(peer_commands(p), 2 * PEER_HANDSHAKE_COMMANDS + 1);
    loop_finish(&t);
    peer_stop(p);
}

static void an_answer_before_the_end_counts(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer((peer_step){PEER_SEND_AND_CLOSE, JOB_REPLY, 0}, hold);
    open_on_peer(&t, p, NULL);
    loop_submit(&t, claim_request("q"), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    assert_int_equal(emq_job_get_attempts(out.job), 1);
    outcome_clear(&out);
    loop_finish(&t);
    peer_stop(p);
}

/* What was not sent whole has done nothing, and goes out on the next connection. */
static void what_was_not_sent_whole_is_sent_again(void **state) {
    const size_t size = (size_t)64 * 1024 * 1024;
    test_loop t;
    outcome outs[2] = {{0}};
    char *payload = calloc(1, size);
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n"), hold},
                                .interrupt_at = 1024 * 1024,
                                .interrupt = {PEER_CLOSE, NULL, 0}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.max_payload = size;
    loop_open(&t, &options, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_submit(&t, enqueue_request("q", payload, size), &outs[0]);
    loop_until_connections(&t, p, 3);
    assert_int_equal(outs[0].calls, 0);
    loop_close_client(&t);
    loop_until_ended(&t, outs, 1);
    EXPECT_OUTCOME(&outs[0], EMQ_ECLOSED);
    free(payload);
    loop_finish(&t);
    peer_stop(p);
}

/* The rest of a request that was refused half must not be followed by another request. */
static void a_refusal_halfway_ends_the_connection(void **state) {
    const size_t size = (size_t)64 * 1024 * 1024;
    test_loop t;
    outcome outs[2] = {{0}};
    char *payload = calloc(1, size);
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS("+PONG\r\n")},
                                .interrupt_at = 1024 * 1024,
                                .interrupt = PEER_SENDS("-ERR too big\r\n")};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.max_payload = size;
    loop_open(&t, &options, &loop_short_pause);
    loop_submit(&t, enqueue_request("q", payload, size), &outs[0]);
    loop_until_ended(&t, outs, 1);
    EXPECT_OUTCOME(&outs[0], EMQ_ESERVER);
    assert_string_equal(outs[0].error, "ERR too big");
    loop_submit(&t, ping_request(), &outs[1]);
    loop_until_ended(&t, outs, 2);
    EXPECT_OUTCOME(&outs[1], EMQ_OK);
    assert_int_equal(peer_connections(p), 2);
    outcome_clear(&outs[1]);
    free(payload);
    loop_finish(&t);
    peer_stop(p);
}

/* Answers that are wrong. */

static void a_broken_answer_ends_the_connection(void **state) {
    static const char *const answers[] = {"+what\r\n",    ":2\r\n",          "*0\r\n:1\r\n",
                                          "nonsense\r\n", "*2147483647\r\n", "$-1\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        test_loop t;
        outcome outs[2] = {{0}};
        peer *p = start_peer(hold, (peer_step)PEER_SENDS(answers[i]));
        open_on_peer(&t, p, &loop_short_pause);
        loop_submit(&t, enqueue_request("q", "p", 1), &outs[0]);
        loop_submit(&t, enqueue_request("q", "p", 1), &outs[1]);
        loop_until_ended(&t, outs, 2);
        assert_true(outs[0].result == EMQ_EPROTOCOL || outs[0].result == EMQ_ECONNLOST);
        EXPECT_OUTCOME(&outs[1], EMQ_ECONNLOST);
        loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_EPROTOCOL);
        loop_until_connections(&t, p, 2);
        loop_finish(&t);
        peer_stop(p);
    }
}

static void bytes_that_nobody_asked_for_answer_nothing(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer((peer_step)PEER_SENDS("+PONG\r\n"), hold);
    open_on_peer(&t, p, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    peer_act(p, (peer_step){PEER_SEND, ":1\r\n", 0});
    loop_submit(&t, ping_request(), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK); /* on the second connection */
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_EPROTOCOL);
    assert_int_equal(peer_connections(p), 2);
    outcome_clear(&out);
    loop_finish(&t);
    peer_stop(p);
}

static void an_end_while_idle_loses_nothing(void **state) {
    static const peer_action ends[] = {PEER_CLOSE, PEER_RESET};
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        test_loop t;
        outcome out = {0};
        peer *p = start_peer((peer_step)PEER_SENDS("+PONG\r\n"), hold);
        open_on_peer(&t, p, &loop_short_pause);
        loop_until_state(&t, EMQ_ASYNC_OPEN);
        peer_act(p, (peer_step){ends[i], NULL, 0});
        loop_submit(&t, ping_request(), &out);
        loop_until_ended(&t, &out, 1);
        EXPECT_OUTCOME(&out, EMQ_OK);
        outcome_clear(&out);
        loop_finish(&t);
        peer_stop(p);
    }
}

/* Deadlines. */

static void a_late_answer_answers_nobody(void **state) {
    test_loop t;
    outcome outs[3] = {{0}};
    (void)state;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, &loop_short_pause);
    loop_submit(&t, with_timeout(enqueue_request("q", "p", 1), SHORT_MS), &outs[0]);
    loop_submit(&t, claim_request("q"), &outs[1]);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + 2);
    loop_until_ended(&t, outs, 2);
    EXPECT_OUTCOME(&outs[0], EMQ_ETIMEOUT);
    EXPECT_OUTCOME(&outs[1], EMQ_ECONNLOST);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ETIMEOUT);
    loop_until_connections(&t, p, 2);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_submit(&t, with_timeout(ping_request(), SHORT_MS), &outs[2]);
    loop_until_ended(&t, outs, 3);
    EXPECT_OUTCOME(&outs[2], EMQ_ETIMEOUT);
    assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_TIMEOUTS), 2);
    loop_finish(&t);
    peer_stop(p);
}

/* A loop that was held up looks for answers before it gives up. */
static void an_answer_that_came_in_time_counts(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, NULL);
    loop_submit(&t, with_timeout(ping_request(), SHORT_MS), &out);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + 1);
    peer_act(p, (peer_step){PEER_SEND, "+PONG\r\n", 0});
    (void)usleep(2 * SHORT_MS * 1000); /* the host is busy with something else */
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_finish(&t);
    peer_stop(p);
}

/* The pause grows while connections come to nothing, and begins anew once an answer has come. */
static void the_pause_grows_until_an_answer_comes(void **state) {
    test_loop t;
    outcome out = {0};
    emq_async_options async_options = loop_short_pause;
    (void)state;
    async_options.backoff_max_ms = LONG_MS;
    const peer_script script = {.steps = {PEER_HANDSHAKE, {PEER_SEND_AND_CLOSE, "+PONG\r\n", 0}}};
    peer *p = peer_start(&script);
    open_on_peer(&t, p, &async_options);
    for (unsigned int i = 1; i < 4; i++) {
        loop_until_state(&t, EMQ_ASYNC_OPEN);
        assert_int_equal(t.client->session.failures, i - 1);
        peer_act(p, (peer_step){PEER_CLOSE, NULL, 0});
        loop_until_connections(&t, p, (int)i + 1);
    }
    loop_submit(&t, ping_request(), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    assert_true(t.client->session.failures <= 1);
    outcome_clear(&out);
    loop_finish(&t);
    peer_stop(p);
}

/* Each verb, cut off at each point: how it ends, and how often it is sent. */
static void the_table_of_cuts_holds(void **state) {
    static const peer_step cuts[] = {{PEER_RESET, NULL, 0}, {PEER_SEND_AND_CLOSE, ":1\r\n", 0}};
    enum { ENQUEUE, CLAIM, COMPLETE, VERBS };
    static const int lost[VERBS] = {EMQ_ECONNLOST, EMQ_ECONNLOST, EMQ_ECONNLOST};
    static const int sent[VERBS] = {1, 1, 2};
    static const int answered[VERBS] = {EMQ_OK, EMQ_EPROTOCOL, EMQ_OK};
    (void)state;
    for (int verb = 0; verb < VERBS; verb++) {
        for (int cut = 0; cut < 2; cut++) {
            test_loop t;
            outcome out = {0};
            peer *p = start_peer(cuts[cut], hold);
            open_on_peer(&t, p, &loop_short_pause);
            loop_submit(&t,
                        verb == ENQUEUE ? enqueue_request("q", "p", 1)
                        : verb == CLAIM ? claim_request("q")
                                        : complete_request(&some_lease),
                        &out);
            loop_until_ended(&t, &out, 1);
            EXPECT_OUTCOME(&out, cut == 0 ? lost[verb] : answered[verb]);
            int times = cut == 0 ? sent[verb] : 1;
            loop_until_connections(&t, p, times + 1);
            loop_until_state(&t, EMQ_ASYNC_OPEN);
            loop_rest(&t);
            assert_int_equal(peer_commands(p), (times + 1) * PEER_HANDSHAKE_COMMANDS + times);
            loop_finish(&t);
            peer_stop(p);
        }
    }
}

static void bytes_that_drip_move_no_deadline(void **state) {
    test_loop t;
    outcome out = {0};
    static const char dripped[] = "$1000\r\n-----------------------------------------------------"
                                  "-------------------------------------------------------------";
    (void)state;
    peer *p = start_peer((peer_step){PEER_DRIP, dripped, 0}, hold);
    open_on_peer(&t, p, NULL);
    loop_submit(&t, with_timeout(ping_request(), SHORT_MS), &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_ETIMEOUT);
    loop_finish(&t);
    peer_stop(p);
}

static void a_flood_moves_no_deadline(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer((peer_step){PEER_FLOOD, "*1\r\n", 0}, hold);
    open_on_peer(&t, p, NULL);
    loop_submit(&t, with_timeout(ping_request(), SHORT_MS), &out);
    loop_until_ended(&t, &out, 1);
    assert_true(out.result == EMQ_EPROTOCOL || out.result == EMQ_ETIMEOUT ||
                out.result == EMQ_ECONNLOST);
    loop_finish(&t);
    peer_stop(p);
}

/* Limits and canceling. */

static void too_many_requests_are_turned_down(void **state) {
    test_loop t;
    outcome outs[MANY] = {{0}};
    emq_async_options async_options = loop_short_pause;
    (void)state;
    async_options.max_requests = MANY;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, &async_options);
    for (int i = 0; i < MANY; i++) {
        loop_submit(&t, ping_request(), &outs[i]);
    }
    emq_request *request = ping_request();
    assert_int_equal(emq_async_submit(t.client, request, note_outcome, NULL), EMQ_EOVERLOAD);
    assert_int_equal(emq_err_class(EMQ_EOVERLOAD), EMQ_CLASS_RETRYABLE);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + MANY);
    assert_int_equal(emq_async_submit(t.client, request, note_outcome, NULL), EMQ_EOVERLOAD);
    assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_OVERLOADS), 2);
    peer_act(p, (peer_step){PEER_SEND, "+PONG\r\n", 0});
    loop_until_ended(&t, outs, 1);
    outcome again = {0};
    loop_submit(&t, request, &again); /* there is room, and it was the caller's still */
    loop_close_client(&t);
    loop_until_ended(&t, outs, MANY);
    EXPECT_OUTCOME(&outs[0], EMQ_OK);
    for (int i = 1; i < MANY; i++) {
        EXPECT_OUTCOME(&outs[i], EMQ_ECLOSED);
    }
    EXPECT_OUTCOME(&again, EMQ_ECLOSED);
    outcome_clear(&outs[0]);
    loop_finish(&t);
    peer_stop(p);
}

static void too_many_bytes_are_turned_down(void **state) {
    test_loop t;
    char payload[2000] = "";
    outcome outs[2] = {{0}};
    emq_async_options async_options = loop_short_pause;
    (void)state;
    async_options.max_bytes = 1000;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, &async_options);
    loop_submit(&t, enqueue_request("q", payload, sizeof(payload)), &outs[0]); /* alone it may */
    emq_request *request = ping_request();
    assert_int_equal(emq_async_submit(t.client, request, note_outcome, NULL), EMQ_EOVERLOAD);
    emq_request_free(request);
    loop_finish(&t);
    EXPECT_OUTCOME(&outs[0], EMQ_ECLOSED);
    peer_stop(p);
}

static void a_canceled_request_is_not_sent(void **state) {
    test_loop t;
    outcome outs[2] = {{0}};
    (void)state;
    peer *p = start_peer((peer_step)PEER_SENDS("+PONG\r\n"), hold);
    open_on_peer(&t, p, NULL);
    emq_request *request = loop_submit(&t, claim_request("q"), &outs[0]);
    loop_submit(&t, ping_request(), &outs[1]);
    assert_int_equal(emq_request_cancel(request), EMQ_OK);
    assert_int_equal(emq_request_cancel(request), EMQ_OK);
    assert_int_equal(outs[0].calls, 0);
    loop_until_ended(&t, outs, 2);
    EXPECT_OUTCOME(&outs[0], EMQ_ECANCELED);
    EXPECT_OUTCOME(&outs[1], EMQ_OK);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS + 1);
    assert_int_equal(emq_request_cancel(NULL), EMQ_EINVAL);
    outcome_clear(&outs[1]);
    loop_finish(&t);
    peer_stop(p);
}

/* Also before the loop has come round to it. */
static void a_request_from_another_thread_is_canceled(void **state) {
    test_loop t;
    outcome outs[2] = {{0}};
    (void)state;
    peer *p = start_peer((peer_step)PEER_SENDS("+PONG\r\n"), hold);
    open_on_peer(&t, p, NULL);
    emq_request *request = claim_request("q");
    assert_int_equal(emq_async_submit_threadsafe(t.client, request, note_outcome, &outs[0]),
                     EMQ_OK);
    assert_int_equal(emq_async_submit_threadsafe(t.client, ping_request(), note_outcome, &outs[1]),
                     EMQ_OK);
    assert_int_equal(emq_request_cancel(request), EMQ_OK);
    assert_int_equal(emq_request_cancel(request), EMQ_OK);
    assert_int_equal(outs[0].calls, 0);
    loop_until_ended(&t, outs, 2);
    EXPECT_OUTCOME(&outs[0], EMQ_ECANCELED);
    EXPECT_OUTCOME(&outs[1], EMQ_OK);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS + 1);
    outcome_clear(&outs[1]);
    loop_finish(&t);
    peer_stop(p);
}

/* Its answer is dropped, and not given to the next one. */
static void a_canceled_request_keeps_its_place(void **state) {
    test_loop t;
    outcome outs[2] = {{0}};
    (void)state;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, NULL);
    emq_request *request = loop_submit(&t, claim_request("q"), &outs[0]);
    loop_submit(&t, ping_request(), &outs[1]);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + 2);
    assert_int_equal(emq_request_cancel(request), EMQ_OK);
    assert_int_equal(outs[0].calls, 0);
    loop_until_ended(&t, outs, 1);
    EXPECT_OUTCOME(&outs[0], EMQ_ECANCELED);
    peer_act(p, (peer_step){PEER_SEND, JOB_REPLY "+PONG\r\n", 0});
    loop_until_ended(&t, outs, 2);
    EXPECT_OUTCOME(&outs[1], EMQ_OK);
    assert_string_equal(emq_reply_get_string(outs[1].reply, NULL), "PONG");
    outcome_clear(&outs[1]);
    loop_finish(&t);
    EXPECT_OUTCOME(&outs[0], EMQ_ECANCELED);
    peer_stop(p);
}

/* A canceled one that is never answered must not hold up the connection for ever. */
static void a_canceled_request_keeps_its_deadline(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, &loop_short_pause);
    emq_request *request = loop_submit(&t, with_timeout(claim_request("q"), SHORT_MS), &out);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + 1);
    assert_int_equal(emq_request_cancel(request), EMQ_OK);
    loop_until_connections(&t, p, 2);
    loop_finish(&t);
    EXPECT_OUTCOME(&out, EMQ_ECANCELED);
    peer_stop(p);
}

/* Closing, wherever it is. */

static int are_closed(void *data) {
    const test_loop *t = data;
    return t->closes > 0;
}

/* Everything that was submitted ends, then the client is gone, then nothing is left on the loop. */
static void close_and_check(test_loop *t, outcome *outs, int count) {
    loop_close_client(t);
    assert_int_equal(emq_async_close(t->client, NULL, NULL), EMQ_ECLOSED);
    assert_int_equal(emq_async_reconnect(t->client), EMQ_ECLOSED);
    emq_request *request = ping_request();
    assert_int_equal(emq_async_submit(t->client, request, note_outcome, outs), EMQ_ECLOSED);
    assert_int_equal(emq_async_submit_threadsafe(t->client, request, note_outcome, outs),
                     EMQ_ECLOSED);
    emq_request_free(request);
    loop_until(t, are_closed, t);
    for (int i = 0; i < count; i++) {
        EXPECT_OUTCOME(&outs[i], EMQ_ECLOSED);
    }
    loop_finish(t);
}

static void submit_many(test_loop *t, outcome outs[MANY]) {
    memset(outs, 0, MANY * sizeof(*outs));
    for (int i = 0; i < MANY - 1; i++) {
        loop_submit(t, enqueue_request("q", "p", 1), &outs[i]);
    }
    assert_int_equal(
        emq_async_submit_threadsafe(t->client, ping_request(), note_outcome, &outs[MANY - 1]),
        EMQ_OK);
}

static void closed_before_the_loop_runs(void **state) {
    test_loop t;
    outcome outs[MANY];
    (void)state;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, NULL);
    submit_many(&t, outs);
    close_and_check(&t, outs, MANY);
    assert_int_equal(t.told, 0);
    peer_stop(p);
}

static void closed_while_it_resolves(void **state) {
    (void)state;
    for (int rounds = 0; rounds < 3; rounds++) {
        test_loop t;
        outcome outs[MANY];
        emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
        options.host = "no-such-host.invalid";
        loop_open(&t, &options, NULL);
        submit_many(&t, outs);
        for (int i = 0; i < rounds; i++) {
            (void)uv_run(&t.loop, UV_RUN_NOWAIT);
        }
        close_and_check(&t, outs, MANY);
    }
}

static void closed_while_it_connects(void **state) {
    test_loop t;
    outcome outs[MANY];
    int sockets[2];
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = deaf_port(sockets);
    loop_open(&t, &options, NULL);
    submit_many(&t, outs);
    loop_until_state(&t, EMQ_ASYNC_CONNECTING);
    loop_rest(&t);
    close_and_check(&t, outs, MANY);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
}

static void closed_in_the_handshake(void **state) {
    (void)state;
    for (int answered = 0; answered < PEER_HANDSHAKE_COMMANDS; answered++) {
        static const peer_step steps[] = {PEER_HANDSHAKE};
        test_loop t;
        outcome outs[MANY];
        peer_script script = {.greeting = hold};
        memcpy(script.steps, steps, (size_t)answered * sizeof(steps[0]));
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        loop_open(&t, &options, NULL);
        submit_many(&t, outs);
        loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS);
        loop_rest(&t);
        close_and_check(&t, outs, MANY);
        peer_stop(p);
    }
}

static void closed_with_replies_outstanding(void **state) {
    test_loop t;
    outcome outs[MANY];
    (void)state;
    peer *p = start_peer(hold, (peer_step)PEER_SENDS("*3\r\n" ID));
    open_on_peer(&t, p, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    submit_many(&t, outs);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + MANY);
    close_and_check(&t, outs, MANY);
    peer_stop(p);
}

static void closed_with_a_canceled_one_outstanding(void **state) {
    test_loop t;
    outcome outs[MANY];
    outcome canceled = {0};
    (void)state;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, NULL);
    emq_request *request = loop_submit(&t, claim_request("q"), &canceled);
    submit_many(&t, outs);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + MANY + 1);
    assert_int_equal(emq_request_cancel(request), EMQ_OK);
    close_and_check(&t, outs, MANY);
    EXPECT_OUTCOME(&canceled, EMQ_ECANCELED);
    peer_stop(p);
}

static void closed_during_the_pause(void **state) {
    test_loop t;
    outcome outs[MANY];
    const emq_async_options long_pause = LONG_PAUSE;
    int reserved = -1;
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = closed_port(&reserved);
    options.command_timeout_ms = LONG_MS;
    loop_open(&t, &options, &long_pause);
    submit_many(&t, outs);
    loop_until_state(&t, EMQ_ASYNC_CLOSED);
    close_and_check(&t, outs, MANY);
    (void)close(reserved);
}

static void closed_when_refused(void **state) {
    test_loop t;
    const peer_script script = {
        .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), PEER_SENDS("$-1\r\n")}};
    (void)state;
    peer *p = peer_start(&script);
    open_on_peer(&t, p, NULL);
    loop_until_state(&t, EMQ_ASYNC_REFUSED);
    close_and_check(&t, NULL, 0);
    peer_stop(p);
}

typedef struct closing {
    test_loop t;
    outcome outs[MANY];
} closing;

static void close_from_inside(emq_request *request, int result, void *user) {
    closing *c = user;
    note_outcome(request, result, &c->outs[0]);
    loop_close_client(&c->t);
}

static void closed_from_inside_a_callback(void **state) {
    closing c = {.outs = {{0}}};
    (void)state;
    /* the other answers are there already */
    peer *p = start_peer(hold, (peer_step)PEER_SENDS(":1\r\n:1\r\n:1\r\n"));
    open_on_peer(&c.t, p, NULL);
    loop_until_state(&c.t, EMQ_ASYNC_OPEN);
    assert_int_equal(
        emq_async_submit(c.t.client, enqueue_request("q", "p", 1), close_from_inside, &c), EMQ_OK);
    for (int i = 1; i < MANY; i++) {
        loop_submit(&c.t, enqueue_request("q", "p", 1), &c.outs[i]);
    }
    loop_until_ended(&c.t, c.outs, MANY);
    EXPECT_OUTCOME(&c.outs[0], EMQ_OK);
    for (int i = 3; i < MANY; i++) {
        EXPECT_OUTCOME(&c.outs[i], EMQ_ECLOSED);
    }
    loop_finish(&c.t);
    peer_stop(p);
}

static void close_from_state(emq_async *client, emq_async_state state, int reason, void *user) {
    (void)reason;
    if (state == *(emq_async_state *)user) {
        assert_int_equal(emq_async_close(client, NULL, NULL), EMQ_OK);
    }
}

static void closed_from_inside_the_state_callback(void **state) {
    static const emq_async_state states[] = {EMQ_ASYNC_CONNECTING, EMQ_ASYNC_OPEN,
                                             EMQ_ASYNC_CLOSED};
    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        uv_loop_t loop;
        emq_async *client = NULL;
        outcome out = {0};
        emq_async_state when = states[i];
        emq_async_options async_options = EMQ_ASYNC_OPTIONS_INIT;
        peer *p = start_peer((peer_step){PEER_CLOSE, NULL, 0}, hold);
        emq_client_options options = options_for_peer(p);
        async_options.on_state = close_from_state;
        async_options.user = &when;
        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(emq_async_open(&client, &loop, &options, &async_options), EMQ_OK);
        assert_int_equal(emq_async_submit(client, claim_request("q"), note_outcome, &out), EMQ_OK);
        assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
        EXPECT_OUTCOME(&out, when == EMQ_ASYNC_CLOSED ? EMQ_ECONNLOST : EMQ_ECLOSED);
        assert_int_equal(uv_loop_close(&loop), 0);
        peer_stop(p);
    }
}

/* Reconnecting by hand. */

static void a_reconnect_starts_anew(void **state) {
    test_loop t;
    outcome outs[2] = {{0}};
    const emq_async_options long_pause = LONG_PAUSE;
    (void)state;
    peer *p = start_peer(hold, hold);
    open_on_peer(&t, p, &long_pause);
    loop_submit(&t, claim_request("q"), &outs[0]);
    loop_until_commands(&t, p, PEER_HANDSHAKE_COMMANDS + 1);
    assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
    assert_int_equal(outs[0].calls, 0);
    loop_until_ended(&t, outs, 1);
    EXPECT_OUTCOME(&outs[0], EMQ_ECONNLOST);
    loop_submit(&t, claim_request("q"), &outs[1]);
    loop_until_commands(&t, p, 2 * PEER_HANDSHAKE_COMMANDS + 2);
    assert_int_equal(peer_connections(p), 2);
    loop_finish(&t);
    EXPECT_OUTCOME(&outs[1], EMQ_ECLOSED);
    peer_stop(p);
}

#define TEST(name) cmocka_unit_test(name)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_refused_connect_is_tried_again),
        TEST(an_attempt_has_a_deadline),
        TEST(a_deaf_address_has_a_deadline),
        TEST(a_loss_on_the_connect_path_is_tried_again),
        TEST(a_loading_server_is_tried_again),
        TEST(a_refusal_rests_until_it_is_asked_again),
        TEST(a_wrong_password_is_a_refusal),
        TEST(a_name_is_resolved),
        TEST(an_unknown_name_is_tried_again),
        TEST(a_loss_is_an_unknown_outcome),
        TEST(a_complete_is_sent_once_more),
        TEST(a_complete_that_waits_to_be_sent_once_more_is_unknown),
        TEST(a_complete_is_not_repeated_when_that_is_off),
        TEST(an_answer_before_the_end_counts),
        TEST(what_was_not_sent_whole_is_sent_again),
        TEST(a_refusal_halfway_ends_the_connection),
        TEST(a_broken_answer_ends_the_connection),
        TEST(bytes_that_nobody_asked_for_answer_nothing),
        TEST(an_end_while_idle_loses_nothing),
        TEST(a_late_answer_answers_nobody),
        TEST(an_answer_that_came_in_time_counts),
        TEST(the_pause_grows_until_an_answer_comes),
        TEST(the_table_of_cuts_holds),
        TEST(bytes_that_drip_move_no_deadline),
        TEST(a_flood_moves_no_deadline),
        TEST(too_many_requests_are_turned_down),
        TEST(too_many_bytes_are_turned_down),
        TEST(a_canceled_request_is_not_sent),
        TEST(a_request_from_another_thread_is_canceled),
        TEST(a_canceled_request_keeps_its_place),
        TEST(a_canceled_request_keeps_its_deadline),
        TEST(closed_before_the_loop_runs),
        TEST(closed_while_it_resolves),
        TEST(closed_while_it_connects),
        TEST(closed_in_the_handshake),
        TEST(closed_with_replies_outstanding),
        TEST(closed_with_a_canceled_one_outstanding),
        TEST(closed_during_the_pause),
        TEST(closed_when_refused),
        TEST(closed_from_inside_a_callback),
        TEST(closed_from_inside_the_state_callback),
        TEST(a_reconnect_starts_anew),
    };
    return cmocka_run_group_tests_name("async_peer", tests, NULL, NULL);
}
