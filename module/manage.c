/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a job that nobody holds: EMQ.RESCHEDULE and EMQ.REPROCESS. */
#include "effects.h"
#include "handlers.h"
#include "open.h"
#include "read.h"

/* Reads a row and answers -1 when there is none. */
static int read_row(emq_call *call, emq_ref row_ref, emq_row *row) {
    emq_keep(call, row_ref);
    emq_presence presence = emq_refuse_other_type(call, emq_read_row(call, row_ref, row));
    if (presence == EMQ_ABSENT) {
        emq_reply_integer(call, -1);
    }
    return presence == EMQ_PRESENT;
}

/* A job is in a state when its row says so and the state's set holds it. */
static int check_state(emq_call *call, const emq_row *row, const char *state, emq_ref set,
                       ValkeyModuleString *id, const char *refusal) {
    int held = 0;
    emq_keep(call, set);
    if (!emq_row_is(row, state)) {
        return emq_refuse(call, refusal);
    }
    return emq_zset_has(call, set, id, &held) && (held || emq_refuse(call, refusal));
}

void emq_handle_reschedule(emq_call *call) {
    emq_ref row_ref = emq_declared(call, 0);
    emq_ref schedule = emq_declared(call, 1);
    ValkeyModuleString *id = emq_value(call, 0);
    emq_row row;
    int64_t when = 0;
    if (!emq_value_when(call, 1, &when) || !read_row(call, row_ref, &row) ||
        !check_state(call, &row, EMQ_STATE_SCHEDULED, schedule, id, "EMQSTATE not scheduled")) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes != NULL) {
        emq_effect_zadd(writes, schedule, when, id);
        emq_reply_integer(call, 1);
    }
}

/* What a job's next life starts without. */
#define BUDGET_FIELDS 4
static int list_budget(emq_call *call, emq_ref row_ref, ValkeyModuleString **out, int *count) {
    const emq_strings *strings = &emq_the_host.strings;
    ValkeyModuleString *const fields[BUDGET_FIELDS] = {strings->last_error, strings->failures,
                                                       strings->stalled, strings->lease_epoch};
    *count = 0;
    for (int i = 0; i < BUDGET_FIELDS; i++) {
        int has = 0;
        if (!emq_hash_has(call, row_ref, fields[i], &has)) {
            return 0;
        }
        if (has) {
            out[(*count)++] = fields[i];
        }
    }
    return 1;
}

void emq_handle_reprocess(emq_call *call) {
    emq_ref row_ref = emq_declared(call, 0);
    emq_ref dead = emq_declared(call, 1);
    emq_ref pending = emq_declared(call, 2);
    ValkeyModuleString *id = emq_value(call, 0);
    ValkeyModuleString *budget[BUDGET_FIELDS];
    int budget_count = 0;
    emq_row row;
    if (!read_row(call, row_ref, &row)) {
        return;
    }
    if (row.has_group) {
        (void)emq_refuse(call, "EMQLANE lane row: use the EMQ.GROUP verb");
        return;
    }
    if (!check_state(call, &row, EMQ_STATE_DEAD, dead, id, "EMQSTATE not dead") ||
        !emq_check_type(call, pending, VALKEYMODULE_KEYTYPE_ZSET) ||
        !list_budget(call, row_ref, budget, &budget_count)) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return;
    }
    const emq_field state = {emq_the_host.strings.state, emq_the_host.strings.pending};
    emq_effect_zrem(writes, dead, &id, 1);
    if (budget_count > 0) {
        emq_effect_hdel(writes, row_ref, budget, budget_count);
    }
    emq_effect_hset(writes, row_ref, &state, 1);
    emq_effect_zadd(writes, pending, 0, id);
    emq_reply_integer(call, 1);
}
