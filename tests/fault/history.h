/* SPDX-License-Identifier: Apache-2.0 */
/* What the server did with each job, from its AOF: the other witness beside the workers' logs. */
#ifndef EMQ_TESTS_HISTORY_H
#define EMQ_TESTS_HISTORY_H

#include "record.h"

typedef struct history {
    char id[RECORD_ID_SIZE];
    int64_t claims; /* the highest token that was given out */
    int64_t stalls; /* leases that lapsed, as counted */
    int64_t ends;   /* how often its row was removed: completions */
} history;

/* Reads the commands of an AOF, one a line (aof.h), of one queue's jobs. The jobs are given by
 * their ids, sorted; the caller frees the result, which is in their order. NULL: a job that is none
 * of them. */
history *history_read(const char *commands, const char *queue, const char (*ids)[RECORD_ID_SIZE],
                      size_t jobs);

#endif
