/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs as requests: each is its line and the question that its answer is read by, the same
 * ones as the synchronous client uses. */
#include <string.h>

#include "client.h"
#include "decode.h"
#include "encode.h"
#include "line.h"
#include "request.h"
#include "wire.h"

static int make(emq_request **out, int built, emq_line *line, emq_verb_symbol verb, size_t count) {
    const emq_question question = {.verb = verb, .count = count};
    return emq_request_make(out, built, line, &question);
}

/* Of the verbs that the token of a lease lets happen once: the second one does nothing. */
static int make_repeatable(emq_request **out, int built, emq_line *line, emq_verb_symbol verb) {
    int result = make(out, built, line, verb, 0);
    if (result == EMQ_OK) {
        (*out)->may_repeat = 1;
    }
    return result;
}

/* Mints where no id is given. */
static int choose_id(emq_id *chosen, int *is_fresh, const emq_id *id, const char *namespace) {
    *is_fresh = id == NULL || emq_id_is_zeroed(id);
    if (*is_fresh) {
        return emq_id_mint(chosen, namespace);
    }
    *chosen = *id;
    return EMQ_OK;
}

static int make_admission(emq_request **out, const emq_id *id, const char *queue, const void *p,
                          size_t n, const emq_when *when) {
    emq_line line = EMQ_LINE_INIT;
    emq_id chosen = {{0}};
    int is_fresh = 0;
    size_t payload_at = 0;
    int result = choose_id(&chosen, &is_fresh, id, EMQ_NAMESPACE_JOB);
    if (result == EMQ_OK) {
        result = emq_request_line_admission(&line, queue, &chosen, p, n, when);
    }
    if (result == EMQ_OK) {
        payload_at = emq_encoded_offset(&line, EMQ_LINE_PAYLOAD);
    }
    result = make(out, result, &line, when == NULL ? EMQ_VERB_ENQUEUE : EMQ_VERB_SCHEDULE, 0);
    if (result == EMQ_OK) {
        emq_request *request = *out;
        emq_request_keep_queue(request, queue);
        request->has_id = 1;
        request->id = chosen;
        request->mints = is_fresh;
        request->payload_size = n;
        request->payload_at = payload_at;
        if (when != NULL) {
            request->when = *when;
        }
    }
    return result;
}

int emq_request_enqueue(emq_request **out, const emq_id *id, const char *queue, const void *p,
                        size_t n) {
    return make_admission(out, id, queue, p, n, NULL);
}

int emq_request_schedule(emq_request **out, const emq_id *id, const char *queue, const void *p,
                         size_t n, emq_when when) {
    return make_admission(out, id, queue, p, n, &when);
}

int emq_request_enqueues(emq_request **out, const emq_id *ids, const char *queue,
                         const emq_bytes *payloads, size_t count) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_enqueues(&line, queue, ids, payloads, count);
    int result = make(out, built, &line, EMQ_VERB_ENQUEUES, count);
    for (size_t i = 0; i < count && result == EMQ_OK; i++) {
        if (payloads[i].size > (*out)->payload_size) {
            (*out)->payload_size = payloads[i].size;
        }
    }
    return result;
}

int emq_request_claim(emq_request **out, const char *queue, uint32_t lease_ms) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_claim(&line, queue, lease_ms);
    int result = make(out, built, &line, EMQ_VERB_CLAIM, 1);
    if (result == EMQ_OK) {
        emq_request_keep_queue(*out, queue);
    }
    return result;
}

int emq_request_claims(emq_request **out, const char *queue, uint32_t lease_ms, uint32_t max,
                       uint32_t timeout_ms) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_claims(&line, queue, lease_ms, max, timeout_ms);
    int result = make(out, built, &line, EMQ_VERB_CLAIMS, max);
    if (result == EMQ_OK) {
        emq_request_keep_queue(*out, queue);
        (*out)->least_ms = timeout_ms > 0 ? timeout_ms + EMQ_WAIT_MARGIN_MS : 0;
    }
    return result;
}

int emq_request_complete(emq_request **out, const emq_lease *lease) {
    emq_line line = EMQ_LINE_INIT;
    return make_repeatable(out, emq_line_complete(&line, lease), &line, EMQ_VERB_COMPLETE);
}

int emq_request_completes(emq_request **out, const emq_lease *leases, size_t count) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_completes(&line, leases, count);
    return make(out, built, &line, EMQ_VERB_COMPLETES, count);
}

int emq_request_extend(emq_request **out, const emq_lease *lease, uint32_t lease_ms) {
    emq_line line = EMQ_LINE_INIT;
    return make(out, emq_line_extend(&line, lease, lease_ms), &line, EMQ_VERB_EXTEND, 0);
}

int emq_request_extends(emq_request **out, const emq_lease *leases, size_t count,
                        uint32_t lease_ms) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_extends(&line, leases, count, lease_ms);
    int result = make(out, built, &line, EMQ_VERB_EXTENDS, count);
    if (result == EMQ_OK) {
        (*out)->extension = emq_extension_new(leases, count);
        if ((*out)->extension == NULL) {
            emq_request_free(*out);
            *out = NULL;
            result = EMQ_ENOMEM;
        }
    }
    return result;
}

int emq_request_fail(emq_request **out, const emq_lease *lease, int64_t delay_ms,
                     uint32_t max_failures, const void *error, size_t n) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_fail(&line, lease, delay_ms, max_failures, error, n);
    return make(out, built, &line, EMQ_VERB_FAIL, 0);
}

int emq_request_delay(emq_request **out, const emq_lease *lease, emq_when when) {
    emq_line line = EMQ_LINE_INIT;
    return make(out, emq_line_delay(&line, lease, when), &line, EMQ_VERB_DELAY, 0);
}

int emq_request_requeue(emq_request **out, const emq_lease *lease) {
    emq_line line = EMQ_LINE_INIT;
    return make_repeatable(out, emq_line_requeue(&line, lease), &line, EMQ_VERB_REQUEUE);
}

int emq_request_promote(emq_request **out, const char *queue, uint32_t limit) {
    emq_line line = EMQ_LINE_INIT;
    return make(out, emq_line_promote(&line, queue, limit), &line, EMQ_VERB_PROMOTE, limit);
}

int emq_request_stalled_check(emq_request **out, const char *queue, uint32_t max_stalled,
                              uint32_t limit) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_stalled_check(&line, queue, max_stalled, limit);
    return make(out, built, &line, EMQ_VERB_STALLED_CHECK, limit);
}

int emq_request_reschedule(emq_request **out, const char *queue, const emq_id *id, emq_when when) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_reschedule(&line, queue, id, when);
    return make(out, built, &line, EMQ_VERB_RESCHEDULE, 0);
}

int emq_request_reprocess(emq_request **out, const char *queue, const emq_id *id) {
    emq_line line = EMQ_LINE_INIT;
    return make(out, emq_line_reprocess(&line, queue, id), &line, EMQ_VERB_REPROCESS, 0);
}

int emq_request_pause(emq_request **out, const char *queue) {
    emq_line line = EMQ_LINE_INIT;
    return make(out, emq_line_pause(&line, queue), &line, EMQ_VERB_PAUSE, 0);
}

int emq_request_resume(emq_request **out, const char *queue) {
    emq_line line = EMQ_LINE_INIT;
    return make(out, emq_line_resume(&line, queue), &line, EMQ_VERB_RESUME, 0);
}

int emq_request_append(emq_request **out, const emq_id *id, const char *queue, const char *stream,
                       const emq_field *fields, size_t count) {
    emq_line line = EMQ_LINE_INIT;
    emq_id chosen = {{0}};
    int is_fresh = 0;
    int result = choose_id(&chosen, &is_fresh, id, EMQ_NAMESPACE_EVENT);
    if (result == EMQ_OK) {
        result = emq_line_append(&line, queue, stream, &chosen, fields, count);
    }
    result = make(out, result, &line, EMQ_VERB_APPEND, 0);
    if (result == EMQ_OK) {
        (*out)->has_id = 1;
        (*out)->id = chosen;
    }
    return result;
}

int emq_request_publish(emq_request **out, const char *queue, emq_bytes event, emq_bytes job,
                        const emq_field *fields, size_t count) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_publish(&line, queue, event, job, fields, count);
    return make(out, built, &line, EMQ_VERB_PUBLISH, 0);
}

int emq_request_failures_incr(emq_request **out, const char *queue, const char *stream,
                              const char *group, const char *entry) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_failures_incr(&line, queue, stream, group, entry);
    return make(out, built, &line, EMQ_VERB_FAILURES_INCR, 0);
}

int emq_request_tra_bitset(emq_request **out, emq_bytes key, const uint32_t *offsets,
                           size_t count) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_tra_bitset(&line, key, offsets, count);
    return make(out, built, &line, EMQ_VERB_TRA_BITSET, count);
}

int emq_request_tra_bitclear(emq_request **out, emq_bytes key, const uint32_t *offsets,
                             size_t count) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_tra_bitclear(&line, key, offsets, count);
    return make(out, built, &line, EMQ_VERB_TRA_BITCLEAR, count);
}

int emq_request_tra_bitget(emq_request **out, emq_bytes key, const uint32_t *offsets,
                           size_t count) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_tra_bitget(&line, key, offsets, count);
    return make(out, built, &line, EMQ_VERB_TRA_BITGET, count);
}

int emq_request_tra_bitscan(emq_request **out, emq_bytes key, uint32_t from, uint32_t to,
                            uint32_t limit) {
    emq_line line = EMQ_LINE_INIT;
    int built = emq_line_tra_bitscan(&line, key, from, to, limit);
    return make(out, built, &line, EMQ_VERB_TRA_BITSCAN, limit);
}

int emq_request_command(emq_request **out, int argc, const char *const *argv,
                        const size_t *argvlen) {
    emq_line line = EMQ_LINE_INIT;
    return emq_request_make(out, emq_line_raw(&line, argc, argv, argvlen), &line, NULL);
}
