/* SPDX-License-Identifier: Apache-2.0 */
/* A connected socket, under a deadline. */
#ifndef EMQ_LIBEMQ_DIAL_H
#define EMQ_LIBEMQ_DIAL_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "deadline.h"
#include "text.h"

/* Where a server listens. */
typedef struct emq_endpoint {
    const char *host;
    uint16_t port;
    const char *unix_path; /* when set, host and port are not looked at */
} emq_endpoint;

/* Tells whether a path fits into a socket address. */
int emq_unix_path_valid(const char *path);

/* The parts of it, for a transport that waits by itself. Starting a connect: 0 and a non-blocking,
 * close-on-exec socket, or an errno. */
int emq_dial_start(int *fd, const struct sockaddr *address, socklen_t length);

/* What came of it, once the socket can be written: 0 or an errno. */
int emq_dial_finish(int fd);

/* The result and the sentence of such an errno. */
int emq_dial_fail(emq_text *error, int failure, const char *where);

/* The address of a path that fits. */
void emq_unix_address(struct sockaddr_un *address, const char *path);

/* A Unix socket whose backlog is full says "try again" (EAGAIN) at once, and nothing tells when. */
#define EMQ_UNIX_RETRY_MS 10

/* Connects to the first address that answers: a non-blocking, close-on-exec stream socket. */
int emq_dial(int *fd, const emq_endpoint *endpoint, emq_deadline deadline, emq_text *error);

/* Whether a system call failed with this errno because the process or the system is short of
 * something: a failure of our own (EMQ_ESYSTEM) that says nothing of what was asked for. */
int emq_is_shortage(int failure);

#endif
