/* SPDX-License-Identifier: Apache-2.0 */
/* Writing without SIGPIPE reaching the host process, whatever the host does with that signal. */
#ifndef EMQ_LIBEMQ_SIGPIPE_H
#define EMQ_LIBEMQ_SIGPIPE_H

#include <signal.h>

typedef struct emq_sigpipe {
    sigset_t mask; /* the host's */
    int was_pending;
} emq_sigpipe;

/* Blocks SIGPIPE in this thread. */
void emq_sigpipe_hold(emq_sigpipe *saved);

/* Takes back what a failed write raised, and gives the host its mask as it was. errno is kept. */
void emq_sigpipe_release(const emq_sigpipe *saved, int write_failed);

#endif
