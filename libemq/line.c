/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding: the line of every verb, built from its row in the verb table. */
#include "line.h"

#include <string.h>

#include "keys.h"
#include "memory.h"
#include "verbs.h"

/* So many that no count of arguments overflows. */
#define FIELDS_MAX 65536

/* What a verb's keys and values are made of; only what its row asks for is looked at. */
typedef struct line_parts {
    const char *queue;
    const char *stream;
    emq_slice plain_key; /* of the TRA verbs */
    const emq_id *id;
    int64_t token;
    emq_when when;
    emq_slice payload;
    emq_slice error;
    emq_slice event;
    emq_slice event_job;
    emq_slice group;
    emq_slice entry_id;
    emq_slice field;
    emq_slice field_value;
    int64_t lease_ms;
    int64_t count;
    int64_t timeout_ms;
    int64_t delay_ms;
    int64_t max_failures;
    int64_t max_stalled;
    int64_t limit;
    int64_t from;
    int64_t to;
    int64_t offset;
    int has_optional; /* the values that can be left out are there */
    /* What repeats: so many members, each with its part of one of the arrays. */
    size_t members;
    const emq_lease *leases;
    const emq_id *ids;
    const emq_bytes *payloads;
    const emq_field *fields;
    const uint32_t *offsets;
} line_parts;

/* Where the next argument's text goes. */
typedef struct line_writer {
    emq_line *line;
    char *next;
    size_t left;
} line_writer;

/* What a line keeps of a member of a batch, at most. */
#define MEMBER_TEXT_MAX ((size_t)EMQ_ID_LEN + EMQ_DECIMAL_MAX)

/* Every key, the id and each number: what a line keeps itself, at most. No more than
 * that: allocators have small blocks at hand, and look for one with room for the longest names. */
static size_t text_size_max(const emq_verb *verb, const line_parts *parts) {
    size_t queue = parts->queue == NULL ? 0 : strnlen(parts->queue, EMQ_QUEUE_MAX);
    size_t key = EMQ_KEY_MAX + 1 - EMQ_QUEUE_MAX + queue;
    return EMQ_DECIMAL_MAX + (size_t)verb->key_count * key +
           (size_t)verb->value_count * EMQ_DECIMAL_MAX + parts->members * MEMBER_TEXT_MAX;
}

/* One block holds the pointers, the lengths and the texts; it is kept for the next line. */
static int prepare(line_writer *writer, emq_line *line, int argc, size_t text_size) {
    size_t count = (size_t)argc;
    size_t vectors = count * (sizeof(*line->argv) + sizeof(*line->argvlen));
    size_t size = vectors + text_size;
    line->argc = 0;
    if (size > line->memory_size) {
        void *memory = emq_realloc(line->memory, size);
        if (memory == NULL) {
            return EMQ_ENOMEM;
        }
        line->memory = memory;
        line->memory_size = size;
    }
    line->argv = line->memory;
    line->argvlen = (size_t *)(void *)(line->argv + count);
    *writer = (line_writer){line, (char *)line->memory + vectors, text_size};
    return EMQ_OK;
}

static void add_borrowed(line_writer *writer, const char *bytes, size_t n) {
    emq_line *line = writer->line;
    line->argv[line->argc] = bytes;
    line->argvlen[line->argc] = n;
    line->argc++;
}

/* Adds what was just written at writer->next. */
static void add_written(line_writer *writer, size_t n) {
    add_borrowed(writer, writer->next, n);
    writer->next += n;
    writer->left -= n;
}

static void add_number(line_writer *writer, int64_t number) {
    add_written(writer, emq_decimal_format(writer->next, number));
}

static int add_key(line_writer *writer, const emq_verb *verb, int index, const line_parts *parts) {
    emq_key_kind kind = verb->keys[index];
    int length = 0;
    if (!emq_verb_counts_keys(verb)) {
        add_borrowed(writer, parts->plain_key.data, parts->plain_key.length);
        return EMQ_OK;
    }
    if (kind == EMQ_KEY_JOB) {
        length = emq_key_job(writer->next, writer->left, parts->queue, parts->id);
    } else if (emq_key_kind_is_named(kind)) {
        length = emq_key_named(writer->next, writer->left, parts->queue, kind, parts->stream);
    } else {
        length = emq_key_queue(writer->next, writer->left, parts->queue, kind);
    }
    if (length < 0) {
        return length;
    }
    add_written(writer, (size_t)length);
    return EMQ_OK;
}

/* The bytes of a value that is borrowed as it is. */
static emq_slice get_text(emq_value_kind kind, const line_parts *parts) {
    switch (kind) {
    case EMQ_VALUE_PAYLOAD:
        return parts->payload;
    case EMQ_VALUE_ERROR:
        return parts->error;
    case EMQ_VALUE_MODE:
        return emq_slice_of(parts->when.mode == EMQ_AT ? EMQ_MODE_AT : EMQ_MODE_IN);
    case EMQ_VALUE_FIELD:
        return parts->field;
    case EMQ_VALUE_FIELD_VALUE:
        return parts->field_value;
    case EMQ_VALUE_EVENT:
        return parts->event;
    case EMQ_VALUE_EVENT_JOB:
        return parts->event_job;
    case EMQ_VALUE_GROUP:
        return parts->group;
    case EMQ_VALUE_ENTRY_ID:
        return parts->entry_id;
    case EMQ_VALUE_LIMIT_WORD:
        return emq_slice_of(EMQ_WORD_LIMIT);
    default:
        return (emq_slice){NULL, 0};
    }
}

static int64_t get_number(emq_value_kind kind, const line_parts *parts) {
    switch (kind) {
    case EMQ_VALUE_LEASE_MS:
        return parts->lease_ms;
    case EMQ_VALUE_COUNT:
        return parts->count;
    case EMQ_VALUE_TIMEOUT_MS:
        return parts->timeout_ms;
    case EMQ_VALUE_WHEN:
        return parts->when.ms;
    case EMQ_VALUE_DELAY_MS:
        return parts->delay_ms;
    case EMQ_VALUE_MAX_FAILURES:
        return parts->max_failures;
    case EMQ_VALUE_MAX_STALLED:
        return parts->max_stalled;
    case EMQ_VALUE_LIMIT:
        return parts->limit;
    case EMQ_VALUE_FROM:
        return parts->from;
    case EMQ_VALUE_TO:
        return parts->to;
    case EMQ_VALUE_OFFSET:
        return parts->offset;
    default:
        return -1; /* out of every range */
    }
}

static int add_checked_number(line_writer *writer, emq_value_kind kind, const line_parts *parts) {
    int64_t number = get_number(kind, parts);
    if (kind == EMQ_VALUE_WHEN) {
        if (parts->when.mode != EMQ_AT && parts->when.mode != EMQ_IN) {
            return EMQ_EINVAL;
        }
        kind = parts->when.mode == EMQ_AT ? EMQ_VALUE_AT_MS : EMQ_VALUE_IN_MS;
    }
    const emq_value_facts *facts = emq_value_get_facts(kind);
    if (number < facts->min || number > facts->max) {
        return EMQ_EINVAL;
    }
    add_number(writer, number);
    return EMQ_OK;
}

static int check_id(const emq_id *id, const char *name_space) {
    if (id == NULL) {
        return EMQ_EINVAL;
    }
    int result = emq_id_parse(NULL, id->text, strnlen(id->text, sizeof(id->text)));
    if (result == EMQ_OK && memcmp(id->text, name_space, EMQ_NAMESPACE_LEN) != 0) {
        result = EMQ_EKIND;
    }
    return result;
}

static int add_id(line_writer *writer, const emq_id *id) {
    if (id == NULL) {
        return EMQ_EINVAL;
    }
    memcpy(writer->next, id->text, EMQ_ID_LEN);
    add_written(writer, EMQ_ID_LEN);
    return EMQ_OK;
}

static int add_value(line_writer *writer, emq_value_kind kind, const line_parts *parts) {
    if (kind == EMQ_VALUE_ID) {
        return add_id(writer, parts->id);
    }
    if (kind == EMQ_VALUE_RECORD_ID) {
        int result = check_id(parts->id, EMQ_NAMESPACE_EVENT);
        return result == EMQ_OK ? add_id(writer, parts->id) : result;
    }
    if (kind == EMQ_VALUE_TOKEN) {
        add_number(writer, parts->token);
        return EMQ_OK;
    }
    if (emq_value_get_facts(kind)->is_integer) {
        return add_checked_number(writer, kind, parts);
    }
    emq_slice text = get_text(kind, parts);
    if (text.data == NULL) {
        return EMQ_EINVAL;
    }
    add_borrowed(writer, text.data, text.length);
    return EMQ_OK;
}

static emq_slice slice_of(const void *p, size_t n) {
    return (emq_slice){p == NULL && n == 0 ? "" : p, n};
}

/* Makes one member of a batch the one that the values are taken from. */
static int select_member(line_parts *parts, size_t i) {
    if (parts->leases != NULL) {
        parts->id = &parts->leases[i].id;
        parts->token = parts->leases[i].token;
        /* the keys name one queue */
        if (strncmp(parts->leases[i].queue, parts->queue, EMQ_QUEUE_MAX + 1) != 0) {
            return EMQ_EINVAL;
        }
        return check_id(parts->id, EMQ_NAMESPACE_JOB); /* it is part of no key of this line */
    }
    if (parts->ids != NULL) {
        parts->id = &parts->ids[i];
        parts->payload = slice_of(parts->payloads[i].data, parts->payloads[i].size);
        return check_id(parts->id, EMQ_NAMESPACE_JOB);
    }
    if (parts->fields != NULL) {
        parts->field = slice_of(parts->fields[i].name.data, parts->fields[i].name.size);
        parts->field_value = slice_of(parts->fields[i].value.data, parts->fields[i].value.size);
        return EMQ_OK;
    }
    parts->offset = parts->offsets[i];
    return EMQ_OK;
}

static int add_members(line_writer *writer, const emq_verb *verb, line_parts *parts) {
    int result = EMQ_OK;
    for (size_t i = 0; i < parts->members && result == EMQ_OK; i++) {
        result = select_member(parts, i);
        for (int v = verb->value_count - verb->repeated; v < verb->value_count; v++) {
            result = result == EMQ_OK ? add_value(writer, verb->values[v], parts) : result;
        }
    }
    return result;
}

/* How many values stand once. */
static int count_values(const emq_verb *verb, const line_parts *parts) {
    if (verb->repeated > 0) {
        return verb->value_count - verb->repeated;
    }
    return parts->has_optional ? verb->value_count : verb->least_values;
}

/* The keys come first and check the queue and the id, so that values can take the id as it is. */
static int add_arguments(line_writer *writer, const emq_verb *verb, line_parts *parts) {
    add_borrowed(writer, verb->name, strlen(verb->name));
    if (emq_verb_counts_keys(verb)) {
        add_number(writer, verb->key_count);
    }
    int result = EMQ_OK;
    for (int i = 0; i < verb->key_count && result == EMQ_OK; i++) {
        result = add_key(writer, verb, i, parts);
    }
    int values = count_values(verb, parts);
    for (int i = 0; i < values && result == EMQ_OK; i++) {
        result = add_value(writer, verb->values[i], parts);
    }
    return result == EMQ_OK ? add_members(writer, verb, parts) : result;
}

static int build(emq_line *out, emq_verb_symbol symbol, line_parts *parts) {
    const emq_verb *verb = &emq_verbs[symbol];
    int argc = 1 + emq_verb_counts_keys(verb) + verb->key_count + count_values(verb, parts) +
               verb->repeated * (int)parts->members;
    line_writer writer;
    int result = prepare(&writer, out, argc, text_size_max(verb, parts));
    if (result == EMQ_OK) {
        result = add_arguments(&writer, verb, parts);
    }
    if (result != EMQ_OK) {
        out->argc = 0; /* a line that failed must not be sent by mistake */
    }
    return result;
}

/* A call that is refused before anything is built leaves no line either. */
static int refuse(emq_line *out) {
    if (out != NULL) {
        out->argc = 0;
    }
    return EMQ_EINVAL;
}

int emq_line_enqueue(emq_line *out, const char *queue, const emq_id *id, const void *p, size_t n) {
    if (out == NULL || queue == NULL || id == NULL || (p == NULL && n > 0)) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue, .id = id, .payload = slice_of(p, n)};
    return build(out, EMQ_VERB_ENQUEUE, &parts);
}

int emq_line_schedule(emq_line *out, const char *queue, const emq_id *id, const void *p, size_t n,
                      emq_when when) {
    if (out == NULL || queue == NULL || id == NULL || (p == NULL && n > 0)) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue, .id = id, .payload = slice_of(p, n), .when = when};
    return build(out, EMQ_VERB_SCHEDULE, &parts);
}

static int bytes_are_there(const emq_bytes *bytes) {
    return bytes->data != NULL || bytes->size == 0;
}

int emq_line_enqueues(emq_line *out, const char *queue, const emq_id *ids,
                      const emq_bytes *payloads, size_t count) {
    if (out == NULL || queue == NULL || ids == NULL || payloads == NULL || count < 1 ||
        count > EMQ_BATCH_MAX) {
        return refuse(out);
    }
    for (size_t i = 0; i < count; i++) {
        if (!bytes_are_there(&payloads[i])) {
            return refuse(out);
        }
    }
    line_parts parts = {.queue = queue, .ids = ids, .payloads = payloads, .members = count};
    return build(out, EMQ_VERB_ENQUEUES, &parts);
}

int emq_line_claim(emq_line *out, const char *queue, uint32_t lease_ms) {
    if (out == NULL || queue == NULL) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue, .lease_ms = lease_ms};
    return build(out, EMQ_VERB_CLAIM, &parts);
}

int emq_line_claims(emq_line *out, const char *queue, uint32_t lease_ms, uint32_t max,
                    uint32_t timeout_ms) {
    if (out == NULL || queue == NULL) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue,
                        .lease_ms = lease_ms,
                        .count = max,
                        .timeout_ms = timeout_ms,
                        .has_optional = timeout_ms > 0};
    return build(out, EMQ_VERB_CLAIMS, &parts);
}

/* The lines of one lease. */
static line_parts parts_of_lease(const emq_lease *lease) {
    return (line_parts){.queue = lease->queue, .id = &lease->id, .token = lease->token};
}

int emq_line_complete(emq_line *out, const emq_lease *lease) {
    if (out == NULL || lease == NULL) {
        return refuse(out);
    }
    line_parts parts = parts_of_lease(lease);
    return build(out, EMQ_VERB_COMPLETE, &parts);
}

int emq_line_extend(emq_line *out, const emq_lease *lease, uint32_t lease_ms) {
    if (out == NULL || lease == NULL) {
        return refuse(out);
    }
    line_parts parts = parts_of_lease(lease);
    parts.lease_ms = lease_ms;
    return build(out, EMQ_VERB_EXTEND, &parts);
}

int emq_line_delay(emq_line *out, const emq_lease *lease, emq_when when) {
    if (out == NULL || lease == NULL) {
        return refuse(out);
    }
    line_parts parts = parts_of_lease(lease);
    parts.when = when;
    return build(out, EMQ_VERB_DELAY, &parts);
}

int emq_line_fail(emq_line *out, const emq_lease *lease, int64_t delay_ms, uint32_t max_failures,
                  const void *error, size_t n) {
    if (out == NULL || lease == NULL || (error == NULL && n > 0)) {
        return refuse(out);
    }
    line_parts parts = parts_of_lease(lease);
    parts.delay_ms = delay_ms;
    parts.max_failures = max_failures;
    /* what the server would cut off is not sent */
    parts.error = slice_of(error, n < EMQ_ERROR_TEXT_MAX ? n : EMQ_ERROR_TEXT_MAX);
    return build(out, EMQ_VERB_FAIL, &parts);
}

int emq_line_requeue(emq_line *out, const emq_lease *lease) {
    if (out == NULL || lease == NULL) {
        return refuse(out);
    }
    line_parts parts = parts_of_lease(lease);
    return build(out, EMQ_VERB_REQUEUE, &parts);
}

int emq_line_extends(emq_line *out, const emq_lease *leases, size_t count, uint32_t lease_ms) {
    if (out == NULL || leases == NULL || count < 1 || count > EMQ_BATCH_MAX) {
        return refuse(out);
    }
    line_parts parts = {
        .queue = leases[0].queue, .leases = leases, .members = count, .lease_ms = lease_ms};
    return build(out, EMQ_VERB_EXTENDS, &parts);
}

int emq_line_completes(emq_line *out, const emq_lease *leases, size_t count) {
    if (out == NULL || leases == NULL || count < 1 || count > EMQ_BATCH_MAX) {
        return refuse(out);
    }
    line_parts parts = {.queue = leases[0].queue, .leases = leases, .members = count};
    return build(out, EMQ_VERB_COMPLETES, &parts);
}

int emq_line_promote(emq_line *out, const char *queue, uint32_t limit) {
    if (out == NULL || queue == NULL) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue, .limit = limit};
    return build(out, EMQ_VERB_PROMOTE, &parts);
}

int emq_line_reschedule(emq_line *out, const char *queue, const emq_id *id, emq_when when) {
    if (out == NULL || queue == NULL || id == NULL) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue, .id = id, .when = when};
    return build(out, EMQ_VERB_RESCHEDULE, &parts);
}

int emq_line_reprocess(emq_line *out, const char *queue, const emq_id *id) {
    if (out == NULL || queue == NULL || id == NULL) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue, .id = id};
    return build(out, EMQ_VERB_REPROCESS, &parts);
}

int emq_line_stalled_check(emq_line *out, const char *queue, uint32_t max_stalled, uint32_t limit) {
    if (out == NULL || queue == NULL) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue, .max_stalled = max_stalled, .limit = limit};
    return build(out, EMQ_VERB_STALLED_CHECK, &parts);
}

static int build_of_queue(emq_line *out, emq_verb_symbol symbol, const char *queue) {
    if (out == NULL || queue == NULL) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue};
    return build(out, symbol, &parts);
}

int emq_line_pause(emq_line *out, const char *queue) {
    return build_of_queue(out, EMQ_VERB_PAUSE, queue);
}

int emq_line_resume(emq_line *out, const char *queue) {
    return build_of_queue(out, EMQ_VERB_RESUME, queue);
}

static int fields_are_there(const emq_field *fields, size_t count) {
    if (count > FIELDS_MAX || (fields == NULL && count > 0)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (!bytes_are_there(&fields[i].name) || !bytes_are_there(&fields[i].value)) {
            return 0;
        }
    }
    return 1;
}

int emq_line_append(emq_line *out, const char *queue, const char *stream, const emq_id *id,
                    const emq_field *fields, size_t count) {
    if (out == NULL || queue == NULL || stream == NULL || id == NULL ||
        !fields_are_there(fields, count)) {
        return refuse(out);
    }
    line_parts parts = {
        .queue = queue, .stream = stream, .id = id, .fields = fields, .members = count};
    return build(out, EMQ_VERB_APPEND, &parts);
}

int emq_line_publish(emq_line *out, const char *queue, emq_bytes event, emq_bytes job,
                     const emq_field *fields, size_t count) {
    if (out == NULL || queue == NULL || !bytes_are_there(&event) || !bytes_are_there(&job) ||
        !fields_are_there(fields, count)) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue,
                        .event = slice_of(event.data, event.size),
                        .event_job = slice_of(job.data, job.size),
                        .fields = fields,
                        .members = count};
    return build(out, EMQ_VERB_PUBLISH, &parts);
}

int emq_line_failures_incr(emq_line *out, const char *queue, const char *stream, const char *group,
                           const char *entry) {
    if (out == NULL || queue == NULL || stream == NULL || group == NULL || entry == NULL ||
        !emq_name_valid(emq_slice_of(group))) {
        return refuse(out);
    }
    line_parts parts = {.queue = queue,
                        .stream = stream,
                        .group = emq_slice_of(group),
                        .entry_id = emq_slice_of(entry)};
    return build(out, EMQ_VERB_FAILURES_INCR, &parts);
}

int emq_line_tra_info(emq_line *out) {
    line_parts parts = {0};
    return out == NULL ? EMQ_EINVAL : build(out, EMQ_VERB_TRA_INFO, &parts);
}

int emq_line_tra_commands(emq_line *out) {
    line_parts parts = {0};
    return out == NULL ? EMQ_EINVAL : build(out, EMQ_VERB_TRA_COMMANDS, &parts);
}

static int build_of_offsets(emq_line *out, emq_verb_symbol symbol, emq_bytes key,
                            const uint32_t *offsets, size_t count) {
    if (out == NULL || !bytes_are_there(&key) || offsets == NULL || count < 1 ||
        count > EMQ_BATCH_MAX) {
        return refuse(out);
    }
    line_parts parts = {
        .plain_key = slice_of(key.data, key.size), .offsets = offsets, .members = count};
    return build(out, symbol, &parts);
}

int emq_line_tra_bitset(emq_line *out, emq_bytes key, const uint32_t *offsets, size_t count) {
    return build_of_offsets(out, EMQ_VERB_TRA_BITSET, key, offsets, count);
}

int emq_line_tra_bitclear(emq_line *out, emq_bytes key, const uint32_t *offsets, size_t count) {
    return build_of_offsets(out, EMQ_VERB_TRA_BITCLEAR, key, offsets, count);
}

int emq_line_tra_bitget(emq_line *out, emq_bytes key, const uint32_t *offsets, size_t count) {
    return build_of_offsets(out, EMQ_VERB_TRA_BITGET, key, offsets, count);
}

int emq_line_tra_bitscan(emq_line *out, emq_bytes key, uint32_t from, uint32_t to, uint32_t limit) {
    if (out == NULL || !bytes_are_there(&key)) {
        return refuse(out);
    }
    line_parts parts = {.plain_key = slice_of(key.data, key.size),
                        .from = from,
                        .to = to,
                        .limit = limit,
                        .has_optional = 1};
    return build(out, EMQ_VERB_TRA_BITSCAN, &parts);
}

int emq_line_install(emq_line *out) {
    line_parts parts = {0};
    return out == NULL ? EMQ_EINVAL : build(out, EMQ_VERB_INSTALL, &parts);
}

int emq_line_version(emq_line *out) {
    line_parts parts = {0};
    return out == NULL ? EMQ_EINVAL : build(out, EMQ_VERB_VERSION, &parts);
}

void emq_line_clear(emq_line *line) {
    if (line != NULL) {
        emq_free(line->memory);
        *line = (emq_line)EMQ_LINE_INIT;
    }
}

int emq_line_arguments(emq_line *out, int argc, const char *const *argv, const size_t *argvlen) {
    line_writer writer;
    int result = prepare(&writer, out, argc, 0);
    for (int i = 0; i < argc && result == EMQ_OK; i++) {
        add_borrowed(&writer, argv[i], argvlen == NULL ? strlen(argv[i]) : argvlen[i]);
    }
    return result;
}

#define FRAME_MAX 32 /* bytes that frame one argument, at most */

int emq_line_fits(const emq_line *line) {
    size_t left = EMQ_REQUEST_MAX;
    for (int i = 0; i < line->argc; i++) {
        size_t length = line->argvlen[i];
        if (length > left || left - length < FRAME_MAX) {
            return 0;
        }
        left -= length + FRAME_MAX;
    }
    return 1;
}

int emq_line_auth(emq_line *out, const char *username, const char *password) {
    if (username == NULL) {
        return emq_line_arguments(out, 2, (const char *const[]){"AUTH", password}, NULL);
    }
    return emq_line_arguments(out, 3, (const char *const[]){"AUTH", username, password}, NULL);
}

int emq_line_select(emq_line *out, char number[EMQ_LINE_NUMBER_MAX], int database) {
    number[emq_decimal_format(number, database)] = '\0';
    return emq_line_arguments(out, 2, (const char *const[]){"SELECT", number}, NULL);
}

int emq_line_client_name(emq_line *out, const char *name) {
    return emq_line_arguments(out, 3, (const char *const[]){"CLIENT", "SETNAME", name}, NULL);
}

int emq_line_fence(emq_line *out) {
    return emq_line_arguments(out, 2, (const char *const[]){"GET", EMQ_FENCE_KEY}, NULL);
}

int emq_line_role(emq_line *out) {
    return emq_line_arguments(out, 1, (const char *const[]){"ROLE"}, NULL);
}

int emq_line_primary_address(emq_line *out, const char *name) {
    const char *const words[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name};
    return emq_line_arguments(out, 3, words, NULL);
}
