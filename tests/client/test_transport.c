/* SPDX-License-Identifier: Apache-2.0 */
/* The transport with peers that answer late, too much, too early, in pieces or not at all: a reply
 * is never matched to another request, and no call outlasts its deadline. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "fixture.h"
#include "line.h"

#define ID "$14\r\nJOB0KHTOWnGLuC\r\n"
#define JOB_REPLY "*3\r\n" ID "$7\r\npayload\r\n:1\r\n"
/* More than two sockets hold. An answer of one line is read in quadratic time by hiredis. */
#define HUGE_BYTES ((size_t)64 * 1024 * 1024)
#define HUGE_ANSWER ((size_t)16 * 1024 * 1024)

static const emq_lease some_lease = {"q", {"JOB0KHTOWnGLuC"}, 1};

/* A peer that is good until the connection is open, then does these. */
static peer *start_peer(peer_step first, peer_step second) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, first, second}};
    return peer_start(&script);
}

static emq_client *open_on(const peer *p, uint32_t command_timeout_ms) {
    emq_client_options options = options_for_peer(p);
    options.command_timeout_ms = command_timeout_ms;
    options.max_payload = HUGE_BYTES;
    return open_client(&options);
}

static const peer_step hold = {PEER_HOLD, NULL, 0};

static void a_connection_that_timed_out_is_not_used_again(void **state) {
    emq_id id = {{0}};
    (void)state;
    peer *p = start_peer(hold, hold);
    emq_client *client = open_on(p, SHORT_MS);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_ETIMEOUT);
    assert_int_equal(emq_client_is_open(client), 0);
    assert_int_equal(emq_id_valid(&id), 1);
    peer_act(p, (peer_step){PEER_SEND, ":1\r\n", 0}); /* the late answer, to nobody */
    EXPECT_RESULT(client, emq_complete(client, &some_lease), EMQ_ECLOSED);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS + 1);
    emq_client_close(client);
    peer_stop(p);
}

static void a_reconnect_starts_clean(void **state) {
    emq_id id = {{0}};
    (void)state;
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n:0\r\n")}};
    peer *p = peer_start(&script);
    emq_client *client = open_on(p, LONG_MS);
    for (int i = 0; i < 3; i++) {
        EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_EPROTOCOL);
        assert_int_equal(emq_client_is_open(client), 0);
        EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    }
    assert_int_equal(peer_connections(p), 4);
    emq_client_close(client);
    peer_stop(p);
}

static int has_input(void *data) {
    const emq_client *client = data;
    struct pollfd waited = {client->connection.context->fd, POLLIN, 0};
    return poll(&waited, 1, 0) > 0;
}

/* Bytes that came while nothing was asked are no answer to what is asked next. */
static void an_unasked_reply_answers_nothing(void **state) {
    static const char *const unasked[] = {":1\r\n", "+OK\r\n", "-UNBLOCKED late\r\n", ":",
                                          JOB_REPLY};
    (void)state;
    for (size_t i = 0; i < sizeof(unasked) / sizeof(unasked[0]); i++) {
        peer *p = start_peer((peer_step)PEER_SENDS(":1\r\n"), (peer_step)PEER_SENDS(":0\r\n"));
        emq_client *client = open_on(p, LONG_MS);
        peer_act(p, (peer_step){PEER_SEND, unasked[i], 0});
        wait_until("it has come", has_input, client);
        EXPECT_RESULT(client, emq_complete(client, &some_lease), EMQ_EPROTOCOL);
        EXPECT_RESULT(client, emq_complete(client, &some_lease), EMQ_ECLOSED);
        assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS);
        emq_client_close(client);
        peer_stop(p);
    }
}

static void two_answers_to_one_question_are_refused(void **state) {
    emq_job *job = NULL;
    (void)state;
    peer *p = start_peer((peer_step)PEER_SENDS(JOB_REPLY JOB_REPLY), hold);
    emq_client *client = open_on(p, LONG_MS);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_EPROTOCOL);
    assert_null(job);
    assert_int_equal(emq_client_is_open(client), 0);
    emq_client_close(client);
    peer_stop(p);
}

static void an_end_while_idle_has_done_nothing(void **state) {
    static const peer_action ends[] = {PEER_CLOSE, PEER_RESET};
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        peer *p = start_peer(hold, hold);
        emq_client *client = open_on(p, LONG_MS);
        peer_act(p, (peer_step){ends[i], NULL, 0});
        wait_until("it has come", has_input, client);
        EXPECT_RESULT(client, emq_complete(client, &some_lease), EMQ_ECONNECT);
        assert_int_equal(emq_client_is_open(client), 0);
        assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS);
        emq_client_close(client);
        peer_stop(p);
    }
}

static void an_end_instead_of_an_answer_leaves_it_open(void **state) {
    static const peer_step ends[] = {{PEER_CLOSE, NULL, 0},
                                     {PEER_RESET, NULL, 0},
                                     {PEER_SEND_AND_CLOSE, "*3\r\n" ID, 0},
                                     {PEER_SEND_AND_CLOSE, ":", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        emq_job *job = NULL;
        peer *p = start_peer(ends[i], hold);
        emq_client *client = open_on(p, LONG_MS);
        EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ECONNLOST);
        assert_int_equal(emq_err_class(EMQ_ECONNLOST), EMQ_CLASS_UNKNOWN);
        assert_null(job);
        EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ECLOSED);
        emq_client_close(client);
        peer_stop(p);
    }
}

static void an_answer_before_the_end_counts(void **state) {
    emq_job *job = NULL;
    (void)state;
    peer *p = start_peer((peer_step){PEER_SEND_AND_CLOSE, JOB_REPLY, 0}, hold);
    emq_client *client = open_on(p, LONG_MS);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_OK);
    emq_job_free(job);
    wait_until("the end has come", has_input, client);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ECONNECT);
    emq_client_close(client);
    peer_stop(p);
}

static void an_answer_may_come_byte_by_byte(void **state) {
    emq_job *job = NULL;
    (void)state;
    peer *p = start_peer((peer_step){PEER_DRIP, JOB_REPLY, 0}, hold);
    emq_client *client = open_on(p, LONG_MS);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_OK);
    assert_string_equal(emq_job_get_payload(job, NULL), "payload");
    emq_job_free(job);
    emq_client_close(client);
    peer_stop(p);
}

/* To wait for the whole drip would give EMQ_EMPTY, and take minutes. */
static void a_drip_does_not_stretch_the_deadline(void **state) {
    static char drip[4000];
    emq_job *job = NULL;
    (void)state;
    memset(drip, 'x', sizeof(drip));
    drip[0] = '-';
    drip[sizeof(drip) - 2] = '\r';
    drip[sizeof(drip) - 1] = '\n';
    peer *p = start_peer((peer_step){PEER_DRIP, drip, sizeof(drip)}, hold);
    emq_client *client = open_on(p, SHORT_MS);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ETIMEOUT);
    emq_client_close(client);
    peer_stop(p);
}

/* A peer that never stops sending keeps the socket readable for ever. */
static void a_flood_does_not_stretch_the_deadline(void **state) {
    emq_job *job = NULL;
    (void)state;
    peer *p = start_peer((peer_step){PEER_FLOOD, "-no end of this", 0}, hold);
    emq_client *client = open_on(p, SHORT_MS);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ETIMEOUT);
    emq_client_close(client);
    peer_stop(p);
}

/* Arrays in arrays, deeper than hiredis reads. */
#define DEEP "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"

static void noise_is_refused(void **state) {
    static const char *const noise[] = {"noise\r\n",
                                        "\r\n",
                                        ":x\r\n",
                                        "*-2\r\n",
                                        "$-2\r\n",
                                        "*99999999999\r\n",
                                        "HTTP/1.1 400 Bad Request\r\n",
                                        "\x16\x03\x01",
                                        DEEP};
    (void)state;
    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
        emq_job *job = NULL;
        peer *p = start_peer((peer_step){PEER_SEND, noise[i], 0}, hold);
        emq_client *client = open_on(p, LONG_MS);
        EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_EPROTOCOL);
        assert_int_equal(emq_client_is_open(client), 0);
        emq_client_close(client);
        peer_stop(p);
    }
}

static void wrong_shapes_close_the_connection(void **state) {
    static const char *const shapes[] = {":1\r\n", "*2\r\n" ID "$1\r\np\r\n", "$-1\r\n",
                                         "*3\r\n:1\r\n$1\r\np\r\n:1\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        emq_job *job = NULL;
        peer *p = start_peer((peer_step){PEER_SEND, shapes[i], 0}, hold);
        emq_client *client = open_on(p, LONG_MS);
        EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_EPROTOCOL);
        assert_null(job);
        EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ECLOSED);
        emq_client_close(client);
        peer_stop(p);
    }
}

/* Peers that do something in the middle of a huge request. */
static void try_huge(peer_step interrupt, uint32_t timeout_ms, int want, const char *says) {
    emq_id id = {{0}};
    const peer_script script = {
        .steps = {PEER_HANDSHAKE}, .interrupt_at = 100000, .interrupt = interrupt};
    char *payload = calloc(1, HUGE_BYTES);
    assert_non_null(payload);
    peer *p = peer_start(&script);
    emq_client *client = open_on(p, timeout_ms);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", payload, HUGE_BYTES), want);
    if (says != NULL) {
        EXPECT_SAYS(client, says);
    }
    /* a huge refusal may be read to its end only when the request has gone out after all */
    if (interrupt.length != HUGE_ANSWER) {
        assert_int_equal(emq_client_is_open(client), 0);
    }
    assert_int_equal(emq_id_valid(&id), 1);
    emq_client_close(client);
    peer_stop(p);
    free(payload);
}

static void an_end_amid_a_request_has_done_nothing(void **state) {
    (void)state;
    try_huge((peer_step){PEER_CLOSE, NULL, 0}, LONG_MS, EMQ_ECONNECT, "sent whole");
    try_huge((peer_step){PEER_RESET, NULL, 0}, LONG_MS, EMQ_ECONNECT, "sent whole");
}

static void a_refusal_amid_a_request_is_heard(void **state) {
    (void)state;
    try_huge((peer_step){PEER_SEND, "-ERR Protocol error: invalid bulk length\r\n", 0}, LONG_MS,
             EMQ_ESERVER, "invalid bulk length");
    try_huge((peer_step){PEER_SEND, ":1\r\n", 0}, LONG_MS, EMQ_EPROTOCOL, "before it was asked");
}

/* A peer that does not read until its own huge answer is taken: who only writes would wait for it
 * for ever, and it for him. */
static void reading_goes_on_while_writing(void **state) {
    char *answer = malloc(HUGE_ANSWER);
    (void)state;
    assert_non_null(answer);
    memset(answer, 'x', HUGE_ANSWER);
    memcpy(answer, "-OOM ", 5);
    answer[HUGE_ANSWER - 2] = '\r';
    answer[HUGE_ANSWER - 1] = '\n';
    try_huge((peer_step){PEER_SEND, answer, HUGE_ANSWER}, LONG_MS, EMQ_EOOM, "OOM xxx");
    free(answer);
}

/* A peer that stops reading: it drips, and does nothing else. */
static void writing_ends_at_the_deadline(void **state) {
    static char drip[4000];
    (void)state;
    memset(drip, 'x', sizeof(drip));
    drip[0] = '-';
    try_huge((peer_step){PEER_DRIP, drip, sizeof(drip)}, 2000, EMQ_ETIMEOUT, NULL);
}

static void a_huge_request_arrives_whole(void **state) {
    emq_id id = {{0}};
    char *payload = calloc(1, HUGE_BYTES);
    (void)state;
    assert_non_null(payload);
    peer *p = start_peer((peer_step)PEER_SENDS(":1\r\n"), hold);
    emq_client *client = open_on(p, LONG_MS);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", payload, HUGE_BYTES), EMQ_OK);
    assert_true(peer_bytes(p) > HUGE_BYTES);
    emq_client_close(client);
    peer_stop(p);
    free(payload);
}

/* The ids of two processes can be the same by chance; then a fresh job must not be lost. */
static void a_fresh_id_that_exists_is_minted_anew(void **state) {
    emq_id id = {{0}};
    (void)state;
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":0\r\n"),
                                          PEER_SENDS(":0\r\n"), PEER_SENDS(":1\r\n"),
                                          PEER_SENDS(":0\r\n")}};
    peer *p = peer_start(&script);
    emq_client *client = open_on(p, LONG_MS);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_OK);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS + 3);
    for (int i = 0; i < 3; i++) {
        char *command = peer_command(p, PEER_HANDSHAKE_COMMANDS + i);
        assert_int_equal(strstr(command, id.text) != NULL, i == 2);
        free(command);
    }
    /* the same id again is the caller's repeat */
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_DUPLICATE);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS + 4);
    emq_client_close(client);
    peer_stop(p);
}

static void a_server_that_knows_every_id_is_not_believed(void **state) {
    emq_id id = {{0}};
    (void)state;
    peer_script script = {.steps = {PEER_HANDSHAKE}};
    for (int i = PEER_HANDSHAKE_COMMANDS; i < PEER_STEPS_MAX; i++) {
        script.steps[i] = (peer_step)PEER_SENDS(":0\r\n");
    }
    peer *p = peer_start(&script);
    emq_client *client = open_on(p, LONG_MS);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_EPROTOCOL);
    assert_string_equal(id.text, ""); /* a repeat with it would be a duplicate, and the job lost */
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS + 8);
    assert_int_equal(emq_client_is_open(client), 0);
    emq_client_close(client);
    peer_stop(p);
}

/* Nothing of a call that is wrong in itself reaches the peer. */
static void wrong_calls_send_nothing(void **state) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    emq_lease lease = some_lease;
    (void)state;
    peer *p = start_peer(hold, hold);
    emq_client *client = open_on(p, LONG_MS);
    size_t before = peer_bytes(p);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "emq", "p", 1), EMQ_EQUEUE);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", HUGE_BYTES + 1), EMQ_ETOOBIG);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 0), EMQ_EINVAL);
    lease.id.text[0] = 'X';
    EXPECT_RESULT(client, emq_complete(client, &lease), EMQ_EKIND);
    assert_int_equal(emq_client_is_open(client), 1);
    assert_int_equal(peer_bytes(p), before);
    emq_client_close(client);
    peer_stop(p);
}

/* Reads what has come to a socket; returns how much there is by then. */
static size_t drain(int fd, char *bytes, size_t had, size_t room) {
    ssize_t got = 0;
    while ((got = recv(fd, bytes + had, room - had, MSG_DONTWAIT)) > 0) {
        had += (size_t)got;
    }
    return had;
}

/* A line that goes out in part is ended before the next one begins. */
static void lines_that_are_posted_stay_whole(void **state) {
    enum { POSTS = 4000, LINE = 24 };
    static const char encoded[LINE + 1] = "*2\r\n$4\r\nPING\r\n$4\r\npong\r\n";
    static char bytes[POSTS * LINE + 1];
    const char *const words[] = {"PING", "pong"};
    emq_line line = EMQ_LINE_INIT;
    emq_text text;
    int pair[2];
    size_t got = 0;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int)), 0);
    emq_connection connection = {.context = redisConnectFd(pair[0])};
    assert_int_equal(emq_line_raw(&line, 2, words, NULL), EMQ_OK);
    for (int i = 0; i < POSTS; i++) {
        assert_int_equal(emq_connection_post(&connection, &line, &text), EMQ_OK);
        got = i % 64 == 63 ? drain(pair[1], bytes, got, sizeof(bytes)) : got;
    }
    while (got < (POSTS - 1) * (size_t)LINE) { /* each post takes with it what was left */
        size_t before = got;
        got = drain(pair[1], bytes, got, sizeof(bytes));
        if (got == before) {
            assert_int_equal(emq_connection_post(&connection, &line, &text), EMQ_OK);
        }
    }
    for (size_t i = 0; i + LINE <= got; i += LINE) {
        assert_memory_equal(bytes + i, encoded, LINE);
    }
    emq_connection_close(&connection);
    emq_line_clear(&line);
    (void)close(pair[1]);
}

/* Freeing them would use up the stack. */
static void arrays_that_are_too_deep_are_refused(void **state) {
    static const char one[] = "*1\r\n";
    enum { DEPTH = 500000, SIZE = sizeof(one) - 1 };
    char *nested = malloc((size_t)DEPTH * SIZE);
    emq_job *job = NULL;
    (void)state;
    for (size_t i = 0; i < DEPTH; i++) {
        memcpy(nested + i * SIZE, one, SIZE);
    }
    peer *p = start_peer((peer_step){PEER_SEND, nested, (size_t)DEPTH * SIZE}, hold);
    emq_client *client = open_on(p, LONG_MS);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_EPROTOCOL);
    assert_null(job);
    emq_client_close(client);
    peer_stop(p);
    free(nested);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_that_are_too_deep_are_refused),
        cmocka_unit_test(a_connection_that_timed_out_is_not_used_again),
        cmocka_unit_test(a_reconnect_starts_clean),
        cmocka_unit_test(an_unasked_reply_answers_nothing),
        cmocka_unit_test(two_answers_to_one_question_are_refused),
        cmocka_unit_test(an_end_while_idle_has_done_nothing),
        cmocka_unit_test(an_end_instead_of_an_answer_leaves_it_open),
        cmocka_unit_test(an_answer_before_the_end_counts),
        cmocka_unit_test(an_answer_may_come_byte_by_byte),
        cmocka_unit_test(a_drip_does_not_stretch_the_deadline),
        cmocka_unit_test(a_flood_does_not_stretch_the_deadline),
        cmocka_unit_test(noise_is_refused),
        cmocka_unit_test(wrong_shapes_close_the_connection),
        cmocka_unit_test(an_end_amid_a_request_has_done_nothing),
        cmocka_unit_test(a_refusal_amid_a_request_is_heard),
        cmocka_unit_test(reading_goes_on_while_writing),
        cmocka_unit_test(writing_ends_at_the_deadline),
        cmocka_unit_test(a_huge_request_arrives_whole),
        cmocka_unit_test(a_fresh_id_that_exists_is_minted_anew),
        cmocka_unit_test(a_server_that_knows_every_id_is_not_believed),
        cmocka_unit_test(wrong_calls_send_nothing),
        cmocka_unit_test(lines_that_are_posted_stay_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
