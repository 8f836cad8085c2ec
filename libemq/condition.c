/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that wait by the monotonic clock. */
#include "condition.h"

#include <time.h>

int emq_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return 0;
    }
    int failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0 ||
                 pthread_cond_init(condition, &attributes) != 0;
    (void)pthread_condattr_destroy(&attributes);
    return !failed;
}
