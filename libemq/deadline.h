/* SPDX-License-Identifier: Apache-2.0 */
/* One monotonic deadline per call: made once, and never moved by what a peer does. */
#ifndef EMQ_LIBEMQ_DEADLINE_H
#define EMQ_LIBEMQ_DEADLINE_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

typedef struct emq_deadline {
    int64_t at_ns;         /* CLOCK_MONOTONIC */
    const atomic_int *end; /* may be NULL: once it is not 0, the deadline has passed */
} emq_deadline;

#define EMQ_NS_PER_MS INT64_C(1000000)

/* CLOCK_MONOTONIC. */
int64_t emq_now_ns(void);

emq_deadline emq_deadline_in(uint32_t ms);

/* What a call that waits on the server is given beyond its wait: the grain of the server's
 * timeouts, and the way there and back. */
#define EMQ_WAIT_MARGIN_MS 2000

/* What is left, rounded up, so that a poll that waits that long ends behind the deadline; 0 when it
 * has passed. */
int emq_deadline_left_ms(emq_deadline deadline);

/* The deadline of the next of `parts` equal shares of what is left. */
emq_deadline emq_deadline_share(emq_deadline deadline, int parts);

struct timespec emq_deadline_timespec(emq_deadline deadline);

/* How long a wait is at most until it looks again; for a deadline that can be ended: a moment. */
emq_deadline emq_deadline_slice(emq_deadline deadline);

/* Waits for events on a descriptor; a signal does not prolong it. Returns revents, 0 when the
 * deadline passed, or -1 (errno). */
int emq_poll(int fd, short events, emq_deadline deadline);

#endif
