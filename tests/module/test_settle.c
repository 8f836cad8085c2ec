/* SPDX-License-Identifier: Apache-2.0 */
/* Whose job it is to give back: EMQ.DELAY, EMQ.REQUEUE and EMQ.FAIL behind the fence, as far as
 * they are alike, and the first two in full. */
#include <stdio.h>
#include <string.h>

#include "core.h"

/* The verbs that settle without removing the row, and the words in their refusals. */
typedef enum settler { FAILING, DELAYING, REQUEUEING, SETTLERS } settler;

static const char *const mismatch[SETTLERS] = {
    "-EMQSTALE retry token mismatch",
    "-EMQSTALE delay token mismatch",
    "-EMQSTALE requeue token mismatch",
};
static const char *const lost[SETTLERS] = {
    "-EMQSTALE retry lease lost",
    "-EMQSTALE delay lease lost",
    "-EMQSTALE requeue lease lost",
};
static const char *const gone[SETTLERS] = {GONE, GONE, "-1"};
static const char *const settled[SETTLERS] = {"\"scheduled\"", "1", "1"};

static void settle_unchanged(int line, settler verb, const char *want, const char *token) {
    switch (verb) {
    case FAILING:
        expect_unchanged(__FILE__, line, &server, client, want, FAIL(J1, token, "0", "9", "e"),
                         NULL);
        break;
    case DELAYING:
        expect_unchanged(__FILE__, line, &server, client, want, DELAY(J1, token, "at", "5"), NULL);
        break;
    default:
        expect_unchanged(__FILE__, line, &server, client, want, REQUEUE(J1, token), NULL);
        break;
    }
}

#define REFUSES(verb, want, token) settle_unchanged(__LINE__, (verb), (want), (token))

static void settle(int line, settler verb, const char *token) {
    switch (verb) {
    case FAILING:
        expect_reply(__FILE__, line, client, settled[verb], FAIL(J1, token, "0", "9", "e"), NULL);
        break;
    case DELAYING:
        expect_reply(__FILE__, line, client, settled[verb], DELAY(J1, token, "at", "5"), NULL);
        break;
    default:
        expect_reply(__FILE__, line, client, settled[verb], REQUEUE(J1, token), NULL);
        break;
    }
    FIELD(J1, "lease_epoch", "nil");
    FIELD(J1, "payload", "\"p\"");
    FIELD(J1, "attempts", "\"3\"");
    EXPECT(client, "nil", "ZSCORE", ACTIVE, J1);
    EXPECT(client, "1", "ZCARD", verb == REQUEUEING ? PENDING : SCHEDULE);
    run(client, "DEL", PENDING, ACTIVE, SCHEDULE, NULL);
}

#define SETTLES(verb, token) settle(__LINE__, (verb), (token))
#define EACH(verb) for (settler verb = FAILING; verb < SETTLERS; verb++)

static void a_leased_job_is_settled(void **state) {
    (void)state;
    EACH(verb) {
        make_job(J1, "active", ACTIVE, "9999999999999");
        SETTLES(verb, "3");
        make_job(J1, "active", ACTIVE, "1"); /* past its deadline, not swept yet */
        SETTLES(verb, "3");
        make_job(J1, "active", ACTIVE, "1");
        run(client, "HDEL", ROW(J1), "lease_epoch", NULL); /* in active it needs none */
        SETTLES(verb, "3");
        make_job(J1, "active", ACTIVE, "1");
        run(client, "HSET", ROW(J1), "lease_epoch", "someone", NULL);
        SETTLES(verb, "3");
    }
}

/* A sweep took the lease back and nobody has claimed since: a late word still counts. */
static void a_job_swept_back_is_still_its_workers(void **state) {
    (void)state;
    EACH(verb) {
        make_job(J1, "pending", PENDING, "0");
        SETTLES(verb, "3");
        make_job(J1, "pending", PENDING, "0");
        run(client, "HSET", ROW(J1), "lease_epoch", "", NULL);
        SETTLES(verb, "3");
    }
}

static void a_second_settling_is_lost(void **state) {
    (void)state;
    EACH(first) {
        EACH(second) {
            run(client, "FLUSHDB", NULL);
            run(client, INSTALL, NULL);
            make_job(J1, "active", ACTIVE, "5");
            switch (first) {
            case FAILING:
                EXPECT(client, "\"scheduled\"", FAIL(J1, "3", "0", "9", "e"));
                break;
            case DELAYING:
                EXPECT(client, "1", DELAY(J1, "3", "in", "0"));
                break;
            default:
                EXPECT(client, "1", REQUEUE(J1, "3"));
                break;
            }
            REFUSES(second, lost[second], "3");
            UNCHANGED(LOST, COMPLETE(J1, "3"));
            if (first != REQUEUEING) {
                EXPECT(client, "1", PROMOTE("1"));
                REFUSES(second, lost[second], "3");
                UNCHANGED(LOST, COMPLETE(J1, "3"));
            }
        }
        run(client, "DEL", PENDING, SCHEDULE, NULL);
        make_job(J1, "active", ACTIVE, "5");
        EXPECT(client, "\"dead\"", FAIL(J1, "3", "0", "1", "e"));
        REFUSES(first, lost[first], "3");
        UNCHANGED(LOST, COMPLETE(J1, "3"));
        make_job(J1, "active", ACTIVE, "5");
        EXPECT(client, "1", COMPLETE(J1, "3"));
        REFUSES(first, gone[first], "3");
    }
}

/* A death by stalling takes the epoch, too, and so does the way back to life. */
static void a_dead_job_is_nobodys(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    EXPECT(client, "[[], [\"" J1 "\"]]", STALLED_CHECK("1", "1"));
    EACH(verb) {
        REFUSES(verb, lost[verb], "3");
    }
    UNCHANGED(LOST, COMPLETE(J1, "3"));
    EXPECT(client, "1", REPROCESS(J1));
    EACH(verb) {
        REFUSES(verb, lost[verb], "3");
    }
    UNCHANGED(LOST, COMPLETE(J1, "3"));
}

static void what_is_gone(void **state) {
    (void)state;
    EACH(verb) {
        run(client, "DEL", PENDING, ACTIVE, SCHEDULE, DEAD, FAILED, ROW(J1), NULL);
        REFUSES(verb, gone[verb], "3");
        REFUSES(verb, gone[verb], "");
        run(client, "ZADD", ACTIVE, "5", J1, NULL);
        REFUSES(verb, gone[verb], "3");
        /* a row without attempts, whatever else is wrong */
        run(client, "HSET", ROW(J1), "state", "active", "group", "g", "parent", J2, NULL);
        REFUSES(verb, gone[verb], "3");
        make_typed(ACTIVE, "string");
        make_typed(PENDING, "string");
        make_typed(SCHEDULE, "string");
        make_typed(DEAD, "string");
        make_typed(FAILED, "string");
        REFUSES(verb, gone[verb], "3");
    }
    UNCHANGED(GONE, FAIL(USER, "1", "0", "1", "e")); /* no kind door here */
    UNCHANGED("-1", REQUEUE(USER, "1"));
}

static void a_row_of_another_type_refuses(void **state) {
    (void)state;
    run(client, "ZADD", ACTIVE, "5", J1, NULL);
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(ROW(J1), types[i]);
            EACH(verb) {
                REFUSES(verb, WRONGTYPE, "3");
            }
        }
    }
}

/* Lane before flow before token; the flow only for FAIL. */
static void rows_of_lanes_and_flows(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    run(client, "HSET", ROW(J1), "group", "g", "parent", J2, NULL);
    EACH(verb) {
        REFUSES(verb, LANE, "3");
        REFUSES(verb, LANE, "9");
    }
    run(client, "HSET", ROW(J1), "group", "", NULL);
    EACH(verb) {
        REFUSES(verb, LANE, "3");
    }
    run(client, "HDEL", ROW(J1), "group", NULL);
    REFUSES(FAILING, FLOW, "3");
    REFUSES(FAILING, FLOW, "9");
    REFUSES(DELAYING, mismatch[DELAYING], "9");
    REFUSES(REQUEUEING, mismatch[REQUEUEING], "9");
    SETTLES(DELAYING, "3");
    make_job(J1, "active", ACTIVE, "5");
    run(client, "HSET", ROW(J1), "parent", J2, NULL);
    SETTLES(REQUEUEING, "3");
    make_job(J1, "active", ACTIVE, "5");
    run(client, "HSET", ROW(J1), "parent_queue", "r", "parent_policy", "fp", NULL);
    SETTLES(FAILING, "3");
    make_typed(ACTIVE, "string");
    make_job(J1, "active", NULL, NULL);
    run(client, "HSET", ROW(J1), "parent", "", NULL);
    REFUSES(FAILING, FLOW, "3");
}

static void a_token_is_compared_as_text(void **state) {
    static const char *const wrong[] = {"0",  "2",  "4",  "03", "+3", "3.0", " 3",
                                        "3 ", "33", "-3", "",   "x",  "3e0", "3\\x00"};
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    EACH(verb) {
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
            REFUSES(verb, mismatch[verb], wrong[i]);
        }
    }
    /* before state, membership and types */
    make_typed(ACTIVE, "string");
    make_typed(PENDING, "string");
    EACH(verb) {
        run(client, "HSET", ROW(J1), "state", "active", NULL);
        REFUSES(verb, mismatch[verb], "2");
        run(client, "HSET", ROW(J1), "state", "pending", NULL);
        REFUSES(verb, mismatch[verb], "2");
        run(client, "HSET", ROW(J1), "state", "dead", NULL);
        REFUSES(verb, mismatch[verb], "2");
    }
}

static void token_0_settles_nothing(void **state) {
    (void)state;
    EACH(verb) {
        run(client, "DEL", ROW(J1), PENDING, ACTIVE, NULL);
        EXPECT(client, "1", ENQUEUE(J1, "p"));
        REFUSES(verb, lost[verb], "0");
        run(client, "HSET", ROW(J1), "lease_epoch", "x", NULL);
        REFUSES(verb, lost[verb], "0");
        make_job(J1, "active", ACTIVE, "5");
        run(client, "HSET", ROW(J1), "attempts", "0", NULL);
        REFUSES(verb, lost[verb], "0");
        run(client, "HSET", ROW(J1), "attempts", "-1", NULL);
        REFUSES(verb, lost[verb], "-1");
    }
}

static void attempts_must_be_a_number(void **state) {
    static const char *const bad[] = {"", "x", "1.5", "01", "+1", " 1", "9223372036854775808"};
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    EACH(verb) {
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            run(client, "HSET", ROW(J1), "attempts", bad[i], NULL);
            REFUSES(verb, mismatch[verb], "1"); /* the token comes first */
            REFUSES(verb, ATTEMPTS, bad[i]);
        }
    }
}

static void a_lost_lease_settles_nothing(void **state) {
    static const char *const states[] = {"scheduled", "dead", "awaiting_children", "", "Active"};
    (void)state;
    EACH(verb) {
        run(client, "DEL", PENDING, ACTIVE, SCHEDULE, DEAD, NULL);
        make_job(J1, "active", NULL, NULL);
        REFUSES(verb, lost[verb], "3");
        run(client, "ZADD", PENDING, "0", J1, NULL);
        REFUSES(verb, lost[verb], "3");
        run(client, "ZADD", ACTIVE, "5", J2, NULL);
        REFUSES(verb, lost[verb], "3");
        make_job(J1, "pending", NULL, NULL);
        run(client, "DEL", PENDING, NULL);
        REFUSES(verb, lost[verb], "3");
        run(client, "ZADD", ACTIVE, "5", J1, NULL);
        REFUSES(verb, lost[verb], "3");
        /* pending, but given back and not swept */
        run(client, "ZADD", PENDING, "0", J1, NULL);
        run(client, "HDEL", ROW(J1), "lease_epoch", NULL);
        REFUSES(verb, lost[verb], "3");
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
            make_job(J1, states[i], ACTIVE, "5");
            REFUSES(verb, lost[verb], "3");
        }
        run(client, "HDEL", ROW(J1), "state", NULL);
        REFUSES(verb, lost[verb], "3");
    }
}

/* The lease comes before the types of what would be written. */
static void the_lease_comes_before_the_targets(void **state) {
    (void)state;
    make_job(J1, "dead", NULL, NULL);
    make_typed(SCHEDULE, "string");
    make_typed(DEAD, "string");
    make_typed(FAILED, "string");
    REFUSES(FAILING, lost[FAILING], "3");
    UNCHANGED(lost[FAILING], FAIL(J1, "3", "0", "1", "e"));
    REFUSES(DELAYING, lost[DELAYING], "3");
    make_typed(PENDING, "string");
    REFUSES(REQUEUEING, lost[REQUEUEING], "3");
}

static void holders_of_another_type(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") == 0) {
            continue;
        }
        EACH(verb) {
            run(client, "DEL", PENDING, NULL);
            make_job(J1, "active", NULL, NULL);
            make_typed(ACTIVE, types[i]);
            REFUSES(verb, WRONGTYPE, "3");
            run(client, "DEL", ACTIVE, NULL);
            make_job(J1, "pending", NULL, NULL);
            make_typed(PENDING, types[i]);
            REFUSES(verb, WRONGTYPE, "3");
        }
        /* the set that does not hold the job is no concern of FAIL and DELAY */
        make_job(J1, "active", ACTIVE, "5");
        EXPECT(client, "\"scheduled\"", FAIL(J1, "3", "0", "9", "e"));
        make_job(J1, "active", ACTIVE, "5");
        EXPECT(client, "1", DELAY(J1, "3", "at", "5"));
    }
}

/* ---- EMQ.DELAY ---- */

static void a_job_is_delayed(void **state) {
    (void)state;
    lease_j1();
    run(client, "HSET", ROW(J1), "failures", "2", "last_error", "e", "stalled", "1", NULL);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HDEL " ROW(J1) " lease_epoch\n"
                            "HSET " ROW(J1) " state scheduled\n"
                                            "ZADD " SCHEDULE " 77 " J1 "\n"
                                            "EXEC",
            "1", DELAY(J1, "1", "at", "77"));
    EXPECT(client,
           "[\"state\", \"scheduled\", \"attempts\", \"1\", \"payload\", \"payload\", "
           "\"failures\", \"2\", \"last_error\", \"e\", \"stalled\", \"1\"]",
           "HGETALL", ROW(J1));
    EXPECT(client, "0", "EXISTS", ACTIVE, PENDING, DEAD, FAILED);
    EXPECT(client, "1", PROMOTE("1"));
    EXPECT(client, "[\"" J1 "\", \"payload\", 2]", CLAIM("1000"));
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 1500, "1", DELAY(J1, "2", "in", "1500"));
}

static void a_swept_job_is_delayed(void **state) {
    (void)state;
    sweep_j1_back();
    EFFECTS("MULTI\n"
            "ZREM " PENDING " " J1 "\n"
            "HDEL " ROW(J1) " lease_epoch\n"
                            "HSET " ROW(J1) " state scheduled\n"
                                            "ZADD " SCHEDULE " 0 " J1 "\n"
                                            "EXEC",
            "1", DELAY(J1, "1", "at", "0"));
}

static void the_times_of_a_delay(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    EXPECT(client, "1", DELAY(J1, "3", "at", AT_MAX));
    EXPECT(client, "\"" AT_MAX "\"", "ZSCORE", SCHEDULE, J1);
    make_job(J1, "active", ACTIVE, "5");
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 0, "1", DELAY(J1, "3", "in", "0"));
    make_job(J1, "active", ACTIVE, "5");
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 315360000000, "1", DELAY(J1, "3", "in", YEARS_10));
}

/* Kind, then mode, then number, then the row. */
static void the_values_of_a_delay(void **state) {
    (void)state;
    UNCHANGED(KIND, DELAY(USER, "1", "on", "x"));
    UNCHANGED(KIND, DELAY(USER, "1", "at", "5"));
    UNCHANGED(KIND, DELAY("JO", "1", "at", "5"));
    UNCHANGED(MODE, DELAY(J1, "1", "on", "x"));
    UNCHANGED(MODE, DELAY(J1, "1", "", "5"));
    UNCHANGED(MODE, DELAY(J1, "1", "IN", "5"));
    for (int i = 0; i < NO_NUMBERS; i++) {
        UNCHANGED(AT_MS, DELAY(J1, "1", "at", no_numbers[i]));
        UNCHANGED(IN_MS, DELAY(J1, "1", "in", no_numbers[i]));
    }
    UNCHANGED(AT_MS, DELAY(J1, "1", "at", "9007199254740992"));
    UNCHANGED(IN_MS, DELAY(J1, "1", "in", "315360000001"));
    make_typed(ROW(J1), "string");
    UNCHANGED(IN_MS, DELAY(J1, "1", "in", "x"));
    make_typed(ROW(USER), "string");
    UNCHANGED(KIND, DELAY(USER, "1", "at", "5"));
}

static void a_schedule_of_another_type_refuses(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_job(J1, "active", ACTIVE, "5");
            make_typed(SCHEDULE, types[i]);
            UNCHANGED(WRONGTYPE, DELAY(J1, "3", "at", "5"));
        }
    }
}

/* ---- EMQ.REQUEUE ---- */

static void a_job_is_given_back(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, "HSET", ROW(J1), "failures", "2", "last_error", "e", "stalled", "1", NULL);
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HDEL " ROW(J1) " lease_epoch\n"
                            "HSET " ROW(J1) " state pending\n"
                                            "ZADD " PENDING " 0 " J1 "\n"
                                            "EXEC",
            "1", REQUEUE(J1, "1"));
    EXPECT(client,
           "[\"state\", \"pending\", \"attempts\", \"1\", \"payload\", \"payload\", "
           "\"failures\", \"2\", \"last_error\", \"e\", \"stalled\", \"1\"]",
           "HGETALL", ROW(J1));
    /* in front, by the order of its bytes */
    EXPECT(client, "[\"" J1 "\", \"0\", \"" J2 "\", \"0\"]", "ZRANGE", PENDING, "0", "-1",
           "WITHSCORES");
    EXPECT(client, "[\"" J1 "\", \"payload\", 2]", CLAIM("1000"));
}

static void a_swept_job_is_given_back(void **state) {
    (void)state;
    sweep_j1_back();
    EFFECTS("MULTI\n"
            "ZREM " PENDING " " J1 "\n"
            "HDEL " ROW(J1) " lease_epoch\n"
                            "HSET " ROW(J1) " state pending\n"
                                            "ZADD " PENDING " 0 " J1 "\n"
                                            "EXEC",
            "1", REQUEUE(J1, "1"));
    UNCHANGED(lost[REQUEUEING], REQUEUE(J1, "1"));
}

static void pending_of_another_type_refuses(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "zset") != 0) {
            make_job(J1, "active", ACTIVE, "5");
            make_typed(PENDING, types[i]);
            UNCHANGED(WRONGTYPE, REQUEUE(J1, "3"));
        }
    }
}

/* A pause stops claims, not what becomes of jobs in hand. */
static void a_paused_queue_settles(void **state) {
    (void)state;
    run(client, "HSET", META, "paused", "1", NULL);
    EACH(verb) {
        make_job(J1, "active", ACTIVE, "5");
        SETTLES(verb, "3");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_leased_job_is_settled),
        TEST(a_job_swept_back_is_still_its_workers),
        TEST(a_second_settling_is_lost),
        TEST(a_dead_job_is_nobodys),
        TEST(what_is_gone),
        TEST(a_row_of_another_type_refuses),
        TEST(rows_of_lanes_and_flows),
        TEST(a_token_is_compared_as_text),
        TEST(token_0_settles_nothing),
        TEST(attempts_must_be_a_number),
        TEST(a_lost_lease_settles_nothing),
        TEST(the_lease_comes_before_the_targets),
        TEST(holders_of_another_type),
        TEST(a_job_is_delayed),
        TEST(a_swept_job_is_delayed),
        TEST(the_times_of_a_delay),
        TEST(the_values_of_a_delay),
        TEST(a_schedule_of_another_type_refuses),
        TEST(a_job_is_given_back),
        TEST(a_swept_job_is_given_back),
        TEST(pending_of_another_type_refuses),
        TEST(a_paused_queue_settles),
    };
    return RUN_SERVER_TESTS("settle", tests, start_server, stop_server);
}
