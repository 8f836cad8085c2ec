/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding: the line of every verb, built from its row in the verb table. */
#include "line.h"

#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "verbs.h"

/* What a verb's keys and values are made of; only what its row asks for is looked at. */
typedef struct line_parts {
    const char *queue;
    const emq_id *id;
    emq_slice payload;
    int64_t token;
    int64_t lease_ms;
} line_parts;

/* Where the next argument's text goes. */
typedef struct line_writer {
    emq_line *line;
    char *next;
    size_t left;
} line_writer;

/* Every key, the id and each number: what a line keeps itself, at most. */
#define LINE_TEXT_MAX                                                                              \
    (EMQ_DECIMAL_MAX + (size_t)EMQ_VERB_KEYS_MAX * (EMQ_KEY_MAX + 1) +                             \
     (size_t)EMQ_VERB_VALUES_MAX * EMQ_DECIMAL_MAX)

/* One block holds the pointers, the lengths and the texts; it is kept for the next line. */
static int prepare(line_writer *writer, emq_line *line, int argc, size_t text_size) {
    size_t count = (size_t)argc;
    size_t vectors = count * (sizeof(*line->argv) + sizeof(*line->argvlen));
    size_t size = vectors + text_size;
    line->argc = 0;
    if (size > line->memory_size) {
        void *memory = realloc(line->memory, size);
        if (memory == NULL) {
            return EMQ_ENOMEM;
        }
        line->memory = memory;
        line->memory_size = size;
    }
    line->argv = line->memory;
    line->argvlen = (size_t *)(void *)(line->argv + count);
    *writer = (line_writer){line, (char *)line->memory + vectors, text_size};
    return EMQ_OK;
}

static void add_borrowed(line_writer *writer, const char *bytes, size_t n) {
    emq_line *line = writer->line;
    line->argv[line->argc] = bytes;
    line->argvlen[line->argc] = n;
    line->argc++;
}

/* Adds what was just written at writer->next. */
static void add_written(line_writer *writer, size_t n) {
    add_borrowed(writer, writer->next, n);
    writer->next += n;
    writer->left -= n;
}

static void add_number(line_writer *writer, int64_t number) {
    add_written(writer, emq_decimal_format(writer->next, number));
}

static int add_key(line_writer *writer, emq_key_kind kind, const line_parts *parts) {
    int length = emq_key_kind_is_named(kind)
                     ? emq_key_job(writer->next, writer->left, parts->queue, parts->id)
                     : emq_key_queue(writer->next, writer->left, parts->queue, kind);
    if (length < 0) {
        return length;
    }
    add_written(writer, (size_t)length);
    return EMQ_OK;
}

static int add_value(line_writer *writer, emq_value_kind kind, const line_parts *parts) {
    const emq_value_facts *facts = emq_value_get_facts(kind);
    switch (kind) {
    case EMQ_VALUE_ID:
        if (parts->id == NULL) {
            return EMQ_EINVAL;
        }
        memcpy(writer->next, parts->id->text, EMQ_ID_LEN);
        add_written(writer, EMQ_ID_LEN);
        return EMQ_OK;
    case EMQ_VALUE_PAYLOAD:
        add_borrowed(writer, parts->payload.data, parts->payload.length);
        return EMQ_OK;
    case EMQ_VALUE_TOKEN:
        add_number(writer, parts->token);
        return EMQ_OK;
    case EMQ_VALUE_LEASE_MS:
        if (parts->lease_ms < facts->min || parts->lease_ms > facts->max) {
            return EMQ_EINVAL;
        }
        add_number(writer, parts->lease_ms);
        return EMQ_OK;
    default: /* a value of a verb that has no line here */
        return EMQ_EINVAL;
    }
}

/* The keys come first and check the queue and the id, so that values can take the id as it is. */
static int add_arguments(line_writer *writer, const emq_verb *verb, const line_parts *parts) {
    add_borrowed(writer, verb->name, strlen(verb->name));
    if (verb->key_count > 0) {
        add_number(writer, verb->key_count);
    }
    int result = EMQ_OK;
    for (int i = 0; i < verb->key_count && result == EMQ_OK; i++) {
        result = add_key(writer, verb->keys[i], parts);
    }
    for (int i = 0; i < verb->value_count && result == EMQ_OK; i++) {
        result = add_value(writer, verb->values[i], parts);
    }
    return result;
}

static int build(emq_line *out, emq_verb_symbol symbol, const line_parts *parts) {
    const emq_verb *verb = &emq_verbs[symbol];
    line_writer writer;
    int result = prepare(&writer, out, emq_verb_arity(verb), LINE_TEXT_MAX);
    if (result == EMQ_OK) {
        result = add_arguments(&writer, verb, parts);
    }
    if (result != EMQ_OK) {
        out->argc = 0; /* a line that failed must not be sent by mistake */
    }
    return result;
}

int emq_line_enqueue(emq_line *out, const char *queue, const emq_id *id, const void *p, size_t n) {
    if (out == NULL || queue == NULL || id == NULL || (p == NULL && n > 0)) {
        return EMQ_EINVAL;
    }
    const line_parts parts = {.queue = queue, .id = id, .payload = {p == NULL ? "" : p, n}};
    return build(out, EMQ_VERB_ENQUEUE, &parts);
}

int emq_line_claim(emq_line *out, const char *queue, uint32_t lease_ms) {
    if (out == NULL || queue == NULL) {
        return EMQ_EINVAL;
    }
    const line_parts parts = {.queue = queue, .lease_ms = lease_ms};
    return build(out, EMQ_VERB_CLAIM, &parts);
}

int emq_line_complete(emq_line *out, const emq_lease *lease) {
    if (out == NULL || lease == NULL) {
        return EMQ_EINVAL;
    }
    const line_parts parts = {.queue = lease->queue, .id = &lease->id, .token = lease->token};
    return build(out, EMQ_VERB_COMPLETE, &parts);
}

int emq_line_install(emq_line *out) {
    const line_parts parts = {0};
    return out == NULL ? EMQ_EINVAL : build(out, EMQ_VERB_INSTALL, &parts);
}

int emq_line_version(emq_line *out) {
    const line_parts parts = {0};
    return out == NULL ? EMQ_EINVAL : build(out, EMQ_VERB_VERSION, &parts);
}

void emq_line_clear(emq_line *line) {
    if (line != NULL) {
        free(line->memory);
        *line = (emq_line)EMQ_LINE_INIT;
    }
}

int emq_line_arguments(emq_line *out, int argc, const char *const *argv, const size_t *argvlen) {
    line_writer writer;
    int result = prepare(&writer, out, argc, 0);
    for (int i = 0; i < argc && result == EMQ_OK; i++) {
        add_borrowed(&writer, argv[i], argvlen == NULL ? strlen(argv[i]) : argvlen[i]);
    }
    return result;
}

#define FRAME_MAX 32 /* bytes that frame one argument, at most */

int emq_line_fits(const emq_line *line) {
    size_t left = EMQ_REQUEST_MAX;
    for (int i = 0; i < line->argc; i++) {
        size_t length = line->argvlen[i];
        if (length > left || left - length < FRAME_MAX) {
            return 0;
        }
        left -= length + FRAME_MAX;
    }
    return 1;
}

int emq_line_auth(emq_line *out, const char *username, const char *password) {
    if (username == NULL) {
        return emq_line_arguments(out, 2, (const char *const[]){"AUTH", password}, NULL);
    }
    return emq_line_arguments(out, 3, (const char *const[]){"AUTH", username, password}, NULL);
}

int emq_line_select(emq_line *out, char number[EMQ_LINE_NUMBER_MAX], int database) {
    number[emq_decimal_format(number, database)] = '\0';
    return emq_line_arguments(out, 2, (const char *const[]){"SELECT", number}, NULL);
}

int emq_line_client_name(emq_line *out, const char *name) {
    return emq_line_arguments(out, 3, (const char *const[]){"CLIENT", "SETNAME", name}, NULL);
}

int emq_line_fence(emq_line *out) {
    return emq_line_arguments(out, 2, (const char *const[]){"GET", EMQ_FENCE_KEY}, NULL);
}
