/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to a socket without TLS. */
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "sigpipe.h"

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
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return REDIS_OK;
    }
    context->err = REDIS_ERR_IO;
    (void)snprintf(context->errstr, sizeof(context->errstr), "a write failed (errno %d)", errno);
    return REDIS_ERR;
}
