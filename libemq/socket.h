/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over a socket without TLS, past hiredis: that copies all that is written once more, can't
 * be told to raise no SIGPIPE, and is slow with much that it reads at once (emq_socket_feed). */
#ifndef EMQ_LIBEMQ_SOCKET_H
#define EMQ_LIBEMQ_SOCKET_H

#include <hiredis/hiredis.h>
#include <stddef.h>

/* A size for the bytes that are received at once; hiredis takes as many. */
#define EMQ_SOCKET_READ ((size_t)16 * 1024)

/* Sends as much as goes at once, which may be nothing: *sent receives how much that was. REDIS_OK;
 * REDIS_ERR, with the context saying why, as after a write of hiredis's own. Raises no signal. */
int emq_socket_send(redisContext *context, const char *bytes, size_t n, size_t *sent);

/* Receives what is there, up to so many bytes, which may be nothing: *got receives how much that
 * was. REDIS_OK; REDIS_ERR, as after a read of hiredis's own. */
int emq_socket_receive(redisContext *context, char *bytes, size_t n, size_t *got);

/* Gives the reader the next of the bytes from *at on, and moves that on. hiredis moves what is left
 * in its reader whenever a kilobyte of it was taken: so it gets a few of them, and its replies are
 * taken before it gets more, but in the midst of a long one all there are. REDIS_OK; REDIS_ERR. */
int emq_socket_feed(redisContext *context, const char *bytes, size_t n, size_t *at);

#endif
