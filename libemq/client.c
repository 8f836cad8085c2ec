/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronous client: opening, closing, and the verbs over the transport. */
#include "client.h"

#include <emq/verbs.h>
#include <stdio.h>
#include <string.h>

#include "decode.h"
#include "handshake.h"
#include "line.h"
#include "memory.h"
#include "url.h"
#include "wire.h"

int emq_client_check_process(emq_client *client) {
    return !emq_owner_is_other(&client->connection.owner)
               ? EMQ_OK
               : emq_text_fail_plain(&client->error, EMQ_EFORKED);
}

int emq_client_connect(emq_client *client, emq_deadline deadline) {
    emq_text_clear(&client->error);
    if (emq_client_check_process(client) != EMQ_OK) {
        return EMQ_EFORKED;
    }
    if (client->settings.refusal != EMQ_OK) {
        client->error = client->settings.refusal_text;
        return client->settings.refusal;
    }
    return emq_handshake(&client->connection, &client->settings, EMQ_FENCE_REQUIRED, deadline,
                         &client->error);
}

static int run_handshake(emq_client *client) {
    return emq_client_connect(client, emq_deadline_in(client->settings.options.connect_timeout_ms));
}

/* A closed client of this process. */
static emq_client *allocate(void) {
    emq_client *client = emq_calloc(1, sizeof(*client));
    if (client != NULL) {
        emq_owner_set(&client->connection.owner);
    }
    return client;
}

int emq_client_new(emq_client **out, const emq_client_options *options) {
    *out = NULL;
    emq_client *client = allocate();
    if (client == NULL) {
        return EMQ_ENOMEM;
    }
    int result = emq_settings_init(&client->settings, options);
    if (result == EMQ_ENOMEM) {
        emq_owner_clear(&client->connection.owner);
        emq_free(client);
        return result;
    }
    *out = client;
    return result;
}

int emq_client_open(emq_client **out, const emq_client_options *options) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    emq_client *client = NULL;
    int result = emq_client_new(&client, options);
    if (client != NULL) {
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
    emq_client *client = allocate();
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
        emq_owner_clear(&client->connection.owner);
        emq_line_clear(&client->line);
        emq_settings_clear(&client->settings);
        emq_free(client);
    }
}

int emq_client_is_open(const emq_client *client) {
    return client != NULL && client->connection.context != NULL &&
           !emq_owner_is_other(&client->connection.owner);
}

const char *emq_client_get_error(const emq_client *client) {
    return client == NULL ? "" : client->error.bytes;
}

int emq_client_exchange(emq_client *client, const emq_line *line, redisReply **reply,
                        emq_deadline deadline) {
    return emq_connection_exchange(&client->connection, line, 1, reply, deadline, &client->error);
}

int emq_client_ends_connection(const emq_client *client, int result) {
    return result == EMQ_EPROTOCOL ||
           (result == EMQ_EREADONLY && client->settings.options.sentinels != NULL);
}

int emq_client_finish(emq_client *client, redisReply *reply, int result) {
    freeReplyObject(reply);
    if (emq_client_ends_connection(client, result)) {
        emq_connection_close(&client->connection);
    }
    return result;
}

static emq_deadline start_call(emq_client *client) {
    emq_text_clear(&client->error);
    return emq_deadline_in(client->settings.options.command_timeout_ms);
}

int emq_id_is_zeroed(const emq_id *id) {
    static const emq_id zero = {{0}};
    return memcmp(id, &zero, sizeof(zero)) == 0;
}

int emq_client_ask(emq_client *client, const emq_question *question, emq_outcome *outcome,
                   redisReply **kept, emq_deadline deadline) {
    redisReply *reply = NULL;
    int result = emq_client_exchange(client, &client->line, &reply, deadline);
    if (result == EMQ_OK) {
        result = emq_decode_verb(outcome, question, reply, &client->error);
    }
    if (result >= 0 && kept != NULL) {
        *kept = reply;
        reply = NULL;
    }
    return emq_client_finish(client, reply, result);
}

/* Sends the line of client->line, whose verb answers with a result alone. */
static int ask_verdict(emq_client *client, emq_verb_symbol verb, emq_deadline deadline) {
    const emq_question question = {.verb = verb};
    emq_outcome outcome = {0};
    return emq_client_ask(client, &question, &outcome, NULL, deadline);
}

/* The line that admits a job: SCHEDULE when there is a time. */
static int build_admission(emq_client *client, const char *queue, const emq_id *id, const void *p,
                           size_t n, const emq_when *when) {
    return when == NULL ? emq_line_enqueue(&client->line, queue, id, p, n)
                        : emq_line_schedule(&client->line, queue, id, p, n, *when);
}

static int ask_admission(emq_client *client, const emq_when *when, emq_deadline deadline) {
    return ask_verdict(client, when == NULL ? EMQ_VERB_ENQUEUE : EMQ_VERB_SCHEDULE, deadline);
}

int emq_client_fail_mints(emq_client *client) {
    emq_connection_close(&client->connection);
    return emq_text_fail(&client->error, EMQ_EPROTOCOL,
                         "the server said of %d ids minted just now that they exist",
                         EMQ_MINTS_MAX);
}

/* A duplicate is no repeat here: another process has minted the same id, and its job must not be
 * taken for ours. */
int emq_client_admit_fresh(emq_id *id, emq_client *client, const char *queue, const void *p,
                           size_t n, const emq_when *when, emq_deadline deadline) {
    for (int i = 0; i < EMQ_MINTS_MAX; i++) {
        emq_id fresh;
        int result = emq_id_mint(&fresh, EMQ_NAMESPACE_JOB);
        if (result == EMQ_OK) {
            result = build_admission(client, queue, &fresh, p, n, when);
        }
        if (result != EMQ_OK) {
            return emq_text_fail_plain(&client->error, result);
        }
        *id = fresh;
        result = ask_admission(client, when, deadline);
        if (result != EMQ_DUPLICATE) {
            return result;
        }
    }
    /* the last id is somebody else's: a repeat with it would look like success */
    memset(id, 0, sizeof(*id));
    return emq_client_fail_mints(client);
}

/* What is wrong with the call itself, before an id is minted for it. */
static int check_admission(emq_client *client, const char *queue, const void *p, size_t n) {
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

static int admit(emq_id *id, emq_client *client, const char *queue, const void *p, size_t n,
                 const emq_when *when) {
    if (id == NULL || client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    int result = check_admission(client, queue, p, n);
    int is_fresh = emq_id_is_zeroed(id);
    if (result == EMQ_OK && !is_fresh) {
        result = build_admission(client, queue, id, p, n, when);
    }
    if (result == EMQ_OK) {
        result = emq_client_check_process(client);
    }
    if (result == EMQ_OK && !emq_client_is_open(client)) {
        result = EMQ_ECLOSED;
    }
    if (result != EMQ_OK) {
        return emq_text_fail_plain(&client->error, result);
    }
    return is_fresh ? emq_client_admit_fresh(id, client, queue, p, n, when, deadline)
                    : ask_admission(client, when, deadline);
}

int emq_enqueue(emq_id *id, emq_client *client, const char *queue, const void *p, size_t n) {
    return admit(id, client, queue, p, n, NULL);
}

int emq_schedule(emq_id *id, emq_client *client, const char *queue, const void *p, size_t n,
                 emq_when when) {
    return admit(id, client, queue, p, n, &when);
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
    int result = emq_line_claim(&client->line, queue, lease_ms);
    if (result != EMQ_OK) {
        return emq_text_fail_plain(&client->error, result);
    }
    const emq_question question = {.verb = EMQ_VERB_CLAIM, .queue = emq_slice_of(queue)};
    emq_outcome outcome = {0};
    result = emq_client_ask(client, &question, &outcome, NULL, deadline);
    *out = outcome.job;
    return result;
}

int emq_complete(emq_client *client, const emq_lease *lease) {
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = start_call(client);
    int result = emq_line_complete(&client->line, lease);
    if (result != EMQ_OK) {
        return emq_text_fail_plain(&client->error, result);
    }
    return ask_verdict(client, EMQ_VERB_COMPLETE, deadline);
}

/* Opens without the fence, which is not there yet, and writes it. */
static int install(emq_connection *connection, emq_settings *settings, emq_text *text) {
    emq_line line = EMQ_LINE_INIT;
    redisReply *reply = NULL;
    int result = emq_handshake(connection, settings, EMQ_FENCE_NOT_READ,
                               emq_deadline_in(settings->options.connect_timeout_ms), text);
    if (result != EMQ_OK) {
        return result;
    }
    result = emq_line_install(&line);
    if (result != EMQ_OK) {
        emq_text_fail_plain(text, result);
    } else {
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
