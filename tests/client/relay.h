/* SPDX-License-Identifier: Apache-2.0 */
/* A relay between a client and a TCP port, which knows nothing of what it passes on: it can pass it
 * on in small pieces, and stop or end after a number of bytes that came back from the port. */
#ifndef EMQ_TESTS_RELAY_H
#define EMQ_TESTS_RELAY_H

#include <stddef.h>
#include <stdint.h>

typedef enum relay_end {
    RELAY_CLOSE,
    RELAY_HOLD /* passes nothing on any more, in either direction */
} relay_end;

typedef struct relay relay;

/* Listens on 127.0.0.1 and serves one connection after the other. */
relay *relay_start(uint16_t port);
void relay_stop(relay *r);

uint16_t relay_port(const relay *r);

/* For the connections to come: `chunk` bytes at a time at most, and this end behind `limit` bytes
 * from the port; SIZE_MAX: never. */
void relay_set(relay *r, size_t chunk, size_t limit, relay_end end);

/* How many connections it has ended by itself, or holds. */
int relay_ended(relay *r);

#endif
