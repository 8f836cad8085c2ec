/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the fuzz: a right call of any verb, made from its row in the table, and what random
 * changes make of it. A verb needs no words of its own here. */
#ifndef EMQ_TESTS_FUZZ_LINE_H
#define EMQ_TESTS_FUZZ_LINE_H

#include <stdint.h>

#include "command.h"
#include "verbs.h"

/* Two queues: one that only verbs touch, and one whose keys the test damages. The keys of bitmaps
 * stand apart from both. */
#define CLEAN "clean"
#define ROUGH "rough"
#define BITMAPS "bits:"

#define JOB_IDS 6
extern const char *const job_ids[JOB_IDS];

typedef struct dice {
    uint64_t state;
} dice;

uint64_t dice_next(dice *d);
unsigned dice_below(dice *d, unsigned bound);
int dice_one_in(dice *d, unsigned n);

#define DICE_PICK(d, list) (list)[dice_below((d), (unsigned)(sizeof(list) / sizeof((list)[0])))]

/* A job that somebody holds, and its token; empty texts when there is none. */
typedef struct held_job {
    char id[64];
    char token[32];
} held_job;

/* Adds a right call of a verb; its number of members and its ids are random. It is rather about the
 * job that is held than about another one. */
void fuzz_line(command *out, dice *d, const emq_verb *verb, const char *queue,
               const held_job *held);

/* Changes a line in one to three places: the key count, keys, values, their number, their bytes. A
 * key of the clean queue comes in only where a verb's layout is checked. */
void fuzz_mutate(command *line, dice *d, const emq_verb *verb);

/* A key of a queue, of any kind. */
void fuzz_key(char out[EMQ_KEY_MAX + 1], dice *d, const char *queue);

#endif
