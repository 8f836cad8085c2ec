/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a queue's keys in one script and holds them to the model. */
#include "invariants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "keys.h"
#include "wire.h"

/* The names of all keys, and of the queue's keys: name, type, and content where it is looked at. */
static const char script[] =
    "local queue = {}\n"
    "for i, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do\n"
    "    local type = redis.call('TYPE', key).ok\n"
    "    local content = {}\n"
    "    if type == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end\n"
    "    if type == 'hash' then content = redis.call('HGETALL', key) end\n"
    "    if type == 'string' then content = {redis.call('GET', key)} end\n"
    "    queue[i] = {key, type, content}\n"
    "end\n"
    "return {redis.call('KEYS', '*'), queue}\n";

typedef struct look {
    emq_slice queue;
    const redisReply *keys;
    char *broken;
} look;

static void report(look *l, const char *what, const redisReply *where, const redisReply *member) {
    if (l->broken != NULL) {
        return;
    }
    append_text(&l->broken, what);
    append_text(&l->broken, ": ");
    append_quoted(&l->broken, where->str, (size_t)where->len);
    if (member != NULL) {
        append_text(&l->broken, " ");
        append_quoted(&l->broken, member->str, (size_t)member->len);
    }
}

static emq_slice slice_of(const redisReply *text) {
    return (emq_slice){text->str, (size_t)text->len};
}

static int is(const redisReply *text, const char *wanted) {
    return text != NULL && emq_slice_equal(slice_of(text), emq_slice_of(wanted));
}

static int is_number(const redisReply *text, int64_t least) {
    int64_t number = 0;
    return text != NULL &&
           emq_decimal_parse(&number, text->str, (size_t)text->len, least, INT64_MAX);
}

/* ---- kinds ---- */

/* The types of the kinds that may be there; a channel and the base are no keys. */
static const char *const types[EMQ_KEY_FENCE] = {
    [EMQ_KEY_PENDING] = "zset",        [EMQ_KEY_ACTIVE] = "zset",
    [EMQ_KEY_SCHEDULE] = "zset",       [EMQ_KEY_DEAD] = "zset",
    [EMQ_KEY_HELD] = "zset",           [EMQ_KEY_RING] = "list",
    [EMQ_KEY_PAUSED] = "set",          [EMQ_KEY_GLIMIT] = "hash",
    [EMQ_KEY_GACTIVE] = "hash",        [EMQ_KEY_GWEIGHT] = "hash",
    [EMQ_KEY_WAKE] = "list",           [EMQ_KEY_META] = "hash",
    [EMQ_KEY_COMPLETED] = "hash",      [EMQ_KEY_FAILED] = "hash",
    [EMQ_KEY_OUTBOX] = "list",         [EMQ_KEY_OUTBOX_BAD] = "list",
    [EMQ_KEY_EVENTS_SEQ] = "string",   [EMQ_KEY_JOB] = "hash",
    [EMQ_KEY_LOGS] = "list",           [EMQ_KEY_DEPENDENCIES] = "string",
    [EMQ_KEY_PROCESSED] = "hash",      [EMQ_KEY_CHILD_FAILED] = "hash",
    [EMQ_KEY_UNSUCCESSFUL] = "hash",   [EMQ_KEY_LANE] = "zset",
    [EMQ_KEY_DEDUP] = "string",        [EMQ_KEY_STREAM] = "stream",
    [EMQ_KEY_STREAM_FAILURES] = "hash"};

/* The name that would stand in a key of this kind: what is neither before nor behind it. */
static emq_slice cut_name(const look *l, emq_slice key, emq_key_kind kind) {
    const char *pattern = emq_key_pattern(kind);
    const char *open = strchr(pattern, '<');
    const char *close = strchr(pattern, '>');
    if (open == NULL || close == NULL) {
        return (emq_slice){"", 0};
    }
    /* the pattern writes the queue as one letter */
    size_t before = (size_t)(open - pattern) - 1 + l->queue.length;
    size_t after = strlen(close + 1);
    return key.length < before + after
               ? (emq_slice){"", 0}
               : (emq_slice){key.data + before, key.length - before - after};
}

/* The kind of a key, or EMQ_KEY_FENCE when it is none of a queue's. Ids that are no JOB ids stand
 * in keys, too: the module looks at their first three bytes alone. */
static emq_key_kind find_kind(const look *l, emq_slice key, emq_slice *name) {
    for (int kind = 0; kind < EMQ_KEY_FENCE; kind++) {
        *name = cut_name(l, key, (emq_key_kind)kind);
        if (types[kind] != NULL && emq_key_matches(key, (emq_key_kind)kind, l->queue, *name)) {
            return (emq_key_kind)kind;
        }
    }
    return EMQ_KEY_FENCE;
}

static const redisReply *find_key(const look *l, emq_key_kind kind, emq_slice name) {
    char text[EMQ_KEY_MAX + 1];
    size_t length = emq_key_write(text, sizeof(text), kind, l->queue, name);
    for (size_t i = 0; length > 0 && i < l->keys->elements; i++) {
        const redisReply *entry = l->keys->element[i];
        if (emq_slice_equal(slice_of(entry->element[0]), (emq_slice){text, length})) {
            return entry;
        }
    }
    return NULL;
}

/* The value beside a name in flat pairs: of a hash, or the score in a sorted set. */
static const redisReply *find_value(const redisReply *entry, emq_slice name) {
    const redisReply *content = entry == NULL ? NULL : entry->element[2];
    for (size_t i = 0; content != NULL && i + 1 < content->elements; i += 2) {
        if (emq_slice_equal(slice_of(content->element[i]), name)) {
            return content->element[i + 1];
        }
    }
    return NULL;
}

/* ---- rows and sets ---- */

static const struct {
    const char *state;
    emq_key_kind set;
    int is_timed;
} places[] = {{EMQ_STATE_PENDING, EMQ_KEY_PENDING, 0},
              {EMQ_STATE_ACTIVE, EMQ_KEY_ACTIVE, 1},
              {EMQ_STATE_SCHEDULED, EMQ_KEY_SCHEDULE, 1},
              {EMQ_STATE_DEAD, EMQ_KEY_DEAD, 0}};

#define PLACES (sizeof(places) / sizeof(places[0]))

static void check_set(look *l, const redisReply *entry, const char *state, int is_timed) {
    const redisReply *content = entry->element[2];
    for (size_t i = 0; i + 1 < content->elements; i += 2) {
        const redisReply *id = content->element[i];
        const redisReply *row = find_key(l, EMQ_KEY_JOB, slice_of(id));
        if (row == NULL) {
            report(l, "an id without a row", entry->element[0], id);
        } else if (!is(find_value(row, emq_slice_of(EMQ_FIELD_STATE)), state)) {
            report(l, "the row's state is not the set's", entry->element[0], id);
        }
        if (is_timed ? !is_number(content->element[i + 1], 0) : !is(content->element[i + 1], "0")) {
            report(l, "a score out of place", entry->element[0], id);
        }
    }
}

static void check_numbers(look *l, const redisReply *entry, int is_active) {
    const redisReply *row = entry->element[0];
    const redisReply *failures = find_value(entry, emq_slice_of(EMQ_FIELD_FAILURES));
    const redisReply *stalled = find_value(entry, emq_slice_of(EMQ_FIELD_STALLED));
    if (!is_number(find_value(entry, emq_slice_of(EMQ_FIELD_ATTEMPTS)), is_active)) {
        report(l, "attempts is no count", row, NULL);
    }
    if ((failures != NULL && !is_number(failures, 1)) ||
        (stalled != NULL && !is_number(stalled, 1))) {
        report(l, "failures or stalled is no count", row, NULL);
    }
}

static void check_row(look *l, const redisReply *entry, emq_slice id) {
    const redisReply *row = entry->element[0];
    const redisReply *state = find_value(entry, emq_slice_of(EMQ_FIELD_STATE));
    const redisReply *epoch = find_value(entry, emq_slice_of(EMQ_FIELD_LEASE_EPOCH));
    int is_active = is(state, EMQ_STATE_ACTIVE);
    size_t sets = 0;
    size_t right = 0;
    for (size_t i = 0; i < PLACES; i++) {
        int is_member = find_value(find_key(l, places[i].set, (emq_slice){"", 0}), id) != NULL;
        sets += is_member != 0;
        right += is_member && is(state, places[i].state);
    }
    if (sets != 1 || right != 1) {
        report(l, "a row whose id is not in the set of its state alone", row, state);
    }
    check_numbers(l, entry, is_active);
    if (find_value(entry, emq_slice_of(EMQ_FIELD_PAYLOAD)) == NULL) {
        report(l, "a row without a payload", row, NULL);
    }
    if (is_active && epoch == NULL) {
        report(l, "a leased row without lease_epoch", row, NULL);
    }
    if (epoch != NULL && !is_active && !is(state, EMQ_STATE_PENDING)) {
        report(l, "lease_epoch on a row that nobody holds", row, state);
    }
}

/* ---- the other keys ---- */

static void check_counts(look *l, const redisReply *entry) {
    const redisReply *content = entry->element[2];
    for (size_t i = 0; i + 1 < content->elements; i += 2) {
        if (!is_number(content->element[i + 1], 1)) {
            report(l, "no count", entry->element[0], content->element[i]);
        }
    }
}

static void check_key(look *l, const redisReply *entry) {
    emq_slice name;
    const redisReply *key = entry->element[0];
    emq_key_kind kind = find_kind(l, slice_of(key), &name);
    if (kind == EMQ_KEY_FENCE) {
        report(l, "a key that no queue has", key, NULL);
        return;
    }
    if (strcmp(entry->element[1]->str, types[kind]) != 0) {
        report(l, "a key of the wrong type", key, entry->element[1]);
        return;
    }
    for (size_t i = 0; i < PLACES; i++) {
        if (places[i].set == kind) {
            check_set(l, entry, places[i].state, places[i].is_timed);
        }
    }
    if (kind == EMQ_KEY_JOB) {
        check_row(l, entry, name);
    } else if (kind == EMQ_KEY_COMPLETED || kind == EMQ_KEY_FAILED ||
               kind == EMQ_KEY_STREAM_FAILURES) {
        check_counts(l, entry);
    } else if (kind == EMQ_KEY_EVENTS_SEQ && !is_number(entry->element[2]->element[0], 1)) {
        report(l, "no number", key, NULL);
    }
}

static int starts_with(const redisReply *text, const char *start) {
    size_t length = strlen(start);
    return (size_t)text->len >= length && memcmp(text->str, start, length) == 0;
}

char *find_broken_invariant(redisContext *c, const char *queue, const char *plain) {
    look l = {.queue = emq_slice_of(queue)};
    char base[EMQ_KEY_MAX + 1];
    (void)emq_key_write(base, sizeof(base), EMQ_KEY_BASE, l.queue, (emq_slice){"", 0});
    redisReply *reply = call(c, "EVAL", script, "0", base, NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    const redisReply *all = reply->element[0];
    l.keys = reply->element[1];
    for (size_t i = 0; i < all->elements; i++) {
        if (!starts_with(all->element[i], "emq:{") && !starts_with(all->element[i], plain) &&
            !is(all->element[i], EMQ_FENCE_KEY)) {
            report(&l, "a key outside of every queue", all->element[i], NULL);
        }
    }
    for (size_t i = 0; i < l.keys->elements; i++) {
        check_key(&l, l.keys->element[i]);
    }
    freeReplyObject(reply);
    return l.broken;
}
