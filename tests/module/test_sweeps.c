/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.PROMOTE and EMQ.STALLED.CHECK behind the fence: what is due moves, what doesn't belong is
 * dropped, and nothing that is damaged stops the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* Ids that cannot be part of a key. */
static const char *const no_names[] = {"", "JOBa:logs", "JOB{", "JOB}", "JOB\\x00", "JOB\\x0a"};
#define NO_NAMES (sizeof(no_names) / sizeof(no_names[0]))

/* Puts `count` ids JOBx000… at the scores first, first + 1, … of a set; with rows of this state,
 * which are lane rows when a group is given, or without rows. */
static void fill(const char *set, int first, int count, const char *job_state, const char *group) {
    for (int i = 0; i < count; i++) {
        char id[32];
        char row[64];
        char score[16];
        (void)snprintf(id, sizeof(id), "JOBx%05d", i);
        (void)snprintf(row, sizeof(row), ROW("%s"), id);
        (void)snprintf(score, sizeof(score), "%d", first + i);
        assert_int_equal(redisAppendCommand(client, "ZADD %s %s %s", set, score, id), REDIS_OK);
        assert_int_equal(redisAppendCommand(client, "HSET %s state %s attempts 1 payload p %s %s",
                                            job_state == NULL ? "aside" : row,
                                            job_state == NULL ? "none" : job_state,
                                            group == NULL ? "progress" : "group",
                                            group == NULL ? "half" : group),
                         REDIS_OK);
    }
    for (int i = 0; i < 2 * count; i++) {
        void *reply = NULL;
        assert_int_equal(redisGetReply(client, &reply), REDIS_OK);
        assert_int_not_equal(((redisReply *)reply)->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    }
}

/* ---- EMQ.PROMOTE ---- */

static void due_jobs_become_pending(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "a", "at", "7"));
    EXPECT(client, "1", SCHEDULE_JOB(J2, "b", "at", "5"));
    EXPECT(client, "1", SCHEDULE_JOB(J3, "c", "in", "1000000"));
    /* lowest score first */
    EFFECTS("MULTI\n"
            "ZREM " SCHEDULE " " J2 "\n"
            "HSET " ROW(J2) " state pending\n"
                            "ZADD " PENDING " 0 " J2 "\n"
                            "ZREM " SCHEDULE " " J1 "\n"
                            "HSET " ROW(J1) " state pending\n"
                                            "ZADD " PENDING " 0 " J1 "\n"
                                            "EXEC",
            "2", PROMOTE("10000"));
    EXPECT(client, "[\"state\", \"pending\", \"attempts\", \"0\", \"payload\", \"a\"]", "HGETALL",
           ROW(J1));
    EXPECT(client, "[\"" J1 "\", \"0\", \"" J2 "\", \"0\"]", "ZRANGE", PENDING, "0", "-1",
           "WITHSCORES");
    EXPECT(client, "[\"" J3 "\"]", "ZRANGE", SCHEDULE, "0", "-1");
    FIELD(J3, "state", "\"scheduled\"");
    UNCHANGED("0", PROMOTE("10000"));
    EXPECT(client, "[\"" J1 "\", \"a\", 1]", CLAIM("1000"));
}

static void nothing_scheduled_promotes_nothing(void **state) {
    (void)state;
    UNCHANGED("0", PROMOTE("1"));
    make_typed(PENDING, "string");
    UNCHANGED("0", PROMOTE("1"));
    EXPECT(client, "1", SCHEDULE_JOB(J1, "a", "at", AT_MAX));
    UNCHANGED("0", PROMOTE("1"));
}

/* Due is what has the server's time or less. */
static void the_moment_itself_is_due(void **state) {
    (void)state;
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", SCHEDULE_JOB(J1, "a", "in", "0"));
    EXPECT(client, "+QUEUED", SCHEDULE_JOB(J2, "b", "in", "1"));
    EXPECT(client, "+QUEUED", PROMOTE("9"));
    EXPECT(client, "[1, 1, 1]", "EXEC");
    FIELD(J1, "state", "\"pending\"");
    FIELD(J2, "state", "\"scheduled\"");
}

/* What a retry or a delay left on the row stays. */
static void a_retry_comes_back(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "\"scheduled\"", FAIL(J1, "1", "0", "9", "boom"));
    EXPECT(client, "1", PROMOTE("1"));
    EXPECT(client,
           "[\"state\", \"pending\", \"attempts\", \"1\", \"payload\", \"payload\", "
           "\"last_error\", \"boom\", \"failures\", \"1\"]",
           "HGETALL", ROW(J1));
}

static void the_limit_bounds_what_moves(void **state) {
    (void)state;
    fill(SCHEDULE, 10, 25, "scheduled", NULL);
    EXPECT(client, "10", PROMOTE("10"));
    EXPECT(client, "10", "ZCARD", PENDING);
    EXPECT(client, "[\"JOBx00010\"]", "ZRANGE", SCHEDULE, "0", "0");
    EXPECT(client, "[\"JOBx00009\"]", "ZRANGE", PENDING, "-1", "-1");
    EXPECT(client, "1", PROMOTE("1"));
    EXPECT(client, "14", PROMOTE("15"));
    EXPECT(client, "25", "ZCARD", PENDING);
    EXPECT(client, "0", "EXISTS", SCHEDULE);
}

static void what_does_not_belong_is_dropped(void **state) {
    static const char *const states[] = {"pending",           "active", "dead",
                                         "awaiting_children", "",       "Scheduled"};
    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        make_job(J1, states[i], SCHEDULE, "5");
        EFFECTS("ZREM " SCHEDULE " " J1, "0", PROMOTE("1"));
        FIELD(J1, "attempts", "\"3\"");
    }
    make_job(J1, "scheduled", SCHEDULE, "5");
    run(client, "HDEL", ROW(J1), "state", NULL);
    EFFECTS("ZREM " SCHEDULE " " J1, "0", PROMOTE("1"));
    for (size_t i = 0; i < NO_NAMES; i++) {
        run(client, "ZADD", SCHEDULE, "5", no_names[i], NULL);
        EXPECT(client, "0", PROMOTE("1"));
        EXPECT(client, "0", "EXISTS", SCHEDULE);
    }
    /* dropped ids: one command, behind those that move, which they don't count for */
    make_job(J1, "scheduled", SCHEDULE, "3");
    make_job(J2, "scheduled", SCHEDULE, "5");
    run(client, "ZADD", SCHEDULE, "1", "JOBa", "2", "JOBb", "4", "JOBc", "6", "JOBd", NULL);
    EFFECTS("MULTI\n"
            "ZREM " SCHEDULE " " J1 "\n"
            "HSET " ROW(J1) " state pending\n"
                            "ZADD " PENDING " 0 " J1 "\n"
                            "ZREM " SCHEDULE " " J2 "\n"
                            "HSET " ROW(J2) " state pending\n"
                                            "ZADD " PENDING " 0 " J2 "\n"
                                            "ZREM " SCHEDULE " JOBa JOBb JOBc\n"
                                            "EXEC",
            "2", PROMOTE("2"));
    EXPECT(client, "[\"JOBd\"]", "ZRANGE", SCHEDULE, "0", "-1");
}

static void what_is_no_row_is_dropped(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        make_typed(ROW(J1), types[i]); /* a hash without a state, too */
        run(client, "ZADD", SCHEDULE, "1", J1, NULL);
        make_job(J2, "scheduled", SCHEDULE, "2");
        EXPECT(client, "1", PROMOTE("5"));
        EXPECT(client, "0", "EXISTS", SCHEDULE);
        EXPECT(client, "1", "EXISTS", ROW(J1));
        EXPECT(client, "nil", "ZSCORE", PENDING, J1);
        run(client, "DEL", PENDING, NULL);
    }
}

static void lane_rows_are_passed_over_and_flow_rows_move(void **state) {
    (void)state;
    make_job(J1, "scheduled", SCHEDULE, "1");
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    make_job(J2, "scheduled", SCHEDULE, "2");
    run(client, "HSET", ROW(J2), "parent", J3, NULL);
    EXPECT(client, "1", PROMOTE("1"));
    EXPECT(client, "[\"" J1 "\"]", "ZRANGE", SCHEDULE, "0", "-1");
    EXPECT(client, "[\"" J2 "\"]", "ZRANGE", PENDING, "0", "-1");
    UNCHANGED("0", PROMOTE("1"));
    run(client, "HSET", ROW(J1), "group", "", NULL);
    UNCHANGED("0", PROMOTE("1"));
    /* a lane row that does not belong is dropped like any other */
    run(client, "HSET", ROW(J1), "state", "pending", NULL);
    EFFECTS("ZREM " SCHEDULE " " J1, "0", PROMOTE("1"));
}

/* A call looks at no more than ten times its limit and a thousand more. */
static void the_looks_are_bounded(void **state) {
    (void)state;
    fill(SCHEDULE, 0, 1010, "scheduled", "g");
    make_job(J1, "scheduled", SCHEDULE, "5000");
    UNCHANGED("0", PROMOTE("1"));
    run(client, "ZREM", SCHEDULE, "JOBx00500", NULL);
    EXPECT(client, "1", PROMOTE("1"));
    /* ids that are dropped are looks as well, and the next call goes on behind them */
    run(client, "FLUSHDB", NULL);
    run(client, INSTALL, NULL);
    fill(SCHEDULE, 0, 1020, NULL, NULL);
    make_job(J1, "scheduled", SCHEDULE, "5000");
    EXPECT(client, "0", PROMOTE("1"));
    EXPECT(client, "11", "ZCARD", SCHEDULE);
    EXPECT(client, "1", PROMOTE("1"));
    EXPECT(client, "0", "EXISTS", SCHEDULE);
}

static void the_limit_has_its_range(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "a", "at", "5"));
    for (int i = 0; i < NO_NUMBERS; i++) {
        UNCHANGED(LIMIT, PROMOTE(no_numbers[i]));
        UNCHANGED(LIMIT, STALLED_CHECK("1", no_numbers[i]));
        UNCHANGED(MAX_STALLED, STALLED_CHECK(no_numbers[i], no_numbers[i]));
    }
    UNCHANGED(LIMIT, PROMOTE("0"));
    UNCHANGED(LIMIT, PROMOTE("10001"));
    UNCHANGED(LIMIT, STALLED_CHECK("1", "0"));
    UNCHANGED(LIMIT, STALLED_CHECK("2147483647", "10001"));
    UNCHANGED(MAX_STALLED, STALLED_CHECK("0", "0"));
    UNCHANGED(MAX_STALLED, STALLED_CHECK("2147483648", "1"));
    make_typed(SCHEDULE, "string");
    make_typed(ACTIVE, "string");
    UNCHANGED(LIMIT, PROMOTE("0"));
    UNCHANGED(LIMIT, STALLED_CHECK("1", "0"));
    run(client, "DEL", SCHEDULE, ACTIVE, NULL);
    UNCHANGED("[[], []]", STALLED_CHECK("2147483647", "10000"));
}

static void promoting_with_keys_of_another_type(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_typed(SCHEDULE, types[i]);
            UNCHANGED(WRONGTYPE, PROMOTE("1"));
            run(client, "DEL", SCHEDULE, NULL);
            make_job(J1, "scheduled", SCHEDULE, "5");
            make_typed(PENDING, types[i]);
            UNCHANGED(WRONGTYPE, PROMOTE("1"));
            /* where nothing moves, pending is no concern of the call */
            run(client, "HSET", ROW(J1), "state", "dead", NULL);
            EXPECT(client, "0", PROMOTE("1"));
            EXPECT(client, "0", "EXISTS", SCHEDULE);
        }
    }
}

/* ---- EMQ.STALLED.CHECK ---- */

static void a_lapsed_lease_is_taken_back(void **state) {
    (void)state;
    lease_j1();
    UNCHANGED("[[], []]", STALLED_CHECK("1", "10"));
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HSET " ROW(J1) " state pending stalled 1\n"
                            "ZADD " PENDING " 0 " J1 "\n"
                            "EXEC",
            "[[\"" J1 "\"], []]", STALLED_CHECK("2", "10"));
    char epoch[64]; /* the sweep leaves it: a late word of the holder still counts */
    EXPECT_TEXT(get_text(epoch, sizeof(epoch), client, "HGET", ROW(J1), "lease_epoch", NULL),
                get_run_id());
    EXPECT(client, "0", "EXISTS", ACTIVE, DEAD, SCHEDULE, FAILED);
    UNCHANGED("[[], []]", STALLED_CHECK("2", "10"));
    /* the next holder has a token of its own */
    EXPECT(client, "[\"" J1 "\", \"payload\", 2]", CLAIM("60000"));
    UNCHANGED(MISMATCH, COMPLETE(J1, "1"));
    EXPECT(client, "1", COMPLETE(J1, "2"));
}

static void a_job_that_stalls_too_often_is_dead(void **state) {
    (void)state;
    lease_j1();
    run(client, "HSET", ROW(J1), "stalled", "1", "last_error", "of before", NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HSET " ROW(J1) " state dead stalled 2 last_error stalled\n"
                            "HDEL " ROW(J1) " lease_epoch\n"
                                            "ZADD " DEAD " 0 " J1 "\n"
                                            "HSET " FAILED " count 1\n"
                                            "EXEC",
            "[[], [\"" J1 "\"]]", STALLED_CHECK("2", "10"));
    EXPECT(client, "0", "EXISTS", ACTIVE, PENDING);
    FIELD(J1, "failures", "nil"); /* a stall is no failure */
    FIELD(J1, "payload", "\"payload\"");
    UNCHANGED("[[], []]", STALLED_CHECK("1", "10"));
}

static void stalls_are_counted(void **state) {
    static const struct {
        const char *stalled; /* NULL: no field */
        const char *max;
        const char *now;
        int is_dead;
    } table[] = {
        {NULL, "1", "\"1\"", 1},         {NULL, "2", "\"1\"", 0},
        {"0", "1", "\"1\"", 1},          {"1", "3", "\"2\"", 0},
        {"2", "3", "\"3\"", 1},          {"7", "3", "\"8\"", 1},
        {"5", "2147483647", "\"6\"", 0}, {"2147483646", "2147483647", "\"2147483647\"", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        make_job(J1, "active", ACTIVE, "1");
        if (table[i].stalled != NULL) {
            run(client, "HSET", ROW(J1), "stalled", table[i].stalled, NULL);
        }
        EXPECT(client, table[i].is_dead ? "[[], [\"" J1 "\"]]" : "[[\"" J1 "\"], []]",
               STALLED_CHECK(table[i].max, "1"));
        FIELD(J1, "stalled", table[i].now);
        FIELD(J1, "state", table[i].is_dead ? "\"dead\"" : "\"pending\"");
        run(client, "DEL", PENDING, DEAD, NULL);
    }
}

/* A lease without an epoch is a lease: only another server's is exempt. */
static void a_lease_without_an_epoch_stalls(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    run(client, "HDEL", ROW(J1), "lease_epoch", NULL);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HSET " ROW(J1) " state dead stalled 1 last_error stalled\n"
                            "ZADD " DEAD " 0 " J1 "\n"
                            "HSET " FAILED " count 1\n"
                            "EXEC",
            "[[], [\"" J1 "\"]]", STALLED_CHECK("1", "1"));
}

/* The server was restarted while the job was leased: that is no stall of its holder. */
static void a_restart_is_no_stall(void **state) {
    char before[64];
    char epoch[64];
    (void)state;
    lease_j1();
    make_job(J2, "active", ACTIVE, "2");
    run(client, "HSET", ROW(J2), "stalled", "7", NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    (void)snprintf(before, sizeof(before), "%s", get_run_id());
    restart_server();
    assert_string_not_equal(get_run_id(), before);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HSET " ROW(J1) " state pending\n"
                            "ZADD " PENDING " 0 " J1 "\n"
                            "ZREM " ACTIVE " " J2 "\n"
                            "HSET " ROW(J2) " state pending\n"
                                            "ZADD " PENDING " 0 " J2 "\n"
                                            "EXEC",
            "[[\"" J1 "\", \"" J2 "\"], []]", STALLED_CHECK("1", "10"));
    FIELD(J1, "stalled", "nil");
    FIELD(J2, "stalled", "\"7\"");
    EXPECT_TEXT(get_text(epoch, sizeof(epoch), client, "HGET", ROW(J1), "lease_epoch", NULL),
                before);
    /* its holder's word of before the restart counts still */
    EXPECT(client, "1", COMPLETE(J1, "1"));
    /* a lease that was extended after the restart is this server's, and stalls */
    make_job(J3, "active", ACTIVE, "9999999999999");
    run(client, "HSET", ROW(J3), "lease_epoch", before, NULL);
    EXPECT(client, "1", EXTEND(J3, "3", "60000"));
    run(client, "ZADD", ACTIVE, "1", J3, NULL);
    EXPECT(client, "[[], [\"" J3 "\"]]", STALLED_CHECK("1", "10"));
    /* and so is one that was claimed anew */
    EXPECT(client, "[\"" J2 "\", \"p\", 4]", CLAIM("60000"));
    run(client, "ZADD", ACTIVE, "1", J2, NULL);
    EXPECT(client, "[[], [\"" J2 "\"]]", STALLED_CHECK("8", "10"));
}

static void any_other_epoch_is_exempt(void **state) {
    static const char *const epochs[] = {"", "x", "0123456789012345678901234567890123456789"};
    (void)state;
    for (size_t i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++) {
        make_job(J1, "active", ACTIVE, "1");
        run(client, "HSET", ROW(J1), "lease_epoch", epochs[i], NULL);
        EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("1", "1"));
        FIELD(J1, "stalled", "nil");
        run(client, "DEL", PENDING, NULL);
    }
}

/* Lowest deadline first, in the reply and in the effects; the count of the dead once at the end. */
static void recovered_and_dead_in_their_order(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "4");
    make_job(J2, "active", ACTIVE, "2");
    make_job(J3, "active", ACTIVE, "3");
    make_job("JOB4", "active", ACTIVE, "1");
    run(client, "HSET", ROW(J2), "stalled", "1", NULL);
    run(client, "HSET", ROW(J1), "stalled", "1", NULL);
    run(client, "HSET", FAILED, "count", "40", NULL);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " JOB4\n"
            "HSET " ROW(
                "JOB4") " state pending stalled 1\n"
                        "ZADD " PENDING " 0 JOB4\n"
                        "ZREM " ACTIVE " " J2 "\n"
                        "HSET " ROW(
                            J2) " state dead stalled 2 last_error stalled\n"
                                "HDEL " ROW(
                                    J2) " lease_epoch\n"
                                        "ZADD " DEAD " 0 " J2 "\n"
                                        "ZREM " ACTIVE " " J3 "\n"
                                        "HSET " ROW(
                                            J3) " state pending stalled 1\n"
                                                "ZADD " PENDING " 0 " J3 "\n"
                                                "ZREM " ACTIVE " " J1 "\n"
                                                "HSET " ROW(
                                                    J1) " state dead stalled 2 last_error stalled\n"
                                                        "HDEL " ROW(J1) " lease_epoch\n"
                                                                        "ZADD " DEAD " 0 " J1 "\n"
                                                                        "HSET " FAILED " count 42\n"
                                                                        "EXEC",
            "[[\"JOB4\", \"" J3 "\"], [\"" J2 "\", \"" J1 "\"]]", STALLED_CHECK("2", "10"));
}

static void the_limit_bounds_recovered_and_dead(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    make_job(J2, "active", ACTIVE, "2");
    make_job(J3, "active", ACTIVE, "3");
    run(client, "HSET", ROW(J1), "stalled", "1", NULL);
    EXPECT(client, "[[\"" J2 "\"], [\"" J1 "\"]]", STALLED_CHECK("2", "2"));
    EXPECT(client, "[[\"" J3 "\"], []]", STALLED_CHECK("2", "2"));
    EXPECT(client, "[[], []]", STALLED_CHECK("2", "2"));
}

static void the_deadline_itself_has_lapsed(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", "TIME");
    EXPECT(client, "+QUEUED", EXTEND(J1, "1", "1"));
    EXPECT(client, "+QUEUED", STALLED_CHECK("9", "1"));
    redisReply *reply = call(client, "EXEC", NULL);
    assert_int_equal(reply->element[2]->element[0]->elements, 0);
    freeReplyObject(reply);
    /* the server's time as a deadline, written and swept in one step */
    EXPECT(client, "[[\"" J1 "\"], []]", "EVAL",
           "local t = redis.call('TIME') "
           "redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000), ARGV[1]) "
           "return redis.call('EMQ.STALLED.CHECK', 4, KEYS[1], KEYS[2], KEYS[3], KEYS[4], 9, 1)",
           "4", ACTIVE, PENDING, DEAD, BASE, J1);
}

static void what_is_not_active_is_dropped(void **state) {
    static const char *const states[] = {"pending",           "scheduled", "dead",
                                         "awaiting_children", "",          "Active"};
    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        make_job(J1, states[i], ACTIVE, "1");
        EFFECTS("ZREM " ACTIVE " " J1, "[[], []]", STALLED_CHECK("1", "1"));
        FIELD(J1, "stalled", "nil");
    }
    for (size_t i = 0; i < NO_NAMES; i++) {
        run(client, "ZADD", ACTIVE, "1", no_names[i], NULL);
        EXPECT(client, "[[], []]", STALLED_CHECK("1", "1"));
        EXPECT(client, "0", "EXISTS", ACTIVE);
    }
    for (int i = 0; i < TYPES; i++) {
        make_typed(ROW(J1), types[i]);
        run(client, "ZADD", ACTIVE, "1", J1, NULL);
        make_job(J2, "active", ACTIVE, "2");
        EXPECT(client, "[[\"" J2 "\"], []]", STALLED_CHECK("9", "1"));
        EXPECT(client, "0", "EXISTS", ACTIVE);
        EXPECT(client, "1", "EXISTS", ROW(J1));
    }
    /* dropped ids in one command, before the count */
    make_job(J1, "active", ACTIVE, "2");
    run(client, "ZADD", ACTIVE, "1", "JOBa", "3", "JOBb", NULL);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HSET " ROW(J1) " state dead stalled 1 last_error stalled\n"
                            "HDEL " ROW(J1) " lease_epoch\n"
                                            "ZADD " DEAD " 0 " J1 "\n"
                                            "ZREM " ACTIVE " JOBa JOBb\n"
                                            "HSET " FAILED " count 1\n"
                                            "EXEC",
            "[[], [\"" J1 "\"]]", STALLED_CHECK("1", "9"));
}

/* A count of stalls that is none starts anew; the row's other damage is no concern of the sweep. */
static void damaged_rows_do_not_stop_the_sweep(void **state) {
    static const char *const bad[] = {
        "", "x", "1.5", "01", " 1", "-1", "9223372036854775807", "9223372036854775808"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        make_job(J1, "active", ACTIVE, "1");
        make_job(J2, "active", ACTIVE, "2");
        run(client, "HSET", ROW(J1), "stalled", bad[i], "attempts", "x", NULL);
        EXPECT(client, "[[\"" J1 "\", \"" J2 "\"], []]", STALLED_CHECK("2", "9"));
        FIELD(J1, "stalled", "\"1\"");
        FIELD(J1, "attempts", "\"x\"");
    }
}

static void lane_rows_are_passed_over(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    make_job(J2, "active", ACTIVE, "2");
    run(client, "HSET", ROW(J2), "parent", J3, NULL);
    EXPECT(client, "[[\"" J2 "\"], []]", STALLED_CHECK("2", "1"));
    UNCHANGED("[[], []]", STALLED_CHECK("1", "1"));
    EXPECT(client, "[\"" J1 "\"]", "ZRANGE", ACTIVE, "0", "-1");
    /* bounded looks, as with PROMOTE */
    fill(ACTIVE, 0, 1010, "active", "g");
    make_job(J2, "active", ACTIVE, "5000");
    UNCHANGED("[[], []]", STALLED_CHECK("2", "1"));
    run(client, "ZREM", ACTIVE, J1, "JOBx00500", NULL);
    EXPECT(client, "[[\"" J2 "\"], []]", STALLED_CHECK("9", "1"));
}

/* Only what the sweep will write is asked for its type: active, pending, dead, the count. */
static void sweeping_with_keys_of_another_type(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        run(client, "DEL", ACTIVE, PENDING, DEAD, FAILED, NULL);
        if (strcmp(types[i], "zset") != 0) {
            make_typed(ACTIVE, types[i]);
            UNCHANGED(WRONGTYPE, STALLED_CHECK("1", "1"));
            run(client, "DEL", ACTIVE, NULL);
            make_job(J1, "active", ACTIVE, "1");
            make_typed(PENDING, types[i]);
            UNCHANGED(WRONGTYPE, STALLED_CHECK("9", "1"));
            EXPECT(client, "[[], [\"" J1 "\"]]", STALLED_CHECK("1", "1"));
            run(client, "DEL", PENDING, DEAD, NULL);
            make_job(J1, "active", ACTIVE, "1");
            make_typed(DEAD, types[i]);
            UNCHANGED(WRONGTYPE, STALLED_CHECK("1", "1"));
            EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("9", "1"));
            run(client, "DEL", DEAD, NULL);
        }
        if (strcmp(types[i], "hash") != 0) {
            make_job(J1, "active", ACTIVE, "1");
            make_typed(FAILED, types[i]);
            UNCHANGED(WRONGTYPE, STALLED_CHECK("1", "1"));
            EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("9", "1"));
        }
    }
}

static void a_counter_that_cannot_count(void **state) {
    static const char *const bad[] = {"", "x", "1.5", " 1", "01", "9223372036854775808"};
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        run(client, "HSET", FAILED, "count", bad[i], NULL);
        UNCHANGED(COUNT_NO_INTEGER, STALLED_CHECK("1", "1"));
    }
    run(client, "HSET", FAILED, "count", "9223372036854775807", NULL);
    UNCHANGED(COUNT_OVERFLOWS, STALLED_CHECK("1", "1"));
    /* it must have room for all that die */
    run(client, "HSET", FAILED, "count", "9223372036854775806", NULL);
    make_job(J2, "active", ACTIVE, "2");
    UNCHANGED(COUNT_OVERFLOWS, STALLED_CHECK("1", "2"));
    EXPECT(client, "[[], [\"" J1 "\"]]", STALLED_CHECK("1", "1"));
    EXPECT(client, "\"9223372036854775807\"", "HGET", FAILED, "count");
}

/* More than fits into the room that is made in advance. */
static void a_big_sweep(void **state) {
    (void)state;
    fill(SCHEDULE, 0, 3000, "scheduled", NULL);
    EXPECT(client, "3000", PROMOTE("10000"));
    EXPECT(client, "3000", "ZCARD", PENDING);
    run(client, "FLUSHDB", NULL);
    run(client, INSTALL, NULL);
    fill(ACTIVE, 0, 3000, "active", NULL);
    redisReply *reply = call(client, STALLED_CHECK("1", "10000"), NULL);
    assert_int_equal(reply->element[0]->elements, 0);
    assert_int_equal(reply->element[1]->elements, 3000);
    freeReplyObject(reply);
    EXPECT(client, "3000", "ZCARD", DEAD);
    EXPECT(client, "\"3000\"", "HGET", FAILED, "count");
}

/* The pause stops claims alone. */
static void a_paused_queue_is_swept(void **state) {
    (void)state;
    run(client, "HSET", META, "paused", "1", NULL);
    make_job(J1, "active", ACTIVE, "1");
    make_job(J2, "scheduled", SCHEDULE, "1");
    EXPECT(client, "1", PROMOTE("1"));
    EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("9", "1"));
    EXPECT(client, "[]", CLAIM("1000"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(due_jobs_become_pending),
        TEST(nothing_scheduled_promotes_nothing),
        TEST(the_moment_itself_is_due),
        TEST(a_retry_comes_back),
        TEST(the_limit_bounds_what_moves),
        TEST(what_does_not_belong_is_dropped),
        TEST(what_is_no_row_is_dropped),
        TEST(lane_rows_are_passed_over_and_flow_rows_move),
        TEST(the_looks_are_bounded),
        TEST(the_limit_has_its_range),
        TEST(promoting_with_keys_of_another_type),
        TEST(a_lapsed_lease_is_taken_back),
        TEST(a_job_that_stalls_too_often_is_dead),
        TEST(stalls_are_counted),
        TEST(a_lease_without_an_epoch_stalls),
        TEST(a_restart_is_no_stall),
        TEST(any_other_epoch_is_exempt),
        TEST(recovered_and_dead_in_their_order),
        TEST(the_limit_bounds_recovered_and_dead),
        TEST(the_deadline_itself_has_lapsed),
        TEST(what_is_not_active_is_dropped),
        TEST(damaged_rows_do_not_stop_the_sweep),
        TEST(lane_rows_are_passed_over),
        TEST(sweeping_with_keys_of_another_type),
        TEST(a_counter_that_cannot_count),
        TEST(a_big_sweep),
        TEST(a_paused_queue_is_swept),
    };
    return RUN_SERVER_TESTS("sweeps", tests, start_server, stop_server);
}
