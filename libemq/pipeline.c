/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelining: entries are encoded when they are added, sent in one go, and decoded by position. */
#include <emq/pipeline.h>
#include <emq/verbs.h>
#include <string.h>

#include "client.h"
#include "encode.h"
#include "line.h"
#include "memory.h"

#define ENTRIES_MIN 64

#define FIRST_KEY 2 /* argument; the verb and the count of the keys come before it */

typedef struct pipeline_entry {
    int is_raw;            /* any command: there is no question */
    emq_question question; /* its queue stands in the bytes, at queue_at */
    size_t queue_at;
    emq_id id; /* of an admission */
    int has_id;
    int is_fresh;
    emq_extension *extension; /* of EXTENDS */
    emq_when when;
    size_t payload_at; /* in the bytes */
    size_t payload_length;
    int result;
    emq_outcome outcome;
} pipeline_entry;

struct emq_pipeline {
    emq_client *client;
    emq_line line; /* kept, so that an entry allocates no line of its own */
    emq_buffer buffer;
    pipeline_entry *entries;
    redisReply **replies; /* kept while outcomes borrow from them */
    size_t *ends;         /* where each entry ends in the bytes */
    size_t count;
    size_t capacity;
    size_t decoded; /* how many of the answers, from the first */
    int is_ended;   /* by what one of them says */
    int has_run;
    emq_text broken_text; /* of an answer that can't be one */
    int failure;          /* of the run as a whole, and its sentence */
    emq_text failure_text;
    emq_text text; /* of the entry that was asked about last */
};

int emq_pipeline_new(emq_pipeline **out, emq_client *client) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_pipeline *p = emq_calloc(1, sizeof(*p));
    if (p == NULL) {
        return EMQ_ENOMEM;
    }
    p->client = client;
    *out = p;
    return EMQ_OK;
}

void emq_pipeline_clear(emq_pipeline *p) {
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->count; i++) {
        emq_outcome_clear(&p->entries[i].outcome);
        emq_free(p->entries[i].extension);
        freeReplyObject(p->replies[i]);
    }
    p->count = 0;
    p->buffer.length = 0;
    p->has_run = 0;
    p->failure = EMQ_OK;
}

void emq_pipeline_free(emq_pipeline *p) {
    if (p != NULL) {
        emq_pipeline_clear(p);
        emq_line_clear(&p->line);
        emq_buffer_clear(&p->buffer);
        emq_free(p->entries);
        emq_free(p->replies);
        emq_free(p->ends);
        emq_free(p);
    }
}

size_t emq_pipeline_get_count(const emq_pipeline *p) {
    return p == NULL ? 0 : p->count;
}

/* Makes room for one more entry. */
static int reserve(emq_pipeline *p) {
    if (p->count < p->capacity) {
        return EMQ_OK;
    }
    size_t capacity = p->capacity == 0 ? ENTRIES_MIN : p->capacity * 2;
    pipeline_entry *entries = emq_realloc(p->entries, capacity * sizeof(*entries));
    if (entries == NULL) {
        return EMQ_ENOMEM;
    }
    p->entries = entries;
    redisReply **replies = emq_realloc(p->replies, capacity * sizeof(redisReply *));
    if (replies == NULL) {
        return EMQ_ENOMEM;
    }
    p->replies = replies;
    size_t *ends = emq_realloc(p->ends, capacity * sizeof(*ends));
    if (ends == NULL) {
        return EMQ_ENOMEM;
    }
    p->ends = ends;
    p->capacity = capacity;
    return EMQ_OK;
}

/* Where a line is built; the builders take NULL for a mistake. */
static emq_line *line_of(emq_pipeline *p) {
    return p == NULL ? NULL : &p->line;
}

static int check_room(const emq_pipeline *p) {
    size_t size = emq_encoded_size_max(&p->line);
    if (size > EMQ_PIPELINE_BYTES_MAX) {
        return EMQ_ETOOBIG; /* it will never fit */
    }
    return p->count == EMQ_PIPELINE_ENTRIES_MAX || size > EMQ_PIPELINE_BYTES_MAX - p->buffer.length
               ? EMQ_EOVERLOAD
               : EMQ_OK;
}

/* Adds the line that was built with this result. */
static int add(emq_pipeline *p, int built, const pipeline_entry *entry) {
    if (p == NULL || built != EMQ_OK) {
        return p == NULL ? EMQ_EINVAL : built;
    }
    if (p->has_run) {
        emq_pipeline_clear(p);
    }
    int result = check_room(p);
    if (result == EMQ_OK) {
        result = reserve(p);
    }
    if (result == EMQ_OK) {
        result = emq_buffer_append_line(&p->buffer, &p->line);
    }
    if (result != EMQ_OK) {
        return result;
    }
    p->entries[p->count] = *entry;
    p->ends[p->count] = p->buffer.length;
    p->entries[p->count].result = EMQ_EINVAL; /* until it was run */
    p->replies[p->count] = NULL;
    p->count++;
    return EMQ_OK;
}

static int add_verb(emq_pipeline *p, int built, emq_verb_symbol verb, size_t count) {
    const pipeline_entry entry = {.question = {.verb = verb, .count = count}};
    return add(p, built, &entry);
}

/* Notes where the queue stands in the bytes of the entry that was added last, for when its leases
 * or another admission need it: the first key is `emq:{queue}:…`. */
static void note_queue(emq_pipeline *p, const char *queue) {
    pipeline_entry *entry = &p->entries[p->count - 1];
    size_t start = p->count > 1 ? p->ends[p->count - 2] : 0;
    entry->queue_at = start + emq_encoded_offset(&p->line, FIRST_KEY) + strlen("emq:{");
    entry->question.queue.length = strlen(queue);
}

/* Likewise the payload of an admission. */
static void note_payload(emq_pipeline *p, size_t n) {
    pipeline_entry *entry = &p->entries[p->count - 1];
    size_t start = p->count > 1 ? p->ends[p->count - 2] : 0;
    entry->payload_at = start + emq_encoded_offset(&p->line, EMQ_LINE_PAYLOAD);
    entry->payload_length = n;
}

static int check_payload(const emq_pipeline *p, const void *payload, size_t n) {
    if (p == NULL || (payload == NULL && n > 0)) {
        return EMQ_EINVAL;
    }
    return n > p->client->settings.options.max_payload ? EMQ_ETOOBIG : EMQ_OK;
}

static int add_admission(emq_pipeline *p, emq_id *id, const char *queue, const void *payload,
                         size_t n, const emq_when *when) {
    pipeline_entry entry = {.has_id = 1};
    int result = id == NULL ? EMQ_EINVAL : check_payload(p, payload, n);
    if (result != EMQ_OK) {
        return result;
    }
    entry.is_fresh = emq_id_is_zeroed(id);
    entry.id = *id;
    result = entry.is_fresh ? emq_id_mint(&entry.id, EMQ_NAMESPACE_JOB) : EMQ_OK;
    if (result != EMQ_OK) {
        return result;
    }
    if (when == NULL) {
        entry.question.verb = EMQ_VERB_ENQUEUE;
        result = emq_line_enqueue(&p->line, queue, &entry.id, payload, n);
    } else {
        entry.question.verb = EMQ_VERB_SCHEDULE;
        entry.when = *when;
        result = emq_line_schedule(&p->line, queue, &entry.id, payload, n, *when);
    }
    result = add(p, result, &entry);
    if (result == EMQ_OK) {
        note_queue(p, queue);
        note_payload(p, n);
        *id = entry.id;
    }
    return result;
}

int emq_pipeline_enqueue(emq_pipeline *p, emq_id *id, const char *queue, const void *payload,
                         size_t n) {
    return add_admission(p, id, queue, payload, n, NULL);
}

int emq_pipeline_schedule(emq_pipeline *p, emq_id *id, const char *queue, const void *payload,
                          size_t n, emq_when when) {
    return add_admission(p, id, queue, payload, n, &when);
}

int emq_pipeline_enqueues(emq_pipeline *p, const emq_id *ids, const char *queue,
                          const emq_bytes *payloads, size_t count) {
    int built = emq_line_enqueues(line_of(p), queue, ids, payloads, count);
    for (size_t i = 0; i < count && built == EMQ_OK; i++) {
        built = check_payload(p, payloads[i].data, payloads[i].size);
    }
    return add_verb(p, built, EMQ_VERB_ENQUEUES, count);
}

static int add_claim(emq_pipeline *p, int built, emq_verb_symbol verb, size_t max,
                     const char *queue) {
    int result = add_verb(p, built, verb, max);
    if (result == EMQ_OK) {
        note_queue(p, queue);
    }
    return result;
}

int emq_pipeline_claim(emq_pipeline *p, const char *queue, uint32_t lease_ms) {
    int built = emq_line_claim(line_of(p), queue, lease_ms);
    return add_claim(p, built, EMQ_VERB_CLAIM, 1, queue);
}

int emq_pipeline_claims(emq_pipeline *p, const char *queue, uint32_t lease_ms, uint32_t max) {
    int built = emq_line_claims(line_of(p), queue, lease_ms, max, 0);
    return add_claim(p, built, EMQ_VERB_CLAIMS, max, queue);
}

int emq_pipeline_complete(emq_pipeline *p, const emq_lease *lease) {
    return add_verb(p, emq_line_complete(line_of(p), lease), EMQ_VERB_COMPLETE, 0);
}

int emq_pipeline_completes(emq_pipeline *p, const emq_lease *leases, size_t count) {
    int built = emq_line_completes(line_of(p), leases, count);
    return add_verb(p, built, EMQ_VERB_COMPLETES, count);
}

int emq_pipeline_extend(emq_pipeline *p, const emq_lease *lease, uint32_t lease_ms) {
    return add_verb(p, emq_line_extend(line_of(p), lease, lease_ms), EMQ_VERB_EXTEND, 0);
}

int emq_pipeline_extends(emq_pipeline *p, const emq_lease *leases, size_t count,
                         uint32_t lease_ms) {
    pipeline_entry entry = {.question = {.verb = EMQ_VERB_EXTENDS, .count = count}};
    int built = emq_line_extends(line_of(p), leases, count, lease_ms);
    if (built == EMQ_OK) {
        entry.extension = emq_extension_new(leases, count);
        built = entry.extension == NULL ? EMQ_ENOMEM : EMQ_OK;
    }
    int result = add(p, built, &entry);
    if (result != EMQ_OK) {
        emq_free(entry.extension);
    }
    return result;
}

int emq_pipeline_fail(emq_pipeline *p, const emq_lease *lease, int64_t delay_ms,
                      uint32_t max_failures, const void *error, size_t n) {
    int built = emq_line_fail(line_of(p), lease, delay_ms, max_failures, error, n);
    return add_verb(p, built, EMQ_VERB_FAIL, 0);
}

int emq_pipeline_delay(emq_pipeline *p, const emq_lease *lease, emq_when when) {
    return add_verb(p, emq_line_delay(line_of(p), lease, when), EMQ_VERB_DELAY, 0);
}

int emq_pipeline_requeue(emq_pipeline *p, const emq_lease *lease) {
    return add_verb(p, emq_line_requeue(line_of(p), lease), EMQ_VERB_REQUEUE, 0);
}

int emq_pipeline_promote(emq_pipeline *p, const char *queue, uint32_t limit) {
    return add_verb(p, emq_line_promote(line_of(p), queue, limit), EMQ_VERB_PROMOTE, limit);
}

int emq_pipeline_stalled_check(emq_pipeline *p, const char *queue, uint32_t max_stalled,
                               uint32_t limit) {
    int built = emq_line_stalled_check(line_of(p), queue, max_stalled, limit);
    return add_verb(p, built, EMQ_VERB_STALLED_CHECK, limit);
}

int emq_pipeline_reschedule(emq_pipeline *p, const char *queue, const emq_id *id, emq_when when) {
    return add_verb(p, emq_line_reschedule(line_of(p), queue, id, when), EMQ_VERB_RESCHEDULE, 0);
}

int emq_pipeline_reprocess(emq_pipeline *p, const char *queue, const emq_id *id) {
    return add_verb(p, emq_line_reprocess(line_of(p), queue, id), EMQ_VERB_REPROCESS, 0);
}

int emq_pipeline_publish(emq_pipeline *p, const char *queue, emq_bytes event, emq_bytes job,
                         const emq_field *fields, size_t count) {
    int built = emq_line_publish(line_of(p), queue, event, job, fields, count);
    return add_verb(p, built, EMQ_VERB_PUBLISH, 0);
}

int emq_pipeline_pause(emq_pipeline *p, const char *queue) {
    return add_verb(p, emq_line_pause(line_of(p), queue), EMQ_VERB_PAUSE, 0);
}

int emq_pipeline_resume(emq_pipeline *p, const char *queue) {
    return add_verb(p, emq_line_resume(line_of(p), queue), EMQ_VERB_RESUME, 0);
}

int emq_pipeline_append(emq_pipeline *p, emq_id *id, const char *queue, const char *stream,
                        const emq_field *fields, size_t count) {
    pipeline_entry entry = {.question = {.verb = EMQ_VERB_APPEND}, .has_id = 1};
    if (id == NULL || p == NULL) {
        return EMQ_EINVAL;
    }
    entry.id = *id;
    int built = emq_id_is_zeroed(id) ? emq_id_mint(&entry.id, EMQ_NAMESPACE_EVENT) : EMQ_OK;
    if (built == EMQ_OK) {
        built = emq_line_append(&p->line, queue, stream, &entry.id, fields, count);
    }
    int result = add(p, built, &entry);
    if (result == EMQ_OK) {
        *id = entry.id;
    }
    return result;
}

int emq_pipeline_failures_incr(emq_pipeline *p, const char *queue, const char *stream,
                               const char *group, const char *entry) {
    int built = emq_line_failures_incr(line_of(p), queue, stream, group, entry);
    return add_verb(p, built, EMQ_VERB_FAILURES_INCR, 0);
}

int emq_pipeline_tra_bitset(emq_pipeline *p, emq_bytes key, const uint32_t *offsets, size_t count) {
    int built = emq_line_tra_bitset(line_of(p), key, offsets, count);
    return add_verb(p, built, EMQ_VERB_TRA_BITSET, count);
}

int emq_pipeline_tra_bitclear(emq_pipeline *p, emq_bytes key, const uint32_t *offsets,
                              size_t count) {
    int built = emq_line_tra_bitclear(line_of(p), key, offsets, count);
    return add_verb(p, built, EMQ_VERB_TRA_BITCLEAR, count);
}

int emq_pipeline_tra_bitget(emq_pipeline *p, emq_bytes key, const uint32_t *offsets, size_t count) {
    int built = emq_line_tra_bitget(line_of(p), key, offsets, count);
    return add_verb(p, built, EMQ_VERB_TRA_BITGET, count);
}

int emq_pipeline_command(emq_pipeline *p, int argc, const char *const *argv,
                         const size_t *argvlen) {
    const pipeline_entry entry = {.is_raw = 1};
    return add(p, p == NULL ? EMQ_EINVAL : emq_line_raw(&p->line, argc, argv, argvlen), &entry);
}

/* The result of an entry without an answer. */
static int result_without_answer(const emq_pipeline *p, size_t i, size_t sent) {
    if (p->failure == EMQ_ECLOSED || p->failure == EMQ_EFORKED) {
        return p->failure;
    }
    if (p->ends[i] > sent) {
        return EMQ_ECONNECT;
    }
    return p->failure == EMQ_ECONNECT ? EMQ_ECONNLOST : p->failure;
}

static int decode_entry(emq_pipeline *p, size_t i) {
    pipeline_entry *entry = &p->entries[i];
    if (entry->is_raw) {
        return emq_decode_raw(p->replies[i], &p->text);
    }
    entry->question.queue.data = p->buffer.bytes + entry->queue_at;
    int result = emq_decode_verb(&entry->outcome, &entry->question, p->replies[i], &p->text);
    if (result == EMQ_OK && entry->extension != NULL) {
        result =
            emq_outcome_get_extended(entry->extension->results, &entry->outcome,
                                     entry->extension->leases, entry->question.count, &p->text);
    }
    return result;
}

/* Whether nothing is left in the reply that anybody may ask for. */
static int is_used_up(const pipeline_entry *entry) {
    return entry->result >= 0 && !entry->is_raw && entry->outcome.list == NULL;
}

/* Decodes an answer while the server works on the next ones. One that can't be an answer makes
 * those behind it worthless: they may belong to other entries. */
static void take_reply(emq_batch *batch, int index) {
    emq_pipeline *p = batch->user;
    size_t i = (size_t)index;
    pipeline_entry *entry = &p->entries[i];
    if (p->decoded < i) {
        return;
    }
    entry->result = decode_entry(p, i);
    if (entry->result == EMQ_EPROTOCOL) {
        p->broken_text = p->text;
        return;
    }
    p->decoded = i + 1;
    p->is_ended = p->is_ended || emq_client_ends_connection(p->client, entry->result);
    if (is_used_up(entry)) {
        freeReplyObject(p->replies[i]);
        p->replies[i] = NULL;
    }
}

/* Gives those without an answer, or with one that is not believed, their results. Bytes behind the
 * last answer make all of them worthless. */
static void finish_unanswered(emq_pipeline *p, const emq_batch *batch) {
    size_t received = (size_t)batch->received;
    size_t trusted = p->failure == EMQ_EPROTOCOL && received == p->count ? 0 : p->decoded;
    size_t broken = p->count;
    if (trusted == p->decoded && trusted < received) {
        broken = trusted;
        p->failure = EMQ_EPROTOCOL;
        p->failure_text = p->broken_text;
    }
    for (size_t i = trusted; i < p->count; i++) {
        emq_outcome_clear(&p->entries[i].outcome);
        if (i != broken) {
            p->entries[i].result = result_without_answer(p, i, batch->sent);
        }
    }
    if (p->is_ended || broken < p->count) {
        emq_connection_close(&p->client->connection);
    }
}

/* Where the connection was lost before all was sent, the run as a whole is no better than its worst
 * entry. */
static void sum_up(emq_pipeline *p) {
    for (size_t i = 0; i < p->count && p->failure == EMQ_ECONNECT; i++) {
        if (p->entries[i].result == EMQ_ECONNLOST) {
            p->failure = EMQ_ECONNLOST;
        }
    }
}

/* Admits again where a fresh id was somebody else's. */
static void admit_again(emq_pipeline *p, emq_deadline deadline) {
    for (size_t i = 0; i < p->count; i++) {
        pipeline_entry *entry = &p->entries[i];
        if (!entry->is_fresh || entry->result != EMQ_DUPLICATE) {
            continue;
        }
        char queue[EMQ_QUEUE_MAX + 1] = "";
        memcpy(queue, entry->question.queue.data, entry->question.queue.length);
        const char *payload = p->buffer.bytes + entry->payload_at;
        entry->result = emq_client_admit_fresh(
            &entry->id, p->client, queue, payload, entry->payload_length,
            entry->question.verb == EMQ_VERB_SCHEDULE ? &entry->when : NULL, deadline);
    }
}

int emq_pipeline_run(emq_pipeline *p) {
    if (p == NULL) {
        return EMQ_EINVAL;
    }
    emq_client *client = p->client;
    if (p->has_run) {
        return emq_text_fail_plain(&client->error, EMQ_EINVAL);
    }
    emq_deadline deadline = emq_deadline_in(client->settings.options.command_timeout_ms);
    emq_batch batch = {.bytes = p->buffer.bytes,
                       .length = p->buffer.length,
                       .count = (int)p->count,
                       .ends = p->ends,
                       .replies = p->replies,
                       .on_reply = take_reply,
                       .user = p};
    emq_text_clear(&client->error);
    p->decoded = 0;
    p->is_ended = 0;
    p->has_run = 1;
    if (p->count == 0) {
        return EMQ_OK;
    }
    p->failure =
        emq_connection_exchange_batch(&client->connection, &batch, deadline, &p->failure_text);
    finish_unanswered(p, &batch);
    sum_up(p);
    admit_again(p, deadline);
    if (p->failure == EMQ_OK) {
        emq_text_clear(&client->error);
    } else {
        client->error = p->failure_text;
    }
    return p->failure;
}

static const pipeline_entry *find(const emq_pipeline *p, size_t i) {
    return p != NULL && i < p->count ? &p->entries[i] : NULL;
}

int emq_pipeline_get_result(const emq_pipeline *p, size_t i) {
    const pipeline_entry *entry = find(p, i);
    return entry == NULL ? EMQ_EINVAL : entry->result;
}

/* The sentences are made when somebody asks: most entries need none. A decode that failed has taken
 * nothing, so that it can be done again. */
const char *emq_pipeline_get_error(emq_pipeline *p, size_t i) {
    const pipeline_entry *entry = find(p, i);
    if (entry == NULL || !p->has_run || entry->result >= 0) {
        return "";
    }
    if (p->replies[i] != NULL) {
        emq_outcome nothing = {0};
        int again = entry->is_raw
                        ? emq_decode_raw(p->replies[i], &p->text)
                        : emq_decode_verb(&nothing, &entry->question, p->replies[i], &p->text);
        emq_outcome_clear(&nothing);
        if (again == entry->result) {
            return p->text.bytes;
        }
    }
    return entry->result == p->failure ? p->failure_text.bytes : emq_strerror(entry->result);
}

int64_t emq_pipeline_get_number(const emq_pipeline *p, size_t i) {
    const pipeline_entry *entry = find(p, i);
    return entry == NULL ? 0 : entry->outcome.number;
}

const emq_id *emq_pipeline_get_id(const emq_pipeline *p, size_t i) {
    const pipeline_entry *entry = find(p, i);
    return entry == NULL || !entry->has_id ? NULL : &entry->id;
}

const char *emq_pipeline_get_entry(const emq_pipeline *p, size_t i) {
    const pipeline_entry *entry = find(p, i);
    if (entry == NULL || entry->question.verb != EMQ_VERB_APPEND || entry->result != EMQ_OK) {
        return NULL;
    }
    return entry->outcome.list->str;
}

int emq_pipeline_get_member(const emq_pipeline *p, size_t i, size_t member) {
    const pipeline_entry *entry = find(p, i);
    if (entry == NULL || !emq_question_has_members(&entry->question) ||
        member >= entry->question.count) {
        return EMQ_EINVAL;
    }
    if (entry->result != EMQ_OK) {
        return entry->result;
    }
    return entry->extension != NULL
               ? entry->extension->results[member]
               : emq_outcome_get_answer(&entry->outcome, &entry->question, member);
}

emq_job *emq_pipeline_take_job(emq_pipeline *p, size_t i) {
    emq_job *job = NULL;
    if (find(p, i) != NULL) {
        job = p->entries[i].outcome.job;
        p->entries[i].outcome.job = NULL;
    }
    return job;
}

emq_jobs *emq_pipeline_take_jobs(emq_pipeline *p, size_t i) {
    emq_jobs *jobs = NULL;
    if (find(p, i) != NULL) {
        jobs = p->entries[i].outcome.jobs;
        p->entries[i].outcome.jobs = NULL;
    }
    return jobs;
}

emq_ids *emq_pipeline_take_recovered(emq_pipeline *p, size_t i) {
    emq_ids *ids = NULL;
    if (find(p, i) != NULL) {
        ids = p->entries[i].outcome.recovered;
        p->entries[i].outcome.recovered = NULL;
    }
    return ids;
}

emq_ids *emq_pipeline_take_dead(emq_pipeline *p, size_t i) {
    emq_ids *ids = NULL;
    if (find(p, i) != NULL) {
        ids = p->entries[i].outcome.dead;
        p->entries[i].outcome.dead = NULL;
    }
    return ids;
}

/* An emq_reply is the reply itself under another name. */
emq_reply *emq_pipeline_take_reply(emq_pipeline *p, size_t i) {
    redisReply *reply = NULL;
    if (find(p, i) != NULL && p->entries[i].is_raw && p->entries[i].result == EMQ_OK) {
        reply = p->replies[i];
        p->replies[i] = NULL;
    }
    return (emq_reply *)reply;
}
