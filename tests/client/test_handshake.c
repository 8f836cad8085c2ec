/* SPDX-License-Identifier: Apache-2.0 */
/* The connect path with peers that answer wrongly, late, in part or not at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

/* A peer whose answer to EMQ.VERSION is the one given. */
static peer *start_with_version(const char *version) {
    const peer_script script = {
        .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(version), PEER_SENDS(PEER_WIRE)}};
    return peer_start(&script);
}

static void each_bad_version_has_its_error(void **state) {
    static const struct {
        const char *version;
        int result;
        const char *says;
    } cases[] = {
        {"-ERR unknown command 'EMQ.VERSION', with args beginning with: \r\n", EMQ_EMODULE,
         "no EMQ module"},
        {PEER_FACTS("$12\r\nechomq:5.0.0\r\n", ":0\r\n", PEER_CAPABILITIES), EMQ_EMODULE,
         "expected echomq:6.0.0 found echomq:5.0.0"},
        {PEER_FACTS(PEER_WIRE, ":1\r\n", PEER_CAPABILITIES), EMQ_EMODULE,
         "major: expected 0 found 1"},
        {PEER_FACTS(
             PEER_WIRE, ":0\r\n",
             "*13\r\n$7\r\nenqueue\r\n$5\r\nclaim\r\n$11\r\nclaim.pause\r\n" PEER_LATER_TOKENS),
         EMQ_ECAPABILITY, "the capability complete"},
        {"%1\r\n$4\r\nwire\r\n" PEER_WIRE, EMQ_EPROTOCOL, NULL},
        {PEER_FACTS(":6\r\n", ":0\r\n", PEER_CAPABILITIES), EMQ_EPROTOCOL, "fact 1"},
        {PEER_FACTS(PEER_WIRE, "$1\r\n0\r\n", PEER_CAPABILITIES), EMQ_EPROTOCOL, "fact 2"},
        {PEER_FACTS(PEER_WIRE, ":0\r\n", ":4\r\n"), EMQ_EPROTOCOL, "fact 3"},
        {"*3\r\n$4\r\nwire\r\n" PEER_WIRE "$5\r\nmajor\r\n", EMQ_EPROTOCOL, "pairs"},
        {"*1\r\n*2\r\n$4\r\nwire\r\n" PEER_WIRE, EMQ_EPROTOCOL, "pairs"},
        {"*0\r\n", EMQ_EPROTOCOL, "lacks the fact wire"},
        {"+OK\r\n", EMQ_EPROTOCOL, "pairs"},
        {"*2147483647\r\n", EMQ_EPROTOCOL, "elements"},
        {"*2\r\n*2\r\n*1048577\r\n", EMQ_EPROTOCOL, "elements"},
        {"-NOPERM User x has no permissions to run the 'emq.version' command\r\n", EMQ_ENOPERM,
         "emq.version"},
        {"-LOADING Valkey is loading the dataset in memory\r\n", EMQ_ELOADING, "LOADING"},
        {"-MASTERDOWN Link with MASTER is down\r\n", EMQ_EMASTERDOWN, NULL},
        {"-BUSY Valkey is busy running a script\r\n", EMQ_EBUSY, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peer *p = start_with_version(cases[i].version);
        emq_client_options options = options_for_peer(p);
        EXPECT_OPEN(&options, cases[i].result, cases[i].says);
        peer_stop(p);
    }
}

static void a_good_peer_is_accepted(void **state) {
    (void)state;
    peer *p = start_with_version(PEER_VERSION);
    emq_client_options options = options_for_peer(p);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS);
    peer_stop(p);
}

static void expect_command(peer *p, int number, const char *want) {
    char *got = peer_command(p, number);
    assert_string_equal(got, want);
    free(got);
}

static const peer_script whole_path = {
    .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_OK), PEER_HANDSHAKE}};

static emq_client_options whole_path_options(const peer *p) {
    emq_client_options options = options_for_peer(p);
    options.username = "worker";
    options.password = "s3cret";
    options.database = 7;
    options.client_name = "name-of-mine";
    return options;
}

static void the_steps_come_in_order(void **state) {
    (void)state;
    peer *p = peer_start(&whole_path);
    emq_client_options options = whole_path_options(p);
    emq_client *client = open_client(&options);
    for (int round = 0; round < 2; round++) {
        int first = round * 5;
        assert_int_equal(peer_commands(p), first + 5);
        expect_command(p, first, "AUTH worker s3cret");
        expect_command(p, first + 1, "SELECT 7");
        expect_command(p, first + 2, "CLIENT SETNAME name-of-mine");
        expect_command(p, first + 3, "EMQ.VERSION");
        expect_command(p, first + 4, "GET {emq}:version");
        if (round == 0) {
            EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
        }
    }
    emq_client_close(client);
    assert_int_equal(peer_connections(p), 2);
    peer_stop(p);
}

static void a_password_alone_is_sent_alone(void **state) {
    (void)state;
    const peer_script script = {.steps = {PEER_SENDS(PEER_OK), PEER_HANDSHAKE}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.password = "s3cret";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    expect_command(p, 0, "AUTH s3cret");
    peer_stop(p);
}

/* A password must not be followed by anything before it was accepted. */
static void nothing_follows_an_unanswered_auth(void **state) {
    static const struct {
        peer_step answer;
        int result;
    } cases[] = {
        {{PEER_HOLD, NULL, 0}, EMQ_ECONNTIMEOUT},
        {PEER_SENDS("-WRONGPASS invalid username-password pair or user is disabled.\r\n"),
         EMQ_EAUTH},
        {PEER_SENDS("-ERR unknown command 'AUTH', with args beginning with: 'worker' 's3cret' "
                    "\r\n"),
         EMQ_EAUTH},
        {PEER_SENDS(":1\r\n"), EMQ_EPROTOCOL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const peer_script script = {.steps = {cases[i].answer}};
        peer *p = peer_start(&script);
        emq_client_options options = whole_path_options(p);
        emq_client *client = NULL;
        options.connect_timeout_ms = cases[i].result == EMQ_ECONNTIMEOUT ? SHORT_MS : LONG_MS;
        assert_int_equal(emq_client_open(&client, &options), cases[i].result);
        assert_int_equal(emq_client_is_open(client), 0);
        assert_null(strstr(emq_client_get_error(client), "s3cret"));
        EXPECT_RESULT(client, emq_client_reconnect(client), cases[i].result);
        assert_null(strstr(emq_client_get_error(client), "s3cret"));
        assert_int_equal(peer_commands(p), 2);
        expect_command(p, 1, "AUTH worker s3cret");
        emq_client_close(client);
        peer_stop(p);
    }
}

/* What goes wrong at each of the five steps, or already at the accept. */
enum { AT_ACCEPT = -1, AT_AUTH = 0, AT_END = 5 };

static void try_at_each_step(int first, peer_step wrong, int want, uint32_t timeout_ms) {
    for (int at = first; at < AT_END; at++) {
        peer_script script = whole_path;
        if (at == AT_ACCEPT) {
            script.greeting = wrong;
        } else {
            script.steps[at] = wrong;
        }
        peer *p = peer_start(&script);
        emq_client_options options = whole_path_options(p);
        options.connect_timeout_ms = timeout_ms;
        EXPECT_OPEN(&options, want, NULL);
        peer_stop(p);
    }
}

static void an_end_at_each_step(void **state) {
    (void)state;
    try_at_each_step(AT_ACCEPT, (peer_step){PEER_CLOSE, NULL, 0}, EMQ_ECONNECT, LONG_MS);
    try_at_each_step(AT_ACCEPT, (peer_step){PEER_RESET, NULL, 0}, EMQ_ECONNECT, LONG_MS);
}

static void silence_at_each_step(void **state) {
    (void)state;
    try_at_each_step(AT_AUTH, (peer_step){PEER_HOLD, NULL, 0}, EMQ_ECONNTIMEOUT, SHORT_MS);
}

/* Each byte comes long before a timeout for a single read, and the whole long behind the deadline:
 * to wait for it would give EMQ_EPROTOCOL. */
static void a_drip_at_each_step(void **state) {
    static char drip[2000];
    (void)state;
    memset(drip, 'x', sizeof(drip));
    drip[0] = '+';
    drip[sizeof(drip) - 2] = '\r';
    drip[sizeof(drip) - 1] = '\n';
    try_at_each_step(AT_AUTH, (peer_step){PEER_DRIP, drip, sizeof(drip)}, EMQ_ECONNTIMEOUT,
                     SHORT_MS);
}

static void noise_at_each_step(void **state) {
    (void)state;
    try_at_each_step(AT_ACCEPT, (peer_step){PEER_SEND, "noise\r\n", 0}, EMQ_EPROTOCOL, LONG_MS);
    try_at_each_step(AT_ACCEPT, (peer_step){PEER_SEND, "*-7\r\n", 0}, EMQ_EPROTOCOL, LONG_MS);
}

static void a_drip_in_time_is_accepted(void **state) {
    (void)state;
    const peer_script script = {.steps = {{PEER_DRIP, PEER_OK, 0},
                                          {PEER_DRIP, PEER_VERSION, 0},
                                          {PEER_DRIP, PEER_WIRE, 0}}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    peer_stop(p);
}

static void a_server_that_turns_away_says_why(void **state) {
    static const struct {
        const char *farewell;
        int result;
        const char *says;
    } cases[] = {
        {"-ERR max number of clients reached\r\n", EMQ_ECONNECT, "max number"},
        {"-DENIED Running in protected mode because it is enabled\r\n", EMQ_ESERVER, "DENIED"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const peer_script script = {.greeting = {PEER_SEND, cases[i].farewell, 0},
                                    .steps = {{PEER_CLOSE, NULL, 0}}};
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        EXPECT_OPEN(&options, cases[i].result, cases[i].says);
        peer_stop(p);
    }
}

static void more_answers_than_questions_are_refused(void **state) {
    (void)state;
    const peer_script script = {
        .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), PEER_SENDS(PEER_WIRE ":1\r\n")}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    EXPECT_OPEN(&options, EMQ_EPROTOCOL, "more than was asked");
    peer_stop(p);
}

static void a_refused_client_can_try_again(void **state) {
    emq_client *client = NULL;
    emq_id id = {{0}};
    (void)state;
    const peer_script script = {
        .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), PEER_SENDS("$-1\r\n")}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    assert_int_equal(emq_client_open(&client, &options), EMQ_EFENCE_ABSENT);
    for (int i = 0; i < 3; i++) {
        EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_EFENCE_ABSENT);
        assert_int_equal(emq_client_is_open(client), 0);
        EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_ECLOSED);
    }
    assert_int_equal(peer_connections(p), 4);
    assert_int_equal(peer_commands(p), 4 * PEER_HANDSHAKE_COMMANDS);
    emq_client_close(client);
    peer_stop(p);
}

static void install_reads_no_fence(void **state) {
    static const struct {
        peer_step answer;
        int result;
        const char *says;
    } cases[] = {
        {PEER_SENDS(":1\r\n"), EMQ_OK, ""},
        {PEER_SENDS(":0\r\n"), EMQ_DUPLICATE, ""},
        {PEER_SENDS("-EMQWIRE expected echomq:6.0.0 found x\r\n"), EMQ_EFENCE,
         "EMQWIRE expected echomq:6.0.0 found x"},
        {PEER_SENDS("+OK\r\n"), EMQ_EPROTOCOL, "EMQ.INSTALL must answer 1 or 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const peer_script script = {
            .steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), cases[i].answer}};
        char error[256] = "untouched";
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        assert_int_equal(emq_install(&options, error, sizeof(error)), cases[i].result);
        assert_string_equal(error, cases[i].says);
        expect_command(p, 2, "EMQ.INSTALL 1 {emq}:version");
        assert_int_equal(emq_install(&options, NULL, 0), cases[i].result);
        assert_int_equal(emq_install(&options, error, 4), cases[i].result);
        assert_int_equal(strlen(error), strlen(cases[i].says) < 3 ? strlen(cases[i].says) : 3);
        peer_stop(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_version_has_its_error),
        cmocka_unit_test(a_good_peer_is_accepted),
        cmocka_unit_test(the_steps_come_in_order),
        cmocka_unit_test(a_password_alone_is_sent_alone),
        cmocka_unit_test(nothing_follows_an_unanswered_auth),
        cmocka_unit_test(an_end_at_each_step),
        cmocka_unit_test(silence_at_each_step),
        cmocka_unit_test(a_drip_at_each_step),
        cmocka_unit_test(noise_at_each_step),
        cmocka_unit_test(a_drip_in_time_is_accepted),
        cmocka_unit_test(a_server_that_turns_away_says_why),
        cmocka_unit_test(more_answers_than_questions_are_refused),
        cmocka_unit_test(a_refused_client_can_try_again),
        cmocka_unit_test(install_reads_no_fence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
