/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to a socket without TLS, past hiredis's buffer: it would copy all of it once more, and
 * write without a way to ask for no SIGPIPE. */
#ifndef EMQ_LIBEMQ_SOCKET_H
#define EMQ_LIBEMQ_SOCKET_H

#include <hiredis/hiredis.h>
#include <stddef.h>

/* Sends as much as goes at once, which may be nothing: *sent receives how much that was. REDIS_OK;
 * REDIS_ERR, with the context saying why, as after a write of hiredis's own. Raises no signal. */
int emq_socket_send(redisContext *context, const char *bytes, size_t n, size_t *sent);

#endif
