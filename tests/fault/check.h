/* SPDX-License-Identifier: Apache-2.0 */
/* Holds what workers wrote down, and what the server says at the end, to what the queue promises.
 * Pure: no server, no files. */
#ifndef EMQ_TESTS_CHECK_H
#define EMQ_TESTS_CHECK_H

#include "history.h"
#include "record.h"

#include <stdio.h>

/* What can be broken. */
typedef enum check_rule {
    CHECK_COUNTS,          /* completed + dead = jobs, and none is left */
    CHECK_STRANGER,        /* a job that nobody admitted */
    CHECK_TOKEN_TWICE,     /* two runs under one token */
    CHECK_ORPHAN,          /* an end or a completion without a run */
    CHECK_NEVER_RAN,       /* completed, and no handler ever came to its end */
    CHECK_UNFINISHED,      /* a handler that did not come to its end, and nobody killed it */
    CHECK_COMPLETED_TWICE, /* more than one run of a job was completed */
    CHECK_RUN_AFTERWARDS,  /* a run behind the one that was completed */
    CHECK_NOT_SETTLED,     /* the last run was not completed, and the job is not dead */
    CHECK_NOT_TOLD,        /* a lease was lost, and the worker knew nothing of it */
    CHECK_COMPLETED_LOST,  /* completed in spite of a lease that was known to be lost */
    CHECK_DEAD_TOO_EARLY,  /* dead without enough lapsed leases */
    CHECK_WITNESS,         /* the server's history says otherwise than the logs */
    CHECK_DEAD_AND_DONE,   /* dead, and completed as well */
    CHECK_TOO_MANY_RUNS,   /* more runs than what happened accounts for */
    CHECK_RULES
} check_rule;

/* A dead letter, as its row says. */
typedef struct check_dead {
    char id[RECORD_ID_SIZE];
    int64_t attempts;
    int64_t stalled;
} check_dead;

typedef struct check_input {
    records log;                       /* of all processes; sorted by the check */
    const char (*ids)[RECORD_ID_SIZE]; /* of all jobs */
    size_t jobs;
    const history *server; /* what the server did with each of them, in their order */
    const check_dead *dead;
    size_t dead_count;
    int64_t completed;           /* how many the server completed */
    int64_t left;                /* how many are neither completed nor dead */
    const unsigned char *killed; /* 1 for each process that was killed */
    size_t processes;
    int64_t losses;      /* how many runs may have been lost to what was done */
    int64_t max_stalled; /* of the workers */
} check_input;

typedef struct check_report {
    size_t broken[CHECK_RULES];
    size_t runs;    /* handlers that started */
    size_t again;   /* beyond the first of each job */
    size_t cut;     /* ended with their process */
    size_t told;    /* whose handler knew at its end that the lease was lost */
    size_t refused; /* whose settle the server refused */
    size_t unseen;  /* claims that never came to a handler, their process being killed or stopped */
    size_t dead_unseen; /* dead letters that have such a claim among their lapsed ones */
    size_t completed;   /* settles that were answered: completed */
    size_t unsure;      /* jobs whose last run ended, and its process before it heard the answer */
} check_report;

/* Fills the report, and says on `out` what is broken, one line each. @return how much is broken. */
size_t check(check_report *report, const check_input *input, FILE *out);

#endif
