/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest rules of each role: a whole cycle works with them, not one word can be left out, and
 * every verb answers each user as the table says, on his own queue and on another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "roles.h"
#include "verb_line.h"

/* One user's way through his cycle. While a rule is missing, the first NOPERM ends it. */
typedef struct cycle {
    redisContext *user;
    int may_be_refused;
    int was_refused;
} cycle;

/* Sends a line as the user; returns whether to go on. `want` is the reply, NULL any but an error.
 */
static int step(cycle *c, int line, const char *want, ...) NULL_AT_THE_END;

static int step(cycle *c, int line, const char *want, ...) {
    command sent = {0};
    va_list words;
    va_start(words, want);
    command_add_words(&sent, words);
    va_end(words);
    redisReply *reply = command_send(c->user, &sent);
    char *got = reply_to_text(reply);
    command_free(&sent);
    freeReplyObject(reply);
    c->was_refused = strncmp(got, "-NOPERM ", 8) == 0;
    if (c->was_refused && c->may_be_refused) {
        free(got);
        return 0;
    }
    if (want == NULL) {
        assert_int_not_equal(got[0], '-');
    } else {
        expect_text(__FILE__, line, got, want);
    }
    free(got);
    return 1;
}

#define STEP(want, ...)                                                                            \
    do {                                                                                           \
        if (!step(c, __LINE__, (want), __VA_ARGS__, (const char *)NULL)) {                         \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define ANSWERS NULL

/* What a client asks before its first verb. */
#define CONNECT()                                                                                  \
    STEP("+OK", "CLIENT", "SETNAME", "tester");                                                    \
    STEP(ANSWERS, "EMQ.VERSION");                                                                  \
    STEP("\"" WIRE "\"", "GET", FENCE)

static void produce(cycle *c) {
    CONNECT();
    STEP("1", ENQUEUE(J1, "p"));
    STEP("0", ENQUEUE(J1, "p"));
    STEP("1", SCHEDULE_JOB(J2, "p", "in", "60000"));
    STEP("[0, 1]", ENQUEUES(J2, "p", J3, "p"));
    STEP("0", "EMQ.PUBLISH", "1", BASE, "admitted", J1);
}

#define LEASED(id, attempts) "[\"" id "\", \"p\", " attempts "]"

static void work(cycle *c) {
    run(client, ENQUEUE(J1, "p"), NULL);
    CONNECT();
    STEP(ANSWERS, "CLIENT", "ID");
    STEP("0", "CLIENT", "UNBLOCK", "1000000", "TIMEOUT");
    STEP(ANSWERS, "TIME");
    STEP("[]", "ZRANGE", ACTIVE, "0", "0", "WITHSCORES");
    STEP("[]", "ZRANGE", SCHEDULE, "0", "0", "WITHSCORES");
    STEP(ANSWERS, "HGETALL", ROW(J1));
    STEP(LEASED(J1, "1"), CLAIM("60000"));
    STEP("1", EXTEND(J1, "1", "60000"));
    STEP("[]", EXTENDS("60000", J1, "1"));
    run(client, "RPUSH", LOGS(J1), "line", NULL);
    STEP("1", COMPLETE(J1, "1"));
    run(client, ENQUEUE(J2, "p"), NULL);
    STEP(LEASED(J2, "1"), CLAIM("60000"));
    STEP("1", DELAY(J2, "1", "at", "1"));
    STEP("1", PROMOTE("10"));
    STEP(LEASED(J2, "2"), CLAIM("60000"));
    STEP("1", REQUEUE(J2, "2"));
    STEP(LEASED(J2, "3"), CLAIM("60000"));
    STEP("\"scheduled\"", FAIL(J2, "3", "60000", "2", "e"));
    run(client, "ZADD", SCHEDULE, "1", J2, NULL);
    STEP("1", PROMOTE("10"));
    STEP(LEASED(J2, "4"), CLAIM("60000"));
    STEP("\"dead\"", FAIL(J2, "4", "60000", "2", "e"));
    run(client, ENQUEUE(J3, "p"), NULL);
    STEP(LEASED(J3, "1"), CLAIM("60000"));
    run(client, "ZADD", ACTIVE, "1", J3, NULL);
    STEP("[[\"" J3 "\"], []]", STALLED_CHECK("2", "10"));
    STEP(LEASED(J3, "2"), CLAIM("60000"));
    run(client, "ZADD", ACTIVE, "1", J3, NULL);
    STEP("[[], [\"" J3 "\"]]", STALLED_CHECK("2", "10"));
    STEP("[]", CLAIM("60000"));
    run(client, ENQUEUE(J1, "p"), NULL);
    STEP("[" LEASED(J1, "1") "]", CLAIMS("60000", "10"));
    STEP("[1]", COMPLETES(J1, "1"));
}

static void operate(cycle *c) {
    lease_j1();
    run(client, FAIL(J1, "1", "0", "1", "e"), NULL);
    run(client, "RPUSH", LOGS(J1), "line", NULL);
    run(client, SCHEDULE_JOB(J2, "p", "in", "60000"), NULL);
    make_job(J3, "active", ACTIVE, "1");
    run(client, "HSET", COMPLETED, "count", "7", NULL);
    CONNECT();
    STEP(ANSWERS, "SCAN", "0", "MATCH", "emq:{*}:*", "COUNT", "1000");
    STEP(ANSWERS, "TIME");
    STEP("1", "ZCARD", DEAD);
    STEP("[\"" J1 "\"]", "ZRANGE", DEAD, "0", "-1");
    STEP("[\"state\", \"dead\", \"attempts\", \"1\", \"payload\", \"payload\", \"last_error\", "
         "\"e\", \"failures\", \"1\"]",
         "HGETALL", ROW(J1));
    STEP("[\"line\"]", "LRANGE", LOGS(J1), "0", "-1");
    STEP("[\"count\", \"7\"]", "HGETALL", COMPLETED);
    STEP("[\"count\", \"1\"]", "HGETALL", FAILED);
    STEP("1", PAUSE);
    STEP("[\"paused\", \"1\"]", "HGETALL", META);
    STEP("1", RESUME);
    STEP("1", REPROCESS(J1));
    STEP("1", RESCHEDULE(J2, "at", "1"));
    STEP("1", PROMOTE("10"));
    STEP("[[], [\"" J3 "\"]]", STALLED_CHECK("1", "10"));
}

static void install(cycle *c) {
    run(client, "DEL", FENCE, NULL);
    STEP("+OK", "CLIENT", "SETNAME", "tester");
    STEP(ANSWERS, "EMQ.VERSION");
    STEP("1", INSTALL);
}

static void (*const cycles[EMQ_ROLES])(cycle *) = {
    [EMQ_ROLE_PRODUCER] = produce,
    [EMQ_ROLE_WORKER] = work,
    [EMQ_ROLE_OPERATOR] = operate,
    [EMQ_ROLE_INSTALLER] = install,
};

static const char *rules_of(emq_role role) {
    static char rules[EMQ_ROLE_RULES_MAX];
    assert_true(emq_role_rules(rules, sizeof(rules), role, "q") > 0);
    return rules;
}

/* How many entries ACL LOG has; the first one's reason and object are left, empty without one. */
static int read_log(char *reason, char *object, size_t cap) {
    redisReply *reply = call(server.admin, "ACL", "LOG", NULL);
    int count = (int)reply->elements;
    reason[0] = '\0';
    object[0] = '\0';
    for (size_t i = 0; count > 0 && i + 1 < reply->element[0]->elements; i += 2) {
        redisReply *const *entry = reply->element[0]->element + i;
        if (strcmp(entry[0]->str, "reason") == 0) {
            (void)snprintf(reason, cap, "%s", entry[1]->str);
        } else if (strcmp(entry[0]->str, "object") == 0) {
            (void)snprintf(object, cap, "%s", entry[1]->str);
        } else if (strcmp(entry[0]->str, "count") == 0) {
            assert_int_equal(entry[1]->integer, 1);
        }
    }
    freeReplyObject(reply);
    return count;
}

#define LOG_TEXT_MAX 512

static void expect_no_entry(void) {
    char reason[LOG_TEXT_MAX];
    char object[LOG_TEXT_MAX];
    if (read_log(reason, object, LOG_TEXT_MAX) != 0) {
        fail_msg("ACL LOG has an entry: %s %s", reason, object);
    }
}

static void a_cycle_works_with_the_rules(void **state) {
    for (int role = 0; role < EMQ_ROLES; role++) {
        (void)clean_slate(state);
        cycle c = {server_connect_as(&server, "tester", rules_of((emq_role)role)), 0, 0};
        cycles[role](&c);
        expect_no_entry();
        redisFree(c.user);
    }
}

/* With these rules some step of the role's cycle must be refused. */
static void must_be_refused(emq_role role, const char *rules, const char *changed) {
    (void)clean_slate(NULL);
    cycle c = {server_connect_as(&server, "tester", rules), 1, 0};
    cycles[role](&c);
    redisFree(c.user);
    if (!c.was_refused) {
        fail_msg("a %s needs no '%s'", emq_role_name(role), changed);
    }
}

/* The rules with one word replaced. */
static void replace_word(char *out, const char *rules, const char *at, size_t n, const char *with) {
    (void)snprintf(out, EMQ_ROLE_RULES_MAX, "%.*s%s%s", (int)(at - rules), rules, with, at + n);
}

static void each_word_is_needed(void **state) {
    char rules[EMQ_ROLE_RULES_MAX];
    char changed[EMQ_ROLE_RULES_MAX];
    (void)state;
    for (int role = 0; role < EMQ_ROLES; role++) {
        (void)snprintf(rules, sizeof(rules), "%s", rules_of((emq_role)role));
        int words = 0;
        for (const char *at = rules; *at != '\0'; words++) {
            char word[256];
            size_t n = strcspn(at, " ");
            (void)snprintf(word, sizeof(word), "%.*s", (int)n, at);
            replace_word(changed, rules, at, n, "");
            must_be_refused((emq_role)role, changed, word);
            at += n + strspn(at + n, " ");
        }
        assert_true(words >= 4);
    }
}

/* A key that is given for reading and writing is both read and written. */
static void each_right_to_a_key_is_needed(void **state) {
    static const char *const weaker[] = {"%R~", "%W~"};
    char rules[EMQ_ROLE_RULES_MAX];
    char changed[EMQ_ROLE_RULES_MAX];
    (void)state;
    for (int role = 0; role < EMQ_ROLES; role++) {
        (void)snprintf(rules, sizeof(rules), "%s", rules_of((emq_role)role));
        for (const char *at = strstr(rules, " ~"); at != NULL; at = strstr(at + 1, " ~")) {
            for (int i = 0; i < 2; i++) {
                char word[256];
                (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(at + 1, " "), at + 1);
                replace_word(changed, rules, at + 1, 1, weaker[i]);
                must_be_refused((emq_role)role, changed, word);
            }
        }
    }
}

/* What a user meets who sends a verb. */
typedef enum answer {
    OK, /* he may: the reply is the verb's own, a refusal of the domain included */
    NO, /* the server doesn't let him run the verb */
    KEY /* he may run the verb, but not touch the key */
} answer;

typedef struct expectation {
    const char *verb;
    struct {
        answer own;
        answer other;
    } of[EMQ_ROLES];
} expectation;

static const expectation expectations[] = {
    /*                    producer   worker     operator   installer */
    {"EMQ.VERSION", {{OK, OK}, {OK, OK}, {OK, OK}, {OK, OK}}},
    {"EMQ.INSTALL", {{NO, NO}, {NO, NO}, {NO, NO}, {OK, OK}}},
    {"EMQ.ENQUEUE", {{OK, KEY}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"EMQ.ENQUEUES", {{OK, KEY}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"EMQ.SCHEDULE", {{OK, KEY}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"EMQ.CLAIM", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.CLAIMS", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.EXTEND", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.EXTENDS", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.COMPLETE", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.COMPLETES", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.FAIL", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.DELAY", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.REQUEUE", {{NO, NO}, {OK, KEY}, {NO, NO}, {NO, NO}}},
    {"EMQ.PROMOTE", {{NO, NO}, {OK, KEY}, {OK, KEY}, {NO, NO}}},
    {"EMQ.STALLED.CHECK", {{NO, NO}, {OK, KEY}, {OK, KEY}, {NO, NO}}},
    {"EMQ.REPROCESS", {{NO, NO}, {NO, NO}, {OK, KEY}, {NO, NO}}},
    {"EMQ.RESCHEDULE", {{NO, NO}, {NO, NO}, {OK, KEY}, {NO, NO}}},
    {"EMQ.PAUSE", {{NO, NO}, {NO, NO}, {OK, KEY}, {NO, NO}}},
    {"EMQ.APPEND", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"EMQ.PUBLISH", {{OK, KEY}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"EMQ.FAILURES.INCR", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"EMQ.RESUME", {{NO, NO}, {NO, NO}, {OK, KEY}, {NO, NO}}},
    {"TRA.INFO", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"TRA.COMMANDS", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"TRA.BITSET", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"TRA.BITCLEAR", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"TRA.BITGET", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
    {"TRA.BITSCAN", {{NO, NO}, {NO, NO}, {NO, NO}, {NO, NO}}},
};

#define EXPECTATIONS ((int)(sizeof(expectations) / sizeof(expectations[0])))

static const expectation *find_expectation(const emq_verb *verb) {
    for (int i = 0; i < EXPECTATIONS; i++) {
        if (strcmp(expectations[i].verb, verb->name) == 0) {
            return &expectations[i];
        }
    }
    fail_msg("%s has no line in the table of expectations", verb->name);
    return NULL;
}

static void each_verb_has_one_line(void **state) {
    (void)state;
    for (int i = 0; i < EMQ_VERBS; i++) {
        assert_non_null(find_expectation(&emq_verbs[i]));
    }
    assert_int_equal(EXPECTATIONS, EMQ_VERBS);
}

/* What a reply means; -1 when the verb finds the call malformed, or refuses in other words. */
static int classify(const char *reply, const emq_verb *verb) {
    char no_verb[LOG_TEXT_MAX];
    (void)snprintf(no_verb, sizeof(no_verb),
                   "-NOPERM User tester has no permissions to run the '%s' command", verb->name);
    if (strcmp(reply, no_verb) == 0) {
        return NO;
    }
    if (strcmp(reply, NO_KEY) == 0) {
        return KEY;
    }
    return strncmp(reply, "-NOPERM", 7) == 0 || strncmp(reply, "-ERR", 4) == 0 ? -1 : OK;
}

/* A refusal leaves one entry that says what was missing. */
static int is_logged(answer want) {
    char reason[LOG_TEXT_MAX];
    char object[LOG_TEXT_MAX];
    int entries = read_log(reason, object, LOG_TEXT_MAX);
    return want == OK ? entries == 0
                      : entries == 1 && strcmp(reason, want == NO ? "command" : "key") == 0;
}

/* Sends a right call of the verb for the queue; a refused one leaves the data as they were. */
static void try_verb(redisContext *user, emq_role role, const emq_verb *verb, const char *queue,
                     answer want) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    command line = {0};
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    (void)get_digest(before, &server);
    long long offset = get_offset(&server);
    verb_line(&line, verb, queue);
    redisReply *reply = command_send(user, &line);
    char *got = reply_to_text(reply);
    int changed = strcmp(get_digest(after, &server), before) != 0 || get_offset(&server) != offset;
    if (classify(got, verb) != (int)want || !is_logged(want) || (changed && want != OK)) {
        fail_msg("%s of a %s on queue %s: %s%s", verb->name, emq_role_name(role), queue, got,
                 changed ? ", and something changed" : "");
    }
    free(got);
    freeReplyObject(reply);
    command_free(&line);
}

/* A job that is leased, on each of the two queues. */
static void lease_on_both_queues(void) {
    lease_j1();
    run(client, "EMQ.ENQUEUE", "2", "emq:{r}:job:" J1, "emq:{r}:pending", J1, "p", NULL);
    run(client, "EMQ.CLAIM", "3", "emq:{r}:pending", "emq:{r}:active", "emq:{r}:", "60000", NULL);
}

static void each_verb_answers_each_user_as_the_table_says(void **state) {
    for (int role = 0; role < EMQ_ROLES; role++) {
        redisContext *user = server_connect_as(&server, "tester", rules_of((emq_role)role));
        for (int i = 0; i < EMQ_VERBS; i++) {
            const expectation *want = find_expectation(&emq_verbs[i]);
            (void)clean_slate(state);
            lease_on_both_queues();
            try_verb(user, (emq_role)role, &emq_verbs[i], "r", want->of[role].other);
            try_verb(user, (emq_role)role, &emq_verbs[i], "q", want->of[role].own);
        }
        redisFree(user);
    }
}

/* The server's own commands, where a role has any: his own queue's keys and no others. */
static void reads_stay_within_the_queue(void **state) {
    (void)state;
    lease_on_both_queues();
    redisContext *user = server_connect_as(&server, "tester", rules_of(EMQ_ROLE_OPERATOR));
    EXPECT(user, NO_KEY, "HGETALL", "emq:{r}:job:" J1);
    EXPECT(user, NO_KEY, "ZRANGE", "emq:{r}:active", "0", "-1");
    EXPECT(user, NO_KEY, "HGETALL", "emq:{qq}:metrics:completed");
    EXPECT(user, "-NOPERM User tester has no permissions to run the 'hset' command", "HSET",
           ROW(J1), "state", "dead");
    redisFree(user);
    user = server_connect_as(&server, "tester", rules_of(EMQ_ROLE_WORKER));
    EXPECT(user, NO_KEY, "GET", "other");
    EXPECT(user, NO_KEY, "HGETALL", "emq:{r}:job:" J1);
    EXPECT(user, "-NOPERM User tester has no permissions to run the 'zcard' command", "ZCARD",
           ACTIVE);
    redisFree(user);
}

/* What an administrator can ask without being the user. */
static void a_dry_run_tells_what_a_user_may_do(void **state) {
    (void)state;
    redisFree(server_connect_as(&server, "tester", rules_of(EMQ_ROLE_WORKER)));
    EXPECT(server.admin, "+OK", "ACL", "DRYRUN", "tester", CLAIM("60000"));
    EXPECT(server.admin, "\"User tester has no permissions to run the 'EMQ.ENQUEUE' command\"",
           "ACL", "DRYRUN", "tester", ENQUEUE(J1, "p"));
    EXPECT(server.admin, "\"User tester has no permissions to access the 'emq:{r}:pending' key\"",
           "ACL", "DRYRUN", "tester", "EMQ.CLAIM", "3", "emq:{r}:pending", "emq:{r}:active",
           "emq:{r}:", "60000");
    expect_no_entry();
}

#define STREAM BASE "stream:news"
#define FAILURES STREAM ":failures"

/* Streams are given one by one, on top of a role or beside it. */
static void append(cycle *c) {
    STEP("\"1780512970164-0\"", "EMQ.APPEND", "1", STREAM, "EVT0NgWEfAEJfs");
}

static void consume(cycle *c) {
    run(client, "EMQ.APPEND", "1", STREAM, "EVT0NgWEfAEJfs", NULL);
    run(client, "XGROUP", "CREATE", STREAM, "readers", "0", NULL);
    STEP(ANSWERS, "XREADGROUP", "GROUP", "readers", "me", "STREAMS", STREAM, ">");
    STEP("1", "EMQ.FAILURES.INCR", "1", FAILURES, "readers", "1780512970164-0");
    STEP("1", "XACK", STREAM, "readers", "1780512970164-0");
    STEP("1", "HDEL", FAILURES, "readers:1780512970164-0");
}

static void listen_to_events(cycle *c) {
    STEP("[\"subscribe\", \"emq:{q}:events\", 1]", "SUBSCRIBE", BASE "events");
}

static void the_bus_takes_words_on_top(void **state) {
    static const struct {
        const char *rules;
        void (*cycle)(cycle *);
    } cases[] = {
        {"+emq.append ~emq:{q}:stream:news %R~{emq}:version", append},
        {"+emq.failures.incr +xreadgroup +xack +hdel ~emq:{q}:stream:news "
         "~emq:{q}:stream:news:failures %R~{emq}:version",
         consume},
        {"+subscribe &emq:{q}:events", listen_to_events},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)clean_slate(state);
        cycle c = {server_connect_as(&server, "tester", cases[i].rules), 0, 0};
        cases[i].cycle(&c);
        expect_no_entry();
        redisFree(c.user);
        for (const char *at = cases[i].rules; *at != '\0';) {
            char changed[EMQ_ROLE_RULES_MAX];
            size_t n = strcspn(at, " ");
            replace_word(changed, cases[i].rules, at, n, "");
            (void)clean_slate(state);
            c = (cycle){server_connect_as(&server, "tester", changed), 1, 0};
            cases[i].cycle(&c);
            assert_int_equal(c.was_refused, 1);
            redisFree(c.user);
            at += n + strspn(at + n, " ");
        }
    }
}

static void the_broad_form_has_the_channel(void **state) {
    (void)state;
    redisContext *user = server_connect_as(&server, "tester", EMQ_BROAD_RULES("q"));
    EXPECT(user, "0", "EMQ.PUBLISH", "1", BASE, "admitted", J1);
    expect_no_entry();
    redisFree(user);
}

static int somebody_waits(void *data) {
    char value[16];
    return strcmp(get_info(value, sizeof(value), data, "clients", "blocked_clients"), "1") == 0;
}

/* A claim that waits has the rights of the moment in which it is woken. */
static void a_right_that_is_withdrawn_ends_a_wait(void **state) {
    static const struct {
        const char *rule;
        const char *answer;
    } cases[] = {
        {"-emq.claims", "NOPERM User tester has no permissions to run the 'EMQ.CLAIMS' command"},
        {"resetkeys", &NO_KEY[1]},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        redisReply *reply = NULL;
        (void)clean_slate(state);
        redisContext *user = server_connect_as(&server, "tester", rules_of(EMQ_ROLE_WORKER));
        const char *words[] = {CLAIMS("60000", "1", "600000")};
        assert_int_equal(
            redisAppendCommandArgv(user, sizeof(words) / sizeof(words[0]), words, NULL), REDIS_OK);
        int sent = 0;
        while (!sent) {
            assert_int_equal(redisBufferWrite(user, &sent), REDIS_OK);
        }
        wait_until("the claim waits", somebody_waits, server.admin);
        run(server.admin, "ACL", "SETUSER", "tester", cases[i].rule, NULL);
        run(client, ENQUEUE(J1, "p"), NULL);
        assert_int_equal(redisGetReply(user, (void **)&reply), REDIS_OK);
        EXPECT_TEXT(reply->str, cases[i].answer);
        freeReplyObject(reply);
        EXPECT(client, "1", "ZCARD", PENDING);
        redisFree(user);
    }
}

/* The same rules as lines of an ACL file. The server loads its modules before its users, so that
 * such a file may name the module's commands. */
static void the_rules_work_from_an_acl_file(void **state) {
    char path[] = "/tmp/emq-acl-XXXXXX";
    char conf[64];
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (int role = 0; role < EMQ_ROLES; role++) {
        (void)fprintf(file, "user %s on >password %s\n", emq_role_name((emq_role)role),
                      rules_of((emq_role)role));
    }
    assert_int_equal(fclose(file), 0);
    (void)snprintf(conf, sizeof(conf), "aclfile %s", path);
    test_server other = {0};
    server_start(&other, "--conf", conf, NULL);
    for (int role = 0; role < EMQ_ROLES; role++) {
        redisContext *user = server_connect(&other);
        EXPECT(user, "+OK", "AUTH", emq_role_name((emq_role)role), "password");
        EXPECT(user, "+OK", "CLIENT", "SETNAME", "tester");
        redisFree(user);
    }
    redisContext *user = server_connect(&other);
    EXPECT(user, "+OK", "AUTH", "worker", "password");
    EXPECT(user, "[]", CLAIM("60000"));
    redisFree(user);
    server_stop(&other);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_verb_has_one_line),
        TEST(a_cycle_works_with_the_rules),
        TEST(each_word_is_needed),
        TEST(each_right_to_a_key_is_needed),
        TEST(each_verb_answers_each_user_as_the_table_says),
        TEST(reads_stay_within_the_queue),
        TEST(a_dry_run_tells_what_a_user_may_do),
        TEST(the_bus_takes_words_on_top),
        TEST(the_broad_form_has_the_channel),
        TEST(a_right_that_is_withdrawn_ends_a_wait),
        TEST(the_rules_work_from_an_acl_file),
    };
    return RUN_SERVER_TESTS("roles", tests, start_server, stop_server);
}
