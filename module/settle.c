/* SPDX-License-Identifier: Apache-2.0 */
/* Settling: the checks that its verbs share, and EMQ.FAIL, EMQ.DELAY and EMQ.REQUEUE. */
#include "settle.h"

#include <stdio.h>

#include "handlers.h"
#include "open.h"

#define STALE_MAX 64

static int refuse_stale(emq_call *call, const emq_settle_rule *rule, const char *reason) {
    char text[STALE_MAX];
    (void)snprintf(text, sizeof(text), "EMQSTALE %s %s", rule->word, reason);
    return emq_refuse(call, text);
}

static int answer_gone(emq_call *call, const emq_settle_rule *rule) {
    if (rule->gone_is_stale) {
        return emq_refuse(call, "EMQSTALE job gone");
    }
    emq_reply_integer(call, rule->gone_reply);
    return 0;
}

/* The row is known to be a hash by then. */
static int has_epoch(emq_call *call, const emq_settling *job) {
    int has = 0;
    (void)emq_hash_has(call, job->row_ref, emq_the_host.strings.lease_epoch, &has);
    return has;
}

/* Finds the set that holds the job for its last claimer: `active` while the lease lasts, or
 * `pending` when a sweep took the lease back and nobody has claimed since, which the row's
 * lease_epoch tells. Anything else is a lost lease. */
static emq_standing find_holder(emq_call *call, emq_settling *job, emq_ref active,
                                emq_ref pending) {
    int64_t attempts = 0;
    int held = 0;
    if (!emq_row_number(job->row.attempts, &attempts)) {
        return EMQ_STANDING_NO_NUMBER;
    }
    if (attempts >= 1 && emq_row_is(&job->row, EMQ_STATE_ACTIVE)) {
        job->holder = active;
    } else if (attempts >= 1 && emq_row_is(&job->row, EMQ_STATE_PENDING) && has_epoch(call, job)) {
        job->holder = pending;
    } else {
        return EMQ_STANDING_LOST;
    }
    if (!emq_zset_has(call, job->holder, job->id, &held)) {
        return EMQ_STANDING_REFUSED;
    }
    return held ? EMQ_STANDING_HELD : EMQ_STANDING_LOST;
}

emq_standing emq_settle_judge(emq_call *call, emq_settling *job, const ValkeyModuleString *token,
                              int refuses_flow, emq_ref active, emq_ref pending) {
    emq_presence presence = emq_read_row(call, job->row_ref, &job->row);
    if (presence != EMQ_PRESENT) {
        return presence == EMQ_ABSENT ? EMQ_STANDING_GONE : EMQ_STANDING_NO_ROW;
    }
    if (job->row.has_group) {
        return EMQ_STANDING_LANE;
    }
    if (refuses_flow && job->row.has_parent) {
        return EMQ_STANDING_FLOW;
    }
    /* a token is compared as text: it is the row's attempts at the claim */
    if (!emq_slice_equal(emq_text(job->row.attempts), emq_text(token))) {
        return EMQ_STANDING_MISMATCH;
    }
    return find_holder(call, job, active, pending);
}

int emq_settle_check(emq_call *call, const emq_settle_rule *rule, emq_settling *job,
                     emq_ref row_ref, emq_ref active, emq_ref pending) {
    *job = (emq_settling){.id = emq_value(call, 0), .row_ref = row_ref};
    emq_keep(call, row_ref);
    emq_keep(call, active);
    switch (emq_settle_judge(call, job, emq_value(call, 1), rule->refuses_flow, active, pending)) {
    case EMQ_STANDING_HELD:
        return 1;
    case EMQ_STANDING_GONE:
        return answer_gone(call, rule);
    case EMQ_STANDING_NO_ROW:
        return emq_refuse_type(call);
    case EMQ_STANDING_LANE:
        return emq_refuse(call, "EMQLANE lane row: use the EMQ.GROUP verb");
    case EMQ_STANDING_FLOW:
        return emq_refuse(call, "EMQFLOW flow row: use the EMQ.FLOW verb");
    case EMQ_STANDING_MISMATCH:
        return refuse_stale(call, rule, "token mismatch");
    case EMQ_STANDING_NO_NUMBER:
        return emq_refuse_row_number(call, EMQ_FIELD_ATTEMPTS);
    case EMQ_STANDING_LOST:
        return refuse_stale(call, rule, "lease lost");
    default:
        return 0;
    }
}

/* Takes the lease off: the id leaves the set that holds it, and the row its epoch. */
static void release(emq_call *call, emq_writes *writes, emq_settling *job) {
    int is_leased = has_epoch(call, job);
    emq_effect_zrem(writes, job->holder, &job->id, 1);
    if (is_leased) {
        ValkeyModuleString *epoch = emq_the_host.strings.lease_epoch;
        emq_effect_hdel(writes, job->row_ref, &epoch, 1);
    }
}

void emq_settle_count(emq_call *call, emq_writes *writes, emq_ref metrics, int64_t count) {
    const emq_field field = {emq_the_host.strings.count, emq_number_text(call, count)};
    emq_effect_hset(writes, metrics, &field, 1);
}

/* The error text, kept to its first bytes. */
static ValkeyModuleString *cut_error(emq_call *call, ValkeyModuleString *error) {
    emq_slice text = emq_text(error);
    return text.length <= EMQ_ERROR_TEXT_MAX
               ? error
               : emq_own(call, ValkeyModule_CreateString(NULL, text.data, EMQ_ERROR_TEXT_MAX));
}

static void write_failure(emq_call *call, emq_writes *writes, emq_settling *job,
                          ValkeyModuleString *state, int64_t failures) {
    const emq_strings *strings = &emq_the_host.strings;
    const emq_field fields[] = {
        {strings->state, state},
        {strings->last_error, cut_error(call, emq_value(call, 4))},
        {strings->failures, emq_number_text(call, failures)},
    };
    release(call, writes, job);
    emq_effect_hset(writes, job->row_ref, fields, 3);
}

static void retry(emq_call *call, emq_settling *job, emq_ref schedule, int64_t failures,
                  int64_t delay_ms) {
    emq_writes *writes = NULL;
    if (!emq_check_type(call, schedule, VALKEYMODULE_KEYTYPE_ZSET) ||
        (writes = emq_begin_writes(call)) == NULL) {
        return;
    }
    write_failure(call, writes, job, emq_the_host.strings.scheduled, failures);
    emq_effect_zadd(writes, schedule, emq_now_ms() + delay_ms, job->id);
    (void)ValkeyModule_ReplyWithCString(call->ctx, EMQ_STATE_SCHEDULED);
}

static void bury(emq_call *call, emq_settling *job, emq_ref dead, emq_ref metrics,
                 int64_t failures) {
    emq_writes *writes = NULL;
    int64_t failed = 0;
    if (!emq_check_type(call, dead, VALKEYMODULE_KEYTYPE_ZSET) ||
        !emq_hash_counter(call, metrics, emq_the_host.strings.count, 1, &failed) ||
        (writes = emq_begin_writes(call)) == NULL) {
        return;
    }
    write_failure(call, writes, job, emq_the_host.strings.dead, failures);
    emq_effect_zadd(writes, dead, 0, job->id);
    emq_settle_count(call, writes, metrics, failed);
    (void)ValkeyModule_ReplyWithCString(call->ctx, EMQ_STATE_DEAD);
}

/* The budget counts failures and not claims: lost leases, delays and requeues do not eat it. */
void emq_handle_fail(emq_call *call) {
    static const emq_settle_rule rule = {.word = "retry", .gone_is_stale = 1, .refuses_flow = 1};
    enum { PENDING, FAILED, REACHED };
    const emq_reach_key keys[REACHED] = {
        [PENDING] = {.kind = EMQ_KEY_PENDING},
        [FAILED] = {.kind = EMQ_KEY_FAILED},
    };
    emq_ref reached[REACHED];
    emq_settling job;
    int64_t delay_ms = 0;
    int64_t max_failures = 0;
    ValkeyModuleString *count = NULL;
    int64_t failures = 0;
    if (!emq_value_integer(call, 2, &delay_ms) || !emq_value_integer(call, 3, &max_failures) ||
        !emq_reach(call, reached, keys, REACHED) ||
        !emq_settle_check(call, &rule, &job, emq_declared(call, 3), emq_declared(call, 0),
                          reached[PENDING]) ||
        !emq_hash_field(call, job.row_ref, emq_the_host.strings.failures, &count)) {
        return;
    }
    if (!emq_row_next_number(count, &failures)) {
        (void)emq_refuse_row_number(call, EMQ_FIELD_FAILURES);
        return;
    }
    if (failures >= max_failures) {
        bury(call, &job, emq_declared(call, 2), reached[FAILED], failures);
    } else {
        retry(call, &job, emq_declared(call, 1), failures, delay_ms);
    }
}

/* Puts a released job into a set in a state. */
static void put(emq_call *call, emq_settling *job, ValkeyModuleString *state, emq_ref set,
                int64_t score) {
    emq_writes *writes = NULL;
    if (!emq_check_type(call, set, VALKEYMODULE_KEYTYPE_ZSET) ||
        (writes = emq_begin_writes(call)) == NULL) {
        return;
    }
    const emq_field field = {emq_the_host.strings.state, state};
    release(call, writes, job);
    emq_effect_hset(writes, job->row_ref, &field, 1);
    emq_effect_zadd(writes, set, score, job->id);
    emq_reply_integer(call, 1);
}

void emq_handle_delay(emq_call *call) {
    static const emq_settle_rule rule = {.word = "delay", .gone_is_stale = 1};
    const emq_reach_key pending_key = {.kind = EMQ_KEY_PENDING};
    emq_ref pending;
    emq_settling job;
    int64_t when = 0;
    if (emq_check_job_kind(call, emq_value(call, 0)) && emq_value_when(call, 2, &when) &&
        emq_reach(call, &pending, &pending_key, 1) &&
        emq_settle_check(call, &rule, &job, emq_declared(call, 0), emq_declared(call, 1),
                         pending)) {
        put(call, &job, emq_the_host.strings.scheduled, emq_declared(call, 2), when);
    }
}

void emq_handle_requeue(emq_call *call) {
    static const emq_settle_rule rule = {.word = "requeue", .gone_reply = -1};
    emq_ref pending = emq_declared(call, 1);
    emq_settling job;
    if (emq_settle_check(call, &rule, &job, emq_declared(call, 2), emq_declared(call, 0),
                         pending)) {
        put(call, &job, emq_the_host.strings.pending, pending, 0);
    }
}
