/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator for libemq that counts, and fails when it is told to. */
#ifndef EMQ_TESTS_ALLOCATOR_H
#define EMQ_TESTS_ALLOCATOR_H

#include <emq/memory.h>

/* For emq_set_allocator, before anything else. */
const emq_allocator *allocator_counting(void);

/* From now on the allocations of these numbers fail; the first one is 1. */
void allocator_arm(long from, long to);
void allocator_disarm(void);

long allocator_fails_from(void);

/* Runs a path with its first allocation failing, the second, and so on, until none fails any more;
 * once, and for good. The path calls allocator_arm_path where it begins, and frees everything. */
void allocator_fail_each(const char *what, void (*path)(void));
void allocator_arm_path(void);

/* How many there were since allocator_arm, and how many in all are not freed. */
long allocator_counted(void);
long allocator_held(void);

/* From now on looks for this text in each block that this thread lets go of (a scripted peer, which
 * reads passwords, has its own); NULL: no more. And in how many it was seen since. */
void allocator_watch(const char *text);
long allocator_seen(void);

#endif
