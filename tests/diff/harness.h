/* SPDX-License-Identifier: Apache-2.0 */
/* Runs cases: the same steps on two queues of one scratch server, the reference scripts on one and
 * the native verbs on the other, and compares after every step. */
#ifndef EMQ_TESTS_HARNESS_H
#define EMQ_TESTS_HARNESS_H

#include "compare.h"
#include "line.h"

/* The lines of a case stand one below the other. Beside those of line.h:
 *
 *   wait              until the server's time has passed every deadline of the step before
 *   restart           of the server, on its AOF
 *   epoch J1 <text>   another server process gave the lease of J1 (native side only: a declared
 *                     field)
 */
typedef struct diff_case {
    const char *name;
    const char *lines;
} diff_case;

/* What differs by design after the last step of a case. A NULL: nothing there. */
typedef struct delta {
    const char *name;  /* the case */
    const char *where; /* `reply`, or a path */
    const char *reference;
    const char *native;
} delta;

extern const diff_case diff_cases[];
extern const delta deltas[];

/* The two sides' calls are apart, each with its own window of time; or together in one MULTI/EXEC
 * with a TIME, so that all scores must be equal. */
typedef enum diff_mode { APART, TOGETHER } diff_mode;

extern test_server server;

/* Runs one case on new queues; fails the test when something differs that is not declared, or does
 * not differ that is. */
void run_case(const diff_case *one, diff_mode mode);

/* Reads the server's AOF from the start; answers the number of records, and in *emq of those whose
 * command is an EMQ verb. */
long long count_records(test_server *of, long long *emq);

/* The server's run_id. */
const char *get_run_id(char out[64]);

#endif
