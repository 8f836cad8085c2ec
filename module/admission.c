/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: EMQ.ENQUEUE and EMQ.SCHEDULE. */
#include "effects.h"
#include "handlers.h"
#include "read.h"

/* Writes a new row and its place in a set: `pending` at score 0, or `schedule` at a time. The first
 * key is the row, the second the set. */
static void admit(emq_call *call, ValkeyModuleString *state, int64_t score) {
    const emq_strings *strings = &emq_the_host.strings;
    emq_ref row = emq_declared(call, 0);
    emq_ref set = emq_declared(call, 1);
    if (emq_exists(call, row)) {
        emq_reply_integer(call, 0);
        return;
    }
    if (!emq_check_type(call, set, VALKEYMODULE_KEYTYPE_ZSET)) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return;
    }
    const emq_field fields[] = {
        {strings->state, state},
        {strings->attempts, strings->zero},
        {strings->payload, emq_value(call, 1)},
    };
    emq_effect_hset(writes, row, fields, 3);
    emq_effect_zadd(writes, set, score, emq_value(call, 0));
    emq_reply_integer(call, 1);
}

void emq_handle_enqueue(emq_call *call) {
    if (emq_check_job_kind(call, emq_value(call, 0))) {
        admit(call, emq_the_host.strings.pending, 0);
    }
}

void emq_handle_schedule(emq_call *call) {
    int64_t when = 0;
    if (emq_check_job_kind(call, emq_value(call, 0)) && emq_value_when(call, 2, &when)) {
        admit(call, emq_the_host.strings.scheduled, when);
    }
}
