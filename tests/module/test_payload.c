/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads are opaque: every byte value and every size comes back as it was, also from the AOF. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static void enqueue(const char *id, const char *row, const void *payload, size_t n) {
    command line = {0};
    command_add(&line, "EMQ.ENQUEUE");
    command_add(&line, "2");
    command_add(&line, row);
    command_add(&line, PENDING);
    command_add(&line, id);
    command_add_bytes(&line, payload, n);
    redisReply *reply = command_send(client, &line);
    command_free(&line);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}

static void expect_bytes(const redisReply *reply, const void *payload, size_t n) {
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    assert_int_equal(reply->len, n);
    assert_int_equal(memcmp(reply->str, payload, n), 0);
}

/* The payload of J1 comes back from the row, through a claim, and through a restart. */
static void comes_back(const void *payload, size_t n) {
    enqueue(J1, ROW(J1), payload, n);
    redisReply *reply = call(client, "HGET", ROW(J1), "payload", NULL);
    expect_bytes(reply, payload, n);
    freeReplyObject(reply);
    reply = call(client, CLAIM("60000"), NULL);
    assert_int_equal(reply->elements, 3);
    expect_bytes(reply->element[1], payload, n);
    freeReplyObject(reply);
    EXPECT(client, "1", COMPLETE(J1, "1"));
}

static void every_byte_value(void **state) {
    unsigned char bytes[256];
    (void)state;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (unsigned char)i;
        comes_back(&bytes[i], 1);
    }
    comes_back(bytes, sizeof(bytes));
}

static void payloads_that_look_like_something(void **state) {
    static const char *const payloads[] = {
        "",     "0",      "-1",   "9223372036854775807", "1e10", "nil", "\r\n", "$-1\r\n", "*0\r\n",
        "-ERR", ":1\r\n", "EXEC", "\xff\xfe\x00",        " ",    "%s%n"};
    (void)state;
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        comes_back(payloads[i], strlen(payloads[i]));
    }
    comes_back("a\0b", 3);
    comes_back("\0\0\0\0", 4);
}

/* Sizes around the limits of the server's own encodings, up to the client's default limit. */
static void every_size(void **state) {
    static const size_t sizes[] = {
        0,    1,    44,    45,    63,    64,    65,    127,     128,           4095,
        4096, 4097, 16383, 16384, 16385, 65535, 65536, 1 << 20, (1 << 23) - 1, 1 << 23};
    char *payload = malloc(1 << 23);
    (void)state;
    assert_non_null(payload);
    for (size_t i = 0; i < 1 << 23; i++) {
        payload[i] = (char)(i * 31 + (i >> 8));
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        comes_back(payload, sizes[i]);
    }
    free(payload);
}

static void payloads_survive_a_restart(void **state) {
    unsigned char bytes[256];
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    char *large = malloc(1 << 23);
    (void)state;
    assert_non_null(large);
    memset(large, '\r', 1 << 23);
    for (int i = 0; i < 256; i++) {
        bytes[i] = (unsigned char)i;
    }
    enqueue(J1, ROW(J1), bytes, sizeof(bytes));
    enqueue(J2, ROW(J2), "", 0);
    enqueue(J3, ROW(J3), large, 1 << 23);
    (void)get_digest(before, &server);
    redisFree(client);
    server_restart(&server);
    client = server_connect(&server);
    EXPECT_TEXT(get_digest(after, &server), before);
    redisReply *reply = call(client, CLAIM("60000"), NULL);
    expect_bytes(reply->element[1], bytes, sizeof(bytes));
    freeReplyObject(reply);
    EXPECT(client, "[\"" J2 "\", \"\", 1]", CLAIM("60000"));
    reply = call(client, CLAIM("60000"), NULL);
    expect_bytes(reply->element[1], large, 1 << 23);
    freeReplyObject(reply);
    free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_byte_value),
        TEST(payloads_that_look_like_something),
        TEST(every_size),
        TEST(payloads_survive_a_restart),
    };
    return RUN_SERVER_TESTS("payload", tests, start_server, stop_server);
}
