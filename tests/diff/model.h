/* SPDX-License-Identifier: Apache-2.0 */
/* A model of the job core: a few jobs, each in one state, and the rules of docs/protocol.md. It
 * predicts the native reply and the whole state after every operation, and tells where the
 * reference script is known to do something else. A job is in exactly one set by construction: the
 * keys must agree. */
#ifndef EMQ_TESTS_DIFF_MODEL_H
#define EMQ_TESTS_DIFF_MODEL_H

#define MODEL_JOBS 8
#define MODEL_TEXT_MAX 4096

typedef enum model_state {
    MODEL_GONE,
    MODEL_PENDING,
    MODEL_ACTIVE,
    MODEL_SCHEDULED,
    MODEL_DEAD
} model_state;

typedef struct model_job {
    model_state state;
    long long attempts;
    long long failures;
    long long stalled;
    const char *last_error; /* NULL: none */
    int has_epoch;
    long long score;
} model_job;

typedef struct model {
    model_job jobs[MODEL_JOBS];
    long long completed;
    long long failed;
} model;

typedef enum model_verb {
    MODEL_ENQUEUE,
    MODEL_SCHEDULE,
    MODEL_CLAIM,
    MODEL_EXTEND,
    MODEL_EXTENDS,
    MODEL_COMPLETE,
    MODEL_RETRY,
    MODEL_DELAY,
    MODEL_PROMOTE,
    MODEL_RESCHEDULE,
    MODEL_REPROCESS,
    MODEL_REQUEUE,
    MODEL_STALLED,
    MODEL_VERBS
} model_verb;

/* An operation; only the fields that the verb takes are looked at. */
typedef struct model_operation {
    model_verb verb;
    int job;
    long long token;
    long long ms;  /* lease, time or delay */
    int is_at;     /* ms is a time, not a while */
    long long max; /* failures or stalls */
    long long limit;
} model_operation;

/* The operation as a step of the harness. */
void model_write_step(char *out, const model_operation *operation);

/* Whether the reference does something else here by design (or has no script for the verb). */
int model_script_deviates(const model *m, const model_operation *operation);

/* Carries the operation out at this server time and writes the reply, as expect.h writes it. */
void model_apply(model *m, const model_operation *operation, long long now_ms, char *reply);

/* The state, as the harness writes it. */
void model_write_state(char *out, const model *m);

#endif
