/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on a connected socket, where the library is built with it. hiredis' TLS layer moves the
 * bytes; what is trusted, whose name is expected, and the handshake's deadline are ours. */
#ifndef EMQ_LIBEMQ_TLS_H
#define EMQ_LIBEMQ_TLS_H

#include <emq/client.h>
#include <hiredis/hiredis.h>

#include "deadline.h"
#include "text.h"

struct ssl_st;

/* Tells whether this library can speak TLS. */
int emq_tls_is_built_in(void);

/* Shakes hands and checks the peer's certificate and its name. On success the context owns *ssl.
 *
 * 0; EMQ_ETLS (not trusted, another name, no TLS on the other side); EMQ_EINVAL (a file can't be
 * used); EMQ_ECONNECT; EMQ_ETIMEOUT; EMQ_ENOMEM; EMQ_ESYSTEM; EMQ_ENOTLS. */
int emq_tls_start(struct ssl_st **ssl, redisContext *context, const emq_client_options *options,
                  emq_deadline deadline, emq_text *error);

/* Forgets failures that this thread's TLS library keeps, which may be the host program's own: they
 * would be taken for one of the next read or write. */
void emq_tls_prepare(void);

/* Tells whether there are bytes that were taken from the socket already: poll doesn't see them. */
int emq_tls_has_pending(const struct ssl_st *ssl);

/* The words of the alert with which the peer ended the connection, also when it has not been read
 * yet; NULL when there is none. */
const char *emq_tls_get_alert(struct ssl_st *ssl);

#endif
