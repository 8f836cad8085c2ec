/* SPDX-License-Identifier: Apache-2.0 */
/* The connect path. AUTH is answered before anything else is sent; the rest goes out at once and is
 * judged in order, so that a connection costs two round trips. With sentinels the same path leads
 * to each of them, up to AUTH, and to each server that they name. */
#include "handshake.h"

#include "decode.h"
#include "line.h"
#include "secret.h"
#include "sentinel.h"

enum { STEP_ROLE, STEP_SELECT, STEP_NAME, STEP_VERSION, STEP_FENCE };

/* The way to one server or sentinel. */
typedef struct path {
    emq_connection *connection;
    const emq_client_options *options;
    emq_deadline deadline;
    emq_text *error;
    emq_fence_rule fence;
    emq_search *search; /* to a sentinel: who gets its answer; else NULL */
} path;

static int authenticate(const path *p, const char *password) {
    emq_line line = EMQ_LINE_INIT;
    redisReply *reply = NULL;
    int result = emq_line_auth(&line, p->options->username, password);
    if (result != EMQ_OK) {
        emq_text_fail_plain(p->error, result);
    } else {
        result = emq_connection_exchange(p->connection, &line, 1, &reply, p->deadline, p->error);
    }
    if (result == EMQ_OK) {
        result = emq_decode_auth(reply, password, p->error);
    }
    freeReplyObject(reply);
    emq_line_clear(&line);
    return result;
}

static int build_step(emq_ask *ask, int kind, const emq_client_options *options) {
    emq_line *line = &ask->lines[ask->end];
    ask->kinds[ask->end++] = kind;
    switch (kind) {
    case STEP_ROLE:
        return emq_line_role(line);
    case STEP_SELECT:
        return emq_line_select(line, ask->number, options->database);
    case STEP_NAME:
        return emq_line_client_name(line, options->client_name);
    case STEP_VERSION:
        return emq_line_version(line);
    default:
        return emq_line_fence(line);
    }
}

/* Each step takes a right, so that none is sent that is not needed. Database 0 is what a connection
 * starts with. The role comes first: what else a replica says does not matter. */
int emq_ask_build(emq_ask *ask, const emq_client_options *options, emq_fence_rule fence) {
    const int is_needed[EMQ_ASK_STEPS] = {[STEP_ROLE] = options->sentinels != NULL,
                                          [STEP_SELECT] = options->database != 0,
                                          [STEP_NAME] = 1,
                                          [STEP_VERSION] = 1,
                                          [STEP_FENCE] = fence == EMQ_FENCE_REQUIRED};
    int result = EMQ_OK;
    *ask = (emq_ask){.end = 0};
    for (int kind = 0; kind < EMQ_ASK_STEPS && result == EMQ_OK; kind++) {
        if (is_needed[kind]) {
            result = build_step(ask, kind, options);
        }
    }
    return result;
}

int emq_ask_judge(const emq_ask *ask, emq_text *error) {
    static int (*const decoders[EMQ_ASK_STEPS])(const redisReply *, emq_text *) = {
        [STEP_ROLE] = emq_decode_role,        [STEP_SELECT] = emq_decode_select,
        [STEP_NAME] = emq_decode_client_name, [STEP_VERSION] = emq_decode_version,
        [STEP_FENCE] = emq_decode_fence,
    };
    int result = EMQ_OK;
    for (int i = 0; i < ask->end && result == EMQ_OK; i++) {
        result = decoders[ask->kinds[i]](ask->replies[i], error);
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

static int build_ask(emq_ask *ask, const path *p) {
    return p->search != NULL ? emq_search_build_ask(ask, p->search)
                             : emq_ask_build(ask, p->options, p->fence);
}

/* What a sentinel's answer is worth is the search's affair. */
static int judge(const emq_ask *ask, const path *p) {
    if (p->search == NULL) {
        return emq_ask_judge(ask, p->error);
    }
    emq_search_take(p->search, ask->replies[0]);
    return EMQ_OK;
}

static int ask(const path *p) {
    emq_ask asked;
    int result = build_ask(&asked, p);
    if (result != EMQ_OK) {
        emq_text_fail_plain(p->error, result);
    } else {
        result = emq_connection_exchange(p->connection, asked.lines, asked.end, asked.replies,
                                         p->deadline, p->error);
    }
    if (result == EMQ_OK) {
        result = judge(&asked, p);
    }
    emq_ask_clear(&asked);
    return result;
}

/* What is said on a connection that is there. */
static int introduce(const path *p, const emq_secret *secret) {
    int result = EMQ_OK;
    if (secret->bytes != NULL) {
        result = authenticate(p, secret->bytes);
    }
    if (result == EMQ_OK) {
        result = ask(p);
    }
    if (result == EMQ_ETIMEOUT) {
        /* the transport can't know that nothing was done */
        emq_text_fail(p->error, result, "connected, but the server did not answer in time");
    }
    return result;
}

static int walk(const path *p) {
    const emq_client_options *options = p->options;
    const emq_endpoint endpoint = {options->host, options->port, options->unix_path};
    emq_secret secret;
    int result = emq_secret_load(&secret, options, p->error);
    if (result == EMQ_OK) {
        result = emq_connection_open(p->connection, &endpoint, p->deadline, p->error);
    }
    if (result == EMQ_OK && options->tls != 0) {
        result = emq_connection_start_tls(p->connection, options, p->deadline, p->error);
    }
    if (result == EMQ_OK) {
        result = introduce(p, &secret);
    }
    emq_secret_clear(&secret);
    if (result != EMQ_OK) {
        emq_connection_close(p->connection);
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

static void ask_for_primary(emq_search *search) {
    emq_connection connection = {.context = NULL};
    emq_text text;
    const path to_sentinel = {.connection = &connection,
                              .options = &search->at,
                              .deadline = search->until,
                              .error = &text,
                              .search = search};
    int result = walk(&to_sentinel);
    if (result != EMQ_OK) {
        emq_search_fail(search, result, &text);
    }
    emq_connection_close(&connection);
}

static void try_primary(emq_search *search, const path *to_server) {
    emq_text text;
    path to_primary = *to_server;
    to_primary.options = &search->at;
    to_primary.deadline = search->until;
    to_primary.error = &text;
    int result = walk(&to_primary);
    if (result == EMQ_OK) {
        emq_search_succeed(search);
    } else {
        emq_search_fail(search, result, &text);
    }
}

static int find_primary(const path *to_server, emq_settings *settings) {
    emq_search search;
    emq_search_start(&search, settings, to_server->deadline);
    while (search.step != EMQ_SEARCH_FOUND && search.step != EMQ_SEARCH_FAILED) {
        if (search.step == EMQ_SEARCH_ASK) {
            ask_for_primary(&search);
        } else if (search.step == EMQ_SEARCH_TRY) {
            try_primary(&search, to_server);
        } else {
            (void)emq_poll(-1, 0, search.until);
            emq_search_go_on(&search);
        }
    }
    if (search.step == EMQ_SEARCH_FAILED) {
        *to_server->error = search.text;
    }
    return search.step == EMQ_SEARCH_FOUND ? EMQ_OK : search.result;
}

int emq_handshake(emq_connection *connection, emq_settings *settings, emq_fence_rule fence,
                  emq_deadline deadline, emq_text *error) {
    const path to_server = {.connection = connection,
                            .options = &settings->options,
                            .deadline = deadline,
                            .error = error,
                            .fence = fence};
    emq_connection_close(connection);
    int result =
        settings->options.sentinels != NULL ? find_primary(&to_server, settings) : walk(&to_server);
    return emq_handshake_result(result);
}
