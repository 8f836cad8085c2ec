/* SPDX-License-Identifier: Apache-2.0 */
/* Completing: EMQ.COMPLETE and EMQ.COMPLETES. */
#include "handlers.h"
#include "open.h"
#include "settle.h"

void emq_handle_complete(emq_call *call) {
    static const emq_settle_rule rule = {.word = "complete", .gone_reply = 0, .refuses_flow = 1};
    enum { PENDING, COMPLETED, LOGS, REACHED };
    const emq_reach_key keys[REACHED] = {
        [PENDING] = {.kind = EMQ_KEY_PENDING},
        [COMPLETED] = {.kind = EMQ_KEY_COMPLETED},
        [LOGS] = {.kind = EMQ_KEY_LOGS, .id = emq_value(call, 0)},
    };
    emq_ref reached[REACHED];
    emq_settling job;
    int64_t completed = 0;
    if (!emq_reach(call, reached, keys, REACHED) ||
        !emq_settle_check(call, &rule, &job, emq_declared(call, 1), emq_declared(call, 0),
                          reached[PENDING]) ||
        !emq_hash_counter(call, reached[COMPLETED], emq_the_host.strings.count, 1, &completed)) {
        return;
    }
    /* a row goes with its log lines, where it has any */
    const emq_ref deleted[] = {job.row_ref, reached[LOGS]};
    size_t deletions = emq_exists(call, reached[LOGS]) ? 2 : 1;
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return;
    }
    emq_effect_zrem(writes, job.holder, &job.id, 1);
    emq_effect_del(writes, deleted, deletions);
    emq_settle_count(call, writes, reached[COMPLETED], completed);
    emq_reply_integer(call, 1);
}

/* What EMQ.COMPLETES answers for a member. */
enum { ANSWER_DONE = 1, ANSWER_GONE = 0, ANSWER_STALE = -1, ANSWER_NOT_FLAT = -2 };

typedef struct member {
    emq_settling job;
    emq_ref logs;
    int answer;
} member;

/* A batch, and what it writes: one command can take many members. */
typedef struct batch {
    member *members;
    int count;
    ValkeyModuleString **ids; /* of those that leave a set: from `active` first, then `pending` */
    size_t from_active;
    size_t from_pending;
    emq_ref *deleted;
    size_t deletions;
} batch;

/* The rights to every row and its log lines, before any of them is looked at. */
static int reach_all(emq_call *call, batch *b) {
    static const emq_key_kind kinds[] = {EMQ_KEY_JOB, EMQ_KEY_LOGS};
    emq_ref *reached = b->deleted; /* has the room, and is not needed yet */
    if (!emq_reach_members(call, reached, kinds, 2)) {
        return 0;
    }
    for (int i = 0; i < b->count; i++) {
        member *m = &b->members[i];
        m->job.id = emq_value(call, 2 * i);
        m->job.row_ref = reached[2 * (size_t)i];
        m->logs = reached[2 * (size_t)i + 1];
    }
    return 1;
}

/* Only a set of another type is a refusal of the whole call. */
static int judge(emq_call *call, member *m, const ValkeyModuleString *token, emq_ref active,
                 emq_ref pending) {
    switch (emq_settle_judge(call, &m->job, token, 1, active, pending)) {
    case EMQ_STANDING_REFUSED:
        return 0;
    case EMQ_STANDING_HELD:
        m->answer = ANSWER_DONE;
        break;
    case EMQ_STANDING_GONE:
        m->answer = ANSWER_GONE;
        break;
    case EMQ_STANDING_LANE:
    case EMQ_STANDING_FLOW:
        m->answer = ANSWER_NOT_FLAT;
        break;
    default:
        m->answer = ANSWER_STALE;
        break;
    }
    return 1;
}

/* An id that an earlier member completed is gone for a later one, whatever its token. */
static int judge_all(emq_call *call, batch *b, emq_ref active, emq_ref pending) {
    ValkeyModuleDict *done = ValkeyModule_CreateDict(call->ctx);
    int may_repeat = !emq_members_ascend(call);
    int judged = 1;
    for (int i = 0; i < b->count && judged; i++) {
        member *m = &b->members[i];
        int is_new = 1;
        if (may_repeat) {
            (void)ValkeyModule_DictGet(done, m->job.id, &is_new);
        }
        if (!is_new) {
            m->answer = ANSWER_GONE;
            continue;
        }
        if (!may_repeat) {
            emq_keep_row(call, &m->job.row_ref);
        }
        judged = judge(call, m, emq_value(call, 2 * i + 1), active, pending);
        if (judged && may_repeat && m->answer == ANSWER_DONE) {
            (void)ValkeyModule_DictSet(done, m->job.id, NULL);
        }
    }
    ValkeyModule_FreeDict(call->ctx, done);
    return judged;
}

static void gather_ids(batch *b, emq_key_kind holder, size_t *count) {
    ValkeyModuleString **ids = b->ids + b->from_active;
    for (int i = 0; i < b->count; i++) {
        const member *m = &b->members[i];
        if (m->answer == ANSWER_DONE && m->job.holder.kind == holder) {
            ids[(*count)++] = m->job.id;
        }
    }
}

static void gather(emq_call *call, batch *b) {
    size_t active = 0;
    gather_ids(b, EMQ_KEY_ACTIVE, &active);
    b->from_active = active;
    gather_ids(b, EMQ_KEY_PENDING, &b->from_pending);
    for (int i = 0; i < b->count; i++) {
        const member *m = &b->members[i];
        if (m->answer != ANSWER_DONE) {
            continue;
        }
        b->deleted[b->deletions++] = m->job.row_ref;
        if (emq_exists(call, m->logs)) {
            b->deleted[b->deletions++] = m->logs;
        }
    }
}

static void complete_all(emq_call *call, batch *b, emq_ref active, emq_ref pending,
                         emq_ref metrics) {
    gather(call, b);
    size_t done = b->from_active + b->from_pending;
    if (done > 0) {
        int64_t completed = 0;
        emq_writes *writes = NULL;
        if (!emq_hash_counter(call, metrics, emq_the_host.strings.count, (int64_t)done,
                              &completed) ||
            (writes = emq_begin_writes(call)) == NULL) {
            return;
        }
        if (b->from_active > 0) {
            emq_effect_zrem(writes, active, b->ids, b->from_active);
        }
        if (b->from_pending > 0) {
            emq_effect_zrem(writes, pending, b->ids + b->from_active, b->from_pending);
        }
        emq_effect_del(writes, b->deleted, b->deletions);
        emq_settle_count(call, writes, metrics, completed);
    }
    (void)ValkeyModule_ReplyWithArray(call->ctx, b->count);
    for (int i = 0; i < b->count; i++) {
        (void)ValkeyModule_ReplyWithLongLong(call->ctx, b->members[i].answer);
    }
}

void emq_handle_completes(emq_call *call) {
    enum { PENDING, COMPLETED, REACHED };
    const emq_reach_key keys[REACHED] = {
        [PENDING] = {.kind = EMQ_KEY_PENDING},
        [COMPLETED] = {.kind = EMQ_KEY_COMPLETED},
    };
    emq_ref reached[REACHED];
    emq_ref active = emq_declared(call, 0);
    if (!emq_check_batch_size(call) || !emq_reach(call, reached, keys, REACHED)) {
        return;
    }
    emq_keep(call, active);
    emq_keep(call, reached[PENDING]);
    size_t count = (size_t)call->value_count / 2;
    batch b = {
        .count = (int)count,
        .members = ValkeyModule_Alloc(count * sizeof(member)),
        .ids = ValkeyModule_Alloc(count * sizeof(ValkeyModuleString *)),
        .deleted = ValkeyModule_Alloc(2 * count * sizeof(emq_ref)),
    };
    if (reach_all(call, &b) && judge_all(call, &b, active, reached[PENDING])) {
        complete_all(call, &b, active, reached[PENDING], reached[COMPLETED]);
    }
    ValkeyModule_Free(b.members);
    ValkeyModule_Free(b.ids);
    ValkeyModule_Free(b.deleted);
}
