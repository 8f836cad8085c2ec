/* SPDX-License-Identifier: Apache-2.0 */
/* The bus: records in streams, numbered messages on the channel, counts of failed deliveries. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/random.h"
#include "fixture.h"

#define STREAM BASE "stream:orders"
#define FAILURES STREAM ":failures"
#define SEQ BASE "events:seq"
#define CHANNEL BASE "events"

/* Two ids that follow each other, and their places in a stream. */
#define E1 "EVT0NgWEfAEJfs"
#define E2 "EVT0NgWEfAEJft"
#define P1 "1780512970164-0"
#define P2 "1780512970164-1"

#define APPEND(...) "EMQ.APPEND", "1", STREAM, __VA_ARGS__
#define PUBLISH(...) "EMQ.PUBLISH", "1", BASE, __VA_ARGS__
#define FAILED_AGAIN(group, entry) "EMQ.FAILURES.INCR", "1", FAILURES, group, entry

#define RECORD_KIND "-EMQKIND record id must be EVT-namespaced"
#define RECORD_ID "-ERR EMQ id must be a branded id"
#define TOO_LOW "-ERR The ID specified in XADD is equal or smaller than the target stream top item"
#define FIELD_NAME "-ERR EMQ field must be distinct UTF-8 text"
#define GROUP_NAME "-ERR EMQ group must be 1 to 128 bytes without : { } NUL CR LF"
#define ENTRY_ID "-ERR EMQ entry-id must be <ms>-<seq>"
#define NO_CHANNEL "-NOPERM No permissions to access a channel"
#define NO_INTEGER "-ERR value is not an integer or out of range"
#define OVERFLOWS "-ERR increment or decrement would overflow"

#define UNCHANGED(want, ...) EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__)
#define EFFECTS(effects, want, ...) EXPECT_EFFECTS(&server, (effects), client, (want), __VA_ARGS__)

/* A script that makes this call: `keys` are KEYS, the values ARGV. */
#define SCRIPT                                                                                     \
    "local line = {ARGV[1], #KEYS} "                                                               \
    "for i = 1, #KEYS do line[#line + 1] = KEYS[i] end "                                           \
    "for i = 2, #ARGV do line[#line + 1] = ARGV[i] end "                                           \
    "return redis.pcall(unpack(line))"

/* ---- a connection that listens ---- */

static redisContext *listener;

static redisReply *hear(void) {
    void *reply = NULL;
    assert_int_equal(redisGetReply(listener, &reply), REDIS_OK);
    return reply;
}

static void listen_on(const test_server *where, const char *pattern) {
    listener = server_connect(where);
    assert_int_equal(redisAppendCommand(listener, "PSUBSCRIBE %s", pattern), REDIS_OK);
    freeReplyObject(hear());
}

/* Takes its leave first: the server may notice a closed connection only later. */
static void stop_listening(void) {
    assert_int_equal(redisAppendCommand(listener, "PUNSUBSCRIBE"), REDIS_OK);
    freeReplyObject(hear());
    redisFree(listener);
    listener = NULL;
}

/* The next message is this one. */
static void expect_heard(int line, const char *want) {
    redisReply *reply = hear();
    assert_int_equal(reply->elements, 4);
    EXPECT_TEXT(reply->element[2]->str, CHANNEL);
    expect_text(__FILE__, line, reply->element[3]->str, want);
    freeReplyObject(reply);
}

#define HEARD(want) expect_heard(__LINE__, (want))

/* ---- shape and layout, of all three ---- */

static void shape_is_checked_first(void **state) {
    (void)state;
    run(client, "DEL", FENCE, NULL);
    UNCHANGED("-ERR EMQ shape APPEND expects 1 keys and 1 + 2n values", "EMQ.APPEND", "01", STREAM,
              E1);
    UNCHANGED("-ERR EMQ shape APPEND expects 1 keys and 1 + 2n values", APPEND(E1, "f"));
    UNCHANGED("-ERR EMQ shape APPEND expects 1 keys and 1 + 2n values", APPEND(E1, "f", "v", "g"));
    UNCHANGED("-ERR EMQ shape PUBLISH expects 1 keys and 2 + 2n values", PUBLISH("e", J1, "f"));
    UNCHANGED("-ERR EMQ shape PUBLISH expects 1 keys and 2 + 2n values", "EMQ.PUBLISH", "2", BASE,
              "e", J1);
    UNCHANGED("-ERR EMQ shape FAILURES.INCR expects 1 keys and 2 values", "EMQ.FAILURES.INCR", "0",
              FAILURES, "g", "1-1");
    UNCHANGED("-ERR wrong number of arguments for 'EMQ.APPEND' command", "EMQ.APPEND", "1", STREAM);
    UNCHANGED("-ERR wrong number of arguments for 'EMQ.PUBLISH' command", PUBLISH("e"));
    UNCHANGED("-ERR wrong number of arguments for 'EMQ.FAILURES.INCR' command",
              FAILED_AGAIN("g", "1-1"), "x");
}

/* A stream's name is what stands in the key, and must be one that can stand there. */
static void layout_takes_the_name_from_the_key(void **state) {
    static const char *const wrong[] = {
        "emq:{q}:stream:",
        "emq:{q}:stream:a:b",
        "emq:{q}:stream:a:failures",
        "emq:{q}:stream:a{b",
        "emq:{q}:stream:a}",
        "emq:{q}:stream:a\\x00b",
        "emq:{q}:stream:a\\x0a",
        "emq:{q}:stream",
        "emq:{q}:events",
        "emq:{q}:",
        "stream:a",
        "{emq}:version",
        "emq:{q}x:stream:a",
        "emq:{}:stream:a",
        "emq:{q:r}:stream:a",
    };
    char longest[256] = STREAM;
    (void)state;
    run(client, "DEL", FENCE, NULL);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        UNCHANGED("-ERR EMQ layout APPEND key 1 must be emq:{q}:stream:<name>", "EMQ.APPEND", "1",
                  wrong[i], "x");
    }
    UNCHANGED("-ERR EMQ layout FAILURES.INCR key 1 must be emq:{q}:stream:<name>:failures",
              "EMQ.FAILURES.INCR", "1", STREAM, "g", "1-1");
    UNCHANGED("-ERR EMQ layout FAILURES.INCR key 1 must be emq:{q}:stream:<name>:failures",
              "EMQ.FAILURES.INCR", "1", "emq:{q}:stream::failures", "g", "1-1");
    UNCHANGED("-ERR EMQ layout FAILURES.INCR key 1 must be emq:{q}:stream:<name>:failures",
              "EMQ.FAILURES.INCR", "1", "emq:{q}:stream:a:b:failures", "g", "1-1");
    UNCHANGED("-ERR EMQ layout PUBLISH key 1 must be emq:{q}:", "EMQ.PUBLISH", "1", CHANNEL, "e",
              "j");
    run(client, INSTALL, NULL);
    /* 128 bytes are a name, 129 are none */
    memset(longest + strlen(BASE "stream:"), 'n', 128);
    EXPECT(client, "\"" P1 "\"", "EMQ.APPEND", "1", longest, E1);
    longest[strlen(BASE "stream:") + 128] = 'n';
    UNCHANGED("-ERR EMQ layout APPEND key 1 must be emq:{q}:stream:<name>", "EMQ.APPEND", "1",
              longest, E1);
    EXPECT(client, "\"" P1 "\"", "EMQ.APPEND", "1", "emq:{r}:stream:failures", E1);
    EXPECT(client, "1", "EMQ.FAILURES.INCR", "1", "emq:{r}:stream:failures:failures", "g", "1-1");
}

static void the_fence_is_checked_next(void **state) {
    (void)state;
    run(client, "DEL", FENCE, NULL);
    UNCHANGED(FENCE_ABSENT, APPEND("x"));
    UNCHANGED(FENCE_ABSENT, PUBLISH("e", "j", "event", "twice"));
    UNCHANGED(FENCE_ABSENT, FAILED_AGAIN("", ""));
    run(client, "SET", FENCE, "x", NULL);
    UNCHANGED(FENCE_FOUND "x", APPEND(E1));
    UNCHANGED(FENCE_FOUND "x", PUBLISH("e", "j"));
    UNCHANGED(FENCE_FOUND "x", FAILED_AGAIN("g", "1-1"));
}

/* ---- EMQ.APPEND ---- */

static void a_record_stands_where_its_id_says(void **state) {
    (void)state;
    EFFECTS("XADD " STREAM " " P1 " id " E1, "\"" P1 "\"", APPEND(E1));
    EFFECTS("XADD " STREAM " " P2 " id " E2 " f v \"\" \"\\x00\\xff\"", "\"" P2 "\"",
            APPEND(E2, "f", "v", "", "\\x00\\xff"));
    EXPECT(client,
           "[[\"" P1 "\", [\"id\", \"" E1 "\"]], [\"" P2 "\", [\"id\", \"" E2
           "\", \"f\", \"v\", \"\", \"\\x00\\xff\"]]]",
           "XRANGE", STREAM, "-", "+");
    /* the last id of all */
    EXPECT(client, "\"3903090455551-4194303\"", APPEND("EVTAzL8n0Y58m7"));
}

static void a_record_id_is_a_whole_one_of_its_kind(void **state) {
    static const char *const other[] = {"", "EV", "evt0NgWEfAEJfs", J1, USER, "xEVT"};
    static const char *const broken[] = {"EVT",
                                         "EVT0NgWEfAEJf",
                                         "EVT0NgWEfAEJfs0",
                                         "EVT0NgWEfAEJf*",
                                         "EVTzzzzzzzzzzz",
                                         "EVTAzL8n0Y58m8",
                                         "EVT0NgWEfAEJf\\x00"};
    (void)state;
    for (int type = 0; type < 2; type++) {
        for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
            UNCHANGED(RECORD_KIND, APPEND(other[i], "f", "v"));
        }
        for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
            UNCHANGED(RECORD_ID, APPEND(broken[i], "f", "v"));
        }
        make_typed(STREAM, "hash"); /* comes behind both */
    }
    UNCHANGED(WRONGTYPE, APPEND(E1));
}

static void a_stream_is_needed(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        make_typed(STREAM, types[i]);
        if (strcmp(types[i], "stream") != 0) {
            UNCHANGED(WRONGTYPE, APPEND(E1));
            WHILE_PAUSED(WRONGTYPE, APPEND(E1));
        }
    }
    /* one that has passed its time to live is none */
    run(client, "DEL", STREAM, NULL);
    EXPECT(client, "\"" P2 "\"", APPEND(E2));
    pass_expiry(STREAM);
    EXPECT(client, "\"" P1 "\"", APPEND(E1));
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
    EXPECT(client, "1", "XLEN", STREAM);
}

/* The one refusal behind the guard: the server alone knows the stream's last id. */
static void a_record_not_above_the_last_is_refused(void **state) {
    (void)state;
    EXPECT(client, "\"" P2 "\"", APPEND(E2));
    UNCHANGED(TOO_LOW, APPEND(E2));
    run(client, "WATCH", STREAM, NULL);
    EXPECT(client, TOO_LOW, APPEND(E2));
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", "PING");
    EXPECT(client, "[+PONG]", "EXEC");
    UNCHANGED(TOO_LOW, APPEND(E1, "f", "v"));
    /* also when the last record is gone */
    run(client, "XDEL", STREAM, P2, NULL);
    UNCHANGED(TOO_LOW, APPEND(E1));
    WHILE_PAUSED(PAUSED, APPEND(E1));
    run(client, "XSETID", STREAM, "18446744073709551615-18446744073709551615", NULL);
    UNCHANGED("-ERR The stream has exhausted the last possible ID, unable to add more items",
              APPEND(E2));
    char lost[32];
    EXPECT_TEXT(get_info(lost, sizeof(lost), server.admin, "emq", "emq_lost_effects"), "0");
}

static int has_blocked_client(void *data) {
    char text[32];
    (void)data;
    return strcmp(get_info(text, sizeof(text), server.admin, "clients", "blocked_clients"), "0") !=
           0;
}

static void a_record_wakes_who_waits_for_the_stream(void **state) {
    (void)state;
    for (int round = 0; round < 2; round++) {
        /* first for a stream that is not there yet, then for one that is */
        redisContext *reader = server_connect(&server);
        assert_int_equal(redisAppendCommand(reader, "XREAD BLOCK 60000 STREAMS %s $", STREAM),
                         REDIS_OK);
        int done = 0;
        while (!done) {
            assert_int_equal(redisBufferWrite(reader, &done), REDIS_OK);
        }
        wait_until("the reader waits", has_blocked_client, NULL);
        EXPECT(client, round == 0 ? "\"" P1 "\"" : "\"" P2 "\"", APPEND(round == 0 ? E1 : E2));
        void *reply = NULL;
        assert_int_equal(redisGetReply(reader, &reply), REDIS_OK);
        char *got = reply_to_text(reply);
        EXPECT_TEXT(got, round == 0 ? "[[\"" STREAM "\", [[\"" P1 "\", [\"id\", \"" E1 "\"]]]]]"
                                    : "[[\"" STREAM "\", [[\"" P2 "\", [\"id\", \"" E2 "\"]]]]]");
        free(got);
        freeReplyObject(reply);
        redisFree(reader);
    }
}

/* ---- EMQ.PUBLISH ---- */

static void a_message_is_numbered_json(void **state) {
    (void)state;
    listen_on(&server, CHANNEL);
    EFFECTS("SET " SEQ " 1", "1", PUBLISH("done", J1));
    HEARD("{\"event\":\"done\",\"job\":\"" J1 "\",\"seq\":1}");
    EFFECTS("SET " SEQ " 2", "1", PUBLISH("", "", "b", "2", "a", "1", "", "x"));
    HEARD("{\"event\":\"\",\"job\":\"\",\"seq\":2,\"b\":\"2\",\"a\":\"1\",\"\":\"x\"}");
    stop_listening();
    EXPECT(client, "0", PUBLISH("done", J1)); /* nobody listens: the number is used up */
    EXPECT(client, "\"3\"", "GET", SEQ);
}

static void values_are_escaped_or_base64(void **state) {
    (void)state;
    listen_on(&server, CHANNEL);
    EXPECT(client, "1", PUBLISH("a\"b", "c\\\\d", "q\"", "\\x00\\x1f\\x7f\\xc3\\xa4"));
    HEARD("{\"event\":\"a\\\"b\",\"job\":\"c\\\\d\",\"seq\":1,"
          "\"q\\\"\":\"\\u0000\\u001f\\u007f\xc3\xa4\"}");
    EXPECT(client, "1", PUBLISH("\\xff", "\\xc0\\x80", "f", "\\xed\\xa0\\x80", "g", "t"));
    HEARD("{\"event_b64\":\"/w==\",\"job_b64\":\"wIA=\",\"seq\":2,\"f_b64\":\"7aCA\",\"g\":\"t\"}");
    stop_listening();
}

static void names_are_distinct_text(void **state) {
    static const char *const taken[] = {"event", "job", "seq", "event_b64", "job_b64"};
    (void)state;
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        UNCHANGED(FIELD_NAME, PUBLISH("e", "j", taken[i], "v"));
        UNCHANGED(FIELD_NAME, PUBLISH("\\xff", "\\xff", "f", "v", taken[i], "v"));
    }
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "event", "\\xff"));
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "f", "1", "g", "2", "f", "3"));
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "f", "\\xff", "f", "\\xfe"));
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "f", "\\xff", "f_b64", "v"));
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "f_b64", "v", "a", "v", "f", "\\xff"));
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "", "1", "", "2"));
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "\\xff", "v"));
    UNCHANGED(FIELD_NAME, PUBLISH("e", "j", "a", "v", "\\xc3", "v", "b", "v"));
    /* what is not the same name */
    listen_on(&server, CHANNEL);
    EXPECT(client, "1", PUBLISH("e", "j", "f", "1", "f_b64", "2", "F", "3", "seq_b64", "4"));
    HEARD("{\"event\":\"e\",\"job\":\"j\",\"seq\":1,\"f\":\"1\",\"f_b64\":\"2\",\"F\":\"3\","
          "\"seq_b64\":\"4\"}");
    EXPECT(client, "1", PUBLISH("e", "j", "f", "\\xff", "g", "\\xff", "f_", "x", "f\\x00", "y"));
    HEARD("{\"event\":\"e\",\"job\":\"j\",\"seq\":2,\"f_b64\":\"/w==\",\"g_b64\":\"/w==\","
          "\"f_\":\"x\",\"f\\u0000\":\"y\"}");
    stop_listening();
}

static void the_number_must_go_up(void **state) {
    static const char *const no_numbers[] = {"",       "x",  "1.5", " 1",
                                             "1\\x00", "+1", "01",  "9223372036854775808"};
    (void)state;
    for (size_t i = 0; i < sizeof(no_numbers) / sizeof(no_numbers[0]); i++) {
        run(client, "SET", SEQ, no_numbers[i], NULL);
        UNCHANGED(NO_INTEGER, PUBLISH("e", "j"));
        WHILE_PAUSED(NO_INTEGER, PUBLISH("e", "j"));
    }
    run(client, "SET", SEQ, "9223372036854775807", NULL);
    UNCHANGED(OVERFLOWS, PUBLISH("e", "j"));
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "string") != 0) {
            make_typed(SEQ, types[i]);
            UNCHANGED(WRONGTYPE, PUBLISH("e", "j"));
        }
    }
    run(client, "SET", SEQ, "9223372036854775806", NULL);
    EFFECTS("SET " SEQ " 9223372036854775807", "0", PUBLISH("e", "j"));
    run(client, "SET", SEQ, "-1", NULL);
    EXPECT(client, "0", PUBLISH("e", "j"));
    EXPECT(client, "\"0\"", "GET", SEQ);
    /* one that the server keeps as text, and one past its time to live */
    run(client, "SET", SEQ, "4", NULL);
    run(client, "APPEND", SEQ, "1", NULL);
    EXPECT(client, "0", PUBLISH("e", "j"));
    EXPECT(client, "\"42\"", "GET", SEQ);
    pass_expiry(SEQ);
    EXPECT(client, "0", PUBLISH("e", "j"));
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "1", NULL);
    EXPECT(client, "\"1\"", "GET", SEQ);
}

#define RANDOM_MAX 24

static void add_random(command *line, unsigned longest) {
    static const char likely[] = {0,          '"',        '\\',       '\n',       'a',
                                  0x7f,       (char)0xc3, (char)0xa4, (char)0xe2, (char)0x82,
                                  (char)0xac, (char)0xed, (char)0xa0};
    char bytes[RANDOM_MAX];
    size_t n = random_below(longest + 1);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = random_below(2) ? likely[random_below(sizeof(likely))]
                                   : (char)random_below(random_below(2) ? 128 : 256);
    }
    command_add_bytes(line, bytes, n);
}

static size_t decode_base64(char *out, const char *text) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned group = 0;
    size_t n = 0;
    for (size_t i = 0; text[i] != '\0' && text[i] != '='; i++) {
        group = group << 6 | (unsigned)(strchr(digits, text[i]) - digits);
        if (i % 4 != 0) {
            out[n++] = (char)(group >> (6 - 2 * (i % 4)));
        }
    }
    return n;
}

/* The value of this name in the message is these bytes, in the one form or in the other. */
static void expect_member(json_t *message, const char *name, const char *bytes, size_t n) {
    char encoded_name[32];
    char decoded[64];
    (void)snprintf(encoded_name, sizeof(encoded_name), "%s_b64", name);
    json_t *plain = json_object_get(message, name);
    json_t *encoded = json_object_get(message, encoded_name);
    assert_true((plain == NULL) != (encoded == NULL));
    if (plain != NULL) {
        assert_int_equal(json_string_length(plain), n);
        assert_memory_equal(json_string_value(plain), bytes, n);
        return;
    }
    assert_int_equal(json_string_length(encoded), (n + 2) / 3 * 4);
    assert_int_equal(decode_base64(decoded, json_string_value(encoded)), n);
    assert_memory_equal(decoded, bytes, n);
    /* only what a parser would refuse as text */
    json_t *refused = json_stringn(bytes, n);
    assert_null(refused);
}

/* Whatever the bytes are, what comes is JSON, and holds them. */
static void any_bytes_make_valid_json(void **state) {
    static const char *const names[] = {"a", "b", "c", "d"};
    size_t encoded = 0;
    (void)state;
    listen_on(&server, CHANNEL);
    for (int round = 1; round <= 3000; round++) {
        command line = {0};
        command_add(&line, "EMQ.PUBLISH");
        command_add(&line, "1");
        command_add(&line, BASE);
        add_random(&line, RANDOM_MAX);
        add_random(&line, RANDOM_MAX);
        for (size_t i = 0; i < 4; i++) {
            command_add(&line, names[i]);
            add_random(&line, RANDOM_MAX);
        }
        redisReply *reply = command_send(client, &line);
        assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
        assert_int_equal(reply->integer, 1);
        freeReplyObject(reply);
        redisReply *heard = hear();
        json_error_t error;
        json_t *message = json_loadb(heard->element[3]->str, (size_t)heard->element[3]->len,
                                     JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        if (message == NULL) {
            fail_msg("%s at %d of %s", error.text, error.position, heard->element[3]->str);
        }
        assert_int_equal(json_object_size(message), 7);
        assert_int_equal(json_integer_value(json_object_get(message, "seq")), round);
        expect_member(message, "event", line.argv[3], line.lengths[3]);
        expect_member(message, "job", line.argv[4], line.lengths[4]);
        for (size_t i = 0; i < 4; i++) {
            expect_member(message, names[i], line.argv[6 + 2 * i], line.lengths[6 + 2 * i]);
        }
        encoded += json_object_get(message, "a_b64") != NULL;
        json_decref(message);
        freeReplyObject(heard);
        command_free(&line);
    }
    assert_true(encoded > 300 && encoded < 2700);
    stop_listening();
}

/* Names are bytes of the caller's, too. */
static void any_name_is_refused_or_read_back(void **state) {
    size_t refused = 0;
    (void)state;
    listen_on(&server, CHANNEL);
    for (int round = 0; round < 2000; round++) {
        command line = {0};
        command_add(&line, "EMQ.PUBLISH");
        command_add(&line, "1");
        command_add(&line, BASE);
        command_add(&line, "e");
        command_add(&line, "j");
        add_random(&line, 4);
        command_add(&line, "v");
        redisReply *reply = command_send(client, &line);
        json_t *as_text = json_stringn(line.argv[5], line.lengths[5]);
        if (reply->type == REDIS_REPLY_ERROR) {
            assert_null(as_text);
            refused++;
        } else {
            redisReply *heard = hear();
            json_t *message = json_loadb(heard->element[3]->str, (size_t)heard->element[3]->len,
                                         JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
            /* the parser takes no NUL in a name */
            int has_nul = memchr(line.argv[5], '\0', line.lengths[5]) != NULL;
            assert_int_equal(message != NULL, !has_nul);
            assert_non_null(as_text);
            if (message != NULL) {
                json_t *value = json_object_getn(message, line.argv[5], line.lengths[5]);
                EXPECT_TEXT(json_string_value(value), "v");
            }
            json_decref(message);
            freeReplyObject(heard);
        }
        json_decref(as_text);
        freeReplyObject(reply);
        command_free(&line);
    }
    assert_true(refused > 200 && refused < 1800);
    stop_listening();
}

/* A replica's subscribers hear it, and its data follow. */
static void a_message_reaches_replicas(void **state) {
    test_server replica;
    char port[16];
    char primary_digest[DIGEST_MAX];
    char replica_digest[DIGEST_MAX];
    (void)state;
    (void)snprintf(port, sizeof(port), "%d", server.port);
    server_start(&replica, "--replica-of", port, NULL);
    EXPECT(client, "1", "WAIT", "1", "60000");
    listen_on(&replica, CHANNEL);
    /* the transaction is that of the number and the message; the AOF has the number alone */
    EFFECTS("MULTI\nSET " SEQ " 1\nEXEC", "0", PUBLISH("done", J1, "f", "v"));
    HEARD("{\"event\":\"done\",\"job\":\"" J1 "\",\"seq\":1,\"f\":\"v\"}");
    EXPECT(client, "\"" P1 "\"", APPEND(E1, "f", "v"));
    UNCHANGED(TOO_LOW, APPEND(E1, "f", "v"));
    EXPECT(client, "1", FAILED_AGAIN("g", P1));
    EXPECT(client, "1", "WAIT", "1", "60000");
    EXPECT(replica.admin, "\"1\"", "GET", SEQ);
    (void)get_digest(primary_digest, &server);
    EXPECT_TEXT(get_digest(replica_digest, &replica), primary_digest);
    EXPECT(replica.admin, "-READONLY You can't write against a read only replica.",
           PUBLISH("done", J1));
    stop_listening();
    server_stop(&replica);
}

/* ---- EMQ.FAILURES.INCR ---- */

static void failed_deliveries_are_counted(void **state) {
    (void)state;
    EFFECTS("HSET " FAILURES " g:1-1 1", "1", FAILED_AGAIN("g", "1-1"));
    EFFECTS("HSET " FAILURES " g:1-1 2", "2", FAILED_AGAIN("g", "1-1"));
    EXPECT(client, "1", FAILED_AGAIN("h", "1-1"));
    EXPECT(client, "1", FAILED_AGAIN("g", "1-2"));
    EXPECT(client, "1", FAILED_AGAIN("g", "0-0"));
    EXPECT(client, "1", FAILED_AGAIN("g", "18446744073709551615-18446744073709551615"));
    EXPECT(client, "5", "HLEN", FAILURES);
    /* the consumer's own removal starts it anew */
    EXPECT(client, "1", "HDEL", FAILURES, "g:1-1");
    EXPECT(client, "1", FAILED_AGAIN("g", "1-1"));
}

static void group_and_entry_have_their_form(void **state) {
    static const char *const groups[] = {"",   ":",     "a:b",    "{",     "}",
                                         "a}", "\\x00", "a\\x0d", "a\\x0a"};
    static const char *const entries[] = {"",
                                          "-",
                                          "1",
                                          "1-",
                                          "-1",
                                          "1-1-1",
                                          "01-1",
                                          "1-01",
                                          "00-0",
                                          "+1-1",
                                          "1-+1",
                                          " 1-1",
                                          "1-1 ",
                                          "1_1",
                                          "a-1",
                                          "1-a",
                                          "1-*",
                                          "$",
                                          "1-1\\x00",
                                          "18446744073709551616-0",
                                          "0-18446744073709551616",
                                          "0-99999999999999999999",
                                          "100000000000000000000-0"};
    char longest[130];
    (void)state;
    make_typed(FAILURES, "list"); /* comes behind all of them */
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        UNCHANGED(GROUP_NAME, FAILED_AGAIN(groups[i], "x"));
    }
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        UNCHANGED(ENTRY_ID, FAILED_AGAIN("g", entries[i]));
    }
    run(client, "DEL", FAILURES, NULL);
    memset(longest, 'g', 129);
    longest[129] = '\0';
    UNCHANGED(GROUP_NAME, FAILED_AGAIN(longest, "1-1"));
    longest[128] = '\0';
    EXPECT(client, "1", FAILED_AGAIN(longest, "18446744073709551615-18446744073709551615"));
}

static void a_damaged_count_is_refused(void **state) {
    (void)state;
    run(client, "HSET", FAILURES, "g:1-1", "x", "g:1-2", "9223372036854775807", NULL);
    UNCHANGED("-ERR hash value is not an integer", FAILED_AGAIN("g", "1-1"));
    UNCHANGED(OVERFLOWS, FAILED_AGAIN("g", "1-2"));
    WHILE_PAUSED(OVERFLOWS, FAILED_AGAIN("g", "1-2"));
    EXPECT(client, "1", FAILED_AGAIN("g", "1-3"));
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i], "hash") != 0) {
            make_typed(FAILURES, types[i]);
            UNCHANGED(WRONGTYPE, FAILED_AGAIN("g", "1-1"));
        }
    }
}

/* ---- rights, guard, memory, roads ---- */

#define READS_FENCE "+@emq %R~{emq}:version "

/* The newest entry in ACL LOG is about this channel. */
static void expect_channel_logged(const char *channel) {
    redisReply *reply = call(server.admin, "ACL", "LOG", NULL);
    assert_int_equal(reply->elements, 1);
    redisReply *const *entry = reply->element[0]->element;
    int found = 0;
    for (size_t i = 0; i + 1 < reply->element[0]->elements; i += 2) {
        const char *name = entry[i]->str;
        const char *want = strcmp(name, "reason") == 0     ? "channel"
                           : strcmp(name, "object") == 0   ? channel
                           : strcmp(name, "username") == 0 ? "tester"
                                                           : NULL;
        if (want != NULL) {
            EXPECT_TEXT(entry[i + 1]->str, want);
            found++;
        }
    }
    assert_int_equal(found, 3);
    freeReplyObject(reply);
}

static void refused_for_channel(const char *rules) {
    redisContext *user = server_connect_as(&server, "tester", rules);
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    EXPECT_UNCHANGED(&server, user, NO_CHANNEL, PUBLISH("e", "j"));
    expect_channel_logged(CHANNEL);
    redisFree(user);
}

static void keys_and_channel_need_rights(void **state) {
    (void)state;
    REFUSED_FOR(STREAM, READS_FENCE "~" BASE, APPEND(E1));
    REFUSED_FOR(STREAM, READS_FENCE "%R~" STREAM, APPEND(E1));
    REFUSED_FOR(FENCE, "+@emq ~" STREAM, APPEND("x"));
    ALLOWED("\"" P1 "\"", READS_FENCE "~" STREAM, APPEND(E1));
    REFUSED_FOR(FAILURES, READS_FENCE "~" STREAM, FAILED_AGAIN("g", "1-1"));
    REFUSED_FOR(FENCE, "+@emq ~" FAILURES, FAILED_AGAIN("", ""));
    ALLOWED("1", READS_FENCE "~" FAILURES, FAILED_AGAIN("g", "1-1"));
    /* the declared base alone gives nothing: the number is a key of its own, the channel a right of
     * its own */
    REFUSED_FOR(BASE, READS_FENCE "~" SEQ " &" CHANNEL, PUBLISH("e", "j"));
    REFUSED_FOR(SEQ, READS_FENCE "~" BASE " &" CHANNEL, PUBLISH("e", "j"));
    REFUSED_FOR(SEQ, READS_FENCE "~" BASE " %R~" SEQ " &" CHANNEL, PUBLISH("e", "j"));
    REFUSED_FOR(SEQ, READS_FENCE "~" BASE " %W~" SEQ " &" CHANNEL, PUBLISH("e", "j"));
    refused_for_channel(READS_FENCE "~" BASE " ~" SEQ);
    refused_for_channel(READS_FENCE "~" BASE " ~" SEQ " resetchannels");
    refused_for_channel(READS_FENCE "~" BASE " ~" SEQ " &emq:{r}:events");
    ALLOWED("0", READS_FENCE "~" BASE " ~" SEQ " &" CHANNEL, PUBLISH("e", "j"));
    ALLOWED("0", READS_FENCE "~emq:{q}:* &emq:{q}:*", PUBLISH("e", "j"));
    /* the order: values, keys, channel, type */
    redisContext *user = server_connect_as(&server, "tester", READS_FENCE "~" BASE);
    EXPECT_UNCHANGED(&server, user, FIELD_NAME, PUBLISH("e", "j", "seq", "v"));
    EXPECT_UNCHANGED(&server, user, NO_KEY, PUBLISH("e", "j"));
    redisFree(user);
    make_typed(SEQ, "list");
    refused_for_channel(READS_FENCE "~" BASE " ~" SEQ);
}

static void the_guard_comes_last(void **state) {
    (void)state;
    WHILE_PAUSED(PAUSED, APPEND(E1));
    WHILE_PAUSED(PAUSED, PUBLISH("e", "j"));
    WHILE_PAUSED(PAUSED, FAILED_AGAIN("g", "1-1"));
    WHILE_PAUSED(RECORD_KIND, APPEND(J1));
    WHILE_PAUSED(FIELD_NAME, PUBLISH("e", "j", "seq", "v"));
    WHILE_PAUSED(ENTRY_ID, FAILED_AGAIN("g", "1"));
    EXPECT(client, "\"" P1 "\"", APPEND(E1));
    EXPECT(client, "0", PUBLISH("e", "j"));
    EXPECT(client, "\"1\"", "GET", SEQ);
    EXPECT(client, "1", FAILED_AGAIN("g", "1-1"));
}

static void full_memory_stops_all_three(void **state) {
    (void)state;
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    UNCHANGED(OOM, APPEND(E1));
    UNCHANGED(OOM, PUBLISH("e", "j"));
    UNCHANGED(OOM, FAILED_AGAIN("g", "1-1"));
}

static void transactions_and_scripts_do_the_same(void **state) {
    (void)state;
    listen_on(&server, CHANNEL);
    long long mark = aof_mark(&server);
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", APPEND(E1, "f", "v"));
    EXPECT(client, "+QUEUED", APPEND(E1));
    EXPECT(client, "+QUEUED", PUBLISH("e", "j"));
    EXPECT(client, "+QUEUED", PUBLISH("e", "j", "seq", ""));
    EXPECT(client, "+QUEUED", FAILED_AGAIN("g", "1-1"));
    EXPECT(client, "[\"" P1 "\", " TOO_LOW ", 1, " FIELD_NAME ", 1]", "EXEC");
    char *got = aof_since(&server, mark);
    EXPECT_TEXT(got, "MULTI\nXADD " STREAM " " P1 " id " E1 " f v\nSET " SEQ " 1\nHSET " FAILURES
                     " g:1-1 1\nEXEC");
    free(got);
    HEARD("{\"event\":\"e\",\"job\":\"j\",\"seq\":1}");
    EFFECTS("XADD " STREAM " " P2 " id " E2, "\"" P2 "\"", "EVAL", SCRIPT, "1", STREAM,
            "EMQ.APPEND", E2);
    EFFECTS("SET " SEQ " 2", "1", "EVAL", SCRIPT, "1", BASE, "EMQ.PUBLISH", "e", "j");
    EFFECTS("HSET " FAILURES " g:1-1 2", "2", "EVAL", SCRIPT, "1", FAILURES, "EMQ.FAILURES.INCR",
            "g", "1-1");
    UNCHANGED(TOO_LOW, "EVAL", SCRIPT, "1", STREAM, "EMQ.APPEND", E2);
    HEARD("{\"event\":\"e\",\"job\":\"j\",\"seq\":2}");
    stop_listening();
}

/* Keyspace notifications are those of the plain commands. */
static void expect_event(int line, const char *channel, const char *event) {
    redisReply *reply = hear();
    assert_int_equal(reply->elements, 4);
    expect_text(__FILE__, line, reply->element[2]->str, channel);
    expect_text(__FILE__, line, reply->element[3]->str, event);
    freeReplyObject(reply);
}

static void notifications_are_those_of_the_commands(void **state) {
    (void)state;
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", "KA", NULL);
    listen_on(&server, "__keyspace*");
    EXPECT(client, "\"" P1 "\"", APPEND(E1));
    EXPECT(client, TOO_LOW, APPEND(E1));
    EXPECT(client, "0", PUBLISH("e", "j"));
    EXPECT(client, "1", FAILED_AGAIN("g", "1-1"));
    expect_event(__LINE__, "__keyspace@0__:" STREAM, "xadd");
    expect_event(__LINE__, "__keyspace@0__:" SEQ, "set");
    expect_event(__LINE__, "__keyspace@0__:" FAILURES, "hset");
    /* of class stream, and no other */
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", "Kt", NULL);
    EXPECT(client, "0", PUBLISH("e", "j"));
    EXPECT(client, "\"" P2 "\"", APPEND(E2));
    expect_event(__LINE__, "__keyspace@0__:" STREAM, "xadd");
    run(server.admin, "CONFIG", "SET", "notify-keyspace-events", "", NULL);
    stop_listening();
}

static void a_restart_keeps_all_of_it(void **state) {
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)state;
    EXPECT(client, "\"" P1 "\"", APPEND(E1, "f", "v"));
    EXPECT(client, TOO_LOW, APPEND(E1));
    EXPECT(client, "0", PUBLISH("e", "j"));
    EXPECT(client, "1", FAILED_AGAIN("g", "1-1"));
    (void)get_digest(before, &server);
    redisFree(client);
    server_restart(&server);
    client = server_connect(&server);
    EXPECT_TEXT(get_digest(after, &server), before);
    EXPECT(client, TOO_LOW, APPEND(E1));
    EXPECT(client, "\"1\"", "GET", SEQ);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(shape_is_checked_first),
        TEST(layout_takes_the_name_from_the_key),
        TEST(the_fence_is_checked_next),
        TEST(a_record_stands_where_its_id_says),
        TEST(a_record_id_is_a_whole_one_of_its_kind),
        TEST(a_stream_is_needed),
        TEST(a_record_not_above_the_last_is_refused),
        TEST(a_record_wakes_who_waits_for_the_stream),
        TEST(a_message_is_numbered_json),
        TEST(values_are_escaped_or_base64),
        TEST(names_are_distinct_text),
        TEST(the_number_must_go_up),
        TEST(any_bytes_make_valid_json),
        TEST(any_name_is_refused_or_read_back),
        TEST(failed_deliveries_are_counted),
        TEST(group_and_entry_have_their_form),
        TEST(a_damaged_count_is_refused),
        TEST(keys_and_channel_need_rights),
        TEST(the_guard_comes_last),
        TEST(full_memory_stops_all_three),
        TEST(transactions_and_scripts_do_the_same),
        TEST(notifications_are_those_of_the_commands),
        TEST(a_message_reaches_replicas),
        TEST(a_restart_keeps_all_of_it),
    };
    return RUN_SERVER_TESTS("bus", tests, start_server, stop_server);
}
