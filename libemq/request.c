/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: made of a line, told apart by their decoder, read in their callback. */
#include "request.h"

#include <limits.h>
#include <string.h>

#include "job.h"
#include "line.h"
#include "memory.h"
#include "wire.h"

int emq_request_make(emq_request **out, int result, emq_line *line, const char *queue,
                     emq_request_decode decode) {
    emq_request *request = NULL;
    if (result == EMQ_OK) {
        result = emq_line_fits(line) ? EMQ_OK : EMQ_ETOOBIG;
    }
    if (result == EMQ_OK) {
        request = emq_calloc(1, sizeof(*request));
        result = request == NULL ? EMQ_ENOMEM : EMQ_OK;
    }
    if (result == EMQ_OK) {
        /* an int in hiredis 0.14 */
        long long length =
            redisFormatSdsCommandArgv(&request->command, line->argc, line->argv, line->argvlen);
        if (length < 0) {
            emq_free(request);
            request = NULL;
            result = EMQ_ENOMEM;
        } else {
            request->length = (size_t)length;
            request->decode = decode;
            memcpy(request->queue, queue == NULL ? "" : queue,
                   queue == NULL ? 0 : strnlen(queue, EMQ_QUEUE_MAX));
        }
    }
    emq_line_clear(line);
    *out = request;
    return result;
}

void emq_request_free(emq_request *request) {
    if (request != NULL) {
        redisFreeSdsCommand(request->command);
        emq_job_free(request->job);
        freeReplyObject(request->reply);
        emq_free(request);
    }
}

/* The payload is the last argument, so it can be sent again out of the command as it is. */
int emq_request_mint_again(emq_request *request) {
    emq_line line = EMQ_LINE_INIT;
    emq_id fresh;
    char *command = NULL;
    int result = emq_id_mint(&fresh, EMQ_NAMESPACE_JOB);
    if (result == EMQ_OK) {
        result = emq_line_enqueue(&line, request->queue, &fresh,
                                  request->command + request->payload_at, request->payload_size);
    }
    if (result == EMQ_OK &&
        redisFormatSdsCommandArgv(&command, line.argc, line.argv, line.argvlen) < 0) {
        result = EMQ_ENOMEM;
    }
    emq_line_clear(&line);
    if (result == EMQ_OK) { /* every id has the same length, and so has the command */
        redisFreeSdsCommand(request->command);
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
    return request == NULL ? NULL : request->job;
}

int emq_request_take_job(emq_job **out, emq_request *request) {
    if (out == NULL || request == NULL) {
        return EMQ_EINVAL;
    }
    *out = request->job;
    request->job = NULL;
    return *out == NULL ? EMQ_EMPTY : EMQ_OK;
}

const emq_reply *emq_request_get_reply(const emq_request *request) {
    return request == NULL ? NULL : (const emq_reply *)request->reply;
}

int emq_request_take_reply(emq_reply **out, emq_request *request) {
    if (out == NULL || request == NULL) {
        return EMQ_EINVAL;
    }
    *out = (emq_reply *)request->reply;
    request->reply = NULL;
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
