/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client: opening, closing, submitting, deadlines, and the calling of callbacks.
 */
#include "async.h"
#include "memory.h"

#include <string.h>

#define DEFAULT_REQUESTS 4096
#define DEFAULT_BYTES ((size_t)64 * 1024 * 1024)

void emq_async_options_init(emq_async_options *options) {
    if (options != NULL) {
        *options = (emq_async_options)EMQ_ASYNC_OPTIONS_INIT;
    }
}

static int read_options(emq_async_options *out, const emq_async_options *options) {
    emq_async_options_init(out);
    if (options != NULL) {
        int result = emq_options_read(out, sizeof(*out), options, options->size);
        if (result != EMQ_OK) {
            return result;
        }
    }
    out->max_requests = out->max_requests != 0 ? out->max_requests : DEFAULT_REQUESTS;
    out->max_bytes = out->max_bytes != 0 ? out->max_bytes : DEFAULT_BYTES;
    return out->complete_once <= 1 ? EMQ_OK : EMQ_EINVAL;
}

/* The callbacks. */

void emq_async_finish(emq_async *client, emq_request *request, int result, const emq_text *text) {
    request->is_done = 1;
    request->result = result;
    if (result < 0 && request->error.bytes[0] == '\0') {
        if (text != NULL && text->bytes[0] != '\0') {
            request->error = *text;
        } else {
            emq_text_fail_plain(&request->error, result);
        }
    }
    request->next_done = NULL;
    if (client->done_last != NULL) {
        client->done_last->next_done = request;
    } else {
        client->done_first = request;
    }
    client->done_last = request;
}

static void unhold(emq_async *client, emq_request *request) {
    if (request->is_held) {
        request->is_held = 0;
        (void)atomic_fetch_sub(&client->held, 1);
        (void)atomic_fetch_sub(&client->held_bytes, request->length);
    }
}

void emq_async_release(emq_async *client, emq_request *request) {
    if (request->is_called && request->place == EMQ_PLACE_NOWHERE) {
        unhold(client, request);
        emq_request_free(request);
    }
}

/* The callback finds room for the next request. */
static void call_back(emq_async *client) {
    emq_request *request = client->done_first;
    client->done_first = request->next_done;
    if (client->done_first == NULL) {
        client->done_last = NULL;
    }
    if (request->place == EMQ_PLACE_NOWHERE) {
        unhold(client, request);
    }
    request->callback(request, request->result, request->user);
    request->is_called = 1;
    emq_async_release(client, request);
}

static int is_sending_due(const emq_async *client) {
    const emq_session *session = &client->session;
    return session->stage == EMQ_STAGE_OPEN && !session->is_closing && emq_async_has_next(client) &&
           !emq_link_is_busy(session->link);
}

static void tell(emq_async *client) {
    if (client->options.on_state != NULL) {
        client->options.on_state(client, client->session.state, client->session.reason,
                                 client->options.user);
    }
}

/* What a callback brings about is settled in the same go. */
static int work(emq_session *session) {
    emq_async *client = session->owner;
    if (emq_session_take_note(session)) {
        tell(client);
    } else if (client->done_first != NULL) {
        call_back(client);
    } else if (is_sending_due(client)) {
        emq_link_flush(session->link);
    } else {
        return 0;
    }
    return 1;
}

/* The deadlines. */

static int is_before(emq_deadline a, emq_deadline b) {
    return a.at_ns < b.at_ns;
}

static void on_watch(uv_timer_t *timer);

/* Sees to it that the timer fires no later than that. */
static void watch(emq_async *client, emq_deadline deadline) {
    if (client->is_watched && !is_before(deadline, client->watched)) {
        return;
    }
    client->is_watched = 1;
    client->watched = deadline;
    uv_update_time(client->session.loop);
    (void)uv_timer_start(&client->watch, on_watch, (uint64_t)emq_deadline_left_ms(deadline), 0);
}

static void finish_late(emq_async *client, emq_request *request, int was_sent) {
    if (request->is_done) { /* canceled */
        emq_async_release(client, request);
        return;
    }
    client->timeouts++;
    if (was_sent || request->is_repeated) {
        emq_async_finish(client, request, EMQ_ETIMEOUT, NULL);
    } else {
        emq_text_fail(&request->error, EMQ_ECONNTIMEOUT, "not sent by its deadline");
        emq_async_finish(client, request, EMQ_ECONNTIMEOUT, NULL);
    }
}

/* Ends the late ones of a list, watches for the others, and tells whether any was late. */
static int sweep(emq_async *client, emq_request_list *list, uint64_t sent) {
    const emq_deadline now = emq_deadline_in(0);
    int is_late = 0;
    emq_request *next = NULL;
    for (emq_request *request = list->first; request != NULL; request = next) {
        next = request->next;
        if (is_before(now, request->deadline)) {
            watch(client, request->deadline);
            continue;
        }
        is_late = 1;
        emq_request_list_remove(list, request);
        request->place = EMQ_PLACE_NOWHERE;
        finish_late(client, request, emq_async_was_sent(request, sent));
    }
    return is_late;
}

/* An answer that is late would be taken for the next one's: the connection goes. Where the loop was
 * held up, the answers may have come in time: timers run before the socket is looked at. */
static void on_watch(uv_timer_t *timer) {
    emq_async *client = timer->data;
    if (emq_session_is_anothers(&client->session)) {
        return;
    }
    client->is_watched = 0;
    if (client->flight.first != NULL) {
        emq_link_catch_up(client->session.link);
    }
    uint64_t sent = client->session.link != NULL ? emq_link_sent(client->session.link) : 0;
    (void)sweep(client, &client->queue, 0);
    if (sweep(client, &client->flight, sent)) {
        emq_text_fail(&client->session.error, EMQ_ETIMEOUT,
                      "a request was not answered by its deadline");
        emq_session_lose(&client->session, EMQ_ETIMEOUT);
    }
    emq_session_settle(&client->session);
}

static void fail_first(emq_async *client, emq_request_list *list, int result,
                       const emq_text *text) {
    emq_request *request = list->first;
    emq_request_list_remove(list, request);
    request->place = EMQ_PLACE_NOWHERE;
    if (request->is_done) {
        emq_async_release(client, request);
    } else {
        emq_async_finish(client, request, result, text);
    }
}

/* Ends all of a list. */
static void fail_list(emq_async *client, emq_request_list *list, int result, const emq_text *text) {
    while (list->first != NULL) {
        fail_first(client, list, result, text);
    }
}

static int lose(emq_session *session, int result, uint64_t sent) {
    emq_async_take_back(session->owner, sent);
    return result;
}

/* What was sent once, and waited to be sent once more, may have been done. */
static void refuse(emq_session *session, int reason) {
    emq_async *client = session->owner;
    while (client->queue.first != NULL) {
        if (client->queue.first->is_repeated) {
            fail_first(client, &client->queue, EMQ_ECONNLOST, NULL);
        } else {
            fail_first(client, &client->queue, reason, &session->error);
        }
    }
}

/* Submitting. */

/* Takes room for a request, or tells that there is none. */
static int reserve(emq_async *client, size_t bytes) {
    size_t before = atomic_fetch_add(&client->held, 1);
    size_t bytes_before = atomic_fetch_add(&client->held_bytes, bytes);
    if (before < client->options.max_requests &&
        (bytes_before == 0 || (bytes <= client->options.max_bytes &&
                               bytes_before <= client->options.max_bytes - bytes))) {
        return EMQ_OK;
    }
    (void)atomic_fetch_sub(&client->held, 1);
    (void)atomic_fetch_sub(&client->held_bytes, bytes);
    (void)atomic_fetch_add(&client->overloads, 1);
    return EMQ_EOVERLOAD;
}

/* What both ways in have to look at. */
static int prepare(emq_async *client, emq_request *request, emq_request_fn callback, void *user) {
    const emq_client_options *options = &client->session.settings.options;
    if (request->payload_size > options->max_payload) {
        return EMQ_ETOOBIG;
    }
    int result = reserve(client, request->length);
    if (result == EMQ_OK) {
        request->client = client;
        request->is_held = 1;
        request->callback = callback;
        request->user = user;
        uint32_t timeout_ms =
            request->timeout_ms != 0 ? request->timeout_ms : options->command_timeout_ms;
        request->deadline =
            emq_deadline_in(timeout_ms > request->least_ms ? timeout_ms : request->least_ms);
    }
    return result;
}

static void queue_request(emq_async *client, emq_request *request) {
    client->requests++;
    if (client->session.state == EMQ_ASYNC_REFUSED) {
        request->place = EMQ_PLACE_NOWHERE;
        emq_async_finish(client, request, client->session.reason, &client->session.error);
        return;
    }
    request->place = EMQ_PLACE_QUEUE;
    emq_request_list_add(&client->queue, request);
    watch(client, request->deadline);
}

int emq_async_submit(emq_async *client, emq_request *request, emq_request_fn callback, void *user) {
    if (client == NULL || request == NULL || callback == NULL || request->place != EMQ_PLACE_OWN) {
        return EMQ_EINVAL;
    }
    if (emq_session_is_anothers(&client->session)) {
        return EMQ_EFORKED;
    }
    if (client->session.is_closing || client->session.state == EMQ_ASYNC_REFUSED) {
        return EMQ_ECLOSED;
    }
    int result = prepare(client, request, callback, user);
    if (result == EMQ_OK) {
        queue_request(client, request);
        emq_session_kick(&client->session);
    }
    return result;
}

int emq_async_submit_threadsafe(emq_async *client, emq_request *request, emq_request_fn callback,
                                void *user) {
    if (client == NULL || request == NULL || callback == NULL || request->place != EMQ_PLACE_OWN) {
        return EMQ_EINVAL;
    }
    if (emq_session_is_anothers(&client->session)) {
        return EMQ_EFORKED; /* and the mutex may be held by a thread that is not there */
    }
    uv_mutex_lock(&client->mutex);
    int result = client->is_shut ? EMQ_ECLOSED : prepare(client, request, callback, user);
    if (result == EMQ_OK) {
        request->place = EMQ_PLACE_MAIL;
        emq_request_list_add(&client->box, request);
        (void)uv_async_send(&client->mail);
    }
    uv_mutex_unlock(&client->mutex);
    return result;
}

/* In a forked child the mutex may be held by a thread that is not there: then the box is, too. */
static int lock_box(emq_async *client) {
    if (emq_session_is_anothers(&client->session)) {
        client->is_mutex_lost = uv_mutex_trylock(&client->mutex) != 0;
        return !client->is_mutex_lost;
    }
    uv_mutex_lock(&client->mutex);
    return 1;
}

static emq_request_list empty_box(emq_async *client, int shut) {
    emq_request_list box = {NULL, NULL};
    if (lock_box(client)) {
        box = client->box;
        client->box = (emq_request_list){NULL, NULL};
        client->is_shut = client->is_shut || shut;
        uv_mutex_unlock(&client->mutex);
    }
    return box;
}

static void take_mail(emq_async *client) {
    emq_request_list box = empty_box(client, 0);
    emq_request *request = NULL;
    while ((request = box.first) != NULL) {
        emq_request_list_remove(&box, request);
        queue_request(client, request);
    }
}

static void on_mail(uv_async_t *mail) {
    emq_async *client = mail->data;
    if (!emq_session_is_anothers(&client->session)) {
        take_mail(client);
        emq_session_settle(&client->session);
    }
}

int emq_request_cancel(emq_request *request) {
    if (request == NULL || request->place == EMQ_PLACE_OWN) {
        return EMQ_EINVAL;
    }
    if (request->is_done) {
        return EMQ_OK;
    }
    emq_async *client = request->client;
    if (emq_session_is_anothers(&client->session)) {
        return EMQ_EFORKED;
    }
    if (request->place == EMQ_PLACE_MAIL) {
        take_mail(client);
        if (request->is_done) { /* the client is refused */
            emq_session_kick(&client->session);
            return EMQ_OK;
        }
    }
    if (request->place == EMQ_PLACE_QUEUE) {
        emq_request_list_remove(&client->queue, request);
        request->place = EMQ_PLACE_NOWHERE;
    }
    emq_async_finish(client, request, EMQ_ECANCELED, NULL);
    emq_session_kick(&client->session);
    return EMQ_OK;
}

/* Opening and closing. */

static void end(emq_session *session) {
    emq_async *client = session->owner;
    if (client->on_close != NULL) {
        client->on_close(client->close_user);
    }
    if (!client->is_mutex_lost) {
        uv_mutex_destroy(&client->mutex);
    }
    emq_session_clear(session);
    emq_free(client);
}

static const emq_session_hooks hooks = {
    .take_reply = emq_async_take_reply,
    .is_quiet = emq_async_is_quiet,
    .fill = emq_async_fill,
    .has_more = emq_async_has_more,
    .lose = lose,
    .refuse = refuse,
    .work = work,
    .end = end,
};

static int start(emq_async *client) {
    emq_session *session = &client->session;
    if (uv_mutex_init(&client->mutex) != 0) {
        return EMQ_ESYSTEM;
    }
    if (uv_async_init(session->loop, &client->mail, on_mail) != 0) {
        uv_mutex_destroy(&client->mutex);
        return EMQ_ESYSTEM;
    }
    (void)uv_timer_init(session->loop, &client->watch); /* never fails */
    session->handles = 2;
    client->mail.data = client;
    client->watch.data = client;
    emq_session_start(session);
    return EMQ_OK;
}

int emq_async_open(emq_async **out, struct uv_loop_s *loop, const emq_client_options *options,
                   const emq_async_options *async_options) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (loop == NULL) {
        return EMQ_EINVAL;
    }
    emq_async *client = emq_calloc(1, sizeof(*client));
    if (client == NULL) {
        return EMQ_ENOMEM;
    }
    client->session.hooks = &hooks;
    client->session.owner = client;
    client->session.loop = loop;
    atomic_init(&client->held, 0);
    atomic_init(&client->held_bytes, 0);
    atomic_init(&client->overloads, 0);
    int result = read_options(&client->options, async_options);
    if (result == EMQ_OK) {
        client->session.backoff_min_ms = client->options.backoff_min_ms;
        client->session.backoff_max_ms = client->options.backoff_max_ms;
        result = emq_session_init(&client->session, options);
    }
    if (result == EMQ_OK) {
        result = start(client);
    }
    if (result != EMQ_OK) {
        emq_session_clear(&client->session);
        emq_free(client);
        return result;
    }
    *out = client;
    return EMQ_OK;
}

/* Those that have their result, too: it is the parent's. */
static void disown_results(emq_async *client) {
    for (emq_request *request = client->done_first; request != NULL; request = request->next_done) {
        request->result = EMQ_EFORKED;
        emq_text_fail_plain(&request->error, EMQ_EFORKED);
    }
}

int emq_async_close(emq_async *client, emq_async_close_fn callback, void *user) {
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    if (client->session.is_closing) {
        return EMQ_ECLOSED;
    }
    client->on_close = callback;
    client->close_user = user;
    emq_session_close(&client->session);
    int result = EMQ_ECLOSED;
    if (emq_session_is_anothers(&client->session)) {
        result = EMQ_EFORKED;
        disown_results(client);
    }
    emq_request_list box = empty_box(client, 1);
    fail_list(client, &client->flight, result, NULL);
    fail_list(client, &client->queue, result, NULL);
    fail_list(client, &box, result, NULL);
    emq_session_close_handle(&client->session, (uv_handle_t *)&client->mail);
    emq_session_close_handle(&client->session, (uv_handle_t *)&client->watch);
    return EMQ_OK;
}

int emq_async_reconnect(emq_async *client) {
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    if (emq_session_is_anothers(&client->session)) {
        return EMQ_EFORKED;
    }
    if (client->session.is_closing) {
        return EMQ_ECLOSED;
    }
    emq_session_reconnect(&client->session);
    return EMQ_OK;
}

emq_async_state emq_async_get_state(const emq_async *client) {
    return client == NULL ? EMQ_ASYNC_CLOSED : emq_session_get_state(&client->session);
}

const char *emq_async_get_error(const emq_async *client) {
    return client == NULL ? "" : emq_session_get_error(&client->session);
}

uint64_t emq_async_get_counter(const emq_async *client, emq_async_counter counter) {
    if (client == NULL) {
        return 0;
    }
    const emq_session *session = &client->session;
    switch (counter) {
    case EMQ_ASYNC_CONNECTS:
        return session->connects;
    case EMQ_ASYNC_RECONNECTS:
        return session->connects > 0 ? session->connects - 1 : 0;
    case EMQ_ASYNC_REQUESTS:
        return client->requests;
    case EMQ_ASYNC_BYTES_IN:
        return session->bytes_in;
    case EMQ_ASYNC_BYTES_OUT:
        return session->bytes_out;
    case EMQ_ASYNC_OVERLOADS:
        return atomic_load(&client->overloads);
    case EMQ_ASYNC_TIMEOUTS:
        return client->timeouts;
    default:
        return 0;
    }
}
