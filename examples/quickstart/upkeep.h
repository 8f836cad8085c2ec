/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping a queue going: the server runs no timer, so that every worker does this now and then. */
#ifndef EXAMPLES_UPKEEP_H
#define EXAMPLES_UPKEEP_H

#include "session.h"

/** When the next sweep is due. */
typedef struct upkeep {
    int64_t due_at_ms; /**< by the monotonic clock; 0: at once */
    unsigned seed;     /**< for the jitter */
} upkeep;

/** The first sweep comes after a part of the interval that is drawn at random. */
void upkeep_init(upkeep *u);

/**
 * When it is due: takes back the leases that have lapsed, and makes the scheduled jobs that are due
 * pending. Otherwise does nothing.
 *
 * @return 0, or -1 when it gave up, which it has said.
 */
int upkeep_run(upkeep *u, session *s);

#endif
