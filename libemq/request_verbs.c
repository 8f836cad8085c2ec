/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs as requests: each is its line and its decoder, the same ones as the synchronous client
 * uses. */
#include <string.h>

#include "decode.h"
#include "line.h"
#include "request.h"
#include "wire.h"

static int decode_enqueue(emq_request *request, redisReply **reply) {
    return emq_decode_enqueue(*reply, &request->error);
}

static int decode_claim(emq_request *request, redisReply **reply) {
    return emq_decode_claim(&request->job, request->queue, *reply, &request->error);
}

static int decode_complete(emq_request *request, redisReply **reply) {
    return emq_decode_complete(*reply, &request->error);
}

static int decode_command(emq_request *request, redisReply **reply) {
    int result = emq_decode_raw(*reply, &request->error);
    if (result == EMQ_OK) {
        request->reply = *reply;
        *reply = NULL;
    }
    return result;
}

int emq_request_claim(emq_request **out, const char *queue, uint32_t lease_ms) {
    emq_line line = EMQ_LINE_INIT;
    return out == NULL ? EMQ_EINVAL
                       : emq_request_make(out, emq_line_claim(&line, queue, lease_ms), &line, queue,
                                          decode_claim);
}

int emq_request_complete(emq_request **out, const emq_lease *lease) {
    emq_line line = EMQ_LINE_INIT;
    int result = out == NULL ? EMQ_EINVAL
                             : emq_request_make(out, emq_line_complete(&line, lease), &line, NULL,
                                                decode_complete);
    if (result == EMQ_OK) {
        (*out)->may_repeat = 1; /* the token sees to it that the second one does nothing */
    }
    return result;
}

int emq_request_command(emq_request **out, int argc, const char *const *argv,
                        const size_t *argvlen) {
    emq_line line = EMQ_LINE_INIT;
    return out == NULL ? EMQ_EINVAL
                       : emq_request_make(out, emq_line_raw(&line, argc, argv, argvlen), &line,
                                          NULL, decode_command);
}

static int is_zeroed(const emq_id *id) {
    static const emq_id zero = {{0}};
    return id == NULL || memcmp(id, &zero, sizeof(zero)) == 0;
}

int emq_request_enqueue(emq_request **out, const emq_id *id, const char *queue, const void *p,
                        size_t n) {
    emq_line line = EMQ_LINE_INIT;
    emq_id fresh;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    int is_fresh = is_zeroed(id);
    if (is_fresh) {
        int minted = emq_id_mint(&fresh, EMQ_NAMESPACE_JOB);
        if (minted != EMQ_OK) {
            return minted;
        }
        id = &fresh;
    }
    int result = emq_request_make(out, emq_line_enqueue(&line, queue, id, p, n), &line, queue,
                                  decode_enqueue);
    if (result == EMQ_OK) {
        emq_request *request = *out;
        request->has_id = 1;
        request->id = *id;
        request->mints = is_fresh;
        request->payload_size = n;
        request->payload_at = request->length - n - 2; /* it ends in CR LF */
    }
    return result;
}
