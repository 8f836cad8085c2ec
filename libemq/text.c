/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed call has to say. */
#include "text.h"

#include <emq/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void emq_text_clear(emq_text *text) {
    text->bytes[0] = '\0';
}

static void blank_control_bytes(emq_text *text) {
    for (char *c = text->bytes; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = ' ';
        }
    }
}

int emq_text_fail(emq_text *text, int result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, in the line above */
    (void)vsnprintf(text->bytes, sizeof(text->bytes), format, arguments);
    va_end(arguments);
    blank_control_bytes(text);
    return result;
}

int emq_text_fail_plain(emq_text *text, int result) {
    return emq_text_fail(text, result, "%s", emq_strerror(result));
}

int emq_text_fail_bytes(emq_text *text, int result, const char *bytes, size_t n) {
    if (n == 0) {
        return emq_text_fail_plain(text, result); /* a failure is never without words */
    }
    size_t length = n < sizeof(text->bytes) ? n : sizeof(text->bytes) - 1;
    memcpy(text->bytes, bytes, length);
    text->bytes[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (text->bytes[i] == '\0') {
            text->bytes[i] = ' ';
        }
    }
    blank_control_bytes(text);
    return result;
}

int emq_quote_length(size_t n) {
    return n < EMQ_TEXT_QUOTE_MAX ? (int)n : EMQ_TEXT_QUOTE_MAX;
}
