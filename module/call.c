/* SPDX-License-Identifier: Apache-2.0 */
/* The corridor: shape, layout, fence, the write guard. The checked accessor is in reach.c. */
#include "call.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "effects.h"
#include "names.h"
#include "open.h"
#include "reach.h"
#include "read.h"
#include "wait.h"

#define FOUND_MAX 128

int emq_refuse(emq_call *call, const char *text) {
    emq_stats_count_refusal(emq_refusal_classify(text, strlen(text)));
    (void)ValkeyModule_ReplyWithError(call->ctx, text);
    return 0;
}

int emq_refuse_range(emq_call *call, const char *what, int64_t min, int64_t max) {
    char refusal[EMQ_REFUSAL_MAX];
    (void)snprintf(refusal, sizeof(refusal),
                   "ERR EMQ %s must be an integer from %" PRId64 " to %" PRId64, what, min, max);
    return emq_refuse(call, refusal);
}

ValkeyModuleString *emq_value(const emq_call *call, int index) {
    return call->argv[call->first_key + call->verb->key_count + index];
}

int emq_value_integer_of(emq_call *call, int index, emq_value_kind kind, int64_t *out) {
    const emq_value_facts *facts = emq_value_get_facts(kind);
    emq_slice text = emq_text(emq_value(call, index));
    return emq_decimal_parse(out, text.data, text.length, facts->min, facts->max) ||
           emq_refuse_range(call, facts->name, facts->min, facts->max);
}

int emq_value_integer(emq_call *call, int index, int64_t *out) {
    return emq_value_integer_of(call, index, call->verb->values[index], out);
}

int emq_value_when(emq_call *call, int mode_index, int64_t *out) {
    emq_slice mode = emq_text(emq_value(call, mode_index));
    if (emq_slice_equal(mode, emq_slice_of(EMQ_MODE_AT))) {
        return emq_value_integer_of(call, mode_index + 1, EMQ_VALUE_AT_MS, out);
    }
    if (!emq_slice_equal(mode, emq_slice_of(EMQ_MODE_IN))) {
        return emq_refuse(call, "ERR EMQ mode must be " EMQ_MODE_AT " or " EMQ_MODE_IN);
    }
    if (!emq_value_integer_of(call, mode_index + 1, EMQ_VALUE_IN_MS, out)) {
        return 0;
    }
    *out += emq_now_ms();
    return 1;
}

/* The first three bytes, as the retired script looked at them. */
int emq_check_job_kind(emq_call *call, ValkeyModuleString *id) {
    emq_slice text = emq_text(id);
    return (text.length >= EMQ_NAMESPACE_LEN &&
            memcmp(text.data, EMQ_NAMESPACE_JOB, EMQ_NAMESPACE_LEN) == 0) ||
           emq_refuse(call, "EMQKIND job id must be JOB-namespaced");
}

emq_ref emq_declared(const emq_call *call, int index) {
    return (emq_ref){.name = call->argv[call->first_key + index], .kind = call->verb->keys[index]};
}

void emq_reply_integer(emq_call *call, int64_t value) {
    (void)ValkeyModule_ReplyWithLongLong(call->ctx, value);
}

void emq_reply_empty(emq_call *call) {
    (void)ValkeyModule_ReplyWithArray(call->ctx, 0);
}

/* Most numbers of a row are small ones: a first token, a first failure. */
ValkeyModuleString *emq_number_text(emq_call *call, int64_t number) {
    ValkeyModuleString *small = emq_small_number(number);
    return small != NULL ? small
                         : emq_own(call, ValkeyModule_CreateStringFromLongLong(NULL, number));
}

int64_t emq_now_ms(void) {
    return ValkeyModule_CachedMicroseconds() / 1000;
}

int emq_refuse_shape(emq_call *call) {
    const emq_verb *verb = call->verb;
    char refusal[EMQ_REFUSAL_MAX];
    char values[EMQ_WORDS_MAX];
    emq_verb_value_words(values, sizeof(values), verb);
    (void)snprintf(refusal, sizeof(refusal), "ERR EMQ shape %s expects %d keys and %s values",
                   emq_verb_word(verb), verb->key_count, values);
    return emq_refuse(call, refusal);
}

/* The key count must be the very bytes of its decimal: where the server can't read it, it has
 * checked no key at all. */
static int check_shape(emq_call *call) {
    _Static_assert(EMQ_VERB_KEYS_MAX < 10, "a key count is one digit");
    emq_slice count = emq_text(call->argv[1]);
    return (count.length == 1 && count.data[0] == '0' + call->verb->key_count &&
            emq_verb_takes(call->verb, call->value_count)) ||
           emq_refuse_shape(call);
}

int emq_count_members(const emq_call *call, int *first) {
    const emq_verb *verb = call->verb;
    *first = verb->value_count - verb->repeated;
    return verb->repeated == 0 ? 0 : (call->value_count - *first) / verb->repeated;
}

/* The ids of a batch arrive as values alone: each must be one that can be part of a key. */
static int check_batch_ids(emq_call *call) {
    int first = 0;
    int members = emq_count_members(call, &first);
    if (members > 0 && call->verb->values[first] != EMQ_VALUE_ID) {
        return 1; /* what repeats is no id: fields, or numbers */
    }
    for (int i = 0; i < members; i++) {
        if (!emq_name_valid(emq_text(emq_value(call, first + i * call->verb->repeated)))) {
            char refusal[EMQ_REFUSAL_MAX];
            (void)snprintf(refusal, sizeof(refusal), "ERR EMQ layout %s id %d must be <id>",
                           emq_verb_word(call->verb), i + 1);
            return emq_refuse(call, refusal);
        }
    }
    return 1;
}

int emq_members_ascend(const emq_call *call) {
    int first = 0;
    int members = emq_count_members(call, &first);
    for (int i = 1; i < members; i++) {
        int at = first + i * call->verb->repeated;
        if (emq_slice_compare(emq_text(emq_value(call, at - call->verb->repeated)),
                              emq_text(emq_value(call, at))) >= 0) {
            return 0;
        }
    }
    return 1;
}

int emq_check_batch_size(emq_call *call) {
    int first = 0;
    return emq_count_members(call, &first) <= EMQ_BATCH_MAX ||
           emq_refuse_range(call, "members", 1, EMQ_BATCH_MAX);
}

/* The name of a stream arrives nowhere but in its key. */
static int is_named_by_itself(emq_key_kind kind) {
    return kind == EMQ_KEY_STREAM || kind == EMQ_KEY_STREAM_FAILURES;
}

static int key_matches(const emq_call *call, int index, emq_slice base, emq_slice id) {
    emq_key_kind kind = call->verb->keys[index];
    emq_slice key = emq_text(call->argv[2 + index]);
    emq_slice name;
    return is_named_by_itself(kind) ? emq_key_find_name(&name, key, kind, call->queue)
                                    : emq_key_matches_base(key, kind, base, id);
}

/* The queue is the one that the first key names; every key must then be byte for byte what its
 * kind, the queue and the id dictate. */
static int check_layout(emq_call *call) {
    const emq_verb *verb = call->verb;
    int id_index = emq_verb_find_value(verb, EMQ_VALUE_ID);
    emq_slice id = id_index < 0 ? (emq_slice){"", 0} : emq_text(emq_value(call, id_index));
    int has_queue = emq_key_find_queue(&call->queue, emq_text(call->argv[2]));
    emq_slice base = has_queue ? emq_key_base_of(call->queue) : (emq_slice){"", 0};
    for (int i = 0; i < verb->key_count; i++) {
        int needs_queue = verb->keys[i] != EMQ_KEY_FENCE;
        if ((has_queue || !needs_queue) && key_matches(call, i, base, id)) {
            continue;
        }
        char refusal[EMQ_REFUSAL_MAX];
        (void)snprintf(refusal, sizeof(refusal), "ERR EMQ layout %s key %d must be %s",
                       emq_verb_word(verb), i + 1, emq_key_pattern(verb->keys[i]));
        return emq_refuse(call, refusal);
    }
    return 1;
}

/* Refuses with the text for a fence of another wire. */
static int refuse_fence(emq_call *call, const char *found, size_t n) {
    char refusal[EMQ_REFUSAL_MAX];
    char shown[FOUND_MAX + 1];
    size_t length = n < FOUND_MAX ? n : FOUND_MAX;
    memcpy(shown, found, length);
    shown[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (iscntrl((unsigned char)shown[i])) {
            shown[i] = ' ';
        }
    }
    (void)snprintf(refusal, sizeof(refusal), "EMQWIRE expected " EMQ_WIRE " found %s", shown);
    return emq_refuse(call, refusal);
}

emq_fence_state emq_read_fence(emq_call *call, emq_ref fence) {
    ValkeyModuleKey *key = emq_open_to_look(call, fence);
    if (key == NULL) {
        return EMQ_FENCE_ABSENT;
    }
    if (ValkeyModule_KeyType(key) != VALKEYMODULE_KEYTYPE_STRING) {
        emq_close_looked(call, fence, key);
        (void)emq_refuse(call, VALKEYMODULE_ERRORMSG_WRONGTYPE);
        return EMQ_FENCE_REFUSED;
    }
    size_t length = 0;
    const char *value = ValkeyModule_StringDMA(key, &length, VALKEYMODULE_READ);
    emq_fence_state state = EMQ_FENCE_RIGHT;
    if (!emq_slice_equal((emq_slice){value, length}, emq_slice_of(EMQ_WIRE))) {
        (void)refuse_fence(call, value, length);
        state = EMQ_FENCE_REFUSED;
    }
    emq_close_looked(call, fence, key);
    return state;
}

int emq_check_fence(emq_call *call) {
    emq_ref fence = {.name = emq_the_host.strings.fence_key, .kind = EMQ_KEY_FENCE};
    if (!emq_check_key(call, fence.name, VALKEYMODULE_CMD_KEY_ACCESS)) {
        return 0;
    }
    emq_fence_state state = emq_read_fence(call, fence);
    if (state == EMQ_FENCE_ABSENT) {
        return emq_refuse(call, "EMQWIRE expected " EMQ_WIRE " but " EMQ_FENCE_KEY " is absent");
    }
    return state == EMQ_FENCE_RIGHT;
}

emq_writes *emq_begin_writes(emq_call *call) {
    if (!ValkeyModule_AvoidReplicaTraffic()) {
        return &call->writes;
    }
    if (call->waiter != NULL) {
        emq_reply_empty(call);
    } else {
        (void)emq_refuse(call, "ERR EMQ write-paused");
    }
    return NULL;
}

void emq_signal_ready(emq_call *call, emq_ref pending) {
    call->writes.ready = pending.name;
}

/* A plain key has been checked by the server: it has no layout, nothing is reached beyond it, and
 * the fence is not its. Administrative verbs make the fence, so they can't be held to it. */
static int check_corridor(emq_call *call) {
    if (call->verb->family == EMQ_FAMILY_TRA) {
        return emq_verb_takes(call->verb, call->value_count) || emq_refuse_shape(call);
    }
    return check_shape(call) && check_layout(call) && check_batch_ids(call) &&
           (call->verb->family == EMQ_FAMILY_ADMIN || emq_check_fence(call));
}

static void walk(emq_call *call) {
    emq_names_enter();
    emq_find_user(call);
    if ((call->waiter == NULL || emq_check_verb(call)) && check_corridor(call)) {
        call->handler(call);
        emq_close_kept(&call->writes);
        emq_effects_notify(&call->writes);
        emq_wait_signal(call);
    }
    if (call->user != NULL) {
        ValkeyModule_FreeModuleUser(call->user);
    }
    emq_free_owned(call);
    emq_names_leave();
}

static emq_call make_call(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                          emq_verb_symbol symbol, emq_handler handler) {
    const emq_verb *verb = &emq_verbs[symbol];
    int first_key = emq_verb_counts_keys(verb) ? 2 : 1;
    return (emq_call){
        .ctx = ctx,
        .verb = verb,
        .handler = handler,
        .argv = argv,
        .argc = argc,
        .first_key = first_key,
        .value_count = argc - first_key - verb->key_count,
        .writes = {.ctx = ctx},
    };
}

int emq_dispatch(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, emq_verb_symbol symbol,
                 emq_handler handler) {
    emq_call call = make_call(ctx, argv, argc, symbol, handler);
    emq_stats_count_call(symbol);
    if (call.verb->key_count == 0) {
        handler(&call);
    } else {
        walk(&call);
    }
    return VALKEYMODULE_OK;
}

int emq_dispatch_again(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                       emq_verb_symbol symbol, emq_handler handler, emq_waiter *waiter) {
    emq_call call = make_call(ctx, argv, argc, symbol, handler);
    call.waiter = waiter;
    walk(&call);
    return !call.stays_blocked;
}
