/* SPDX-License-Identifier: Apache-2.0 */
/* The raw door: any command but those that this client must not send, and its reply. */
#include <string.h>
#include <strings.h>

#include "client.h"
#include "decode.h"
#include "line.h"

#define ARGUMENTS_MAX 1048576

/* Scripts, transactions, and what changes the connection itself: replies that nobody reads, another
 * protocol, another user or database behind the client's back. A second word narrows it down. */
static const struct {
    const char *command;
    const char *subcommand;
} forbidden[] = {
    {"EVAL", NULL},         {"EVAL_RO", NULL},      {"EVALSHA", NULL},      {"EVALSHA_RO", NULL},
    {"FCALL", NULL},        {"FCALL_RO", NULL},     {"SCRIPT", NULL},       {"FUNCTION", NULL},
    {"MULTI", NULL},        {"EXEC", NULL},         {"DISCARD", NULL},      {"WATCH", NULL},
    {"UNWATCH", NULL},      {"SUBSCRIBE", NULL},    {"PSUBSCRIBE", NULL},   {"SSUBSCRIBE", NULL},
    {"UNSUBSCRIBE", NULL},  {"PUNSUBSCRIBE", NULL}, {"SUNSUBSCRIBE", NULL}, {"MONITOR", NULL},
    {"SYNC", NULL},         {"PSYNC", NULL},        {"REPLCONF", NULL},     {"RESET", NULL},
    {"QUIT", NULL},         {"HELLO", NULL},        {"AUTH", NULL},         {"SELECT", NULL},
    {"READONLY", NULL},     {"READWRITE", NULL},    {"ASKING", NULL},       {"CLIENT", "REPLY"},
    {"CLIENT", "TRACKING"}, {"CLIENT", "CACHING"},  {"CLIENT", "CAPA"},
};

static int is_word(const char *bytes, size_t n, const char *word) {
    return strlen(word) == n && strncasecmp(bytes, word, n) == 0;
}

static int is_forbidden(const emq_line *line) {
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (is_word(line->argv[0], line->argvlen[0], forbidden[i].command) &&
            (forbidden[i].subcommand == NULL ||
             (line->argc > 1 &&
              is_word(line->argv[1], line->argvlen[1], forbidden[i].subcommand)))) {
            return 1;
        }
    }
    return 0;
}

int emq_line_raw(emq_line *out, int argc, const char *const *argv, const size_t *argvlen) {
    if (argc < 1 || argc > ARGUMENTS_MAX || argv == NULL) {
        return EMQ_EINVAL;
    }
    for (int i = 0; i < argc; i++) {
        if (argv[i] == NULL) {
            return EMQ_EINVAL;
        }
    }
    int result = emq_line_arguments(out, argc, argv, argvlen);
    return result == EMQ_OK && is_forbidden(out) ? EMQ_EFORBIDDEN : result;
}

int emq_client_command(emq_reply **out, emq_client *client, int argc, const char *const *argv,
                       const size_t *argvlen) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = emq_deadline_in(client->settings.options.command_timeout_ms);
    redisReply *reply = NULL;
    emq_text_clear(&client->error);
    int result = emq_line_raw(&client->line, argc, argv, argvlen);
    if (result != EMQ_OK) {
        return emq_text_fail_plain(&client->error, result);
    }
    result = emq_client_exchange(client, &client->line, &reply, deadline);
    if (result == EMQ_OK) {
        result = emq_decode_raw(reply, &client->error);
    }
    if (result == EMQ_OK) {
        *out = (emq_reply *)reply;
        reply = NULL;
    }
    return emq_client_finish(client, reply, result);
}

/* An emq_reply is the reply itself under another name. */
static const redisReply *inside(const emq_reply *reply) {
    return (const redisReply *)reply;
}

emq_reply_type emq_reply_get_type(const emq_reply *reply) {
    switch (reply == NULL ? REDIS_REPLY_NIL : inside(reply)->type) {
    case REDIS_REPLY_INTEGER:
        return EMQ_REPLY_INTEGER;
    case REDIS_REPLY_STRING:
        return EMQ_REPLY_STRING;
    case REDIS_REPLY_STATUS:
        return EMQ_REPLY_STATUS;
    case REDIS_REPLY_ERROR:
        return EMQ_REPLY_ERROR;
    case REDIS_REPLY_ARRAY:
        return EMQ_REPLY_ARRAY;
    default:
        return EMQ_REPLY_NIL;
    }
}

int64_t emq_reply_get_integer(const emq_reply *reply) {
    return emq_reply_get_type(reply) == EMQ_REPLY_INTEGER ? inside(reply)->integer : 0;
}

const char *emq_reply_get_string(const emq_reply *reply, size_t *n) {
    emq_reply_type type = emq_reply_get_type(reply);
    int is_string = type == EMQ_REPLY_STRING || type == EMQ_REPLY_STATUS || type == EMQ_REPLY_ERROR;
    if (n != NULL) {
        *n = is_string ? inside(reply)->len : 0;
    }
    return is_string ? inside(reply)->str : NULL;
}

size_t emq_reply_get_count(const emq_reply *reply) {
    return emq_reply_get_type(reply) == EMQ_REPLY_ARRAY ? inside(reply)->elements : 0;
}

const emq_reply *emq_reply_get_element(const emq_reply *reply, size_t i) {
    return i < emq_reply_get_count(reply) ? (const emq_reply *)inside(reply)->element[i] : NULL;
}

void emq_reply_free(emq_reply *reply) {
    freeReplyObject(reply);
}
