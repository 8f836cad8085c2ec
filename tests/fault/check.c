/* SPDX-License-Identifier: Apache-2.0 */
/* The proof: records are gathered into runs (one for each job and token), runs into jobs. */
#include "check.h"

#include <emq/emq.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What the log says of one claim. */
typedef struct run {
    const char *id;
    int64_t attempt;
    size_t process;
    size_t starts;
    int ended;
    int told;      /* the worker knew that the lease was lost */
    int knew;      /* and so did the handler, at its end */
    int completed; /* how often */
    int returned;
    int refused; /* the result, 0: not refused */
} run;

typedef struct proof {
    const check_input *input;
    check_report *report;
    FILE *out;
} proof;

static void broken(proof *p, check_rule rule, const char *id, int64_t attempt, const char *what) {
    p->report->broken[rule]++;
    (void)fprintf(p->out, "%s attempt %" PRId64 ": %s\n", id, attempt, what);
}

static int by_run(const void *a, const void *b) {
    const record *left = a;
    const record *right = b;
    int order = strcmp(left->id, right->id);
    if (order == 0) {
        order = (left->attempt > right->attempt) - (left->attempt < right->attempt);
    }
    if (order == 0) {
        order = (left->at_ms > right->at_ms) - (left->at_ms < right->at_ms);
    }
    return order == 0 ? (int)left->kind - (int)right->kind : order;
}

static int by_id(const void *a, const void *b) {
    return strcmp(a, b); /* both start with the id */
}

static void note(run *r, const record *line) {
    switch (line->kind) {
    case RECORD_RUN:
        r->starts++;
        r->process = line->process;
        break;
    case RECORD_END:
        r->ended = 1;
        r->knew = line->value == EMQ_NOTICE_LOST;
        break;
    case RECORD_TOLD:
        r->told = r->told || line->value == EMQ_NOTICE_LOST;
        break;
    case RECORD_COMPLETED:
        r->completed++;
        break;
    case RECORD_RETURNED:
        r->returned = 1;
        break;
    case RECORD_REFUSED:
        r->refused = line->value;
        break;
    }
}

static int was_killed(const proof *p, const run *r) {
    return r->process < p->input->processes && p->input->killed[r->process];
}

static void check_run(proof *p, const run *r) {
    check_report *report = p->report;
    report->runs += r->starts;
    report->told += r->knew != 0;
    report->refused += r->refused != 0;
    report->completed += r->completed != 0;
    if (r->starts == 0 && !r->ended && !r->completed) {
        report->unseen++; /* lost or given back before its handler started */
        return;
    }
    if (r->starts == 0) {
        broken(p, CHECK_ORPHAN, r->id, r->attempt, "settled, and never ran");
    }
    if (r->starts > 1) {
        broken(p, CHECK_TOKEN_TWICE, r->id, r->attempt, "ran twice under one token");
    }
    if (!r->ended && was_killed(p, r)) {
        report->cut++;
    } else if (!r->ended) {
        broken(p, CHECK_UNFINISHED, r->id, r->attempt, "did not come to its end");
    }
    if (r->completed && !r->ended) {
        broken(p, CHECK_NEVER_RAN, r->id, r->attempt, "completed before its end");
    }
    if (r->completed && (r->knew || r->told)) {
        broken(p, CHECK_COMPLETED_LOST, r->id, r->attempt, "completed under a lost lease");
    }
}

/* A run behind which the job was claimed again, or died: its lease was lost. */
static void check_lapsed(proof *p, const run *r) {
    int heard = r->knew || r->told || r->refused != 0 || r->returned;
    if (r->ended && !heard && !was_killed(p, r)) {
        broken(p, CHECK_NOT_TOLD, r->id, r->attempt, "lost its lease, and its worker knows not");
    }
}

/* The server's side: every lease that was given out is in its history, a job that is done was
 * completed once, a dead one never, and lost as many leases as it takes. */
static void check_history(proof *p, const history *h) {
    const check_input *input = p->input;
    int is_dead =
        bsearch(h->id, input->dead, input->dead_count, sizeof(*input->dead), by_id) != NULL;
    if (h->ends > 1) {
        broken(p, CHECK_COMPLETED_TWICE, h->id, h->claims, "completed twice by the server");
    }
    if (h->ends + is_dead == 0) {
        broken(p, CHECK_COUNTS, h->id, h->claims, "neither completed nor dead");
    }
    if (is_dead && h->ends > 0) {
        broken(p, CHECK_DEAD_AND_DONE, h->id, h->claims, "dead, and completed by the server");
    }
    if (is_dead && (h->stalls < input->max_stalled || h->claims < input->max_stalled)) {
        broken(p, CHECK_DEAD_TOO_EARLY, h->id, h->claims, "dead, and its leases did not lapse");
    }
}

static void check_dead_job(proof *p, const check_dead *dead, const run *runs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (runs[i].completed) {
            broken(p, CHECK_DEAD_AND_DONE, dead->id, runs[i].attempt, "dead, and completed");
        }
        check_lapsed(p, &runs[i]);
    }
    /* a claim whose process died before the handler's first line is in the row's count alone */
    p->report->dead_unseen += (int64_t)count < p->input->max_stalled;
    if (dead->attempts > (int64_t)count) {
        p->report->unseen += (size_t)(dead->attempts - (int64_t)count);
    }
    if (dead->stalled < p->input->max_stalled || dead->attempts < p->input->max_stalled) {
        broken(p, CHECK_DEAD_TOO_EARLY, dead->id, dead->attempts, "dead before its time");
    }
}

static void check_done_job(proof *p, const run *runs, size_t count) {
    const run *last = &runs[count - 1];
    size_t completed = 0;
    for (size_t i = 0; i < count; i++) {
        completed += (size_t)runs[i].completed;
        if (runs[i].completed && i + 1 < count) {
            broken(p, CHECK_RUN_AFTERWARDS, last->id, last->attempt, "ran after its completion");
        }
        if (i + 1 < count) {
            check_lapsed(p, &runs[i]);
        }
    }
    if (completed > 1) {
        broken(p, CHECK_COMPLETED_TWICE, last->id, last->attempt, "completed twice");
    }
    p->report->unseen += (size_t)(last->attempt - (int64_t)count);
    int unsure = last->ended && was_killed(p, last);
    if (!last->completed && unsure) {
        p->report->unsure++;
    } else if (!last->completed) {
        broken(p, CHECK_NOT_SETTLED, last->id, last->attempt, "was not completed");
    }
}

static void check_job(proof *p, const run *runs, size_t count) {
    const check_input *input = p->input;
    const check_dead *dead =
        bsearch(runs->id, input->dead, input->dead_count, sizeof(*input->dead), by_id);
    if (bsearch(runs->id, input->ids, input->jobs, sizeof(*input->ids), by_id) == NULL) {
        broken(p, CHECK_STRANGER, runs->id, runs->attempt, "nobody admitted it");
    }
    for (size_t i = 0; i < count; i++) {
        check_run(p, &runs[i]);
    }
    const history *h = bsearch(runs->id, input->server, input->jobs, sizeof(*input->server), by_id);
    if (h == NULL || runs[count - 1].attempt > h->claims) {
        broken(p, CHECK_WITNESS, runs->id, runs[count - 1].attempt,
               "the server gave no such lease");
    }
    if (dead != NULL) {
        check_dead_job(p, dead, runs, count);
    } else {
        check_done_job(p, runs, count);
    }
}

/* @return how many jobs have runs. */
static size_t check_jobs(proof *p, const records *log) {
    run *runs = calloc(log->count + 1, sizeof(*runs));
    size_t jobs = 0;
    size_t count = 0; /* runs of the job */
    if (runs == NULL) {
        abort();
    }
    for (size_t i = 0; i < log->count; i++) {
        const record *line = &log->items[i];
        if (count > 0 && strcmp(runs[0].id, line->id) != 0) {
            check_job(p, runs, count);
            memset(runs, 0, count * sizeof(*runs));
            jobs++;
            count = 0;
        }
        if (count == 0 || runs[count - 1].attempt != line->attempt) {
            runs[count].id = line->id;
            runs[count++].attempt = line->attempt;
        }
        note(&runs[count - 1], line);
    }
    if (count > 0) {
        check_job(p, runs, count);
        jobs++;
    }
    free(runs);
    return jobs;
}

static void check_totals(proof *p, size_t jobs_that_ran) {
    const check_input *input = p->input;
    check_report *report = p->report;
    int64_t dead = (int64_t)input->dead_count;
    if (input->left != 0 || input->completed + dead != (int64_t)input->jobs) {
        report->broken[CHECK_COUNTS]++;
        (void)fprintf(p->out,
                      "%zu jobs: %" PRId64 " completed, %" PRId64 " dead, %" PRId64 " left\n",
                      input->jobs, input->completed, dead, input->left);
    }
    if (jobs_that_ran + input->dead_count < input->jobs) {
        report->broken[CHECK_NEVER_RAN]++;
        (void)fprintf(p->out, "of %zu jobs %zu ran\n", input->jobs, jobs_that_ran);
    }
    if (report->completed + report->unsure < (size_t)input->completed) {
        report->broken[CHECK_NEVER_RAN]++;
        (void)fprintf(p->out, "completed without a worker: %" PRId64 " of the server's\n",
                      input->completed);
    }
    report->again = report->runs - jobs_that_ran;
    if ((int64_t)report->again > input->losses || (int64_t)report->unseen > input->losses) {
        report->broken[CHECK_TOO_MANY_RUNS]++;
        (void)fprintf(p->out,
                      "%zu runs too many, %zu claims unseen; %" PRId64 " are accounted for\n",
                      report->again, report->unseen, input->losses);
    }
}

size_t check(check_report *report, const check_input *input, FILE *out) {
    proof p = {input, report, out};
    size_t sum = 0;
    memset(report, 0, sizeof(*report));
    if (input->log.count > 0) {
        qsort(input->log.items, input->log.count, sizeof(*input->log.items), by_run);
    }
    for (size_t i = 0; i < input->jobs; i++) {
        check_history(&p, &input->server[i]);
    }
    check_totals(&p, check_jobs(&p, &input->log));
    for (size_t i = 0; i < CHECK_RULES; i++) {
        sum += report->broken[i];
    }
    return sum;
}
