/* SPDX-License-Identifier: Apache-2.0 */
/* One connection on a loop: a non-blocking hiredis context under uv_poll. */
#include <emq/error.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "async_session.h"
#include "decode.h"
#include "memory.h"
#include "result.h"
#include "socket.h"
#include "tls.h"

/* What is left of a buffer is moved after each write, so it is filled slice by slice. */
#define SLICE ((size_t)256 * 1024)
#define TLS_SLICE ((size_t)16 * 1024) /* one record: a write takes no more than that */
#define SLICES_AT_ONCE 16             /* then the loop's other handles have their turn */
#define READS_AT_ONCE 256

static void on_events(uv_poll_t *poll, int status, int events);

/* Whether the socket is watched for these events from now on. */
static int watch(emq_link *link, int events) {
    if (events != link->events) {
        if (uv_poll_start(&link->poll, events, on_events) != 0) {
            return 0;
        }
        link->events = events;
    }
    return 1;
}

int emq_link_open(emq_session *session, int fd) {
    emq_link *link = emq_calloc(1, sizeof(*link));
    if (link == NULL) {
        (void)close(fd);
        return EMQ_ENOMEM;
    }
    if (uv_poll_init(session->loop, &link->poll, fd) != 0) {
        (void)close(fd);
        emq_free(link);
        return EMQ_ESYSTEM;
    }
    link->session = session;
    link->fd = fd;
    link->poll.data = link;
    session->handles++;
    session->link = link;
    return watch(link, UV_WRITABLE) ? EMQ_OK : EMQ_ESYSTEM;
}

int emq_link_adopt(emq_link *link) {
    redisContext *context = redisConnectFd(link->fd);
    if (context == NULL || context->err != 0) {
        if (context != NULL) {
            (void)redisFreeKeepFd(context);
        }
        return EMQ_ENOMEM;
    }
    context->flags &= ~REDIS_BLOCK;
    emq_limits_set(&link->limits, context->reader);
    link->context = context;
    return EMQ_OK;
}

int emq_link_start_tls(emq_link *link) {
    emq_session *session = link->session;
    struct ssl_st *ssl = session->ssl;
    session->ssl = NULL;
    int result = emq_tls_begin(ssl, link->context, session->aim, &session->error);
    link->ssl = result == EMQ_OK ? ssl : NULL;
    return result;
}

int emq_link_shake(emq_link *link, int *is_done) {
    int wanted = 0;
    int result = emq_tls_step(link->ssl, &wanted, &link->session->error);
    *is_done = result == EMQ_OK && wanted == 0;
    if (result == EMQ_OK && !watch(link, wanted == POLLOUT ? UV_WRITABLE : UV_READABLE)) {
        result = emq_text_fail_plain(&link->session->error, EMQ_ESYSTEM);
    }
    return result;
}

static void on_closed(uv_handle_t *handle) {
    emq_link *link = handle->data;
    emq_session *session = link->session;
    if (link->context != NULL) {
        redisFree(link->context);
    } else if (link->fd >= 0) {
        (void)close(link->fd);
    }
    emq_buffer_wipe(&link->out); /* a password may not have gone out */
    emq_free(link);
    emq_session_handle_closed(session);
}

/* Until uv_loop_fork is called, a child's loop waits on the very epoll instance that the parent's
 * does, and libuv would take the socket out of it. It can't when the child's descriptor is gone. */
static void leave_to_parent(emq_link *link) {
    (void)close(link->fd);
    link->fd = -1;
    if (link->context != NULL) {
        link->context->fd = -1;
    }
}

/* The context stays until the loop comes round: its replies may be being read. */
void emq_link_drop(emq_link *link) {
    link->is_dropped = 1;
    if (emq_session_is_anothers(link->session)) {
        leave_to_parent(link);
    }
    uv_close((uv_handle_t *)&link->poll, on_closed);
}

size_t emq_link_get_left(const emq_link *link) {
    return link->out.length;
}

uint64_t emq_link_sent(const emq_link *link) {
    return link->given - link->out.length;
}

static void lose_plain(emq_link *link, int result) {
    emq_session_lose(link->session, emq_text_fail_plain(&link->session->error, result));
}

/* With TLS 1.3 a server refuses a client behind the handshake. */
static void lose_lost(emq_link *link) {
    emq_session *session = link->session;
    int is_refusal_possible = link->ssl != NULL && session->stage != EMQ_STAGE_OPEN;
    const char *alert = is_refusal_possible ? emq_tls_get_alert(link->ssl) : NULL;
    int result = alert != NULL
                     ? emq_text_fail(&session->error, EMQ_ETLS, EMQ_TLS_REFUSAL_TEXT, alert)
                     : emq_text_fail(&session->error, EMQ_ECONNLOST, "the connection was lost: %s",
                                     link->context->errstr);
    emq_session_lose(session, result);
}

/* The failure that a failed call on the context stands for, hiredis's or one of socket.h. */
static void lose_context(emq_link *link) {
    emq_session *session = link->session;
    const redisContext *context = link->context;
    const emq_ask *ask = &session->ask;
    if (context->err == REDIS_ERR_PROTOCOL) {
        emq_session_lose(session,
                         emq_text_fail(&session->error, EMQ_EPROTOCOL, "%s", context->errstr));
    } else if (context->err == REDIS_ERR_OOM && emq_limits_exceeded(context->reader)) {
        emq_session_lose(session,
                         emq_text_fail(&session->error, EMQ_EPROTOCOL,
                                       "the peer announced more than %d elements, or too deep ones",
                                       EMQ_ELEMENTS_MAX));
    } else if (context->err == REDIS_ERR_OOM) {
        lose_plain(link, EMQ_ENOMEM);
    } else if (session->stage == EMQ_STAGE_ASKING && link->replies == 1 && session->asked == 1 &&
               ask->replies[0]->type == REDIS_REPLY_ERROR) {
        /* a server that turns a connection away says why and closes it */
        const redisReply *farewell = ask->replies[0];
        emq_session_lose(session,
                         emq_text_fail_bytes(&session->error,
                                             emq_result_of_error(farewell->str, farewell->len),
                                             farewell->str, farewell->len));
    } else {
        lose_lost(link);
    }
}

static int is_work_left(const emq_link *link) {
    const emq_session *session = link->session;
    return emq_link_get_left(link) > 0 ||
           (session->stage == EMQ_STAGE_OPEN && session->hooks->has_more != NULL &&
            session->hooks->has_more(session));
}

/* Watching for what a write does not wait for would have the loop spin. */
static void watch_for_more(emq_link *link) {
    int is_writable_wanted =
        (is_work_left(link) && link->write_waits != POLLIN) || link->read_waits == POLLOUT;
    if (!watch(link, is_writable_wanted ? UV_READABLE | UV_WRITABLE : UV_READABLE)) {
        lose_plain(link, EMQ_ESYSTEM);
    }
}

/* Reading. */

static int is_full(const emq_session *session) {
    return session->hooks->is_full != NULL && session->hooks->is_full(session);
}

static void check_unread(emq_link *link) {
    const redisReader *reader = link->context->reader;
    size_t most = link->session->hooks->unread_max;
    if (most != 0 && reader->len - reader->pos > most) {
        emq_session_lose(link->session,
                         emq_text_fail(&link->session->error, EMQ_EPROTOCOL,
                                       "the peer pushed more than %zu bytes at once", most));
    }
}

static void take_replies(emq_link *link) {
    emq_session *session = link->session;
    while (!link->is_dropped && !is_full(session)) {
        void *reply = NULL;
        if (redisGetReplyFromReader(link->context, &reply) != REDIS_OK) {
            lose_context(link);
            return;
        }
        if (reply == NULL) {
            check_unread(link);
            return;
        }
        link->replies++;
        if (session->stage == EMQ_STAGE_OPEN) {
            session->hooks->take_reply(session, reply);
        } else {
            emq_session_take_step_reply(session, reply);
        }
    }
}

void emq_link_take_more(emq_link *link) {
    take_replies(link);
}

static int receive_with_tls(emq_link *link, size_t *got) {
    size_t before = link->context->reader->len;
    int result = emq_tls_read(link->ssl, link->context);
    link->read_waits = emq_tls_get_wanted(link->ssl);
    *got = link->context->reader->len - before;
    link->session->bytes_in += *got;
    if (result == REDIS_OK && *got > 0) {
        take_replies(link);
    }
    return result;
}

static int receive_plain(emq_link *link, size_t *got) {
    char bytes[EMQ_SOCKET_READ];
    int result = emq_socket_receive(link->context, bytes, sizeof(bytes), got);
    link->session->bytes_in += *got;
    for (size_t at = 0; result == REDIS_OK && at < *got && !link->is_dropped;) {
        result = emq_socket_feed(link->context, bytes, *got, &at);
        if (result == REDIS_OK) {
            take_replies(link);
        }
    }
    return result;
}

/* Reads what is there, once, and takes its replies; returns whether anything was. An end of the
 * connection is taken note of. */
static int receive(emq_link *link) {
    size_t got = 0;
    int result = link->ssl != NULL ? receive_with_tls(link, &got) : receive_plain(link, &got);
    if (result != REDIS_OK) {
        lose_context(link);
    }
    return got > 0;
}

void emq_link_catch_up(emq_link *link) {
    for (int i = 0; i < READS_AT_ONCE && !link->is_dropped && !is_full(link->session); i++) {
        if (!receive(link)) {
            break;
        }
    }
    if (!link->is_dropped) {
        watch_for_more(link);
    }
}

static void lose_silently(emq_link *link) {
    emq_session_lose(link->session, emq_text_fail(&link->session->error, EMQ_ECONNLOST,
                                                  "the connection was lost"));
}

/* What the peer still said before the connection ended counts, as far as the owner takes it. */
static void receive_the_rest(emq_link *link) {
    link->context->err = 0; /* of a write; nothing is sent any more */
    while (!link->is_dropped) {
        if ((is_full(link->session) || !receive(link)) && !link->is_dropped) {
            lose_silently(link);
        }
    }
}

/* Writing. */

int emq_link_give(emq_link *link, const char *bytes, size_t n) {
    int result = emq_buffer_append(&link->out, bytes, n);
    link->given += result == EMQ_OK ? n : 0;
    return result;
}

int emq_link_add(emq_link *link, const emq_line *line) {
    size_t before = link->out.length;
    int result = emq_buffer_append_line(&link->out, line);
    link->given += link->out.length - before;
    return result;
}

/* Has the owner give the next bytes to write, a slice at most. */
static int fill(emq_link *link) {
    emq_session *session = link->session;
    return session->stage == EMQ_STAGE_OPEN && session->hooks->fill != NULL
               ? session->hooks->fill(session, link->ssl != NULL ? TLS_SLICE : SLICE)
               : EMQ_OK;
}

/* Before the first request on a quiet connection is sent there is nothing to read: an end that is
 * known now has done nothing. */
static int has_ended_quietly(emq_link *link) {
    struct pollfd waited = {link->fd, POLLIN, 0};
    const emq_session *session = link->session;
    if (session->stage != EMQ_STAGE_OPEN || session->hooks->is_quiet == NULL ||
        !session->hooks->is_quiet(session) || link->is_just_read || poll(&waited, 1, 0) <= 0) {
        return 0;
    }
    (void)receive(link);
    return link->is_dropped;
}

static int write_bytes(emq_link *link, size_t *sent) {
    if (link->ssl == NULL) {
        return emq_socket_send(link->context, link->out.bytes, link->out.length, sent);
    }
    int result = emq_tls_write(link->ssl, link->context, link->out.bytes, link->out.length, sent);
    link->write_waits = emq_tls_get_wanted(link->ssl);
    return result;
}

/* Writes once; returns 0 when the connection has ended. */
static int write_some(emq_link *link, int *is_empty) {
    size_t sent = 0;
    int result = write_bytes(link, &sent);
    emq_buffer_drop(&link->out, sent);
    link->session->bytes_out += sent;
    *is_empty = link->out.length == 0;
    if (*is_empty && link->session->stage != EMQ_STAGE_OPEN) {
        emq_buffer_wipe(&link->out); /* it may have held a password */
    }
    return result == REDIS_OK;
}

int emq_link_is_busy(const emq_link *link) {
    return (link->events & UV_WRITABLE) != 0 || link->write_waits == POLLIN;
}

void emq_link_flush(emq_link *link) {
    if (has_ended_quietly(link)) {
        return;
    }
    for (int i = 0, is_empty = 1; i < SLICES_AT_ONCE && is_empty && is_work_left(link); i++) {
        if (fill(link) != EMQ_OK) {
            lose_plain(link, EMQ_ENOMEM);
            return;
        }
        if (!write_some(link, &is_empty)) {
            receive_the_rest(link); /* the peer may have ended it, and have said why */
            return;
        }
    }
    watch_for_more(link);
}

static void handle_events(emq_link *link, int events) {
    if ((events & UV_READABLE) != 0 || link->read_waits == POLLOUT) {
        (void)receive(link);
        link->is_just_read = 1;
    }
    /* with TLS a read may be what a write has waited for, or wait for a write itself */
    if (((events & UV_WRITABLE) != 0 || link->ssl != NULL) && !link->is_dropped) {
        emq_link_flush(link);
    }
}

/* libuv stops the handle when the socket has an error, and says so in `status`. */
static void on_events(uv_poll_t *handle, int status, int events) {
    emq_link *link = handle->data;
    emq_session *session = link->session;
    if (emq_session_is_anothers(session)) {
        emq_session_drop(session);
        return;
    }
    link->events = status != 0 ? 0 : link->events;
    if (link->context == NULL) {
        emq_session_on_connected(session);
    } else if (session->stage == EMQ_STAGE_SHAKING) {
        emq_session_on_shaking(session);
    } else if (status != 0) {
        receive_the_rest(link);
    } else {
        handle_events(link, events);
    }
    emq_session_settle(session);
    link->is_just_read = 0; /* dropped or not: it lives until the loop comes round */
}
