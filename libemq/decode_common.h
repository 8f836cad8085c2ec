/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoders share. */
#ifndef EMQ_LIBEMQ_DECODE_COMMON_H
#define EMQ_LIBEMQ_DECODE_COMMON_H

#include <hiredis/hiredis.h>

#include "text.h"

/* The result of an error reply, with the server's own text. */
int emq_decode_error(const redisReply *reply, emq_text *error);

/* The same for the EMQ verbs, where an unknown command means that the module isn't there. */
int emq_decode_verb_error(const redisReply *reply, emq_text *error);

/* EMQ_EPROTOCOL, saying what the command must answer. */
int emq_decode_surprise(const char *command, const char *expected, emq_text *error);

/* A bulk or a status. */
int emq_reply_is_text(const redisReply *reply);

/* An array of bulks, not more than so many. */
int emq_reply_is_ids(const redisReply *reply, size_t most);

#endif
