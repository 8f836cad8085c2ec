/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a step, and what differs between two sides: the typed reply, and every pair of the
 * two snapshots. A score of `active` or `schedule` that this step wrote is not compared as a number
 * but by the window of server time around its own call. */
#ifndef EMQ_TESTS_COMPARE_H
#define EMQ_TESTS_COMPARE_H

#include "snapshot.h"

#define DIFFERENCES_MAX 64
#define SIDE_NOTES_MAX 32

/* A score that was found within its window: which step wrote it, and how far from its time. */
typedef struct score_note {
    char *path;
    char *raw;
    int step;
    long long span;
} score_note;

typedef struct side {
    const char *name;
    char base[64];
    char *reply;
    snapshot state;
    long long from; /* server time in ms before and after this side's call */
    long long to;
    score_note notes[SIDE_NOTES_MAX];
    int note_count;
} side;

typedef struct difference {
    char *where;     /* `reply` or a path */
    char *reference; /* NULL: nothing there */
    char *native;
} difference;

typedef struct differences {
    difference list[DIFFERENCES_MAX];
    int count;
} differences;

/* Compares the two sides after a step. `span` is what the step's verb adds to the server's time, -1
 * for nothing. Remembers on both sides the scores that matched by their windows. */
void sides_compare(differences *out, side *reference, side *native, int step, long long span);

void differences_print(const differences *d);
void differences_free(differences *d);
void side_free(side *s);

/* The server's time in milliseconds, and the same from a reply of TIME. */
long long server_now(redisContext *c);
long long time_of(const redisReply *reply);

/* The reply as text; of an error that a script passed on, without the position in the script. */
char *reply_text(const redisReply *reply);

#endif
