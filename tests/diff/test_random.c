/* SPDX-License-Identifier: Apache-2.0 */
/* The random run: sequences of operations on the native verbs, the reference and the model,
 * compared after every step. All sides of a step run in one MULTI/EXEC with TIME, and a short lease
 * is waited out, so that no race decides; a seed always gives the same run.
 *
 *   EMQ_DIFF_STEPS   how many steps (default 4000)
 *   EMQ_DIFF_SEED    the first sequence's seed (default 1); each one after it takes the next
 *   EMQ_DIFF_NO_SHRINK   set: a failing sequence is printed as it is
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare.h"
#include "generator.h"
#include "harness.h"

#define STEPS_DEFAULT 4000
#define SHORT_MS 1000 /* a span up to this is waited out */
#define SHRINK_TRIALS 300
#define REWRITE_EVERY 100 /* sequences */
#define IDS 10

#define NATIVE "emq:{random.native}:"
#define REFERENCE "emq:{random.reference}:"

typedef struct sequence {
    int count;
    char lines[SEQUENCE_MAX][SEQUENCE_LINE_MAX];
} sequence;

/* One sequence on its way. */
typedef struct trial {
    model m;
    int is_damaged;
    long long completed; /* counted from the replies */
    long long failed;
    long long tokens[IDS]; /* the last one of each id, in this life of it */
    char *failure;         /* what went wrong; NULL: nothing yet */
} trial;

static long long compared_with_reference;
static long long deviated;
static const sequence *current; /* for a crash: what ran */
static unsigned long long current_seed;

static void print_sequence(const sequence *s) {
    for (int i = 0; i < s->count; i++) {
        print_error("    %s\n", s->lines[i]);
    }
}

static void fail_trial(trial *t, const char *what, const char *wanted, const char *got) {
    if (t->failure == NULL) {
        append_text(&t->failure, what);
        append_text(&t->failure, "\n  wanted: ");
        append_text(&t->failure, wanted == NULL ? "(nothing)" : wanted);
        append_text(&t->failure, "\n  got:    ");
        append_text(&t->failure, got == NULL ? "(nothing)" : got);
    }
}

/* ---- commands, many in one go ---- */

static void append_command(const command *line) {
    const char *argv[LINE_WORDS_MAX + 16];
    assert_true(line->argc < LINE_WORDS_MAX + 16);
    for (int i = 0; i < line->argc; i++) {
        argv[i] = line->argv[i];
    }
    (void)redisAppendCommandArgv(server.admin, line->argc, argv, line->lengths);
}

static void append_built(command *line) {
    append_command(line);
    command_free(line);
}

static void append_words(const char *words_text) {
    words line;
    command built = {0};
    words_split(&line, words_text);
    for (int i = 0; i < line.count; i++) {
        command_add(&built, line.word[i]);
    }
    append_built(&built);
}

static redisReply *next_reply(void) {
    void *reply = NULL;
    if (redisGetReply(server.admin, &reply) != REDIS_OK || reply == NULL) {
        print_error("the connection was lost in the sequence of EMQ_DIFF_SEED=%llu:\n",
                    current_seed);
        print_sequence(current);
        fail_msg("the server is gone: %s", server.admin->errstr);
    }
    return reply;
}

static void skip_replies(int count) {
    for (int i = 0; i < count; i++) {
        freeReplyObject(next_reply());
    }
}

/* Deletes every key of a queue; then, for `from`, copies that queue's keys. */
static void append_reset(const char *base, const char *from) {
    static const char script[] =
        "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do redis.call('DEL', key) end\n"
        "if ARGV[2] == '' then return end\n"
        "for _, key in ipairs(redis.call('KEYS', ARGV[2] .. '*')) do\n"
        "    redis.call('COPY', key, ARGV[1] .. key:sub(#ARGV[2] + 1))\n"
        "end\n";
    command line = {0};
    command_add(&line, "EVAL");
    command_add_bytes(&line, script, sizeof(script) - 1);
    command_add(&line, "0");
    command_add(&line, base);
    command_add(&line, from);
    append_built(&line);
}

static void append_snapshot(const char *base) {
    command line = {0};
    snapshot_build(&line, base);
    append_built(&line);
}

/* ---- comparisons ---- */

static void compare_snapshots(trial *t, const char *what, const snapshot *wanted,
                              const snapshot *got) {
    size_t i = 0;
    size_t j = 0;
    while (t->failure == NULL && (i < wanted->count || j < got->count)) {
        const entry *w = i < wanted->count ? &wanted->entries[i] : NULL;
        const entry *g = j < got->count ? &got->entries[j] : NULL;
        int order = w == NULL ? 1 : g == NULL ? -1 : strcmp(w->path, g->path);
        char *place = NULL;
        append_text(&place, what);
        append_text(&place, ": ");
        append_text(&place, order <= 0 ? w->path : g->path);
        if (order != 0 || strcmp(w->value, g->value) != 0) {
            fail_trial(t, place, order <= 0 ? w->value : NULL, order >= 0 ? g->value : NULL);
        }
        i += order <= 0;
        j += order >= 0;
        free(place);
    }
}

/* Takes the declared fields out of what both sides hold, and compares the rest. */
static void compare_with_reference(trial *t, const redisReply *reference, snapshot *native) {
    snapshot other;
    snapshot_read(&other, reference);
    snapshot_drop(&other, " hash lease_epoch");
    snapshot_drop(&other, " hash failures");
    snapshot_drop(native, " hash lease_epoch");
    snapshot_drop(native, " hash failures");
    compare_snapshots(t, "the native state beside the reference's", &other, native);
    snapshot_free(&other);
}

static void compare_with_model(trial *t, snapshot *native) {
    snapshot predicted;
    model_state(&predicted, &t->m);
    compare_snapshots(t, "the state beside the model's", &predicted, native);
    snapshot_free(&predicted);
}

/* ---- what must hold whatever happens ---- */

static void count_reply(trial *t, const diff_verb *verb, const char *reply) {
    const char *word = verb->word;
    if (strcmp(word, "complete") == 0 && strcmp(reply, "1") == 0) {
        t->completed++;
    } else if (strcmp(word, "fail") == 0 && strcmp(reply, "\"dead\"") == 0) {
        t->failed++;
    } else if (strcmp(word, "stalled.check") == 0 && reply[0] == '[') {
        for (const char *at = strstr(reply, "], ["); at != NULL; at = strstr(at + 1, "\"JOB")) {
            t->failed += strncmp(at, "\"JOB", 4) == 0;
        }
    }
}

static void check_token(trial *t, const diff_verb *verb, const char *reply) {
    if (strcmp(verb->word, "claim") != 0 || strncmp(reply, "[\"JOB", 5) != 0) {
        return;
    }
    int id = reply[2 + 13] - '0';
    long long token = atoll(strrchr(reply, ' ') + 1);
    assert_true(id >= 0 && id < IDS);
    if (token <= t->tokens[id]) {
        fail_trial(t, "a token never repeats", "a higher one", reply);
    }
    t->tokens[id] = token;
}

static void check_count(trial *t, const char *key, long long counted) {
    char text[32] = "0";
    const char *held = model_field(&t->m, key, "count");
    (void)snprintf(text, sizeof(text), "%lld", counted);
    if (strcmp(held == NULL ? "0" : held, text) != 0) {
        fail_trial(t, key, text, held);
    }
}

static void check_invariants(trial *t, const diff_verb *verb, const char *reply) {
    if (t->is_damaged) {
        return;
    }
    count_reply(t, verb, reply);
    check_token(t, verb, reply);
    check_count(t, "metrics:completed", t->completed);
    check_count(t, "metrics:failed", t->failed);
    const char *broken = model_find_broken_invariant(&t->m);
    if (broken != NULL) {
        fail_trial(t, "a broken invariant", broken, reply);
    }
    for (int i = 1; i < IDS; i++) {
        char row[MODEL_NAME_MAX];
        (void)snprintf(row, sizeof(row), "job:" ID_START "%d", i);
        if (model_find(&t->m, row) == NULL) {
            t->tokens[i] = 0; /* another job of this id begins anew */
        }
    }
}

/* ---- steps ---- */

static void wait_out(long long past) {
    const struct timespec pause = {0, 200 * 1000};
    while (server_now(server.admin) <= past) {
        (void)nanosleep(&pause, NULL);
    }
}

/* What the host of the reference does before its script: 1 when a pause ends the call. */
static int ends_in_host(const trial *t, const diff_verb *verb) {
    return strcmp(verb->word, "claim") == 0 && model_field(&t->m, "meta", "paused") != NULL;
}

static void append_verb(const diff_verb *verb, const words *line, const char *base,
                        int as_reference) {
    command built = {0};
    if (as_reference) {
        build_reference(&built, verb, base, line);
    } else {
        build_native(&built, verb, base, line);
    }
    append_built(&built);
}

/* Sends the step: the reference (where it runs), the native verb and TIME in one transaction, and
 * the two queues as they are then. Answers the transaction's reply. */
static redisReply *send_step(const diff_verb *verb, const words *line, int with_reference,
                             int paused) {
    int queued = 2 + with_reference + 2 * paused;
    append_words("MULTI");
    if (paused) {
        append_words("CLIENT PAUSE 100000 WRITE");
    }
    if (with_reference) {
        append_verb(verb, line, REFERENCE, 1);
    }
    append_verb(verb, line, NATIVE, 0);
    append_words("TIME");
    if (paused) {
        append_words("CLIENT UNPAUSE");
    }
    append_words("EXEC");
    append_snapshot(NATIVE);
    append_snapshot(REFERENCE);
    skip_replies(1 + queued);
    redisReply *reply = next_reply();
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, queued);
    return reply;
}

/* The reference deviates here by design: it goes on from the native state. */
static void follow_native(void) {
    append_reset(REFERENCE, NATIVE);
    skip_replies(1);
    deviated++;
}

/* Runs the step in the model to learn whether the reference deviates: the time is not known yet,
 * but a short lease is waited out, so that any time from now on gives the same. */
static const char *find_deviation(const trial *t, const diff_verb *verb, const words *line) {
    static model copy;
    long long now = server_now(server.admin);
    copy = t->m;
    char *reply = model_call(&copy, verb, line, now, 0);
    const char *reason = model_deviation(&t->m, verb, line, now, reply);
    free(reply);
    return reason;
}

static void run_verb_step(trial *t, const diff_verb *verb, const words *line, int paused) {
    int by_host = ends_in_host(t, verb);
    int deviates = paused || find_deviation(t, verb, line) != NULL;
    int with_reference = !deviates && !by_host;
    redisReply *step = send_step(verb, line, with_reference, paused);
    redisReply *native_state = next_reply();
    redisReply *reference_state = next_reply();
    size_t at = (size_t)(paused + with_reference);
    long long now = time_of(step->element[at + 1]);
    char *native = reply_text(step->element[at]);
    char *predicted = model_call(&t->m, verb, line, now, paused);
    snapshot state;
    snapshot_read(&state, native_state);
    if (strcmp(native, predicted) != 0) {
        fail_trial(t, "the reply beside the model's", predicted, native);
    }
    compare_with_model(t, &state);
    check_invariants(t, verb, native);
    if (!deviates) {
        char *reference = by_host ? strdup("[]") : reply_text(step->element[0]);
        if (strcmp(native, reference) != 0) {
            fail_trial(t, "the native reply beside the reference's", reference, native);
        }
        compare_with_reference(t, reference_state, &state);
        compared_with_reference++;
        free(reference);
    } else {
        follow_native();
    }
    long long span = line_span(verb, line);
    if (span >= 0 && span <= SHORT_MS) {
        wait_out(now + span);
    }
    free(native);
    free(predicted);
    snapshot_free(&state);
    freeReplyObject(step);
    freeReplyObject(native_state);
    freeReplyObject(reference_state);
}

static void check_state(trial *t) {
    snapshot state;
    snapshot_take(&state, server.admin, NATIVE);
    compare_with_model(t, &state);
    snapshot_free(&state);
}

static void run_plain_step(trial *t, const words *line) {
    static const char *const bases[] = {NATIVE, REFERENCE};
    for (int i = 0; i < 2; i++) {
        command built = {0};
        build_plain(&built, bases[i], line);
        append_built(&built);
    }
    skip_replies(2);
    model_plain(&t->m, line);
    if (strcmp(line->word[2], "@meta") != 0) {
        t->is_damaged = 1;
    }
    check_state(t);
}

static void run_line(trial *t, const char *text) {
    words line;
    words_split(&line, text);
    if (strcmp(line.word[0], "restart") == 0) {
        server_restart(&server);
        (void)get_run_id(t->m.run_id);
        check_state(t);
    } else if (strcmp(line.word[0], "reload") == 0) {
        run(server.admin, "DEBUG", "LOADAOF", NULL);
        check_state(t);
    } else if (strcmp(line.word[0], "!") == 0) {
        run_plain_step(t, &line);
    } else {
        int paused = strcmp(line.word[0], "paused") == 0;
        words_split(&line, text + (paused ? strlen("paused ") : 0));
        const diff_verb *verb = find_verb(line.word[0]);
        assert_non_null(verb);
        run_verb_step(t, verb, &line, paused);
    }
}

/* ---- trials ---- */

static void start_trial(trial *t) {
    char run_id[64];
    memset(t, 0, sizeof(*t));
    model_init(&t->m, get_run_id(run_id));
    append_reset(NATIVE, "");
    append_reset(REFERENCE, "");
    skip_replies(2);
}

/* Runs a sequence as it stands; the failure, or NULL. */
static char *run_sequence(const sequence *s) {
    static trial t;
    start_trial(&t);
    current = s;
    for (int i = 0; i < s->count && t.failure == NULL; i++) {
        run_line(&t, s->lines[i]);
    }
    return t.failure;
}

/* Makes and runs a sequence; it ends where it fails. */
static char *run_new_sequence(sequence *s, unsigned long long seed, int steps) {
    static trial t;
    generator g;
    start_trial(&t);
    generator_init(&g, seed);
    s->count = 0;
    current = s;
    current_seed = seed;
    while (s->count < steps && t.failure == NULL) {
        generator_next(&g, s->lines[s->count], &t.m);
        s->count++;
        run_line(&t, s->lines[s->count - 1]);
    }
    return t.failure;
}

/* Leaves lines out, in ever smaller pieces, as long as it still fails. */
static char *shrink(sequence *s, char *failure) {
    static sequence shorter;
    int trials = 0;
    for (int piece = s->count / 2; piece >= 1 && trials < SHRINK_TRIALS;) {
        int removed = 0;
        for (int at = 0; at < s->count && trials < SHRINK_TRIALS;) {
            int end = at + piece < s->count ? at + piece : s->count;
            shorter.count = 0;
            for (int i = 0; i < s->count; i++) {
                if (i < at || i >= end) {
                    memcpy(shorter.lines[shorter.count++], s->lines[i], SEQUENCE_LINE_MAX);
                }
            }
            trials++;
            char *again = run_sequence(&shorter);
            if (again != NULL) {
                free(failure);
                failure = again;
                *s = shorter;
                removed = 1;
            } else {
                at = end;
            }
        }
        piece = removed && piece == 1 ? 1 : piece / 2;
    }
    return failure;
}

static unsigned long long read_setting(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 10);
}

/* ---- the AOF ---- */

static long long emq_records;
static long long all_records;

static void count_aof(void) {
    long long emq = 0;
    all_records += count_records(&server, &emq);
    emq_records += emq;
}

static int is_rewritten(void *data) {
    char text[32];
    (void)data;
    return strcmp(
               get_info(text, sizeof(text), server.admin, "persistence", "aof_rewrite_in_progress"),
               "0") == 0 &&
           strcmp(
               get_info(text, sizeof(text), server.admin, "persistence", "aof_rewrite_scheduled"),
               "0") == 0;
}

/* A long run would read an ever longer file at each reload. */
static void shorten_aof(void) {
    count_aof();
    run(server.admin, "BGREWRITEAOF", NULL);
    wait_until("the AOF is rewritten", is_rewritten, NULL);
}

static void random_sequences_agree(void **state) {
    (void)state;
    static sequence s;
    unsigned long long seed = read_setting("EMQ_DIFF_SEED", 1);
    long long left = (long long)read_setting("EMQ_DIFF_STEPS", STEPS_DEFAULT);
    long long all = left;
    for (; left > 0; seed++, left -= SEQUENCE_MAX) {
        char *failure = run_new_sequence(&s, seed, left < SEQUENCE_MAX ? (int)left : SEQUENCE_MAX);
        if (failure != NULL) {
            print_error("EMQ_DIFF_SEED=%llu EMQ_DIFF_STEPS=%d fails:\n%s\nshrinking…\n", seed,
                        s.count, failure);
            if (getenv("EMQ_DIFF_NO_SHRINK") == NULL) {
                failure = shrink(&s, failure);
            }
            print_error("%s\nthe last step of\n", failure);
            print_sequence(&s);
            free(failure);
            fail_msg("seed %llu", seed);
        }
        if (seed % REWRITE_EVERY == 0) {
            shorten_aof();
        }
    }
    print_message("%lld steps, %lld of them beside the reference, %lld where it deviates\n", all,
                  compared_with_reference, deviated);
    /* a run that hardly asks the reference would prove nothing by it */
    assert_true(compared_with_reference > deviated || all < SEQUENCE_MAX);
}

static void the_aof_holds_no_emq_record(void **state) {
    (void)state;
    count_aof();
    assert_true(all_records > 0);
    assert_int_equal(emq_records, 0);
}

static void no_effect_was_lost(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(get_info(text, sizeof(text), server.admin, "emq", "emq_lost_effects"), "0");
}

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    references_load(server.admin);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences_agree),
        cmocka_unit_test(no_effect_was_lost),
        cmocka_unit_test(the_aof_holds_no_emq_record),
    };
    return RUN_SERVER_TESTS("diff random", tests, start_server, stop_server);
}
