/* SPDX-License-Identifier: Apache-2.0 */
/* What the server tells of the verbs of scheduling, leases, failures and sweeps, and the tokens of
 * all verbs, spelled out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define EVAL_KEYS                                                                                  \
    "[[\"flags\", [+RW, +access, +update], \"begin_search\", [\"type\", \"index\", \"spec\", "     \
    "[\"index\", 1]], \"find_keys\", [\"type\", \"keynum\", \"spec\", [\"keynumidx\", 0, "         \
    "\"firstkey\", 1, \"keystep\", 1]]]]"

static void commands_are_registered_as_the_protocol_says(void **state) {
    (void)state;
    for (int i = 0; i < CORE_VERBS; i++) {
        const core_verb *verb = &core_verbs[i];
        char want[1024];
        (void)snprintf(want, sizeof(want),
                       "[[\"%s\", %s, [%s], 0, 0, 0, [%s], [], " EVAL_KEYS ", []]]", verb->name,
                       verb->arity, verb->flags, verb->categories);
        EXPECT(client, want, "COMMAND", "INFO", verb->name);
    }
}

static void the_server_finds_the_keys(void **state) {
    (void)state;
    for (int i = 0; i < CORE_VERBS; i++) {
        command line = {0};
        command_add(&line, "COMMAND");
        command_add(&line, "GETKEYS");
        command plain = {0};
        core_line(&plain, &core_verbs[i], -1, "");
        for (int word = 0; word < plain.argc; word++) {
            command_add(&line, plain.argv[word]);
        }
        redisReply *reply = command_send(client, &line);
        assert_int_equal(reply->elements, count_words(core_verbs[i].keys));
        for (size_t key = 0; key < reply->elements; key++) {
            assert_string_equal(reply->element[key]->str, core_verbs[i].keys[key]);
        }
        freeReplyObject(reply);
        command_free(&plain);
        command_free(&line);
    }
}

static void each_is_documented(void **state) {
    (void)state;
    for (int i = 0; i < CORE_VERBS; i++) {
        redisReply *reply = call(client, "COMMAND", "DOCS", core_verbs[i].name, NULL);
        assert_int_equal(reply->elements, 2);
        redisReply *const *facts = reply->element[1]->element;
        assert_string_equal(facts[0]->str, "summary");
        assert_true(strlen(facts[1]->str) > 10);
        int found = 0;
        for (size_t fact = 0; fact + 1 < reply->element[1]->elements; fact += 2) {
            if (strcmp(facts[fact]->str, "arguments") == 0) {
                /* the key count, the keys, and the values (those that repeat, once) */
                assert_true(facts[fact + 1]->elements >=
                            1 + (size_t)count_words(core_verbs[i].keys) +
                                (size_t)(count_words(core_verbs[i].values) > 0));
                found = 1;
            }
        }
        assert_true(found);
        freeReplyObject(reply);
    }
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void the_tokens_are_those_of_the_table(void **state) {
    const char *tokens[32];
    static const char *const want[] = {
        "append",        "claim",   "claim.pause", "claims",        "complete",  "completes",
        "delay",         "enqueue", "enqueues",    "extend",        "extends",   "fail",
        "failures.incr", "pause",   "promote",     "publish",       "reprocess", "requeue",
        "reschedule",    "resume",  "schedule",    "stalled.check",
    };
    (void)state;
    redisReply *reply = call(client, "EMQ.VERSION", NULL);
    redisReply *list = NULL;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        if (strcmp(reply->element[i]->str, "capabilities") == 0) {
            list = reply->element[i + 1];
        }
    }
    assert_non_null(list);
    assert_int_equal(list->elements, sizeof(want) / sizeof(want[0]));
    for (size_t i = 0; i < list->elements; i++) {
        tokens[i] = list->element[i]->str;
    }
    qsort(tokens, list->elements, sizeof(tokens[0]), compare_texts);
    for (size_t i = 0; i < list->elements; i++) {
        assert_string_equal(tokens[i], want[i]);
    }
    freeReplyObject(reply);
}

static long long read_counter(const char *name) {
    char field[64];
    char text[64];
    (void)snprintf(field, sizeof(field), "emq_%s", name);
    return atoll(get_info(text, sizeof(text), server.admin, "emq", field));
}

/* The call answers this; the two counters go up by one. */
#define COUNTED(calls, refused, want, ...)                                                         \
    do {                                                                                           \
        long long calls_ = read_counter(calls);                                                    \
        long long refused_ = read_counter(refused);                                                \
        EXPECT(client, (want), __VA_ARGS__);                                                       \
        assert_int_equal(read_counter(calls), calls_ + 1);                                         \
        assert_int_equal(read_counter(refused), refused_ + 1);                                     \
    } while (0)

static void info_counts_calls_and_refusals(void **state) {
    static const char *const names[] = {"schedule", "extend", "extends",   "promote", "reschedule",
                                        "delay",    "fail",   "reprocess", "requeue"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char counter[64];
        (void)snprintf(counter, sizeof(counter), "calls_%s", names[i]);
        assert_true(read_counter(counter) >= 0);
    }
    COUNTED("calls_schedule", "refused_kind", KIND, SCHEDULE_JOB(USER, "p", "at", "5"));
    COUNTED("calls_schedule", "refused_value", MODE, SCHEDULE_JOB(J1, "p", "on", "5"));
    COUNTED("calls_delay", "refused_stale", GONE, DELAY(J1, "1", "at", "5"));
    COUNTED("calls_fail", "refused_stale", GONE, FAIL(J1, "1", "0", "1", "e"));
    make_job(J1, "active", ACTIVE, "5");
    COUNTED("calls_reprocess", "refused_state", NOT_DEAD, REPROCESS(J1));
    COUNTED("calls_reschedule", "refused_state", NOT_SCHEDULED, RESCHEDULE(J1, "at", "5"));
    COUNTED("calls_extend", "refused_stale", "-EMQSTALE extend token mismatch",
            EXTEND(J1, "1", "5"));
    COUNTED("calls_extends", "refused_value", LEASE_MS, EXTENDS("0", J1, "1"));
    COUNTED("calls_promote", "refused_value", LIMIT, PROMOTE("0"));
    run(client, "HSET", ROW(J1), "parent", J2, NULL);
    COUNTED("calls_fail", "refused_flow", FLOW, FAIL(J1, "3", "0", "1", "e"));
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    COUNTED("calls_requeue", "refused_lane", LANE, REQUEUE(J1, "3"));
    make_typed(ACTIVE, "string");
    COUNTED("calls_stalled_check", "refused_wrongtype", WRONGTYPE, STALLED_CHECK("1", "1"));
    assert_int_equal(read_counter("lost_effects"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(commands_are_registered_as_the_protocol_says),
        TEST(the_server_finds_the_keys),
        TEST(each_is_documented),
        TEST(the_tokens_are_those_of_the_table),
        TEST(info_counts_calls_and_refusals),
    };
    return RUN_SERVER_TESTS("core_registration", tests, start_server, stop_server);
}
