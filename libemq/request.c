/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: made of a line, decoded by their question, read in their callback. */
#include "request.h"

#include <limits.h>
#include <string.h>

#include "encode.h"
#include "job.h"
#include "line.h"
#include "memory.h"
#include "wire.h"

int emq_request_make(emq_request **out, int result, emq_line *line, const emq_question *question) {
    emq_request *request = NULL;
    if (out == NULL) {
        result = EMQ_EINVAL;
    }
    if (result == EMQ_OK) {
        result = emq_line_fits(line) ? EMQ_OK : EMQ_ETOOBIG;
    }
    if (result == EMQ_OK) {
        request = emq_calloc(1, sizeof(*request));
        result = request == NULL ? EMQ_ENOMEM : EMQ_OK;
    }
    if (result == EMQ_OK) {
        result = emq_encode_line(&request->command, &request->length, line);
        if (result != EMQ_OK) {
            emq_free(request);
            request = NULL;
        } else {
            request->is_raw = question == NULL;
            request->question = question == NULL ? (emq_question){.verb = EMQ_VERBS} : *question;
        }
    }
    emq_line_clear(line);
    if (out != NULL) {
        *out = request;
    }
    return result;
}

void emq_request_keep_queue(emq_request *request, const char *queue) {
    size_t n = strnlen(queue, EMQ_QUEUE_MAX);
    memcpy(request->queue, queue, n);
    request->question.queue = (emq_slice){request->queue, n};
}

static int decode_verb(emq_request *request, redisReply *reply) {
    emq_extension *extension = request->extension;
    int result = emq_decode_verb(&request->outcome, &request->question, reply, &request->error);
    if (result == EMQ_OK && extension != NULL) {
        result = emq_outcome_get_extended(extension->results, &request->outcome, extension->leases,
                                          request->question.count, &request->error);
    }
    if (result < 0) {
        request->outcome.list = NULL; /* the reply goes */
    }
    return result;
}

int emq_request_decode(emq_request *request, redisReply **reply) {
    int result =
        request->is_raw ? emq_decode_raw(*reply, &request->error) : decode_verb(request, *reply);
    if (result >= 0 && (request->is_raw || request->outcome.list != NULL)) {
        request->reply = *reply;
        *reply = NULL;
    }
    return result;
}

void emq_request_free(emq_request *request) {
    if (request != NULL) {
        emq_free(request->command);
        emq_outcome_clear(&request->outcome);
        emq_free(request->extension);
        freeReplyObject(request->reply);
        emq_free(request);
    }
}

int emq_request_line_admission(emq_line *line, const char *queue, const emq_id *id, const void *p,
                               size_t n, const emq_when *when) {
    return when == NULL ? emq_line_enqueue(line, queue, id, p, n)
                        : emq_line_schedule(line, queue, id, p, n, *when);
}

/* The payload is taken out of the command as it was sent. */
int emq_request_mint_again(emq_request *request) {
    emq_line line = EMQ_LINE_INIT;
    emq_id fresh;
    char *command = NULL;
    int result = emq_id_mint(&fresh, EMQ_NAMESPACE_JOB);
    if (result == EMQ_OK) {
        result = emq_request_line_admission(
            &line, request->queue, &fresh, request->command + request->payload_at,
            request->payload_size,
            request->question.verb == EMQ_VERB_SCHEDULE ? &request->when : NULL);
    }
    size_t length = 0; /* every id has the same, and so has the command */
    if (result == EMQ_OK) {
        result = emq_encode_line(&command, &length, &line);
    }
    emq_line_clear(&line);
    if (result == EMQ_OK) {
        emq_free(request->command);
        request->command = command;
        request->id = fresh;
        request->mints++;
        request->given = 0;
    }
    return result;
}

void emq_request_set_timeout(emq_request *request, uint32_t timeout_ms) {
    if (request != NULL && request->place == EMQ_PLACE_OWN) {
        request->timeout_ms = timeout_ms;
    }
}

const char *emq_request_get_error(const emq_request *request) {
    return request == NULL ? "" : request->error.bytes;
}

const emq_id *emq_request_get_id(const emq_request *request) {
    return request != NULL && request->has_id ? &request->id : NULL;
}

const emq_job *emq_request_get_job(const emq_request *request) {
    return request == NULL ? NULL : request->outcome.job;
}

int emq_request_take_job(emq_job **out, emq_request *request) {
    if (out == NULL || request == NULL) {
        return EMQ_EINVAL;
    }
    *out = request->outcome.job;
    request->outcome.job = NULL;
    return *out == NULL ? EMQ_EMPTY : EMQ_OK;
}

const emq_jobs *emq_request_get_jobs(const emq_request *request) {
    return request == NULL ? NULL : request->outcome.jobs;
}

int emq_request_take_jobs(emq_jobs **out, emq_request *request) {
    if (out == NULL || request == NULL) {
        return EMQ_EINVAL;
    }
    *out = request->outcome.jobs;
    request->outcome.jobs = NULL;
    return *out == NULL ? EMQ_EMPTY : EMQ_OK;
}

static int take_ids(emq_ids **out, emq_ids **from) {
    if (out == NULL || from == NULL) {
        return EMQ_EINVAL;
    }
    *out = *from;
    *from = NULL;
    return *out == NULL ? EMQ_EMPTY : EMQ_OK;
}

int emq_request_take_recovered(emq_ids **out, emq_request *request) {
    return take_ids(out, request == NULL ? NULL : &request->outcome.recovered);
}

int emq_request_take_dead(emq_ids **out, emq_request *request) {
    return take_ids(out, request == NULL ? NULL : &request->outcome.dead);
}

/* The offsets that a BITSCAN has found, or NULL. */
static const redisReply *get_offsets(const emq_request *request) {
    return request->question.verb == EMQ_VERB_TRA_BITSCAN ? request->outcome.list : NULL;
}

int64_t emq_request_get_number(const emq_request *request) {
    if (request == NULL) {
        return 0;
    }
    const redisReply *offsets = get_offsets(request);
    return offsets == NULL ? request->outcome.number : (int64_t)offsets->elements;
}

int emq_request_get_offset(uint32_t *offset, const emq_request *request, size_t index) {
    if (offset == NULL || request == NULL) {
        return EMQ_EINVAL;
    }
    *offset = 0;
    const redisReply *offsets = get_offsets(request);
    if (offsets == NULL || index >= offsets->elements) {
        return EMQ_EINVAL;
    }
    *offset = (uint32_t)offsets->element[index]->integer;
    return EMQ_OK;
}

const char *emq_request_get_entry(const emq_request *request) {
    return request == NULL || request->question.verb != EMQ_VERB_APPEND ||
                   request->outcome.list == NULL
               ? NULL
               : request->outcome.list->str;
}

int emq_request_get_member(const emq_request *request, size_t member) {
    if (request == NULL || !request->is_done || request->is_raw ||
        !emq_question_has_members(&request->question) || member >= request->question.count) {
        return EMQ_EINVAL;
    }
    if (request->result != EMQ_OK) {
        return request->result;
    }
    return request->extension != NULL
               ? request->extension->results[member]
               : emq_outcome_get_answer(&request->outcome, &request->question, member);
}

const emq_reply *emq_request_get_reply(const emq_request *request) {
    return request == NULL || !request->is_raw ? NULL : (const emq_reply *)request->reply;
}

int emq_request_take_reply(emq_reply **out, emq_request *request) {
    if (out == NULL || request == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (request->is_raw) {
        *out = (emq_reply *)request->reply;
        request->reply = NULL;
    }
    return *out == NULL ? EMQ_EMPTY : EMQ_OK;
}

void emq_request_list_add(emq_request_list *list, emq_request *request) {
    request->previous = list->last;
    request->next = NULL;
    if (list->last != NULL) {
        list->last->next = request;
    } else {
        list->first = request;
    }
    list->last = request;
}

void emq_request_list_add_first(emq_request_list *list, emq_request *request) {
    request->previous = NULL;
    request->next = list->first;
    if (list->first != NULL) {
        list->first->previous = request;
    } else {
        list->last = request;
    }
    list->first = request;
}

void emq_request_list_remove(emq_request_list *list, emq_request *request) {
    if (request->previous != NULL) {
        request->previous->next = request->next;
    } else {
        list->first = request->next;
    }
    if (request->next != NULL) {
        request->next->previous = request->previous;
    } else {
        list->last = request->previous;
    }
    request->previous = NULL;
    request->next = NULL;
}
