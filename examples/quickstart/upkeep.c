/* SPDX-License-Identifier: Apache-2.0 */
/* The sweeps of a worker: see upkeep.h. Two workers that sweep at once do no harm, but the second
 * one is for nothing: the jitter keeps a fleet that was started at once from doing so for ever. */
#include "upkeep.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_MS 5000
#define LIMIT                                                                                      \
    1000 /* so that a sweep keeps the server for a moment only; the rest is for the next */

/* A job that was in hand when this many workers died, one after the other, is likely the reason. */
#define MAX_STALLED 3

static int64_t now_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t draw_ms(upkeep *u, int64_t most) {
    return rand_r(&u->seed) % most;
}

void upkeep_init(upkeep *u) {
    u->seed = (unsigned)getpid() ^ (unsigned)time(NULL);
    u->due_at_ms = now_ms() + draw_ms(u, INTERVAL_MS);
}

int upkeep_run(upkeep *u, session *s) {
    int64_t now = now_ms();
    if (now < u->due_at_ms) {
        return 0;
    }
    u->due_at_ms = now + INTERVAL_MS / 2 + draw_ms(u, INTERVAL_MS);
    retry tries = RETRY_INIT;
    int64_t moved = 0;
    int result = 0;
    do {
        /* whose jobs they were is of no interest here: two NULLs */
        result = emq_stalled_check(NULL, NULL, s->client, s->queue, MAX_STALLED, LIMIT);
        if (result == EMQ_OK) {
            result = emq_promote(&moved, s->client, s->queue, LIMIT);
        }
    } while (session_try_again(s, &tries, result));
    if (result < 0 && session_stop == 0) {
        session_report(s, "cannot sweep the queue", result);
    }
    return result < 0 ? -1 : 0;
}
