/* SPDX-License-Identifier: Apache-2.0 */
/* The result that a server's error text stands for. */
#ifndef EMQ_LIBEMQ_RESULT_H
#define EMQ_LIBEMQ_RESULT_H

#include <emq/error.h>
#include <stddef.h>

/* Never 0 or positive; EMQ_ESERVER for a text of no known class. */
int emq_result_of_error(const char *text, size_t n);

/* Tells whether the server doesn't know the command that was sent. */
int emq_error_is_unknown_command(const char *text, size_t n);

#endif
