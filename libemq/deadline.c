/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, and the one place where libemq waits for a descriptor. */
#include "deadline.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

#define NS_PER_S INT64_C(1000000000)
#define SLICE_MS 50

int64_t emq_now_ns(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* can't fail with this clock */
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

emq_deadline emq_deadline_in(uint32_t ms) {
    return (emq_deadline){emq_now_ns() + (int64_t)ms * EMQ_NS_PER_MS, NULL};
}

static int64_t left_ns(emq_deadline deadline) {
    if (deadline.end != NULL && atomic_load(deadline.end) != 0) {
        return 0;
    }
    int64_t left = deadline.at_ns - emq_now_ns();
    return left > 0 ? left : 0;
}

int emq_deadline_left_ms(emq_deadline deadline) {
    int64_t ms = (left_ns(deadline) + EMQ_NS_PER_MS - 1) / EMQ_NS_PER_MS;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

emq_deadline emq_deadline_share(emq_deadline deadline, int parts) {
    if (parts <= 1) {
        return deadline;
    }
    return (emq_deadline){emq_now_ns() + left_ns(deadline) / parts, deadline.end};
}

emq_deadline emq_deadline_slice(emq_deadline deadline) {
    emq_deadline slice = emq_deadline_in(SLICE_MS);
    return deadline.end == NULL || deadline.at_ns < slice.at_ns ? deadline : slice;
}

struct timespec emq_deadline_timespec(emq_deadline deadline) {
    return (struct timespec){(time_t)(deadline.at_ns / NS_PER_S),
                             (long)(deadline.at_ns % NS_PER_S)};
}

int emq_poll(int fd, short events, emq_deadline deadline) {
    struct pollfd waited = {fd, events, 0};
    for (;;) {
        int ready = poll(&waited, 1, emq_deadline_left_ms(emq_deadline_slice(deadline)));
        if (ready > 0) {
            return waited.revents;
        }
        if (ready < 0 && errno != EINTR) {
            return -1;
        }
        if (emq_deadline_left_ms(deadline) == 0) {
            return 0;
        }
    }
}
