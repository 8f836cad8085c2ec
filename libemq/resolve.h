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

/* The parts of it, for a transport that looks up names by itself. An address needs no look-up: 0,
 * EAI_NONAME when it is a name, or another code of getaddrinfo. */
int emq_resolve_address(struct addrinfo **out, const char *host, uint16_t port);

/* The port as getaddrinfo takes it. */
#define EMQ_SERVICE_MAX 8
void emq_resolve_service(char service[EMQ_SERVICE_MAX], uint16_t port);

/* The result and the sentence of such a code. */
int emq_resolve_fail(emq_text *error, int code, const char *host);

#endif
