/* SPDX-License-Identifier: Apache-2.0 */
/* Draws one damage at a time. */
#include "damage.h"

#include <string.h>

#include "generator.h"
#include "wire.h"

static void add_line(damage *out, ...) {
    va_list words;
    assert_true(out->count < DAMAGE_LINES);
    va_start(words, out);
    command_add_words(&out->lines[out->count++], words);
    va_end(words);
}

#define LINE(out, ...) add_line((out), __VA_ARGS__, (const char *)NULL)

static const char *pick_job(draw *d) {
    return fuzz_job(draw_below(d, FUZZ_JOBS));
}

static const char *pick_key(draw *d, char key[EMQ_KEY_MAX + 1]) {
    /* the keys that verbs use most, rather than any */
    static const emq_key_kind often[] = {
        EMQ_KEY_JOB,  EMQ_KEY_JOB,        EMQ_KEY_PENDING,        EMQ_KEY_ACTIVE, EMQ_KEY_SCHEDULE,
        EMQ_KEY_DEAD, EMQ_KEY_META,       EMQ_KEY_COMPLETED,      EMQ_KEY_FAILED, EMQ_KEY_STREAM,
        EMQ_KEY_LOGS, EMQ_KEY_EVENTS_SEQ, EMQ_KEY_STREAM_FAILURES};
    emq_key_kind any = (emq_key_kind)draw_below(d, EMQ_KEY_FENCE);
    fuzz_key(key, draw_one_in(d, 4) ? any : DRAW(d, often), FUZZ_ROUGH, pick_job(d),
             fuzz_name(draw_below(d, FUZZ_NAMES)));
    return key;
}

static const char *pick_row(draw *d, char key[EMQ_KEY_MAX + 1]) {
    fuzz_key(key, EMQ_KEY_JOB, FUZZ_ROUGH, pick_job(d), "");
    return key;
}

static const char *pick_set(draw *d, char key[EMQ_KEY_MAX + 1]) {
    static const emq_key_kind sets[] = {EMQ_KEY_PENDING, EMQ_KEY_ACTIVE, EMQ_KEY_SCHEDULE,
                                        EMQ_KEY_DEAD};
    fuzz_key(key, DRAW(d, sets), FUZZ_ROUGH, "", "");
    return key;
}

/* Makes a key of any type, in place of what was there. */
static void make_any_type(draw *d, damage *out, const char *key) {
    LINE(out, "DEL", key);
    switch (draw_below(d, 6)) {
    case 0:
        LINE(out, "SET", key, "x");
        break;
    case 1:
        LINE(out, "RPUSH", key, "x");
        break;
    case 2:
        LINE(out, "SADD", key, "x");
        break;
    case 3:
        LINE(out, "ZADD", key, "0", pick_job(d));
        break;
    case 4:
        LINE(out, "HSET", key, "x", "y");
        break;
    default:
        LINE(out, "XADD", key, "1-1", "x", "y");
        break;
    }
}

static const char *pick_number(draw *d) {
    static const char *const numbers[] = {"x",
                                          "",
                                          "-1",
                                          "0",
                                          "1",
                                          "01",
                                          " 1",
                                          "1.5",
                                          "1000",
                                          "9223372036854775806",
                                          "9223372036854775807",
                                          "99999999999999999999"};
    return DRAW(d, numbers);
}

static void damage_row(draw *d, damage *out) {
    static const char *const fields[] = {
        EMQ_FIELD_STATE,    EMQ_FIELD_ATTEMPTS, EMQ_FIELD_ATTEMPTS,   EMQ_FIELD_PAYLOAD,
        EMQ_FIELD_FAILURES, EMQ_FIELD_STALLED,  EMQ_FIELD_LEASE_EPOCH};
    static const char *const states[] = {
        EMQ_STATE_PENDING, EMQ_STATE_ACTIVE, EMQ_STATE_SCHEDULED, EMQ_STATE_DEAD, "odd", ""};
    char row[EMQ_KEY_MAX + 1];
    (void)pick_row(d, row);
    switch (draw_below(d, 7)) {
    case 0:
    case 1:
        LINE(out, "HDEL", row, DRAW(d, fields));
        break;
    case 2:
        LINE(out, "HSET", row, DRAW(d, fields), pick_number(d));
        break;
    case 3:
        LINE(out, "HSET", row, EMQ_FIELD_STATE, DRAW(d, states));
        break;
    case 4:
        LINE(out, "HSET", row, EMQ_FIELD_GROUP, "one");
        break;
    case 5:
        LINE(out, "HSET", row, EMQ_FIELD_PARENT, pick_job(d));
        break;
    default:
        LINE(out, "DEL", row); /* orphans wherever its id is */
        break;
    }
}

/* Ids in two sets, without a row, that can't be part of a key, or at an odd score. */
static void damage_set(draw *d, damage *out) {
    static const char *const scores[] = {"0",     "0",    "1",   "-1",  "1e15",
                                         "1e300", "-inf", "inf", "0.5", "1700000000000.25"};
    static const char *const odd[] = {"", "JOBa:logs", "JOB\\x00", "JOB}", "USR0KHTOWnGLuC", "x"};
    char set[EMQ_KEY_MAX + 1];
    LINE(out, "ZADD", pick_set(d, set), DRAW(d, scores),
         draw_one_in(d, 3) ? DRAW(d, odd) : pick_job(d));
}

static void damage_counter(draw *d, damage *out) {
    char key[EMQ_KEY_MAX + 1];
    switch (draw_below(d, 4)) {
    case 0:
        fuzz_key(key, EMQ_KEY_EVENTS_SEQ, FUZZ_ROUGH, "", "");
        LINE(out, "SET", key, pick_number(d));
        break;
    case 1:
        fuzz_key(key, EMQ_KEY_STREAM_FAILURES, FUZZ_ROUGH, "", fuzz_name(0));
        LINE(out, "HSET", key, "one:1700000000000-0", pick_number(d));
        break;
    default:
        fuzz_key(key, draw_one_in(d, 2) ? EMQ_KEY_FAILED : EMQ_KEY_COMPLETED, FUZZ_ROUGH, "", "");
        LINE(out, "HSET", key, EMQ_FIELD_COUNT, pick_number(d));
        break;
    }
}

static void pause_or_resume(draw *d, damage *out) {
    char meta[EMQ_KEY_MAX + 1];
    fuzz_key(meta, EMQ_KEY_META, FUZZ_ROUGH, "", "");
    if (draw_one_in(d, 4)) {
        LINE(out, "HSET", meta, EMQ_FIELD_PAUSED, "1");
    } else {
        LINE(out, "DEL", meta);
    }
}

static void empty_queue(damage *out) {
    LINE(out, "EVAL",
         "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end", "0",
         "emq:{" FUZZ_ROUGH "}:*");
}

void damage_queue(draw *d, damage *out) {
    char key[EMQ_KEY_MAX + 1];
    *out = (damage){0};
    switch (draw_below(d, 16)) {
    case 0:
    case 1:
        make_any_type(d, out, pick_key(d, key));
        break;
    case 2:
    case 3:
        LINE(out, "PEXPIRE", pick_key(d, key), "1");
        out->expires = 1;
        break;
    case 4:
        damage_counter(d, out);
        break;
    case 5:
        pause_or_resume(d, out);
        break;
    case 6:
    case 7:
        LINE(out, "DEL", pick_key(d, key));
        break;
    case 8:
        empty_queue(out);
        break;
    case 9:
    case 10:
    case 11:
        damage_set(d, out);
        break;
    default:
        damage_row(d, out);
        break;
    }
}

void damage_fence(draw *d, damage *out) {
    static const char *const values[] = {"echomq:5.0.0", "", "echomq:6.0.0 ", "a\\x00\\x0d\\x0ab"};
    char long_value[1024];
    *out = (damage){0};
    switch (draw_below(d, 5)) {
    case 0:
    case 1:
        LINE(out, "DEL", EMQ_FENCE_KEY);
        break;
    case 2:
        make_any_type(d, out, EMQ_FENCE_KEY);
        break;
    case 3: /* longer than a refusal shows */
        memset(long_value, '6', sizeof(long_value) - 1);
        long_value[sizeof(long_value) - 1] = '\0';
        LINE(out, "SET", EMQ_FENCE_KEY, long_value);
        break;
    default:
        LINE(out, "SET", EMQ_FENCE_KEY, DRAW(d, values));
        break;
    }
}

void damage_restore_fence(damage *out) {
    *out = (damage){0};
    LINE(out, "SET", EMQ_FENCE_KEY, EMQ_WIRE);
}

void damage_free(damage *d) {
    for (int i = 0; i < d->count; i++) {
        command_free(&d->lines[i]);
    }
}
