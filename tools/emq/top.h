/* SPDX-License-Identifier: Apache-2.0 */
/* What `emq top` knows of the queues, however it is shown: they are found slice by slice, their
 * sizes are read by one pipeline, and rates and flags follow from what was read. */
#ifndef EMQ_TOOL_TOP_H
#define EMQ_TOOL_TOP_H

#include <stddef.h>
#include <stdint.h>

#include "finder.h"
#include "sizes.h"
#include "tool.h"

#define TOP_PAST 5       /* readings that a rate goes back */
#define TOP_NO_RATE (-1) /* it was read once only */
#define TOP_CELL_MAX 16

/* What is worth a look at a queue, besides its numbers. */
enum {
    TOP_PAUSED = 1,  /* claims answer empty */
    TOP_LAPSED = 2,  /* a lease has lapsed, and no sweep has taken it back */
    TOP_OVERDUE = 4, /* a scheduled job is due, and nobody has promoted it */
};

typedef struct top_reading {
    int64_t at_ms; /* of the monotonic clock */
    int64_t completed;
    int64_t failed;
} top_reading;

typedef struct top_row {
    char *name;
    int is_found; /* in this round of looking for queues */
    sizes sizes;
    top_reading past[TOP_PAST + 1]; /* the last one is the youngest */
    size_t past_count;
    double completed_rate; /* a second, or TOP_NO_RATE */
    double failed_rate;
    int64_t read_at_ms; /* by the server's clock */
    int64_t oldest_ms;  /* how long the oldest pending job is there, or SIZES_NONE */
    int64_t lapsed_ms;  /* since when a lease has lapsed; 0: none has */
    int64_t overdue_ms;
    unsigned flags;
    double rank; /* in the order of the moment */
} top_row;

typedef enum top_column {
    TOP_NAME,
    TOP_PENDING,
    TOP_OLDEST,
    TOP_ACTIVE,
    TOP_SCHEDULED,
    TOP_DEAD,
    TOP_COMPLETED_RATE,
    TOP_FAILED_RATE,
    TOP_COLUMNS
} top_column;

/* A column as it is shown, and the word and the key that sort by it. */
typedef struct top_column_info {
    const char *word;
    const char *title;
    int width;
    char key;
} top_column_info;

extern const top_column_info top_columns[TOP_COLUMNS];

typedef struct top {
    tool *t;
    emq_pipeline *pipeline;
    size_t window;    /* how many readings a rate goes back, at most TOP_PAST */
    int64_t clock_ms; /* what the server's clock is ahead */

    finder finder;
    size_t taken;        /* queues of the finder that have a row */
    uint64_t rounds;     /* that looked at all keys */
    int64_t round_at_ms; /* when the last one ended */

    top_row *rows;
    size_t count;
    size_t capacity;
    top_row **shown; /* those that match, in order */
    size_t shown_count;

    top_column order;
    int is_reversed;
    char pattern[EMQ_QUEUE_MAX + 3]; /* of names, as of a shell's files; "" for all */

    int64_t read_at_ms; /* the last reading, unix time; 0: none yet */
} top;

/* Begins, over the open client of a verb. 0 or EMQ_ENOMEM. */
int top_open(top *all, tool *t);
void top_close(top *all);

/* Looks at one slice of the keys, and begins anew when all were looked at. Queues that a whole
 * round did not find are gone. 0, or the result of what failed. */
int top_find(top *all);

/* Reads the sizes of all queues that match, and orders them. 0, or what failed; a single queue
 * that can't be read has its own result. */
int top_read(top *all);

/* Orders what is known, after a change of order or pattern. */
void top_arrange(top *all);

/* After a loss: the whole connect path again. */
int top_reconnect(top *all);

/* The column of a word. TOP_COLUMNS when there is none. */
top_column top_column_find(const char *word);

/* A number of a row, as its column shows it, TOP_CELL_MAX bytes at most; marked by a `!` where
 * leases have lapsed or jobs are overdue. */
void top_format_cell(char out[TOP_CELL_MAX], const top_row *row, top_column column);
/* A number in few digits: 123456, 1234k, 1234M. */
void top_format_count(char out[TOP_CELL_MAX], int64_t n);
void top_format_rate(char out[TOP_CELL_MAX], double rate);

int64_t top_monotonic_ms(void);

/* Shows it on the terminal until the user quits. An exit status. */
int top_screen_run(tool *t, const char *order, const char *pattern, int64_t interval_ms);

#endif
