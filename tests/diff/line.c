/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs with their twins, and the commands that a line stands for. */
#include "line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha1.h"

const diff_verb diff_verbs[] = {
    {"enqueue", "EMQ.ENQUEUE", "RP", 0, "enqueue", "1879bcdda8ac5018a5c041380b5a2593ea23c7a9"},
    {"schedule", "EMQ.SCHEDULE", "RS", 0, "schedule", "be44de485cbebe45f33813c38d891904c8305386"},
    {"claim", "EMQ.CLAIM", "PAB", -1, "claim", "b34bb261599f6d865300e0cdc2d4edbb049f13b1"},
    {"extend", "EMQ.EXTEND", "AR", 0, "extend", "f02efa02cf73cfba767f1bd1a9af2bb2023c9b4f"},
    {"extends", "EMQ.EXTENDS", "AB", -1, "extends", "9e099a1e4ee6c3595384536305afce6a82bdf8f3"},
    {"complete", "EMQ.COMPLETE", "ARB", 0, "complete", "29c05c79d9a1807ab409a33bda183d7b1cd71485"},
    {"promote", "EMQ.PROMOTE", "SPB", -1, "promote", "d730c80dbf46ef40fa95bf268bb847df520c6ec5"},
    {"reschedule", "EMQ.RESCHEDULE", "RS", 0, NULL, NULL},
    {"delay", "EMQ.DELAY", "RAS", 0, "delay", "0cd4c6f5760636073105bee6f7b6cdf139280e8f"},
    {"fail", "EMQ.FAIL", "ASDRB", 0, "retry", "1d89d7f18138bec5aacd6909a92b3a4f06079003"},
    {"reprocess", "EMQ.REPROCESS", "RDP", 0, "reprocess",
     "608ad9025766fa0e9ad7321aa9806e3da32a0deb"},
    {"requeue", "EMQ.REQUEUE", "APR", 0, NULL, NULL},
    {"stalled.check", "EMQ.STALLED.CHECK", "APDB", -1, "stalled",
     "449ca4c10d9b8a3129e0f540a5710bc4d1d82aad"},
    {NULL, NULL, NULL, 0, NULL, NULL},
};

#define VERBS (sizeof(diff_verbs) / sizeof(diff_verbs[0]))
#define SCRIPT_MAX 8192
static char bodies[VERBS][SCRIPT_MAX];

void words_split(words *out, const char *line) {
    out->count = 0;
    assert_true(strlen(line) < sizeof(out->text));
    (void)snprintf(out->text, sizeof(out->text), "%s", line);
    char *rest = NULL;
    for (char *word = strtok_r(out->text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        assert_true(out->count < LINE_WORDS_MAX);
        out->word[out->count++] = word;
    }
}

static int is_id_start(const char *text, size_t at) {
    return text[at] == 'J' && text[at + 1] >= '1' && text[at + 1] <= '9' &&
           strchr(" :,]\"\n", text[at + 2]) != NULL &&
           (at == 0 || strchr(" :[\"", text[at - 1]) != NULL);
}

void expand_ids(char *out, const char *text) {
    size_t used = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        assert_true(used + ID_TEXT_MAX < LINE_TEXT_MAX);
        if (is_id_start(text, i)) {
            used += (size_t)sprintf(out + used, ID_START "%c", text[i + 1]);
            i++;
        } else {
            out[used++] = text[i];
        }
    }
    out[used] = '\0';
}

const diff_verb *find_verb(const char *word) {
    for (size_t i = 0; diff_verbs[i].word != NULL; i++) {
        if (strcmp(diff_verbs[i].word, word) == 0) {
            return &diff_verbs[i];
        }
    }
    return NULL;
}

static size_t read_script(char *out, const char *name) {
    char path[SERVER_PATH_MAX];
    const char *root = getenv("EMQ_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/tests/diff/reference/%s.lua", root == NULL ? "." : root,
                   name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("cannot read %s", path);
    }
    size_t n = fread(out, 1, SCRIPT_MAX, file);
    (void)fclose(file);
    assert_true(n < SCRIPT_MAX);
    out[n] = '\0';
    return n;
}

void references_load(redisContext *c) {
    for (size_t i = 0; diff_verbs[i].word != NULL; i++) {
        const diff_verb *verb = &diff_verbs[i];
        char file_digest[SHA1_TEXT_MAX];
        char server_digest[SHA1_TEXT_MAX + 1];
        command load = {0};
        if (verb->script == NULL) {
            continue;
        }
        size_t n = read_script(bodies[i], verb->script);
        sha1_text(file_digest, bodies[i], n);
        command_add(&load, "SCRIPT");
        command_add(&load, "LOAD");
        command_add_bytes(&load, bodies[i], n);
        redisReply *reply = command_send(c, &load);
        (void)snprintf(server_digest, sizeof(server_digest), "%s", reply->str);
        freeReplyObject(reply);
        command_free(&load);
        if (strcmp(file_digest, verb->sha1) != 0 || strcmp(server_digest, verb->sha1) != 0) {
            fail_msg(
                "reference/%s.lua is not the pinned script: pinned %s, the file %s, the server "
                "%s",
                verb->script, verb->sha1, file_digest, server_digest);
        }
    }
}

static void add_key(command *out, char letter, const char *base, const char *id) {
    static const char letters[] = "PASDB";
    static const char *const names[] = {"pending", "active", "schedule", "dead", ""};
    char key[LINE_TEXT_MAX];
    if (letter == 'R') {
        (void)snprintf(key, sizeof(key), "%sjob:%s", base, id);
    } else {
        (void)snprintf(key, sizeof(key), "%s%s", base, names[strchr(letters, letter) - letters]);
    }
    command_add(out, key);
}

static void add_word(command *out, const char *word) {
    char text[LINE_TEXT_MAX];
    if (strcmp(word, "\"\"") == 0) {
        command_add(out, "");
        return;
    }
    if (word[0] == 'E' && word[1] >= '0' && word[1] <= '9') {
        size_t n = (size_t)strtoul(word + 1, NULL, 10);
        char *letters = malloc(n);
        assert_non_null(letters);
        memset(letters, 'e', n);
        command_add_bytes(out, letters, n);
        free(letters);
        return;
    }
    expand_ids(text, word);
    command_add(out, text);
}

/* The key count, the keys and the values: the tail that both sides share. */
static void add_tail(command *out, const diff_verb *verb, const char *base, const words *line) {
    char text[LINE_TEXT_MAX] = "";
    (void)snprintf(text, sizeof(text), "%zu", strlen(verb->keys));
    command_add(out, text);
    if (verb->id_index >= 0) {
        assert_true(line->count > 1 + verb->id_index);
        expand_ids(text, line->word[1 + verb->id_index]);
    }
    for (const char *letter = verb->keys; *letter != '\0'; letter++) {
        add_key(out, *letter, base, text);
    }
    for (int i = 1; i < line->count; i++) {
        add_word(out, line->word[i]);
    }
}

void build_native(command *out, const diff_verb *verb, const char *base, const words *line) {
    command_add(out, verb->name);
    add_tail(out, verb, base, line);
}

void build_verb(command *out, const char *name, const char *keys, const char *base,
                const words *line) {
    const diff_verb verb = {.name = name, .keys = keys, .id_index = -1};
    build_native(out, &verb, base, line);
}

void build_reference(command *out, const diff_verb *verb, const char *base, const words *line) {
    const char *body = bodies[verb - diff_verbs];
    command_add(out, "EVAL");
    command_add_bytes(out, body, strlen(body));
    add_tail(out, verb, base, line);
}

void build_plain(command *out, const char *base, const words *line) {
    for (int i = 1; i < line->count; i++) {
        if (line->word[i][0] == '@') {
            char name[LINE_TEXT_MAX];
            char key[2 * LINE_TEXT_MAX];
            expand_ids(name, line->word[i] + 1);
            (void)snprintf(key, sizeof(key), "%s%s", base, name);
            command_add(out, key);
        } else {
            add_word(out, line->word[i]);
        }
    }
}

long long line_span(const diff_verb *verb, const words *line) {
    static const struct {
        const char *word;
        int number; /* the word that holds it */
        int mode;   /* the word that must be `in`; 0: none */
    } spans[] = {{"claim", 1, 0},    {"extends", 1, 0}, {"extend", 3, 0},    {"fail", 3, 0},
                 {"schedule", 4, 3}, {"delay", 4, 3},   {"reschedule", 3, 2}};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        if (strcmp(spans[i].word, verb->word) == 0 && line->count > spans[i].number &&
            (spans[i].mode == 0 || strcmp(line->word[spans[i].mode], "in") == 0)) {
            return strtoll(line->word[spans[i].number], NULL, 10);
        }
    }
    return -1;
}
