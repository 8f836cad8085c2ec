/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of TLS share: a real server that listens with TLS beside its plain port, and the
 * certificates of certificates.sh. */
#ifndef EMQ_TESTS_TLS_FIXTURE_H
#define EMQ_TESTS_TLS_FIXTURE_H

#include "fixture.h"

#define TLS_PATH_MAX (SERVER_PATH_MAX + 64)

extern test_server tls_server;
extern uint16_t tls_port;
extern char tls_folder[TLS_PATH_MAX]; /* of the certificates; not hashed */

/* Setup and teardown of a group. The server shows here.crt and asks for no certificate. */
int tls_start_server(void **state);
int tls_stop_server(void **state);

/* A sentinel that watches the server under the name "main", over TLS and with here.crt; returns the
 * port on which it speaks TLS. */
uint16_t tls_start_sentinel(test_server *sentinel);

/* The path of a file that certificates.sh made. A few may be used at a time. */
const char *tls_file(const char *name);

void tls_show_certificate(const char *name);
void tls_require_certificate(const char *yes_or_no);

/* Leaves a failure in this thread's part of the TLS library, as a host program may. */
void tls_leave_failure(void);

/* Options that open a connection, with long deadlines. */
emq_client_options tls_fixture_options(const char *host);

#endif
