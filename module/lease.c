/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: EMQ.EXTEND and EMQ.EXTENDS. They read neither lane nor flow. */
#include "effects.h"
#include "handlers.h"
#include "open.h"
#include "read.h"

static int is_this_servers(const ValkeyModuleString *epoch) {
    return epoch != NULL && emq_slice_equal(emq_text(epoch), emq_text(emq_the_host.strings.run_id));
}

/* Prolongs one lease; a row that another server process leased is this one's from now on, so that
 * the next sweep counts a stall. The epoch is read again first: an id that stands in a batch twice
 * was made this server's a moment ago. */
static void extend(emq_call *call, emq_writes *writes, emq_ref active, emq_ref row_ref,
                   const emq_row *row, ValkeyModuleString *id, int64_t deadline) {
    const emq_strings *strings = &emq_the_host.strings;
    ValkeyModuleString *epoch = row->lease_epoch;
    emq_effect_zadd(writes, active, deadline, id);
    if (!is_this_servers(epoch) && emq_hash_field(call, row_ref, strings->lease_epoch, &epoch) &&
        !is_this_servers(epoch)) {
        const emq_field field = {strings->lease_epoch, strings->run_id};
        emq_effect_hset(writes, row_ref, &field, 1);
    }
}

void emq_handle_extend(emq_call *call) {
    emq_ref active = emq_declared(call, 0);
    emq_ref row_ref = emq_declared(call, 1);
    ValkeyModuleString *id = emq_value(call, 0);
    emq_row row;
    int64_t lease_ms = 0;
    int held = 0;
    if (!emq_value_integer(call, 2, &lease_ms)) {
        return;
    }
    emq_keep(call, active);
    emq_presence presence =
        emq_refuse_other_type(call, emq_read_row_for_lease(call, row_ref, &row));
    if (presence == EMQ_ABSENT) {
        emq_reply_integer(call, -1);
    }
    if (presence != EMQ_PRESENT) {
        return;
    }
    if (!emq_slice_equal(emq_text(row.attempts), emq_text(emq_value(call, 1)))) {
        (void)emq_refuse(call, "EMQSTALE extend token mismatch");
        return;
    }
    if (!emq_zset_has(call, active, id, &held)) {
        return;
    }
    if (!held) {
        (void)emq_refuse(call, "EMQSTALE extend lease lost");
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes != NULL) {
        extend(call, writes, active, row_ref, &row, id, emq_now_ms() + lease_ms);
        emq_reply_integer(call, 1);
    }
}

/* A member of EXTENDS. */
typedef struct member {
    ValkeyModuleString *id;
    emq_ref row_ref;
    emq_row row;
    int is_held; /* its token is right and its lease is there */
} member;

/* Looks at one member. Only `active` of another type is a refusal: a row of another type is a lease
 * that can't be extended. */
static int look_at(emq_call *call, emq_ref active, member *m, ValkeyModuleString *token) {
    m->is_held = 0;
    if (emq_read_row_for_lease(call, m->row_ref, &m->row) != EMQ_PRESENT ||
        !emq_slice_equal(emq_text(m->row.attempts), emq_text(token))) {
        return 1;
    }
    return emq_zset_has(call, active, m->id, &m->is_held);
}

/* Checks the rights to all rows first, and then looks at them in order. */
static int look_at_all(emq_call *call, emq_ref active, emq_ref *rows, member *members, int count) {
    static const emq_key_kind row = EMQ_KEY_JOB;
    if (!emq_reach_members(call, rows, &row, 1) ||
        !emq_check_type(call, active, VALKEYMODULE_KEYTYPE_ZSET)) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        members[i].id = emq_value(call, 1 + 2 * i);
        members[i].row_ref = rows[i];
        if (!look_at(call, active, &members[i], emq_value(call, 2 + 2 * i))) {
            return 0;
        }
    }
    return 1;
}

static void extend_all(emq_call *call, emq_ref active, member *members, int count,
                       int64_t lease_ms) {
    int held = 0;
    for (int i = 0; i < count; i++) {
        held += members[i].is_held;
    }
    emq_writes *writes = held > 0 ? emq_begin_writes(call) : NULL;
    if (held > 0 && writes == NULL) {
        return;
    }
    for (int i = 0; i < count; i++) {
        if (members[i].is_held) {
            extend(call, writes, active, members[i].row_ref, &members[i].row, members[i].id,
                   emq_now_ms() + lease_ms);
        }
    }
    (void)ValkeyModule_ReplyWithArray(call->ctx, count - held);
    for (int i = 0; i < count; i++) {
        if (!members[i].is_held) {
            (void)ValkeyModule_ReplyWithString(call->ctx, members[i].id);
        }
    }
}

void emq_handle_extends(emq_call *call) {
    emq_ref active = emq_declared(call, 0);
    int count = (call->value_count - 1) / 2;
    int64_t lease_ms = 0;
    if (!emq_value_integer(call, 0, &lease_ms) || !emq_check_batch_size(call)) {
        return;
    }
    member *members = ValkeyModule_Alloc((size_t)count * sizeof(*members));
    emq_ref *rows = ValkeyModule_Alloc((size_t)count * sizeof(*rows));
    if (look_at_all(call, active, rows, members, count)) {
        extend_all(call, active, members, count, lease_ms);
    }
    ValkeyModule_Free(members);
    ValkeyModule_Free(rows);
}
