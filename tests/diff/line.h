/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a session, as the cases and the random run write them, and the commands they stand for.
 *
 *   claim 3600000          a verb with its values; the keys follow from the queue and the id
 *   ! HSET @meta paused 1  any command, on both sides; @ stands for the queue's base
 *
 * A word J1 to J9, also behind `job:`, stands for a branded id; "" is the empty word; \xNN is a
 * byte; E<n> is n letters e. */
#ifndef EMQ_TESTS_LINE_H
#define EMQ_TESTS_LINE_H

#include "command.h"

#define LINE_WORDS_MAX 64
#define LINE_TEXT_MAX 1024
#define ID_TEXT_MAX 16
#define ID_START "JOB0KHTOWnGLu" /* J1 is this and a 1 */

/* A verb, its scripted twin and the pin of that script. This is the one table of the pins. */
typedef struct diff_verb {
    const char *word;   /* in lines */
    const char *name;   /* of the command */
    const char *keys;   /* Row Pending Active Schedule Dead Base, in order */
    int id_index;       /* the value that names the row; -1: none */
    const char *script; /* NULL: no twin */
    const char *sha1;
} diff_verb;

extern const diff_verb diff_verbs[];

typedef struct words {
    int count;
    char *word[LINE_WORDS_MAX];
    char text[LINE_TEXT_MAX];
} words;

/* Splits a line; its words stay short (J1 is J1). */
void words_split(words *out, const char *line);

/* Replaces J1 by its id in a text; `out` has LINE_TEXT_MAX bytes. */
void expand_ids(char *out, const char *text);

/* The verb of this name in lines; NULL when there is none. */
const diff_verb *find_verb(const char *word);

/* Loads the scripts and compares each with its pin, and what the server makes of it, too: nothing
 * is measured with another script. */
void references_load(redisContext *c);

/* Adds the native command, or the EVAL of its twin, for the queue with this base. */
void build_native(command *out, const diff_verb *verb, const char *base, const words *line);
void build_reference(command *out, const diff_verb *verb, const char *base, const words *line);

/* Adds a native command that is no row of that table; its keys as letters. */
void build_verb(command *out, const char *name, const char *keys, const char *base,
                const words *line);

/* Adds the command behind `!`. */
void build_plain(command *out, const char *base, const words *line);

/* What the verb adds to the server's time for the score that it writes; -1: nothing. */
long long line_span(const diff_verb *verb, const words *line);

#endif
