/* SPDX-License-Identifier: Apache-2.0 */
/* A gate in a function that a test has put in front of the C library's: while it is held, whoever
 * comes there waits, as for a resolver or a disk that does not answer. Any thread. */
#ifndef EMQ_TESTS_GATE_H
#define EMQ_TESTS_GATE_H

#include <pthread.h>

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    int is_held;
    int arrived; /* since it was held last */
} gate;

#define GATE_INIT                                                                                  \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 }

/* Holds it, and counts anew who arrives. */
void gate_hold(gate *g);

void gate_open(gate *g);

/* Waits while it is held. */
void gate_pass(gate *g);

/* How many have arrived. */
int gate_arrived(gate *g);

/* Whether anybody has, for loop_until. */
int gate_is_reached(void *g);

#endif
