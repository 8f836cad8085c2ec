/* SPDX-License-Identifier: Apache-2.0 */
/* The connect path. AUTH is answered before anything else is sent; the rest goes out at once and is
 * judged in order, so that a connection costs two round trips. */
#include "handshake.h"

#include "decode.h"
#include "line.h"
#include "secret.h"

enum { STEP_SELECT, STEP_NAME, STEP_VERSION, STEP_FENCE };

static int authenticate(emq_connection *connection, const char *username, const char *password,
                        emq_deadline deadline, emq_text *error) {
    emq_line line = EMQ_LINE_INIT;
    redisReply *reply = NULL;
    int result = emq_line_auth(&line, username, password);
    if (result != EMQ_OK) {
        emq_text_fail_plain(error, result);
    } else {
        result = emq_connection_exchange(connection, &line, 1, &reply, deadline, error);
    }
    if (result == EMQ_OK) {
        result = emq_decode_auth(reply, password, error);
    }
    freeReplyObject(reply);
    emq_line_clear(&line);
    return result;
}

static int build_steps(emq_ask *ask, const emq_client_options *options) {
    int result = emq_line_select(&ask->lines[STEP_SELECT], ask->number, options->database);
    if (result == EMQ_OK) {
        result = emq_line_client_name(&ask->lines[STEP_NAME], options->client_name);
    }
    if (result == EMQ_OK) {
        result = emq_line_version(&ask->lines[STEP_VERSION]);
    }
    return result == EMQ_OK ? emq_line_fence(&ask->lines[STEP_FENCE]) : result;
}

/* Database 0 is what a connection starts with: no right to SELECT is needed for it. */
int emq_ask_build(emq_ask *ask, const emq_client_options *options, emq_fence_rule fence) {
    *ask = (emq_ask){.first = options->database != 0 ? STEP_SELECT : STEP_NAME,
                     .end = fence == EMQ_FENCE_REQUIRED ? EMQ_ASK_STEPS : STEP_FENCE};
    return build_steps(ask, options);
}

int emq_ask_judge(const emq_ask *ask, emq_text *error) {
    static int (*const decoders[EMQ_ASK_STEPS])(const redisReply *, emq_text *) = {
        [STEP_SELECT] = emq_decode_select,
        [STEP_NAME] = emq_decode_client_name,
        [STEP_VERSION] = emq_decode_version,
        [STEP_FENCE] = emq_decode_fence,
    };
    int result = EMQ_OK;
    for (int i = ask->first; i < ask->end && result == EMQ_OK; i++) {
        result = decoders[i](ask->replies[i], error);
    }
    return result;
}

void emq_ask_clear(emq_ask *ask) {
    for (int i = 0; i < EMQ_ASK_STEPS; i++) {
        freeReplyObject(ask->replies[i]);
        ask->replies[i] = NULL;
        emq_line_clear(&ask->lines[i]);
    }
}

static int ask(emq_connection *connection, const emq_client_options *options, emq_fence_rule fence,
               emq_deadline deadline, emq_text *error) {
    emq_ask asked;
    int result = emq_ask_build(&asked, options, fence);
    if (result != EMQ_OK) {
        emq_text_fail_plain(error, result);
    } else {
        result =
            emq_connection_exchange(connection, asked.lines + asked.first, asked.end - asked.first,
                                    asked.replies + asked.first, deadline, error);
    }
    if (result == EMQ_OK) {
        result = emq_ask_judge(&asked, error);
    }
    emq_ask_clear(&asked);
    return result;
}

/* What is said on a connection that is there. */
static int introduce(emq_connection *connection, const emq_client_options *options,
                     const emq_secret *secret, emq_fence_rule fence, emq_deadline deadline,
                     emq_text *error) {
    int result = EMQ_OK;
    if (secret->bytes != NULL) {
        result = authenticate(connection, options->username, secret->bytes, deadline, error);
    }
    if (result == EMQ_OK) {
        result = ask(connection, options, fence, deadline, error);
    }
    if (result == EMQ_ETIMEOUT) {
        /* the transport can't know that nothing was done */
        emq_text_fail(error, result, "connected, but the server did not answer in time");
    }
    return result;
}

/* On the connect path no job is at stake: what is an open question elsewhere is a plain "not
 * connected" here. */
int emq_handshake_result(int result) {
    switch (result) {
    case EMQ_ETIMEOUT:
        return EMQ_ECONNTIMEOUT;
    case EMQ_ECONNLOST:
        return EMQ_ECONNECT;
    default:
        return result;
    }
}

int emq_handshake(emq_connection *connection, const emq_settings *settings, emq_fence_rule fence,
                  emq_deadline deadline, emq_text *error) {
    const emq_client_options *options = &settings->options;
    const emq_endpoint endpoint = {options->host, options->port, options->unix_path};
    emq_secret secret;
    emq_connection_close(connection);
    int result = emq_secret_load(&secret, options, error);
    if (result == EMQ_OK) {
        result = emq_connection_open(connection, &endpoint, deadline, error);
    }
    if (result == EMQ_OK && options->tls != 0) {
        result = emq_connection_start_tls(connection, options, deadline, error);
    }
    if (result == EMQ_OK) {
        result = introduce(connection, options, &secret, fence, deadline, error);
    }
    emq_secret_clear(&secret);
    if (result != EMQ_OK) {
        emq_connection_close(connection);
    }
    return emq_handshake_result(result);
}
