/* SPDX-License-Identifier: Apache-2.0 */
/* The verb table as data (the rows are in verbs.def), and what follows from a row. */
#ifndef EMQ_SRC_VERBS_H
#define EMQ_SRC_VERBS_H

#include <emq/keyspace.h>
#include <stddef.h>

#include "wire.h"

#define EMQ_VERB_KEYS_MAX 8
#define EMQ_VERB_VALUES_MAX 8
#define EMQ_VERB_CAPABILITIES_MAX 3 /* the last one is always NULL */

typedef enum emq_family {
    EMQ_FAMILY_CORE,
    EMQ_FAMILY_ADMIN,
    EMQ_FAMILY_QUEUE,
    EMQ_FAMILY_BUS,
    EMQ_FAMILY_TRA,
} emq_family;

enum {
    EMQ_FLAG_WRITE = 1,
    EMQ_FLAG_READONLY = 2,
    EMQ_FLAG_DENY_OOM = 4,
    EMQ_FLAG_DENY_SCRIPT = 8,
    EMQ_FLAG_ADMIN = 16,
    EMQ_FLAG_FAST = 32,
    EMQ_FLAG_BLOCKING = 64,
    EMQ_FLAG_DANGEROUS = 128, /* a category, no flag of the server */
    EMQ_FLAG_PUBSUB = 256,
};

typedef enum emq_verb_symbol {
#define EMQ_VERB(SYMBOL, ...) EMQ_VERB_##SYMBOL,
#include "verbs.def"
#undef EMQ_VERB
    EMQ_VERBS
} emq_verb_symbol;

typedef struct emq_verb {
    const char *name; /* "EMQ.ENQUEUE" */
    emq_family family;
    int key_count;
    emq_key_kind keys[EMQ_VERB_KEYS_MAX];
    int value_count;
    emq_value_kind values[EMQ_VERB_VALUES_MAX];
    int least_values; /* those beyond are optional */
    int repeated;     /* the last so many values may come again and again */
    unsigned flags;
    const char *capabilities[EMQ_VERB_CAPABILITIES_MAX];
    const char *summary;
    const char *complexity;
    const char *since;
} emq_verb;

extern const emq_verb emq_verbs[EMQ_VERBS];

/* The verb's name without its family prefix: "ENQUEUE". Static. */
const char *emq_verb_word(const emq_verb *verb);

/* The family in a word: "core". Static. */
const char *emq_verb_family_word(const emq_verb *verb);

/* Tells whether a key count stands in front of the keys, as in EVAL. Verbs of the family TRA have
 * one plain key or none instead, whatever its name. */
int emq_verb_counts_keys(const emq_verb *verb);

/* A key of the verb, as documentation shows it: a word ("row"), and the pattern of its name. */
const char *emq_verb_key_word(const emq_verb *verb, int index);
const char *emq_verb_key_pattern(const emq_verb *verb, int index);

/* The arity that the server checks: the exact number of arguments, the name included; negative, the
 * least number, where values repeat. */
int emq_verb_arity(const emq_verb *verb);

/* Tells whether a verb takes this many values. */
int emq_verb_takes(const emq_verb *verb, int value_count);

/* How many values a verb takes, in words: "2", "2 or 3", "1 + 2n". NUL-terminates within cap, for
 * which EMQ_WORDS_MAX is enough. */
void emq_verb_value_words(char *out, size_t cap, const emq_verb *verb);

/* Finds the value of the given kind; returns its index, or -1. */
int emq_verb_find_value(const emq_verb *verb, emq_value_kind kind);

/* The flags in the server's words ("write deny-oom fast") and the ACL categories that follow from
 * them, the module's own included ("write fast emq"). Both NUL-terminate within cap and return the
 * bytes written; EMQ_WORDS_MAX is always enough. */
#define EMQ_WORDS_MAX 128
size_t emq_verb_flag_words(char *out, size_t cap, const emq_verb *verb);
size_t emq_verb_category_words(char *out, size_t cap, const emq_verb *verb);

#endif
