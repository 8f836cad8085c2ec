/* SPDX-License-Identifier: Apache-2.0 */
/* The connect path: from an address to a connection that may carry verbs. */
#ifndef EMQ_LIBEMQ_HANDSHAKE_H
#define EMQ_LIBEMQ_HANDSHAKE_H

#include "connection.h"
#include "line.h"
#include "settings.h"

typedef enum emq_fence_rule { EMQ_FENCE_REQUIRED, EMQ_FENCE_NOT_READ } emq_fence_rule;

/* What is asked of a server behind AUTH, in one go, and judged in order: the first refusal counts.
 * Kinds, lines and replies are at the places below `end`. */
#define EMQ_ASK_STEPS 5
typedef struct emq_ask {
    int end;
    int kinds[EMQ_ASK_STEPS];
    emq_line lines[EMQ_ASK_STEPS];
    redisReply *replies[EMQ_ASK_STEPS];
    char number[EMQ_LINE_NUMBER_MAX]; /* which a line borrows: an ask stays where it was built */
} emq_ask;

/* 0; EMQ_ENOMEM. It is cleared in both cases. */
int emq_ask_build(emq_ask *ask, const emq_client_options *options, emq_fence_rule fence);
int emq_ask_judge(const emq_ask *ask, emq_text *error);
void emq_ask_clear(emq_ask *ask);

/* The result of a connect path that ended in this one. */
int emq_handshake_result(int result);

/* Connects, authenticates, selects, names the connection, and asks what the server serves; with
 * sentinels, on the server that they name, after it has said that it is the primary. On a failure
 * the connection is closed. Of the settings only the order of the sentinels changes. */
int emq_handshake(emq_connection *connection, emq_settings *settings, emq_fence_rule fence,
                  emq_deadline deadline, emq_text *error);

#endif
