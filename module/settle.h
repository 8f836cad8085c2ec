/* SPDX-License-Identifier: Apache-2.0 */
/* Settling: who may settle a job, and what the verbs that do it share. */
#ifndef EMQ_MODULE_SETTLE_H
#define EMQ_MODULE_SETTLE_H

#include "effects.h"
#include "read.h"

/* What differs between the settling verbs before they write. */
typedef struct emq_settle_rule {
    const char *word;  /* in EMQSTALE texts */
    int gone_is_stale; /* a job without a row is refused; otherwise gone_reply is the answer */
    int gone_reply;
    int refuses_flow;
} emq_settle_rule;

/* A job that the caller wants to settle. */
typedef struct emq_settling {
    ValkeyModuleString *id;
    emq_ref row_ref;
    emq_row row;
    emq_ref holder; /* the set that holds it: active, or pending after a sweep */
} emq_settling;

/* How a job and a token stand to each other. */
typedef enum emq_standing {
    EMQ_STANDING_REFUSED, /* a set of another type; the caller has been answered */
    EMQ_STANDING_GONE,
    EMQ_STANDING_NO_ROW, /* the row's key has another type */
    EMQ_STANDING_LANE,
    EMQ_STANDING_FLOW,
    EMQ_STANDING_MISMATCH,
    EMQ_STANDING_NO_NUMBER, /* attempts is no integer */
    EMQ_STANDING_LOST,
    EMQ_STANDING_HELD /* the token's holder may settle */
} emq_standing;

/* Judges a job whose id and row_ref are set, and fills in the rest. */
emq_standing emq_settle_judge(emq_call *call, emq_settling *job, const ValkeyModuleString *token,
                              int refuses_flow, emq_ref active, emq_ref pending);

/* Judges the job of a verb that settles one, whose id is the first value and the token the second;
 * refuses or answers when the caller may not settle. */
int emq_settle_check(emq_call *call, const emq_settle_rule *rule, emq_settling *job,
                     emq_ref row_ref, emq_ref active, emq_ref pending);

/* Writes a counter. */
void emq_settle_count(emq_call *call, emq_writes *writes, emq_ref metrics, int64_t count);

#endif
