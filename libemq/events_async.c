/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions on a loop: a session whose connection is pushed to.
 *
 * One message is taken at a time, and the next one when its callback has returned: what has come in
 * behind it waits in the connection's buffer, which holds one read and the part of a message before
 * it. As in events.c, the subscription is asked for once more behind some silence. */
#include <emq/events_async.h>

#include "async_session.h"
#include "connection.h"
#include "feed.h"
#include "memory.h"

struct emq_events_async {
    emq_session session;
    emq_events_async_options options;
    emq_feed feed;
    /* what on_event is to be told, when there is something */
    int is_due;
    emq_event *event;
    int result;
    emq_text error;

    uv_timer_t silence;
    uint64_t heard; /* bytes that had come in when the silence began */
    emq_async_close_fn on_close;
    void *close_user;
};

void emq_events_async_options_init(emq_events_async_options *options) {
    if (options != NULL) {
        *options = (emq_events_async_options)EMQ_EVENTS_ASYNC_OPTIONS_INIT;
    }
}

/* Silence. */

static void on_silence(uv_timer_t *timer);

static void wait_for_silence(emq_events_async *events) {
    events->heard = events->session.bytes_in;
    uv_update_time(events->session.loop);
    (void)uv_timer_start(&events->silence, on_silence,
                         events->session.settings.options.command_timeout_ms, 0);
}

/* Asks, or gives the connection up when that was not answered. */
static void break_silence(emq_events_async *events) {
    emq_session *session = &events->session;
    if (events->feed.is_asked) {
        emq_session_lose(session, emq_text_fail(&session->error, EMQ_ECONNECT,
                                                "the server does not answer any more"));
        return;
    }
    int result = emq_link_add(session->link, &events->feed.line);
    if (result != EMQ_OK) {
        emq_session_lose(session, emq_text_fail_plain(&session->error, result));
        return;
    }
    events->feed.is_asked = 1;
    wait_for_silence(events);
    emq_link_flush(session->link);
}

/* The timer is not moved by each message: when it fires, it looks whether anything has come. */
static void on_silence(uv_timer_t *timer) {
    emq_events_async *events = timer->data;
    emq_session *session = &events->session;
    uint64_t heard = events->heard;
    if (session->stage != EMQ_STAGE_OPEN || emq_session_is_anothers(session)) {
        return;
    }
    /* where the loop was held up, bytes may have come in time: timers run before sockets */
    emq_link_catch_up(session->link);
    if (session->bytes_in != heard) {
        wait_for_silence(events);
    } else if (session->stage == EMQ_STAGE_OPEN) {
        break_silence(events);
    }
    emq_session_settle(session);
}

/* The hooks of the session. */

static int enter(emq_session *session) {
    emq_events_async *events = session->owner;
    int result = emq_link_add(session->link, &events->feed.line);
    return result == EMQ_OK ? result : emq_text_fail_plain(&session->error, result);
}

static int enter_reply(emq_session *session, const redisReply *reply) {
    emq_events_async *events = session->owner;
    int result = emq_feed_confirm(&events->feed, reply, &session->error);
    if (result == EMQ_OK) {
        wait_for_silence(events);
    }
    return result;
}

static void take_reply(emq_session *session, redisReply *reply) {
    emq_events_async *events = session->owner;
    int is_broken = 0;
    int result = emq_feed_read(&events->event, &events->feed, reply, &is_broken, &events->error);
    freeReplyObject(reply);
    if (is_broken) {
        session->error = events->error;
        emq_text_clear(&events->error);
        emq_session_lose(session, result);
    } else if (result != EMQ_EMPTY) {
        session->failures = result == EMQ_OK ? 0 : session->failures;
        events->is_due = 1;
        events->result = result;
    }
}

/* No message is told before that the subscription is open. */
static int is_full(const emq_session *session) {
    const emq_events_async *events = session->owner;
    return events->is_due || session->is_noted;
}

/* One that was lost in the middle is, like one that was never there, not connected. */
static int lose(emq_session *session, int result, uint64_t sent) {
    emq_events_async *events = session->owner;
    (void)sent;
    (void)uv_timer_stop(&events->silence);
    return emq_handshake_result(result);
}

/* One that is due when the session closes is that of a child's parent. */
static void tell_event(emq_events_async *events) {
    emq_event *event = events->event;
    events->is_due = 0;
    events->event = NULL;
    if (events->session.is_closing) {
        emq_event_free(event);
    } else {
        events->options.on_event(events, event, events->result, events->options.user);
    }
    emq_text_clear(&events->error); /* it lives until the session ends, closed or not */
}

static void tell_state(emq_events_async *events) {
    if (events->options.on_state != NULL) {
        events->options.on_state(events, events->session.state, events->session.reason,
                                 events->options.user);
    }
}

/* A message comes before the end of the connection that it came on. */
static int work(emq_session *session) {
    emq_events_async *events = session->owner;
    if (events->is_due) {
        tell_event(events);
        return 1;
    }
    if (emq_session_take_note(session)) {
        tell_state(events);
        return 1;
    }
    if (session->stage == EMQ_STAGE_OPEN && !session->is_closing) {
        emq_link_take_more(session->link);
    }
    return events->is_due || session->is_noted;
}

static void end(emq_session *session) {
    emq_events_async *events = session->owner;
    if (events->on_close != NULL) {
        events->on_close(events->close_user);
    }
    emq_feed_clear(&events->feed);
    emq_session_clear(session);
    emq_free(events);
}

static const emq_session_hooks hooks = {
    .enter = enter,
    .enter_reply = enter_reply,
    .take_reply = take_reply,
    .is_full = is_full,
    .unread_max = EMQ_PUSH_MAX,
    .lose = lose,
    .work = work,
    .end = end,
};

/* Opening and closing. */

static int read_options(emq_events_async *events, const emq_events_async_options *options) {
    emq_events_async_options_init(&events->options);
    if (options == NULL) {
        return EMQ_EINVAL;
    }
    int result =
        emq_options_read(&events->options, sizeof(events->options), options, options->size);
    events->session.backoff_min_ms = events->options.backoff_min_ms;
    events->session.backoff_max_ms = events->options.backoff_max_ms;
    return result == EMQ_OK && events->options.on_event == NULL ? EMQ_EINVAL : result;
}

static void start(emq_events_async *events) {
    emq_session *session = &events->session;
    (void)uv_timer_init(session->loop, &events->silence); /* never fails */
    events->silence.data = events;
    session->handles = 1;
    emq_session_start(session);
}

int emq_events_async_open(emq_events_async **out, struct uv_loop_s *loop,
                          const emq_client_options *options, const char *queue,
                          const emq_events_async_options *async_options) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (loop == NULL || queue == NULL) {
        return EMQ_EINVAL;
    }
    emq_events_async *events = emq_calloc(1, sizeof(*events));
    if (events == NULL) {
        return EMQ_ENOMEM;
    }
    events->session.hooks = &hooks;
    events->session.owner = events;
    events->session.loop = loop;
    int result = read_options(events, async_options);
    if (result == EMQ_OK) {
        result = emq_feed_init(&events->feed, queue);
    }
    if (result == EMQ_OK) {
        result = emq_session_init(&events->session, options);
    }
    if (result != EMQ_OK) {
        emq_feed_clear(&events->feed);
        emq_free(events);
        return result;
    }
    start(events);
    *out = events;
    return EMQ_OK;
}

int emq_events_async_close(emq_events_async *events, emq_async_close_fn callback, void *user) {
    if (events == NULL) {
        return EMQ_EINVAL;
    }
    if (events->session.is_closing) {
        return EMQ_ECLOSED;
    }
    events->on_close = callback;
    events->close_user = user;
    emq_session_close(&events->session);
    emq_session_close_handle(&events->session, (uv_handle_t *)&events->silence);
    return EMQ_OK;
}

int emq_events_async_reconnect(emq_events_async *events) {
    if (events == NULL) {
        return EMQ_EINVAL;
    }
    if (emq_session_is_anothers(&events->session)) {
        return EMQ_EFORKED;
    }
    if (events->session.is_closing) {
        return EMQ_ECLOSED;
    }
    emq_session_reconnect(&events->session);
    return EMQ_OK;
}

emq_async_state emq_events_async_get_state(const emq_events_async *events) {
    return events == NULL ? EMQ_ASYNC_CLOSED : emq_session_get_state(&events->session);
}

const char *emq_events_async_get_error(const emq_events_async *events) {
    if (events == NULL) {
        return "";
    }
    const char *error = emq_session_get_error(&events->session);
    return error[0] != '\0' ? error : events->error.bytes;
}

uint64_t emq_events_async_get_reconnects(const emq_events_async *events) {
    return events == NULL ? 0 : events->feed.reconnects;
}
