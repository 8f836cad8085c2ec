/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (FIPS 180-4), for the pins of the reference scripts; it guards against changes by accident
 * and not by intent. */
#ifndef EMQ_TESTS_SHA1_H
#define EMQ_TESTS_SHA1_H

#include <stddef.h>

#define SHA1_TEXT_MAX 41

/* Writes the digest in lower-case hex, NUL-terminated. */
void sha1_text(char out[SHA1_TEXT_MAX], const void *bytes, size_t n);

#endif
