/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for work: claims that block until their queue may have some.
 *
 * A blocked client looks again whenever a verb adds to its queue's `pending`: the whole claim runs
 * anew, and either answers the client or leaves it where it is. The server serves those who wait in
 * the order of their arrival. A look never signals by itself, or it would wake itself for ever. */
#ifndef EMQ_MODULE_WAIT_H
#define EMQ_MODULE_WAIT_H

#include "call.h"

/* A queue has this many blocked clients at most: what a wake costs grows with the square of their
 * number. */
#define EMQ_WAITERS_MAX 512

/* A wait that begins when the earliest time in `schedule` has passed lasts this long at most. */
#define EMQ_WAIT_OVERDUE_MS 1000

/* A claim found nothing. Blocks its client for at most so many milliseconds on its first declared
 * key, and until the earliest time in `schedule` at most, where the caller may read that; answers
 * the empty array when that is 0, or where blocking is not possible: inside MULTI, a script or
 * another module's call, on a subscribed connection, behind EMQ_WAITERS_MAX others. In a look of a
 * client that is blocked already, it stays blocked. */
void emq_wait(emq_call *call, int64_t timeout_ms);

/* Tells whether any claim waits for news of this `schedule`. */
int emq_wait_has_readers(ValkeyModuleCtx *ctx, const ValkeyModuleString *key);

/* Wakes those who wait for what a call wrote. */
void emq_wait_signal(emq_call *call);

/* The number of clients that are blocked now. */
unsigned long long emq_wait_count(void);

/* Makes and frees what is kept of those who wait. */
void emq_wait_init(void);
void emq_wait_free(void);

#endif
