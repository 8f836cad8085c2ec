/* SPDX-License-Identifier: Apache-2.0 */
/* What a subscription knows of its channel: how it is asked for, which numbers have come, and what
 * a reply is that comes on its connection. Pure: replies in, messages out. */
#ifndef EMQ_LIBEMQ_FEED_H
#define EMQ_LIBEMQ_FEED_H

#include <emq/events.h>
#include <emq/keyspace.h>
#include <emq/line.h>
#include <hiredis/hiredis.h>

#include "text.h"

typedef struct emq_feed {
    char channel[EMQ_KEY_MAX + 1];
    emq_line line; /* SUBSCRIBE; borrows the channel */
    int is_asked;  /* the subscription was asked for once more, and not answered yet */
    uint64_t reconnects;
    int64_t seq; /* of the last message, once there is one */
    int has_seq;
    int was_open;   /* since the beginning; what is missed before that does not count */
    int is_resumed; /* connected anew, and no message since */
} emq_feed;

/* Stays where it was made. 0; EMQ_EQUEUE; EMQ_ENOMEM. It is cleared in all cases. */
int emq_feed_init(emq_feed *feed, const char *queue);
void emq_feed_clear(emq_feed *feed);

/* Judges the answer to SUBSCRIBE on a new connection, and notes that it is subscribed. */
int emq_feed_confirm(emq_feed *feed, const redisReply *reply, emq_text *error);

/* Reads what was pushed. EMQ_OK: a message; EMQ_EMPTY: nothing that anybody has to know.
 * *is_broken receives whether nothing behind it can be trusted. Else, EMQ_EPROTOCOL or EMQ_ENOMEM:
 * a message was dropped. */
int emq_feed_read(emq_event **out, emq_feed *feed, const redisReply *reply, int *is_broken,
                  emq_text *error);

#endif
