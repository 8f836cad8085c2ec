/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking TCP connection with buffers: what is put goes out in one write at the next read. */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include "bench.h"

typedef struct stream {
    const bench *b;
    int fd;
    char *out;
    size_t out_length;
    size_t out_capacity;
    char *in;
    size_t in_first;
    size_t in_length; /* up to where it is filled */
    size_t in_capacity;
} stream;

void stream_open(stream *s, const bench *b);
void stream_close(stream *s);
void stream_put(stream *s, const void *bytes, size_t n);
void stream_flush(stream *s);

/* The next n bytes. Borrowed until the next call that reads. */
const char *stream_take(stream *s, size_t n);

/* The next line without its CR LF, NUL-terminated. Borrowed likewise. */
const char *stream_take_line(stream *s);

#endif
