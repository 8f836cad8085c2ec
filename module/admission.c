/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: EMQ.ENQUEUE, EMQ.SCHEDULE and EMQ.ENQUEUES. */
#include "effects.h"
#include "handlers.h"
#include "read.h"

static void write_row(emq_writes *writes, emq_ref row, ValkeyModuleString *state,
                      ValkeyModuleString *payload) {
    const emq_strings *strings = &emq_the_host.strings;
    const emq_field fields[] = {
        {strings->state, state},
        {strings->attempts, strings->zero},
        {strings->payload, payload},
    };
    emq_effect_hset(writes, row, fields, 3);
}

/* Writes a new row and its place in a set: `pending` at score 0, or `schedule` at a time. The first
 * key is the row, the second the set. */
static void admit(emq_call *call, ValkeyModuleString *state, int64_t score) {
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
    write_row(writes, row, state, emq_value(call, 1));
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

typedef struct member {
    ValkeyModuleString *id;
    ValkeyModuleString *payload;
    emq_ref row;
    int is_new;
} member;

static int check_kinds(emq_call *call, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!emq_check_job_kind(call, emq_value(call, 2 * (int)i))) {
            return 0;
        }
    }
    return 1;
}

/* The rights to all rows first, and then the rows in order. An id that stands in the batch again
 * has a row by then. */
static int look_at_all(emq_call *call, emq_ref *rows, member *members, size_t count) {
    static const emq_key_kind row = EMQ_KEY_JOB;
    int may_repeat = !emq_members_ascend(call);
    if (!emq_reach_members(call, rows, &row, 1)) {
        return 0;
    }
    ValkeyModuleDict *seen = ValkeyModule_CreateDict(call->ctx);
    for (size_t i = 0; i < count; i++) {
        member *m = &members[i];
        m->id = emq_value(call, 2 * (int)i);
        m->payload = emq_value(call, 2 * (int)i + 1);
        m->row = rows[i];
        m->is_new = !emq_exists(call, m->row) &&
                    (!may_repeat || ValkeyModule_DictSet(seen, m->id, NULL) == VALKEYMODULE_OK);
    }
    ValkeyModule_FreeDict(call->ctx, seen);
    return 1;
}

/* One record for the set, whatever the number of jobs. Returns 0 after a refusal. */
static int write_all(emq_call *call, const member *members, size_t count,
                     ValkeyModuleString **new_ids) {
    emq_ref pending = emq_declared(call, 0);
    emq_writes *writes = NULL;
    size_t written = 0;
    if (!emq_check_type(call, pending, VALKEYMODULE_KEYTYPE_ZSET) ||
        (writes = emq_begin_writes(call)) == NULL) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].is_new) {
            write_row(writes, members[i].row, emq_the_host.strings.pending, members[i].payload);
            new_ids[written++] = members[i].id;
        }
    }
    emq_effect_zadd_all(writes, pending, 0, new_ids, written);
    return 1;
}

static void admit_all(emq_call *call, const member *members, size_t count,
                      ValkeyModuleString **new_ids) {
    size_t admitted = 0;
    for (size_t i = 0; i < count; i++) {
        admitted += members[i].is_new != 0;
    }
    if (admitted > 0 && !write_all(call, members, count, new_ids)) {
        return;
    }
    (void)ValkeyModule_ReplyWithArray(call->ctx, (long)count);
    for (size_t i = 0; i < count; i++) {
        (void)ValkeyModule_ReplyWithLongLong(call->ctx, members[i].is_new);
    }
}

void emq_handle_enqueues(emq_call *call) {
    size_t count = (size_t)call->value_count / 2;
    if (!check_kinds(call, count) || !emq_check_batch_size(call)) {
        return;
    }
    member *members = ValkeyModule_Alloc(count * sizeof(*members));
    ValkeyModuleString **new_ids = ValkeyModule_Alloc(count * sizeof(ValkeyModuleString *));
    emq_ref *rows = ValkeyModule_Alloc(count * sizeof(*rows));
    if (look_at_all(call, rows, members, count)) {
        admit_all(call, members, count, new_ids);
    }
    ValkeyModule_Free(members);
    ValkeyModule_Free(rows);
    ValkeyModule_Free(new_ids);
}
