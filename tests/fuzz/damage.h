/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with a queue's keys behind the verbs' back: wrong types, damaged rows, ids where
 * they don't belong, keys past their time, a fence that is gone. */
#ifndef EMQ_TESTS_DAMAGE_H
#define EMQ_TESTS_DAMAGE_H

#include "command.h"
#include "draw.h"

#define DAMAGE_LINES 3

typedef struct damage {
    command lines[DAMAGE_LINES]; /* plain commands, to be sent in this order */
    int count;
    int expires; /* then they give a key a millisecond to live */
} damage;

/* Damages a key of the queue FUZZ_ROUGH, or deletes all of them. damage_free frees the lines. */
void damage_queue(draw *d, damage *out);

void damage_fence(draw *d, damage *out);
void damage_restore_fence(damage *out);

void damage_free(damage *d);

#endif
