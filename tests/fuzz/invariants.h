/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of a queue that only verbs have touched, whatever they were given. */
#ifndef EMQ_TESTS_INVARIANTS_H
#define EMQ_TESTS_INVARIANTS_H

#include <hiredis/hiredis.h>

/* Looks at every key of the queue, and that no key is outside of all queues but the fence and those
 * that start with `plain`. Answers what does not hold (the caller frees it), or NULL. */
char *find_broken_invariant(redisContext *c, const char *queue, const char *plain);

#endif
