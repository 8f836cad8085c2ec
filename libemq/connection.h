/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronous transport: a connection that sends lines and gives one reply for each, in order,
 * under one deadline. It knows nothing of verbs.
 *
 * After any failure the connection is closed for good, with the one exception of EMQ_ETOOBIG, which
 * is found before anything is sent. */
#ifndef EMQ_LIBEMQ_CONNECTION_H
#define EMQ_LIBEMQ_CONNECTION_H

#include <emq/client.h>
#include <emq/line.h>
#include <hiredis/hiredis.h>

#include "deadline.h"
#include "dial.h"
#include "encode.h"
#include "owner.h"
#include "reply_limits.h"
#include "text.h"

typedef struct emq_connection {
    redisContext *context; /* NULL when closed */
    struct ssl_st *ssl;    /* the context's own; NULL without TLS */
    int is_fresh;          /* nothing was sent on it yet */
    emq_owner owner;       /* of what the connection is a part of, which sets it; or none */
    emq_buffer request;    /* the one that is under way; its memory is kept */
    emq_limits limits;     /* of the replies; must stay where it is while the context lives */
} emq_connection;

/* 0; EMQ_ERESOLVE; EMQ_ECONNECT; EMQ_ETIMEOUT; EMQ_ENOMEM; EMQ_ESYSTEM. */
int emq_connection_open(emq_connection *connection, const emq_endpoint *endpoint,
                        emq_deadline deadline, emq_text *error);

/* Goes over to TLS, before anything else is sent. Results as emq_tls_make and emq_tls_begin;
 * EMQ_ETIMEOUT; EMQ_ESYSTEM. */
int emq_connection_start_tls(emq_connection *connection, const emq_client_options *options,
                             emq_deadline deadline, emq_text *error);

/* Sends the lines and reads their replies; on success all of them are there, and the caller frees
 * them. The connection may be closed even then: when the server refused a line (an error reply)
 * before it was sent to its end.
 *
 * EMQ_ECLOSED; EMQ_EFORKED (in a child of its process); EMQ_ECONNECT (lost before the lines were
 * sent whole: nothing was done, when there is one line); EMQ_ECONNLOST (lost behind that);
 * EMQ_ETIMEOUT; EMQ_EPROTOCOL; EMQ_ETOOBIG; EMQ_ENOMEM; what the server's text says when it turns a
 * fresh connection away. */
int emq_connection_exchange(emq_connection *connection, const emq_line *lines, int count,
                            redisReply **replies, emq_deadline deadline, emq_text *error);

/* Commands that are formatted already, and what came of them. */
typedef struct emq_batch emq_batch;
struct emq_batch {
    const char *bytes;
    size_t length;
    int count;            /* of the commands */
    const size_t *ends;   /* where each of them ends in the bytes */
    redisReply **replies; /* room for that many */
    int received;         /* how many of them are there in the end, also after a failure */
    size_t sent;          /* how many bytes went out */
    /* Called for each reply that has come, while the batch may still be under way; NULL: nobody is.
     * It may free replies[index], and leaves NULL there then. */
    void (*on_reply)(emq_batch *batch, int index);
    void *user; /* on_reply's own */
};

/* The same for a batch. After a failure the replies that came are kept: they are the caller's, as
 * far as on_reply has not freed them. */
int emq_connection_exchange_batch(emq_connection *connection, emq_batch *batch,
                                  emq_deadline deadline, emq_text *error);

/* For a connection that is pushed to. Sends a line and waits for the first thing that comes; more
 * may come right behind it. Otherwise as emq_connection_exchange. */
int emq_connection_subscribe(emq_connection *connection, const emq_line *line, redisReply **reply,
                             emq_deadline deadline, emq_text *error);

/* Sends a small line and waits for nothing: what it answers is pushed like the rest. What does not
 * go out at once stays unsent. EMQ_ECONNLOST; EMQ_EPROTOCOL; EMQ_ENOMEM. */
int emq_connection_post(emq_connection *connection, const emq_line *line, emq_text *error);

/* The next thing that was pushed, which the caller frees: EMQ_OK; or EMQ_EMPTY at the deadline,
 * which leaves the connection open. EMQ_ECONNLOST; EMQ_EPROTOCOL (a peer that breaks the protocol,
 * or pushes more than EMQ_PUSH_MAX bytes in one piece); EMQ_ENOMEM; EMQ_ESYSTEM. It looks at what
 * is there even when the deadline has passed. `has_read` receives whether any bytes came in, of
 * which a part of something may be left. */
#define EMQ_PUSH_MAX ((size_t)128 * 1024 * 1024)
int emq_connection_receive(emq_connection *connection, redisReply **reply, int *has_read,
                           emq_deadline deadline, emq_text *error);

void emq_connection_close(emq_connection *connection);

#endif
