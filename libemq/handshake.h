/* SPDX-License-Identifier: Apache-2.0 */
/* The connect path: from an address to a connection that may carry verbs. */
#ifndef EMQ_LIBEMQ_HANDSHAKE_H
#define EMQ_LIBEMQ_HANDSHAKE_H

#include "connection.h"
#include "settings.h"

typedef enum emq_fence_rule { EMQ_FENCE_REQUIRED, EMQ_FENCE_NOT_READ } emq_fence_rule;

/* Connects, authenticates, selects, names the connection, and asks what the server serves. On a
 * failure the connection is closed. */
int emq_handshake(emq_connection *connection, const emq_settings *settings, emq_fence_rule fence,
                  emq_deadline deadline, emq_text *error);

#endif
