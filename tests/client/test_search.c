/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a primary without a socket: the answers of sentinels, whom to ask next, and what
 * is said in the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "decode.h"
#include "sentinel.h"

static emq_settings settings;

static void start(emq_search *s, const char *sentinels, uint32_t ms) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.sentinels = sentinels;
    options.primary_name = "main";
    options.username = "worker";
    options.password = "data";
    options.sentinel_password = "watch";
    emq_settings_clear(&settings);
    assert_int_equal(emq_settings_init(&settings, &options), EMQ_OK);
    emq_search_start(s, &settings, emq_deadline_in(ms));
}

static int clear(void **state) {
    (void)state;
    emq_settings_clear(&settings);
    return 0;
}

static redisReply *parse(const char *bytes) {
    void *reply = NULL;
    redisReader *reader = redisReaderCreate();
    assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    redisReaderFree(reader);
    assert_non_null(reply);
    return reply;
}

static void answer(emq_search *s, const char *bytes) {
    redisReply *reply = parse(bytes);
    emq_search_take(s, reply);
    freeReplyObject(reply);
}

static void fail_step(emq_search *s, int result, const char *says) {
    emq_text text;
    emq_text_fail(&text, result, "%s", says);
    emq_search_fail(s, result, &text);
}

#define EXPECT_STEP(s, want, host_of, port_of)                                                     \
    do {                                                                                           \
        assert_int_equal((s)->step, (want));                                                       \
        assert_string_equal((s)->at.host, (host_of));                                              \
        assert_int_equal((s)->at.port, (port_of));                                                 \
    } while (0)

#define NAMES(port) "*2\r\n$1\r\np\r\n$1\r\n" port "\r\n"
#define KNOWS_NOTHING "*-1\r\n"

static void the_question_is_the_one_that_every_sentinel_knows(void **state) {
    emq_ask ask;
    emq_search s;
    (void)state;
    start(&s, "a", 60000);
    assert_int_equal(emq_search_build_ask(&ask, &s), EMQ_OK);
    assert_int_equal(ask.end, 1);
    assert_int_equal(ask.lines[0].argc, 3);
    assert_string_equal(ask.lines[0].argv[0], "SENTINEL");
    assert_string_equal(ask.lines[0].argv[1], "GET-MASTER-ADDR-BY-NAME");
    assert_string_equal(ask.lines[0].argv[2], "main");
    emq_ask_clear(&ask);
}

static void each_side_is_reached_with_its_own_user(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a:1,[::1],c", 60000);
    EXPECT_STEP(&s, EMQ_SEARCH_ASK, "a", 1);
    assert_null(s.at.username);
    assert_string_equal(s.at.password, "watch");
    answer(&s, NAMES("7"));
    EXPECT_STEP(&s, EMQ_SEARCH_TRY, "p", 7);
    assert_string_equal(s.at.username, "worker");
    assert_string_equal(s.at.password, "data");
    assert_non_null(s.at.sentinels); /* so that ROLE is asked */
    emq_search_succeed(&s);
    assert_int_equal(s.step, EMQ_SEARCH_FOUND);
    assert_string_equal(settings.sentinel_list.list[0].host, "a");
}

static void who_fails_comes_last_in_the_next_search(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a,b,c,d", 60000);
    fail_step(&s, EMQ_ECONNECT, "refused");
    EXPECT_STEP(&s, EMQ_SEARCH_ASK, "b", 26379);
    answer(&s, NAMES("7"));
    fail_step(&s, EMQ_ENOPRIMARY, "a replica");
    EXPECT_STEP(&s, EMQ_SEARCH_ASK, "c", 26379);
    answer(&s, NAMES("8"));
    EXPECT_STEP(&s, EMQ_SEARCH_TRY, "p", 8);
    emq_search_succeed(&s);
    emq_search_start(&s, &settings, emq_deadline_in(60000));
    EXPECT_STEP(&s, EMQ_SEARCH_ASK, "c", 26379);
    assert_string_equal(settings.sentinel_list.list[1].host, "d");
    assert_string_equal(settings.sentinel_list.list[2].host, "a");
    assert_string_equal(settings.sentinel_list.list[3].host, "b");
}

static void a_silent_one_does_not_use_up_the_time(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a,b,c", 40000);
    int first = emq_deadline_left_ms(s.until);
    assert_in_range(first, 1, 10000); /* a quarter: two more, and the primary */
    answer(&s, NAMES("7"));
    assert_in_range(emq_deadline_left_ms(s.until), first, 20000);
}

static void one_word_is_not_tried_twice_in_a_round(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a,b,c", 60000);
    answer(&s, NAMES("7"));
    fail_step(&s, EMQ_ETIMEOUT, "silent");
    answer(&s, NAMES("7"));
    EXPECT_STEP(&s, EMQ_SEARCH_ASK, "c", 26379);
    answer(&s, NAMES("8"));
    EXPECT_STEP(&s, EMQ_SEARCH_TRY, "p", 8);
    fail_step(&s, EMQ_ECONNECT, "refused");
    assert_int_equal(s.step, EMQ_SEARCH_PAUSE);
    emq_search_go_on(&s);
    answer(&s, NAMES("7")); /* the next round is another matter */
    EXPECT_STEP(&s, EMQ_SEARCH_TRY, "p", 7);
}

static void expect_failed(const emq_search *s, int result, const char *says) {
    assert_int_equal(s->step, EMQ_SEARCH_FAILED);
    if (s->result != result || strstr(s->text.bytes, says) == NULL) {
        fail_msg("%s '%s', want %s '%s'", emq_err_name(s->result), s->text.bytes,
                 emq_err_name(result), says);
    }
}

static void the_deadline_ends_it_with_what_is_known(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a,b", 0);
    expect_failed(&s, EMQ_ESENTINEL, "none was asked in time");
    start(&s, "a", 30);
    answer(&s, NAMES("7"));
    fail_step(&s, EMQ_ENOPRIMARY, "it is a replica");
    while (s.step == EMQ_SEARCH_PAUSE) {
        (void)emq_poll(-1, 0, s.until);
        emq_search_go_on(&s);
        if (s.step == EMQ_SEARCH_ASK) {
            fail_step(&s, EMQ_ETIMEOUT, "silent");
        }
    }
    expect_failed(&s, EMQ_ENOPRIMARY, "p port 7: it is a replica");
}

static void the_verdict_is_that_of_most_of_them(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a,b,c", 60000);
    fail_step(&s, EMQ_ECONNECT, "refused");
    fail_step(&s, EMQ_ETIMEOUT, "silent");
    answer(&s, KNOWS_NOTHING);
    expect_failed(&s, EMQ_ESENTINEL,
                  "for main: a port 26379: refused; b port 26379: silent; c port");
    start(&s, "a,b,c", 60000);
    answer(&s, KNOWS_NOTHING);
    fail_step(&s, EMQ_ECONNECT, "refused");
    answer(&s, KNOWS_NOTHING);
    expect_failed(&s, EMQ_EPRIMARYNAME, "c port 26379: knows no primary of this name");
    start(&s, "a,b,c", 60000);
    answer(&s, KNOWS_NOTHING);
    answer(&s, "-WRONGPASS x\r\n");
    answer(&s, "-NOPERM y\r\n");
    expect_failed(&s, EMQ_EAUTH, "b port 26379: WRONGPASS x");
}

/* What was said in an earlier round is told where the last one does not tell more. */
static void the_last_word_counts_when_it_is_clear(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a,b,c", 60000);
    answer(&s, NAMES("7"));
    fail_step(&s, EMQ_ECONNECT, "refused");
    answer(&s, KNOWS_NOTHING);
    answer(&s, KNOWS_NOTHING);
    assert_int_equal(s.step, EMQ_SEARCH_PAUSE); /* one of them knows it: nothing is clear */
    emq_search_go_on(&s);
    answer(&s, KNOWS_NOTHING);
    fail_step(&s, EMQ_ETIMEOUT, "silent");
    fail_step(&s, EMQ_ETIMEOUT, "silent");
    expect_failed(&s, EMQ_ECONNECT, "p port 7: refused");
    start(&s, "a,b,c", 60000);
    answer(&s, NAMES("7"));
    fail_step(&s, EMQ_ECONNECT, "refused");
    answer(&s, NAMES("7"));
    answer(&s, NAMES("7"));
    emq_search_go_on(&s);
    answer(&s, KNOWS_NOTHING);
    answer(&s, KNOWS_NOTHING);
    answer(&s, KNOWS_NOTHING);
    expect_failed(&s, EMQ_EPRIMARYNAME, "knows no primary of this name");
}

static void what_concerns_all_ends_it_at_once(void **state) {
    emq_search s;
    (void)state;
    start(&s, "a,b", 60000);
    fail_step(&s, EMQ_EINVAL, "no such file");
    expect_failed(&s, EMQ_EINVAL, "no such file");
    start(&s, "a,b", 60000);
    answer(&s, NAMES("7"));
    fail_step(&s, EMQ_EFENCE, "another wire");
    expect_failed(&s, EMQ_EFENCE, "p port 7: another wire");
}

static void answers_that_name_nothing_are_passed_over(void **state) {
    static const char *const bad[] = {
        "+OK\r\n",
        ":1\r\n",
        "*0\r\n",
        "*1\r\n$1\r\np\r\n",
        "*3\r\n$1\r\np\r\n$1\r\n7\r\n$1\r\n7\r\n",
        "*2\r\n$1\r\np\r\n:7\r\n",
        "*2\r\n$-1\r\n$1\r\n7\r\n",
        "*2\r\n$0\r\n\r\n$1\r\n7\r\n",
        "*2\r\n$3\r\np q\r\n$1\r\n7\r\n",
        "*2\r\n$1\r\np\r\n$1\r\n0\r\n",
        "*2\r\n$1\r\np\r\n$5\r\n65536\r\n",
        "*2\r\n$1\r\np\r\n$2\r\n-1\r\n",
        "*2\r\n*0\r\n$1\r\n7\r\n",
        "-ERR unknown command 'SENTINEL'\r\n",
    };
    char long_host[400];
    emq_address address;
    emq_text text;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        emq_search s;
        start(&s, "a,b", 60000);
        answer(&s, bad[i]);
        EXPECT_STEP(&s, EMQ_SEARCH_ASK, "b", 26379);
    }
    assert_int_equal(emq_decode_primary_address(&address, NULL, &text), EMQ_EPROTOCOL);
    (void)snprintf(long_host, sizeof(long_host), "*2\r\n$256\r\n%0256d\r\n$1\r\n7\r\n", 1);
    redisReply *reply = parse(long_host);
    assert_int_equal(emq_decode_primary_address(&address, reply, &text), EMQ_EPROTOCOL);
    reply->element[0]->len = 255;
    reply->element[0]->str[255] = '\0';
    assert_int_equal(emq_decode_primary_address(&address, reply, &text), EMQ_OK);
    reply->element[0]->str[7] = '\0';
    assert_int_equal(emq_decode_primary_address(&address, reply, &text), EMQ_EPROTOCOL);
    freeReplyObject(reply);
}

static void good_answers_give_their_address(void **state) {
    static const struct {
        const char *bytes;
        const char *host;
        int port;
    } good[] = {
        {"*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65535\r\n", "127.0.0.1", 65535},
        {"*2\r\n$3\r\n::1\r\n$4\r\n6379\r\n", "::1", 6379},
        {"*2\r\n$14\r\nqueue.internal\r\n$1\r\n1\r\n", "queue.internal", 1},
        {"*2\r\n+p\r\n+7\r\n", "p", 7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        emq_search s;
        start(&s, "a", 60000);
        answer(&s, good[i].bytes);
        EXPECT_STEP(&s, EMQ_SEARCH_TRY, good[i].host, good[i].port);
    }
}

static void only_a_primary_has_the_right_role(void **state) {
    static const struct {
        const char *bytes;
        int result;
        const char *says;
    } cases[] = {
        {"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", EMQ_OK, ""},
        {"*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:0\r\n", EMQ_ENOPRIMARY,
         "its role is slave"},
        {"*2\r\n$8\r\nsentinel\r\n*0\r\n", EMQ_ENOPRIMARY, "its role is sentinel"},
        {"-NOPERM no rights to run 'role'\r\n", EMQ_ENOPERM, "role"},
        {"-NOAUTH Authentication required.\r\n", EMQ_EAUTH, "NOAUTH"},
        {"*0\r\n", EMQ_EPROTOCOL, "ROLE"},
        {"*1\r\n:1\r\n", EMQ_EPROTOCOL, "ROLE"},
        {"$6\r\nmaster\r\n", EMQ_EPROTOCOL, "ROLE"},
    };
    emq_text text;
    (void)state;
    assert_int_equal(emq_decode_role(NULL, &text), EMQ_EPROTOCOL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        redisReply *reply = parse(cases[i].bytes);
        emq_text_clear(&text);
        assert_int_equal(emq_decode_role(reply, &text), cases[i].result);
        assert_non_null(strstr(text.bytes, cases[i].says));
        freeReplyObject(reply);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_question_is_the_one_that_every_sentinel_knows),
        cmocka_unit_test(each_side_is_reached_with_its_own_user),
        cmocka_unit_test(who_fails_comes_last_in_the_next_search),
        cmocka_unit_test(a_silent_one_does_not_use_up_the_time),
        cmocka_unit_test(one_word_is_not_tried_twice_in_a_round),
        cmocka_unit_test(the_deadline_ends_it_with_what_is_known),
        cmocka_unit_test(the_verdict_is_that_of_most_of_them),
        cmocka_unit_test(the_last_word_counts_when_it_is_clear),
        cmocka_unit_test(what_concerns_all_ends_it_at_once),
        cmocka_unit_test(answers_that_name_nothing_are_passed_over),
        cmocka_unit_test(good_answers_give_their_address),
        cmocka_unit_test(only_a_primary_has_the_right_role),
    };
    return cmocka_run_group_tests(tests, NULL, clear);
}
