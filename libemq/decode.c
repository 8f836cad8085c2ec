/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoders share, and the raw door's. The verbs' are in decode_verb.c, the connect path's
 * in decode_connect.c. */
#include "decode.h"

#include "decode_common.h"
#include "result.h"

int emq_decode_error(const redisReply *reply, emq_text *error) {
    return emq_text_fail_bytes(error, emq_result_of_error(reply->str, reply->len), reply->str,
                               reply->len);
}

int emq_decode_verb_error(const redisReply *reply, emq_text *error) {
    if (emq_error_is_unknown_command(reply->str, reply->len)) {
        return emq_text_fail(error, EMQ_EMODULE,
                             "the server has no EMQ module: load it with loadmodule (%.*s)",
                             emq_quote_length(reply->len), reply->str);
    }
    return emq_decode_error(reply, error);
}

int emq_decode_surprise(const char *command, const char *expected, emq_text *error) {
    return emq_text_fail(error, EMQ_EPROTOCOL, "%s must answer %s", command, expected);
}

int emq_reply_is_text(const redisReply *reply) {
    return reply != NULL && reply->str != NULL &&
           (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
}

/* The reader bounds the depth. */
static int is_resp2(const redisReply *reply) {
    if (reply == NULL) {
        return 0;
    }
    switch (reply->type) {
    case REDIS_REPLY_NIL:
    case REDIS_REPLY_INTEGER:
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
        return 1;
    case REDIS_REPLY_ARRAY:
        break;
    default:
        return 0;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (!is_resp2(reply->element[i])) {
            return 0;
        }
    }
    return 1;
}

int emq_decode_raw(const redisReply *reply, emq_text *error) {
    if (!is_resp2(reply)) {
        return emq_decode_surprise("the command", "with the types of RESP2", error);
    }
    return reply->type == REDIS_REPLY_ERROR ? emq_decode_error(reply, error) : EMQ_OK;
}
