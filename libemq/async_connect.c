/* SPDX-License-Identifier: Apache-2.0 */
/* From a name to an open connection without ever blocking the loop, and again after a loss. */
#include <errno.h>
#include <string.h>

#include "async_session.h"
#include "chance.h"
#include "decode.h"
#include "memory.h"
#include "resolve.h"

#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 5000

int emq_session_is_anothers(const emq_session *session) {
    return emq_owner_is_other(&session->process);
}

/* Notes. */

void emq_session_note(emq_session *session, emq_async_state state, int reason) {
    session->state = state;
    session->reason = reason;
    session->is_noted = 1;
}

emq_async_state emq_session_get_state(const emq_session *session) {
    return emq_session_is_anothers(session) ? EMQ_ASYNC_CLOSED : session->state;
}

const char *emq_session_get_error(const emq_session *session) {
    return emq_session_is_anothers(session) ? emq_strerror(EMQ_EFORKED) : session->error.bytes;
}

int emq_session_take_note(emq_session *session) {
    int is_noted = session->is_noted && !session->is_closing;
    session->is_noted = 0;
    return is_noted;
}

/* A callback may fork. What the parent is told is not for the child. */
static int is_own(const emq_session *session) {
    return session->is_closing || !emq_session_is_anothers(session);
}

void emq_session_settle(emq_session *session) {
    session->is_settling = 1;
    while (is_own(session) && session->hooks->work(session)) {
    }
    session->is_settling = 0;
}

static void on_kick(uv_timer_t *timer) {
    emq_session_settle(timer->data);
}

void emq_session_kick(emq_session *session) {
    if (!session->is_settling && !session->is_closing) {
        (void)uv_timer_start(&session->kick, on_kick, 0, 0);
    }
}

/* Resting. */

/* Starts an attempt when the loop comes round, after the pause. */
static void connect_in(emq_session *session, uint64_t ms) {
    session->stage = EMQ_STAGE_RESTING;
    uv_update_time(session->loop);
    (void)uv_timer_start(&session->step, emq_session_on_step, ms, 0);
}

void emq_session_drop(emq_session *session) {
    (void)uv_timer_stop(&session->step);
    if (session->link != NULL) {
        emq_link_drop(session->link);
        session->link = NULL;
    }
    if (session->lookup != NULL && session->is_closing) {
        /* one that has not begun ends here; the other one frees itself. A child has no thread that
         * would end it. */
        session->lookup->session = NULL;
        if (!emq_session_is_anothers(session)) {
            (void)uv_cancel((uv_req_t *)&session->lookup->request);
        }
        session->lookup = NULL;
    } else if (session->lookup != NULL && session->is_searching) {
        session->lookup->is_of_other = 1;
    }
    emq_session_unload(session);
    if (session->addresses != NULL) {
        freeaddrinfo(session->addresses);
        session->addresses = NULL;
    }
    session->address = NULL;
    emq_secret_clear(&session->secret);
    emq_ask_clear(&session->ask);
    session->is_searching = 0;
    session->stage = EMQ_STAGE_RESTING;
}

/* A server that is not the right one stays so until somebody acts; asking it again and again would
 * only hide that. */
static int is_refusal(int result) {
    switch (emq_err_class(result)) {
    case EMQ_CLASS_SERVER:
    case EMQ_CLASS_PROTOCOL:
    case EMQ_CLASS_USAGE:
        return 1;
    default:
        return 0;
    }
}

/* The owner takes back what is its own. */
static int drop_to_owner(emq_session *session, int result) {
    uint64_t sent = session->link != NULL ? emq_link_sent(session->link) : 0;
    emq_session_drop(session);
    return session->hooks->lose(session, result, sent);
}

void emq_session_lose(emq_session *session, int result) {
    if (session->is_searching) {
        emq_session_fail_search(session, result);
        return;
    }
    int was_open = session->stage == EMQ_STAGE_OPEN;
    result = drop_to_owner(session, result);
    if (!was_open) {
        result = emq_handshake_result(result);
    }
    if (!was_open && is_refusal(result)) {
        if (session->hooks->refuse != NULL) {
            session->hooks->refuse(session, result);
        }
        emq_session_note(session, EMQ_ASYNC_REFUSED, result);
        return;
    }
    if (was_open && uv_now(session->loop) - session->opened_at >= session->backoff_max_ms) {
        session->failures = 0; /* it had been good for a while, whatever went over it */
    }
    uint32_t pause =
        emq_draw(emq_doubled(session->backoff_min_ms, session->backoff_max_ms, session->failures));
    session->failures++;
    connect_in(session, pause);
    emq_session_note(session, EMQ_ASYNC_CLOSED, result);
}

void emq_session_reconnect(emq_session *session) {
    (void)drop_to_owner(session, EMQ_ECONNLOST);
    session->state = EMQ_ASYNC_CONNECTING; /* no longer refused */
    session->failures = 0;
    connect_in(session, 0);
    emq_session_kick(session);
}

/* The connect path. */

static void dial_next(emq_session *session);

static void set_step_timer(emq_session *session, emq_deadline deadline) {
    uv_update_time(session->loop);
    (void)uv_timer_start(&session->step, emq_session_on_step,
                         (uint64_t)emq_deadline_left_ms(deadline), 0);
}

static const char *name_delay(emq_stage stage) {
    switch (stage) {
    case EMQ_STAGE_LOADING:
        return "the files of TLS or the password were not read";
    case EMQ_STAGE_SHAKING:
        return "the TLS handshake did not end";
    default:
        return "the server was not ready";
    }
}

static void give_up_waiting(emq_session *session) {
    const char *what = name_delay(session->stage);
    if (session->is_searching) { /* it had a share of that time */
        emq_text_fail(&session->error, EMQ_ECONNTIMEOUT, "%s in time", what);
    } else {
        emq_text_fail(&session->error, EMQ_ECONNTIMEOUT, "%s within %u ms", what,
                      (unsigned)session->settings.options.connect_timeout_ms);
    }
    emq_session_lose(session, EMQ_ECONNTIMEOUT);
}

static void try_addresses(emq_session *session, struct addrinfo *addresses) {
    session->addresses = addresses;
    session->address = addresses;
    session->addresses_left = 0;
    session->failure = ECONNREFUSED;
    for (const struct addrinfo *a = addresses; a != NULL; a = a->ai_next) {
        session->addresses_left++;
    }
    session->stage = EMQ_STAGE_DIALING;
    dial_next(session);
}

/* What uv_getaddrinfo says in its own numbers. */
static int fail_to_resolve(emq_session *session, int status) {
    if (status == UV_ENOMEM || status == UV_EAI_MEMORY) {
        return emq_text_fail_plain(&session->error, EMQ_ENOMEM);
    }
    return emq_text_fail(&session->error, EMQ_ERESOLVE, "%s: %s", session->aim->host,
                         uv_strerror(status));
}

static void resolve_name(emq_session *session);

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses) {
    emq_lookup *lookup = request->data;
    emq_session *session = lookup->session;
    int is_of_other = lookup->is_of_other;
    emq_free(lookup);
    if (session != NULL) {
        session->lookup = NULL;
    }
    if (session == NULL || session->stage != EMQ_STAGE_RESOLVING ||
        emq_session_is_anothers(session)) {
        uv_freeaddrinfo(addresses);
        return;
    }
    if (is_of_other) {
        uv_freeaddrinfo(addresses);
        resolve_name(session);
    } else if (status != 0) {
        emq_session_lose(session, fail_to_resolve(session, status));
    } else {
        try_addresses(session, addresses);
    }
    emq_session_settle(session);
}

/* A look-up that an earlier attempt gave up waiting for may still run: then this attempt waits for
 * it, so that a dead resolver holds one thread of the loop's pool and not all of them. */
static void resolve_name(emq_session *session) {
    const emq_client_options *options = session->aim;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char service[EMQ_SERVICE_MAX];
    session->stage = EMQ_STAGE_RESOLVING;
    if (session->lookup != NULL) {
        return;
    }
    emq_lookup *lookup = emq_calloc(1, sizeof(*lookup));
    if (lookup == NULL) {
        emq_session_lose(session, emq_text_fail_plain(&session->error, EMQ_ENOMEM));
        return;
    }
    lookup->session = session;
    lookup->request.data = lookup;
    emq_resolve_service(service, options->port);
    int status = uv_getaddrinfo(session->loop, &lookup->request, on_resolved, options->host,
                                service, &hints);
    if (status != 0) {
        emq_free(lookup);
        emq_session_lose(session, fail_to_resolve(session, status));
        return;
    }
    session->lookup = lookup;
}

void emq_session_seek(emq_session *session) {
    const emq_client_options *options = session->aim;
    struct addrinfo *addresses = NULL;
    if (options->unix_path != NULL) {
        session->stage = EMQ_STAGE_DIALING;
        dial_next(session);
        return;
    }
    int code = emq_resolve_address(&addresses, options->host, options->port);
    if (code == EAI_NONAME) {
        resolve_name(session);
    } else if (code != 0) {
        emq_session_lose(session, emq_resolve_fail(&session->error, code, options->host));
    } else {
        try_addresses(session, addresses);
    }
}

void emq_session_attempt(emq_session *session) {
    set_step_timer(session, session->connect_by);
    if (session->aim->tls != 0 || session->aim->password_file != NULL) {
        emq_session_load(session);
    } else {
        emq_session_seek(session);
    }
}

static void start_attempt(emq_session *session) {
    const emq_client_options *options = &session->settings.options;
    session->connect_by = emq_deadline_in(options->connect_timeout_ms);
    emq_session_note(session, EMQ_ASYNC_CONNECTING, session->reason);
    if (options->sentinels != NULL) {
        emq_session_start_search(session);
    } else {
        session->aim = options;
        emq_session_attempt(session);
    }
}

/* Starts to connect to the next address; returns 0 or an errno. */
static int start_dialing(emq_session *session, int *fd) {
    const char *path = session->aim->unix_path;
    if (path != NULL) {
        struct sockaddr_un address;
        emq_unix_address(&address, path);
        return emq_dial_start(fd, (const struct sockaddr *)&address, sizeof(address));
    }
    const struct addrinfo *address = session->address;
    session->address = address->ai_next;
    set_step_timer(session, emq_deadline_share(session->connect_by, session->addresses_left--));
    return emq_dial_start(fd, address->ai_addr, address->ai_addrlen);
}

static int is_address_left(const emq_session *session) {
    return session->aim->unix_path == NULL && session->address != NULL;
}

static void fail_to_dial(emq_session *session, int failure) {
    const emq_client_options *options = session->aim;
    const char *where = options->unix_path != NULL ? options->unix_path : options->host;
    emq_session_lose(session, emq_dial_fail(&session->error, failure, where));
}

/* Tries the addresses until one of them has to be waited for, or none is left. */
static void dial_next(emq_session *session) {
    int fd = -1;
    int failure = start_dialing(session, &fd);
    while (failure != 0 && is_address_left(session)) {
        failure = start_dialing(session, &fd);
    }
    if (failure == EAGAIN && session->aim->unix_path != NULL) {
        if (emq_deadline_left_ms(session->connect_by) == 0) {
            give_up_waiting(session);
        } else {
            (void)uv_timer_start(&session->step, emq_session_on_step, EMQ_UNIX_RETRY_MS, 0);
        }
    } else if (failure != 0) {
        fail_to_dial(session, failure);
    } else {
        int result = emq_link_open(session, fd);
        if (result != EMQ_OK) {
            emq_session_lose(session, emq_text_fail_plain(&session->error, result));
        }
    }
}

/* The step timer: a pause has ended, or a step took too long. */
void emq_session_on_step(uv_timer_t *timer) {
    emq_session *session = timer->data;
    if (emq_session_is_anothers(session)) {
        return;
    }
    if (session->stage == EMQ_STAGE_RESTING) {
        start_attempt(session);
    } else if (session->stage == EMQ_STAGE_SEARCHING) {
        emq_session_go_on_searching(session);
    } else if (session->stage == EMQ_STAGE_DIALING && session->link == NULL) {
        set_step_timer(session, session->connect_by);
        dial_next(session);
    } else if (session->stage == EMQ_STAGE_DIALING && is_address_left(session)) {
        emq_link_drop(session->link);
        session->link = NULL;
        dial_next(session);
    } else if (emq_deadline_left_ms(session->connect_by) == 0) {
        give_up_waiting(session);
    } else {
        set_step_timer(session, session->connect_by);
    }
    emq_session_settle(session);
}

/* Behind the connect. */

static void ask(emq_session *session) {
    int result = emq_session_is_at_sentinel(session)
                     ? emq_search_build_ask(&session->ask, &session->search)
                     : emq_ask_build(&session->ask, session->aim, EMQ_FENCE_REQUIRED);
    session->stage = EMQ_STAGE_ASKING;
    session->asked = 0;
    for (int i = 0; i < session->ask.end && result == EMQ_OK; i++) {
        result = emq_link_add(session->link, &session->ask.lines[i]);
    }
    if (result != EMQ_OK) {
        emq_session_lose(session, emq_text_fail_plain(&session->error, result));
    } else {
        emq_link_flush(session->link);
    }
}

static void authenticate(emq_session *session) {
    const emq_client_options *options = session->aim;
    emq_line line = EMQ_LINE_INIT;
    session->stage = EMQ_STAGE_AUTH;
    int result = emq_line_auth(&line, options->username, session->secret.bytes);
    if (result == EMQ_OK) {
        result = emq_link_add(session->link, &line);
    }
    emq_line_clear(&line);
    if (result != EMQ_OK) {
        emq_session_lose(session, emq_text_fail_plain(&session->error, result));
    } else {
        emq_link_flush(session->link);
    }
}

void emq_session_introduce(emq_session *session) {
    int result = EMQ_OK;
    if (session->aim->password_file == NULL) { /* or it is there already */
        result = emq_secret_load(&session->secret, session->aim, &session->error);
    }
    if (result != EMQ_OK) {
        emq_session_lose(session, result);
    } else if (session->secret.bytes != NULL) {
        authenticate(session);
    } else {
        ask(session);
    }
}

void emq_session_on_connected(emq_session *session) {
    int failure = emq_dial_finish(session->link->fd);
    if (failure != 0) {
        emq_link_drop(session->link);
        session->link = NULL;
        if (is_address_left(session)) {
            dial_next(session);
        } else {
            fail_to_dial(session, failure);
        }
        return;
    }
    set_step_timer(session, session->connect_by);
    int result = emq_link_adopt(session->link);
    if (result != EMQ_OK) {
        emq_session_lose(session, emq_text_fail_plain(&session->error, result));
    } else if (session->aim->tls != 0) {
        emq_session_start_tls(session);
    } else {
        emq_session_introduce(session);
    }
}

static void enter_open(emq_session *session) {
    emq_session_end_search(session);
    (void)uv_timer_stop(&session->step);
    emq_ask_clear(&session->ask);
    if (session->addresses != NULL) {
        freeaddrinfo(session->addresses);
        session->addresses = NULL;
    }
    session->stage = EMQ_STAGE_OPEN;
    session->opened_at = uv_now(session->loop);
    session->connects++;
    emq_text_clear(&session->error);
    emq_session_note(session, EMQ_ASYNC_OPEN, EMQ_OK);
}

/* The server is the right one. */
static int pass(emq_session *session) {
    if (session->hooks->enter == NULL) {
        enter_open(session);
        return EMQ_OK;
    }
    session->stage = EMQ_STAGE_ENTERING;
    int result = session->hooks->enter(session);
    if (result == EMQ_OK) {
        emq_link_flush(session->link);
    }
    return result;
}

/* Nothing more was asked. */
static int check_no_more(emq_session *session) {
    const redisReader *reader = session->link->context->reader;
    return reader->pos == reader->len ? EMQ_OK
                                      : emq_text_fail(&session->error, EMQ_EPROTOCOL,
                                                      "the peer answered more than was asked");
}

static int take_auth_reply(emq_session *session, redisReply *reply) {
    int result = emq_decode_auth(reply, session->secret.bytes, &session->error);
    emq_secret_clear(&session->secret);
    freeReplyObject(reply);
    if (result == EMQ_OK) {
        result = check_no_more(session);
    }
    if (result == EMQ_OK) {
        ask(session);
    }
    return result;
}

static int take_ask_reply(emq_session *session, redisReply *reply) {
    session->ask.replies[session->asked++] = reply;
    if (session->asked < session->ask.end) {
        return EMQ_OK;
    }
    if (emq_session_is_at_sentinel(session)) {
        emq_session_take_address(session, reply);
        return EMQ_OK;
    }
    int result = emq_ask_judge(&session->ask, &session->error);
    if (result == EMQ_OK) {
        result = check_no_more(session);
    }
    return result == EMQ_OK ? pass(session) : result;
}

static int take_enter_reply(emq_session *session, redisReply *reply) {
    int result = session->hooks->enter_reply(session, reply);
    freeReplyObject(reply);
    if (result == EMQ_OK) {
        enter_open(session);
    }
    return result;
}

/* Takes the reply, and loses the connection when it is a refusal. */
void emq_session_take_step_reply(emq_session *session, redisReply *reply) {
    int result = EMQ_OK;
    if (session->stage == EMQ_STAGE_AUTH) {
        result = take_auth_reply(session, reply);
    } else if (session->stage == EMQ_STAGE_ASKING) {
        result = take_ask_reply(session, reply);
    } else {
        result = take_enter_reply(session, reply);
    }
    if (result != EMQ_OK) {
        emq_session_lose(session, result);
    }
}

/* Opening and closing. */

int emq_session_init(emq_session *session, const emq_client_options *options) {
    session->backoff_min_ms =
        session->backoff_min_ms != 0 ? session->backoff_min_ms : BACKOFF_MIN_MS;
    session->backoff_max_ms =
        session->backoff_max_ms != 0 ? session->backoff_max_ms : BACKOFF_MAX_MS;
    emq_owner_set(&session->process);
    session->state = EMQ_ASYNC_CONNECTING;
    return session->backoff_min_ms <= session->backoff_max_ms
               ? emq_settings_init(&session->settings, options)
               : EMQ_EINVAL;
}

void emq_session_clear(emq_session *session) {
    emq_owner_clear(&session->process);
    emq_settings_clear(&session->settings);
}

void emq_session_start(emq_session *session) {
    (void)uv_timer_init(session->loop, &session->kick); /* never fails */
    (void)uv_timer_init(session->loop, &session->step);
    session->kick.data = session;
    session->step.data = session;
    session->handles += 2;
    connect_in(session, 0);
}

void emq_session_handle_closed(emq_session *session) {
    session->handles--;
    if (session->handles == 0 && session->is_closing) {
        emq_session_settle(session);
        session->hooks->end(session);
    }
}

static void on_handle_closed(uv_handle_t *handle) {
    emq_session_handle_closed(handle->data);
}

void emq_session_close_handle(emq_session *session, uv_handle_t *handle) {
    handle->data = session;
    uv_close(handle, on_handle_closed);
}

void emq_session_close(emq_session *session) {
    session->is_closing = 1;
    emq_session_drop(session);
    session->state = EMQ_ASYNC_CLOSED;
    emq_session_close_handle(session, (uv_handle_t *)&session->kick);
    emq_session_close_handle(session, (uv_handle_t *)&session->step);
}
