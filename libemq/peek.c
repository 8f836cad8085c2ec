/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a queue: the server's time, and the lowest scores of `active` and `schedule`. */
#include "peek.h"

#include <emq/keyspace.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "decode_common.h"
#include "line.h"
#include "wire.h"

#define LINES 3
#define MS_PER_S 1000
#define US_PER_MS 1000

typedef struct peek_lines {
    emq_line lines[LINES];
    char active[EMQ_KEY_MAX + 1];
    char schedule[EMQ_KEY_MAX + 1];
} peek_lines;

static int build_lowest(emq_line *line, char *key, const char *queue, emq_key_kind kind) {
    int result = emq_key_queue(key, EMQ_KEY_MAX + 1, queue, kind);
    if (result < 0) {
        return result;
    }
    const char *const words[] = {"ZRANGE", key, "0", "0", "WITHSCORES"};
    return emq_line_arguments(line, 5, words, NULL);
}

static int build(peek_lines *out, const char *queue) {
    int result = emq_line_arguments(&out->lines[0], 1, (const char *const[]){"TIME"}, NULL);
    if (result == EMQ_OK) {
        result = build_lowest(&out->lines[1], out->active, queue, EMQ_KEY_ACTIVE);
    }
    return result == EMQ_OK ? build_lowest(&out->lines[2], out->schedule, queue, EMQ_KEY_SCHEDULE)
                            : result;
}

static int decode_time(int64_t *out, const redisReply *reply, emq_text *error) {
    int64_t seconds = 0;
    int64_t us = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    if (!emq_reply_is_ids(reply, 2) || reply->elements != 2 ||
        !emq_decimal_parse(&seconds, reply->element[0]->str, reply->element[0]->len, 0,
                           INT64_MAX / MS_PER_S / 2) ||
        !emq_decimal_parse(&us, reply->element[1]->str, reply->element[1]->len, 0, 999999)) {
        return emq_decode_surprise("TIME", "seconds and microseconds", error);
    }
    *out = seconds * MS_PER_S + us / US_PER_MS;
    return EMQ_OK;
}

/* A score is a double; one that was set by hand may be any. */
static int64_t read_score(const char *text) {
    double score = strtod(text, NULL);
    if (!(score > 0)) {
        return 0;
    }
    return score < 9e15 ? (int64_t)score : EMQ_PEEK_NONE;
}

static int decode_lowest(int64_t *out, const redisReply *reply, emq_text *error) {
    *out = EMQ_PEEK_NONE;
    if (reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    if (!emq_reply_is_ids(reply, 2) || reply->elements == 1) {
        return emq_decode_surprise("ZRANGE", "a member and its score", error);
    }
    if (reply->elements == 2) {
        *out = read_score(reply->element[1]->str);
    }
    return EMQ_OK;
}

static int decode(emq_peek *out, redisReply *const *replies, emq_text *error) {
    int result = decode_time(&out->now_ms, replies[0], error);
    if (result == EMQ_OK) {
        result = decode_lowest(&out->active_ms, replies[1], error);
    }
    return result == EMQ_OK ? decode_lowest(&out->schedule_ms, replies[2], error) : result;
}

int emq_peek_read(emq_peek *out, emq_client *client, const char *queue) {
    peek_lines lines;
    redisReply *replies[LINES] = {NULL};
    emq_deadline deadline = emq_deadline_in(client->settings.options.command_timeout_ms);
    memset(&lines, 0, sizeof(lines));
    emq_text_clear(&client->error);
    int result = build(&lines, queue);
    if (result != EMQ_OK) {
        (void)emq_text_fail_plain(&client->error, result);
    } else {
        result = emq_connection_exchange(&client->connection, lines.lines, LINES, replies, deadline,
                                         &client->error);
    }
    if (result == EMQ_OK) {
        result = decode(out, replies, &client->error);
    }
    for (int i = 0; i < LINES; i++) {
        freeReplyObject(replies[i]);
        emq_line_clear(&lines.lines[i]);
    }
    return emq_client_finish(client, NULL, result);
}
