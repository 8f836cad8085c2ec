/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and ports as they are written in a URL and in an option: host, host:port, [IPv6]:port, and
 * lists of them. */
#ifndef EMQ_LIBEMQ_ADDRESS_H
#define EMQ_LIBEMQ_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#define EMQ_HOST_MAX 255 /* bytes; no name or address is longer */

typedef struct emq_address {
    char host[EMQ_HOST_MAX + 1];
    uint16_t port; /* 0 when none was given */
} emq_address;

/* Reads one from n bytes. NULL, or what is wrong, to be put behind the name of its place; it quotes
 * nothing. */
const char *emq_address_read(emq_address *out, const char *text, size_t n);

/* Reads a list, separated by commas, of up to `max`. */
const char *emq_addresses_read(emq_address *out, int max, int *count, const char *text);

/* Whether a host is a name, an IPv4 or an IPv6 address. */
int emq_host_valid(const char *host);

/* Reads decimal digits alone, up to a limit; returns 0 for anything else. */
int emq_number_read(uint64_t *out, const char *digits, size_t n, uint64_t limit);

#endif
