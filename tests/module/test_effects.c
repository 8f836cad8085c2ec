/* SPDX-License-Identifier: Apache-2.0 */
/* What others see of a call: replicas, the AOF, a restart, keyspace notifications, WATCH, tracking
 * clients. All of it is that of plain commands, also when the call comes out of a transaction, a
 * script or a function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

/* Calls the verb in ARGV[1] with the keys and the other values, and hands its reply on. */
#define SCRIPT_BODY(keys, values)                                                                  \
    "local line = {" values "[1], #" keys "} "                                                     \
    "for i = 1, #" keys " do line[#line + 1] = " keys "[i] end "                                   \
    "for i = 2, #" values " do line[#line + 1] = " values "[i] end "                               \
    "return redis.pcall(unpack(line))"

#define LIBRARY                                                                                    \
    "#!lua name=tests\n"                                                                           \
    "redis.register_function('pass', function(keys, values) " SCRIPT_BODY("keys",                  \
                                                                          "values") " end)"

typedef enum road { PLAIN, TRANSACTION, SCRIPT, FUNCTION, ROADS } road;

static redisReply *send_directly(const char *const *words, int count) {
    command line = {0};
    for (int i = 0; i < count; i++) {
        command_add(&line, words[i]);
    }
    redisReply *reply = command_send(client, &line);
    command_free(&line);
    return reply;
}

static redisReply *send_in_transaction(const char *const *words, int count) {
    EXPECT(client, "+OK", "MULTI");
    redisReply *reply = send_directly(words, count);
    assert_string_equal(reply->str, "QUEUED");
    freeReplyObject(reply);
    return call(client, "EXEC", NULL);
}

static redisReply *send_by_lua(const char *const *words, int count, road way) {
    command line = {0};
    int keys = atoi(words[1]);
    command_add(&line, way == SCRIPT ? "EVAL" : "FCALL");
    command_add_bytes(&line, way == SCRIPT ? SCRIPT_BODY("KEYS", "ARGV") : "pass",
                      strlen(way == SCRIPT ? SCRIPT_BODY("KEYS", "ARGV") : "pass"));
    for (int i = 1; i < 2 + keys; i++) {
        command_add(&line, words[i]);
    }
    command_add(&line, words[0]);
    for (int i = 2 + keys; i < count; i++) {
        command_add(&line, words[i]);
    }
    redisReply *reply = command_send(client, &line);
    command_free(&line);
    return reply;
}

/* Sends a call on one of the roads; its own reply must be `want`. */
static void expect_on_road(int source_line, road way, const char *want, int count,
                           const char *const *words) {
    char in_transaction[1024];
    redisReply *reply = NULL;
    switch (way) {
    case PLAIN:
        reply = send_directly(words, count);
        break;
    case TRANSACTION:
        reply = send_in_transaction(words, count);
        (void)snprintf(in_transaction, sizeof(in_transaction), "[%s]", want);
        want = in_transaction;
        break;
    default:
        reply = send_by_lua(words, count, way);
        break;
    }
    char *got = reply_to_text(reply);
    expect_text(__FILE__, source_line, got, want);
    free(got);
    freeReplyObject(reply);
}

#define ON_ROAD(way, want, ...)                                                                    \
    do {                                                                                           \
        const char *const words_[] = {__VA_ARGS__};                                                \
        expect_on_road(__LINE__, (way), (want), (int)(sizeof(words_) / sizeof(words_[0])),         \
                       words_);                                                                    \
    } while (0)

static void load_library(void) {
    run(client, "FUNCTION", "LOAD", "REPLACE", LIBRARY, NULL);
}

/* ---- roads ---- */

static void expect_log(int source_line, long long mark, const char *want) {
    char *got = aof_since(&server, mark);
    expect_text(__FILE__, source_line, got, want);
    free(got);
}

/* The same replies and the same plain effects on every road; one MULTI/EXEC each time. */
static void each_road_gives_the_same(void **state) {
    char effects[1024];
    char score[64];
    (void)state;
    load_library();
    for (road way = PLAIN; way < ROADS; way++) {
        run(client, "DEL", ROW(J1), PENDING, ACTIVE, COMPLETED, NULL);
        long long mark = aof_mark(&server);
        ON_ROAD(way, "1", ENQUEUE(J1, "P"));
        expect_log(__LINE__, mark,
                   "MULTI\nHSET " ROW(J1) " state pending attempts 0 payload P\nZADD " PENDING
                                          " 0 " J1 "\nEXEC");
        mark = aof_mark(&server);
        ON_ROAD(way, "[\"" J1 "\", \"P\", 1]", CLAIM("60000"));
        (void)get_text(score, sizeof(score), client, "ZSCORE", ACTIVE, J1, NULL);
        (void)snprintf(effects, sizeof(effects),
                       "MULTI\nZREM " PENDING " " J1
                       "\nHSET " ROW(J1) " state active attempts 1 lease_epoch %s\nZADD " ACTIVE
                                         " %s " J1 "\nEXEC",
                       get_run_id(), score);
        expect_log(__LINE__, mark, effects);
        run(client, "RPUSH", LOGS(J1), "line", NULL);
        mark = aof_mark(&server);
        ON_ROAD(way, "1", COMPLETE(J1, "1"));
        expect_log(__LINE__, mark,
                   "MULTI\nZREM " ACTIVE " " J1 "\nDEL " ROW(J1) " " LOGS(J1) "\nHSET " COMPLETED
                                                                              " count 1\nEXEC");
    }
}

static void each_road_refuses_the_same(void **state) {
    (void)state;
    load_library();
    lease_j1();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    for (road way = PLAIN; way < ROADS; way++) {
        long long mark = aof_mark(&server);
        ON_ROAD(way, "0", ENQUEUE(J1, "p"));
        ON_ROAD(way, KIND, ENQUEUE(USER, "p"));
        ON_ROAD(way, LEASE_MS, CLAIM("0"));
        ON_ROAD(way, MISMATCH, COMPLETE(J1, "2"));
        ON_ROAD(way, LOST, COMPLETE(J2, "0"));
        ON_ROAD(way, "0", COMPLETE(J3, "1"));
        ON_ROAD(way, "-ERR EMQ layout CLAIM key 1 must be emq:{q}:pending", "EMQ.CLAIM", "3",
                ACTIVE, ACTIVE, BASE, "1");
        ON_ROAD(way, "-ERR EMQ shape CLAIM expects 3 keys and 1 values", "EMQ.CLAIM", "2", PENDING,
                ACTIVE, BASE, "1");
        run(client, "HSET", META, "paused", "1", NULL);
        ON_ROAD(way, "[]", CLAIM("1000"));
        run(client, "DEL", META, NULL);
        expect_log(__LINE__, mark, "HSET " META " paused 1\nDEL " META);
    }
}

/* Several calls in one transaction or script are one MULTI/EXEC in the AOF. */
static void calls_in_one_step_replicate_in_one(void **state) {
    char effects[1024];
    char score[64];
    (void)state;
    long long mark = aof_mark(&server);
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "P"));
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "P"));
    EXPECT(client, "+QUEUED", CLAIM("60000"));
    EXPECT(client, "+QUEUED", COMPLETE(J1, "7"));
    EXPECT(client, "+QUEUED", "ZSCORE", ACTIVE, J1);
    EXPECT(client, "+QUEUED", COMPLETE(J1, "1"));
    redisReply *reply = call(client, "EXEC", NULL);
    (void)snprintf(score, sizeof(score), "%s", reply->element[4]->str);
    assert_int_equal(reply->element[5]->integer, 1);
    freeReplyObject(reply);
    (void)snprintf(effects, sizeof(effects),
                   "MULTI\nHSET " ROW(
                       J1) " state pending attempts 0 payload P\nZADD " PENDING " 0 " J1
                           "\nZREM " PENDING " " J1
                           "\nHSET " ROW(J1) " state active attempts 1 lease_epoch %s\nZADD " ACTIVE
                                             " %s " J1 "\nZREM " ACTIVE " " J1
                                             "\nDEL " ROW(J1) "\nHSET " COMPLETED " count 1\nEXEC",
                   get_run_id(), score);
    expect_log(__LINE__, mark, effects);
    mark = aof_mark(&server);
    EXPECT(client, "2", "EVAL",
           "return redis.call('EMQ.ENQUEUE', 2, KEYS[1], KEYS[2], ARGV[1], 'a') + "
           "redis.call('EMQ.ENQUEUE', 2, KEYS[3], KEYS[2], ARGV[2], 'b')",
           "3", ROW(J1), PENDING, ROW(J2), J1, J2);
    expect_log(__LINE__, mark,
               "MULTI\nHSET " ROW(J1) " state pending attempts 0 payload a\nZADD " PENDING " 0 " J1
                                      "\nHSET " ROW(
                                          J2) " state pending attempts 0 payload b\nZADD " PENDING
                                              " 0 " J2 "\nEXEC");
}

static void another_database_is_selected(void **state) {
    (void)state;
    run(client, "SET", "x", "y", NULL);
    run(client, "SELECT", "5", NULL);
    long long mark = aof_mark(&server);
    run(client, INSTALL, NULL);
    run(client, ENQUEUE(J1, "P"), NULL);
    char *got = aof_since_with_select(&server, mark);
    EXPECT_TEXT(got,
                "SELECT 5\nSET {emq}:version echomq:6.0.0\nMULTI\nHSET " ROW(
                    J1) " state pending attempts 0 payload P\nZADD " PENDING " 0 " J1 "\nEXEC");
    free(got);
}

/* ---- replicas and restarts ---- */

/* Some of everything: jobs in each state, orphans, log lines, another database, other queues. */
static void work_a_while(void) {
    for (int i = 0; i < 40; i++) {
        char id[32];
        char row[64];
        char payload[64];
        (void)snprintf(id, sizeof(id), "JOB%03d", i);
        (void)snprintf(row, sizeof(row), ROW("%s"), id);
        (void)snprintf(payload, sizeof(payload), "\\x00\\xff\\x0d\\x0a%d", i);
        EXPECT(client, "1", "EMQ.ENQUEUE", "2", row, PENDING, id, payload);
    }
    run(client, "ZADD", PENDING, "0", "JOB000-orphan", "0", "JOB005-orphan", NULL);
    for (int i = 0; i < 20; i++) {
        redisReply *reply = call(client, CLAIM("60000"), NULL);
        assert_int_equal(reply->elements, 3);
        if (i % 2 == 0) {
            char row[64];
            char logs[80];
            (void)snprintf(row, sizeof(row), ROW("%s"), reply->element[0]->str);
            (void)snprintf(logs, sizeof(logs), "%s:logs", row);
            run(client, "RPUSH", logs, "line", NULL);
            EXPECT(client, "1", "EMQ.COMPLETE", "3", ACTIVE, row, BASE, reply->element[0]->str,
                   "1");
        }
        freeReplyObject(reply);
    }
    run(client, "SELECT", "3", NULL);
    run(client, INSTALL, NULL);
    EXPECT(client, "1", ENQUEUE(J1, "three"));
    EXPECT(client, "[\"" J1 "\", \"three\", 1]", CLAIM("60000"));
    EXPECT(client, "1", ENQUEUE(J2, "three"));
    run(client, "SELECT", "0", NULL);
}

static void a_replica_is_equal(void **state) {
    test_server replica;
    char port[16];
    char text[64];
    char primary_digest[DIGEST_MAX];
    char replica_digest[DIGEST_MAX];
    (void)state;
    (void)snprintf(port, sizeof(port), "%d", server.port);
    EXPECT(client, "1", ENQUEUE(J1, "before the replica"));
    server_start(&replica, "--replica-of", port, NULL);
    EXPECT(client, "1", "WAIT", "1", "60000");
    work_a_while();
    EXPECT(client, "1", "WAIT", "1", "60000");
    (void)get_digest(primary_digest, &server);
    EXPECT_TEXT(get_digest(replica_digest, &replica), primary_digest);
    /* the replica refuses to write and tells what it serves */
    EXPECT(replica.admin, "-READONLY You can't write against a read only replica.",
           ENQUEUE(J3, "p"));
    EXPECT(replica.admin, "-READONLY You can't write against a read only replica.", CLAIM("1"));
    redisReply *reply = call(replica.admin, "EMQ.VERSION", NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
    /* promoted, it goes on with a run_id of its own */
    EXPECT(replica.admin, "+OK", "REPLICAOF", "NO", "ONE");
    reply = call(replica.admin, CLAIM("60000"), NULL);
    char row[64];
    (void)snprintf(row, sizeof(row), ROW("%s"), reply->element[0]->str);
    freeReplyObject(reply);
    char epoch[64];
    (void)get_text(epoch, sizeof(epoch), replica.admin, "HGET", row, "lease_epoch", NULL);
    EXPECT_TEXT(epoch, get_info(text, sizeof(text), replica.admin, "server", "run_id"));
    assert_string_not_equal(epoch, get_run_id());
    EXPECT(replica.admin, "1", ENQUEUE(J3, "p"));
    server_stop(&replica);
}

static int has_rewritten(void *data) {
    char text[32];
    (void)data;
    return strcmp(
               get_info(text, sizeof(text), server.admin, "persistence", "aof_rewrite_in_progress"),
               "0") == 0 &&
           strcmp(
               get_info(text, sizeof(text), server.admin, "persistence", "aof_rewrite_scheduled"),
               "0") == 0;
}

static void restart(void) {
    redisFree(client);
    server_restart(&server);
    client = server_connect(&server);
}

static void a_restart_from_the_aof_is_equal(void **state) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    char run_id[64];
    (void)state;
    work_a_while();
    (void)get_digest(before, &server);
    (void)snprintf(run_id, sizeof(run_id), "%s", get_run_id());
    restart();
    EXPECT_TEXT(get_digest(after, &server), before);
    /* a lease of before the restart is settled all the same; a new one is this run's */
    EXPECT(client, "1", COMPLETE("JOB001", "1"));
    EXPECT(client, "1", ENQUEUE("JOB0000", "p"));
    EXPECT(client, "[\"JOB0000\", \"p\", 1]", CLAIM("60000"));
    char epoch[64];
    EXPECT_TEXT(get_text(epoch, sizeof(epoch), client, "HGET", ROW("JOB0000"), "lease_epoch", NULL),
                get_run_id());
    assert_string_not_equal(epoch, run_id);
    run(server.admin, "BGREWRITEAOF", NULL);
    wait_until("the AOF is rewritten", has_rewritten, NULL);
    EXPECT(client, "1", ENQUEUE("JOB0001", "after the rewrite"));
    (void)get_digest(before, &server);
    restart();
    EXPECT_TEXT(get_digest(after, &server), before);
}

static void a_restart_from_a_snapshot_is_equal(void **state) {
    test_server snapshot;
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)state;
    server_start(&snapshot, "--conf", "appendonly no", "--conf", "save 3600 1", NULL);
    redisContext *usual = client;
    client = snapshot.admin;
    work_a_while();
    client = usual;
    (void)get_digest(before, &snapshot);
    server_restart(&snapshot);
    EXPECT_TEXT(get_digest(after, &snapshot), before);
    EXPECT(snapshot.admin, "1", COMPLETE("JOB001", "1"));
    server_stop(&snapshot);
}

/* ---- keyspace notifications ---- */

static redisContext *subscribe(const char *flags) {
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", flags, NULL);
    redisContext *c = server_connect(&server);
    run(c, "PSUBSCRIBE", "__keyevent@0__:*", NULL);
    return c;
}

/* The events up to the next call of this function, one a line: `hset emq:{q}:…`. */
static char *read_events(redisContext *subscriber) {
    char *events = NULL;
    append_text(&events, "");
    run(client, "SET", "the end", "x", NULL);
    for (;;) {
        void *received = NULL;
        assert_int_equal(redisGetReply(subscriber, &received), REDIS_OK);
        redisReply *reply = received;
        const char *event = strchr(reply->element[2]->str, ':') + 1;
        int is_end = strcmp(reply->element[3]->str, "the end") == 0;
        if (!is_end) {
            append_text(&events, events[0] == '\0' ? "" : "\n");
            append_text(&events, event);
            append_text(&events, " ");
            append_text(&events, reply->element[3]->str);
        }
        int is_set = strcmp(event, "set") == 0;
        freeReplyObject(reply);
        if (is_end && is_set) {
            return events;
        }
    }
}

static void expect_events(int source_line, redisContext *subscriber, const char *want) {
    char *got = read_events(subscriber);
    expect_text(__FILE__, source_line, got, want);
    free(got);
}

#define EVENTS(want) expect_events(__LINE__, subscriber, (want))

static void notifications_are_those_of_the_effects(void **state) {
    (void)state;
    redisContext *subscriber = subscribe("KEA");
    EVENTS("");
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EVENTS("hset " ROW(J1) "\nzadd " PENDING);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    EVENTS("hset " ROW(J2) "\nzadd " PENDING);
    run(client, CLAIM("60000"), NULL);
    EVENTS("zrem " PENDING "\nhset " ROW(J1) "\nzadd " ACTIVE);
    run(client, CLAIM("60000"), NULL);
    EVENTS("zrem " PENDING "\ndel " PENDING "\nhset " ROW(J2) "\nzadd " ACTIVE);
    EXPECT(client, "1", COMPLETE(J1, "1"));
    EVENTS("zrem " ACTIVE "\ndel " ROW(J1) "\nhset " COMPLETED);
    run(client, "RPUSH", LOGS(J2), "line", NULL);
    EVENTS("rpush " LOGS(J2));
    EXPECT(client, "1", COMPLETE(J2, "1"));
    EVENTS("zrem " ACTIVE "\ndel " ACTIVE "\ndel " ROW(J2) "\ndel " LOGS(J2) "\nhset " COMPLETED);
    run(client, "DEL", FENCE, NULL);
    EVENTS("del " FENCE);
    EXPECT(client, "1", INSTALL);
    EVENTS("set " FENCE);
    redisFree(subscriber);
}

static void notifications_of_orphans(void **state) {
    (void)state;
    redisContext *subscriber = subscribe("KEA");
    run(client, "ZADD", PENDING, "0", "JOB0", "0", "JOB00", NULL);
    EVENTS("zadd " PENDING);
    EXPECT(client, "[]", CLAIM("1000"));
    EVENTS("zrem " PENDING "\ndel " PENDING);
    run(client, "ZADD", PENDING, "0", "JOB0", "0", "JOB00", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EVENTS("zadd " PENDING "\nhset " ROW(J1) "\nzadd " PENDING);
    run(client, CLAIM("60000"), NULL);
    EVENTS("zrem " PENDING "\nzrem " PENDING "\ndel " PENDING "\nhset " ROW(J1) "\nzadd " ACTIVE);
    redisFree(subscriber);
}

/* In a transaction each call's events stand together, in the order of the calls. */
static void notifications_in_a_transaction(void **state) {
    (void)state;
    redisContext *subscriber = subscribe("KEA");
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "p"));
    EXPECT(client, "+QUEUED", CLAIM("1000"));
    EXPECT(client, "+QUEUED", COMPLETE(J1, "1"));
    run(client, "EXEC", NULL);
    EVENTS("hset " ROW(J1) "\nzadd " PENDING "\nzrem " PENDING "\ndel " PENDING "\nhset " ROW(
        J1) "\nzadd " ACTIVE "\nzrem " ACTIVE "\ndel " ACTIVE "\ndel " ROW(J1) "\nhset " COMPLETED);
    redisFree(subscriber);
}

/* What changes nothing tells nothing: not even that a key was looked for and missed. */
static void no_change_no_notification(void **state) {
    (void)state;
    lease_j1();
    redisContext *subscriber = subscribe("KEAm");
    run(client, ENQUEUE(J1, "p"), NULL);
    run(client, CLAIM("1000"), NULL);
    run(client, COMPLETE(J2, "1"), NULL);
    run(client, INSTALL, NULL);
    EXPECT(client, MISMATCH, COMPLETE(J1, "2"));
    EXPECT(client, KIND, ENQUEUE(USER, "p"));
    EVENTS("");
    run(client, "DEL", FENCE, NULL);
    EXPECT(client, FENCE_ABSENT, CLAIM("1"));
    EVENTS("del " FENCE);
    run(client, INSTALL, NULL);
    EVENTS("set " FENCE);
    redisFree(subscriber);
}

/* ---- WATCH and tracking ---- */

static redisContext *watcher;

#define EVERY_KEY PENDING, ACTIVE, META, COMPLETED, ROW(J1), ROW(J2), ROW(J3), LOGS(J1), BASE, FENCE

/* A transaction under WATCH goes through, or is given up. */
static void expect_watch(int source_line, const char *want) {
    EXPECT(watcher, "+OK", "MULTI");
    EXPECT(watcher, "+QUEUED", "PING");
    expect_reply(__FILE__, source_line, watcher, want, "EXEC", NULL);
}

#define WATCHED(want, keys, ...)                                                                   \
    do {                                                                                           \
        run(watcher, "WATCH", keys, NULL);                                                         \
        redisReply *reply_ = call(client, __VA_ARGS__, NULL);                                      \
        freeReplyObject(reply_);                                                                   \
        expect_watch(__LINE__, (want));                                                            \
    } while (0)

#define KEPT "[+PONG]"
#define BROKEN "nil"

static void a_call_that_changes_nothing_keeps_a_watch(void **state) {
    (void)state;
    watcher = server_connect(&server);
    WATCHED(KEPT, EVERY_KEY, CLAIM("1000"));
    lease_j1();
    WATCHED(KEPT, EVERY_KEY, ENQUEUE(J1, "p"));
    WATCHED(KEPT, EVERY_KEY, ENQUEUE(USER, "p"));
    WATCHED(KEPT, EVERY_KEY, CLAIM("1000"));
    WATCHED(KEPT, EVERY_KEY, CLAIM("0"));
    WATCHED(KEPT, EVERY_KEY, COMPLETE(J2, "1"));
    WATCHED(KEPT, EVERY_KEY, COMPLETE(J1, "2"));
    WATCHED(KEPT, EVERY_KEY, INSTALL);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    run(client, "HSET", META, "paused", "1", NULL);
    WATCHED(KEPT, EVERY_KEY, CLAIM("1000"));
    run(client, "DEL", META, NULL);
    run(client, "HSET", ROW(J1), "state", "dead", NULL);
    WATCHED(KEPT, EVERY_KEY, COMPLETE(J1, "1"));
    run(client, "HSET", ROW(J1), "state", "active", NULL);
    make_typed(COMPLETED, "string");
    WATCHED(KEPT, EVERY_KEY, COMPLETE(J1, "1"));
    run(client, "HSET", ROW(J2), "attempts", "x", NULL);
    WATCHED(KEPT, EVERY_KEY, CLAIM("1000"));
    redisFree(watcher);
}

static void a_call_that_writes_breaks_a_watch(void **state) {
    (void)state;
    watcher = server_connect(&server);
    WATCHED(BROKEN, ROW(J1), ENQUEUE(J1, "p"));
    WATCHED(BROKEN, PENDING, ENQUEUE(J2, "p"));
    WATCHED(BROKEN, PENDING, CLAIM("1000"));
    WATCHED(BROKEN, ACTIVE, CLAIM("1000"));
    WATCHED(BROKEN, ACTIVE, COMPLETE(J1, "1"));
    WATCHED(BROKEN, COMPLETED, COMPLETE(J2, "1"));
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WATCHED(BROKEN, ROW(J1), CLAIM("1000"));
    run(client, "RPUSH", LOGS(J1), "line", NULL);
    WATCHED(BROKEN, LOGS(J1), COMPLETE(J1, "1"));
    run(client, "DEL", FENCE, NULL);
    WATCHED(BROKEN, FENCE, INSTALL);
    /* only on the keys that it writes */
    WATCHED(KEPT, ACTIVE, ENQUEUE(J1, "p"));
    run(watcher, "WATCH", META, COMPLETED, FENCE, BASE, LOGS(J1), NULL);
    run(client, CLAIM("1000"), NULL);
    expect_watch(__LINE__, KEPT);
    run(watcher, "WATCH", PENDING, META, FENCE, BASE, LOGS(J1), NULL);
    run(client, COMPLETE(J1, "1"), NULL);
    expect_watch(__LINE__, KEPT);
    redisFree(watcher);
}

/* A client that keeps a row in a cache of its own hears that it changed. */
static void tracking_clients_are_told(void **state) {
    char id[32];
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    redisContext *listener = server_connect(&server);
    redisContext *reader = server_connect(&server);
    (void)snprintf(id, sizeof(id), "%lld", get_integer(listener, "CLIENT", "ID", NULL));
    run(listener, "SUBSCRIBE", "__redis__:invalidate", NULL);
    run(reader, "CLIENT", "TRACKING", "ON", "REDIRECT", id, NULL);
    EXPECT(reader, "\"pending\"", "HGET", ROW(J1), "state");
    run(client, CLAIM("1000"), NULL);
    void *received = NULL;
    assert_int_equal(redisGetReply(listener, &received), REDIS_OK);
    char *text = reply_to_text(received);
    EXPECT_TEXT(text, "[\"message\", \"__redis__:invalidate\", [\"" ROW(J1) "\"]]");
    free(text);
    freeReplyObject(received);
    redisFree(reader);
    redisFree(listener);
}

/* ---- The age of keys, and keys past their time ---- */

#define IDLE 1000

static void make_idle(const char *key) {
    redisReply *value = call(client, "DUMP", key, NULL);
    redisReply *answer = redisCommand(client, "RESTORE %s 0 %b REPLACE IDLETIME %d", key,
                                      value->str, (size_t)value->len, IDLE);
    assert_string_equal(answer->str, "OK");
    freeReplyObject(value);
    freeReplyObject(answer);
}

static int is_idle(const char *key) {
    return get_integer(client, "OBJECT", "IDLETIME", key, NULL) >= IDLE;
}

/* What is only looked at gets no younger, and what is written does. */
static void an_effect_touches_its_key(void **state) {
    static const char *const keys[] = {PENDING, ACTIVE, COMPLETED, ROW(J1), ROW(J2), FENCE};
    const size_t count = sizeof(keys) / sizeof(keys[0]);
    (void)state;
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    EXPECT(client, "[\"" J2 "\", \"p\", 1]", CLAIM("1000"));
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    run(client, "HSET", COMPLETED, "count", "5", NULL);
    for (size_t i = 0; i < count; i++) {
        make_idle(keys[i]);
    }
    EXPECT(client, "0", ENQUEUE(J1, "p"));
    EXPECT(client, LEASE_MS, CLAIM("0"));
    EXPECT(client, MISMATCH, COMPLETE(J2, "2"));
    EXPECT(client, LOST, COMPLETE(J1, "0"));
    WHILE_PAUSED(PAUSED, CLAIM("1000"));
    WHILE_PAUSED(PAUSED, COMPLETE(J2, "1"));
    for (size_t i = 0; i < count; i++) {
        assert_true(is_idle(keys[i]));
    }
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    assert_false(is_idle(PENDING));
    make_idle(PENDING);
    EXPECT(client, "[\"" J1 "\", \"p\", 1]", CLAIM("1000"));
    assert_false(is_idle(PENDING) || is_idle(ROW(J1)) || is_idle(ACTIVE));
    make_idle(ACTIVE);
    EXPECT(client, "1", COMPLETE(J2, "1"));
    assert_false(is_idle(ACTIVE) || is_idle(COMPLETED));
    assert_true(is_idle(FENCE));
}

static long long get_frequency(const char *key) {
    return get_integer(client, "OBJECT", "FREQ", key, NULL);
}

/* The same where the server counts how often a key is used: each use counts here, and none is
 * forgotten. */
static void an_effect_counts_as_a_use(void **state) {
    (void)state;
    run(server.admin, "CONFIG", "SET", "maxmemory-policy", "allkeys-lfu", "lfu-log-factor", "0",
        "lfu-decay-time", "0", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    EXPECT(client, "[\"" J1 "\", \"p\", 1]", CLAIM("60000"));
    long long pending = get_frequency(PENDING);
    long long active = get_frequency(ACTIVE);
    long long row = get_frequency(ROW(J2));
    EXPECT(client, LEASE_MS, CLAIM("0"));
    EXPECT(client, MISMATCH, COMPLETE(J1, "2"));
    EXPECT(client, LOST, COMPLETE(J2, "0"));
    assert_int_equal(get_frequency(PENDING), pending);
    assert_int_equal(get_frequency(ACTIVE), active);
    assert_int_equal(get_frequency(ROW(J2)), row);
    EXPECT(client, "[\"" J2 "\", \"p\", 1]", CLAIM("60000"));
    assert_true(get_frequency(PENDING) > pending);
    assert_true(get_frequency(ACTIVE) > active);
    assert_true(get_frequency(ROW(J2)) > row);
    run(server.admin, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
}

/* A set and a counter past their time are none: what comes in their place starts anew. */
static void keys_past_their_time_are_written_anew(void **state) {
    (void)state;
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    pass_expiry(PENDING);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    EXPECT(client, "[\"" J2 "\"]", "ZRANGE", PENDING, "0", "-1");
    EXPECT(client, "-1", "PTTL", PENDING);
    run(client, "ZADD", ACTIVE, "5", J3, NULL);
    pass_expiry(ACTIVE);
    EXPECT(client, "[\"" J2 "\", \"p\", 1]", CLAIM("1000"));
    EXPECT(client, "1", "ZCARD", ACTIVE);
    EXPECT(client, "-1", "PTTL", ACTIVE);
    run(client, "HSET", COMPLETED, "count", "7", NULL);
    pass_expiry(COMPLETED);
    EXPECT(client, "1", COMPLETE(J2, "1"));
    EXPECT(client, "\"1\"", "HGET", COMPLETED, "count");
    EXPECT(client, "-1", "PTTL", COMPLETED);
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_road_gives_the_same),
        TEST(each_road_refuses_the_same),
        TEST(calls_in_one_step_replicate_in_one),
        TEST(another_database_is_selected),
        TEST(a_replica_is_equal),
        TEST(a_restart_from_the_aof_is_equal),
        TEST(a_restart_from_a_snapshot_is_equal),
        TEST(notifications_are_those_of_the_effects),
        TEST(notifications_of_orphans),
        TEST(notifications_in_a_transaction),
        TEST(no_change_no_notification),
        TEST(a_call_that_changes_nothing_keeps_a_watch),
        TEST(a_call_that_writes_breaks_a_watch),
        TEST(tracking_clients_are_told),
        TEST(an_effect_touches_its_key),
        TEST(an_effect_counts_as_a_use),
        TEST(keys_past_their_time_are_written_anew),
    };
    return RUN_SERVER_TESTS("effects", tests, start_server, stop_server);
}
