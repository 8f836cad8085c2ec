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
#include "feed.h"
#include "handshake.h"
#include "memory.h"

#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 5000

struct emq_events {
    emq_client *client;
    emq_feed feed;
    emq_deadline silence; /* when the subscription is to be asked for once more, or has failed */
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

/* On a connection that has the connect path behind it. */
static int subscribe(emq_events *events, emq_deadline deadline) {
    redisReply *reply = NULL;
    int result = emq_connection_subscribe(connection_of(events), &events->feed.line, &reply,
                                          deadline, error_of(events));
    if (result == EMQ_OK) {
        result = emq_feed_confirm(&events->feed, reply, error_of(events));
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
    prolong_silence(events);
    events->proven = emq_deadline_in(BACKOFF_MAX_MS);
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
    if (events->feed.is_asked) {
        return note_loss(events, emq_text_fail(error_of(events), EMQ_ECONNECT,
                                               "the server does not answer any more"));
    }
    int result = emq_connection_post(connection_of(events), &events->feed.line, error_of(events));
    if (result != EMQ_OK) {
        return note_loss(events, result);
    }
    events->feed.is_asked = 1;
    prolong_silence(events);
    return EMQ_EMPTY;
}

/* EMQ_EMPTY for what is no message and is right all the same. */
static int read_pushed(emq_event **out, emq_events *events, const redisReply *reply) {
    int is_broken = 0;
    int result = emq_feed_read(out, &events->feed, reply, &is_broken, error_of(events));
    if (result == EMQ_OK) {
        events->failures = 0;
    }
    return is_broken ? note_loss(events, result) : result;
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
    if (emq_feed_init(&events->feed, queue) != EMQ_OK || events->client == NULL) {
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
    return events == NULL ? 0 : events->feed.reconnects;
}

const char *emq_events_get_error(const emq_events *events) {
    return events == NULL ? "" : emq_client_get_error(events->client);
}

void emq_events_close(emq_events *events) {
    if (events != NULL) {
        emq_client_close(events->client);
        emq_feed_clear(&events->feed);
        emq_free(events);
    }
}
