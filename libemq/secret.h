/* SPDX-License-Identifier: Apache-2.0 */
/* The password of one connect: from the options, a file or the environment, and wiped behind it. */
#ifndef EMQ_LIBEMQ_SECRET_H
#define EMQ_LIBEMQ_SECRET_H

#include <emq/client.h>

#include "text.h"

#define EMQ_PASSWORD_FILE_MAX ((size_t)64 * 1024)

typedef struct emq_secret {
    char *bytes; /* NUL-terminated; NULL when there is no password */
    size_t size; /* of the memory */
} emq_secret;

/* 0; EMQ_EINVAL (the file or variable is missing, empty, too large, or holds a NUL byte);
 * EMQ_ESYSTEM; EMQ_ENOMEM. The sentence names the file or variable, never what is in it. On an
 * error there is nothing to clear. */
int emq_secret_load(emq_secret *secret, const emq_client_options *options, emq_text *error);

/* The same of a file alone. */
int emq_secret_read_file(emq_secret *secret, const char *path, emq_text *error);

void emq_secret_clear(emq_secret *secret);

#endif
