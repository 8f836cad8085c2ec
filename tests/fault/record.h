/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process under test writes down of each job, a line for each fact. A line goes to
 * the file by one write, so that a process which is killed has all lines in it that it finished. */
#ifndef EMQ_TESTS_RECORD_H
#define EMQ_TESTS_RECORD_H

#include <stddef.h>
#include <stdint.h>

#define RECORD_ID_SIZE 15 /* a branded id and a NUL */

typedef enum record_kind {
    RECORD_RUN,       /* a handler starts */
    RECORD_END,       /* it has come to its end; value: the emq_task_notice it knows of */
    RECORD_TOLD,      /* the lease is lost, says the worker; value: the emq_task_notice */
    RECORD_COMPLETED, /* the settle was answered: completed */
    RECORD_RETURNED,  /* given back */
    RECORD_REFUSED    /* not settled; value: the result that says why */
} record_kind;

typedef struct record {
    record_kind kind;
    char id[RECORD_ID_SIZE];
    int64_t attempt;
    int64_t at_ms; /* by the monotonic clock, which the processes share */
    int value;
    size_t process; /* whose; not in the line */
} record;

typedef struct records {
    record *items;
    size_t count;
    size_t capacity;
} records;

int64_t record_now_ms(void);

/* Opens or makes a log; -1 with errno. */
int record_open(const char *path);

/* Appends a line, its time filled in. @return 0; -1 with errno. */
int record_write(int fd, record_kind kind, const char *id, int64_t attempt, int value);

void records_add(records *list, const record *r);

/* Adds what is in a log. A last line without its end is left out. @return 0; -1: no such file, or
 * a line that is none. */
int records_read(records *list, const char *path, size_t process);

void records_free(records *list);

#endif
