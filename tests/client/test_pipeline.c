/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: results by position, whatever becomes of the others; losses in the middle; bounds. */
#include <emq/emq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_fixture.h"
#include "command.h"

#define ID_A "JOB0KHTOWnGLuC"
#define ID_B "JOB0NgWEfAEJfs"
#define LARGE ((size_t)7 * 1024 * 1024)

static emq_pipeline *pipeline;

static int open_pipeline(void **state) {
    (void)open_on_clean_server(state);
    assert_int_equal(emq_pipeline_new(&pipeline, client), EMQ_OK);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    emq_pipeline_free(pipeline);
    emq_client_close(client);
    pipeline = NULL;
    client = NULL;
    return 0;
}

/* Instead of the server: a client and a pipeline on a peer that is good until they are there. */
static peer *open_on_peer(const peer_script *script, uint32_t timeout_ms) {
    peer *p = peer_start(script);
    emq_client_options options = options_for_peer(p);
    options.command_timeout_ms = timeout_ms;
    (void)close_all(NULL);
    client = open_client(&options);
    assert_int_equal(emq_pipeline_new(&pipeline, client), EMQ_OK);
    return p;
}

static void close_on_peer(peer *p) {
    (void)close_all(NULL);
    peer_stop(p);
}

#define ADD(call) assert_int_equal((call), EMQ_OK)
#define EXPECT_RUN(want) EXPECT_RESULT(client, emq_pipeline_run(pipeline), (want))

/* A result has its sentence when it is an error, and only then. */
static void expect_entry(size_t i, int want) {
    int got = emq_pipeline_get_result(pipeline, i);
    const char *text = emq_pipeline_get_error(pipeline, i);
    if (got != want || (text[0] != '\0') != (want < 0)) {
        fail_msg("entry %zu: got %s '%s', want %s", i, emq_err_name(got), text, emq_err_name(want));
    }
}

static void add_job(const char *payload) {
    emq_id id = {{0}};
    ADD(emq_pipeline_enqueue(pipeline, &id, "q", payload, strlen(payload)));
    assert_int_equal(emq_id_valid(&id), 1);
    size_t last = emq_pipeline_get_count(pipeline) - 1;
    assert_string_equal(emq_pipeline_get_id(pipeline, last)->text, id.text);
}

static void an_empty_run_does_nothing(void **state) {
    (void)state;
    EXPECT_RUN(EMQ_OK);
    EXPECT_RUN(EMQ_EINVAL); /* run already */
    assert_int_equal(emq_pipeline_get_count(pipeline), 0);
    add_job("p");
    EXPECT_RUN(EMQ_OK);
    expect_entry(0, EMQ_OK);
    EXPECT_RUN(EMQ_EINVAL);
    expect_entry(0, EMQ_OK);
}

static void a_life_in_one_write(void **state) {
    emq_id id = {ID_A};
    const emq_lease lease = {"q", {ID_A}, 1};
    const emq_lease second = {"q", {ID_A}, 2};
    const emq_lease third = {"q", {ID_A}, 3};
    const emq_when now = {EMQ_IN, 0};
    (void)state;
    ADD(emq_pipeline_enqueue(pipeline, &id, "q", "payload", 7));
    ADD(emq_pipeline_enqueue(pipeline, &id, "q", "other", 5));
    ADD(emq_pipeline_claim(pipeline, "q", 60000));
    ADD(emq_pipeline_claim(pipeline, "q", 60000));
    ADD(emq_pipeline_extend(pipeline, &lease, 60000));
    ADD(emq_pipeline_requeue(pipeline, &lease));
    ADD(emq_pipeline_claim(pipeline, "q", 60000));
    ADD(emq_pipeline_delay(pipeline, &second, now));
    ADD(emq_pipeline_promote(pipeline, "q", 10));
    ADD(emq_pipeline_claims(pipeline, "q", 60000, 10));
    ADD(emq_pipeline_fail(pipeline, &third, 0, 1, "why", 3));
    ADD(emq_pipeline_reprocess(pipeline, "q", &id));
    ADD(emq_pipeline_reschedule(pipeline, "q", &id, now));
    ADD(emq_pipeline_complete(pipeline, &lease));
    ADD(emq_pipeline_stalled_check(pipeline, "q", 1, 10));
    ADD(emq_pipeline_publish(pipeline, "q", (emq_bytes){"e", 1}, (emq_bytes){"", 0}, NULL, 0));
    EXPECT_RUN(EMQ_OK);
    static const int want[] = {EMQ_OK,     EMQ_DUPLICATE, EMQ_OK, EMQ_EMPTY, EMQ_OK,   EMQ_OK,
                               EMQ_OK,     EMQ_OK,        EMQ_OK, EMQ_OK,    EMQ_DEAD, EMQ_OK,
                               EMQ_ESTATE, EMQ_ESTALE,    EMQ_OK, EMQ_OK};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        expect_entry(i, want[i]);
    }
    assert_non_null(strstr(emq_pipeline_get_error(pipeline, 12), "EMQSTATE not scheduled"));
    assert_int_equal(emq_pipeline_get_number(pipeline, 8), 1);
    emq_job *job = emq_pipeline_take_job(pipeline, 2);
    assert_non_null(job);
    assert_null(emq_pipeline_take_job(pipeline, 2));
    assert_null(emq_pipeline_take_job(pipeline, 3));
    assert_string_equal(emq_job_get_payload(job, NULL), "payload");
    assert_string_equal(emq_job_get_lease(job)->queue, "q");
    emq_jobs *jobs = emq_pipeline_take_jobs(pipeline, 9);
    assert_int_equal(emq_jobs_get_count(jobs), 1);
    assert_int_equal(emq_job_get_lease(emq_jobs_get_job(jobs, 0))->token, 3);
    emq_ids *recovered = emq_pipeline_take_recovered(pipeline, 14);
    emq_ids *dead = emq_pipeline_take_dead(pipeline, 14);
    assert_non_null(recovered);
    assert_int_equal(emq_ids_get_count(dead), 0);
    emq_pipeline_clear(pipeline); /* what was taken stays */
    assert_string_equal(emq_job_get_payload(job, NULL), "payload");
    emq_job_free(job);
    emq_jobs_free(jobs);
    emq_ids_free(recovered);
    emq_ids_free(dead);
}

static void batches_have_a_result_for_each(void **state) {
    const emq_id ids[2] = {{ID_A}, {ID_B}};
    const emq_id zeroed[1] = {{{0}}};
    const emq_bytes payloads[2] = {{"one", 3}, {"two", 3}};
    const emq_lease leases[2] = {{"q", {ID_A}, 1}, {"q", {ID_B}, 7}};
    (void)state;
    assert_int_equal(emq_pipeline_enqueues(pipeline, zeroed, "q", payloads, 1), EMQ_EID_LENGTH);
    ADD(emq_pipeline_enqueues(pipeline, ids, "q", payloads, 2));
    ADD(emq_pipeline_enqueues(pipeline, ids, "q", payloads, 1));
    ADD(emq_pipeline_claims(pipeline, "q", 60000, 2));
    ADD(emq_pipeline_completes(pipeline, leases, 2));
    EXPECT_RUN(EMQ_OK);
    assert_int_equal(emq_pipeline_get_member(pipeline, 0, 0), EMQ_OK);
    assert_int_equal(emq_pipeline_get_member(pipeline, 0, 1), EMQ_OK);
    assert_int_equal(emq_pipeline_get_member(pipeline, 0, 2), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_get_member(pipeline, 1, 0), EMQ_DUPLICATE);
    assert_int_equal(emq_pipeline_get_member(pipeline, 2, 0), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_get_member(pipeline, 3, 0), EMQ_OK);
    assert_int_equal(emq_pipeline_get_member(pipeline, 3, 1), EMQ_ESTALE);
    assert_null(emq_pipeline_get_id(pipeline, 3));
    emq_jobs *jobs = emq_pipeline_take_jobs(pipeline, 2);
    assert_int_equal(emq_jobs_get_count(jobs), 2);
    emq_jobs_free(jobs);
}

static void leases_are_prolonged_together(void **state) {
    const emq_id ids[3] = {{ID_A}, {ID_B}, {"JOB0NgWEfAEJft"}};
    const emq_bytes payloads[3] = {{"", 0}, {"", 0}, {"", 0}};
    emq_lease leases[3] = {{"q", {ID_A}, 1}, {"q", {ID_B}, 7}, {"q", {"JOB0NgWEfAEJft"}, 1}};
    (void)state;
    ADD(emq_pipeline_enqueues(pipeline, ids, "q", payloads, 3));
    ADD(emq_pipeline_claims(pipeline, "q", 60000, 3));
    ADD(emq_pipeline_extends(pipeline, leases, 3, 120000));
    memset(leases, 'x', sizeof(leases)); /* they were copied */
    assert_int_equal(emq_pipeline_extends(pipeline, leases, 3, 120000), EMQ_EQUEUE);
    EXPECT_RUN(EMQ_OK);
    expect_entry(2, EMQ_OK);
    assert_int_equal(emq_pipeline_get_member(pipeline, 2, 0), EMQ_OK);
    assert_int_equal(emq_pipeline_get_member(pipeline, 2, 1), EMQ_ESTALE);
    assert_int_equal(emq_pipeline_get_member(pipeline, 2, 2), EMQ_OK);
    assert_int_equal(emq_pipeline_get_member(pipeline, 2, 3), EMQ_EINVAL);
}

static void the_bus_pauses_and_bits(void **state) {
    emq_id id = {{0}};
    const uint32_t offsets[2] = {3, 5};
    const emq_bytes key = {"bits", 4};
    (void)state;
    ADD(emq_pipeline_append(pipeline, &id, "q", "s", NULL, 0));
    assert_memory_equal(id.text, "EVT", 3);
    ADD(emq_pipeline_append(pipeline, &id, "q", "s", NULL, 0));
    ADD(emq_pipeline_failures_incr(pipeline, "q", "s", "g", "1-1"));
    ADD(emq_pipeline_pause(pipeline, "q"));
    ADD(emq_pipeline_claim(pipeline, "q", 1));
    ADD(emq_pipeline_resume(pipeline, "q"));
    ADD(emq_pipeline_tra_bitset(pipeline, key, offsets, 2));
    ADD(emq_pipeline_tra_bitclear(pipeline, key, offsets, 1));
    ADD(emq_pipeline_tra_bitget(pipeline, key, offsets, 2));
    EXPECT_RUN(EMQ_OK);
    expect_entry(1, EMQ_EORDER);
    expect_entry(4, EMQ_EMPTY);
    assert_non_null(strchr(emq_pipeline_get_entry(pipeline, 0), '-'));
    assert_null(emq_pipeline_get_entry(pipeline, 1));
    assert_null(emq_pipeline_get_entry(pipeline, 2));
    assert_string_equal(emq_pipeline_get_id(pipeline, 1)->text, id.text);
    assert_int_equal(emq_pipeline_get_number(pipeline, 2), 1);
    assert_int_equal(emq_pipeline_get_number(pipeline, 6), 2);
    assert_int_equal(emq_pipeline_get_number(pipeline, 7), 1);
    assert_int_equal(emq_pipeline_get_member(pipeline, 8, 0), 0);
    assert_int_equal(emq_pipeline_get_member(pipeline, 8, 1), 1);
}

static void any_command_has_a_reply(void **state) {
    static const char *const size[] = {"ZCARD", "emq:{q}:pending"};
    static const char *const wrong[] = {"GET", "emq:{q}:pending"};
    static const char *const multi[] = {"MULTI"};
    (void)state;
    add_job("one");
    ADD(emq_pipeline_command(pipeline, 2, size, NULL));
    ADD(emq_pipeline_command(pipeline, 2, wrong, NULL));
    ADD(emq_pipeline_claim(pipeline, "q", 60000));
    assert_int_equal(emq_pipeline_command(pipeline, 1, multi, NULL), EMQ_EFORBIDDEN);
    assert_int_equal(emq_pipeline_command(pipeline, 0, multi, NULL), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_command(NULL, 2, size, NULL), EMQ_EINVAL);
    assert_null(emq_pipeline_take_reply(pipeline, 1)); /* not run */
    EXPECT_RUN(EMQ_OK);
    expect_entry(1, EMQ_OK);
    expect_entry(2, EMQ_EWRONGTYPE);
    assert_non_null(strstr(emq_pipeline_get_error(pipeline, 2), "WRONGTYPE"));
    expect_entry(3, EMQ_OK);
    emq_reply *reply = emq_pipeline_take_reply(pipeline, 1);
    assert_int_equal(emq_reply_get_integer(reply), 1);
    assert_null(emq_pipeline_take_reply(pipeline, 1));
    assert_null(emq_pipeline_take_reply(pipeline, 2));
    assert_null(emq_pipeline_take_reply(pipeline, 3)); /* a verb's is its own */
    assert_null(emq_pipeline_take_reply(pipeline, 4));
    assert_int_equal(emq_pipeline_get_member(pipeline, 1, 0), EMQ_EINVAL);
    assert_null(emq_pipeline_get_entry(pipeline, 1));
    assert_int_equal(emq_pipeline_get_number(pipeline, 1), 0);
    emq_pipeline_clear(pipeline); /* what was taken stays */
    assert_int_equal(emq_reply_get_integer(reply), 1);
    emq_reply_free(reply);
}

static void an_error_hides_nothing(void **state) {
    const emq_lease lease = {"q", {ID_A}, 1};
    (void)state;
    run(server.admin, "SET", "emq:{bad}:pending", "no set", NULL);
    run(server.admin, "EMQ.ENQUEUE", "2", "emq:{odd}:job:JOBx", "emq:{odd}:pending", "JOBx", "p",
        NULL);
    add_job("first");
    ADD(emq_pipeline_claim(pipeline, "bad", 60000));
    ADD(emq_pipeline_claim(pipeline, "odd", 60000));
    ADD(emq_pipeline_complete(pipeline, &lease));
    add_job("last");
    EXPECT_RUN(EMQ_OK);
    expect_entry(0, EMQ_OK);
    expect_entry(1, EMQ_EWRONGTYPE);
    expect_entry(2, EMQ_EBADJOB);
    expect_entry(3, EMQ_GONE);
    expect_entry(4, EMQ_OK);
    assert_non_null(strstr(emq_pipeline_get_error(pipeline, 1), "WRONGTYPE"));
    assert_non_null(strstr(emq_pipeline_get_error(pipeline, 2), "JOBx"));
    assert_int_equal(emq_client_is_open(client), 1);
    assert_string_equal(emq_client_get_error(client), "");
    assert_int_equal(get_integer(server.admin, "ZCARD", "emq:{q}:pending", NULL), 2);
}

static void wrong_entries_are_not_added(void **state) {
    emq_id id = {{0}};
    const emq_id wrong = {"USR0KHTOWnGLuC"};
    (void)state;
    assert_int_equal(emq_pipeline_enqueue(pipeline, &id, "a b", "p", 1), EMQ_EQUEUE);
    assert_int_equal(id.text[0], 0);
    assert_int_equal(emq_pipeline_enqueue(pipeline, &id, "q", NULL, 1), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_enqueue(pipeline, NULL, "q", "p", 1), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_reprocess(pipeline, "q", &wrong), EMQ_EKIND);
    assert_int_equal(emq_pipeline_claim(pipeline, "q", 0), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_claim(NULL, "q", 1), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_complete(pipeline, NULL), EMQ_EINVAL);
    assert_int_equal(emq_pipeline_get_count(pipeline), 0);
    assert_int_equal(emq_pipeline_get_result(pipeline, 0), EMQ_EINVAL);
    assert_string_equal(emq_pipeline_get_error(pipeline, 0), "");
    add_job("p");
    assert_int_equal(emq_pipeline_get_result(pipeline, 0), EMQ_EINVAL); /* not yet */
    assert_string_equal(emq_pipeline_get_error(pipeline, 0), "");
    assert_int_equal(emq_pipeline_new(NULL, client), EMQ_EINVAL);
    emq_pipeline *none = pipeline;
    assert_int_equal(emq_pipeline_new(&none, NULL), EMQ_EINVAL);
    assert_null(none);
    emq_pipeline_free(NULL);
    emq_pipeline_clear(NULL);
}

static void a_full_pipeline_runs_and_is_used_again(void **state) {
    emq_id id = {{0}};
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < EMQ_PIPELINE_ENTRIES_MAX; i++) {
            add_job("payload");
        }
        assert_int_equal(emq_pipeline_enqueue(pipeline, &id, "q", "p", 1), EMQ_EOVERLOAD);
        assert_int_equal(id.text[0], 0);
        EXPECT_RUN(EMQ_OK);
        for (size_t i = 0; i < EMQ_PIPELINE_ENTRIES_MAX; i++) {
            expect_entry(i, EMQ_OK);
        }
    }
    assert_int_equal(get_integer(server.admin, "ZCARD", "emq:{q}:pending", NULL),
                     2 * EMQ_PIPELINE_ENTRIES_MAX);
    assert_int_equal(emq_err_class(EMQ_EOVERLOAD), EMQ_CLASS_RETRYABLE);
}

static void the_bytes_are_bounded(void **state) {
    char *payload = calloc(1, LARGE);
    (void)state;
    assert_non_null(payload);
    for (int i = 0; i < 9; i++) {
        emq_id id = {{0}};
        ADD(emq_pipeline_enqueue(pipeline, &id, "q", payload, LARGE));
    }
    emq_id id = {{0}};
    assert_int_equal(emq_pipeline_enqueue(pipeline, &id, "q", payload, LARGE), EMQ_EOVERLOAD);
    assert_int_equal(emq_pipeline_enqueue(pipeline, &id, "q", payload, SIZE_MAX), EMQ_ETOOBIG);
    add_job("a small one fits");
    EXPECT_RUN(EMQ_OK);
    for (size_t i = 0; i < 10; i++) {
        expect_entry(i, EMQ_OK);
    }
    free(payload);
}

/* Everything was sent; the server answered one and went. */
static void a_loss_leaves_the_answers_that_came(void **state) {
    const peer_script script = {
        .steps = {
            PEER_HANDSHAKE, PEER_SENDS(":1\r\n"), PEER_SENDS(":0\r\n"), {PEER_CLOSE, NULL, 0}}};
    emq_id id = {ID_A};
    (void)state;
    peer *p = open_on_peer(&script, LONG_MS);
    add_job("first");
    ADD(emq_pipeline_enqueue(pipeline, &id, "q", "second", 6));
    add_job("third");
    add_job("fourth");
    EXPECT_RUN(EMQ_ECONNLOST);
    expect_entry(0, EMQ_OK);
    expect_entry(1, EMQ_DUPLICATE);
    expect_entry(2, EMQ_ECONNLOST);
    expect_entry(3, EMQ_ECONNLOST);
    assert_int_equal(emq_client_is_open(client), 0);
    add_job("again");
    EXPECT_RUN(EMQ_ECLOSED);
    expect_entry(0, EMQ_ECLOSED);
    close_on_peer(p);
}

/* What had not gone out whole was not done. */
static void what_was_not_sent_is_told_apart(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n")},
                                .interrupt_at = 100000,
                                .interrupt = {PEER_CLOSE, NULL, 0}};
    char *payload = calloc(1, LARGE);
    (void)state;
    assert_non_null(payload);
    peer *p = open_on_peer(&script, LONG_MS);
    add_job("small");
    for (int i = 0; i < 8; i++) {
        emq_id id = {{0}};
        ADD(emq_pipeline_enqueue(pipeline, &id, "q", payload, LARGE));
    }
    int result = emq_pipeline_run(pipeline);
    /* the first answer may have been lost with the connection, or not */
    int first = emq_pipeline_get_result(pipeline, 0);
    assert_true(first == EMQ_OK || first == EMQ_ECONNLOST);
    assert_int_equal(result, first == EMQ_OK ? EMQ_ECONNECT : EMQ_ECONNLOST);
    expect_entry(8, EMQ_ECONNECT);
    assert_int_equal(emq_err_class(EMQ_ECONNECT), EMQ_CLASS_RETRYABLE);
    free(payload);
    close_on_peer(p);
}

static void silence_is_a_timeout_of_the_rest(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n")}};
    (void)state;
    peer *p = open_on_peer(&script, SHORT_MS);
    add_job("first");
    add_job("second");
    EXPECT_RUN(EMQ_ETIMEOUT);
    expect_entry(0, EMQ_OK);
    expect_entry(1, EMQ_ETIMEOUT);
    assert_int_equal(emq_client_is_open(client), 0);
    close_on_peer(p);
}

/* Behind an answer that can't be one, nothing is believed. */
static void a_wrong_shape_ends_the_trust(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n"),
                                          PEER_SENDS("+OK\r\n"), PEER_SENDS(":1\r\n")}};
    (void)state;
    peer *p = open_on_peer(&script, LONG_MS);
    add_job("first");
    add_job("second");
    add_job("third");
    EXPECT_RUN(EMQ_EPROTOCOL);
    EXPECT_SAYS(client, "EMQ.ENQUEUE must answer 1 or 0");
    expect_entry(0, EMQ_OK);
    expect_entry(1, EMQ_EPROTOCOL);
    expect_entry(2, EMQ_EPROTOCOL);
    assert_int_equal(emq_client_is_open(client), 0);
    close_on_peer(p);
}

static void noise_in_the_middle_ends_the_trust(void **state) {
    const peer_script script = {
        .steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n"), PEER_SENDS("!?\r\n")}};
    (void)state;
    peer *p = open_on_peer(&script, LONG_MS);
    add_job("first");
    add_job("second");
    EXPECT_RUN(EMQ_EPROTOCOL);
    expect_entry(0, EMQ_OK);
    expect_entry(1, EMQ_EPROTOCOL);
    close_on_peer(p);
}

static void an_answer_too_many_is_not_believed(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n:1\r\n:1\r\n")}};
    (void)state;
    peer *p = open_on_peer(&script, LONG_MS);
    add_job("first");
    add_job("second");
    EXPECT_RUN(EMQ_EPROTOCOL);
    expect_entry(0, EMQ_EPROTOCOL);
    expect_entry(1, EMQ_EPROTOCOL);
    assert_int_equal(emq_client_is_open(client), 0);
    close_on_peer(p);
}

/* Not even a job that was decoded before the others came. */
static void a_job_with_an_answer_too_many_is_not_handed_out(void **state) {
    const peer_script script = {
        .steps = {PEER_HANDSHAKE, PEER_SENDS("*3\r\n$14\r\nJOB0KHTOWnGLuC\r\n$1\r\nx\r\n:1\r\n"),
                  PEER_SENDS(":1\r\n:1\r\n")}};
    (void)state;
    peer *p = open_on_peer(&script, LONG_MS);
    ADD(emq_pipeline_claim(pipeline, "q", 1000));
    add_job("second");
    EXPECT_RUN(EMQ_EPROTOCOL);
    expect_entry(0, EMQ_EPROTOCOL);
    expect_entry(1, EMQ_EPROTOCOL);
    assert_null(emq_pipeline_take_job(pipeline, 0));
    close_on_peer(p);
}

/* The peer does not read on before its answer is taken, and both are more than two sockets hold. */
static void answers_are_read_while_entries_are_sent(void **state) {
    enum { ANSWER = 32 * 1024 * 1024, ENTRIES = 8 };
    static const char head[] = "*3\r\n$14\r\nJOB0KHTOWnGLuC\r\n$33554432\r\n";
    static const char tail[] = "\r\n:1\r\n";
    enum { HEAD = sizeof(head) - 1, TAIL = sizeof(tail) - 1 };
    peer_script script = {.steps = {PEER_HANDSHAKE}};
    char *answer = malloc((size_t)HEAD + ANSWER + TAIL);
    char *payload = calloc(1, LARGE);
    size_t size = 0;
    (void)state;
    assert_true(answer != NULL && payload != NULL);
    memcpy(answer, head, HEAD);
    memset(answer + HEAD, 'x', ANSWER);
    memcpy(answer + HEAD + ANSWER, tail, TAIL);
    peer_step *next = &script.steps[PEER_HANDSHAKE_COMMANDS];
    *next++ = (peer_step){PEER_SEND, answer, (size_t)HEAD + ANSWER + TAIL};
    for (int i = 0; i < ENTRIES; i++) {
        *next++ = (peer_step)PEER_SENDS(":1\r\n");
    }
    peer *p = open_on_peer(&script, LONG_MS);
    ADD(emq_pipeline_claim(pipeline, "q", 1000));
    for (int i = 0; i < ENTRIES; i++) {
        emq_id id = {{0}};
        ADD(emq_pipeline_enqueue(pipeline, &id, "q", payload, LARGE));
    }
    EXPECT_RUN(EMQ_OK);
    for (size_t i = 0; i <= ENTRIES; i++) {
        expect_entry(i, EMQ_OK);
    }
    emq_job *job = emq_pipeline_take_job(pipeline, 0);
    assert_non_null(emq_job_get_payload(job, &size));
    assert_int_equal(size, ANSWER);
    emq_job_free(job);
    close_on_peer(p);
    free(payload);
    free(answer);
}

/* An answer that comes before its entry was sent answers something else. */
static void an_early_answer_is_not_believed(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":1\r\n:1\r\n")},
                                .interrupt_at = 100000,
                                .interrupt = {PEER_SEND, ":1\r\n", 0}};
    char *payload = calloc(1, LARGE);
    (void)state;
    assert_non_null(payload);
    peer *p = open_on_peer(&script, LONG_MS);
    add_job("small");
    for (int i = 0; i < 8; i++) {
        emq_id id = {{0}};
        ADD(emq_pipeline_enqueue(pipeline, &id, "q", payload, LARGE));
    }
    EXPECT_RUN(EMQ_EPROTOCOL);
    EXPECT_SAYS(client, "before it was asked");
    expect_entry(0, EMQ_OK);
    expect_entry(8, EMQ_ECONNECT);
    assert_int_equal(emq_client_is_open(client), 0);
    free(payload);
    close_on_peer(p);
}

static void fresh_ids_that_are_taken_are_minted_again(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(":0\r\n"),
                                          PEER_SENDS(":0\r\n"), PEER_SENDS(":0\r\n"),
                                          PEER_SENDS(":1\r\n"), PEER_SENDS(":1\r\n")}};
    emq_id known = {ID_A};
    emq_id id = {{0}};
    char want[256];
    (void)state;
    peer *p = open_on_peer(&script, LONG_MS);
    add_job("first");
    emq_id before = *emq_pipeline_get_id(pipeline, 0);
    ADD(emq_pipeline_enqueue(pipeline, &known, "q", "p", 1));
    ADD(emq_pipeline_schedule(pipeline, &id, "other", "third", 5, (emq_when){EMQ_AT, 123456}));
    EXPECT_RUN(EMQ_OK);
    expect_entry(0, EMQ_OK);
    expect_entry(1, EMQ_DUPLICATE);
    expect_entry(2, EMQ_OK);
    const char *now = emq_pipeline_get_id(pipeline, 0)->text;
    assert_string_not_equal(now, before.text);
    (void)snprintf(want, sizeof(want), "EMQ.ENQUEUE 2 emq:{q}:job:%s emq:{q}:pending %s first", now,
                   now);
    char *again = peer_command(p, PEER_HANDSHAKE_COMMANDS + 3);
    assert_string_equal(again, want);
    free(again);
    now = emq_pipeline_get_id(pipeline, 2)->text;
    (void)snprintf(want, sizeof(want),
                   "EMQ.SCHEDULE 2 emq:{other}:job:%s emq:{other}:schedule %s third at 123456", now,
                   now);
    again = peer_command(p, PEER_HANDSHAKE_COMMANDS + 4);
    assert_string_equal(again, want);
    free(again);
    close_on_peer(p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pipeline, close_all)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_empty_run_does_nothing),
        TEST(a_life_in_one_write),
        TEST(batches_have_a_result_for_each),
        TEST(leases_are_prolonged_together),
        TEST(the_bus_pauses_and_bits),
        TEST(any_command_has_a_reply),
        TEST(an_error_hides_nothing),
        TEST(wrong_entries_are_not_added),
        TEST(a_full_pipeline_runs_and_is_used_again),
        TEST(the_bytes_are_bounded),
        TEST(a_loss_leaves_the_answers_that_came),
        TEST(what_was_not_sent_is_told_apart),
        TEST(silence_is_a_timeout_of_the_rest),
        TEST(a_wrong_shape_ends_the_trust),
        TEST(noise_in_the_middle_ends_the_trust),
        TEST(an_answer_too_many_is_not_believed),
        TEST(a_job_with_an_answer_too_many_is_not_handed_out),
        TEST(answers_are_read_while_entries_are_sent),
        TEST(an_early_answer_is_not_believed),
        TEST(fresh_ids_that_are_taken_are_minted_again),
    };
    return RUN_SERVER_TESTS("client.pipeline", tests, start_server, stop_server);
}
