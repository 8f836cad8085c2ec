/* SPDX-License-Identifier: Apache-2.0 */
/* The model: one function per verb, and its state as text. */
#include "model.h"

#include <stdio.h>
#include <string.h>

#define LETTER(job) ((char)('A' + (job)))
#define ID "JOB0KHTOWnGLu%c"
#define PAYLOAD "p"
#define ERROR_TEXT "boom"

static const char *const state_words[] = {"", "pending", "active", "scheduled", "dead"};

void model_write_step(char *out, const model_operation *o) {
    char letter = LETTER(o->job);
    const char *mode = o->is_at ? "at" : "in";
    switch (o->verb) {
    case MODEL_ENQUEUE:
        (void)sprintf(out, "enqueue %c " PAYLOAD, letter);
        break;
    case MODEL_SCHEDULE:
        (void)sprintf(out, "schedule %c " PAYLOAD " %s %lld", letter, mode, o->ms);
        break;
    case MODEL_CLAIM:
        (void)sprintf(out, "claim %lld", o->ms);
        break;
    case MODEL_EXTEND:
        (void)sprintf(out, "extend %c %lld %lld", letter, o->token, o->ms);
        break;
    case MODEL_EXTENDS:
        (void)sprintf(out, "extends %lld %c %lld %c 1", o->ms, letter, o->token,
                      LETTER((o->job + 1) % MODEL_JOBS));
        break;
    case MODEL_COMPLETE:
        (void)sprintf(out, "complete %c %lld", letter, o->token);
        break;
    case MODEL_RETRY:
        (void)sprintf(out, "retry %c %lld %lld %lld " ERROR_TEXT, letter, o->token, o->ms, o->max);
        break;
    case MODEL_DELAY:
        (void)sprintf(out, "delay %c %lld %s %lld", letter, o->token, mode, o->ms);
        break;
    case MODEL_PROMOTE:
        (void)sprintf(out, "promote %lld", o->limit);
        break;
    case MODEL_RESCHEDULE:
        (void)sprintf(out, "reschedule %c %s %lld", letter, mode, o->ms);
        break;
    case MODEL_REPROCESS:
        (void)sprintf(out, "reprocess %c", letter);
        break;
    case MODEL_REQUEUE:
        (void)sprintf(out, "requeue %c %lld", letter, o->token);
        break;
    default:
        (void)sprintf(out, "stalled %lld %lld", o->max, o->limit);
        break;
    }
}

/* ---- rules ---- */

static int is_settleable(const model_job *j) {
    return j->attempts >= 1 &&
           (j->state == MODEL_ACTIVE || (j->state == MODEL_PENDING && j->has_epoch));
}

static int has_token(const model_job *j, long long token) {
    return j->state != MODEL_GONE && j->attempts == token;
}

int model_script_deviates(const model *m, const model_operation *o) {
    const model_job *j = &m->jobs[o->job];
    const model_job *next = &m->jobs[(o->job + 1) % MODEL_JOBS];
    switch (o->verb) {
    case MODEL_EXTEND: /* the script brings a lost lease back */
        return has_token(j, o->token) && j->state != MODEL_ACTIVE;
    case MODEL_EXTENDS:
        return (has_token(j, o->token) && j->state != MODEL_ACTIVE) ||
               (has_token(next, 1) && next->state != MODEL_ACTIVE);
    case MODEL_COMPLETE: /* the script settles what nobody holds */
        return has_token(j, o->token) && !is_settleable(j);
    case MODEL_RETRY: /* and its budget counts claims */
        return has_token(j, o->token) &&
               (!is_settleable(j) || (j->attempts >= o->max) != (j->failures + 1 >= o->max));
    case MODEL_DELAY: /* and it leaves a swept job in pending */
        return has_token(j, o->token) && j->state != MODEL_ACTIVE;
    case MODEL_REPROCESS: /* and a dead job keeps its stalls */
        return j->state == MODEL_DEAD && j->stalled > 0;
    case MODEL_RESCHEDULE:
    case MODEL_REQUEUE:
        return 1;
    default:
        return 0;
    }
}

static long long get_time(const model_operation *o, long long now_ms) {
    return o->is_at ? o->ms : now_ms + o->ms;
}

static void admit(model_job *j, model_state state, long long score, char *reply) {
    if (j->state != MODEL_GONE) {
        (void)strcpy(reply, "0");
        return;
    }
    *j = (model_job){.state = state, .score = score};
    (void)strcpy(reply, "1");
}

static void claim(model *m, long long deadline, char *reply) {
    (void)strcpy(reply, "[]");
    for (int i = 0; i < MODEL_JOBS; i++) {
        model_job *j = &m->jobs[i];
        if (j->state == MODEL_PENDING) {
            j->state = MODEL_ACTIVE;
            j->attempts++;
            j->has_epoch = 1;
            j->score = deadline;
            (void)sprintf(reply, "[\"" ID "\", \"" PAYLOAD "\", %lld]", LETTER(i), j->attempts);
            return;
        }
    }
}

static void extend(model_job *j, long long token, long long deadline, char *reply) {
    if (j->state == MODEL_GONE) {
        (void)strcpy(reply, "-1");
    } else if (j->attempts != token) {
        (void)strcpy(reply, "-EMQSTALE extend token mismatch");
    } else if (j->state != MODEL_ACTIVE) {
        (void)strcpy(reply, "-EMQSTALE extend lease lost");
    } else {
        j->score = deadline;
        (void)strcpy(reply, "1");
    }
}

static void extends(model *m, const model_operation *o, long long deadline, char *reply) {
    const int jobs[] = {o->job, (o->job + 1) % MODEL_JOBS};
    const long long tokens[] = {o->token, 1};
    int refused = 0;
    (void)strcpy(reply, "[");
    for (int i = 0; i < 2; i++) {
        model_job *j = &m->jobs[jobs[i]];
        if (j->state == MODEL_ACTIVE && j->attempts == tokens[i]) {
            j->score = deadline;
        } else {
            (void)sprintf(reply + strlen(reply), "%s\"" ID "\"", refused++ > 0 ? ", " : "",
                          LETTER(jobs[i]));
        }
    }
    (void)strcat(reply, "]");
}

/* Whether the caller may settle; writes the refusal when not. */
static int may_settle(const model_job *j, long long token, const char *word, const char *gone,
                      char *reply) {
    if (j->state == MODEL_GONE) {
        (void)strcpy(reply, gone);
    } else if (j->attempts != token) {
        (void)sprintf(reply, "-EMQSTALE %s token mismatch", word);
    } else if (!is_settleable(j)) {
        (void)sprintf(reply, "-EMQSTALE %s lease lost", word);
    } else {
        return 1;
    }
    return 0;
}

static void put(model_job *j, model_state state, long long score, char *reply) {
    j->state = state;
    j->score = score;
    j->has_epoch = 0;
    (void)strcpy(reply, "1");
}

static void retry(model *m, model_job *j, const model_operation *o, long long now_ms, char *reply) {
    j->failures++;
    j->last_error = ERROR_TEXT;
    if (j->failures >= o->max) {
        put(j, MODEL_DEAD, 0, reply);
        m->failed++;
        (void)strcpy(reply, "\"dead\"");
    } else {
        put(j, MODEL_SCHEDULED, now_ms + o->ms, reply);
        (void)strcpy(reply, "\"scheduled\"");
    }
}

/* The job in this state with the lowest score not above `now_ms`, or -1. */
static int find_due(const model *m, model_state state, long long now_ms) {
    int found = -1;
    for (int i = 0; i < MODEL_JOBS; i++) {
        const model_job *j = &m->jobs[i];
        if (j->state == state && j->score <= now_ms &&
            (found < 0 || j->score < m->jobs[found].score)) {
            found = i;
        }
    }
    return found;
}

static void promote(model *m, long long limit, long long now_ms, char *reply) {
    long long moved = 0;
    for (int i = 0; moved < limit && (i = find_due(m, MODEL_SCHEDULED, now_ms)) >= 0; moved++) {
        m->jobs[i].state = MODEL_PENDING;
        m->jobs[i].score = 0;
    }
    (void)sprintf(reply, "%lld", moved);
}

static void sweep(model *m, const model_operation *o, long long now_ms, char *reply) {
    char recovered[MODEL_TEXT_MAX] = "";
    char dead[MODEL_TEXT_MAX] = "";
    int i = 0;
    for (long long n = 0; n < o->limit && (i = find_due(m, MODEL_ACTIVE, now_ms)) >= 0; n++) {
        model_job *j = &m->jobs[i];
        char *list = recovered;
        j->score = 0;
        j->stalled++;
        if (j->stalled >= o->max) {
            j->state = MODEL_DEAD;
            j->last_error = "stalled";
            j->has_epoch = 0;
            m->failed++;
            list = dead;
        } else {
            j->state = MODEL_PENDING;
        }
        (void)sprintf(list + strlen(list), "%s\"" ID "\"", *list != '\0' ? ", " : "", LETTER(i));
    }
    (void)sprintf(reply, "[[%s], [%s]]", recovered, dead);
}

static void reprocess(model_job *j, char *reply) {
    if (j->state == MODEL_GONE) {
        (void)strcpy(reply, "-1");
    } else if (j->state != MODEL_DEAD) {
        (void)strcpy(reply, "-EMQSTATE not dead");
    } else {
        *j = (model_job){.state = MODEL_PENDING, .attempts = j->attempts};
        (void)strcpy(reply, "1");
    }
}

static void reschedule(model_job *j, long long score, char *reply) {
    if (j->state == MODEL_GONE) {
        (void)strcpy(reply, "-1");
    } else if (j->state != MODEL_SCHEDULED) {
        (void)strcpy(reply, "-EMQSTATE not scheduled");
    } else {
        j->score = score;
        (void)strcpy(reply, "1");
    }
}

static void complete(model *m, model_job *j, char *reply) {
    *j = (model_job){.state = MODEL_GONE};
    m->completed++;
    (void)strcpy(reply, "1");
}

void model_apply(model *m, const model_operation *o, long long now_ms, char *reply) {
    model_job *j = &m->jobs[o->job];
    switch (o->verb) {
    case MODEL_ENQUEUE:
        admit(j, MODEL_PENDING, 0, reply);
        break;
    case MODEL_SCHEDULE:
        admit(j, MODEL_SCHEDULED, get_time(o, now_ms), reply);
        break;
    case MODEL_CLAIM:
        claim(m, now_ms + o->ms, reply);
        break;
    case MODEL_EXTEND:
        extend(j, o->token, now_ms + o->ms, reply);
        break;
    case MODEL_EXTENDS:
        extends(m, o, now_ms + o->ms, reply);
        break;
    case MODEL_COMPLETE:
        if (may_settle(j, o->token, "complete", "0", reply)) {
            complete(m, j, reply);
        }
        break;
    case MODEL_RETRY:
        if (may_settle(j, o->token, "retry", "-EMQSTALE job gone", reply)) {
            retry(m, j, o, now_ms, reply);
        }
        break;
    case MODEL_DELAY:
        if (may_settle(j, o->token, "delay", "-EMQSTALE job gone", reply)) {
            put(j, MODEL_SCHEDULED, get_time(o, now_ms), reply);
        }
        break;
    case MODEL_REQUEUE:
        if (may_settle(j, o->token, "requeue", "-1", reply)) {
            put(j, MODEL_PENDING, 0, reply);
        }
        break;
    case MODEL_PROMOTE:
        promote(m, o->limit, now_ms, reply);
        break;
    case MODEL_RESCHEDULE:
        reschedule(j, get_time(o, now_ms), reply);
        break;
    case MODEL_REPROCESS:
        reprocess(j, reply);
        break;
    default:
        sweep(m, o, now_ms, reply);
        break;
    }
}

/* ---- state as text ---- */

static void write_set(char *out, const model *m, model_state state, const char *key) {
    int any = 0;
    for (int i = 0; i < MODEL_JOBS; i++) {
        if (m->jobs[i].state == state) {
            (void)sprintf(out + strlen(out), "%s \"" ID "\"=\"%lld\"", any++ == 0 ? key : "",
                          LETTER(i), m->jobs[i].score);
        }
    }
    if (any > 0) {
        (void)strcat(out, "\n");
    }
}

static void write_row(char *out, char letter, const model_job *j) {
    (void)sprintf(out + strlen(out), "job:" ID ": \"attempts\"=\"%lld\"", letter, j->attempts);
    if (j->last_error != NULL) {
        (void)sprintf(out + strlen(out), " \"last_error\"=\"%s\"", j->last_error);
    }
    (void)strcat(out, " \"payload\"=\"" PAYLOAD "\"");
    if (j->stalled > 0) {
        (void)sprintf(out + strlen(out), " \"stalled\"=\"%lld\"", j->stalled);
    }
    (void)sprintf(out + strlen(out), " \"state\"=\"%s\"\n", state_words[j->state]);
}

void model_write_state(char *out, const model *m) {
    out[0] = '\0';
    write_set(out, m, MODEL_ACTIVE, "active:");
    write_set(out, m, MODEL_DEAD, "dead:");
    for (int i = 0; i < MODEL_JOBS; i++) {
        if (m->jobs[i].state != MODEL_GONE) {
            write_row(out, LETTER(i), &m->jobs[i]);
        }
    }
    if (m->completed > 0) {
        (void)sprintf(out + strlen(out), "metrics:completed: \"count\"=\"%lld\"\n", m->completed);
    }
    if (m->failed > 0) {
        (void)sprintf(out + strlen(out), "metrics:failed: \"count\"=\"%lld\"\n", m->failed);
    }
    write_set(out, m, MODEL_PENDING, "pending:");
    write_set(out, m, MODEL_SCHEDULED, "schedule:");
}
