/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that are no verbs of the wire: the commands of the connect path, and any other. */
#ifndef EMQ_LIBEMQ_LINE_H
#define EMQ_LIBEMQ_LINE_H

#include <emq/line.h>
#include <limits.h>

/* Builds a line of any arguments, which are borrowed. No lengths means NUL-terminated words. */
int emq_line_arguments(emq_line *out, int argc, const char *const *argv, const size_t *argvlen);

/* The same for any command of a caller: EMQ_EINVAL; EMQ_EFORBIDDEN (none that a client sends). */
int emq_line_raw(emq_line *out, int argc, const char *const *argv, const size_t *argvlen);

/* hiredis counts the bytes of a command in an int. */
#define EMQ_REQUEST_MAX ((size_t)INT_MAX / 2)

/* Whether a line is no larger than that, as it is sent. */
int emq_line_fits(const emq_line *line);

/* Which argument the payload of ENQUEUE and SCHEDULE is: behind the verb, the count of the keys,
 * two keys and the id. */
#define EMQ_LINE_PAYLOAD 5

/* AUTH with a user or, when `username` is NULL, in its older form of a password alone. */
int emq_line_auth(emq_line *out, const char *username, const char *password);

/* SELECT. `number` receives the decimal text, which the line borrows. */
#define EMQ_LINE_NUMBER_MAX 24
int emq_line_select(emq_line *out, char number[EMQ_LINE_NUMBER_MAX], int database);

int emq_line_client_name(emq_line *out, const char *name);

/* GET of the fence. */
int emq_line_fence(emq_line *out);

int emq_line_role(emq_line *out);

/* Asks a sentinel where the primary of a name is. The name is borrowed. */
int emq_line_primary_address(emq_line *out, const char *name);

#endif
