/* SPDX-License-Identifier: Apache-2.0 */
/* The differential harness: scripts pinned by digest, steps on both queues, states as text. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aof.h"

#define WORDS_MAX 64
#define KEY_MAX 128
#define IDS 8

test_server diff_server;
static redisContext *client;
static char run_id[64];
static int failures[IDS]; /* failed attempts since the last new life, of each id */

typedef enum side { SCRIPT, NATIVE } side;
static const char *const bases[] = {"emq:{lua}:", "emq:{emq-n}:"};

/* Letters of keys: R row, P pending, A active, S schedule, D dead, B base. */
static const struct twin {
    const char *script;
    const char *digest;
    const char *verb;
    const char *keys;
    int id_value; /* the value that names the row; -1: none */
} twins[] = {
    {"enqueue", "1879bcdda8ac5018a5c041380b5a2593ea23c7a9", "EMQ.ENQUEUE", "RP", 0},
    {"schedule", "5d426d0224ae17121930f06612c6d83ede79ed72", "EMQ.SCHEDULE", "RS", 0},
    {"claim", "b34bb261599f6d865300e0cdc2d4edbb049f13b1", "EMQ.CLAIM", "PAB", -1},
    {"extend", "f02efa02cf73cfba767f1bd1a9af2bb2023c9b4f", "EMQ.EXTEND", "AR", 0},
    {"extends", "9e099a1e4ee6c3595384536305afce6a82bdf8f3", "EMQ.EXTENDS", "AB", -1},
    {"complete", "29c05c79d9a1807ab409a33bda183d7b1cd71485", "EMQ.COMPLETE", "ARB", 0},
    {"retry", "c09e356ee40b7cdbe2a2dc04f379eb1810af8085", "EMQ.FAIL", "ASDRB", 0},
    {"delay", "200d6dfcbcf71820bd7deeeef2fc69d5b8c3e4cf", "EMQ.DELAY", "RAS", 0},
    {"promote", "c9b2963bce827432483c46f389b5861c653342f0", "EMQ.PROMOTE", "SPB", -1},
    {"reprocess", "608ad9025766fa0e9ad7321aa9806e3da32a0deb", "EMQ.REPROCESS", "RDP", 0},
    {"reschedule", NULL, "EMQ.RESCHEDULE", "RS", 0},
    {"requeue", NULL, "EMQ.REQUEUE", "APR", 0},
    {"stalled", "d476b6c87097a9dd4e6039fbd31a2a0e2e61223d", "EMQ.STALLED.CHECK", "APDB", -1},
};
#define TWINS (sizeof(twins) / sizeof(twins[0]))

const char *diff_id(char letter) {
    static char ids[IDS][16];
    char *id = ids[letter - 'A'];
    (void)snprintf(id, sizeof(ids[0]), "JOB0KHTOWnGLu%c", letter);
    return id;
}

/* ---- scripts ---- */

static char *read_script(const char *name) {
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/tests/diff/reference/%s.lua", getenv("EMQ_SOURCE_DIR"),
                   name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    size_t n = fread(text, 1, 65535, file);
    assert_true(n > 0 && n < 65535);
    (void)fclose(file);
    return text;
}

/* The server computes the digest. A script that was changed is another reference: nothing is
 * measured by it before its pin is changed, too. */
static void load_scripts(void) {
    for (size_t i = 0; i < TWINS; i++) {
        if (twins[i].digest == NULL) {
            continue;
        }
        char digest[64];
        char *text = read_script(twins[i].script);
        command line = {0};
        command_add(&line, "SCRIPT");
        command_add(&line, "LOAD");
        command_add_bytes(&line, text, strlen(text));
        redisReply *reply = command_send(client, &line);
        assert_int_equal(reply->type, REDIS_REPLY_STRING);
        (void)snprintf(digest, sizeof(digest), "%s", reply->str);
        freeReplyObject(reply);
        command_free(&line);
        free(text);
        if (strcmp(digest, twins[i].digest) != 0) {
            fail_msg("reference/%s.lua has the digest %s, pinned is %s", twins[i].script, digest,
                     twins[i].digest);
        }
    }
}

int diff_start(void **state) {
    (void)state;
    server_start(&diff_server, NULL);
    client = diff_server.admin;
    (void)get_info(run_id, sizeof(run_id), client, "server", "run_id");
    load_scripts();
    return 0;
}

int diff_stop(void **state) {
    (void)state;
    server_stop(&diff_server);
    return 0;
}

/* ---- states ---- */

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A reply's strings in byte order, pairs kept together. */
static void append_sorted(char **out, const redisReply *reply, int group) {
    size_t count = reply->elements / (size_t)group;
    char **lines = calloc(count + 1, sizeof(*lines));
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) {
        for (int g = 0; g < group; g++) {
            const redisReply *e = reply->element[i * (size_t)group + (size_t)g];
            append_text(&lines[i], g > 0 ? "=" : " ");
            append_quoted(&lines[i], e->str, (size_t)e->len);
        }
    }
    qsort(lines, count, sizeof(*lines), compare_texts);
    for (size_t i = 0; i < count; i++) {
        append_text(out, lines[i]);
        free(lines[i]);
    }
    free(lines);
}

/* The two fields that the native side adds by design must hold what they should; then they are
 * taken out of the row. */
static void check_and_mask(redisReply *row, const char *id) {
    size_t kept = 0;
    int is_active = 0;
    int has_epoch = 0;
    int failed = 0;
    for (size_t i = 0; i + 1 < row->elements; i += 2) {
        const char *field = row->element[i]->str;
        const char *value = row->element[i + 1]->str;
        int is_epoch = strcmp(field, "lease_epoch") == 0;
        int is_failures = strcmp(field, "failures") == 0;
        is_active |= strcmp(field, "state") == 0 && strcmp(value, "active") == 0;
        if (is_epoch) {
            assert_string_equal(value, run_id);
            has_epoch = 1;
        }
        if (is_failures) {
            failed = atoi(value);
        }
        if (is_epoch || is_failures) {
            freeReplyObject(row->element[i]);
            freeReplyObject(row->element[i + 1]);
        } else {
            row->element[kept++] = row->element[i];
            row->element[kept++] = row->element[i + 1];
        }
    }
    row->elements = kept;
    if (is_active && !has_epoch) {
        fail_msg("%s is active and has no lease_epoch", id);
    }
    size_t index = (size_t)(id[strlen(id) - 1] - 'A');
    if (index < IDS && failed != failures[index]) {
        fail_msg("%s has failures %d, not %d", id, failed, failures[index]);
    }
}

static void append_key(char **out, side of, const char *key) {
    char type[32];
    redisReply *content = NULL;
    const char *name = key + strlen(bases[of]);
    (void)get_text(type, sizeof(type), client, "TYPE", key, NULL);
    append_text(out, name);
    append_text(out, ":");
    if (strcmp(type, "hash") == 0) {
        content = call(client, "HGETALL", key, NULL);
        if (of == NATIVE && strncmp(name, "job:", 4) == 0) {
            check_and_mask(content, name + 4);
        }
        append_sorted(out, content, 2);
    } else if (strcmp(type, "zset") == 0) {
        content = call(client, "ZRANGE", key, "0", "-1", "WITHSCORES", NULL);
        append_sorted(out, content, 2);
    } else {
        content = strcmp(type, "list") == 0 ? call(client, "LRANGE", key, "0", "-1", NULL)
                                            : call(client, "DUMP", key, NULL);
        append_text(out, " ");
        append_text(out, type);
        if (content->type == REDIS_REPLY_ARRAY) {
            append_sorted(out, content, 1);
        } else {
            append_quoted(out, content->str, (size_t)content->len);
        }
    }
    freeReplyObject(content);
    append_text(out, "\n");
}

static char *get_state(side of) {
    char pattern[KEY_MAX];
    char *out = NULL;
    (void)snprintf(pattern, sizeof(pattern), "%s*", bases[of]);
    redisReply *keys = call(client, "KEYS", pattern, NULL);
    char **names = calloc(keys->elements + 1, sizeof(*names));
    assert_non_null(names);
    for (size_t i = 0; i < keys->elements; i++) {
        names[i] = keys->element[i]->str;
    }
    qsort(names, keys->elements, sizeof(*names), compare_texts);
    append_text(&out, "");
    for (size_t i = 0; i < keys->elements; i++) {
        append_key(&out, of, names[i]);
    }
    free(names);
    freeReplyObject(keys);
    return out;
}

void diff_clear(void) {
    for (int of = SCRIPT; of <= NATIVE; of++) {
        char pattern[KEY_MAX];
        (void)snprintf(pattern, sizeof(pattern), "%s*", bases[of]);
        redisReply *keys = call(client, "KEYS", pattern, NULL);
        for (size_t i = 0; i < keys->elements; i++) {
            run(client, "DEL", keys->element[i]->str, NULL);
        }
        freeReplyObject(keys);
    }
    memset(failures, 0, sizeof(failures));
}

/* ---- steps ---- */

/* Splits in place; a single capital letter from A to H becomes an id. */
static int split(char *text, const char **words) {
    int count = 0;
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(count < WORDS_MAX);
        words[count++] =
            strlen(word) == 1 && *word >= 'A' && *word < 'A' + IDS ? diff_id(*word) : word;
    }
    return count;
}

static const struct twin *find_twin(const char *name) {
    for (size_t i = 0; i < TWINS; i++) {
        if (strcmp(twins[i].script, name) == 0) {
            return &twins[i];
        }
    }
    fail_msg("no such step: %s", name);
    return NULL;
}

static void add_key(command *line, side of, char letter, const char *id) {
    static const struct {
        char letter;
        const char *name;
    } names[] = {{'P', "pending"}, {'A', "active"}, {'S', "schedule"}, {'D', "dead"}, {'B', ""}};
    char key[KEY_MAX];
    if (letter == 'R') {
        (void)snprintf(key, sizeof(key), "%sjob:%s", bases[of], id);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].letter == letter) {
            (void)snprintf(key, sizeof(key), "%s%s", bases[of], names[i].name);
        }
    }
    command_add(line, key);
}

/* Sends one side's line; inside a transaction it is queued. */
static void send_side(const struct twin *twin, side of, int count, const char *const *values) {
    char number[32];
    command line = {0};
    if (of == SCRIPT) {
        command_add(&line, "EVALSHA");
        command_add(&line, twin->digest);
    } else {
        command_add(&line, twin->verb);
    }
    (void)snprintf(number, sizeof(number), "%zu", strlen(twin->keys));
    command_add(&line, number);
    for (const char *letter = twin->keys; *letter != '\0'; letter++) {
        add_key(&line, of, *letter, twin->id_value < 0 ? "" : values[twin->id_value]);
    }
    for (int i = 0; i < count; i++) {
        command_add(&line, values[i]);
    }
    redisReply *reply = command_send(client, &line);
    assert_string_equal(reply->str, "QUEUED");
    freeReplyObject(reply);
    command_free(&line);
}

/* The scripted claim's host step: the pause flag, read in a round trip of its own. */
static int is_paused_for_script(const struct twin *twin) {
    return strcmp(twin->script, "claim") == 0 &&
           get_integer(client, "HEXISTS", "emq:{lua}:meta", "paused", NULL) == 1;
}

/* Counts failures as the native side should. */
static void track_failures(const struct twin *twin, const char *const *values, const char *reply) {
    if (twin->id_value < 0) {
        return;
    }
    size_t index = (size_t)(values[0][strlen(values[0]) - 1] - 'A');
    if (index >= IDS) {
        return;
    }
    if (strcmp(twin->script, "retry") == 0 && reply[0] == '"') {
        failures[index]++;
    } else if ((strcmp(twin->script, "reprocess") == 0 || strcmp(twin->script, "complete") == 0) &&
               strcmp(reply, "1") == 0) {
        failures[index] = 0;
    }
}

static long long to_ms(const redisReply *time) {
    return atoll(time->element[0]->str) * 1000 + atoll(time->element[1]->str) / 1000;
}

static void run_twins(diff_result *out, const struct twin *twin, int count,
                      const char *const *values) {
    int paused = is_paused_for_script(twin);
    int has_script = twin->digest != NULL && !paused;
    EXPECT(client, "+OK", "MULTI");
    if (has_script) {
        send_side(twin, SCRIPT, count, values);
    }
    send_side(twin, NATIVE, count, values);
    EXPECT(client, "+QUEUED", "TIME");
    redisReply *replies = call(client, "EXEC", NULL);
    assert_int_equal(replies->type, REDIS_REPLY_ARRAY);
    redisReply **next = replies->element;
    if (has_script) {
        out->script_reply = reply_to_text(*next++);
    } else if (paused) {
        out->script_reply = strdup("[]");
    }
    out->native_reply = reply_to_text(next[0]);
    out->now_ms = to_ms(next[1]);
    freeReplyObject(replies);
    track_failures(twin, values, out->native_reply);
}

/* The key of a step by hand: `job:A` stands for the row of A, `job:A:logs` for its log lines. */
static void expand_key(char *out, side of, const char *name) {
    static const char row[] = "job:";
    size_t n = sizeof(row) - 1;
    if (strncmp(name, row, n) == 0 && (name[n + 1] == '\0' || name[n + 1] == ':')) {
        (void)snprintf(out, KEY_MAX, "%s%s%s%s", bases[of], row, diff_id(name[n]), name + n + 1);
    } else {
        (void)snprintf(out, KEY_MAX, "%s%s", bases[of], name);
    }
}

static void change_by_hand(int count, const char *const *words) {
    for (int of = SCRIPT; of <= NATIVE; of++) {
        char key[KEY_MAX];
        command line = {0};
        expand_key(key, (side)of, words[1]);
        command_add(&line, words[0] + 1);
        command_add(&line, key);
        for (int i = 2; i < count; i++) {
            command_add(&line, words[i]);
        }
        redisReply *reply = command_send(client, &line);
        assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
        command_free(&line);
    }
}

static long long get_ms(void) {
    redisReply *time = call(client, "TIME", NULL);
    long long ms = to_ms(time);
    freeReplyObject(time);
    return ms;
}

static void wait_ms(const char *ms) {
    long long until = get_ms() + atoll(ms);
    while (get_ms() <= until) {
    }
}

diff_result diff_step(const char *step) {
    char text[512];
    const char *words[WORDS_MAX];
    diff_result result = {0};
    (void)snprintf(text, sizeof(text), "%s", step);
    int count = split(text, words);
    if (words[0][0] == '!') {
        change_by_hand(count, words);
    } else if (strcmp(words[0], "wait") == 0) {
        wait_ms(words[1]);
    } else {
        run_twins(&result, find_twin(words[0]), count - 1, words + 1);
    }
    result.script_state = get_state(SCRIPT);
    result.native_state = get_state(NATIVE);
    return result;
}

void diff_result_free(diff_result *result) {
    free(result->script_reply);
    free(result->native_reply);
    free(result->script_state);
    free(result->native_state);
    *result = (diff_result){0};
}
