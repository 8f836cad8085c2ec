/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: EMQ.ENQUEUE. */
#include <string.h>

#include "effects.h"
#include "handlers.h"
#include "read.h"

/* The kind door: the first three bytes, as the retired script looked at them. */
static int check_job_kind(emq_call *call, ValkeyModuleString *id) {
    emq_slice text = emq_text(id);
    if (text.length >= EMQ_NAMESPACE_LEN &&
        memcmp(text.data, EMQ_NAMESPACE_JOB, EMQ_NAMESPACE_LEN) == 0) {
        return 1;
    }
    return emq_refuse(call, "EMQKIND job id must be JOB-namespaced");
}

void emq_handle_enqueue(emq_call *call) {
    const emq_strings *strings = &emq_the_host.strings;
    emq_ref row = emq_declared(call, 0);
    emq_ref pending = emq_declared(call, 1);
    ValkeyModuleString *id = emq_value(call, 0);
    if (!check_job_kind(call, id)) {
        return;
    }
    if (emq_exists(call, row)) {
        (void)ValkeyModule_ReplyWithLongLong(call->ctx, 0);
        return;
    }
    if (!emq_check_type(call, pending, VALKEYMODULE_KEYTYPE_ZSET)) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return;
    }
    const emq_field fields[] = {
        {strings->state, strings->pending},
        {strings->attempts, strings->zero},
        {strings->payload, emq_value(call, 1)},
    };
    emq_effect_hset(writes, row, fields, 3);
    emq_effect_zadd(writes, pending, 0, id);
    (void)ValkeyModule_ReplyWithLongLong(call->ctx, 1);
}
