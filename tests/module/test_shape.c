/* SPDX-License-Identifier: Apache-2.0 */
/* Shape and layout of the four write verbs: what is refused before anything is read. Every line
 * here breaks a later check too (the fence is absent), so that the order shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define SHAPE_ENQUEUE "-ERR EMQ shape ENQUEUE expects 2 keys and 2 values"
#define SHAPE_CLAIM "-ERR EMQ shape CLAIM expects 3 keys and 1 values"
#define SHAPE_COMPLETE "-ERR EMQ shape COMPLETE expects 3 keys and 2 values"
#define SHAPE_INSTALL "-ERR EMQ shape INSTALL expects 1 keys and 0 values"
#define LAYOUT_ENQUEUE_1 "-ERR EMQ layout ENQUEUE key 1 must be emq:{q}:job:<id>"
#define LAYOUT_ENQUEUE_2 "-ERR EMQ layout ENQUEUE key 2 must be emq:{q}:pending"
#define LAYOUT_CLAIM_1 "-ERR EMQ layout CLAIM key 1 must be emq:{q}:pending"
#define LAYOUT_CLAIM_2 "-ERR EMQ layout CLAIM key 2 must be emq:{q}:active"
#define LAYOUT_CLAIM_3 "-ERR EMQ layout CLAIM key 3 must be emq:{q}:"
#define LAYOUT_COMPLETE_1 "-ERR EMQ layout COMPLETE key 1 must be emq:{q}:active"
#define LAYOUT_COMPLETE_2 "-ERR EMQ layout COMPLETE key 2 must be emq:{q}:job:<id>"
#define LAYOUT_COMPLETE_3 "-ERR EMQ layout COMPLETE key 3 must be emq:{q}:"
#define LAYOUT_INSTALL_1 "-ERR EMQ layout INSTALL key 1 must be {emq}:version"

/* Refused with this text, nothing changed. */
#define REFUSED(want, ...) EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__)

static int without_fence(void **state) {
    (void)clean_slate(state);
    run(client, "DEL", FENCE, NULL);
    run(client, "ZADD", PENDING, "0", J1, NULL);
    run(client, "HSET", ROW(J1), "state", "pending", "attempts", "0", "payload", "p", NULL);
    return 0;
}

static void the_server_counts_arguments(void **state) {
    (void)state;
    static const char *const verbs[] = {"EMQ.ENQUEUE", "EMQ.CLAIM", "EMQ.COMPLETE", "EMQ.INSTALL",
                                        "EMQ.VERSION"};
    static const int arity[] = {6, 6, 7, 3, 1};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        for (int count = 1; count <= arity[i] + 2; count++) {
            char want[128];
            command line = {0};
            command_add(&line, verbs[i]);
            for (int word = 1; word < count; word++) {
                command_add(&line, "1");
            }
            redisReply *reply = command_send(client, &line);
            (void)snprintf(want, sizeof(want), "ERR wrong number of arguments for '%s' command",
                           verbs[i]);
            if (count != arity[i]) {
                assert_int_equal(reply->type, REDIS_REPLY_ERROR);
                assert_string_equal(reply->str, want);
            } else if (reply->type == REDIS_REPLY_ERROR) {
                assert_string_not_equal(reply->str, want);
            }
            freeReplyObject(reply);
            command_free(&line);
        }
    }
}

/* Whatever is not byte for byte the decimal text of the key count. */
static const char *const bad_counts[] = {
    "",
    "0",
    "4",
    "5",
    "-3",
    "-2",
    "-1",
    "03",
    "02",
    "01",
    "+3",
    "+2",
    "+1",
    " 3",
    " 2",
    " 1",
    "3 ",
    "2 ",
    "1 ",
    "3\\x00",
    "2\\x00",
    "\\x003",
    "3.0",
    "2.0",
    "1.0",
    "3e0",
    "0x3",
    "three",
    "99999999999",
    "2147483648",
    "9223372036854775808",
    "18446744073709551619",
    "4294967299",
    "\\xff",
    "3\\x0a",
    "33",
    "22",
    "11",
};

static void the_key_count_is_exact_text(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(bad_counts) / sizeof(bad_counts[0]); i++) {
        const char *n = bad_counts[i];
        REFUSED(SHAPE_ENQUEUE, "EMQ.ENQUEUE", n, ROW(J1), PENDING, J1, "p");
        REFUSED(SHAPE_ENQUEUE, "EMQ.ENQUEUE", n, "a", "b", USER, "p");
        REFUSED(SHAPE_CLAIM, "EMQ.CLAIM", n, PENDING, ACTIVE, BASE, "1");
        REFUSED(SHAPE_CLAIM, "EMQ.CLAIM", n, "a", "b", "c", "x");
        REFUSED(SHAPE_COMPLETE, "EMQ.COMPLETE", n, ACTIVE, ROW(J1), BASE, J1, "1");
        REFUSED(SHAPE_COMPLETE, "EMQ.COMPLETE", n, "a", "b", "c", "d", "e");
        REFUSED(SHAPE_INSTALL, "EMQ.INSTALL", n, FENCE);
        REFUSED(SHAPE_INSTALL, "EMQ.INSTALL", n, "a");
    }
    /* a count that another verb takes is as wrong */
    REFUSED(SHAPE_ENQUEUE, "EMQ.ENQUEUE", "3", ROW(J1), PENDING, J1, "p");
    REFUSED(SHAPE_ENQUEUE, "EMQ.ENQUEUE", "1", ROW(J1), PENDING, J1, "p");
    REFUSED(SHAPE_CLAIM, "EMQ.CLAIM", "2", PENDING, ACTIVE, BASE, "1");
    REFUSED(SHAPE_CLAIM, "EMQ.CLAIM", "1", PENDING, ACTIVE, BASE, "1");
    REFUSED(SHAPE_COMPLETE, "EMQ.COMPLETE", "2", ACTIVE, ROW(J1), BASE, J1, "1");
    REFUSED(SHAPE_INSTALL, "EMQ.INSTALL", "2", FENCE);
    REFUSED(SHAPE_INSTALL, "EMQ.INSTALL", "3", FENCE);
}

/* Where the server can't read the count, it has checked no key: the shape must stop such a call
 * also for a user who may touch no key at all. */
static void a_count_that_hides_the_keys_is_no_way_around_the_rights(void **state) {
    (void)state;
    redisContext *nobody = server_connect_as(&server, "nobody", "+@emq");
    for (size_t i = 0; i < sizeof(bad_counts) / sizeof(bad_counts[0]); i++) {
        char before[DIGEST_MAX];
        char after[DIGEST_MAX];
        (void)get_digest(before, &server);
        redisReply *reply =
            call(nobody, "EMQ.CLAIM", bad_counts[i], PENDING, ACTIVE, BASE, "1", NULL);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        if (strcmp(reply->str, &SHAPE_CLAIM[1]) != 0 && strcmp(reply->str, &NO_KEY[1]) != 0) {
            fail_msg("\"%s\" answers %s", bad_counts[i], reply->str);
        }
        freeReplyObject(reply);
        assert_string_equal(get_digest(after, &server), before);
    }
    redisFree(nobody);
}

/* Keys that are never right, whatever the place. */
static const char *const bad_keys[] = {
    "",
    "x",
    FENCE,
    "emq:{}:pending",
    "emq:{}:",
    "emq:q:pending",
    "emq:{q}",
    "emq:{q",
    "emq:{",
    "emq:",
    "EMQ:{q}:pending",
    " emq:{q}:pending",
    "emq:{q}:pending ",
    "emq:{q}:pending\\x00",
    "emq:{q}:active\\x00",
    "emq:{q}:Pending",
    "emq:{q}:pendin",
    "emq:{q}:schedule",
    "emq:{q}::",
    "emq:{q}}:pending",
    "emq:{{q}:pending",
    "emq:{q:r}:pending",
    "emq:{q\\x00}:pending",
    "emq:{q\\x0d}:pending",
    "emq:{q\\x0a}:pending",
    "emq:{r}:job:" J1 ":logs",
    "emq:{q}:job:" J2,
    "emq:{q}:job:" J1 "\\x00",
    "emq:{q}:job:" J1 ":logs",
    "emq:{q}:job:",
    "emq:{q}:job",
};

static void each_key_is_wrong_in_turn(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(bad_keys) / sizeof(bad_keys[0]); i++) {
        const char *key = bad_keys[i];
        REFUSED(LAYOUT_ENQUEUE_1, "EMQ.ENQUEUE", "2", key, PENDING, J1, "p");
        REFUSED(LAYOUT_ENQUEUE_2, "EMQ.ENQUEUE", "2", ROW(J1), key, J1, "p");
        REFUSED(LAYOUT_CLAIM_1, "EMQ.CLAIM", "3", key, ACTIVE, BASE, "1");
        REFUSED(LAYOUT_CLAIM_2, "EMQ.CLAIM", "3", PENDING, key, BASE, "1");
        REFUSED(LAYOUT_CLAIM_3, "EMQ.CLAIM", "3", PENDING, ACTIVE, key, "1");
        REFUSED(LAYOUT_COMPLETE_1, "EMQ.COMPLETE", "3", key, ROW(J1), BASE, J1, "1");
        REFUSED(LAYOUT_COMPLETE_2, "EMQ.COMPLETE", "3", ACTIVE, key, BASE, J1, "1");
        REFUSED(LAYOUT_COMPLETE_3, "EMQ.COMPLETE", "3", ACTIVE, ROW(J1), key, J1, "1");
        if (strcmp(key, FENCE) != 0) {
            REFUSED(LAYOUT_INSTALL_1, "EMQ.INSTALL", "1", key);
        }
    }
    REFUSED(LAYOUT_INSTALL_1, "EMQ.INSTALL", "1", "{emq}:version\\x00");
    REFUSED(LAYOUT_INSTALL_1, "EMQ.INSTALL", "1", "{emq}:versio");
    REFUSED(LAYOUT_INSTALL_1, "EMQ.INSTALL", "1", "emq:{emq}:version");
}

static void keys_of_another_kind_or_place(void **state) {
    (void)state;
    REFUSED(LAYOUT_ENQUEUE_1, "EMQ.ENQUEUE", "2", PENDING, ROW(J1), J1, "p");
    REFUSED(LAYOUT_ENQUEUE_2, "EMQ.ENQUEUE", "2", ROW(J1), ACTIVE, J1, "p");
    REFUSED(LAYOUT_ENQUEUE_2, "EMQ.ENQUEUE", "2", ROW(J1), BASE, J1, "p");
    REFUSED(LAYOUT_CLAIM_1, "EMQ.CLAIM", "3", ACTIVE, PENDING, BASE, "1");
    REFUSED(LAYOUT_CLAIM_1, "EMQ.CLAIM", "3", BASE, ACTIVE, PENDING, "1");
    REFUSED(LAYOUT_CLAIM_2, "EMQ.CLAIM", "3", PENDING, PENDING, BASE, "1");
    REFUSED(LAYOUT_CLAIM_3, "EMQ.CLAIM", "3", PENDING, ACTIVE, ACTIVE, "1");
    REFUSED(LAYOUT_COMPLETE_1, "EMQ.COMPLETE", "3", ROW(J1), ACTIVE, BASE, J1, "1");
    REFUSED(LAYOUT_COMPLETE_1, "EMQ.COMPLETE", "3", PENDING, ROW(J1), BASE, J1, "1");
    REFUSED(LAYOUT_COMPLETE_2, "EMQ.COMPLETE", "3", ACTIVE, BASE, ROW(J1), J1, "1");
}

/* The first key names the queue; the others must be of the same one. */
static void keys_of_two_queues(void **state) {
    (void)state;
    REFUSED(LAYOUT_ENQUEUE_2, "EMQ.ENQUEUE", "2", ROW(J1), "emq:{r}:pending", J1, "p");
    REFUSED(LAYOUT_ENQUEUE_2, "EMQ.ENQUEUE", "2", "emq:{r}:job:" J1, PENDING, J1, "p");
    REFUSED(LAYOUT_CLAIM_2, "EMQ.CLAIM", "3", PENDING, "emq:{r}:active", BASE, "1");
    REFUSED(LAYOUT_CLAIM_2, "EMQ.CLAIM", "3", "emq:{r}:pending", ACTIVE, BASE, "1");
    REFUSED(LAYOUT_CLAIM_3, "EMQ.CLAIM", "3", PENDING, ACTIVE, "emq:{r}:", "1");
    REFUSED(LAYOUT_CLAIM_3, "EMQ.CLAIM", "3", PENDING, ACTIVE, "emq:{qq}:", "1");
    REFUSED(LAYOUT_COMPLETE_2, "EMQ.COMPLETE", "3", ACTIVE, "emq:{r}:job:" J1, BASE, J1, "1");
    REFUSED(LAYOUT_COMPLETE_3, "EMQ.COMPLETE", "3", ACTIVE, ROW(J1), "emq:{r}:", J1, "1");
}

/* Where several keys are wrong the first one is named. */
static void the_first_wrong_key_is_named(void **state) {
    (void)state;
    REFUSED(LAYOUT_ENQUEUE_1, "EMQ.ENQUEUE", "2", "x", "y", J1, "p");
    REFUSED(LAYOUT_CLAIM_1, "EMQ.CLAIM", "3", "x", "y", "z", "1");
    REFUSED(LAYOUT_CLAIM_2, "EMQ.CLAIM", "3", PENDING, "y", "z", "1");
    REFUSED(LAYOUT_COMPLETE_2, "EMQ.COMPLETE", "3", ACTIVE, "y", "z", J1, "1");
}

static void an_id_must_not_reach_another_key(void **state) {
    static const char *const bad_ids[] = {
        "",         "JOBa:logs", "JOBa:",     "JOB:",     "JOB{",      "JOB}",
        "JOB{a}",   "JOB\\x00",  "JOB\\x00a", "JOB\\x0d", "JOB\\x0aa", "\\x00",
        J1 ":logs", J1 "\\x00",  J1 ":",      "USR:",     ":",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad_ids) / sizeof(bad_ids[0]); i++) {
        char row[256];
        (void)snprintf(row, sizeof(row), ROW("%s"), bad_ids[i]);
        REFUSED(LAYOUT_ENQUEUE_1, "EMQ.ENQUEUE", "2", row, PENDING, bad_ids[i], "p");
        REFUSED(LAYOUT_COMPLETE_2, "EMQ.COMPLETE", "3", ACTIVE, row, BASE, bad_ids[i], "1");
    }
}

/* A text of n times `n`, with this start. */
static const char *long_text(const char *start, size_t n) {
    static char text[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    memset(text[turn], 'n', n);
    memcpy(text[turn], start, strlen(start));
    text[turn][n] = '\0';
    return text[turn];
}

static void names_have_up_to_128_bytes(void **state) {
    (void)state;
    char row[512];
    char pending[512];
    char active[512];
    char base[512];
    run(client, INSTALL, NULL);
    for (size_t n = 127; n <= 130; n++) {
        int fits = n <= 128;
        const char *id = long_text("JOB", n);
        (void)snprintf(row, sizeof(row), ROW("%s"), id);
        if (fits) {
            EXPECT(client, "1", "EMQ.ENQUEUE", "2", row, PENDING, id, "p");
            EXPECT_UNCHANGED(&server, client, "0", "EMQ.COMPLETE", "3", ACTIVE, ROW("JOBx"), BASE,
                             "JOBx", "1");
        } else {
            REFUSED(LAYOUT_ENQUEUE_1, "EMQ.ENQUEUE", "2", row, PENDING, id, "p");
            REFUSED(LAYOUT_COMPLETE_2, "EMQ.COMPLETE", "3", ACTIVE, row, BASE, id, "1");
        }
        const char *queue = long_text("", n);
        (void)snprintf(row, sizeof(row), "emq:{%s}:job:" J1, queue);
        (void)snprintf(pending, sizeof(pending), "emq:{%s}:pending", queue);
        (void)snprintf(active, sizeof(active), "emq:{%s}:active", queue);
        (void)snprintf(base, sizeof(base), "emq:{%s}:", queue);
        if (fits) {
            EXPECT(client, "1", "EMQ.ENQUEUE", "2", row, pending, J1, "p");
            EXPECT(client, "[\"" J1 "\", \"p\", 1]", "EMQ.CLAIM", "3", pending, active, base, "9");
            EXPECT(client, "1", "EMQ.COMPLETE", "3", active, row, base, J1, "1");
        } else {
            REFUSED(LAYOUT_ENQUEUE_1, "EMQ.ENQUEUE", "2", row, pending, J1, "p");
            REFUSED(LAYOUT_CLAIM_1, "EMQ.CLAIM", "3", pending, active, base, "9");
            REFUSED(LAYOUT_COMPLETE_1, "EMQ.COMPLETE", "3", active, row, base, J1, "1");
        }
    }
}

/* The longest id in the longest queue: every key that the verbs reach beyond the declared ones. */
static void the_longest_names_work_together(void **state) {
    (void)state;
    char row[512];
    char logs[512];
    char pending[512];
    char active[512];
    char base[512];
    char want[512];
    const char *queue = long_text("q", 128);
    const char *id = long_text("JOB", 128);
    run(client, INSTALL, NULL);
    (void)snprintf(row, sizeof(row), "emq:{%s}:job:%s", queue, id);
    (void)snprintf(logs, sizeof(logs), "emq:{%s}:job:%s:logs", queue, id);
    (void)snprintf(pending, sizeof(pending), "emq:{%s}:pending", queue);
    (void)snprintf(active, sizeof(active), "emq:{%s}:active", queue);
    (void)snprintf(base, sizeof(base), "emq:{%s}:", queue);
    (void)snprintf(want, sizeof(want), "[\"%s\", \"p\", 1]", id);
    EXPECT(client, "1", "EMQ.ENQUEUE", "2", row, pending, id, "p");
    EXPECT(client, want, "EMQ.CLAIM", "3", pending, active, base, "9");
    run(client, "RPUSH", logs, "line", NULL);
    EXPECT(client, "1", "EMQ.COMPLETE", "3", active, row, base, id, "1");
    EXPECT(client, "0", "EXISTS", row, logs, pending, active);
}

/* Shape before layout before fence, each pair broken in one call. */
static void checks_come_in_their_order(void **state) {
    (void)state;
    REFUSED(SHAPE_ENQUEUE, "EMQ.ENQUEUE", "02", "x", PENDING, J1, "p");
    REFUSED(SHAPE_CLAIM, "EMQ.CLAIM", "03", "x", ACTIVE, BASE, "1");
    REFUSED(SHAPE_COMPLETE, "EMQ.COMPLETE", "03", "x", ROW(J1), BASE, J1, "1");
    REFUSED(LAYOUT_ENQUEUE_1, "EMQ.ENQUEUE", "2", "x", PENDING, J1, "p");
    REFUSED(LAYOUT_CLAIM_1, "EMQ.CLAIM", "3", "x", ACTIVE, BASE, "1");
    REFUSED(LAYOUT_COMPLETE_1, "EMQ.COMPLETE", "3", "x", ROW(J1), BASE, J1, "1");
    REFUSED(FENCE_ABSENT, ENQUEUE(J1, "p"));
    REFUSED(FENCE_ABSENT, CLAIM("1"));
    REFUSED(FENCE_ABSENT, COMPLETE(J1, "1"));
}

static void names_of_commands_in_any_case(void **state) {
    (void)state;
    run(client, INSTALL, NULL);
    EXPECT(client, "1", "emq.enqueue", "2", ROW(J2), PENDING, J2, "p");
    EXPECT(client, "[\"" J1 "\", \"p\", 1]", "eMq.ClAiM", "3", PENDING, ACTIVE, BASE, "1000");
    /* the text names the verb as the table has it */
    REFUSED(SHAPE_CLAIM, "emq.claim", "x", PENDING, ACTIVE, BASE, "1000");
}

#define SHAPE_TEST(function) cmocka_unit_test_setup(function, without_fence)

int main(void) {
    const struct CMUnitTest tests[] = {
        SHAPE_TEST(the_server_counts_arguments),
        SHAPE_TEST(the_key_count_is_exact_text),
        SHAPE_TEST(a_count_that_hides_the_keys_is_no_way_around_the_rights),
        SHAPE_TEST(each_key_is_wrong_in_turn),
        SHAPE_TEST(keys_of_another_kind_or_place),
        SHAPE_TEST(keys_of_two_queues),
        SHAPE_TEST(the_first_wrong_key_is_named),
        SHAPE_TEST(an_id_must_not_reach_another_key),
        SHAPE_TEST(names_have_up_to_128_bytes),
        SHAPE_TEST(the_longest_names_work_together),
        SHAPE_TEST(checks_come_in_their_order),
        SHAPE_TEST(names_of_commands_in_any_case),
    };
    return RUN_SERVER_TESTS("shape", tests, start_server, stop_server);
}
