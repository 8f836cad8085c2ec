/* SPDX-License-Identifier: Apache-2.0 */
/* TRA: the table of commands as data, beside what the server tells of them; bitmaps, beside the
 * server's own commands for bits. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/random.h"
#include "fixture.h"

#define BITMAP "any:key"

#define BITSET(...) "TRA.BITSET", BITMAP, __VA_ARGS__
#define BITCLEAR(...) "TRA.BITCLEAR", BITMAP, __VA_ARGS__
#define BITGET(...) "TRA.BITGET", BITMAP, __VA_ARGS__
#define BITSCAN(...) "TRA.BITSCAN", BITMAP, __VA_ARGS__

#define OFFSET "-ERR EMQ offset must be an integer from 0 to 4294967295"
#define OFFSETS "-ERR EMQ offsets must be an integer from 1 to 1000"
#define FROM "-ERR EMQ from must be an integer from 0 to 4294967295"
#define TO "-ERR EMQ to must be an integer from 0 to 4294967295"
#define LIMIT "-ERR EMQ limit must be an integer from 1 to 10000"
#define SHAPE "-ERR EMQ shape BITSCAN expects 1 keys and 2 or 4 values"
#define LAST "4294967295"

#define UNCHANGED(want, ...) EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__)
#define EFFECTS(effects, want, ...) EXPECT_EFFECTS(&server, (effects), client, (want), __VA_ARGS__)

/* ---- TRA.INFO and TRA.COMMANDS ---- */

/* The value of a name in flat pairs. */
static redisReply *find(const redisReply *pairs, const char *name) {
    for (size_t i = 0; i + 1 < pairs->elements; i += 2) {
        if (strcmp(pairs->element[i]->str, name) == 0) {
            return pairs->element[i + 1];
        }
    }
    fail_msg("no %s", name);
    return NULL;
}

static void info_tells_what_runs(void **state) {
    char text[64];
    (void)state;
    run(client, "DEL", FENCE, NULL);
    redisReply *facts = call(client, "TRA.INFO", NULL);
    redisReply *version = call(client, "EMQ.VERSION", NULL);
    assert_int_equal(facts->elements, 20);
    static const char *const same[] = {"module", "version", "wire", "build", "server"};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        EXPECT_TEXT(find(facts, same[i])->str, find(version, same[i])->str);
    }
    assert_int_equal(find(facts, "epoch")->integer, 6);
    assert_int_equal(find(facts, "major")->integer, 0);
    assert_int_equal(find(facts, "api")->integer, 1);
    EXPECT_TEXT(find(facts, "run_id")->str, get_run_id());
    EXPECT_TEXT(find(facts, "server")->str,
                get_info(text, sizeof(text), client, "server", "valkey_version"));
    redisReply *list = call(client, "COMMAND", "LIST", "FILTERBY", "MODULE", "emq", NULL);
    assert_int_equal(find(facts, "commands")->integer, list->elements);
    freeReplyObject(list);
    freeReplyObject(version);
    freeReplyObject(facts);
}

/* Two lists hold the same words, in any order; `prefix` stands before each of the server's. */
static void expect_same_words(const char *name, const redisReply *server_words, const char *prefix,
                              const redisReply *words, const char *const *more) {
    size_t count = words->elements;
    for (const char *const *extra = more; *extra != NULL; extra++) {
        count++;
    }
    if (server_words->elements != count) {
        fail_msg("%s: %zu words, not %zu", name, server_words->elements, count);
    }
    for (size_t i = 0; i < server_words->elements; i++) {
        const char *word = server_words->element[i]->str + strlen(prefix);
        /* COMMAND INFO has two names of its own */
        word = strcmp(word, "denyoom") == 0 ? "deny-oom" : word;
        word = strcmp(word, "noscript") == 0 ? "deny-script" : word;
        int found = 0;
        for (size_t j = 0; j < words->elements; j++) {
            found += strcmp(words->element[j]->str, word) == 0;
        }
        for (const char *const *extra = more; *extra != NULL; extra++) {
            found += strcmp(*extra, word) == 0;
        }
        if (found != 1) {
            fail_msg("%s: %s", name, word);
        }
    }
}

/* The key-spec: EVAL's for the EMQ verbs, one plain key for TRA's, none without keys. */
static void expect_key_spec(const char *name, const redisReply *specs, int keys, int is_write) {
    char *got = reply_to_text(specs);
    char want[512] = "[]";
    if (keys > 0 && strncmp(name, "TRA.", 4) != 0) {
        (void)snprintf(want, sizeof(want),
                       "[[\"flags\", [+RW, +access, +update], \"begin_search\", [\"type\", "
                       "\"index\", \"spec\", [\"index\", 1]], \"find_keys\", [\"type\", "
                       "\"keynum\", \"spec\", [\"keynumidx\", 0, \"firstkey\", 1, \"keystep\", "
                       "1]]]]");
    } else if (keys > 0) {
        assert_int_equal(keys, 1);
        (void)snprintf(want, sizeof(want),
                       "[[\"flags\", [%s], \"begin_search\", [\"type\", \"index\", \"spec\", "
                       "[\"index\", 1]], \"find_keys\", [\"type\", \"range\", \"spec\", "
                       "[\"lastkey\", 0, \"keystep\", 1, \"limit\", 0]]]]",
                       is_write ? "+RW, +access, +update" : "+RO, +access");
    }
    EXPECT_TEXT(got, want);
    free(got);
}

static int has_word(const redisReply *words, const char *word) {
    for (size_t i = 0; i < words->elements; i++) {
        if (strcmp(words->element[i]->str, word) == 0) {
            return 1;
        }
    }
    return 0;
}

static void expect_command_info(const char *name, const redisReply *row) {
    static const char *const counted[] = {"module", "movablekeys", NULL};
    static const char *const plain[] = {"module", NULL};
    static const char *const none[] = {NULL};
    redisReply *reply = call(client, "COMMAND", "INFO", name, NULL);
    redisReply *const *info = reply->element[0]->element;
    int keys = (int)find(row, "keys")->elements;
    int is_tra = strcmp(find(row, "family")->str, "tra") == 0;
    const redisReply *flags = find(row, "flags");
    EXPECT_TEXT(info[0]->str, name);
    assert_int_equal(info[1]->integer, find(row, "arity")->integer);
    expect_same_words(name, info[2], "", flags, keys > 0 && !is_tra ? counted : plain);
    expect_same_words(name, info[6], "@", find(row, "categories"), none);
    expect_key_spec(name, info[8], keys, has_word(flags, "write"));
    /* the arity is that of the counts */
    long long least = 1 + keys + (keys > 0 && !is_tra) + find(row, "least_values")->integer;
    int is_open = find(row, "repeated")->integer > 0 ||
                  (long long)find(row, "values")->elements > find(row, "least_values")->integer;
    assert_int_equal(find(row, "arity")->integer, is_open ? -least : least);
    freeReplyObject(reply);
}

static int has_flag(const redisReply *argument, const char *flag) {
    const redisReply *flags = NULL;
    for (size_t i = 0; i + 1 < argument->elements; i += 2) {
        if (strcmp(argument->element[i]->str, "flags") == 0) {
            flags = argument->element[i + 1];
        }
    }
    return flags != NULL && has_word(flags, flag);
}

/* The values of a row among the arguments of its documentation. Those that are optional, or that
 * repeat, are marked so; where there are several of them they stand in a block. */
static size_t expect_values(const redisReply *arguments, size_t at, const redisReply *row,
                            const redisReply *values) {
    size_t repeated = (size_t)find(row, "repeated")->integer;
    size_t least = (size_t)find(row, "least_values")->integer;
    size_t alone = repeated > 0 ? values->elements - repeated : least;
    for (size_t i = 0; i < alone; i++) {
        const redisReply *argument = arguments->element[at++];
        EXPECT_TEXT(find(argument, "name")->str, values->element[i]->str);
        assert_false(has_flag(argument, "optional") || has_flag(argument, "multiple"));
    }
    if (alone == values->elements) {
        return at;
    }
    const redisReply *rest = arguments->element[at++];
    assert_int_equal(has_flag(rest, "multiple"), repeated > 0);
    assert_int_equal(has_flag(rest, "optional"), least <= alone);
    if (values->elements - alone == 1) {
        EXPECT_TEXT(find(rest, "name")->str, values->element[alone]->str);
        return at;
    }
    const redisReply *block = find(rest, "arguments");
    assert_int_equal(block->elements, values->elements - alone);
    for (size_t i = alone; i < values->elements; i++) {
        EXPECT_TEXT(find(block->element[i - alone], "name")->str, values->element[i]->str);
    }
    return at;
}

static void expect_command_docs(const char *name, const redisReply *row) {
    redisReply *reply = call(client, "COMMAND", "DOCS", name, NULL);
    const redisReply *docs = reply->element[1];
    const redisReply *keys = find(row, "keys");
    const redisReply *values = find(row, "values");
    static const char *const texts[] = {"summary", "complexity", "since"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        EXPECT_TEXT(find(docs, texts[i])->str, find(row, texts[i])->str);
    }
    if (keys->elements + values->elements > 0) {
        const redisReply *arguments = find(docs, "arguments");
        size_t at = 0;
        if (strcmp(find(row, "family")->str, "tra") != 0) {
            EXPECT_TEXT(find(arguments->element[at++], "name")->str, "numkeys");
        }
        for (size_t i = 0; i < keys->elements; i++) {
            EXPECT_TEXT(find(arguments->element[at++], "display_text")->str, keys->element[i]->str);
        }
        at = expect_values(arguments, at, row, values);
        assert_int_equal(arguments->elements, at);
    }
    freeReplyObject(reply);
}

/* The table, the server's INFO and its DOCS say the same of every command of the module. */
static void the_table_is_what_the_server_tells(void **state) {
    static const char *const fields[] = {
        "name",         "family",   "arity",        "flags",   "categories", "keys", "values",
        "least_values", "repeated", "capabilities", "summary", "complexity", "since"};
    (void)state;
    run(client, "DEL", FENCE, NULL);
    redisReply *table = call(client, "TRA.COMMANDS", NULL);
    redisReply *list = call(client, "COMMAND", "LIST", "FILTERBY", "MODULE", "emq", NULL);
    assert_int_equal(table->elements, list->elements);
    for (size_t i = 0; i < table->elements; i++) {
        const redisReply *row = table->element[i];
        const char *name = find(row, "name")->str;
        assert_int_equal(row->elements, 2 * sizeof(fields) / sizeof(fields[0]));
        for (size_t field = 0; field < sizeof(fields) / sizeof(fields[0]); field++) {
            EXPECT_TEXT(row->element[2 * field]->str, fields[field]);
        }
        assert_true(has_word(list, name));
        expect_command_info(name, row);
        expect_command_docs(name, row);
    }
    freeReplyObject(list);
    freeReplyObject(table);
}

/* The tokens of the rows, in their order, are those that a client is told. */
static void the_tokens_are_those_of_the_version(void **state) {
    size_t count = 0;
    (void)state;
    redisReply *table = call(client, "TRA.COMMANDS", NULL);
    redisReply *version = call(client, "EMQ.VERSION", NULL);
    const redisReply *want = find(version, "capabilities");
    for (size_t i = 0; i < table->elements; i++) {
        const redisReply *tokens = find(table->element[i], "capabilities");
        for (size_t j = 0; j < tokens->elements; j++) {
            assert_true(count < want->elements);
            EXPECT_TEXT(tokens->element[j]->str, want->element[count++]->str);
        }
    }
    assert_int_equal(count, want->elements);
    freeReplyObject(version);
    freeReplyObject(table);
}

static void one_row_in_full(void **state) {
    (void)state;
    redisReply *table = call(client, "TRA.COMMANDS", NULL);
    size_t seen = 0;
    for (size_t i = 0; i < table->elements; i++) {
        char *got = reply_to_text(table->element[i]);
        if (strstr(got, "\"EMQ.EXTENDS\"") != NULL) {
            EXPECT_TEXT(got, "[\"name\", \"EMQ.EXTENDS\", \"family\", \"core\", \"arity\", -7, "
                             "\"flags\", [\"write\"], \"categories\", [\"write\", \"slow\", "
                             "\"emq\"], \"keys\", [\"emq:{q}:active\", \"emq:{q}:\"], \"values\", "
                             "[\"lease_ms\", \"id\", \"token\"], \"least_values\", 3, "
                             "\"repeated\", 2, \"capabilities\", [\"extends\"], \"summary\", "
                             "\"Prolong many leases to one deadline; answers the ids that were "
                             "not extended\", \"complexity\", \"O(M log N), M being the number of "
                             "ids\", \"since\", \"0.1.0\"]");
            seen++;
        }
        if (strstr(got, "\"TRA.BITSCAN\"") != NULL) {
            EXPECT_TEXT(got, "[\"name\", \"TRA.BITSCAN\", \"family\", \"tra\", \"arity\", -4, "
                             "\"flags\", [\"readonly\"], \"categories\", [\"read\", \"slow\", "
                             "\"emq\"], \"keys\", [\"key\"], \"values\", [\"from\", \"to\", "
                             "\"LIMIT\", \"limit\"], \"least_values\", 2, \"repeated\", 0, "
                             "\"capabilities\", [], \"summary\", \"List the offsets of the set "
                             "bits in a range\", \"complexity\", \"O(N + M), N being the bytes "
                             "looked at and M the number of offsets answered\", \"since\", "
                             "\"0.1.0\"]");
            seen++;
        }
        free(got);
    }
    assert_int_equal(seen, 2);
    freeReplyObject(table);
}

/* The bytes that come back, up to the answer of a PING behind them. */
static char *exchange(redisContext *c, const char *line) {
    char *got = NULL;
    append_text(&got, "");
    assert_int_equal(write(c->fd, line, strlen(line)), strlen(line));
    while (strstr(got, "+PONG\r\n") == NULL) {
        char bytes[4096];
        struct pollfd ready = {.fd = c->fd, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        ssize_t n = read(c->fd, bytes, sizeof(bytes) - 1);
        assert_true(n > 0);
        bytes[n] = '\0';
        append_text(&got, bytes);
    }
    return got;
}

static void both_are_maps_in_resp3(void **state) {
    char start[64];
    (void)state;
    redisContext *c = server_connect(&server);
    free(exchange(c, "HELLO 3\r\nPING\r\n"));
    char *got = exchange(c, "TRA.INFO\r\nPING\r\n");
    static const char facts[] = "%10\r\n$4\r\nwire\r\n$12\r\n" WIRE "\r\n";
    assert_int_equal(strncmp(got, facts, strlen(facts)), 0);
    free(got);
    redisReply *list = call(client, "COMMAND", "LIST", "FILTERBY", "MODULE", "emq", NULL);
    (void)snprintf(start, sizeof(start), "*%zu\r\n%%13\r\n$4\r\nname\r\n$11\r\nEMQ.VERSION\r\n",
                   list->elements);
    freeReplyObject(list);
    got = exchange(c, "TRA.COMMANDS\r\nPING\r\n");
    assert_int_equal(strncmp(got, start, strlen(start)), 0);
    free(got);
    redisFree(c);
}

static void both_change_nothing_anywhere(void **state) {
    (void)state;
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)get_digest(before, &server);
    long long offset = get_offset(&server);
    redisContext *nobody = server_connect_as(&server, "nobody", "+tra.info +tra.commands");
    run(nobody, "TRA.INFO", NULL);
    run(nobody, "TRA.COMMANDS", NULL);
    redisFree(nobody);
    run(client, "EVAL_RO", "return redis.call('TRA.COMMANDS')", "0", NULL);
    EXPECT_TEXT(get_digest(after, &server), before);
    assert_int_equal(get_offset(&server), offset);
    UNCHANGED("-ERR wrong number of arguments for 'TRA.INFO' command", "TRA.INFO", "x");
    UNCHANGED("-ERR wrong number of arguments for 'TRA.COMMANDS' command", "TRA.COMMANDS", "x");
}

/* ---- bitmaps: values ---- */

static void shapes_are_checked(void **state) {
    (void)state;
    make_typed(BITMAP, "list"); /* the type comes last */
    UNCHANGED("-ERR wrong number of arguments for 'TRA.BITSET' command", "TRA.BITSET", BITMAP);
    UNCHANGED("-ERR wrong number of arguments for 'TRA.BITCLEAR' command", "TRA.BITCLEAR", BITMAP);
    UNCHANGED("-ERR wrong number of arguments for 'TRA.BITGET' command", "TRA.BITGET", BITMAP);
    UNCHANGED("-ERR wrong number of arguments for 'TRA.BITSCAN' command", BITSCAN("1"));
    UNCHANGED(SHAPE, BITSCAN("x", "x", "LIMIT"));
    UNCHANGED(SHAPE, BITSCAN("x", "x", "LIMIT", "1", "2"));
    UNCHANGED(SHAPE, BITSCAN("x", "x", "COUNT", "1"));
    UNCHANGED(SHAPE, BITSCAN("x", "x", "LIMI", "1"));
    UNCHANGED(SHAPE, BITSCAN("x", "x", "LIMIT\\x00", "1"));
    UNCHANGED(SHAPE, BITSCAN("x", "x", "", "1"));
}

static const char *const no_numbers[] = {
    "",    "01",  "-1", "+1", "1.5",    " 1",         "1 ",
    "1e0", "0x1", "x",  "#1", "1\\x00", "4294967296", "9223372036854775808",
};

static void numbers_are_canonical(void **state) {
    (void)state;
    make_typed(BITMAP, "list"); /* the type comes last */
    for (size_t i = 0; i < sizeof(no_numbers) / sizeof(no_numbers[0]); i++) {
        UNCHANGED(OFFSET, BITSET(no_numbers[i]));
        UNCHANGED(OFFSET, BITSET("1", no_numbers[i]));
        UNCHANGED(OFFSET, BITCLEAR("1", no_numbers[i], "2"));
        UNCHANGED(OFFSET, BITGET("1", "2", no_numbers[i]));
        UNCHANGED(FROM, BITSCAN(no_numbers[i], "x", "LIMIT", "x"));
        UNCHANGED(TO, BITSCAN("0", no_numbers[i], "LIMIT", "x"));
        UNCHANGED(LIMIT, BITSCAN("0", "1", "LIMIT", no_numbers[i]));
    }
    UNCHANGED(LIMIT, BITSCAN("0", "1", "LIMIT", "0"));
    UNCHANGED(LIMIT, BITSCAN("0", "1", "LIMIT", "10001"));
    UNCHANGED(WRONGTYPE, BITSET("1"));
    UNCHANGED(WRONGTYPE, BITSCAN("2", "1"));
}

/* A line with the offsets from `first` on, `count` of them. */
static redisReply *send_many(const char *verb, int first, int count) {
    command line = {0};
    command_add(&line, verb);
    command_add(&line, BITMAP);
    for (int i = 0; i < count; i++) {
        char offset[16];
        (void)snprintf(offset, sizeof(offset), "%d", first + i);
        command_add(&line, offset);
    }
    redisReply *reply = command_send(client, &line);
    command_free(&line);
    return reply;
}

static void a_call_has_a_thousand_offsets_at_most(void **state) {
    static const char *const verbs[] = {"TRA.BITSET", "TRA.BITGET", "TRA.BITCLEAR"};
    (void)state;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        redisReply *reply = send_many(verbs[i], 0, 1001);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        EXPECT_TEXT(reply->str, &OFFSETS[1]);
        freeReplyObject(reply);
        EXPECT(client, i == 0 ? "0" : "1000", "BITCOUNT", BITMAP);
        reply = send_many(verbs[i], 0, 1000);
        if (reply->type == REDIS_REPLY_ARRAY) {
            assert_int_equal(reply->elements, 1000);
            assert_int_equal(reply->element[999]->integer, 1);
        } else {
            assert_int_equal(reply->integer, 1000);
        }
        freeReplyObject(reply);
    }
    EXPECT(client, "0", "BITCOUNT", BITMAP);
    EXPECT(client, "125", "STRLEN", BITMAP);
}

static void strings_only(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        make_typed(BITMAP, types[i]);
        if (strcmp(types[i], "string") != 0) {
            UNCHANGED(WRONGTYPE, BITSET("1"));
            UNCHANGED(WRONGTYPE, BITCLEAR("1"));
            UNCHANGED(WRONGTYPE, BITGET("1"));
            UNCHANGED(WRONGTYPE, BITSCAN("0", "1"));
            WHILE_PAUSED(WRONGTYPE, BITSET("1"));
        }
    }
}

/* ---- bitmaps: what they do ---- */

static void bits_that_change_are_written(void **state) {
    (void)state;
    run(client, "DEL", FENCE, NULL); /* none of them asks for it */
    EFFECTS("MULTI\nSETBIT " BITMAP " 9 1\nSETBIT " BITMAP " 0 1\nSETBIT " BITMAP " 7 1\nEXEC", "3",
            BITSET("9", "0", "7", "9", "0"));
    EXPECT(client, "\"\\x81@\"", "GET", BITMAP);
    EFFECTS("SETBIT " BITMAP " 16 1", "1", BITSET("0", "16", "9"));
    UNCHANGED("0", BITSET("0", "16", "9", "7"));
    EXPECT(client, "[1, 0, 1, 1, 0, 1, 1]", BITGET("0", "1", "7", "16", LAST, "0", "9"));
    EFFECTS("MULTI\nSETBIT " BITMAP " 16 0\nSETBIT " BITMAP " 0 0\nEXEC", "2",
            BITCLEAR("16", "1", "0", "16", LAST));
    /* what was cleared leaves its room */
    EXPECT(client, "\"\\x01@\\x00\"", "GET", BITMAP);
    UNCHANGED("0", BITCLEAR("0", "16", "17", "24", LAST));
}

static void clearing_makes_nothing(void **state) {
    (void)state;
    UNCHANGED("0", BITCLEAR("0", "100", LAST));
    EXPECT(client, "0", "EXISTS", BITMAP);
    run(client, "SET", BITMAP, "", NULL);
    UNCHANGED("0", BITCLEAR("0", "100"));
    EXPECT(client, "0", "STRLEN", BITMAP);
}

static void absent_and_empty_are_all_zero(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        UNCHANGED("[0, 0]", BITGET("0", LAST));
        UNCHANGED("[]", BITSCAN("0", LAST));
        run(client, "SET", BITMAP, "", NULL);
    }
    EXPECT(client, "1", BITSET("0"));
    EXPECT(client, "\"\\x80\"", "GET", BITMAP);
}

/* A key past its time to live is absent; one with time to live keeps it. */
static void times_to_live_are_kept(void **state) {
    (void)state;
    run(client, "SET", BITMAP, "\xff", "PX", "10000000", NULL);
    long long expiry = get_integer(client, "PEXPIRETIME", BITMAP, NULL);
    EXPECT(client, "2", BITSET("100", "99"));
    EXPECT(client, "1", BITCLEAR("0"));
    EXPECT(client, "[1]", BITGET("1"));
    assert_int_equal(get_integer(client, "PEXPIRETIME", BITMAP, NULL), expiry);
    pass_expiry(BITMAP);
    UNCHANGED("[0]", BITGET("1"));
    UNCHANGED("[]", BITSCAN("0", "1000"));
    EXPECT(client, "0", BITCLEAR("1"));
    EXPECT(client, "1", BITSET("1"));
    EXPECT(client, "\"@\"", "GET", BITMAP);
    EXPECT(client, "-1", "PTTL", BITMAP);
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
}

/* A string in any form of the host's, read and written: the same as by GETBIT and SETBIT. */
static void every_form_of_a_string(void **state) {
    static const char *const values[] = {"12345", "-1", "0", "short", "9223372036854775807"};
    char twin[] = "twin";
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char want[160];
        run(client, "SET", BITMAP, values[i], NULL);
        run(client, "SET", twin, values[i], NULL);
        (void)snprintf(want, sizeof(want), "\"%s\"", values[i]);
        char bit[8];
        (void)snprintf(bit, sizeof(bit), "[%lld]", get_integer(client, "GETBIT", twin, "2", NULL));
        UNCHANGED(bit, BITGET("2"));
        redisReply *found = call(client, BITSCAN("0", LAST), NULL);
        assert_int_equal(found->elements, get_integer(client, "BITCOUNT", twin, NULL));
        freeReplyObject(found);
        EXPECT(client, want, "GET", BITMAP);
        run(client, "SET", BITMAP, values[i], NULL);
        long long was = get_integer(client, "SETBIT", twin, "6", "1", NULL);
        EXPECT(client, was ? "0" : "1", BITSET("6"));
        EXPECT(client, "0", "SETBIT", twin, "300", "1");
        EXPECT(client, "1", BITSET("300"));
        EXPECT(client, "38", "BITOP", "XOR", "x", twin, BITMAP);
        EXPECT(client, "0", "BITCOUNT", "x");
    }
}

/* A reader leaves no trace that a watcher, a replica or a later reader could see. */
static void reads_leave_no_trace(void **state) {
    (void)state;
    run(client, "SET", BITMAP, "77", NULL);
    EXPECT(client, "+OK", "WATCH", BITMAP);
    EXPECT(server.admin, "[0, 1]", BITGET("0", "2"));
    EXPECT(server.admin, "[2, 3, 5]", BITSCAN("0", "5", "limit", "3"));
    EXPECT(server.admin, "0", BITCLEAR("0"));
    EXPECT(server.admin, "0", BITSET("2"));
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", "INCR", BITMAP);
    EXPECT(client, "[78]", "EXEC");
}

static void scans_answer_a_range(void **state) {
    (void)state;
    EXPECT(client, "6", BITSET("0", "7", "8", "64", "1000", LAST));
    EXPECT(client, "[0, 7, 8, 64, 1000, " LAST "]", BITSCAN("0", LAST));
    EXPECT(client, "[7, 8, 64]", BITSCAN("1", "999"));
    EXPECT(client, "[7, 8]", BITSCAN("7", "8"));
    EXPECT(client, "[8]", BITSCAN("8", "8"));
    EXPECT(client, "[]", BITSCAN("9", "63"));
    EXPECT(client, "[]", BITSCAN("8", "7"));
    EXPECT(client, "[]", BITSCAN(LAST, "0"));
    EXPECT(client, "[" LAST "]", BITSCAN(LAST, LAST));
    EXPECT(client, "[0, 7]", BITSCAN("0", LAST, "LIMIT", "2"));
    EXPECT(client, "[0]", BITSCAN("0", LAST, "lImIt", "1"));
    EXPECT(client, "[64, 1000, " LAST "]", BITSCAN("9", LAST, "LIMIT", "3"));
}

static void scans_are_bounded(void **state) {
    char full[1400];
    (void)state;
    memset(full, 0xff, sizeof(full));
    command line = {0};
    command_add(&line, "SET");
    command_add(&line, BITMAP);
    command_add_bytes(&line, full, sizeof(full));
    freeReplyObject(command_send(client, &line));
    command_free(&line);
    redisReply *reply = call(client, BITSCAN("0", LAST), NULL);
    assert_int_equal(reply->elements, 1000);
    assert_int_equal(reply->element[999]->integer, 999);
    freeReplyObject(reply);
    reply = call(client, BITSCAN("5", LAST, "LIMIT", "10000"), NULL);
    assert_int_equal(reply->elements, 10000);
    assert_int_equal(reply->element[9999]->integer, 10004);
    freeReplyObject(reply);
    reply = call(client, BITSCAN("0", "99", "LIMIT", "10000"), NULL);
    assert_int_equal(reply->elements, 100);
    freeReplyObject(reply);
}

/* The largest bitmap there is, with little in it. A look at each bit would take minutes. */
static void the_largest_bitmap(void **state) {
    (void)state;
    EFFECTS("SETBIT " BITMAP " " LAST " 1", "1", BITSET(LAST));
    EXPECT(client, "536870912", "STRLEN", BITMAP);
    EXPECT(client, "1", BITSET("2147483647"));
    for (int i = 0; i < 20; i++) {
        EXPECT(client, "[2147483647, " LAST "]", BITSCAN("0", LAST));
        EXPECT(client, "[" LAST "]", BITSCAN("2147483648", LAST));
    }
    EXPECT(client, "[0, 1, 0, 1]", BITGET("0", "2147483647", "4294967294", LAST));
    EXPECT(client, "1", BITCLEAR(LAST));
    EXPECT(client, "536870912", "STRLEN", BITMAP);
    EXPECT(client, "1", "BITCOUNT", BITMAP);
    run(client, "DEL", BITMAP, NULL);
}

/* Random calls beside the server's own commands on a twin: the strings are always the same. */
static void bitmaps_are_the_servers(void **state) {
    static const char *const forms[] = {"", "7", "text"};
    (void)state;
    for (int round = 0; round < 300; round++) {
        int bit = random_below(3) > 0;
        unsigned range = random_below(2) ? 64 : 5000;
        command line = {0};
        long long want = 0;
        if (round % 20 == 0) {
            run(client, "SET", BITMAP, forms[random_below(3)], NULL);
            run(client, "COPY", BITMAP, "twin", "REPLACE", NULL);
        }
        command_add(&line, bit ? "TRA.BITSET" : "TRA.BITCLEAR");
        command_add(&line, BITMAP);
        for (unsigned i = 1 + random_below(40); i > 0; i--) {
            char offset[16];
            (void)snprintf(offset, sizeof(offset), "%u", random_below(range));
            command_add(&line, offset);
            if (get_integer(client, "GETBIT", "twin", offset, NULL) != bit) {
                run(client, "SETBIT", "twin", offset, bit ? "1" : "0", NULL);
                want++;
            }
        }
        redisReply *reply = command_send(client, &line);
        assert_int_equal(reply->integer, want);
        freeReplyObject(reply);
        command_free(&line);
        char *mine = reply_to_text(reply = call(client, "GET", BITMAP, NULL));
        freeReplyObject(reply);
        char *theirs = reply_to_text(reply = call(client, "GET", "twin", NULL));
        freeReplyObject(reply);
        EXPECT_TEXT(mine, theirs);
        free(mine);
        free(theirs);
        reply = call(client, BITSCAN("0", LAST, "LIMIT", "10000"), NULL);
        assert_int_equal(reply->elements, get_integer(client, "BITCOUNT", "twin", NULL));
        freeReplyObject(reply);
    }
}

static void the_servers_commands_work_on_them(void **state) {
    (void)state;
    EXPECT(client, "2", "TRA.BITSET", "a", "1", "2");
    EXPECT(client, "2", "TRA.BITSET", "b", "2", "3");
    EXPECT(client, "1", "BITOP", "AND", "both", "a", "b");
    EXPECT(client, "[2]", "TRA.BITSCAN", "both", "0", LAST);
    EXPECT(client, "1", "BITOP", "OR", "any", "a", "b");
    EXPECT(client, "[1, 2, 3]", "TRA.BITSCAN", "any", "0", LAST);
    EXPECT(client, "3", "BITCOUNT", "any");
    EXPECT(client, "1", "BITPOS", "any", "1");
    EXPECT(client, "1", "GETBIT", "a", "2");
    EXPECT(client, "0", "SETBIT", "a", "40", "1");
    EXPECT(client, "[1, 2, 40]", "TRA.BITSCAN", "a", "0", LAST);
}

/* ---- guard, memory, rights, roads ---- */

static void the_guard_stops_changes_only(void **state) {
    (void)state;
    WHILE_PAUSED(PAUSED, BITSET("1"));
    WHILE_PAUSED("0", BITCLEAR("1"));
    EXPECT(client, "1", BITSET("1"));
    WHILE_PAUSED("0", BITSET("1", "1"));
    WHILE_PAUSED(PAUSED, BITSET("1", "2"));
    WHILE_PAUSED(PAUSED, BITCLEAR("1"));
    WHILE_PAUSED("0", BITCLEAR("2"));
    WHILE_PAUSED("[1]", BITGET("1"));
    WHILE_PAUSED("[1]", BITSCAN("0", LAST));
    WHILE_PAUSED(OFFSET, BITSET("x"));
}

static void full_memory_stops_setting_only(void **state) {
    (void)state;
    EXPECT(client, "2", BITSET("1", "2"));
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    UNCHANGED(OOM, BITSET("3"));
    EXPECT(client, "1", BITCLEAR("1"));
    EXPECT(client, "[2]", BITSCAN("0", LAST));
    EXPECT(client, "[0, 1]", BITGET("1", "2"));
}

static void the_server_checks_the_key(void **state) {
    (void)state;
    EXPECT(client, "1", BITSET("1"));
    REFUSED_FOR(BITMAP, "+@emq ~other:*", BITGET("1"));
    REFUSED_FOR(BITMAP, "+@emq ~other:*", BITSCAN("0", "1"));
    REFUSED_FOR(BITMAP, "+@emq %W~any:*", BITGET("1"));
    REFUSED_FOR(BITMAP, "+@emq %R~any:*", BITSET("1"));
    REFUSED_FOR(BITMAP, "+@emq %W~any:*", BITSET("1"));
    REFUSED_FOR(BITMAP, "+@emq %R~any:*", BITCLEAR("1"));
    /* no right to the fence is asked for */
    ALLOWED("[1]", "+@emq %R~any:*", BITGET("1"));
    ALLOWED("[1]", "+@emq %R~any:*", BITSCAN("0", LAST));
    ALLOWED("1", "+@emq ~any:*", BITSET("2"));
    ALLOWED("1", "+@emq ~any:*", BITCLEAR("2"));
    EXPECT(client, "[\"k\"]", "COMMAND", "GETKEYS", "TRA.BITSET", "k", "1", "2");
    EXPECT(client, "[\"k\"]", "COMMAND", "GETKEYS", "TRA.BITSCAN", "k", "1", "2");
}

static void transactions_and_scripts_do_the_same(void **state) {
    (void)state;
    long long mark = aof_mark(&server);
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", BITSET("1", "2"));
    EXPECT(client, "+QUEUED", BITGET("1"));
    EXPECT(client, "+QUEUED", BITSET("x"));
    EXPECT(client, "+QUEUED", BITCLEAR("2"));
    EXPECT(client, "[2, [1], " OFFSET ", 1]", "EXEC");
    char *got = aof_since(&server, mark);
    EXPECT_TEXT(got,
                "MULTI\nSETBIT " BITMAP " 1 1\nSETBIT " BITMAP " 2 1\nSETBIT " BITMAP " 2 0\nEXEC");
    free(got);
    EFFECTS("MULTI\nSETBIT " BITMAP " 3 1\nSETBIT " BITMAP " 1 0\nEXEC", "[1, 1, [3]]", "EVAL",
            "return {redis.call('TRA.BITSET', KEYS[1], 3), redis.call('TRA.BITCLEAR', KEYS[1], 1), "
            "redis.call('TRA.BITSCAN', KEYS[1], 0, 9)}",
            "1", BITMAP);
    UNCHANGED("[1, 0]", "EVAL_RO", "return redis.call('TRA.BITGET', KEYS[1], 3, 4)", "1", BITMAP);
}

static void notifications_are_those_of_setbit(void **state) {
    (void)state;
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", "KA", NULL);
    redisContext *listener = server_connect(&server);
    freeReplyObject(call(listener, "PSUBSCRIBE", "__keyspace*", NULL));
    EXPECT(client, "2", BITSET("1", "2", "1"));
    EXPECT(client, "0", BITSET("1"));
    EXPECT(client, "[1]", BITGET("1"));
    EXPECT(client, "1", BITCLEAR("1"));
    run(client, "DEL", BITMAP, NULL);
    static const char *const want[] = {"setbit", "setbit", "setbit", "del"};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        void *reply = NULL;
        assert_int_equal(redisGetReply(listener, &reply), REDIS_OK);
        EXPECT_TEXT(((redisReply *)reply)->element[2]->str, "__keyspace@0__:" BITMAP);
        EXPECT_TEXT(((redisReply *)reply)->element[3]->str, want[i]);
        freeReplyObject(reply);
    }
    redisFree(listener);
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", "", NULL);
}

static void a_replica_and_a_restart_are_equal(void **state) {
    test_server replica;
    char port[16];
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)state;
    (void)snprintf(port, sizeof(port), "%d", server.port);
    run(client, "SET", BITMAP, "12", NULL);
    server_start(&replica, "--replica-of", port, NULL);
    EXPECT(client, "1", "WAIT", "1", "60000");
    EXPECT(client, "3", BITSET("0", "500", "4"));
    EXPECT(client, "2", BITCLEAR("500", "2"));
    EXPECT(client, "1", "WAIT", "1", "60000");
    (void)get_digest(before, &server);
    EXPECT_TEXT(get_digest(after, &replica), before);
    EXPECT(replica.admin, "[1, 0]", BITGET("0", "500"));
    EXPECT(replica.admin, "[0, 3]", BITSCAN("0", "3"));
    EXPECT(replica.admin, "-READONLY You can't write against a read only replica.", BITSET("1"));
    EXPECT_TEXT(get_digest(after, &replica), before);
    server_stop(&replica);
    redisFree(client);
    server_restart(&server);
    client = server_connect(&server);
    EXPECT_TEXT(get_digest(after, &server), before);
}

/* A server whose strings are kept shorter than usual: as SETBIT. */
static void no_bit_is_set_beyond_the_longest_string(void **state) {
    static const char *const refusal = "-ERR bit offset is not an integer or out of range";
    (void)state;
    run(server.admin, "CONFIG", "SET", "proto-max-bulk-len", "1mb", NULL);
    EXPECT(client, refusal, "SETBIT", BITMAP, "8388608", "1");
    UNCHANGED(refusal, BITSET("8388608"));
    UNCHANGED(refusal, BITSET("5", LAST, "6"));
    EXPECT(client, "1", BITSET("8388607"));
    EXPECT(client, "1048576", "STRLEN", BITMAP);
    /* what changes nothing is none of it */
    UNCHANGED("0", BITCLEAR(LAST));
    UNCHANGED("[0]", BITGET(LAST));
    UNCHANGED("[8388607]", BITSCAN("0", LAST));
    /* the values first, then this, then the type */
    UNCHANGED(OFFSET, BITSET(LAST, "x"));
    run(client, "DEL", BITMAP, NULL);
    run(client, "HSET", BITMAP, "f", "v", NULL);
    UNCHANGED(refusal, BITSET("8388608"));
    UNCHANGED(WRONGTYPE, BITSET("8388607"));
    run(server.admin, "CONFIG", "SET", "proto-max-bulk-len", "2mb", NULL);
    run(client, "DEL", BITMAP, NULL);
    EXPECT(client, "1", BITSET("8388608"));
    UNCHANGED(refusal, BITSET("16777216"));
    run(server.admin, "CONFIG", "SET", "proto-max-bulk-len", "512mb", NULL);
    EXPECT(client, "1", BITSET("16777216"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(info_tells_what_runs),
        TEST(the_table_is_what_the_server_tells),
        TEST(the_tokens_are_those_of_the_version),
        TEST(one_row_in_full),
        TEST(both_are_maps_in_resp3),
        TEST(both_change_nothing_anywhere),
        TEST(shapes_are_checked),
        TEST(numbers_are_canonical),
        TEST(a_call_has_a_thousand_offsets_at_most),
        TEST(strings_only),
        TEST(bits_that_change_are_written),
        TEST(clearing_makes_nothing),
        TEST(absent_and_empty_are_all_zero),
        TEST(times_to_live_are_kept),
        TEST(every_form_of_a_string),
        TEST(reads_leave_no_trace),
        TEST(scans_answer_a_range),
        TEST(scans_are_bounded),
        TEST(the_largest_bitmap),
        TEST(bitmaps_are_the_servers),
        TEST(the_servers_commands_work_on_them),
        TEST(the_guard_stops_changes_only),
        TEST(full_memory_stops_setting_only),
        TEST(the_server_checks_the_key),
        TEST(transactions_and_scripts_do_the_same),
        TEST(notifications_are_those_of_setbit),
        TEST(a_replica_and_a_restart_are_equal),
        TEST(no_bit_is_set_beyond_the_longest_string),
    };
    return RUN_SERVER_TESTS("tra", tests, start_server, stop_server);
}
