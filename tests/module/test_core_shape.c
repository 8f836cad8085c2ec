/* SPDX-License-Identifier: Apache-2.0 */
/* Shape, layout and fence of the verbs of scheduling, leases, failures and sweeps. What is refused
 * here breaks later checks too, so that the order shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define EACH(verb) for (const core_verb *verb = core_verbs; verb < core_verbs + CORE_VERBS; verb++)

static char text[256];

static const char *shape_of(const core_verb *verb) {
    (void)snprintf(text, sizeof(text), "-ERR EMQ shape %s expects %d keys and %s values",
                   verb->word, count_words(verb->keys), verb->value_count);
    return text;
}

static const char *layout_of(const core_verb *verb, int key) {
    (void)snprintf(text, sizeof(text), "-ERR EMQ layout %s key %d must be %s", verb->word, key + 1,
                   verb->patterns[key]);
    return text;
}

static int without_fence(void **state) {
    (void)clean_slate(state);
    run(client, "DEL", FENCE, NULL);
    run(client, "HSET", ROW(J1), "state", "active", "attempts", "1", "payload", "p", NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    run(client, "ZADD", SCHEDULE, "1", J1, NULL);
    run(client, "ZADD", DEAD, "0", J1, NULL);
    return 0;
}

/* The line of a verb with another number of words: the server's own refusal, except for what an
 * arity allows. */
static void the_server_counts_arguments(void **state) {
    (void)state;
    EACH(verb) {
        int arity = atoi(verb->arity);
        for (int count = 1; count <= abs(arity) + 2; count++) {
            command line = {0};
            command_add(&line, verb->name);
            while (line.argc < count) {
                command_add(&line, "1");
            }
            redisReply *reply = command_send(client, &line);
            assert_int_equal(reply->type, REDIS_REPLY_ERROR);
            (void)snprintf(text, sizeof(text), "ERR wrong number of arguments for '%s' command",
                           verb->name);
            if (count == arity || (arity < 0 && count >= -arity)) {
                assert_string_equal(reply->str, &shape_of(verb)[1]);
            } else {
                assert_string_equal(reply->str, text);
            }
            freeReplyObject(reply);
            command_free(&line);
        }
    }
}

/* Whatever is not byte for byte the decimal text of the key count. */
static void the_key_count_is_exact_text(void **state) {
    static const char *const bad[] = {
        "",
        "0",
        "1",
        "-1",
        "-3",
        "02",
        "03",
        "04",
        "05",
        "+2",
        "+3",
        " 2",
        "2 ",
        "3 ",
        "2.0",
        "3e0",
        "0x3",
        "two",
        "\\x002",
        "2\\x00",
        "3\\x00",
        "3\\x0a",
        "6",
        "22",
        "99999999999",
        "4294967298",
        "18446744073709551618",
    };
    (void)state;
    EACH(verb) {
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            CORE_UNCHANGED(client, shape_of(verb), verb, 1, bad[i]);
        }
        for (int count = 2; count <= 5; count++) {
            char number[8];
            (void)snprintf(number, sizeof(number), "%d", count);
            if (count != count_words(verb->keys)) {
                CORE_UNCHANGED(client, shape_of(verb), verb, 1, number);
            }
        }
    }
    /* shape before layout */
    UNCHANGED("-ERR EMQ shape FAIL expects 5 keys and 5 values", "EMQ.FAIL", "05", "a", "b", "c",
              "d", "e", "f", "g", "h", "i", "j");
    UNCHANGED("-ERR EMQ shape EXTENDS expects 2 keys and 1 + 2n values", "EMQ.EXTENDS", "2", "a",
              "b", "1000", J1, "1", J2);
}

/* Where the server can't read the count it has checked no key: a user without any right to keys
 * must not get past the shape. */
static void a_count_that_hides_the_keys(void **state) {
    (void)state;
    redisContext *nobody = server_connect_as(&server, "nobody", "+@emq");
    EACH(verb) {
        CORE_UNCHANGED(nobody, NO_KEY, verb, -1, "");
        CORE_UNCHANGED(nobody, shape_of(verb), verb, 1, "x");
        CORE_UNCHANGED(nobody, shape_of(verb), verb, 1, "-1");
        CORE_UNCHANGED(nobody, shape_of(verb), verb, 1, "99999999999");
    }
    redisFree(nobody);
}

static void each_key_is_wrong_in_turn(void **state) {
    static const char *const bad[] = {
        "",
        "x",
        FENCE,
        "emq:{}:",
        "emq:{}:schedule",
        "emq:q:active",
        "emq:{q}",
        "EMQ:{q}:active",
        " emq:{q}:active",
        "emq:{q}:active ",
        "emq:{q}:active\\x00",
        "emq:{q}:schedule\\x00",
        "emq:{q}:dead ",
        "emq:{q}:Dead",
        "emq:{q}:scheduled",
        "emq:{q}:metrics:failed",
        "emq:{q}:Meta",
        "emq:{q}:rings",
        "emq:{q}::",
        "emq:{q:r}:active",
        "emq:{q\\x00}:active",
        "emq:{q}:job:",
        "emq:{q}:job:" J2,
        "emq:{q}:job:" J1 ":logs",
        "emq:{q}:job:" J1 "\\x00",
        "emq:{q}:meta",
    };
    (void)state;
    EACH(verb) {
        for (int key = 0; key < count_words(verb->keys); key++) {
            for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                if (strcmp(bad[i], verb->keys[key]) != 0) {
                    CORE_UNCHANGED(client, layout_of(verb, key), verb, 2 + key, bad[i]);
                }
            }
        }
    }
}

/* A key of the verb in another's place. */
static void keys_of_another_place(void **state) {
    (void)state;
    EACH(verb) {
        for (int key = 0; key < count_words(verb->keys); key++) {
            for (int other = 0; other < count_words(verb->keys); other++) {
                if (other != key) {
                    CORE_UNCHANGED(client, layout_of(verb, key), verb, 2 + key, verb->keys[other]);
                }
            }
        }
    }
}

/* The first key names the queue: another queue in it makes the second key the wrong one. */
static void keys_of_two_queues(void **state) {
    (void)state;
    EACH(verb) {
        for (int key = 0; key < count_words(verb->keys); key++) {
            char other[128];
            (void)snprintf(other, sizeof(other), "emq:{r}:%s", verb->keys[key] + strlen(BASE));
            CORE_UNCHANGED(client, layout_of(verb, key == 0 ? 1 : key), verb, 2 + key, other);
            (void)snprintf(other, sizeof(other), "emq:{qq}:%s", verb->keys[key] + strlen(BASE));
            CORE_UNCHANGED(client, layout_of(verb, key == 0 ? 1 : key), verb, 2 + key, other);
        }
    }
    /* where several are wrong the first is named */
    UNCHANGED("-ERR EMQ layout STALLED.CHECK key 2 must be emq:{q}:pending", "EMQ.STALLED.CHECK",
              "4", ACTIVE, "x", "y", "z", "0", "0");
}

/* The id among the values and the id in the row's key are one. */
static void the_id_is_the_rows(void **state) {
    static const char *const bad[] = {"",       J2,         "JOB",  J1 "\\x00", J1 ":logs",
                                      (" " J1), "JOB\\x0a", "JOB{", "JOB}"};
    (void)state;
    EACH(verb) {
        int row = 0;
        while (row < count_words(verb->keys) && strcmp(verb->keys[row], ROW(J1)) != 0) {
            row++;
        }
        if (row == count_words(verb->keys)) {
            continue; /* no row is declared */
        }
        int id = 2 + count_words(verb->keys);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            CORE_UNCHANGED(client, layout_of(verb, row), verb, id, bad[i]);
        }
    }
    UNCHANGED("-ERR EMQ layout REPROCESS key 1 must be emq:{q}:job:<id>", "EMQ.REPROCESS", "3",
              ROW("JOB:a"), DEAD, PENDING, "JOB:a");
}

static void the_fence_comes_next(void **state) {
    (void)state;
    EACH(verb) {
        CORE_UNCHANGED(client, FENCE_ABSENT, verb, -1, "");
        /* before every value: the last one is wrong, where it isn't the id, which is layout */
        int values = count_words(verb->values);
        int last = values == 0 || (values == 1 && verb->values[0][0] == 'J')
                       ? -1
                       : 1 + count_words(verb->keys) + values;
        CORE_UNCHANGED(client, FENCE_ABSENT, verb, last, "x");
        run(client, "SET", FENCE, "echomq:5.0.0", NULL);
        CORE_UNCHANGED(client, FENCE_FOUND "echomq:5.0.0", verb, -1, "");
        CORE_UNCHANGED(client, layout_of(verb, 0), verb, 2, "x");
        make_typed(FENCE, "list");
        CORE_UNCHANGED(client, WRONGTYPE, verb, last, "x");
        run(client, "DEL", FENCE, NULL);
    }
    UNCHANGED(FENCE_ABSENT, SCHEDULE_JOB(USER, "p", "at", "5"));
    UNCHANGED(FENCE_ABSENT, DELAY(USER, "1", "on", "x"));
    UNCHANGED(FENCE_ABSENT, EXTEND(J2, "1", "0"));
    UNCHANGED(FENCE_ABSENT, REPROCESS(J2));
    UNCHANGED(FENCE_ABSENT, STALLED_CHECK("0", "0"));
}

/* The longest names a queue and an id may have reach all keys of all verbs. */
static void the_longest_names_work(void **state) {
    char id[129];
    char queue[129];
    char row[512];
    char keys[5][256];
    static const char *const names[] = {"pending", "active", "schedule", "dead", ""};
    (void)state;
    run(client, "FLUSHDB", NULL);
    run(client, INSTALL, NULL);
    memset(queue, 'q', 128);
    memset(id, 'n', 128);
    memcpy(id, "JOB", 3);
    id[128] = queue[128] = '\0';
    (void)snprintf(row, sizeof(row), "emq:{%s}:job:%s", queue, id);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "emq:{%s}:%s", queue, names[i]);
    }
    EXPECT(client, "1", "EMQ.SCHEDULE", "2", row, keys[2], id, "p", "at", "5");
    EXPECT(client, "1", "EMQ.RESCHEDULE", "2", row, keys[2], id, "at", "6");
    EXPECT(client, "1", "EMQ.PROMOTE", "3", keys[2], keys[0], keys[4], "1");
    run(client, "EMQ.CLAIM", "3", keys[0], keys[1], keys[4], "60000", NULL);
    EXPECT(client, "1", "EMQ.EXTEND", "2", keys[1], row, id, "1", "60000");
    EXPECT(client, "[]", "EMQ.EXTENDS", "2", keys[1], keys[4], "60000", id, "1");
    EXPECT(client, "1", "EMQ.DELAY", "3", row, keys[1], keys[2], id, "1", "at", "5");
    EXPECT(client, "1", "EMQ.PROMOTE", "3", keys[2], keys[0], keys[4], "1");
    run(client, "EMQ.CLAIM", "3", keys[0], keys[1], keys[4], "60000", NULL);
    EXPECT(client, "1", "EMQ.REQUEUE", "3", keys[1], keys[0], row, id, "2");
    run(client, "EMQ.CLAIM", "3", keys[0], keys[1], keys[4], "60000", NULL);
    EXPECT(client, "\"dead\"", "EMQ.FAIL", "5", keys[1], keys[2], keys[3], row, keys[4], id, "3",
           "0", "1", "e");
    EXPECT(client, "1", "EMQ.REPROCESS", "3", row, keys[3], keys[0], id);
    run(client, "EMQ.CLAIM", "3", keys[0], keys[1], keys[4], "60000", NULL);
    run(client, "ZADD", keys[1], "1", id, NULL);
    redisReply *reply =
        call(client, "EMQ.STALLED.CHECK", "4", keys[1], keys[0], keys[3], keys[4], "1", "1", NULL);
    assert_string_equal(reply->element[1]->element[0]->str, id);
    freeReplyObject(reply);
}

#define SHAPE_TEST(function) cmocka_unit_test_setup(function, without_fence)

int main(void) {
    const struct CMUnitTest tests[] = {
        SHAPE_TEST(the_server_counts_arguments), SHAPE_TEST(the_key_count_is_exact_text),
        SHAPE_TEST(a_count_that_hides_the_keys), SHAPE_TEST(each_key_is_wrong_in_turn),
        SHAPE_TEST(keys_of_another_place),       SHAPE_TEST(keys_of_two_queues),
        SHAPE_TEST(the_id_is_the_rows),          SHAPE_TEST(the_fence_comes_next),
        SHAPE_TEST(the_longest_names_work),
    };
    return RUN_SERVER_TESTS("core_shape", tests, start_server, stop_server);
}
