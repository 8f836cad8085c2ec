/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

void gate_hold(gate *g) {
    (void)pthread_mutex_lock(&g->mutex);
    g->is_held = 1;
    g->arrived = 0;
    (void)pthread_mutex_unlock(&g->mutex);
}

void gate_open(gate *g) {
    (void)pthread_mutex_lock(&g->mutex);
    g->is_held = 0;
    (void)pthread_cond_broadcast(&g->opened);
    (void)pthread_mutex_unlock(&g->mutex);
}

void gate_pass(gate *g) {
    (void)pthread_mutex_lock(&g->mutex);
    g->arrived++;
    while (g->is_held) {
        (void)pthread_cond_wait(&g->opened, &g->mutex);
    }
    (void)pthread_mutex_unlock(&g->mutex);
}

int gate_arrived(gate *g) {
    (void)pthread_mutex_lock(&g->mutex);
    int arrived = g->arrived;
    (void)pthread_mutex_unlock(&g->mutex);
    return arrived;
}

int gate_is_reached(void *g) {
    return gate_arrived(g) > 0;
}
