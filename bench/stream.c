/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking TCP connection with buffers. */
#include "stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_AT_ONCE 16384 /* as hiredis does */

void stream_open(stream *s, const bench *b) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)b->port)};
    const int on = 1;
    *s = (stream){.b = b, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    bench_check(b, s->fd >= 0, "no socket");
    (void)inet_pton(AF_INET, b->host == NULL ? "127.0.0.1" : b->host, &address.sin_addr);
    (void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(s->fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        bench_die(b, "cannot connect: %s", strerror(errno));
    }
}

void stream_close(stream *s) {
    (void)close(s->fd);
    free(s->out);
    free(s->in);
}

static void grow(const stream *s, char **buffer, size_t *capacity, size_t wanted) {
    if (wanted > *capacity) {
        size_t next = *capacity * 2 > wanted ? *capacity * 2 : wanted;
        char *grown = realloc(*buffer, next);
        bench_check(s->b, grown != NULL, "no memory");
        *buffer = grown;
        *capacity = next;
    }
}

void stream_put(stream *s, const void *bytes, size_t n) {
    grow(s, &s->out, &s->out_capacity, s->out_length + n);
    memcpy(s->out + s->out_length, bytes, n);
    s->out_length += n;
}

void stream_flush(stream *s) {
    size_t sent = 0;
    while (sent < s->out_length) {
        ssize_t n = write(s->fd, s->out + sent, s->out_length - sent);
        if (n <= 0) {
            bench_die(s->b, "the connection was lost: %s", strerror(errno));
        }
        sent += (size_t)n;
    }
    s->out_length = 0;
}

static void read_more(stream *s) {
    stream_flush(s);
    if (s->in != NULL && s->in_first > 0) {
        memmove(s->in, s->in + s->in_first, s->in_length - s->in_first);
        s->in_length -= s->in_first;
        s->in_first = 0;
    }
    grow(s, &s->in, &s->in_capacity, s->in_length + READ_AT_ONCE);
    ssize_t n = read(s->fd, s->in + s->in_length, READ_AT_ONCE);
    if (n <= 0) {
        bench_die(s->b, "the connection was lost: %s", n == 0 ? "closed" : strerror(errno));
    }
    s->in_length += (size_t)n;
}

const char *stream_take(stream *s, size_t n) {
    while (s->in_length - s->in_first < n) {
        read_more(s);
    }
    s->in_first += n;
    return s->in + s->in_first - n;
}

const char *stream_take_line(stream *s) {
    char *end = NULL;
    size_t looked = 0;
    while (s->in == NULL || (end = memchr(s->in + s->in_first + looked, '\n',
                                          s->in_length - s->in_first - looked)) == NULL) {
        looked = s->in_length - s->in_first;
        read_more(s);
    }
    const char *line = s->in + s->in_first;
    *end = '\0';
    if (end > line && end[-1] == '\r') {
        end[-1] = '\0';
    }
    s->in_first = (size_t)(end + 1 - s->in);
    return line;
}
