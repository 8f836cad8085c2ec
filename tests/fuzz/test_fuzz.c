/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input: calls of every verb, right ones and ones with something wrong in them, plain, in
 * transactions, in scripts, while writes are paused and over both protocols, on a queue that only
 * verbs touch and on one that is damaged by hand. The server must answer, an error must be one of
 * those that are known, a refused call must leave nothing behind, the clean queue's invariants must
 * hold, and the AOF must load to the same data.
 *
 *   EMQ_FUZZ_SEED    this seed alone (default: a fixed one, and then one that is drawn and printed)
 *   EMQ_FUZZ_CALLS   how many calls for each seed
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "damage.h"
#include "expect.h"
#include "flaw.h"
#include "generator.h"
#include "invariants.h"
#include "resp.h"
#include "wire.h"

#define CALLS_DEFAULT 16000
#define SEED_DEFAULT 1
#define ROUND_CALLS 400 /* a round begins with nothing, and has a seed of its own */
#define ROUNDS_PER_RELOAD 10
#define ROUNDS_PER_REWRITE 50
#define CALLS_PER_LOOK 20 /* at the clean queue */
#define HISTORY 12
#define LOG_SHOWN 60000
#define LOG_TAIL 4000
#define LINES_MAX 3
#define WAIT_MS "50"
#define WAITER_CALLS 15 /* after so many calls its answer is waited for */

/* Each verb must have been called so often, and a write verb must have written so often, in a run
 * of the default length. */
#define ACCEPTED_LEAST 20
#define CHANGED_LEAST 3

#define TEXT_KEY FUZZ_PLAIN "text" /* a string, and no number */

typedef enum road { PLAIN, TRANSACTION, DISCARDED, SCRIPT, PAUSED } road;

static const char *const road_names[] = {"plain", "MULTI EXEC", "MULTI DISCARD", "EVAL",
                                         "while writes are paused"};

/* What the server holds and has propagated. */
typedef struct measure {
    char digest[DIGEST_MAX];
    long long offset;
} measure;

/* One step of a round: mostly one call; more than one in a transaction. */
typedef struct step {
    road road;
    int over_resp3;
    int with_error;  /* a transaction also holds a command of the server's that fails */
    int with_writes; /* and one that writes */
    int line_count;
    fuzz_line lines[LINES_MAX];
} step;

/* What the verbs of a step answered. */
typedef struct outcome {
    int accepted;
    int refused;
    int ran; /* a transaction was executed */
} outcome;

static test_server server;
static resp connections[2]; /* RESP2 and RESP3 */
static resp waiter;         /* a client that waits for work, now and then */
static int is_waiting;
static int waited_calls;

static measure last; /* after the last step */
static generator now;
static int fence_calls; /* so many more calls until the fence is restored */

static unsigned long long round_seed;
static int round_calls;
static char *history[HISTORY];
static size_t history_count;
static int is_lost; /* the server does not answer any more */

static unsigned long long accepted[EMQ_VERBS];
static unsigned long long refused[EMQ_VERBS];
static unsigned long long changed[EMQ_VERBS];
static unsigned long long total_calls;

/* ---- failures ---- */

static void note(char *text) {
    char **place = &history[history_count++ % HISTORY];
    free(*place);
    *place = text;
}

/* What the server wrote last, or of a crash its own report. cmocka's printing would cut it. */
static void print_log(void) {
    char line[1024];
    int is_report = 0;
    FILE *file = fopen(server.log, "r");
    (void)fprintf(stderr, "the server's log:\n");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        return;
    }
    long end = ftell(file);
    (void)fseek(file, end > LOG_SHOWN ? end - LOG_SHOWN : 0, SEEK_SET);
    while (fgets(line, sizeof(line), file) != NULL) {
        is_report = is_report || strstr(line, "BUG REPORT START") != NULL;
        if (is_report || end <= LOG_SHOWN || ftell(file) > end - LOG_TAIL) {
            (void)fputs(line, stderr);
        }
    }
    (void)fclose(file);
}

static void give_up(const char *what, const char *got) {
    (void)fprintf(stderr, "EMQ_FUZZ_SEED=%llu EMQ_FUZZ_CALLS=%d fails: %s\n", round_seed,
                  round_calls, what);
    (void)fprintf(stderr, "  got: %s\nafter these, the last one last:\n",
                  got == NULL ? "(nothing)" : got);
    for (size_t i = 0; i < HISTORY; i++) {
        const char *text = history[(history_count + i) % HISTORY];
        if (text != NULL) {
            (void)fprintf(stderr, "  %s\n", text);
        }
    }
    if (is_lost) {
        print_log();
    }
    fail_msg("seed %llu, call %d", round_seed, round_calls);
}

static void give_up_at(const char *what, const resp_reply *reply) {
    give_up(what, resp_to_text(reply));
}

static resp_reply *answer(resp *c) {
    resp_reply *reply = resp_read(c);
    if (reply == NULL) {
        is_lost = 1;
        give_up(c->trouble, NULL);
    }
    return reply;
}

/* ---- connections ---- */

static void connect_all(void) {
    resp_connect(&connections[0], &server);
    resp_connect(&connections[1], &server);
    resp_connect(&waiter, &server);
    is_waiting = 0;
    resp_add_words(&connections[1], "HELLO", "3", NULL);
    resp_send(&connections[1]);
    resp_reply *hello = answer(&connections[1]);
    assert_true(hello->type == '%');
    resp_free(hello);
}

static void close_all(void) {
    resp_close(&connections[0]);
    resp_close(&connections[1]);
    resp_close(&waiter);
}

/* ---- measuring ---- */

static void add_measure(resp *c) {
    resp_add_words(c, "DEBUG", "DIGEST", NULL);
    resp_add_words(c, "INFO", "replication", "emq", NULL);
}

static long long find_number(const resp_reply *info, const char *field) {
    const char *at = strstr(info->text, field);
    assert_non_null(at);
    return strtoll(at + strlen(field), NULL, 10);
}

static void read_measure(resp *c, measure *out) {
    resp_reply *digest = answer(c);
    resp_reply *info = answer(c);
    if (digest->type != '+' || strchr("$=", info->type) == NULL) {
        give_up_at("a call was answered more than once", digest);
    }
    (void)snprintf(out->digest, sizeof(out->digest), "%s", digest->text);
    out->offset = find_number(info, "\nmaster_repl_offset:");
    if (find_number(info, "\nemq_lost_effects:") != 0) {
        give_up("an effect was lost", "INFO emq_lost_effects");
    }
    resp_free(digest);
    resp_free(info);
}

static void measure_again(void) {
    add_measure(&connections[0]);
    resp_send(&connections[0]);
    read_measure(&connections[0], &last);
}

/* ---- errors ---- */

/* The server's own words, and those of it that the module says in its place. */
static const char *const server_errors[] = {
    "ERR wrong number of arguments for '",
    "ERR Wrong number of args calling command from script",
    "ERR This Valkey command is not allowed from script",
    "EXECABORT Transaction discarded because of previous errors.",
    "ERR hash value is not an integer",
    "ERR value is not an integer or out of range",
    "ERR increment or decrement would overflow",
    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
    "ERR The stream has exhausted the last possible ID, unable to add more items",
    "ERR Elements are too large to be stored",
};

static int is_known(const resp_reply *error, road how) {
    switch (emq_refusal_classify(error->text, error->length)) {
    case EMQ_REFUSAL_CLASSES:
        break;
    case EMQ_REFUSAL_NOPERM:
        return 0; /* nobody lacks a right here */
    case EMQ_REFUSAL_WRITE_PAUSED:
        return how == PAUSED;
    default:
        return 1;
    }
    for (size_t i = 0; i < sizeof(server_errors) / sizeof(server_errors[0]); i++) {
        if (strncmp(error->text, server_errors[i], strlen(server_errors[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

static void check_error(const resp_reply *reply, road how) {
    if (resp_is_error(reply) && !is_known(reply, how)) {
        give_up_at("an error that nobody knows", reply);
    }
}

/* Jobs that were handed out, as [id, payload, attempts], wherever they stand in the answer. */
static void learn(const fuzz_line *line, const resp_reply *reply) {
    if (reply->count == 3 && reply->elements[0].type == '$' && reply->elements[2].type == ':') {
        generator_learn(&now, line->queue, reply->elements[0].text, reply->elements[2].integer);
    }
    for (size_t i = 0; i < reply->count; i++) {
        learn(line, &reply->elements[i]);
    }
}

/* The words alone, or the fence, say that this call must be refused. */
static const char *find_reason_to_refuse(const fuzz_line *line) {
    const emq_verb *verb = &emq_verbs[line->symbol];
    if (now.fence_is_away && emq_verb_counts_keys(verb) && verb->family != EMQ_FAMILY_ADMIN) {
        return "the fence is wrong";
    }
    return find_flaw(verb, &line->words);
}

static void accept(const fuzz_line *line, const resp_reply *reply) {
    const char *reason = find_reason_to_refuse(line);
    if (reason != NULL) {
        char *text = NULL;
        append_text(&text, "a call was accepted although ");
        append_text(&text, reason);
        give_up_at(text, reply);
    }
    if (emq_verbs[line->symbol].family == EMQ_FAMILY_ADMIN) {
        now.fence_is_away = 0; /* it has just been written */
    }
    accepted[line->symbol]++;
    learn(line, reply);
}

static void judge(const step *s, const fuzz_line *line, const resp_reply *reply, outcome *out) {
    check_error(reply, s->road);
    if (resp_holds_error(reply)) {
        give_up_at("an error inside of an answer", reply);
    }
    if (resp_is_error(reply)) {
        out->refused++;
        refused[line->symbol]++;
    } else {
        out->accepted++;
        accept(line, reply);
    }
}

/* ---- steps ---- */

static void make_step(step *s) {
    static const road roads[] = {PLAIN,       PLAIN,       PLAIN,  PLAIN,  PLAIN,  PLAIN,
                                 TRANSACTION, TRANSACTION, SCRIPT, SCRIPT, PAUSED, DISCARDED};
    *s = (step){.road = DRAW(&now.d, roads), .line_count = 1};
    s->over_resp3 = draw_one_in(&now.d, 4);
    if (s->road == TRANSACTION) {
        s->line_count = 1 + (int)draw_below(&now.d, LINES_MAX);
        s->with_error = draw_one_in(&now.d, 3);
        s->with_writes = draw_one_in(&now.d, 4);
    }
    for (int i = 0; i < s->line_count; i++) {
        generator_next(&now, &s->lines[i]);
    }
}

static void free_step(step *s) {
    for (int i = 0; i < s->line_count; i++) {
        fuzz_line_free(&s->lines[i]);
    }
}

static void note_step(const step *s) {
    char *text = NULL;
    append_text(&text, road_names[s->road]);
    append_text(&text, s->over_resp3 ? ", RESP3:" : ":");
    for (int i = 0; i < s->line_count; i++) {
        char *words = fuzz_words_to_text(&s->lines[i].words);
        append_text(&text, i > 0 ? "\n      " : " ");
        append_text(&text, words);
        free(words);
    }
    note(text);
}

/* The line in a script that has its keys declared. */
static void add_script(resp *c, const fuzz_line *line) {
    char count[16];
    command words = {0};
    command_add(&words, "EVAL");
    command_add(&words, "return redis.pcall(unpack(ARGV))");
    (void)snprintf(count, sizeof(count), "%d", line->keys_end - line->first_key);
    command_add(&words, count);
    for (int i = line->first_key; i < line->keys_end; i++) {
        command_add_bytes(&words, line->words.argv[i], line->words.lengths[i]);
    }
    for (int i = 0; i < line->words.argc; i++) {
        command_add_bytes(&words, line->words.argv[i], line->words.lengths[i]);
    }
    resp_add(c, &words);
    command_free(&words);
}

static void send_step(resp *c, const step *s) {
    if (s->road == SCRIPT) {
        add_script(c, &s->lines[0]);
    } else if (s->road == PLAIN) {
        resp_add(c, &s->lines[0].words);
    } else {
        resp_add_words(c, "MULTI", NULL);
        if (s->road == PAUSED) {
            resp_add_words(c, "CLIENT", "PAUSE", "100000", "WRITE", NULL);
        }
        for (int i = 0; i < s->line_count; i++) {
            resp_add(c, &s->lines[i].words);
        }
        if (s->with_error) {
            resp_add_words(c, "INCR", TEXT_KEY, NULL);
        }
        if (s->with_writes) {
            resp_add_words(c, "INCR", FUZZ_PLAIN "number", NULL);
        }
        if (s->road == PAUSED) {
            resp_add_words(c, "CLIENT", "UNPAUSE", NULL);
        }
        resp_add_words(c, s->road == DISCARDED ? "DISCARD" : "EXEC", NULL);
    }
    add_measure(c);
    resp_send(c);
}

/* The replies of MULTI and of what was queued; a line that the server does not even queue is
 * refused. */
static void read_queued(resp *c, const step *s, outcome *out) {
    int first = 1 + (s->road == PAUSED);
    int count = first + s->line_count + s->with_error + s->with_writes + (s->road == PAUSED);
    for (int i = 0; i < count; i++) {
        resp_reply *reply = answer(c);
        check_error(reply, s->road);
        if (i >= first && i < first + s->line_count && resp_is_error(reply)) {
            judge(s, &s->lines[i - first], reply, out);
        }
        resp_free(reply);
    }
}

static void read_transaction(resp *c, const step *s, outcome *out) {
    read_queued(c, s, out);
    resp_reply *reply = answer(c);
    check_error(reply, s->road);
    if (s->road != DISCARDED && reply->type == '*') {
        size_t first = s->road == PAUSED;
        out->ran = 1;
        if (reply->count < first + (size_t)s->line_count) {
            give_up_at("EXEC answered too little", reply);
        }
        for (int i = 0; i < s->line_count; i++) {
            judge(s, &s->lines[i], &reply->elements[first + (size_t)i], out);
        }
        for (size_t i = 0; i < reply->count; i++) {
            check_error(&reply->elements[i], s->road);
        }
    }
    resp_free(reply);
}

static void read_step(resp *c, const step *s, outcome *out) {
    if (s->road == PLAIN || s->road == SCRIPT) {
        resp_reply *reply = answer(c);
        judge(s, &s->lines[0], reply, out);
        resp_free(reply);
    } else {
        read_transaction(c, s, out);
    }
}

static int is_read_only(const step *s) {
    for (int i = 0; i < s->line_count; i++) {
        if ((emq_verbs[s->lines[i].symbol].flags & EMQ_FLAG_READONLY) == 0) {
            return 0;
        }
    }
    return !s->with_writes;
}

/* Why the data must be what they were; NULL: they need not be. A call that wakes a waiter may let
 * it write, also when the call itself wrote nothing. */
static const char *reason_to_stay(const step *s, const outcome *out) {
    if (s->road == DISCARDED) {
        return "a transaction that was discarded changed something";
    }
    if (out->accepted == 0 && !(s->with_writes && out->ran)) {
        return "a refused call changed something";
    }
    if (is_read_only(s)) {
        return "a verb that only reads changed something";
    }
    return s->road == PAUSED && !is_waiting ? "a write while writes are paused" : NULL;
}

static void compare(const step *s, const outcome *out, const measure *after) {
    char got[200];
    const char *reason = reason_to_stay(s, out);
    int has_changed = strcmp(after->digest, last.digest) != 0;
    (void)snprintf(got, sizeof(got), "digest %s, was %s; offset %lld, was %lld", after->digest,
                   last.digest, after->offset, last.offset);
    if (reason != NULL && (has_changed || after->offset != last.offset)) {
        give_up(reason, got);
    }
    if (has_changed && after->offset == last.offset) {
        give_up("a change that was not propagated", got);
    }
    if (has_changed && s->line_count == 1 && !s->with_writes) {
        changed[s->lines[0].symbol]++;
    }
}

static void run_step(void) {
    step s;
    outcome out = {0};
    measure after;
    make_step(&s);
    note_step(&s);
    resp *c = &connections[s.over_resp3];
    send_step(c, &s);
    read_step(c, &s, &out);
    read_measure(c, &after);
    compare(&s, &out, &after);
    last = after;
    free_step(&s);
}

/* ---- damage ---- */

static void run_damage(damage *d) {
    resp *c = &connections[0];
    for (int i = 0; i < d->count; i++) {
        char *text = NULL;
        char *words = fuzz_words_to_text(&d->lines[i]);
        append_text(&text, "by hand: ");
        append_text(&text, words);
        free(words);
        note(text);
        resp_add(c, &d->lines[i]);
    }
    add_measure(c);
    resp_send(c);
    for (int i = 0; i < d->count; i++) {
        resp_free(answer(c));
    }
    read_measure(c, &last);
    if (d->expires) {
        const struct timespec past = {0, 3000000};
        (void)nanosleep(&past, NULL);
    }
    damage_free(d);
}

static void restore_fence(void) {
    damage d;
    fence_calls = 0;
    now.fence_is_away = 0;
    damage_restore_fence(&d);
    run_damage(&d);
}

/* The fence is away for a few calls, now and then. */
static void damage_something(void) {
    damage d;
    if (fence_calls > 0 && --fence_calls == 0) {
        restore_fence();
    } else if (fence_calls == 0 && draw_one_in(&now.d, 150)) {
        fence_calls = 4 + (int)draw_below(&now.d, 20);
        now.fence_is_away = 1;
        damage_fence(&now.d, &d);
        run_damage(&d);
    }
    if (draw_one_in(&now.d, 6)) {
        damage_queue(&now.d, &d);
        run_damage(&d);
    }
}

/* ---- a client that waits ---- */

static long get_info_number(const char *section, const char *field) {
    char text[32];
    return strtol(get_info(text, sizeof(text), server.admin, section, field), NULL, 10);
}

static int is_blocked_or_answered(void *data) {
    struct pollfd end = {.fd = waiter.fd, .events = POLLIN};
    (void)data;
    return poll(&end, 1, 0) > 0 || get_info_number("clients", "blocked_clients") > 0;
}

static void start_waiting(void) {
    fuzz_line line;
    char *text = NULL;
    generator_waiting(&now, &line, WAIT_MS);
    char *words = fuzz_words_to_text(&line.words);
    append_text(&text, "waiting: ");
    append_text(&text, words);
    free(words);
    note(text);
    resp_add(&waiter, &line.words);
    resp_send(&waiter);
    fuzz_line_free(&line);
    is_waiting = 1;
    waited_calls = 0;
    wait_until("a client waits", is_blocked_or_answered, NULL);
    measure_again();
}

static void end_waiting(void) {
    if (is_waiting) {
        resp_reply *reply = answer(&waiter);
        check_error(reply, PLAIN);
        resp_free(reply);
        is_waiting = 0;
    }
}

static void wait_or_not(void) {
    if (is_waiting && ++waited_calls >= WAITER_CALLS) {
        end_waiting();
    } else if (!is_waiting && draw_one_in(&now.d, 60)) {
        start_waiting();
    }
}

/* ---- rounds ---- */

static void check_clean_queue(void) {
    char *broken = find_broken_invariant(server.admin, FUZZ_CLEAN, FUZZ_PLAIN);
    if (broken != NULL) {
        give_up("the clean queue is not in order", broken);
    }
}

/* What is past its time goes, since a server that loads its data would let it go as well. */
static void collect_expired(void) {
    command line = {0};
    char key[EMQ_KEY_MAX + 1];
    command_add(&line, "EXISTS");
    for (int kind = 0; kind < EMQ_KEY_FENCE; kind++) {
        for (unsigned i = 0; i < FUZZ_JOBS; i++) {
            fuzz_key(key, (emq_key_kind)kind, FUZZ_ROUGH, fuzz_job(i), fuzz_name(i % FUZZ_NAMES));
            command_add(&line, key);
        }
    }
    freeReplyObject(command_send(server.admin, &line));
    command_free(&line);
}

static void check_reload(void) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    collect_expired();
    (void)get_digest(before, &server);
    run(server.admin, "DEBUG", "LOADAOF", NULL);
    if (strcmp(get_digest(after, &server), before) != 0) {
        give_up("the AOF loads to other data", after);
    }
    check_clean_queue();
}

static int is_rewritten(void *data) {
    (void)data;
    return get_info_number("persistence", "aof_rewrite_in_progress") == 0 &&
           get_info_number("persistence", "aof_rewrite_scheduled") == 0;
}

/* A long run would read an ever longer file at each reload. */
static void shorten_aof(void) {
    run(server.admin, "BGREWRITEAOF", NULL);
    wait_until("the AOF is rewritten", is_rewritten, NULL);
}

static void start_round(unsigned long long seed) {
    round_seed = seed;
    round_calls = 0;
    fence_calls = 0;
    generator_init(&now, seed);
    for (size_t i = 0; i < HISTORY; i++) {
        free(history[i]);
        history[i] = NULL;
    }
    run(server.admin, "FLUSHALL", NULL);
    run(server.admin, "SET", EMQ_FENCE_KEY, EMQ_WIRE, NULL);
    run(server.admin, "SET", TEXT_KEY, "no number", NULL);
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "0", NULL);
    measure_again();
}

static void run_round(unsigned long long seed, int calls) {
    start_round(seed);
    while (round_calls < calls) {
        round_calls++;
        total_calls++;
        wait_or_not();
        damage_something();
        run_step();
        if (round_calls % CALLS_PER_LOOK == 0) {
            check_clean_queue();
        }
    }
    restore_fence();
    end_waiting();
    check_clean_queue();
}

static unsigned long long read_setting(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 10);
}

static void run_rounds(unsigned long long seed) {
    long long left = (long long)read_setting("EMQ_FUZZ_CALLS", CALLS_DEFAULT);
    print_message("EMQ_FUZZ_SEED=%llu EMQ_FUZZ_CALLS=%lld\n", seed, left);
    /* a run that failed may have left a transaction open */
    close_all();
    connect_all();
    for (int rounds = 1; left > 0; seed++, rounds++, left -= ROUND_CALLS) {
        run_round(seed, left < ROUND_CALLS ? (int)left : ROUND_CALLS);
        if (rounds % ROUNDS_PER_RELOAD == 0) {
            check_reload();
        }
        if (rounds % ROUNDS_PER_REWRITE == 0) {
            shorten_aof();
        }
    }
}

/* ---- tests ---- */

static void a_seed_that_is_known(void **state) {
    (void)state;
    run_rounds(read_setting("EMQ_FUZZ_SEED", SEED_DEFAULT));
}

static void a_seed_that_is_drawn(void **state) {
    (void)state;
    uint32_t seed = 0;
    if (getenv("EMQ_FUZZ_SEED") != NULL) {
        return; /* one seed was asked for */
    }
    assert_int_equal(getentropy(&seed, sizeof(seed)), 0);
    run_rounds(seed);
}

/* A verb that hardly got anywhere was not tested; a short run can't tell. */
static int was_called(emq_verb_symbol verb) {
    int writes = (emq_verbs[verb].flags & EMQ_FLAG_WRITE) != 0;
    return accepted[verb] >= ACCEPTED_LEAST && refused[verb] > 0 &&
           (!writes || changed[verb] >= CHANGED_LEAST);
}

static void every_verb_was_called(void **state) {
    const char *missing = NULL;
    (void)state;
    for (int i = 0; i < EMQ_VERBS; i++) {
        print_message("%-22s %6llu accepted %6llu refused %6llu changed data\n", emq_verbs[i].name,
                      accepted[i], refused[i], changed[i]);
        missing = was_called((emq_verb_symbol)i) ? missing : emq_verbs[i].name;
    }
    if (missing != NULL && total_calls >= 2ULL * CALLS_DEFAULT) {
        fail_msg("%s was hardly called", missing);
    }
}

static void a_restart_loads_the_same(void **state) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)state;
    collect_expired();
    (void)get_digest(before, &server);
    close_all();
    server_restart(&server);
    connect_all();
    EXPECT_TEXT(get_digest(after, &server), before);
    check_clean_queue();
}

static int start_server(void **state) {
    (void)state;
    /* short waits end soon */
    server_start(&server, "--conf", "hz 500", NULL);
    connect_all();
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    close_all();
    for (size_t i = 0; i < HISTORY; i++) {
        free(history[i]);
    }
    server_stop(&server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_that_is_known),
        cmocka_unit_test(a_seed_that_is_drawn),
        cmocka_unit_test(every_verb_was_called),
        cmocka_unit_test(a_restart_loads_the_same),
    };
    return RUN_SERVER_TESTS("fuzz", tests, start_server, stop_server);
}
