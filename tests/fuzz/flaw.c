/* SPDX-License-Identifier: Apache-2.0 */
/* Shape, layout and the ranges of values, as the wire has them. */
#include "flaw.h"

#include <string.h>

#include "keys.h"
#include "wire.h"

static emq_slice word(const command *words, int at) {
    return (emq_slice){words->argv[at], words->lengths[at]};
}

static int is_text(const command *words, int at, const char *text) {
    return emq_slice_equal(word(words, at), emq_slice_of(text));
}

static int is_count(emq_slice text, int count) {
    char digits[EMQ_DECIMAL_MAX];
    return emq_slice_equal(text, (emq_slice){digits, emq_decimal_format(digits, count)});
}

emq_value_kind flaw_kind_at(const emq_verb *verb, int index) {
    int fixed = verb->value_count - verb->repeated;
    return verb
        ->values[index < verb->value_count ? index : fixed + (index - fixed) % verb->repeated];
}

static int is_of_a_job(emq_key_kind kind) {
    return kind >= EMQ_KEY_JOB && kind <= EMQ_KEY_UNSUCCESSFUL;
}

static int key_fits(const emq_verb *verb, int index, emq_slice key, emq_slice queue,
                    const emq_slice *id) {
    emq_key_kind kind = verb->keys[index];
    emq_slice name = {"", 0};
    if (is_of_a_job(kind)) {
        return id == NULL || emq_key_matches(key, kind, queue, *id);
    }
    return emq_key_kind_is_named(kind) ? emq_key_find_name(&name, key, kind, queue)
                                       : emq_key_matches(key, kind, queue, name);
}

static const char *find_wrong_key(const emq_verb *verb, const command *words) {
    emq_slice queue = {"", 0};
    emq_slice id = {"", 0};
    int id_index = emq_verb_find_value(verb, EMQ_VALUE_ID);
    int has_id = id_index >= 0 && id_index < verb->value_count;
    if (has_id) {
        id = word(words, 2 + verb->key_count + id_index);
    }
    if (verb->keys[0] != EMQ_KEY_FENCE && !emq_key_find_queue(&queue, word(words, 2))) {
        return "its first key names no queue";
    }
    for (int i = 0; i < verb->key_count; i++) {
        if (!key_fits(verb, i, word(words, 2 + i), queue, has_id ? &id : NULL)) {
            return "a key is not the one that queue and id dictate";
        }
    }
    return NULL;
}

static const char *find_wrong_value(const command *words, int at, emq_value_kind kind) {
    const emq_value_facts *facts = emq_value_get_facts(kind);
    int64_t number = 0;
    if (kind == EMQ_VALUE_ID && !emq_name_valid(word(words, at))) {
        return "an id can't be part of a key";
    }
    if (kind == EMQ_VALUE_MODE && !is_text(words, at, EMQ_MODE_AT) &&
        !is_text(words, at, EMQ_MODE_IN)) {
        return "a mode that is none";
    }
    if (facts->is_integer &&
        !emq_decimal_parse(&number, words->argv[at], words->lengths[at], facts->min, facts->max)) {
        return "a number is malformed or out of range";
    }
    return NULL;
}

const char *find_flaw(const emq_verb *verb, const command *words) {
    int counted = emq_verb_counts_keys(verb) ? 1 : 0;
    int first_value = 1 + counted + verb->key_count;
    if (words->argc < first_value || !emq_verb_takes(verb, words->argc - first_value)) {
        return "it has too few words, or too many";
    }
    if (counted && !is_count(word(words, 1), verb->key_count)) {
        return "its key count is not the verb's";
    }
    const char *flaw = counted ? find_wrong_key(verb, words) : NULL;
    for (int i = first_value; i < words->argc && flaw == NULL; i++) {
        flaw = find_wrong_value(words, i, flaw_kind_at(verb, i - first_value));
    }
    return flaw;
}
