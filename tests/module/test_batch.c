/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.ENQUEUES, EMQ.CLAIMS (without waiting) and EMQ.COMPLETES; EMQ.PAUSE and EMQ.RESUME: replies,
 * refusals in their order, records that carry many members, bounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define JOB(id, payload, attempts) "[\"" id "\", \"" payload "\", " attempts "]"
#define COUNT "-ERR EMQ count must be an integer from 1 to 1000"
#define TIMEOUT_MS "-ERR EMQ timeout_ms must be an integer from 0 to 3600000"

static void enqueues_admits_what_is_new(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J2, "first"));
    EFFECTS("MULTI\nHSET " ROW(J1) " state pending attempts 0 payload a\nHSET " ROW(
                J3) " state pending attempts 0 payload c\nZADD " PENDING " 0 " J1 " 0 " J3 "\nEXEC",
            "[1, 0, 1]", ENQUEUES(J1, "a", J2, "b", J3, "c"));
    EXPECT(client, "\"first\"", "HGET", ROW(J2), "payload");
    /* nothing new: nothing is written */
    UNCHANGED("[0, 0]", ENQUEUES(J1, "x", J3, "y"));
    EXPECT(client, JOB(J1, "a", "1"), CLAIM("1000"));
    EXPECT(client, JOB(J2, "first", "1"), CLAIM("1000"));
    EXPECT(client, JOB(J3, "c", "1"), CLAIM("1000"));
}

static void enqueues_an_id_twice(void **state) {
    (void)state;
    EFFECTS("MULTI\nHSET " ROW(J1) " state pending attempts 0 payload a\nZADD " PENDING " 0 " J1
                                   "\nEXEC",
            "[1, 0, 0]", ENQUEUES(J1, "a", J1, "b", J1, "c"));
}

static void enqueues_takes_any_payload(void **state) {
    (void)state;
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "", J2, "\\x00\\xff\\x0d\\x0a"));
    EXPECT(client, "[" JOB(J1, "", "1") ", " JOB(J2, "\\x00\\xff\\x0d\\x0a", "1") "]",
           CLAIMS("1000", "2"));
}

static void enqueues_refuses_in_order(void **state) {
    (void)state;
    make_typed(PENDING, "list");
    UNCHANGED("-ERR EMQ layout ENQUEUES id 2 must be <id>", ENQUEUES(USER, "p", "a:b", "p"));
    UNCHANGED("-ERR EMQ layout ENQUEUES id 1 must be <id>", ENQUEUES("", "p"));
    UNCHANGED(KIND, ENQUEUES(J1, "p", USER, "q"));
    REFUSED_FOR(ROW(J2), "+@emq %R~{emq}:version ~" PENDING " ~" BASE " ~" ROW(J1),
                ENQUEUES(J1, "p", J2, "q"));
    UNCHANGED(WRONGTYPE, ENQUEUES(J1, "p"));
    /* a row that exists in any type is a duplicate, and then the set is not looked at */
    make_typed(ROW(J1), "stream");
    UNCHANGED("[0]", ENQUEUES(J1, "p"));
    UNCHANGED(WRONGTYPE, ENQUEUES(J1, "p", J2, "q"));
}

/* A batch of `count` members with ids of their own, all of namespace `kind`. */
static void make_batch(command *line, const char *verb, const char *first, const char *second,
                       const char *kind, int count, const char *value) {
    const char *const head[] = {verb, "2", first, second};
    for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        command_add(line, head[i]);
    }
    for (int i = 0; i < count; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "%s%011d", kind, i);
        command_add(line, id);
        command_add(line, value);
    }
}

static void expect_batch(const char *want, const char *verb, const char *first, const char *kind,
                         int count, const char *value) {
    command line = {0};
    make_batch(&line, verb, first, BASE, kind, count, value);
    redisReply *reply = command_send(client, &line);
    if (want[0] == '-') {
        char *text = reply_to_text(reply);
        EXPECT_TEXT(text, want);
        free(text);
    } else {
        assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
        assert_int_equal(reply->elements, count);
        for (int i = 0; i < count; i++) {
            assert_int_equal(reply->element[i]->integer, atoi(want));
        }
    }
    freeReplyObject(reply);
    command_free(&line);
}

static void a_batch_has_a_thousand_members_at_most(void **state) {
    (void)state;
    expect_batch(MEMBERS, "EMQ.ENQUEUES", PENDING, "JOB", 1001, "p");
    expect_batch(KIND, "EMQ.ENQUEUES", PENDING, "USR", 1001, "p");
    assert_int_equal(get_integer(client, "DBSIZE", NULL), 1);
    long long mark = aof_mark(&server);
    expect_batch("1", "EMQ.ENQUEUES", PENDING, "JOB", 1000, "p");
    assert_int_equal(get_integer(client, "ZCARD", PENDING, NULL), 1000);
    EXPECT(client, COUNT, CLAIMS("1000", "1001"));
    redisReply *reply = call(client, CLAIMS("100000", "1000"), NULL);
    assert_int_equal(reply->elements, 1000);
    assert_string_equal(reply->element[0]->element[0]->str, "JOB00000000000");
    assert_string_equal(reply->element[999]->element[0]->str, "JOB00000000999");
    freeReplyObject(reply);
    assert_int_equal(get_integer(client, "ZCARD", ACTIVE, NULL), 1000);
    expect_batch(MEMBERS, "EMQ.COMPLETES", ACTIVE, "JOB", 1001, "1");
    expect_batch("1", "EMQ.COMPLETES", ACTIVE, "JOB", 1000, "1");
    EXPECT(client, "\"1000\"", "HGET", COMPLETED, "count");
    assert_int_equal(get_integer(client, "DBSIZE", NULL), 2);
    /* rows apart, one record for each set, one DEL, one count, and three times MULTI and EXEC */
    char *log = aof_since(&server, mark);
    int records = 1;
    for (const char *at = strchr(log, '\n'); at != NULL; at = strchr(at + 1, '\n')) {
        records++;
    }
    free(log);
    assert_int_equal(records, 6 + (1000 + 1) + (1 + 1000 + 1) + 3);
}

static void claims_takes_the_oldest(void **state) {
    (void)state;
    EXPECT(client, "[]", CLAIMS("1000", "10"));
    EXPECT(client, "[]", CLAIMS("1000", "10", "0"));
    EXPECT(client, "[1, 1, 1]", ENQUEUES(J3, "c", J1, "a", J2, "b"));
    long long mark = aof_mark(&server);
    EXPECT(client, "[" JOB(J1, "a", "1") ", " JOB(J2, "b", "1") "]", CLAIMS("60000", "2"));
    EXPECT_LOG(mark, ACTIVE, J1,
               "MULTI\nZREM " PENDING " " J1 " " J2
               "\nHSET " ROW(J1) " state active attempts 1 lease_epoch $\nHSET " ROW(
                   J2) " state active "
                       "attempts 1 "
                       "lease_epoch "
                       "$\nZADD " ACTIVE " @ " J1 " @ " J2 "\nEXEC");
    EXPECT(client, "[" JOB(J3, "c", "1") "]", CLAIMS("60000", "2", "0"));
    EXPECT(client, "[]", CLAIMS("60000", "2"));
    /* one deadline */
    char first[32];
    char second[32];
    EXPECT_TEXT(get_text(first, sizeof(first), client, "ZSCORE", ACTIVE, J1, NULL),
                get_text(second, sizeof(second), client, "ZSCORE", ACTIVE, J2, NULL));
}

static void claims_passes_orphans_over(void **state) {
    (void)state;
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "a", J3, "c"));
    run(client, "ZADD", PENDING, "0", J2, "-1", "x:y", "0", "ZZZ", NULL);
    long long mark = aof_mark(&server);
    EXPECT(client, "[" JOB(J1, "a", "1") ", " JOB(J3, "c", "1") "]", CLAIMS("60000", "9"));
    EXPECT_LOG(mark, ACTIVE, J1,
               "MULTI\nZREM " PENDING " x:y " J2 " ZZZ\nZREM " PENDING " " J1 " " J3
               "\nHSET " ROW(J1) " state active attempts 1 lease_epoch $\nHSET " ROW(
                   J3) " state active "
                       "attempts 1 "
                       "lease_epoch "
                       "$\nZADD " ACTIVE " @ " J1 " @ " J3 "\nEXEC");
    /* orphans alone */
    run(client, "ZADD", PENDING, "0", J2, "0", "ZZZ", NULL);
    EFFECTS("ZREM " PENDING " " J2 " ZZZ", "[]", CLAIMS("60000", "9"));
}

/* count + 16 ids are looked at. When all of them are orphans the call does not wait either. */
static void claims_looks_at_so_many(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "JOB%011d", i);
        run(client, "ZADD", PENDING, "0", id, NULL);
    }
    EXPECT(client, "1", ENQUEUE(J1, "a"));
    EXPECT(client, "[]", CLAIMS("1000", "2", "3600000"));
    assert_int_equal(get_integer(client, "ZCARD", PENDING, NULL), 41 - 18);
    EXPECT(client, "[]", CLAIMS("1000", "6", "3600000"));
    assert_int_equal(get_integer(client, "ZCARD", PENDING, NULL), 1);
    EXPECT(client, "[" JOB(J1, "a", "1") "]", CLAIMS("1000", "6", "3600000"));
}

/* Jobs in front of one that can't be claimed are handed out; the next claim meets it first. */
static void claims_stops_at_what_cannot_be_claimed(void **state) {
    (void)state;
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "a", J3, "c"));
    run(client, "ZADD", PENDING, "0", J2, NULL);
    make_typed(ROW(J2), "string");
    EXPECT(client, "[" JOB(J1, "a", "1") "]", CLAIMS("1000", "9"));
    UNCHANGED(WRONGTYPE, CLAIMS("1000", "9"));
    run(client, "DEL", ROW(J2), NULL);
    run(client, "HSET", ROW(J2), "attempts", "9223372036854775807", NULL);
    UNCHANGED(ATTEMPTS, CLAIMS("1000", "9"));
    run(client, "HDEL", ROW(J2), "attempts", NULL);
    run(client, "HSET", ROW(J2), "state", "x", NULL);
    EXPECT(client, "[[\"" J2 "\", nil, 1], " JOB(J3, "c", "1") "]", CLAIMS("1000", "9"));
}

static void claims_refuses_in_order(void **state) {
    (void)state;
    make_typed(META, "string");
    make_typed(PENDING, "string");
    make_typed(ACTIVE, "string");
    for (int i = 0; i < NO_NUMBERS; i++) {
        UNCHANGED(LEASE_MS, CLAIMS(no_numbers[i], "0", "x"));
        UNCHANGED(COUNT, CLAIMS("1", no_numbers[i], "x"));
        UNCHANGED(TIMEOUT_MS, CLAIMS("1", "1", no_numbers[i]));
    }
    UNCHANGED(LEASE_MS, CLAIMS("2147483648", "0"));
    UNCHANGED(COUNT, CLAIMS("1", "0"));
    UNCHANGED(COUNT, CLAIMS("1", "1001"));
    UNCHANGED(TIMEOUT_MS, CLAIMS("1", "1", "3600001"));
    REFUSED_FOR(META, "+@emq %R~{emq}:version ~" PENDING " ~" ACTIVE " ~" BASE, CLAIMS("1", "1"));
    UNCHANGED(WRONGTYPE, CLAIMS("1", "1", "3600000"));
    run(client, "DEL", META, NULL);
    UNCHANGED(WRONGTYPE, CLAIMS("1", "1", "3600000"));
    run(client, "DEL", PENDING, NULL);
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "a", J2, "b"));
    UNCHANGED(WRONGTYPE, CLAIMS("1", "1"));
    REFUSED_FOR(ROW(J2),
                "+@emq %R~{emq}:version ~" PENDING " ~" ACTIVE " ~" BASE " ~" META " ~" ROW(J1),
                CLAIMS("1", "2"));
}

static void completes_answers_each(void **state) {
    (void)state;
    EXPECT(client, "[1, 1, 1]", ENQUEUES(J1, "a", J2, "b", J3, "c"));
    run(client, CLAIMS("60000", "3"), NULL);
    run(client, "RPUSH", LOGS(J1), "line", NULL);
    make_typed("emq:{q}:job:JOB4", "string");
    run(client, "HSET", "emq:{q}:job:JOB5", "attempts", "x", NULL);
    run(client, "HSET", "emq:{q}:job:JOB6", "attempts", "1", "group", "g", NULL);
    run(client, "HSET", "emq:{q}:job:JOB7", "attempts", "1", "parent", "g", NULL);
    EFFECTS("MULTI\nZREM " ACTIVE " " J1 " " J3
            "\nDEL " ROW(J1) " " LOGS(J1) " " ROW(J3) "\nHSET " COMPLETED " count 2\nEXEC",
            "[1, -1, 0, 0, -1, -1, -2, -2, 1]",
            COMPLETES(J1, "1", J2, "2", J1, "1", USER, "1", "JOB4", "1", "JOB5", "x", "JOB6", "1",
                      "JOB7", "1", J3, "1"));
    UNCHANGED("[0, -1, -1]", COMPLETES(J1, "1", J2, "01", J2, ""));
    EXPECT(client, "[1]", COMPLETES(J2, "1"));
    EXPECT(client, "\"3\"", "HGET", COMPLETED, "count");
}

/* An id is gone for those behind the member that completed it, whatever their token. */
static void completes_an_id_again(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "[-1, 1, 0, 0]", COMPLETES(J1, "7", J1, "1", J1, "1", J1, "7"));
    EXPECT(client, "\"1\"", "HGET", COMPLETED, "count");
}

static void completes_what_a_sweep_took_back(void **state) {
    (void)state;
    sweep_j1_back();
    EXPECT(client, "1", ENQUEUE(J2, "b"));
    EXPECT(client, "1", ENQUEUE(J3, "c"));
    make_job(J3, "active", ACTIVE, "5");
    EFFECTS("MULTI\nZREM " ACTIVE " " J3 "\nZREM " PENDING " " J1
            "\nDEL " ROW(J3) " " ROW(J1) "\nHSET " COMPLETED " count 2\nEXEC",
            "[1, -1, 1]", COMPLETES(J3, "3", J2, "0", J1, "1"));
}

static void completes_refuses_in_order(void **state) {
    (void)state;
    lease_j1();
    make_typed(COMPLETED, "string");
    UNCHANGED("-ERR EMQ layout COMPLETES id 2 must be <id>", COMPLETES(J1, "1", "{", "1"));
    REFUSED_FOR(PENDING, "+@emq %R~{emq}:version ~" ACTIVE " ~" BASE, COMPLETES(J1, "1"));
    REFUSED_FOR(COMPLETED, "+@emq %R~{emq}:version ~" ACTIVE " ~" BASE " ~" PENDING,
                COMPLETES(J1, "1"));
    REFUSED_FOR(ROW(J2),
                "+@emq %R~{emq}:version ~" ACTIVE " ~" BASE " ~" PENDING " ~" COMPLETED
                " ~" ROW(J1) " ~" LOGS("*"),
                COMPLETES(J1, "1", J2, "1"));
    REFUSED_FOR(LOGS(J2),
                "+@emq %R~{emq}:version ~" ACTIVE " ~" BASE " ~" PENDING " ~" COMPLETED
                " ~" ROW(J1) " ~" ROW(J2) " ~" LOGS(J1),
                COMPLETES(J1, "1", J2, "1"));
    UNCHANGED(WRONGTYPE, COMPLETES(J2, "1", J1, "1"));
    /* nothing is done: the count is not looked at */
    UNCHANGED("[-1, 0]", COMPLETES(J1, "2", J2, "1"));
    run(client, "DEL", COMPLETED, NULL);
    run(client, "HSET", COMPLETED, "count", "x", NULL);
    UNCHANGED(COUNT_NO_INTEGER, COMPLETES(J1, "1"));
    run(client, "HSET", COMPLETED, "count", "9223372036854775806", NULL);
    make_job(J2, "active", ACTIVE, "5");
    UNCHANGED(COUNT_OVERFLOWS, COMPLETES(J1, "1", J2, "3"));
    EXPECT(client, "[1]", COMPLETES(J1, "1"));
    run(client, "DEL", COMPLETED, ACTIVE, NULL);
    make_typed(ACTIVE, "hash");
    UNCHANGED(WRONGTYPE, COMPLETES(J3, "1", J2, "3"));
    UNCHANGED("[0]", COMPLETES(J3, "1"));
}

static void paused_writes_refuse_batches_that_write(void **state) {
    (void)state;
    WHILE_PAUSED(PAUSED, ENQUEUES(J1, "p"));
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "p", J2, "p"));
    WHILE_PAUSED("[0, 0]", ENQUEUES(J1, "p", J2, "p"));
    WHILE_PAUSED(PAUSED, CLAIMS("1000", "5", "1000"));
    EXPECT(client, "[" JOB(J1, "p", "1") "]", CLAIMS("60000", "1"));
    WHILE_PAUSED(PAUSED, COMPLETES(J1, "1"));
    WHILE_PAUSED("[-1]", COMPLETES(J1, "2"));
    WHILE_PAUSED(PAUSED, PAUSE);
    WHILE_PAUSED("1", RESUME);
    EXPECT(client, "1", PAUSE);
    WHILE_PAUSED("1", PAUSE);
    WHILE_PAUSED(PAUSED, RESUME);
    WHILE_PAUSED("[]", CLAIMS("1000", "5", "1000"));
}

/* A server at maxmemory can be worked empty by batches. */
static void full_memory_stops_admission_alone(void **state) {
    (void)state;
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "a", J2, "b"));
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    UNCHANGED(OOM, ENQUEUES(J3, "c"));
    EXPECT(client, "1", PAUSE);
    EXPECT(client, "1", RESUME);
    EXPECT(client, "[" JOB(J1, "a", "1") ", " JOB(J2, "b", "1") "]", CLAIMS("60000", "9"));
    EXPECT(client, "[1, 1]", COMPLETES(J1, "1", J2, "1"));
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
}

static void a_pause_holds_claims_alone(void **state) {
    (void)state;
    EFFECTS("HSET " META " paused 1", "1", PAUSE);
    UNCHANGED("1", PAUSE);
    EXPECT(client, "[1]", ENQUEUES(J1, "a"));
    UNCHANGED("[]", CLAIMS("1000", "1"));
    UNCHANGED("[]", CLAIM("1000"));
    EFFECTS("HDEL " META " paused", "1", RESUME);
    UNCHANGED("1", RESUME);
    EXPECT(client, "[" JOB(J1, "a", "1") "]", CLAIMS("60000", "1"));
    EXPECT(client, "1", PAUSE);
    EXPECT(client, "[1]", COMPLETES(J1, "1"));
    /* any value pauses and stays; other fields stay, too */
    run(client, "HSET", META, "paused", "", "max", "7", NULL);
    UNCHANGED("1", PAUSE);
    EFFECTS("HDEL " META " paused", "1", RESUME);
    EXPECT(client, "\"7\"", "HGET", META, "max");
    make_typed(META, "set");
    UNCHANGED(WRONGTYPE, PAUSE);
    UNCHANGED(WRONGTYPE, RESUME);
}

/* A pause holds until it is ended: a time to live that the key or the flag got by hand goes. */
static void a_pause_that_would_end_by_itself_is_made_to_stay(void **state) {
    (void)state;
    run(client, "HSET", META, "paused", "by hand", NULL);
    EXPECT(client, "1", "EXPIRE", META, "3600");
    EFFECTS("PERSIST " META, "1", PAUSE);
    EXPECT(client, "-1", "TTL", META);
    EXPECT(client, "[1]", "HEXPIRE", META, "3600", "FIELDS", "1", "paused");
    EFFECTS("HSET " META " paused \"by hand\"", "1", PAUSE);
    EXPECT(client, "[-1]", "HTTL", META, "FIELDS", "1", "paused");
    UNCHANGED("1", PAUSE);
    EXPECT(client, "[1]", "HEXPIRE", META, "3600", "FIELDS", "1", "paused");
    EXPECT(client, "1", "EXPIRE", META, "3600");
    EFFECTS("MULTI\nPERSIST " META "\nHSET " META " paused \"by hand\"\nEXEC", "1", PAUSE);
    EXPECT(client, "[-1]", "HTTL", META, "FIELDS", "1", "paused");
    EXPECT(client, "-1", "TTL", META);
    /* what another field has is its own */
    run(client, "DEL", META, NULL);
    run(client, "HSET", META, "max", "7", NULL);
    EXPECT(client, "[1]", "HEXPIRE", META, "3600", "FIELDS", "1", "max");
    EXPECT(client, "1", "EXPIRE", META, "3600");
    EFFECTS("MULTI\nPERSIST " META "\nHSET " META " paused 1\nEXEC", "1", PAUSE);
    EXPECT(client, "[3600]", "HTTL", META, "FIELDS", "1", "max");
    UNCHANGED("1", PAUSE);
    /* a flag that is past its time is none */
    run(client, "DEL", META, NULL);
    run(client, "HSET", META, "paused", "1", NULL);
    pass_expiry(META);
    EXPECT(client, "1", PAUSE);
    EXPECT(client, "-1", "TTL", META);
    /* the check before the guard */
    EXPECT(client, "1", "EXPIRE", META, "3600");
    WHILE_PAUSED(PAUSED, PAUSE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(enqueues_admits_what_is_new),
        TEST(enqueues_an_id_twice),
        TEST(enqueues_takes_any_payload),
        TEST(enqueues_refuses_in_order),
        TEST(a_batch_has_a_thousand_members_at_most),
        TEST(claims_takes_the_oldest),
        TEST(claims_passes_orphans_over),
        TEST(claims_looks_at_so_many),
        TEST(claims_stops_at_what_cannot_be_claimed),
        TEST(claims_refuses_in_order),
        TEST(completes_answers_each),
        TEST(completes_an_id_again),
        TEST(completes_what_a_sweep_took_back),
        TEST(completes_refuses_in_order),
        TEST(paused_writes_refuse_batches_that_write),
        TEST(full_memory_stops_admission_alone),
        TEST(a_pause_holds_claims_alone),
        TEST(a_pause_that_would_end_by_itself_is_made_to_stay),
    };
    return RUN_SERVER_TESTS("batch", tests, start_server, stop_server);
}
