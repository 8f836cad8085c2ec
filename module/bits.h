/* SPDX-License-Identifier: Apache-2.0 */
/* Bits of a string in the server's order: offset 0 is the highest bit of the first byte. Pure. */
#ifndef EMQ_MODULE_BITS_H
#define EMQ_MODULE_BITS_H

#include <stddef.h>
#include <stdint.h>

/* The byte that holds a bit. */
size_t emq_bit_byte(uint32_t offset);

/* The bit; 0 beyond the end. */
int emq_bit_get(const char *bytes, size_t length, uint32_t offset);

/* Writes a bit, which must be inside of the bytes. */
void emq_bit_put(char *bytes, uint32_t offset, int bit);

/* Lists the offsets of the bits that are set, from `from` to `to`, both included, in ascending
 * order; at most `max`. Returns how many. What is zero is passed 32 bytes at a time: 512 MB without
 * a bit are a matter of reading them once. */
size_t emq_bits_scan(const char *bytes, size_t length, uint32_t from, uint32_t to, uint32_t *out,
                     size_t max);

#endif
