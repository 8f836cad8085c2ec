/* SPDX-License-Identifier: Apache-2.0 */
/* The keyspace in both directions: what the builders make, what the parser takes apart, what the
 * module matches, and that all three agree. */
#include <emq/keyspace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "keys.h"
#include "random.h"

#define JOB_ID "JOB0KHTOWnGLuC"
#define FUZZ_ROUNDS 400000

typedef struct sample {
    emq_key_kind kind;
    const char *id; /* NULL: a kind without one */
    const char *key;
} sample;

/* One of each kind. */
static const sample samples[] = {
    {EMQ_KEY_BASE, NULL, "emq:{orders}:"},
    {EMQ_KEY_PENDING, NULL, "emq:{orders}:pending"},
    {EMQ_KEY_ACTIVE, NULL, "emq:{orders}:active"},
    {EMQ_KEY_SCHEDULE, NULL, "emq:{orders}:schedule"},
    {EMQ_KEY_DEAD, NULL, "emq:{orders}:dead"},
    {EMQ_KEY_HELD, NULL, "emq:{orders}:held"},
    {EMQ_KEY_RING, NULL, "emq:{orders}:ring"},
    {EMQ_KEY_PAUSED, NULL, "emq:{orders}:paused"},
    {EMQ_KEY_GLIMIT, NULL, "emq:{orders}:glimit"},
    {EMQ_KEY_GACTIVE, NULL, "emq:{orders}:gactive"},
    {EMQ_KEY_GWEIGHT, NULL, "emq:{orders}:gweight"},
    {EMQ_KEY_WAKE, NULL, "emq:{orders}:wake"},
    {EMQ_KEY_META, NULL, "emq:{orders}:meta"},
    {EMQ_KEY_COMPLETED, NULL, "emq:{orders}:metrics:completed"},
    {EMQ_KEY_FAILED, NULL, "emq:{orders}:metrics:failed"},
    {EMQ_KEY_OUTBOX, NULL, "emq:{orders}:flow:outbox"},
    {EMQ_KEY_OUTBOX_BAD, NULL, "emq:{orders}:flow:outbox:bad"},
    {EMQ_KEY_EVENTS_SEQ, NULL, "emq:{orders}:events:seq"},
    {EMQ_KEY_EVENTS, NULL, "emq:{orders}:events"},
    {EMQ_KEY_JOB, JOB_ID, "emq:{orders}:job:" JOB_ID},
    {EMQ_KEY_LOGS, JOB_ID, "emq:{orders}:job:" JOB_ID ":logs"},
    {EMQ_KEY_DEPENDENCIES, JOB_ID, "emq:{orders}:job:" JOB_ID ":dependencies"},
    {EMQ_KEY_PROCESSED, JOB_ID, "emq:{orders}:job:" JOB_ID ":processed"},
    {EMQ_KEY_CHILD_FAILED, JOB_ID, "emq:{orders}:job:" JOB_ID ":failed"},
    {EMQ_KEY_UNSUCCESSFUL, JOB_ID, "emq:{orders}:job:" JOB_ID ":unsuccessful"},
    {EMQ_KEY_LANE, "tenant 7", "emq:{orders}:g:tenant 7:pending"},
    {EMQ_KEY_DEDUP, "order-9", "emq:{orders}:de:order-9"},
    {EMQ_KEY_STREAM, "audit", "emq:{orders}:stream:audit"},
    {EMQ_KEY_STREAM_FAILURES, "audit", "emq:{orders}:stream:audit:failures"},
    {EMQ_KEY_FENCE, NULL, "{emq}:version"},
};

#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

/* A name of this many bytes; static, one at a time. */
static const char *long_name(size_t n) {
    static char name[256];
    memset(name, 'n', n);
    name[n] = '\0';
    return name;
}

/* Parses bytes that end exactly where their memory ends, so that a sanitizer sees a byte too far.
 */
static int parse_exact(emq_key *out, const char *key, size_t n) {
    char *copy = malloc(n == 0 ? 1 : n);
    assert_non_null(copy);
    memcpy(copy, key, n);
    int result = emq_key_parse(out, copy, n);
    free(copy);
    return result;
}

static int build(char *out, size_t cap, const char *queue, emq_key_kind kind, const char *id) {
    return id == NULL ? emq_key_queue(out, cap, queue, kind)
                      : emq_key_named(out, cap, queue, kind, id);
}

static void each_kind_is_built(void **state) {
    (void)state;
    assert_int_equal(SAMPLES, EMQ_KEY_FENCE + 1);
    for (size_t i = 0; i < SAMPLES; i++) {
        char key[EMQ_KEY_MAX + 1];
        const sample *s = &samples[i];
        assert_int_equal(s->kind, i);
        assert_int_equal(build(key, sizeof(key), "orders", s->kind, s->id), strlen(s->key));
        assert_string_equal(key, s->key);
        assert_int_equal(emq_key_kind_is_named(s->kind), s->id != NULL);
    }
}

static void each_kind_is_parsed(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        emq_key parts;
        const sample *s = &samples[i];
        memset(&parts, 'x', sizeof(parts));
        assert_int_equal(parse_exact(&parts, s->key, strlen(s->key)), EMQ_OK);
        assert_int_equal(parts.kind, s->kind);
        assert_string_equal(parts.queue, s->kind == EMQ_KEY_FENCE ? "" : "orders");
        assert_string_equal(parts.id, s->id == NULL ? "" : s->id);
    }
}

static void room_is_exact(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        size_t length = strlen(s->key);
        char key[EMQ_KEY_MAX + 1];
        for (size_t cap = 0; cap <= length; cap++) {
            memset(key, '#', sizeof(key));
            assert_int_equal(build(key, cap, "orders", s->kind, s->id), EMQ_EINVAL);
            assert_int_equal(key[0], '#');
        }
        assert_int_equal(build(key, length + 1, "orders", s->kind, s->id), length);
        emq_slice id = emq_slice_of(s->id == NULL ? "" : s->id);
        for (size_t cap = 0; cap <= length; cap++) {
            char *exact = malloc(cap == 0 ? 1 : cap);
            assert_int_equal(emq_key_write(exact, cap, s->kind, emq_slice_of("orders"), id), 0);
            free(exact);
        }
        assert_int_equal(emq_key_write(key, length + 1, s->kind, emq_slice_of("orders"), id),
                         length);
        assert_string_equal(key, s->key);
    }
}

static void queue_names(void **state) {
    static const char *const good[] = {"q",  "orders", "A-Z.a_z.0-9", "emq2", "EMQ",
                                       "em", "_",      ".",           "-",    "0"};
    static const char *const bad[] = {"",    "emq", "a b",  "a:b",      "a{b",  "a}b", "a/b",
                                      "a\n", "a\r", "a\tb", "\xc3\xa4", "a*b",  "@",   "[",
                                      "`",   "{q}", "q ",   " q",       "a\\b", "a\"", "a,b"};
    char key[EMQ_KEY_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(emq_queue_valid(good[i]), 1);
        assert_true(emq_key_queue(key, sizeof(key), good[i], EMQ_KEY_PENDING) > 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(key, '#', sizeof(key));
        if (emq_queue_valid(bad[i]) != 0) {
            fail_msg("\"%s\" was accepted", bad[i]);
        }
        emq_id id = {JOB_ID};
        assert_int_equal(emq_key_queue(key, sizeof(key), bad[i], EMQ_KEY_PENDING), EMQ_EQUEUE);
        assert_int_equal(emq_key_job(key, sizeof(key), bad[i], &id), EMQ_EQUEUE);
        assert_int_equal(emq_key_named(key, sizeof(key), bad[i], EMQ_KEY_LANE, "g"), EMQ_EQUEUE);
        assert_int_equal(key[0], '#');
    }
    assert_int_equal(emq_queue_valid(NULL), 0);
    assert_int_equal(emq_queue_valid(long_name(128)), 1);
    assert_int_equal(emq_queue_valid(long_name(129)), 0);
    for (int c = 1; c < 256; c++) {
        char name[] = {'a', (char)c, '\0'};
        int good_byte = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        assert_int_equal(emq_queue_valid(name), good_byte);
    }
}

static void builders_refuse(void **state) {
    char key[EMQ_KEY_MAX + 1];
    emq_id good = {JOB_ID};
    emq_id user = {"USR0KHTOWnGLuC"};
    emq_id broken = {"JOB0KHTOWnGLu*"};
    emq_id endless;
    (void)state;
    memset(&endless, 'A', sizeof(endless));
    memset(key, '#', sizeof(key));
    assert_int_equal(emq_key_queue(NULL, 100, "q", EMQ_KEY_PENDING), EMQ_EINVAL);
    assert_int_equal(emq_key_queue(key, sizeof(key), NULL, EMQ_KEY_PENDING), EMQ_EINVAL);
    assert_int_equal(emq_key_queue(key, sizeof(key), "q", EMQ_KEY_JOB), EMQ_EINVAL);
    assert_int_equal(emq_key_queue(key, sizeof(key), "q", EMQ_KEY_STREAM_FAILURES), EMQ_EINVAL);
    assert_int_equal(emq_key_queue(key, sizeof(key), "q", (emq_key_kind)-1), EMQ_EINVAL);
    assert_int_equal(emq_key_queue(key, sizeof(key), "q", (emq_key_kind)30), EMQ_EINVAL);
    assert_int_equal(emq_key_job(NULL, 100, "q", &good), EMQ_EINVAL);
    assert_int_equal(emq_key_job(key, sizeof(key), NULL, &good), EMQ_EINVAL);
    assert_int_equal(emq_key_job(key, sizeof(key), "q", NULL), EMQ_EINVAL);
    assert_int_equal(emq_key_job(key, sizeof(key), "q", &user), EMQ_EKIND);
    assert_int_equal(emq_key_job(key, sizeof(key), "q", &broken), EMQ_EID_CHARSET);
    assert_true(emq_key_job(key, sizeof(key), "q", &endless) < 0);
    assert_int_equal(emq_key_named(NULL, 100, "q", EMQ_KEY_LANE, "g"), EMQ_EINVAL);
    assert_int_equal(emq_key_named(key, sizeof(key), NULL, EMQ_KEY_LANE, "g"), EMQ_EINVAL);
    assert_int_equal(emq_key_named(key, sizeof(key), "q", EMQ_KEY_LANE, NULL), EMQ_EINVAL);
    assert_int_equal(emq_key_named(key, sizeof(key), "q", EMQ_KEY_PENDING, "g"), EMQ_EINVAL);
    assert_int_equal(emq_key_named(key, sizeof(key), "q", EMQ_KEY_FENCE, "g"), EMQ_EINVAL);
    assert_int_equal(emq_key_named(key, sizeof(key), "q", (emq_key_kind)-1, "g"), EMQ_EINVAL);
    assert_int_equal(emq_key_named(key, sizeof(key), "q", (emq_key_kind)30, "g"), EMQ_EINVAL);
    assert_int_equal(key[0], '#');
    assert_int_equal(emq_key_queue(key, sizeof(key), NULL, EMQ_KEY_FENCE), 13);
    assert_string_equal(key, "{emq}:version");
}

static void names_and_ids_of_the_kinds(void **state) {
    static const char *const bad_names[] = {"", "a:b", "{", "}", "a\nb", "a\r"};
    static const struct {
        const char *id;
        int result;
    } bad_ids[] = {
        {"", EMQ_EID_LENGTH},
        {"JOB", EMQ_EID_LENGTH},
        {"JOB0KHTOWnGLuCC", EMQ_EID_LENGTH},
        {"job0KHTOWnGLuC", EMQ_EID_NAMESPACE},
        {"JOB0KHTOWnGLu:", EMQ_EID_CHARSET},
        {"JOBzzzzzzzzzzz", EMQ_EID_RANGE},
        {"EVT0KHTOWnGLuC", EMQ_EKIND},
    };
    char key[EMQ_KEY_MAX + 1];
    (void)state;
    for (int kind = EMQ_KEY_JOB; kind <= EMQ_KEY_STREAM_FAILURES; kind++) {
        for (size_t i = 0; kind >= EMQ_KEY_LANE && i < sizeof(bad_names) / sizeof(bad_names[0]);
             i++) {
            assert_int_equal(emq_key_named(key, sizeof(key), "q", (emq_key_kind)kind, bad_names[i]),
                             EMQ_EINVAL);
        }
        for (size_t i = 0; kind < EMQ_KEY_LANE && i < sizeof(bad_ids) / sizeof(bad_ids[0]); i++) {
            assert_int_equal(
                emq_key_named(key, sizeof(key), "q", (emq_key_kind)kind, bad_ids[i].id),
                bad_ids[i].result);
        }
    }
    for (int kind = EMQ_KEY_LANE; kind <= EMQ_KEY_STREAM_FAILURES; kind++) {
        assert_true(emq_key_named(key, sizeof(key), "q", (emq_key_kind)kind, long_name(128)) > 0);
        assert_int_equal(emq_key_named(key, sizeof(key), "q", (emq_key_kind)kind, long_name(129)),
                         EMQ_EINVAL);
    }
}

static void the_largest_key_fits(void **state) {
    char key[EMQ_KEY_MAX + 1];
    char queue[EMQ_QUEUE_MAX + 1];
    emq_key parts;
    (void)state;
    memcpy(queue, long_name(128), sizeof(queue));
    int length = emq_key_named(key, sizeof(key), queue, EMQ_KEY_STREAM_FAILURES, long_name(128));
    assert_true(length > 256 && length <= EMQ_KEY_MAX);
    assert_int_equal(parse_exact(&parts, key, (size_t)length), EMQ_OK);
    assert_string_equal(parts.queue, queue);
    assert_string_equal(parts.id, queue);
}

#define OF(text)                                                                                   \
    { text, sizeof(text) - 1 }

static void parser_refuses(void **state) {
    static const struct {
        const char *key;
        size_t n;
    } bad[] = {
        OF(""),
        OF("e"),
        OF("emq:"),
        OF("emq:{"),
        OF("emq:{q"),
        OF("emq:{q}"),
        OF("emq:{}:"),
        OF("emq:{}:pending"),
        OF("emq:{q}pending"),
        OF("emq:q:pending"),
        OF("EMQ:{q}:pending"),
        OF(" emq:{q}:pending"),
        OF("emq:{q}:pending "),
        OF("emq:{q}:pending\0"),
        OF("emq:{q}:Pending"),
        OF("emq:{q}:pendin"),
        OF("emq:{q}:pendings"),
        OF("emq:{q}:scheduled"),
        OF("emq:{q}::"),
        OF("emq:{q}: "),
        OF("emq:{emq}:"),
        OF("emq:{emq}:pending"),
        OF("emq:{a b}:pending"),
        OF("emq:{a:b}:pending"),
        OF("emq:{{q}:pending"),
        OF("emq:{q}}:pending"),
        OF("emq:{q\0}:pending"),
        OF("emq:{q}:metrics"),
        OF("emq:{q}:metrics:"),
        OF("emq:{q}:metrics:other"),
        OF("emq:{q}:flow:"),
        OF("emq:{q}:flow:outbox:"),
        OF("emq:{q}:events:"),
        OF("emq:{q}:job:"),
        OF("emq:{q}:job"),
        OF("emq:{q}:job:JOB0KHTOWnGLu"),
        OF("emq:{q}:job:JOB0KHTOWnGLuCC"),
        OF("emq:{q}:job:USR0KHTOWnGLuC"),
        OF("emq:{q}:job:JOB0KHTOWnGLu*"),
        OF("emq:{q}:job:JOBzzzzzzzzzzz"),
        OF("emq:{q}:job:JOB0KHTOWnGLuC:"),
        OF("emq:{q}:job:JOB0KHTOWnGLuC:log"),
        OF("emq:{q}:job:JOB0KHTOWnGLuC:logs:logs"),
        OF("emq:{q}:job:JOB0KHTOWnGLuC:other"),
        OF("emq:{q}:job::logs"),
        OF("emq:{q}:g:"),
        OF("emq:{q}:g:a"),
        OF("emq:{q}:g::pending"),
        OF("emq:{q}:g:pending"),
        OF("emq:{q}:g:a:b:pending"),
        OF("emq:{q}:g:a{:pending"),
        OF("emq:{q}:g:a\0:pending"),
        OF("emq:{q}:g:a\r:pending"),
        OF("emq:{q}:g:a:active"),
        OF("emq:{q}:de:"),
        OF("emq:{q}:de:a:b"),
        OF("emq:{q}:de:a}"),
        OF("emq:{q}:stream:"),
        OF("emq:{q}:stream::failures"),
        OF("emq:{q}:stream:a:failure"),
        OF("emq:{q}:stream:a:failures:failures"),
        OF("{emq}:"),
        OF("{emq}:versio"),
        OF("{emq}:versions"),
        OF("{emq}:version\0"),
        OF("emq:{emq}:version"),
        OF("{emq}version"),
        OF("{q}:version"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        emq_key parts;
        emq_key before;
        memset(&parts, 'x', sizeof(parts));
        before = parts;
        if (parse_exact(&parts, bad[i].key, bad[i].n) != EMQ_EKEY) {
            fail_msg("\"%s\" (%zu bytes) was not refused", bad[i].key, bad[i].n);
        }
        assert_memory_equal(&parts, &before, sizeof(parts));
    }
    emq_key parts;
    assert_int_equal(emq_key_parse(NULL, "{emq}:version", 13), EMQ_EINVAL);
    assert_int_equal(emq_key_parse(&parts, NULL, 13), EMQ_EINVAL);
    /* a stream may be called as its list of failures */
    assert_int_equal(emq_key_parse(&parts, "emq:{q}:stream:failures", 23), EMQ_OK);
    assert_int_equal(parts.kind, EMQ_KEY_STREAM);
    assert_string_equal(parts.id, "failures");
}

static void long_names_are_refused_whole(void **state) {
    char key[512];
    emq_key parts;
    (void)state;
    for (size_t n = 127; n <= 130; n++) {
        int expected = n <= 128 ? EMQ_OK : EMQ_EKEY;
        int length = snprintf(key, sizeof(key), "emq:{%s}:pending", long_name(n));
        assert_int_equal(parse_exact(&parts, key, (size_t)length), expected);
        length = snprintf(key, sizeof(key), "emq:{q}:de:%s", long_name(n));
        assert_int_equal(parse_exact(&parts, key, (size_t)length), expected);
    }
}

/* Mutates a good key; every key that is still accepted must be the one that its parts build. */
static void mutate(char *key, size_t *n, size_t cap) {
    static const char bytes[] = ":{}\0\r\nemqjobJOBpending0zZ .-_";
    for (unsigned i = 1 + random_below(3); i > 0; i--) {
        size_t at = *n == 0 ? 0 : random_below((unsigned)*n);
        char byte = bytes[random_below(sizeof(bytes) - 1)];
        switch (random_below(5)) {
        case 0:
            if (*n > 0) {
                key[at] = byte;
            }
            break;
        case 1:
            if (*n < cap) {
                memmove(key + at + 1, key + at, *n - at);
                key[at] = byte;
                *n += 1;
            }
            break;
        case 2:
            if (*n > 0) {
                memmove(key + at, key + at + 1, *n - at - 1);
                *n -= 1;
            }
            break;
        case 3:
            *n = at;
            break;
        default:
            break;
        }
    }
}

static void what_is_accepted_is_what_is_built(void **state) {
    unsigned accepted = 0;
    (void)state;
    for (int i = 0; i < FUZZ_ROUNDS; i++) {
        const sample *s = &samples[random_below(SAMPLES)];
        char key[EMQ_KEY_MAX];
        char again[EMQ_KEY_MAX + 1];
        size_t n = strlen(s->key);
        emq_key parts;
        memcpy(key, s->key, n);
        mutate(key, &n, sizeof(key));
        int result = parse_exact(&parts, key, n);
        if (result == EMQ_OK) {
            const char *id = emq_key_kind_is_named(parts.kind) ? parts.id : NULL;
            int length = build(again, sizeof(again), parts.queue, parts.kind, id);
            assert_int_equal(length, n);
            assert_memory_equal(again, key, n);
            accepted++;
        } else {
            assert_int_equal(result, EMQ_EKEY);
        }
    }
    /* neither all nor none, or this would prove nothing */
    assert_true(accepted > FUZZ_ROUNDS / 20 && accepted < FUZZ_ROUNDS / 2);
}

static void matching_agrees_with_writing(void **state) {
    (void)state;
    for (int i = 0; i < FUZZ_ROUNDS / 2; i++) {
        const sample *s = &samples[random_below(SAMPLES)];
        char key[EMQ_KEY_MAX + 1];
        char changed[EMQ_KEY_MAX + 1];
        emq_slice queue = emq_slice_of("orders");
        emq_slice id = emq_slice_of(s->id == NULL ? "" : s->id);
        size_t n = emq_key_write(key, sizeof(key), s->kind, queue, id);
        size_t length = n;
        assert_int_equal(emq_key_matches((emq_slice){key, n}, s->kind, queue, id), 1);
        memcpy(changed, key, n);
        mutate(changed, &length, EMQ_KEY_MAX);
        int is_same = length == n && memcmp(key, changed, n) == 0;
        char *exact = malloc(length == 0 ? 1 : length);
        memcpy(exact, changed, length);
        assert_int_equal(emq_key_matches((emq_slice){exact, length}, s->kind, queue, id), is_same);
        free(exact);
    }
}

/* The module's rule for names: an id that arrives as a value must not reach another key. */
static void names_of_the_module(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char name[] = {'a', (char)c, 'b'};
        int good = c != ':' && c != '{' && c != '}' && c != '\0' && c != '\r' && c != '\n';
        char key[64];
        emq_slice slice = {name, sizeof(name)};
        assert_int_equal(emq_name_valid(slice), good);
        size_t n = emq_key_write(key, sizeof(key), EMQ_KEY_JOB, emq_slice_of("q"), slice);
        assert_int_equal(
            emq_key_matches((emq_slice){key, n}, EMQ_KEY_JOB, emq_slice_of("q"), slice), good);
    }
    assert_int_equal(emq_name_valid((emq_slice){"", 0}), 0);
    assert_int_equal(emq_name_valid((emq_slice){long_name(128), 128}), 1);
    assert_int_equal(emq_name_valid((emq_slice){long_name(129), 129}), 0);
}

static void a_queue_is_found_in_its_keys(void **state) {
    static const struct {
        const char *key;
        size_t n;
        const char *queue; /* NULL: none */
    } table[] = {
        {"emq:{q}:pending", 15, "q"}, {"emq:{q}:", 8, "q"},
        {"emq:{a b}:", 10, "a b"},    {"emq:{q}:x}:", 11, "q"},
        {"emq:{q}", 7, NULL},         {"emq:{q}x", 8, NULL},
        {"emq:{}:", 7, NULL},         {"emq:{", 5, NULL},
        {"emq:{q", 6, NULL},          {"", 0, NULL},
        {"emq:{q:}:", 9, NULL},       {"emq:{{q}:", 9, NULL},
        {"emq:{\0}:", 8, NULL},       {"{emq}:version", 13, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        emq_slice queue = {NULL, 0};
        char *exact = malloc(table[i].n == 0 ? 1 : table[i].n);
        memcpy(exact, table[i].key, table[i].n);
        int found = emq_key_find_queue(&queue, (emq_slice){exact, table[i].n});
        assert_int_equal(found, table[i].queue != NULL);
        if (found) {
            assert_int_equal(emq_slice_equal(queue, emq_slice_of(table[i].queue)), 1);
        }
        free(exact);
    }
    char key[512];
    for (size_t n = 128; n <= 129; n++) {
        emq_slice queue = {NULL, 0};
        int length = snprintf(key, sizeof(key), "emq:{%s}:", long_name(n));
        assert_int_equal(emq_key_find_queue(&queue, (emq_slice){key, (size_t)length}), n == 128);
    }
}

/* CRC16-XMODEM by division of the message polynomial, bit by bit: another road to the same number.
 */
static unsigned reference_slot(const char *text, size_t n) {
    unsigned long remainder = 0;
    for (size_t bit = 0; bit < (n + 2) * 8; bit++) {
        size_t byte = bit / 8;
        unsigned value = byte < n ? (unsigned char)text[byte] : 0;
        remainder = remainder << 1 | (value >> (7 - bit % 8) & 1);
        if ((remainder & 0x10000UL) != 0) {
            remainder ^= 0x11021UL;
        }
    }
    return (unsigned)(remainder % 16384);
}

static void slots_are_the_servers(void **state) {
    static const struct {
        const char *key;
        const char *hashed;
    } table[] = {
        {"123456789", "123456789"},
        {"", ""},
        {"foo", "foo"},
        {"{user1000}.following", "user1000"},
        {"foo{}{bar}", "foo{}{bar}"},
        {"foo{{bar}}zap", "{bar"},
        {"foo{bar}{zap}", "bar"},
        {"foo{bar", "foo{bar"},
        {"foo}bar{", "foo}bar{"},
        {"{", "{"},
        {"{}", "{}"},
        {"emq:{orders}:pending", "orders"},
        {"{emq}:version", "emq"},
    };
    (void)state;
    assert_int_equal(emq_key_slot("123456789", 9), 12739);
    assert_int_equal(emq_key_slot("foo", 3), 12182);
    assert_int_equal(emq_key_slot("{user1000}.following", 20), 3443);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        size_t n = strlen(table[i].key);
        char *exact = malloc(n == 0 ? 1 : n);
        memcpy(exact, table[i].key, n);
        assert_int_equal(emq_key_slot(exact, n),
                         reference_slot(table[i].hashed, strlen(table[i].hashed)));
        free(exact);
    }
}

static void all_keys_of_a_queue_share_a_slot(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        if (samples[i].kind != EMQ_KEY_FENCE) {
            assert_int_equal(emq_key_slot(samples[i].key, strlen(samples[i].key)),
                             emq_key_slot("orders", 6));
        }
    }
}

static void kinds_have_words_and_patterns(void **state) {
    (void)state;
    assert_string_equal(emq_key_word(EMQ_KEY_BASE), "base");
    assert_string_equal(emq_key_word(EMQ_KEY_PENDING), "pending");
    assert_string_equal(emq_key_word(EMQ_KEY_ACTIVE), "active");
    assert_string_equal(emq_key_word(EMQ_KEY_JOB), "row");
    assert_string_equal(emq_key_word(EMQ_KEY_LOGS), "logs");
    assert_string_equal(emq_key_pattern(EMQ_KEY_BASE), "emq:{q}:");
    assert_string_equal(emq_key_pattern(EMQ_KEY_PENDING), "emq:{q}:pending");
    assert_string_equal(emq_key_pattern(EMQ_KEY_JOB), "emq:{q}:job:<id>");
    assert_string_equal(emq_key_pattern(EMQ_KEY_FENCE), "{emq}:version");
    for (int kind = 0; kind <= EMQ_KEY_FENCE; kind++) {
        const char *word = emq_key_word((emq_key_kind)kind);
        assert_true(word != NULL && word[0] != '\0');
    }
}

/* The name of a stream is found in its key, and in no other. */
static void names_are_found_in_their_keys(void **state) {
    static const struct {
        const char *key;
        emq_key_kind kind;
        const char *name; /* NULL: none */
    } table[] = {
        {"emq:{q}:stream:a", EMQ_KEY_STREAM, "a"},
        {"emq:{q}:stream:failures", EMQ_KEY_STREAM, "failures"},
        {"emq:{q}:stream:a:failures", EMQ_KEY_STREAM_FAILURES, "a"},
        {"emq:{q}:stream:failures:failures", EMQ_KEY_STREAM_FAILURES, "failures"},
        {"emq:{q}:stream:a:failures", EMQ_KEY_STREAM, NULL},
        {"emq:{q}:stream:a", EMQ_KEY_STREAM_FAILURES, NULL},
        {"emq:{q}:stream:failures", EMQ_KEY_STREAM_FAILURES, NULL},
        {"emq:{q}:stream::failures", EMQ_KEY_STREAM_FAILURES, NULL},
        {"emq:{q}:stream:", EMQ_KEY_STREAM, NULL},
        {"emq:{q}:stream:a:b", EMQ_KEY_STREAM, NULL},
        {"emq:{q}:stream:a{", EMQ_KEY_STREAM, NULL},
        {"emq:{r}:stream:a", EMQ_KEY_STREAM, NULL},
        {"emq:{qq}:stream:a", EMQ_KEY_STREAM, NULL},
        {"emq:{q}:g:a:pending", EMQ_KEY_LANE, "a"},
        {"emq:{q}:", EMQ_KEY_STREAM, NULL},
        {"", EMQ_KEY_STREAM, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        emq_slice name = {NULL, 0};
        int found =
            emq_key_find_name(&name, emq_slice_of(table[i].key), table[i].kind, emq_slice_of("q"));
        if (found != (table[i].name != NULL)) {
            fail_msg("%s", table[i].key);
        }
        assert_true(!found || emq_slice_equal(name, emq_slice_of(table[i].name)));
    }
}

static void slices_are_in_the_order_of_bytes(void **state) {
    (void)state;
    static const char *const ordered[] = {"", "A", "AA", "AB", "B", "a", "\xff"};
    for (size_t i = 0; i < sizeof(ordered) / sizeof(ordered[0]); i++) {
        for (size_t j = 0; j < sizeof(ordered) / sizeof(ordered[0]); j++) {
            int order = emq_slice_compare(emq_slice_of(ordered[i]), emq_slice_of(ordered[j]));
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_built),
        cmocka_unit_test(each_kind_is_parsed),
        cmocka_unit_test(room_is_exact),
        cmocka_unit_test(queue_names),
        cmocka_unit_test(builders_refuse),
        cmocka_unit_test(names_and_ids_of_the_kinds),
        cmocka_unit_test(the_largest_key_fits),
        cmocka_unit_test(parser_refuses),
        cmocka_unit_test(long_names_are_refused_whole),
        cmocka_unit_test(what_is_accepted_is_what_is_built),
        cmocka_unit_test(matching_agrees_with_writing),
        cmocka_unit_test(names_of_the_module),
        cmocka_unit_test(a_queue_is_found_in_its_keys),
        cmocka_unit_test(slots_are_the_servers),
        cmocka_unit_test(all_keys_of_a_queue_share_a_slot),
        cmocka_unit_test(kinds_have_words_and_patterns),
        cmocka_unit_test(names_are_found_in_their_keys),
        cmocka_unit_test(slices_are_in_the_order_of_bytes),
    };
    return cmocka_run_group_tests_name("keyspace", tests, NULL, NULL);
}
