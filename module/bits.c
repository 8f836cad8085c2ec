/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, writing and finding bits. */
#include "bits.h"

#include <limits.h>
#include <string.h>

#define STRIDE 4 /* words looked at in one go */

size_t emq_bit_byte(uint32_t offset) {
    return offset / CHAR_BIT;
}

static unsigned mask_of(uint32_t offset) {
    return 0x80U >> (offset % CHAR_BIT);
}

int emq_bit_get(const char *bytes, size_t length, uint32_t offset) {
    size_t byte = emq_bit_byte(offset);
    return byte < length && ((unsigned char)bytes[byte] & mask_of(offset)) != 0;
}

void emq_bit_put(char *bytes, uint32_t offset, int bit) {
    unsigned char *byte = (unsigned char *)bytes + emq_bit_byte(offset);
    if (bit) {
        *byte = (unsigned char)(*byte | mask_of(offset));
    } else {
        *byte = (unsigned char)(*byte & ~mask_of(offset));
    }
}

/* The first byte that is not zero, at `at` or behind; `end` when there is none. */
static size_t skip_zeros(const char *bytes, size_t at, size_t end) {
    uint64_t words[STRIDE];
    while (end - at >= sizeof(words)) {
        memcpy(words, bytes + at, sizeof(words)); /* at any alignment */
        if ((words[0] | words[1] | words[2] | words[3]) != 0) {
            break;
        }
        at += sizeof(words);
    }
    while (at < end && bytes[at] == 0) {
        at++;
    }
    return at;
}

size_t emq_bits_scan(const char *bytes, size_t length, uint32_t from, uint32_t to, uint32_t *out,
                     size_t max) {
    /* offsets are counted in 64 bits: the one behind the last is 2^32 */
    uint64_t end = (uint64_t)to + 1;
    uint64_t bits = (uint64_t)length * CHAR_BIT;
    size_t found = 0;
    if (end > bits) {
        end = bits;
    }
    for (uint64_t at = from; at < end && found < max; at++) {
        if (at % CHAR_BIT == 0) {
            at = (uint64_t)skip_zeros(bytes, at / CHAR_BIT, (end + CHAR_BIT - 1) / CHAR_BIT) *
                 CHAR_BIT;
            if (at >= end) {
                break;
            }
        }
        if (emq_bit_get(bytes, length, (uint32_t)at)) {
            out[found++] = (uint32_t)at;
        }
    }
    return found;
}
