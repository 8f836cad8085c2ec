/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a queue that costs the server next to nothing: is anything due? */
#ifndef EMQ_LIBEMQ_PEEK_H
#define EMQ_LIBEMQ_PEEK_H

#include <emq/client.h>
#include <stdint.h>

#define EMQ_PEEK_NONE INT64_MAX

typedef struct emq_peek {
    int64_t now_ms;      /* unix time, the server's */
    int64_t active_ms;   /* the earliest deadline of a lease; EMQ_PEEK_NONE */
    int64_t schedule_ms; /* the earliest time of a scheduled job; EMQ_PEEK_NONE */
} emq_peek;

/* TIME, and the lowest scores of two sets, in one write; plain commands, which take no right to a
 * verb. 0, and what emq_counts_read can answer. */
int emq_peek_read(emq_peek *out, emq_client *client, const char *queue);

#endif
