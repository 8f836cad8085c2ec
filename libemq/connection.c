/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronous transport: a non-blocking hiredis context driven by poll. */
#include "connection.h"

#include <emq/error.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "line.h"
#include "result.h"
#include "socket.h"
#include "tls.h"

/* What is kept of the memory for requests from call to call. */
#define REQUEST_KEPT ((size_t)64 * 1024)

/* What goes on while an exchange lasts. */
typedef struct exchange {
    redisContext *context;
    struct ssl_st *ssl;
    const char *request;
    size_t length;
    size_t sent;        /* bytes of it */
    const size_t *ends; /* where each command ends; NULL when it does not matter */
    redisReply **replies;
    int count; /* of commands, and of replies */
    int received;
    emq_batch *batch; /* who is told of its replies, or NULL */
    int is_sent;      /* the request to its last byte */
    int is_refused;   /* the last reply was an error */
    int is_first;     /* on this connection */
    int is_pushed_to; /* more may come than was asked for */
    emq_text *error;
} exchange;

int emq_connection_open(emq_connection *connection, const emq_endpoint *endpoint,
                        emq_deadline deadline, emq_text *error) {
    int fd = -1;
    int result = emq_dial(&fd, endpoint, deadline, error);
    if (result != EMQ_OK) {
        return result;
    }
    redisContext *context = redisConnectFd(fd);
    if (context == NULL || context->err != 0) {
        if (context != NULL) {
            (void)redisFreeKeepFd(context);
        }
        (void)close(fd);
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    context->flags &= ~REDIS_BLOCK;
    connection->context = context;
    connection->ssl = NULL;
    connection->is_fresh = 1;
    emq_limits_set(&connection->limits, context->reader);
    return EMQ_OK;
}

void emq_connection_close(emq_connection *connection) {
    if (connection->context != NULL) {
        redisFree(connection->context);
        connection->context = NULL;
        connection->ssl = NULL;
    }
    emq_buffer_clear(&connection->request);
}

int emq_connection_start_tls(emq_connection *connection, const emq_client_options *options,
                             emq_deadline deadline, emq_text *error) {
    struct ssl_st *ssl = NULL;
    int wanted = 0;
    int result = emq_tls_make(&ssl, options, 0, error);
    if (result == EMQ_OK) {
        result = emq_tls_begin(ssl, connection->context, options, error);
    }
    if (result == EMQ_OK) {
        connection->ssl = ssl;
        result = emq_tls_step(connection->ssl, &wanted, error);
    }
    while (result == EMQ_OK && wanted != 0) {
        int is_late = emq_deadline_left_ms(deadline) == 0;
        int events = is_late ? 0 : emq_poll(connection->context->fd, (short)wanted, deadline);
        if (events == 0) {
            return emq_text_fail(error, EMQ_ETIMEOUT, "the TLS handshake did not end in time");
        }
        if (events < 0) {
            return emq_text_fail(error, EMQ_ESYSTEM, "poll failed (errno %d)", errno);
        }
        result = emq_tls_step(connection->ssl, &wanted, error);
    }
    return result;
}

static int read_some(const exchange *x) {
    return x->ssl == NULL ? redisBufferRead(x->context) : emq_tls_read(x->ssl, x->context);
}

/* With TLS 1.3 a server refuses a client behind the handshake. EMQ_OK when it did not. */
static int find_tls_refusal(const exchange *x) {
    const char *alert = x->is_first && x->ssl != NULL ? emq_tls_get_alert(x->ssl) : NULL;
    return alert == NULL ? EMQ_OK : emq_text_fail(x->error, EMQ_ETLS, EMQ_TLS_REFUSAL_TEXT, alert);
}

/* The failure that a server's error stands for which answers no request of ours. */
static int fail_turned_away(const exchange *x, const redisReply *reply) {
    return emq_text_fail_bytes(x->error, emq_result_of_error(reply->str, reply->len), reply->str,
                               reply->len);
}

static int fail_lost(const exchange *x) {
    /* a server that turns a connection away says why and closes it */
    if (x->is_first && x->received == 1 && x->count > 1 && x->is_refused) {
        return fail_turned_away(x, x->replies[0]);
    }
    int result = find_tls_refusal(x);
    if (result != EMQ_OK) {
        return result;
    }
    if (!x->is_sent) {
        return emq_text_fail(x->error, EMQ_ECONNECT,
                             "the connection was lost before the request was sent whole");
    }
    return emq_text_fail(x->error, EMQ_ECONNLOST, "the connection was lost before the answer: %s",
                         x->context->errstr);
}

/* What a failed call on the context stands for, hiredis's or one of socket.h. */
static int fail_context(const exchange *x) {
    switch (x->context->err) {
    case REDIS_ERR_PROTOCOL:
        return emq_text_fail(x->error, EMQ_EPROTOCOL, "%s", x->context->errstr);
    case REDIS_ERR_OOM:
        return emq_limits_exceeded(x->context->reader)
                   ? emq_text_fail(x->error, EMQ_EPROTOCOL,
                                   "the peer announced more than %d elements, or too deep ones",
                                   EMQ_ELEMENTS_MAX)
                   : emq_text_fail_plain(x->error, EMQ_ENOMEM);
    default:
        return fail_lost(x);
    }
}

/* An answer to a request that has not been sent whole can only be a refusal. */
static int is_early(const exchange *x, const redisReply *reply) {
    return x->ends != NULL && x->ends[x->received] > x->sent && reply->type != REDIS_REPLY_ERROR;
}

/* Takes the replies that are complete. */
static int take_replies(exchange *x) {
    while (x->received < x->count) {
        void *reply = NULL;
        if (redisGetReplyFromReader(x->context, &reply) != REDIS_OK) {
            return fail_context(x);
        }
        if (reply == NULL) {
            break;
        }
        if (is_early(x, reply)) {
            freeReplyObject(reply);
            return emq_text_fail(x->error, EMQ_EPROTOCOL, "the peer answered before it was asked");
        }
        x->is_refused = ((redisReply *)reply)->type == REDIS_REPLY_ERROR;
        x->replies[x->received++] = reply;
        if (x->batch != NULL) {
            x->batch->on_reply(x->batch, x->received - 1);
        }
    }
    return EMQ_OK;
}

/* Reads what is there and takes the replies. */
static int receive(exchange *x) {
    char bytes[EMQ_SOCKET_READ];
    size_t got = 0;
    int result = EMQ_OK;
    if (x->ssl != NULL) {
        return read_some(x) == REDIS_OK ? take_replies(x) : fail_context(x);
    }
    if (emq_socket_receive(x->context, bytes, sizeof(bytes), &got) != REDIS_OK) {
        return fail_context(x);
    }
    for (size_t at = 0; at < got && result == EMQ_OK;) {
        result = emq_socket_feed(x->context, bytes, got, &at) == REDIS_OK ? take_replies(x)
                                                                          : fail_context(x);
    }
    return result;
}

static int has_unread_bytes(const redisContext *context) {
    return context->reader->pos < context->reader->len;
}

/* What a server says that turns a connection away before anything was asked: that failure, or
 * EMQ_OK when it said something else. */
static int read_farewell(const exchange *x) {
    void *reply = NULL;
    if (redisGetReplyFromReader(x->context, &reply) != REDIS_OK || reply == NULL) {
        return EMQ_OK;
    }
    const redisReply *farewell = reply;
    int result = farewell->type == REDIS_REPLY_ERROR ? fail_turned_away(x, farewell) : EMQ_OK;
    freeReplyObject(reply);
    return result;
}

/* Before anything is sent there is nothing to read: an end here is known to have done nothing, and
 * bytes belong to no request of ours, so they must not be taken for an answer. */
static int check_quiet(const exchange *x) {
    struct pollfd waited = {x->context->fd, POLLIN, 0};
    int ready = poll(&waited, 1, 0);
    if (ready == 0 || (ready < 0 && errno == EINTR)) {
        return EMQ_OK;
    }
    if (ready < 0) {
        return emq_text_fail(x->error, EMQ_ESYSTEM, "poll failed (errno %d)", errno);
    }
    if (read_some(x) != REDIS_OK) {
        int refusal = find_tls_refusal(x);
        return refusal != EMQ_OK
                   ? refusal
                   : emq_text_fail(x->error, EMQ_ECONNECT,
                                   "the connection was closed before anything was sent");
    }
    if (x->ssl != NULL && !has_unread_bytes(x->context)) {
        return EMQ_OK; /* what came was TLS's own: session tickets, for one */
    }
    int result = x->is_first ? read_farewell(x) : EMQ_OK;
    if (result != EMQ_OK) {
        return result;
    }
    return emq_text_fail(x->error, EMQ_EPROTOCOL, "the peer sent bytes that nothing asked for");
}

static int check_size(const emq_line *lines, int count, emq_text *error) {
    for (int i = 0; i < count; i++) {
        if (!emq_line_fits(&lines[i])) {
            return emq_text_fail(error, EMQ_ETOOBIG, "the request is larger than %zu bytes",
                                 EMQ_REQUEST_MAX);
        }
    }
    return EMQ_OK;
}

static int send_some(exchange *x) {
    const char *bytes = x->request + x->sent;
    size_t left = x->length - x->sent;
    size_t sent = 0;
    int failed =
        (x->ssl == NULL ? emq_socket_send(x->context, bytes, left, &sent)
                        : emq_tls_write(x->ssl, x->context, bytes, left, &sent)) != REDIS_OK;
    x->sent += sent;
    x->is_sent = x->sent == x->length;
    return failed ? fail_context(x) : EMQ_OK;
}

/* One turn: waits, reads first (so that a refusal is seen before the write fails), then writes. */
static int turn(exchange *x, emq_deadline deadline) {
    short wanted = (short)(x->is_sent ? POLLIN : POLLIN | POLLOUT);
    int events =
        emq_deadline_left_ms(deadline) > 0 ? emq_poll(x->context->fd, wanted, deadline) : 0;
    if (events == 0) {
        return emq_text_fail_plain(x->error, EMQ_ETIMEOUT);
    }
    if (events < 0) {
        return emq_text_fail(x->error, EMQ_ESYSTEM, "poll failed (errno %d)", errno);
    }
    int result = EMQ_OK;
    if ((events & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0) {
        result = receive(x);
    }
    if (result == EMQ_OK && !x->is_sent && x->received < x->count && (events & POLLOUT) != 0) {
        result = send_some(x);
    }
    return result;
}

static int converse(exchange *x, emq_deadline deadline) {
    int result = send_some(x);
    while (result == EMQ_OK && x->received < x->count) {
        result = turn(x, deadline);
    }
    if (result != EMQ_OK) {
        return result;
    }
    if (!x->is_pushed_to && has_unread_bytes(x->context)) {
        return emq_text_fail(x->error, EMQ_EPROTOCOL, "the peer answered more than was asked");
    }
    /* an answer to a request that has not been sent whole can only be a refusal */
    if (!x->is_sent && !x->is_refused) {
        return emq_text_fail(x->error, EMQ_EPROTOCOL, "the peer answered before it was asked");
    }
    return EMQ_OK;
}

static void free_replies(exchange *x) {
    for (int i = 0; i < x->received; i++) {
        freeReplyObject(x->replies[i]);
        x->replies[i] = NULL;
    }
}

/* What is there before the first byte is sent must be nothing; then the conversation. */
static int run_exchange(emq_connection *connection, exchange *x, emq_deadline deadline) {
    for (int i = 0; i < x->count; i++) {
        x->replies[i] = NULL;
    }
    int result = check_quiet(x);
    connection->is_fresh = 0;
    return result == EMQ_OK ? converse(x, deadline) : result;
}

/* A connection that was opened before a fork is the parent's: not a byte of it, nor a close. */
static int is_anothers(const emq_connection *connection) {
    return emq_owner_is_other(&connection->owner);
}

/* Makes the request of the lines, behind what is left of the last one. */
static int encode(emq_connection *connection, exchange *x, const emq_line *lines, int count) {
    emq_buffer *buffer = &connection->request;
    int result = EMQ_OK;
    for (int i = 0; i < count && result == EMQ_OK; i++) {
        result = emq_buffer_append_line(buffer, &lines[i]);
    }
    x->request = buffer->bytes;
    x->length = buffer->length;
    return result == EMQ_OK ? EMQ_OK : emq_text_fail_plain(x->error, result);
}

/* The first request on a connection may hold a password. */
static void let_go_of_request(emq_connection *connection, const exchange *x) {
    connection->request.length = 0;
    if (x->is_first) {
        emq_buffer_wipe(&connection->request);
    } else if (connection->request.capacity > REQUEST_KEPT) {
        emq_buffer_clear(&connection->request);
    }
}

static int exchange_lines(emq_connection *connection, exchange *x, const emq_line *lines,
                          emq_deadline deadline) {
    for (int i = 0; i < x->count; i++) {
        x->replies[i] = NULL;
    }
    if (is_anothers(connection)) {
        return emq_text_fail_plain(x->error, EMQ_EFORKED);
    }
    if (x->context == NULL) {
        return emq_text_fail_plain(x->error, EMQ_ECLOSED);
    }
    int result = check_size(lines, x->count, x->error);
    if (result != EMQ_OK) {
        return result;
    }
    result = encode(connection, x, lines, x->count);
    if (result == EMQ_OK) {
        result = run_exchange(connection, x, deadline);
    }
    let_go_of_request(connection, x);
    if (result != EMQ_OK) {
        free_replies(x);
    }
    if (result != EMQ_OK || !x->is_sent) {
        emq_connection_close(connection);
    }
    return result;
}

int emq_connection_exchange(emq_connection *connection, const emq_line *lines, int count,
                            redisReply **replies, emq_deadline deadline, emq_text *error) {
    exchange x = {.context = connection->context,
                  .ssl = connection->ssl,
                  .replies = replies,
                  .count = count,
                  .is_first = connection->is_fresh,
                  .error = error};
    return exchange_lines(connection, &x, lines, deadline);
}

int emq_connection_subscribe(emq_connection *connection, const emq_line *line, redisReply **reply,
                             emq_deadline deadline, emq_text *error) {
    exchange x = {.context = connection->context,
                  .ssl = connection->ssl,
                  .replies = reply,
                  .count = 1,
                  .is_first = connection->is_fresh,
                  .is_pushed_to = 1,
                  .error = error};
    return exchange_lines(connection, &x, line, deadline);
}

int emq_connection_post(emq_connection *connection, const emq_line *line, emq_text *error) {
    exchange x = {
        .context = connection->context, .ssl = connection->ssl, .count = 1, .error = error};
    if (x.context == NULL) {
        return emq_text_fail_plain(error, EMQ_ECLOSED);
    }
    int result = encode(connection, &x, line, 1);
    if (result == EMQ_OK) {
        result = send_some(&x);
        emq_buffer_drop(&connection->request, x.sent);
    }
    if (result != EMQ_OK) {
        emq_connection_close(connection);
    }
    return result == EMQ_ECONNECT ? EMQ_ECONNLOST : result;
}

/* Takes one thing that has come in whole; EMQ_EMPTY when there is none. */
static int take_pushed(const exchange *x) {
    void *reply = NULL;
    if (redisGetReplyFromReader(x->context, &reply) != REDIS_OK) {
        return fail_context(x);
    }
    x->replies[0] = reply;
    if (reply == NULL && x->context->reader->len - x->context->reader->pos > EMQ_PUSH_MAX) {
        return emq_text_fail(x->error, EMQ_EPROTOCOL, "the peer pushed more than %zu bytes at once",
                             EMQ_PUSH_MAX);
    }
    return reply == NULL ? EMQ_EMPTY : EMQ_OK;
}

/* Waits for bytes and reads them; EMQ_EMPTY when there are none before the deadline. */
static int read_pushed(const exchange *x, emq_deadline deadline) {
    int events = emq_poll(x->context->fd, POLLIN, deadline);
    if (events < 0) {
        return emq_text_fail(x->error, EMQ_ESYSTEM, "poll failed (errno %d)", errno);
    }
    if (events == 0) {
        return EMQ_EMPTY;
    }
    return read_some(x) == REDIS_OK ? EMQ_OK : fail_context(x);
}

int emq_connection_receive(emq_connection *connection, redisReply **reply, int *has_read,
                           emq_deadline deadline, emq_text *error) {
    exchange x = {.context = connection->context,
                  .ssl = connection->ssl,
                  .replies = reply,
                  .count = 1,
                  .is_sent = 1,
                  .error = error};
    int is_late = 0;
    int result = EMQ_EMPTY;
    *reply = NULL;
    *has_read = 0;
    if (x.context == NULL) {
        return emq_text_fail_plain(error, EMQ_ECLOSED);
    }
    /* what drips in does not move the deadline, and one look is taken behind it */
    while ((result = take_pushed(&x)) == EMQ_EMPTY && !is_late) {
        is_late = emq_deadline_left_ms(deadline) == 0;
        result = read_pushed(&x, deadline);
        if (result != EMQ_OK) {
            break;
        }
        *has_read = 1;
    }
    if (result < 0) {
        emq_connection_close(connection);
    }
    return result;
}

int emq_connection_exchange_batch(emq_connection *connection, emq_batch *batch,
                                  emq_deadline deadline, emq_text *error) {
    exchange x = {.context = connection->context,
                  .ssl = connection->ssl,
                  .ends = batch->ends,
                  .replies = batch->replies,
                  .count = batch->count,
                  .request = batch->bytes,
                  .length = batch->length,
                  .batch = batch,
                  .is_first = connection->is_fresh,
                  .error = error};
    batch->received = 0;
    batch->sent = 0;
    if (is_anothers(connection)) {
        return emq_text_fail_plain(error, EMQ_EFORKED);
    }
    if (x.context == NULL) {
        return emq_text_fail_plain(error, EMQ_ECLOSED);
    }
    int result = run_exchange(connection, &x, deadline);
    batch->received = x.received;
    batch->sent = x.sent;
    if (result != EMQ_OK || !x.is_sent) {
        emq_connection_close(connection);
    }
    return result;
}
