/* SPDX-License-Identifier: Apache-2.0 */
/* What must be refused whatever the data are: a call that is not as its row in the table says. */
#ifndef EMQ_TESTS_FLAW_H
#define EMQ_TESTS_FLAW_H

#include "command.h"
#include "verbs.h"

/* The kind of a value. Where values repeat, those of the last group come again. */
emq_value_kind flaw_kind_at(const emq_verb *verb, int index);

/* Tells what is wrong with a call, or NULL. That NULL was found does not make it a right one. */
const char *find_flaw(const emq_verb *verb, const command *words);

#endif
