/* SPDX-License-Identifier: Apache-2.0 */
/* Random choices that follow from a seed alone, so that a failure comes back. */
#ifndef EMQ_TESTS_DRAW_H
#define EMQ_TESTS_DRAW_H

#include <stddef.h>
#include <stdint.h>

typedef struct draw {
    uint64_t state;
} draw;

void draw_init(draw *d, uint64_t seed);

/* A number from 0 to bound - 1. */
unsigned draw_below(draw *d, unsigned bound);

/* 1 once in n times. */
int draw_one_in(draw *d, unsigned n);

/* An element of an array. */
#define DRAW(d, list) (list)[draw_below((d), (unsigned)(sizeof(list) / sizeof((list)[0])))]

#endif
