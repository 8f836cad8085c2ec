/* SPDX-License-Identifier: Apache-2.0 */
/* Writes argv lines, and reads replies of both protocols into a tree. */
#include "resp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_SECONDS 60
#define PIECE 65536
#define NESTING_MAX 8
#define SHOWN_MAX 400

void resp_connect(resp *c, const test_server *server) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    *c = (resp){.fd = socket(AF_UNIX, SOCK_STREAM, 0)};
    assert_true(c->fd >= 0);
    assert_true(strlen(server->socket) < sizeof(address.sun_path));
    memcpy(address.sun_path, server->socket, strlen(server->socket) + 1);
    assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(connect(c->fd, (const struct sockaddr *)&address, sizeof(address)), 0);
}

void resp_close(resp *c) {
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    free(c->output);
    free(c->input);
    *c = (resp){.fd = -1};
}

/* ---- sending ---- */

static void add_bytes(resp *c, const char *bytes, size_t n) {
    c->output = realloc(c->output, c->output_length + n);
    assert_non_null(c->output);
    memcpy(c->output + c->output_length, bytes, n);
    c->output_length += n;
}

static void add_head(resp *c, char type, size_t n) {
    char head[32];
    int length = snprintf(head, sizeof(head), "%c%zu\r\n", type, n);
    add_bytes(c, head, (size_t)length);
}

void resp_add(resp *c, const command *line) {
    add_head(c, '*', (size_t)line->argc);
    for (int i = 0; i < line->argc; i++) {
        add_head(c, '$', line->lengths[i]);
        add_bytes(c, line->argv[i], line->lengths[i]);
        add_bytes(c, "\r\n", 2);
    }
}

void resp_add_words(resp *c, ...) {
    command line = {0};
    va_list words;
    va_start(words, c);
    command_add_words(&line, words);
    va_end(words);
    resp_add(c, &line);
    command_free(&line);
}

/* A lost connection shows when the reply is read. */
void resp_send(resp *c) {
    size_t sent = 0;
    while (sent < c->output_length) {
        ssize_t n = send(c->fd, c->output + sent, c->output_length - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        sent += (size_t)n;
    }
    c->output_length = 0;
}

/* ---- reading ---- */

static int receive(resp *c) {
    if (c->input_at > 0) {
        c->input_length -= c->input_at;
        memmove(c->input, c->input + c->input_at, c->input_length);
        c->input_at = 0;
    }
    c->input = realloc(c->input, c->input_length + PIECE);
    assert_non_null(c->input);
    ssize_t n = -1;
    do {
        n = recv(c->fd, c->input + c->input_length, PIECE, 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
        int is_late = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        c->trouble = is_late ? "no answer came for a minute" : "the connection was lost";
        return 0;
    }
    c->input_length += (size_t)n;
    return 1;
}

/* The text up to CR LF; the caller frees it. NULL: trouble. */
static char *read_line(resp *c, size_t *length) {
    for (size_t seen = 0;; seen++) {
        while (c->input_at + seen + 1 >= c->input_length) {
            if (!receive(c)) {
                return NULL;
            }
        }
        const char *at = c->input + c->input_at;
        if (at[seen] == '\r' && at[seen + 1] == '\n') {
            char *line = strndup(at, seen);
            assert_non_null(line);
            *length = seen;
            c->input_at += seen + 2;
            return line;
        }
    }
}

static int read_bulk(resp *c, resp_reply *out, size_t length) {
    while (c->input_length - c->input_at < length + 2) {
        if (!receive(c)) {
            return 0;
        }
    }
    out->text = malloc(length + 1);
    assert_non_null(out->text);
    memcpy(out->text, c->input + c->input_at, length);
    out->text[length] = '\0';
    out->length = length;
    c->input_at += length + 2;
    return 1;
}

static int read_reply(resp *c, resp_reply *out, int depth);

static int read_elements(resp *c, resp_reply *out, size_t count, int depth) {
    out->elements = calloc(count + 1, sizeof(*out->elements));
    assert_non_null(out->elements);
    for (; out->count < count; out->count++) {
        if (depth == NESTING_MAX || !read_reply(c, &out->elements[out->count], depth + 1)) {
            return 0;
        }
    }
    return 1;
}

static int read_reply(resp *c, resp_reply *out, int depth) {
    size_t length = 0;
    char *line = read_line(c, &length);
    if (line == NULL) {
        return 0;
    }
    long long number = length > 0 ? strtoll(line + 1, NULL, 10) : 0;
    out->type = line[0];
    if (length == 0 || strchr("+-:_#,($=*~%", line[0]) == NULL) {
        c->trouble = "the answer is no RESP";
        free(line);
        return 0;
    }
    if (strchr("$=*~%", line[0]) != NULL && number >= 0) {
        free(line);
        return strchr("$=", out->type) != NULL
                   ? read_bulk(c, out, (size_t)number)
                   : read_elements(c, out, (size_t)(out->type == '%' ? 2 * number : number), depth);
    }
    if (strchr("$*", line[0]) != NULL) {
        out->type = '_';
    }
    memmove(line, line + 1, length);
    out->text = line;
    out->length = length - 1;
    out->integer = number;
    return 1;
}

static void free_parts(resp_reply *reply) {
    free(reply->text);
    /* an element that could not be read to its end is not counted, but its parts are there */
    for (size_t i = 0; reply->elements != NULL && i <= reply->count; i++) {
        free_parts(&reply->elements[i]);
    }
    free(reply->elements);
}

void resp_free(resp_reply *reply) {
    if (reply != NULL) {
        free_parts(reply);
        free(reply);
    }
}

resp_reply *resp_read(resp *c) {
    resp_reply *reply = calloc(1, sizeof(*reply));
    assert_non_null(reply);
    if (!read_reply(c, reply, 0)) {
        resp_free(reply);
        return NULL;
    }
    return reply;
}

/* ---- looking ---- */

int resp_is_error(const resp_reply *reply) {
    return reply->type == '-';
}

int resp_holds_error(const resp_reply *reply) {
    for (size_t i = 0; i < reply->count; i++) {
        if (resp_is_error(&reply->elements[i]) || resp_holds_error(&reply->elements[i])) {
            return 1;
        }
    }
    return 0;
}

static void append(char **text, const resp_reply *reply) {
    char type[2] = {reply->type, '\0'};
    if (strlen(*text) > SHOWN_MAX) {
        return;
    }
    append_text(text, type);
    if (reply->elements != NULL) {
        append_text(text, "[");
        for (size_t i = 0; i < reply->count; i++) {
            append_text(text, i > 0 ? " " : "");
            append(text, &reply->elements[i]);
        }
        append_text(text, "]");
    } else {
        append_quoted(text, reply->text, reply->length < SHOWN_MAX ? reply->length : SHOWN_MAX);
    }
}

char *resp_to_text(const resp_reply *reply) {
    char *text = NULL;
    append_text(&text, "");
    append(&text, reply);
    return text;
}
