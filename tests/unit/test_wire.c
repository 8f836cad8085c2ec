/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical decimals, the ranges of values, and the classes of refusals. */
#include "wire.h"

#include <emq/error.h>
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "random.h"

static void the_identity_is_that_of_wire_6(void **state) {
    (void)state;
    assert_string_equal(EMQ_WIRE, "echomq:6.0.0");
    assert_int_equal(EMQ_WIRE_EPOCH, 6);
    assert_string_equal(EMQ_FENCE_KEY, "{emq}:version");
}

static void decimals_are_read_in_one_form_only(void **state) {
    static const struct {
        const char *text;
        size_t n;
        int accepted;
        int64_t value;
    } table[] = {
        {"0", 1, 1, 0},
        {"1", 1, 1, 1},
        {"10", 2, 1, 10},
        {"2147483647", 10, 1, 2147483647},
        {"9007199254740991", 16, 1, INT64_C(9007199254740991)},
        {"9223372036854775807", 19, 1, INT64_MAX},
        {"9223372036854775808", 19, 0, 0},
        {"9999999999999999999", 19, 0, 0},
        {"18446744073709551616", 20, 0, 0},
        {"18446744073709551617", 20, 0, 0},
        {"99999999999999999999", 20, 0, 0},
        {"00000000000000000001", 20, 0, 0},
        {"", 0, 0, 0},
        {"01", 2, 0, 0},
        {"00", 2, 0, 0},
        {"+1", 2, 0, 0},
        {"-1", 2, 0, 0},
        {"-0", 2, 0, 0},
        {"1e3", 3, 0, 0},
        {"0x1", 3, 0, 0},
        {"1.5", 3, 0, 0},
        {"1.0", 3, 0, 0},
        {" 1", 2, 0, 0},
        {"1 ", 2, 0, 0},
        {" ", 1, 0, 0},
        {"1\0", 2, 0, 0},
        {"\0", 1, 0, 0},
        {"1\n", 2, 0, 0},
        {"1_000", 5, 0, 0},
        {"abc", 3, 0, 0},
        {"/", 1, 0, 0},
        {":", 1, 0, 0},
        {"\xd9\xa1", 2, 0, 0}, /* a digit of another script */
        {"123", 1, 1, 1},      /* n counts, not a NUL */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int64_t value = -7;
        int accepted = emq_decimal_parse(&value, table[i].text, table[i].n, 0, INT64_MAX);
        if (accepted != table[i].accepted || value != (table[i].accepted ? table[i].value : -7)) {
            fail_msg("\"%s\" (%zu bytes)", table[i].text, table[i].n);
        }
    }
}

static void a_range_includes_its_ends(void **state) {
    int64_t value = 0;
    (void)state;
    assert_int_equal(emq_decimal_parse(&value, "0", 1, 1, 10), 0);
    assert_int_equal(emq_decimal_parse(&value, "1", 1, 1, 10), 1);
    assert_int_equal(emq_decimal_parse(&value, "10", 2, 1, 10), 1);
    assert_int_equal(emq_decimal_parse(&value, "11", 2, 1, 10), 0);
    assert_int_equal(emq_decimal_parse(&value, "2147483648", 10, 1, 2147483647), 0);
}

static void check_format(int64_t value) {
    char expected[32];
    char text[EMQ_DECIMAL_MAX + 1];
    memset(text, '#', sizeof(text));
    size_t n = emq_decimal_format(text, value);
    assert_int_equal(n, snprintf(expected, sizeof(expected), "%lld", (long long)value));
    assert_memory_equal(text, expected, n);
    assert_int_equal(text[n], '#');
    if (value >= 0) {
        assert_int_equal(emq_decimal_length((uint64_t)value), n);
    }
}

static void decimals_are_written(void **state) {
    (void)state;
    check_format(0);
    check_format(9);
    check_format(10);
    check_format(-1);
    check_format(-10);
    check_format(INT64_MAX);
    check_format(INT64_MIN);
    check_format(INT64_MIN + 1);
    for (int i = 0; i < 100000; i++) {
        int64_t value = (int64_t)(random_next() >> random_below(64));
        char text[EMQ_DECIMAL_MAX];
        int64_t again = -1;
        check_format(value);
        check_format(value == INT64_MIN ? value : -value);
        if (value >= 0) {
            size_t n = emq_decimal_format(text, value);
            assert_int_equal(emq_decimal_parse(&again, text, n, 0, INT64_MAX), 1);
            assert_true(again == value);
        }
    }
}

static void values_have_their_ranges(void **state) {
    (void)state;
    const emq_value_facts *lease = emq_value_get_facts(EMQ_VALUE_LEASE_MS);
    assert_string_equal(lease->name, "lease_ms");
    assert_true(lease->is_integer && lease->min == 1 && lease->max == 2147483647);
    assert_string_equal(emq_value_get_facts(EMQ_VALUE_ID)->name, "id");
    assert_string_equal(emq_value_get_facts(EMQ_VALUE_PAYLOAD)->name, "payload");
    assert_string_equal(emq_value_get_facts(EMQ_VALUE_TOKEN)->name, "token");
    /* a token is compared as text, so it is no integer here */
    assert_false(emq_value_get_facts(EMQ_VALUE_TOKEN)->is_integer);
    assert_false(emq_value_get_facts(EMQ_VALUE_PAYLOAD)->is_integer);
}

static void refusals_are_classed_by_whole_words(void **state) {
    static const struct {
        const char *text;
        emq_refusal_class class;
    } table[] = {
        {"EMQWIRE expected echomq:6.0.0 but {emq}:version is absent", EMQ_REFUSAL_WIRE},
        {"EMQWIRE expected echomq:6.0.0 found x", EMQ_REFUSAL_WIRE},
        {"EMQWIRE", EMQ_REFUSAL_WIRE},
        {"EMQWIRES expected", EMQ_REFUSAL_CLASSES},
        {"EMQWIR", EMQ_REFUSAL_CLASSES},
        {"emqwire expected", EMQ_REFUSAL_CLASSES},
        {" EMQWIRE expected", EMQ_REFUSAL_CLASSES},
        {"EMQKIND job id must be JOB-namespaced", EMQ_REFUSAL_KIND},
        {"EMQSTALE complete token mismatch", EMQ_REFUSAL_STALE},
        {"EMQSTALE complete lease lost", EMQ_REFUSAL_STALE},
        {"EMQSTATE not dead", EMQ_REFUSAL_STATE},
        {"EMQLANE lane row: use the EMQ.GROUP verb", EMQ_REFUSAL_LANE},
        {"EMQFLOW flow row: use the EMQ.FLOW verb", EMQ_REFUSAL_FLOW},
        {"EMQLOCK job is locked", EMQ_REFUSAL_LOCK},
        {"WRONGTYPE Operation against a key holding the wrong kind of value",
         EMQ_REFUSAL_WRONGTYPE},
        {"NOPERM No permissions to access a key", EMQ_REFUSAL_NOPERM},
        {"ERR EMQ shape CLAIM expects 3 keys and 1 values", EMQ_REFUSAL_SHAPE},
        {"ERR EMQ layout CLAIM key 1 must be emq:{q}:pending", EMQ_REFUSAL_LAYOUT},
        {"ERR EMQ write-paused", EMQ_REFUSAL_WRITE_PAUSED},
        {"ERR EMQ write-pausedly", EMQ_REFUSAL_VALUE},
        {"ERR EMQ lease_ms must be an integer from 1 to 2147483647", EMQ_REFUSAL_VALUE},
        {"ERR EMQ row attempts is not an integer", EMQ_REFUSAL_VALUE},
        {"ERR EMQ shapes", EMQ_REFUSAL_VALUE},
        {"ERR EMQ", EMQ_REFUSAL_VALUE},
        {"ERR EMQX", EMQ_REFUSAL_CLASSES},
        {"ERR hash value is not an integer", EMQ_REFUSAL_CLASSES},
        {"OOM command not allowed", EMQ_REFUSAL_CLASSES},
        {"", EMQ_REFUSAL_CLASSES},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (emq_refusal_classify(table[i].text, strlen(table[i].text)) != table[i].class) {
            fail_msg("%s", table[i].text);
        }
    }
    /* n counts, not a NUL */
    assert_int_equal(emq_refusal_classify("EMQWIRE expected", 4), EMQ_REFUSAL_CLASSES);
    assert_int_equal(emq_refusal_classify("EMQWIREexpected", 7), EMQ_REFUSAL_WIRE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_identity_is_that_of_wire_6),
        cmocka_unit_test(decimals_are_read_in_one_form_only),
        cmocka_unit_test(a_range_includes_its_ends),
        cmocka_unit_test(decimals_are_written),
        cmocka_unit_test(values_have_their_ranges),
        cmocka_unit_test(refusals_are_classed_by_whole_words),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
