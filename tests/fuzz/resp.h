/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that speaks RESP2 or RESP3, in pipelines, and that tells a lost one from an answer:
 * what a test needs that expects the server to crash. */
#ifndef EMQ_TESTS_RESP_H
#define EMQ_TESTS_RESP_H

#include <stddef.h>

#include "command.h"

typedef struct resp {
    int fd;
    char *output; /* lines that were added and not sent yet */
    size_t output_length;
    char *input;
    size_t input_length;
    size_t input_at;
    const char *trouble; /* why resp_read answered NULL */
} resp;

typedef struct resp_reply {
    char type; /* the first byte on the wire */
    char *text;
    size_t length;
    long long integer;
    struct resp_reply *elements;
    size_t count; /* of a map, names and values */
} resp_reply;

void resp_connect(resp *c, const test_server *server);
void resp_close(resp *c);

/* Adds a line to what resp_send will send. */
void resp_add(resp *c, const command *line);
void resp_add_words(resp *c, ...) NULL_AT_THE_END;
void resp_send(resp *c);

/* The next reply; the caller frees it. NULL when the connection is lost, when nothing comes for a
 * minute, or when it is no RESP. */
resp_reply *resp_read(resp *c);
void resp_free(resp_reply *reply);

int resp_is_error(const resp_reply *reply);

/* 1 when an error stands anywhere below this reply. */
int resp_holds_error(const resp_reply *reply);

/* The reply as text, cut where it is long; the caller frees it. */
char *resp_to_text(const resp_reply *reply);

#endif
