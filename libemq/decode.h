/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding: a reply becomes a typed result. Pure: no socket, no client; a reply in, a result out.
 *
 * Every function takes any reply at all, and answers EMQ_EPROTOCOL to what wire 6 does not allow.
 * The sentence of a failure goes to `error`; the reply stays the caller's. */
#ifndef EMQ_LIBEMQ_DECODE_H
#define EMQ_LIBEMQ_DECODE_H

#include <emq/job.h>
#include <hiredis/hiredis.h>

#include "text.h"

/* The verbs. */
int emq_decode_enqueue(const redisReply *reply, emq_text *error);
int emq_decode_complete(const redisReply *reply, emq_text *error);
int emq_decode_install(const redisReply *reply, emq_text *error);
int emq_decode_version(const redisReply *reply, emq_text *error);

/* Takes the payload out of the reply, which keeps a hole that freeReplyObject knows. */
int emq_decode_claim(emq_job **out, const char *queue, redisReply *reply, emq_text *error);

/* The other steps of the connect path. `password` is what the sentence must not repeat. */
int emq_decode_auth(const redisReply *reply, const char *password, emq_text *error);
int emq_decode_select(const redisReply *reply, emq_text *error);
int emq_decode_client_name(const redisReply *reply, emq_text *error);
int emq_decode_fence(const redisReply *reply, emq_text *error);

/* Any command: an error by its class, and nothing that RESP2 has no type for. */
int emq_decode_raw(const redisReply *reply, emq_text *error);

#endif
