/* SPDX-License-Identifier: Apache-2.0 */
/* Claiming: EMQ.CLAIM. */
#include "effects.h"
#include "handlers.h"
#include "read.h"

/* What a claim found: ids without a row (orphans) in front, and the first id with one. */
typedef struct claim_search {
    ValkeyModuleString *ids[EMQ_CLAIM_LOOKS];
    int orphans; /* ids[0] to ids[orphans - 1] */
    int found;   /* then ids[orphans] has a row */
    emq_ref row_ref;
    emq_row row;
} claim_search;

/* Looks at the lowest ids until one has a row. An id that can't be part of a key is an orphan: no
 * row can belong to it. */
static int find_candidate(emq_call *call, emq_ref pending, claim_search *out) {
    int count = 0;
    if (!emq_zset_lowest(call, pending, out->ids, EMQ_CLAIM_LOOKS, &count)) {
        return 0;
    }
    for (out->orphans = 0; out->orphans < count; out->orphans++) {
        ValkeyModuleString *id = out->ids[out->orphans];
        if (!emq_name_valid(emq_text(id))) {
            continue;
        }
        const emq_reach_key key = {.kind = EMQ_KEY_JOB, .id = id};
        if (!emq_reach(call, &out->row_ref, &key, 1)) {
            return 0;
        }
        emq_presence presence = emq_read_row_for_claim(call, out->row_ref, &out->row);
        if (presence == EMQ_PRESENT) {
            out->found = 1;
        }
        if (presence != EMQ_ABSENT) {
            return presence == EMQ_PRESENT;
        }
    }
    return 1;
}

/* Nothing to hand out: the orphans that were met are removed all the same. */
static void answer_empty(emq_call *call, emq_ref pending, claim_search *search) {
    if (search->orphans > 0) {
        emq_writes *writes = emq_begin_writes(call);
        if (writes == NULL) {
            return;
        }
        emq_effect_zrem(writes, pending, search->ids, (size_t)search->orphans);
    }
    (void)ValkeyModule_ReplyWithArray(call->ctx, 0);
}

static void lease(emq_call *call, emq_writes *writes, claim_search *search, int64_t attempts,
                  int64_t deadline) {
    const emq_strings *strings = &emq_the_host.strings;
    emq_ref pending = emq_declared(call, 0);
    emq_ref active = emq_declared(call, 1);
    ValkeyModuleString *id = search->ids[search->orphans];
    if (search->orphans > 0) {
        emq_effect_zrem(writes, pending, search->ids, (size_t)search->orphans);
    }
    emq_effect_zrem(writes, pending, &id, 1);
    const emq_field fields[] = {
        {strings->state, strings->active},
        {strings->attempts, ValkeyModule_CreateStringFromLongLong(call->ctx, attempts)},
        {strings->lease_epoch, strings->run_id},
    };
    emq_effect_hset(writes, search->row_ref, fields, 3);
    emq_effect_zadd(writes, active, deadline, id);
}

static void reply_job(emq_call *call, const claim_search *search, int64_t attempts) {
    (void)ValkeyModule_ReplyWithArray(call->ctx, 3);
    (void)ValkeyModule_ReplyWithString(call->ctx, search->ids[search->orphans]);
    if (search->row.payload != NULL) {
        (void)ValkeyModule_ReplyWithString(call->ctx, search->row.payload);
    } else {
        (void)ValkeyModule_ReplyWithNull(call->ctx);
    }
    (void)ValkeyModule_ReplyWithLongLong(call->ctx, attempts);
}

void emq_handle_claim(emq_call *call) {
    emq_ref pending = emq_declared(call, 0);
    emq_ref active = emq_declared(call, 1);
    const emq_reach_key meta_key = {.kind = EMQ_KEY_META, .read_only = 1};
    emq_ref meta;
    claim_search search = {.found = 0};
    int64_t lease_ms = 0;
    int64_t attempts = 0;
    int paused = 0;
    if (!emq_value_integer(call, 0, &lease_ms) || !emq_reach(call, &meta, &meta_key, 1) ||
        !emq_hash_has(call, meta, emq_the_host.strings.paused, &paused)) {
        return;
    }
    if (paused) {
        (void)ValkeyModule_ReplyWithArray(call->ctx, 0);
        return;
    }
    if (!find_candidate(call, pending, &search)) {
        return;
    }
    if (!search.found) {
        answer_empty(call, pending, &search);
        return;
    }
    if (!emq_row_next_number(call, search.row.attempts, EMQ_FIELD_ATTEMPTS, &attempts) ||
        !emq_check_type(call, active, VALKEYMODULE_KEYTYPE_ZSET)) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes != NULL) {
        lease(call, writes, &search, attempts, emq_now_ms() + lease_ms);
        reply_job(call, &search, attempts);
    }
}
