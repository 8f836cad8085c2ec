/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.CLAIM behind the fence: order, pause, orphans, rows of every kind, the lease. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define UNCHANGED(want, ...) EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__)
#define CLAIMED(id, payload, attempts) "[\"" id "\", \"" payload "\", " attempts "]"

static void the_oldest_job_is_leased(void **state) {
    char score[64];
    char effects[1024];
    (void)state;
    EXPECT(client, "1", ENQUEUE(J2, "two"));
    EXPECT(client, "1", ENQUEUE(J1, "one"));
    long long mark = aof_mark(&server);
    EXPECT(client, CLAIMED(J1, "one", "1"), CLAIM("60000"));
    char *got = aof_since(&server, mark);
    (void)get_text(score, sizeof(score), client, "ZSCORE", ACTIVE, J1, NULL);
    (void)snprintf(effects, sizeof(effects),
                   "MULTI\nZREM " PENDING " " J1
                   "\nHSET " ROW(J1) " state active attempts 1 lease_epoch %s\nZADD " ACTIVE
                                     " %s " J1 "\nEXEC",
                   get_run_id(), score);
    EXPECT_TEXT(got, effects);
    free(got);
    EXPECT(client, "4", "HLEN", ROW(J1));
    EXPECT(client, "[\"active\", \"1\", \"one\"]", "HMGET", ROW(J1), "state", "attempts",
           "payload");
    char want[128];
    (void)snprintf(want, sizeof(want), "\"%s\"", get_run_id());
    assert_int_equal(strlen(get_run_id()), 40);
    EXPECT(client, want, "HGET", ROW(J1), "lease_epoch");
    EXPECT(client, "[\"" J2 "\", \"0\"]", "ZRANGE", PENDING, "0", "-1", "WITHSCORES");
    EXPECT(client, CLAIMED(J2, "two", "1"), CLAIM("60000"));
    EXPECT(client, "0", "EXISTS", PENDING);
}

static void nothing_pending_is_empty(void **state) {
    (void)state;
    UNCHANGED("[]", CLAIM("1000"));
    lease_j1();
    UNCHANGED("[]", CLAIM("1000"));
}

/* One clock for the whole transaction: the deadline is exactly its time plus the lease. */
static void check_deadline(const char *lease_ms) {
    char want[64];
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", "TIME");
    EXPECT(client, "+QUEUED", CLAIM(lease_ms));
    EXPECT(client, "+QUEUED", "ZSCORE", ACTIVE, J1);
    EXPECT(client, "+QUEUED", "TIME");
    redisReply *reply = call(client, "EXEC", NULL);
    assert_int_equal(reply->elements, 4);
    redisReply *time = reply->element[0];
    long long now = atoll(time->element[0]->str) * 1000 + atoll(time->element[1]->str) / 1000;
    (void)snprintf(want, sizeof(want), "%lld", now + atoll(lease_ms));
    assert_string_equal(reply->element[2]->str, want);
    assert_string_equal(reply->element[3]->element[0]->str, time->element[0]->str);
    freeReplyObject(reply);
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

static void a_lease_is_server_time_plus_its_milliseconds(void **state) {
    (void)state;
    check_deadline("1");
    check_deadline("30000");
    check_deadline("2147483647");
}

static void a_lease_out_of_range_is_refused(void **state) {
    static const char *const bad[] = {"0",
                                      "2147483648",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "-1",
                                      "01",
                                      "+1",
                                      "1.5",
                                      "1e3",
                                      "",
                                      " 1",
                                      "1 ",
                                      "x",
                                      "1\\x00",
                                      "0x10",
                                      "inf",
                                      "-0",
                                      "00",
                                      "\\xff"};
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        UNCHANGED(LEASE_MS, CLAIM(bad[i]));
    }
    /* before the pause, before anything of the queue is looked at */
    run(client, "HSET", META, "paused", "1", NULL);
    UNCHANGED(LEASE_MS, CLAIM("0"));
    make_typed(META, "string");
    UNCHANGED(LEASE_MS, CLAIM("0"));
    run(client, "DEL", PENDING, META, NULL);
    UNCHANGED(LEASE_MS, CLAIM("0"));
    make_typed(PENDING, "string");
    UNCHANGED(LEASE_MS, CLAIM("0"));
}

static void a_paused_queue_is_empty(void **state) {
    static const char *const values[] = {"1", "0", "", "false", "\\x00", "paused"};
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        run(client, "HSET", META, "paused", values[i], NULL);
        UNCHANGED("[]", CLAIM("1000"));
    }
    /* before any key of the work is looked at */
    make_typed(ACTIVE, "string");
    UNCHANGED("[]", CLAIM("1000"));
    make_typed(ROW(J1), "string");
    UNCHANGED("[]", CLAIM("1000"));
    make_typed(PENDING, "string");
    UNCHANGED("[]", CLAIM("1000"));
}

static void other_fields_of_meta_do_not_pause(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    run(client, "HSET", META, "concurrency", "1", "max", "1", "Paused", "1", "paused ", "1", NULL);
    EXPECT(client, CLAIMED(J1, "p", "1"), CLAIM("1000"));
}

static void meta_of_another_type_is_refused(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(META, types[i]);
            UNCHANGED(WRONGTYPE, CLAIM("1000"));
        }
    }
    /* also when there is nothing to claim */
    run(client, "DEL", PENDING, NULL);
    UNCHANGED(WRONGTYPE, CLAIM("1000"));
}

static void pending_of_another_type_is_refused(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_typed(PENDING, types[i]);
            UNCHANGED(WRONGTYPE, CLAIM("1000"));
        }
    }
}

static void active_of_another_type_is_refused(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_typed(ACTIVE, types[i]);
            UNCHANGED(WRONGTYPE, CLAIM("1000"));
        }
    }
    /* the row comes first, and what is not written to is not asked about */
    run(client, "HSET", ROW(J1), "attempts", "x", NULL);
    UNCHANGED(ATTEMPTS, CLAIM("1000"));
    run(client, "DEL", PENDING, NULL);
    UNCHANGED("[]", CLAIM("1000"));
}

static void a_row_of_another_type_is_refused(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, "ZADD", PENDING, "0", "JOB0", NULL); /* an orphan in front stays where it is */
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(ROW(J1), types[i]);
            UNCHANGED(WRONGTYPE, CLAIM("1000"));
        }
    }
    /* behind the first one with a row it is not looked at */
    run(client, "DEL", ROW(J1), NULL);
    run(client, "HSET", ROW(J1), "attempts", "0", "payload", "p", NULL);
    make_typed(ROW(J2), "string");
    EXPECT(client, CLAIMED(J1, "p", "1"), CLAIM("1000"));
    UNCHANGED(WRONGTYPE, CLAIM("1000"));
}

static void claims_count_up(void **state) {
    char want[128];
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    for (int i = 1; i <= 12; i++) {
        run(client, "ZADD", PENDING, "0", J1, NULL);
        (void)snprintf(want, sizeof(want), "[\"" J1 "\", \"p\", %d]", i);
        EXPECT(client, want, CLAIM("1000"));
    }
    EXPECT(client, "\"12\"", "HGET", ROW(J1), "attempts");
}

static void attempts_of_every_form(void **state) {
    static const char *const bad[] = {"",   "x",     "1.5",   "01",  "+1",
                                      " 1", "1 ",    "1e3",   "0x1", "9223372036854775808",
                                      "-0", "\\x00", "1\\x00"};
    (void)state;
    run(client, "ZADD", PENDING, "0", J1, NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        run(client, "HSET", ROW(J1), "attempts", bad[i], "payload", "p", NULL);
        UNCHANGED(ATTEMPTS, CLAIM("1000"));
    }
    /* the last number has no next one */
    run(client, "HSET", ROW(J1), "attempts", "9223372036854775807", NULL);
    UNCHANGED(ATTEMPTS, CLAIM("1000"));
    run(client, "HSET", ROW(J1), "attempts", "9223372036854775806", NULL);
    EXPECT(client, CLAIMED(J1, "p", "9223372036854775807"), CLAIM("1000"));
    EXPECT(client, "1", COMPLETE(J1, "9223372036854775807"));
    run(client, "ZADD", PENDING, "0", J1, NULL);
    run(client, "HSET", ROW(J1), "payload", "p", NULL);
    EXPECT(client, CLAIMED(J1, "p", "1"), CLAIM("1000")); /* missing counts as 0 */
    run(client, "ZADD", PENDING, "0", J1, NULL);
    run(client, "HSET", ROW(J1), "attempts", "-5", NULL);
    EXPECT(client, CLAIMED(J1, "p", "-4"), CLAIM("1000"));
}

static void a_missing_payload_is_null(void **state) {
    (void)state;
    run(client, "ZADD", PENDING, "0", J1, NULL);
    run(client, "HSET", ROW(J1), "other", "x", NULL);
    EXPECT(client, "[\"" J1 "\", nil, 1]", CLAIM("1000"));
    EXPECT(client, "0", "HEXISTS", ROW(J1), "payload");
    /* which an empty one is not */
    EXPECT(client, "1", ENQUEUE(J2, ""));
    EXPECT(client, CLAIMED(J2, "", "1"), CLAIM("1000"));
}

/* An operator's ZADD is an order: any row is taken, whatever it says of itself. */
static void a_row_is_taken_whatever_its_state(void **state) {
    static const char *const states[] = {"pending",           "active", "scheduled", "dead",
                                         "awaiting_children", ""};
    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        run(client, "DEL", ROW(J1), ACTIVE, NULL);
        run(client, "ZADD", PENDING, "0", J1, NULL);
        run(client, "HSET", ROW(J1), "state", states[i], "attempts", "3", "payload", "p",
            "lease_epoch", "old", "group", "g", "parent", J2, "last_error", "e", NULL);
        EXPECT(client, CLAIMED(J1, "p", "4"), CLAIM("1000"));
        EXPECT(client, "[\"active\", \"g\", \"" J2 "\", \"e\"]", "HMGET", ROW(J1), "state", "group",
               "parent", "last_error");
        char want[64];
        (void)snprintf(want, sizeof(want), "\"%s\"", get_run_id());
        EXPECT(client, want, "HGET", ROW(J1), "lease_epoch");
    }
    /* any kind of id, too: the door is at the admission */
    run(client, "ZADD", PENDING, "0", USER, NULL);
    run(client, "HSET", ROW(USER), "payload", "u", NULL);
    EXPECT(client, CLAIMED(USER, "u", "1"), CLAIM("1000"));
}

static void an_id_in_active_already_gets_a_new_deadline(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    EXPECT(client, CLAIMED(J1, "p", "1"), CLAIM("1000"));
    EXPECT(client, "1", "ZCARD", ACTIVE);
    EXPECT(client, "0", "ZCOUNT", ACTIVE, "-inf", "5");
}

/* Lowest score first, then lowest bytes. */
static void scores_come_before_bytes(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "one"));
    EXPECT(client, "1", ENQUEUE(J2, "two"));
    EXPECT(client, "1", ENQUEUE(J3, "three"));
    run(client, "ZADD", PENDING, "1", J1, "-1.5", J3, NULL);
    EXPECT(client, CLAIMED(J3, "three", "1"), CLAIM("1000"));
    EXPECT(client, CLAIMED(J2, "two", "1"), CLAIM("1000"));
    EXPECT(client, CLAIMED(J1, "one", "1"), CLAIM("1000"));
    EXPECT(client, "1", ENQUEUE("JOBa", "a"));
    EXPECT(client, "1", ENQUEUE("JOBb", "b"));
    run(client, "ZADD", PENDING, "inf", "JOBa", "-inf", "JOBb", NULL);
    EXPECT(client, CLAIMED("JOBb", "b", "1"), CLAIM("1000"));
    EXPECT(client, CLAIMED("JOBa", "a", "1"), CLAIM("1000"));
}

/* ---- orphans: ids in pending that have no row ---- */

/* Adds n ids without a row that sort before J1, and writes them in their order. */
static void add_orphans(char *names, size_t cap, int n) {
    char id[32];
    names[0] = '\0';
    for (int i = 0; i < n; i++) {
        (void)snprintf(id, sizeof(id), "JOB0%02d", i);
        run(client, "ZADD", PENDING, "0", id, NULL);
        if (i < 17) {
            size_t used = strlen(names);
            (void)snprintf(names + used, cap - used, " %s", id);
        }
    }
}

/* A call looks at up to 17 ids; orphans before the first row go with the claim. */
static void orphans_are_removed_with_the_claim(void **state) {
    (void)state;
    for (int n = 0; n <= 20; n++) {
        char orphans[512];
        char effects[1024];
        char score[64];
        (void)clean_slate(state);
        EXPECT(client, "1", ENQUEUE(J1, "p"));
        add_orphans(orphans, sizeof(orphans), n);
        run(client, "ZADD", PENDING, "0", "JOBz", NULL); /* one behind stays */
        long long mark = aof_mark(&server);
        if (n <= 16) {
            EXPECT(client, CLAIMED(J1, "p", "1"), CLAIM("60000"));
            (void)get_text(score, sizeof(score), client, "ZSCORE", ACTIVE, J1, NULL);
            (void)snprintf(effects, sizeof(effects),
                           "MULTI\n%s%s%sZREM " PENDING " " J1
                           "\nHSET " ROW(J1) " state active attempts 1 lease_epoch %s\nZADD " ACTIVE
                                             " %s " J1 "\nEXEC",
                           n > 0 ? "ZREM " PENDING : "", orphans, n > 0 ? "\n" : "", get_run_id(),
                           score);
        } else {
            EXPECT(client, "[]", CLAIM("60000"));
            (void)snprintf(effects, sizeof(effects), "ZREM " PENDING "%s", orphans);
        }
        char *got = aof_since(&server, mark);
        EXPECT_TEXT(got, effects);
        free(got);
        if (n > 16) {
            assert_int_equal(get_integer(client, "ZCARD", PENDING, NULL), n - 17 + 2);
            EXPECT(client, "\"pending\"", "HGET", ROW(J1), "state");
            EXPECT(client, CLAIMED(J1, "p", "1"), CLAIM("60000"));
        }
        EXPECT(client, "[\"JOBz\"]", "ZRANGE", PENDING, "0", "-1");
    }
}

static void orphans_alone_are_removed(void **state) {
    (void)state;
    for (int n = 1; n <= 18; n++) {
        char orphans[512];
        char effects[1024];
        (void)clean_slate(state);
        add_orphans(orphans, sizeof(orphans), n);
        (void)snprintf(effects, sizeof(effects), "ZREM " PENDING "%s", orphans);
        EXPECT_EFFECTS(&server, effects, client, "[]", CLAIM("1000"));
        assert_int_equal(get_integer(client, "ZCARD", PENDING, NULL), n > 17 ? n - 17 : 0);
        EXPECT(client, "0", "EXISTS", ACTIVE);
    }
}

static void orphans_need_no_active_set(void **state) {
    (void)state;
    make_typed(ACTIVE, "string");
    run(client, "ZADD", PENDING, "0", J1, NULL);
    EXPECT_EFFECTS(&server, "ZREM " PENDING " " J1, client, "[]", CLAIM("1000"));
}

/* An id that can be no part of a key has no row, even where its bytes make the name of one. */
static void ids_that_can_be_no_names_are_orphans(void **state) {
    (void)state;
    static const char *const ids[] = {"",          J2 ":logs", "JOB{", "JOB}",
                                      "JOB\\x00a", "JOB\\x0d", ":",    "\\x0a"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        (void)clean_slate(state);
        EXPECT(client, "1", ENQUEUE("JOBz", "p"));
        run(client, "RPUSH", LOGS(J2), "a log line", NULL);
        run(client, "ZADD", PENDING, "-1", ids[i], NULL);
        EXPECT(client, CLAIMED("JOBz", "p", "1"), CLAIM("1000"));
        EXPECT(client, "0", "EXISTS", PENDING);
        EXPECT(client, "1", "LLEN", LOGS(J2));
    }
    char id[200];
    memset(id, 'n', sizeof(id));
    id[129] = '\0';
    (void)clean_slate(state);
    run(client, "ZADD", PENDING, "0", id, NULL);
    EXPECT(client, "[]", CLAIM("1000"));
    EXPECT(client, "0", "EXISTS", PENDING);
}

static void an_expired_row_is_an_orphan(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    pass_expiry(ROW(J1));
    EXPECT_EFFECTS(&server, "ZREM " PENDING " " J1, client, "[]", CLAIM("1000"));
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
}

static void a_thousand_jobs_come_in_order(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char id[32];
        char row[128];
        (void)snprintf(id, sizeof(id), "JOB%04d", (i * 617) % 1000);
        (void)snprintf(row, sizeof(row), ROW("%s"), id);
        EXPECT(client, "1", "EMQ.ENQUEUE", "2", row, PENDING, id, id);
    }
    for (int i = 0; i < 1000; i++) {
        char want[64];
        (void)snprintf(want, sizeof(want), "[\"JOB%04d\", \"JOB%04d\", 1]", i, i);
        EXPECT(client, want, CLAIM("60000"));
    }
    EXPECT(client, "[]", CLAIM("60000"));
    EXPECT(client, "1000", "ZCARD", ACTIVE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_oldest_job_is_leased),
        TEST(nothing_pending_is_empty),
        TEST(a_lease_is_server_time_plus_its_milliseconds),
        TEST(a_lease_out_of_range_is_refused),
        TEST(a_paused_queue_is_empty),
        TEST(other_fields_of_meta_do_not_pause),
        TEST(meta_of_another_type_is_refused),
        TEST(pending_of_another_type_is_refused),
        TEST(active_of_another_type_is_refused),
        TEST(a_row_of_another_type_is_refused),
        TEST(claims_count_up),
        TEST(attempts_of_every_form),
        TEST(a_missing_payload_is_null),
        TEST(a_row_is_taken_whatever_its_state),
        TEST(an_id_in_active_already_gets_a_new_deadline),
        TEST(scores_come_before_bytes),
        TEST(orphans_are_removed_with_the_claim),
        TEST(orphans_alone_are_removed),
        TEST(orphans_need_no_active_set),
        TEST(ids_that_can_be_no_names_are_orphans),
        TEST(an_expired_row_is_an_orphan),
        TEST(a_thousand_jobs_come_in_order),
    };
    return RUN_SERVER_TESTS("claim", tests, start_server, stop_server);
}
