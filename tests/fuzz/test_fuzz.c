/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input: right and mutated calls of every verb, plain, in transactions and in scripts, while
 * writes are paused, on a queue that only verbs touch and on one whose keys are damaged between the
 * calls. The server must live, a refused call must change nothing, every refusal must be one of the
 * known texts, and the clean queue must keep what holds for every queue.
 *
 *   EMQ_FUZZ_CALLS   how many calls (default 12000)
 *   EMQ_FUZZ_SEED    of the run (default: a fixed one for the first half, the clock's for the rest)
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"
#include "fuzz_line.h"

#define CALLS_DEFAULT 12000
#define SEED_DEFAULT UINT64_C(20240101)
#define INVARIANTS_EVERY 10
#define CLEANED_EVERY 400
#define FENCE EMQ_FENCE_KEY

typedef enum context { PLAIN, IN_MULTI, IN_DISCARD, IN_SCRIPT, WHILE_PAUSED } context;

static test_server server;
static redisContext *client;
static long long client_id;
static unsigned long long run_seed;
static long long call_number;
static const command *current; /* the line that is being tried */
static struct {
    long long answered;
    long long refused;
} seen[EMQ_VERBS];

/* ---- sending ---- */

/* Behind a failure, wherever it showed: what ran. */
static int print_current(void **state) {
    char *text = NULL;
    (void)state;
    for (int i = 0; current != NULL && i < current->argc && i < 40; i++) {
        size_t length = current->lengths[i];
        append_text(&text, " ");
        append_quoted(&text, current->argv[i], length < 300 ? length : 300);
    }
    if (text != NULL) {
        print_error("EMQ_FUZZ_SEED=%llu, call %lld:%s\n", run_seed, call_number, text);
    }
    free(text);
    return 0;
}

static void append(const command *line) {
    const char **argv = malloc((size_t)line->argc * sizeof(*argv));
    assert_non_null(argv);
    for (int i = 0; i < line->argc; i++) {
        argv[i] = line->argv[i];
    }
    (void)redisAppendCommandArgv(client, line->argc, argv, line->lengths);
    free(argv);
}

static void append_words(const char *first, ...) {
    command line = {0};
    va_list words;
    command_add(&line, first);
    va_start(words, first);
    command_add_words(&line, words);
    va_end(words);
    append(&line);
    command_free(&line);
}

static void flush(void) {
    int done = 0;
    while (!done) {
        if (redisBufferWrite(client, &done) != REDIS_OK) {
            fail_msg("the server is gone: %s", client->errstr);
        }
    }
}

/* The next answer. A claim that waits, also by a number that a mutation made, is ended. */
static redisReply *next_reply(void) {
    void *reply = NULL;
    flush();
    while (redisGetReplyFromReader(client, &reply) == REDIS_OK && reply == NULL) {
        struct pollfd ready = {.fd = client->fd, .events = POLLIN};
        int n = poll(&ready, 1, 100);
        if (n == 0) {
            char id[32];
            (void)snprintf(id, sizeof(id), "%lld", client_id);
            freeReplyObject(call(server.admin, "CLIENT", "UNBLOCK", id, NULL));
        } else if (redisBufferRead(client) != REDIS_OK) {
            fail_msg("the server is gone: %s", client->errstr);
        }
    }
    if (reply == NULL) {
        fail_msg("no protocol: %s", client->errstr);
    }
    return reply;
}

static void skip_replies(int count) {
    for (int i = 0; i < count; i++) {
        freeReplyObject(next_reply());
    }
}

/* The answer of the line behind so many others in EXEC's. */
static redisReply *take_element(size_t at) {
    redisReply *all = next_reply();
    if (all->type != REDIS_REPLY_ARRAY) {
        return all; /* EXECABORT: the server refused the line before it was queued */
    }
    assert_true(all->elements > at);
    redisReply *one = all->element[at];
    all->element[at] = NULL;
    freeReplyObject(all);
    return one;
}

static redisReply *send_in_script(const command *line) {
    static const char script[] = "return redis.pcall(unpack(ARGV))";
    command call_line = {0};
    command_add(&call_line, "EVAL");
    command_add(&call_line, script);
    command_add(&call_line, "0");
    for (int i = 0; i < line->argc; i++) {
        command_add_bytes(&call_line, line->argv[i], line->lengths[i]);
    }
    append(&call_line);
    command_free(&call_line);
    return next_reply();
}

static redisReply *send_in(context where, const command *line) {
    switch (where) {
    case IN_MULTI:
        append_words("MULTI", (const char *)NULL);
        append(line);
        append_words("PING", (const char *)NULL);
        append_words("EXEC", (const char *)NULL);
        skip_replies(3);
        return take_element(0);
    case IN_DISCARD:
        append_words("MULTI", (const char *)NULL);
        append(line);
        append_words("DISCARD", (const char *)NULL);
        skip_replies(2);
        return next_reply();
    case IN_SCRIPT:
        /* a script has no room for so many arguments */
        return line->argc > 1000 ? send_in(PLAIN, line) : send_in_script(line);
    case WHILE_PAUSED:
        append_words("MULTI", (const char *)NULL);
        append_words("CLIENT", "PAUSE", "100000", "WRITE", (const char *)NULL);
        append(line);
        append_words("CLIENT", "UNPAUSE", (const char *)NULL);
        append_words("EXEC", (const char *)NULL);
        skip_replies(4);
        return take_element(1);
    default:
        append(line);
        return next_reply();
    }
}

/* ---- what must hold ---- */

static int starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* A text of the module's classes, or one of the server's own that such calls meet. */
static int is_known(const redisReply *error) {
    static const char *const servers[] = {
        "ERR wrong number of arguments for",
        "ERR unknown command",
        "ERR Unknown",
        "ERR Wrong number of args calling", /* of a script's call */
        "ERR Unknown Redis command called from script",
        "ERR Unknown command called from script",
        "ERR This Valkey command is not allowed from script",
        "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        "ERR value is not an integer or out of range",
        "ERR hash value is not an integer",
        "ERR increment or decrement would overflow",
        "ERR Invalid number of keys",
        "UNBLOCKED client unblocked via CLIENT UNBLOCK",
        "EXECABORT Transaction discarded because of previous errors.",
    };
    if (emq_refusal_classify(error->str, error->len) != EMQ_REFUSAL_CLASSES) {
        return 1;
    }
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
        if (starts_with(error->str, servers[i])) {
            return 1;
        }
    }
    return 0;
}

/* Answers the first thing that is wrong with a queue that only verbs touched; nil otherwise. */
static const char invariants[] =
    "local base = 'emq:{' .. ARGV[1] .. '}:'\n"
    "local states = {pending = 'pending', active = 'active', schedule = 'scheduled', "
    "dead = 'dead'}\n"
    "local found = {}\n"
    "for set, state in pairs(states) do\n"
    "    local members = redis.call('ZRANGE', base .. set, 0, -1, 'WITHSCORES')\n"
    "    for i = 1, #members, 2 do\n"
    "        local id, score = members[i], tonumber(members[i + 1])\n"
    "        if found[id] then return id .. ' is in ' .. set .. ' and in ' .. found[id] end\n"
    "        found[id] = set\n"
    "        local row = base .. 'job:' .. id\n"
    "        if redis.call('TYPE', row).ok ~= 'hash' then return id .. ' has no row' end\n"
    "        local got = redis.call('HGET', row, 'state')\n"
    "        if got ~= state then return id .. ' is ' .. tostring(got) .. ' in ' .. set end\n"
    "        local at_zero = set == 'pending' or set == 'dead'\n"
    "        if at_zero and score ~= 0 or score < 0 then return id .. ' has score ' .. score end\n"
    "    end\n"
    "end\n"
    "local hashes = {meta = 1, ['metrics:completed'] = 1, ['metrics:failed'] = 1}\n"
    "for _, key in ipairs(redis.call('KEYS', base .. '*')) do\n"
    "    local name = key:sub(#base + 1)\n"
    "    local id = name:match('^job:(.*)$')\n"
    "    if id then\n"
    "        if not found[id] then return 'the row of ' .. id .. ' is in no set' end\n"
    "        local row = redis.call('HGETALL', key)\n"
    "        for i = 1, #row, 2 do\n"
    "            local field, value = row[i], row[i + 1]\n"
    "            if field == 'attempts' and not value:match('^%d+$') or\n"
    "                (field == 'failures' or field == 'stalled') and "
    "not value:match('^[1-9]%d*$') or\n"
    "                field == 'lease_epoch' and found[id] ~= 'active' and "
    "found[id] ~= 'pending' then\n"
    "                return id .. ' has ' .. field .. ' ' .. value\n"
    "            end\n"
    "        end\n"
    "        if redis.call('HEXISTS', key, 'payload') == 0 then return id .. ': no payload' end\n"
    "    elseif not states[name] and not hashes[name] and name ~= 'events:seq' and\n"
    "        not name:match('^stream:[^:]+$') and not name:match('^stream:[^:]+:failures$') then\n"
    "        return 'a key that no verb makes: ' .. name\n"
    "    end\n"
    "end\n"
    "return false\n";

static void check_invariants(void) {
    redisReply *reply = call(server.admin, "EVAL", invariants, "0", CLEAN, NULL);
    if (reply->type != REDIS_REPLY_NIL) {
        fail_msg("the clean queue: %s", reply->str == NULL ? "?" : reply->str);
    }
    freeReplyObject(reply);
}

/* ---- damage ---- */

static void damage_row(dice *d) {
    static const char *const fields[][2] = {
        {"attempts", "x"},      {"attempts", "-5"}, {"attempts", "9223372036854775807"},
        {"state", "pending"},   {"state", "dead"},  {"state", ""},
        {"group", "g"},         {"parent", "p"},    {"failures", "x"},
        {"stalled", "-1"},      {"stalled", ""},    {"lease_epoch", "another"},
        {"state", "scheduled"}, {"state", "active"}};
    char row[EMQ_KEY_MAX + 1];
    const char *const *field = DICE_PICK(d, fields);
    (void)snprintf(row, sizeof(row), "emq:{" ROUGH "}:job:%s", DICE_PICK(d, job_ids));
    freeReplyObject(dice_one_in(d, 4) ? call(server.admin, "HDEL", row, field[0], NULL)
                                      : call(server.admin, "HSET", row, field[0], field[1], NULL));
}

static void damage_set(dice *d) {
    static const char *const sets[] = {"pending", "active", "schedule", "dead"};
    static const char *const members[] = {"JOB0KHTOWnGLu1", "JOB0KHTOWnGLu2", "JOB", "x:y", ""};
    static const char *const scores[] = {"0", "1", "-1", "inf", "-inf", "0.5", "9007199254740993"};
    char set[EMQ_KEY_MAX + 1];
    (void)snprintf(set, sizeof(set), "emq:{" ROUGH "}:%s", DICE_PICK(d, sets));
    freeReplyObject(
        call(server.admin, "ZADD", set, DICE_PICK(d, scores), DICE_PICK(d, members), NULL));
}

static void damage_type(dice *d, const char *key) {
    freeReplyObject(call(server.admin, "DEL", key, NULL));
    switch (dice_below(d, 6)) {
    case 0:
        run(server.admin, "SET", key, dice_one_in(d, 2) ? "x" : "12", NULL);
        break;
    case 1:
        run(server.admin, "RPUSH", key, "x", NULL);
        break;
    case 2:
        run(server.admin, "SADD", key, "x", NULL);
        break;
    case 3:
        run(server.admin, "HSET", key, "count", "9223372036854775807", NULL);
        break;
    case 4:
        run(server.admin, "ZADD", key, "0", "JOB0KHTOWnGLu1", NULL);
        break;
    default:
        run(server.admin, "XADD", key, "*", "a", "b", NULL);
    }
}

static void damage(dice *d) {
    static const char *const fences[] = {"x", "echomq:6.0.0 ", ""};
    char key[EMQ_KEY_MAX + 1];
    run(server.admin, "SET", FENCE, EMQ_WIRE, NULL);
    if (!dice_one_in(d, 3)) {
        return;
    }
    fuzz_key(key, d, ROUGH);
    switch (dice_below(d, 12)) {
    case 0:
        run(server.admin, "SET", FENCE, DICE_PICK(d, fences), NULL);
        break;
    case 1:
        run(server.admin, "DEL", FENCE, NULL);
        break;
    case 2:
    case 3:
        damage_type(d, key);
        break;
    case 4:
        /* past its time, and still there: nothing collects it but a command that meets it */
        run(server.admin, "PEXPIRE", key, "1", NULL);
        break;
    case 5:
    case 6:
        run(server.admin, "DEL", key, NULL);
        break;
    case 7:
    case 8:
        damage_set(d);
        break;
    default:
        damage_row(d);
    }
}

/* Deletes all but the clean queue and the fence. */
static void clean_up(void) {
    static const char script[] =
        "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
        "    if key:sub(1, #ARGV[1]) ~= ARGV[1] then redis.call('DEL', key) end\n"
        "end\n";
    run(server.admin, "EVAL", script, "0", "emq:{" CLEAN "}:", NULL);
    run(server.admin, "SET", FENCE, EMQ_WIRE, NULL);
}

/* ---- the run ---- */

static context pick_context(dice *d) {
    static const context contexts[] = {PLAIN,     PLAIN,      PLAIN,       PLAIN,     PLAIN,
                                       PLAIN,     IN_MULTI,   IN_MULTI,    IN_SCRIPT, IN_SCRIPT,
                                       IN_SCRIPT, IN_DISCARD, WHILE_PAUSED};
    return DICE_PICK(d, contexts);
}

static held_job find_held(const char *queue) {
    held_job held = {"", ""};
    char key[EMQ_KEY_MAX + 1];
    (void)snprintf(key, sizeof(key), "emq:{%s}:active", queue);
    redisReply *ids = call(server.admin, "ZRANGE", key, "0", "0", NULL);
    if (ids->type == REDIS_REPLY_ARRAY && ids->elements == 1 &&
        ids->element[0]->len < sizeof(held.id) &&
        strncmp(ids->element[0]->str, "JOB", strlen("JOB")) == 0) {
        (void)snprintf(key, sizeof(key), "emq:{%s}:job:%s", queue, ids->element[0]->str);
        redisReply *token = call(server.admin, "HGET", key, "attempts", NULL);
        if (token->type == REDIS_REPLY_STRING && token->len < sizeof(held.token)) {
            (void)snprintf(held.id, sizeof(held.id), "%s", ids->element[0]->str);
            (void)snprintf(held.token, sizeof(held.token), "%s", token->str);
        }
        freeReplyObject(token);
    }
    freeReplyObject(ids);
    return held;
}

static void fuzz_once(dice *d) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    command line = {0};
    emq_verb_symbol symbol = (emq_verb_symbol)dice_below(d, EMQ_VERBS);
    const emq_verb *verb = &emq_verbs[symbol];
    const char *queue = dice_one_in(d, 2) ? CLEAN : ROUGH;
    const held_job held = find_held(queue);
    fuzz_line(&line, d, verb, queue, &held);
    if (dice_one_in(d, 2)) {
        fuzz_mutate(&line, d, verb);
    }
    current = &line;
    damage(d);
    (void)get_digest(before, &server);
    long long offset = get_offset(&server);
    context where = pick_context(d);
    redisReply *reply = send_in(where, &line);
    int is_refused = reply->type == REDIS_REPLY_ERROR;
    if (is_refused && !is_known(reply)) {
        fail_msg("an unknown text: %s", reply->str);
    }
    if ((is_refused || where == IN_DISCARD || where == WHILE_PAUSED) &&
        (strcmp(get_digest(after, &server), before) != 0 || get_offset(&server) != offset)) {
        fail_msg("a call that must change nothing left a trace: %s",
                 is_refused ? reply->str : "it was discarded, or writes were paused");
    }
    seen[symbol].refused += is_refused;
    seen[symbol].answered += !is_refused && where != IN_DISCARD;
    if (call_number % INVARIANTS_EVERY == 0) {
        check_invariants();
    }
    freeReplyObject(reply);
    command_free(&line);
    current = NULL;
}

static void run_calls(uint64_t seed, long long calls) {
    /* seeds that lie side by side must not give runs that do */
    dice d = {(seed + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1};
    run_seed = (unsigned long long)seed;
    print_message("%lld calls of EMQ_FUZZ_SEED=%llu\n", calls, run_seed);
    for (call_number = 0; call_number < calls; call_number++) {
        fuzz_once(&d);
        if (call_number % CLEANED_EVERY == 0) {
            clean_up();
        }
    }
}

static unsigned long long read_setting(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 10);
}

static void bad_input_breaks_nothing(void **state) {
    (void)state;
    long long calls = (long long)read_setting("EMQ_FUZZ_CALLS", CALLS_DEFAULT);
    if (getenv("EMQ_FUZZ_SEED") != NULL) {
        run_calls(read_setting("EMQ_FUZZ_SEED", SEED_DEFAULT), calls);
    } else {
        run_calls(SEED_DEFAULT, calls / 2);
        run_calls((uint64_t)time(NULL), calls - calls / 2);
    }
    for (int i = 0; i < EMQ_VERBS && calls >= CALLS_DEFAULT; i++) {
        if (seen[i].answered < 8 || (emq_verb_arity(&emq_verbs[i]) != 1 && seen[i].refused < 20)) {
            fail_msg(
                "%s was answered %lld times and refused %lld times: the run reaches too little",
                emq_verbs[i].name, seen[i].answered, seen[i].refused);
        }
    }
}

static void no_effect_was_lost(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(get_info(text, sizeof(text), server.admin, "emq", "emq_lost_effects"), "0");
    assert_string_equal(get_info(text, sizeof(text), server.admin, "emq", "emq_blocked_claims"),
                        "0");
}

/* Every key as a line of text, in order. */
static char *dump(void) {
    static const char script[] =
        "local keys = redis.call('KEYS', '*')\n"
        "table.sort(keys)\n"
        "local reads = {string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1}, "
        "zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, stream = {'XRANGE', '-', '+'}}\n"
        "for i, key in ipairs(keys) do\n"
        "    local read = reads[redis.call('TYPE', key).ok]\n"
        "    local value = redis.call(read[1], key, unpack(read, 2))\n"
        "    if read[1] == 'HGETALL' then\n"
        "        local pairs_ = {}\n"
        "        for f = 1, #value, 2 do pairs_[#pairs_ + 1] = value[f] .. '=' .. value[f + 1] "
        "end\n"
        "        table.sort(pairs_)\n"
        "        value = pairs_\n"
        "    end\n"
        "    keys[i] = key .. ' ' .. cjson.encode(value)\n"
        "end\n"
        "return keys\n";
    redisReply *reply = call(server.admin, "EVAL", script, "0", NULL);
    char *text = reply_to_text(reply);
    freeReplyObject(reply);
    return text;
}

static void a_restart_loads_the_same_data(void **state) {
    (void)state;
    clean_up();
    char *before = dump();
    redisFree(client);
    client = NULL;
    server_restart(&server);
    char *after = dump();
    EXPECT_TEXT(after, before);
    free(before);
    free(after);
}

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "0", NULL);
    client = server_connect(&server);
    client_id = get_integer(client, "CLIENT", "ID", NULL);
    client->flags &= ~REDIS_BLOCK;
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    if (client != NULL) {
        redisFree(client);
    }
    server_stop(&server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bad_input_breaks_nothing, print_current),
        cmocka_unit_test(no_effect_was_lost),
        cmocka_unit_test(a_restart_loads_the_same_data),
    };
    return RUN_SERVER_TESTS("fuzz module", tests, start_server, stop_server);
}
