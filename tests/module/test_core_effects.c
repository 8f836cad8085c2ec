/* SPDX-License-Identifier: Apache-2.0 */
/* What others see of the verbs of scheduling, leases, failures and sweeps: the same plain commands
 * on every road, equal replicas and restarts, notifications in the order of the effects, and no
 * trace of a call that changed nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define EACH(verb) for (const core_verb *verb = core_verbs; verb < core_verbs + CORE_VERBS; verb++)

/* ---- roads ---- */

/* Calls the verb in ARGV[1] with the keys and the other values, and hands its reply on. */
#define SCRIPT_BODY(keys, values)                                                                  \
    "local line = {" values "[1], #" keys "} "                                                     \
    "for i = 1, #" keys " do line[#line + 1] = " keys "[i] end "                                   \
    "for i = 2, #" values " do line[#line + 1] = " values "[i] end "                               \
    "return redis.pcall(unpack(line))"

#define LIBRARY                                                                                    \
    "#!lua name=tests\n"                                                                           \
    "redis.register_function('pass', function(keys, values) " SCRIPT_BODY("keys",                  \
                                                                          "values") " end)"

typedef enum road { PLAIN, TRANSACTION, SCRIPT, FUNCTION, ROADS } road;

static void build_lua_line(command *line, const core_verb *verb, road way) {
    char count[16];
    const char *body = way == SCRIPT ? SCRIPT_BODY("KEYS", "ARGV") : "pass";
    command_add(line, way == SCRIPT ? "EVAL" : "FCALL");
    command_add_bytes(line, body, strlen(body));
    (void)snprintf(count, sizeof(count), "%d", count_words(verb->keys));
    command_add(line, count);
    for (int i = 0; i < count_words(verb->keys); i++) {
        command_add(line, verb->keys[i]);
    }
    command_add(line, verb->name);
    for (int i = 0; i < count_words(verb->values); i++) {
        command_add(line, verb->values[i]);
    }
}

/* Sends a verb's own line on a road and answers the reply as text, which the caller frees. */
static char *send_on_road(const core_verb *verb, road way) {
    command line = {0};
    if (way == SCRIPT || way == FUNCTION) {
        build_lua_line(&line, verb, way);
    } else {
        core_line(&line, verb, -1, "");
    }
    if (way == TRANSACTION) {
        EXPECT(client, "+OK", "MULTI");
    }
    redisReply *reply = command_send(client, &line);
    if (way == TRANSACTION) {
        freeReplyObject(reply);
        reply = call(client, "EXEC", NULL);
    }
    char *text = reply_to_text(way == TRANSACTION ? reply->element[0] : reply);
    freeReplyObject(reply);
    command_free(&line);
    return text;
}

/* The state in which a verb's own line changes something, and what it then answers and writes; `@`
 * is a score that follows from the clock, `$` this server's run id. */
typedef struct effect {
    const char *state; /* NULL: no row */
    const char *set;
    const char *reply;
    const char *log;
    const char *events;
} effect;

#define LOG_OF_RELEASE "ZREM " ACTIVE " " J1 "\nHDEL " ROW(J1) " lease_epoch\n"
#define EVENTS_OF_RELEASE "zrem " ACTIVE "\ndel " ACTIVE "\nhdel " ROW(J1) "\n"

/* In the order of core_verbs. */
static const effect effects[CORE_VERBS] = {
    {NULL, NULL, "1",
     "MULTI\nHSET " ROW(J1) " state scheduled attempts 0 payload p\nZADD " SCHEDULE " 5 " J1
                            "\nEXEC",
     "hset " ROW(J1) "\nzadd " SCHEDULE},
    {"active", ACTIVE, "1", "ZADD " ACTIVE " @ " J1, "zadd " ACTIVE},
    {"active", ACTIVE, "[]", "ZADD " ACTIVE " @ " J1, "zadd " ACTIVE},
    {"scheduled", SCHEDULE, "1",
     "MULTI\nZREM " SCHEDULE " " J1 "\nHSET " ROW(J1) " state pending\nZADD " PENDING " 0 " J1
                                                      "\nEXEC",
     "zrem " SCHEDULE "\ndel " SCHEDULE "\nhset " ROW(J1) "\nzadd " PENDING},
    {"scheduled", SCHEDULE, "1", "ZADD " SCHEDULE " 5 " J1, "zadd " SCHEDULE},
    {"active", ACTIVE, "1",
     "MULTI\n" LOG_OF_RELEASE "HSET " ROW(J1) " state scheduled\nZADD " SCHEDULE " 5 " J1 "\nEXEC",
     EVENTS_OF_RELEASE "hset " ROW(J1) "\nzadd " SCHEDULE},
    {"active", ACTIVE, "\"dead\"",
     "MULTI\n" LOG_OF_RELEASE "HSET " ROW(J1) " state dead last_error e failures 1\nZADD " DEAD
                                              " 0 " J1 "\nHSET " FAILED " count 1\nEXEC",
     EVENTS_OF_RELEASE "hset " ROW(J1) "\nzadd " DEAD "\nhset " FAILED},
    {"dead", DEAD, "1",
     "MULTI\nZREM " DEAD " " J1 "\nHDEL " ROW(J1) " lease_epoch\nHSET " ROW(
         J1) " state pending\nZADD " PENDING " 0 " J1 "\nEXEC",
     "zrem " DEAD "\ndel " DEAD "\nhdel " ROW(J1) "\nhset " ROW(J1) "\nzadd " PENDING},
    {"active", ACTIVE, "1",
     "MULTI\n" LOG_OF_RELEASE "HSET " ROW(J1) " state pending\nZADD " PENDING " 0 " J1 "\nEXEC",
     EVENTS_OF_RELEASE "hset " ROW(J1) "\nzadd " PENDING},
    {"active", ACTIVE, "[[], [\"" J1 "\"]]",
     "MULTI\nZREM " ACTIVE " " J1
     "\nHSET " ROW(J1) " state dead stalled 1 last_error stalled\nHDEL " ROW(
         J1) " lease_epoch\nZADD " DEAD " 0 " J1 "\nHSET " FAILED " count 1\nEXEC",
     "zrem " ACTIVE "\ndel " ACTIVE "\nhset " ROW(J1) "\nhdel " ROW(J1) "\nzadd " DEAD
                                                                        "\nhset " FAILED},
    {NULL, NULL, "[1]",
     "MULTI\nHSET " ROW(J1) " state pending attempts 0 payload p\nZADD " PENDING " 0 " J1 "\nEXEC",
     "hset " ROW(J1) "\nzadd " PENDING},
    {"pending", PENDING, "[[\"" J1 "\", \"p\", 2]]",
     "MULTI\nZREM " PENDING " " J1
     "\nHSET " ROW(J1) " state active attempts 2 lease_epoch $\nZADD " ACTIVE " @ " J1 "\nEXEC",
     "zrem " PENDING "\ndel " PENDING "\nhset " ROW(J1) "\nzadd " ACTIVE},
    {"active", ACTIVE, "[1]",
     "MULTI\nZREM " ACTIVE " " J1 "\nDEL " ROW(J1) "\nHSET " COMPLETED " count 1\nEXEC",
     "zrem " ACTIVE "\ndel " ACTIVE "\ndel " ROW(J1) "\nhset " COMPLETED},
    {NULL, NULL, "1", "HSET " META " paused 1", "hset " META},
    {NULL, NULL, "1", "HDEL " META " paused", "hdel " META "\ndel " META},
};

/* Brings the data into the state in which the verb's own line (token 1) changes something. */
static const effect *prepare(const core_verb *verb) {
    const effect *e = &effects[verb - core_verbs];
    run(client, "DEL", ROW(J1), PENDING, ACTIVE, SCHEDULE, DEAD, FAILED, COMPLETED, META, RING,
        NULL);
    if (strcmp(verb->word, "RESUME") == 0) {
        run(client, "HSET", META, "paused", "1", NULL);
    }
    if (e->state != NULL) {
        make_job(J1, e->state, e->set, "1");
        run(client, "HSET", ROW(J1), "attempts", "1", NULL);
    }
    return e;
}

static void each_road_gives_the_same(void **state) {
    (void)state;
    run(client, "FUNCTION", "LOAD", "REPLACE", LIBRARY, NULL);
    for (road way = PLAIN; way < ROADS; way++) {
        EACH(verb) {
            const effect *e = prepare(verb);
            long long mark = aof_mark(&server);
            char *got = send_on_road(verb, way);
            EXPECT_TEXT(got, e->reply);
            free(got);
            EXPECT_LOG(mark, ACTIVE, J1, e->log);
        }
    }
}

/* The fence, and each verb's refusal of a row of another type or of a wrong set. */
static void each_road_refuses_the_same(void **state) {
    (void)state;
    run(client, "FUNCTION", "LOAD", "REPLACE", LIBRARY, NULL);
    for (road way = PLAIN; way < ROADS; way++) {
        EACH(verb) {
            char before[DIGEST_MAX];
            char after[DIGEST_MAX];
            (void)prepare(verb);
            run(client, "DEL", ACTIVE, SCHEDULE, DEAD, NULL);
            for (int key = 0; key < count_words(verb->keys); key++) {
                if (strcmp(verb->keys[key], BASE) != 0 && strcmp(verb->keys[key], ROW(J1)) != 0) {
                    make_typed(verb->keys[key], "string");
                }
            }
            (void)get_digest(before, &server);
            char *got = send_on_road(verb, way);
            EXPECT_TEXT(got, WRONGTYPE);
            free(got);
            run(client, "DEL", FENCE, NULL);
            got = send_on_road(verb, way);
            EXPECT_TEXT(got, FENCE_ABSENT);
            free(got);
            run(client, INSTALL, NULL);
            EXPECT_TEXT(get_digest(after, &server), before);
        }
    }
}

/* Several calls in one transaction are one MULTI/EXEC in the AOF. */
static void calls_in_one_step_replicate_in_one(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "9999999999999");
    long long mark = aof_mark(&server);
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", DELAY(J1, "3", "at", "5"));
    EXPECT(client, "+QUEUED", RESCHEDULE(J1, "at", "6"));
    EXPECT(client, "+QUEUED", FAIL(J1, "3", "0", "1", "e"));
    EXPECT(client, "+QUEUED", PROMOTE("1"));
    EXPECT(client, "[1, 1, -EMQSTALE retry lease lost, 1]", "EXEC");
    EXPECT_LOG(mark, NULL, NULL,
               "MULTI\nZREM " ACTIVE " " J1 "\nHDEL " ROW(J1) " lease_epoch\nHSET " ROW(
                   J1) " state scheduled\nZADD " SCHEDULE " 5 " J1 "\nZADD " SCHEDULE " 6 " J1
                       "\nZREM " SCHEDULE " " J1 "\nHSET " ROW(J1) " state pending\nZADD " PENDING
                                                                   " 0 " J1 "\nEXEC");
}

/* ---- replicas and restarts ---- */

/* Takes a job through every verb; afterwards jobs are left in each set. */
static void work_a_while(void) {
    EXPECT(client, "1", SCHEDULE_JOB(J1, "\\x00\\xff", "in", "0"));
    EXPECT(client, "1", SCHEDULE_JOB(J2, "", "at", AT_MAX));
    EXPECT(client, "1", RESCHEDULE(J2, "in", YEARS_10));
    run(client, "ZADD", SCHEDULE, "1", "JOBorphan", NULL);
    EXPECT(client, "1", PROMOTE("10"));
    EXPECT(client, "[\"" J1 "\", \"\\x00\\xff\", 1]", CLAIM("60000"));
    EXPECT(client, "1", EXTEND(J1, "1", "2147483647"));
    EXPECT(client, "1", REQUEUE(J1, "1"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "\"scheduled\"", FAIL(J1, "2", "0", "2", "\\x00\\x0d\\x0a"));
    EXPECT(client, "1", PROMOTE("10"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "\"dead\"", FAIL(J1, "3", "0", "2", ""));
    EXPECT(client, "1", REPROCESS(J1));
    run(client, CLAIM("60000"), NULL);
    run(client, "ZADD", ACTIVE, "1", J1, "2", "JOBorphan", NULL);
    EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("2", "10"));
    run(client, CLAIM("60000"), NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    EXPECT(client, "[[], [\"" J1 "\"]]", STALLED_CHECK("2", "10"));
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    run(client, CLAIM("60000"), NULL);
    run(client, "HSET", ROW(J3), "lease_epoch", "someone", NULL);
    EXPECT(client, "[\"JOBorphan\"]", EXTENDS("2147483647", J3, "1", "JOBorphan", "1"));
    EXPECT(client, "1", ENQUEUE("JOB4", "p"));
    run(client, CLAIM("60000"), NULL);
    EXPECT(client, "1", DELAY("JOB4", "1", "in", "1234567"));
    EXPECT(client, "1", ENQUEUE("JOB5", "p"));
}

static void a_restart_from_the_aof_is_equal(void **state) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)state;
    work_a_while();
    (void)get_digest(before, &server);
    restart_server();
    EXPECT_TEXT(get_digest(after, &server), before);
    /* all of it goes on */
    EXPECT(client, "1", EXTEND(J3, "1", "60000"));
    EXPECT(client, "1", RESCHEDULE(J2, "in", "0"));
    EXPECT(client, "1", PROMOTE("10"));
    EXPECT(client, "1", REPROCESS(J1));
    EXPECT(client, "\"dead\"", FAIL(J3, "1", "0", "1", "e"));
}

static void a_replica_is_equal(void **state) {
    test_server replica;
    char port[16];
    char primary_digest[DIGEST_MAX];
    char replica_digest[DIGEST_MAX];
    (void)state;
    (void)snprintf(port, sizeof(port), "%d", server.port);
    server_start(&replica, "--replica-of", port, NULL);
    EXPECT(client, "1", "WAIT", "1", "60000");
    work_a_while();
    EXPECT(client, "1", "WAIT", "1", "60000");
    (void)get_digest(primary_digest, &server);
    EXPECT_TEXT(get_digest(replica_digest, &replica), primary_digest);
    EACH(verb) {
        command line = {0};
        core_line(&line, verb, -1, "");
        redisReply *reply = command_send(replica.admin, &line);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        assert_string_equal(reply->str, "READONLY You can't write against a read only replica.");
        freeReplyObject(reply);
        command_free(&line);
    }
    /* promoted, it sweeps the other server's leases without counting a stall */
    EXPECT(replica.admin, "+OK", "REPLICAOF", "NO", "ONE");
    run(replica.admin, "ZADD", ACTIVE, "1", J3, NULL);
    EXPECT(replica.admin, "[[\"" J3 "\"], []]", STALLED_CHECK("1", "10"));
    EXPECT(replica.admin, "nil", "HGET", ROW(J3), "stalled");
    server_stop(&replica);
}

/* ---- keyspace notifications ---- */

static redisContext *subscribe(const char *flags) {
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", flags, NULL);
    redisContext *c = server_connect(&server);
    run(c, "PSUBSCRIBE", "__keyevent@0__:*", NULL);
    return c;
}

/* The events up to the next call of this function, one a line: `hset emq:{q}:…`. */
static char *read_events(redisContext *subscriber) {
    char *events = NULL;
    append_text(&events, "");
    run(client, "SET", "the end", "x", NULL);
    for (;;) {
        void *received = NULL;
        assert_int_equal(redisGetReply(subscriber, &received), REDIS_OK);
        redisReply *reply = received;
        const char *event = strchr(reply->element[2]->str, ':') + 1;
        int is_end = strcmp(reply->element[3]->str, "the end") == 0;
        if (!is_end) {
            append_text(&events, events[0] == '\0' ? "" : "\n");
            append_text(&events, event);
            append_text(&events, " ");
            append_text(&events, reply->element[3]->str);
        }
        int is_set = strcmp(event, "set") == 0;
        freeReplyObject(reply);
        if (is_end && is_set) {
            return events;
        }
    }
}

static void expect_events(int source_line, redisContext *subscriber, const char *want) {
    char *got = read_events(subscriber);
    expect_text(__FILE__, source_line, got, want);
    free(got);
}

#define EVENTS(want) expect_events(__LINE__, subscriber, (want))

static void notifications_are_those_of_the_effects(void **state) {
    (void)state;
    redisContext *subscriber = subscribe("KEA");
    EACH(verb) {
        const effect *e = prepare(verb);
        free(read_events(subscriber));
        free(send_on_road(verb, PLAIN));
        EVENTS(e->events);
    }
    redisFree(subscriber);
}

static void notifications_of_what_is_special(void **state) {
    (void)state;
    redisContext *subscriber = subscribe("KEA");
    /* the only id of pending, given back to it after a sweep */
    sweep_j1_back();
    free(read_events(subscriber));
    EXPECT(client, "1", REQUEUE(J1, "1"));
    EVENTS("zrem " PENDING "\ndel " PENDING "\nhdel " ROW(J1) "\nhset " ROW(J1) "\nzadd " PENDING);
    run(client, CLAIM("60000"), NULL);
    free(read_events(subscriber));
    EXPECT(client, "\"scheduled\"", FAIL(J1, "2", "0", "2", "e"));
    EVENTS("zrem " ACTIVE "\ndel " ACTIVE "\nhdel " ROW(J1) "\nhset " ROW(J1) "\nzadd " SCHEDULE);
    /* a lease of another server's */
    make_job(J2, "active", ACTIVE, "5");
    run(client, "HSET", ROW(J2), "lease_epoch", "someone", NULL);
    free(read_events(subscriber));
    EXPECT(client, "1", EXTEND(J2, "3", "60000"));
    EVENTS("zadd " ACTIVE "\nhset " ROW(J2));
    /* movers first, then what is dropped */
    run(client, "DEL", ACTIVE, NULL);
    make_job(J2, "active", ACTIVE, "2");
    make_job(J3, "active", ACTIVE, "3");
    run(client, "HSET", ROW(J3), "stalled", "1", NULL);
    run(client, "ZADD", ACTIVE, "1", "JOBa", "4", "JOBb", NULL);
    free(read_events(subscriber));
    run(client, STALLED_CHECK("2", "9"), NULL);
    EVENTS("zrem " ACTIVE "\nhset " ROW(J2) "\nzadd " PENDING "\nzrem " ACTIVE "\nhset " ROW(
        J3) "\nhdel " ROW(J3) "\nzadd " DEAD "\nzrem " ACTIVE "\ndel " ACTIVE "\nhset " FAILED);
    redisFree(subscriber);
}

/* A sweep queues more notifications than fit into the room that a call has by itself. */
static void notifications_of_a_big_sweep(void **state) {
    char *want = NULL;
    (void)state;
    redisContext *subscriber = subscribe("KEA");
    for (int i = 0; i < 50; i++) {
        char id[16];
        char score[16];
        (void)snprintf(id, sizeof(id), "JOB%02d", i);
        (void)snprintf(score, sizeof(score), "%d", i);
        make_job(id, "scheduled", SCHEDULE, score);
        append_text(&want, i == 0 ? "" : "\n");
        append_text(&want, "zrem " SCHEDULE "\n");
        append_text(&want, i == 49 ? "del " SCHEDULE "\n" : "");
        append_text(&want, "hset " ROW(""));
        append_text(&want, id);
        append_text(&want, "\nzadd " PENDING);
    }
    free(read_events(subscriber));
    EXPECT(client, "50", PROMOTE("100"));
    EVENTS(want);
    free(want);
    redisFree(subscriber);
}

/* ---- calls that change nothing ---- */

static redisContext *watcher;
static redisContext *listener;

#define EVERY_KEY                                                                                  \
    PENDING, ACTIVE, SCHEDULE, DEAD, META, FAILED, ROW(J1), ROW(J2), ROW(J3), LOGS(J1), BASE, FENCE

/* The call tells nobody anything, not even that a key was looked for and missed, and breaks no
 * WATCH. */
#define TRACELESS(want, ...)                                                                       \
    do {                                                                                           \
        run(watcher, "WATCH", EVERY_KEY, NULL);                                                    \
        EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__);                                    \
        EXPECT(watcher, "+OK", "MULTI");                                                           \
        EXPECT(watcher, "+QUEUED", "PING");                                                        \
        EXPECT(watcher, "[+PONG]", "EXEC");                                                        \
        expect_events(__LINE__, listener, "");                                                     \
    } while (0)

static void no_change_leaves_no_trace(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "9999999999999");
    make_job(J2, "dead", DEAD, "0");
    watcher = server_connect(&server);
    listener = subscribe("KEAm");
    TRACELESS("0", SCHEDULE_JOB(J1, "p", "at", "5"));
    TRACELESS("-1", EXTEND(J3, "1", "1000"));
    TRACELESS("-EMQSTALE extend token mismatch", EXTEND(J1, "1", "1000"));
    TRACELESS("-EMQSTALE extend lease lost", EXTEND(J2, "3", "1000"));
    TRACELESS("[\"" J1 "\", \"" J3 "\"]", EXTENDS("1000", J1, "1", J3, "1"));
    TRACELESS("0", PROMOTE("10"));
    TRACELESS("-1", RESCHEDULE(J3, "at", "5"));
    TRACELESS(NOT_SCHEDULED, RESCHEDULE(J1, "at", "5"));
    TRACELESS(GONE, DELAY(J3, "1", "at", "5"));
    TRACELESS("-EMQSTALE delay lease lost", DELAY(J2, "3", "at", "5"));
    TRACELESS(GONE, FAIL(J3, "1", "0", "1", "e"));
    TRACELESS("-EMQSTALE retry token mismatch", FAIL(J1, "1", "0", "1", "e"));
    TRACELESS("-1", REPROCESS(J3));
    TRACELESS(NOT_DEAD, REPROCESS(J1));
    TRACELESS("-1", REQUEUE(J3, "1"));
    TRACELESS("-EMQSTALE requeue lease lost", REQUEUE(J2, "3"));
    TRACELESS("[[], []]", STALLED_CHECK("1", "10"));
    run(client, "HSET", ROW(J1), "group", "g", NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    free(read_events(listener));
    TRACELESS("[[], []]", STALLED_CHECK("1", "10"));
    TRACELESS(LANE, FAIL(J1, "3", "0", "1", "e"));
    redisFree(watcher);
    redisFree(listener);
}

static void a_change_breaks_a_watch(void **state) {
    (void)state;
    watcher = server_connect(&server);
    EACH(verb) {
        const effect *e = prepare(verb);
        for (int key = 0; key < 2; key++) {
            (void)prepare(verb);
            /* the set that it leaves or is put into, and the row where that changes */
            const char *watched = e->set != NULL ? e->set : ROW(J1);
            watched = strstr(e->log, META) != NULL ? META : watched;
            run(watcher, "WATCH", key == 0 ? watched : ROW(J1), NULL);
            free(send_on_road(verb, PLAIN));
            int row_stays = strstr(e->log, ROW(J1)) == NULL;
            EXPECT(watcher, "+OK", "MULTI");
            EXPECT(watcher, "+QUEUED", "PING");
            EXPECT(watcher, key == 1 && row_stays ? "[+PONG]" : "nil", "EXEC");
        }
    }
    redisFree(watcher);
}

/* A time that is the same again changes nothing, and tells nobody: as ZADD has it. */
static void the_same_time_again_keeps_a_watch(void **state) {
    (void)state;
    make_job(J1, "scheduled", SCHEDULE, "5");
    watcher = server_connect(&server);
    listener = subscribe("KEA");
    run(watcher, "WATCH", SCHEDULE, ROW(J1), NULL);
    EXPECT(client, "1", RESCHEDULE(J1, "at", "5"));
    EXPECT(watcher, "+OK", "MULTI");
    EXPECT(watcher, "+QUEUED", "PING");
    EXPECT(watcher, "[+PONG]", "EXEC");
    expect_events(__LINE__, listener, "");
    run(watcher, "WATCH", SCHEDULE, NULL);
    EXPECT(client, "1", RESCHEDULE(J1, "at", "6"));
    EXPECT(watcher, "+OK", "MULTI");
    EXPECT(watcher, "+QUEUED", "PING");
    EXPECT(watcher, "nil", "EXEC");
    expect_events(__LINE__, listener, "zadd " SCHEDULE);
    redisFree(watcher);
    redisFree(listener);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_road_gives_the_same),
        TEST(each_road_refuses_the_same),
        TEST(calls_in_one_step_replicate_in_one),
        TEST(a_restart_from_the_aof_is_equal),
        TEST(a_replica_is_equal),
        TEST(notifications_are_those_of_the_effects),
        TEST(notifications_of_what_is_special),
        TEST(notifications_of_a_big_sweep),
        TEST(no_change_leaves_no_trace),
        TEST(a_change_breaks_a_watch),
        TEST(the_same_time_again_keeps_a_watch),
    };
    return RUN_SERVER_TESTS("core_effects", tests, start_server, stop_server);
}
