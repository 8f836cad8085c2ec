/* SPDX-License-Identifier: Apache-2.0 */
/* The randomised run: sequences of operations, each carried out by the native verb, the reference
 * script and the model. The native side must be what the model predicts, always; and what the
 * script does, as long as the sequence has not met a declared deviation. A failing sequence is
 * shrunk and printed.
 *
 * EMQ_DIFF_STEPS is the number of operations (default 6000), EMQ_DIFF_SEED the first seed (default
 * 1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "model.h"

#define SEQUENCE_LENGTH 60
#define HOUR_MS 3600000
#define STEP_MAX 256
#define REPORT_MAX 16384

typedef struct sequence {
    model_operation operations[SEQUENCE_LENGTH];
    int skipped[SEQUENCE_LENGTH]; /* left out while shrinking */
    int wrong[SEQUENCE_LENGTH];   /* uses a token that is off by so much */
} sequence;

/* ---- generating ---- */

static unsigned long long random_state;

static unsigned long long next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static int pick(int n) {
    return (int)(next_random() % (unsigned long long)n);
}

static void generate(sequence *s, unsigned long long seed) {
    /* admission and claims often enough that most operations meet a job */
    static const model_verb verbs[] = {
        MODEL_ENQUEUE, MODEL_ENQUEUE,   MODEL_ENQUEUE, MODEL_SCHEDULE, MODEL_CLAIM,
        MODEL_CLAIM,   MODEL_CLAIM,     MODEL_EXTEND,  MODEL_EXTENDS,  MODEL_COMPLETE,
        MODEL_RETRY,   MODEL_RETRY,     MODEL_DELAY,   MODEL_PROMOTE,  MODEL_RESCHEDULE,
        MODEL_REQUEUE, MODEL_REPROCESS, MODEL_STALLED, MODEL_STALLED,
    };
    static const int off[] = {0, 0, 0, 0, 0, 0, 1, -1};
    random_state = seed * 2654435761ULL + 88172645463325252ULL;
    memset(s, 0, sizeof(*s));
    for (int i = 0; i < SEQUENCE_LENGTH; i++) {
        model_operation *o = &s->operations[i];
        o->verb = verbs[pick((int)(sizeof(verbs) / sizeof(verbs[0])))];
        o->job = pick(MODEL_JOBS);
        o->is_at = pick(2);
        o->ms = o->is_at ? 1 + pick(9) : HOUR_MS;
        if (o->verb == MODEL_CLAIM) {
            o->ms = pick(3) == 0 ? 1 : HOUR_MS;
        } else if (o->verb == MODEL_EXTEND || o->verb == MODEL_EXTENDS) {
            o->ms = HOUR_MS;
        } else if (o->verb == MODEL_RETRY) {
            o->ms = pick(2) == 0 ? 0 : HOUR_MS;
        }
        o->max = 1 + pick(4);
        o->limit = 1 + pick(4);
        s->wrong[i] = off[pick((int)(sizeof(off) / sizeof(off[0])))];
    }
}

/* ---- running ---- */

/* A token is that of the job at this moment, or one that is off. */
static void choose_token(model_operation *o, const model *m, int wrong) {
    o->token = m->jobs[o->job].attempts + wrong;
    if (o->token < 0) {
        o->token = 0;
    }
}

/* Runs one operation; 1 when all agree, otherwise 0 with the reason in `report`. */
static int run_operation(model *m, const model_operation *o, int *with_script, char *report) {
    char step[STEP_MAX];
    char reply[MODEL_TEXT_MAX];
    char state[MODEL_TEXT_MAX];
    model_write_step(step, o);
    *with_script = *with_script && !model_script_deviates(m, o);
    diff_result result = diff_step(step);
    model_apply(m, o, result.now_ms, reply);
    model_write_state(state, m);
    int is_right =
        strcmp(result.native_reply, reply) == 0 && strcmp(result.native_state, state) == 0;
    int is_equal = !*with_script || (strcmp(result.script_reply, result.native_reply) == 0 &&
                                     strcmp(result.script_state, result.native_state) == 0);
    if (!is_right || !is_equal) {
        (void)snprintf(report, REPORT_MAX, "%s\nnative: %s\n%smodel: %s\n%sscript%s: %s\n%s", step,
                       result.native_reply, result.native_state, reply, state,
                       *with_script ? "" : " (not compared)",
                       result.script_reply == NULL ? "" : result.script_reply, result.script_state);
    }
    diff_result_free(&result);
    return is_right && is_equal;
}

/* A lease of a millisecond is waited out at once, so that no race decides whether it has lapsed; so
 * is a delay of nothing. */
static void wait_out(const model_operation *o) {
    if ((o->verb == MODEL_CLAIM && o->ms == 1) || (o->verb == MODEL_RETRY && o->ms == 0)) {
        diff_result result = diff_step("wait 2");
        diff_result_free(&result);
    }
}

static int run_sequence(const sequence *s, char *report) {
    model m = {0};
    int with_script = 1;
    diff_clear();
    for (int i = 0; i < SEQUENCE_LENGTH; i++) {
        model_operation o = s->operations[i];
        if (s->skipped[i]) {
            continue;
        }
        choose_token(&o, &m, s->wrong[i]);
        if (!run_operation(&m, &o, &with_script, report)) {
            return 0;
        }
        wait_out(&o);
    }
    return 1;
}

/* Leaves out whatever the failure does not need. */
static void shrink(sequence *s, char *report) {
    for (int i = 0; i < SEQUENCE_LENGTH; i++) {
        s->skipped[i] = 1;
        if (run_sequence(s, report)) {
            s->skipped[i] = 0;
        }
    }
    (void)run_sequence(s, report);
}

static void print_sequence(const sequence *s) {
    for (int i = 0; i < SEQUENCE_LENGTH; i++) {
        char step[STEP_MAX];
        if (!s->skipped[i]) {
            model_write_step(step, &s->operations[i]);
            (void)fprintf(stderr, "  %s (tokens are the job's own, off by %d)\n", step,
                          s->wrong[i]);
        }
    }
}

static unsigned long long get_number(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? otherwise : strtoull(text, NULL, 10);
}

static void random_sequences_agree(void **state) {
    static char report[REPORT_MAX];
    static sequence s;
    unsigned long long seed = get_number("EMQ_DIFF_SEED", 1);
    unsigned long long sequences = get_number("EMQ_DIFF_STEPS", 6000) / SEQUENCE_LENGTH;
    (void)state;
    for (unsigned long long i = 0; i < sequences; i++, seed++) {
        generate(&s, seed);
        if (!run_sequence(&s, report)) {
            (void)fprintf(stderr, "EMQ_DIFF_SEED=%llu fails; what it needs:\n", seed);
            shrink(&s, report);
            print_sequence(&s);
            fail_msg("seed %llu, at %s", seed, report);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences_agree),
    };
    return RUN_SERVER_TESTS("diff.random", tests, diff_start, diff_stop);
}
