/* SPDX-License-Identifier: Apache-2.0 */
/* Results: every one has a name, a class and a sentence of its own, and every text that a server
 * can refuse with has its result. */
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "result.h"

static const int results[] = {
#define NUMBER(name, number, class, text) number,
    EMQ_RESULT_TABLE(NUMBER)
#undef NUMBER
};

#define RESULTS (sizeof(results) / sizeof(results[0]))

static void every_result_is_described(void **state) {
    (void)state;
#define CHECK(name, number, class, text)                                                           \
    assert_string_equal(emq_err_name(EMQ_##name), "EMQ_" #name);                                   \
    assert_string_equal(emq_strerror(EMQ_##name), text);                                           \
    assert_int_equal(emq_err_class(EMQ_##name), EMQ_CLASS_##class);
    EMQ_RESULT_TABLE(CHECK)
#undef CHECK
}

static void results_differ(void **state) {
    (void)state;
    for (size_t i = 0; i < RESULTS; i++) {
        assert_true(strlen(emq_strerror(results[i])) > 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(results[i], results[j]);
            assert_string_not_equal(emq_strerror(results[i]), emq_strerror(results[j]));
        }
    }
}

static void the_sign_tells_outcomes_from_errors(void **state) {
    (void)state;
    for (size_t i = 0; i < RESULTS; i++) {
        assert_int_equal(results[i] >= 0, emq_err_class(results[i]) == EMQ_CLASS_OK);
    }
}

static void unknown_numbers_are_answered(void **state) {
    static const int unknown[] = {5, 1000, -13, -19, -1000, -2147483647 - 1, 2147483647};
    (void)state;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_string_equal(emq_err_name(unknown[i]), "EMQ_?");
        assert_string_equal(emq_strerror(unknown[i]), "unknown result");
        assert_int_equal(emq_err_class(unknown[i]), EMQ_CLASS_INTERNAL);
    }
}

static void refusals_have_their_result(void **state) {
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"EMQWIRE expected echomq:6.0.0 but {emq}:version is absent", EMQ_EFENCE_ABSENT},
        {"EMQWIRE expected echomq:6.0.0 found echomq:5.0.0", EMQ_EFENCE},
        {"EMQWIRE expected echomq:6.0.0 found but {emq}:version is absent", EMQ_EFENCE},
        {"EMQKIND job id must be JOB-namespaced", EMQ_EKIND},
        {"EMQSTALE complete token mismatch", EMQ_ESTALE},
        {"EMQSTALE complete lease lost", EMQ_ESTALE},
        {"EMQSTALE job gone", EMQ_EJOBGONE},
        {"EMQSTALE job goner", EMQ_ESTALE},
        {"EMQSTATE not dead", EMQ_ESTATE},
        {"EMQLANE lane row: use the EMQ.GROUP verb", EMQ_ELANE},
        {"EMQFLOW flow row: use the EMQ.FLOW verb", EMQ_EFLOW},
        {"EMQLOCK job is locked", EMQ_ELOCK},
        {"WRONGTYPE Operation against a key holding the wrong kind of value", EMQ_EWRONGTYPE},
        {"NOPERM No permissions to access a key", EMQ_ENOPERM},
        {"ERR EMQ shape ENQUEUE expects 2 keys and 2 values", EMQ_ESHAPE},
        {"ERR EMQ layout CLAIM key 1 must be emq:{q}:pending", EMQ_ELAYOUT},
        {"ERR EMQ write-paused", EMQ_EWRITEPAUSED},
        {"ERR EMQ lease_ms must be an integer from 1 to 2147483647", EMQ_EVALUE},
        {"ERR EMQ row attempts is not an integer", EMQ_EVALUE},
        {"LOADING Valkey is loading the dataset in memory", EMQ_ELOADING},
        {"MASTERDOWN Link with MASTER is down", EMQ_EMASTERDOWN},
        {"READONLY You can't write against a read only replica.", EMQ_EREADONLY},
        {"OOM command not allowed when used memory > 'maxmemory'.", EMQ_EOOM},
        {"MISCONF Valkey is configured to save RDB snapshots", EMQ_EMISCONF},
        {"NOREPLICAS Not enough good replicas to write.", EMQ_ENOREPLICAS},
        {"TRYAGAIN Multiple keys request during rehashing of slot", EMQ_ETRYAGAIN},
        {"BUSY Valkey is busy running a script.", EMQ_EBUSY},
        {"UNBLOCKED client unblocked via CLIENT UNBLOCK", EMQ_EUNBLOCKED},
        {"NOAUTH Authentication required.", EMQ_EAUTH},
        {"WRONGPASS invalid username-password pair or user is disabled.", EMQ_EAUTH},
        {"ERR max number of clients reached", EMQ_ECONNECT},
        {"ERR max number of clients reached + cluster", EMQ_ECONNECT},
        {"ERR The ID specified in XADD is equal or smaller than the target stream top item",
         EMQ_EORDER},
        {"ERR The ID specified in XADD must be greater than 0-0", EMQ_ESERVER},
        {"ERR unknown command 'EMQ.CLAIM'", EMQ_ESERVER},
        {"ERR wrong number of arguments for 'emq.claim' command", EMQ_ESERVER},
        {"BUSYGROUP Consumer Group name already exists", EMQ_ESERVER},
        {"ERR EMQSTALE", EMQ_ESERVER},
        {"loading", EMQ_ESERVER},
        {"OOM", EMQ_EOOM},
        {"ERR", EMQ_ESERVER},
        {"", EMQ_ESERVER},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int result = emq_result_of_error(cases[i].text, strlen(cases[i].text));
        if (result != cases[i].result) {
            fail_msg("%s: got %s, want %s", cases[i].text, emq_err_name(result),
                     emq_err_name(cases[i].result));
        }
    }
}

/* The bytes behind the length are not looked at. */
static void texts_are_bounded(void **state) {
    (void)state;
    assert_int_equal(emq_result_of_error("OOMPH", 3), EMQ_EOOM);
    assert_int_equal(emq_result_of_error("OOMPH", 5), EMQ_ESERVER);
    assert_int_equal(emq_result_of_error("EMQSTALE job gone", 12), EMQ_ESTALE);
    assert_false(emq_error_is_unknown_command("ERR unknown command", 10));
    assert_true(emq_error_is_unknown_command("ERR unknown command", 19));
    assert_false(emq_error_is_unknown_command("ERR unknown commander", 21));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_is_described),
        cmocka_unit_test(results_differ),
        cmocka_unit_test(the_sign_tells_outcomes_from_errors),
        cmocka_unit_test(unknown_numbers_are_answered),
        cmocka_unit_test(refusals_have_their_result),
        cmocka_unit_test(texts_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
