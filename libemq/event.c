/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: one flat JSON object each, of strings and one number. */
#include "event.h"

#include <jansson.h>
#include <string.h>

#include "memory.h"

#define SUFFIX "_b64" /* of the name of a value that is not UTF-8 */

/* A message while it is made. Text is never longer decoded than it is encoded, with two quotes for
 * its NUL, so that as much room as the message has is enough for all of it. */
typedef struct event_writer {
    emq_event *event;
    char *next;
    emq_text *error;
    int has_event;
    int has_job;
    int has_seq;
} event_writer;

static int fail(emq_text *error, const char *what) {
    return emq_text_fail(error, EMQ_EPROTOCOL, "not a message of EMQ.PUBLISH: %s", what);
}

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

static size_t count_padding(const char *text, size_t n) {
    if (n == 0 || text[n - 1] != '=') {
        return 0;
    }
    return text[n - 2] == '=' ? 2 : 1;
}

/* Decodes canonical base64 with its padding; returns 0 for anything else. */
static int decode_base64(char *out, size_t *length, const char *text, size_t n) {
    if (n % 4 != 0) {
        return 0;
    }
    size_t padding = count_padding(text, n);
    size_t digits = n - padding;
    size_t written = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0) {
            return 0;
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0) {
            unsigned int rest = 6 - 2 * (unsigned int)(i % 4); /* bits of the next byte */
            out[written++] = (char)(bits >> rest & 0xff);
        }
    }
    *length = written;
    /* what the padding cuts off is zero in the one form that is written */
    return (bits & ((1U << 2 * padding) - 1)) == 0;
}

/* 1 or 0; -1 when there is no memory to tell. */
static int is_utf8(const char *bytes, size_t n) {
    json_t *checked = json_stringn(bytes, n);
    if (checked != NULL) {
        json_decref(checked);
        return 1;
    }
    checked = json_stringn_nocheck(bytes, n);
    int is_memory_there = checked != NULL;
    json_decref(checked);
    return is_memory_there ? 0 : -1;
}

/* Closes what was written at the end of the memory with its NUL. */
static emq_event_bytes keep_written(event_writer *w, size_t length) {
    emq_event_bytes kept = {w->next, length};
    w->next[length] = '\0';
    w->next += length + 1;
    return kept;
}

static emq_event_bytes keep(event_writer *w, const char *bytes, size_t length) {
    memcpy(w->next, bytes, length);
    return keep_written(w, length);
}

/* Whether a name has the suffix, and its length without it. The rest may be empty. */
static int has_suffix(const char *name, size_t *plain) {
    size_t length = strlen(name);
    size_t suffix = sizeof(SUFFIX) - 1;
    *plain = length >= suffix ? length - suffix : 0;
    return length >= suffix && strcmp(name + *plain, SUFFIX) == 0;
}

static int add_base64(event_writer *w, emq_event_bytes *out, const json_t *value) {
    size_t length = 0;
    if (!decode_base64(w->next, &length, json_string_value(value), json_string_length(value))) {
        return fail(w->error, "a value is no base64");
    }
    *out = keep_written(w, length);
    return EMQ_OK;
}

/* `event` and `job`: names that are taken, so that the form with the suffix is always base64. */
static int add_known(event_writer *w, emq_event_bytes *out, int *has, const char *name,
                     const json_t *value) {
    if (*has) {
        return fail(w->error, "event or job stands twice");
    }
    size_t plain = 0;
    *has = 1;
    if (has_suffix(name, &plain)) {
        return add_base64(w, out, value);
    }
    *out = keep(w, json_string_value(value), json_string_length(value));
    return EMQ_OK;
}

/* A publisher may give a field such a name himself. Only what is not UTF-8 is sent as base64, so
 * anything else under such a name is that field as it stands. */
static int add_field(event_writer *w, const char *name, const json_t *value) {
    emq_event_field *field = &w->event->fields[w->event->count];
    size_t plain = 0;
    size_t length = 0;
    if (has_suffix(name, &plain) &&
        decode_base64(w->next, &length, json_string_value(value), json_string_length(value))) {
        int is_text = is_utf8(w->next, length);
        if (is_text < 0) {
            return emq_text_fail_plain(w->error, EMQ_ENOMEM);
        }
        if (!is_text) {
            field->value = keep_written(w, length);
            field->name = keep(w, name, plain).bytes;
            w->event->count++;
            return EMQ_OK;
        }
    }
    field->value = keep(w, json_string_value(value), json_string_length(value));
    field->name = keep(w, name, strlen(name)).bytes;
    w->event->count++;
    return EMQ_OK;
}

static int is_named(const char *name, const char *word) {
    size_t length = strlen(word);
    return strncmp(name, word, length) == 0 &&
           (name[length] == '\0' || strcmp(name + length, SUFFIX) == 0);
}

static int add_member(event_writer *w, const char *name, const json_t *value) {
    if (strcmp(name, "seq") == 0) {
        w->has_seq = json_is_integer(value);
        w->event->seq = json_integer_value(value);
        return w->has_seq ? EMQ_OK : fail(w->error, "seq is no integer");
    }
    if (!json_is_string(value)) {
        return fail(w->error, "a value is no string");
    }
    if (is_named(name, "event")) {
        return add_known(w, &w->event->event, &w->has_event, name, value);
    }
    if (is_named(name, "job")) {
        return add_known(w, &w->event->job, &w->has_job, name, value);
    }
    return add_field(w, name, value);
}

static int add_members(event_writer *w, json_t *object) {
    int result = EMQ_OK;
    for (void *i = json_object_iter(object); i != NULL && result == EMQ_OK;
         i = json_object_iter_next(object, i)) {
        result = add_member(w, json_object_iter_key(i), json_object_iter_value(i));
    }
    if (result == EMQ_OK && !(w->has_event && w->has_job && w->has_seq)) {
        result = fail(w->error, "event, job or seq is missing");
    }
    return result;
}

/* A message with its text, and room behind it for all that comes out of the text. */
static emq_event *allocate(event_writer *w, size_t members, const char *text, size_t n) {
    size_t head = sizeof(emq_event) + members * sizeof(emq_event_field);
    emq_event *event = emq_malloc(head + (n + 1) * 2);
    if (event != NULL) {
        memset(event, 0, head);
        w->event = event;
        w->next = (char *)event + head;
        event->text = keep(w, text, n);
    }
    return event;
}

static int build(emq_event **out, json_t *object, const char *text, size_t n, emq_text *error) {
    event_writer w = {.error = error};
    if (!json_is_object(object)) {
        return fail(error, "no JSON object");
    }
    emq_event *event = allocate(&w, json_object_size(object), text, n);
    if (event == NULL) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    int result = add_members(&w, object);
    if (result != EMQ_OK) {
        emq_free(event);
        return result;
    }
    *out = event;
    return EMQ_OK;
}

static json_t *load(const char *text, size_t n, json_error_t *json) {
    return json_loadb(text, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, json);
}

/* jansson takes some failed allocations for wrong syntax. So what it refuses is read once more, if
 * there is memory, before it is called wrong. */
static int load_again(json_t **out, const char *text, size_t n, emq_text *error) {
    json_error_t json;
    void *memory = emq_malloc(n + 1);
    if (memory == NULL) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    emq_free(memory);
    *out = load(text, n, &json);
    if (*out != NULL) {
        return EMQ_OK;
    }
    return json_error_code(&json) == json_error_out_of_memory
               ? emq_text_fail_plain(error, EMQ_ENOMEM)
               : fail(error, json.text);
}

int emq_event_parse(emq_event **out, const char *text, size_t n, emq_text *error) {
    json_error_t json;
    *out = NULL;
    json_t *object = load(text, n, &json);
    int result = object == NULL ? load_again(&object, text, n, error) : EMQ_OK;
    if (result == EMQ_OK) {
        result = build(out, object, text, n, error);
        json_decref(object);
    }
    return result;
}

static const char *tell(const emq_event_bytes *bytes, size_t *n) {
    if (n != NULL) {
        *n = bytes == NULL ? 0 : bytes->length;
    }
    return bytes == NULL ? NULL : bytes->bytes;
}

const char *emq_event_get_event(const emq_event *event, size_t *n) {
    return tell(event == NULL ? NULL : &event->event, n);
}

const char *emq_event_get_job(const emq_event *event, size_t *n) {
    return tell(event == NULL ? NULL : &event->job, n);
}

const char *emq_event_get_text(const emq_event *event, size_t *n) {
    return tell(event == NULL ? NULL : &event->text, n);
}

int64_t emq_event_get_seq(const emq_event *event) {
    return event == NULL ? 0 : event->seq;
}

int64_t emq_event_get_gap(const emq_event *event) {
    return event == NULL ? 0 : event->gap;
}

int emq_event_is_resumed(const emq_event *event) {
    return event != NULL && event->is_resumed;
}

size_t emq_event_get_count(const emq_event *event) {
    return event == NULL ? 0 : event->count;
}

const char *emq_event_get_name(const emq_event *event, size_t i) {
    return i < emq_event_get_count(event) ? event->fields[i].name : NULL;
}

const char *emq_event_get_value(const emq_event *event, size_t i, size_t *n) {
    return tell(i < emq_event_get_count(event) ? &event->fields[i].value : NULL, n);
}

const char *emq_event_get_field(const emq_event *event, const char *name, size_t *n) {
    size_t count = name == NULL ? 0 : emq_event_get_count(event);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(event->fields[i].name, name) == 0) {
            return tell(&event->fields[i].value, n);
        }
    }
    return tell(NULL, n);
}

void emq_event_free(emq_event *event) {
    emq_free(event);
}
