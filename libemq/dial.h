/* SPDX-License-Identifier: Apache-2.0 */
/* A connected socket, under a deadline. */
#ifndef EMQ_LIBEMQ_DIAL_H
#define EMQ_LIBEMQ_DIAL_H

#include <stdint.h>

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

/* Connects to the first address that answers: a non-blocking, close-on-exec stream socket. */
int emq_dial(int *fd, const emq_endpoint *endpoint, emq_deadline deadline, emq_text *error);

#endif
