/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on a connected socket, where the library is built with it. hiredis' TLS layer reads; what is
 * trusted, whose name is expected, the handshake and the writes are ours. Nothing here waits: the
 * transports do, each in its own way. */
#ifndef EMQ_LIBEMQ_TLS_H
#define EMQ_LIBEMQ_TLS_H

#include <emq/client.h>
#include <hiredis/hiredis.h>

#include "text.h"

struct ssl_st;

/* Tells whether this library can speak TLS. */
int emq_tls_is_built_in(void);

/* Makes what a connection needs, whatever its host is: whom it trusts, and who we are. It reads
 * files, of which the system's authorities take tens of milliseconds. With `is_whole` it reads all
 * of them now; without, the handshake looks into folders of authorities for those that it needs.
 * Thread-safe.
 *
 * 0; EMQ_EINVAL (a file can't be used); EMQ_ESYSTEM (it can't be read now); EMQ_ETLS; EMQ_ENOMEM;
 * EMQ_ENOTLS. */
int emq_tls_make(struct ssl_st **ssl, const emq_client_options *options, int is_whole,
                 emq_text *error);

/* Frees one that was not used. NULL does nothing. */
void emq_tls_free(struct ssl_st *ssl);

/* Begins the handshake on a context that does not block, with the name that the options expect of
 * the other side. On success the context owns the object; no more is known then than that it can go
 * on. On a failure the object is gone.
 *
 * 0; EMQ_EINVAL (not a name that a certificate can have); EMQ_ETLS (not trusted, another name, no
 * TLS on the other side); EMQ_ECONNECT; EMQ_ESYSTEM; EMQ_ENOMEM; EMQ_ENOTLS. */
int emq_tls_begin(struct ssl_st *ssl, redisContext *context, const emq_client_options *options,
                  emq_text *error);

/* Takes the handshake as far as it goes at once, and checks the peer's certificate and its name.
 * On success *wanted is the event of poll that it waits for, or 0: it is done.
 *
 * 0; EMQ_ETLS; EMQ_ECONNECT; EMQ_ESYSTEM (a folder's authorities can't be read now). */
int emq_tls_step(struct ssl_st *ssl, int *wanted, emq_text *error);

/* The event of poll that the last read or write on it waits for, which may be the other one's; 0
 * when it waits for none. */
int emq_tls_get_wanted(const struct ssl_st *ssl);

/* Writes as much as goes at once, which may be nothing: *sent receives how much that was. What is
 * tried again begins with the bytes that it began with before. REDIS_OK; REDIS_ERR, with the
 * context saying why. Raises no signal. */
int emq_tls_write(struct ssl_st *ssl, redisContext *context, const char *bytes, size_t n,
                  size_t *sent);

/* redisBufferRead for a context with TLS. It reads until the TLS library holds nothing that it has
 * taken from the socket already, since poll doesn't see that. */
int emq_tls_read(struct ssl_st *ssl, redisContext *context);

/* The words of the alert with which the peer ended the connection, also when it has not been read
 * yet; NULL when there is none. */
const char *emq_tls_get_alert(struct ssl_st *ssl);
#define EMQ_TLS_REFUSAL_TEXT "the server refused with a TLS alert: %s"

#endif
