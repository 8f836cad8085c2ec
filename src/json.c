/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings: the UTF-8 check, escapes and base64. The module links nothing but libc, so that it
 * loads wherever the server runs; these lines are all it needs of a JSON library. The command-line
 * tool shares them, so that bytes read the same wherever they are shown. */
#include "json.h"

#include <string.h>

#define DELETE 0x7f

static void put(emq_json *out, const char *bytes, size_t n) {
    if (out->data != NULL && n > 0) {
        memcpy(out->data + out->length, bytes, n);
    }
    out->length += n;
}

/* How many bytes follow a first byte, and the range of the second one, which alone tells overlong
 * forms, surrogates and what is above U+10FFFF (Unicode, table 3-7). */
typedef struct utf8_row {
    unsigned char first;
    unsigned char last;
    unsigned char following;
    unsigned char low;
    unsigned char high;
} utf8_row;

static const utf8_row utf8_table[] = {
    {0x00, 0x7f, 0, 0x00, 0x00}, {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf},
    {0xe1, 0xec, 2, 0x80, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf},
    {0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

static const utf8_row *find_row(unsigned char first) {
    for (size_t i = 0; i < sizeof(utf8_table) / sizeof(utf8_table[0]); i++) {
        if (first >= utf8_table[i].first && first <= utf8_table[i].last) {
            return &utf8_table[i];
        }
    }
    return NULL;
}

int emq_utf8_valid(emq_slice text) {
    const unsigned char *bytes = (const unsigned char *)text.data;
    for (size_t i = 0; i < text.length;) {
        const utf8_row *row = find_row(bytes[i++]);
        if (row == NULL || text.length - i < row->following) {
            return 0;
        }
        for (size_t more = 0; more < row->following; more++, i++) {
            unsigned char low = more == 0 ? row->low : 0x80;
            unsigned char high = more == 0 ? row->high : 0xbf;
            if (bytes[i] < low || bytes[i] > high) {
                return 0;
            }
        }
    }
    return 1;
}

void emq_json_raw(emq_json *out, emq_slice bytes) {
    put(out, bytes.data, bytes.length);
}

static void put_escape(emq_json *out, unsigned char c) {
    static const char digits[] = "0123456789abcdef";
    if (c == '"' || c == '\\') {
        const char escape[] = {'\\', (char)c};
        put(out, escape, sizeof(escape));
    } else {
        const char escape[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 0xf]};
        put(out, escape, sizeof(escape));
    }
}

void emq_json_text(emq_json *out, emq_slice text) {
    size_t start = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' || c == '"' || c == '\\' || c == DELETE) {
            put(out, text.data + start, i - start);
            put_escape(out, c);
            start = i + 1;
        }
    }
    put(out, text.data + start, text.length - start);
}

void emq_json_base64(emq_json *out, emq_slice bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.length; i += 3) {
        size_t n = bytes.length - i < 3 ? bytes.length - i : 3;
        unsigned group = 0;
        for (size_t j = 0; j < 3; j++) {
            group = group << 8 | (j < n ? (unsigned char)bytes.data[i + j] : 0);
        }
        char text[] = {digits[group >> 18], digits[group >> 12 & 63], '=', '='};
        if (n > 1) {
            text[2] = digits[group >> 6 & 63];
        }
        if (n > 2) {
            text[3] = digits[group & 63];
        }
        put(out, text, sizeof(text));
    }
}
