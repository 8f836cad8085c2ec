/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over a socket without TLS. */
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "sigpipe.h"

#define FEED ((size_t)4096)

/* Where the system can't be told to raise no signal, it is held off around the write. */
static ssize_t send_quietly(int fd, const char *bytes, size_t n) {
#ifdef MSG_NOSIGNAL
    return send(fd, bytes, n, MSG_NOSIGNAL);
#else
    emq_sigpipe saved;
    emq_sigpipe_hold(&saved);
    ssize_t sent = send(fd, bytes, n, 0);
    emq_sigpipe_release(&saved, sent < 0);
    return sent;
#endif
}

/* What a call that failed is worth: one that would have had to wait is none. */
static int fail(redisContext *context, const char *what) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return REDIS_OK;
    }
    context->err = REDIS_ERR_IO;
    (void)snprintf(context->errstr, sizeof(context->errstr), "%s failed (errno %d)", what, errno);
    return REDIS_ERR;
}

int emq_socket_send(redisContext *context, const char *bytes, size_t n, size_t *sent) {
    ssize_t result = -1;
    *sent = 0;
    do {
        result = send_quietly(context->fd, bytes, n);
    } while (result < 0 && errno == EINTR);
    if (result >= 0) {
        *sent = (size_t)result;
        return REDIS_OK;
    }
    return fail(context, "a write");
}

int emq_socket_receive(redisContext *context, char *bytes, size_t n, size_t *got) {
    ssize_t result = -1;
    *got = 0;
    do {
        result = recv(context->fd, bytes, n, 0);
    } while (result < 0 && errno == EINTR);
    if (result > 0) {
        *got = (size_t)result;
        return REDIS_OK;
    }
    if (result < 0) {
        return fail(context, "a read");
    }
    context->err = REDIS_ERR_EOF;
    (void)snprintf(context->errstr, sizeof(context->errstr), "Server closed the connection");
    return REDIS_ERR;
}

int emq_socket_feed(redisContext *context, const char *bytes, size_t n, size_t *at) {
    redisReader *reader = context->reader;
    size_t left = n - *at;
    size_t next = left < FEED || reader->len - reader->pos >= FEED ? left : FEED;
    if (redisReaderFeed(reader, bytes + *at, next) != REDIS_OK) {
        context->err = reader->err;
        (void)snprintf(context->errstr, sizeof(context->errstr), "%s", reader->errstr);
        return REDIS_ERR;
    }
    *at += next;
    return REDIS_OK;
}
