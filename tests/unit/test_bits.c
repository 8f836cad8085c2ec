/* SPDX-License-Identifier: Apache-2.0 */
/* Bits in the server's order, and the scan beside a slow one. */
#include "bits.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "random.h"

static void bits_stand_from_the_highest_down(void **state) {
    char bytes[3] = {0};
    (void)state;
    emq_bit_put(bytes, 0, 1);
    emq_bit_put(bytes, 7, 1);
    emq_bit_put(bytes, 17, 1);
    assert_memory_equal(bytes, "\x81\x00\x40", 3);
    emq_bit_put(bytes, 7, 1);
    emq_bit_put(bytes, 0, 0);
    emq_bit_put(bytes, 1, 0);
    assert_memory_equal(bytes, "\x01\x00\x40", 3);
    assert_int_equal(emq_bit_get(bytes, 3, 7), 1);
    assert_int_equal(emq_bit_get(bytes, 3, 6), 0);
    assert_int_equal(emq_bit_get(bytes, 3, 17), 1);
    /* nothing is set beyond the end */
    assert_int_equal(emq_bit_get(bytes, 2, 17), 0);
    assert_int_equal(emq_bit_get(bytes, 0, 7), 0);
    assert_int_equal(emq_bit_get(bytes, 3, UINT32_MAX), 0);
    assert_int_equal(emq_bit_byte(0), 0);
    assert_int_equal(emq_bit_byte(8), 1);
    assert_int_equal(emq_bit_byte(UINT32_MAX), 536870911);
}

#define ROOM 2048

static void scan_agrees(const char *bytes, size_t length, uint32_t from, uint32_t to, size_t max) {
    uint32_t got[ROOM];
    uint32_t want[ROOM];
    size_t count = 0;
    for (uint64_t at = from; at <= to && at < length * 8 && count < max; at++) {
        if (((unsigned char)bytes[at / 8] >> (7 - at % 8) & 1) != 0) {
            want[count++] = (uint32_t)at;
        }
    }
    assert_int_equal(emq_bits_scan(bytes, length, from, to, got, max), count);
    assert_memory_equal(got, want, count * sizeof(*want));
}

static void scans_agree_with_a_slow_one(void **state) {
    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t length = random_below(200);
        /* just as long as it is: the sanitizer sees a look beyond the end */
        char *bytes = calloc(1, length + 1);
        char *exact = malloc(length + (length == 0 ? 1 : 0));
        assert_true(bytes != NULL && exact != NULL);
        for (unsigned set = random_below(round % 3 == 0 ? 4 : 300); set > 0 && length > 0; set--) {
            bytes[random_below((unsigned)length)] = (char)random_below(256);
        }
        memcpy(exact, bytes, length);
        uint32_t from = random_below(10) == 0 ? UINT32_MAX : random_below(1700);
        uint32_t to = random_below(4) == 0 ? UINT32_MAX : random_below(1700);
        scan_agrees(exact, length, from, to, 1 + random_below(ROOM));
        scan_agrees(exact, length, 0, to, ROOM);
        free(exact);
        free(bytes);
    }
}

static void the_ends_of_a_range_are_in_it(void **state) {
    uint32_t found[4];
    (void)state;
    assert_int_equal(emq_bits_scan("\xff", 1, 2, 2, found, 4), 1);
    assert_int_equal(found[0], 2);
    assert_int_equal(emq_bits_scan("\xff", 1, 3, 2, found, 4), 0);
    assert_int_equal(emq_bits_scan("\xff", 1, 7, UINT32_MAX, found, 4), 1);
    assert_int_equal(emq_bits_scan("\xff", 1, 0, 7, found, 3), 3);
    assert_int_equal(emq_bits_scan("", 0, 0, UINT32_MAX, found, 4), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_stand_from_the_highest_down),
        cmocka_unit_test(scans_agree_with_a_slow_one),
        cmocka_unit_test(the_ends_of_a_range_are_in_it),
    };
    return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
