/* SPDX-License-Identifier: Apache-2.0 */
/* SIGTERM and SIGINT, for programs that want that. They are taken by waiting for them: no handler
 * is installed, and nothing global is needed. */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

#define LOOK_MS 100 /* how often it is looked at whether the worker has ended by itself */

static void fill(sigset_t *signals) {
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGTERM);
    (void)sigaddset(signals, SIGINT);
}

int emq_worker_block_signals(void) {
    sigset_t signals;
    fill(&signals);
    return pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0 ? EMQ_OK : EMQ_ESYSTEM;
}

/* Waits a moment for a signal; 1 when there was one, -1 when waiting failed. */
static int take_signal(const sigset_t *signals) {
    const struct timespec moment = {0, LOOK_MS * EMQ_NS_PER_MS};
    if (sigtimedwait(signals, NULL, &moment) > 0) {
        return 1;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static int run(size_t *left, emq_worker *worker, uint32_t deadline_ms, const sigset_t *signals) {
    for (;;) {
        int result = emq_worker_wait(left, worker, 0);
        if (result != EMQ_EMPTY) {
            return result;
        }
        int taken = take_signal(signals);
        if (taken < 0) {
            return EMQ_ESYSTEM;
        }
        if (taken > 0) {
            (void)emq_worker_stop(worker, deadline_ms);
        }
    }
}

int emq_worker_run(size_t *left, emq_worker *worker, uint32_t deadline_ms) {
    sigset_t signals;
    sigset_t saved;
    if (worker == NULL) {
        return EMQ_EINVAL;
    }
    fill(&signals);
    if (pthread_sigmask(SIG_BLOCK, &signals, &saved) != 0) {
        return EMQ_ESYSTEM;
    }
    int result = run(left, worker, deadline_ms, &signals);
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return result;
}
