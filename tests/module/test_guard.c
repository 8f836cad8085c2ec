/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's own state stops: paused writes, and memory that is full. */
#include <poll.h>
#include <string.h>

#include "fixture.h"

static void paused_writes_refuse_what_would_write(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WHILE_PAUSED(PAUSED, ENQUEUE(J3, "p"));
    WHILE_PAUSED(PAUSED, CLAIM("1000"));
    WHILE_PAUSED(PAUSED, COMPLETE(J1, "1"));
    run(client, "DEL", FENCE, NULL);
    WHILE_PAUSED(PAUSED, INSTALL);
    /* and afterwards all of it works */
    EXPECT(client, "1", INSTALL);
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    EXPECT(client, "[\"" J2 "\", \"p\", 1]", CLAIM("1000"));
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

static void paused_writes_do_not_refuse_what_writes_nothing(void **state) {
    (void)state;
    lease_j1();
    WHILE_PAUSED("0", ENQUEUE(J1, "p"));
    WHILE_PAUSED("[]", CLAIM("1000"));
    WHILE_PAUSED("0", COMPLETE(J2, "1"));
    WHILE_PAUSED("0", INSTALL);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, "HSET", META, "paused", "1", NULL);
    WHILE_PAUSED("[]", CLAIM("1000"));
}

/* Orphans alone answer empty, but removing them is a write. */
static void paused_writes_refuse_to_remove_orphans(void **state) {
    (void)state;
    run(client, "ZADD", PENDING, "0", J1, NULL);
    WHILE_PAUSED(PAUSED, CLAIM("1000"));
    EXPECT(client, "[]", CLAIM("1000"));
    EXPECT(client, "0", "EXISTS", PENDING);
}

/* The guard is the last check of all. */
static void every_refusal_comes_before_the_guard(void **state) {
    (void)state;
    lease_j1();
    WHILE_PAUSED("-ERR EMQ shape ENQUEUE expects 2 keys and 2 values", "EMQ.ENQUEUE", "3", ROW(J2),
                 PENDING, J2, "p");
    WHILE_PAUSED("-ERR EMQ layout CLAIM key 2 must be emq:{q}:active", "EMQ.CLAIM", "3", PENDING,
                 PENDING, BASE, "1");
    WHILE_PAUSED(KIND, ENQUEUE(USER, "p"));
    WHILE_PAUSED(LEASE_MS, CLAIM("0"));
    WHILE_PAUSED(MISMATCH, COMPLETE(J1, "2"));
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    WHILE_PAUSED(LANE, COMPLETE(J1, "1"));
    run(client, "HDEL", ROW(J1), "group", NULL);
    run(client, "HSET", ROW(J1), "parent", J2, NULL);
    WHILE_PAUSED(FLOW, COMPLETE(J1, "1"));
    run(client, "HDEL", ROW(J1), "parent", NULL);
    run(client, "HSET", ROW(J1), "state", "dead", NULL);
    WHILE_PAUSED(LOST, COMPLETE(J1, "1"));
    run(client, "HSET", ROW(J1), "state", "active", NULL);
    make_typed(COMPLETED, "string");
    WHILE_PAUSED(WRONGTYPE, COMPLETE(J1, "1"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, "HSET", ROW(J2), "attempts", "x", NULL);
    WHILE_PAUSED(ATTEMPTS, CLAIM("1000"));
    run(client, "HSET", ROW(J2), "attempts", "0", NULL);
    make_typed(ACTIVE, "string");
    WHILE_PAUSED(WRONGTYPE, CLAIM("1000"));
    make_typed(PENDING, "string");
    WHILE_PAUSED(WRONGTYPE, CLAIM("1000"));
    WHILE_PAUSED(WRONGTYPE, ENQUEUE(J3, "p"));
    run(client, "SET", FENCE, "x", NULL);
    WHILE_PAUSED(FENCE_FOUND "x", ENQUEUE(J3, "p"));
    WHILE_PAUSED(FENCE_FOUND "x", INSTALL);
    make_typed(FENCE, "list");
    WHILE_PAUSED(WRONGTYPE, INSTALL);
}

static int has_blocked_client(void *data) {
    char text[32];
    (void)data;
    return strcmp(get_info(text, sizeof(text), server.admin, "clients", "blocked_clients"), "0") !=
           0;
}

/* Outside of a transaction the server itself holds the call, until the pause ends. */
static void a_pause_holds_a_call_outside_of_a_transaction(void **state) {
    (void)state;
    const char *argv[] = {ENQUEUE(J1, "p")};
    run(server.admin, "CLIENT", "PAUSE", "100000", "WRITE", NULL);
    assert_int_equal(redisAppendCommandArgv(client, 6, argv, NULL), REDIS_OK);
    int done = 0;
    while (!done) {
        assert_int_equal(redisBufferWrite(client, &done), REDIS_OK);
    }
    wait_until("the call is held", has_blocked_client, NULL);
    struct pollfd answer = {.fd = client->fd, .events = POLLIN};
    assert_int_equal(poll(&answer, 1, 0), 0);
    EXPECT(server.admin, "0", "EXISTS", ROW(J1));
    run(server.admin, "CLIENT", "UNPAUSE", NULL);
    void *reply = NULL;
    assert_int_equal(redisGetReply(client, &reply), REDIS_OK);
    assert_int_equal(((redisReply *)reply)->integer, 1);
    freeReplyObject(reply);
}

/* At maxmemory nothing is admitted, claimed or branded; but a job in hand can be completed, so that
 * a full server can be worked empty. */
static void full_memory_stops_admission_not_completion(void **state) {
    (void)state;
    lease_j1();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    EXPECT_UNCHANGED(&server, client, OOM, ENQUEUE(J3, "p"));
    EXPECT_UNCHANGED(&server, client, OOM, ENQUEUE(J1, "p"));
    EXPECT_UNCHANGED(&server, client, OOM, CLAIM("1000"));
    EXPECT_UNCHANGED(&server, client, OOM, INSTALL);
    EXPECT_UNCHANGED(&server, client, MISMATCH, COMPLETE(J1, "2"));
    EXPECT(client, "1", COMPLETE(J1, "1"));
    redisReply *reply = call(client, "EMQ.VERSION", NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
    EXPECT(client, "[\"" J2 "\", \"p\", 1]", CLAIM("1000"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(paused_writes_refuse_what_would_write),
        TEST(paused_writes_do_not_refuse_what_writes_nothing),
        TEST(paused_writes_refuse_to_remove_orphans),
        TEST(every_refusal_comes_before_the_guard),
        TEST(a_pause_holds_a_call_outside_of_a_transaction),
        TEST(full_memory_stops_admission_not_completion),
    };
    return RUN_SERVER_TESTS("guard", tests, start_server, stop_server);
}
