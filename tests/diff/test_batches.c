/* SPDX-License-Identifier: Apache-2.0 */
/* Batch verbs beside the single verbs: a random state, copied to a second queue; the batch on the
 * one and the same single verbs in a row on the other, in one transaction, so that both have the
 * same clock. Replies and states must be equal; where a single verb is refused, the whole batch is,
 * and changes nothing.
 *
 *   EMQ_DIFF_BATCHES   how many states (default 400)
 *   EMQ_DIFF_SEED      the first state's seed (default 1); each one after it takes the next
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "generator.h"
#include "harness.h"

#define STATES_DEFAULT 400
#define STEPS_MAX 40
#define BATCHES_A_STATE 4
#define SINGLES_MAX 8

#define BATCH "emq:{batches.batch}:"
#define SINGLES "emq:{batches.singles}:"

/* One batch as the lines of its singles. */
typedef struct batch {
    const char *verb;
    char line[SEQUENCE_LINE_MAX];
    int count;
    char singles[SINGLES_MAX][SEQUENCE_LINE_MAX];
} batch;

static long long compared;
static long long refused;

static void send_built(command *line) {
    freeReplyObject(command_send(server.admin, line));
    command_free(line);
}

static void send_line(const char *text, const char *base) {
    words line;
    command built = {0};
    words_split(&line, text);
    if (strcmp(line.word[0], "!") == 0) {
        build_plain(&built, base, &line);
    } else {
        build_native(&built, find_verb(line.word[0]), base, &line);
    }
    send_built(&built);
}

static void copy_queue(const char *from, const char *to) {
    static const char script[] =
        "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do redis.call('DEL', key) end\n"
        "for _, key in ipairs(redis.call('KEYS', ARGV[2] .. '*')) do\n"
        "    redis.call('COPY', key, ARGV[1] .. key:sub(#ARGV[2] + 1))\n"
        "end\n";
    run(server.admin, "EVAL", script, "0", to, from, NULL);
}

/* What random damage seldom leaves in front of a batch. */
static void damage(generator *g) {
    static const char *const rows[] = {
        "! ZADD @pending 0 JOB0",   "! ZADD @pending 0 J1",      "! SET @job:J2 x",
        "! HSET @job:J3 parent J1", "! HSET @job:J4 attempts x", "! RPUSH @job:J5:logs line",
    };
    static const char *const sets[] = {"! SET @pending x", "! SET @active x",
                                       "! SET @metrics:completed x"};
    /* a job, an id without a row, and a row that can't be claimed, one behind the other */
    static const char *const hurdles[] = {"! DEL @pending @job:J2 @job:J3",
                                          "enqueue J1 a",
                                          "! ZADD @pending 0 J2",
                                          "enqueue J3 c",
                                          "! DEL @job:J3",
                                          "! SET @job:J3 x"};
    unsigned n = (unsigned)(g->state >> 32);
    for (unsigned i = 0; i < 3; i++) {
        send_line(rows[(n >> (4 * i)) % (sizeof(rows) / sizeof(rows[0]))], BATCH);
    }
    if (n % 5 == 0) {
        send_line(sets[(n >> 8) % (sizeof(sets) / sizeof(sets[0]))], BATCH);
    }
    for (size_t i = 0; n % 5 == 1 && i < sizeof(hurdles) / sizeof(hurdles[0]); i++) {
        send_line(hurdles[i], BATCH);
    }
}

/* Runs a line that the model learns, so that tokens can be right. */
static void play(model *m, const char *text) {
    words line;
    words_split(&line, text);
    const diff_verb *verb = find_verb(line.word[0]);
    if (verb != NULL) {
        free(model_call(m, verb, &line, server_now(server.admin), 0));
    } else if (strcmp(line.word[0], "!") == 0) {
        model_plain(m, &line);
    } else {
        return; /* a restart or a pause makes no state that is of interest here */
    }
    send_line(text, BATCH);
}

/* Leases that lapsed and were taken back, whose holders may still settle: random lines seldom leave
 * some of them, and some that are held, in front of a batch. */
static void take_leases_back(model *m) {
    static const char *const lines[] = {"enqueue J1 a",      "enqueue J2 b", "enqueue J4 d",
                                        "claim 60000",       "claim 60000",  "! ZADD @active 1 J1",
                                        "stalled.check 9 10"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        play(m, lines[i]);
    }
}

/* Runs random lines, damage included. */
static void make_state(generator *g, model *m) {
    char run_id[64];
    model_init(m, get_run_id(run_id));
    copy_queue("emq:{batches.nothing}:", BATCH);
    unsigned steps = 2 + (unsigned)(g->state >> 40) % STEPS_MAX;
    for (unsigned i = 0; i < steps; i++) {
        char text[SEQUENCE_LINE_MAX];
        generator_next(g, text, m);
        play(m, text);
    }
    if ((g->state >> 33) % 4 == 0) {
        take_leases_back(m);
    }
    if (g->damages) {
        damage(g);
    }
}

static void make_batch(batch *b, generator *g, const model *m) {
    words line;
    generator_batch(g, b->line, m);
    words_split(&line, b->line);
    b->count = 0;
    int claims = strcmp(line.word[0], "claims") == 0;
    int count = claims ? atoi(line.word[2]) : (line.count - 1) / 2;
    assert_in_range(count, 1, SINGLES_MAX);
    for (int i = 0; i < count; i++) {
        char *single = b->singles[b->count++];
        if (claims) {
            (void)snprintf(single, SEQUENCE_LINE_MAX, "claim %.100s", line.word[1]);
        } else {
            (void)snprintf(single, SEQUENCE_LINE_MAX, "%.*s %.50s %.50s",
                           (int)strlen(line.word[0]) - 1, line.word[0], line.word[1 + 2 * i],
                           line.word[2 + 2 * i]);
        }
    }
    b->verb = claims ? "claims" : strcmp(line.word[0], "enqueues") == 0 ? "enqueues" : "completes";
}

/* What the words of a batch stand for, as a command on its queue. */
static void build_batch(command *out, const batch *b) {
    words line;
    words_split(&line, b->line);
    if (strcmp(b->verb, "enqueues") == 0) {
        build_verb(out, "EMQ.ENQUEUES", "PB", BATCH, &line);
    } else if (strcmp(b->verb, "claims") == 0) {
        build_verb(out, "EMQ.CLAIMS", "PAB", BATCH, &line);
    } else {
        build_verb(out, "EMQ.COMPLETES", "AB", BATCH, &line);
    }
}

/* The kind of the row that a single names: a refusal because of it is one member's alone. */
static int row_is_hash(const char *single) {
    words line;
    char id[LINE_TEXT_MAX];
    char row[LINE_TEXT_MAX + 64];
    char type[32];
    words_split(&line, single);
    expand_ids(id, line.word[1]);
    (void)snprintf(row, sizeof(row), SINGLES "job:%.100s", id);
    redisReply *reply = call(server.admin, "TYPE", row, NULL);
    (void)snprintf(type, sizeof(type), "%s", reply->str);
    freeReplyObject(reply);
    return strcmp(type, "hash") == 0;
}

static int starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* What a single's answer is in a batch; NULL when it refuses the batch. */
static const char *member_answer(const batch *b, const char *answer, int is_hash) {
    if (answer[0] != '-') {
        return answer;
    }
    if (strcmp(b->verb, "completes") != 0) {
        return NULL;
    }
    if (starts_with(answer, "-EMQLANE") || starts_with(answer, "-EMQFLOW")) {
        return "-2";
    }
    if (starts_with(answer, "-EMQSTALE") || starts_with(answer, "-ERR EMQ row attempts") ||
        (starts_with(answer, "-WRONGTYPE") && !is_hash)) {
        return "-1";
    }
    return NULL;
}

/* The singles' answers put together as the batch's. A refusal that is the batch's is left in
 * *refusal, as the first of them. */
static char *join(const batch *b, redisReply *const *answers, const int *are_hashes,
                  char **refusal) {
    int claims = strcmp(b->verb, "claims") == 0;
    int joined = 0;
    char *text = NULL;
    append_text(&text, "[");
    for (int i = 0; i < b->count; i++) {
        char *answer = reply_text(answers[i]);
        const char *member = claims ? answer : member_answer(b, answer, are_hashes[i]);
        if (claims && answer[0] == '-') {
            /* jobs in front of one that is refused are handed out all the same */
            member = joined > 0 ? "[]" : NULL;
        }
        if (member == NULL && *refusal == NULL) {
            append_text(refusal, answer);
        } else if (member != NULL && (!claims || strcmp(member, "[]") != 0)) {
            append_text(&text, joined++ > 0 ? ", " : "");
            append_text(&text, member);
        }
        free(answer);
    }
    append_text(&text, "]");
    return text;
}

static char *snapshot_text(const char *base) {
    snapshot s;
    char *text = NULL;
    snapshot_take(&s, server.admin, base);
    append_text(&text, "");
    for (size_t i = 0; i < s.count; i++) {
        append_text(&text, s.entries[i].path);
        append_text(&text, " = ");
        append_text(&text, s.entries[i].value);
        append_text(&text, "\n");
    }
    snapshot_free(&s);
    return text;
}

static void expect_equal(const batch *b, unsigned long long seed, const char *what,
                         const char *wanted, const char *got) {
    if (strcmp(wanted, got) != 0) {
        fail_msg("EMQ_DIFF_SEED=%llu EMQ_DIFF_BATCHES=1: %s of `%s`\nthe singles:\n%s\nthe batch:\n"
                 "%s",
                 seed, what, b->line, wanted, got);
    }
}

/* The batch and its singles in one transaction. The answer of the batch is the first one. */
static redisReply *run_both(const batch *b) {
    command line = {0};
    run(server.admin, "MULTI", NULL);
    build_batch(&line, b);
    send_built(&line);
    for (int i = 0; i < b->count; i++) {
        send_line(b->singles[i], SINGLES);
    }
    redisReply *reply = call(server.admin, "EXEC", NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, 1 + b->count);
    return reply;
}

static void compare_batch(const batch *b, unsigned long long seed) {
    int are_hashes[SINGLES_MAX] = {0};
    copy_queue(BATCH, SINGLES);
    for (int i = 0; i < b->count && strcmp(b->verb, "completes") == 0; i++) {
        are_hashes[i] = row_is_hash(b->singles[i]);
    }
    char *before = snapshot_text(BATCH);
    redisReply *reply = run_both(b);
    char *refusal = NULL;
    char *wanted = join(b, reply->element + 1, are_hashes, &refusal);
    char *got = reply_text(reply->element[0]);
    char *after = snapshot_text(BATCH);
    char *singles = snapshot_text(SINGLES);
    expect_equal(b, seed, "the reply", refusal != NULL ? refusal : wanted, got);
    expect_equal(b, seed, "the state", refusal != NULL ? before : singles, after);
    compared += refusal == NULL;
    refused += refusal != NULL;
    freeReplyObject(reply);
    free(before);
    free(refusal);
    free(wanted);
    free(got);
    free(after);
    free(singles);
}

static unsigned long long read_setting(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 10);
}

static void batches_are_their_singles_in_a_row(void **state) {
    static model m;
    unsigned long long seed = read_setting("EMQ_DIFF_SEED", 1);
    unsigned long long left = read_setting("EMQ_DIFF_BATCHES", STATES_DEFAULT);
    (void)state;
    for (; left > 0; seed++, left--) {
        generator g;
        generator_init(&g, seed);
        make_state(&g, &m);
        for (int i = 0; i < BATCHES_A_STATE; i++) {
            batch b;
            make_batch(&b, &g, &m);
            compare_batch(&b, seed);
        }
    }
    print_message("%lld batches beside their singles, %lld refused as a whole\n", compared,
                  refused);
    assert_true(compared > refused);
}

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_are_their_singles_in_a_row)};
    return RUN_SERVER_TESTS("diff batches", tests, start_server, stop_server);
}
