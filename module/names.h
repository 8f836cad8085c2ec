/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a queue's own keys, which every call on that queue reaches anew: those of the queue
 * that was asked for last are kept. */
#ifndef EMQ_MODULE_NAMES_H
#define EMQ_MODULE_NAMES_H

#include "host.h"
#include "keys.h"

/* A call begins, and ends. Another module that hears of an effect may make one within it. */
void emq_names_enter(void);
void emq_names_leave(void);

/* The name of the queue's key of a kind, which has no name in it. It lives until the call ends.
 * NULL: a call that this one is within may need the names of another queue. */
ValkeyModuleString *emq_names_lend(emq_slice queue, emq_key_kind kind);

/* Frees what is kept. */
void emq_names_free(void);

#endif
