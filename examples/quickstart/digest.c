/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 through OpenSSL's EVP: see digest.h. */
#include "digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_SIZE 262144
#define DIGEST_BYTES (DIGEST_HEX / 2)

struct digest {
    EVP_MD_CTX *context;
    unsigned char buffer[BUFFER_SIZE];
};

digest *digest_new(void) {
    digest *d = calloc(1, sizeof(*d));
    if (d != NULL) {
        d->context = EVP_MD_CTX_new();
    }
    if (d == NULL || d->context == NULL || EVP_DigestInit_ex(d->context, EVP_sha256(), NULL) != 1) {
        digest_free(d);
        return NULL;
    }
    return d;
}

void digest_free(digest *d) {
    if (d != NULL) {
        EVP_MD_CTX_free(d->context);
        free(d);
    }
}

/* Reads to the end. A file that has more bytes than it said is left at once: it may grow for ever.
 */
static const char *feed(digest *d, uint64_t *bytes, const tree_file *file) {
    off_t total = 0;
    for (;;) {
        ssize_t n = read(file->fd, d->buffer, sizeof(d->buffer));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return tree_reason(errno);
        }
        if (n == 0) {
            return total == file->seen.st_size ? NULL : "changed while it was hashed";
        }
        total += (off_t)n;
        *bytes += (uint64_t)n;
        if (total > file->seen.st_size) {
            return "changed while it was hashed";
        }
        if (EVP_DigestUpdate(d->context, d->buffer, (size_t)n) != 1) {
            return "OpenSSL failed";
        }
    }
}

static void to_hex(char hex[DIGEST_HEX + 1], const unsigned char *bytes) {
    static const char letters[] = "0123456789abcdef";
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        hex[2 * i] = letters[bytes[i] >> 4];
        hex[2 * i + 1] = letters[bytes[i] & 15];
    }
    hex[DIGEST_HEX] = '\0';
}

const char *digest_file(digest *d, char hex[DIGEST_HEX + 1], uint64_t *bytes,
                        const tree_file *file) {
    unsigned char result[EVP_MAX_MD_SIZE];
    if (EVP_DigestInit_ex(d->context, EVP_sha256(), NULL) != 1) {
        return "OpenSSL failed";
    }
    const char *reason = feed(d, bytes, file);
    if (reason == NULL) {
        reason = tree_check_file(file);
    }
    if (reason == NULL && EVP_DigestFinal_ex(d->context, result, NULL) != 1) {
        reason = "OpenSSL failed";
    }
    if (reason == NULL) {
        to_hex(hex, result);
    }
    return reason;
}
