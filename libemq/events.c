/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions: a client that listens. It has the connect path, and its settings, error and owner,
 * from emq_client; what comes in is read here.
 *
 * A connection that is silent says nothing about whether the other side is still there. So behind
 * some silence the subscription is asked for once more: it takes no right that is not there
 * already, changes nothing, and is answered. */
#include <emq/events.h>
#include <string.h>

#include "chance.h"
#include "client.h"
#include "event.h"
#include "handshake.h"
#include "keys.h"
#include "line.h"
#include "memory.h"

#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 5000

struct emq_events {
    emq_client *client;
    char channel[EMQ_KEY_MAX + 1];
    emq_line line;        /* SUBSCRIBE; borrows the channel */
    int is_asked;         /* the subscription was asked for once more, and not answered yet */
    emq_deadline silence; /* when that is to be done, or has failed */
    uint64_t reconnects;
    /* of the numbers */
    int64_t seq; /* the last one, once there is one */
    int has_seq;
    int was_open;   /* since the beginning; what is missed before that does not count */
    int is_resumed; /* connected anew, and no message since */
    /* of the backoff */
    unsigned int failures;
    emq_deadline retry;  /* not before that */
    emq_deadline proven; /* a connection that lives until then was a good one */
    int failure;         /* the last one, while there is no connection */
};

static emq_text *error_of(emq_events *events) {
    return &events->client->error;
}

static emq_connection *connection_of(emq_events *events) {
    return &events->client->connection;
}

static int is_open(const emq_events *events) {
    return events->client->connection.context != NULL;
}

/* Whichever comes first. */
static emq_deadline earlier(emq_deadline a, emq_deadline b) {
    return a.at_ns < b.at_ns ? a : b;
}

static int has_passed(emq_deadline deadline) {
    return emq_deadline_left_ms(deadline) == 0;
}

/* What is kept of a failure that leaves no connection; returns it. */
static int note_failure(emq_events *events, int result) {
    emq_connection_close(connection_of(events));
    events->failures += events->failures < 16;
    events->retry = emq_deadline_in(
        emq_draw(emq_doubled(BACKOFF_MIN_MS, BACKOFF_MAX_MS, events->failures - 1)));
    events->failure = result;
    return result;
}

static void prolong_silence(emq_events *events) {
    events->silence = emq_deadline_in(events->client->settings.options.command_timeout_ms);
}

static int is_text(const redisReply *reply, const char *text) {
    return reply->type == REDIS_REPLY_STRING && reply->len == strlen(text) &&
           memcmp(reply->str, text, reply->len) == 0;
}

/* Whether the reply is [word, channel, anything]. */
static int is_about(const emq_events *events, const redisReply *reply, const char *word) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           is_text(reply->element[0], word) && is_text(reply->element[1], events->channel);
}

static int is_confirmation(const emq_events *events, const redisReply *reply) {
    return is_about(events, reply, "subscribe") && reply->element[2]->type == REDIS_REPLY_INTEGER &&
           reply->element[2]->integer == 1;
}

static int fail_reply(emq_events *events, const redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_raw(reply, error_of(events));
    }
    return emq_text_fail(error_of(events), EMQ_EPROTOCOL,
                         "the peer pushed what is no message of %s", events->channel);
}

/* On a connection that has the connect path behind it. */
static int subscribe(emq_events *events, emq_deadline deadline) {
    redisReply *reply = NULL;
    int result = emq_connection_subscribe(connection_of(events), &events->line, &reply, deadline,
                                          error_of(events));
    if (result == EMQ_OK && !is_confirmation(events, reply)) {
        result = fail_reply(events, reply);
    }
    freeReplyObject(reply);
    return emq_handshake_result(result);
}

static int connect_anew(emq_events *events, emq_deadline deadline) {
    uint32_t limit = events->client->settings.options.connect_timeout_ms;
    deadline = earlier(deadline, emq_deadline_in(limit));
    int result = emq_client_connect(events->client, deadline);
    if (result == EMQ_OK) {
        result = subscribe(events, deadline);
    }
    if (result != EMQ_OK) {
        return note_failure(events, result);
    }
    events->is_asked = 0;
    prolong_silence(events);
    events->proven = emq_deadline_in(BACKOFF_MAX_MS);
    events->reconnects += (uint64_t)events->was_open;
    events->is_resumed = events->was_open;
    events->was_open = 1;
    return EMQ_OK;
}

/* A failure behind which the same may succeed after a while. */
static int is_passing(int result) {
    return emq_err_class(result) == EMQ_CLASS_RETRYABLE;
}

/* EMQ_OK when subscribed. */
static int ensure_open(emq_events *events, emq_deadline deadline) {
    int result = is_open(events) ? EMQ_OK : events->failure;
    while (!is_open(events)) {
        (void)emq_poll(-1, 0, earlier(deadline, events->retry)); /* a pause */
        if (has_passed(deadline)) {
            break;
        }
        result = connect_anew(events, deadline);
        if (result != EMQ_OK && !is_passing(result)) {
            return result;
        }
    }
    return result;
}

/* One that was lost in the middle is, like one that was never there, not connected. */
static int note_loss(emq_events *events, int result) {
    if (has_passed(events->proven)) {
        events->failures = 0;
    }
    return note_failure(events, emq_handshake_result(result));
}

/* The silence has lasted: asks (EMQ_EMPTY), or gives the connection up when that was not answered.
 */
static int break_silence(emq_events *events) {
    if (events->is_asked) {
        return note_loss(events, emq_text_fail(error_of(events), EMQ_ECONNECT,
                                               "the server does not answer any more"));
    }
    int result = emq_connection_post(connection_of(events), &events->line, error_of(events));
    if (result != EMQ_OK) {
        return note_loss(events, result);
    }
    events->is_asked = 1;
    prolong_silence(events);
    return EMQ_EMPTY;
}

/* What is missing before a number. Unsigned, since both may be of any sign. */
static int64_t count_missed(const emq_events *events, int64_t seq) {
    if (!events->has_seq) {
        return events->is_resumed ? EMQ_GAP_UNKNOWN : 0;
    }
    if (seq <= events->seq) {
        return EMQ_GAP_UNKNOWN;
    }
    uint64_t missed = (uint64_t)seq - (uint64_t)events->seq - 1;
    return missed < (uint64_t)INT64_MAX ? (int64_t)missed : INT64_MAX;
}

static int read_message(emq_event **out, emq_events *events, const redisReply *payload) {
    emq_event *event = NULL;
    int result = emq_event_parse(&event, payload->str, payload->len, error_of(events));
    if (result != EMQ_OK) {
        return result;
    }
    event->gap = count_missed(events, event->seq);
    event->is_resumed = events->is_resumed;
    events->seq = event->seq;
    events->has_seq = 1;
    events->is_resumed = 0;
    events->failures = 0;
    *out = event;
    return EMQ_OK;
}

/* EMQ_EMPTY for what is no message and is right all the same. */
static int read_pushed(emq_event **out, emq_events *events, const redisReply *reply) {
    if (is_about(events, reply, "message") && reply->element[2]->type == REDIS_REPLY_STRING) {
        return read_message(out, events, reply->element[2]);
    }
    if (events->is_asked && is_confirmation(events, reply)) {
        events->is_asked = 0;
        return EMQ_EMPTY;
    }
    return note_loss(events, fail_reply(events, reply));
}

/* One turn on an open connection: EMQ_EMPTY when nothing came that the caller wants to know. */
static int listen_once(emq_event **out, emq_events *events, emq_deadline deadline) {
    redisReply *reply = NULL;
    int has_read = 0;
    int result = emq_connection_receive(connection_of(events), &reply, &has_read,
                                        earlier(deadline, events->silence), error_of(events));
    if (result < 0) {
        return note_loss(events, result);
    }
    if (has_read || result == EMQ_OK) {
        prolong_silence(events); /* the other side is there */
    }
    if (result == EMQ_OK) {
        result = read_pushed(out, events, reply);
        freeReplyObject(reply);
        return result;
    }
    return has_passed(events->silence) ? break_silence(events) : EMQ_EMPTY;
}

static int wait_for_message(emq_event **out, emq_events *events, emq_deadline deadline) {
    for (;;) {
        int result = ensure_open(events, deadline);
        if (result != EMQ_OK) {
            return result;
        }
        result = listen_once(out, events, deadline);
        if (result != EMQ_EMPTY && !is_passing(result)) {
            return result;
        }
        if (has_passed(deadline)) {
            return result;
        }
    }
}

int emq_events_next(emq_event **out, emq_events *events, uint32_t timeout_ms) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (events == NULL) {
        return EMQ_EINVAL;
    }
    if (emq_client_check_process(events->client) != EMQ_OK) {
        return EMQ_EFORKED;
    }
    /* while there is no connection, the sentence of the last failure stands */
    int result = wait_for_message(out, events, emq_deadline_in(timeout_ms));
    if (result >= 0) {
        emq_text_clear(error_of(events));
    }
    return result;
}

int emq_events_reconnect(emq_events *events) {
    if (events == NULL) {
        return EMQ_EINVAL;
    }
    if (emq_client_check_process(events->client) != EMQ_OK) {
        return EMQ_EFORKED;
    }
    return connect_anew(events, emq_deadline_in(UINT32_MAX));
}

/* A subscription that is not connected. The result is that of its options. */
static int create(emq_events **out, const emq_client_options *options, const char *queue) {
    emq_events *events = emq_calloc(1, sizeof(*events));
    if (events == NULL) {
        return EMQ_ENOMEM;
    }
    int result = emq_client_new(&events->client, options);
    (void)emq_key_queue(events->channel, sizeof(events->channel), queue, EMQ_KEY_EVENTS);
    events->line = (emq_line)EMQ_LINE_INIT;
    if (events->client == NULL ||
        emq_line_arguments(&events->line, 2, (const char *const[]){"SUBSCRIBE", events->channel},
                           NULL) != EMQ_OK) {
        emq_events_close(events);
        return EMQ_ENOMEM;
    }
    *out = events;
    return result;
}

int emq_events_open(emq_events **out, const emq_client_options *options, const char *queue) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (queue == NULL) {
        return EMQ_EINVAL;
    }
    if (!emq_queue_valid(queue)) {
        return EMQ_EQUEUE;
    }
    int result = create(out, options, queue);
    /* refused options are told by the connect path, with their sentence */
    return result == EMQ_ENOMEM ? result : emq_events_reconnect(*out);
}

int emq_events_is_open(const emq_events *events) {
    return events != NULL && emq_client_is_open(events->client);
}

uint64_t emq_events_get_reconnects(const emq_events *events) {
    return events == NULL ? 0 : events->reconnects;
}

const char *emq_events_get_error(const emq_events *events) {
    return events == NULL ? "" : emq_client_get_error(events->client);
}

void emq_events_close(emq_events *events) {
    if (events != NULL) {
        emq_client_close(events->client);
        emq_line_clear(&events->line);
        emq_free(events);
    }
}
