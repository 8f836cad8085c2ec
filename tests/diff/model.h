/* SPDX-License-Identifier: Apache-2.0 */
/* An executable model of one queue: it predicts the reply and the whole state for every operation
 * of the fourteen verbs, written from the protocol and not from the module. It knows types, so that
 * damage made by hand is part of it.
 *
 * Texts are those of snapshot.h: bytes outside of printable ASCII read \xNN. */
#ifndef EMQ_TESTS_MODEL_H
#define EMQ_TESTS_MODEL_H

#include "line.h"
#include "snapshot.h"

#define MODEL_KEYS_MAX 64
#define MODEL_PAIRS_MAX 48
#define MODEL_NAME_MAX 64
#define MODEL_VALUE_MAX 160

typedef enum model_type { MODEL_STRING, MODEL_HASH, MODEL_ZSET, MODEL_LIST } model_type;

/* A field with its value, a member with its score, or an element (of a list) or value (of a
 * string). */
typedef struct model_pair {
    char name[MODEL_NAME_MAX];
    char value[MODEL_VALUE_MAX];
    long long score;
} model_pair;

typedef struct model_key {
    char name[MODEL_NAME_MAX]; /* behind the base; "": unused */
    model_type type;
    int count;
    model_pair pairs[MODEL_PAIRS_MAX]; /* a sorted set's are in order */
} model_key;

typedef struct model {
    model_key keys[MODEL_KEYS_MAX];
    char run_id[64];
} model;

/* An empty queue on the server with this run_id. */
void model_init(model *m, const char *run_id);

/* Runs a verb at a time, while writes are paused or not. The reply, as reply_to_text writes it; the
 * caller frees it. */
char *model_call(model *m, const diff_verb *verb, const words *line, long long now,
                 int writes_paused);

/* Runs one of the plain commands HSET, HDEL, DEL, ZADD, ZREM, SET, RPUSH (behind `!`); what the
 * server refuses for its type does nothing. */
void model_plain(model *m, const words *line);

/* The state as a snapshot. */
void model_state(snapshot *out, const model *m);

/* What the reference is known to do otherwise in this step, before it runs; NULL when it must do
 * the same. `reply` is what the model predicts. */
const char *model_deviation(const model *m, const diff_verb *verb, const words *line, long long now,
                            const char *reply);

/* For a queue that nobody damaged: NULL, or the invariant that does not hold. */
const char *model_find_broken_invariant(const model *m);

/* Look-ups for tests: NULL when there is none. */
const model_key *model_find(const model *m, const char *name);
const char *model_field(const model *m, const char *key, const char *field);
int model_is_member(const model *m, const char *set, const char *id);

#endif
