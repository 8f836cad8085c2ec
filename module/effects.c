/* SPDX-License-Identifier: Apache-2.0 */
/* Effects: the change, its plain command for replicas and the AOF, its notification. */
#include "effects.h"

#include <errno.h>
#include <stddef.h>

#include "bits.h"
#include "open.h"
#include "read.h"
#include "wait.h"

#define DEL_INLINE 4

static void queue_event(emq_writes *writes, int type, const char *name, emq_ref ref) {
    const emq_event event = {type, name, ref.name};
    size_t index = writes->event_count++;
    if (index < EMQ_EVENTS_INLINE) {
        writes->first_events[index] = event;
        return;
    }
    index -= EMQ_EVENTS_INLINE;
    if (index == writes->more_capacity) {
        writes->more_capacity = index == 0 ? EMQ_EVENTS_INLINE : 2 * index;
        writes->more_events = ValkeyModule_Realloc(
            writes->more_events, writes->more_capacity * sizeof(*writes->more_events));
    }
    writes->more_events[index] = event;
}

/* A removal may have emptied the set: the server deletes it then, and says so. */
static void queue_event_if_deleted(emq_writes *writes, ValkeyModuleKey *key, emq_ref ref) {
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_EMPTY) {
        queue_event(writes, VALKEYMODULE_NOTIFY_GENERIC, "del", ref);
    }
}

/* The checks before the guard leave no way to fail here but a bug. What is done can't be taken
 * back: it is logged and counted, since a replica may now differ. */
static void expect_ok(emq_writes *writes, int result, const char *command) {
    if (result != VALKEYMODULE_OK) {
        emq_stats_count_lost_effect();
        ValkeyModule_Log(writes->ctx, VALKEYMODULE_LOGLEVEL_WARNING,
                         "an effect was not applied or not replicated: %s", command);
    }
}

/* Replicates a command on a key with some arguments. A list of them makes the host allocate again:
 * the few of a single job are named one by one. */
static int replicate(emq_writes *writes, const char *command, emq_ref ref, ValkeyModuleString **a,
                     size_t count) {
    switch (count) {
    case 0:
        return ValkeyModule_Replicate(writes->ctx, command, "s", ref.name);
    case 1:
        return ValkeyModule_Replicate(writes->ctx, command, "ss", ref.name, a[0]);
    case 2:
        return ValkeyModule_Replicate(writes->ctx, command, "sss", ref.name, a[0], a[1]);
    case 6:
        return ValkeyModule_Replicate(writes->ctx, command, "sssssss", ref.name, a[0], a[1], a[2],
                                      a[3], a[4], a[5]);
    default:
        return ValkeyModule_Replicate(writes->ctx, command, "sv", ref.name, a, count);
    }
}

void emq_effect_set(emq_writes *writes, emq_ref ref, ValkeyModuleString *value) {
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    expect_ok(writes, ValkeyModule_StringSet(key, value), "SET");
    emq_close_written(writes, ref, key, 1);
    expect_ok(writes, ValkeyModule_Replicate(writes->ctx, "SET", "ss", ref.name, value), "SET");
    queue_event(writes, VALKEYMODULE_NOTIFY_STRING, "set", ref);
}

void emq_effect_hset(emq_writes *writes, emq_ref ref, const emq_field *fields, int count) {
    /* the list of a variadic call ends at its first NULL: the unused places are its end */
    emq_field f[EMQ_FIELDS_MAX + 1] = {{NULL, NULL}};
    ValkeyModuleString *arguments[2 * EMQ_FIELDS_MAX] = {NULL};
    for (int i = 0; i < count; i++) {
        f[i] = fields[i];
        arguments[2 * (size_t)i] = fields[i].name;
        arguments[2 * (size_t)i + 1] = fields[i].value;
    }
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    int set =
        ValkeyModule_HashSet(key, VALKEYMODULE_HASH_COUNT_ALL, f[0].name, f[0].value, f[1].name,
                             f[1].value, f[2].name, f[2].value, f[3].name, f[3].value, f[4].name);
    emq_close_written(writes, ref, key, 1);
    expect_ok(writes, set == count ? VALKEYMODULE_OK : VALKEYMODULE_ERR, "HSET");
    expect_ok(writes, replicate(writes, "HSET", ref, arguments, 2 * (size_t)count), "HSET");
    queue_event(writes, VALKEYMODULE_NOTIFY_HASH, "hset", ref);
}

void emq_effect_hdel(emq_writes *writes, emq_ref ref, ValkeyModuleString **fields, int count) {
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    int deleted = 0;
    for (int i = 0; i < count; i++) {
        deleted += ValkeyModule_HashSet(key, VALKEYMODULE_HASH_NONE, fields[i],
                                        VALKEYMODULE_HASH_DELETE, NULL);
    }
    queue_event(writes, VALKEYMODULE_NOTIFY_HASH, "hdel", ref);
    queue_event_if_deleted(writes, key, ref);
    emq_close_written(writes, ref, key, 1);
    expect_ok(writes, deleted == count ? VALKEYMODULE_OK : VALKEYMODULE_ERR, "HDEL");
    expect_ok(writes, replicate(writes, "HDEL", ref, fields, (size_t)count), "HDEL");
}

void emq_effect_persist(emq_writes *writes, emq_ref ref) {
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    expect_ok(writes, ValkeyModule_SetExpire(key, VALKEYMODULE_NO_EXPIRE), "PERSIST");
    emq_close_written(writes, ref, key, 1);
    expect_ok(writes, ValkeyModule_Replicate(writes->ctx, "PERSIST", "s", ref.name), "PERSIST");
    queue_event(writes, VALKEYMODULE_NOTIFY_GENERIC, "persist", ref);
}

/* What those who wait for work want to know of: members of `pending`, whatever verb adds them, and
 * a new earliest time in `schedule`. */
static void note_arrival(emq_writes *writes, emq_ref ref, ValkeyModuleKey *key, double score) {
    if (ref.kind == EMQ_KEY_PENDING) {
        writes->ready = ref.name;
    } else if (ref.kind == EMQ_KEY_SCHEDULE && emq_wait_has_readers(writes->ctx, ref.name) &&
               score < emq_zset_lowest_of(key)) {
        writes->due = ref.name;
    }
}

/* Returns 1 when anything changed. */
static int add_members(emq_writes *writes, emq_ref ref, int64_t score, ValkeyModuleString **members,
                       size_t count) {
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    int changed = 0;
    note_arrival(writes, ref, key, (double)score);
    for (size_t i = 0; i < count; i++) {
        int flags = 0;
        expect_ok(writes, ValkeyModule_ZsetAdd(key, (double)score, members[i], &flags), "ZADD");
        changed |= (flags & (VALKEYMODULE_ZADD_ADDED | VALKEYMODULE_ZADD_UPDATED)) != 0;
    }
    emq_close_written(writes, ref, key, changed);
    return changed;
}

/* The host makes a string for a number in a record; most scores are 0, which is there already. */
static int replicate_zadd(emq_writes *writes, emq_ref ref, int64_t score,
                          ValkeyModuleString *member) {
    ValkeyModuleString *small = emq_small_number(score);
    return small != NULL
               ? ValkeyModule_Replicate(writes->ctx, "ZADD", "sss", ref.name, small, member)
               : ValkeyModule_Replicate(writes->ctx, "ZADD", "sls", ref.name, (long long)score,
                                        member);
}

void emq_effect_zadd(emq_writes *writes, emq_ref ref, int64_t score, ValkeyModuleString *member) {
    int changed = add_members(writes, ref, score, &member, 1);
    expect_ok(writes, replicate_zadd(writes, ref, score, member), "ZADD");
    if (changed) {
        queue_event(writes, VALKEYMODULE_NOTIFY_ZSET, "zadd", ref);
    }
}

void emq_effect_zadd_all(emq_writes *writes, emq_ref ref, int64_t score,
                         ValkeyModuleString **members, size_t count) {
    if (count == 1) {
        emq_effect_zadd(writes, ref, score, members[0]);
        return;
    }
    ValkeyModuleString *text = ValkeyModule_CreateStringFromLongLong(NULL, score);
    ValkeyModuleString **arguments = ValkeyModule_Alloc(2 * count * sizeof(ValkeyModuleString *));
    int changed = add_members(writes, ref, score, members, count);
    for (size_t i = 0; i < count; i++) {
        arguments[2 * i] = text;
        arguments[2 * i + 1] = members[i];
    }
    expect_ok(writes, replicate(writes, "ZADD", ref, arguments, 2 * count), "ZADD");
    ValkeyModule_Free(arguments);
    ValkeyModule_FreeString(NULL, text);
    if (changed) {
        queue_event(writes, VALKEYMODULE_NOTIFY_ZSET, "zadd", ref);
    }
}

void emq_effect_zrem(emq_writes *writes, emq_ref ref, ValkeyModuleString **members, size_t count) {
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    for (size_t i = 0; i < count; i++) {
        int removed = 0;
        int result = ValkeyModule_ZsetRem(key, members[i], &removed);
        expect_ok(writes, removed ? result : VALKEYMODULE_ERR, "ZREM");
    }
    queue_event(writes, VALKEYMODULE_NOTIFY_ZSET, "zrem", ref);
    queue_event_if_deleted(writes, key, ref);
    emq_close_written(writes, ref, key, 1);
    expect_ok(writes, replicate(writes, "ZREM", ref, members, count), "ZREM");
}

void emq_effect_del(emq_writes *writes, const emq_ref *refs, size_t count) {
    ValkeyModuleString *few[DEL_INLINE];
    ValkeyModuleString **names =
        count <= DEL_INLINE ? few : ValkeyModule_Alloc(count * sizeof(ValkeyModuleString *));
    for (size_t i = 0; i < count; i++) {
        ValkeyModuleKey *key = emq_open_to_write(writes, refs[i]);
        expect_ok(writes, ValkeyModule_DeleteKey(key), "DEL");
        emq_close_written(writes, refs[i], key, 1);
        queue_event(writes, VALKEYMODULE_NOTIFY_GENERIC, "del", refs[i]);
        names[i] = refs[i].name;
    }
    expect_ok(writes, replicate(writes, "DEL", refs[0], names + 1, count - 1), "DEL");
    if (names != few) {
        ValkeyModule_Free(names);
    }
}

int emq_effect_xadd(emq_writes *writes, emq_ref ref, const ValkeyModuleStreamID *id,
                    ValkeyModuleString *id_text, ValkeyModuleString **fields, size_t count) {
    ValkeyModuleStreamID added = *id;
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    int result = ValkeyModule_StreamAdd(key, 0, &added, fields, (long)count);
    int reason = errno;
    /* wakes who waits for the stream */
    emq_close_written(writes, ref, key, result == VALKEYMODULE_OK);
    if (result != VALKEYMODULE_OK) {
        errno = reason;
        return 0;
    }
    expect_ok(
        writes,
        ValkeyModule_Replicate(writes->ctx, "XADD", "ssv", ref.name, id_text, fields, 2 * count),
        "XADD");
    queue_event(writes, VALKEYMODULE_NOTIFY_STREAM, "xadd", ref);
    return 1;
}

int emq_effect_publish(emq_writes *writes, ValkeyModuleString *channel,
                       ValkeyModuleString *message) {
    int receivers = ValkeyModule_PublishMessage(writes->ctx, channel, message);
    /* "A": replaying a message at a restart would send it a second time */
    expect_ok(writes, ValkeyModule_Replicate(writes->ctx, "PUBLISH", "Ass", channel, message),
              "PUBLISH");
    return receivers;
}

/* The bytes of a string that is open for writing, at least so many of them. SETBIT would grow it
 * step by step; one step gives the same string and copies it once. */
static char *grow(emq_writes *writes, ValkeyModuleKey *key, size_t *length, size_t least) {
    char *bytes = ValkeyModule_StringDMA(key, length, VALKEYMODULE_WRITE);
    if (*length < least) {
        expect_ok(writes, ValkeyModule_StringTruncate(key, least), "SETBIT");
        bytes = ValkeyModule_StringDMA(key, length, VALKEYMODULE_WRITE);
    }
    return bytes;
}

size_t emq_effect_setbit(emq_writes *writes, emq_ref ref, const uint32_t *offsets, size_t count,
                         int bit) {
    size_t least = 0;
    for (size_t i = 0; i < count && bit; i++) {
        size_t needed = emq_bit_byte(offsets[i]) + 1;
        least = needed > least ? needed : least;
    }
    ValkeyModuleKey *key = emq_open_to_write(writes, ref);
    size_t length = 0;
    size_t changed = 0;
    char *bytes = grow(writes, key, &length, least);
    for (size_t i = 0; i < count; i++) {
        if (emq_bit_byte(offsets[i]) >= length || emq_bit_get(bytes, length, offsets[i]) == bit) {
            continue;
        }
        emq_bit_put(bytes, offsets[i], bit);
        expect_ok(writes,
                  ValkeyModule_Replicate(writes->ctx, "SETBIT", "sll", ref.name,
                                         (long long)offsets[i], (long long)bit),
                  "SETBIT");
        queue_event(writes, VALKEYMODULE_NOTIFY_STRING, "setbit", ref);
        changed++;
    }
    emq_close_written(writes, ref, key, 1);
    return changed;
}

void emq_effects_notify(emq_writes *writes) {
    for (size_t i = 0; i < writes->event_count; i++) {
        const emq_event *event = i < EMQ_EVENTS_INLINE
                                     ? &writes->first_events[i]
                                     : &writes->more_events[i - EMQ_EVENTS_INLINE];
        (void)ValkeyModule_NotifyKeyspaceEvent(writes->ctx, event->type, event->name, event->key);
    }
    if (writes->more_events != NULL) {
        ValkeyModule_Free(writes->more_events);
    }
}
