/* SPDX-License-Identifier: Apache-2.0 */
/* Keys follow from their kinds, numbers are the least allowed, a text is any word. */
#include "verb_line.h"

#include <stdio.h>

#include "keys.h"

static int hangs_on_a_job(emq_key_kind kind) {
    return kind >= EMQ_KEY_JOB && kind <= EMQ_KEY_UNSUCCESSFUL;
}

static void add_key(command *line, emq_key_kind kind, const char *queue) {
    char key[EMQ_KEY_MAX + 1];
    const char *name = hangs_on_a_job(kind) ? VERB_LINE_ID : "name";
    assert_true(emq_key_write(key, sizeof(key), kind, emq_slice_of(queue), emq_slice_of(name)) > 0);
    command_add(line, key);
}

static void add_value(command *line, emq_value_kind kind) {
    char number[32];
    const emq_value_facts *facts = emq_value_get_facts(kind);
    (void)snprintf(number, sizeof(number), "%lld", (long long)facts->min);
    if (kind == EMQ_VALUE_ID) {
        command_add(line, VERB_LINE_ID);
    } else if (kind == EMQ_VALUE_TOKEN) {
        command_add(line, "1");
    } else if (kind == EMQ_VALUE_MODE) {
        command_add(line, EMQ_MODE_AT);
    } else {
        command_add(line, facts->is_integer ? number : "text");
    }
}

void verb_line(command *line, const emq_verb *verb, const char *queue) {
    char count[16];
    (void)snprintf(count, sizeof(count), "%d", verb->key_count);
    command_add(line, verb->name);
    if (emq_verb_counts_keys(verb)) {
        command_add(line, count);
    }
    for (int i = 0; i < verb->key_count; i++) {
        add_key(line, verb->keys[i], queue);
    }
    for (int i = 0; i < verb->least_values; i++) {
        add_value(line, verb->values[i]);
    }
}
