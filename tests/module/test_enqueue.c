/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.ENQUEUE behind the fence: what it admits, what it takes for a duplicate, what it refuses. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

#define UNCHANGED(want, ...) EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__)

static void a_job_is_admitted(void **state) {
    (void)state;
    EXPECT_EFFECTS(&server,
                   "MULTI\n"
                   "HSET " ROW(J1) " state pending attempts 0 payload P\n"
                                   "ZADD " PENDING " 0 " J1 "\n"
                                   "EXEC",
                   client, "1", ENQUEUE(J1, "P"));
    EXPECT(client, "3", "HLEN", ROW(J1));
    EXPECT(client, "[\"pending\", \"0\", \"P\"]", "HMGET", ROW(J1), "state", "attempts", "payload");
    EXPECT(client, "[\"" J1 "\", \"0\"]", "ZRANGE", PENDING, "0", "-1", "WITHSCORES");
    EXPECT(client, "3", "DBSIZE"); /* row, pending and the fence: nothing else */
}

static void byte_order_is_the_order(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "1", ENQUEUE("JOBz", "p"));
    EXPECT(client, "1", ENQUEUE("JOBA", "p"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    EXPECT(client, "[\"" J1 "\", \"" J2 "\", \"" J3 "\", \"JOBA\", \"JOBz\"]", "ZRANGE", PENDING,
           "0", "-1");
}

/* The door looks at three bytes and no more. */
static void only_job_ids_pass_the_door(void **state) {
    (void)state;
    UNCHANGED(KIND, ENQUEUE(USER, "p"));
    UNCHANGED(KIND, ENQUEUE("EVT0KHTOWnGLuC", "p"));
    UNCHANGED(KIND, ENQUEUE("J", "p"));
    UNCHANGED(KIND, ENQUEUE("JO", "p"));
    UNCHANGED(KIND, ENQUEUE("JOb0KHTOWnGLuC", "p"));
    UNCHANGED(KIND, ENQUEUE("job0KHTOWnGLuC", "p"));
    UNCHANGED(KIND, ENQUEUE(" JOB0KHTOWnGLu", "p"));
    EXPECT(client, "1", ENQUEUE("JOB", "p"));
    EXPECT(client, "1", ENQUEUE("JOB.any thing", "p"));
    EXPECT(client, "1", ENQUEUE("JOB\\xff\\x01", "p"));
}

static void the_door_comes_before_the_row(void **state) {
    (void)state;
    run(client, "HSET", ROW(USER), "state", "pending", NULL);
    UNCHANGED(KIND, ENQUEUE(USER, "p"));
    make_typed(PENDING, "list");
    UNCHANGED(KIND, ENQUEUE(USER, "p"));
}

static void a_duplicate_keeps_the_first_payload(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "first"));
    UNCHANGED("0", ENQUEUE(J1, "second"));
    EXPECT(client, "\"first\"", "HGET", ROW(J1), "payload");
}

static void a_duplicate_in_every_state(void **state) {
    static const char *const states[] = {"pending",           "active", "scheduled", "dead",
                                         "awaiting_children", "",       "other"};
    (void)state;
    lease_j1();
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        run(client, "HSET", ROW(J1), "state", states[i], NULL);
        UNCHANGED("0", ENQUEUE(J1, "second"));
    }
    run(client, "HDEL", ROW(J1), "state", "attempts", NULL);
    UNCHANGED("0", ENQUEUE(J1, "second"));
}

/* It asks whether the key exists, of whatever type, and looks no further. */
static void any_key_in_the_rows_place_is_a_duplicate(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        make_typed(ROW(J1), types[i]);
        UNCHANGED("0", ENQUEUE(J1, "p"));
        for (int j = 0; j < TYPES; j++) {
            make_typed(PENDING, types[j]);
            UNCHANGED("0", ENQUEUE(J1, "p"));
        }
    }
}

static void pending_of_another_type_is_refused(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_typed(PENDING, types[i]);
            UNCHANGED(WRONGTYPE, ENQUEUE(J1, "p"));
        }
    }
}

static void a_completed_job_is_admitted_again(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", COMPLETE(J1, "1"));
    EXPECT(client, "1", ENQUEUE(J1, "again"));
    EXPECT(client, "[\"" J1 "\", \"again\", 1]", CLAIM("1000"));
}

static void an_id_that_is_pending_already(void **state) {
    (void)state;
    run(client, "ZADD", PENDING, "5", J1, NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "\"0\"", "ZSCORE", PENDING, J1);
}

/* A row past its time is no row; what replaces it has no end. */
static void an_expired_row_is_none(void **state) {
    (void)state;
    run(client, "HSET", ROW(J1), "state", "pending", "attempts", "7", "other", "x", NULL);
    pass_expiry(ROW(J1));
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "-1", "PTTL", ROW(J1));
    EXPECT(client, "3", "HLEN", ROW(J1));
    EXPECT(client, "[\"pending\", \"0\"]", "HMGET", ROW(J1), "state", "attempts");
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
}

static void a_paused_queue_admits(void **state) {
    (void)state;
    run(client, "HSET", META, "paused", "1", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    make_typed(META, "string");
    EXPECT(client, "1", ENQUEUE(J2, "p"));
}

static void queues_do_not_touch_each_other(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "1", "EMQ.ENQUEUE", "2", "emq:{r}:job:" J1, "emq:{r}:pending", J1, "r");
    EXPECT(client, "[\"" J1 "\", \"r\", 1]", "EMQ.CLAIM", "3", "emq:{r}:pending", "emq:{r}:active",
           "emq:{r}:", "1000");
    EXPECT(client, "\"pending\"", "HGET", ROW(J1), "state");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_admitted),
        TEST(byte_order_is_the_order),
        TEST(only_job_ids_pass_the_door),
        TEST(the_door_comes_before_the_row),
        TEST(a_duplicate_keeps_the_first_payload),
        TEST(a_duplicate_in_every_state),
        TEST(any_key_in_the_rows_place_is_a_duplicate),
        TEST(pending_of_another_type_is_refused),
        TEST(a_completed_job_is_admitted_again),
        TEST(an_id_that_is_pending_already),
        TEST(an_expired_row_is_none),
        TEST(a_paused_queue_admits),
        TEST(queues_do_not_touch_each_other),
    };
    return RUN_SERVER_TESTS("enqueue", tests, start_server, stop_server);
}
