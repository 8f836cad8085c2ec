/* SPDX-License-Identifier: Apache-2.0 */
/* From a name to an open connection without ever blocking the loop, and again after a loss. */
#include <errno.h>
#include <string.h>

#include "async.h"
#include "decode.h"
#include "memory.h"
#include "resolve.h"

/* Pausing. */

/* Anywhere between nothing and the cap, which doubles with each failure: clients that lost the same
 * server do not come back in step. */
static uint64_t next_pause(emq_async *client) {
    uint64_t cap = client->options.backoff_min_ms;
    uint32_t random = 0;
    for (unsigned int i = 0; i < client->failures && cap < client->options.backoff_max_ms; i++) {
        cap *= 2;
    }
    if (cap > client->options.backoff_max_ms) {
        cap = client->options.backoff_max_ms;
    }
    if (uv_random(NULL, NULL, &random, sizeof(random), 0, NULL) != 0) {
        random = (uint32_t)uv_hrtime();
    }
    return random % (cap + 1);
}

void emq_async_connect_in(emq_async *client, uint64_t ms) {
    client->stage = EMQ_STAGE_RESTING;
    uv_update_time(client->loop);
    (void)uv_timer_start(&client->step, emq_async_on_step, ms, 0);
}

void emq_async_drop(emq_async *client) {
    (void)uv_timer_stop(&client->step);
    if (client->link != NULL) {
        emq_link_drop(client->link);
        client->link = NULL;
    }
    if (client->lookup != NULL && client->is_closing) {
        /* one that has not begun ends here; the other one frees itself. A child has no thread that
         * would end it. */
        client->lookup->client = NULL;
        if (!emq_async_is_anothers(client)) {
            (void)uv_cancel((uv_req_t *)&client->lookup->request);
        }
        client->lookup = NULL;
    }
    emq_async_unload(client);
    if (client->addresses != NULL) {
        freeaddrinfo(client->addresses);
        client->addresses = NULL;
    }
    client->address = NULL;
    emq_secret_clear(&client->secret);
    emq_ask_clear(&client->ask);
    client->stage = EMQ_STAGE_RESTING;
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

void emq_async_lose(emq_async *client, int result) {
    int was_open = client->stage == EMQ_STAGE_OPEN;
    uint64_t sent = client->link != NULL ? emq_link_sent(client->link) : 0;
    emq_async_drop(client);
    emq_async_take_back(client, sent);
    if (!was_open) {
        result = emq_handshake_result(result);
    }
    if (!was_open && is_refusal(result)) {
        emq_async_fail_queue(client, result, &client->error);
        emq_async_note(client, EMQ_ASYNC_REFUSED, result);
        return;
    }
    if (was_open && uv_now(client->loop) - client->opened_at >= client->options.backoff_max_ms) {
        client->failures = 0; /* it had been good for a while, with requests or without */
    }
    uint64_t pause = next_pause(client);
    client->failures++;
    emq_async_connect_in(client, pause);
    emq_async_note(client, EMQ_ASYNC_CLOSED, result);
}

/* The connect path. */

static void dial_next(emq_async *client);

static void set_step_timer(emq_async *client, emq_deadline deadline) {
    uv_update_time(client->loop);
    (void)uv_timer_start(&client->step, emq_async_on_step, (uint64_t)emq_deadline_left_ms(deadline),
                         0);
}

static const char *name_delay(emq_stage stage) {
    switch (stage) {
    case EMQ_STAGE_LOADING:
        return "the files of TLS were not read";
    case EMQ_STAGE_SHAKING:
        return "the TLS handshake did not end";
    default:
        return "the server was not ready";
    }
}

static void give_up_waiting(emq_async *client) {
    emq_async_lose(client, emq_text_fail(&client->error, EMQ_ECONNTIMEOUT, "%s within %u ms",
                                         name_delay(client->stage),
                                         (unsigned)client->settings.options.connect_timeout_ms));
}

static void try_addresses(emq_async *client, struct addrinfo *addresses) {
    client->addresses = addresses;
    client->address = addresses;
    client->addresses_left = 0;
    client->failure = ECONNREFUSED;
    for (const struct addrinfo *a = addresses; a != NULL; a = a->ai_next) {
        client->addresses_left++;
    }
    client->stage = EMQ_STAGE_DIALING;
    dial_next(client);
}

/* What uv_getaddrinfo says in its own numbers. */
static int fail_to_resolve(emq_async *client, int status) {
    if (status == UV_ENOMEM || status == UV_EAI_MEMORY) {
        return emq_text_fail_plain(&client->error, EMQ_ENOMEM);
    }
    return emq_text_fail(&client->error, EMQ_ERESOLVE, "%s: %s", client->settings.options.host,
                         uv_strerror(status));
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses) {
    emq_lookup *lookup = request->data;
    emq_async *client = lookup->client;
    emq_free(lookup);
    if (client != NULL) {
        client->lookup = NULL;
    }
    if (client == NULL || client->stage != EMQ_STAGE_RESOLVING || emq_async_is_anothers(client)) {
        uv_freeaddrinfo(addresses);
        return;
    }
    if (status != 0) {
        emq_async_lose(client, fail_to_resolve(client, status));
    } else {
        try_addresses(client, addresses);
    }
    emq_async_settle(client);
}

/* A look-up that an earlier attempt gave up waiting for may still run: then this attempt waits for
 * it, so that a dead resolver holds one thread of the loop's pool and not all of them. */
static void resolve_name(emq_async *client) {
    const emq_client_options *options = &client->settings.options;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char service[EMQ_SERVICE_MAX];
    client->stage = EMQ_STAGE_RESOLVING;
    if (client->lookup != NULL) {
        return;
    }
    emq_lookup *lookup = emq_calloc(1, sizeof(*lookup));
    if (lookup == NULL) {
        emq_async_lose(client, emq_text_fail_plain(&client->error, EMQ_ENOMEM));
        return;
    }
    lookup->client = client;
    lookup->request.data = lookup;
    emq_resolve_service(service, options->port);
    int status =
        uv_getaddrinfo(client->loop, &lookup->request, on_resolved, options->host, service, &hints);
    if (status != 0) {
        emq_free(lookup);
        emq_async_lose(client, fail_to_resolve(client, status));
        return;
    }
    client->lookup = lookup;
}

void emq_async_seek(emq_async *client) {
    const emq_client_options *options = &client->settings.options;
    struct addrinfo *addresses = NULL;
    if (options->unix_path != NULL) {
        client->stage = EMQ_STAGE_DIALING;
        dial_next(client);
        return;
    }
    int code = emq_resolve_address(&addresses, options->host, options->port);
    if (code == EAI_NONAME) {
        resolve_name(client);
    } else if (code != 0) {
        emq_async_lose(client, emq_resolve_fail(&client->error, code, options->host));
    } else {
        try_addresses(client, addresses);
    }
}

static void start_attempt(emq_async *client) {
    client->connect_by = emq_deadline_in(client->settings.options.connect_timeout_ms);
    emq_async_note(client, EMQ_ASYNC_CONNECTING, client->reason);
    set_step_timer(client, client->connect_by);
    if (client->settings.options.tls != 0) {
        emq_async_load(client);
    } else {
        emq_async_seek(client);
    }
}

/* Starts to connect to the next address; returns 0 or an errno. */
static int start_dialing(emq_async *client, int *fd) {
    const char *path = client->settings.options.unix_path;
    if (path != NULL) {
        struct sockaddr_un address;
        emq_unix_address(&address, path);
        return emq_dial_start(fd, (const struct sockaddr *)&address, sizeof(address));
    }
    const struct addrinfo *address = client->address;
    client->address = address->ai_next;
    set_step_timer(client, emq_deadline_share(client->connect_by, client->addresses_left--));
    return emq_dial_start(fd, address->ai_addr, address->ai_addrlen);
}

static int is_address_left(const emq_async *client) {
    return client->settings.options.unix_path == NULL && client->address != NULL;
}

static void fail_to_dial(emq_async *client, int failure) {
    const emq_client_options *options = &client->settings.options;
    const char *where = options->unix_path != NULL ? options->unix_path : options->host;
    emq_async_lose(client, emq_dial_fail(&client->error, failure, where));
}

/* Tries the addresses until one of them has to be waited for, or none is left. */
static void dial_next(emq_async *client) {
    int fd = -1;
    int failure = start_dialing(client, &fd);
    while (failure != 0 && is_address_left(client)) {
        failure = start_dialing(client, &fd);
    }
    if (failure == EAGAIN && client->settings.options.unix_path != NULL) {
        if (emq_deadline_left_ms(client->connect_by) == 0) {
            give_up_waiting(client);
        } else {
            (void)uv_timer_start(&client->step, emq_async_on_step, EMQ_UNIX_RETRY_MS, 0);
        }
    } else if (failure != 0) {
        fail_to_dial(client, failure);
    } else {
        int result = emq_link_open(client, fd);
        if (result != EMQ_OK) {
            emq_async_lose(client, emq_text_fail_plain(&client->error, result));
        }
    }
}

/* The step timer: a pause has ended, or a step took too long. */
void emq_async_on_step(uv_timer_t *timer) {
    emq_async *client = timer->data;
    if (emq_async_is_anothers(client)) {
        return;
    }
    if (client->stage == EMQ_STAGE_RESTING) {
        start_attempt(client);
    } else if (client->stage == EMQ_STAGE_DIALING && client->link == NULL) {
        set_step_timer(client, client->connect_by);
        dial_next(client);
    } else if (client->stage == EMQ_STAGE_DIALING && is_address_left(client)) {
        emq_link_drop(client->link);
        client->link = NULL;
        dial_next(client);
    } else if (emq_deadline_left_ms(client->connect_by) == 0) {
        give_up_waiting(client);
    } else {
        set_step_timer(client, client->connect_by);
    }
    emq_async_settle(client);
}

/* Behind the connect. */

static void ask(emq_async *client) {
    int result = emq_ask_build(&client->ask, &client->settings.options, EMQ_FENCE_REQUIRED);
    client->stage = EMQ_STAGE_ASKING;
    client->asked = client->ask.first;
    for (int i = client->ask.first; i < client->ask.end && result == EMQ_OK; i++) {
        result = emq_link_add(client->link, &client->ask.lines[i]);
    }
    if (result != EMQ_OK) {
        emq_async_lose(client, emq_text_fail_plain(&client->error, result));
    } else {
        emq_link_flush(client->link);
    }
}

static void authenticate(emq_async *client) {
    const emq_client_options *options = &client->settings.options;
    emq_line line = EMQ_LINE_INIT;
    client->stage = EMQ_STAGE_AUTH;
    int result = emq_line_auth(&line, options->username, client->secret.bytes);
    if (result == EMQ_OK) {
        result = emq_link_add(client->link, &line);
    }
    emq_line_clear(&line);
    if (result != EMQ_OK) {
        emq_async_lose(client, emq_text_fail_plain(&client->error, result));
    } else {
        emq_link_flush(client->link);
    }
}

void emq_async_introduce(emq_async *client) {
    int result = emq_secret_load(&client->secret, &client->settings.options, &client->error);
    if (result != EMQ_OK) {
        emq_async_lose(client, result);
    } else if (client->secret.bytes != NULL) {
        authenticate(client);
    } else {
        ask(client);
    }
}

void emq_async_on_connected(emq_async *client) {
    int failure = emq_dial_finish(client->link->fd);
    if (failure != 0) {
        emq_link_drop(client->link);
        client->link = NULL;
        if (is_address_left(client)) {
            dial_next(client);
        } else {
            fail_to_dial(client, failure);
        }
        return;
    }
    set_step_timer(client, client->connect_by);
    int result = emq_link_adopt(client->link);
    if (result != EMQ_OK) {
        emq_async_lose(client, emq_text_fail_plain(&client->error, result));
    } else if (client->settings.options.tls != 0) {
        emq_async_start_tls(client);
    } else {
        emq_async_introduce(client);
    }
}

static void enter_open(emq_async *client) {
    (void)uv_timer_stop(&client->step);
    emq_ask_clear(&client->ask);
    if (client->addresses != NULL) {
        freeaddrinfo(client->addresses);
        client->addresses = NULL;
    }
    client->stage = EMQ_STAGE_OPEN;
    client->opened_at = uv_now(client->loop);
    if (client->counters[EMQ_ASYNC_CONNECTS]++ > 0) {
        client->counters[EMQ_ASYNC_RECONNECTS]++;
    }
    emq_text_clear(&client->error);
    emq_async_note(client, EMQ_ASYNC_OPEN, EMQ_OK);
}

/* Nothing more was asked. */
static int check_no_more(emq_async *client) {
    const redisReader *reader = client->link->context->reader;
    return reader->pos == reader->len ? EMQ_OK
                                      : emq_text_fail(&client->error, EMQ_EPROTOCOL,
                                                      "the peer answered more than was asked");
}

/* Takes the reply, and loses the connection when it is a refusal. */
int emq_async_take_step_reply(emq_async *client, redisReply *reply) {
    int result = EMQ_OK;
    if (client->stage == EMQ_STAGE_AUTH) {
        result = emq_decode_auth(reply, client->secret.bytes, &client->error);
        emq_secret_clear(&client->secret);
        freeReplyObject(reply);
        if (result == EMQ_OK) {
            result = check_no_more(client);
        }
        if (result == EMQ_OK) {
            ask(client);
            return EMQ_OK;
        }
    } else {
        client->ask.replies[client->asked++] = reply;
        if (client->asked < client->ask.end) {
            return EMQ_OK;
        }
        result = emq_ask_judge(&client->ask, &client->error);
        if (result == EMQ_OK) {
            result = check_no_more(client);
        }
        if (result == EMQ_OK) {
            enter_open(client);
        }
    }
    if (result != EMQ_OK) {
        emq_async_lose(client, result);
    }
    return result;
}
