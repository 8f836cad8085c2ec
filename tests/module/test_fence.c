/* SPDX-License-Identifier: Apache-2.0 */
/* The fence, as every write verb reads it; EMQ.INSTALL, which writes it; EMQ.VERSION, which doesn't
 * look at it. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define HUNDRED                                                                                    \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"  \
    "123456789"

/* All three verbs behind the fence answer this, and so does nothing else change. */
static void all_refuse(const char *want) {
    EXPECT_UNCHANGED(&server, client, want, ENQUEUE(J2, "p"));
    EXPECT_UNCHANGED(&server, client, want, CLAIM("1000"));
    EXPECT_UNCHANGED(&server, client, want, COMPLETE(J1, "1"));
    /* a duplicate, a bad kind, a bad value and a job that is gone come behind the fence */
    EXPECT_UNCHANGED(&server, client, want, ENQUEUE(J1, "p"));
    EXPECT_UNCHANGED(&server, client, want, ENQUEUE(USER, "p"));
    EXPECT_UNCHANGED(&server, client, want, CLAIM("0"));
    EXPECT_UNCHANGED(&server, client, want, COMPLETE(J3, "1"));
}

static void an_absent_fence_refuses(void **state) {
    (void)state;
    lease_j1();
    run(client, "DEL", FENCE, NULL);
    all_refuse(FENCE_ABSENT);
}

static void another_string_refuses(void **state) {
    static const struct {
        const char *value;
        const char *shown;
    } table[] = {
        {"echomq:5.0.0", "echomq:5.0.0"},
        {"echomq:6.0.1", "echomq:6.0.1"},
        {"echomq:6.0.0 ", "echomq:6.0.0 "},
        {"echomq:6.0.0\\x00", "echomq:6.0.0 "},
        {"echomq:6.0.", "echomq:6.0."},
        {"ECHOMQ:6.0.0", "ECHOMQ:6.0.0"},
        {"", ""},
        {"5", "5"}, /* held as an integer inside the server */
        {"-9223372036854775808", "-9223372036854775808"},
        {"10000", "10000"},
        {"a\\x00b\\x01c\\x1fd\\x7fe", "a b c d e"},
        {"a\\x0d\\x0ab\\x09c", "a  b c"},
        {"\\x0d\\x0a", "  "},
        {"%s%n", "%s%n"},
    };
    (void)state;
    lease_j1();
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char want[256];
        run(client, "SET", FENCE, table[i].value, NULL);
        (void)snprintf(want, sizeof(want), FENCE_FOUND "%s", table[i].shown);
        all_refuse(want);
    }
    run(client, "SET", FENCE, "v\\xc3\\xa4\\xff", NULL);
    all_refuse(FENCE_FOUND "v\\xc3\\xa4\\xff");
}

static void a_long_value_is_cut_at_128_bytes(void **state) {
    (void)state;
    lease_j1();
    run(client, "SET", FENCE, HUNDRED "012345678901234567890123456", NULL);
    all_refuse(FENCE_FOUND HUNDRED "012345678901234567890123456");
    run(client, "SET", FENCE, HUNDRED "0123456789012345678901234567", NULL);
    all_refuse(FENCE_FOUND HUNDRED "0123456789012345678901234567");
    run(client, "SET", FENCE, HUNDRED "01234567890123456789012345678", NULL);
    all_refuse(FENCE_FOUND HUNDRED "0123456789012345678901234567");
    run(client, "SETRANGE", FENCE, "100000", "x", NULL);
    all_refuse(FENCE_FOUND HUNDRED "0123456789012345678901234567");
}

static void a_fence_of_another_type_passes_the_servers_text(void **state) {
    (void)state;
    lease_j1();
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "string") != 0) {
            make_typed(FENCE, types[i]);
            all_refuse(WRONGTYPE);
            EXPECT_UNCHANGED(&server, client, WRONGTYPE, INSTALL);
        }
    }
}

/* The check must not be what removes it: a refused call leaves everything as it was. */
static void an_expired_fence_is_absent(void **state) {
    (void)state;
    lease_j1();
    pass_expiry(FENCE);
    all_refuse(FENCE_ABSENT);
    EXPECT(client, "1", INSTALL);
    EXPECT(client, "-1", "PTTL", FENCE);
    EXPECT(client, "1", COMPLETE(J1, "1"));
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
}

static void the_right_value_passes_in_every_form(void **state) {
    (void)state;
    run(client, "SET", FENCE, "echomq", NULL);
    run(client, "APPEND", FENCE, ":6.0.0", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    run(client, "SET", FENCE, WIRE, "EX", "1000", NULL);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
}

static void each_database_has_its_own_fence(void **state) {
    (void)state;
    run(client, "SELECT", "3", NULL);
    EXPECT_UNCHANGED(&server, client, FENCE_ABSENT, ENQUEUE(J1, "p"));
    EXPECT(client, "1", INSTALL);
    EXPECT(client, "1", ENQUEUE(J1, "in 3"));
    EXPECT(client, "[\"" J1 "\", \"in 3\", 1]", CLAIM("1000"));
    run(client, "SELECT", "0", NULL);
    EXPECT(client, "0", "EXISTS", ROW(J1), ACTIVE);
    EXPECT_UNCHANGED(&server, client, "[]", CLAIM("1000"));
    EXPECT_UNCHANGED(&server, client, "0", COMPLETE(J1, "1"));
    run(client, "SELECT", "3", NULL);
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

/* ---- EMQ.INSTALL ---- */

static void install_brands_once(void **state) {
    (void)state;
    run(client, "DEL", FENCE, NULL);
    EXPECT_EFFECTS(&server, "SET {emq}:version echomq:6.0.0", client, "1", INSTALL);
    EXPECT(client, "\"echomq:6.0.0\"", "GET", FENCE);
    EXPECT_UNCHANGED(&server, client, "0", INSTALL);
}

static void install_refuses_another_brand(void **state) {
    (void)state;
    run(client, "SET", FENCE, "echomq:4.0.0", NULL);
    EXPECT_UNCHANGED(&server, client, FENCE_FOUND "echomq:4.0.0", INSTALL);
    run(client, "SET", FENCE, "", NULL);
    EXPECT_UNCHANGED(&server, client, FENCE_FOUND, INSTALL);
    run(client, "SET", FENCE, "5", NULL);
    EXPECT_UNCHANGED(&server, client, FENCE_FOUND "5", INSTALL);
}

static void install_leaves_a_right_fence_with_its_time(void **state) {
    (void)state;
    run(client, "EXPIRE", FENCE, "1000", NULL);
    EXPECT_UNCHANGED(&server, client, "0", INSTALL);
}

static void install_is_refused_in_a_script(void **state) {
    (void)state;
    run(client, "DEL", FENCE, NULL);
    redisReply *reply =
        call(client, "EVAL", "return redis.call('EMQ.INSTALL', 1, KEYS[1])", "1", FENCE, NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    if (strstr(reply->str, "not allowed from script") == NULL) {
        fail_msg("%s", reply->str);
    }
    freeReplyObject(reply);
    EXPECT(client, "0", "EXISTS", FENCE);
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", INSTALL);
    EXPECT(client, "[1]", "EXEC");
}

/* ---- EMQ.VERSION ---- */

static void version_tells_the_facts(void **state) {
    char want[512];
    char release[64];
    char build[64] = "";
    (void)state;
    (void)get_info(release, sizeof(release), client, "server", "valkey_version");
    redisReply *reply = call(client, "EMQ.VERSION", NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, 16);
    (void)snprintf(build, sizeof(build), "%s", reply->element[11]->str);
    freeReplyObject(reply);
    assert_string_not_equal(build, "");
    (void)snprintf(want, sizeof(want),
                   "[\"wire\", \"echomq:6.0.0\", \"epoch\", 6, \"module\", \"emq\", \"version\", "
                   "\"0.1.0\", \"major\", 0, \"build\", \"%s\", \"server\", \"%s\", "
                   "\"capabilities\", [\"enqueue\", \"claim\", \"claim.pause\", \"complete\", "
                   "\"schedule\", \"extend\", \"extends\", \"promote\", \"reschedule\", \"delay\", "
                   "\"fail\", \"reprocess\", \"requeue\", \"stalled.check\", \"enqueues\", "
                   "\"claims\", \"completes\", \"pause\", \"resume\", \"append\", \"publish\", "
                   "\"failures.incr\"]]",
                   build, release);
    EXPECT_UNCHANGED(&server, client, want, "EMQ.VERSION");
    /* it reads no key: the fence, another database, a user without keys change nothing */
    run(client, "DEL", FENCE, NULL);
    EXPECT_UNCHANGED(&server, client, want, "EMQ.VERSION");
    run(client, "RPUSH", FENCE, "x", NULL);
    EXPECT_UNCHANGED(&server, client, want, "EMQ.VERSION");
    redisContext *nobody = server_connect_as(&server, "nobody", "+emq.version");
    EXPECT(nobody, want, "EMQ.VERSION");
    redisFree(nobody);
    EXPECT(client, want, "EVAL_RO", "return redis.call('EMQ.VERSION')", "0");
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", "EMQ.VERSION");
    char in_multi[600];
    (void)snprintf(in_multi, sizeof(in_multi), "[%s]", want);
    EXPECT(client, in_multi, "EXEC");
}

/* The bytes that come back, up to the answer of a PING behind them. */
static char *exchange(redisContext *c, const char *line) {
    char *got = NULL;
    append_text(&got, "");
    assert_int_equal(write(c->fd, line, strlen(line)), strlen(line));
    while (strstr(got, "+PONG\r\n") == NULL) {
        char bytes[4096];
        struct pollfd ready = {.fd = c->fd, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        ssize_t n = read(c->fd, bytes, sizeof(bytes) - 1);
        assert_true(n > 0);
        bytes[n] = '\0';
        append_text(&got, bytes);
    }
    return got;
}

static void version_is_a_map_in_resp3(void **state) {
    (void)state;
    redisContext *c = server_connect(&server);
    free(exchange(c, "HELLO 3\r\nPING\r\n"));
    char *got = exchange(c, "EMQ.VERSION\r\nPING\r\n");
    static const char start[] = "%8\r\n$4\r\nwire\r\n$12\r\nechomq:6.0.0\r\n$5\r\nepoch\r\n:6\r\n"
                                "$6\r\nmodule\r\n$3\r\nemq\r\n$7\r\nversion\r\n$5\r\n0.1.0\r\n"
                                "$5\r\nmajor\r\n:0\r\n$5\r\nbuild\r\n";
    static const char end[] = "$12\r\ncapabilities\r\n*22\r\n"
                              "$7\r\nenqueue\r\n"
                              "$5\r\nclaim\r\n"
                              "$11\r\nclaim.pause\r\n"
                              "$8\r\ncomplete\r\n"
                              "$8\r\nschedule\r\n"
                              "$6\r\nextend\r\n"
                              "$7\r\nextends\r\n"
                              "$7\r\npromote\r\n"
                              "$10\r\nreschedule\r\n"
                              "$5\r\ndelay\r\n"
                              "$4\r\nfail\r\n"
                              "$9\r\nreprocess\r\n"
                              "$7\r\nrequeue\r\n"
                              "$13\r\nstalled.check\r\n"
                              "$8\r\nenqueues\r\n"
                              "$6\r\nclaims\r\n"
                              "$9\r\ncompletes\r\n"
                              "$5\r\npause\r\n"
                              "$6\r\nresume\r\n"
                              "$6\r\nappend\r\n"
                              "$7\r\npublish\r\n"
                              "$13\r\nfailures.incr\r\n"
                              "+PONG\r\n";
    if (strncmp(got, start, strlen(start)) != 0 ||
        strcmp(got + strlen(got) - strlen(end), end) != 0) {
        fail_msg("%s", got);
    }
    free(got);
    redisFree(c);
}

/* The other verbs answer the same bytes in both, but for the null of a lost payload. */
static void verbs_in_resp3(void **state) {
    (void)state;
    redisContext *c = server_connect(&server);
    free(exchange(c, "HELLO 3\r\nPING\r\n"));
    char *got = exchange(c, "EMQ.CLAIM 3 " PENDING " " ACTIVE " " BASE " 1000\r\n"
                            "EMQ.ENQUEUE 2 " ROW(J1) " " PENDING " " J1 " p\r\n"
                                                     "HDEL " ROW(J1) " payload\r\n"
                                                                     "EMQ.CLAIM 3 " PENDING
                                                                     " " ACTIVE " " BASE " 1000\r\n"
                                                                     "EMQ.COMPLETE 3 " ACTIVE
                                                                     " " ROW(J1) " " BASE " " J1
                                                                                 " 1\r\nPING\r\n");
    EXPECT_TEXT(got, "*0\r\n:1\r\n:1\r\n*3\r\n$14\r\n" J1 "\r\n_\r\n:1\r\n:1\r\n+PONG\r\n");
    free(got);
    redisFree(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_absent_fence_refuses),
        TEST(another_string_refuses),
        TEST(a_long_value_is_cut_at_128_bytes),
        TEST(a_fence_of_another_type_passes_the_servers_text),
        TEST(an_expired_fence_is_absent),
        TEST(the_right_value_passes_in_every_form),
        TEST(each_database_has_its_own_fence),
        TEST(install_brands_once),
        TEST(install_refuses_another_brand),
        TEST(install_leaves_a_right_fence_with_its_time),
        TEST(install_is_refused_in_a_script),
        TEST(version_tells_the_facts),
        TEST(version_is_a_map_in_resp3),
        TEST(verbs_in_resp3),
    };
    return RUN_SERVER_TESTS("fence", tests, start_server, stop_server);
}
