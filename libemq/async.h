/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client from the inside: a session whose connection carries requests.
 *
 *   async.c           opening, closing, submitting, deadlines, and the calling of callbacks
 *   async_requests.c  requests on the open connection: sent, answered, taken back
 *   async_session.h   the connection, and how it is made
 *
 * A request only gets its result (emq_async_finish); its callback is called when the session
 * settles. So no callback runs inside a submit. */
#ifndef EMQ_LIBEMQ_ASYNC_H
#define EMQ_LIBEMQ_ASYNC_H

#include <stdatomic.h>

#include "async_session.h"
#include "request.h"

struct emq_async {
    emq_session session;
    emq_async_options options;

    emq_request_list queue;
    emq_request_list flight;
    int is_leaving; /* the server became a replica: no more requests, and the end behind the last */
    emq_request *done_first;
    emq_request *done_last;
    int is_watched; /* the deadline timer runs, until this time: */
    emq_deadline watched;

    emq_async_close_fn on_close;
    void *close_user;
    uint64_t requests; /* counters */
    uint64_t timeouts;

    uv_timer_t watch; /* the deadlines of the requests */
    uv_async_t mail;

    /* what other threads touch */
    uv_mutex_t mutex;
    int is_mutex_lost; /* to a thread that a fork has left behind */
    int is_shut;
    emq_request_list box;
    atomic_size_t held; /* requests, and their bytes */
    atomic_size_t held_bytes;
    atomic_size_t overloads;
};

/* async.c */

/* Gives a request its result; it is in no list. The sentence is the request's own, or `text`, or
 * the one of the result. */
void emq_async_finish(emq_async *client, emq_request *request, int result, const emq_text *text);

/* Frees a request that has had its callback and is in no list any more. A canceled one that was
 * sent keeps its place among the replies until its own has come. */
void emq_async_release(emq_async *client, emq_request *request);

/* async_requests.c */

/* Whether all of a request is among the bytes that were sent. */
int emq_async_was_sent(const emq_request *request, uint64_t sent);

/* Whether there is a request to be sent on the open connection. */
int emq_async_has_next(const emq_async *client);

/* The hooks of its session. */
void emq_async_take_reply(emq_session *session, redisReply *reply);
int emq_async_fill(emq_session *session, size_t most);
int emq_async_has_more(const emq_session *session);
int emq_async_is_quiet(const emq_session *session);

/* Takes everything back from a connection that ends: what was not sent whole, and what may be sent
 * twice, goes to the front of the queue. */
void emq_async_take_back(emq_async *client, uint64_t sent);

#endif
