/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in every state for the tests, checks of scores and effects, and the verbs as data. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const no_numbers[NO_NUMBERS] = {
    "", "01", "-1", "+1", "1.5", " 1", "1 ", "1e0", "0x1", "x", "1\\x00", "9223372036854775808",
};

const core_verb core_verbs[CORE_VERBS] = {
    {"EMQ.SCHEDULE",
     "SCHEDULE",
     "8",
     "+write, +denyoom, +module, +fast, +movablekeys",
     "+@write, +@fast, +@emq",
     "4",
     {ROW(J1), SCHEDULE},
     {"emq:{q}:job:<id>", "emq:{q}:schedule"},
     {J1, "p", "at", "5"}},
    {"EMQ.EXTEND",
     "EXTEND",
     "7",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@emq",
     "3",
     {ACTIVE, ROW(J1)},
     {"emq:{q}:active", "emq:{q}:job:<id>"},
     {J1, "1", "1000"}},
    {"EMQ.EXTENDS",
     "EXTENDS",
     "-7",
     "+write, +module, +movablekeys",
     "+@write, +@slow, +@emq",
     "1 + 2n",
     {ACTIVE, BASE},
     {"emq:{q}:active", "emq:{q}:"},
     {"1000", J1, "1"}},
    {"EMQ.PROMOTE",
     "PROMOTE",
     "6",
     "+write, +module, +movablekeys",
     "+@write, +@slow, +@emq",
     "1",
     {SCHEDULE, PENDING, BASE},
     {"emq:{q}:schedule", "emq:{q}:pending", "emq:{q}:"},
     {"10"}},
    {"EMQ.RESCHEDULE",
     "RESCHEDULE",
     "7",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@emq",
     "3",
     {ROW(J1), SCHEDULE},
     {"emq:{q}:job:<id>", "emq:{q}:schedule"},
     {J1, "at", "5"}},
    {"EMQ.DELAY",
     "DELAY",
     "9",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@emq",
     "4",
     {ROW(J1), ACTIVE, SCHEDULE},
     {"emq:{q}:job:<id>", "emq:{q}:active", "emq:{q}:schedule"},
     {J1, "1", "at", "5"}},
    {"EMQ.FAIL",
     "FAIL",
     "12",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@emq",
     "5",
     {ACTIVE, SCHEDULE, DEAD, ROW(J1), BASE},
     {"emq:{q}:active", "emq:{q}:schedule", "emq:{q}:dead", "emq:{q}:job:<id>", "emq:{q}:"},
     {J1, "1", "0", "1", "e"}},
    {"EMQ.REPROCESS",
     "REPROCESS",
     "6",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@emq",
     "1",
     {ROW(J1), DEAD, PENDING},
     {"emq:{q}:job:<id>", "emq:{q}:dead", "emq:{q}:pending"},
     {J1}},
    {"EMQ.REQUEUE",
     "REQUEUE",
     "7",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@emq",
     "2",
     {ACTIVE, PENDING, ROW(J1)},
     {"emq:{q}:active", "emq:{q}:pending", "emq:{q}:job:<id>"},
     {J1, "1"}},
    {"EMQ.STALLED.CHECK",
     "STALLED.CHECK",
     "8",
     "+write, +module, +movablekeys",
     "+@write, +@slow, +@emq",
     "2",
     {ACTIVE, PENDING, DEAD, BASE},
     {"emq:{q}:active", "emq:{q}:pending", "emq:{q}:dead", "emq:{q}:"},
     {"1", "10"}},
    {"EMQ.ENQUEUES",
     "ENQUEUES",
     "-6",
     "+write, +denyoom, +module, +movablekeys",
     "+@write, +@slow, +@emq",
     "2n",
     {PENDING, BASE},
     {"emq:{q}:pending", "emq:{q}:"},
     {J1, "p"}},
    {"EMQ.CLAIMS",
     "CLAIMS",
     "-7",
     "+write, +module, +blocking, +movablekeys",
     "+@write, +@slow, +@blocking, +@emq",
     "2 or 3",
     {PENDING, ACTIVE, BASE},
     {"emq:{q}:pending", "emq:{q}:active", "emq:{q}:"},
     {"1000", "10"}},
    {"EMQ.COMPLETES",
     "COMPLETES",
     "-6",
     "+write, +module, +movablekeys",
     "+@write, +@slow, +@emq",
     "2n",
     {ACTIVE, BASE},
     {"emq:{q}:active", "emq:{q}:"},
     {J1, "1"}},
    {"EMQ.PAUSE",
     "PAUSE",
     "4",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@dangerous, +@emq",
     "0",
     {META, BASE},
     {"emq:{q}:meta", "emq:{q}:"},
     {NULL}},
    {"EMQ.RESUME",
     "RESUME",
     "6",
     "+write, +module, +fast, +movablekeys",
     "+@write, +@fast, +@dangerous, +@emq",
     "0",
     {META, PENDING, RING, BASE},
     {"emq:{q}:meta", "emq:{q}:pending", "emq:{q}:ring", "emq:{q}:"},
     {NULL}},
};

void make_job(const char *id, const char *job_state, const char *set, const char *score) {
    char row[256];
    (void)snprintf(row, sizeof(row), ROW("%s"), id);
    run(client, "DEL", row, NULL);
    run(client, "HSET", row, "state", job_state, "attempts", "3", "payload", "p", "lease_epoch",
        get_run_id(), NULL);
    if (set != NULL) {
        run(client, "ZADD", set, score, id, NULL);
    }
}

void sweep_j1_back(void) {
    lease_j1();
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("9", "1"));
}

/* In one transaction TIME and the verb have the same clock. */
void expect_at_now_plus(const char *file, int line, const char *key, const char *id, long long ms,
                        const char *want, ...) {
    command sent = {0};
    va_list words;
    va_start(words, want);
    command_add_words(&sent, words);
    va_end(words);
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", "TIME");
    freeReplyObject(command_send(client, &sent));
    EXPECT(client, "+QUEUED", "ZSCORE", key, id);
    redisReply *reply = call(client, "EXEC", NULL);
    char *got = reply_to_text(reply->element[1]);
    expect_text(file, line, got, want);
    free(got);
    redisReply *const *time = reply->element[0]->element;
    long long now = atoll(time[0]->str) * 1000 + atoll(time[1]->str) / 1000;
    char score[32];
    (void)snprintf(score, sizeof(score), "%lld", now + ms);
    expect_text(file, line, reply->element[2]->str == NULL ? "nil" : reply->element[2]->str, score);
    freeReplyObject(reply);
    command_free(&sent);
}

void expect_log(const char *file, int line, long long mark, const char *key, const char *id,
                const char *want) {
    char score[32];
    char *filled = NULL;
    append_text(&filled, "");
    if (strchr(want, '@') != NULL) {
        (void)get_text(score, sizeof(score), client, "ZSCORE", key, id, NULL);
    }
    for (const char *at = want; *at != '\0'; at++) {
        const char letter[] = {*at, '\0'};
        append_text(&filled, *at == '@' ? score : *at == '$' ? get_run_id() : letter);
    }
    char *got = aof_since(&server, mark);
    expect_text(file, line, got, filled);
    free(got);
    free(filled);
}

void restart_server(void) {
    redisFree(client);
    server_restart(&server);
    client = server_connect(&server);
}

int count_words(const char *const *words) {
    int count = 0;
    while (count < CORE_WORDS_MAX && words[count] != NULL) {
        count++;
    }
    return count;
}

static void add_word(command *line, int place, const char *with, const char *word) {
    command_add(line, line->argc == place ? with : word);
}

void core_line(command *line, const core_verb *verb, int place, const char *with) {
    char count[16];
    (void)snprintf(count, sizeof(count), "%d", count_words(verb->keys));
    add_word(line, place, with, verb->name);
    add_word(line, place, with, count);
    for (int i = 0; i < count_words(verb->keys); i++) {
        add_word(line, place, with, verb->keys[i]);
    }
    for (int i = 0; i < count_words(verb->values); i++) {
        add_word(line, place, with, verb->values[i]);
    }
}

void core_unchanged(const char *file, int line, redisContext *c, const char *want,
                    const core_verb *verb, int place, const char *with) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    command sent = {0};
    core_line(&sent, verb, place, with);
    (void)get_digest(before, &server);
    long long offset = get_offset(&server);
    redisReply *reply = command_send(c, &sent);
    char *got = reply_to_text(reply);
    if (strcmp(got, want) != 0) {
        print_error("%s with \"%s\" at %d:\n", verb->name, with, place);
    }
    expect_text(file, line, got, want);
    expect_text(file, line, get_digest(after, &server), before);
    assert_int_equal(get_offset(&server), offset);
    free(got);
    freeReplyObject(reply);
    command_free(&sent);
}
