/* SPDX-License-Identifier: Apache-2.0 */
/* A session: a connection that belongs to a libuv loop and is made anew whenever it is lost.
 *
 *   async_connect.c  from a name to an open connection, and again after a loss
 *   async_search.c   the same with sentinels, which are asked where to connect
 *   async_files.c    before that: the files of TLS and of the password
 *   async_tls.c      behind the connect, with TLS: its handshake
 *   async_link.c     one connection: a non-blocking hiredis context under uv_poll
 *
 * What goes over the connection is its owner's: the requests of emq_async (async.c), the messages
 * of emq_events_async (events_async.c). A session calls its owner through emq_session_hooks.
 *
 * Callbacks of the user are called in one place alone, the owner's `work`, which the last thing
 * that each callback of the loop does (emq_session_settle) calls again and again. All else only
 * takes notes. So nothing changes under the feet of the code that reads replies, whatever a
 * callback does. */
#ifndef EMQ_LIBEMQ_ASYNC_SESSION_H
#define EMQ_LIBEMQ_ASYNC_SESSION_H

#include <emq/async.h>
#include <netdb.h>
#include <uv.h>

#include "deadline.h"
#include "encode.h"
#include "handshake.h"
#include "owner.h"
#include "reply_limits.h"
#include "secret.h"
#include "sentinel.h"
#include "settings.h"

typedef struct emq_session emq_session;

/* How far a session has come. */
typedef enum emq_stage {
    EMQ_STAGE_RESTING,   /* the step timer starts the next attempt, unless it was refused */
    EMQ_STAGE_SEARCHING, /* the step timer starts the next step of session->search */
    EMQ_STAGE_LOADING,   /* session->load runs: the files of TLS and the password */
    EMQ_STAGE_RESOLVING, /* session->lookup runs */
    EMQ_STAGE_DIALING,   /* session->link connects, or the step timer tries the address again */
    EMQ_STAGE_SHAKING,   /* the TLS handshake */
    EMQ_STAGE_AUTH,      /* one reply is due */
    EMQ_STAGE_ASKING,    /* the replies of session->ask are due */
    EMQ_STAGE_ENTERING,  /* a reply to the owner's own line is due */
    EMQ_STAGE_OPEN
} emq_stage;

/* What a session's owner does. Those that may be missing are NULL then. */
typedef struct emq_session_hooks {
    /* May be missing, and enter_reply with it. The server is the right one: asks for the last thing
     * that is needed (emq_link_add), and says of the reply, which stays the session's, whether the
     * session is open then. */
    int (*enter)(emq_session *session);
    int (*enter_reply)(emq_session *session, const redisReply *reply);
    /* What has come on the open connection. The reply is the owner's. */
    void (*take_reply)(emq_session *session, redisReply *reply);
    /* May be missing. No reply is taken now; what has come waits for emq_link_take_more. */
    int (*is_full)(const emq_session *session);
    size_t unread_max; /* a reply of more bytes breaks the protocol; 0: none does */
    /* May be missing. No answer is due, so that nothing may come. */
    int (*is_quiet)(const emq_session *session);
    /* May be missing, and has_more with it. Gives the connection bytes to write (emq_link_give), up
     * to this many in its buffer. 0; EMQ_ENOMEM. */
    int (*fill)(emq_session *session, size_t most);
    int (*has_more)(const emq_session *session);
    /* The connection or the attempt has ended, with so many bytes of it sent. Returns the result as
     * the owner names it. */
    int (*lose)(emq_session *session, int result, uint64_t sent);
    /* May be missing. The session came to be refused, for this reason. */
    void (*refuse)(emq_session *session, int reason);
    /* Calls one callback, or does something else that is due; 0 when nothing is. */
    int (*work)(emq_session *session);
    /* The last handle is gone: ends the session with whom it belongs to. */
    void (*end)(emq_session *session);
} emq_session_hooks;

/* One connection. It outlives its end until libuv has let go of the handle. */
typedef struct emq_link {
    uv_poll_t poll;
    emq_session *session;
    int is_dropped;
    int is_just_read; /* and was not ended then */
    int fd;
    int events;            /* that are watched */
    redisContext *context; /* NULL while it connects; then it owns the descriptor */
    struct ssl_st *ssl;    /* the context's own; NULL without TLS */
    int read_waits;        /* TLS: what a read or a write waits for, in events of poll: it may be */
    int write_waits;       /* the other one's */
    emq_limits limits;
    emq_buffer out; /* bytes to write */
    uint64_t given; /* bytes that were ever to be written */
    int replies;    /* that came on the connect path */
} emq_link;

/* A look-up of a name. It can't be interrupted, so it outlives whoever waits for it. */
typedef struct emq_lookup {
    uv_getaddrinfo_t request;
    emq_session *session; /* NULL when nobody waits */
    int is_of_other;      /* it began for another host than the one that is wanted by now */
} emq_lookup;

/* The reading of the files, in a thread. It can't be interrupted either; the session lives as long,
 * since its options are read. */
typedef struct emq_load {
    uv_work_t work;
    emq_session *session;      /* NULL in a child, where the thread is not */
    const char *password_file; /* of the side that it began for; NULL: none */
    emq_secret secret;
    struct ssl_st *ssl;
    int result;
    emq_text error;
} emq_load;

struct emq_session {
    const emq_session_hooks *hooks;
    void *owner;
    emq_owner process; /* that opened it; a child has no part in it */
    uv_loop_t *loop;
    emq_settings settings;
    uint32_t backoff_min_ms;
    uint32_t backoff_max_ms;

    emq_stage stage;
    const emq_client_options
        *aim; /* how the other side is reached: the settings' or the search's */
    emq_search search;
    int is_searching; /* from the start of an attempt with sentinels to the open connection */
    emq_text told;    /* while it searches: the error that belongs to the state */
    emq_link *link;
    emq_load *load;
    struct ssl_st *ssl; /* for the connection to come */
    emq_lookup *lookup;
    struct addrinfo *addresses;
    struct addrinfo *address; /* the next one to try */
    int addresses_left;
    int failure; /* errno of the last address */
    emq_deadline connect_by;
    emq_secret secret; /* from its reading to the answer of AUTH */
    emq_ask ask;
    int asked; /* replies of it that came */
    unsigned int
        failures;       /* in a row; the owner sets it to 0 when the connection has proved good */
    uint64_t opened_at; /* of the loop's clock, ms */

    emq_async_state state;
    int reason;
    emq_text error;
    int is_noted; /* the state has changed, and nobody was told yet */

    int is_settling;
    int is_closing;
    int handles; /* that libuv has not let go of */
    uint64_t connects;
    uint64_t bytes_in;
    uint64_t bytes_out;

    uv_timer_t kick; /* what was noted outside of the loop's callbacks is settled at once */
    uv_timer_t step; /* connecting: the deadline of a step, or the pause before the next */
};

/* async_connect.c */

/* Reads the settings of a session that is zeroes but for hooks, owner, loop and backoff, whose
 * defaults it gets. EMQ_EINVAL, or what emq_settings_init returns; nothing is left of it then. */
int emq_session_init(emq_session *session, const emq_client_options *options);

/* Takes an initialised session back; before the start, or behind the end. */
void emq_session_clear(emq_session *session);

/* Whether this is a forked child of the process that opened the session: then the connection is not
 * ours to read, to write, or to take out of the loop of the parent. Timers and other handles of an
 * owner look first. */
int emq_session_is_anothers(const emq_session *session);

/* Puts it on the loop, to connect when that comes round. Handles that the owner adds are counted in
 * session->handles, and closed with emq_session_close_handle. */
void emq_session_start(emq_session *session);

/* Begins to close: no hook is called any more but `work`, for what was noted before, and `end`. */
void emq_session_close(emq_session *session);

void emq_session_close_handle(emq_session *session, uv_handle_t *handle);

/* Drops the connection, if there is one, and connects at once, whatever the state. */
void emq_session_reconnect(emq_session *session);

void emq_session_note(emq_session *session, emq_async_state state, int reason);

/* The state, and why it is not open. In a forked child it is closed. */
emq_async_state emq_session_get_state(const emq_session *session);
const char *emq_session_get_error(const emq_session *session);

/* Whether the owner has to tell of a state now. */
int emq_session_take_note(emq_session *session);

/* Lets the owner work until nothing is due. In a forked child nothing is before it is closing. */
void emq_session_settle(emq_session *session);

/* The same soon, from the loop. */
void emq_session_kick(emq_session *session);

/* Ends the attempt or the connection, whose reason is in session->error: rests, or is refused. */
void emq_session_lose(emq_session *session, int result);

/* One handle is gone; the last one ends a session that is closing. */
void emq_session_handle_closed(emq_session *session);

/* Lets go of whatever connecting holds, and of the link. */
void emq_session_drop(emq_session *session);

/* The link can be written or read, or failed. */
void emq_session_on_connected(emq_session *session);

/* Looks for the server's addresses and tries them. */
void emq_session_seek(emq_session *session);

/* Says what is to be said on a connection that is there. */
void emq_session_introduce(emq_session *session);

/* One reply on the connect path. */
void emq_session_take_step_reply(emq_session *session, redisReply *reply);

/* The step timer fires. */
void emq_session_on_step(uv_timer_t *timer);

/* Runs the connect path to session->aim, until session->connect_by. */
void emq_session_attempt(emq_session *session);

/* async_search.c */

void emq_session_start_search(emq_session *session);

/* The next step begins. */
void emq_session_go_on_searching(emq_session *session);

/* How a step ended: the attempt failed, for the reason in session->error; the sentinel answered;
 * the connection to the primary is open. */
void emq_session_fail_search(emq_session *session, int result);
void emq_session_take_address(emq_session *session, const redisReply *reply);
void emq_session_end_search(emq_session *session);

/* Whether the other side of the attempt is a sentinel. */
int emq_session_is_at_sentinel(const emq_session *session);

/* async_files.c */

/* Reads the files, and goes on with emq_session_seek. */
void emq_session_load(emq_session *session);

/* Lets go of what was read, and on closing of the reading. */
void emq_session_unload(emq_session *session);

/* async_tls.c */

/* Shakes hands on a connection that is there, and goes on with emq_session_introduce. */
void emq_session_start_tls(emq_session *session);

/* The link of a handshake can be written or read, or failed. */
void emq_session_on_shaking(emq_session *session);

/* async_link.c */

/* Watches a socket that connects. On a failure the socket is closed. 0; EMQ_ENOMEM; EMQ_ESYSTEM. */
int emq_link_open(emq_session *session, int fd);

/* From a connected socket to a hiredis context. 0; EMQ_ENOMEM. */
int emq_link_adopt(emq_link *link);

/* Begins the TLS handshake with session->ssl; results as emq_tls_begin. */
int emq_link_start_tls(emq_link *link);

/* Goes on with it; *is_done receives whether nothing of it is left. 0; EMQ_ETLS; EMQ_ECONNECT;
 * EMQ_ESYSTEM. */
int emq_link_shake(emq_link *link, int *is_done);

/* Gives it bytes to write, or a whole line. 0; EMQ_ENOMEM. */
int emq_link_give(emq_link *link, const char *bytes, size_t n);
int emq_link_add(emq_link *link, const emq_line *line);

/* Writes what can be written, and watches for the rest. Loses the connection when that fails. */
void emq_link_flush(emq_link *link);

/* Takes the replies that have come, up to a bound. */
void emq_link_catch_up(emq_link *link);

/* Goes on to take replies that were read already, where the owner had been full. */
void emq_link_take_more(emq_link *link);

/* Whether the socket has to come round before more can be written. */
int emq_link_is_busy(const emq_link *link);

/* Bytes that it was given and has not written yet. */
size_t emq_link_get_left(const emq_link *link);

/* Bytes that went out: those of the protocol, also where TLS wraps them. */
uint64_t emq_link_sent(const emq_link *link);

/* Ends it; in a forked child that is no end for the parent. */
void emq_link_drop(emq_link *link);

#endif
