/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a queue in one step, with a script of the tests' own. */
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha1.h"

#define LONG_VALUE 1000

/* A pair of path and value for each field, member, element and expiry. */
static const char reader[] =
    "local out = {}\n"
    "local function add(path, value) out[#out + 1] = path; out[#out + 1] = value end\n"
    "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do\n"
    "    local kind = redis.call('TYPE', key).ok\n"
    "    local path = key:sub(#ARGV[1] + 1) .. ' ' .. kind .. ' '\n"
    "    local expiry = redis.call('PEXPIRETIME', key)\n"
    "    if expiry >= 0 then add(path .. 'expires', tostring(expiry)) end\n"
    "    if kind == 'string' then\n"
    "        add(path, redis.call('GET', key))\n"
    "    elseif kind == 'hash' or kind == 'zset' then\n"
    "        local pairs = kind == 'hash' and redis.call('HGETALL', key)\n"
    "                      or redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')\n"
    "        for i = 1, #pairs, 2 do add(path .. pairs[i], pairs[i + 1]) end\n"
    "    elseif kind == 'list' then\n"
    "        for i, v in ipairs(redis.call('LRANGE', key, 0, -1)) do add(path .. i, v) end\n"
    "    else\n"
    "        add(path, redis.call('DUMP', key))\n"
    "    end\n"
    "end\n"
    "return out\n";

void snapshot_build(command *out, const char *base) {
    command_add(out, "EVAL_RO");
    command_add_bytes(out, reader, sizeof(reader) - 1);
    command_add(out, "0");
    command_add(out, base);
}

static char *to_text(const redisReply *word) {
    char *text = NULL;
    size_t n = (size_t)word->len;
    if (n <= LONG_VALUE) {
        append_quoted(&text, word->str, n);
        /* without the quotes */
        size_t length = strlen(text);
        memmove(text, text + 1, length - 2);
        text[length - 2] = '\0';
        return text;
    }
    char digest[SHA1_TEXT_MAX];
    char shown[SHA1_TEXT_MAX + 32];
    sha1_text(digest, word->str, n);
    (void)snprintf(shown, sizeof(shown), "%zu bytes, SHA-1 %.8s", n, digest);
    append_text(&text, shown);
    return text;
}

static void add_owned(snapshot *s, char *path, char *value) {
    if (s->count == s->capacity) {
        s->capacity = s->capacity == 0 ? 32 : 2 * s->capacity;
        s->entries = realloc(s->entries, s->capacity * sizeof(*s->entries));
        assert_non_null(s->entries);
    }
    s->entries[s->count++] = (entry){path, value};
}

void snapshot_add(snapshot *s, const char *path, const char *value) {
    add_owned(s, strdup(path), strdup(value));
}

static int compare(const void *a, const void *b) {
    return strcmp(((const entry *)a)->path, ((const entry *)b)->path);
}

void snapshot_sort(snapshot *s) {
    if (s->count > 0) {
        qsort(s->entries, s->count, sizeof(*s->entries), compare);
    }
}

void snapshot_read(snapshot *out, const redisReply *reply) {
    *out = (snapshot){0};
    if (reply->type != REDIS_REPLY_ARRAY) {
        fail_msg("the queue could not be read: %s", reply_to_text(reply));
    }
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        add_owned(out, to_text(reply->element[i]), to_text(reply->element[i + 1]));
    }
    snapshot_sort(out);
}

void snapshot_take(snapshot *out, redisContext *c, const char *base) {
    command line = {0};
    snapshot_build(&line, base);
    redisReply *reply = command_send(c, &line);
    snapshot_read(out, reply);
    freeReplyObject(reply);
    command_free(&line);
}

const char *snapshot_get(const snapshot *s, const char *path) {
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->entries[i].path, path) == 0) {
            return s->entries[i].value;
        }
    }
    return NULL;
}

void snapshot_drop(snapshot *s, const char *path_end) {
    size_t kept = 0;
    size_t end = strlen(path_end);
    for (size_t i = 0; i < s->count; i++) {
        size_t length = strlen(s->entries[i].path);
        if (length >= end && strcmp(s->entries[i].path + length - end, path_end) == 0) {
            free(s->entries[i].path);
            free(s->entries[i].value);
        } else {
            s->entries[kept++] = s->entries[i];
        }
    }
    s->count = kept;
}

void snapshot_free(snapshot *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->entries[i].path);
        free(s->entries[i].value);
    }
    free(s->entries);
    *s = (snapshot){0};
}
