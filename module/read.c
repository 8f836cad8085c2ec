/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the domain checks: open quietly, look, close. */
#include "read.h"

#include <math.h>
#include <stdio.h>

#include "open.h"

emq_slice emq_text(const ValkeyModuleString *string) {
    emq_slice text;
    text.data = ValkeyModule_StringPtrLen(string, &text.length);
    return text;
}

int emq_refuse_type(emq_call *call) {
    return emq_refuse(call, VALKEYMODULE_ERRORMSG_WRONGTYPE);
}

/* Opens a key of the given type; *out is NULL when there is none. */
static emq_presence open_quietly(emq_call *call, emq_ref ref, int type, ValkeyModuleKey **out) {
    ValkeyModuleKey *key = emq_open_to_look(call, ref);
    *out = NULL;
    if (key == NULL) {
        return EMQ_ABSENT;
    }
    if (ValkeyModule_KeyType(key) != type) {
        emq_close_looked(call, ref, key);
        return EMQ_OTHER_TYPE;
    }
    *out = key;
    return EMQ_PRESENT;
}

emq_presence emq_refuse_other_type(emq_call *call, emq_presence presence) {
    if (presence == EMQ_OTHER_TYPE) {
        (void)emq_refuse_type(call);
        return EMQ_PRESENCE_REFUSED;
    }
    return presence;
}

/* Opens a key of the given type; refuses another one. */
static emq_presence open_typed(emq_call *call, emq_ref ref, int type, ValkeyModuleKey **out) {
    return emq_refuse_other_type(call, open_quietly(call, ref, type, out));
}

static void get_field(emq_call *call, ValkeyModuleKey *key, ValkeyModuleString *field,
                      ValkeyModuleString **out) {
    (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_NONE, field, out, NULL);
    (void)emq_own(call, *out);
}

static void get_fields(emq_call *call, ValkeyModuleKey *key, ValkeyModuleString *a,
                       ValkeyModuleString **a_out, ValkeyModuleString *b,
                       ValkeyModuleString **b_out) {
    (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_NONE, a, a_out, b, b_out, NULL);
    (void)emq_own(call, *a_out);
    (void)emq_own(call, *b_out);
}

emq_presence emq_read_row_for_claim(emq_call *call, emq_ref ref, emq_row *row) {
    const emq_strings *names = &emq_the_host.strings;
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_quietly(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key);
    *row = (emq_row){0};
    if (presence == EMQ_PRESENT) {
        get_fields(call, key, names->attempts, &row->attempts, names->payload, &row->payload);
        emq_close_looked(call, ref, key);
    }
    return presence;
}

emq_presence emq_read_row(emq_call *call, emq_ref ref, emq_row *row) {
    const emq_strings *names = &emq_the_host.strings;
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_quietly(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key);
    *row = (emq_row){0};
    if (presence != EMQ_PRESENT) {
        return presence;
    }
    get_fields(call, key, names->state, &row->state, names->attempts, &row->attempts);
    (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_EXISTS, names->group, &row->has_group,
                               names->parent, &row->has_parent, NULL);
    emq_close_looked(call, ref, key);
    return row->attempts == NULL ? EMQ_ABSENT : EMQ_PRESENT;
}

emq_presence emq_read_row_for_lease(emq_call *call, emq_ref ref, emq_row *row) {
    const emq_strings *names = &emq_the_host.strings;
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_quietly(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key);
    *row = (emq_row){0};
    if (presence != EMQ_PRESENT) {
        return presence;
    }
    get_fields(call, key, names->attempts, &row->attempts, names->lease_epoch, &row->lease_epoch);
    emq_close_looked(call, ref, key);
    return row->attempts == NULL ? EMQ_ABSENT : EMQ_PRESENT;
}

emq_presence emq_read_row_for_sweep(emq_call *call, emq_ref ref, emq_row *row) {
    const emq_strings *names = &emq_the_host.strings;
    ValkeyModuleKey *key = NULL;
    *row = (emq_row){0};
    if (open_quietly(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key) != EMQ_PRESENT) {
        return EMQ_ABSENT;
    }
    get_fields(call, key, names->state, &row->state, names->lease_epoch, &row->lease_epoch);
    get_field(call, key, names->stalled, &row->stalled);
    (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_EXISTS, names->group, &row->has_group, NULL);
    emq_close_looked(call, ref, key);
    return EMQ_PRESENT;
}

int emq_row_is(const emq_row *row, const char *state) {
    return row->state != NULL && emq_slice_equal(emq_text(row->state), emq_slice_of(state));
}

int emq_exists(emq_call *call, emq_ref ref) {
    ValkeyModuleKey *key = emq_open_to_look(call, ref);
    if (key == NULL) {
        return 0;
    }
    emq_close_looked(call, ref, key);
    return 1;
}

int emq_expires(emq_call *call, emq_ref ref) {
    ValkeyModuleKey *key = emq_open_to_look(call, ref);
    int expires = key != NULL && ValkeyModule_GetExpire(key) != VALKEYMODULE_NO_EXPIRE;
    emq_close_looked(call, ref, key);
    return expires;
}

/* The key API does not tell; a host whose fields can't have one lacks the command. */
int emq_field_expires(emq_call *call, emq_ref ref, ValkeyModuleString *field) {
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(call->ctx, "HPTTL", "sccs", ref.name, "FIELDS", "1", field);
    ValkeyModuleCallReply *left =
        reply == NULL ? NULL : ValkeyModule_CallReplyArrayElement(reply, 0);
    int expires = left != NULL && ValkeyModule_CallReplyInteger(left) >= 0;
    if (reply != NULL) {
        ValkeyModule_FreeCallReply(reply);
    }
    return expires;
}

int emq_check_type(emq_call *call, emq_ref ref, int type) {
    ValkeyModuleKey *key = NULL;
    emq_keep(call, ref);
    emq_presence presence = open_typed(call, ref, type, &key);
    if (presence == EMQ_PRESENT) {
        emq_close_looked(call, ref, key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

int emq_hash_field(emq_call *call, emq_ref ref, ValkeyModuleString *field,
                   ValkeyModuleString **out) {
    ValkeyModuleKey *key = NULL;
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_HASH, &key);
    *out = NULL;
    if (presence == EMQ_PRESENT) {
        get_field(call, key, field, out);
        emq_close_looked(call, ref, key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

int emq_hash_has(emq_call *call, emq_ref ref, ValkeyModuleString *field, int *out) {
    ValkeyModuleString *value = NULL;
    if (!emq_hash_field(call, ref, field, &value)) {
        return 0;
    }
    *out = value != NULL;
    return 1;
}

int emq_hash_counter(emq_call *call, emq_ref ref, ValkeyModuleString *field, int64_t by,
                     int64_t *out) {
    ValkeyModuleString *value = NULL;
    long long number = 0;
    emq_keep(call, ref);
    if (!emq_hash_field(call, ref, field, &value)) {
        return 0;
    }
    /* the server's own words, as HINCRBY has them for such a field */
    if (value != NULL && ValkeyModule_StringToLongLong(value, &number) != VALKEYMODULE_OK) {
        return emq_refuse(call, "ERR hash value is not an integer");
    }
    if (number > INT64_MAX - by) {
        return emq_refuse(call, "ERR increment or decrement would overflow");
    }
    *out = number + by;
    return 1;
}

/* Where the host keeps a short string or a number in a form of its own, StringDMA gives it the
 * plain one; its bytes, its time to live and what replicas have stay as they are. */
emq_presence emq_open_string(emq_call *call, emq_ref ref, ValkeyModuleKey **key, emq_slice *bytes) {
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_STRING, key);
    *bytes = (emq_slice){"", 0};
    if (presence == EMQ_PRESENT) {
        bytes->data = ValkeyModule_StringDMA(*key, &bytes->length, VALKEYMODULE_READ);
    }
    return presence;
}

int emq_string_counter(emq_call *call, emq_ref ref, int64_t *out) {
    ValkeyModuleKey *key = NULL;
    long long number = 0;
    emq_slice text;
    emq_presence presence = emq_open_string(call, ref, &key, &text);
    int is_number = 1;
    if (presence == EMQ_PRESENT) {
        ValkeyModuleString *value =
            emq_own(call, ValkeyModule_CreateString(NULL, text.data, text.length));
        is_number = ValkeyModule_StringToLongLong(value, &number) == VALKEYMODULE_OK;
        emq_close_looked(call, ref, key);
    }
    /* the server's own words, as INCR has them for such a string */
    if (!is_number) {
        return emq_refuse(call, "ERR value is not an integer or out of range");
    }
    if (number == INT64_MAX) {
        return emq_refuse(call, "ERR increment or decrement would overflow");
    }
    *out = number + 1;
    return presence != EMQ_PRESENCE_REFUSED;
}

double emq_zset_lowest_of(ValkeyModuleKey *key) {
    double lowest = INFINITY;
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_ZSET) {
        (void)ValkeyModule_ZsetFirstInScoreRange(key, -INFINITY, INFINITY, 0, 0);
        ValkeyModuleString *member = ValkeyModule_ZsetRangeCurrentElement(key, &lowest);
        ValkeyModule_ZsetRangeStop(key);
        ValkeyModule_FreeString(NULL, member);
    }
    return lowest;
}

double emq_zset_lowest(emq_call *call, emq_ref ref) {
    ValkeyModuleKey *key = emq_open_to_look(call, ref);
    double lowest = emq_zset_lowest_of(key);
    emq_close_looked(call, ref, key);
    return lowest;
}

int emq_zset_has(emq_call *call, emq_ref ref, ValkeyModuleString *member, int *out) {
    ValkeyModuleKey *key = NULL;
    double score = 0;
    emq_presence presence = open_typed(call, ref, VALKEYMODULE_KEYTYPE_ZSET, &key);
    *out = 0;
    if (presence == EMQ_PRESENT) {
        *out = ValkeyModule_ZsetScore(key, member, &score) == VALKEYMODULE_OK;
        emq_close_looked(call, ref, key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

/* Takes the next ids of a set; returns how many. */
static int take_ids(emq_call *call, ValkeyModuleKey *key, ValkeyModuleString **out, int64_t most) {
    int count = 0;
    while (count < most && !ValkeyModule_ZsetRangeEndReached(key)) {
        out[count++] = emq_own(call, ValkeyModule_ZsetRangeCurrentElement(key, NULL));
        (void)ValkeyModule_ZsetRangeNext(key);
    }
    return count;
}

/* Shows some ids. The rights to their rows are asked for in one line; where that is refused, for
 * each one when its turn comes. */
static emq_visit show_ids(emq_call *call, ValkeyModuleString *const *ids, int count,
                          const emq_visiting *visiting) {
    emq_ref rows[EMQ_REACHED_TOGETHER] = {{.name = NULL}};
    emq_visit answer = EMQ_VISIT_ON;
    int together = emq_may_reach_rows(call, rows, ids, count);
    for (int i = 0; i < count && answer == EMQ_VISIT_ON; i++) {
        const emq_reach_key key = {.kind = EMQ_KEY_JOB, .id = ids[i]};
        int is_name = together || emq_name_valid(emq_text(ids[i]));
        if (is_name && !together && !emq_reach(call, &rows[i], &key, 1)) {
            return EMQ_VISIT_REFUSED;
        }
        answer = visiting->visit(call, ids[i], is_name ? &rows[i] : NULL, visiting->data);
    }
    return answer;
}

int emq_visit_ids(emq_call *call, emq_ref set, const emq_visiting *visiting) {
    ValkeyModuleKey *key = NULL;
    emq_keep(call, set);
    emq_presence presence = open_typed(call, set, VALKEYMODULE_KEYTYPE_ZSET, &key);
    if (presence != EMQ_PRESENT) {
        return presence == EMQ_ABSENT;
    }
    emq_visit answer = EMQ_VISIT_ON;
    int64_t looks = visiting->looks;
    int count = 1;
    (void)ValkeyModule_ZsetFirstInScoreRange(key, -INFINITY, visiting->max_score, 0, 0);
    while (looks > 0 && count > 0 && answer == EMQ_VISIT_ON) {
        ValkeyModuleString *ids[EMQ_REACHED_TOGETHER];
        int64_t most = visiting->expected < looks ? visiting->expected : looks;
        count = take_ids(call, key, ids, most < EMQ_REACHED_TOGETHER ? most : EMQ_REACHED_TOGETHER);
        answer = show_ids(call, ids, count, visiting);
        looks -= count;
    }
    ValkeyModule_ZsetRangeStop(key);
    emq_close_looked(call, set, key);
    return answer != EMQ_VISIT_REFUSED;
}

int emq_refuse_row_number(emq_call *call, const char *name) {
    char text[64];
    (void)snprintf(text, sizeof(text), "ERR EMQ row %s is not an integer", name);
    return emq_refuse(call, text);
}

int emq_row_number(const ValkeyModuleString *value, int64_t *out) {
    long long number = 0;
    if (value != NULL && ValkeyModule_StringToLongLong(value, &number) != VALKEYMODULE_OK) {
        return 0;
    }
    *out = number;
    return 1;
}

int emq_row_next_number(const ValkeyModuleString *value, int64_t *out) {
    int64_t number = 0;
    if (!emq_row_number(value, &number) || number == INT64_MAX) {
        return 0;
    }
    *out = number + 1;
    return 1;
}
