/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client from the inside.
 *
 *   async.c          opening, closing, submitting, deadlines, and the calling of callbacks
 *   async_connect.c  from a name to an open connection, and again after a loss
 *   async_tls.c      between the two with TLS: its files, and its handshake
 *   async_link.c     one connection: a non-blocking hiredis context under uv_poll
 *
 * Callbacks of the user are called in one place alone, emq_async_settle, which is the last thing
 * that each callback of the loop does. All else only takes notes: a request gets its result
 * (emq_async_finish), the client gets a state (emq_async_note). So nothing changes under the feet
 * of the code that reads replies, whatever a callback does, and no callback runs inside a submit.
 */
#ifndef EMQ_LIBEMQ_ASYNC_H
#define EMQ_LIBEMQ_ASYNC_H

#include <emq/async.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <uv.h>

#include "deadline.h"
#include "handshake.h"
#include "reply_limits.h"
#include "request.h"
#include "secret.h"
#include "settings.h"

/* How far the client has come. */
typedef enum emq_stage {
    EMQ_STAGE_RESTING,   /* the step timer starts the next attempt, unless it was refused */
    EMQ_STAGE_LOADING,   /* client->load runs: the files of TLS */
    EMQ_STAGE_RESOLVING, /* client->lookup runs */
    EMQ_STAGE_DIALING,   /* client->link connects, or the step timer tries the address again */
    EMQ_STAGE_SHAKING,   /* the TLS handshake */
    EMQ_STAGE_AUTH,      /* one reply is due */
    EMQ_STAGE_ASKING,    /* the replies of client->ask are due */
    EMQ_STAGE_OPEN
} emq_stage;

/* One connection. It outlives its end until libuv has let go of the handle. */
typedef struct emq_link {
    uv_poll_t poll;
    emq_async *client;
    int is_dropped;
    int is_just_read; /* and was not ended then */
    int fd;
    int events;            /* that are watched */
    redisContext *context; /* NULL while it connects; then it owns the descriptor */
    struct ssl_st *ssl;    /* the context's own; NULL without TLS */
    int read_waits;        /* TLS: what a read or a write waits for, in events of poll: it may be */
    int write_waits;       /* the other one's */
    emq_limits limits;
    uint64_t given; /* bytes that hiredis was given */
    int replies;    /* that came on the connect path */
} emq_link;

/* A look-up of a name. It can't be interrupted, so it outlives whoever waits for it. */
typedef struct emq_lookup {
    uv_getaddrinfo_t request;
    emq_async *client; /* NULL when nobody waits */
} emq_lookup;

/* The reading of the files of TLS, in a thread. It can't be interrupted either; the client lives as
 * long, since its options are read. */
typedef struct emq_load {
    uv_work_t work;
    emq_async *client; /* NULL in a child, where the thread is not */
    struct ssl_st *ssl;
    int result;
    emq_text error;
} emq_load;

struct emq_async {
    uv_loop_t *loop;
    pid_t owner; /* the process that opened it; a child has no part in it */
    emq_settings settings;
    emq_async_options options;

    emq_stage stage;
    emq_link *link;
    emq_load *load;
    struct ssl_st *ssl; /* for the connection to come */
    emq_lookup *lookup;
    struct addrinfo *addresses;
    struct addrinfo *address; /* the next one to try */
    int addresses_left;
    int failure; /* errno of the last address */
    emq_deadline connect_by;
    emq_secret secret; /* from the connect to the answer of AUTH */
    emq_ask ask;
    int asked;             /* replies of it that came */
    unsigned int failures; /* in a row */
    uint64_t opened_at;    /* of the loop's clock, ms */

    emq_request_list queue;
    emq_request_list flight;
    emq_request *done_first;
    emq_request *done_last;
    int is_watched; /* the deadline timer runs, until this time: */
    emq_deadline watched;

    emq_async_state state;
    int reason;
    emq_text error;
    int is_noted; /* the state has changed, and nobody was told yet */

    int is_settling;
    int is_closing;
    int handles; /* that libuv has not let go of */
    emq_async_close_fn on_close;
    void *close_user;
    uint64_t counters[EMQ_ASYNC_TIMEOUTS + 1];

    uv_timer_t kick;  /* what was noted outside of the loop's callbacks is settled at once */
    uv_timer_t watch; /* the deadlines of the requests */
    uv_timer_t step;  /* connecting: the deadline of a step, or the pause before the next */
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

/* Whether this is a forked child of the process that opened the client: then the connection is not
 * ours to read, to write, or to take out of the loop of the parent. */
int emq_async_is_anothers(const emq_async *client);

/* Gives a request its result; it is in no list. The sentence is the request's own, or `text`, or
 * the one of the result. */
void emq_async_finish(emq_async *client, emq_request *request, int result, const emq_text *text);

/* Frees a request that has had its callback and is in no list any more. A canceled one that was
 * sent keeps its place among the replies until its own has come. */
void emq_async_release(emq_async *client, emq_request *request);

void emq_async_note(emq_async *client, emq_async_state state, int reason);

/* Calls the callbacks that are due, and sends what waits. */
void emq_async_settle(emq_async *client);

/* The same soon, from the loop. */
void emq_async_kick(emq_async *client);

/* One handle of the client is gone; the last one ends it. */
void emq_async_handle_closed(emq_async *client);

/* Takes everything back from a connection that ends: what was not sent whole, and what may be sent
 * twice, goes to the front of the queue. */
void emq_async_take_back(emq_async *client, uint64_t sent);

/* Ends all that waits in the queue. */
void emq_async_fail_queue(emq_async *client, int result, const emq_text *text);

/* async_connect.c */

void emq_async_on_step(uv_timer_t *timer);

/* Starts an attempt when the loop comes round, after the pause. */
void emq_async_connect_in(emq_async *client, uint64_t ms);

/* Ends the attempt or the connection, whose reason is in client->error: rests, or is refused. */
void emq_async_lose(emq_async *client, int result);

/* Lets go of whatever connecting holds, and of the link. */
void emq_async_drop(emq_async *client);

/* The link can be written or read, or failed. */
void emq_async_on_connected(emq_async *client);

/* Looks for the server's addresses and tries them. */
void emq_async_seek(emq_async *client);

/* Says what is to be said on a connection that is there. */
void emq_async_introduce(emq_async *client);

/* One reply on the connect path. */
int emq_async_take_step_reply(emq_async *client, redisReply *reply);

/* async_tls.c */

/* Reads the files, and goes on with emq_async_seek. */
void emq_async_load(emq_async *client);

/* Lets go of what was read, and on closing of the reading. */
void emq_async_unload(emq_async *client);

/* Shakes hands on a connection that is there, and goes on with emq_async_introduce. */
void emq_async_start_tls(emq_async *client);

/* The link of a handshake can be written or read, or failed. */
void emq_async_on_shaking(emq_async *client);

/* async_link.c */

/* Watches a socket that connects. On a failure the socket is closed. 0; EMQ_ENOMEM; EMQ_ESYSTEM. */
int emq_link_open(emq_async *client, int fd);

/* From a connected socket to a hiredis context. 0; EMQ_ENOMEM. */
int emq_link_adopt(emq_link *link);

/* Begins the TLS handshake with client->ssl; results as emq_tls_begin. */
int emq_link_start_tls(emq_link *link);

/* Goes on with it; *is_done receives whether nothing of it is left. 0; EMQ_ETLS; EMQ_ECONNECT;
 * EMQ_ESYSTEM. */
int emq_link_shake(emq_link *link, int *is_done);

/* Gives it a line of the connect path. 0; EMQ_ENOMEM. */
int emq_link_add(emq_link *link, const emq_line *line);

/* Writes what can be written, requests too when the client is open, and watches for the rest.
 * Loses the connection when that fails. */
void emq_link_flush(emq_link *link);

/* Takes the replies that have come, up to a bound. */
void emq_link_catch_up(emq_link *link);

/* Whether the socket has to come round before more can be written. */
int emq_link_is_busy(const emq_link *link);

/* Bytes that went out: those of the protocol, also where TLS wraps them. */
uint64_t emq_link_sent(const emq_link *link);

/* Ends it; in a forked child that is no end for the parent. */
void emq_link_drop(emq_link *link);

#endif
