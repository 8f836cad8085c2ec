/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed: JSON documents, bytes that no terminal can be hurt by, times. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json.h"
#include "tool.h"

/* The answer can't be given any more, and half of one must not be taken for it. */
static void out_of_memory(void) {
    (void)fprintf(stderr, "emq: %s\n", emq_strerror(EMQ_ENOMEM));
    exit(TOOL_BROKEN);
}

static void print_document(FILE *to, json_t *object) {
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL) {
        out_of_memory();
    }
    (void)fprintf(to, "%s\n", text);
    free(text);
    json_decref(object);
}

void tool_print_json(json_t *object) {
    print_document(stdout, object);
}

void tool_print_json_error(json_t *object) {
    (void)fflush(stdout); /* in the order in which it happened */
    print_document(stderr, object);
}

static void set_base64(json_t *object, const char *name, emq_slice bytes) {
    char full[128];
    emq_json text = {malloc((bytes.length + 2) / 3 * 4 + 1), 0};
    if (text.data == NULL) {
        out_of_memory();
    }
    emq_json_base64(&text, bytes);
    (void)snprintf(full, sizeof(full), "%s_b64", name);
    (void)json_object_set_new(object, full, json_stringn(text.data, text.length));
    free(text.data);
}

void tool_json_bytes(json_t *object, const char *name, const void *bytes, size_t n) {
    emq_slice slice = {bytes == NULL ? "" : bytes, n};
    if (emq_utf8_valid(slice)) {
        (void)json_object_set_new(object, name, json_stringn(slice.data, slice.length));
    } else {
        set_base64(object, name, slice);
    }
}

void tool_json_result(json_t *object, int result) {
    (void)json_object_set_new(object, "result", json_string(emq_err_name(result)));
}

/* The bytes of the character here; 0 where there is none that may be printed as it is. */
static size_t printable(const unsigned char *at, size_t n) {
    if (at[0] < ' ' || at[0] == '\\' || at[0] == 0x7f) {
        return 0;
    }
    if (at[0] == 0xc2 && n > 1 && at[1] < 0xa0) {
        return 0; /* the second set of control characters */
    }
    for (size_t length = 1; length <= 4 && length <= n; length++) {
        if (emq_utf8_valid((emq_slice){(const char *)at, length})) {
            return length;
        }
    }
    return 0;
}

static void print_escape(FILE *to, unsigned char c) {
    static const char named[] = "\\\\\nn\rr\tt"; /* byte, letter, byte, letter, … */
    for (size_t i = 0; i + 1 < sizeof(named); i += 2) {
        if (named[i] == (char)c) {
            (void)fprintf(to, "\\%c", named[i + 1]);
            return;
        }
    }
    (void)fprintf(to, "\\x%02x", c);
}

void tool_print_bytes(FILE *to, const void *bytes, size_t n, size_t most) {
    const unsigned char *at = bytes;
    size_t end = most != 0 && n > most ? most : n;
    for (size_t i = 0; i < end;) {
        size_t length = printable(at + i, n - i);
        if (length == 0) {
            print_escape(to, at[i]);
            i++;
        } else {
            (void)fwrite(at + i, 1, length, to);
            i += length;
        }
    }
    if (end < n) {
        (void)fputs("...", to);
    }
}

void tool_format_time(char out[TOOL_TIME_MAX], int64_t unix_ms) {
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm tm;
    if (unix_ms < 0 || gmtime_r(&seconds, &tm) == NULL || tm.tm_year > 8099) {
        (void)snprintf(out, TOOL_TIME_MAX, "%" PRId64 "ms", unix_ms);
        return;
    }
    size_t n = strftime(out, TOOL_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out + n, TOOL_TIME_MAX - n, ".%03dZ", (int)(unix_ms % 1000));
}

void tool_format_age(char out[TOOL_TIME_MAX], int64_t ms) {
    static const struct {
        int64_t ms;
        char unit;
    } units[] = {{INT64_C(86400000), 'd'}, {3600000, 'h'}, {60000, 'm'}, {1000, 's'}};
    for (size_t i = 0; i + 1 < sizeof(units) / sizeof(units[0]); i++) {
        if (ms >= units[i].ms) {
            (void)snprintf(out, TOOL_TIME_MAX, "%" PRId64 "%c %" PRId64 "%c", ms / units[i].ms,
                           units[i].unit, ms % units[i].ms / units[i + 1].ms, units[i + 1].unit);
            return;
        }
    }
    (void)snprintf(out, TOOL_TIME_MAX, "%s%" PRId64 ".%03ds", ms < 0 ? "-" : "",
                   (ms < 0 ? -ms : ms) / 1000, (int)((ms < 0 ? -ms : ms) % 1000));
}

int64_t tool_now_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
