/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that wait by the monotonic clock. */
#ifndef EMQ_LIBEMQ_CONDITION_H
#define EMQ_LIBEMQ_CONDITION_H

#include <pthread.h>

/* Whether it could be made. */
int emq_condition_init(pthread_cond_t *condition);

#endif
