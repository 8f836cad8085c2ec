/* SPDX-License-Identifier: Apache-2.0 */
/* A command that is run for one job: bytes on its standard input, the tail of its standard error
 * kept, and its process group ended when it has to be. Safe from any thread. */
#ifndef EMQ_TOOL_CHILD_H
#define EMQ_TOOL_CHILD_H

#include <stddef.h>
#include <stdint.h>

#define CHILD_TAIL_MAX 8192 /* bytes of standard error that are kept */

/* What is to happen to a command that runs. */
typedef enum child_advice {
    CHILD_GO_ON,
    CHILD_STOP, /* SIGTERM to its group, and SIGKILL behind the grace period */
    CHILD_KILL  /* SIGKILL at once */
} child_advice;

typedef struct child_order {
    char *const *argv; /* the command is looked for in PATH */
    char *const *envp;
    const void *input;
    size_t input_size;
    int64_t timeout_ms; /* then it is stopped */
    int64_t grace_ms;
    int has_no_output; /* its standard output goes to our standard error */
    child_advice (*ask)(void *user);
    void *user;
} child_order;

typedef struct child_end {
    int status;       /* as waitpid gives it */
    int is_timed_out; /* stopped since its time was over */
    int is_ended;     /* stopped since `ask` said so */
    char tail[CHILD_TAIL_MAX];
    size_t tail_size;
} child_end;

/* Runs a command to its end. Its standard error is passed on to ours, too. 0, or an errno when it
 * could not be started. */
int child_run(child_end *out, const child_order *order);

#endif
