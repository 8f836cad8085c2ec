/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronous client: opening, closing, and the verbs over the transport. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "handshake.h"
#include "line.h"
#include "url.h"
#include "wire.h"

/* How often a fresh id is minted before a call gives up. */
#define MINTS_MAX 8

static int run_handshake(emq_client *client) {
    emq_text_clear(&client->error);
    if (client->settings.refusal != EMQ_OK) {
        client->error = client->settings.refusal_text;
        return client->settings.refusal;
    }
    return emq_handshake(&client->connection, &client->settings, EMQ_FENCE_REQUIRED,
                         emq_deadline_in(client->settings.options.connect_timeout_ms),
                         &client->error);
}

int emq_client_open(emq_client **out, const emq_client_options *options) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    emq_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return EMQ_ENOMEM;
    }
    int result = emq_settings_init(&client->settings, options);
    if (result != EMQ_ENOMEM) {
        result = run_handshake(client);
    }
    if (result == EMQ_ENOMEM) {
        emq_client_close(client);
        return result;
    }
    *out = client;
    return result;
}

/* Gives a closed client that only says why it was refused; *out stays NULL without memory. */
static int give_refused(emq_client **out, int result, const emq_text *text) {
    *out = NULL;
    if (result == EMQ_ENOMEM) {
        return result;
    }
    emq_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return EMQ_ENOMEM;
    }
    client->error = *text;
    *out = client;
    return emq_settings_refuse(&client->settings, result, text);
}

int emq_client_open_url(emq_client **out, const char *url) {
    emq_url *parsed = NULL;
    emq_text text;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    emq_text_clear(&text);
    int result = emq_url_parse_text(&parsed, url, &text);
    result = result == EMQ_OK ? emq_client_open(out, emq_url_get_options(parsed))
                              : give_refused(out, result, &text);
    emq_url_free(parsed);
    return result;
}

int emq_client_reconnect(emq_client *client) {
    return client == NULL ? EMQ_EINVAL : run_handshake(client);
}

void emq_client_close(emq_client *client) {
    if (client != NULL) {
        emq_connection_close(&client->connection);
        emq_line_clear(&client->line);
        emq_settings_clear(&client->settings);
        free(client);
    }
}

int emq_client_is_open(const emq_client *client) {
    return client != NULL && client->connection.context != NULL;
}

const char *emq_client_get_error(const emq_client *client) {
    return client == NULL ? "" : client->error.bytes;
}

int emq_client_exchange(emq_client *client, const emq_line *line, redisReply **reply,
                        emq_deadline deadline) {
    return emq_connection_exchange(&client->connection, line, 1, reply, deadline, &client->error);
}

int emq_client_finish(emq_client *client, redisReply *reply, int result) {
    freeReplyObject(reply);
    if (result == EMQ_EPROTOCOL) {
        emq_connection_close(&client->connection);
    }
    return result;
}

static emq_deadline start_call(emq_client *client) {
    emq_text_clear(&client->error);
    return emq_deadline_in(client->settings.options.command_timeout_ms);
}

static int is_zeroed(const emq_id *id) {
    static const emq_id zero = {{0}};
    return memcmp(id, &zero, sizeof(zero)) == 0;
}

/* Sends the line of client->line and decodes the verdict. */
static int call_enqueue(emq_client *client, emq_deadline deadline) {
    redisReply *reply = NULL;
    int result = emq_client_exchange(client, &client->line, &reply, deadline);
    if (result == EMQ_OK) {
        result = emq_decode_enqueue(reply, &client->error);
    }
    return emq_client_finish(client, reply, result);
}

/* Admits under an id that this call mints. The id is stored before it is sent, so that the caller
 * can repeat with it. A duplicate is no repeat here: another process has minted the same id, and
 * its job must not be taken for ours. */
static int enqueue_fresh(emq_id *id, emq_client *client, const char *queue, const void *p, size_t n,
                         emq_deadline deadline) {
    for (int i = 0; i < MINTS_MAX; i++) {
        emq_id fresh;
        int result = emq_id_mint(&fresh, EMQ_NAMESPACE_JOB);
        if (result == EMQ_OK) {
            result = emq_line_enqueue(&client->line, queue, &fresh, p, n);
        }
        if (result != EMQ_OK) {
            return emq_fail_plain(&client->error, result);
        }
        *id = fresh;
        result = call_enqueue(client, deadline);
        if (result != EMQ_DUPLICATE) {
            return result;
        }
    }
    /* the last id is somebody else's: a repeat with it would look like success */
    memset(id, 0, sizeof(*id));
    emq_connection_close(&client->connection);
    return emq_fail(&client->error, EMQ_EPROTOCOL,
                    "the server said of %d ids minted just now that they exist", MINTS_MAX);
}

/* What is wrong with the call itself, before an id is minted for it. */
static int check_enqueue(emq_client *client, const char *queue, const void *p, size_t n) {
    if (queue == NULL || (p == NULL && n > 0)) {
        return EMQ_EINVAL;
    }
    if (!emq_queue_valid(queue)) {
        return EMQ_EQUEUE;
    }
    if (n > client->settings.options.max_payload) {
        return EMQ_ETOOBIG;
    }
    return EMQ_OK;
}

int emq_enqueue(emq_id *id, emq_client *client, const char *queue, const void *p, size_t n) {
    if (id == NULL || client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    int result = check_enqueue(client, queue, p, n);
    int is_fresh = is_zeroed(id);
    if (result == EMQ_OK && !is_fresh) {
        result = emq_line_enqueue(&client->line, queue, id, p, n);
    }
    if (result == EMQ_OK && !emq_client_is_open(client)) {
        result = EMQ_ECLOSED;
    }
    if (result != EMQ_OK) {
        return emq_fail_plain(&client->error, result);
    }
    return is_fresh ? enqueue_fresh(id, client, queue, p, n, deadline)
                    : call_enqueue(client, deadline);
}

int emq_claim(emq_job **out, emq_client *client, const char *queue, uint32_t lease_ms) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    redisReply *reply = NULL;
    int result = emq_line_claim(&client->line, queue, lease_ms);
    if (result != EMQ_OK) {
        return emq_fail_plain(&client->error, result);
    }
    result = emq_client_exchange(client, &client->line, &reply, deadline);
    if (result == EMQ_OK) {
        result = emq_decode_claim(out, queue, reply, &client->error);
    }
    return emq_client_finish(client, reply, result);
}

int emq_complete(emq_client *client, const emq_lease *lease) {
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    redisReply *reply = NULL;
    int result = emq_line_complete(&client->line, lease);
    if (result != EMQ_OK) {
        return emq_fail_plain(&client->error, result);
    }
    result = emq_client_exchange(client, &client->line, &reply, deadline);
    if (result == EMQ_OK) {
        result = emq_decode_complete(reply, &client->error);
    }
    return emq_client_finish(client, reply, result);
}

/* Opens without the fence, which is not there yet, and writes it. */
static int install(emq_connection *connection, const emq_settings *settings, emq_text *text) {
    emq_line line = EMQ_LINE_INIT;
    redisReply *reply = NULL;
    int result = emq_handshake(connection, settings, EMQ_FENCE_NOT_READ,
                               emq_deadline_in(settings->options.connect_timeout_ms), text);
    if (result != EMQ_OK) {
        return result;
    }
    result = emq_line_install(&line);
    if (result == EMQ_OK) {
        result =
            emq_connection_exchange(connection, &line, 1, &reply,
                                    emq_deadline_in(settings->options.command_timeout_ms), text);
    }
    if (result == EMQ_OK) {
        result = emq_decode_install(reply, text);
    }
    freeReplyObject(reply);
    emq_line_clear(&line);
    return result;
}

int emq_install(const emq_client_options *options, char *error, size_t cap) {
    emq_settings settings;
    emq_connection connection = {.context = NULL};
    emq_text text;
    if (error == NULL && cap > 0) {
        return EMQ_EINVAL;
    }
    emq_text_clear(&text);
    int result = emq_settings_init(&settings, options);
    if (result == EMQ_OK) {
        result = install(&connection, &settings, &text);
        emq_connection_close(&connection);
        emq_settings_clear(&settings);
    } else {
        text = settings.refusal_text;
    }
    if (cap > 0) {
        (void)snprintf(error, cap, "%s", text.bytes);
    }
    return result;
}
