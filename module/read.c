/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the domain checks: open quietly, look, close. */
#include "read.h"

#include <math.h>

/* No expiry, no notification, no statistics, no touch: a check leaves no trace. */
#define QUIET_READ (VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NOEFFECTS)

#define ATTEMPTS_REFUSAL "ERR EMQ row attempts is not an integer"

static const char wrong_type[] = VALKEYMODULE_ERRORMSG_WRONGTYPE;

emq_slice emq_text(const ValkeyModuleString *string) {
    emq_slice text;
    text.data = ValkeyModule_StringPtrLen(string, &text.length);
    return text;
}

/* Opens a key of the given type; *out is NULL when there is none. Refuses another type. */
static emq_presence open_typed(emq_call *call, emq_ref ref, int type, ValkeyModuleKey **out) {
    ValkeyModuleKey *key = ValkeyModule_OpenKey(call->ctx, ref.name, QUIET_READ);
    *out = NULL;
    if (key == NULL) {
        return EMQ_ABSENT;
    }
    if (ValkeyModule_KeyType(key) != type) {
        ValkeyModule_CloseKey(key);
        (void)emq_refuse(call, wrong_type);
        return EMQ_PRESENCE_REFUSED;
    }
    *out = key;
    return EMQ_PRESENT;
}

emq_presence emq_read_row_for_claim(emq_call *call, emq_ref ref, emq_row *row) {
    const emq_strings *names = &emq_the_host.strings;
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key);
    *row = (emq_row){0};
    if (presence == EMQ_PRESENT) {
        (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_NONE, names->attempts, &row->attempts,
                                   names->payload, &row->payload, NULL);
        ValkeyModule_CloseKey(key);
    }
    return presence;
}

emq_presence emq_read_row_for_settle(emq_call *call, emq_ref ref, emq_row *row) {
    const emq_strings *names = &emq_the_host.strings;
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key);
    *row = (emq_row){0};
    if (presence == EMQ_PRESENT) {
        (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_NONE, names->state, &row->state,
                                   names->attempts, &row->attempts, names->lease_epoch,
                                   &row->lease_epoch, names->group, &row->group, names->parent,
                                   &row->parent, NULL);
        ValkeyModule_CloseKey(key);
        if (row->attempts == NULL) {
            return EMQ_ABSENT;
        }
    }
    return presence;
}

int emq_exists(emq_call *call, emq_ref ref) {
    ValkeyModuleKey *key = ValkeyModule_OpenKey(call->ctx, ref.name, QUIET_READ);
    if (key == NULL) {
        return 0;
    }
    ValkeyModule_CloseKey(key);
    return 1;
}

int emq_check_type(emq_call *call, emq_ref ref, int type) {
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_typed(call, ref, type, &key);
    if (presence == EMQ_PRESENT) {
        ValkeyModule_CloseKey(key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

/* Reads one field; *out is NULL when key or field is absent. */
static int read_field(emq_call *call, emq_ref ref, ValkeyModuleString *field,
                      ValkeyModuleString **out) {
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key);
    *out = NULL;
    if (presence == EMQ_PRESENT) {
        (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_NONE, field, out, NULL);
        ValkeyModule_CloseKey(key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

int emq_hash_has(emq_call *call, emq_ref ref, ValkeyModuleString *field, int *out) {
    ValkeyModuleString *value = NULL;
    if (!read_field(call, ref, field, &value)) {
        return 0;
    }
    *out = value != NULL;
    return 1;
}

int emq_hash_counter(emq_call *call, emq_ref ref, ValkeyModuleString *field, int64_t *out) {
    ValkeyModuleString *value = NULL;
    long long number = 0;
    if (!read_field(call, ref, field, &value)) {
        return 0;
    }
    /* the server's own words, as HINCRBY has them for such a field */
    if (value != NULL && ValkeyModule_StringToLongLong(value, &number) != VALKEYMODULE_OK) {
        return emq_refuse(call, "ERR hash value is not an integer");
    }
    if (number == INT64_MAX) {
        return emq_refuse(call, "ERR increment or decrement would overflow");
    }
    *out = number;
    return 1;
}

int emq_zset_has(emq_call *call, emq_ref ref, ValkeyModuleString *member, int *out) {
    ValkeyModuleKey *key = NULL;
    double score = 0;
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_ZSET, &key);
    *out = 0;
    if (presence == EMQ_PRESENT) {
        *out = ValkeyModule_ZsetScore(key, member, &score) == VALKEYMODULE_OK;
        ValkeyModule_CloseKey(key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

int emq_zset_lowest(emq_call *call, emq_ref ref, ValkeyModuleString **members, int max,
                    int *count) {
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_ZSET, &key);
    *count = 0;
    if (presence != EMQ_PRESENT) {
        return presence == EMQ_ABSENT;
    }
    (void)ValkeyModule_ZsetFirstInScoreRange(key, -INFINITY, INFINITY, 0, 0);
    while (*count < max && !ValkeyModule_ZsetRangeEndReached(key)) {
        members[(*count)++] = ValkeyModule_ZsetRangeCurrentElement(key, NULL);
        (void)ValkeyModule_ZsetRangeNext(key);
    }
    ValkeyModule_ZsetRangeStop(key);
    ValkeyModule_CloseKey(key);
    return 1;
}

int emq_row_attempts(emq_call *call, const emq_row *row, int64_t *out) {
    long long number = 0;
    if (row->attempts != NULL &&
        ValkeyModule_StringToLongLong(row->attempts, &number) != VALKEYMODULE_OK) {
        return emq_refuse(call, ATTEMPTS_REFUSAL);
    }
    *out = number;
    return 1;
}

int emq_row_next_attempts(emq_call *call, const emq_row *row, int64_t *out) {
    int64_t attempts = 0;
    if (!emq_row_attempts(call, row, &attempts)) {
        return 0;
    }
    if (attempts == INT64_MAX) {
        return emq_refuse(call, ATTEMPTS_REFUSAL);
    }
    *out = attempts + 1;
    return 1;
}
