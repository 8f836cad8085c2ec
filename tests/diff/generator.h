/* SPDX-License-Identifier: Apache-2.0 */
/* Makes sequences of operations from a seed: lines of line.h, and beside them
 *
 *   paused <verb …>   the verb while writes are paused
 *   reload            the server reads its AOF again
 *   restart           of the server, on its AOF
 */
#ifndef EMQ_TESTS_GENERATOR_H
#define EMQ_TESTS_GENERATOR_H

#include <stdint.h>

#include "model.h"

#define SEQUENCE_MAX 80
#define SEQUENCE_LINE_MAX 128

typedef struct generator {
    uint64_t state;
    int damages;  /* this sequence may damage what it finds */
    int restarts; /* how many restarts it may still make */
    int reloads;
} generator;

void generator_init(generator *g, uint64_t seed);

/* The next line; it looks at the model for tokens that are right. */
void generator_next(generator *g, char out[SEQUENCE_LINE_MAX], const model *m);

/* A batch: `enqueues J1 p J2 q`, `claims <lease> <count>` or `completes J1 1 J2 1`, of at most six
 * members. */
void generator_batch(generator *g, char out[SEQUENCE_LINE_MAX], const model *m);

#endif
