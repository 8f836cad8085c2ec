/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps: EMQ.PROMOTE and EMQ.STALLED.CHECK. A call looks first and writes afterwards; its work is
 * bounded by its limit, whatever the set's size. */
#include "effects.h"
#include "handlers.h"
#include "open.h"
#include "read.h"

typedef enum fate {
    FATE_READY,   /* becomes pending */
    FATE_STALLED, /* becomes pending, with a stall counted */
    FATE_DEAD     /* becomes dead */
} fate;

/* An id that moves. */
typedef struct mover {
    ValkeyModuleString *id;
    emq_ref row_ref;
    fate fate;
    int64_t stalled;
    int has_epoch;
} mover;

typedef struct sweep {
    const char *state;   /* that a row in this set has; another one is left over from something */
    int64_t max_stalled; /* 0: not a sweep of leases */
    size_t limit;
    mover *movers;
    size_t mover_count;
    size_t dead_count;
    ValkeyModuleString **dropped; /* ids that don't belong into the set */
    size_t dropped_count;
    size_t dropped_capacity;
} sweep;

static void drop(sweep *s, ValkeyModuleString *id) {
    if (s->dropped_count == s->dropped_capacity) {
        s->dropped_capacity = s->dropped_capacity == 0 ? 16 : 2 * s->dropped_capacity;
        s->dropped =
            ValkeyModule_Realloc(s->dropped, s->dropped_capacity * sizeof(ValkeyModuleString *));
    }
    s->dropped[s->dropped_count++] = id;
}

/* A lease that another server process gave was cut short by a restart or a failover, not by its
 * holder: it is taken back without counting a stall. A count that is no number starts anew: one
 * damaged row must not stop the sweep of all others. */
static void judge_lease(const sweep *s, const emq_row *row, mover *m) {
    long long stalled = 0;
    m->has_epoch = row->lease_epoch != NULL;
    if (m->has_epoch &&
        !emq_slice_equal(emq_text(row->lease_epoch), emq_text(emq_the_host.strings.run_id))) {
        m->fate = FATE_READY;
        return;
    }
    if (row->stalled == NULL ||
        ValkeyModule_StringToLongLong(row->stalled, &stalled) != VALKEYMODULE_OK || stalled < 0 ||
        stalled == INT64_MAX) {
        stalled = 0;
    }
    m->stalled = stalled + 1;
    m->fate = m->stalled >= s->max_stalled ? FATE_DEAD : FATE_STALLED;
}

static emq_visit look_at(emq_call *call, ValkeyModuleString *id, const emq_ref *row_ref,
                         void *data) {
    sweep *s = data;
    mover m = {.id = id, .fate = FATE_READY};
    emq_row row;
    if (row_ref == NULL) {
        drop(s, id);
        return EMQ_VISIT_ON;
    }
    m.row_ref = *row_ref;
    emq_keep_row(call, &m.row_ref);
    if (emq_read_row_for_sweep(call, m.row_ref, &row) != EMQ_PRESENT ||
        !emq_row_is(&row, s->state)) {
        drop(s, id);
        return EMQ_VISIT_ON;
    }
    if (row.has_group) {
        return EMQ_VISIT_ON; /* the sweeps of lanes move it */
    }
    if (s->max_stalled > 0) {
        judge_lease(s, &row, &m);
    }
    s->dead_count += m.fate == FATE_DEAD;
    s->movers[s->mover_count++] = m;
    return s->mover_count < s->limit ? EMQ_VISIT_ON : EMQ_VISIT_ENOUGH;
}

/* Finds what is due now. Returns 0 after a refusal. */
static int find_due(emq_call *call, emq_ref set, sweep *s) {
    const emq_visiting visiting = {.visit = look_at,
                                   .data = s,
                                   .max_score = (double)emq_now_ms(),
                                   .looks = (int64_t)s->limit * EMQ_SWEEP_LOOKS_FACTOR +
                                            EMQ_SWEEP_LOOKS_EXTRA,
                                   .expected = (int64_t)s->limit};
    s->movers = ValkeyModule_Alloc(s->limit * sizeof(*s->movers));
    return emq_visit_ids(call, set, &visiting);
}

static void free_sweep(sweep *s) {
    ValkeyModule_Free(s->movers);
    if (s->dropped != NULL) {
        ValkeyModule_Free(s->dropped);
    }
}

static void make_pending(emq_call *call, emq_writes *writes, emq_ref from, emq_ref pending,
                         mover *m) {
    const emq_strings *strings = &emq_the_host.strings;
    emq_field fields[2] = {{strings->state, strings->pending}};
    int count = 1;
    if (m->fate == FATE_STALLED) {
        fields[count++] = (emq_field){strings->stalled, emq_number_text(call, m->stalled)};
    }
    emq_effect_zrem(writes, from, &m->id, 1);
    emq_effect_hset(writes, m->row_ref, fields, count);
    emq_effect_zadd(writes, pending, 0, m->id);
}

static void make_dead(emq_call *call, emq_writes *writes, emq_ref from, emq_ref dead, mover *m) {
    const emq_strings *strings = &emq_the_host.strings;
    const emq_field fields[] = {
        {strings->state, strings->dead},
        {strings->stalled, emq_number_text(call, m->stalled)},
        {strings->last_error, strings->stalled}, /* field and text are the same word */
    };
    emq_effect_zrem(writes, from, &m->id, 1);
    emq_effect_hset(writes, m->row_ref, fields, 3);
    if (m->has_epoch) {
        ValkeyModuleString *epoch = strings->lease_epoch;
        emq_effect_hdel(writes, m->row_ref, &epoch, 1);
    }
    emq_effect_zadd(writes, dead, 0, m->id);
}

static void drop_all(emq_writes *writes, emq_ref set, sweep *s) {
    if (s->dropped_count > 0) {
        emq_effect_zrem(writes, set, s->dropped, s->dropped_count);
    }
}

static void promote(emq_call *call, emq_ref schedule, emq_ref pending, sweep *s) {
    if (s->mover_count + s->dropped_count > 0) {
        emq_writes *writes = NULL;
        if ((s->mover_count > 0 && !emq_check_type(call, pending, VALKEYMODULE_KEYTYPE_ZSET)) ||
            (writes = emq_begin_writes(call)) == NULL) {
            return;
        }
        for (size_t i = 0; i < s->mover_count; i++) {
            make_pending(call, writes, schedule, pending, &s->movers[i]);
        }
        drop_all(writes, schedule, s);
    }
    emq_reply_integer(call, (int64_t)s->mover_count);
}

void emq_handle_promote(emq_call *call) {
    sweep s = {.state = EMQ_STATE_SCHEDULED};
    int64_t limit = 0;
    if (!emq_value_integer(call, 0, &limit)) {
        return;
    }
    s.limit = (size_t)limit;
    if (find_due(call, emq_declared(call, 0), &s)) {
        promote(call, emq_declared(call, 0), emq_declared(call, 1), &s);
    }
    free_sweep(&s);
}

/* [[recovered ids], [dead ids]] */
static void reply_fates(emq_call *call, const sweep *s) {
    (void)ValkeyModule_ReplyWithArray(call->ctx, 2);
    for (int dead = 0; dead <= 1; dead++) {
        size_t count = dead ? s->dead_count : s->mover_count - s->dead_count;
        (void)ValkeyModule_ReplyWithArray(call->ctx, (long)count);
        for (size_t i = 0; i < s->mover_count; i++) {
            if ((s->movers[i].fate == FATE_DEAD) == dead) {
                (void)ValkeyModule_ReplyWithString(call->ctx, s->movers[i].id);
            }
        }
    }
}

/* The types of what will be written. */
static int check_targets(emq_call *call, const sweep *s, emq_ref pending, emq_ref dead,
                         emq_ref metrics, int64_t *failed) {
    return (s->mover_count == s->dead_count ||
            emq_check_type(call, pending, VALKEYMODULE_KEYTYPE_ZSET)) &&
           (s->dead_count == 0 || (emq_check_type(call, dead, VALKEYMODULE_KEYTYPE_ZSET) &&
                                   emq_hash_counter(call, metrics, emq_the_host.strings.count,
                                                    (int64_t)s->dead_count, failed)));
}

static void take_back(emq_call *call, emq_ref metrics, sweep *s) {
    emq_ref active = emq_declared(call, 0);
    emq_ref pending = emq_declared(call, 1);
    emq_ref dead = emq_declared(call, 2);
    int64_t failed = 0;
    if (s->mover_count + s->dropped_count > 0) {
        emq_writes *writes = NULL;
        if (!check_targets(call, s, pending, dead, metrics, &failed) ||
            (writes = emq_begin_writes(call)) == NULL) {
            return;
        }
        for (size_t i = 0; i < s->mover_count; i++) {
            if (s->movers[i].fate == FATE_DEAD) {
                make_dead(call, writes, active, dead, &s->movers[i]);
            } else {
                make_pending(call, writes, active, pending, &s->movers[i]);
            }
        }
        drop_all(writes, active, s);
        if (s->dead_count > 0) {
            const emq_field count = {emq_the_host.strings.count, emq_number_text(call, failed)};
            emq_effect_hset(writes, metrics, &count, 1);
        }
    }
    reply_fates(call, s);
}

void emq_handle_stalled_check(emq_call *call) {
    const emq_reach_key metrics_key = {.kind = EMQ_KEY_FAILED};
    emq_ref metrics;
    sweep s = {.state = EMQ_STATE_ACTIVE};
    int64_t limit = 0;
    if (!emq_value_integer(call, 0, &s.max_stalled) || !emq_value_integer(call, 1, &limit) ||
        !emq_reach(call, &metrics, &metrics_key, 1)) {
        return;
    }
    s.limit = (size_t)limit;
    if (find_due(call, emq_declared(call, 0), &s)) {
        take_back(call, metrics, &s);
    }
    free_sweep(&s);
}
