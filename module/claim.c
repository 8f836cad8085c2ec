/* SPDX-License-Identifier: Apache-2.0 */
/* Claiming: EMQ.CLAIM and EMQ.CLAIMS. */
#include <math.h>

#include "effects.h"
#include "handlers.h"
#include "open.h"
#include "read.h"
#include "wait.h"

/* Beside the jobs that it hands out, a claim looks at so many ids at most. */
#define ORPHANS_MAX (EMQ_CLAIM_LOOKS - 1)

/* What a lease needs of a row. */
typedef struct candidate {
    emq_ref row_ref;
    ValkeyModuleString *payload;
    int64_t attempts;
} candidate;

/* What a claim found among the lowest ids. The arrays have room for `wanted` jobs, and for
 * ORPHANS_MAX orphans more than that. */
typedef struct claim_search {
    size_t wanted;
    candidate *found;
    ValkeyModuleString **ids; /* of those found */
    size_t found_count;
    ValkeyModuleString **orphans; /* ids without a row */
    size_t orphan_count;
    size_t orphans_in_front; /* of the last one found */
} claim_search;

static emq_visit add_orphan(claim_search *search, ValkeyModuleString *id) {
    search->orphans[search->orphan_count++] = id;
    return EMQ_VISIT_ON;
}

/* A row that can't be claimed refuses the call when it is the first one. Otherwise the jobs in
 * front of it are handed out, as earlier calls would have done, and the next claim meets it first.
 */
static emq_visit stop_at(claim_search *search, int refused) {
    if (refused) {
        return EMQ_VISIT_REFUSED;
    }
    search->orphan_count = search->orphans_in_front;
    return EMQ_VISIT_ENOUGH;
}

/* An id that can't be part of a key is an orphan: no row can belong to it. */
static emq_visit look_at(emq_call *call, ValkeyModuleString *id, const emq_ref *row_ref,
                         void *data) {
    claim_search *search = data;
    candidate *c = &search->found[search->found_count];
    int is_first = search->found_count == 0;
    emq_row row;
    if (row_ref == NULL) {
        return add_orphan(search, id);
    }
    c->row_ref = *row_ref;
    if (search->wanted == 1) {
        emq_keep(call, c->row_ref); /* allocates nothing */
    } else {
        emq_keep_row(call, &c->row_ref);
    }
    emq_presence presence = emq_read_row_for_claim(call, c->row_ref, &row);
    if (presence == EMQ_ABSENT) {
        return add_orphan(search, id);
    }
    if (presence != EMQ_PRESENT) {
        return stop_at(search, is_first && !emq_refuse_type(call));
    }
    if (!emq_row_next_number(row.attempts, &c->attempts)) {
        return stop_at(search, is_first && !emq_refuse_row_number(call, EMQ_FIELD_ATTEMPTS));
    }
    c->payload = row.payload;
    search->ids[search->found_count++] = id;
    search->orphans_in_front = search->orphan_count;
    return search->found_count < search->wanted ? EMQ_VISIT_ON : EMQ_VISIT_ENOUGH;
}

static void lease(emq_call *call, emq_writes *writes, claim_search *search, int64_t deadline) {
    const emq_strings *strings = &emq_the_host.strings;
    emq_effect_zrem(writes, emq_declared(call, 0), search->ids, search->found_count);
    for (size_t i = 0; i < search->found_count; i++) {
        const emq_field fields[] = {
            {strings->state, strings->active},
            {strings->attempts, emq_number_text(call, search->found[i].attempts)},
            {strings->lease_epoch, strings->run_id},
        };
        emq_effect_hset(writes, search->found[i].row_ref, fields, 3);
    }
    emq_effect_zadd_all(writes, emq_declared(call, 1), deadline, search->ids, search->found_count);
}

static void reply_job(emq_call *call, const claim_search *search, size_t index) {
    (void)ValkeyModule_ReplyWithArray(call->ctx, 3);
    (void)ValkeyModule_ReplyWithString(call->ctx, search->ids[index]);
    if (search->found[index].payload != NULL) {
        (void)ValkeyModule_ReplyWithString(call->ctx, search->found[index].payload);
    } else {
        (void)ValkeyModule_ReplyWithNull(call->ctx);
    }
    (void)ValkeyModule_ReplyWithLongLong(call->ctx, search->found[index].attempts);
}

typedef enum claim_outcome { CLAIM_REFUSED, CLAIM_NOTHING, CLAIM_LEASED } claim_outcome;

/* Looks for jobs, unless the queue is paused. Returns 0 after a refusal. */
static int find_jobs(emq_call *call, claim_search *search) {
    const emq_reach_key meta_key = {.kind = EMQ_KEY_META, .read_only = 1};
    const emq_visiting visiting = {.visit = look_at,
                                   .data = search,
                                   .max_score = INFINITY,
                                   .looks = (int64_t)search->wanted + ORPHANS_MAX,
                                   .expected = (int64_t)search->wanted};
    emq_ref meta;
    int paused = 0;
    if (!emq_reach(call, &meta, &meta_key, 1) ||
        !emq_hash_has(call, meta, emq_the_host.strings.paused, &paused)) {
        return 0;
    }
    if (paused) {
        return 1;
    }
    return emq_visit_ids(call, emq_declared(call, 0), &visiting) &&
           (search->found_count == 0 ||
            emq_check_type(call, emq_declared(call, 1), VALKEYMODULE_KEYTYPE_ZSET));
}

/* Looks first and writes afterwards. Orphans that were met go, also when there is nothing to hand
 * out. A refused claim has been answered. */
static claim_outcome claim(emq_call *call, claim_search *search, int64_t lease_ms) {
    if (!find_jobs(call, search)) {
        return CLAIM_REFUSED;
    }
    if (search->found_count + search->orphan_count == 0) {
        return CLAIM_NOTHING;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return CLAIM_REFUSED;
    }
    if (search->orphan_count > 0) {
        emq_effect_zrem(writes, emq_declared(call, 0), search->orphans, search->orphan_count);
    }
    if (search->found_count == 0) {
        return CLAIM_NOTHING;
    }
    lease(call, writes, search, emq_now_ms() + lease_ms);
    return CLAIM_LEASED;
}

void emq_handle_claim(emq_call *call) {
    candidate found[1];
    ValkeyModuleString *ids[1];
    ValkeyModuleString *orphans[EMQ_CLAIM_LOOKS];
    claim_search search = {.wanted = 1, .found = found, .ids = ids, .orphans = orphans};
    int64_t lease_ms = 0;
    if (!emq_value_integer(call, 0, &lease_ms)) {
        return;
    }
    switch (claim(call, &search, lease_ms)) {
    case CLAIM_LEASED:
        reply_job(call, &search, 0);
        break;
    case CLAIM_NOTHING:
        emq_reply_empty(call);
        break;
    default:
        break;
    }
}

static void claim_many(emq_call *call, claim_search *search, int64_t lease_ms, int64_t timeout_ms) {
    switch (claim(call, search, lease_ms)) {
    case CLAIM_LEASED:
        (void)ValkeyModule_ReplyWithArray(call->ctx, (long)search->found_count);
        for (size_t i = 0; i < search->found_count; i++) {
            reply_job(call, search, i);
        }
        break;
    case CLAIM_NOTHING:
        if (search->orphan_count == search->wanted + ORPHANS_MAX) {
            emq_reply_empty(call); /* there may be jobs behind what was looked at */
        } else {
            emq_wait(call, timeout_ms);
        }
        break;
    default:
        break;
    }
}

void emq_handle_claims(emq_call *call) {
    int64_t lease_ms = 0;
    int64_t count = 0;
    int64_t timeout_ms = 0;
    if (!emq_value_integer(call, 0, &lease_ms) || !emq_value_integer(call, 1, &count) ||
        (call->value_count > 2 && !emq_value_integer(call, 2, &timeout_ms))) {
        return;
    }
    size_t wanted = (size_t)count;
    claim_search search = {
        .wanted = wanted,
        .found = ValkeyModule_Alloc(wanted * sizeof(candidate)),
        .ids = ValkeyModule_Alloc(wanted * sizeof(ValkeyModuleString *)),
        .orphans = ValkeyModule_Alloc((wanted + ORPHANS_MAX) * sizeof(ValkeyModuleString *)),
    };
    claim_many(call, &search, lease_ms, timeout_ms);
    ValkeyModule_Free(search.found);
    ValkeyModule_Free(search.ids);
    ValkeyModule_Free(search.orphans);
}
