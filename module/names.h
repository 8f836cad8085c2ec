/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a queue's own keys, which every call on that queue reaches anew: those of the queue
 * that was asked for last are kept. */
#ifndef EMQ_MODULE_NAMES_H
#define EMQ_MODULE_NAMES_H

#include "host.h"
#include "keys.h"

/* The name of the queue's key of a kind, which has no name in it. The caller
 * frees it; it lives until then, whatever other queue is asked for meanwhile. */
ValkeyModuleString *emq_names_hold(emq_slice queue, emq_key_kind kind);

/* Frees what is kept. */
void emq_names_free(void);

#endif
