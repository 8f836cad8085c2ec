/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as words, and replies as text, for tests that read like a session.
 *
 * A word may hold any byte, written \xNN (and a backslash \\). A reply reads:
 *   1   "text"   +OK   -ERR text   nil   []   ["id", "payload", 1]
 * where bytes outside of printable ASCII are written \xNN, a quote \" and a backslash \\. */
#ifndef EMQ_TESTS_COMMAND_H
#define EMQ_TESTS_COMMAND_H

#include <hiredis/hiredis.h>

#include "server.h"

typedef struct command {
    int argc;
    int capacity;
    char **argv;
    size_t *lengths;
} command;

void command_add(command *line, const char *word);
void command_add_bytes(command *line, const void *bytes, size_t n);
void command_add_words(command *line, va_list words); /* up to a NULL */
void command_free(command *line);

/* Sends a line and waits for its reply, which may be an error; the caller frees it. A lost
 * connection fails the test. */
redisReply *command_send(redisContext *c, const command *line);

/* The reply as text; the caller frees it. */
char *reply_to_text(const redisReply *reply);

/* Sends a line of words; the caller frees the reply. */
redisReply *call(redisContext *c, ...) NULL_AT_THE_END;

/* Sends a line and fails the test when the answer is an error. */
void run(redisContext *c, ...) NULL_AT_THE_END;

/* Sends a line and answers its integer, or its text (into `out`, cut to cap). Another type of reply
 * fails the test. */
long long get_integer(redisContext *c, ...) NULL_AT_THE_END;
const char *get_text(char *out, size_t cap, redisContext *c, ...) NULL_AT_THE_END;

/* Reads one field (`field:value`) of INFO into `out`; fails the test when it isn't there. */
const char *get_info(char *out, size_t cap, redisContext *c, const char *section,
                     const char *field);

/* Adds text to a NUL-terminated growing string; *text may be NULL at first. */
void append_text(char **text, const char *more);
void append_quoted(char **text, const char *bytes, size_t n);

#endif
