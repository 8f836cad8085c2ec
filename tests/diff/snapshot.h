/* SPDX-License-Identifier: Apache-2.0 */
/* Everything under one queue's hashtag as sorted pairs of texts, with the queue's name taken out:
 *
 *   pending zset JOB0KHTOWnGLu1   0
 *   job:JOB0KHTOWnGLu1 hash state   pending
 *
 * Bytes outside of printable ASCII read \xNN; a value above 1000 bytes reads as its length and
 * digest. */
#ifndef EMQ_TESTS_SNAPSHOT_H
#define EMQ_TESTS_SNAPSHOT_H

#include "command.h"

typedef struct entry {
    char *path;
    char *value;
} entry;

typedef struct snapshot {
    entry *entries;
    size_t count;
    size_t capacity;
} snapshot;

/* Adds the command that reads a queue, and makes the snapshot of its reply. */
void snapshot_build(command *out, const char *base);
void snapshot_read(snapshot *out, const redisReply *reply);

/* Reads a queue at once. */
void snapshot_take(snapshot *out, redisContext *c, const char *base);

/* Adds one pair; snapshot_sort must follow the last one. */
void snapshot_add(snapshot *s, const char *path, const char *value);
void snapshot_sort(snapshot *s);

/* The value at a path, NULL when there is none. */
const char *snapshot_get(const snapshot *s, const char *path);

/* Forgets the pairs whose path ends so. */
void snapshot_drop(snapshot *s, const char *path_end);

void snapshot_free(snapshot *s);

#endif
