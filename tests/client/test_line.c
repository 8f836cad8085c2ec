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

/* What the server checks as arity is what the lines have. */
static void lines_have_the_arity_of_their_row(void **state) {
    emq_line line = EMQ_LINE_INIT;
    const emq_lease lease = {"q", {JOB_ID}, 1};
    (void)state;
    assert_int_equal(emq_line_enqueue(&line, "q", &job_id, NULL, 0), EMQ_OK);
    assert_int_equal(line.argc, emq_verb_arity(&emq_verbs[EMQ_VERB_ENQUEUE]));
    assert_int_equal(emq_line_claim(&line, "q", 1), EMQ_OK);
    assert_int_equal(line.argc, emq_verb_arity(&emq_verbs[EMQ_VERB_CLAIM]));
    assert_int_equal(emq_line_complete(&line, &lease), EMQ_OK);
    assert_int_equal(line.argc, emq_verb_arity(&emq_verbs[EMQ_VERB_COMPLETE]));
    assert_int_equal(emq_line_install(&line), EMQ_OK);
    assert_int_equal(line.argc, emq_verb_arity(&emq_verbs[EMQ_VERB_INSTALL]));
    assert_int_equal(emq_line_version(&line), EMQ_OK);
    assert_int_equal(line.argc, emq_verb_arity(&emq_verbs[EMQ_VERB_VERSION]));
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
        cmocka_unit_test(lines_have_the_arity_of_their_row),
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
