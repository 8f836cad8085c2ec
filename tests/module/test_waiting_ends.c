/* SPDX-License-Identifier: Apache-2.0 */
/* How a wait ends without work, or does not begin: the client goes, the server changes, the keys or
 * the rights do; and where a claim must not block at all. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "waiting.h"

#ifndef CALLER_MODULE
#define CALLER_MODULE ""
#endif

#define JOB_1 JOB(J1, "p", "1")
#define JOB_2 JOB(J2, "p", "1")

static int start_server_with_caller(void **state) {
    (void)state;
    if (CALLER_MODULE[0] == '\0') {
        server_start(&server, "--conf", "enable-module-command local", NULL);
    } else {
        server_start(&server, "--conf", "enable-module-command local", "--conf",
                     "loadmodule \"" CALLER_MODULE "\"", NULL);
    }
    client = server_connect(&server);
    return 0;
}

static void kill_client(long long id) {
    char number[32];
    (void)snprintf(number, sizeof(number), "%lld", id);
    run(client, "CLIENT", "KILL", "ID", number, NULL);
}

/* Adds a waiter and tells its id. */
static redisContext *add_known_waiter(char *id, size_t cap) {
    redisContext *c = add_client();
    (void)snprintf(id, cap, "%lld", get_integer(c, "CLIENT", "ID", NULL));
    BLOCK(c, WAITING_CLAIM("1"));
    return c;
}

/* ---- calls that never block ---- */

#define COUNT "-ERR EMQ count must be an integer from 1 to 1000"
#define TIMEOUT_MS "-ERR EMQ timeout_ms must be an integer from 0 to 3600000"
#define CLAIMS_SHAPE "-ERR EMQ shape CLAIMS expects 3 keys and 2 or 3 values"

static void a_refused_call_does_not_block(void **state) {
    (void)state;
    static const char *const refused[] = {"x", "-1", "+1", "01", " 1", "1.0", ""};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        EXPECT_UNCHANGED(&server, client, LEASE_MS, CLAIMS(refused[i], "1", "60000"));
        EXPECT_UNCHANGED(&server, client, COUNT, CLAIMS("1", refused[i], "60000"));
        EXPECT_UNCHANGED(&server, client, TIMEOUT_MS, CLAIMS("1", "1", refused[i]));
    }
    EXPECT_UNCHANGED(&server, client, LEASE_MS, CLAIMS("0", "1", "60000"));
    EXPECT_UNCHANGED(&server, client, LEASE_MS, CLAIMS("2147483648", "1", "60000"));
    EXPECT_UNCHANGED(&server, client, COUNT, CLAIMS("1", "0", "60000"));
    EXPECT_UNCHANGED(&server, client, COUNT, CLAIMS("1", "1001", "60000"));
    EXPECT_UNCHANGED(&server, client, TIMEOUT_MS, CLAIMS("1", "1", "3600001"));
    EXPECT_UNCHANGED(&server, client, "-ERR EMQ layout CLAIMS key 2 must be emq:{q}:active",
                     "EMQ.CLAIMS", "3", PENDING, DEAD, BASE, "1", "1", "60000");
    EXPECT_UNCHANGED(&server, client, CLAIMS_SHAPE, CLAIMS("1", "1", "60000", "1"));
    make_typed(PENDING, "hash");
    EXPECT_UNCHANGED(&server, client, WRONGTYPE, WAITING_CLAIM("1"));
    run(client, "DEL", PENDING, NULL);
    make_typed(META, "string");
    EXPECT_UNCHANGED(&server, client, WRONGTYPE, WAITING_CLAIM("1"));
    run(client, "SET", FENCE, "x", NULL);
    EXPECT_UNCHANGED(&server, client, FENCE_FOUND "x", WAITING_CLAIM("1"));
    run(client, "DEL", FENCE, NULL);
    EXPECT_UNCHANGED(&server, client, FENCE_ABSENT, WAITING_CLAIM("1"));
    assert_int_equal(get_stat("blocked_claims"), 0);
}

/* The rights of a claim that waits, each of which can be left out. */
#define RIGHTS 6
static const char *const rights[RIGHTS] = {
    "~" PENDING, "~" ACTIVE, "~" BASE, "%R~" META, "~" BASE "job:*", "%R~" FENCE,
};
static const char *const right_objects[RIGHTS] = {PENDING, ACTIVE, BASE, META, ROW(J1), FENCE};
#define RIGHT_TO_ROWS 4

static void write_rules(char *out, size_t cap, int but) {
    (void)snprintf(out, cap, "+@emq");
    for (int i = 0; i < RIGHTS; i++) {
        if (i != but) {
            size_t used = strlen(out);
            (void)snprintf(out + used, cap - used, " %s", rights[i]);
        }
    }
}

static void a_call_without_a_right_does_not_block(void **state) {
    (void)state;
    for (int i = 0; i < RIGHTS; i++) {
        char rules[512];
        char object[256];
        if (i == RIGHT_TO_ROWS) {
            continue; /* there is no row to be reached */
        }
        write_rules(rules, sizeof(rules), i);
        redisContext *user = add_client_as("tester", rules);
        run(server.admin, "ACL", "LOG", "RESET", NULL);
        EXPECT_UNCHANGED(&server, user, NO_KEY, WAITING_CLAIM("1"));
        assert_int_equal(read_acl_log(object, sizeof(object)), 1);
        EXPECT_TEXT(object, right_objects[i]);
        close_client(user);
    }
}

static void a_transaction_answers_without_blocking(void **state) {
    (void)state;
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", WAITING_CLAIM("1"));
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "p"));
    EXPECT(client, "+QUEUED", WAITING_CLAIM("1"));
    EXPECT(client, "+QUEUED", WAITING_CLAIM("1"));
    EXPECT(client, "[[], 1, [" JOB_1 "], []]", "EXEC");
    assert_int_equal(get_stat("blocked_claims"), 0);
}

#define SCRIPT(text) "EVAL", text, "3", PENDING, ACTIVE, BASE
#define SCRIPTED_CLAIM                                                                             \
    "return server.call('EMQ.CLAIMS', 3, KEYS[1], KEYS[2], KEYS[3], 60000, 1, 60000)"

static void a_script_answers_without_blocking(void **state) {
    (void)state;
    EXPECT_UNCHANGED(&server, client, "[]", SCRIPT(SCRIPTED_CLAIM));
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", SCRIPT(SCRIPTED_CLAIM));
    EXPECT(client, "[[]]", "EXEC");
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "[" JOB_1 "]", SCRIPT(SCRIPTED_CLAIM));
    assert_int_equal(get_stat("blocked_claims"), 0);
}

static void another_modules_call_answers_without_blocking(void **state) {
    (void)state;
    if (CALLER_MODULE[0] == '\0') {
        skip();
    }
    EXPECT(client, "[]", "CALLER.CALL", WAITING_CLAIM("1"));
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", "CALLER.CALL", WAITING_CLAIM("1"));
    EXPECT(client, "[[]]", "EXEC");
    EXPECT(client, "[]", "EVAL",
           "return server.call('CALLER.CALL', 'EMQ.CLAIMS', 3, KEYS[1], KEYS[2], KEYS[3], 60000, "
           "1, 60000)",
           "3", PENDING, ACTIVE, BASE);
    assert_int_equal(get_stat("blocked_claims"), 0);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "[" JOB_1 "]", "CALLER.CALL", WAITING_CLAIM("1"));
    /* and an admission that another module makes wakes */
    redisContext *waiter = add_waiter("1");
    EXPECT(client, "1", "CALLER.CALL", ENQUEUE(J2, "p"));
    WAKES_WITH(waiter, "[" JOB_2 "]");
}

/* The bytes that come back, up to this end. */
static char *exchange(redisContext *c, const char *line, const char *end) {
    char *got = NULL;
    append_text(&got, "");
    assert_int_equal(write(c->fd, line, strlen(line)), strlen(line));
    while (strstr(got, end) == NULL) {
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

#define INLINE_CLAIM "EMQ.CLAIMS 3 " PENDING " " ACTIVE " " BASE " 60000 1 60000\r\n"

static void a_subscribed_connection_answers_without_blocking(void **state) {
    (void)state;
    redisContext *c = add_client();
    free(exchange(c, "HELLO 3\r\nPING\r\n", "+PONG\r\n"));
    free(exchange(c, "SUBSCRIBE news\r\nPING\r\n", "+PONG\r\n"));
    char *got = exchange(c, INLINE_CLAIM "PING\r\n", "+PONG\r\n");
    EXPECT_TEXT(got, "*0\r\n+PONG\r\n");
    free(got);
    assert_int_equal(get_stat("blocked_claims"), 0);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    free(exchange(c, "UNSUBSCRIBE news\r\nPING\r\n", "+PONG\r\n"));
    got = exchange(c, INLINE_CLAIM "PING\r\n", "+PONG\r\n");
    EXPECT_TEXT(got, "*1\r\n*3\r\n$14\r\n" J1 "\r\n$1\r\np\r\n:1\r\n+PONG\r\n");
    free(got);
}

/* A connection of RESP3 waits and is served like any other. */
static void a_resp3_connection_waits(void **state) {
    (void)state;
    redisContext *c = add_client();
    free(exchange(c, "HELLO 3\r\nPING\r\n", "+PONG\r\n"));
    assert_int_equal(write(c->fd, INLINE_CLAIM, strlen(INLINE_CLAIM)), strlen(INLINE_CLAIM));
    wait_blocked(1);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    char *got = exchange(c, "PING\r\n", "+PONG\r\n");
    EXPECT_TEXT(got, "*1\r\n*3\r\n$14\r\n" J1 "\r\n$1\r\np\r\n:1\r\n+PONG\r\n");
    free(got);
}

/* ---- the cap ---- */

#define CAP 512

static void a_queue_has_so_many_waiters_at_most(void **state) {
    (void)state;
    redisContext *first = add_client();
    BLOCK(first, WAITING_CLAIM("1"));
    for (int i = 1; i < CAP; i++) {
        SEND(add_client(), WAITING_CLAIM("1"));
    }
    wait_blocked(CAP);
    redisContext *next = add_client();
    EXPECT_UNCHANGED(&server, next, "[]", WAITING_CLAIM("1"));
    /* another queue, and the same one of another database */
    redisContext *other = add_client();
    BLOCK(other, "EMQ.CLAIMS", "3", "emq:{other}:pending", "emq:{other}:active",
          "emq:{other}:", "60000", "1", "60000");
    run(client, "SELECT", "1", NULL);
    run(client, INSTALL, NULL);
    run(client, "SELECT", "0", NULL);
    redisContext *elsewhere = add_client();
    run(elsewhere, "SELECT", "1", NULL);
    BLOCK(elsewhere, WAITING_CLAIM("1"));
    /* who was served makes room, and so does who went away */
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(first, "[" JOB_1 "]");
    BLOCK(next, WAITING_CLAIM("1"));
    EXPECT(first, "[]", WAITING_CLAIM("1"));
    close_client(next);
    wait_blocked(CAP + 1);
    BLOCK(first, WAITING_CLAIM("1"));
}

/* ---- the client ends it ---- */

static void client_unblock_ends_the_wait(void **state) {
    (void)state;
    char id[32];
    redisContext *c = add_known_waiter(id, sizeof(id));
    redisContext *behind = add_waiter("1");
    EXPECT(client, "1", "CLIENT", "UNBLOCK", id);
    WAKES_WITH(c, "[]");
    BLOCK(c, WAITING_CLAIM("1"));
    EXPECT(client, "1", "CLIENT", "UNBLOCK", id, "TIMEOUT");
    WAKES_WITH(c, "[]");
    BLOCK(c, WAITING_CLAIM("1"));
    EXPECT(client, "1", "CLIENT", "UNBLOCK", id, "ERROR");
    WAKES_WITH(c, UNBLOCKED);
    EXPECT(client, "0", "CLIENT", "UNBLOCK", id);
    assert_int_equal(get_stat("blocked_claims"), 1);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    STILL_WAITING(c);
    WAKES_WITH(behind, "[" JOB_1 "]");
}

/* In the transaction of the admission, in front of it and behind it. */
static void client_unblock_beside_the_admission(void **state) {
    for (int unblock_first = 0; unblock_first <= 1; unblock_first++) {
        for (int error = 0; error <= 1; error++) {
            char id[32];
            assert_int_equal(clean_slate(state), 0);
            redisContext *c = add_known_waiter(id, sizeof(id));
            redisContext *behind = add_waiter("1");
            run(client, "MULTI", NULL);
            if (!unblock_first) {
                run(client, ENQUEUE(J1, "p"), NULL);
            }
            run(client, "CLIENT", "UNBLOCK", id, error ? "ERROR" : "TIMEOUT", NULL);
            if (unblock_first) {
                run(client, ENQUEUE(J1, "p"), NULL);
            }
            EXPECT(client, "[1, 1]", "EXEC");
            WAKES_WITH(c, error ? UNBLOCKED : "[]");
            WAKES_WITH(behind, "[" JOB_1 "]");
            STILL_WAITING(c);
        }
    }
}

static void a_killed_client_takes_nothing(void **state) {
    (void)state;
    redisContext *c = add_client();
    long long id = get_integer(c, "CLIENT", "ID", NULL);
    BLOCK(c, WAITING_CLAIM("1"));
    redisContext *behind = add_waiter("1");
    kill_client(id);
    WAKES_WITH(c, CLOSED);
    wait_blocked(1);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(behind, "[" JOB_1 "]");
}

static void a_closed_connection_takes_nothing(void **state) {
    (void)state;
    redisContext *c = add_waiter("1");
    close_client(c);
    wait_blocked(0);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "[\"" J1 "\"]", "ZRANGE", PENDING, "0", "-1");
    EXPECT(client, "[" JOB_1 "]", WAITING_CLAIM("1"));
}

/* The kill and the admission in one transaction, either way round. */
static void a_client_killed_beside_the_admission_takes_nothing(void **state) {
    for (int kill_first = 0; kill_first <= 1; kill_first++) {
        char id[32];
        assert_int_equal(clean_slate(state), 0);
        redisContext *c = add_known_waiter(id, sizeof(id));
        redisContext *behind = add_waiter("1");
        run(client, "MULTI", NULL);
        if (!kill_first) {
            run(client, ENQUEUE(J1, "p"), NULL);
        }
        run(client, "CLIENT", "KILL", "ID", id, NULL);
        if (kill_first) {
            run(client, ENQUEUE(J1, "p"), NULL);
        }
        EXPECT(client, "[1, 1]", "EXEC");
        WAKES_WITH(c, CLOSED);
        WAKES_WITH(behind, "[" JOB_1 "]");
        EXPECT(client, "1", "ZCARD", ACTIVE);
    }
}

static int is_job_1_away(void *data) {
    (void)data;
    return get_integer(client, "EXISTS", PENDING, NULL) == 0;
}

/* Whether the server hears of the hang-up before or behind the admission is not for a client to
 * say: the job goes to the next, or it is under the lease of the one who is gone. */
static void a_hang_up_at_the_admission_loses_nothing(void **state) {
    for (int round = 0; round < 20; round++) {
        assert_int_equal(clean_slate(state), 0);
        redisContext *c = add_waiter("1");
        redisContext *behind = add_waiter("1");
        assert_int_equal(shutdown(c->fd, SHUT_RDWR), 0);
        EXPECT(client, "1", ENQUEUE(J1, "p"));
        wait_until("the job is handed out", is_job_1_away, NULL);
        close_client(c);
        EXPECT(client, "[\"" J1 "\"]", "ZRANGE", ACTIVE, "0", "-1");
        FIELD(J1, "attempts", "\"1\"");
        EXPECT(client, "1", ENQUEUE(J2, "p"));
        settle_down();
        char *got = read_answer(behind);
        assert_true(strcmp(got, "[" JOB_1 "]") == 0 || strcmp(got, "[" JOB_2 "]") == 0);
        free(got);
        close_client(behind);
    }
}

/* The client is killed in the same event-loop round in which it was served, before it hears. */
static void a_kill_right_behind_the_hand_over_loses_nothing(void **state) {
    (void)state;
    char id[32];
    redisContext *c = add_known_waiter(id, sizeof(id));
    redisContext *behind = add_waiter("1");
    SEND(client, ENQUEUE(J1, "p"));
    SEND(client, "CLIENT", "KILL", "ID", id);
    WAKES_WITH(client, "1");
    WAKES_WITH(client, "1");
    free(read_answer(c)); /* the job or nothing: the kill may overtake it */
    EXPECT(client, "[\"" J1 "\"]", "ZRANGE", ACTIVE, "0", "-1");
    STILL_WAITING(behind);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(behind, "[" JOB_2 "]");
}

/* ---- keys ---- */

static void flushall_keeps_waiting(void **state) {
    (void)state;
    redisContext *c = add_waiter("1");
    run(server.admin, "FLUSHALL", NULL);
    STILL_WAITING(c);
    EXPECT(client, FENCE_ABSENT, ENQUEUE(J1, "p"));
    STILL_WAITING(c);
    EXPECT(client, "1", INSTALL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(c, "[" JOB_1 "]");
}

static void a_deleted_set_keeps_waiting(void **state) {
    (void)state;
    EXPECT(client, "1", PAUSE);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    redisContext *c = add_waiter("1");
    EXPECT(client, "1", "DEL", PENDING);
    EXPECT(client, "1", RESUME);
    STILL_WAITING(c);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(c, "[" JOB_2 "]");
}

/* In one transaction: the key is gone before anybody looks. */
static void a_set_that_is_gone_again_keeps_waiting(void **state) {
    (void)state;
    redisContext *c = add_waiter("1");
    run(client, "MULTI", NULL);
    run(client, ENQUEUE(J1, "p"), NULL);
    run(client, "DEL", PENDING, NULL);
    run(client, "EXEC", NULL);
    STILL_WAITING(c);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(c, "[" JOB_2 "]");
}

static void a_string_in_place_of_the_set_keeps_waiting(void **state) {
    (void)state;
    redisContext *c = add_waiter("1");
    EXPECT(client, "+OK", "SET", PENDING, "x");
    STILL_WAITING(c);
    EXPECT(client, WRONGTYPE, ENQUEUE(J1, "p"));
    STILL_WAITING(c);
    EXPECT(client, "1", "DEL", PENDING);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(c, "[" JOB_1 "]");
}

static void a_list_in_place_of_the_set_is_refused(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    EXPECT(client, "1", "RPUSH", PENDING, "x");
    WAKES_WITH(first, WRONGTYPE);
    WAKES_WITH(second, WRONGTYPE);
    EXPECT(client, "1", "LLEN", PENDING);
}

static void wrong_types_met_at_a_wake_are_refused(void **state) {
    static const char *const keys[] = {META, ACTIVE, ROW(J1)};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_int_equal(clean_slate(state), 0);
        redisContext *c = add_waiter("1");
        run(client, "HSET", ROW(J1), "attempts", "0", "payload", "p", NULL);
        make_typed(keys[i], "list");
        EXPECT(client, "1", "ZADD", PENDING, "0", J1);
        WAKES_WITH(c, WRONGTYPE);
        EXPECT(client, "1", "ZCARD", PENDING);
    }
    /* a row that can't be claimed, likewise */
    assert_int_equal(clean_slate(state), 0);
    redisContext *c = add_waiter("1");
    run(client, "HSET", ROW(J1), "attempts", "x", NULL);
    EXPECT(client, "1", "ZADD", PENDING, "0", J1);
    WAKES_WITH(c, ATTEMPTS);
}

static void a_rewritten_fence_is_noticed_at_the_wake(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    run(client, "HSET", ROW(J1), "attempts", "0", "payload", "p", NULL);
    EXPECT(client, "+OK", "SET", FENCE, "echomq:7.0.0");
    STILL_WAITING(first);
    EXPECT(client, FENCE_FOUND "echomq:7.0.0", ENQUEUE(J2, "p"));
    STILL_WAITING(first);
    EXPECT(client, "1", "ZADD", PENDING, "0", J1);
    WAKES_WITH(first, FENCE_FOUND "echomq:7.0.0");
    EXPECT(client, "1", "DEL", FENCE);
    EXPECT(client, "1", "DEL", PENDING);
    EXPECT(client, "1", INSTALL);
    redisContext *second = add_waiter("1");
    EXPECT(client, "1", "DEL", FENCE);
    EXPECT(client, "1", "ZADD", PENDING, "0", J1);
    WAKES_WITH(second, FENCE_ABSENT);
    make_typed(FENCE, "list");
    EXPECT(client, WRONGTYPE, WAITING_CLAIM("1"));
    run(client, "DEL", FENCE, NULL);
    EXPECT(client, "1", INSTALL);
    EXPECT(client, "[" JOB_1 "]", WAITING_CLAIM("1"));
}

/* ---- rights ---- */

/* What ACL LOG holds: so many entries, the newest for this reason and object, about this user. */
static void expect_acl_log(size_t count, const char *reason, const char *object) {
    redisReply *log = call(server.admin, "ACL", "LOG", NULL);
    assert_int_equal(log->elements, count);
    redisReply *const *entry = log->element[0]->element;
    for (size_t i = 0; i + 1 < log->element[0]->elements; i += 2) {
        const char *name = entry[i]->str;
        const char *want = strcmp(name, "reason") == 0     ? reason
                           : strcmp(name, "object") == 0   ? object
                           : strcmp(name, "username") == 0 ? "tester"
                                                           : NULL;
        if (want != NULL) {
            EXPECT_TEXT(entry[i + 1]->str, want);
        }
    }
    freeReplyObject(log);
}

static redisContext *add_tester(void) {
    char rules[512];
    write_rules(rules, sizeof(rules), -1);
    redisContext *c = add_client_as("tester", rules);
    BLOCK(c, WAITING_CLAIM("1"));
    return c;
}

static void a_key_withdrawn_is_refused_at_the_wake(void **state) {
    for (int but = 0; but < RIGHTS; but++) {
        assert_int_equal(clean_slate(state), 0);
        redisContext *tester = add_tester();
        redisContext *behind = add_waiter("1");
        run(server.admin, "ACL", "SETUSER", "tester", "resetkeys", NULL);
        for (int i = 0; i < RIGHTS; i++) {
            if (i != but) {
                run(server.admin, "ACL", "SETUSER", "tester", rights[i], NULL);
            }
        }
        STILL_WAITING(tester);
        EXPECT(client, "1", ENQUEUE(J1, "p"));
        WAKES_WITH(tester, NO_KEY);
        expect_acl_log(1, "key", right_objects[but]);
        WAKES_WITH(behind, "[" JOB_1 "]");
        FIELD(J1, "attempts", "\"1\"");
        close_client(tester);
    }
}

/* The half of a right is not the right. */
static void a_key_that_may_only_be_read_is_refused_at_the_wake(void **state) {
    static const char *const halves[] = {"%R~" PENDING, "%W~" PENDING,  "%R~" ACTIVE, "%W~" ACTIVE,
                                         "%R~" BASE,    "%R~" ROW("*"), "%W~" META,   "%W~" FENCE};
    static const int rights_of[] = {0, 0, 1, 1, 2, 4, 3, 5};
    for (size_t half = 0; half < sizeof(halves) / sizeof(halves[0]); half++) {
        assert_int_equal(clean_slate(state), 0);
        redisContext *tester = add_tester();
        redisContext *behind = add_waiter("1");
        run(server.admin, "ACL", "SETUSER", "tester", "resetkeys", halves[half], NULL);
        for (int i = 0; i < RIGHTS; i++) {
            if (i != rights_of[half]) {
                run(server.admin, "ACL", "SETUSER", "tester", rights[i], NULL);
            }
        }
        EXPECT(client, "1", ENQUEUE(J1, "p"));
        WAKES_WITH(tester, NO_KEY);
        expect_acl_log(1, "key", right_objects[rights_of[half]]);
        WAKES_WITH(behind, "[" JOB_1 "]");
        close_client(tester);
    }
}

/* The refusal and the entry are those that the server has for a call. */
static void a_verb_withdrawn_is_refused_at_the_wake(void **state) {
    static const struct {
        const char *rule;
        const char *reason;
    } rules[] = {{"-emq.claims", "command"},
                 {"-@emq", "command"},
                 {"-@all", "command"},
                 {"-@blocking", "command"},
                 {"db=9", "database"}};
    size_t count = sizeof(rules) / sizeof(rules[0]) - (is_before_9_1() ? 1 : 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(clean_slate(state), 0);
        redisContext *tester = add_tester();
        redisContext *second = add_client();
        run(second, "AUTH", "tester", "password", NULL);
        redisContext *behind = add_waiter("1");
        run(server.admin, "ACL", "SETUSER", "tester", rules[i].rule, NULL);
        STILL_WAITING(tester);
        redisReply *refusal = call(second, WAITING_CLAIM("1"), NULL);
        char *want = reply_to_text(refusal);
        freeReplyObject(refusal);
        assert_int_equal(strncmp(want, "-NOPERM ", 8), 0);
        expect_acl_log(1, rules[i].reason, "EMQ.CLAIMS");
        run(server.admin, "ACL", "LOG", "RESET", NULL);
        EXPECT(client, "1", ENQUEUE(J1, "p"));
        WAKES_WITH(tester, want);
        expect_acl_log(1, rules[i].reason, "EMQ.CLAIMS");
        WAKES_WITH(behind, "[" JOB_1 "]");
        close_client(tester);
        free(want);
    }
}

/* A pause or an empty set is no reason to keep a client whose right is gone: the wake says so. */
/* The log has the verb by its own name, however the client spelled it. */
static void a_verb_in_small_letters_is_logged_by_its_name(void **state) {
    (void)state;
    redisContext *tester = add_client_as("tester", WORKER);
    BLOCK(tester, "emq.claims", "3", PENDING, ACTIVE, BASE, "60000", "1", "60000");
    run(server.admin, "ACL", "SETUSER", "tester", "-emq.claims", NULL);
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(tester, "-NOPERM User tester has no permissions to run the 'EMQ.CLAIMS' command");
    expect_acl_log(1, "command", "EMQ.CLAIMS");
}

/* As at a call: what one selector has is not added to what another one has. */
static void rights_split_over_selectors_are_refused_at_the_wake(void **state) {
    (void)state;
    if (is_before_9_1()) {
        skip();
    }
    redisContext *tester = add_tester();
    redisContext *second = add_client();
    run(second, "AUTH", "tester", "password", NULL);
    run(server.admin, "ACL", "SETUSER", "tester", "resetkeys", "-@all",
        "(+@emq ~" PENDING " %R~" FENCE ")", "(+@emq ~" ACTIVE " ~" BASE ")", NULL);
    EXPECT(second, NO_KEY, WAITING_CLAIM("1"));
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(tester, NO_KEY);
    expect_acl_log(1, "key", PENDING);
}

static void a_right_withdrawn_stands_in_front_of_the_pause(void **state) {
    (void)state;
    redisContext *tester = add_tester();
    EXPECT(client, "1", PAUSE);
    run(server.admin, "ACL", "SETUSER", "tester", "-emq.claims", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    char *got = read_answer(tester);
    assert_int_equal(strncmp(got, "-NOPERM ", 8), 0);
    free(got);
    EXPECT(client, "1", "ZCARD", PENDING);
}

/* The server closes the connections of a user who is no more. */
static void a_deleted_user_takes_nothing(void **state) {
    (void)state;
    redisContext *tester = add_tester();
    redisContext *behind = add_waiter("1");
    run(server.admin, "ACL", "DELUSER", "tester", NULL);
    WAKES_WITH(tester, CLOSED);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(behind, "[" JOB_1 "]");
}

/* A server at maxmemory can be worked empty: jobs still come by promotion, and are claimed. */
static void full_memory_does_not_end_the_wait(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    make_job(J1, "scheduled", SCHEDULE, "1"); /* no verb's, which would be news to who waits */
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    EXPECT(client, OOM, ENQUEUE(J2, "p"));
    STILL_WAITING(first);
    EXPECT(client, "1", PROMOTE("10"));
    WAKES_WITH(first, ONE_JOB(J1, "p", "4"));
    redisContext *second = add_waiter("1");
    EXPECT(client, "1", REQUEUE(J1, "4"));
    WAKES_WITH(second, ONE_JOB(J1, "p", "5"));
}

/* ---- the server ---- */

#define ROLE_CHANGED                                                                               \
    "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> "         \
    "replica?)"

static void a_role_change_unblocks(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    run(server.admin, "REPLICAOF", "127.0.0.1", "1", NULL);
    WAKES_WITH(first, ROLE_CHANGED);
    WAKES_WITH(second, ROLE_CHANGED);
    WAKES_WITH(first, CLOSED);
    wait_blocked(0);
    run(server.admin, "REPLICAOF", "NO", "ONE", NULL);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "[" JOB_1 "]", WAITING_CLAIM("1"));
    redisContext *third = add_waiter("1");
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(third, "[" JOB_2 "]");
}

/* With the job handed over in the same transaction, the error follows behind the job: a client
 * whose claim is answered closes a connection on which more comes. */
static void a_role_change_beside_the_admission_loses_nothing(void **state) {
    (void)state;
    redisContext *c = add_waiter("1");
    SEND(client, ENQUEUE(J1, "p"));
    SEND(client, "REPLICAOF", "127.0.0.1", "1");
    WAKES_WITH(client, "1");
    WAKES_WITH(client, "+OK");
    char *got = read_answer(c);
    run(server.admin, "REPLICAOF", "NO", "ONE", NULL);
    assert_true(strcmp(got, "[" JOB_1 "]") == 0 || strcmp(got, ROLE_CHANGED) == 0);
    EXPECT(client, "[\"" J1 "\"]", "ZRANGE", ACTIVE, "0", "-1");
    free(got);
}

static void the_module_stays_while_a_claim_waits(void **state) {
    (void)state;
    redisContext *c = add_waiter("1");
    redisReply *reply = call(server.admin, "MODULE", "UNLOAD", "emq", NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_non_null(strstr(reply->str, "blocked clients"));
    freeReplyObject(reply);
    STILL_WAITING(c);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(c, "[" JOB_1 "]");
}

static void a_shutdown_closes_the_connections(void **state) {
    (void)state;
    redisContext *waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = add_waiter("1");
    }
    restart_server();
    for (int i = 0; i < 3; i++) {
        WAKES_WITH(waiters[i], CLOSED);
    }
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "[" JOB_1 "]", WAITING_CLAIM("1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WAITING_TEST(a_refused_call_does_not_block),
        WAITING_TEST(a_call_without_a_right_does_not_block),
        WAITING_TEST(a_transaction_answers_without_blocking),
        WAITING_TEST(a_script_answers_without_blocking),
        WAITING_TEST(another_modules_call_answers_without_blocking),
        WAITING_TEST(a_subscribed_connection_answers_without_blocking),
        WAITING_TEST(a_resp3_connection_waits),
        WAITING_TEST(a_queue_has_so_many_waiters_at_most),
        WAITING_TEST(client_unblock_ends_the_wait),
        WAITING_TEST(client_unblock_beside_the_admission),
        WAITING_TEST(a_killed_client_takes_nothing),
        WAITING_TEST(a_closed_connection_takes_nothing),
        WAITING_TEST(a_client_killed_beside_the_admission_takes_nothing),
        WAITING_TEST(a_hang_up_at_the_admission_loses_nothing),
        WAITING_TEST(a_kill_right_behind_the_hand_over_loses_nothing),
        WAITING_TEST(flushall_keeps_waiting),
        WAITING_TEST(a_deleted_set_keeps_waiting),
        WAITING_TEST(a_set_that_is_gone_again_keeps_waiting),
        WAITING_TEST(a_string_in_place_of_the_set_keeps_waiting),
        WAITING_TEST(a_list_in_place_of_the_set_is_refused),
        WAITING_TEST(wrong_types_met_at_a_wake_are_refused),
        WAITING_TEST(a_rewritten_fence_is_noticed_at_the_wake),
        WAITING_TEST(a_key_withdrawn_is_refused_at_the_wake),
        WAITING_TEST(a_key_that_may_only_be_read_is_refused_at_the_wake),
        WAITING_TEST(a_verb_withdrawn_is_refused_at_the_wake),
        WAITING_TEST(a_verb_in_small_letters_is_logged_by_its_name),
        WAITING_TEST(rights_split_over_selectors_are_refused_at_the_wake),
        WAITING_TEST(a_right_withdrawn_stands_in_front_of_the_pause),
        WAITING_TEST(a_deleted_user_takes_nothing),
        WAITING_TEST(full_memory_does_not_end_the_wait),
        WAITING_TEST(a_role_change_unblocks),
        WAITING_TEST(a_role_change_beside_the_admission_loses_nothing),
        WAITING_TEST(the_module_stays_while_a_claim_waits),
        WAITING_TEST(a_shutdown_closes_the_connections),
    };
    return RUN_SERVER_TESTS("waiting_ends", tests, start_server_with_caller, stop_server);
}
