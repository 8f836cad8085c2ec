/* SPDX-License-Identifier: Apache-2.0 */
/* What the server tells of the module: the commands as registered, their documentation, INFO. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

/* EVAL's key-spec: begin at argument 1, the count at 0, the first key at 1, step 1; RW ACCESS
 * UPDATE. */
#define EVAL_KEYS                                                                                  \
    "[[\"flags\", [+RW, +access, +update], \"begin_search\", [\"type\", \"index\", \"spec\", "     \
    "[\"index\", 1]], \"find_keys\", [\"type\", \"keynum\", \"spec\", [\"keynumidx\", 0, "         \
    "\"firstkey\", 1, \"keystep\", 1]]]]"

#define ENTRY(name, arity, flags, categories, keys)                                                \
    "[[\"" name "\", " arity ", [" flags "], 0, 0, 0, [" categories "], [], " keys ", []]]"

static void commands_are_registered_as_their_rows_say(void **state) {
    (void)state;
    EXPECT(client,
           ENTRY("EMQ.ENQUEUE", "6", "+write, +denyoom, +module, +fast, +movablekeys",
                 "+@write, +@fast, +@emq", EVAL_KEYS),
           "COMMAND", "INFO", "EMQ.ENQUEUE");
    EXPECT(client,
           ENTRY("EMQ.CLAIM", "6", "+write, +denyoom, +module, +fast, +movablekeys",
                 "+@write, +@fast, +@emq", EVAL_KEYS),
           "COMMAND", "INFO", "EMQ.CLAIM");
    EXPECT(client,
           ENTRY("EMQ.VERSION", "1", "+readonly, +module, +fast", "+@read, +@fast, +@emq", "[]"),
           "COMMAND", "INFO", "EMQ.VERSION");
    EXPECT(client,
           ENTRY("EMQ.COMPLETE", "7", "+write, +module, +fast, +movablekeys",
                 "+@write, +@fast, +@emq", EVAL_KEYS),
           "COMMAND", "INFO", "EMQ.COMPLETE");
    EXPECT(client,
           ENTRY("EMQ.INSTALL", "3", "+write, +denyoom, +module, +admin, +noscript, +movablekeys",
                 "+@write, +@admin, +@slow, +@dangerous, +@emq", EVAL_KEYS),
           "COMMAND", "INFO", "EMQ.INSTALL");
    EXPECT(client,
           ENTRY("EMQ.APPEND", "-4", "+write, +denyoom, +module, +fast, +movablekeys",
                 "+@write, +@fast, +@emq", EVAL_KEYS),
           "COMMAND", "INFO", "EMQ.APPEND");
    EXPECT(client,
           ENTRY("EMQ.PUBLISH", "-5", "+write, +denyoom, +module, +pubsub, +fast, +movablekeys",
                 "+@write, +@pubsub, +@fast, +@emq", EVAL_KEYS),
           "COMMAND", "INFO", "EMQ.PUBLISH");
    EXPECT(client,
           ENTRY("EMQ.FAILURES.INCR", "5", "+write, +denyoom, +module, +fast, +movablekeys",
                 "+@write, +@fast, +@emq", EVAL_KEYS),
           "COMMAND", "INFO", "EMQ.FAILURES.INCR");
}

#define WITH_KEYS(a, b) "[\"" a "\", \"" b "\"]"
#define RW(key) "[\"" key "\", [+RW, +access, +update]]"

static void the_server_finds_the_keys(void **state) {
    (void)state;
    EXPECT(client, WITH_KEYS("a", "b"), "COMMAND", "GETKEYS", "EMQ.ENQUEUE", "2", "a", "b", "c",
           "d");
    EXPECT(client, "[\"a\", \"b\", \"c\"]", "COMMAND", "GETKEYS", "EMQ.CLAIM", "3", "a", "b", "c",
           "d");
    EXPECT(client, "[\"a\", \"b\", \"c\"]", "COMMAND", "GETKEYS", "EMQ.COMPLETE", "3", "a", "b",
           "c", "d", "e");
    EXPECT(client, "[\"a\"]", "COMMAND", "GETKEYS", "EMQ.INSTALL", "1", "a");
    EXPECT(client, "[" RW("a") ", " RW("b") "]", "COMMAND", "GETKEYSANDFLAGS", "EMQ.ENQUEUE", "2",
           "a", "b", "c", "d");
    EXPECT(client, "[" RW("a") ", " RW("b") ", " RW("c") "]", "COMMAND", "GETKEYSANDFLAGS",
           "EMQ.CLAIM", "3", "a", "b", "c", "d");
    EXPECT(client, "[" RW("a") ", " RW("b") ", " RW("c") "]", "COMMAND", "GETKEYSANDFLAGS",
           "EMQ.COMPLETE", "3", "a", "b", "c", "d", "e");
    redisReply *reply = call(client, "COMMAND", "GETKEYS", "EMQ.VERSION", NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

#define DOCS(name, summary, complexity, arguments)                                                 \
    "[\"" name "\", [\"summary\", \"" summary "\", \"since\", \"0.1.0\", \"group\", \"module\", "  \
    "\"complexity\", \"" complexity "\", \"module\", \"emq\"" arguments "]]"
#define ARGUMENTS(list) ", \"arguments\", [" list "]"
#define VALUE(name, type)                                                                          \
    "[\"name\", \"" name "\", \"type\", \"" type "\", \"display_text\", \"" name "\"]"
#define KEY(name, pattern)                                                                         \
    "[\"name\", \"" name "\", \"type\", \"key\", \"display_text\", \"" pattern "\", "              \
    "\"key_spec_index\", 0]"

static void commands_are_documented(void **state) {
    (void)state;
    EXPECT(client,
           DOCS("EMQ.VERSION",
                "Wire-6 compatibility facts: wire, epoch, module version and major, build, "
                "capabilities",
                "O(1)", ""),
           "COMMAND", "DOCS", "EMQ.VERSION");
    EXPECT(client,
           DOCS("EMQ.INSTALL", "Write the fence once: brand this database for wire 6", "O(1)",
                ARGUMENTS(VALUE("numkeys", "integer") ", " KEY("fence", "{emq}:version"))),
           "COMMAND", "DOCS", "EMQ.INSTALL");
    EXPECT(client,
           DOCS("EMQ.ENQUEUE", "Admit a flat JOB-namespaced job: row and pending entry, idempotent",
                "O(log N)",
                ARGUMENTS(VALUE("numkeys", "integer") ", " KEY("row", "emq:{q}:job:<id>") ", " KEY(
                    "pending", "emq:{q}:pending") ", " VALUE("id", "string") ", " VALUE("payload",
                                                                                        "string"))),
           "COMMAND", "DOCS", "EMQ.ENQUEUE");
    EXPECT(
        client,
        DOCS("EMQ.CLAIM",
             "Lease the oldest pending flat job on server time; a paused queue answers empty",
             "O(log N)",
             ARGUMENTS(VALUE("numkeys", "integer") ", " KEY("pending", "emq:{q}:pending") ", " KEY(
                 "active", "emq:{q}:active") ", " KEY("base", "emq:{q}:") ", " VALUE("lease_ms",
                                                                                     "integer"))),
        "COMMAND", "DOCS", "EMQ.CLAIM");
    EXPECT(
        client,
        DOCS("EMQ.COMPLETE", "Complete a leased flat job under its token: remove the row, count it",
             "O(log N)",
             ARGUMENTS(VALUE("numkeys", "integer") ", " KEY("active", "emq:{q}:active") ", " KEY(
                 "row",
                 "emq:{q}:job:<id>") ", " KEY("base",
                                              "emq:{q}:") ", " VALUE("id",
                                                                     "string") ", " VALUE("token",
                                                                                          "strin"
                                                                                          "g"))),
        "COMMAND", "DOCS", "EMQ.COMPLETE");
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names that a command answers, sorted and joined; status or text, as the server likes it. */
static void expect_names(const char *want, redisReply *reply) {
    const char *names[64];
    char joined[1024] = "";
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_true(reply->elements < 64);
    for (size_t i = 0; i < reply->elements; i++) {
        names[i] = reply->element[i]->str;
    }
    qsort(names, reply->elements, sizeof(names[0]), compare_texts);
    for (size_t i = 0; i < reply->elements; i++) {
        size_t used = strlen(joined);
        (void)snprintf(joined + used, sizeof(joined) - used, "%s%s", i > 0 ? " " : "", names[i]);
    }
    EXPECT_TEXT(joined, want);
    freeReplyObject(reply);
}

#define EMQ_ALL                                                                                    \
    "EMQ.APPEND EMQ.CLAIM EMQ.CLAIMS EMQ.COMPLETE EMQ.COMPLETES EMQ.DELAY EMQ.ENQUEUE "            \
    "EMQ.ENQUEUES EMQ.EXTEND EMQ.EXTENDS EMQ.FAIL EMQ.FAILURES.INCR EMQ.INSTALL EMQ.PAUSE "        \
    "EMQ.PROMOTE EMQ.PUBLISH EMQ.REPROCESS EMQ.REQUEUE EMQ.RESCHEDULE EMQ.RESUME EMQ.SCHEDULE "    \
    "EMQ.STALLED.CHECK EMQ.VERSION"
#define TRA_ALL "TRA.BITCLEAR TRA.BITGET TRA.BITSCAN TRA.BITSET TRA.COMMANDS TRA.INFO"
#define ALL EMQ_ALL " " TRA_ALL

static void the_category_and_the_module_hold_exactly_the_verbs(void **state) {
    (void)state;
    expect_names(ALL, call(client, "ACL", "CAT", "emq", NULL));
    expect_names(ALL, call(client, "COMMAND", "LIST", "FILTERBY", "MODULE", "emq", NULL));
    expect_names(EMQ_ALL, call(client, "COMMAND", "LIST", "FILTERBY", "PATTERN", "emq.*", NULL));
    expect_names(TRA_ALL, call(client, "COMMAND", "LIST", "FILTERBY", "PATTERN", "tra.*", NULL));
}

/* Which of the verbs are in a category. */
static void expect_in_category(const char *category, const char *want) {
    redisReply *reply = call(client, "ACL", "CAT", category, NULL);
    char joined[512] = "";
    static const char *const verbs[] = {
        "EMQ.APPEND",   "EMQ.CLAIM",         "EMQ.CLAIMS",   "EMQ.COMPLETE",   "EMQ.COMPLETES",
        "EMQ.DELAY",    "EMQ.ENQUEUE",       "EMQ.ENQUEUES", "EMQ.EXTEND",     "EMQ.EXTENDS",
        "EMQ.FAIL",     "EMQ.FAILURES.INCR", "EMQ.INSTALL",  "EMQ.PAUSE",      "EMQ.PROMOTE",
        "EMQ.PUBLISH",  "EMQ.REPROCESS",     "EMQ.REQUEUE",  "EMQ.RESCHEDULE", "EMQ.RESUME",
        "EMQ.SCHEDULE", "EMQ.STALLED.CHECK", "EMQ.VERSION",  "TRA.BITCLEAR",   "TRA.BITGET",
        "TRA.BITSCAN",  "TRA.BITSET",        "TRA.COMMANDS", "TRA.INFO"};
    for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
        for (size_t i = 0; i < reply->elements; i++) {
            if (strcmp(reply->element[i]->str, verbs[v]) == 0) {
                (void)strcat(joined, joined[0] == '\0' ? "" : " ");
                (void)strcat(joined, verbs[v]);
            }
        }
    }
    freeReplyObject(reply);
    EXPECT_TEXT(joined, want);
}

static void categories_follow_the_flags(void **state) {
    (void)state;
    expect_in_category(
        "write", "EMQ.APPEND EMQ.CLAIM EMQ.CLAIMS EMQ.COMPLETE EMQ.COMPLETES EMQ.DELAY EMQ.ENQUEUE "
                 "EMQ.ENQUEUES EMQ.EXTEND EMQ.EXTENDS EMQ.FAIL EMQ.FAILURES.INCR EMQ.INSTALL "
                 "EMQ.PAUSE EMQ.PROMOTE EMQ.PUBLISH EMQ.REPROCESS EMQ.REQUEUE EMQ.RESCHEDULE "
                 "EMQ.RESUME EMQ.SCHEDULE EMQ.STALLED.CHECK TRA.BITCLEAR TRA.BITSET");
    expect_in_category("read", "EMQ.VERSION TRA.BITGET TRA.BITSCAN TRA.COMMANDS TRA.INFO");
    expect_in_category("fast",
                       "EMQ.APPEND EMQ.CLAIM EMQ.COMPLETE EMQ.DELAY EMQ.ENQUEUE EMQ.EXTEND "
                       "EMQ.FAIL EMQ.FAILURES.INCR EMQ.PAUSE EMQ.PUBLISH EMQ.REPROCESS EMQ.REQUEUE "
                       "EMQ.RESCHEDULE EMQ.RESUME EMQ.SCHEDULE EMQ.VERSION TRA.COMMANDS TRA.INFO");
    expect_in_category("slow",
                       "EMQ.CLAIMS EMQ.COMPLETES EMQ.ENQUEUES EMQ.EXTENDS EMQ.INSTALL EMQ.PROMOTE "
                       "EMQ.STALLED.CHECK TRA.BITCLEAR TRA.BITGET TRA.BITSCAN TRA.BITSET");
    expect_in_category("dangerous", "EMQ.INSTALL EMQ.PAUSE EMQ.RESUME");
    expect_in_category("admin", "EMQ.INSTALL");
    expect_in_category("blocking", "EMQ.CLAIMS");
    expect_in_category("pubsub", "EMQ.PUBLISH");
    expect_in_category("keyspace", "");
}

/* A counter of INFO, by the name that the module's section gives it. */
static long long read_counter(const char *name) {
    char field[64];
    char text[64];
    (void)snprintf(field, sizeof(field), "emq_%s", name);
    return atoll(get_info(text, sizeof(text), server.admin, "emq", field));
}

static const char *const counters[] = {
    "calls_version",  "calls_install",        "calls_enqueue",     "calls_claim",
    "calls_complete", "refused_wire",         "refused_kind",      "refused_stale",
    "refused_state",  "refused_lane",         "refused_flow",      "refused_lock",
    "refused_shape",  "refused_value",        "refused_layout",    "refused_noperm",
    "lost_effects",   "refused_write_paused", "refused_wrongtype",
};

#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

/* Of all counters only this one went up, by `by`, besides the one that counts the calls. */
static void expect_counted(const long long *before, const char *calls, long long called,
                           const char *refusal, long long refused) {
    for (size_t i = 0; i < COUNTERS; i++) {
        long long want = before[i];
        want += strcmp(counters[i], calls) == 0 ? called : 0;
        want += refusal != NULL && strcmp(counters[i], refusal) == 0 ? refused : 0;
        if (read_counter(counters[i]) != want) {
            fail_msg("%s is %lld, not %lld", counters[i], read_counter(counters[i]), want);
        }
    }
}

#define COUNTED(calls, called, refusal, refused, statement)                                        \
    do {                                                                                           \
        long long before_[COUNTERS];                                                               \
        for (size_t i_ = 0; i_ < COUNTERS; i_++) {                                                 \
            before_[i_] = read_counter(counters[i_]);                                              \
        }                                                                                          \
        statement;                                                                                 \
        expect_counted(before_, (calls), (called), (refusal), (refused));                          \
    } while (0)

static void info_counts_calls_and_refusals(void **state) {
    (void)state;
    COUNTED("calls_version", 1, NULL, 0, run(client, "EMQ.VERSION", NULL));
    COUNTED("calls_install", 1, NULL, 0, run(client, INSTALL, NULL));
    COUNTED("calls_enqueue", 2, NULL, 0, {
        run(client, ENQUEUE(J1, "p"), NULL);
        run(client, ENQUEUE(J1, "p"), NULL);
    });
    COUNTED("calls_claim", 2, NULL, 0, {
        run(client, CLAIM("1000"), NULL);
        run(client, CLAIM("1000"), NULL);
    });
    COUNTED("calls_complete", 2, "refused_stale", 2, {
        EXPECT(client, MISMATCH, COMPLETE(J1, "2"));
        run(client, "HSET", ROW(J1), "state", "dead", NULL);
        EXPECT(client, LOST, COMPLETE(J1, "1"));
    });
    run(client, "HSET", ROW(J1), "parent", J2, NULL);
    COUNTED("calls_complete", 1, "refused_flow", 1, EXPECT(client, FLOW, COMPLETE(J1, "1")));
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    COUNTED("calls_complete", 1, "refused_lane", 1, EXPECT(client, LANE, COMPLETE(J1, "1")));
    COUNTED("calls_complete", 2, NULL, 0, {
        run(client, COMPLETE(J2, "1"), NULL);
        run(client, COMPLETE(J3, "1"), NULL);
    });
    COUNTED("calls_enqueue", 1, "refused_kind", 1, EXPECT(client, KIND, ENQUEUE(USER, "p")));
    COUNTED("calls_claim", 3, "refused_value", 3, {
        EXPECT(client, LEASE_MS, CLAIM("0"));
        EXPECT(client, LEASE_MS, CLAIM(""));
        run(client, "ZADD", PENDING, "0", J1, NULL);
        run(client, "HSET", ROW(J1), "attempts", "x", NULL);
        EXPECT(client, ATTEMPTS, CLAIM("1000"));
    });
    COUNTED("calls_claim", 1, "refused_shape", 1, {
        redisReply *reply = call(client, "EMQ.CLAIM", "4", PENDING, ACTIVE, BASE, "1", NULL);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    });
    COUNTED("calls_claim", 1, "refused_layout", 1, {
        redisReply *reply = call(client, "EMQ.CLAIM", "3", ACTIVE, ACTIVE, BASE, "1", NULL);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    });
    make_typed(PENDING, "string");
    COUNTED("calls_claim", 1, "refused_wrongtype", 1, EXPECT(client, WRONGTYPE, CLAIM("1")));
    redisContext *user = server_connect_as(&server, "tester", "+@emq ~emq:*");
    COUNTED("calls_claim", 1, "refused_noperm", 1, EXPECT(user, NO_KEY, CLAIM("1")));
    redisFree(user);
    run(client, "SET", FENCE, "x", NULL);
    COUNTED("calls_install", 1, "refused_wire", 1, EXPECT(client, FENCE_FOUND "x", INSTALL));
    COUNTED("calls_claim", 1, "refused_wire", 1, EXPECT(client, FENCE_FOUND "x", CLAIM("1")));
    run(client, "DEL", FENCE, NULL);
    COUNTED("calls_claim", 1, "refused_wire", 1, EXPECT(client, FENCE_ABSENT, CLAIM("1")));
    COUNTED("calls_install", 1, "refused_write_paused", 1, {
        EXPECT(client, "+OK", "MULTI");
        EXPECT(client, "+QUEUED", "CLIENT", "PAUSE", "100000", "WRITE");
        EXPECT(client, "+QUEUED", INSTALL);
        EXPECT(client, "[+OK, " PAUSED "]", "EXEC");
        EXPECT(server.admin, "+OK", "CLIENT", "UNPAUSE");
    });
    /* what the server refuses by itself never comes to the module */
    COUNTED("", 0, NULL, 0, {
        redisReply *reply = call(client, "EMQ.CLAIM", "3", NULL);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    });
    assert_int_equal(read_counter("lost_effects"), 0);
}

static void info_tells_what_runs(void **state) {
    char text[128];
    (void)state;
    EXPECT_TEXT(get_info(text, sizeof(text), client, "emq", "emq_wire"), WIRE);
    EXPECT_TEXT(get_info(text, sizeof(text), client, "emq", "emq_version"), "0.1.0");
    EXPECT_TEXT(get_info(text, sizeof(text), client, "modules", "emq_wire"), WIRE);
    EXPECT_TEXT(get_info(text, sizeof(text), client, "everything", "emq_wire"), WIRE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(commands_are_registered_as_their_rows_say),
        TEST(the_server_finds_the_keys),
        TEST(commands_are_documented),
        TEST(the_category_and_the_module_hold_exactly_the_verbs),
        TEST(categories_follow_the_flags),
        TEST(info_counts_calls_and_refusals),
        TEST(info_tells_what_runs),
    };
    return RUN_SERVER_TESTS("registration", tests, start_server, stop_server);
}
