/* SPDX-License-Identifier: Apache-2.0 */
/* An end of TLS 1.3 in front of a plain port that changes its keys, and asks the client to change
 * its own, before each piece that it passes back: what a server may do, and none does for a test.
 */
#ifndef EMQ_TESTS_REKEY_H
#define EMQ_TESTS_REKEY_H

#include <stdint.h>

typedef struct rekey rekey;

/* Listens on 127.0.0.1 with here.crt, and serves one connection after the other. */
rekey *rekey_start(uint16_t port);
void rekey_stop(rekey *r);

uint16_t rekey_port(const rekey *r);

/* How often keys were changed. */
int rekey_count(rekey *r);

#endif
