/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of authorities, read at once. OpenSSL by itself looks into them in the middle of a
 * handshake, which on a loop must wait for no disk. */
#ifndef EMQ_LIBEMQ_TLS_FOLDER_H
#define EMQ_LIBEMQ_TLS_FOLDER_H

#include <openssl/ssl.h>

#include "text.h"

/* Trusts what has a hashed name in one of these folders, which have colons between them. A file
 * that can't be used, or a folder that is not there, is passed over: so it would be in a handshake
 * that does not need it. 0; EMQ_ESYSTEM (this process or the system was short of something, or the
 * reading of a folder broke off); EMQ_ENOMEM. */
int emq_tls_take_folders(SSL_CTX *context, const char *list, emq_text *error);

/* Those of the system. */
int emq_tls_take_system_folders(SSL_CTX *context, emq_text *error);

/* The errno of what this process or the system was short of when a file was to be read, or 0. The
 * cause is noted first, and what follows from it behind it. */
int emq_tls_find_shortage(void);

/* EMQ_ESYSTEM, for such an errno. */
int emq_tls_fail_shortage(emq_text *error, int failure);

#endif
