/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding the verbs' replies: a table of what each verb may answer, and a reader for each shape.
 */
#include <limits.h>
#include <string.h>

#include "decode.h"
#include "decode_common.h"
#include "job.h"
#include "memory.h"
#include "wire.h"

typedef enum answer_shape {
    SHAPE_OTHER,   /* read elsewhere, or by nobody */
    SHAPE_VERDICT, /* one integer that stands for a result */
    SHAPE_NUMBER,
    SHAPE_FATE, /* FAIL: scheduled or dead */
    SHAPE_JOB,
    SHAPE_JOBS,
    SHAPE_IDS,
    SHAPE_SWEPT,    /* two lists of ids */
    SHAPE_VERDICTS, /* an integer for each member */
    SHAPE_OFFSETS,
    SHAPE_ENTRY
} answer_shape;

#define NEVER INT_MIN /* the verb doesn't answer that */
#define VERDICT_MIN (-2)
#define VERDICT_MAX 1

typedef struct answer_row {
    answer_shape shape;
    const char *expected;
    int results[VERDICT_MAX - VERDICT_MIN + 1]; /* of the integers -2, -1, 0 and 1 */
} answer_row;

#define VERDICT(shape, expected, of_minus_2, of_minus_1, of_0, of_1)                               \
    {                                                                                              \
        (shape), (expected), {                                                                     \
            (of_minus_2), (of_minus_1), (of_0), (of_1)                                             \
        }                                                                                          \
    }
#define ADMITTED VERDICT(SHAPE_VERDICT, "1 or 0", NEVER, NEVER, EMQ_DUPLICATE, EMQ_OK)
#define DONE_OR_GONE VERDICT(SHAPE_VERDICT, "1 or -1", NEVER, EMQ_GONE, NEVER, EMQ_OK)
#define DONE VERDICT(SHAPE_VERDICT, "1", NEVER, NEVER, NEVER, EMQ_OK)

static const answer_row rows[EMQ_VERBS] = {
    [EMQ_VERB_INSTALL] = ADMITTED,
    [EMQ_VERB_ENQUEUE] = ADMITTED,
    [EMQ_VERB_SCHEDULE] = ADMITTED,
    [EMQ_VERB_CLAIM] = {SHAPE_JOB, "[id, payload, attempts] or an empty array", {0}},
    [EMQ_VERB_COMPLETE] = VERDICT(SHAPE_VERDICT, "1 or 0", NEVER, NEVER, EMQ_GONE, EMQ_OK),
    [EMQ_VERB_EXTEND] = DONE_OR_GONE,
    [EMQ_VERB_EXTENDS] = {SHAPE_IDS, "an array of ids of the call", {0}},
    [EMQ_VERB_PROMOTE] = {SHAPE_NUMBER, "a number from 0 to limit", {0}},
    [EMQ_VERB_RESCHEDULE] = DONE_OR_GONE,
    [EMQ_VERB_DELAY] = DONE,
    [EMQ_VERB_FAIL] = {SHAPE_FATE, "scheduled or dead", {0}},
    [EMQ_VERB_REPROCESS] = DONE_OR_GONE,
    [EMQ_VERB_REQUEUE] = DONE_OR_GONE,
    [EMQ_VERB_STALLED_CHECK] = {SHAPE_SWEPT, "two arrays of ids, limit in all", {0}},
    [EMQ_VERB_ENQUEUES] =
        VERDICT(SHAPE_VERDICTS, "1 or 0 for each job", NEVER, NEVER, EMQ_DUPLICATE, EMQ_OK),
    [EMQ_VERB_CLAIMS] = {SHAPE_JOBS, "an array of [id, payload, attempts], count at most", {0}},
    [EMQ_VERB_COMPLETES] = VERDICT(SHAPE_VERDICTS, "1, 0, -1 or -2 for each job", EMQ_ENOTFLAT,
                                   EMQ_ESTALE, EMQ_GONE, EMQ_OK),
    [EMQ_VERB_PAUSE] = DONE,
    [EMQ_VERB_RESUME] = DONE,
    [EMQ_VERB_APPEND] = {SHAPE_ENTRY, "the id of a stream's entry", {0}},
    [EMQ_VERB_PUBLISH] = {SHAPE_NUMBER, "a number from 0", {0}},
    [EMQ_VERB_FAILURES_INCR] = {SHAPE_NUMBER, "a number", {0}},
    [EMQ_VERB_TRA_BITSET] = {SHAPE_NUMBER, "a number from 0 to that of the offsets", {0}},
    [EMQ_VERB_TRA_BITCLEAR] = {SHAPE_NUMBER, "a number from 0 to that of the offsets", {0}},
    [EMQ_VERB_TRA_BITGET] = VERDICT(SHAPE_VERDICTS, "1 or 0 for each offset", NEVER, NEVER, 0, 1),
    [EMQ_VERB_TRA_BITSCAN] = {SHAPE_OFFSETS, "an array of offsets, limit at most", {0}},
};

static int surprise(const emq_question *question, emq_text *error) {
    return emq_decode_surprise(emq_verbs[question->verb].name, rows[question->verb].expected,
                               error);
}

/* The result of an integer, or NEVER. */
static int result_of_verdict(const answer_row *row, const redisReply *reply) {
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer < VERDICT_MIN ||
        reply->integer > VERDICT_MAX) {
        return NEVER;
    }
    return row->results[reply->integer - VERDICT_MIN];
}

static int decode_verdict(const emq_question *question, const redisReply *reply, emq_text *error) {
    int result = result_of_verdict(&rows[question->verb], reply);
    return result == NEVER ? surprise(question, error) : result;
}

/* The numbers that a verb may answer. */
static void get_range(int64_t *min, int64_t *max, const emq_question *question) {
    *min = 0;
    *max = INT64_MAX;
    if (question->verb == EMQ_VERB_FAILURES_INCR) {
        *min = INT64_MIN; /* a count that was set by hand goes on from there */
    } else if (question->verb != EMQ_VERB_PUBLISH) {
        *max = (int64_t)question->count;
    }
}

static int decode_number(emq_outcome *out, const emq_question *question, const redisReply *reply,
                         emq_text *error) {
    int64_t min = 0;
    int64_t max = 0;
    get_range(&min, &max, question);
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < min || reply->integer > max) {
        return surprise(question, error);
    }
    out->number = reply->integer;
    return EMQ_OK;
}

static int is_word(const redisReply *reply, const char *word) {
    return reply->type == REDIS_REPLY_STRING &&
           emq_slice_equal((emq_slice){reply->str, reply->len}, emq_slice_of(word));
}

static int decode_fate(const emq_question *question, const redisReply *reply, emq_text *error) {
    if (is_word(reply, EMQ_STATE_SCHEDULED)) {
        return EMQ_OK;
    }
    return is_word(reply, EMQ_STATE_DEAD) ? EMQ_DEAD : surprise(question, error);
}

static int is_array(const redisReply *reply, size_t most) {
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements <= most &&
           (reply->elements == 0 || reply->element != NULL);
}

/* [id, payload or nil, attempts] */
static int is_job(const redisReply *reply) {
    return is_array(reply, 3) && reply->elements == 3 && reply->element[0] != NULL &&
           reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1] != NULL &&
           (reply->element[1]->type == REDIS_REPLY_STRING ||
            reply->element[1]->type == REDIS_REPLY_NIL) &&
           reply->element[2] != NULL && reply->element[2]->type == REDIS_REPLY_INTEGER;
}

static int has_branded_id(const redisReply *reply) {
    return emq_id_parse(NULL, reply->element[0]->str, reply->element[0]->len) == EMQ_OK;
}

/* The server has leased it, so that a refusal would hide what was done: the text names it. */
static int fail_malformed(const redisReply *reply, emq_text *error) {
    const redisReply *id = reply->element[0];
    return emq_text_fail(error, EMQ_EBADJOB,
                         "a job was leased whose id is no branded id; it stays leased until "
                         "somebody removes it: %.*s",
                         emq_quote_length(id->len), id->str);
}

static void take_job(emq_job *job, emq_slice queue, redisReply *reply) {
    memset(job, 0, sizeof(*job));
    (void)emq_id_parse(&job->lease.id, reply->element[0]->str, reply->element[0]->len);
    if (queue.data != NULL) {
        memcpy(job->lease.queue, queue.data,
               queue.length < EMQ_QUEUE_MAX ? queue.length : EMQ_QUEUE_MAX);
    }
    job->lease.token = reply->element[2]->integer;
    job->payload = reply->element[1];
    reply->element[1] = NULL;
}

static int decode_job(emq_outcome *out, const emq_question *question, redisReply *reply,
                      emq_text *error) {
    if (is_array(reply, 0)) {
        return EMQ_EMPTY;
    }
    if (!is_job(reply)) {
        return surprise(question, error);
    }
    if (!has_branded_id(reply)) {
        return fail_malformed(reply, error);
    }
    emq_job *job = emq_malloc(sizeof(*job));
    if (job == NULL) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    take_job(job, question->queue, reply);
    out->job = job;
    return EMQ_OK;
}

/* The jobs are counted before one is taken, so that nothing is taken when one is no job. */
static int count_jobs(size_t *branded, const redisReply **malformed, const redisReply *reply) {
    for (size_t i = 0; i < reply->elements; i++) {
        if (!is_job(reply->element[i])) {
            return 0;
        }
        if (has_branded_id(reply->element[i])) {
            (*branded)++;
        } else if (*malformed == NULL) {
            *malformed = reply->element[i];
        }
    }
    return 1;
}

static int decode_jobs(emq_outcome *out, const emq_question *question, redisReply *reply,
                       emq_text *error) {
    size_t branded = 0;
    const redisReply *malformed = NULL;
    if (!is_array(reply, question->count) || !count_jobs(&branded, &malformed, reply)) {
        return surprise(question, error);
    }
    if (branded == 0) {
        return malformed == NULL ? EMQ_EMPTY : fail_malformed(malformed, error);
    }
    emq_jobs *jobs = emq_malloc(sizeof(*jobs) + branded * sizeof(jobs->jobs[0]));
    if (jobs == NULL) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    jobs->count = 0;
    jobs->malformed = reply->elements - branded;
    for (size_t i = 0; i < reply->elements; i++) {
        if (has_branded_id(reply->element[i])) {
            take_job(&jobs->jobs[jobs->count++], question->queue, reply->element[i]);
        }
    }
    out->jobs = jobs;
    return EMQ_OK;
}

int emq_reply_is_ids(const redisReply *reply, size_t most) {
    if (!is_array(reply, most)) {
        return 0;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i] == NULL || reply->element[i]->type != REDIS_REPLY_STRING) {
            return 0;
        }
    }
    return 1;
}

static int decode_ids(emq_outcome *out, const emq_question *question, const redisReply *reply,
                      emq_text *error) {
    if (!emq_reply_is_ids(reply, question->count)) {
        return surprise(question, error);
    }
    out->list = reply;
    return EMQ_OK;
}

static int decode_swept(emq_outcome *out, const emq_question *question, redisReply *reply,
                        emq_text *error) {
    if (!is_array(reply, 2) || reply->elements != 2 ||
        !emq_reply_is_ids(reply->element[0], question->count) ||
        !emq_reply_is_ids(reply->element[1], question->count - reply->element[0]->elements)) {
        return surprise(question, error);
    }
    out->recovered = (emq_ids *)reply->element[0];
    out->dead = (emq_ids *)reply->element[1];
    reply->element[0] = NULL;
    reply->element[1] = NULL;
    return EMQ_OK;
}

static int decode_verdicts(emq_outcome *out, const emq_question *question, const redisReply *reply,
                           emq_text *error) {
    if (!is_array(reply, question->count) || reply->elements != question->count) {
        return surprise(question, error);
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (result_of_verdict(&rows[question->verb], reply->element[i]) == NEVER) {
            return surprise(question, error);
        }
    }
    out->list = reply;
    return EMQ_OK;
}

static int decode_offsets(emq_outcome *out, const emq_question *question, const redisReply *reply,
                          emq_text *error) {
    if (!is_array(reply, question->count)) {
        return surprise(question, error);
    }
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *offset = reply->element[i];
        if (offset == NULL || offset->type != REDIS_REPLY_INTEGER || offset->integer < 0 ||
            offset->integer > UINT32_MAX) {
            return surprise(question, error);
        }
    }
    out->list = reply;
    return EMQ_OK;
}

/* <ms>-<seq>, of no more bytes than two numbers of 64 bits have */
static int decode_entry(emq_outcome *out, const emq_question *question, const redisReply *reply,
                        emq_text *error) {
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0 || reply->len > EMQ_ENTRY_MAX ||
        strspn(reply->str, "0123456789-") != reply->len) {
        return surprise(question, error);
    }
    out->list = reply;
    return EMQ_OK;
}

int emq_decode_verb(emq_outcome *out, const emq_question *question, redisReply *reply,
                    emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_verb_error(reply, error);
    }
    if (reply == NULL) {
        return surprise(question, error);
    }
    switch (rows[question->verb].shape) {
    case SHAPE_VERDICT:
        return decode_verdict(question, reply, error);
    case SHAPE_NUMBER:
        return decode_number(out, question, reply, error);
    case SHAPE_FATE:
        return decode_fate(question, reply, error);
    case SHAPE_JOB:
        return decode_job(out, question, reply, error);
    case SHAPE_JOBS:
        return decode_jobs(out, question, reply, error);
    case SHAPE_IDS:
        return decode_ids(out, question, reply, error);
    case SHAPE_SWEPT:
        return decode_swept(out, question, reply, error);
    case SHAPE_VERDICTS:
        return decode_verdicts(out, question, reply, error);
    case SHAPE_OFFSETS:
        return decode_offsets(out, question, reply, error);
    case SHAPE_ENTRY:
        return decode_entry(out, question, reply, error);
    default:
        return emq_text_fail_plain(error, EMQ_EINVAL);
    }
}

int emq_question_has_members(const emq_question *question) {
    return rows[question->verb].shape == SHAPE_VERDICTS || question->verb == EMQ_VERB_EXTENDS;
}

int emq_outcome_get_answer(const emq_outcome *outcome, const emq_question *question, size_t i) {
    return result_of_verdict(&rows[question->verb], outcome->list->element[i]);
}

static int is_id_of(const redisReply *text, const emq_lease *lease) {
    return text->len == EMQ_ID_LEN && memcmp(text->str, lease->id.text, EMQ_ID_LEN) == 0;
}

/* A job that stands in the call several times may have been extended under one of its tokens. That
 * can only be the highest: a job's tokens go up. */
static int mark_not_extended(int *results, const redisReply *list, const redisReply *id,
                             const emq_lease *leases, size_t count) {
    size_t named = 0;
    size_t given = 0;
    int64_t highest = INT64_MIN;
    for (size_t i = 0; i < list->elements; i++) {
        if (emq_slice_equal((emq_slice){list->element[i]->str, list->element[i]->len},
                            (emq_slice){id->str, id->len})) {
            named++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_id_of(id, &leases[i])) {
            given++;
            highest = leases[i].token > highest ? leases[i].token : highest;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_id_of(id, &leases[i]) && (named == given || leases[i].token != highest)) {
            results[i] = EMQ_ESTALE;
        }
    }
    return named <= given;
}

int emq_outcome_get_extended(int *results, const emq_outcome *outcome, const emq_lease *leases,
                             size_t count, emq_text *error) {
    for (size_t i = 0; i < count; i++) {
        results[i] = EMQ_OK;
    }
    for (size_t i = 0; i < outcome->list->elements; i++) {
        if (!mark_not_extended(results, outcome->list, outcome->list->element[i], leases, count)) {
            return emq_decode_surprise(emq_verbs[EMQ_VERB_EXTENDS].name,
                                       rows[EMQ_VERB_EXTENDS].expected, error);
        }
    }
    return EMQ_OK;
}

emq_extension *emq_extension_new(const emq_lease *leases, size_t count) {
    emq_extension *extension = emq_malloc(sizeof(*extension) + count * sizeof(*leases));
    if (extension != NULL) {
        memcpy(extension->leases, leases, count * sizeof(*leases));
    }
    return extension;
}

void emq_outcome_clear(emq_outcome *outcome) {
    emq_job_free(outcome->job);
    emq_jobs_free(outcome->jobs);
    emq_ids_free(outcome->recovered);
    emq_ids_free(outcome->dead);
    *outcome = (emq_outcome){0};
}

int emq_decode_install(redisReply *reply, emq_text *error) {
    const emq_question question = {.verb = EMQ_VERB_INSTALL};
    emq_outcome outcome = {0};
    return emq_decode_verb(&outcome, &question, reply, error);
}
