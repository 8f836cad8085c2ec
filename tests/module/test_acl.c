/* SPDX-License-Identifier: Apache-2.0 */
/* Rights: declared keys are the server's to check, every other key that a verb reaches is the
 * module's; both refuse with NOPERM, leave an entry in ACL LOG, and write nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static void a_worker_works_with_the_documented_rights(void **state) {
    (void)state;
    redisContext *worker = server_connect_as(&server, "worker", WORKER);
    EXPECT(worker, "1", ENQUEUE(J1, "p"));
    EXPECT(worker, "0", ENQUEUE(J1, "p"));
    EXPECT(worker, "[\"" J1 "\", \"p\", 1]", CLAIM("1000"));
    EXPECT(worker, "[]", CLAIM("1000"));
    run(server.admin, "RPUSH", LOGS(J1), "line", NULL);
    EXPECT(worker, MISMATCH, COMPLETE(J1, "7"));
    EXPECT(worker, "1", COMPLETE(J1, "1"));
    EXPECT(worker, "0", COMPLETE(J1, "1"));
    char object[256];
    assert_int_equal(read_acl_log(object, sizeof(object)), 0);
    /* and may no more than that */
    EXPECT(worker, "-NOPERM User worker has no permissions to run the 'get' command", "GET", FENCE);
    EXPECT(worker, "-NOPERM User worker has no permissions to run the 'EMQ.INSTALL' command",
           INSTALL);
    EXPECT_UNCHANGED(&server, worker, NO_KEY, "EMQ.CLAIM", "3", "emq:{r}:pending", "emq:{r}:active",
                     "emq:{r}:", "1000");
    redisFree(worker);
}

static void an_installer_needs_the_fence_for_writing(void **state) {
    (void)state;
    run(client, "DEL", FENCE, NULL);
    REFUSED_FOR(FENCE, "+emq.install %R~{emq}:version", INSTALL);
    REFUSED_FOR(FENCE, "+emq.install ~emq:*", INSTALL);
    ALLOWED("1", "+emq.install ~{emq}:version", INSTALL);
}

static void the_server_checks_declared_keys(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    REFUSED_FOR(ROW(J2), "+@emq %R~{emq}:version ~" PENDING, ENQUEUE(J2, "p"));
    REFUSED_FOR(PENDING, "+@emq %R~{emq}:version ~" ROW("*"), ENQUEUE(J2, "p"));
    REFUSED_FOR(ROW(J2), "+@emq %R~{emq}:version %R~emq:{q}:*", ENQUEUE(J2, "p"));
    REFUSED_FOR(ROW(J2), "+@emq %R~{emq}:version %W~emq:{q}:*", ENQUEUE(J2, "p"));
    REFUSED_FOR(BASE, "+@emq %R~{emq}:version ~emq:{q}:?*", CLAIM("1000"));
    REFUSED_FOR(ACTIVE, "+@emq %R~{emq}:version ~" BASE " ~" PENDING, CLAIM("1000"));
    REFUSED_FOR(ACTIVE, "+@emq %R~{emq}:version ~" BASE " ~" ROW("*"), COMPLETE(J1, "1"));
}

static void the_fence_is_read_as_the_caller(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:*", ENQUEUE(J2, "p"));
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:*", CLAIM("1000"));
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:*", COMPLETE(J1, "1"));
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:* %W~{emq}:version", ENQUEUE(J2, "p"));
    /* before the fence's value, and before every check of the domain */
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:*", ENQUEUE(USER, "p"));
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:*", CLAIM("0"));
    run(client, "DEL", FENCE, NULL);
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:*", ENQUEUE(J2, "p"));
    make_typed(FENCE, "list");
    REFUSED_FOR(FENCE, "+@emq ~emq:{q}:*", ENQUEUE(J2, "p"));
    /* the fence's value comes before the rights on reached keys */
    redisContext *narrow = server_connect_as(
        &server, "tester", "+@emq %R~{emq}:version ~" PENDING " ~" ACTIVE " ~" BASE " ~" ROW("*"));
    EXPECT_UNCHANGED(&server, narrow, WRONGTYPE, CLAIM("1000"));
    run(client, "DEL", FENCE, NULL);
    EXPECT_UNCHANGED(&server, narrow, FENCE_ABSENT, CLAIM("1000"));
    EXPECT_UNCHANGED(&server, narrow, FENCE_ABSENT, COMPLETE(J1, "1"));
    redisFree(narrow);
    /* behind shape and layout, which the call breaks first */
    redisContext *user = server_connect_as(&server, "tester", "+@emq ~emq:{q}:*");
    EXPECT_UNCHANGED(&server, user, "-ERR EMQ layout CLAIM key 1 must be emq:{q}:pending",
                     "EMQ.CLAIM", "3", ACTIVE, ACTIVE, BASE, "1000");
    redisFree(user);
}

#define CLAIMER "+@emq %R~{emq}:version ~" PENDING " ~" ACTIVE " ~" BASE " "

static void a_claim_reaches_meta_and_the_row(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    REFUSED_FOR(META, CLAIMER "~" ROW("*"), CLAIM("1000"));
    REFUSED_FOR(META, CLAIMER "~" ROW("*") " %W~" META, CLAIM("1000"));
    REFUSED_FOR(ROW(J1), CLAIMER "%R~" META, CLAIM("1000"));
    REFUSED_FOR(ROW(J1), CLAIMER "%R~" META " %R~" ROW("*"), CLAIM("1000"));
    REFUSED_FOR(ROW(J1), CLAIMER "%R~" META " %W~" ROW("*"), CLAIM("1000"));
    REFUSED_FOR(ROW(J1), CLAIMER "%R~" META " ~" ROW(J2), CLAIM("1000"));
    /* the value first, then the rights, then the pause and the types */
    redisContext *user = server_connect_as(&server, "tester", CLAIMER);
    EXPECT_UNCHANGED(&server, user, LEASE_MS, CLAIM("0"));
    redisFree(user);
    run(client, "HSET", META, "paused", "1", NULL);
    REFUSED_FOR(META, CLAIMER "~" ROW("*"), CLAIM("1000"));
    make_typed(META, "string");
    REFUSED_FOR(META, CLAIMER "~" ROW("*"), CLAIM("1000"));
    run(client, "DEL", META, NULL);
    ALLOWED("[\"" J1 "\", \"p\", 1]", CLAIMER "%R~" META " ~" ROW(J1), CLAIM("1000"));
    /* nothing pending: the right to meta is asked for all the same */
    REFUSED_FOR(META, CLAIMER, CLAIM("1000"));
    ALLOWED("[]", CLAIMER "%R~" META, CLAIM("1000"));
}

/* An orphan's name is reached too: whether a row is there is not a stranger's to learn. */
static void a_claim_that_meets_orphans(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, "ZADD", PENDING, "0", J1, NULL);
    REFUSED_FOR(ROW(J1), CLAIMER "%R~" META " ~" ROW(J2), CLAIM("1000"));
    REFUSED_FOR(ROW(J2), CLAIMER "%R~" META " ~" ROW(J1), CLAIM("1000"));
    ALLOWED("[\"" J2 "\", \"p\", 1]", CLAIMER "%R~" META " ~" ROW("*"), CLAIM("1000"));
}

#define COMPLETER "+@emq %R~{emq}:version ~" ACTIVE " ~" BASE " ~" ROW(J1) " "

static void a_completion_reaches_pending_counter_and_lines(void **state) {
    (void)state;
    lease_j1();
    REFUSED_FOR(PENDING, COMPLETER "~" COMPLETED " ~" LOGS("*"), COMPLETE(J1, "1"));
    REFUSED_FOR(COMPLETED, COMPLETER "~" PENDING " ~" LOGS("*"), COMPLETE(J1, "1"));
    REFUSED_FOR(LOGS(J1), COMPLETER "~" PENDING " ~" COMPLETED, COMPLETE(J1, "1"));
    REFUSED_FOR(PENDING, COMPLETER "%R~" PENDING " ~" COMPLETED " ~" LOGS("*"), COMPLETE(J1, "1"));
    REFUSED_FOR(COMPLETED, COMPLETER "~" PENDING " %R~" COMPLETED " ~" LOGS("*"),
                COMPLETE(J1, "1"));
    REFUSED_FOR(LOGS(J1), COMPLETER "~" PENDING " ~" COMPLETED " %W~" LOGS("*"), COMPLETE(J1, "1"));
    /* rights come before the row: neither gone nor stale is told to a stranger */
    REFUSED_FOR(PENDING, COMPLETER, COMPLETE(J1, "9"));
    run(client, "DEL", ROW(J1), NULL);
    REFUSED_FOR(PENDING, COMPLETER, COMPLETE(J1, "1"));
    make_typed(ROW(J1), "string");
    REFUSED_FOR(PENDING, COMPLETER, COMPLETE(J1, "1"));
    run(client, "DEL", ROW(J1), ACTIVE, NULL);
    lease_j1();
    ALLOWED("1", COMPLETER "~" PENDING " ~" COMPLETED " ~" LOGS(J1), COMPLETE(J1, "1"));
}

/* One selector must cover declared and reached keys together, as it would have to cover the keys of
 * an EVAL: rights that two selectors hold are not added up. */
static void rights_of_two_selectors_are_not_added_up(void **state) {
    (void)state;
    if (is_before_9_1()) {
        skip();
    }
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    REFUSED_FOR(ROW(J1), CLAIMER "%R~" META " (+@emq ~" ROW("*") ")", CLAIM("1000"));
    REFUSED_FOR(ROW(J1), CLAIMER "%R~" META " (~emq:{q}:*)", CLAIM("1000"));
    ALLOWED("[\"" J1 "\", \"p\", 1]", "(" WORKER ")", CLAIM("1000"));
    REFUSED_FOR(PENDING, COMPLETER "(+@emq ~" PENDING " ~" COMPLETED " ~" LOGS("*") ")",
                COMPLETE(J1, "1"));
    ALLOWED("1", "(~x) (" WORKER ")", COMPLETE(J1, "1"));
}

#define BY_FIRST_ARGUMENT                                                                          \
    "+emq.enqueue|2 +emq.enqueues|2 +emq.claim|3 +emq.claims|3 +emq.complete|3 +emq.completes|2 "  \
    "+emq.publish|1 %R~{emq}:version "

/* A verb that is allowed with its key count alone: the reached keys are asked for in that shape. */
static void a_rule_by_first_argument_allows_its_verb(void **state) {
    (void)state;
    ALLOWED("1", BY_FIRST_ARGUMENT "~emq:{q}:*", ENQUEUE(J1, "p"));
    ALLOWED("[1]", BY_FIRST_ARGUMENT "~emq:{q}:*", "EMQ.ENQUEUES", "2", PENDING, BASE, J2, "p");
    ALLOWED("[\"" J1 "\", \"p\", 1]", BY_FIRST_ARGUMENT "~emq:{q}:*", CLAIM("60000"));
    ALLOWED("[[\"" J2 "\", \"p\", 1]]", BY_FIRST_ARGUMENT "~emq:{q}:*", "EMQ.CLAIMS", "3", PENDING,
            ACTIVE, BASE, "60000", "5");
    ALLOWED("1", BY_FIRST_ARGUMENT "~emq:{q}:*", COMPLETE(J1, "1"));
    ALLOWED("[1]", BY_FIRST_ARGUMENT "~emq:{q}:*", "EMQ.COMPLETES", "2", ACTIVE, BASE, J2, "1");
    ALLOWED("0", BY_FIRST_ARGUMENT "~emq:{q}:* &*", "EMQ.PUBLISH", "1", BASE, "e", "j");
}

static void a_rule_by_first_argument_needs_the_reached_keys(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
#define KEYS_OF_COMPLETE BY_FIRST_ARGUMENT "~" ACTIVE " ~" BASE " ~" ROW(J1) " "
    REFUSED_FOR(PENDING, KEYS_OF_COMPLETE "~" COMPLETED " ~" LOGS("*"), COMPLETE(J1, "1"));
    REFUSED_FOR(COMPLETED, KEYS_OF_COMPLETE "~" PENDING " %R~" COMPLETED " ~" LOGS("*"),
                COMPLETE(J1, "1"));
    REFUSED_FOR(ROW(J2), BY_FIRST_ARGUMENT "~" PENDING " ~" ACTIVE " ~" BASE " ~" META,
                CLAIM("1000"));
    if (!is_before_9_1()) {
        REFUSED_FOR(PENDING,
                    KEYS_OF_COMPLETE "(+emq.complete|3 ~" PENDING " ~" COMPLETED " ~" LOGS("*") ")",
                    COMPLETE(J1, "1"));
    }
    ALLOWED("1", KEYS_OF_COMPLETE "~" PENDING " ~" COMPLETED " ~" LOGS("*"), COMPLETE(J1, "1"));
}

static void a_user_of_one_database(void **state) {
    (void)state;
    if (is_before_9_1()) {
        skip();
    }
    run(client, "SELECT", "1", NULL);
    run(client, INSTALL, NULL);
    redisContext *user = server_connect_as(&server, "tester", WORKER " +select db=0");
    EXPECT(user, "1", ENQUEUE(J1, "p"));
    EXPECT(user, "[\"" J1 "\", \"p\", 1]", CLAIM("1000"));
    EXPECT(user, "1", COMPLETE(J1, "1"));
    redisReply *reply = call(user, "SELECT", "1", NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    redisFree(user);
    user = server_connect_as(&server, "tester", WORKER " +select db=1");
    EXPECT(user, "+OK", "SELECT", "1");
    EXPECT(user, "1", ENQUEUE(J1, "p"));
    EXPECT(user, "[\"" J1 "\", \"p\", 1]", CLAIM("1000"));
    EXPECT(user, "1", COMPLETE(J1, "1"));
    redisFree(user);
}

/* Rights that are taken away count from the next call on. */
static void rights_are_those_of_the_moment(void **state) {
    (void)state;
    redisContext *user = server_connect_as(&server, "tester", WORKER);
    EXPECT(user, "1", ENQUEUE(J1, "p"));
    run(server.admin, "ACL", "SETUSER", "tester", "resetkeys", "~" PENDING, "~" ACTIVE, "~" BASE,
        "%R~{emq}:version", NULL);
    EXPECT_UNCHANGED(&server, user, NO_KEY, CLAIM("1000"));
    run(server.admin, "ACL", "SETUSER", "tester", "~emq:{q}:*", NULL);
    EXPECT(user, "[\"" J1 "\", \"p\", 1]", CLAIM("1000"));
    redisFree(user);
}

/* In scripts and transactions the caller is the user who runs them. */
static void a_script_has_its_callers_rights(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    char object[256];
    redisContext *user = server_connect_as(&server, "tester",
                                           CLAIMER "~" ROW("*") " +eval +multi "
                                                                "+exec");
    redisReply *reply =
        call(user, "EVAL", "return redis.pcall('EMQ.CLAIM', 3, KEYS[1], KEYS[2], KEYS[3], 1000)",
             "3", PENDING, ACTIVE, BASE, NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_string_equal(reply->str, &NO_KEY[1]);
    freeReplyObject(reply);
    assert_int_equal(read_acl_log(object, sizeof(object)), 1);
    EXPECT_TEXT(object, META);
    EXPECT(user, "+OK", "MULTI");
    EXPECT(user, "+QUEUED", CLAIM("1000"));
    EXPECT(user, "[" NO_KEY "]", "EXEC");
    EXPECT(client, "\"pending\"", "HGET", ROW(J1), "state");
    redisFree(user);
}

static void the_category_holds_the_verbs(void **state) {
    (void)state;
    redisContext *user = server_connect_as(&server, "tester", "allkeys +@all -@emq");
    EXPECT(user, "-NOPERM User tester has no permissions to run the 'EMQ.VERSION' command",
           "EMQ.VERSION");
    EXPECT(user, "-NOPERM User tester has no permissions to run the 'EMQ.ENQUEUE' command",
           ENQUEUE(J1, "p"));
    EXPECT(user, "-NOPERM User tester has no permissions to run the 'EMQ.CLAIM' command",
           CLAIM("1"));
    EXPECT(user, "-NOPERM User tester has no permissions to run the 'EMQ.COMPLETE' command",
           COMPLETE(J1, "1"));
    redisFree(user);
    user = server_connect_as(&server, "tester", "allkeys +@write");
    EXPECT(user, "1", ENQUEUE(J1, "p"));
    redisFree(user);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_worker_works_with_the_documented_rights),
        TEST(an_installer_needs_the_fence_for_writing),
        TEST(the_server_checks_declared_keys),
        TEST(the_fence_is_read_as_the_caller),
        TEST(a_claim_reaches_meta_and_the_row),
        TEST(a_claim_that_meets_orphans),
        TEST(a_completion_reaches_pending_counter_and_lines),
        TEST(rights_of_two_selectors_are_not_added_up),
        TEST(a_rule_by_first_argument_allows_its_verb),
        TEST(a_rule_by_first_argument_needs_the_reached_keys),
        TEST(a_user_of_one_database),
        TEST(rights_are_those_of_the_moment),
        TEST(a_script_has_its_callers_rights),
        TEST(the_category_holds_the_verbs),
    };
    return RUN_SERVER_TESTS("acl", tests, start_server, stop_server);
}
