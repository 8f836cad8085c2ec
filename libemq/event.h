/* SPDX-License-Identifier: Apache-2.0 */
/* A message of a queue's channel, from the inside. Pure: text in, message out. */
#ifndef EMQ_LIBEMQ_EVENT_H
#define EMQ_LIBEMQ_EVENT_H

#include <emq/events.h>

#include "text.h"

/* Bytes with a NUL behind them. */
typedef struct emq_event_bytes {
    const char *bytes;
    size_t length;
} emq_event_bytes;

typedef struct emq_event_field {
    const char *name;
    emq_event_bytes value;
} emq_event_field;

/* One piece of memory: fields, text, and all that is decoded lie behind it. */
struct emq_event {
    int64_t seq;
    int64_t gap;
    int is_resumed;
    emq_event_bytes text;
    emq_event_bytes event;
    emq_event_bytes job;
    size_t count;
    emq_event_field fields[];
};

/* Reads a message; its gap is 0. EMQ_EPROTOCOL; EMQ_ENOMEM. */
int emq_event_parse(emq_event **out, const char *text, size_t n, emq_text *error);

#endif
