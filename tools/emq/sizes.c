/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of many queues: see sizes.h. The commands are those of the operator's rules. */
#include "sizes.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a reply becomes a number of a queue. */
typedef enum sizes_kind {
    KIND_COUNT,  /* an integer */
    KIND_FIELD,  /* the field `count` of a hash */
    KIND_PAUSED, /* whether a hash has the field `paused` */
    KIND_MINTED, /* the mint time of the only member */
    KIND_SCORE,  /* the score of the only member */
} sizes_kind;

static const struct {
    const char *command;
    emq_key_kind key;
    sizes_kind kind;
    size_t offset; /* in sizes */
    const char *name;
} parts[] = {
    {"ZCARD", EMQ_KEY_PENDING, KIND_COUNT, offsetof(sizes, pending), "pending"},
    {"ZCARD", EMQ_KEY_ACTIVE, KIND_COUNT, offsetof(sizes, active), "active"},
    {"ZCARD", EMQ_KEY_SCHEDULE, KIND_COUNT, offsetof(sizes, scheduled), "scheduled"},
    {"ZCARD", EMQ_KEY_DEAD, KIND_COUNT, offsetof(sizes, dead), "dead"},
    {"HGETALL", EMQ_KEY_COMPLETED, KIND_FIELD, offsetof(sizes, completed), "completed"},
    {"HGETALL", EMQ_KEY_FAILED, KIND_FIELD, offsetof(sizes, failed), "failed"},
    {"ZRANGE", EMQ_KEY_PENDING, KIND_MINTED, offsetof(sizes, oldest_ms), "oldest_ms"},
    {"ZRANGE", EMQ_KEY_SCHEDULE, KIND_SCORE, offsetof(sizes, next_ms), "next_ms"},
    {"ZRANGE", EMQ_KEY_ACTIVE, KIND_SCORE, offsetof(sizes, lease_end_ms), "lease_end_ms"},
    {"HGETALL", EMQ_KEY_META, KIND_PAUSED, offsetof(sizes, is_paused), "paused"},
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))
#define CHUNK (EMQ_PIPELINE_ENTRIES_MAX / PARTS)

static int add_part(emq_pipeline *pipeline, const char *queue, size_t i) {
    char key[EMQ_KEY_MAX + 1];
    const char *const words[] = {parts[i].command, key, "0", "0", "WITHSCORES"};
    int argc = parts[i].kind == KIND_SCORE ? 5 : parts[i].kind == KIND_MINTED ? 4 : 2;
    int result = emq_key_queue(key, sizeof(key), queue, parts[i].key);
    return result < 0 ? result : emq_pipeline_command(pipeline, argc, words, NULL);
}

/* The value of a field among names and values; NULL where there is none. */
static const char *find_field(const emq_reply *hash, const char *name) {
    for (size_t i = 0; i + 1 < emq_reply_get_count(hash); i += 2) {
        const char *field = emq_reply_get_string(emq_reply_get_element(hash, i), NULL);
        if (field != NULL && strcmp(field, name) == 0) {
            return emq_reply_get_string(emq_reply_get_element(hash, i + 1), NULL);
        }
    }
    return NULL;
}

static int64_t minted(const emq_reply *members) {
    emq_id id;
    int64_t ms = SIZES_NONE;
    size_t n = 0;
    const char *text = emq_reply_get_string(emq_reply_get_element(members, 0), &n);
    if (text != NULL && emq_id_parse(&id, text, n) == EMQ_OK) {
        (void)emq_id_unix_ms(&ms, &id);
    }
    return ms;
}

static int64_t read_part(sizes_kind kind, const emq_reply *reply) {
    const char *text = NULL;
    switch (kind) {
    case KIND_COUNT:
        return emq_reply_get_integer(reply);
    case KIND_FIELD:
        text = find_field(reply, "count");
        return text == NULL ? 0 : strtoll(text, NULL, 10);
    case KIND_PAUSED:
        return find_field(reply, "paused") != NULL;
    case KIND_MINTED:
        return minted(reply);
    default:
        text = emq_reply_get_string(emq_reply_get_element(reply, 1), NULL);
        return text == NULL ? SIZES_NONE : (int64_t)strtod(text, NULL);
    }
}

static void take_part(sizes *out, emq_pipeline *pipeline, size_t entry, size_t i) {
    int result = emq_pipeline_get_result(pipeline, entry);
    emq_reply *reply = emq_pipeline_take_reply(pipeline, entry);
    int64_t value = result == EMQ_OK ? read_part(parts[i].kind, reply) : 0;
    emq_reply_free(reply);
    if (out->result == EMQ_OK && result != EMQ_OK) {
        out->result = result;
        (void)snprintf(out->detail, sizeof(out->detail), "%s",
                       emq_pipeline_get_error(pipeline, entry));
    }
    if (parts[i].kind == KIND_PAUSED) {
        out->is_paused = (int)value;
    } else {
        memcpy((char *)out + parts[i].offset, &value, sizeof(value));
    }
}

static void take_queue(sizes *out, emq_pipeline *pipeline, size_t first) {
    sizes whole = {.result = EMQ_OK};
    for (size_t i = 0; i < PARTS; i++) {
        take_part(&whole, pipeline, first + i, i);
    }
    if (whole.result != EMQ_OK) {
        *out = (sizes){.result = whole.result,
                       .oldest_ms = SIZES_NONE,
                       .next_ms = SIZES_NONE,
                       .lease_end_ms = SIZES_NONE};
        memcpy(out->detail, whole.detail, sizeof(out->detail));
    } else {
        *out = whole;
    }
}

static int read_chunk(sizes *out, emq_pipeline *pipeline, const char *const *queues, size_t count) {
    int result = EMQ_OK;
    emq_pipeline_clear(pipeline);
    for (size_t i = 0; i < count * PARTS && result == EMQ_OK; i++) {
        result = add_part(pipeline, queues[i / PARTS], i % PARTS);
    }
    if (result == EMQ_OK) {
        result = emq_pipeline_run(pipeline);
    }
    for (size_t i = 0; i < count && result == EMQ_OK; i++) {
        take_queue(&out[i], pipeline, i * PARTS);
    }
    emq_pipeline_clear(pipeline);
    return result;
}

int sizes_read(sizes *out, emq_pipeline *pipeline, const char *const *queues, size_t count) {
    int result = EMQ_OK;
    for (size_t i = 0; i < count && result == EMQ_OK; i += CHUNK) {
        result = read_chunk(out + i, pipeline, queues + i, count - i < CHUNK ? count - i : CHUNK);
    }
    return result;
}

int sizes_is_nothing(const sizes *s) {
    return s->pending + s->active + s->scheduled + s->dead + s->completed + s->failed == 0 &&
           !s->is_paused;
}

void sizes_note_nothing(const tool *t, const char *queue) {
    tool_note(t, "%s has no jobs and no counts: is that its name?", queue);
}

int sizes_read_paused(int *out, emq_client *client, const char *queue) {
    char key[EMQ_KEY_MAX + 1];
    const char *const words[] = {"HGETALL", key};
    emq_reply *reply = NULL;
    int result = emq_key_queue(key, sizeof(key), queue, EMQ_KEY_META);
    if (result >= 0) {
        result = emq_client_command(&reply, client, 2, words, NULL);
    }
    *out = result == EMQ_OK && read_part(KIND_PAUSED, reply) != 0;
    emq_reply_free(reply);
    return result;
}

void sizes_print_result(const sizes *s) {
    (void)fputs(emq_strerror(s->result), stdout);
    if (s->detail[0] != '\0') {
        (void)fputs(" (", stdout);
        tool_print_bytes(stdout, s->detail, strlen(s->detail), 0);
        (void)fputs(")", stdout);
    }
}

json_t *sizes_to_json(const char *queue, const sizes *s) {
    json_t *object = json_object();
    (void)json_object_set_new(object, "queue", json_string(queue));
    if (s->result != EMQ_OK) {
        tool_json_result(object, s->result);
        tool_json_bytes(object, "detail", s->detail, strlen(s->detail));
        return object;
    }
    for (size_t i = 0; i < PARTS; i++) {
        int64_t value = 0;
        if (parts[i].kind == KIND_PAUSED) {
            (void)json_object_set_new(object, parts[i].name, json_boolean(s->is_paused));
            continue;
        }
        memcpy(&value, (const char *)s + parts[i].offset, sizeof(value));
        if (value != SIZES_NONE) { /* a time that there is none of is left out */
            (void)json_object_set_new(object, parts[i].name, json_integer(value));
        }
    }
    return object;
}
