/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the differential harness: what must be equal, and what differs by design. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aof.h"
#include "harness.h"

#define STEPS_MAX 24

/* A case: after every step replies and states are equal. */
typedef struct equal_case {
    const char *name;
    const char *steps[STEPS_MAX];
} equal_case;

static const equal_case equal_cases[] = {
    {"a job from admission to completion",
     {"enqueue A one", "enqueue A two", "enqueue B two", "claim 3600000", "enqueue A again",
      "claim 3600000", "claim 3600000", "complete A 1", "complete A 1", "complete B 2",
      "complete B 1"}},
    {"the oldest first, by bytes",
     {"enqueue C c", "enqueue A a", "enqueue B b", "claim 1000", "claim 1000", "claim 1000"}},
    {"other kinds",
     {"enqueue USR0KHTOWnGLuC p", "enqueue JO p", "schedule USR0KHTOWnGLuC p in 5",
      "delay USR0KHTOWnGLuC 1 in 5", "complete USR0KHTOWnGLuC 1", "extend USR0KHTOWnGLuC 1 5",
      "retry USR0KHTOWnGLuC 1 0 3 boom", "reprocess USR0KHTOWnGLuC"}},
    {"nothing there",
     {"claim 1000", "complete A 1", "extend A 1 1000", "extends 1000 A 1 B 2", "retry A 1 0 3 boom",
      "delay A 1 in 5", "promote 10", "reprocess A", "stalled 3 10"}},
    {"scheduled, and promoted lowest first",
     {"schedule A late in 3600000", "schedule B early at 5", "schedule C early at 3",
      "schedule D early at 4", "schedule B again at 9", "promote 2", "promote 10", "promote 10",
      "claim 1000", "claim 1000", "claim 1000", "claim 1000"}},
    {"a queue that is paused",
     {"enqueue A p", "!HSET meta paused 1", "claim 1000", "!DEL meta", "claim 1000"}},
    {"leases that are prolonged",
     {"enqueue A a", "enqueue B b", "claim 1000", "claim 1000", "extend A 1 3600000",
      "extend A 2 3600000", "extend B 1 1", "extends 7200000 A 1 C 1 B 2 B 1 A 7", "complete A 1",
      "extend A 1 1000", "complete B 1"}},
    {"a job that only fails, until its budget is used up, and its next life",
     {"enqueue A a", "claim 3600000", "retry A 1 0 3 boom", "wait 1", "promote 10", "claim 3600000",
      "retry A 1 0 3 stale", "retry A 2 0 3 boom", "wait 1", "promote 10", "claim 3600000",
      "retry A 3 60000 3 dead", "reprocess B"}},
    {"a dead job's next life",
     {"enqueue A a", "claim 3600000", "retry A 1 0 1 boom", "reprocess A", "reprocess A",
      "claim 3600000", "complete A 2"}},
    {"a job that is put off",
     {"enqueue A a", "claim 3600000", "delay A 1 in 3600000", "promote 10", "enqueue B b",
      "claim 3600000", "delay B 1 at 7", "promote 10", "claim 3600000", "delay B 1 at 7",
      "complete B 2"}},
    {"leases that lapse, and a job that stalls too often",
     {"enqueue A a", "claim 1", "wait 2", "stalled 3 10", "stalled 3 10", "claim 1", "wait 2",
      "stalled 3 10", "claim 1", "wait 2", "stalled 3 10", "stalled 3 10"}},
    {"a late result after a sweep still counts",
     {"enqueue A a", "claim 1", "wait 2", "stalled 3 10", "complete A 1", "claim 1000"}},
    {"a late failure after a sweep",
     {"enqueue A a", "claim 1", "wait 2", "stalled 3 10", "retry A 1 60000 5 boom", "claim 1000"}},
    {"somebody else has claimed since",
     {"enqueue A a", "claim 1", "wait 2", "stalled 3 10", "claim 3600000", "complete A 1",
      "retry A 1 0 3 boom", "delay A 1 in 5", "extend A 1 5", "complete A 2"}},
    {"a sweep takes no more than its limit",
     {"enqueue A a", "enqueue B b", "enqueue C c", "claim 1", "claim 1", "claim 3600000", "wait 2",
      "stalled 3 1", "stalled 3 10"}},
    {"attempts that are missing count as none",
     {"enqueue A a", "!HDEL job:A attempts", "claim 3600000", "complete A 1"}},
    {"a claim takes any row, whatever its state",
     {"enqueue A a", "!HSET job:A state dead", "claim 3600000", "complete A 1"}},
    {"a payload that is missing", {"enqueue A a", "!HDEL job:A payload", "claim 3600000"}},
};

/* A case whose last step differs by design: what each side answers, and what the native side then
 * holds (NULL: its state is that of the script). */
typedef struct delta {
    const char *name;
    const char *steps[STEPS_MAX];
    const char *script_reply;
    const char *native_reply;
    const char *native_state;
} delta;

#define ROW_A(fields) "job:JOB0KHTOWnGLuA: " fields "\n"
#define ONE_CLAIMED "\"attempts\"=\"1\" \"payload\"=\"a\" "

static const delta deltas[] = {
    {"an orphan is not handed out",
     {"!ZADD pending 0 A", "claim 1000"},
     "[\"JOB0KHTOWnGLuA\", nil, 1]",
     "[]",
     ""},
    {"a lease of nothing is refused",
     {"enqueue A a", "claim 0"},
     "[\"JOB0KHTOWnGLuA\", \"a\", 1]",
     "-ERR EMQ lease_ms must be an integer from 1 to 2147483647",
     ROW_A("\"attempts\"=\"0\" \"payload\"=\"a\" \"state\"=\"pending\"") "pending: "
                                                                         "\"JOB0KHTOWnGLuA\"="
                                                                         "\"0\"\n"},
    {"a lost lease is not prolonged",
     {"enqueue A a", "claim 1", "wait 2", "stalled 3 10", "extend A 1 60000"},
     "1",
     "-EMQSTALE extend lease lost",
     ROW_A(ONE_CLAIMED
           "\"stalled\"=\"1\" \"state\"=\"pending\"") "pending: \"JOB0KHTOWnGLuA\"=\"0\"\n"},
    {"extends passes a lost lease over",
     {"enqueue A a", "claim 1", "wait 2", "stalled 3 10", "extends 60000 A 1"},
     "[]",
     "[\"JOB0KHTOWnGLuA\"]",
     ROW_A(ONE_CLAIMED
           "\"stalled\"=\"1\" \"state\"=\"pending\"") "pending: \"JOB0KHTOWnGLuA\"=\"0\"\n"},
    {"token 0 completes no job that never ran",
     {"enqueue A a", "complete A 0"},
     "1",
     "-EMQSTALE complete lease lost",
     ROW_A("\"attempts\"=\"0\" \"payload\"=\"a\" \"state\"=\"pending\"") "pending: "
                                                                         "\"JOB0KHTOWnGLuA\"="
                                                                         "\"0\"\n"},
    {"a job that was put off is not completed: no ghost in schedule",
     {"enqueue A a", "claim 60000", "delay A 1 at 7", "complete A 1"},
     "1",
     "-EMQSTALE complete lease lost",
     ROW_A(ONE_CLAIMED "\"state\"=\"scheduled\"") "schedule: \"JOB0KHTOWnGLuA\"=\"7\"\n"},
    {"a dead job does not fail again: no ghost in dead",
     {"enqueue A a", "claim 60000", "retry A 1 0 1 boom", "retry A 1 0 1 boom"},
     "\"dead\"",
     "-EMQSTALE retry lease lost",
     "dead: \"JOB0KHTOWnGLuA\"=\"0\"\n" ROW_A("\"attempts\"=\"1\" \"last_error\"=\"boom\" "
                                              "\"payload\"=\"a\" \"state\"=\"dead\"") "metrics:"
                                                                                      "failed: "
                                                                                      "\"count\"="
                                                                                      "\"1\"\n"},
    {"a job that was put off is not put off again",
     {"enqueue A a", "claim 60000", "delay A 1 at 7", "delay A 1 at 9"},
     "1",
     "-EMQSTALE delay lease lost",
     ROW_A(ONE_CLAIMED "\"state\"=\"scheduled\"") "schedule: \"JOB0KHTOWnGLuA\"=\"7\"\n"},
    {"a put-off job that was swept back leaves pending, too",
     {"enqueue A a", "claim 1", "wait 2", "stalled 3 10", "delay A 1 at 7"},
     "1",
     "1",
     ROW_A(ONE_CLAIMED
           "\"stalled\"=\"1\" \"state\"=\"scheduled\"") "schedule: \"JOB0KHTOWnGLuA\"=\"7\"\n"},
    {"the budget counts failures, and a lost lease is none",
     {"enqueue A a", "claim 1", "wait 2", "stalled 9 10", "claim 60000", "retry A 2 0 2 boom",
      "!ZADD schedule 5 A"},
     NULL,
     NULL,
     ROW_A("\"attempts\"=\"2\" \"last_error\"=\"boom\" \"payload\"=\"a\" \"stalled\"=\"1\" "
           "\"state\"=\"scheduled\"") "schedule: \"JOB0KHTOWnGLuA\"=\"5\"\n"},
    {"an id without a row is dropped and not promoted",
     {"!ZADD schedule 5 A", "promote 10"},
     "1",
     "0",
     ""},
    {"an id whose row is elsewhere is dropped from schedule",
     {"enqueue A a", "!ZADD schedule 5 A", "promote 10"},
     "1",
     "0",
     ROW_A("\"attempts\"=\"0\" \"payload\"=\"a\" \"state\"=\"pending\"") "pending: "
                                                                         "\"JOB0KHTOWnGLuA\"="
                                                                         "\"0\"\n"},
    {"a lease without a row is dropped",
     {"!ZADD active 5 A", "stalled 3 10"},
     "[[\"JOB0KHTOWnGLuA\"], []]",
     "[[], []]",
     ""},
    {"a job's log lines go with it",
     {"enqueue A a", "claim 60000", "!RPUSH job:A:logs line", "complete A 1"},
     "1",
     "1",
     "metrics:completed: \"count\"=\"1\"\n"},
    {"a lane row is not completed here",
     {"enqueue A a", "claim 60000", "!HSET job:A group g", "!ZADD active 5 A", "complete A 1"},
     "1",
     "-EMQLANE lane row: use the EMQ.GROUP verb",
     "active: \"JOB0KHTOWnGLuA\"=\"5\"\n" ROW_A(
         "\"attempts\"=\"1\" \"group\"=\"g\" \"payload\"=\"a\" "
         "\"state\"=\"active\"")},
    {"a flow row does not fail here",
     {"enqueue A a", "claim 60000", "!HSET job:A parent p", "!ZADD active 5 A",
      "retry A 1 0 1 boom"},
     "\"dead\"",
     "-EMQFLOW flow row: use the EMQ.FLOW verb",
     "active: \"JOB0KHTOWnGLuA\"=\"5\"\n" ROW_A(
         "\"attempts\"=\"1\" \"parent\"=\"p\" \"payload\"=\"a\" "
         "\"state\"=\"active\"")},
    {"a next life begins with new budgets",
     {"enqueue A a", "claim 1", "wait 2", "stalled 9 10", "claim 60000", "retry A 2 0 1 boom",
      "reprocess A"},
     "1",
     "1",
     ROW_A("\"attempts\"=\"2\" \"payload\"=\"a\" \"state\"=\"pending\"") "metrics:failed: "
                                                                         "\"count\"=\"1\"\n"
                                                                         "pending: "
                                                                         "\"JOB0KHTOWnGLuA\"="
                                                                         "\"0\"\n"},
};

static void expect_same(const char *name, const char *step, const char *what, const char *script,
                        const char *native) {
    if (strcmp(script, native) != 0) {
        fail_msg("%s, after \"%s\": the %s differ\nscript: %s\nnative: %s", name, step, what,
                 script, native);
    }
}

static void check_equal(const char *name, const char *step, const diff_result *result) {
    if (result->script_reply != NULL) {
        expect_same(name, step, "replies", result->script_reply, result->native_reply);
    }
    expect_same(name, step, "states", result->script_state, result->native_state);
}

static void the_ordinary_path_is_equal(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(equal_cases) / sizeof(equal_cases[0]); i++) {
        diff_clear();
        for (const char *const *step = equal_cases[i].steps; *step != NULL; step++) {
            diff_result result = diff_step(*step);
            check_equal(equal_cases[i].name, *step, &result);
            diff_result_free(&result);
        }
    }
}

/* A declared delta must occur: a reply or a state that is equal after all fails, too. */
static void check_delta(const delta *d, const diff_result *result) {
    int differs = strcmp(result->script_state, result->native_state) != 0;
    if (d->native_reply != NULL) {
        expect_text(__FILE__, __LINE__, result->script_reply, d->script_reply);
        expect_text(__FILE__, __LINE__, result->native_reply, d->native_reply);
        differs |= strcmp(d->script_reply, d->native_reply) != 0;
    }
    if (strcmp(result->native_state, d->native_state) != 0) {
        fail_msg("%s: the native side holds\n%sand not\n%s", d->name, result->native_state,
                 d->native_state);
    }
    if (!differs) {
        fail_msg("%s: declared, but nothing differs", d->name);
    }
}

static void each_declared_delta_occurs_and_no_other(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(deltas) / sizeof(deltas[0]); i++) {
        const delta *d = &deltas[i];
        diff_clear();
        for (const char *const *step = d->steps; *step != NULL; step++) {
            diff_result result = diff_step(*step);
            if (step[1] == NULL) {
                check_delta(d, &result);
            }
            diff_result_free(&result);
        }
    }
}

/* ---- afterwards ---- */

static void the_log_holds_no_verb(void **state) {
    (void)state;
    long long mark = aof_mark(&diff_server);
    for (size_t i = 0; i < sizeof(equal_cases) / sizeof(equal_cases[0]); i++) {
        diff_clear();
        for (const char *const *step = equal_cases[i].steps; *step != NULL; step++) {
            diff_result result = diff_step(*step);
            diff_result_free(&result);
        }
    }
    char *log = aof_since(&diff_server, mark);
    assert_non_null(strstr(log, "HSET"));
    assert_null(strstr(log, "EMQ."));
    assert_null(strstr(log, "EVAL"));
    free(log);
}

/* Leaves jobs in every state behind. */
static void fill(void) {
    static const char *const steps[] = {
        "enqueue A a",        "enqueue B b",
        "enqueue C c",        "schedule D d in 3600000",
        "enqueue E e",        "claim 1000",
        "claim 1000",         "claim 1000",
        "complete A 1",       "retry B 1 60000 3 boom",
        "retry C 1 0 1 dead", "enqueue F f",
        "claim 1000",
    };
    diff_clear();
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        diff_result result = diff_step(steps[i]);
        diff_result_free(&result);
    }
}

static int replica_is_level(void *data) {
    char own[DIGEST_MAX];
    char other[DIGEST_MAX];
    return strcmp(get_digest(own, &diff_server), get_digest(other, data)) == 0;
}

static void a_replica_and_a_restart_hold_the_same(void **state) {
    static test_server replica;
    char port[16];
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)state;
    (void)snprintf(port, sizeof(port), "%d", diff_server.port);
    server_start(&replica, "--replica-of", port, NULL);
    fill();
    wait_until("the replica is level", replica_is_level, &replica);
    server_stop(&replica);
    (void)get_digest(before, &diff_server);
    server_restart(&diff_server);
    assert_string_equal(get_digest(after, &diff_server), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ordinary_path_is_equal),
        cmocka_unit_test(each_declared_delta_occurs_and_no_other),
        cmocka_unit_test(the_log_holds_no_verb),
        cmocka_unit_test(a_replica_and_a_restart_hold_the_same),
    };
    return RUN_SERVER_TESTS("diff.cases", tests, diff_start, diff_stop);
}
