/* SPDX-License-Identifier: Apache-2.0 */
/* A right call of any verb, made from its row in the table: tests that go over all verbs need no
 * words of their own for a new one. */
#ifndef EMQ_TESTS_VERB_LINE_H
#define EMQ_TESTS_VERB_LINE_H

#include "command.h"
#include "verbs.h"

/* The job that the call is about. */
#define VERB_LINE_ID "JOB0KHTOWnGLu1"

/* Adds the call's words: as many keys as declared, as few values as allowed. */
void verb_line(command *line, const emq_verb *verb, const char *queue);

#endif
