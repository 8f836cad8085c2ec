/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding: a reply becomes a typed result. Pure: no socket, no client; a reply in, a result out.
 *
 * Every function takes any reply at all, and answers EMQ_EPROTOCOL to what wire 6 does not allow.
 * The sentence of a failure goes to `error`; the reply stays the caller's. */
#ifndef EMQ_LIBEMQ_DECODE_H
#define EMQ_LIBEMQ_DECODE_H

#include <emq/job.h>
#include <hiredis/hiredis.h>

#include "address.h"
#include "keys.h"
#include "text.h"
#include "verbs.h"

/* What must be known of a call to read its answer. */
typedef struct emq_question {
    emq_verb_symbol verb;
    emq_slice queue; /* of a claim: it goes into the leases */
    size_t count;    /* members of a batch, or the most that may be answered */
} emq_question;

/* What an answer holds beside its result. Start with zeroes. */
typedef struct emq_outcome {
    int64_t number;         /* how many were moved, changed or reached, or the new count */
    emq_job *job;           /* CLAIM: taken out of the reply */
    emq_jobs *jobs;         /* CLAIMS: likewise */
    emq_ids *recovered;     /* STALLED.CHECK: likewise */
    emq_ids *dead;          /* likewise */
    const redisReply *list; /* an array that was checked, or APPEND's text; the reply's own */
} emq_outcome;

/* Every verb but VERSION and those that answer tables. What is taken out of the reply leaves a
 * hole that freeReplyObject knows; nothing is taken when the result is negative. */
int emq_decode_verb(emq_outcome *out, const emq_question *question, redisReply *reply,
                    emq_text *error);

/* Whether the answer has a result for each member: ENQUEUES, EXTENDS, COMPLETES, BITGET. */
int emq_question_has_members(const emq_question *question);

/* The result of a member of a batch (ENQUEUES, COMPLETES), or a bit (BITGET). */
int emq_outcome_get_answer(const emq_outcome *outcome, const emq_question *question, size_t i);

/* The results of the members of EXTENDS, whose answer names those that were not extended. Returns
 * EMQ_EPROTOCOL when it names others. */
int emq_outcome_get_extended(int *results, const emq_outcome *outcome, const emq_lease *leases,
                             size_t count, emq_text *error);

/* EXTENDS as it was asked, for who decodes it when the caller's leases may be gone. */
typedef struct emq_extension {
    int results[EMQ_BATCH_MAX];
    emq_lease leases[];
} emq_extension;

/* Copies the leases; to be freed with emq_free. NULL without memory. */
emq_extension *emq_extension_new(const emq_lease *leases, size_t count);

/* Frees what was taken. */
void emq_outcome_clear(emq_outcome *outcome);

/* INSTALL, by emq_decode_verb. */
int emq_decode_install(redisReply *reply, emq_text *error);

int emq_decode_version(const redisReply *reply, emq_text *error);

/* The other steps of the connect path. `password` is what the sentence must not repeat. */
int emq_decode_auth(const redisReply *reply, const char *password, emq_text *error);
int emq_decode_select(const redisReply *reply, emq_text *error);
int emq_decode_client_name(const redisReply *reply, emq_text *error);
int emq_decode_fence(const redisReply *reply, emq_text *error);

/* ROLE of a server that sentinels named: EMQ_OK for a primary alone; EMQ_ENOPRIMARY. */
int emq_decode_role(const redisReply *reply, emq_text *error);

/* Where a sentinel says that the primary is; EMQ_EPRIMARYNAME when it has none of that name. */
int emq_decode_primary_address(emq_address *out, const redisReply *reply, emq_text *error);

/* Any command: an error by its class, and nothing that RESP2 has no type for. */
int emq_decode_raw(const redisReply *reply, emq_text *error);

#endif
