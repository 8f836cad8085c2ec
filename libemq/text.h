/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed call has to say: one sentence of bounded length, kept beside its result. */
#ifndef EMQ_LIBEMQ_TEXT_H
#define EMQ_LIBEMQ_TEXT_H

#include <stddef.h>

#define EMQ_TEXT_MAX 512
#define EMQ_TEXT_QUOTE_MAX 128 /* bytes of a foreign value that are quoted inside a sentence */

typedef struct emq_text {
    char bytes[EMQ_TEXT_MAX];
} emq_text;

#if defined(__GNUC__)
#define EMQ_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define EMQ_PRINTF(at, first)
#endif

void emq_text_clear(emq_text *text);

/* Sets the sentence and returns `result`, so that a failure is one statement. Control bytes become
 * spaces: what a peer sent must not steer a terminal or split a log line. */
int emq_text_fail(emq_text *text, int result, const char *format, ...) EMQ_PRINTF(3, 4);

/* The same with the emq_strerror sentence. */
int emq_text_fail_plain(emq_text *text, int result);

/* The same with bytes as they came from the peer. */
int emq_text_fail_bytes(emq_text *text, int result, const char *bytes, size_t n);

/* The precision for "%.*s" that quotes n foreign bytes, cut. */
int emq_quote_length(size_t n);

#endif
