/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.SCHEDULE and EMQ.RESCHEDULE behind the fence: jobs that wait for a time. */
#include <string.h>

#include "core.h"

/* ---- EMQ.SCHEDULE ---- */

static void a_job_is_scheduled(void **state) {
    (void)state;
    EFFECTS("MULTI\n"
            "HSET " ROW(J1) " state scheduled attempts 0 payload P\n"
                            "ZADD " SCHEDULE " 1234 " J1 "\n"
                            "EXEC",
            "1", SCHEDULE_JOB(J1, "P", "at", "1234"));
    EXPECT(client, "[\"state\", \"scheduled\", \"attempts\", \"0\", \"payload\", \"P\"]", "HGETALL",
           ROW(J1));
    EXPECT(client, "[\"" J1 "\", \"1234\"]", "ZRANGE", SCHEDULE, "0", "-1", "WITHSCORES");
    EXPECT(client, "0", "EXISTS", PENDING, ACTIVE, DEAD);
}

static void the_time_is_the_servers(void **state) {
    (void)state;
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 0, "1", SCHEDULE_JOB(J1, "p", "in", "0"));
    EXPECT_AT_NOW_PLUS(SCHEDULE, J2, 1500, "1", SCHEDULE_JOB(J2, "p", "in", "1500"));
    EXPECT_AT_NOW_PLUS(SCHEDULE, J3, 315360000000, "1", SCHEDULE_JOB(J3, "p", "in", YEARS_10));
}

static void the_times_of_mode_at(void **state) {
    static const char *const good[] = {"0", "1", "1700000000000", "9007199254740990", AT_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        run(client, "DEL", ROW(J1), NULL);
        EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", good[i]));
        char score[32];
        EXPECT_TEXT(get_text(score, sizeof(score), client, "ZSCORE", SCHEDULE, J1, NULL), good[i]);
    }
}

static void payloads_of_any_bytes(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "", "at", "5"));
    FIELD(J1, "payload", "\"\"");
    EXPECT(client, "1", SCHEDULE_JOB(J2, "\\x00\\xff\\x0d\\x0a", "at", "5"));
    FIELD(J2, "payload", "\"\\x00\\xff\\x0d\\x0a\"");
}

static void an_existing_row_is_kept(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "first", "at", "5"));
    UNCHANGED("0", SCHEDULE_JOB(J1, "second", "at", "6"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    UNCHANGED("0", SCHEDULE_JOB(J2, "second", "in", "0"));
    for (int i = 0; i < TYPES; i++) {
        make_typed(ROW(J3), types[i]);
        UNCHANGED("0", SCHEDULE_JOB(J3, "p", "at", "5"));
        UNCHANGED("0", ENQUEUE(J3, "p"));
    }
    /* it comes before the set's type */
    make_typed(SCHEDULE, "string");
    UNCHANGED("0", SCHEDULE_JOB(J1, "second", "at", "6"));
    /* and an enqueued repeat of a scheduled job is one as well */
    UNCHANGED("0", ENQUEUE(J1, "second"));
}

static void an_expired_row_is_none(void **state) {
    (void)state;
    run(client, "SET", ROW(J1), "x", NULL);
    pass_expiry(ROW(J1));
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", "5"));
    EXPECT(client, "-1", "PTTL", ROW(J1));
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
}

static void only_jobs_are_scheduled(void **state) {
    (void)state;
    UNCHANGED(KIND, SCHEDULE_JOB(USER, "p", "at", "5"));
    UNCHANGED(KIND, SCHEDULE_JOB("JO", "p", "at", "5"));
    UNCHANGED(KIND, SCHEDULE_JOB("job0KHTOWnGLuC", "p", "at", "5"));
    UNCHANGED(KIND, SCHEDULE_JOB("EVT0KHTOWnGLuC", "p", "at", "5"));
    EXPECT(client, "1", SCHEDULE_JOB("JOB", "p", "at", "5"));
    EXPECT(client, "1", SCHEDULE_JOB("JOBx", "p", "at", "5"));
    /* before mode, number, row and set */
    UNCHANGED(KIND, SCHEDULE_JOB(USER, "p", "on", "5"));
    UNCHANGED(KIND, SCHEDULE_JOB(USER, "p", "at", "x"));
    make_typed(ROW(USER), "string");
    make_typed(SCHEDULE, "string");
    UNCHANGED(KIND, SCHEDULE_JOB(USER, "p", "at", "5"));
}

static const char *const no_modes[] = {"",    "AT",   "In", "at ",     " in",     "a", "i",
                                       "ati", "atin", "on", "at\\x00", "in\\x00", "5"};

static void the_mode_is_at_or_in(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", "5"));
    for (size_t i = 0; i < sizeof(no_modes) / sizeof(no_modes[0]); i++) {
        UNCHANGED(MODE, SCHEDULE_JOB(J1, "p", no_modes[i], "5"));
        UNCHANGED(MODE, SCHEDULE_JOB(J1, "p", no_modes[i], "x")); /* before the number */
        UNCHANGED(MODE, SCHEDULE_JOB(J2, "p", no_modes[i], "5")); /* before the row */
    }
}

static void the_number_is_in_the_modes_range(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", "5"));
    for (int i = 0; i < NO_NUMBERS; i++) {
        UNCHANGED(AT_MS, SCHEDULE_JOB(J1, "p", "at", no_numbers[i]));
        UNCHANGED(IN_MS, SCHEDULE_JOB(J1, "p", "in", no_numbers[i]));
        UNCHANGED(AT_MS, SCHEDULE_JOB(J2, "p", "at", no_numbers[i])); /* before the row */
    }
    UNCHANGED(AT_MS, SCHEDULE_JOB(J1, "p", "at", "9007199254740992"));
    UNCHANGED(IN_MS, SCHEDULE_JOB(J1, "p", "in", "315360000001"));
    UNCHANGED(IN_MS, SCHEDULE_JOB(J1, "p", "in", AT_MAX));
    make_typed(SCHEDULE, "string");
    UNCHANGED(AT_MS, SCHEDULE_JOB(J1, "p", "at", "x"));
}

static void a_set_of_another_type_refuses(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_typed(SCHEDULE, types[i]);
            UNCHANGED(WRONGTYPE, SCHEDULE_JOB(J1, "p", "at", "5"));
            UNCHANGED(WRONGTYPE, SCHEDULE_JOB(J1, "p", "in", "5"));
        }
    }
}

/* ---- EMQ.RESCHEDULE ---- */

static void a_scheduled_job_gets_another_time(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", "5"));
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", "6"));
    EFFECTS("ZADD " SCHEDULE " 7 " J1, "1", RESCHEDULE(J1, "at", "7"));
    EXPECT(client, "[\"" J2 "\", \"6\", \"" J1 "\", \"7\"]", "ZRANGE", SCHEDULE, "0", "-1",
           "WITHSCORES");
    EXPECT(client, "[\"state\", \"scheduled\", \"attempts\", \"0\", \"payload\", \"p\"]", "HGETALL",
           ROW(J1));
    EXPECT(client, "1", RESCHEDULE(J1, "at", "0"));
    EXPECT(client, "\"0\"", "ZSCORE", SCHEDULE, J1);
    EXPECT(client, "1", RESCHEDULE(J1, "at", AT_MAX));
    EXPECT(client, "\"" AT_MAX "\"", "ZSCORE", SCHEDULE, J1);
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 0, "1", RESCHEDULE(J1, "in", "0"));
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 250, "1", RESCHEDULE(J1, "in", "250"));
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 315360000000, "1", RESCHEDULE(J1, "in", YEARS_10));
}

/* A score that is not an integer (written by hand) is replaced like any other. */
static void a_score_by_hand_is_replaced(void **state) {
    (void)state;
    make_job(J1, "scheduled", SCHEDULE, "-1.5");
    EXPECT(client, "1", RESCHEDULE(J1, "at", "7"));
    run(client, "ZADD", SCHEDULE, "inf", J1, NULL);
    EXPECT(client, "1", RESCHEDULE(J1, "at", "8"));
    EXPECT(client, "\"8\"", "ZSCORE", SCHEDULE, J1);
}

static void what_is_gone_is_not_rescheduled(void **state) {
    (void)state;
    UNCHANGED("-1", RESCHEDULE(J1, "at", "5"));
    UNCHANGED("-1", RESCHEDULE(USER, "at", "5")); /* no kind door */
    run(client, "ZADD", SCHEDULE, "5", J1, NULL);
    UNCHANGED("-1", RESCHEDULE(J1, "at", "5"));
    run(client, "HSET", ROW(J1), "state", "scheduled", "payload", "p", NULL);
    UNCHANGED("-1", RESCHEDULE(J1, "at", "5"));
    /* before state and set */
    run(client, "HSET", ROW(J1), "state", "pending", NULL);
    make_typed(SCHEDULE, "string");
    UNCHANGED("-1", RESCHEDULE(J1, "at", "5"));
}

static void values_come_before_the_row(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(no_modes) / sizeof(no_modes[0]); i++) {
        UNCHANGED(MODE, RESCHEDULE(J1, no_modes[i], "x"));
    }
    for (int i = 0; i < NO_NUMBERS; i++) {
        UNCHANGED(AT_MS, RESCHEDULE(J1, "at", no_numbers[i]));
        UNCHANGED(IN_MS, RESCHEDULE(J1, "in", no_numbers[i]));
    }
    UNCHANGED(AT_MS, RESCHEDULE(J1, "at", "9007199254740992"));
    UNCHANGED(IN_MS, RESCHEDULE(J1, "in", "315360000001"));
    make_typed(ROW(J1), "string");
    UNCHANGED(MODE, RESCHEDULE(J1, "x", "5"));
    UNCHANGED(IN_MS, RESCHEDULE(J1, "in", "x"));
}

static void a_row_of_another_type_refuses(void **state) {
    (void)state;
    run(client, "ZADD", SCHEDULE, "5", J1, NULL);
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(ROW(J1), types[i]);
            UNCHANGED(WRONGTYPE, RESCHEDULE(J1, "at", "6"));
        }
    }
}

static void only_scheduled_jobs_are_rescheduled(void **state) {
    static const char *const states[] = {"pending", "active",    "dead",    "awaiting_children",
                                         "",        "Scheduled", "schedule"};
    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        make_job(J1, states[i], SCHEDULE, "5");
        UNCHANGED(NOT_SCHEDULED, RESCHEDULE(J1, "at", "6"));
    }
    run(client, "HDEL", ROW(J1), "state", NULL);
    UNCHANGED(NOT_SCHEDULED, RESCHEDULE(J1, "at", "6"));
    run(client, "DEL", SCHEDULE, NULL);
    make_job(J1, "scheduled", NULL, NULL);
    UNCHANGED(NOT_SCHEDULED, RESCHEDULE(J1, "at", "6"));
    run(client, "ZADD", SCHEDULE, "5", J2, NULL);
    UNCHANGED(NOT_SCHEDULED, RESCHEDULE(J1, "at", "6"));
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_typed(SCHEDULE, types[i]);
            UNCHANGED(WRONGTYPE, RESCHEDULE(J1, "at", "6"));
        }
    }
}

static void lanes_and_flows_are_not_read(void **state) {
    (void)state;
    make_job(J1, "scheduled", SCHEDULE, "5");
    run(client, "HSET", ROW(J1), "group", "g", "parent", J2, NULL);
    EXPECT(client, "1", RESCHEDULE(J1, "at", "6"));
    EXPECT(client, "\"6\"", "ZSCORE", SCHEDULE, J1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_scheduled),
        TEST(the_time_is_the_servers),
        TEST(the_times_of_mode_at),
        TEST(payloads_of_any_bytes),
        TEST(an_existing_row_is_kept),
        TEST(an_expired_row_is_none),
        TEST(only_jobs_are_scheduled),
        TEST(the_mode_is_at_or_in),
        TEST(the_number_is_in_the_modes_range),
        TEST(a_set_of_another_type_refuses),
        TEST(a_scheduled_job_gets_another_time),
        TEST(a_score_by_hand_is_replaced),
        TEST(what_is_gone_is_not_rescheduled),
        TEST(values_come_before_the_row),
        TEST(a_row_of_another_type_refuses),
        TEST(only_scheduled_jobs_are_rescheduled),
        TEST(lanes_and_flows_are_not_read),
    };
    return RUN_SERVER_TESTS("schedule", tests, start_server, stop_server);
}
