/* SPDX-License-Identifier: Apache-2.0 */
/* Reads: rows, sizes and pages, on a server and with answers that can't be one. */
#include <emq/emq.h>
#include <stdio.h>
#include <string.h>

#include "client_fixture.h"
#include "command.h"
#include "roles.h"

#define ID_A "JOB0KHTOWnGLuC"
#define ROW_A "emq:{q}:job:" ID_A

static const emq_id id_a = {ID_A};

#define EXPECT_CALL(want, call) EXPECT_RESULT(client, (call), (want))

static void fail_once(uint32_t max_failures) {
    emq_job *job = NULL;
    EXPECT_CALL(EMQ_OK, emq_claim(&job, client, "q", 60000));
    EXPECT_CALL(max_failures == 1 ? EMQ_DEAD : EMQ_OK,
                emq_fail(client, emq_job_get_lease(job), 0, max_failures, "a\0b", 3));
    emq_job_free(job);
}

static void a_row_is_read(void **state) {
    emq_row *row = NULL;
    emq_id id = id_a;
    size_t n = 0;
    (void)state;
    EXPECT_CALL(EMQ_GONE, emq_row_read(&row, client, "q", &id));
    assert_null(row);
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", "p\0q", 3));
    EXPECT_CALL(EMQ_OK, emq_row_read(&row, client, "q", &id));
    assert_string_equal(emq_row_get_state(row), "pending");
    assert_int_equal(emq_row_get_attempts(row), 0);
    assert_int_equal(emq_row_get_failures(row), 0);
    assert_memory_equal(emq_row_get_payload(row, &n), "p\0q", 4);
    assert_int_equal(n, 3);
    assert_null(emq_row_get_last_error(row, &n));
    assert_int_equal(n, 0);
    assert_null(emq_row_get_lane(row));
    emq_row_free(row);
    fail_once(1);
    run(server.admin, "HSET", ROW_A, "stalled", "many", "group", "g", NULL);
    EXPECT_CALL(EMQ_OK, emq_row_read(&row, client, "q", &id));
    assert_string_equal(emq_row_get_state(row), "dead");
    assert_int_equal(emq_row_get_attempts(row), 1);
    assert_int_equal(emq_row_get_failures(row), 1);
    assert_int_equal(emq_row_get_stalled(row), -1);
    assert_memory_equal(emq_row_get_last_error(row, &n), "a\0b", 4);
    assert_int_equal(n, 3);
    assert_string_equal(emq_row_get_lane(row), "g");
    emq_row_free(row);
    emq_row_free(NULL);
    run(server.admin, "DEL", ROW_A, NULL);
    run(server.admin, "SET", ROW_A, "no hash", NULL);
    EXPECT_CALL(EMQ_EWRONGTYPE, emq_row_read(&row, client, "q", &id));
    EXPECT_CALL(EMQ_EKIND, emq_row_read(&row, client, "q", &(emq_id){"USR0KHTOWnGLuC"}));
    assert_int_equal(emq_row_read(NULL, client, "q", &id), EMQ_EINVAL);
    assert_int_equal(emq_row_read(&row, NULL, "q", &id), EMQ_EINVAL);
}

static void sizes_are_read(void **state) {
    emq_counts counts = EMQ_COUNTS_INIT;
    int results[5];
    emq_id ids[5];
    emq_bytes payloads[5];
    emq_job *job = NULL;
    emq_id later = {{0}};
    (void)state;
    memset(ids, 0, sizeof(ids));
    memset(payloads, 0, sizeof(payloads));
    EXPECT_CALL(EMQ_OK, emq_counts_read(&counts, client, "q"));
    assert_int_equal(counts.pending + counts.active + counts.scheduled + counts.dead, 0);
    EXPECT_CALL(EMQ_OK, emq_enqueues(results, ids, client, "q", payloads, 5));
    EXPECT_CALL(EMQ_OK, emq_schedule(&later, client, "q", "", 0, (emq_when){EMQ_IN, 100000}));
    EXPECT_CALL(EMQ_OK, emq_claim(&job, client, "q", 60000));
    EXPECT_CALL(EMQ_OK, emq_complete(client, emq_job_get_lease(job)));
    emq_job_free(job);
    fail_once(1);
    EXPECT_CALL(EMQ_OK, emq_claim(&job, client, "q", 60000));
    emq_job_free(job);
    EXPECT_CALL(EMQ_OK, emq_pause(client, "q"));
    EXPECT_CALL(EMQ_OK, emq_counts_read(&counts, client, "q"));
    assert_int_equal(counts.pending, 2);
    assert_int_equal(counts.active, 1);
    assert_int_equal(counts.scheduled, 1);
    assert_int_equal(counts.dead, 1);
    assert_int_equal(counts.completed, 1);
    assert_int_equal(counts.failed, 1);
    assert_int_equal(counts.paused, 1);
    /* a caller with an older, shorter struct */
    emq_counts shorter = {.size = offsetof(emq_counts, active), .active = 77};
    EXPECT_CALL(EMQ_OK, emq_counts_read(&shorter, client, "q"));
    assert_int_equal(shorter.pending, 2);
    assert_int_equal(shorter.active, 77);
    shorter.size = 0;
    assert_int_equal(emq_counts_read(&shorter, client, "q"), EMQ_EINVAL);
    EXPECT_CALL(EMQ_EQUEUE, emq_counts_read(&counts, client, "a b"));
    run(server.admin, "HSET", "emq:{q}:metrics:failed", "count", "x", NULL);
    EXPECT_CALL(EMQ_EVALUE, emq_counts_read(&counts, client, "q"));
    run(server.admin, "SET", "emq:{q}:dead", "no set", NULL);
    EXPECT_CALL(EMQ_EWRONGTYPE, emq_counts_read(&counts, client, "q"));
    assert_int_equal(emq_client_is_open(client), 1);
}

static void pages_are_newest_first(void **state) {
    emq_id ids[25];
    char before[EMQ_ID_LEN + 1] = "";
    int expected = 24;
    (void)state;
    memset(ids, 0, sizeof(ids));
    for (int i = 0; i < 25; i++) {
        EXPECT_CALL(EMQ_OK, emq_enqueue(&ids[i], client, "q", "p", 1));
    }
    for (int page = 0; page < 3; page++) {
        emq_ids *found = NULL;
        EXPECT_CALL(EMQ_OK, emq_ids_browse(&found, client, "q", EMQ_KEY_PENDING,
                                           page == 0 ? NULL : before, strlen(before), 10));
        assert_int_equal(emq_ids_get_count(found), page < 2 ? 10 : 5);
        for (size_t i = 0; i < emq_ids_get_count(found); i++) {
            (void)snprintf(before, sizeof(before), "%s", emq_ids_get_text(found, i, NULL));
            assert_string_equal(before, ids[expected--].text);
        }
        emq_ids_free(found);
        emq_id newer = {{0}}; /* shifts nothing */
        EXPECT_CALL(EMQ_OK, emq_enqueue(&newer, client, "q", "p", 1));
    }
    emq_ids *dead = NULL;
    fail_once(1);
    EXPECT_CALL(EMQ_OK, emq_ids_browse(&dead, client, "q", EMQ_KEY_DEAD, NULL, 0, 10000));
    assert_int_equal(emq_ids_get_count(dead), 1);
    assert_string_equal(emq_ids_get_text(dead, 0, NULL), ids[0].text);
    emq_ids_free(dead);
    EXPECT_CALL(EMQ_EINVAL, emq_ids_browse(&dead, client, "q", EMQ_KEY_ACTIVE, NULL, 0, 1));
    EXPECT_CALL(EMQ_EINVAL, emq_ids_browse(&dead, client, "q", EMQ_KEY_DEAD, NULL, 0, 0));
    EXPECT_CALL(EMQ_EINVAL, emq_ids_browse(&dead, client, "q", EMQ_KEY_DEAD, NULL, 0, 10001));
    EXPECT_CALL(EMQ_EINVAL, emq_ids_browse(&dead, client, "q", EMQ_KEY_DEAD, before, 129, 1));
    assert_null(dead);
}

/* The rules of the role are enough. */
static void an_operator_may_read(void **state) {
    char rules[EMQ_ROLE_RULES_MAX];
    emq_client_options options = options_for_server(&server);
    emq_counts counts = EMQ_COUNTS_INIT;
    emq_row *row = NULL;
    emq_ids *ids = NULL;
    emq_id id = id_a;
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", "p", 1));
    assert_true(emq_role_rules(rules, sizeof(rules), EMQ_ROLE_OPERATOR, "q") > 0);
    redisFree(server_connect_as(&server, "operator", rules));
    options.username = "operator";
    options.password = "password";
    emq_client *other = open_client(&options);
    EXPECT_RESULT(other, emq_row_read(&row, other, "q", &id), EMQ_OK);
    emq_row_free(row);
    EXPECT_RESULT(other, emq_counts_read(&counts, other, "q"), EMQ_OK);
    assert_int_equal(counts.pending, 1);
    EXPECT_RESULT(other, emq_ids_browse(&ids, other, "q", EMQ_KEY_PENDING, NULL, 0, 1), EMQ_OK);
    emq_ids_free(ids);
    EXPECT_RESULT(other, emq_counts_read(&counts, other, "other"), EMQ_ENOPERM);
    emq_client_close(other);
}

typedef int (*reader)(emq_client *c);

static int read_row(emq_client *c) {
    emq_row *row = NULL;
    int result = emq_row_read(&row, c, "q", &id_a);
    emq_row_free(row);
    return result;
}

static int read_counts(emq_client *c) {
    emq_counts counts = EMQ_COUNTS_INIT;
    return emq_counts_read(&counts, c, "q");
}

static int read_page(emq_client *c) {
    emq_ids *ids = NULL;
    int result = emq_ids_browse(&ids, c, "q", EMQ_KEY_DEAD, NULL, 0, 2);
    emq_ids_free(ids);
    return result;
}

static void wrong_shapes_are_no_answer(void **state) {
    static const struct {
        reader read;
        const char *bytes;
    } cases[] = {
        {read_row, ":1\r\n"},
        {read_row, "$-1\r\n"},
        {read_row, "*1\r\n$1\r\na\r\n"},
        {read_row, "*2\r\n$1\r\na\r\n:1\r\n"},
        {read_row, "*2\r\n$-1\r\n$1\r\na\r\n"},
        {read_page, ":1\r\n"},
        {read_page, "*1\r\n:1\r\n"},
        {read_page, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"},
        {read_counts, ":-1\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n"},
        {read_counts, ":0\r\n$1\r\n0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n"},
        {read_counts, ":0\r\n:0\r\n:0\r\n:0\r\n:1\r\n*0\r\n*0\r\n"},
        {read_counts, ":0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*1\r\n$1\r\na\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const peer_script script = {.steps = {PEER_HANDSHAKE, {PEER_SEND, cases[i].bytes, 0}}};
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        emq_client *other = open_client(&options);
        EXPECT_RESULT(other, cases[i].read(other), EMQ_EPROTOCOL);
        assert_int_equal(emq_client_is_open(other), 0);
        emq_client_close(other);
        peer_stop(p);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_on_clean_server, close_client)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_row_is_read),
        TEST(sizes_are_read),
        TEST(pages_are_newest_first),
        TEST(an_operator_may_read),
        TEST(wrong_shapes_are_no_answer),
    };
    return RUN_SERVER_TESTS("client.read", tests, start_server, stop_server);
}
