/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses, under a deadline. */
#ifndef EMQ_LIBEMQ_RESOLVE_H
#define EMQ_LIBEMQ_RESOLVE_H

#include <netdb.h>
#include <stdint.h>

#include "deadline.h"
#include "text.h"

/* The addresses of a host; freed with freeaddrinfo. */
int emq_resolve(struct addrinfo **out, const char *host, uint16_t port, emq_deadline deadline,
                emq_text *error);

#endif
