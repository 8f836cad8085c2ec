/* SPDX-License-Identifier: Apache-2.0 */
/* xorshift64*, started from a mixed seed. */
#include "draw.h"

void draw_init(draw *d, uint64_t seed) {
    /* seeds that lie side by side must not give runs that do */
    uint64_t z = seed + UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    d->state = (z ^ (z >> 31)) | 1;
}

unsigned draw_below(draw *d, unsigned bound) {
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return (unsigned)(((d->state * UINT64_C(0x2545F4914F6CDD1D)) >> 33) % bound);
}

int draw_one_in(draw *d, unsigned n) {
    return draw_below(d, n) == 0;
}
