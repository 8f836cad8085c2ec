/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.FAIL's own part (the budget, the error, the dead letters) and EMQ.REPROCESS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define RETRY_MISMATCH "-EMQSTALE retry token mismatch"
#define RETRY_LOST "-EMQSTALE retry lease lost"
#define FAILURES "-ERR EMQ row failures is not an integer"

/* ---- EMQ.FAIL ---- */

static void a_failed_job_is_retried(void **state) {
    (void)state;
    lease_j1();
    long long mark = aof_mark(&server);
    EXPECT(client, "\"scheduled\"", FAIL(J1, "1", "1500", "3", "boom"));
    EXPECT_LOG(mark, SCHEDULE, J1,
               "MULTI\n"
               "ZREM " ACTIVE " " J1 "\n"
               "HDEL " ROW(J1) " lease_epoch\n"
                               "HSET " ROW(J1) " state scheduled last_error boom failures 1\n"
                                               "ZADD " SCHEDULE " @ " J1 "\n"
                                               "EXEC");
    FIELD(J1, "attempts", "\"1\"");
    FIELD(J1, "payload", "\"payload\"");
    EXPECT(client, "5", "HLEN", ROW(J1));
    EXPECT(client, "0", "EXISTS", ACTIVE, PENDING, DEAD, FAILED);
}

static void a_job_out_of_budget_is_dead(void **state) {
    (void)state;
    lease_j1();
    EFFECTS("MULTI\n"
            "ZREM " ACTIVE " " J1 "\n"
            "HDEL " ROW(J1) " lease_epoch\n"
                            "HSET " ROW(J1) " state dead last_error boom failures 1\n"
                                            "ZADD " DEAD " 0 " J1 "\n"
                                            "HSET " FAILED " count 1\n"
                                            "EXEC",
            "\"dead\"", FAIL(J1, "1", "1500", "1", "boom"));
    EXPECT(client, "0", "EXISTS", ACTIVE, PENDING, SCHEDULE);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, CLAIM("1000"), NULL);
    EXPECT(client, "\"dead\"", FAIL(J2, "1", "0", "1", "e"));
    EXPECT(client, "[\"count\", \"2\"]", "HGETALL", FAILED);
    EXPECT(client, "[\"" J1 "\", \"0\", \"" J2 "\", \"0\"]", "ZRANGE", DEAD, "0", "-1",
           "WITHSCORES");
}

static void a_swept_job_fails(void **state) {
    (void)state;
    sweep_j1_back();
    long long mark = aof_mark(&server);
    EXPECT(client, "\"scheduled\"", FAIL(J1, "1", "0", "2", "e"));
    EXPECT_LOG(mark, SCHEDULE, J1,
               "MULTI\n"
               "ZREM " PENDING " " J1 "\n"
               "HDEL " ROW(J1) " lease_epoch\n"
                               "HSET " ROW(J1) " state scheduled last_error e failures 1\n"
                                               "ZADD " SCHEDULE " @ " J1 "\n"
                                               "EXEC");
    run(client, "FLUSHDB", NULL);
    run(client, INSTALL, NULL);
    sweep_j1_back();
    EFFECTS("MULTI\n"
            "ZREM " PENDING " " J1 "\n"
            "HDEL " ROW(J1) " lease_epoch\n"
                            "HSET " ROW(J1) " state dead last_error e failures 1\n"
                                            "ZADD " DEAD " 0 " J1 "\n"
                                            "HSET " FAILED " count 1\n"
                                            "EXEC",
            "\"dead\"", FAIL(J1, "1", "0", "1", "e"));
}

static void the_delay_is_the_servers_time(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 0, "\"scheduled\"", FAIL(J1, "3", "0", "9", "e"));
    make_job(J1, "active", ACTIVE, "5");
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 1500, "\"scheduled\"", FAIL(J1, "3", "1500", "9", "e"));
    make_job(J1, "active", ACTIVE, "5");
    EXPECT_AT_NOW_PLUS(SCHEDULE, J1, 315360000000, "\"scheduled\"",
                       FAIL(J1, "3", YEARS_10, "2147483647", "e"));
}

/* The budget counts failures: neither claims nor lost leases, delays and requeues eat it. */
static void only_failures_eat_the_budget(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", REQUEUE(J1, "1"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "1", DELAY(J1, "2", "in", "0"));
    EXPECT(client, "1", PROMOTE("1"));
    run(client, CLAIM("60000"), NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("9", "1"));
    EXPECT(client, "[\"" J1 "\", \"payload\", 4]", CLAIM("60000"));
    FIELD(J1, "failures", "nil");
    EXPECT(client, "\"scheduled\"", FAIL(J1, "4", "0", "3", "first"));
    FIELD(J1, "failures", "\"1\"");
    EXPECT(client, "1", PROMOTE("1"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "\"scheduled\"", FAIL(J1, "5", "0", "3", "second"));
    FIELD(J1, "failures", "\"2\"");
    FIELD(J1, "last_error", "\"second\"");
    EXPECT(client, "1", PROMOTE("1"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "\"dead\"", FAIL(J1, "6", "0", "3", "third"));
    FIELD(J1, "failures", "\"3\"");
    FIELD(J1, "last_error", "\"third\"");
    FIELD(J1, "attempts", "\"6\"");
}

/* The budget is the call's: a smaller one than the failures so far kills, too. */
static void the_budget_is_the_calls(void **state) {
    static const struct {
        const char *failures;
        const char *max;
        const char *reply;
    } table[] = {
        {"0", "1", "\"dead\""},
        {"1", "2", "\"dead\""},
        {"5", "2", "\"dead\""},
        {"1", "3", "\"scheduled\""},
        {"-3", "1", "\"scheduled\""},
        {"2147483645", "2147483647", "\"scheduled\""},
        {"2147483646", "2147483647", "\"dead\""},
        {"9223372036854775806", "2147483647", "\"dead\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        run(client, "DEL", DEAD, SCHEDULE, NULL);
        make_job(J1, "active", ACTIVE, "5");
        run(client, "HSET", ROW(J1), "failures", table[i].failures, NULL);
        EXPECT(client, table[i].reply, FAIL(J1, "3", "0", table[i].max, "e"));
    }
    FIELD(J1, "failures", "\"9223372036854775807\"");
}

static void a_count_of_failures_that_cannot_count(void **state) {
    static const char *const bad[] = {
        "", "x", "1.5", "01", " 1", "9223372036854775807", "9223372036854775808"};
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        run(client, "HSET", ROW(J1), "failures", bad[i], NULL);
        UNCHANGED(FAILURES, FAIL(J1, "3", "0", "9", "e"));
        UNCHANGED(RETRY_MISMATCH, FAIL(J1, "2", "0", "9", "e"));
    }
}

static void error_texts_of_any_bytes(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    EXPECT(client, "\"scheduled\"", FAIL(J1, "3", "0", "9", ""));
    FIELD(J1, "last_error", "\"\"");
    make_job(J1, "active", ACTIVE, "5");
    EXPECT(client, "\"scheduled\"", FAIL(J1, "3", "0", "9", "\\x00\\xff\\x0d\\x0a\"%s"));
    FIELD(J1, "last_error", "\"\\x00\\xff\\x0d\\x0a\\\"%s\"");
}

/* Fails J1 with a text of n bytes whose last one is `z`, and answers what was kept. */
static redisReply *fail_with_text(size_t n, const char *max_failures) {
    static const char *const words[] = {FAIL(J1, "3", "0", "", "")};
    command line = {0};
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);
    text[n - 1] = 'z';
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) - 2; i++) {
        command_add(&line, words[i]);
    }
    command_add(&line, max_failures);
    command_add_bytes(&line, text, n);
    redisReply *reply = command_send(client, &line);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    freeReplyObject(reply);
    command_free(&line);
    free(text);
    return call(client, "HGET", ROW(J1), "last_error", NULL);
}

static void error_texts_are_cut_at_65536_bytes(void **state) {
    static const struct {
        size_t sent;
        size_t kept;
        char last;
    } table[] = {
        {65535, 65535, 'z'}, {65536, 65536, 'z'}, {65537, 65536, 'a'}, {300000, 65536, 'a'}};
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        for (int dead = 0; dead <= 1; dead++) {
            make_job(J1, "active", ACTIVE, "5");
            redisReply *kept = fail_with_text(table[i].sent, dead ? "1" : "9");
            assert_int_equal(kept->len, table[i].kept);
            assert_int_equal(kept->str[table[i].kept - 1], table[i].last);
            freeReplyObject(kept);
        }
    }
}

static void the_values_of_a_failure(void **state) {
    (void)state;
    make_typed(ROW(J1), "string"); /* values come before the row */
    for (int i = 0; i < NO_NUMBERS; i++) {
        UNCHANGED(DELAY_MS, FAIL(J1, "1", no_numbers[i], "1", "e"));
        UNCHANGED(MAX_FAILURES, FAIL(J1, "1", "0", no_numbers[i], "e"));
        UNCHANGED(DELAY_MS, FAIL(J1, "1", no_numbers[i], no_numbers[i], "e"));
    }
    UNCHANGED(DELAY_MS, FAIL(J1, "1", "315360000001", "1", "e"));
    UNCHANGED(MAX_FAILURES, FAIL(J1, "1", "0", "0", "e"));
    UNCHANGED(MAX_FAILURES, FAIL(J1, "1", "0", "2147483648", "e"));
    UNCHANGED(WRONGTYPE, FAIL(J1, "1", YEARS_10, "2147483647", "e"));
}

/* Only what the failure will write is asked for its type, in the order of the checks. */
static void targets_of_another_type(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        make_job(J1, "active", ACTIVE, "5");
        if (strcmp(types[i], "zset") != 0) {
            make_typed(SCHEDULE, types[i]);
            UNCHANGED(WRONGTYPE, FAIL(J1, "3", "0", "2", "e"));
            UNCHANGED(RETRY_MISMATCH, FAIL(J1, "2", "0", "2", "e"));
            EXPECT(client, "\"dead\"", FAIL(J1, "3", "0", "1", "e"));
            run(client, "DEL", SCHEDULE, DEAD, NULL);
            make_job(J1, "active", ACTIVE, "5");
            make_typed(DEAD, types[i]);
            UNCHANGED(WRONGTYPE, FAIL(J1, "3", "0", "1", "e"));
            EXPECT(client, "\"scheduled\"", FAIL(J1, "3", "0", "2", "e"));
            run(client, "DEL", SCHEDULE, DEAD, NULL);
        }
        if (strcmp(types[i], "hash") != 0) {
            make_job(J1, "active", ACTIVE, "5");
            make_typed(FAILED, types[i]);
            UNCHANGED(WRONGTYPE, FAIL(J1, "3", "0", "1", "e"));
            EXPECT(client, "\"scheduled\"", FAIL(J1, "3", "0", "2", "e"));
            run(client, "DEL", SCHEDULE, FAILED, NULL);
        }
    }
}

static void a_counter_that_cannot_count(void **state) {
    static const char *const bad[] = {"", "x", "1.5", " 1", "01", "9223372036854775808"};
    (void)state;
    make_job(J1, "active", ACTIVE, "5");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        run(client, "HSET", FAILED, "count", bad[i], NULL);
        UNCHANGED(COUNT_NO_INTEGER, FAIL(J1, "3", "0", "1", "e"));
    }
    run(client, "HSET", FAILED, "count", "9223372036854775807", NULL);
    UNCHANGED(COUNT_OVERFLOWS, FAIL(J1, "3", "0", "1", "e"));
    run(client, "HSET", FAILED, "count", "41", "other", "kept", NULL);
    EXPECT(client, "\"dead\"", FAIL(J1, "3", "0", "1", "e"));
    EXPECT(client, "[\"count\", \"42\", \"other\", \"kept\"]", "HGETALL", FAILED);
}

/* ---- EMQ.REPROCESS ---- */

static void a_dead_job_starts_anew(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "\"dead\"", FAIL(J1, "1", "0", "1", "boom"));
    EFFECTS("MULTI\n"
            "ZREM " DEAD " " J1 "\n"
            "HDEL " ROW(J1) " last_error failures\n"
                            "HSET " ROW(J1) " state pending\n"
                                            "ZADD " PENDING " 0 " J1 "\n"
                                            "EXEC",
            "1", REPROCESS(J1));
    EXPECT(client, "[\"state\", \"pending\", \"attempts\", \"1\", \"payload\", \"payload\"]",
           "HGETALL", ROW(J1));
    EXPECT(client, "0", "EXISTS", DEAD, ACTIVE, SCHEDULE);
    EXPECT(client, "\"1\"", "HGET", FAILED, "count"); /* what happened has happened */
    UNCHANGED(NOT_DEAD, REPROCESS(J1));
    /* the budget is whole again; the token goes on */
    EXPECT(client, "[\"" J1 "\", \"payload\", 2]", CLAIM("1000"));
    EXPECT(client, "\"scheduled\"", FAIL(J1, "2", "0", "2", "again"));
    FIELD(J1, "failures", "\"1\"");
}

static void a_job_that_stalled_to_death_starts_anew(void **state) {
    (void)state;
    lease_j1();
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT(client, "[[], [\"" J1 "\"]]", STALLED_CHECK("1", "1"));
    EFFECTS("MULTI\n"
            "ZREM " DEAD " " J1 "\n"
            "HDEL " ROW(J1) " last_error stalled\n"
                            "HSET " ROW(J1) " state pending\n"
                                            "ZADD " PENDING " 0 " J1 "\n"
                                            "EXEC",
            "1", REPROCESS(J1));
    /* one stall more does not kill it at once */
    run(client, CLAIM("1000"), NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("2", "1"));
    FIELD(J1, "stalled", "\"1\"");
}

/* Only the fields that are there are named in the effect; none, and there is no HDEL. */
static void what_a_new_life_starts_without(void **state) {
    (void)state;
    make_job(J1, "dead", DEAD, "0");
    run(client, "HSET", ROW(J1), "stalled", "1", "failures", "2", "last_error", "", "progress",
        "half", NULL);
    EFFECTS("MULTI\n"
            "ZREM " DEAD " " J1 "\n"
            "HDEL " ROW(J1) " last_error failures stalled lease_epoch\n"
                            "HSET " ROW(J1) " state pending\n"
                                            "ZADD " PENDING " 0 " J1 "\n"
                                            "EXEC",
            "1", REPROCESS(J1));
    EXPECT(client,
           "[\"state\", \"pending\", \"attempts\", \"3\", \"payload\", \"p\", "
           "\"progress\", \"half\"]",
           "HGETALL", ROW(J1));
    make_job(J1, "dead", DEAD, "0");
    run(client, "HDEL", ROW(J1), "lease_epoch", NULL);
    EFFECTS("MULTI\n"
            "ZREM " DEAD " " J1 "\n"
            "HSET " ROW(J1) " state pending\n"
                            "ZADD " PENDING " 0 " J1 "\n"
                            "EXEC",
            "1", REPROCESS(J1));
}

static void what_is_gone_is_not_reprocessed(void **state) {
    (void)state;
    UNCHANGED("-1", REPROCESS(J1));
    UNCHANGED("-1", REPROCESS(USER)); /* no kind door */
    run(client, "ZADD", DEAD, "0", J1, NULL);
    UNCHANGED("-1", REPROCESS(J1));
    run(client, "HSET", ROW(J1), "state", "dead", "group", "g", NULL);
    UNCHANGED("-1", REPROCESS(J1));
    make_typed(DEAD, "string");
    make_typed(PENDING, "string");
    UNCHANGED("-1", REPROCESS(J1));
}

static void only_dead_jobs_are_reprocessed(void **state) {
    static const char *const states[] = {"pending",           "active", "scheduled",
                                         "awaiting_children", "",       "Dead"};
    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        make_job(J1, states[i], DEAD, "0");
        UNCHANGED(NOT_DEAD, REPROCESS(J1));
    }
    run(client, "HDEL", ROW(J1), "state", NULL);
    UNCHANGED(NOT_DEAD, REPROCESS(J1));
    run(client, "DEL", DEAD, NULL);
    make_job(J1, "dead", NULL, NULL);
    UNCHANGED(NOT_DEAD, REPROCESS(J1));
    run(client, "ZADD", DEAD, "0", J2, NULL);
    UNCHANGED(NOT_DEAD, REPROCESS(J1));
    /* before the type of pending */
    make_typed(PENDING, "string");
    UNCHANGED(NOT_DEAD, REPROCESS(J1));
}

static void keys_of_another_type_at_their_place(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(ROW(J1), types[i]);
            UNCHANGED(WRONGTYPE, REPROCESS(J1));
        }
        if (strcmp(types[i], "zset") != 0) {
            make_job(J1, "dead", NULL, NULL);
            make_typed(DEAD, types[i]);
            UNCHANGED(WRONGTYPE, REPROCESS(J1));
            run(client, "HSET", ROW(J1), "group", "g", NULL);
            UNCHANGED(LANE, REPROCESS(J1));
            run(client, "DEL", DEAD, NULL);
            make_job(J1, "dead", DEAD, "0");
            make_typed(PENDING, types[i]);
            UNCHANGED(WRONGTYPE, REPROCESS(J1));
            run(client, "DEL", PENDING, DEAD, NULL);
        }
    }
}

/* A lane row is the GROUP verb's, before its state; a flow row is reprocessed. */
static void lanes_are_refused_and_flows_are_not(void **state) {
    (void)state;
    make_job(J1, "dead", DEAD, "0");
    run(client, "HSET", ROW(J1), "group", "g", "parent", J2, NULL);
    UNCHANGED(LANE, REPROCESS(J1));
    run(client, "HSET", ROW(J1), "group", "", "state", "pending", NULL);
    UNCHANGED(LANE, REPROCESS(J1));
    run(client, "HDEL", ROW(J1), "group", NULL);
    run(client, "HSET", ROW(J1), "state", "dead", NULL);
    EXPECT(client, "1", REPROCESS(J1));
    FIELD(J1, "parent", "\"" J2 "\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_failed_job_is_retried),
        TEST(a_job_out_of_budget_is_dead),
        TEST(a_swept_job_fails),
        TEST(the_delay_is_the_servers_time),
        TEST(only_failures_eat_the_budget),
        TEST(the_budget_is_the_calls),
        TEST(a_count_of_failures_that_cannot_count),
        TEST(error_texts_of_any_bytes),
        TEST(error_texts_are_cut_at_65536_bytes),
        TEST(the_values_of_a_failure),
        TEST(targets_of_another_type),
        TEST(a_counter_that_cannot_count),
        TEST(a_dead_job_starts_anew),
        TEST(a_job_that_stalled_to_death_starts_anew),
        TEST(what_a_new_life_starts_without),
        TEST(what_is_gone_is_not_reprocessed),
        TEST(only_dead_jobs_are_reprocessed),
        TEST(keys_of_another_type_at_their_place),
        TEST(lanes_are_refused_and_flows_are_not),
    };
    return RUN_SERVER_TESTS("fail", tests, start_server, stop_server);
}
