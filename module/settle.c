/* SPDX-License-Identifier: Apache-2.0 */
/* Settling: EMQ.COMPLETE, and the checks that every settling verb shares. */
#include <stdio.h>

#include "effects.h"
#include "handlers.h"
#include "read.h"

#define STALE_MAX 64

static int refuse_stale(emq_call *call, const char *verb, const char *reason) {
    char text[STALE_MAX];
    (void)snprintf(text, sizeof(text), "EMQSTALE %s %s", verb, reason);
    return emq_refuse(call, text);
}

/* A token is compared as text: it is the row's attempts at the claim. */
static int check_token(emq_call *call, const emq_row *row, ValkeyModuleString *token,
                       const char *verb) {
    if (row->group != NULL) {
        return emq_refuse(call, "EMQLANE lane row: use the EMQ.GROUP verb");
    }
    if (row->parent != NULL) {
        return emq_refuse(call, "EMQFLOW flow row: use the EMQ.FLOW verb");
    }
    if (!emq_slice_equal(emq_text(row->attempts), emq_text(token))) {
        return refuse_stale(call, verb, "token mismatch");
    }
    return 1;
}

/* Finds the set that holds the job for its last claimer: `active` while the lease lasts, or
 * `pending` when a sweep took the lease back and nobody has claimed since, which the row's
 * lease_epoch tells. Anything else is a lost lease. */
static int find_holder(emq_call *call, const emq_row *row, ValkeyModuleString *id, emq_ref active,
                       emq_ref pending, const char *verb, emq_ref *holder) {
    emq_slice state = row->state == NULL ? (emq_slice){"", 0} : emq_text(row->state);
    int64_t attempts = 0;
    int held = 0;
    if (!emq_row_attempts(call, row, &attempts)) {
        return 0;
    }
    if (attempts >= 1 && emq_slice_equal(state, emq_slice_of(EMQ_STATE_ACTIVE))) {
        *holder = active;
    } else if (attempts >= 1 && row->lease_epoch != NULL &&
               emq_slice_equal(state, emq_slice_of(EMQ_STATE_PENDING))) {
        *holder = pending;
    } else {
        return refuse_stale(call, verb, "lease lost");
    }
    if (!emq_zset_has(call, *holder, id, &held)) {
        return 0;
    }
    return held || refuse_stale(call, verb, "lease lost");
}

void emq_handle_complete(emq_call *call) {
    static const char verb[] = "complete";
    emq_ref active = emq_declared(call, 0);
    emq_ref row_ref = emq_declared(call, 1);
    ValkeyModuleString *id = emq_value(call, 0);
    enum { PENDING, COMPLETED, LOGS, REACHED };
    const emq_reach_key keys[REACHED] = {
        [PENDING] = {.kind = EMQ_KEY_PENDING},
        [COMPLETED] = {.kind = EMQ_KEY_COMPLETED},
        [LOGS] = {.kind = EMQ_KEY_LOGS, .id = id},
    };
    emq_ref reached[REACHED];
    emq_ref holder = {NULL};
    emq_row row;
    int64_t completed = 0;
    if (!emq_reach(call, reached, keys, REACHED)) {
        return;
    }
    emq_presence presence = emq_read_row_for_settle(call, row_ref, &row);
    if (presence != EMQ_PRESENT) {
        if (presence == EMQ_ABSENT) {
            (void)ValkeyModule_ReplyWithLongLong(call->ctx, 0);
        }
        return;
    }
    if (!check_token(call, &row, emq_value(call, 1), verb) ||
        !find_holder(call, &row, id, active, reached[PENDING], verb, &holder) ||
        !emq_hash_counter(call, reached[COMPLETED], emq_the_host.strings.count, &completed)) {
        return;
    }
    /* a row goes with its log lines, where it has any */
    const emq_ref deleted[] = {row_ref, reached[LOGS]};
    size_t deletions = emq_exists(call, reached[LOGS]) ? 2 : 1;
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return;
    }
    emq_effect_zrem(writes, holder, &id, 1);
    emq_effect_del(writes, deleted, deletions);
    const emq_field count = {emq_the_host.strings.count,
                             ValkeyModule_CreateStringFromLongLong(call->ctx, completed + 1)};
    emq_effect_hset(writes, reached[COMPLETED], &count, 1);
    (void)ValkeyModule_ReplyWithLongLong(call->ctx, 1);
}
