/* SPDX-License-Identifier: Apache-2.0 */
/* Sending without reading, and looking who is blocked and who was answered. */
#include "waiting.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS_MAX 600
#define ANSWER_MS 60000

static redisContext *clients[CLIENTS_MAX];
static int client_count;

static redisContext *keep(redisContext *c) {
    assert_true(client_count < CLIENTS_MAX);
    clients[client_count++] = c;
    return c;
}

redisContext *add_client(void) {
    return keep(server_connect(&server));
}

redisContext *add_client_as(const char *user, const char *rules) {
    return keep(server_connect_as(&server, user, rules));
}

void close_client(redisContext *c) {
    for (int i = 0; i < client_count; i++) {
        if (clients[i] == c) {
            clients[i] = clients[--client_count];
            redisFree(c);
            return;
        }
    }
    fail_msg("not a client of add_client");
}

long long get_stat(const char *name) {
    char field[64];
    char text[32];
    (void)snprintf(field, sizeof(field), "emq_%s", name);
    return atoll(get_info(text, sizeof(text), server.admin, "emq", field));
}

static int is_nobody_blocked(void *data) {
    char text[32];
    (void)data;
    return get_stat("blocked_claims") == 0 &&
           atoll(get_info(text, sizeof(text), server.admin, "clients", "blocked_clients")) == 0;
}

int expect_nobody_waits(void **state) {
    (void)state;
    run(server.admin, "CLIENT", "UNPAUSE", NULL);
    while (client_count > 0) {
        redisFree(clients[--client_count]);
    }
    wait_until("nobody is blocked", is_nobody_blocked, NULL);
    assert_int_equal(get_stat("lost_effects"), 0);
    return 0;
}

static void send_words(redisContext *c, va_list words) {
    command line = {0};
    command_add_words(&line, words);
    const char **argv = malloc((size_t)line.argc * sizeof(*argv));
    assert_non_null(argv);
    for (int i = 0; i < line.argc; i++) {
        argv[i] = line.argv[i];
    }
    assert_int_equal(redisAppendCommandArgv(c, line.argc, argv, line.lengths), REDIS_OK);
    free(argv);
    command_free(&line);
    int done = 0;
    while (!done) {
        assert_int_equal(redisBufferWrite(c, &done), REDIS_OK);
    }
}

void send_line(redisContext *c, ...) {
    va_list words;
    va_start(words, c);
    send_words(c, words);
    va_end(words);
}

int has_answer(redisContext *c) {
    struct pollfd answer = {.fd = c->fd, .events = POLLIN};
    return poll(&answer, 1, 0) > 0;
}

/* A claim that is sent is either blocked, one more than before, or answered. */
typedef struct sent_claim {
    redisContext *c;
    long long blocked;
} sent_claim;

static int is_taken_up(void *data) {
    const sent_claim *sent = data;
    return has_answer(sent->c) || get_stat("blocked_claims") == sent->blocked;
}

void block_client(const char *file, int line, redisContext *c, ...) {
    sent_claim sent = {c, get_stat("blocked_claims") + 1};
    va_list words;
    va_start(words, c);
    send_words(c, words);
    va_end(words);
    wait_until("the claim is blocked", is_taken_up, &sent);
    still_waiting(file, line, c);
}

redisContext *add_waiter(const char *count) {
    redisContext *c = add_client();
    BLOCK(c, WAITING_CLAIM(count));
    return c;
}

static int is_blocked_count(void *data) {
    return get_stat("blocked_claims") == *(const long long *)data;
}

void wait_blocked(long long count) {
    wait_until("so many claims are blocked", is_blocked_count, &count);
}

void settle_down(void) {
    run(server.admin, "PING", NULL);
    run(server.admin, "PING", NULL);
}

void still_waiting(const char *file, int line, redisContext *c) {
    settle_down();
    if (has_answer(c)) {
        char *text = read_answer(c);
        print_error("a client that should wait was answered: %s\n", text);
        free(text);
        _fail(file, line);
    }
}

char *read_answer(redisContext *c) {
    void *reply = NULL;
    char *text = NULL;
    struct pollfd answer = {.fd = c->fd, .events = POLLIN};
    assert_int_equal(redisReaderGetReply(c->reader, &reply), REDIS_OK);
    while (reply == NULL) {
        if (poll(&answer, 1, ANSWER_MS) <= 0) {
            append_text(&text, "no answer");
            return text;
        }
        if (redisBufferRead(c) != REDIS_OK) {
            append_text(&text, CLOSED);
            return text;
        }
        assert_int_equal(redisReaderGetReply(c->reader, &reply), REDIS_OK);
    }
    text = reply_to_text(reply);
    freeReplyObject(reply);
    return text;
}

void wakes_with(const char *file, int line, redisContext *c, const char *want) {
    char *got = read_answer(c);
    expect_text(file, line, got, want);
    free(got);
}

long long get_server_ms(void) {
    redisReply *time = call(server.admin, "TIME", NULL);
    long long ms = atoll(time->element[0]->str) * 1000 + atoll(time->element[1]->str) / 1000;
    freeReplyObject(time);
    return ms;
}
