/* SPDX-License-Identifier: Apache-2.0 */
/* Right lines by kinds of keys and values; wrong ones by counts, keys, numbers and bytes. */
#include "fuzz_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"

const char *const job_ids[JOB_IDS] = {"JOB0KHTOWnGLu1", "JOB0KHTOWnGLu2", "JOB0KHTOWnGLu3",
                                      "JOB0KHTOWnGLu4", "JOB0KHTOWnGLu5", "JOB"};

static const char *const event_ids[] = {"EVT0KHTOWnGLu1", "EVT0NgWEfAEJfs", "EVTAzL8n0Y58m7"};

uint64_t dice_next(dice *d) {
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return d->state * UINT64_C(0x2545F4914F6CDD1D);
}

unsigned dice_below(dice *d, unsigned bound) {
    return (unsigned)((dice_next(d) >> 33) % bound);
}

int dice_one_in(dice *d, unsigned n) {
    return dice_below(d, n) == 0;
}

static void add_payload(command *out, dice *d) {
    size_t sizes[] = {0, 1, 10, 64, 65, 300, 70000};
    size_t n = dice_one_in(d, 200) ? (size_t)1 << 20 : DICE_PICK(d, sizes);
    char *bytes = malloc(n + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(i < 64 ? dice_next(d) : 'p');
    }
    command_add_bytes(out, bytes, n);
    free(bytes);
}

/* A number in its range: rather a small one, at times one of the ends. */
static void add_number(command *out, dice *d, const emq_value_facts *facts, int64_t usual_max) {
    int64_t max = facts->max < usual_max ? facts->max : usual_max;
    int64_t number = facts->min + (int64_t)(dice_next(d) >> 8) % (max - facts->min + 1);
    char text[32];
    (void)snprintf(text, sizeof(text), "%lld", (long long)number);
    command_add(out, text);
}

static void add_value(command *out, dice *d, emq_value_kind kind, const char *id,
                      const char *token) {
    static const char *const tokens[] = {"0", "1", "1", "1", "2", "2", "3", "4"};
    static const char *const leases[] = {"1", "1", "60000", "60000", "2147483647"};
    static const char *const words[] = {"", "done", "a\\x00b", "\\xff\\xfe", "x\\x22y", "group"};
    static const char *const entries[] = {"0-0", "1-1", "18446744073709551615-0"};
    const emq_value_facts *facts = emq_value_get_facts(kind);
    switch (kind) {
    case EMQ_VALUE_ID:
        command_add(out, id);
        break;
    case EMQ_VALUE_RECORD_ID:
        command_add(out, DICE_PICK(d, event_ids));
        break;
    case EMQ_VALUE_PAYLOAD:
    case EMQ_VALUE_ERROR:
        add_payload(out, d);
        break;
    case EMQ_VALUE_TOKEN:
        command_add(out, token != NULL && !dice_one_in(d, 6) ? token : DICE_PICK(d, tokens));
        break;
    case EMQ_VALUE_LEASE_MS:
        command_add(out, DICE_PICK(d, leases));
        break;
    case EMQ_VALUE_MODE:
        command_add(out, dice_one_in(d, 2) ? EMQ_MODE_IN : EMQ_MODE_AT);
        break;
    case EMQ_VALUE_ENTRY_ID:
        command_add(out, DICE_PICK(d, entries));
        break;
    case EMQ_VALUE_LIMIT_WORD:
        command_add(out, EMQ_WORD_LIMIT);
        break;
    default:
        if (facts->is_integer) {
            add_number(out, d, facts, kind == EMQ_VALUE_OFFSET ? 300 : 5);
        } else {
            command_add(out, DICE_PICK(d, words));
        }
    }
}

/* Names of fields must differ within a message. */
static void add_field(command *out, int index) {
    char name[32];
    (void)snprintf(name, sizeof(name), "field%d", index);
    command_add(out, name);
}

static void add_values(command *out, dice *d, const emq_verb *verb, const char *first_id,
                       const char *token) {
    int count = verb->least_values;
    if (verb->repeated > 0) {
        count += verb->repeated * (int)dice_below(d, 5);
    } else if (dice_one_in(d, 2)) {
        count = verb->value_count;
    }
    int alone = verb->value_count - verb->repeated;
    for (int i = 0; i < count; i++) {
        int at =
            i < verb->value_count || verb->repeated == 0 ? i : alone + (i - alone) % verb->repeated;
        if (verb->values[at] == EMQ_VALUE_FIELD) {
            add_field(out, i);
        } else {
            add_value(out, d, verb->values[at],
                      i < alone + verb->repeated ? first_id : job_ids[dice_below(d, JOB_IDS)],
                      i < alone + verb->repeated ? token : NULL);
        }
    }
}

void fuzz_line(command *out, dice *d, const emq_verb *verb, const char *queue,
               const held_job *held) {
    char key[EMQ_KEY_MAX + 1];
    int is_held = held->id[0] != '\0' && !dice_one_in(d, 3);
    const char *id = is_held ? held->id : job_ids[dice_below(d, JOB_IDS)];
    command_add(out, verb->name);
    if (emq_verb_counts_keys(verb)) {
        (void)snprintf(key, sizeof(key), "%d", verb->key_count);
        command_add(out, key);
    }
    for (int i = 0; i < verb->key_count; i++) {
        if (emq_verb_counts_keys(verb)) {
            emq_key_kind kind = verb->keys[i];
            int is_stream = kind == EMQ_KEY_STREAM || kind == EMQ_KEY_STREAM_FAILURES;
            (void)emq_key_write(key, sizeof(key), kind, emq_slice_of(queue),
                                emq_slice_of(is_stream ? "audit" : id));
        } else {
            (void)snprintf(key, sizeof(key), BITMAPS "%u", dice_below(d, 3));
        }
        command_add(out, key);
    }
    add_values(out, d, verb, id, is_held ? held->token : NULL);
}

/* ---- mutations ---- */

static const char *const odd_words[] = {
    "",
    "0",
    "1",
    "-1",
    "+1",
    "01",
    " 1",
    "1 ",
    "1e3",
    "0x1",
    "1.0",
    "10000",
    "10001",
    "1001",
    "3600001",
    "2147483648",
    "-0",
    "9007199254740992",
    "x",
    "JOB",
    "JO",
    "USR0KHTOWnGLuC",
    "JOB:logs",
    "JOB{",
    "JOB}",
    "JOB\\x00",
    "JOB\\x0d\\x0a",
    "EVTzzzzzzzzzzz",
    "{emq}:version",
    "emq:{rough}:",
    "\\x00",
    "\\xff",
    "at",
    "in",
    "LIMIT",
    "force",
    "4294967296",
    "99999999999999999999",
    "-9223372036854775808",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "emq:{emq}:pending",
    "emq:{}:",
    "emq:{rough",
    "emq:{rough}:job:JOB:logs",
    "emq:{rou\\x00gh}:pending",
    "emq:{clean}:pending",
};

static void put_bytes(command *line, int at, const char *bytes, size_t n) {
    free(line->argv[at]);
    line->argv[at] = malloc(n + 1);
    assert_non_null(line->argv[at]);
    memcpy(line->argv[at], bytes, n);
    line->argv[at][n] = '\0';
    line->lengths[at] = n;
}

static void put_word(command *line, int at, const char *word) {
    command one = {0};
    command_add(&one, word);
    put_bytes(line, at, one.argv[0], one.lengths[0]);
    command_free(&one);
}

static void put_long(command *line, dice *d, int at) {
    const size_t sizes[] = {128, 129, 200, 300, 70000, (size_t)1 << 20};
    size_t n = DICE_PICK(d, sizes);
    char *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, 'n', n);
    memcpy(bytes, "JOB", 3);
    put_bytes(line, at, bytes, n);
    free(bytes);
}

static void change_byte(command *line, dice *d, int at) {
    if (line->lengths[at] > 0) {
        line->argv[at][dice_below(d, (unsigned)line->lengths[at])] = (char)dice_next(d);
    }
}

static void remove_word(command *line, int at) {
    free(line->argv[at]);
    for (int i = at; i + 1 < line->argc; i++) {
        line->argv[i] = line->argv[i + 1];
        line->lengths[i] = line->lengths[i + 1];
    }
    line->argc--;
}

static void swap_words(command *line, int a, int b) {
    char *word = line->argv[a];
    size_t length = line->lengths[a];
    line->argv[a] = line->argv[b];
    line->lengths[a] = line->lengths[b];
    line->argv[b] = word;
    line->lengths[b] = length;
}

void fuzz_key(char out[EMQ_KEY_MAX + 1], dice *d, const char *queue) {
    emq_key_kind kind = (emq_key_kind)dice_below(d, EMQ_KEY_FENCE);
    (void)emq_key_write(
        out, EMQ_KEY_MAX + 1, kind, emq_slice_of(queue),
        emq_slice_of(dice_one_in(d, 8) ? "audit" : job_ids[dice_below(d, JOB_IDS)]));
}

static void add_many(command *line, dice *d) {
    for (int i = 0; i < 2002; i++) {
        command_add(line, i % 2 == 0 ? job_ids[dice_below(d, JOB_IDS)] : "1");
    }
}

static void mutate_once(command *line, dice *d) {
    char key[EMQ_KEY_MAX + 1];
    int at = line->argc == 1 ? 0 : 1 + (int)dice_below(d, (unsigned)line->argc - 1);
    if (at == 0 || dice_one_in(d, 60)) {
        command_add(line, DICE_PICK(d, odd_words));
        return;
    }
    switch (dice_below(d, 16)) {
    case 0:
        remove_word(line, at);
        break;
    case 1:
        command_add(line, DICE_PICK(d, odd_words));
        break;
    case 2:
        swap_words(line, at, 1 + (int)dice_below(d, (unsigned)line->argc - 1));
        break;
    case 3:
    case 4:
        fuzz_key(key, d, ROUGH);
        put_word(line, at, key);
        break;
    case 5:
    case 6:
        change_byte(line, d, at);
        break;
    case 7:
        put_long(line, d, at);
        break;
    case 8:
        if (dice_one_in(d, 8)) {
            add_many(line, d);
        }
        break;
    case 9:
        put_word(line, 1, DICE_PICK(d, odd_words));
        break;
    default:
        put_word(line, at, DICE_PICK(d, odd_words));
    }
}

/* A bitmap of many megabytes would be digested at every call: its far end is tested elsewhere. */
static void keep_offsets_small(command *line) {
    const unsigned long long small = 100000;
    for (int i = 1; i < line->argc; i++) {
        unsigned long long offset = strtoull(line->argv[i], NULL, 10);
        if (offset > small && offset <= UINT32_MAX) {
            put_word(line, i, "4294967296");
        }
    }
}

void fuzz_mutate(command *line, dice *d, const emq_verb *verb) {
    unsigned times = 1 + dice_below(d, 3);
    for (unsigned i = 0; i < times; i++) {
        mutate_once(line, d);
    }
    /* a plain key has no layout: what writes bits must not reach a queue that only verbs touch */
    if (verb->family == EMQ_FAMILY_TRA && line->argc > 1 &&
        strstr(line->argv[1], "{" CLEAN "}") != NULL) {
        put_word(line, 1, BITMAPS "0");
    }
    if (verb->family == EMQ_FAMILY_TRA) {
        keep_offsets_small(line);
    }
}
