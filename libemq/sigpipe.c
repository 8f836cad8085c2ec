/* SPDX-License-Identifier: Apache-2.0 */
/* Writing without SIGPIPE where it can't be asked for (see socket.c): a TLS library writes by
 * itself, so the signal is held off around the write: it goes to the writing thread alone. */
#include "sigpipe.h"

#include <errno.h>
#include <time.h>

static int is_pending(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

void emq_sigpipe_hold(emq_sigpipe *saved) {
    sigset_t only;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &only, &saved->mask);
    /* one that the host did not block can't be pending in this thread */
    saved->was_pending = sigismember(&saved->mask, SIGPIPE) == 1 && is_pending();
}

/* Takes one SIGPIPE out; the thread's own comes before the process's. Where the host had one
 * pending, it may have been the same one: then it is put back. */
static void take_back(const emq_sigpipe *saved) {
    static const struct timespec at_once = {0, 0};
    sigset_t only;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGPIPE);
    while (sigtimedwait(&only, NULL, &at_once) < 0 && errno == EINTR) {
    }
    if (saved->was_pending && !is_pending()) {
        (void)raise(SIGPIPE);
    }
}

void emq_sigpipe_release(const emq_sigpipe *saved, int write_failed) {
    int kept = errno;
    if (write_failed) {
        take_back(saved);
    }
    (void)pthread_sigmask(SIG_SETMASK, &saved->mask, NULL);
    errno = kept;
}
