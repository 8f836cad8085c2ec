/* SPDX-License-Identifier: Apache-2.0 */
/* Right calls from the kinds of a row, and what can be wrong with a call. */
#include "generator.h"

#include <emq/id.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "flaw.h"
#include "keys.h"
#include "wire.h"

#define MEGABYTE ((size_t)1024 * 1024)
#define WORD_SHOWN 120
#define WORDS_SHOWN 40

/* What a call may cost: a wait, and the growth of a string. */
#define WAIT_MAX_MS 10
#define OFFSET_MAX 65535

const char *fuzz_job(unsigned number) {
    static const char *const ids[FUZZ_JOBS] = {"JOB0KHTOWnGLu1", "JOB0KHTOWnGLu2", "JOB0KHTOWnGLu3",
                                               "JOB0KHTOWnGLu4", "JOB0KHTOWnGLu5", "JOB0KHTOWnGLu6",
                                               "JOB0KHTOWnGLu7"};
    return ids[number];
}

const char *fuzz_name(unsigned number) {
    static const char *const names[FUZZ_NAMES] = {"one", "two"};
    return names[number];
}

void fuzz_key(char out[EMQ_KEY_MAX + 1], emq_key_kind kind, const char *queue, const char *id,
              const char *name) {
    int is_of_a_job = kind >= EMQ_KEY_JOB && kind <= EMQ_KEY_UNSUCCESSFUL;
    assert_true(emq_key_write(out, EMQ_KEY_MAX + 1, kind, emq_slice_of(queue),
                              emq_slice_of(is_of_a_job ? id : name)) > 0);
}

void generator_init(generator *g, uint64_t seed) {
    *g = (generator){.records = 0};
    draw_init(&g->d, seed);
    g->is_calm = draw_one_in(&g->d, 2);
}

static long long *tokens_of(generator *g, const char *queue) {
    return g->tokens[strcmp(queue, FUZZ_CLEAN) != 0];
}

void generator_learn(generator *g, const char *queue, const char *id, long long token) {
    for (unsigned job = 0; job < FUZZ_JOBS; job++) {
        if (strcmp(id, fuzz_job(job)) == 0) {
            tokens_of(g, queue)[job] = token;
        }
    }
}

/* ---- right calls ---- */

static const char *number_text(char out[32], unsigned long long number) {
    (void)snprintf(out, 32, "%llu", number);
    return out;
}

/* Mostly a record that is newer than all before. */
static void add_record_id(generator *g, command *words) {
    const uint64_t first = UINT64_C(80000000000) << 22;
    emq_id id;
    g->records += !draw_one_in(&g->d, 4);
    assert_int_equal(emq_id_from_snowflake(&id, EMQ_NAMESPACE_EVENT, first + g->records / 2), 0);
    command_add(words, id.text);
}

static const char *pick_number(generator *g, emq_value_kind kind, char out[32]) {
    static const char *const leases[] = {"1", "1", "20", "60000", "60000", "2147483647"};
    static const char *const times[] = {"0", "0", "0", "1", "1", "20", "3600000", "315360000000"};
    static const char *const limits[] = {"1", "2", "10", "10000"};
    switch (kind) {
    case EMQ_VALUE_LEASE_MS:
        return DRAW(&g->d, leases);
    case EMQ_VALUE_WHEN:
    case EMQ_VALUE_AT_MS:
    case EMQ_VALUE_IN_MS:
    case EMQ_VALUE_DELAY_MS:
        return DRAW(&g->d, times);
    case EMQ_VALUE_MAX_FAILURES:
    case EMQ_VALUE_MAX_STALLED:
        return draw_one_in(&g->d, 2) ? "1" : "3";
    case EMQ_VALUE_LIMIT:
        return DRAW(&g->d, limits);
    default:
        /* a small one of its range */
        return number_text(out, (unsigned long long)emq_value_get_facts(kind)->min +
                                    draw_below(&g->d, 4));
    }
}

static void add_text(generator *g, command *words) {
    static const char *const texts[] = {"text", "", "\\x00\\xff\\x0a", "{\"a\":\"b\"}", "1"};
    command_add(words, DRAW(&g->d, texts));
}

/* A token that is known is used up sooner or later: the next claim gives another one. */
static void add_token(generator *g, fuzz_line *line, const char *id) {
    static const char *const guesses[] = {"1", "1", "1", "1", "2", "2", "3", "0"};
    char text[32];
    long long *tokens = tokens_of(g, line->queue);
    for (unsigned job = 0; job < FUZZ_JOBS; job++) {
        if (tokens[job] > 0 && strcmp(id, fuzz_job(job)) == 0 && !draw_one_in(&g->d, 8)) {
            command_add(&line->words, number_text(text, (unsigned long long)tokens[job]));
            tokens[job] = draw_one_in(&g->d, 2) ? tokens[job] : 0;
            return;
        }
    }
    command_add(&line->words, DRAW(&g->d, guesses));
}

/* A kind that has no case is a small number or a text. */
static void add_value(generator *g, fuzz_line *line, emq_value_kind kind, const char *id,
                      const char *name) {
    char text[32];
    command *words = &line->words;
    switch (kind) {
    case EMQ_VALUE_ID:
    case EMQ_VALUE_EVENT_JOB:
        command_add(words, id);
        break;
    case EMQ_VALUE_RECORD_ID:
        add_record_id(g, words);
        break;
    case EMQ_VALUE_TOKEN:
        add_token(g, line, id);
        break;
    case EMQ_VALUE_MODE:
        command_add(words, draw_one_in(&g->d, 2) ? EMQ_MODE_AT : EMQ_MODE_IN);
        break;
    case EMQ_VALUE_GROUP:
        command_add(words, name);
        break;
    case EMQ_VALUE_ENTRY_ID:
        command_add(words, draw_one_in(&g->d, 2) ? "1700000000000-0" : "0-18446744073709551615");
        break;
    case EMQ_VALUE_FIELD: /* distinct in one call */
        (void)snprintf(text, sizeof(text), "field%d", words->argc);
        command_add(words, text);
        break;
    case EMQ_VALUE_LIMIT_WORD:
        command_add(words, EMQ_WORD_LIMIT);
        break;
    default:
        if (emq_value_get_facts(kind)->is_integer) {
            command_add(words, pick_number(g, kind, text));
        } else {
            add_text(g, words);
        }
        break;
    }
}

/* The key count and the keys; a verb that counts no keys has plain ones. */
static void add_keys(generator *g, fuzz_line *line, const char *id, const char *name) {
    const emq_verb *verb = &emq_verbs[line->symbol];
    char text[EMQ_KEY_MAX + 1];
    command *words = &line->words;
    if (emq_verb_counts_keys(verb)) {
        command_add(words, number_text(text, (unsigned long long)verb->key_count));
    }
    line->first_key = words->argc;
    for (int i = 0; i < verb->key_count; i++) {
        if (emq_verb_counts_keys(verb)) {
            fuzz_key(text, verb->keys[i], line->queue, id, name);
        } else {
            (void)snprintf(text, sizeof(text), FUZZ_PLAIN "%s",
                           fuzz_name(draw_below(&g->d, FUZZ_NAMES)));
        }
        command_add(words, text);
    }
    line->keys_end = words->argc;
}

static int pick_value_count(generator *g, const emq_verb *verb) {
    if (verb->repeated > 0) {
        static const int groups[] = {0, 0, 1, 1, 2, 3, 5, 20};
        int more = DRAW(&g->d, groups);
        if (draw_one_in(&g->d, 400)) {
            more = EMQ_BATCH_MAX - 1 + (int)draw_below(&g->d, 3); /* around the largest batch */
        }
        return verb->least_values + more * verb->repeated;
    }
    return draw_one_in(&g->d, 2) ? verb->least_values : verb->value_count;
}

/* A verb that needs a token rather takes a job whose token is known. */
static const char *pick_job(generator *g, const fuzz_line *line) {
    unsigned job = draw_below(&g->d, FUZZ_JOBS);
    const long long *tokens = tokens_of(g, line->queue);
    if (emq_verb_find_value(&emq_verbs[line->symbol], EMQ_VALUE_TOKEN) >= 0) {
        for (unsigned i = 0; i < FUZZ_JOBS && tokens[job] == 0; i++) {
            job = (job + 1) % FUZZ_JOBS;
        }
    }
    return fuzz_job(job);
}

static void make_right_line(generator *g, fuzz_line *line) {
    const emq_verb *verb = &emq_verbs[line->symbol];
    const char *id = pick_job(g, line);
    const char *name = fuzz_name(draw_below(&g->d, FUZZ_NAMES));
    command_add(&line->words, verb->name);
    add_keys(g, line, id, name);
    int count = pick_value_count(g, verb);
    for (int i = 0; i < count; i++) {
        add_value(g, line, flaw_kind_at(verb, i), id, name);
        if (verb->repeated > 0) {
            id = pick_job(g, line);
        }
    }
}

/* ---- words ---- */

static void replace_word(command *words, int at, const char *bytes, size_t n) {
    char *copy = malloc(n + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    free(words->argv[at]);
    words->argv[at] = copy;
    words->lengths[at] = n;
}

/* Puts bytes in place of `length` of those in a word. */
static void splice(command *words, int at, size_t from, size_t length, const char *bytes,
                   size_t n) {
    size_t total = words->lengths[at] - length + n;
    char *word = malloc(total + 1);
    assert_non_null(word);
    memcpy(word, words->argv[at], from);
    memcpy(word + from, bytes, n);
    memcpy(word + from + n, words->argv[at] + from + length, total - from - n);
    replace_word(words, at, word, total);
    free(word);
}

static void replace_text(command *words, int at, const char *text) {
    replace_word(words, at, text, strlen(text));
}

static void swap_words(command *words, int a, int b) {
    char *bytes = words->argv[a];
    size_t length = words->lengths[a];
    words->argv[a] = words->argv[b];
    words->lengths[a] = words->lengths[b];
    words->argv[b] = bytes;
    words->lengths[b] = length;
}

static void move_last_to(command *words, int at) {
    for (int i = words->argc - 1; i > at; i--) {
        swap_words(words, i, i - 1);
    }
}

static void remove_word(command *words, int at) {
    for (int i = at; i + 1 < words->argc; i++) {
        swap_words(words, i, i + 1);
    }
    words->argc--;
    free(words->argv[words->argc]);
}

static int starts_with(const command *words, int at, const char *start) {
    size_t length = strlen(start);
    return words->lengths[at] >= length && memcmp(words->argv[at], start, length) == 0;
}

/* An index from `from` to `to` - 1, or -1. */
static int pick_word(generator *g, int from, int to) {
    return to > from ? from + (int)draw_below(&g->d, (unsigned)(to - from)) : -1;
}

static char random_byte(generator *g) {
    static const char odd[] = "\r\n{}:\xff\x80 *0%"; /* and the NUL at its end */
    if (draw_one_in(&g->d, 2)) {
        return DRAW(&g->d, odd);
    }
    return (char)draw_below(&g->d, 256);
}

/* ---- what can be wrong ---- */

static void change_count(generator *g, fuzz_line *line) {
    static const char *const counts[] = {"03",
                                         "+3",
                                         "-1",
                                         "0",
                                         "1",
                                         "2",
                                         "4",
                                         "1000",
                                         "",
                                         "3 ",
                                         " 3",
                                         "3.0",
                                         "x",
                                         "0x3",
                                         "2147483648",
                                         "4294967298",
                                         "3\\x00",
                                         "99999999999999999999",
                                         "-9223372036854775808"};
    if (line->first_key == 2) {
        command text = {0};
        command_add(&text, DRAW(&g->d, counts));
        replace_word(&line->words, 1, text.argv[0], text.lengths[0]);
        command_free(&text);
    }
}

static void change_key_order(generator *g, fuzz_line *line) {
    int a = pick_word(g, line->first_key, line->keys_end);
    int b = pick_word(g, line->first_key, line->keys_end);
    if (a >= 0) {
        swap_words(&line->words, a, b);
    }
}

static void drop_key(generator *g, fuzz_line *line) {
    int at = pick_word(g, line->first_key, line->keys_end);
    if (at >= 0) {
        remove_word(&line->words, at);
        line->keys_end--;
    }
}

static void add_key(generator *g, fuzz_line *line) {
    char key[EMQ_KEY_MAX + 1];
    fuzz_key(key, (emq_key_kind)draw_below(&g->d, EMQ_KEY_FENCE + 1), line->queue,
             fuzz_job(draw_below(&g->d, FUZZ_JOBS)), fuzz_name(0));
    command_add(&line->words, key);
    move_last_to(&line->words, pick_word(g, line->first_key, line->keys_end + 1));
    line->keys_end++;
}

/* A key of another kind, of another job or of another queue. */
static void change_key(generator *g, fuzz_line *line) {
    static const char *const queues[] = {FUZZ_CLEAN, FUZZ_ROUGH, "other", "emq"};
    char key[EMQ_KEY_MAX + 1];
    int at = pick_word(g, line->first_key, line->keys_end);
    if (at >= 0) {
        fuzz_key(key, (emq_key_kind)draw_below(&g->d, EMQ_KEY_FENCE + 1), DRAW(&g->d, queues),
                 fuzz_job(draw_below(&g->d, FUZZ_JOBS)), fuzz_name(0));
        replace_text(&line->words, at, key);
    }
}

/* All keys in one odd queue: what the layout check of the first key is about. */
static void change_queue(generator *g, fuzz_line *line) {
    static const char *const queues[] = {"", "emq", "a:b", "a\\x00b", "\\xff", "a}b", "{", "*"};
    const emq_verb *verb = &emq_verbs[line->symbol];
    const size_t open = strlen("emq:{");
    char start[32];
    (void)snprintf(start, sizeof(start), "emq:{%s}", line->queue);
    command queue = {0};
    command_add(&queue, DRAW(&g->d, queues));
    for (int i = line->first_key; emq_verb_counts_keys(verb) && i < line->keys_end; i++) {
        if (starts_with(&line->words, i, start)) {
            splice(&line->words, i, open, strlen(line->queue), queue.argv[0], queue.lengths[0]);
        }
    }
    command_free(&queue);
}

static void change_size(generator *g, fuzz_line *line, int at) {
    static const size_t sizes[] = {0, 0, 1, 127, 128, 129, 4096, 65535, 65537};
    size_t size = draw_one_in(&g->d, 60) ? MEGABYTE : DRAW(&g->d, sizes);
    char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    memset(bytes, (char)('A' + draw_below(&g->d, 26)), size);
    for (int i = 0; size > 0 && i < 3; i++) {
        bytes[draw_below(&g->d, (unsigned)size)] = random_byte(g);
    }
    if (at >= 0) {
        replace_word(&line->words, at, bytes, size);
    }
    free(bytes);
}

static void change_key_size(generator *g, fuzz_line *line) {
    change_size(g, line, pick_word(g, line->first_key, line->keys_end));
}

static void change_value_size(generator *g, fuzz_line *line) {
    change_size(g, line, pick_word(g, line->keys_end, line->words.argc));
}

static void drop_value(generator *g, fuzz_line *line) {
    int at = pick_word(g, line->keys_end, line->words.argc);
    if (at >= 0) {
        remove_word(&line->words, at);
    }
}

static void insert_value(generator *g, fuzz_line *line) {
    static const char *const values[] = {"1", "", "JOB0KHTOWnGLu1", "force", "LIMIT"};
    command_add(&line->words, DRAW(&g->d, values));
    move_last_to(&line->words, pick_word(g, line->keys_end, line->words.argc));
}

static void change_value_order(generator *g, fuzz_line *line) {
    int a = pick_word(g, line->keys_end, line->words.argc);
    int b = pick_word(g, line->keys_end, line->words.argc);
    if (a >= 0) {
        swap_words(&line->words, a, b);
    }
}

static void change_number(generator *g, fuzz_line *line) {
    static const char *const edges[] = {"0",
                                        "-1",
                                        "1",
                                        "-0",
                                        "01",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1e3",
                                        "1.0",
                                        "nan",
                                        "inf",
                                        "0x10",
                                        "1000",
                                        "1001",
                                        "10000",
                                        "10001",
                                        "2147483647",
                                        "2147483648",
                                        "-2147483649",
                                        "4294967295",
                                        "4294967296",
                                        "315360000000",
                                        "315360000001",
                                        "9007199254740991",
                                        "9007199254740992",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "-9223372036854775808",
                                        "18446744073709551615",
                                        "99999999999999999999"};
    int at = pick_word(g, line->keys_end, line->words.argc);
    if (at >= 0) {
        replace_text(&line->words, at, DRAW(&g->d, edges));
    }
}

static int find_bytes(const char *bytes, size_t n, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= n; i++) {
        if (memcmp(bytes + i, text, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Puts `id` where a job's id stands in a word. */
static void put_id(command *words, int at, const char *id, size_t n) {
    for (unsigned job = 0; job < FUZZ_JOBS; job++) {
        const char *text = fuzz_job(job);
        int found = find_bytes(words->argv[at], words->lengths[at], text);
        if (found >= 0) {
            splice(words, at, (size_t)found, strlen(text), id, n);
            return;
        }
    }
}

/* An odd id in place of a job's: in keys and values alike, or in some of them. */
static void change_id(generator *g, fuzz_line *line) {
    static const char *const ids[] = {"",
                                      "J",
                                      "JOB",
                                      "JOBx",
                                      "JOB:a",
                                      "JOB{",
                                      "JOB}a",
                                      "job1",
                                      "USR0KHTOWnGLuC",
                                      "EVT0KHTOWnGLuC",
                                      "JOB\\xff",
                                      "JOB\\x00",
                                      "JOB\\x0d\\x0a",
                                      "JOBa:logs",
                                      "JOBzzzzzzzzzzz",
                                      "JOB0KHTOWnGLu11",
                                      "JOB*"};
    command id = {0};
    char filler[130];
    int is_half = draw_one_in(&g->d, 4);
    command_add(&id, DRAW(&g->d, ids));
    if (draw_one_in(&g->d, 6)) {
        /* 127 to 129 bytes */
        memset(filler, 'a', sizeof(filler));
        command_free(&id);
        command_add(&id, EMQ_NAMESPACE_JOB);
        splice(&id, 0, EMQ_NAMESPACE_LEN, 0, filler, 124 + draw_below(&g->d, 3));
    }
    for (int i = line->first_key; i < line->words.argc; i++) {
        if (!is_half || draw_one_in(&g->d, 2)) {
            put_id(&line->words, i, id.argv[0], id.lengths[0]);
        }
    }
    command_free(&id);
}

/* Any byte of any word behind the name: another one, one more, or one less. */
static void change_bytes(generator *g, fuzz_line *line) {
    int at = pick_word(g, 1, line->words.argc);
    if (at < 0) {
        return;
    }
    size_t n = line->words.lengths[at];
    size_t place = draw_below(&g->d, (unsigned)n + 1);
    char *bytes = malloc(n + 2);
    assert_non_null(bytes);
    memcpy(bytes, line->words.argv[at], n);
    if (place < n && draw_one_in(&g->d, 2)) {
        bytes[place] = random_byte(g);
    } else if (place < n && draw_one_in(&g->d, 2)) {
        memmove(bytes + place, bytes + place + 1, n - place - 1);
        n--;
    } else {
        memmove(bytes + place + 1, bytes + place, n - place);
        bytes[place] = random_byte(g);
        n++;
    }
    replace_word(&line->words, at, bytes, n);
    free(bytes);
}

typedef void (*mutation)(generator *g, fuzz_line *line);

static void mutate(generator *g, fuzz_line *line) {
    static const mutation mutations[] = {
        change_count,       change_key_order, drop_key,          add_key,    change_key,
        change_key,         change_queue,     change_key_size,   drop_value, insert_value,
        change_value_order, change_number,    change_number,     change_id,  change_id,
        change_bytes,       change_bytes,     change_value_size,
    };
    line->mutations = 1 + (draw_one_in(&g->d, 3) ? (int)draw_below(&g->d, 3) : 0);
    for (int i = 0; i < line->mutations; i++) {
        mutation apply = DRAW(&g->d, mutations);
        apply(g, line);
    }
}

/* ---- what a call must not do ---- */

static int number_in(const command *words, int at, int64_t min, int64_t max) {
    int64_t number = 0;
    return at < words->argc &&
           emq_decimal_parse(&number, words->argv[at], words->lengths[at], min, max);
}

/* A verb that takes any key could damage the clean queue or the fence, and nothing would be wrong
 * about it. A long wait would only cost time, and a far offset memory. */
static void keep_in_bounds(fuzz_line *line) {
    const emq_verb *verb = &emq_verbs[line->symbol];
    command *words = &line->words;
    if (!emq_verb_counts_keys(verb) && words->argc > 1 && !starts_with(words, 1, FUZZ_PLAIN) &&
        !starts_with(words, 1, "emq:{" FUZZ_ROUGH "}:")) {
        splice(words, 1, 0, 0, FUZZ_PLAIN, strlen(FUZZ_PLAIN));
    }
    int values = 1 + verb->key_count + (emq_verb_counts_keys(verb) ? 1 : 0);
    int timeout = emq_verb_find_value(verb, EMQ_VALUE_TIMEOUT_MS);
    int64_t timeout_max = emq_value_get_facts(EMQ_VALUE_TIMEOUT_MS)->max;
    if (timeout >= 0 && number_in(words, values + timeout, WAIT_MAX_MS + 1, timeout_max)) {
        replace_text(words, values + timeout, "3");
    }
    for (int i = values; emq_verb_find_value(verb, EMQ_VALUE_OFFSET) >= 0 && i < words->argc; i++) {
        if ((verb->flags & EMQ_FLAG_DENY_OOM) != 0 && number_in(words, i, OFFSET_MAX, UINT32_MAX)) {
            replace_text(words, i, "65535");
        }
    }
}

/* Verbs without values have little to get wrong, and verbs that touch no job stand for themselves:
 * they are called less often, so that jobs get somewhere. */
static int is_wanted(generator *g, const emq_verb *verb) {
    if (g->fence_is_away && draw_one_in(&g->d, 4)) {
        return verb->family == EMQ_FAMILY_ADMIN;
    }
    return !(g->is_calm && (verb->flags & EMQ_FLAG_DANGEROUS) != 0) &&
           (verb->value_count > 0 || draw_one_in(&g->d, 2)) &&
           (verb->family < EMQ_FAMILY_BUS || draw_one_in(&g->d, 3));
}

static emq_verb_symbol pick_verb(generator *g) {
    emq_verb_symbol symbol = EMQ_VERB_VERSION;
    do {
        symbol = (emq_verb_symbol)draw_below(&g->d, EMQ_VERBS);
    } while (!is_wanted(g, &emq_verbs[symbol]));
    return symbol;
}

void generator_next(generator *g, fuzz_line *out) {
    *out = (fuzz_line){.symbol = pick_verb(g),
                       .queue = draw_one_in(&g->d, 2) ? FUZZ_CLEAN : FUZZ_ROUGH};
    make_right_line(g, out);
    if (draw_one_in(&g->d, 2)) {
        mutate(g, out);
    }
    keep_in_bounds(out);
}

/* The last value is the one that tells how long. */
void generator_waiting(generator *g, fuzz_line *out, const char *timeout_ms) {
    *out = (fuzz_line){.queue = draw_one_in(&g->d, 2) ? FUZZ_CLEAN : FUZZ_ROUGH};
    do {
        out->symbol = (emq_verb_symbol)draw_below(&g->d, EMQ_VERBS);
    } while ((emq_verbs[out->symbol].flags & EMQ_FLAG_BLOCKING) == 0);
    const emq_verb *verb = &emq_verbs[out->symbol];
    do {
        fuzz_line_free(out);
        make_right_line(g, out);
    } while (out->words.argc != 2 + verb->key_count + verb->value_count);
    replace_text(&out->words, out->words.argc - 1, timeout_ms);
}

void fuzz_line_free(fuzz_line *line) {
    command_free(&line->words);
}

char *fuzz_words_to_text(const command *words) {
    char *text = NULL;
    char note[64];
    append_text(&text, "");
    for (int i = 0; i < words->argc && i < WORDS_SHOWN; i++) {
        size_t length = words->lengths[i];
        append_text(&text, i > 0 ? " " : "");
        append_quoted(&text, words->argv[i], length < WORD_SHOWN ? length : WORD_SHOWN);
        if (length > WORD_SHOWN) {
            (void)snprintf(note, sizeof(note), "… (%zu bytes)", length);
            append_text(&text, note);
        }
    }
    if (words->argc > WORDS_SHOWN) {
        (void)snprintf(note, sizeof(note), " … (%d words)", words->argc);
        append_text(&text, note);
    }
    return text;
}
