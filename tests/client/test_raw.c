/* SPDX-License-Identifier: Apache-2.0 */
/* The raw door: replies of every type, the server's errors, and what is not let through. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_fixture.h"
#include "command.h"

static int start_and_open(void **state) {
    (void)start_server(state);
    return open_on_clean_server(state);
}

static int close_and_stop(void **state) {
    (void)close_client(state);
    return stop_server(state);
}

#define WORDS_MAX 8

/* Sends words and expects this result; the reply is the caller's. */
static emq_reply *command_of(emq_client *c, int want, const char *const *words) {
    emq_reply *reply = (emq_reply *)(void *)&reply;
    int argc = 0;
    while (words[argc] != NULL) {
        argc++;
    }
    EXPECT_RESULT(c, emq_client_command(&reply, c, argc, words, NULL), want);
    assert_int_equal(reply != NULL, want == EMQ_OK);
    return reply;
}

#define COMMAND(c, want, ...)                                                                      \
    command_of((c), (want), (const char *const[WORDS_MAX]){__VA_ARGS__, NULL})

static void every_type_has_its_reply(void **state) {
    size_t n = 0;
    (void)state;
    emq_reply *reply = COMMAND(client, EMQ_OK, "PING");
    assert_int_equal(emq_reply_get_type(reply), EMQ_REPLY_STATUS);
    assert_string_equal(emq_reply_get_string(reply, &n), "PONG");
    assert_int_equal(n, 4);
    assert_int_equal(emq_reply_get_integer(reply), 0);
    assert_int_equal(emq_reply_get_count(reply), 0);
    assert_null(emq_reply_get_element(reply, 0));
    emq_reply_free(reply);
    reply = COMMAND(client, EMQ_OK, "INCRBY", "n", "-5");
    assert_int_equal(emq_reply_get_type(reply), EMQ_REPLY_INTEGER);
    assert_int_equal(emq_reply_get_integer(reply), -5);
    assert_null(emq_reply_get_string(reply, &n));
    assert_int_equal(n, 0);
    emq_reply_free(reply);
    reply = COMMAND(client, EMQ_OK, "GET", "n");
    assert_int_equal(emq_reply_get_type(reply), EMQ_REPLY_STRING);
    assert_string_equal(emq_reply_get_string(reply, NULL), "-5");
    emq_reply_free(reply);
    reply = COMMAND(client, EMQ_OK, "GET", "absent");
    assert_int_equal(emq_reply_get_type(reply), EMQ_REPLY_NIL);
    assert_null(emq_reply_get_string(reply, NULL));
    emq_reply_free(reply);
    reply = COMMAND(client, EMQ_OK, "MGET", "n", "absent");
    assert_int_equal(emq_reply_get_type(reply), EMQ_REPLY_ARRAY);
    assert_int_equal(emq_reply_get_count(reply), 2);
    assert_string_equal(emq_reply_get_string(emq_reply_get_element(reply, 0), NULL), "-5");
    assert_int_equal(emq_reply_get_type(emq_reply_get_element(reply, 1)), EMQ_REPLY_NIL);
    assert_null(emq_reply_get_element(reply, 2));
    emq_reply_free(reply);
    assert_int_equal(emq_reply_get_type(NULL), EMQ_REPLY_NIL);
    assert_int_equal(emq_reply_get_count(NULL), 0);
}

static void arguments_are_bytes(void **state) {
    static const char value[] = "a\0b\r\n%s";
    const char *const set[] = {"SET", "k\0y", value};
    const char *const get[] = {"GET", "k\0y"};
    const size_t lengths[] = {3, 3, sizeof(value)};
    emq_reply *reply = NULL;
    size_t n = 0;
    (void)state;
    EXPECT_RESULT(client, emq_client_command(&reply, client, 3, set, lengths), EMQ_OK);
    emq_reply_free(reply);
    EXPECT_RESULT(client, emq_client_command(&reply, client, 2, get, lengths), EMQ_OK);
    const char *got = emq_reply_get_string(reply, &n);
    assert_int_equal(n, sizeof(value));
    assert_memory_equal(got, value, n);
    emq_reply_free(reply);
}

static void a_great_many_arguments(void **state) {
    int argc = 100001;
    const char **argv = malloc((size_t)argc * sizeof(*argv));
    emq_reply *reply = NULL;
    (void)state;
    assert_non_null(argv);
    argv[0] = "MGET";
    for (int i = 1; i < argc; i++) {
        argv[i] = "absent";
    }
    EXPECT_RESULT(client, emq_client_command(&reply, client, argc, argv, NULL), EMQ_OK);
    assert_int_equal(emq_reply_get_count(reply), 100000);
    emq_reply_free(reply);
    free(argv);
    COMMAND(client, EMQ_ESERVER, "NO-SUCH-COMMAND"); /* the line is built anew behind it */
}

static void errors_have_their_class_and_text(void **state) {
    (void)state;
    emq_reply_free(COMMAND(client, EMQ_OK, "LPUSH", "list", "x"));
    COMMAND(client, EMQ_EWRONGTYPE, "GET", "list");
    EXPECT_SAYS(client, "WRONGTYPE");
    COMMAND(client, EMQ_ESERVER, "NO-SUCH-COMMAND");
    EXPECT_SAYS(client, "ERR unknown command");
    COMMAND(client, EMQ_ESERVER, "GET");
    COMMAND(client, EMQ_ESHAPE, "EMQ.CLAIM", "03", "a", "b", "c", "1");
    emq_reply_free(COMMAND(client, EMQ_OK, "PING"));
    assert_string_equal(emq_client_get_error(client), "");
    assert_int_equal(emq_client_is_open(client), 1);
}

static void an_error_inside_an_array_is_an_element(void **state) {
    (void)state;
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS("*2\r\n:1\r\n-ERR inside\r\n"),
                                          PEER_SENDS("%1\r\n+a\r\n+b\r\n")}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    emq_client *c = open_client(&options);
    emq_reply *reply = COMMAND(c, EMQ_OK, "ANY");
    const emq_reply *inside = emq_reply_get_element(reply, 1);
    assert_int_equal(emq_reply_get_type(inside), EMQ_REPLY_ERROR);
    assert_string_equal(emq_reply_get_string(inside, NULL), "ERR inside");
    emq_reply_free(reply);
    COMMAND(c, EMQ_EPROTOCOL, "ANY");
    assert_int_equal(emq_client_is_open(c), 0);
    COMMAND(c, EMQ_ECLOSED, "ANY");
    emq_client_close(c);
    peer_stop(p);
}

static void what_must_not_pass_is_not_sent(void **state) {
    static const char *const forbidden[][2] = {
        {"EVAL", "return 1"},  {"eval", "x"},       {"EVAL_RO", "x"},     {"EvalSha", "x"},
        {"EVALSHA_RO", "x"},   {"FCALL", "x"},      {"FCALL_RO", "x"},    {"SCRIPT", "FLUSH"},
        {"FUNCTION", "LIST"},  {"MULTI", NULL},     {"multi", NULL},      {"EXEC", NULL},
        {"DISCARD", NULL},     {"WATCH", "k"},      {"UNWATCH", NULL},    {"SUBSCRIBE", "c"},
        {"PSUBSCRIBE", "c"},   {"SSUBSCRIBE", "c"}, {"UNSUBSCRIBE", "c"}, {"PUNSUBSCRIBE", "c"},
        {"SUNSUBSCRIBE", "c"}, {"MONITOR", NULL},   {"SYNC", NULL},       {"PSYNC", "?"},
        {"REPLCONF", "ack"},   {"RESET", NULL},     {"QUIT", NULL},       {"HELLO", "3"},
        {"AUTH", "x"},         {"SELECT", "1"},     {"READONLY", NULL},   {"READWRITE", NULL},
        {"ASKING", NULL},      {"CLIENT", "REPLY"}, {"client", "reply"},  {"CLIENT", "TRACKING"},
        {"CLIENT", "CACHING"}, {"CLIENT", "CAPA"},
    };
    (void)state;
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(PEER_OK)}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    emq_client *c = open_client(&options);
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        COMMAND(c, EMQ_EFORBIDDEN, forbidden[i][0], forbidden[i][1]);
    }
    assert_int_equal(emq_client_is_open(c), 1);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS);
    emq_reply_free(COMMAND(c, EMQ_OK, "CLIENT", "NO-EVICT", "on"));
    emq_client_close(c);
    peer_stop(p);
}

static void wrong_calls_are_refused(void **state) {
    const char *const words[] = {"PING", NULL};
    emq_reply *reply = NULL;
    (void)state;
    EXPECT_RESULT(client, emq_client_command(&reply, client, 0, words, NULL), EMQ_EINVAL);
    EXPECT_RESULT(client, emq_client_command(&reply, client, -1, words, NULL), EMQ_EINVAL);
    EXPECT_RESULT(client, emq_client_command(&reply, client, 1048577, words, NULL), EMQ_EINVAL);
    EXPECT_RESULT(client, emq_client_command(&reply, client, 2, words, NULL), EMQ_EINVAL);
    EXPECT_RESULT(client, emq_client_command(&reply, client, 1, NULL, NULL), EMQ_EINVAL);
    assert_int_equal(emq_client_command(NULL, client, 1, words, NULL), EMQ_EINVAL);
    assert_null(reply);
    assert_int_equal(emq_client_is_open(client), 1);
}

/* More than hiredis can count is refused before anything is sent. The bytes are never looked at. */
static void a_request_too_large_is_refused(void **state) {
    const char *const words[] = {"SET", "k", "v"};
    const size_t lengths[] = {3, 1, (size_t)1 << 31};
    const size_t endless[] = {3, SIZE_MAX, SIZE_MAX};
    emq_reply *reply = NULL;
    (void)state;
    EXPECT_RESULT(client, emq_client_command(&reply, client, 3, words, lengths), EMQ_ETOOBIG);
    EXPECT_RESULT(client, emq_client_command(&reply, client, 3, words, endless), EMQ_ETOOBIG);
    emq_reply_free(COMMAND(client, EMQ_OK, "PING"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_reply),
        cmocka_unit_test(arguments_are_bytes),
        cmocka_unit_test(a_great_many_arguments),
        cmocka_unit_test(errors_have_their_class_and_text),
        cmocka_unit_test(an_error_inside_an_array_is_an_element),
        cmocka_unit_test(what_must_not_pass_is_not_sent),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(a_request_too_large_is_refused),
    };
    return RUN_SERVER_TESTS("raw", tests, start_and_open, close_and_stop);
}
