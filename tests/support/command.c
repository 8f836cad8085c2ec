/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of words, argv form only, and replies written as text. */
#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void command_add_bytes(command *line, const void *bytes, size_t n) {
    if (line->argc == line->capacity) {
        line->capacity = line->capacity == 0 ? 16 : line->capacity * 2;
        size_t room = (size_t)line->capacity;
        line->argv = realloc(line->argv, room * sizeof(*line->argv));
        line->lengths = realloc(line->lengths, room * sizeof(*line->lengths));
        assert_true(line->argv != NULL && line->lengths != NULL);
    }
    char *copy = malloc(n + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    line->argv[line->argc] = copy;
    line->lengths[line->argc] = n;
    line->argc++;
}

static int hex_value(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

void command_add(command *line, const char *word) {
    char *bytes = malloc(strlen(word) + 1);
    size_t n = 0;
    assert_non_null(bytes);
    while (*word != '\0') {
        if (word[0] == '\\' && word[1] == 'x') {
            int high = hex_value(word[2]);
            int low = high < 0 ? -1 : hex_value(word[3]);
            assert_true(low >= 0);
            bytes[n++] = (char)(high * 16 + low);
            word += 4;
        } else {
            word += word[0] == '\\' && word[1] == '\\' ? 1 : 0;
            bytes[n++] = *word++;
        }
    }
    command_add_bytes(line, bytes, n);
    free(bytes);
}

void command_add_words(command *line, va_list words) {
    const char *word = NULL;
    while ((word = va_arg(words, const char *)) != NULL) {
        command_add(line, word);
    }
}

void command_free(command *line) {
    for (int i = 0; i < line->argc; i++) {
        free(line->argv[i]);
    }
    free(line->argv);
    free(line->lengths);
    *line = (command){0};
}

redisReply *command_send(redisContext *c, const command *line) {
    const char **argv = malloc((size_t)line->argc * sizeof(*argv));
    assert_non_null(argv);
    for (int i = 0; i < line->argc; i++) {
        argv[i] = line->argv[i];
    }
    redisReply *reply = redisCommandArgv(c, line->argc, argv, line->lengths);
    free(argv);
    if (reply == NULL) {
        fail_msg("the connection was lost at %s: %s", line->argv[0], c->errstr);
    }
    return reply;
}

void append_text(char **text, const char *more) {
    size_t used = *text == NULL ? 0 : strlen(*text);
    char *longer = realloc(*text, used + strlen(more) + 1);
    assert_non_null(longer);
    memcpy(longer + used, more, strlen(more) + 1);
    *text = longer;
}

static void append_escaped(char **text, const char *bytes, size_t n) {
    /* at most four characters for a byte */
    char *escaped = malloc(n * 4 + 1);
    size_t used = 0;
    assert_non_null(escaped);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < ' ' || c > '~') {
            used += (size_t)snprintf(escaped + used, 5, "\\x%02x", c);
        } else {
            if (c == '\\' || c == '"') {
                escaped[used++] = '\\';
            }
            escaped[used++] = (char)c;
        }
    }
    escaped[used] = '\0';
    append_text(text, escaped);
    free(escaped);
}

void append_quoted(char **text, const char *bytes, size_t n) {
    append_text(text, "\"");
    append_escaped(text, bytes, n);
    append_text(text, "\"");
}

static void append_reply(char **text, const redisReply *reply) {
    char number[32];
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        (void)snprintf(number, sizeof(number), "%lld", reply->integer);
        append_text(text, number);
        break;
    case REDIS_REPLY_STRING:
        append_quoted(text, reply->str, (size_t)reply->len);
        break;
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
        append_text(text, reply->type == REDIS_REPLY_STATUS ? "+" : "-");
        append_escaped(text, reply->str, (size_t)reply->len);
        break;
    case REDIS_REPLY_NIL:
        append_text(text, "nil");
        break;
    case REDIS_REPLY_ARRAY:
        append_text(text, "[");
        for (size_t i = 0; i < reply->elements; i++) {
            append_text(text, i > 0 ? ", " : "");
            append_reply(text, reply->element[i]);
        }
        append_text(text, "]");
        break;
    default:
        fail_msg("a reply of the unknown type %d", reply->type);
    }
}

char *reply_to_text(const redisReply *reply) {
    char *text = NULL;
    append_text(&text, "");
    append_reply(&text, reply);
    return text;
}

static redisReply *send_words(redisContext *c, va_list words) {
    command line = {0};
    command_add_words(&line, words);
    redisReply *reply = command_send(c, &line);
    command_free(&line);
    return reply;
}

redisReply *call(redisContext *c, ...) {
    va_list words;
    va_start(words, c);
    redisReply *reply = send_words(c, words);
    va_end(words);
    return reply;
}

void run(redisContext *c, ...) {
    va_list words;
    va_start(words, c);
    redisReply *reply = send_words(c, words);
    va_end(words);
    if (reply->type == REDIS_REPLY_ERROR) {
        va_start(words, c);
        fail_msg("%s was refused: %s", va_arg(words, const char *), reply->str);
        va_end(words);
    }
    freeReplyObject(reply);
}

long long get_integer(redisContext *c, ...) {
    va_list words;
    va_start(words, c);
    redisReply *reply = send_words(c, words);
    va_end(words);
    if (reply->type != REDIS_REPLY_INTEGER) {
        fail_msg("not an integer: %s", reply_to_text(reply));
    }
    long long value = reply->integer;
    freeReplyObject(reply);
    return value;
}

const char *get_text(char *out, size_t cap, redisContext *c, ...) {
    va_list words;
    va_start(words, c);
    redisReply *reply = send_words(c, words);
    va_end(words);
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS) {
        fail_msg("not a text: %s", reply_to_text(reply));
    }
    (void)snprintf(out, cap, "%.*s", (int)reply->len, reply->str);
    freeReplyObject(reply);
    return out;
}

const char *get_info(char *out, size_t cap, redisContext *c, const char *section,
                     const char *field) {
    redisReply *reply = call(c, "INFO", section, NULL);
    char start[128];
    (void)snprintf(start, sizeof(start), "\n%s:", field);
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, start) : NULL;
    if (at == NULL) {
        fail_msg("INFO %s has no %s:\n%s", section, field, reply->str);
    }
    at += strlen(start);
    (void)snprintf(out, cap, "%.*s", (int)strcspn(at, "\r\n"), at);
    freeReplyObject(reply);
    return out;
}
