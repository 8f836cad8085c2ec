/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what a peer may announce. A few bytes that name an array of two thousand million
 * elements would keep this process allocating and freeing for seconds, far behind the deadline.
 * Arrays in arrays in arrays are freed by recursion, which would use up the stack: hiredis bounds
 * their depth itself before version 1, and no more since. */
#ifndef EMQ_LIBEMQ_LIMITS_H
#define EMQ_LIBEMQ_LIMITS_H

#include <hiredis/hiredis.h>

/* No reply of the wire has so many, nor so deep ones. */
#define EMQ_ELEMENTS_MAX 1048576
#define EMQ_DEPTH_MAX 8

/* hiredis counts elements in another type since its version 1. */
#if HIREDIS_MAJOR >= 1
typedef size_t emq_element_count;
#else
typedef int emq_element_count;
#endif

typedef struct emq_limits {
    redisReplyObjectFunctions functions;
    void *(*create_array)(const redisReadTask *task, emq_element_count elements);
    int is_exceeded;
} emq_limits;

/* Makes the reader refuse larger and deeper arrays, as if there were no memory for them. The limits
 * live as long as the reader, at the same address. */
void emq_limits_set(emq_limits *limits, redisReader *reader);

/* Whether the reader has refused an array. */
int emq_limits_exceeded(const redisReader *reader);

#endif
