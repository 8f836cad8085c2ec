/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on an open connection: sent in order, answered by their place, taken back when the
 * connection ends. */
#include "async.h"

#define MINTS_MAX 8 /* how often a fresh id is minted before the peer is not believed */

int emq_async_was_sent(const emq_request *request, uint64_t sent) {
    return request->given == request->length && request->end_at <= sent;
}

/* Sending. */

int emq_async_has_next(const emq_async *client) {
    return client->queue.first != NULL && !client->is_leaving;
}

int emq_async_has_more(const emq_session *session) {
    const emq_async *client = session->owner;
    const emq_request *last = client->flight.last;
    return emq_async_has_next(client) || (last != NULL && last->given < last->length);
}

int emq_async_is_quiet(const emq_session *session) {
    const emq_async *client = session->owner;
    return client->flight.first == NULL;
}

/* The request of which bytes have to be given next, or NULL. */
static emq_request *next_to_give(emq_async *client) {
    emq_request *last = client->flight.last;
    if (last != NULL && last->given < last->length) {
        return last;
    }
    emq_request *request = emq_async_has_next(client) ? client->queue.first : NULL;
    if (request != NULL) {
        emq_request_list_remove(&client->queue, request);
        request->place = EMQ_PLACE_FLIGHT;
        emq_request_list_add(&client->flight, request);
    }
    return request;
}

int emq_async_fill(emq_session *session, size_t most) {
    emq_async *client = session->owner;
    emq_link *link = session->link;
    emq_request *request = NULL;
    size_t had = 0;
    while ((had = emq_link_get_left(link)) < most && (request = next_to_give(client)) != NULL) {
        size_t left = request->length - request->given;
        size_t n = left < most - had ? left : most - had;
        int result = emq_link_give(link, request->command + request->given, n);
        if (result != EMQ_OK) {
            return result;
        }
        request->given += n;
        request->end_at = link->given;
    }
    return EMQ_OK;
}

/* Answers. */

/* An id that was minted for this request is somebody else's: the job must not be taken for ours. */
static int is_id_taken(const emq_request *request, int result) {
    return result == EMQ_DUPLICATE && request->mints > 0;
}

/* Sends it again under another id; returns 0 when it got a result instead. */
static int try_another_id(emq_async *client, emq_request *request, int *result) {
    if (request->mints >= MINTS_MAX) {
        *result =
            emq_text_fail(&request->error, EMQ_EPROTOCOL,
                          "the server said of %d ids minted just now that they exist", MINTS_MAX);
        return 0;
    }
    int minted = emq_request_mint_again(request);
    if (minted != EMQ_OK) {
        *result = minted;
        return 0;
    }
    request->place = EMQ_PLACE_QUEUE;
    emq_request_list_add(&client->queue, request);
    return 1;
}

static void lose_to_nonsense(emq_session *session, const char *text) {
    emq_session_lose(session, emq_text_fail(&session->error, EMQ_EPROTOCOL, "%s", text));
}

/* The server has become a replica, and sentinels know a better one. What is in flight still gets
 * its answers, which are as clear as this one. */
static int is_demotion(const emq_session *session, int result) {
    return result == EMQ_EREADONLY && session->settings.options.sentinels != NULL;
}

/* Gives the reply to the first request in flight. */
void emq_async_take_reply(emq_session *session, redisReply *reply) {
    emq_async *client = session->owner;
    emq_request *request = client->flight.first;
    if (request == NULL) {
        freeReplyObject(reply);
        lose_to_nonsense(session, "the peer sent bytes that nothing asked for");
        return;
    }
    int was_sent = emq_async_was_sent(request, emq_link_sent(session->link));
    int is_early = !was_sent && reply->type != REDIS_REPLY_ERROR;
    session->failures = 0; /* a request made the round trip */
    emq_request_list_remove(&client->flight, request);
    request->place = EMQ_PLACE_NOWHERE;
    if (request->is_done) { /* canceled: its answer is dropped */
        emq_async_release(client, request);
    } else {
        int result = is_early ? emq_text_fail(&request->error, EMQ_EPROTOCOL,
                                              "the peer answered before it was asked")
                              : emq_request_decode(request, &reply);
        client->is_leaving = client->is_leaving || is_demotion(session, result);
        if (!is_id_taken(request, result) || !try_another_id(client, request, &result)) {
            emq_async_finish(client, request, result, NULL);
        }
        is_early = is_early || result == EMQ_EPROTOCOL;
    }
    freeReplyObject(reply);
    /* behind a broken answer nothing can be trusted, nor behind a request that was refused half */
    if (is_early) {
        lose_to_nonsense(session, "the peer's answer is not one that the wire allows");
    } else if (!was_sent) {
        emq_session_lose(session,
                         emq_text_fail(&session->error, EMQ_ECONNLOST,
                                       "the server refused a request before it was sent whole"));
    } else if (client->is_leaving && client->flight.first == NULL) {
        emq_session_lose(session, emq_text_fail_plain(&session->error, EMQ_EREADONLY));
    }
}

/* Losses. */

static int may_repeat(const emq_async *client, const emq_request *request) {
    return request->may_repeat && !request->is_repeated && !client->options.complete_once;
}

void emq_async_take_back(emq_async *client, uint64_t sent) {
    emq_request_list lost = {NULL, NULL};
    emq_request *request = NULL;
    client->is_leaving = 0;
    while ((request = client->flight.last) != NULL) {
        int was_sent = emq_async_was_sent(request, sent);
        emq_request_list_remove(&client->flight, request);
        request->place = EMQ_PLACE_NOWHERE;
        request->given = 0;
        if (request->is_done) {
            emq_async_release(client, request);
        } else if (!was_sent || may_repeat(client, request)) {
            request->is_repeated = request->is_repeated || was_sent;
            request->place = EMQ_PLACE_QUEUE;
            emq_request_list_add_first(&client->queue, request);
        } else {
            emq_request_list_add_first(&lost, request);
        }
    }
    while ((request = lost.first) != NULL) {
        emq_request_list_remove(&lost, request);
        emq_async_finish(client, request, EMQ_ECONNLOST, NULL);
    }
}
