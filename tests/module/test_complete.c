/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.COMPLETE behind the fence: whose job it is to complete, and what goes with it. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

#define UNCHANGED(want, ...) EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__)

/* A row that a holder of token 3 could settle, were it in a set. */
static void make_row(const char *row_state) {
    run(client, "DEL", ROW(J1), NULL);
    run(client, "HSET", ROW(J1), "state", row_state, "attempts", "3", "payload", "p", "lease_epoch",
        "someone", NULL);
}

static void a_leased_job_is_completed(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    EXPECT_EFFECTS(&server,
                   "MULTI\n"
                   "ZREM " ACTIVE " " J1 "\n"
                   "DEL " ROW(J1) "\n"
                                  "HSET " COMPLETED " count 1\n"
                                  "EXEC",
                   client, "1", COMPLETE(J1, "1"));
    EXPECT(client, "0", "EXISTS", ROW(J1), ACTIVE, LOGS(J1));
    EXPECT(client, "[\"count\", \"1\"]", "HGETALL", COMPLETED);
    EXPECT(client, "[\"" J2 "\"]", "ZRANGE", PENDING, "0", "-1");
    UNCHANGED("0", COMPLETE(J1, "1"));
}

static void its_log_lines_go_with_it(void **state) {
    (void)state;
    lease_j1();
    run(client, "RPUSH", LOGS(J1), "a", "b", NULL);
    run(client, "RPUSH", LOGS(J2), "another's", NULL);
    EXPECT_EFFECTS(&server,
                   "MULTI\n"
                   "ZREM " ACTIVE " " J1 "\n"
                   "DEL " ROW(J1) " " LOGS(J1) "\n"
                                               "HSET " COMPLETED " count 1\n"
                                               "EXEC",
                   client, "1", COMPLETE(J1, "1"));
    EXPECT(client, "1", "EXISTS", LOGS(J1), LOGS(J2));
}

static void the_others_in_active_stay(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    EXPECT(client, "[\"" J2 "\", \"p\", 1]", CLAIM("1000"));
    EXPECT(client, "1", COMPLETE(J1, "1"));
    EXPECT(client, "[\"" J2 "\"]", "ZRANGE", ACTIVE, "0", "-1");
    EXPECT(client, "1", COMPLETE(J2, "1"));
    EXPECT(client, "\"2\"", "HGET", COMPLETED, "count");
}

/* Gone: no row, or a row that never was a job. Whatever else is wrong comes later. */
static void a_job_that_is_gone(void **state) {
    (void)state;
    UNCHANGED("0", COMPLETE(J1, "1"));
    UNCHANGED("0", COMPLETE(J1, ""));
    UNCHANGED("0", COMPLETE(USER, "1"));
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    UNCHANGED("0", COMPLETE(J1, "1"));
    run(client, "HSET", ROW(J1), "state", "active", "group", "g", "parent", J2, NULL);
    UNCHANGED("0", COMPLETE(J1, "1"));
    make_typed(ACTIVE, "string");
    make_typed(PENDING, "string");
    make_typed(COMPLETED, "string");
    UNCHANGED("0", COMPLETE(J1, "1"));
    run(client, "DEL", ROW(J1), NULL);
    UNCHANGED("0", COMPLETE(J1, "1"));
}

static void an_expired_row_is_gone(void **state) {
    (void)state;
    lease_j1();
    pass_expiry(ROW(J1));
    UNCHANGED("0", COMPLETE(J1, "1"));
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
}

static void a_row_of_another_type_is_refused(void **state) {
    (void)state;
    lease_j1();
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(ROW(J1), types[i]);
            UNCHANGED(WRONGTYPE, COMPLETE(J1, "1"));
        }
    }
}

static void a_token_is_compared_as_text(void **state) {
    static const char *const wrong[] = {"0",      "2", "01", "+1",  "1.0", " 1", "1 ",
                                        "1\\x00", "",  "x",  "1e0", "11",  "-1"};
    (void)state;
    lease_j1();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        UNCHANGED(MISMATCH, COMPLETE(J1, wrong[i]));
    }
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

static void a_token_of_an_earlier_claim_is_stale(void **state) {
    (void)state;
    lease_j1();
    run(client, "ZADD", PENDING, "0", J1, NULL);
    run(client, "ZREM", ACTIVE, J1, NULL);
    EXPECT(client, "[\"" J1 "\", \"payload\", 2]", CLAIM("1000"));
    UNCHANGED(MISMATCH, COMPLETE(J1, "1"));
    EXPECT(client, "1", COMPLETE(J1, "2"));
}

/* Lane before flow before token. */
static void rows_of_lanes_and_flows_are_not_its_own(void **state) {
    (void)state;
    lease_j1();
    run(client, "HSET", ROW(J1), "parent", J2, NULL);
    UNCHANGED(FLOW, COMPLETE(J1, "1"));
    UNCHANGED(FLOW, COMPLETE(J1, "9"));
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    UNCHANGED(LANE, COMPLETE(J1, "1"));
    UNCHANGED(LANE, COMPLETE(J1, "9"));
    run(client, "HDEL", ROW(J1), "parent", NULL);
    UNCHANGED(LANE, COMPLETE(J1, "1"));
    run(client, "HSET", ROW(J1), "group", "", NULL);
    UNCHANGED(LANE, COMPLETE(J1, "1"));
    run(client, "HDEL", ROW(J1), "group", NULL);
    run(client, "HSET", ROW(J1), "parent", "", NULL);
    UNCHANGED(FLOW, COMPLETE(J1, "1"));
    /* they come before state and membership */
    make_typed(ACTIVE, "string");
    UNCHANGED(FLOW, COMPLETE(J1, "1"));
    /* other fields of a flow don't make one */
    run(client, "DEL", ACTIVE, NULL);
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    run(client, "HDEL", ROW(J1), "parent", NULL);
    run(client, "HSET", ROW(J1), "parent_queue", "r", "parent_policy", "fp", NULL);
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

/* A job that never ran has no lease, whatever its row says. */
static void token_0_settles_nothing(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    UNCHANGED(LOST, COMPLETE(J1, "0"));
    run(client, "HSET", ROW(J1), "lease_epoch", "x", NULL);
    UNCHANGED(LOST, COMPLETE(J1, "0"));
    run(client, "HSET", ROW(J1), "state", "active", NULL);
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    UNCHANGED(LOST, COMPLETE(J1, "0"));
    run(client, "HSET", ROW(J1), "attempts", "-1", NULL);
    UNCHANGED(LOST, COMPLETE(J1, "-1"));
}

static void attempts_must_be_a_number(void **state) {
    static const char *const bad[] = {"", "x", "1.5", "01", "+1", " 1", "9223372036854775808"};
    (void)state;
    lease_j1();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        run(client, "HSET", ROW(J1), "attempts", bad[i], NULL);
        UNCHANGED(MISMATCH, COMPLETE(J1, "1")); /* the token comes first */
        UNCHANGED(ATTEMPTS, COMPLETE(J1, bad[i]));
    }
}

static void a_lost_lease_settles_nothing(void **state) {
    static const char *const states[] = {"scheduled", "dead", "awaiting_children", "", "Active"};
    (void)state;
    /* state active, but not in active */
    make_row("active");
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    run(client, "ZADD", PENDING, "0", J1, NULL);
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    run(client, "ZADD", ACTIVE, "5", J2, NULL);
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    /* state pending, but not in pending */
    make_row("pending");
    run(client, "DEL", PENDING, NULL);
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    /* in pending, but given back: no lease_epoch */
    run(client, "ZADD", PENDING, "0", J1, NULL);
    run(client, "HDEL", ROW(J1), "lease_epoch", NULL);
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    /* other states, whatever the sets say */
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        make_row(states[i]);
        UNCHANGED(LOST, COMPLETE(J1, "3"));
    }
    run(client, "HDEL", ROW(J1), "state", NULL);
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    /* the lease comes before the counter */
    make_typed(COMPLETED, "string");
    UNCHANGED(LOST, COMPLETE(J1, "3"));
}

/* A sweep took the lease back and nobody has claimed since: a late result still counts. */
static void a_job_swept_back_is_still_its_workers(void **state) {
    (void)state;
    lease_j1();
    run(client, "ZREM", ACTIVE, J1, NULL);
    run(client, "HSET", ROW(J1), "state", "pending", "stalled", "1", NULL);
    run(client, "ZADD", PENDING, "0", J1, "0", J2, NULL);
    EXPECT_EFFECTS(&server,
                   "MULTI\n"
                   "ZREM " PENDING " " J1 "\n"
                   "DEL " ROW(J1) "\n"
                                  "HSET " COMPLETED " count 1\n"
                                  "EXEC",
                   client, "1", COMPLETE(J1, "1"));
    EXPECT(client, "[\"" J2 "\"]", "ZRANGE", PENDING, "0", "-1");
}

/* An epoch of before a restart, or an empty one, is an epoch: it is asked only whether it is there.
 */
static void any_epoch_will_do(void **state) {
    (void)state;
    lease_j1();
    run(client, "HSET", ROW(J1), "lease_epoch", "", NULL);
    EXPECT(client, "1", COMPLETE(J1, "1"));
    make_row("pending");
    run(client, "HSET", ROW(J1), "lease_epoch", "", NULL);
    run(client, "ZADD", PENDING, "0", J1, NULL);
    EXPECT(client, "1", COMPLETE(J1, "3"));
    /* and a lease in active needs none */
    make_row("active");
    run(client, "HDEL", ROW(J1), "lease_epoch", NULL);
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    EXPECT(client, "1", COMPLETE(J1, "3"));
}

static void a_lease_past_its_deadline_still_counts(void **state) {
    (void)state;
    lease_j1();
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

/* Only the set that holds the job is looked at, at its place in the order. */
static void sets_of_another_type(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") == 0) {
            continue;
        }
        make_row("active");
        make_typed(ACTIVE, types[i]);
        UNCHANGED(MISMATCH, COMPLETE(J1, "2"));
        UNCHANGED(WRONGTYPE, COMPLETE(J1, "3"));
        make_row("dead");
        UNCHANGED(LOST, COMPLETE(J1, "3"));
        run(client, "DEL", ACTIVE, NULL);
        make_row("pending");
        make_typed(PENDING, types[i]);
        UNCHANGED(MISMATCH, COMPLETE(J1, "2"));
        UNCHANGED(WRONGTYPE, COMPLETE(J1, "3"));
        /* the other set is no concern of the call */
        make_row("active");
        run(client, "ZADD", ACTIVE, "5", J1, NULL);
        EXPECT(client, "1", COMPLETE(J1, "3"));
        make_row("pending");
        make_typed(ACTIVE, types[i]);
        run(client, "DEL", PENDING, NULL);
        run(client, "ZADD", PENDING, "0", J1, NULL);
        EXPECT(client, "1", COMPLETE(J1, "3"));
    }
}

static void the_counter_is_kept_exactly(void **state) {
    (void)state;
    static const struct {
        const char *before;
        const char *after;
    } table[] = {
        {"0", "\"1\""},
        {"41", "\"42\""},
        {"-1", "\"0\""},
        {"9999999999999", "\"10000000000000\""},
        {"9223372036854775806", "\"9223372036854775807\""},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        lease_j1();
        run(client, "HSET", COMPLETED, "count", table[i].before, "other", "kept", NULL);
        EXPECT(client, "1", COMPLETE(J1, "1"));
        EXPECT(client, table[i].after, "HGET", COMPLETED, "count");
        EXPECT(client, "\"kept\"", "HGET", COMPLETED, "other");
    }
}

/* Refused as the server refuses to count there, and nothing of the job is touched. */
static void a_counter_that_cannot_count(void **state) {
    static const char *const bad[] = {"", "x", "1.5", " 1", "01", "9223372036854775808"};
    (void)state;
    lease_j1();
    run(client, "RPUSH", LOGS(J1), "line", NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        run(client, "HSET", COMPLETED, "count", bad[i], NULL);
        UNCHANGED("-ERR hash value is not an integer", COMPLETE(J1, "1"));
    }
    run(client, "HSET", COMPLETED, "count", "9223372036854775807", NULL);
    UNCHANGED("-ERR increment or decrement would overflow", COMPLETE(J1, "1"));
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(COMPLETED, types[i]);
            UNCHANGED(WRONGTYPE, COMPLETE(J1, "1"));
        }
    }
    run(client, "DEL", COMPLETED, NULL);
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

/* Deleting asks for no type: whatever stands in the place of the log lines goes with the row. */
static void log_lines_of_any_type_go_with_the_row(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        lease_j1();
        make_typed(LOGS(J1), types[i]);
        EXPECT(client, "1", COMPLETE(J1, "1"));
        EXPECT(client, "0", "EXISTS", LOGS(J1), ROW(J1));
    }
}

/* The pause stops claims, not results. */
static void a_paused_queue_completes(void **state) {
    (void)state;
    lease_j1();
    run(client, "HSET", META, "paused", "1", NULL);
    EXPECT(client, "1", COMPLETE(J1, "1"));
    make_typed(META, "string");
    UNCHANGED("0", COMPLETE(J1, "1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_leased_job_is_completed),
        TEST(its_log_lines_go_with_it),
        TEST(the_others_in_active_stay),
        TEST(a_job_that_is_gone),
        TEST(an_expired_row_is_gone),
        TEST(a_row_of_another_type_is_refused),
        TEST(a_token_is_compared_as_text),
        TEST(a_token_of_an_earlier_claim_is_stale),
        TEST(rows_of_lanes_and_flows_are_not_its_own),
        TEST(token_0_settles_nothing),
        TEST(attempts_must_be_a_number),
        TEST(a_lost_lease_settles_nothing),
        TEST(a_job_swept_back_is_still_its_workers),
        TEST(any_epoch_will_do),
        TEST(a_lease_past_its_deadline_still_counts),
        TEST(sets_of_another_type),
        TEST(the_counter_is_kept_exactly),
        TEST(a_counter_that_cannot_count),
        TEST(log_lines_of_any_type_go_with_the_row),
        TEST(a_paused_queue_completes),
    };
    return RUN_SERVER_TESTS("complete", tests, start_server, stop_server);
}
