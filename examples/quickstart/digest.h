/* SPDX-License-Identifier: Apache-2.0 */
/* The SHA-256 of an open file, read in pieces. */
#ifndef EXAMPLES_DIGEST_H
#define EXAMPLES_DIGEST_H

#include "tree.h"

#include <stdint.h>

#define DIGEST_HEX 64 /**< letters of a SHA-256 in hexadecimal */

/** Memory that is used for file after file. Opaque. */
typedef struct digest digest;

/** NULL when memory or OpenSSL's SHA-256 can't be had. */
digest *digest_new(void);

/**
 * Computes the digest of a whole file, and that the file stayed the same meanwhile.
 *
 * @param hex   receives the digest in hexadecimal, NUL-terminated.
 * @param bytes grows by the number of bytes read.
 * @return NULL, or the reason why there is no digest.
 */
const char *digest_file(digest *d, char hex[DIGEST_HEX + 1], uint64_t *bytes,
                        const tree_file *file);

void digest_free(digest *d);

#endif
