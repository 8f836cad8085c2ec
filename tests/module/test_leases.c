/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.EXTEND and EMQ.EXTENDS behind the fence: leases that are held are prolonged, no others. */
#include <stdio.h>
#include <string.h>

#include "core.h"

#define EXTEND_MISMATCH "-EMQSTALE extend token mismatch"
#define EXTEND_LOST "-EMQSTALE extend lease lost"

/* ---- EMQ.EXTEND ---- */

static void a_lease_is_prolonged(void **state) {
    (void)state;
    lease_j1();
    run(client, "ZADD", ACTIVE, "5", J1, "6", J2, NULL);
    long long mark = aof_mark(&server);
    EXPECT(client, "1", EXTEND(J1, "1", "60000"));
    EXPECT_LOG(mark, ACTIVE, J1, "ZADD " ACTIVE " @ " J1);
    EXPECT(client, "\"6\"", "ZSCORE", ACTIVE, J2);
    FIELD(J1, "state", "\"active\"");
    FIELD(J1, "attempts", "\"1\"");
    EXPECT(client, "4", "HLEN", ROW(J1));
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 1, "1", EXTEND(J1, "1", "1"));
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 30000, "1", EXTEND(J1, "1", "30000"));
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 2147483647, "1", EXTEND(J1, "1", "2147483647"));
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 20, "1", EXTEND(J1, "1", "20")); /* a shorter one, too */
}

/* A lease past its deadline that no sweep has met is held still. */
static void a_lease_past_its_deadline_is_prolonged(void **state) {
    (void)state;
    lease_j1();
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 1000, "1", EXTEND(J1, "1", "1000"));
}

/* The holder outlived a restart of the server: from now on the lease is this server's. */
static void a_lease_of_another_server_becomes_this_ones(void **state) {
    static const char *const epochs[] = {"", "someone", "0123456789012345678901234567890123456789"};
    char effects[512];
    (void)state;
    (void)snprintf(effects, sizeof(effects),
                   "MULTI\nZADD " ACTIVE " @ " J1 "\nHSET " ROW(J1) " lease_epoch %s\nEXEC",
                   get_run_id());
    lease_j1();
    for (size_t i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++) {
        run(client, "HSET", ROW(J1), "lease_epoch", epochs[i], NULL);
        long long mark = aof_mark(&server);
        EXPECT(client, "1", EXTEND(J1, "1", "60000"));
        EXPECT_LOG(mark, ACTIVE, J1, effects);
        mark = aof_mark(&server);
        EXPECT(client, "1", EXTEND(J1, "1", "60000"));
        EXPECT_LOG(mark, ACTIVE, J1, "ZADD " ACTIVE " @ " J1);
    }
    run(client, "HDEL", ROW(J1), "lease_epoch", NULL);
    long long mark = aof_mark(&server);
    EXPECT(client, "1", EXTEND(J1, "1", "60000"));
    EXPECT_LOG(mark, ACTIVE, J1, effects);
}

static void what_is_gone_is_not_extended(void **state) {
    (void)state;
    UNCHANGED("-1", EXTEND(J1, "1", "1000"));
    UNCHANGED("-1", EXTEND(J1, "", "1000"));
    UNCHANGED("-1", EXTEND(USER, "1", "1000")); /* no kind door */
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    UNCHANGED("-1", EXTEND(J1, "1", "1000"));
    run(client, "HSET", ROW(J1), "state", "active", "payload", "p", NULL);
    UNCHANGED("-1", EXTEND(J1, "1", "1000"));
    make_typed(ACTIVE, "string");
    UNCHANGED("-1", EXTEND(J1, "1", "1000"));
    /* completed */
    run(client, "DEL", ACTIVE, ROW(J1), NULL);
    lease_j1();
    EXPECT(client, "1", COMPLETE(J1, "1"));
    UNCHANGED("-1", EXTEND(J1, "1", "1000"));
}

static void the_lease_has_its_range(void **state) {
    (void)state;
    lease_j1();
    for (int i = 0; i < NO_NUMBERS; i++) {
        UNCHANGED(LEASE_MS, EXTEND(J1, "1", no_numbers[i]));
        UNCHANGED(LEASE_MS, EXTEND(J2, "1", no_numbers[i])); /* before the row */
        UNCHANGED(LEASE_MS, EXTENDS(no_numbers[i], J1, "1"));
    }
    UNCHANGED(LEASE_MS, EXTEND(J1, "1", "0"));
    UNCHANGED(LEASE_MS, EXTEND(J1, "1", "2147483648"));
    UNCHANGED(LEASE_MS, EXTENDS("0", J1, "1"));
    UNCHANGED(LEASE_MS, EXTENDS("2147483648", J1, "1"));
    make_typed(ROW(J1), "string");
    UNCHANGED(LEASE_MS, EXTEND(J1, "1", "0"));
    make_typed(ACTIVE, "string");
    UNCHANGED(LEASE_MS, EXTENDS("0", J1, "1"));
}

static void a_row_of_another_type_refuses(void **state) {
    (void)state;
    lease_j1();
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(ROW(J1), types[i]);
            UNCHANGED(WRONGTYPE, EXTEND(J1, "1", "1000"));
        }
    }
}

static void a_token_is_compared_as_text(void **state) {
    static const char *const wrong[] = {"0",  "2",  "01", "+1", "1.0", " 1",
                                        "1 ", "11", "",   "x",  "-1",  "1\\x00"};
    (void)state;
    lease_j1();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char want[64];
        UNCHANGED(EXTEND_MISMATCH, EXTEND(J1, wrong[i], "1000"));
        (void)snprintf(want, sizeof(want), "[\"%s\"]", J1);
        UNCHANGED(want, EXTENDS("1000", J1, wrong[i]));
    }
    /* before the set */
    run(client, "DEL", ACTIVE, NULL);
    UNCHANGED(EXTEND_MISMATCH, EXTEND(J1, "2", "1000"));
    make_typed(ACTIVE, "string");
    UNCHANGED(EXTEND_MISMATCH, EXTEND(J1, "2", "1000"));
    UNCHANGED(WRONGTYPE, EXTEND(J1, "1", "1000"));
    /* an empty or strange token is one as well, where the row has it */
    run(client, "DEL", ACTIVE, NULL);
    run(client, "HSET", ROW(J1), "attempts", "", NULL);
    UNCHANGED(EXTEND_LOST, EXTEND(J1, "", "1000"));
}

static void a_lost_lease_is_not_brought_back(void **state) {
    (void)state;
    sweep_j1_back();
    UNCHANGED(EXTEND_LOST, EXTEND(J1, "1", "1000"));
    UNCHANGED("[\"" J1 "\"]", EXTENDS("1000", J1, "1"));
    EXPECT(client, "[\"" J1 "\", \"payload\", 2]", CLAIM("60000"));
    UNCHANGED(EXTEND_MISMATCH, EXTEND(J1, "1", "1000"));
    EXPECT(client, "1", EXTEND(J1, "2", "1000"));
    EXPECT(client, "1", REQUEUE(J1, "2"));
    UNCHANGED(EXTEND_LOST, EXTEND(J1, "2", "1000"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "1", DELAY(J1, "3", "at", "5"));
    UNCHANGED(EXTEND_LOST, EXTEND(J1, "3", "1000"));
    EXPECT(client, "1", PROMOTE("1"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "\"dead\"", FAIL(J1, "4", "0", "1", "e"));
    UNCHANGED(EXTEND_LOST, EXTEND(J1, "4", "1000"));
    UNCHANGED("[\"" J1 "\"]", EXTENDS("1000", J1, "4"));
    run(client, "ZADD", ACTIVE, "5", J2, NULL);
    UNCHANGED(EXTEND_LOST, EXTEND(J1, "4", "1000"));
}

static void active_of_another_type_refuses(void **state) {
    (void)state;
    lease_j1();
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_typed(ACTIVE, types[i]);
            UNCHANGED(WRONGTYPE, EXTEND(J1, "1", "1000"));
            UNCHANGED(WRONGTYPE, EXTENDS("1000", J1, "1"));
        }
    }
}

static void lanes_and_flows_are_not_read(void **state) {
    (void)state;
    lease_j1();
    run(client, "HSET", ROW(J1), "group", "g", "parent", J2, NULL);
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 1000, "1", EXTEND(J1, "1", "1000"));
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 2000, "[]", EXTENDS("2000", J1, "1"));
}

/* ---- EMQ.EXTENDS ---- */

static void lease_three(void) {
    EXPECT(client, "1", ENQUEUE(J1, "a"));
    EXPECT(client, "1", ENQUEUE(J2, "b"));
    EXPECT(client, "1", ENQUEUE(J3, "c"));
    run(client, CLAIM("60000"), NULL);
    run(client, CLAIM("60000"), NULL);
    run(client, CLAIM("60000"), NULL);
}

static void many_leases_get_one_deadline(void **state) {
    (void)state;
    lease_three();
    run(client, "ZADD", ACTIVE, "5", J1, "6", J2, "7", J3, NULL);
    long long mark = aof_mark(&server);
    EXPECT(client, "[]", EXTENDS("60000", J3, "1", J1, "1"));
    EXPECT_LOG(mark, ACTIVE, J1, "MULTI\nZADD " ACTIVE " @ " J3 "\nZADD " ACTIVE " @ " J1 "\nEXEC");
    EXPECT(client, "\"6\"", "ZSCORE", ACTIVE, J2);
    EXPECT_AT_NOW_PLUS(ACTIVE, J2, 2147483647, "[]", EXTENDS("2147483647", J1, "1", J2, "1"));
    EXPECT_AT_NOW_PLUS(ACTIVE, J1, 1, "[]", EXTENDS("1", J1, "1"));
}

/* What was not extended comes back in the order of the call, and keeps no other from it. */
static void the_others_are_answered_in_order(void **state) {
    (void)state;
    lease_three();
    run(client, "ZADD", ACTIVE, "5", J1, "6", J2, "7", J3, NULL);
    long long mark = aof_mark(&server);
    EXPECT(client, "[\"JOBgone\", \"" J3 "\", \"" USER "\", \"" J1 "\"]",
           EXTENDS("60000", "JOBgone", "1", J3, "2", J2, "1", USER, "1", J1, ""));
    EXPECT_LOG(mark, ACTIVE, J2, "ZADD " ACTIVE " @ " J2);
    EXPECT(client, "\"5\"", "ZSCORE", ACTIVE, J1);
    EXPECT(client, "\"7\"", "ZSCORE", ACTIVE, J3);
    /* none at all is no refusal, and writes nothing */
    UNCHANGED("[\"" J3 "\", \"JOBgone\", \"" J3 "\"]",
              EXTENDS("60000", J3, "2", "JOBgone", "1", J3, "0"));
}

static void damaged_rows_refuse_no_others(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        run(client, "DEL", ROW(J1), ROW(J2), ROW(J3), PENDING, ACTIVE, NULL);
        lease_three();
        make_typed(ROW(J2), types[i]); /* a hash without attempts is gone */
        run(client, "ZADD", ACTIVE, "5", J2, NULL);
        EXPECT(client, "[\"" J2 "\"]", EXTENDS("60000", J1, "1", J2, "1", J3, "1"));
        EXPECT(client, "\"5\"", "ZSCORE", ACTIVE, J2);
        UNCHANGED("[\"" J2 "\"]", EXTENDS("60000", J2, "1"));
    }
}

/* A repeated id answers as if its first time had been an earlier call. */
static void an_id_again_in_one_call(void **state) {
    char effects[512];
    (void)state;
    lease_j1();
    run(client, "HSET", ROW(J1), "lease_epoch", "someone", NULL);
    long long mark = aof_mark(&server);
    EXPECT(client, "[\"" J1 "\", \"" J1 "\"]",
           EXTENDS("60000", J1, "2", J1, "1", J1, "0", J1, "1"));
    (void)snprintf(effects, sizeof(effects),
                   "MULTI\nZADD " ACTIVE " @ " J1 "\nHSET " ROW(J1) " lease_epoch %s\nZADD " ACTIVE
                                                                    " @ " J1 "\nEXEC",
                   get_run_id());
    EXPECT_LOG(mark, ACTIVE, J1, effects);
}

static void leases_of_another_server_become_this_ones(void **state) {
    char effects[512];
    (void)state;
    lease_three();
    run(client, "HSET", ROW(J2), "lease_epoch", "someone", NULL);
    run(client, "HDEL", ROW(J3), "lease_epoch", NULL);
    long long mark = aof_mark(&server);
    EXPECT(client, "[]", EXTENDS("60000", J1, "1", J2, "1", J3, "1"));
    (void)snprintf(effects, sizeof(effects),
                   "MULTI\nZADD " ACTIVE " @ " J1 "\nZADD " ACTIVE " @ " J2
                   "\nHSET " ROW(J2) " lease_epoch %s\nZADD " ACTIVE " @ " J3
                                     "\nHSET " ROW(J3) " lease_epoch %s\nEXEC",
                   get_run_id(), get_run_id());
    EXPECT_LOG(mark, ACTIVE, J1, effects);
}

/* Ids come in pairs with their tokens. */
static void half_a_pair_is_no_shape(void **state) {
#define SHAPE_EXTENDS "-ERR EMQ shape EXTENDS expects 2 keys and 1 + 2n values"
    (void)state;
    lease_j1();
    UNCHANGED(SHAPE_EXTENDS, EXTENDS("60000", J1, "1", J2));
    UNCHANGED(SHAPE_EXTENDS, EXTENDS("60000", J1, "1", J2, "1", J3));
    UNCHANGED(SHAPE_EXTENDS, EXTENDS("0", J1, "1", J2));
    UNCHANGED("-ERR wrong number of arguments for 'EMQ.EXTENDS' command", EXTENDS("60000", J1));
}

/* An id that arrives as a value must not be able to name another key. */
static void ids_that_are_no_names(void **state) {
    static const char *const bad[] = {"",     "JOBa:logs", "JOB:",     "JOB{",
                                      "JOB}", "JOB\\x00",  "JOB\\x0d", "JOB\\x0a"};
    (void)state;
    lease_j1();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        UNCHANGED("-ERR EMQ layout EXTENDS id 1 must be <id>", EXTENDS("60000", bad[i], "1"));
        UNCHANGED("-ERR EMQ layout EXTENDS id 2 must be <id>",
                  EXTENDS("60000", J1, "1", bad[i], "1"));
        /* before fence and values */
        UNCHANGED("-ERR EMQ layout EXTENDS id 1 must be <id>", EXTENDS("0", bad[i], "1"));
    }
    run(client, "DEL", FENCE, NULL);
    UNCHANGED("-ERR EMQ layout EXTENDS id 2 must be <id>", EXTENDS("0", J1, "1", "", "1"));
    UNCHANGED(FENCE_ABSENT, EXTENDS("0", J1, "1", J2, "1"));
}

/* A batch of `count` members: J1 with its token at `place`, ids that are gone everywhere else. */
static redisReply *extend_batch(int count, int place) {
    command line = {0};
    static const char *const words[] = {"EMQ.EXTENDS", "2", ACTIVE, BASE, "60000"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        command_add(&line, words[i]);
    }
    for (int i = 0; i < count; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "JOBgone%d", i);
        command_add(&line, i == place ? J1 : id);
        command_add(&line, "1");
    }
    redisReply *reply = command_send(client, &line);
    command_free(&line);
    return reply;
}

static void a_batch_has_1000_members_at_most(void **state) {
    (void)state;
    lease_j1();
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    redisReply *reply = extend_batch(1001, 1000);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_string_equal(reply->str, &MEMBERS[1]);
    freeReplyObject(reply);
    EXPECT(client, "\"5\"", "ZSCORE", ACTIVE, J1);
    /* the number is a value like another: the fence comes first */
    run(client, "DEL", FENCE, NULL);
    reply = extend_batch(1001, 0);
    assert_string_equal(reply->str, &FENCE_ABSENT[1]);
    freeReplyObject(reply);
    run(client, INSTALL, NULL);
    reply = extend_batch(1000, 999);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, 999);
    assert_string_equal(reply->element[0]->str, "JOBgone0");
    assert_string_equal(reply->element[998]->str, "JOBgone998");
    freeReplyObject(reply);
    char score[32];
    assert_string_not_equal(get_text(score, sizeof(score), client, "ZSCORE", ACTIVE, J1, NULL),
                            "5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_prolonged),
        TEST(a_lease_past_its_deadline_is_prolonged),
        TEST(a_lease_of_another_server_becomes_this_ones),
        TEST(what_is_gone_is_not_extended),
        TEST(the_lease_has_its_range),
        TEST(a_row_of_another_type_refuses),
        TEST(a_token_is_compared_as_text),
        TEST(a_lost_lease_is_not_brought_back),
        TEST(active_of_another_type_refuses),
        TEST(lanes_and_flows_are_not_read),
        TEST(many_leases_get_one_deadline),
        TEST(the_others_are_answered_in_order),
        TEST(damaged_rows_refuse_no_others),
        TEST(an_id_again_in_one_call),
        TEST(leases_of_another_server_become_this_ones),
        TEST(half_a_pair_is_no_shape),
        TEST(ids_that_are_no_names),
        TEST(a_batch_has_1000_members_at_most),
    };
    return RUN_SERVER_TESTS("leases", tests, start_server, stop_server);
}
