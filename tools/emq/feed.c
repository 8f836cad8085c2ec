/* SPDX-License-Identifier: Apache-2.0 */
/* Records of standard input: see feed.h. */
#include "feed.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 * 1024)

void feed_init(feed *f, int fd, char end_of_record, size_t most) {
    memset(f, 0, sizeof(*f));
    f->fd = fd;
    f->end_of_record = end_of_record;
    f->most = most;
}

void feed_clear(feed *f) {
    free(f->bytes);
    f->bytes = NULL;
}

/* Room for one more read behind what is there. */
static int make_room(feed *f) {
    if (f->start > 0 && f->bytes != NULL) {
        memmove(f->bytes, f->bytes + f->start, f->length - f->start);
        f->length -= f->start;
        f->start = 0;
    }
    if (f->capacity - f->length >= READ_BYTES) {
        return 1;
    }
    size_t capacity = f->capacity == 0 ? 2 * READ_BYTES : f->capacity * 2;
    char *bytes = realloc(f->bytes, capacity);
    if (bytes == NULL) {
        errno = ENOMEM;
        return 0;
    }
    f->bytes = bytes;
    f->capacity = capacity;
    return 1;
}

static int is_readable(const feed *f) {
    struct pollfd one = {.fd = f->fd, .events = POLLIN};
    return poll(&one, 1, 0) != 0; /* an error is the read's to tell */
}

static feed_result read_more(feed *f) {
    if (!make_room(f)) {
        return FEED_ERROR;
    }
    ssize_t n = read(f->fd, f->bytes + f->length, READ_BYTES);
    if (n < 0) {
        return errno == EINTR ? FEED_STOPPED : FEED_ERROR;
    }
    f->at_end = n == 0;
    f->length += (size_t)n;
    return FEED_RECORD;
}

static void take(feed *f, const char **record, size_t *n, size_t length, size_t end) {
    *record = f->bytes + f->start;
    *n = length;
    f->start += length + end;
    f->seen = 0;
}

feed_result feed_next(feed *f, const char **record, size_t *n, int may_wait) {
    for (;;) {
        size_t there = f->length - f->start;
        const char *at = f->bytes == NULL ? "" : f->bytes + f->start;
        const char *end = memchr(at + f->seen, f->end_of_record, there - f->seen);
        size_t length = end == NULL ? there : (size_t)(end - at);
        if (length > f->most) {
            return FEED_TOO_BIG;
        }
        if (end != NULL || (f->at_end && there > 0)) {
            take(f, record, n, length, end != NULL);
            return FEED_RECORD;
        }
        f->seen = there;
        if (f->at_end) {
            return FEED_END;
        }
        if (!may_wait && !is_readable(f)) {
            return FEED_WAIT;
        }
        feed_result result = read_more(f);
        if (result != FEED_RECORD) {
            return result;
        }
    }
}
