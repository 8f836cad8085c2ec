/* SPDX-License-Identifier: Apache-2.0 */
/* Finding queues: see finder.h. */
#include "finder.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

void finder_init(finder *f) {
    memset(f, 0, sizeof(*f));
    f->cursor[0] = '0';
}

void finder_clear(finder *f) {
    for (size_t i = 0; i < f->count; i++) {
        free(f->queues[i]);
    }
    free(f->queues);
    finder_init(f);
}

/* Where the name is, or would be. */
static size_t find_place(const finder *f, const char *name, int *is_there) {
    size_t low = 0;
    size_t high = f->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(f->queues[middle], name);
        if (order == 0) {
            *is_there = 1;
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *is_there = 0;
    return low;
}

static int reserve(finder *f) {
    if (f->count < f->capacity) {
        return EMQ_OK;
    }
    size_t capacity = f->capacity == 0 ? FIRST_CAPACITY : f->capacity * 2;
    char **queues = realloc(f->queues, capacity * sizeof(*queues));
    if (queues == NULL) {
        return EMQ_ENOMEM;
    }
    f->queues = queues;
    f->capacity = capacity;
    return EMQ_OK;
}

static int add(finder *f, const char *name) {
    int is_there = 0;
    size_t place = find_place(f, name, &is_there);
    if (is_there) {
        return EMQ_OK;
    }
    char *copy = reserve(f) == EMQ_OK ? strdup(name) : NULL;
    if (copy == NULL) {
        return EMQ_ENOMEM;
    }
    memmove(f->queues + place + 1, f->queues + place, (f->count - place) * sizeof(*f->queues));
    f->queues[place] = copy;
    f->count++;
    return EMQ_OK;
}

/* Keys that only look like a queue's are nobody's. */
static int add_keys(finder *f, const emq_reply *keys) {
    int result = EMQ_OK;
    for (size_t i = 0; i < emq_reply_get_count(keys) && result == EMQ_OK; i++) {
        emq_key parts;
        size_t n = 0;
        const char *key = emq_reply_get_string(emq_reply_get_element(keys, i), &n);
        if (key != NULL && emq_key_parse(&parts, key, n) == EMQ_OK && parts.queue[0] != '\0') {
            result = add(f, parts.queue);
        }
    }
    return result;
}

static int take_slice(finder *f, const emq_reply *reply) {
    size_t n = 0;
    const char *cursor = emq_reply_get_string(emq_reply_get_element(reply, 0), &n);
    if (emq_reply_get_count(reply) != 2 || cursor == NULL || n >= sizeof(f->cursor)) {
        return EMQ_EPROTOCOL;
    }
    int result = add_keys(f, emq_reply_get_element(reply, 1));
    memcpy(f->cursor, cursor, n + 1);
    f->is_done = strcmp(f->cursor, "0") == 0;
    f->looked_at += FINDER_SLICE;
    return result;
}

int finder_step(finder *f, emq_client *client) {
    const char *const words[] = {"SCAN", f->cursor, "MATCH", "emq:{*}:*", "COUNT", "1000"};
    emq_reply *reply = NULL;
    int result = emq_client_command(&reply, client, 6, words, NULL);
    if (result == EMQ_OK) {
        result = take_slice(f, reply);
    }
    emq_reply_free(reply);
    return result;
}
