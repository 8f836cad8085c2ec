/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of the verbs of scheduling, leases, failures and sweeps: every key that they reach beyond
 * the declared ones is checked, and a refusal leaves nothing but an entry in ACL LOG. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define VALUE_REFUSED(want, rules, ...)                                                            \
    do {                                                                                           \
        redisContext *user_ = server_connect_as(&server, "tester", (rules));                       \
        expect_unchanged(__FILE__, __LINE__, &server, user_, (want), __VA_ARGS__,                  \
                         (const char *)NULL);                                                      \
        redisFree(user_);                                                                          \
    } while (0)

static void a_worker_works_with_the_documented_rights(void **state) {
    (void)state;
    redisContext *worker = server_connect_as(&server, "worker", WORKER);
    EXPECT(worker, "1", SCHEDULE_JOB(J1, "p", "at", "5"));
    EXPECT(worker, "1", RESCHEDULE(J1, "in", "0"));
    EXPECT(worker, "1", PROMOTE("10"));
    EXPECT(worker, "[\"" J1 "\", \"p\", 1]", CLAIM("60000"));
    EXPECT(worker, "1", EXTEND(J1, "1", "60000"));
    EXPECT(worker, "[]", EXTENDS("60000", J1, "1"));
    EXPECT(worker, "1", REQUEUE(J1, "1"));
    EXPECT(worker, "[\"" J1 "\", \"p\", 2]", CLAIM("60000"));
    EXPECT(worker, "1", DELAY(J1, "2", "in", "0"));
    EXPECT(worker, "1", PROMOTE("10"));
    EXPECT(worker, "[\"" J1 "\", \"p\", 3]", CLAIM("60000"));
    EXPECT(worker, "\"dead\"", FAIL(J1, "3", "0", "1", "e"));
    EXPECT(worker, "1", REPROCESS(J1));
    EXPECT(worker, "[\"" J1 "\", \"p\", 4]", CLAIM("60000"));
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT(worker, "[[], [\"" J1 "\"]]", STALLED_CHECK("1", "10"));
    char object[256];
    assert_int_equal(read_acl_log(object, sizeof(object)), 0);
    redisFree(worker);
}

/* The server's own check: each declared key in turn is one that the caller may not touch. */
static void declared_keys_are_the_servers_to_check(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    for (int i = 0; i < CORE_VERBS; i++) {
        const core_verb *verb = &core_verbs[i];
        for (int key = 0; key < count_words(verb->keys); key++) {
            for (int right = 0; right < 3; right++) {
                static const char *const rights[] = {NULL, "%R~", "%W~"};
                char rules[512] = "+@emq %R~{emq}:version ~" PENDING "x";
                char object[256];
                for (int other = 0; other < count_words(verb->keys); other++) {
                    const char *kind = other == key ? rights[right] : "~";
                    if (kind != NULL) {
                        (void)strcat(strcat(strcat(rules, " "), kind), verb->keys[other]);
                    }
                }
                redisContext *user = server_connect_as(&server, "tester", rules);
                run(server.admin, "ACL", "LOG", "RESET", NULL);
                CORE_UNCHANGED(user, NO_KEY, verb, -1, "");
                assert_int_equal(read_acl_log(object, sizeof(object)), 1);
                EXPECT_TEXT(object, verb->keys[key]);
                redisFree(user);
            }
        }
    }
}

/* Before the fence's value and everything behind it. */
static void the_fence_is_read_as_the_caller(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    for (int absent = 0; absent <= 1; absent++) {
        for (int i = 0; i < CORE_VERBS; i++) {
            char object[256];
            redisContext *user = server_connect_as(&server, "tester", "+@emq ~emq:{q}:*");
            run(server.admin, "ACL", "LOG", "RESET", NULL);
            CORE_UNCHANGED(user, NO_KEY, &core_verbs[i], -1, "");
            assert_int_equal(read_acl_log(object, sizeof(object)), 1);
            EXPECT_TEXT(object, FENCE);
            redisFree(user);
        }
        run(client, "DEL", FENCE, NULL);
    }
}

#define CORE "+@emq %R~{emq}:version "
#define FAILER CORE "~" ACTIVE " ~" SCHEDULE " ~" DEAD " ~" BASE " ~" ROW(J1) " "

static void a_failure_reaches_pending_and_the_counter(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    REFUSED_FOR(PENDING, FAILER "~" FAILED, FAIL(J1, "3", "0", "1", "e"));
    REFUSED_FOR(FAILED, FAILER "~" PENDING, FAIL(J1, "3", "0", "1", "e"));
    REFUSED_FOR(PENDING, FAILER "%R~" PENDING " ~" FAILED, FAIL(J1, "3", "0", "1", "e"));
    REFUSED_FOR(FAILED, FAILER "~" PENDING " %R~" FAILED, FAIL(J1, "3", "0", "1", "e"));
    REFUSED_FOR(FAILED, FAILER "~" PENDING " %W~" FAILED, FAIL(J1, "3", "0", "1", "e"));
    /* asked for also where this call would not write them */
    REFUSED_FOR(FAILED, FAILER "~" PENDING, FAIL(J1, "3", "0", "9", "e"));
    /* values first, then the rights, then the row */
    VALUE_REFUSED(DELAY_MS, FAILER, FAIL(J1, "3", "x", "1", "e"));
    VALUE_REFUSED(MAX_FAILURES, FAILER, FAIL(J1, "3", "0", "0", "e"));
    REFUSED_FOR(PENDING, FAILER, FAIL(J1, "9", "0", "1", "e"));
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    REFUSED_FOR(PENDING, FAILER, FAIL(J1, "3", "0", "1", "e"));
    make_typed(ROW(J1), "string");
    REFUSED_FOR(PENDING, FAILER, FAIL(J1, "3", "0", "1", "e"));
    run(client, "DEL", ROW(J1), NULL);
    REFUSED_FOR(PENDING, FAILER, FAIL(J1, "3", "0", "1", "e"));
    make_job(J1, "active", ACTIVE, "1");
    ALLOWED("\"dead\"", FAILER "~" PENDING " ~" FAILED, FAIL(J1, "3", "0", "1", "e"));
}

#define DELAYER CORE "~" ACTIVE " ~" SCHEDULE " ~" ROW(J1) " ~" ROW(USER) " "

static void a_delay_reaches_pending(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    REFUSED_FOR(PENDING, DELAYER, DELAY(J1, "3", "at", "5"));
    REFUSED_FOR(PENDING, DELAYER "%R~" PENDING, DELAY(J1, "3", "at", "5"));
    REFUSED_FOR(PENDING, DELAYER "%W~" PENDING, DELAY(J1, "3", "at", "5"));
    REFUSED_FOR(PENDING, DELAYER, DELAY(J1, "9", "at", "5"));
    VALUE_REFUSED(KIND, DELAYER, DELAY(USER, "3", "at", "5"));
    VALUE_REFUSED(MODE, DELAYER, DELAY(J1, "3", "on", "5"));
    VALUE_REFUSED(IN_MS, DELAYER, DELAY(J1, "3", "in", "x"));
    run(client, "DEL", ROW(J1), NULL);
    REFUSED_FOR(PENDING, DELAYER, DELAY(J1, "3", "at", "5"));
    make_job(J1, "active", ACTIVE, "1");
    ALLOWED("1", DELAYER "~" PENDING, DELAY(J1, "3", "at", "5"));
}

#define EXTENDER CORE "~" ACTIVE " ~" BASE " "

static void a_batch_reaches_each_row(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    make_job(J2, "active", ACTIVE, "2");
    REFUSED_FOR(ROW(J2), EXTENDER "~" ROW(J1), EXTENDS("1000", J1, "3", J2, "3"));
    REFUSED_FOR(ROW(J1), EXTENDER "~" ROW(J2), EXTENDS("1000", J1, "3", J2, "3"));
    REFUSED_FOR(ROW(J2), EXTENDER "~" ROW(J1) " %R~" ROW(J2), EXTENDS("1000", J1, "3", J2, "3"));
    REFUSED_FOR(ROW(J2), EXTENDER "~" ROW(J1) " %W~" ROW(J2), EXTENDS("1000", J1, "3", J2, "3"));
    /* whether a row is there, or its token right, is not a stranger's to learn */
    REFUSED_FOR(ROW(J3), EXTENDER "~" ROW(J1), EXTENDS("1000", J1, "3", J3, "3"));
    REFUSED_FOR(ROW(J2), EXTENDER "~" ROW(J1), EXTENDS("1000", J1, "9", J2, "9"));
    VALUE_REFUSED(LEASE_MS, EXTENDER, EXTENDS("0", J1, "3"));
    make_typed(ACTIVE, "string");
    REFUSED_FOR(ROW(J2), EXTENDER "~" ROW(J1), EXTENDS("1000", J1, "3", J2, "3"));
    run(client, "DEL", ACTIVE, NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    ALLOWED("[\"" J2 "\"]", EXTENDER "~" ROW("*"), EXTENDS("1000", J1, "3", J2, "3"));
}

#define PROMOTER CORE "~" SCHEDULE " ~" PENDING " ~" BASE " "

static void a_promotion_reaches_the_rows(void **state) {
    (void)state;
    make_job(J1, "scheduled", SCHEDULE, "1");
    make_job(J2, "scheduled", SCHEDULE, "2");
    REFUSED_FOR(ROW(J1), PROMOTER, PROMOTE("10"));
    REFUSED_FOR(ROW(J1), PROMOTER "%R~" ROW("*"), PROMOTE("10"));
    REFUSED_FOR(ROW(J2), PROMOTER "~" ROW(J1), PROMOTE("10"));
    VALUE_REFUSED(LIMIT, PROMOTER, PROMOTE("0"));
    /* an orphan's row is reached, too */
    run(client, "ZADD", SCHEDULE, "0", J3, NULL);
    REFUSED_FOR(ROW(J3), PROMOTER "~" ROW(J1) " ~" ROW(J2), PROMOTE("10"));
    run(client, "ZREM", SCHEDULE, J3, NULL);
    /* rows behind the limit are not looked at; nor are those that are not due */
    ALLOWED("1", PROMOTER "~" ROW(J1), PROMOTE("1"));
    run(client, "ZADD", SCHEDULE, AT_MAX, J2, NULL);
    ALLOWED("0", PROMOTER, PROMOTE("10"));
}

#define SWEEPER CORE "~" ACTIVE " ~" PENDING " ~" DEAD " ~" BASE " "

static void a_sweep_reaches_counter_and_rows(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "1");
    make_job(J2, "active", ACTIVE, "2");
    REFUSED_FOR(FAILED, SWEEPER "~" ROW("*"), STALLED_CHECK("9", "10"));
    REFUSED_FOR(FAILED, SWEEPER "~" ROW("*") " %R~" FAILED, STALLED_CHECK("9", "10"));
    REFUSED_FOR(FAILED, SWEEPER, STALLED_CHECK("9", "10"));
    REFUSED_FOR(ROW(J1), SWEEPER "~" FAILED, STALLED_CHECK("9", "10"));
    REFUSED_FOR(ROW(J2), SWEEPER "~" FAILED " ~" ROW(J1), STALLED_CHECK("1", "10"));
    REFUSED_FOR(ROW(J2), SWEEPER "~" FAILED " ~" ROW(J1) " %W~" ROW(J2), STALLED_CHECK("1", "10"));
    VALUE_REFUSED(MAX_STALLED, SWEEPER, STALLED_CHECK("0", "10"));
    VALUE_REFUSED(LIMIT, SWEEPER, STALLED_CHECK("1", "0"));
    ALLOWED("[[\"" J1 "\"], []]", SWEEPER "~" FAILED " ~" ROW(J1), STALLED_CHECK("9", "1"));
    /* the right to the counter is asked for also when nothing lapsed */
    run(client, "DEL", ACTIVE, NULL);
    REFUSED_FOR(FAILED, SWEEPER, STALLED_CHECK("9", "10"));
    /* and before the type of active */
    make_typed(ACTIVE, "string");
    REFUSED_FOR(FAILED, SWEEPER, STALLED_CHECK("9", "10"));
}

/* The others need no key beyond the declared ones and the fence. */
/* A batch of many members, whose ids end in their numbers. */
#define MANY 70
static void make_batch(command *line, const char *verb, const char *first_key, const char *value) {
    command_add(line, verb);
    command_add(line, "2");
    command_add(line, first_key);
    command_add(line, BASE);
    for (int i = 0; i < MANY; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "JOB0KHTOWnGL%02d", i);
        command_add(line, id);
        command_add(line, value);
    }
}

/* The answer of a batch to a user with these rules. */
static char *answer_as(const char *rules, const char *verb, const char *first_key,
                       const char *value) {
    command line = {0};
    redisContext *user = server_connect_as(&server, "tester", rules);
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    make_batch(&line, verb, first_key, value);
    redisReply *reply = command_send(user, &line);
    char *text = reply_to_text(reply);
    freeReplyObject(reply);
    command_free(&line);
    redisFree(user);
    return text;
}

static void expect_refused_for(const char *key, const char *rules, const char *verb,
                               const char *first_key, const char *value) {
    char object[256];
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)get_digest(before, &server);
    char *text = answer_as(rules, verb, first_key, value);
    EXPECT_TEXT(text, NO_KEY);
    EXPECT_TEXT(get_digest(after, &server), before);
    assert_int_equal(read_acl_log(object, sizeof(object)), 1);
    EXPECT_TEXT(object, key);
    free(text);
}

#define BATCHER CORE "~" PENDING " ~" ACTIVE " ~" BASE " ~" COMPLETED " "
#define ROWS_TO(tens) "~" ROW("JOB0KHTOWnGL[0-" tens "]?") " "
#define LOGS_TO(tens) "~" LOGS("JOB0KHTOWnGL[0-" tens "]?") " "

/* Wherever in the batch it stands. */
static void a_member_that_may_not_be_reached_refuses_the_batch(void **state) {
    (void)state;
    expect_refused_for(ROW("JOB0KHTOWnGL00"), BATCHER, "EMQ.ENQUEUES", PENDING, "p");
    expect_refused_for(ROW("JOB0KHTOWnGL60"), BATCHER ROWS_TO("5"), "EMQ.ENQUEUES", PENDING, "p");
    expect_refused_for(ROW("JOB0KHTOWnGL30"), BATCHER ROWS_TO("2") LOGS_TO("6"), "EMQ.COMPLETES",
                       ACTIVE, "1");
    expect_refused_for(LOGS("JOB0KHTOWnGL40"), BATCHER "~" ROW("??????????????") " " LOGS_TO("3"),
                       "EMQ.COMPLETES", ACTIVE, "1");
    char *text =
        answer_as(BATCHER "~" ROW("??????????????") " " LOGS_TO("6"), "EMQ.COMPLETES", ACTIVE, "1");
    assert_int_equal(strncmp(text, "[0, 0, ", 7), 0);
    free(text);
}

/* Each member needs its keys with the declared ones, and not with those of another member. */
static void members_of_two_selectors_are_reached_one_by_one(void **state) {
    (void)state;
    char *text = answer_as("%R~{emq}:version (+@emq ~" PENDING " ~" BASE
                           " " ROWS_TO("3") ") (+@emq ~" PENDING " ~" BASE
                                            " ~" ROW("JOB0KHTOWnGL[4-6]?") ")",
                           "EMQ.ENQUEUES", PENDING, "p");
    assert_int_equal(strncmp(text, "[1, 1, ", 7), 0);
    free(text);
    EXPECT(client, "70", "ZCARD", PENDING);
}

/* A claim of many asks for the rows that it looks at, and for no others. */
static void claims_reach_the_rows_that_they_look_at(void **state) {
    (void)state;
    command line = {0};
    make_batch(&line, "EMQ.ENQUEUES", PENDING, "p");
    freeReplyObject(command_send(client, &line));
    command_free(&line);
    run(client, "ZADD", PENDING, "0", "JOB0KHTOWnGL0:", NULL); /* no name: none is reached for it */
#define CLAIMER BATCHER "%R~" META " "
    REFUSED_FOR(ROW("JOB0KHTOWnGL60"), CLAIMER ROWS_TO("5"), CLAIMS("60000", "61"));
    REFUSED_FOR(ROW("JOB0KHTOWnGL00"), CLAIMER, CLAIMS("60000", "1"));
    redisContext *user = server_connect_as(&server, "tester", CLAIMER ROWS_TO("5"));
    redisReply *jobs = call(user, CLAIMS("60000", "60"), NULL);
    assert_int_equal(jobs->elements, 60);
    freeReplyObject(jobs);
    redisFree(user);
    EXPECT(client, "10", "ZCARD", PENDING);
    EXPECT(client, "60", "ZCARD", ACTIVE);
}

static void the_others_reach_nothing(void **state) {
    (void)state;
    ALLOWED("1", CORE "~" SCHEDULE " ~" ROW(J1), SCHEDULE_JOB(J1, "p", "at", "5"));
    ALLOWED("1", CORE "~" SCHEDULE " ~" ROW(J1), RESCHEDULE(J1, "at", "6"));
    make_job(J2, "active", ACTIVE, "1");
    ALLOWED("1", CORE "~" ACTIVE " ~" ROW(J2), EXTEND(J2, "3", "60000"));
    ALLOWED("1", CORE "~" ACTIVE " ~" PENDING " ~" ROW(J2), REQUEUE(J2, "3"));
    make_job(J3, "dead", DEAD, "0");
    ALLOWED("1", CORE "~" DEAD " ~" PENDING " ~" ROW(J3), REPROCESS(J3));
}

/* One selector must cover declared and reached keys together (from 9.1 on, where it can be asked).
 */
static void rights_of_two_selectors_are_not_added_up(void **state) {
    char release[64];
    (void)state;
    (void)get_info(release, sizeof(release), server.admin, "server", "valkey_version");
    if (strncmp(release, "9.0.", 4) == 0) {
        skip();
    }
    make_job(J1, "active", ACTIVE, "1");
    REFUSED_FOR(PENDING, FAILER "(+@emq ~" PENDING " ~" FAILED ")", FAIL(J1, "3", "0", "1", "e"));
    REFUSED_FOR(PENDING, DELAYER "(+@emq ~" PENDING ")", DELAY(J1, "3", "at", "5"));
    REFUSED_FOR(ROW(J1), EXTENDER "(+@emq ~" ROW("*") ")", EXTENDS("1000", J1, "3"));
    REFUSED_FOR(FAILED, SWEEPER "(+@emq ~" FAILED " ~" ROW("*") ")", STALLED_CHECK("9", "1"));
    ALLOWED("[[\"" J1 "\"], []]", "(~x) (" WORKER ")", STALLED_CHECK("9", "1"));
}

static void a_script_has_its_callers_rights(void **state) {
    char object[256];
    (void)state;
    make_job(J1, "scheduled", SCHEDULE, "1");
    redisContext *user = server_connect_as(&server, "tester", PROMOTER "+eval +multi +exec");
    EXPECT(user, NO_KEY, "EVAL",
           "return redis.pcall('EMQ.PROMOTE', 3, KEYS[1], KEYS[2], KEYS[3], 10)", "3", SCHEDULE,
           PENDING, BASE);
    assert_int_equal(read_acl_log(object, sizeof(object)), 1);
    EXPECT_TEXT(object, ROW(J1));
    EXPECT(user, "+OK", "MULTI");
    EXPECT(user, "+QUEUED", PROMOTE("10"));
    EXPECT(user, "[" NO_KEY "]", "EXEC");
    FIELD(J1, "state", "\"scheduled\"");
    redisFree(user);
}

static void the_category_holds_the_verbs(void **state) {
    (void)state;
    for (int i = 0; i < CORE_VERBS; i++) {
        char want[160];
        redisContext *user = server_connect_as(&server, "tester", "allkeys +@all -@emq");
        (void)snprintf(want, sizeof(want),
                       "-NOPERM User tester has no permissions to run the '%s' command",
                       core_verbs[i].name);
        CORE_UNCHANGED(user, want, &core_verbs[i], -1, "");
        redisFree(user);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_worker_works_with_the_documented_rights),
        TEST(declared_keys_are_the_servers_to_check),
        TEST(the_fence_is_read_as_the_caller),
        TEST(a_failure_reaches_pending_and_the_counter),
        TEST(a_delay_reaches_pending),
        TEST(a_batch_reaches_each_row),
        TEST(a_promotion_reaches_the_rows),
        TEST(a_sweep_reaches_counter_and_rows),
        TEST(a_member_that_may_not_be_reached_refuses_the_batch),
        TEST(members_of_two_selectors_are_reached_one_by_one),
        TEST(claims_reach_the_rows_that_they_look_at),
        TEST(the_others_reach_nothing),
        TEST(rights_of_two_selectors_are_not_added_up),
        TEST(a_script_has_its_callers_rights),
        TEST(the_category_holds_the_verbs),
    };
    return RUN_SERVER_TESTS("core_acl", tests, start_server, stop_server);
}
