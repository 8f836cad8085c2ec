/* SPDX-License-Identifier: Apache-2.0 */
/* A call within a call: another module hears of an effect, and answers with a verb of its own, on
 * this queue or on another. Each call has its own keys and names, and both are told of. */
#include "core.h"

#ifndef CALLER_MODULE
#define CALLER_MODULE ""
#endif

#define OTHER "emq:{r}:"
#define OTHER_ROW(id) OTHER "job:" id
#define OTHER_COMPLETE(id) "EMQ.COMPLETE", "3", OTHER "active", OTHER_ROW(id), OTHER, id, "1"

/* The effects of a completion. */
#define DONE(base, id, count)                                                                      \
    "ZREM " base "active " id "\n"                                                                 \
    "DEL " base "job:" id "\n"                                                                     \
    "HSET " base "metrics:completed count " count "\n"

static int start_server_with_caller(void **state) {
    (void)state;
    if (CALLER_MODULE[0] == '\0') {
        return start_server(state);
    }
    server_start(&server, "--conf", "loadmodule \"" CALLER_MODULE "\"", NULL);
    client = server_connect(&server);
    return 0;
}

static void lease_two(void) {
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, CLAIM("100000"), NULL);
    run(client, CLAIM("100000"), NULL);
    EXPECT(client, "1", "EMQ.ENQUEUE", "2", OTHER_ROW(J1), OTHER "pending", J1, "p");
    run(client, "EMQ.CLAIM", "3", OTHER "pending", OTHER "active", OTHER, "100000", NULL);
}

/* The next notification names this key. */
static void expect_key(redisContext *subscriber, const char *want) {
    void *received = NULL;
    assert_int_equal(redisGetReply(subscriber, &received), REDIS_OK);
    redisReply *message = received;
    assert_string_equal(message->element[2]->str, want);
    freeReplyObject(message);
}

static void a_verb_on_another_queue_within(void **state) {
    (void)state;
    if (CALLER_MODULE[0] == '\0') {
        skip();
    }
    lease_two();
    EXPECT(client, "+OK", "CALLER.ANSWER", OTHER_COMPLETE(J1));
    EXPECT_EFFECTS(&server, "MULTI\n" DONE(BASE, J1, "1") DONE(OTHER, J1, "1") "EXEC", client, "1",
                   COMPLETE(J1, "1"));
    EXPECT(client, "1", COMPLETE(J2, "1"));
    EXPECT(client, "\"2\"", "HGET", COMPLETED, "count");
}

/* Nothing else holds the names of the outer call where no AOF and no replica does. */
static void the_outer_call_keeps_its_names(void **state) {
    (void)state;
    if (CALLER_MODULE[0] == '\0') {
        skip();
    }
    lease_two();
    redisContext *subscriber = server_connect(&server);
    run(server.admin, "CONFIG", "SET", "appendonly", "no", NULL);
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", "KEA", NULL);
    run(subscriber, "SUBSCRIBE", "__keyevent@0__:hset", NULL);
    EXPECT(client, "+OK", "CALLER.ANSWER", OTHER_COMPLETE(J1));
    EXPECT(client, "1", COMPLETE(J1, "1"));
    expect_key(subscriber, OTHER "metrics:completed");
    expect_key(subscriber, COMPLETED);
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", "", NULL);
    redisFree(subscriber);
}

static void a_verb_on_the_same_queue_within(void **state) {
    (void)state;
    if (CALLER_MODULE[0] == '\0') {
        skip();
    }
    lease_two();
    EXPECT(client, "+OK", "CALLER.ANSWER", COMPLETE(J2, "1"));
    EXPECT_EFFECTS(&server, "MULTI\n" DONE(BASE, J1, "1") DONE(BASE, J2, "2") "EXEC", client, "1",
                   COMPLETE(J1, "1"));
    EXPECT(client, "0", "EXISTS", ACTIVE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_verb_on_another_queue_within), TEST(a_verb_on_the_same_queue_within),
        TEST(the_outer_call_keeps_its_names), /* the last one: without an AOF */
    };
    return RUN_SERVER_TESTS("nested", tests, start_server_with_caller, stop_server);
}
