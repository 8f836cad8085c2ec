/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the verb table from verbs.def and derives arity, flag words and ACL categories from a row.
 */
#include "verbs.h"

#include <stdio.h>
#include <string.h>

#include "keys.h"

#define KEYS(...)                                                                                  \
    { __VA_ARGS__ }
#define VALUES(...)                                                                                \
    { __VA_ARGS__ }
#define CAPABILITIES(...)                                                                          \
    { __VA_ARGS__ }
#define EMQ_VERB(SYMBOL, symbol, name_, family_, key_count_, keys_, value_count_, values_, least_, \
                 repeated_, flags_, capabilities_, summary_, complexity_, since_)                  \
    {name_,     family_, key_count_,    keys_,    value_count_, values_, least_,                   \
     repeated_, flags_,  capabilities_, summary_, complexity_,  since_},

const emq_verb emq_verbs[EMQ_VERBS] = {
#include "verbs.def"
};

const char *emq_verb_word(const emq_verb *verb) {
    return strchr(verb->name, '.') + 1;
}

const char *emq_verb_family_word(const emq_verb *verb) {
    switch (verb->family) {
    case EMQ_FAMILY_CORE:
        return "core";
    case EMQ_FAMILY_ADMIN:
        return "admin";
    case EMQ_FAMILY_BUS:
        return "bus";
    case EMQ_FAMILY_TRA:
        return "tra";
    default:
        return "queue";
    }
}

int emq_verb_counts_keys(const emq_verb *verb) {
    return verb->key_count > 0 && verb->family != EMQ_FAMILY_TRA;
}

const char *emq_verb_key_word(const emq_verb *verb, int index) {
    return emq_verb_counts_keys(verb) ? emq_key_word(verb->keys[index]) : "key";
}

const char *emq_verb_key_pattern(const emq_verb *verb, int index) {
    return emq_verb_counts_keys(verb) ? emq_key_pattern(verb->keys[index]) : "key";
}

int emq_verb_arity(const emq_verb *verb) {
    int keys = verb->key_count + (emq_verb_counts_keys(verb) ? 1 : 0);
    int least = 1 + keys + verb->least_values;
    return verb->repeated > 0 || verb->value_count > verb->least_values ? -least : least;
}

int emq_verb_takes(const emq_verb *verb, int value_count) {
    int beyond = value_count - verb->least_values;
    if (verb->repeated > 0) {
        return beyond >= 0 && beyond % verb->repeated == 0;
    }
    return beyond == 0 || value_count == verb->value_count;
}

void emq_verb_value_words(char *out, size_t cap, const emq_verb *verb) {
    int fixed = verb->value_count - verb->repeated;
    if (verb->repeated > 0 && fixed > 0) {
        (void)snprintf(out, cap, "%d + %dn", fixed, verb->repeated);
    } else if (verb->repeated > 0) {
        (void)snprintf(out, cap, "%dn", verb->repeated);
    } else if (verb->value_count > verb->least_values) {
        (void)snprintf(out, cap, "%d or %d", verb->least_values, verb->value_count);
    } else {
        (void)snprintf(out, cap, "%d", verb->value_count);
    }
}

int emq_verb_find_value(const emq_verb *verb, emq_value_kind kind) {
    for (int i = 0; i < verb->value_count; i++) {
        if (verb->values[i] == kind) {
            return i;
        }
    }
    return -1;
}

/* Appends a word, with a space between words. */
static size_t append_word(char *out, size_t cap, size_t used, const char *word) {
    size_t length = strlen(word);
    size_t space = used > 0 ? 1 : 0;
    if (used + space + length >= cap) {
        return used;
    }
    if (space > 0) {
        out[used] = ' ';
    }
    memcpy(out + used + space, word, length + 1);
    return used + space + length;
}

size_t emq_verb_flag_words(char *out, size_t cap, const emq_verb *verb) {
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {
        {EMQ_FLAG_WRITE, "write"},       {EMQ_FLAG_READONLY, "readonly"},
        {EMQ_FLAG_DENY_OOM, "deny-oom"}, {EMQ_FLAG_DENY_SCRIPT, "deny-script"},
        {EMQ_FLAG_ADMIN, "admin"},       {EMQ_FLAG_FAST, "fast"},
        {EMQ_FLAG_BLOCKING, "blocking"}, {EMQ_FLAG_PUBSUB, "pubsub"},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((verb->flags & words[i].flag) != 0) {
            used = append_word(out, cap, used, words[i].word);
        }
    }
    return used;
}

size_t emq_verb_category_words(char *out, size_t cap, const emq_verb *verb) {
    size_t used = 0;
    if ((verb->flags & EMQ_FLAG_WRITE) != 0) {
        used = append_word(out, cap, used, "write");
    }
    if ((verb->flags & EMQ_FLAG_READONLY) != 0) {
        used = append_word(out, cap, used, "read");
    }
    if ((verb->flags & EMQ_FLAG_ADMIN) != 0) {
        used = append_word(out, cap, used, "admin");
    }
    if ((verb->flags & (EMQ_FLAG_ADMIN | EMQ_FLAG_DANGEROUS)) != 0) {
        used = append_word(out, cap, used, "dangerous");
    }
    if ((verb->flags & EMQ_FLAG_BLOCKING) != 0) {
        used = append_word(out, cap, used, "blocking");
    }
    if ((verb->flags & EMQ_FLAG_PUBSUB) != 0) {
        used = append_word(out, cap, used, "pubsub");
    }
    used = append_word(out, cap, used, (verb->flags & EMQ_FLAG_FAST) != 0 ? "fast" : "slow");
    return append_word(out, cap, used, EMQ_MODULE_NAME);
}
