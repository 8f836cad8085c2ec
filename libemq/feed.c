/* SPDX-License-Identifier: Apache-2.0 */
/* The replies of a subscription: confirmations, messages and their numbers. */
#include "feed.h"

#include <string.h>

#include "decode.h"
#include "event.h"
#include "line.h"

int emq_feed_init(emq_feed *feed, const char *queue) {
    memset(feed, 0, sizeof(*feed));
    feed->line = (emq_line)EMQ_LINE_INIT;
    if (emq_key_queue(feed->channel, sizeof(feed->channel), queue, EMQ_KEY_EVENTS) < 0) {
        return EMQ_EQUEUE;
    }
    const char *const words[] = {"SUBSCRIBE", feed->channel};
    return emq_line_arguments(&feed->line, 2, words, NULL);
}

void emq_feed_clear(emq_feed *feed) {
    emq_line_clear(&feed->line);
}

static int is_text(const redisReply *reply, const char *text) {
    return reply->type == REDIS_REPLY_STRING && reply->len == strlen(text) &&
           memcmp(reply->str, text, reply->len) == 0;
}

/* Whether the reply is [word, channel, anything]. */
static int is_about(const emq_feed *feed, const redisReply *reply, const char *word) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           is_text(reply->element[0], word) && is_text(reply->element[1], feed->channel);
}

static int is_confirmation(const emq_feed *feed, const redisReply *reply) {
    return is_about(feed, reply, "subscribe") && reply->element[2]->type == REDIS_REPLY_INTEGER &&
           reply->element[2]->integer == 1;
}

static int fail_reply(const emq_feed *feed, const redisReply *reply, emq_text *error) {
    if (reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_raw(reply, error);
    }
    return emq_text_fail(error, EMQ_EPROTOCOL, "the peer pushed what is no message of %s",
                         feed->channel);
}

int emq_feed_confirm(emq_feed *feed, const redisReply *reply, emq_text *error) {
    if (!is_confirmation(feed, reply)) {
        return fail_reply(feed, reply, error);
    }
    feed->is_asked = 0;
    feed->reconnects += (uint64_t)feed->was_open;
    feed->is_resumed = feed->was_open;
    feed->was_open = 1;
    return EMQ_OK;
}

/* What is missing before a number. Unsigned, since both may be of any sign. */
static int64_t count_missed(const emq_feed *feed, int64_t seq) {
    if (!feed->has_seq) {
        return feed->is_resumed ? EMQ_GAP_UNKNOWN : 0;
    }
    if (seq <= feed->seq) {
        return EMQ_GAP_UNKNOWN;
    }
    uint64_t missed = (uint64_t)seq - (uint64_t)feed->seq - 1;
    return missed < (uint64_t)INT64_MAX ? (int64_t)missed : INT64_MAX;
}

static int read_message(emq_event **out, emq_feed *feed, const redisReply *payload,
                        emq_text *error) {
    emq_event *event = NULL;
    int result = emq_event_parse(&event, payload->str, payload->len, error);
    if (result != EMQ_OK) {
        return result;
    }
    event->gap = count_missed(feed, event->seq);
    event->is_resumed = feed->is_resumed;
    feed->seq = event->seq;
    feed->has_seq = 1;
    feed->is_resumed = 0;
    *out = event;
    return EMQ_OK;
}

int emq_feed_read(emq_event **out, emq_feed *feed, const redisReply *reply, int *is_broken,
                  emq_text *error) {
    *is_broken = 0;
    if (is_about(feed, reply, "message") && reply->element[2]->type == REDIS_REPLY_STRING) {
        return read_message(out, feed, reply->element[2], error);
    }
    if (feed->is_asked && is_confirmation(feed, reply)) {
        feed->is_asked = 0;
        return EMQ_EMPTY;
    }
    *is_broken = 1;
    return fail_reply(feed, reply, error);
}
