/* SPDX-License-Identifier: Apache-2.0 */
/* The limits on arrays: hiredis's own functions, with a check before an array is made. */
#include "reply_limits.h"

static int is_too_deep(const redisReadTask *task) {
    int depth = 1;
    while (depth <= EMQ_DEPTH_MAX && task->parent != NULL) {
        task = task->parent;
        depth++;
    }
    return depth > EMQ_DEPTH_MAX;
}

static void *create_array(const redisReadTask *task, emq_element_count elements) {
    emq_limits *limits = task->privdata;
    if (elements > EMQ_ELEMENTS_MAX || is_too_deep(task)) {
        limits->is_exceeded = 1;
        return NULL;
    }
    return limits->create_array(task, elements);
}

void emq_limits_set(emq_limits *limits, redisReader *reader) {
    limits->functions = *reader->fn;
    limits->create_array = limits->functions.createArray;
    limits->functions.createArray = create_array;
    limits->is_exceeded = 0;
    reader->fn = &limits->functions;
    reader->privdata = limits;
}

int emq_limits_exceeded(const redisReader *reader) {
    const emq_limits *limits = reader->privdata;
    return limits->is_exceeded;
}
