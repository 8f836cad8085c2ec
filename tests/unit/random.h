/* SPDX-License-Identifier: Apache-2.0 */
/* A small random generator with a fixed seed, so that a failure comes back. */
#ifndef EMQ_TESTS_RANDOM_H
#define EMQ_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = UINT64_C(0x9E3779B97F4A7C15);

/* xorshift64* */
static uint64_t random_next(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

static unsigned random_below(unsigned bound) {
    return (unsigned)((random_next() >> 33) % bound);
}

#endif
