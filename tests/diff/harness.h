/* SPDX-License-Identifier: Apache-2.0 */
/* The differential harness: one step of a job's life, run twice in one transaction. The reference
 * script works on the queue `lua`, the native verb on the queue `emq-n`, both with the same tail;
 * the transaction also reads TIME, so that both see one clock and deadlines must be equal to the
 * millisecond. Afterwards replies and keys are compared, the queue's name taken out.
 *
 * A step is a text: the script's name and its values, separated by spaces (`retry A 1 0 3 boom`),
 * where A to H stand for job ids. `reschedule` and `requeue` have no script and run on the native
 * side alone. Or `!COMMAND key word…` to change both queues by hand (the key is written without the
 * queue's base); or `wait MS` until the server's clock has gone on by more than that. */
#ifndef EMQ_TESTS_DIFF_HARNESS_H
#define EMQ_TESTS_DIFF_HARNESS_H

#include "expect.h"

extern test_server diff_server;

int diff_start(void **state);
int diff_stop(void **state);

/* Empties both queues. */
void diff_clear(void);

/* What the two sides answered (NULL where a side had nothing to run) and hold after a step; freed
 * by diff_result_free. The native state is without the two declared fields, lease_epoch and
 * failures, whose values were checked. */
typedef struct diff_result {
    char *script_reply;
    char *native_reply;
    char *script_state;
    char *native_state;
    long long now_ms; /* the server's time in the step */
} diff_result;

diff_result diff_step(const char *step);
void diff_result_free(diff_result *result);

/* The full job id of a letter. */
const char *diff_id(char letter);

#endif
