/* SPDX-License-Identifier: Apache-2.0 */
/* The bus: EMQ.APPEND, EMQ.PUBLISH and EMQ.FAILURES.INCR. Records stand in streams, whose ids
 * follow from the records' own; messages on the channel are JSON and numbered. */
#include <emq/id.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "effects.h"
#include "handlers.h"
#include "json.h"
#include "read.h"

/* Two unsigned 64-bit decimals and a dash. */
#define STREAM_ID_MAX 48
/* Of a snowflake, what is not the time: node and sequence. */
#define WITHIN_MS_MASK ((UINT64_C(1) << 22) - 1)

/* ---- EMQ.APPEND ---- */

/* The place in a stream that a record's id dictates: ids in the order of minting are in the order
 * of the stream. */
static int find_place(emq_call *call, ValkeyModuleString *value, ValkeyModuleStreamID *out) {
    emq_slice text = emq_text(value);
    emq_id id;
    int64_t unix_ms = 0;
    uint64_t snowflake = 0;
    if (text.length < EMQ_NAMESPACE_LEN ||
        memcmp(text.data, EMQ_NAMESPACE_EVENT, EMQ_NAMESPACE_LEN) != 0) {
        return emq_refuse(call, "EMQKIND record id must be EVT-namespaced");
    }
    if (emq_id_parse(&id, text.data, text.length) != EMQ_OK ||
        emq_id_unix_ms(&unix_ms, &id) != EMQ_OK || emq_id_to_snowflake(&snowflake, &id) != EMQ_OK) {
        return emq_refuse(call, "ERR EMQ id must be a branded id");
    }
    *out = (ValkeyModuleStreamID){.ms = (uint64_t)unix_ms, .seq = snowflake & WITHIN_MS_MASK};
    return 1;
}

/* The server's own words, as XADD has them. */
static void refuse_append(emq_call *call, int reason) {
    switch (reason) {
    case EFBIG:
        (void)emq_refuse(call, "ERR The stream has exhausted the last possible ID, unable to add "
                               "more items");
        break;
    case ERANGE:
        (void)emq_refuse(call, "ERR Elements are too large to be stored");
        break;
    default:
        (void)emq_refuse(call, "ERR The ID specified in XADD is equal or smaller than the target "
                               "stream top item");
        break;
    }
}

void emq_handle_append(emq_call *call) {
    emq_ref stream = emq_declared(call, 0);
    ValkeyModuleStreamID place = {0};
    if (!find_place(call, emq_value(call, 0), &place) ||
        !emq_check_type(call, stream, VALKEYMODULE_KEYTYPE_STREAM)) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return;
    }
    char text[STREAM_ID_MAX];
    int length = snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64, place.ms, place.seq);
    ValkeyModuleString *place_text =
        emq_own(call, ValkeyModule_CreateString(NULL, text, (size_t)length));
    /* the record: the name of the first field, then every value of the call as it came */
    size_t count = 1 + (size_t)call->value_count;
    ValkeyModuleString **fields = ValkeyModule_Alloc(count * sizeof(ValkeyModuleString *));
    fields[0] =
        emq_own(call, ValkeyModule_CreateString(NULL, EMQ_FIELD_ID, sizeof(EMQ_FIELD_ID) - 1));
    for (int i = 0; i < call->value_count; i++) {
        fields[1 + i] = emq_value(call, i);
    }
    if (emq_effect_xadd(writes, stream, &place, place_text, fields, count / 2)) {
        (void)ValkeyModule_ReplyWithString(call->ctx, place_text);
    } else {
        refuse_append(call, errno);
    }
    ValkeyModule_Free(fields);
}

/* ---- EMQ.PUBLISH ---- */

#define FIXED_MEMBERS 2 /* event and job; the number stands between them and the fields */

/* A member of the message. What is no UTF-8 can't be in JSON as it is. */
typedef struct member {
    emq_slice name;
    emq_slice value;
    int is_base64;
} member;

/* The name as it stands in the message: with the mark of base64 behind it, or without. */
typedef struct full_name {
    emq_slice name;
    emq_slice mark;
} full_name;

static full_name name_of(const char *name, const char *mark) {
    return (full_name){emq_slice_of(name), emq_slice_of(mark)};
}

static unsigned char byte_at(const full_name *name, size_t i) {
    return (unsigned char)(i < name->name.length ? name->name.data[i]
                                                 : name->mark.data[i - name->name.length]);
}

static int compare_names(const void *left, const void *right) {
    const full_name *a = left;
    const full_name *b = right;
    size_t a_length = a->name.length + a->mark.length;
    size_t b_length = b->name.length + b->mark.length;
    for (size_t i = 0; i < a_length && i < b_length; i++) {
        int difference = byte_at(a, i) - byte_at(b, i);
        if (difference != 0) {
            return difference;
        }
    }
    return a_length < b_length ? -1 : a_length > b_length;
}

/* The five names that are taken whatever their values are, so that what a producer may call a field
 * does not depend on the bytes of another value. */
#define TAKEN_NAMES 5
static void take_names(full_name *out) {
    out[0] = name_of(EMQ_MESSAGE_EVENT, "");
    out[1] = name_of(EMQ_MESSAGE_EVENT, EMQ_MESSAGE_BASE64);
    out[2] = name_of(EMQ_MESSAGE_JOB, "");
    out[3] = name_of(EMQ_MESSAGE_JOB, EMQ_MESSAGE_BASE64);
    out[4] = name_of(EMQ_MESSAGE_SEQ, "");
}

/* Every reader of JSON makes something else of a name that stands twice: the names are distinct. */
static int are_distinct(const member *members, size_t count) {
    size_t total = TAKEN_NAMES;
    int distinct = 1;
    full_name *names = ValkeyModule_Alloc((TAKEN_NAMES + count) * sizeof(*names));
    take_names(names);
    for (size_t i = FIXED_MEMBERS; i < count; i++) {
        names[total++] = (full_name){members[i].name,
                                     emq_slice_of(members[i].is_base64 ? EMQ_MESSAGE_BASE64 : "")};
    }
    qsort(names, total, sizeof(*names), compare_names);
    for (size_t i = 1; i < total && distinct; i++) {
        distinct = compare_names(&names[i - 1], &names[i]) != 0;
    }
    ValkeyModule_Free(names);
    return distinct;
}

static member make_member(emq_slice name, ValkeyModuleString *value) {
    emq_slice text = emq_text(value);
    return (member){name, text, !emq_utf8_valid(text)};
}

/* Fills in event, job and the fields; refuses names that can't stand in the message. */
static int find_members(emq_call *call, member *members, size_t count) {
    members[0] = make_member(emq_slice_of(EMQ_MESSAGE_EVENT), emq_value(call, 0));
    members[1] = make_member(emq_slice_of(EMQ_MESSAGE_JOB), emq_value(call, 1));
    int is_text = 1;
    for (size_t i = FIXED_MEMBERS; i < count && is_text; i++) {
        int field = FIXED_MEMBERS + 2 * (int)(i - FIXED_MEMBERS);
        members[i] = make_member(emq_text(emq_value(call, field)), emq_value(call, field + 1));
        is_text = emq_utf8_valid(members[i].name);
    }
    return (is_text && are_distinct(members, count)) ||
           emq_refuse(call, "ERR EMQ field must be distinct UTF-8 text");
}

static void write_text(emq_json *out, const char *text) {
    emq_json_raw(out, emq_slice_of(text));
}

static void write_member(emq_json *out, const member *m) {
    write_text(out, "\"");
    emq_json_text(out, m->name);
    write_text(out, m->is_base64 ? EMQ_MESSAGE_BASE64 "\":\"" : "\":\"");
    if (m->is_base64) {
        emq_json_base64(out, m->value);
    } else {
        emq_json_text(out, m->value);
    }
    write_text(out, "\"");
}

static void write_message(emq_json *out, const member *members, size_t count, int64_t number) {
    char digits[EMQ_DECIMAL_MAX];
    for (size_t i = 0; i < count; i++) {
        write_text(out, i == 0 ? "{" : ",");
        write_member(out, &members[i]);
        if (i + 1 == FIXED_MEMBERS) {
            write_text(out, ",\"" EMQ_MESSAGE_SEQ "\":");
            emq_json_raw(out, (emq_slice){digits, emq_decimal_format(digits, number)});
        }
    }
    write_text(out, "}");
}

static ValkeyModuleString *make_message(emq_call *call, const member *members, size_t count,
                                        int64_t number) {
    emq_json counted = {0};
    write_message(&counted, members, count, number);
    emq_json written = {.data = ValkeyModule_Alloc(counted.length)};
    write_message(&written, members, count, number);
    ValkeyModuleString *message =
        emq_own(call, ValkeyModule_CreateString(NULL, written.data, written.length));
    ValkeyModule_Free(written.data);
    return message;
}

/* What PUBLISH does once its values are in order. */
static void publish(emq_call *call, const member *members, size_t count) {
    const emq_reach_key last_key = {.kind = EMQ_KEY_EVENTS_SEQ};
    ValkeyModuleString *channel = NULL;
    emq_ref last = {0};
    int64_t number = 0;
    if (!emq_reach(call, &last, &last_key, 1) || !emq_reach_channel(call, &channel) ||
        !emq_string_counter(call, last, &number)) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes == NULL) {
        return;
    }
    ValkeyModuleString *message = make_message(call, members, count, number);
    emq_effect_set(writes, last, emq_number_text(call, number));
    emq_reply_integer(call, emq_effect_publish(writes, channel, message));
}

void emq_handle_publish(emq_call *call) {
    size_t count = FIXED_MEMBERS + (size_t)(call->value_count - FIXED_MEMBERS) / 2;
    member *members = ValkeyModule_Alloc(count * sizeof(*members));
    if (find_members(call, members, count)) {
        publish(call, members, count);
    }
    ValkeyModule_Free(members);
}

/* ---- EMQ.FAILURES.INCR ---- */

/* An unsigned 64-bit number in canonical decimal. */
static int is_unsigned(emq_slice text) {
    static const char largest[] = "18446744073709551615";
    const size_t digits_max = sizeof(largest) - 1;
    if (text.length == 0 || text.length > digits_max || (text.data[0] == '0' && text.length > 1)) {
        return 0;
    }
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return 0;
        }
    }
    return text.length < digits_max || memcmp(text.data, largest, digits_max) <= 0;
}

static int is_entry_id(emq_slice text) {
    const char *dash = text.length > 0 ? memchr(text.data, '-', text.length) : NULL;
    if (dash == NULL) {
        return 0;
    }
    emq_slice ms = {text.data, (size_t)(dash - text.data)};
    emq_slice seq = {dash + 1, text.length - ms.length - 1};
    return is_unsigned(ms) && is_unsigned(seq);
}

static ValkeyModuleString *join(emq_call *call, emq_slice group, emq_slice entry) {
    char field[EMQ_QUEUE_MAX + 1 + STREAM_ID_MAX];
    memcpy(field, group.data, group.length);
    field[group.length] = ':';
    memcpy(field + group.length + 1, entry.data, entry.length);
    return emq_own(call, ValkeyModule_CreateString(NULL, field, group.length + 1 + entry.length));
}

void emq_handle_failures_incr(emq_call *call) {
    emq_ref failures = emq_declared(call, 0);
    emq_slice group = emq_text(emq_value(call, 0));
    emq_slice entry = emq_text(emq_value(call, 1));
    if (!emq_name_valid(group)) {
        (void)emq_refuse(call, "ERR EMQ group must be 1 to 128 bytes without : { } NUL CR LF");
        return;
    }
    if (!is_entry_id(entry)) {
        (void)emq_refuse(call, "ERR EMQ entry-id must be <ms>-<seq>");
        return;
    }
    ValkeyModuleString *field = join(call, group, entry);
    int64_t count = 0;
    if (!emq_hash_counter(call, failures, field, 1, &count)) {
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes != NULL) {
        const emq_field counted = {field, emq_number_text(call, count)};
        emq_effect_hset(writes, failures, &counted, 1);
        emq_reply_integer(call, count);
    }
}
