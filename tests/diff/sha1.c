/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 over a buffer in memory. */
#include "sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64

static uint32_t rotate(uint32_t x, int n) {
    return (x << n) | (x >> (32 - n));
}

static void add_block(uint32_t h[5], const unsigned char *block) {
    uint32_t w[80];
    uint32_t v[5];
    for (int i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    }
    for (int i = 16; i < 80; i++) {
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    memcpy(v, h, sizeof(v));
    for (int i = 0; i < 80; i++) {
        static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
        uint32_t f = i < 20              ? (v[1] & v[2]) | (~v[1] & v[3])
                     : i < 40 || i >= 60 ? v[1] ^ v[2] ^ v[3]
                                         : (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3]);
        uint32_t next = rotate(v[0], 5) + f + v[4] + k[i / 20] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotate(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (int i = 0; i < 5; i++) {
        h[i] += v[i];
    }
}

void sha1_text(char out[SHA1_TEXT_MAX], const void *bytes, size_t n) {
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const unsigned char *at = bytes;
    unsigned char last[2 * BLOCK] = {0};
    size_t rest = n % BLOCK;
    size_t length = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    for (size_t i = 0; i + BLOCK <= n; i += BLOCK) {
        add_block(h, at + i);
    }
    if (rest > 0) {
        memcpy(last, at + (n - rest), rest);
    }
    last[rest] = 0x80;
    for (size_t i = 0; i < 8; i++) {
        last[length - 1 - i] = (unsigned char)((uint64_t)n * 8 >> (8 * i));
    }
    for (size_t i = 0; i < length; i += BLOCK) {
        add_block(h, last + i);
    }
    for (int i = 0; i < 5; i++) {
        (void)snprintf(out + 8 * i, 9, "%08x", h[i]);
    }
}
