/* SPDX-License-Identifier: Apache-2.0 */
/* Compares replies, digests and effects, and says what was wanted when they differ. */
#include "expect.h"

#include <stdlib.h>
#include <string.h>

#include "aof.h"

void expect_text(const char *file, int line, const char *got, const char *want) {
    if (strcmp(got, want) != 0) {
        print_error("wanted: %s\n   got: %s\n", want, got);
        _fail(file, line);
    }
}

const char *get_digest(char *out, test_server *server) {
    return get_text(out, DIGEST_MAX, server->admin, "DEBUG", "DIGEST", NULL);
}

long long get_offset(test_server *server) {
    char text[32];
    return atoll(get_info(text, sizeof(text), server->admin, "replication", "master_repl_offset"));
}

static void compare(const char *file, int line, redisContext *c, const char *want, va_list words) {
    command sent = {0};
    command_add_words(&sent, words);
    redisReply *reply = command_send(c, &sent);
    char *got = reply_to_text(reply);
    if (strcmp(got, want) != 0) {
        char *shown = NULL;
        for (int i = 0; i < sent.argc; i++) {
            append_text(&shown, " ");
            append_quoted(&shown, sent.argv[i], sent.lengths[i]);
        }
        print_error("after: %s\n", shown);
        free(shown);
    }
    expect_text(file, line, got, want);
    free(got);
    freeReplyObject(reply);
    command_free(&sent);
}

void expect_reply(const char *file, int line, redisContext *c, const char *want, ...) {
    va_list words;
    va_start(words, want);
    compare(file, line, c, want, words);
    va_end(words);
}

void expect_unchanged(const char *file, int line, test_server *server, redisContext *c,
                      const char *want, ...) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    va_list words;
    (void)get_digest(before, server);
    long long offset = get_offset(server);
    va_start(words, want);
    compare(file, line, c, want, words);
    va_end(words);
    if (get_offset(server) != offset) {
        print_error("a call that answers %s propagated something\n", want);
        _fail(file, line);
    }
    expect_text(file, line, get_digest(after, server), before);
}

void expect_effects(const char *file, int line, test_server *server, const char *effects,
                    redisContext *c, const char *want, ...) {
    long long mark = aof_mark(server);
    va_list words;
    va_start(words, want);
    compare(file, line, c, want, words);
    va_end(words);
    char *got = aof_since(server, mark);
    expect_text(file, line, got, effects);
    free(got);
}
