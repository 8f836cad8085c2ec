/* SPDX-License-Identifier: Apache-2.0 */
/* What a message is made of: the UTF-8 check, the escapes, base64. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "random.h"

static emq_slice bytes(const char *data, size_t n) {
    return (emq_slice){data, n};
}

#define VALID(text) assert_int_equal(emq_utf8_valid(bytes((text), sizeof(text) - 1)), 1)
#define INVALID(text) assert_int_equal(emq_utf8_valid(bytes((text), sizeof(text) - 1)), 0)

static void utf8_is_what_the_standard_says(void **state) {
    (void)state;
    VALID("");
    VALID("text");
    VALID("\0");
    VALID("\x7f");
    VALID("\xc2\x80");
    VALID("\xdf\xbf");
    VALID("\xe0\xa0\x80");
    VALID("\xed\x9f\xbf");
    VALID("\xee\x80\x80");
    VALID("\xef\xbf\xbf");
    VALID("\xf0\x90\x80\x80");
    VALID("\xf4\x8f\xbf\xbf");
    VALID("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z");
    /* a byte that starts nothing */
    INVALID("\x80");
    INVALID("\xbf");
    INVALID("\xff");
    INVALID("\xfe");
    INVALID("\xf5\x80\x80\x80");
    /* overlong forms */
    INVALID("\xc0\x80");
    INVALID("\xc1\xbf");
    INVALID("\xe0\x80\x80");
    INVALID("\xe0\x9f\xbf");
    INVALID("\xf0\x8f\xbf\xbf");
    /* surrogates, and what is beyond the last character */
    INVALID("\xed\xa0\x80");
    INVALID("\xed\xbf\xbf");
    INVALID("\xf4\x90\x80\x80");
    /* cut short, and a wrong byte in each place */
    INVALID("\xc3");
    INVALID("\xe2\x82");
    INVALID("\xf0\x9f\x98");
    INVALID("\xc3\x28");
    INVALID("\xe2\x28\xa1");
    INVALID("\xe2\x82\x28");
    INVALID("\xf0\x28\x8c\xbc");
    INVALID("\xf0\x9f\x28\xbc");
    INVALID("\xf0\x9f\x98\x28");
    INVALID("fine\xc3\xa4 and then\x80");
}

/* A second opinion: decodes a character the long way, and compares it with its shortest form. */
static int decodes(const unsigned char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        unsigned first = text[i];
        size_t more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        if ((first >= 0x80 && first < 0xc0) || first > 0xf7 || more >= n - i) {
            return 0;
        }
        unsigned value = more == 0 ? first : first & (0x3fU >> more);
        for (size_t j = 1; j <= more; j++) {
            if ((text[i + j] & 0xc0) != 0x80) {
                return 0;
            }
            value = value << 6 | (text[i + j] & 0x3fU);
        }
        size_t shortest = value < 0x80 ? 0 : value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
        if (shortest != more || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
            return 0;
        }
        i += more + 1;
    }
    return 1;
}

static void utf8_agrees_with_a_second_opinion(void **state) {
    static const unsigned char likely[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0,
                                           0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
                                           0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5};
    size_t valid = 0;
    (void)state;
    for (int i = 0; i < 500000; i++) {
        unsigned char text[6];
        size_t n = 1 + random_below(sizeof(text));
        for (size_t j = 0; j < n; j++) {
            text[j] = likely[random_below(sizeof(likely))];
        }
        int got = emq_utf8_valid(bytes((const char *)text, n));
        assert_int_equal(got, decodes(text, n));
        valid += got ? 1 : 0;
    }
    assert_true(valid > 1000);
}

typedef void (*writer)(emq_json *out, emq_slice text);

/* The writer answers this, and counts the same number of bytes when it has no room. */
static void writes(writer write, emq_slice text, const char *want) {
    char room[256];
    emq_json counted = {0};
    emq_json out = {.data = room};
    memset(room, '#', sizeof(room));
    write(&counted, text);
    assert_int_equal(counted.length, strlen(want));
    write(&out, text);
    assert_int_equal(out.length, strlen(want));
    assert_memory_equal(room, want, strlen(want));
    assert_int_equal(room[strlen(want)], '#');
}

#define TEXT(text, want) writes(emq_json_text, bytes((text), sizeof(text) - 1), (want))
#define BASE64(text, want) writes(emq_json_base64, bytes((text), sizeof(text) - 1), (want))

static void text_is_escaped(void **state) {
    (void)state;
    TEXT("", "");
    TEXT("plain text /", "plain text /");
    TEXT("\"", "\\\"");
    TEXT("\\", "\\\\");
    TEXT("a\"b\\c", "a\\\"b\\\\c");
    TEXT("\0\x01\x1f", "\\u0000\\u0001\\u001f");
    TEXT("\n\t\r", "\\u000a\\u0009\\u000d");
    TEXT("\x7f", "\\u007f");
    TEXT(" ~", " ~");
    TEXT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
}

/* The examples of RFC 4648, and every digit. */
static void bytes_become_base64(void **state) {
    (void)state;
    BASE64("", "");
    BASE64("f", "Zg==");
    BASE64("fo", "Zm8=");
    BASE64("foo", "Zm9v");
    BASE64("foob", "Zm9vYg==");
    BASE64("fooba", "Zm9vYmE=");
    BASE64("foobar", "Zm9vYmFy");
    BASE64("\xff", "/w==");
    BASE64("\0\0\0", "AAAA");
    BASE64(
        "\x00\x10\x83\x10\x51\x87\x20\x92\x8b\x30\xd3\x8f\x41\x14\x93\x51\x55\x97\x61\x96\x9b\x71"
        "\xd7\x9f\x82\x18\xa3\x92\x59\xa7\xa2\x9a\xab\xb2\xdb\xaf\xc3\x1c\xb3\xd3\x5d\xb7\xe3\x9e"
        "\xbb\xf3\xdf\xbf",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_what_the_standard_says),
        cmocka_unit_test(utf8_agrees_with_a_second_opinion),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(bytes_become_base64),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
