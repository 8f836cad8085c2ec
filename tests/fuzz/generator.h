/* SPDX-License-Identifier: Apache-2.0 */
/* Makes calls of every verb of the table from a seed: right ones, and right ones with something
 * wrong in them. It knows kinds of keys and values, and no verb by name: a new row is called, too.
 */
#ifndef EMQ_TESTS_GENERATOR_H
#define EMQ_TESTS_GENERATOR_H

#include "command.h"
#include "draw.h"
#include "verbs.h"

/* Only verbs touch the queue `clean`, so that the model's invariants hold there whatever they are
 * given. `rough` is damaged by hand. Keys of TRA verbs, which take any name, start with FUZZ_PLAIN.
 */
#define FUZZ_CLEAN "clean"
#define FUZZ_ROUGH "rough"
#define FUZZ_PLAIN "fuzz:"

/* Names that calls and damages share. */
#define FUZZ_JOBS 7
#define FUZZ_NAMES 2
const char *fuzz_job(unsigned number);  /* 0 to FUZZ_JOBS - 1 */
const char *fuzz_name(unsigned number); /* of a lane, a stream or a dedup id */

/* Writes a key of any kind; `id` and `name` are for the kinds that have one in them. */
void fuzz_key(char out[EMQ_KEY_MAX + 1], emq_key_kind kind, const char *queue, const char *id,
              const char *name);

typedef struct generator {
    draw d;
    uint64_t records;  /* named so far: each is later in its stream than those before */
    int is_calm;       /* nothing dangerous: a paused queue would hand out nothing */
    int fence_is_away; /* then administrative verbs are worth more calls */
    long long tokens[2][FUZZ_JOBS]; /* of jobs handed out, clean and rough; 0: none is known */
} generator;

typedef struct fuzz_line {
    emq_verb_symbol symbol;
    const char *queue;
    int mutations; /* 0: it is right */
    int first_key; /* the index of the first key, and where the keys end */
    int keys_end;
    command words;
} fuzz_line;

void generator_init(generator *g, uint64_t seed);

/* A job was handed out under this token. Calls that follow rather use it than guess. */
void generator_learn(generator *g, const char *queue, const char *id, long long token);

/* The next call; fuzz_line_free frees its words. */
void generator_next(generator *g, fuzz_line *out);
/* A right call of a verb that may wait, with a wait of this many milliseconds. */
void generator_waiting(generator *g, fuzz_line *out, const char *timeout_ms);
void fuzz_line_free(fuzz_line *line);

/* The call as text, long words cut; the caller frees it. */
char *fuzz_words_to_text(const command *words);

#endif
