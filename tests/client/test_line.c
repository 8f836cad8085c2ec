/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding: the exact line of every verb, and what is refused before there is a line. */
#include <emq/emq.h>
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "line.h"
#include "verbs.h"

#define JOB_ID "JOB0KHTOWnGLuC"
#define LONG_NAME_64 "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._"
#define LONG_NAME_128 LONG_NAME_64 LONG_NAME_64

static const emq_id job_id = {JOB_ID};

static void check_line(const emq_line *line, const char *const *words, int count) {
    assert_int_equal(line->argc, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(line->argvlen[i], strlen(words[i]));
        assert_memory_equal(line->argv[i], words[i], line->argvlen[i]);
    }
}

#define CHECK_LINE(line, ...)                                                                      \
    do {                                                                                           \
        const char *const words[] = {__VA_ARGS__};                                                 \
        check_line((line), words, (int)(sizeof(words) / sizeof(words[0])));                        \
    } while (0)

static void verbs_have_their_lines(void **state) {
    emq_line line = EMQ_LINE_INIT;
    const emq_lease lease = {"orders", {JOB_ID}, 7};
    (void)state;
    assert_int_equal(emq_line_enqueue(&line, "orders", &job_id, "payload", 7), EMQ_OK);
    CHECK_LINE(&line, "EMQ.ENQUEUE", "2", "emq:{orders}:job:" JOB_ID, "emq:{orders}:pending",
               JOB_ID, "payload");
    assert_int_equal(emq_line_claim(&line, "orders", 30000), EMQ_OK);
    CHECK_LINE(&line, "EMQ.CLAIM", "3", "emq:{orders}:pending", "emq:{orders}:active",
               "emq:{orders}:", "30000");
    assert_int_equal(emq_line_complete(&line, &lease), EMQ_OK);
    CHECK_LINE(&line, "EMQ.COMPLETE", "3", "emq:{orders}:active", "emq:{orders}:job:" JOB_ID,
               "emq:{orders}:", JOB_ID, "7");
    assert_int_equal(emq_line_install(&line), EMQ_OK);
    CHECK_LINE(&line, "EMQ.INSTALL", "1", "{emq}:version");
    assert_int_equal(emq_line_version(&line), EMQ_OK);
    CHECK_LINE(&line, "EMQ.VERSION");
    emq_line_clear(&line);
}

#define B "emq:{orders}:"
#define JOB_ID_2 "JOB0NgWEfAEJfs"
#define EVENT_ID "EVT0KHTOWnGLuC"

static const emq_lease lease_1 = {"orders", {JOB_ID}, 7};
static const emq_lease leases[2] = {{"orders", {JOB_ID}, 7}, {"orders", {JOB_ID_2}, 12}};
static const emq_id ids[2] = {{JOB_ID}, {JOB_ID_2}};
static const emq_id event_id = {EVENT_ID};
static const emq_bytes payloads[2] = {{"one", 3}, {NULL, 0}};
static const emq_field fields[2] = {{{"f", 1}, {"v", 1}}, {{"", 0}, {NULL, 0}}};
static const uint32_t offsets[2] = {0, UINT32_MAX};
static const emq_bytes key = {"any key", 7};
static const emq_bytes nothing = {NULL, 0};
static const emq_when in_a_minute = {EMQ_IN, 60000};
static const emq_when at_a_time = {EMQ_AT, INT64_C(9007199254740991)};

static void settling_verbs_have_their_lines(void **state) {
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    assert_int_equal(emq_line_extend(&line, &lease_1, 5), EMQ_OK);
    CHECK_LINE(&line, "EMQ.EXTEND", "2", B "active", B "job:" JOB_ID, JOB_ID, "7", "5");
    assert_int_equal(emq_line_extends(&line, leases, 2, 5), EMQ_OK);
    CHECK_LINE(&line, "EMQ.EXTENDS", "2", B "active", B, "5", JOB_ID, "7", JOB_ID_2, "12");
    assert_int_equal(emq_line_completes(&line, leases, 2), EMQ_OK);
    CHECK_LINE(&line, "EMQ.COMPLETES", "2", B "active", B, JOB_ID, "7", JOB_ID_2, "12");
    assert_int_equal(emq_line_delay(&line, &lease_1, in_a_minute), EMQ_OK);
    CHECK_LINE(&line, "EMQ.DELAY", "3", B "job:" JOB_ID, B "active", B "schedule", JOB_ID, "7",
               "in", "60000");
    assert_int_equal(emq_line_fail(&line, &lease_1, 100, 3, "why", 3), EMQ_OK);
    CHECK_LINE(&line, "EMQ.FAIL", "5", B "active", B "schedule", B "dead", B "job:" JOB_ID, B,
               JOB_ID, "7", "100", "3", "why");
    assert_int_equal(emq_line_requeue(&line, &lease_1), EMQ_OK);
    CHECK_LINE(&line, "EMQ.REQUEUE", "3", B "active", B "pending", B "job:" JOB_ID, JOB_ID, "7");
    emq_line_clear(&line);
}

static void other_verbs_have_their_lines(void **state) {
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    assert_int_equal(emq_line_schedule(&line, "orders", &job_id, "p", 1, at_a_time), EMQ_OK);
    CHECK_LINE(&line, "EMQ.SCHEDULE", "2", B "job:" JOB_ID, B "schedule", JOB_ID, "p", "at",
               "9007199254740991");
    assert_int_equal(emq_line_enqueues(&line, "orders", ids, payloads, 2), EMQ_OK);
    CHECK_LINE(&line, "EMQ.ENQUEUES", "2", B "pending", B, JOB_ID, "one", JOB_ID_2, "");
    assert_int_equal(emq_line_claims(&line, "orders", 5, 10, 0), EMQ_OK);
    CHECK_LINE(&line, "EMQ.CLAIMS", "3", B "pending", B "active", B, "5", "10");
    assert_int_equal(emq_line_claims(&line, "orders", 5, 1000, 3600000), EMQ_OK);
    CHECK_LINE(&line, "EMQ.CLAIMS", "3", B "pending", B "active", B, "5", "1000", "3600000");
    assert_int_equal(emq_line_promote(&line, "orders", 9), EMQ_OK);
    CHECK_LINE(&line, "EMQ.PROMOTE", "3", B "schedule", B "pending", B, "9");
    assert_int_equal(emq_line_reschedule(&line, "orders", &job_id, in_a_minute), EMQ_OK);
    CHECK_LINE(&line, "EMQ.RESCHEDULE", "2", B "job:" JOB_ID, B "schedule", JOB_ID, "in", "60000");
    assert_int_equal(emq_line_reprocess(&line, "orders", &job_id), EMQ_OK);
    CHECK_LINE(&line, "EMQ.REPROCESS", "3", B "job:" JOB_ID, B "dead", B "pending", JOB_ID);
    assert_int_equal(emq_line_stalled_check(&line, "orders", 2, 10000), EMQ_OK);
    CHECK_LINE(&line, "EMQ.STALLED.CHECK", "4", B "active", B "pending", B "dead", B, "2", "10000");
    assert_int_equal(emq_line_pause(&line, "orders"), EMQ_OK);
    CHECK_LINE(&line, "EMQ.PAUSE", "2", B "meta", B);
    assert_int_equal(emq_line_resume(&line, "orders"), EMQ_OK);
    CHECK_LINE(&line, "EMQ.RESUME", "4", B "meta", B "pending", B "ring", B);
    emq_line_clear(&line);
}

static void the_bus_and_bitmaps_have_their_lines(void **state) {
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    assert_int_equal(emq_line_append(&line, "orders", "s", &event_id, fields, 2), EMQ_OK);
    CHECK_LINE(&line, "EMQ.APPEND", "1", B "stream:s", EVENT_ID, "f", "v", "", "");
    assert_int_equal(emq_line_append(&line, "orders", "s", &event_id, NULL, 0), EMQ_OK);
    CHECK_LINE(&line, "EMQ.APPEND", "1", B "stream:s", EVENT_ID);
    assert_int_equal(emq_line_publish(&line, "orders", key, nothing, fields, 1), EMQ_OK);
    CHECK_LINE(&line, "EMQ.PUBLISH", "1", B, "any key", "", "f", "v");
    assert_int_equal(emq_line_failures_incr(&line, "orders", "s", "g", "1-2"), EMQ_OK);
    CHECK_LINE(&line, "EMQ.FAILURES.INCR", "1", B "stream:s:failures", "g", "1-2");
    assert_int_equal(emq_line_tra_info(&line), EMQ_OK);
    CHECK_LINE(&line, "TRA.INFO");
    assert_int_equal(emq_line_tra_commands(&line), EMQ_OK);
    CHECK_LINE(&line, "TRA.COMMANDS");
    assert_int_equal(emq_line_tra_bitset(&line, key, offsets, 2), EMQ_OK);
    CHECK_LINE(&line, "TRA.BITSET", "any key", "0", "4294967295");
    assert_int_equal(emq_line_tra_bitclear(&line, key, offsets, 1), EMQ_OK);
    CHECK_LINE(&line, "TRA.BITCLEAR", "any key", "0");
    assert_int_equal(emq_line_tra_bitget(&line, key, offsets, 2), EMQ_OK);
    CHECK_LINE(&line, "TRA.BITGET", "any key", "0", "4294967295");
    assert_int_equal(emq_line_tra_bitscan(&line, key, 1, 2, 3), EMQ_OK);
    CHECK_LINE(&line, "TRA.BITSCAN", "any key", "1", "2", "LIMIT", "3");
    emq_line_clear(&line);
}

/* One line of each row of the verb table. */
static int build_line(emq_line *line, int verb) {
    switch (verb) {
    case EMQ_VERB_VERSION:
        return emq_line_version(line);
    case EMQ_VERB_INSTALL:
        return emq_line_install(line);
    case EMQ_VERB_ENQUEUE:
        return emq_line_enqueue(line, "q", &job_id, NULL, 0);
    case EMQ_VERB_CLAIM:
        return emq_line_claim(line, "q", 1);
    case EMQ_VERB_COMPLETE:
        return emq_line_complete(line, &lease_1);
    case EMQ_VERB_SCHEDULE:
        return emq_line_schedule(line, "q", &job_id, NULL, 0, in_a_minute);
    case EMQ_VERB_EXTEND:
        return emq_line_extend(line, &lease_1, 1);
    case EMQ_VERB_EXTENDS:
        return emq_line_extends(line, leases, 1, 1);
    case EMQ_VERB_PROMOTE:
        return emq_line_promote(line, "q", 1);
    case EMQ_VERB_RESCHEDULE:
        return emq_line_reschedule(line, "q", &job_id, in_a_minute);
    case EMQ_VERB_DELAY:
        return emq_line_delay(line, &lease_1, in_a_minute);
    case EMQ_VERB_FAIL:
        return emq_line_fail(line, &lease_1, 0, 1, NULL, 0);
    case EMQ_VERB_REPROCESS:
        return emq_line_reprocess(line, "q", &job_id);
    case EMQ_VERB_REQUEUE:
        return emq_line_requeue(line, &lease_1);
    case EMQ_VERB_STALLED_CHECK:
        return emq_line_stalled_check(line, "q", 1, 1);
    case EMQ_VERB_ENQUEUES:
        return emq_line_enqueues(line, "q", ids, payloads, 1);
    case EMQ_VERB_CLAIMS:
        return emq_line_claims(line, "q", 1, 1, 0);
    case EMQ_VERB_COMPLETES:
        return emq_line_completes(line, leases, 1);
    case EMQ_VERB_PAUSE:
        return emq_line_pause(line, "q");
    case EMQ_VERB_RESUME:
        return emq_line_resume(line, "q");
    case EMQ_VERB_APPEND:
        return emq_line_append(line, "q", "s", &event_id, NULL, 0);
    case EMQ_VERB_PUBLISH:
        return emq_line_publish(line, "q", nothing, nothing, NULL, 0);
    case EMQ_VERB_FAILURES_INCR:
        return emq_line_failures_incr(line, "q", "s", "g", "1-1");
    case EMQ_VERB_TRA_INFO:
        return emq_line_tra_info(line);
    case EMQ_VERB_TRA_COMMANDS:
        return emq_line_tra_commands(line);
    case EMQ_VERB_TRA_BITSET:
        return emq_line_tra_bitset(line, key, offsets, 1);
    case EMQ_VERB_TRA_BITCLEAR:
        return emq_line_tra_bitclear(line, key, offsets, 1);
    case EMQ_VERB_TRA_BITGET:
        return emq_line_tra_bitget(line, key, offsets, 1);
    case EMQ_VERB_TRA_BITSCAN:
        return emq_line_tra_bitscan(line, key, 0, 1, 1);
    default:
        return 1;
    }
}

/* What the server checks as arity is what the lines have, and the keys stand where it looks. */
static void every_row_has_its_line(void **state) {
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    for (int i = 0; i < EMQ_VERBS; i++) {
        const emq_verb *verb = &emq_verbs[i];
        assert_int_equal(build_line(&line, i), EMQ_OK);
        assert_int_equal(line.argvlen[0], strlen(verb->name));
        assert_memory_equal(line.argv[0], verb->name, line.argvlen[0]);
        int arity = emq_verb_arity(verb);
        int values = line.argc - 1 - emq_verb_counts_keys(verb) - verb->key_count;
        assert_true(arity < 0 ? line.argc >= -arity : line.argc == arity);
        assert_true(emq_verb_takes(verb, values));
        if (emq_verb_counts_keys(verb)) {
            char count[4];
            assert_int_equal(snprintf(count, sizeof(count), "%d", verb->key_count),
                             line.argvlen[1]);
            assert_memory_equal(line.argv[1], count, line.argvlen[1]);
        }
        for (int k = 0; k < verb->key_count && emq_verb_counts_keys(verb); k++) {
            emq_key parsed;
            assert_int_equal(emq_key_parse(&parsed, line.argv[2 + k], line.argvlen[2 + k]), EMQ_OK);
            assert_int_equal(parsed.kind, verb->keys[k]);
        }
    }
    emq_line_clear(&line);
}

/* The largest batch of the longest values. */
static void a_full_batch_fits(void **state) {
    static emq_lease many[EMQ_MEMBERS_MAX + 1];
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    for (size_t i = 0; i <= EMQ_MEMBERS_MAX; i++) {
        many[i] = (emq_lease){LONG_NAME_128, {JOB_ID}, INT64_MIN};
    }
    assert_int_equal(emq_line_extends(&line, many, EMQ_MEMBERS_MAX, 2147483647), EMQ_OK);
    assert_int_equal(line.argc, 5 + 2 * EMQ_MEMBERS_MAX);
    assert_memory_equal(line.argv[line.argc - 1], "-9223372036854775808", 20);
    assert_int_equal(emq_line_extends(&line, many, EMQ_MEMBERS_MAX + 1, 1), EMQ_EINVAL);
    assert_int_equal(emq_line_completes(&line, many, EMQ_MEMBERS_MAX + 1), EMQ_EINVAL);
    emq_line_clear(&line);
}

static void a_payload_is_borrowed(void **state) {
    static const char payload[] = "a\0b\r\n\xff";
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    assert_int_equal(emq_line_enqueue(&line, "q", &job_id, payload, sizeof(payload)), EMQ_OK);
    assert_ptr_equal(line.argv[5], payload);
    assert_int_equal(line.argvlen[5], sizeof(payload));
    assert_int_equal(emq_line_enqueue(&line, "q", &job_id, NULL, 0), EMQ_OK);
    assert_non_null(line.argv[5]);
    assert_int_equal(line.argvlen[5], 0);
    emq_line_clear(&line);
}

/* All else is the line's own: the caller's id and queue may go. */
static void the_rest_is_copied(void **state) {
    emq_line line = EMQ_LINE_INIT;
    emq_lease lease = {"orders", {JOB_ID}, 7};
    (void)state;
    assert_int_equal(emq_line_complete(&line, &lease), EMQ_OK);
    memset(&lease, 'x', sizeof(lease));
    CHECK_LINE(&line, "EMQ.COMPLETE", "3", "emq:{orders}:active", "emq:{orders}:job:" JOB_ID,
               "emq:{orders}:", JOB_ID, "7");
    emq_line_clear(&line);
}

static void memory_is_kept_until_cleared(void **state) {
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    assert_int_equal(emq_line_claim(&line, LONG_NAME_128, 2147483647), EMQ_OK);
    const void *memory = line.memory;
    assert_int_equal(emq_line_enqueue(&line, LONG_NAME_128, &job_id, "p", 1), EMQ_OK);
    CHECK_LINE(&line, "EMQ.ENQUEUE", "2", "emq:{" LONG_NAME_128 "}:job:" JOB_ID,
               "emq:{" LONG_NAME_128 "}:pending", JOB_ID, "p");
    assert_int_equal(emq_line_claim(&line, "q", 1), EMQ_OK);
    assert_ptr_equal(line.memory, memory);
    emq_line_clear(&line);
    assert_null(line.memory);
    assert_int_equal(line.argc, 0);
    emq_line_clear(&line);
    emq_line_clear(NULL);
}

static void the_longest_lease_fits(void **state) {
    emq_line line = EMQ_LINE_INIT;
    emq_lease lease = {LONG_NAME_128, {JOB_ID}, INT64_MIN};
    (void)state;
    assert_int_equal(emq_line_complete(&line, &lease), EMQ_OK);
    assert_int_equal(line.argvlen[6], 20);
    assert_memory_equal(line.argv[6], "-9223372036854775808", 20);
    lease.token = INT64_MAX;
    assert_int_equal(emq_line_complete(&line, &lease), EMQ_OK);
    assert_int_equal(line.argvlen[6], 19);
    emq_line_clear(&line);
}

/* A refused line has no arguments, so that it can't be sent by mistake. */
#define CHECK_REFUSED(want, call)                                                                  \
    do {                                                                                           \
        assert_int_equal(emq_line_version(&line), EMQ_OK);                                         \
        assert_int_equal((call), (want));                                                          \
        assert_int_equal(line.argc, 0);                                                            \
    } while (0)

static void wrong_queues_are_refused(void **state) {
    static const char *const wrong[] = {"",    "emq", "a:b",      "a{b", "a}b",
                                        "a b", "a\n", "\xc3\xa4", "a*",  LONG_NAME_128 "x"};
    emq_line line = EMQ_LINE_INIT;
    emq_lease lease = {"", {JOB_ID}, 1};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_REFUSED(EMQ_EQUEUE, emq_line_claim(&line, wrong[i], 1));
        CHECK_REFUSED(EMQ_EQUEUE, emq_line_enqueue(&line, wrong[i], &job_id, "p", 1));
    }
    CHECK_REFUSED(EMQ_EQUEUE, emq_line_complete(&line, &lease));
    memset(lease.queue, 'a', sizeof(lease.queue)); /* without its NUL */
    CHECK_REFUSED(EMQ_EQUEUE, emq_line_complete(&line, &lease));
    emq_line_clear(&line);
}

static void wrong_ids_are_refused(void **state) {
    static const struct {
        emq_id id;
        int result;
    } cases[] = {
        {{""}, EMQ_EID_LENGTH},
        {{"JOB0KHTOWnGLu"}, EMQ_EID_LENGTH},
        {{"job0KHTOWnGLuC"}, EMQ_EID_NAMESPACE},
        {{"JOB0KHTOWnGLu*"}, EMQ_EID_CHARSET},
        {{"JOBzzzzzzzzzzz"}, EMQ_EID_RANGE},
        {{"USR0KHTOWnGLuC"}, EMQ_EKIND},
    };
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        emq_lease lease = {"q", cases[i].id, 1};
        CHECK_REFUSED(cases[i].result, emq_line_enqueue(&line, "q", &cases[i].id, "p", 1));
        CHECK_REFUSED(cases[i].result, emq_line_complete(&line, &lease));
    }
    emq_line_clear(&line);
}

static void lease_ms_has_the_range_of_the_wire(void **state) {
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    CHECK_REFUSED(EMQ_EINVAL, emq_line_claim(&line, "q", 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_claim(&line, "q", UINT32_C(2147483648)));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_claim(&line, "q", UINT32_MAX));
    assert_int_equal(emq_line_claim(&line, "q", 1), EMQ_OK);
    assert_int_equal(emq_line_claim(&line, "q", 2147483647), EMQ_OK);
    emq_line_clear(&line);
}

static void values_out_of_range_are_refused(void **state) {
    static const emq_when wrong[] = {{EMQ_IN, -1},
                                     {EMQ_IN, INT64_C(315360000001)},
                                     {EMQ_AT, -1},
                                     {EMQ_AT, INT64_C(9007199254740992)},
                                     {(emq_when_mode)2, 1}};
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_REFUSED(EMQ_EINVAL, emq_line_delay(&line, &lease_1, wrong[i]));
        CHECK_REFUSED(EMQ_EINVAL, emq_line_schedule(&line, "q", &job_id, "", 0, wrong[i]));
        CHECK_REFUSED(EMQ_EINVAL, emq_line_reschedule(&line, "q", &job_id, wrong[i]));
    }
    CHECK_REFUSED(EMQ_EINVAL, emq_line_fail(&line, &lease_1, -1, 1, NULL, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_fail(&line, &lease_1, INT64_C(315360000001), 1, NULL, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_fail(&line, &lease_1, 0, 0, NULL, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_fail(&line, &lease_1, 0, UINT32_C(2147483648), NULL, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_promote(&line, "q", 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_promote(&line, "q", 10001));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_stalled_check(&line, "q", 0, 1));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_stalled_check(&line, "q", 1, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_claims(&line, "q", 1, 0, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_claims(&line, "q", 1, 1001, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_claims(&line, "q", 1, 1, 3600001));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_extend(&line, &lease_1, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_extends(&line, leases, 0, 1));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_extends(&line, leases, 1, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_enqueues(&line, "q", ids, payloads, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_tra_bitget(&line, key, offsets, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_tra_bitscan(&line, key, 0, 1, 0));
    emq_line_clear(&line);
}

/* The keys of a batch name one queue, and none of its ids. */
static void members_of_a_batch_are_checked(void **state) {
    const emq_lease two_queues[2] = {{"orders", {JOB_ID}, 7}, {"order", {JOB_ID_2}, 1}};
    const emq_lease wrong_kind[2] = {{"orders", {JOB_ID}, 7}, {"orders", {EVENT_ID}, 1}};
    const emq_id no_ids[2] = {{JOB_ID}, {"JOB0KHTOWnGLu*"}};
    const emq_bytes missing[2] = {{"", 0}, {NULL, 1}};
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    CHECK_REFUSED(EMQ_EINVAL, emq_line_completes(&line, two_queues, 2));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_extends(&line, two_queues, 2, 1));
    CHECK_REFUSED(EMQ_EKIND, emq_line_completes(&line, wrong_kind, 2));
    CHECK_REFUSED(EMQ_EID_CHARSET, emq_line_enqueues(&line, "q", no_ids, payloads, 2));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_enqueues(&line, "q", ids, missing, 2));
    CHECK_REFUSED(EMQ_EQUEUE, emq_line_enqueues(&line, "a b", ids, payloads, 2));
    CHECK_REFUSED(EMQ_EKIND, emq_line_append(&line, "q", "s", &job_id, NULL, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_append(&line, "q", "a:b", &event_id, NULL, 0));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_append(&line, "q", "s", &event_id, NULL, 1));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_failures_incr(&line, "q", "s", "g:h", "1-1"));
    CHECK_REFUSED(EMQ_EINVAL, emq_line_failures_incr(&line, "q", "s", "", "1-1"));
    emq_line_clear(&line);
}

/* Each byte that the server would cut off is not sent at all. */
static void a_long_error_is_cut(void **state) {
    static char error[65537];
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    assert_int_equal(emq_line_fail(&line, &lease_1, 0, 1, error, sizeof(error)), EMQ_OK);
    assert_int_equal(line.argvlen[line.argc - 1], 65536);
    emq_line_clear(&line);
}

static void missing_arguments_are_refused(void **state) {
    emq_line line = EMQ_LINE_INIT;
    const emq_lease lease = {"q", {JOB_ID}, 1};
    (void)state;
    assert_int_equal(emq_line_enqueue(NULL, "q", &job_id, "p", 1), EMQ_EINVAL);
    assert_int_equal(emq_line_enqueue(&line, NULL, &job_id, "p", 1), EMQ_EINVAL);
    assert_int_equal(emq_line_enqueue(&line, "q", NULL, "p", 1), EMQ_EINVAL);
    assert_int_equal(emq_line_enqueue(&line, "q", &job_id, NULL, 1), EMQ_EINVAL);
    assert_int_equal(emq_line_claim(NULL, "q", 1), EMQ_EINVAL);
    assert_int_equal(emq_line_claim(&line, NULL, 1), EMQ_EINVAL);
    assert_int_equal(emq_line_complete(NULL, &lease), EMQ_EINVAL);
    assert_int_equal(emq_line_complete(&line, NULL), EMQ_EINVAL);
    assert_int_equal(emq_line_install(NULL), EMQ_EINVAL);
    assert_int_equal(emq_line_version(NULL), EMQ_EINVAL);
    assert_null(line.memory);
}

static void the_connect_path_has_its_lines(void **state) {
    char number[EMQ_LINE_NUMBER_MAX];
    emq_line line = EMQ_LINE_INIT;
    (void)state;
    assert_int_equal(emq_line_auth(&line, NULL, "secret"), EMQ_OK);
    CHECK_LINE(&line, "AUTH", "secret");
    assert_int_equal(emq_line_auth(&line, "user", ""), EMQ_OK);
    CHECK_LINE(&line, "AUTH", "user", "");
    assert_int_equal(emq_line_select(&line, number, 2147483647), EMQ_OK);
    CHECK_LINE(&line, "SELECT", "2147483647");
    assert_int_equal(emq_line_client_name(&line, "name"), EMQ_OK);
    CHECK_LINE(&line, "CLIENT", "SETNAME", "name");
    assert_int_equal(emq_line_fence(&line), EMQ_OK);
    CHECK_LINE(&line, "GET", "{emq}:version");
    emq_line_clear(&line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_have_their_lines),
        cmocka_unit_test(settling_verbs_have_their_lines),
        cmocka_unit_test(other_verbs_have_their_lines),
        cmocka_unit_test(the_bus_and_bitmaps_have_their_lines),
        cmocka_unit_test(every_row_has_its_line),
        cmocka_unit_test(a_full_batch_fits),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(members_of_a_batch_are_checked),
        cmocka_unit_test(a_long_error_is_cut),
        cmocka_unit_test(a_payload_is_borrowed),
        cmocka_unit_test(the_rest_is_copied),
        cmocka_unit_test(memory_is_kept_until_cleared),
        cmocka_unit_test(the_longest_lease_fits),
        cmocka_unit_test(wrong_queues_are_refused),
        cmocka_unit_test(wrong_ids_are_refused),
        cmocka_unit_test(lease_ms_has_the_range_of_the_wire),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(the_connect_path_has_its_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
