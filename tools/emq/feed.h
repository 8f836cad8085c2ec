/* SPDX-License-Identifier: Apache-2.0 */
/* Records of standard input, one after the other, ended by a line break or a NUL. It tells when the
 * next one is not there yet, so that what was read need not wait for it. */
#ifndef EMQ_TOOL_FEED_H
#define EMQ_TOOL_FEED_H

#include <stddef.h>

typedef struct feed {
    int fd;
    char end_of_record;
    size_t most; /* bytes that a record may have */
    char *bytes;
    size_t capacity;
    size_t start; /* of what was not handed out */
    size_t seen;  /* behind start: bytes without an end in them */
    size_t length;
    int at_end;
} feed;

typedef enum feed_result {
    FEED_RECORD,
    FEED_WAIT,    /* none yet; only when not told to wait */
    FEED_END,     /* that was all */
    FEED_TOO_BIG, /* the next record has more than `most` bytes */
    FEED_STOPPED, /* a signal came */
    FEED_ERROR    /* errno tells */
} feed_result;

/* Reads from a descriptor, which stays the caller's. */
void feed_init(feed *f, int fd, char end_of_record, size_t most);

/* The next record, borrowed until the next call. The last one needs no end. */
feed_result feed_next(feed *f, const char **record, size_t *n, int may_wait);

void feed_clear(feed *f);

#endif
