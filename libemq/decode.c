/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding the verbs' replies. The connect path's are in decode_connect.c. */
#include "decode.h"

#include <string.h>

#include "decode_common.h"
#include "job.h"
#include "memory.h"
#include "result.h"

int emq_decode_error(const redisReply *reply, emq_text *error) {
    return emq_fail_bytes(error, emq_result_of_error(reply->str, reply->len), reply->str,
                          reply->len);
}

int emq_decode_verb_error(const redisReply *reply, emq_text *error) {
    if (emq_error_is_unknown_command(reply->str, reply->len)) {
        return emq_fail(error, EMQ_EMODULE,
                        "the server has no EMQ module: load it with loadmodule (%.*s)",
                        emq_quote_length(reply->len), reply->str);
    }
    return emq_decode_error(reply, error);
}

int emq_decode_surprise(const char *command, const char *expected, emq_text *error) {
    return emq_fail(error, EMQ_EPROTOCOL, "%s must answer %s", command, expected);
}

int emq_reply_is_text(const redisReply *reply) {
    return reply != NULL && reply->str != NULL &&
           (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
}

/* The verbs that answer 1 or 0. */
static int decode_verdict(const redisReply *reply, const char *command, int result_of_0,
                          emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_verb_error(reply, error);
    }
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER ||
        (reply->integer != 0 && reply->integer != 1)) {
        return emq_decode_surprise(command, "1 or 0", error);
    }
    return reply->integer == 1 ? EMQ_OK : result_of_0;
}

int emq_decode_enqueue(const redisReply *reply, emq_text *error) {
    return decode_verdict(reply, "EMQ.ENQUEUE", EMQ_DUPLICATE, error);
}

int emq_decode_complete(const redisReply *reply, emq_text *error) {
    return decode_verdict(reply, "EMQ.COMPLETE", EMQ_GONE, error);
}

int emq_decode_install(const redisReply *reply, emq_text *error) {
    return decode_verdict(reply, "EMQ.INSTALL", EMQ_DUPLICATE, error);
}

/* [id, payload or nil, attempts] */
static int is_job(const redisReply *reply) {
    return reply->elements == 3 && reply->element != NULL && reply->element[0] != NULL &&
           reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1] != NULL &&
           (reply->element[1]->type == REDIS_REPLY_STRING ||
            reply->element[1]->type == REDIS_REPLY_NIL) &&
           reply->element[2] != NULL && reply->element[2]->type == REDIS_REPLY_INTEGER;
}

static int take_job(emq_job **out, const char *queue, redisReply *reply, emq_text *error) {
    const redisReply *id = reply->element[0];
    emq_job *job = emq_calloc(1, sizeof(*job));
    if (job == NULL) {
        return emq_fail_plain(error, EMQ_ENOMEM);
    }
    if (emq_id_parse(&job->lease.id, id->str, id->len) != EMQ_OK) {
        emq_free(job);
        return emq_fail(error, EMQ_EPROTOCOL, "EMQ.CLAIM gave an id that is no branded id: %.*s",
                        emq_quote_length(id->len), id->str);
    }
    memcpy(job->lease.queue, queue, strnlen(queue, EMQ_QUEUE_MAX));
    job->lease.token = reply->element[2]->integer;
    job->payload = reply->element[1];
    reply->element[1] = NULL;
    *out = job;
    return EMQ_OK;
}

int emq_decode_claim(emq_job **out, const char *queue, redisReply *reply, emq_text *error) {
    *out = NULL;
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_verb_error(reply, error);
    }
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
        (reply->elements != 0 && !is_job(reply))) {
        return emq_decode_surprise("EMQ.CLAIM", "[id, payload, attempts] or an empty array", error);
    }
    return reply->elements == 0 ? EMQ_EMPTY : take_job(out, queue, reply, error);
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
