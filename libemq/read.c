/* SPDX-License-Identifier: Apache-2.0 */
/* Reads by plain commands: rows, sizes, pages. */
#include <emq/read.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "decode_common.h"
#include "line.h"
#include "wire.h"

#define COUNTS_SIZE_MAX 4096 /* no version's struct is that large: such a size was never set */

/* Names and values by turns, all strings. */
static int is_hash(const redisReply *reply) {
    return reply != NULL && emq_reply_is_ids(reply, SIZE_MAX) && reply->elements % 2 == 0;
}

/* The value of a field of a hash; NULL when it isn't there. */
static const redisReply *find_field(const redisReply *hash, const char *name) {
    for (size_t i = 0; hash != NULL && i < hash->elements; i += 2) {
        const redisReply *field = hash->element[i];
        if (emq_slice_equal((emq_slice){field->str, field->len}, emq_slice_of(name))) {
            return hash->element[i + 1];
        }
    }
    return NULL;
}

static int decode_row(const redisReply *reply, emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    if (!is_hash(reply)) {
        return emq_decode_surprise("HGETALL", "names and values", error);
    }
    return find_field(reply, EMQ_FIELD_ATTEMPTS) == NULL ? EMQ_GONE : EMQ_OK;
}

static emq_deadline start_call(emq_client *client) {
    emq_text_clear(&client->error);
    return emq_deadline_in(client->settings.options.command_timeout_ms);
}

int emq_row_read(emq_row **out, emq_client *client, const char *queue, const emq_id *id) {
    char key[EMQ_KEY_MAX + 1];
    redisReply *reply = NULL;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    int result = emq_key_job(key, sizeof(key), queue, id);
    if (result >= 0) {
        result = emq_line_arguments(&client->line, 2, (const char *const[]){"HGETALL", key}, NULL);
    }
    if (result != EMQ_OK) {
        return emq_text_fail_plain(&client->error, result);
    }
    result = emq_client_exchange(client, &client->line, &reply, deadline);
    if (result == EMQ_OK) {
        result = decode_row(reply, &client->error);
    }
    if (result == EMQ_OK) {
        *out = (emq_row *)reply;
        reply = NULL;
    }
    return emq_client_finish(client, reply, result);
}

/* An emq_row is the reply itself under another name. */
static const redisReply *get_field(const emq_row *row, const char *name) {
    return find_field((const redisReply *)row, name);
}

static const char *get_bytes(const emq_row *row, const char *name, size_t *n) {
    const redisReply *value = get_field(row, name);
    if (n != NULL) {
        *n = value == NULL ? 0 : value->len;
    }
    return value == NULL ? NULL : value->str;
}

/* A number that isn't there is 0; one that is none is -1. */
static int64_t get_number(const redisReply *value) {
    int64_t number = 0;
    if (value != NULL && !emq_decimal_parse(&number, value->str, value->len, 0, INT64_MAX)) {
        return -1;
    }
    return number;
}

const char *emq_row_get_state(const emq_row *row) {
    const char *state = get_bytes(row, EMQ_FIELD_STATE, NULL);
    return state == NULL ? "" : state;
}

int64_t emq_row_get_attempts(const emq_row *row) {
    return get_number(get_field(row, EMQ_FIELD_ATTEMPTS));
}

int64_t emq_row_get_failures(const emq_row *row) {
    return get_number(get_field(row, EMQ_FIELD_FAILURES));
}

int64_t emq_row_get_stalled(const emq_row *row) {
    return get_number(get_field(row, EMQ_FIELD_STALLED));
}

const void *emq_row_get_payload(const emq_row *row, size_t *n) {
    return get_bytes(row, EMQ_FIELD_PAYLOAD, n);
}

const char *emq_row_get_last_error(const emq_row *row, size_t *n) {
    return get_bytes(row, EMQ_FIELD_LAST_ERROR, n);
}

const char *emq_row_get_lane(const emq_row *row) {
    return get_bytes(row, EMQ_FIELD_GROUP, NULL);
}

void emq_row_free(emq_row *row) {
    freeReplyObject(row);
}

/* What the counts are made of, in the order of the commands: sizes of sets, and fields of hashes.
 */
static const struct {
    const char *command;
    emq_key_kind kind;
    const char *field;
} count_rows[] = {
    {"ZCARD", EMQ_KEY_PENDING, NULL},
    {"ZCARD", EMQ_KEY_ACTIVE, NULL},
    {"ZCARD", EMQ_KEY_SCHEDULE, NULL},
    {"ZCARD", EMQ_KEY_DEAD, NULL},
    {"HGETALL", EMQ_KEY_COMPLETED, EMQ_FIELD_COUNT},
    {"HGETALL", EMQ_KEY_FAILED, EMQ_FIELD_COUNT},
    {"HGETALL", EMQ_KEY_META, EMQ_FIELD_PAUSED},
};

#define COUNTS (sizeof(count_rows) / sizeof(count_rows[0]))

typedef struct count_lines {
    emq_line lines[COUNTS];
    char keys[COUNTS][EMQ_KEY_MAX + 1];
} count_lines;

static int build_counts(count_lines *out, const char *queue) {
    for (size_t i = 0; i < COUNTS; i++) {
        int result = emq_key_queue(out->keys[i], sizeof(out->keys[i]), queue, count_rows[i].kind);
        if (result < 0) {
            return result;
        }
        const char *const words[] = {count_rows[i].command, out->keys[i]};
        result = emq_line_arguments(&out->lines[i], 2, words, NULL);
        if (result != EMQ_OK) {
            return result;
        }
    }
    return EMQ_OK;
}

/* A field of a hash: its number, or whether it is there where any value means the same. */
static int decode_field(int64_t *out, size_t i, const redisReply *reply, emq_text *error) {
    if (!is_hash(reply)) {
        return emq_decode_surprise("HGETALL", "names and values", error);
    }
    const redisReply *value = find_field(reply, count_rows[i].field);
    *out = count_rows[i].kind == EMQ_KEY_META ? value != NULL : get_number(value);
    return *out >= 0 ? EMQ_OK : emq_text_fail(error, EMQ_EVALUE, "a count is no number");
}

static int decode_count(int64_t *out, size_t i, const redisReply *reply, emq_text *error) {
    if (reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    if (count_rows[i].field != NULL) {
        return decode_field(out, i, reply, error);
    }
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0) {
        return emq_decode_surprise("ZCARD", "a number", error);
    }
    *out = reply->integer;
    return EMQ_OK;
}

static int decode_counts(emq_counts *out, redisReply **replies, emq_text *error) {
    int64_t counts[COUNTS] = {0};
    int result = EMQ_OK;
    for (size_t i = 0; i < COUNTS && result == EMQ_OK; i++) {
        result = decode_count(&counts[i], i, replies[i], error);
    }
    out->pending = counts[0];
    out->active = counts[1];
    out->scheduled = counts[2];
    out->dead = counts[3];
    out->completed = counts[4];
    out->failed = counts[5];
    out->paused = (int)counts[6];
    return result;
}

static int read_counts(emq_counts *out, emq_client *client, const count_lines *lines,
                       emq_deadline deadline) {
    redisReply *replies[COUNTS] = {NULL};
    int result = emq_connection_exchange(&client->connection, lines->lines, COUNTS, replies,
                                         deadline, &client->error);
    if (result == EMQ_OK) {
        result = decode_counts(out, replies, &client->error);
    }
    for (size_t i = 0; i < COUNTS; i++) {
        freeReplyObject(replies[i]);
    }
    return emq_client_finish(client, NULL, result);
}

/* A caller built with older headers has room for fewer counts. */
int emq_counts_read(emq_counts *out, emq_client *client, const char *queue) {
    emq_counts counts = EMQ_COUNTS_INIT;
    count_lines lines;
    if (out == NULL || client == NULL || out->size < sizeof(out->size) ||
        out->size > COUNTS_SIZE_MAX) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    memset(&lines, 0, sizeof(lines));
    int result = build_counts(&lines, queue);
    if (result == EMQ_OK) {
        result = read_counts(&counts, client, &lines, deadline);
    } else {
        (void)emq_text_fail_plain(&client->error, result);
    }
    for (size_t i = 0; i < COUNTS; i++) {
        emq_line_clear(&lines.lines[i]);
    }
    if (result == EMQ_OK) {
        counts.size = out->size;
        memcpy(out, &counts, out->size < sizeof(counts) ? out->size : sizeof(counts));
    }
    return result;
}

/* ZRANGE <set> (<before> - BYLEX REV LIMIT 0 <limit>: the members have one score, so that the order
 * is that of the ids. */
static int build_page(emq_line *line, char *bound, char *number, const char *key,
                      const char *before, size_t n, uint32_t limit) {
    size_t digits = emq_decimal_format(number, limit);
    bound[0] = before == NULL ? '+' : '(';
    if (before != NULL) {
        memcpy(bound + 1, before, n);
    }
    const char *const words[] = {"ZRANGE", key, bound, "-", "BYLEX", "REV", "LIMIT", "0", number};
    const size_t lengths[] = {6, strlen(key), before == NULL ? 1 : n + 1, 1, 5, 3, 5, 1, digits};
    return emq_line_arguments(line, 9, words, lengths);
}

static int decode_page(const redisReply *reply, uint32_t limit, emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    return emq_reply_is_ids(reply, limit)
               ? EMQ_OK
               : emq_decode_surprise("ZRANGE", "an array of strings, limit at most", error);
}

int emq_ids_browse(emq_ids **out, emq_client *client, const char *queue, emq_key_kind set,
                   const char *before, size_t n, uint32_t limit) {
    char key[EMQ_KEY_MAX + 1];
    char bound[EMQ_QUEUE_MAX + 1]; /* these three are borrowed by the line */
    char number[EMQ_DECIMAL_MAX];
    redisReply *reply = NULL;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    const emq_value_facts *facts = emq_value_get_facts(EMQ_VALUE_LIMIT);
    int result = EMQ_EINVAL;
    if ((set == EMQ_KEY_PENDING || set == EMQ_KEY_DEAD) && limit >= facts->min &&
        limit <= facts->max && (before == NULL || n < sizeof(bound))) {
        result = emq_key_queue(key, sizeof(key), queue, set);
    }
    if (result >= 0) {
        result = build_page(&client->line, bound, number, key, before, n, limit);
    }
    if (result != EMQ_OK) {
        return emq_text_fail_plain(&client->error, result);
    }
    result = emq_client_exchange(client, &client->line, &reply, deadline);
    if (result == EMQ_OK) {
        result = decode_page(reply, limit, &client->error);
    }
    if (result == EMQ_OK) {
        *out = (emq_ids *)reply;
        reply = NULL;
    }
    return emq_client_finish(client, reply, result);
}
