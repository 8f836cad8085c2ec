/* SPDX-License-Identifier: Apache-2.0 */
/* The verb table beside the protocol: arity, keys, flags, categories and tokens of each row. */
#include "verbs.h"

#include <string.h>

#include "cmocka_all.h"

typedef struct row {
    const char *name;
    const char *word;
    int arity;
    int key_count;
    int value_count;
    const char *flags;
    const char *categories;
    const char *capabilities; /* joined by spaces */
} row;

static const row rows[] = {
    {"EMQ.VERSION", "VERSION", 1, 0, 0, "readonly fast", "read fast emq", ""},
    {"EMQ.INSTALL", "INSTALL", 3, 1, 0, "write deny-oom deny-script admin",
     "write admin dangerous slow emq", ""},
    {"EMQ.ENQUEUE", "ENQUEUE", 6, 2, 2, "write deny-oom fast", "write fast emq", "enqueue"},
    {"EMQ.CLAIM", "CLAIM", 6, 3, 1, "write deny-oom fast", "write fast emq", "claim claim.pause"},
    {"EMQ.COMPLETE", "COMPLETE", 7, 3, 2, "write fast", "write fast emq", "complete"},
    {"EMQ.SCHEDULE", "SCHEDULE", 8, 2, 4, "write deny-oom fast", "write fast emq", "schedule"},
    {"EMQ.EXTEND", "EXTEND", 7, 2, 3, "write fast", "write fast emq", "extend"},
    {"EMQ.EXTENDS", "EXTENDS", -7, 2, 3, "write", "write slow emq", "extends"},
    {"EMQ.PROMOTE", "PROMOTE", 6, 3, 1, "write", "write slow emq", "promote"},
    {"EMQ.RESCHEDULE", "RESCHEDULE", 7, 2, 3, "write fast", "write fast emq", "reschedule"},
    {"EMQ.DELAY", "DELAY", 9, 3, 4, "write fast", "write fast emq", "delay"},
    {"EMQ.FAIL", "FAIL", 12, 5, 5, "write fast", "write fast emq", "fail"},
    {"EMQ.REPROCESS", "REPROCESS", 6, 3, 1, "write fast", "write fast emq", "reprocess"},
    {"EMQ.REQUEUE", "REQUEUE", 7, 3, 2, "write fast", "write fast emq", "requeue"},
    {"EMQ.STALLED.CHECK", "STALLED.CHECK", 8, 4, 2, "write", "write slow emq", "stalled.check"},
    {"EMQ.ENQUEUES", "ENQUEUES", -6, 2, 2, "write deny-oom", "write slow emq", "enqueues"},
    {"EMQ.CLAIMS", "CLAIMS", -7, 3, 3, "write blocking", "write blocking slow emq", "claims"},
    {"EMQ.COMPLETES", "COMPLETES", -6, 2, 2, "write", "write slow emq", "completes"},
    {"EMQ.PAUSE", "PAUSE", 4, 2, 0, "write fast", "write dangerous fast emq", "pause"},
    {"EMQ.RESUME", "RESUME", 6, 4, 0, "write fast", "write dangerous fast emq", "resume"},
    {"EMQ.APPEND", "APPEND", -4, 1, 3, "write deny-oom fast", "write fast emq", "append"},
    {"EMQ.PUBLISH", "PUBLISH", -5, 1, 4, "write deny-oom fast pubsub", "write pubsub fast emq",
     "publish"},
    {"EMQ.FAILURES.INCR", "FAILURES.INCR", 5, 1, 2, "write deny-oom fast", "write fast emq",
     "failures.incr"},
    {"TRA.INFO", "INFO", 1, 0, 0, "readonly fast", "read fast emq", ""},
    {"TRA.COMMANDS", "COMMANDS", 1, 0, 0, "readonly fast", "read fast emq", ""},
    {"TRA.BITSET", "BITSET", -3, 1, 1, "write deny-oom", "write slow emq", ""},
    {"TRA.BITCLEAR", "BITCLEAR", -3, 1, 1, "write", "write slow emq", ""},
    {"TRA.BITGET", "BITGET", -3, 1, 1, "readonly", "read slow emq", ""},
    {"TRA.BITSCAN", "BITSCAN", -4, 1, 4, "readonly", "read slow emq", ""},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const emq_verb *find(const char *name) {
    for (int i = 0; i < EMQ_VERBS; i++) {
        if (strcmp(emq_verbs[i].name, name) == 0) {
            return &emq_verbs[i];
        }
    }
    fail_msg("no verb %s", name);
    return NULL;
}

static void join_capabilities(char *out, size_t cap, const emq_verb *verb) {
    out[0] = '\0';
    for (int i = 0; i < EMQ_VERB_CAPABILITIES_MAX && verb->capabilities[i] != NULL; i++) {
        assert_true(strlen(out) + strlen(verb->capabilities[i]) + 2 < cap);
        (void)strcat(out, i > 0 ? " " : "");
        (void)strcat(out, verb->capabilities[i]);
    }
}

static void each_row_is_the_protocols(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const emq_verb *verb = find(rows[i].name);
        char words[EMQ_WORDS_MAX];
        assert_string_equal(emq_verb_word(verb), rows[i].word);
        assert_int_equal(emq_verb_arity(verb), rows[i].arity);
        assert_int_equal(verb->key_count, rows[i].key_count);
        assert_int_equal(verb->value_count, rows[i].value_count);
        assert_int_equal(emq_verb_flag_words(words, sizeof(words), verb), strlen(rows[i].flags));
        assert_string_equal(words, rows[i].flags);
        (void)emq_verb_category_words(words, sizeof(words), verb);
        assert_string_equal(words, rows[i].categories);
        join_capabilities(words, sizeof(words), verb);
        assert_string_equal(words, rows[i].capabilities);
        assert_string_equal(verb->since, "0.1.0");
        assert_true(strlen(verb->summary) > 10 && strlen(verb->complexity) > 3);
    }
}

static void expect_counts(const char *name, const char *words, const int *taken, int count) {
    const emq_verb *verb = find(name);
    char text[EMQ_WORDS_MAX];
    emq_verb_value_words(text, sizeof(text), verb);
    assert_string_equal(text, words);
    for (int values = -3; values < 9; values++) {
        int want = 0;
        for (int i = 0; i < count; i++) {
            want |= taken[i] == values;
        }
        assert_int_equal(emq_verb_takes(verb, values), want);
    }
}

static void values_are_counted(void **state) {
    (void)state;
    expect_counts("EMQ.ENQUEUE", "2", (const int[]){2}, 1);
    expect_counts("EMQ.PAUSE", "0", (const int[]){0}, 1);
    expect_counts("EMQ.CLAIMS", "2 or 3", (const int[]){2, 3}, 2);
    expect_counts("EMQ.EXTENDS", "1 + 2n", (const int[]){3, 5, 7}, 3);
    expect_counts("EMQ.COMPLETES", "2n", (const int[]){2, 4, 6, 8}, 4);
}

static void keys_stand_where_the_protocol_says(void **state) {
    (void)state;
    const emq_verb *enqueue = find("EMQ.ENQUEUE");
    const emq_verb *claim = find("EMQ.CLAIM");
    const emq_verb *complete = find("EMQ.COMPLETE");
    assert_int_equal(find("EMQ.INSTALL")->keys[0], EMQ_KEY_FENCE);
    assert_int_equal(enqueue->keys[0], EMQ_KEY_JOB);
    assert_int_equal(enqueue->keys[1], EMQ_KEY_PENDING);
    assert_int_equal(claim->keys[0], EMQ_KEY_PENDING);
    assert_int_equal(claim->keys[1], EMQ_KEY_ACTIVE);
    assert_int_equal(claim->keys[2], EMQ_KEY_BASE);
    assert_int_equal(complete->keys[0], EMQ_KEY_ACTIVE);
    assert_int_equal(complete->keys[1], EMQ_KEY_JOB);
    assert_int_equal(complete->keys[2], EMQ_KEY_BASE);
    assert_int_equal(emq_verb_find_value(enqueue, EMQ_VALUE_ID), 0);
    assert_int_equal(emq_verb_find_value(enqueue, EMQ_VALUE_PAYLOAD), 1);
    assert_int_equal(emq_verb_find_value(claim, EMQ_VALUE_LEASE_MS), 0);
    assert_int_equal(emq_verb_find_value(claim, EMQ_VALUE_ID), -1);
    assert_int_equal(emq_verb_find_value(complete, EMQ_VALUE_ID), 0);
    assert_int_equal(emq_verb_find_value(complete, EMQ_VALUE_TOKEN), 1);
}

typedef struct places {
    const char *name;
    emq_key_kind keys[EMQ_VERB_KEYS_MAX];
    emq_value_kind values[EMQ_VERB_VALUES_MAX];
} places;

static void keys_and_values_of_the_job_core(void **state) {
    static const places table[] = {
        {"EMQ.SCHEDULE",
         {EMQ_KEY_JOB, EMQ_KEY_SCHEDULE},
         {EMQ_VALUE_ID, EMQ_VALUE_PAYLOAD, EMQ_VALUE_MODE, EMQ_VALUE_WHEN}},
        {"EMQ.EXTEND",
         {EMQ_KEY_ACTIVE, EMQ_KEY_JOB},
         {EMQ_VALUE_ID, EMQ_VALUE_TOKEN, EMQ_VALUE_LEASE_MS}},
        {"EMQ.EXTENDS",
         {EMQ_KEY_ACTIVE, EMQ_KEY_BASE},
         {EMQ_VALUE_LEASE_MS, EMQ_VALUE_ID, EMQ_VALUE_TOKEN}},
        {"EMQ.PROMOTE", {EMQ_KEY_SCHEDULE, EMQ_KEY_PENDING, EMQ_KEY_BASE}, {EMQ_VALUE_LIMIT}},
        {"EMQ.RESCHEDULE",
         {EMQ_KEY_JOB, EMQ_KEY_SCHEDULE},
         {EMQ_VALUE_ID, EMQ_VALUE_MODE, EMQ_VALUE_WHEN}},
        {"EMQ.DELAY",
         {EMQ_KEY_JOB, EMQ_KEY_ACTIVE, EMQ_KEY_SCHEDULE},
         {EMQ_VALUE_ID, EMQ_VALUE_TOKEN, EMQ_VALUE_MODE, EMQ_VALUE_WHEN}},
        {"EMQ.FAIL",
         {EMQ_KEY_ACTIVE, EMQ_KEY_SCHEDULE, EMQ_KEY_DEAD, EMQ_KEY_JOB, EMQ_KEY_BASE},
         {EMQ_VALUE_ID, EMQ_VALUE_TOKEN, EMQ_VALUE_DELAY_MS, EMQ_VALUE_MAX_FAILURES,
          EMQ_VALUE_ERROR}},
        {"EMQ.REPROCESS", {EMQ_KEY_JOB, EMQ_KEY_DEAD, EMQ_KEY_PENDING}, {EMQ_VALUE_ID}},
        {"EMQ.REQUEUE",
         {EMQ_KEY_ACTIVE, EMQ_KEY_PENDING, EMQ_KEY_JOB},
         {EMQ_VALUE_ID, EMQ_VALUE_TOKEN}},
        {"EMQ.STALLED.CHECK",
         {EMQ_KEY_ACTIVE, EMQ_KEY_PENDING, EMQ_KEY_DEAD, EMQ_KEY_BASE},
         {EMQ_VALUE_MAX_STALLED, EMQ_VALUE_LIMIT}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const emq_verb *verb = find(table[i].name);
        for (int key = 0; key < verb->key_count; key++) {
            assert_int_equal(verb->keys[key], table[i].keys[key]);
        }
        for (int value = 0; value < verb->value_count; value++) {
            assert_int_equal(verb->values[value], table[i].values[value]);
        }
        /* pairs of id and token repeat in a batch, and nothing else does */
        assert_int_equal(verb->repeated, strcmp(verb->name, "EMQ.EXTENDS") == 0 ? 2 : 0);
    }
}

static void keys_and_values_of_the_bus(void **state) {
    static const places table[] = {
        {"EMQ.APPEND",
         {EMQ_KEY_STREAM},
         {EMQ_VALUE_RECORD_ID, EMQ_VALUE_FIELD, EMQ_VALUE_FIELD_VALUE}},
        {"EMQ.PUBLISH",
         {EMQ_KEY_BASE},
         {EMQ_VALUE_EVENT, EMQ_VALUE_EVENT_JOB, EMQ_VALUE_FIELD, EMQ_VALUE_FIELD_VALUE}},
        {"EMQ.FAILURES.INCR", {EMQ_KEY_STREAM_FAILURES}, {EMQ_VALUE_GROUP, EMQ_VALUE_ENTRY_ID}},
    };
    static const char *const shapes[] = {"1 + 2n", "2 + 2n", "2"};
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const emq_verb *verb = find(table[i].name);
        char words[EMQ_WORDS_MAX];
        assert_int_equal(verb->family, EMQ_FAMILY_BUS);
        assert_int_equal(verb->keys[0], table[i].keys[0]);
        for (int value = 0; value < verb->value_count; value++) {
            assert_int_equal(verb->values[value], table[i].values[value]);
        }
        emq_verb_value_words(words, sizeof(words), verb);
        assert_string_equal(words, shapes[i]);
        /* no value of theirs is part of a key */
        assert_int_equal(emq_verb_find_value(verb, EMQ_VALUE_ID), -1);
    }
}

/* TRA's keys are plain: no key count stands before them, and they have any name. */
static void keys_and_values_of_tra(void **state) {
    const emq_verb *scan = find("TRA.BITSCAN");
    char words[EMQ_WORDS_MAX];
    (void)state;
    for (int i = 0; i < EMQ_VERBS; i++) {
        int is_tra = strncmp(emq_verbs[i].name, "TRA.", 4) == 0;
        assert_int_equal(emq_verbs[i].family == EMQ_FAMILY_TRA, is_tra);
        assert_int_equal(emq_verb_counts_keys(&emq_verbs[i]),
                         !is_tra && emq_verbs[i].key_count > 0);
    }
    assert_string_equal(emq_verb_key_word(scan, 0), "key");
    assert_string_equal(emq_verb_key_pattern(scan, 0), "key");
    assert_string_equal(emq_verb_key_word(find("EMQ.CLAIM"), 2), "base");
    assert_string_equal(emq_verb_key_pattern(find("EMQ.CLAIM"), 2), "emq:{q}:");
    emq_verb_value_words(words, sizeof(words), scan);
    assert_string_equal(words, "2 or 4");
    assert_int_equal(emq_verb_takes(scan, 2), 1);
    assert_int_equal(emq_verb_takes(scan, 3), 0);
    assert_int_equal(emq_verb_takes(scan, 4), 1);
    assert_int_equal(emq_verb_takes(scan, 5), 0);
    assert_int_equal(emq_verb_takes(find("TRA.BITGET"), 1000), 1);
    assert_string_equal(emq_verb_family_word(scan), "tra");
    assert_string_equal(emq_verb_family_word(find("EMQ.CLAIM")), "core");
    assert_string_equal(emq_verb_family_word(find("EMQ.INSTALL")), "admin");
    assert_string_equal(emq_verb_family_word(find("EMQ.PUBLISH")), "bus");
}

static void the_job_core_has_exactly_its_tokens(void **state) {
    const char *const expected[] = {
        "enqueue", "schedule",   "claim", "claim.pause", "extend",    "extends", "complete",
        "promote", "reschedule", "delay", "fail",        "reprocess", "requeue", "stalled.check",
    };
    size_t count = 0;
    (void)state;
    for (int i = 0; i < EMQ_VERBS; i++) {
        for (int j = 0;
             emq_verbs[i].family == EMQ_FAMILY_CORE && emq_verbs[i].capabilities[j] != NULL; j++) {
            int found = 0;
            for (size_t k = 0; k < sizeof(expected) / sizeof(expected[0]); k++) {
                found += strcmp(expected[k], emq_verbs[i].capabilities[j]) == 0;
            }
            assert_int_equal(found, 1);
            count++;
        }
    }
    assert_int_equal(count, sizeof(expected) / sizeof(expected[0]));
}

static void nothing_stands_twice(void **state) {
    const char *tokens[EMQ_VERBS * EMQ_VERB_CAPABILITIES_MAX];
    int count = 0;
    (void)state;
    for (int i = 0; i < EMQ_VERBS; i++) {
        for (int j = i + 1; j < EMQ_VERBS; j++) {
            assert_string_not_equal(emq_verbs[i].name, emq_verbs[j].name);
            assert_string_not_equal(emq_verbs[i].summary, emq_verbs[j].summary);
        }
        for (int j = 0; emq_verbs[i].capabilities[j] != NULL; j++) {
            for (int k = 0; k < count; k++) {
                assert_string_not_equal(tokens[k], emq_verbs[i].capabilities[j]);
            }
            tokens[count++] = emq_verbs[i].capabilities[j];
        }
    }
}

/* Rules that hold for every row, also for those that are added. */
static void every_row_keeps_the_rules(void **state) {
    (void)state;
    for (int i = 0; i < EMQ_VERBS; i++) {
        const emq_verb *verb = &emq_verbs[i];
        int is_write = (verb->flags & EMQ_FLAG_WRITE) != 0;
        int is_read = (verb->flags & EMQ_FLAG_READONLY) != 0;
        int arity = emq_verb_arity(verb);
        assert_int_equal(is_write + is_read, 1);
        /* with EVAL's key-spec the server reads argument 1: an arity of -1 would crash it */
        assert_true(verb->key_count == 0 || arity >= 3 || arity <= -2);
        assert_null(verb->capabilities[EMQ_VERB_CAPABILITIES_MAX - 1]);
        /* a client that waits is not asked about maxmemory when it looks again */
        assert_true((verb->flags & EMQ_FLAG_BLOCKING) == 0 ||
                    (verb->flags & EMQ_FLAG_DENY_OOM) == 0);
        /* the queue is read from the first key, so the base may stand only behind it */
        assert_true(verb->key_count < 2 || verb->keys[0] != EMQ_KEY_BASE);
    }
}

static void words_never_pass_their_room(void **state) {
    (void)state;
    for (size_t cap = 1; cap < EMQ_WORDS_MAX; cap++) {
        char words[EMQ_WORDS_MAX];
        memset(words, '#', sizeof(words));
        words[0] = '\0';
        (void)emq_verb_flag_words(words, cap, find("EMQ.INSTALL"));
        assert_int_equal(words[cap], '#');
        assert_non_null(memchr(words, '\0', cap));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_the_protocols),
        cmocka_unit_test(values_are_counted),
        cmocka_unit_test(keys_stand_where_the_protocol_says),
        cmocka_unit_test(keys_and_values_of_the_job_core),
        cmocka_unit_test(keys_and_values_of_the_bus),
        cmocka_unit_test(keys_and_values_of_tra),
        cmocka_unit_test(the_job_core_has_exactly_its_tokens),
        cmocka_unit_test(nothing_stands_twice),
        cmocka_unit_test(every_row_keeps_the_rules),
        cmocka_unit_test(words_never_pass_their_room),
    };
    return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}
