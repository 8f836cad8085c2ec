/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions: messages of every kind on a real server, losses and what tells of them, refusals,
 * and peers that push what they must not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "event.h"
#include "event_fixture.h"

static void expect_events(int line, const emq_events *events, int got, int want) {
    if (got != want || (got < 0) != (emq_events_get_error(events)[0] != '\0')) {
        print_error("got %s '%s', want %s\n", emq_err_name(got), emq_events_get_error(events),
                    emq_err_name(want));
        _fail(__FILE__, line);
    }
}

#define EXPECT_EVENTS(events, got, want) expect_events(__LINE__, (events), (got), (want))

static emq_events *subscribe_to(const emq_client_options *options, const char *queue) {
    emq_events *events = NULL;
    int result = emq_events_open(&events, options, queue);
    EXPECT_EVENTS(events, result, EMQ_OK);
    assert_true(emq_events_is_open(events));
    return events;
}

static emq_event *take(int line, emq_events *events, int64_t seq) {
    emq_event *event = NULL;
    int result = emq_events_next(&event, events, LONG_MS);
    expect_events(line, events, result, EMQ_OK);
    assert_non_null(event);
    assert_int_equal(emq_event_get_seq(event), seq);
    return event;
}

#define TAKE(events, seq) take(__LINE__, (events), (seq))

/* Takes a message with this number behind this gap. */
static void expect_message(int line, emq_events *events, int64_t seq, int64_t gap, int is_resumed) {
    emq_event *event = take(line, events, seq);
    if (emq_event_get_gap(event) != gap || emq_event_is_resumed(event) != is_resumed) {
        print_error("gap %lld, resumed %d\n", (long long)emq_event_get_gap(event),
                    emq_event_is_resumed(event));
        _fail(__FILE__, line);
    }
    emq_event_free(event);
}

#define EXPECT_MESSAGE(events, seq, gap, is_resumed)                                               \
    expect_message(__LINE__, (events), (seq), (gap), (is_resumed))

static void expect_none(int line, emq_events *events, uint32_t ms, int want) {
    emq_event *event = (emq_event *)&server;
    int result = emq_events_next(&event, events, ms);
    expect_events(line, events, result, want);
    assert_null(event);
}

#define EXPECT_NONE(events, ms, want) expect_none(__LINE__, (events), (ms), (want))

static void expect_bytes(int line, const char *got, size_t n, const char *want, size_t length) {
    if (got == NULL || n != length || memcmp(got, want, n) != 0 || got[n] != '\0') {
        print_error("got %zu bytes '%s', want '%s'\n", n, got == NULL ? "NULL" : got, want);
        _fail(__FILE__, line);
    }
}

/* The length is read behind the call that sets it. */
#define EXPECT_BYTES(got, n, want)                                                                 \
    do {                                                                                           \
        const char *got_ = (got);                                                                  \
        expect_bytes(__LINE__, got_, (n), (want), sizeof(want) - 1);                               \
    } while (0)
/* One call that gives no message: subscribed or not, it tells which. */
static void try_in_vain(emq_events *events) {
    emq_event *event = NULL;
    int result = emq_events_next(&event, events, SHORT_MS);
    assert_null(event);
    if (emq_events_is_open(events)) {
        EXPECT_EVENTS(events, result, EMQ_EMPTY);
    } else {
        assert_int_equal(emq_err_class(result), EMQ_CLASS_RETRYABLE);
    }
}

static void wait_for_reconnects(emq_events *events, uint64_t count) {
    while (emq_events_get_reconnects(events) < count) {
        try_in_vain(events);
    }
}

static void messages_come_as_they_were_published(void **state) {
    char all[256];
    size_t n = 0;
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    emq_events *events = subscribe_to(&options, "q");
    for (int i = 0; i < 256; i++) {
        all[i] = (char)i;
    }
    const emq_field fields[] = {
        {{"text", 4}, {"a \"quote\" \\ \n \x7f \xc3\xa9 \xf0\x9f\x8e\x89", 24}},
        {{"any", 3}, {all, sizeof(all)}},
        {{"empty", 5}, {"", 0}},
        {{"nul", 3}, {"a\0b", 3}},
        {{"", 0}, {"\xff", 1}},
        {{"own_b64", 7}, {"YWJj", 4}}, /* base64, but of text, which is never sent so */
        {{"x_b64", 5}, {"!", 1}},
    };
    const size_t count = sizeof(fields) / sizeof(fields[0]);
    int64_t receivers = 0;
    int result = emq_publish(&receivers, client, "q", (emq_bytes){"done", 4},
                             (emq_bytes){"JOB0KHTOWnGLuC", 14}, fields, count);
    EXPECT_RESULT(client, result, EMQ_OK);
    assert_int_equal(receivers, 1);
    emq_event *event = TAKE(events, 1);
    EXPECT_BYTES(emq_event_get_event(event, &n), n, "done");
    EXPECT_BYTES(emq_event_get_job(event, &n), n, "JOB0KHTOWnGLuC");
    assert_int_equal(emq_event_get_gap(event), 0);
    assert_int_equal(emq_event_is_resumed(event), 0);
    assert_int_equal(emq_event_get_count(event), count);
    for (size_t i = 0; i < count; i++) {
        const char *name = fields[i].name.data;
        const char *value = emq_event_get_value(event, i, &n);
        assert_string_equal(emq_event_get_name(event, i), name);
        expect_bytes(__LINE__, value, n, fields[i].value.data, fields[i].value.size);
        assert_ptr_equal(emq_event_get_field(event, name, &n), value);
        assert_int_equal(n, fields[i].value.size);
    }
    assert_null(emq_event_get_name(event, count));
    assert_null(emq_event_get_value(event, count, &n));
    assert_null(emq_event_get_field(event, "none", &n));
    assert_int_equal(n, 0);
    assert_memory_equal(emq_event_get_text(event, &n), "{\"event\":\"done\",\"job\":", 22);
    assert_int_equal(strlen(emq_event_get_text(event, NULL)), n);
    emq_events_close(events);
    EXPECT_BYTES(emq_event_get_event(event, &n), n, "done"); /* it is nobody else's */
    emq_event_free(event);
    emq_client_close(client);
}

static void event_and_job_may_be_any_bytes(void **state) {
    size_t n = 0;
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    emq_events *events = subscribe_to(&options, "q");
    int result =
        emq_publish(NULL, client, "q", (emq_bytes){"\xff\0\xfe", 3}, (emq_bytes){"", 0}, NULL, 0);
    EXPECT_RESULT(client, result, EMQ_OK);
    result = emq_publish(NULL, client, "q", (emq_bytes){"", 0}, (emq_bytes){"\x80", 1}, NULL, 0);
    EXPECT_RESULT(client, result, EMQ_OK);
    emq_event *event = TAKE(events, 1);
    EXPECT_BYTES(emq_event_get_event(event, &n), n, "\xff\0\xfe");
    EXPECT_BYTES(emq_event_get_job(event, &n), n, "");
    assert_int_equal(emq_event_get_count(event), 0);
    emq_event_free(event);
    event = TAKE(events, 2);
    EXPECT_BYTES(emq_event_get_event(event, &n), n, "");
    EXPECT_BYTES(emq_event_get_job(event, &n), n, "\x80");
    emq_event_free(event);
    emq_events_close(events);
    emq_client_close(client);
}

static void a_large_message_comes_whole(void **state) {
    const size_t size = (size_t)4 * 1024 * 1024;
    size_t n = 0;
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    emq_events *events = subscribe_to(&options, "q");
    char *big = malloc(size);
    assert_non_null(big);
    memset(big, '\xff', size);
    const emq_field field = {{"big", 3}, {big, size}};
    int result =
        emq_publish(NULL, client, "q", (emq_bytes){"e", 1}, (emq_bytes){"j", 1}, &field, 1);
    EXPECT_RESULT(client, result, EMQ_OK);
    emq_event *event = TAKE(events, 1);
    const char *value = emq_event_get_field(event, "big", &n);
    assert_int_equal(n, size);
    assert_memory_equal(value, big, size);
    emq_event_free(event);
    free(big);
    emq_events_close(events);
    emq_client_close(client);
}

static void queues_are_apart(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *q = subscribe_to(&options, "q");
    emq_events *r = subscribe_to(&options, "r");
    publish("q", "one");
    publish("r", "two");
    publish("q", "three");
    EXPECT_MESSAGE(q, 1, 0, 0);
    EXPECT_MESSAGE(q, 2, 0, 0);
    EXPECT_MESSAGE(r, 1, 0, 0);
    /* there is nothing more, and that ends nothing */
    EXPECT_NONE(q, 0, EMQ_EMPTY);
    EXPECT_NONE(r, SHORT_MS, EMQ_EMPTY);
    publish("r", "four");
    EXPECT_MESSAGE(r, 2, 0, 0);
    emq_events_close(q);
    emq_events_close(r);
    emq_events_close(NULL);
}

static void who_comes_later_misses_nothing_that_is_his(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    publish("q", "one");
    publish("q", "two");
    emq_events *events = subscribe_to(&options, "q");
    publish("q", "three");
    EXPECT_MESSAGE(events, 3, 0, 0);
    emq_events_close(events);
}

static void a_killed_connection_leaves_a_gap(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *events = subscribe_to(&options, "q");
    publish("q", "one");
    EXPECT_MESSAGE(events, 1, 0, 0);
    kill_subscribers();
    publish("q", "two");
    publish("q", "three");
    /* connects again by itself; there is no message yet */
    wait_for_reconnects(events, 1);
    publish("q", "four");
    publish("q", "five");
    EXPECT_MESSAGE(events, 4, 2, 1);
    EXPECT_MESSAGE(events, 5, 0, 0);
    /* a loss in which nothing was sent is told, too, and has no gap */
    assert_int_equal(emq_events_reconnect(events), EMQ_OK);
    assert_int_equal(emq_events_get_reconnects(events), 2);
    publish("q", "six");
    EXPECT_MESSAGE(events, 6, 0, 1);
    emq_events_close(events);
}

static void a_loss_before_the_first_message_is_told(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *events = subscribe_to(&options, "q");
    kill_subscribers();
    publish("q", "one");
    assert_int_equal(emq_events_reconnect(events), EMQ_OK);
    publish("q", "two");
    EXPECT_MESSAGE(events, 2, EMQ_GAP_UNKNOWN, 1);
    emq_events_close(events);
}

static void numbers_that_begin_anew_are_told(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *events = subscribe_to(&options, "q");
    publish("q", "one");
    publish("q", "two");
    clean_server(state);
    publish("q", "one again");
    publish("q", "two again");
    EXPECT_MESSAGE(events, 1, 0, 0);
    EXPECT_MESSAGE(events, 2, 0, 0);
    EXPECT_MESSAGE(events, 1, EMQ_GAP_UNKNOWN, 0);
    EXPECT_MESSAGE(events, 2, 0, 0);
    emq_events_close(events);
}

static void a_restarted_server_is_found_again(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *events = subscribe_to(&options, "q");
    publish("q", "one");
    EXPECT_MESSAGE(events, 1, 0, 0);
    server_restart(&server);
    publish("q", "two");
    wait_for_reconnects(events, 1);
    publish("q", "three");
    EXPECT_MESSAGE(events, 3, 1, 1);
    emq_events_close(events);
}

static void expect_refused(const emq_client_options *options, const char *queue, int want) {
    emq_events *events = NULL;
    int result = emq_events_open(&events, options, queue);
    EXPECT_EVENTS(events, result, want);
    assert_non_null(events);
    assert_false(emq_events_is_open(events));
    /* the next call tries again, and says the same */
    EXPECT_NONE(events, LONG_MS, want);
    EXPECT_NONE(events, 0, want);
    emq_events_close(events);
}

static void a_listener_has_the_listeners_rights(void **state) {
    (void)state;
    emq_client_options options = options_of_listener(CONNECT_WORDS " " LISTENER_WORDS);
    options.command_timeout_ms = 1000; /* so that the connection is tested as well */
    emq_events *events = subscribe_to(&options, "q");
    publish("q", "one");
    EXPECT_MESSAGE(events, 1, 0, 0);
    EXPECT_NONE(events, 1500, EMQ_EMPTY);
    redisReply *log = call(server.admin, "ACL", "LOG", NULL);
    assert_int_equal(log->elements, 0);
    freeReplyObject(log);
    options.command_timeout_ms = LONG_MS;
    expect_refused(&options, "r", EMQ_ENOPERM);
    /* a right that is withdrawn ends it, and one that is given back starts it again */
    run(server.admin, "ACL", "SETUSER", "listener", "resetchannels", NULL);
    EXPECT_NONE(events, LONG_MS, EMQ_ENOPERM);
    assert_non_null(strstr(emq_events_get_error(events), "NOPERM"));
    run(server.admin, "ACL", "SETUSER", "listener", "&emq:{q}:events", NULL);
    wait_for_reconnects(events, 1);
    publish("q", "two");
    EXPECT_MESSAGE(events, 2, 0, 1);
    emq_events_close(events);
}

static void a_word_less_is_refused(void **state) {
    (void)state;
    emq_client_options options = options_of_listener(CONNECT_WORDS " +subscribe");
    expect_refused(&options, "q", EMQ_ENOPERM);
    options = options_of_listener(CONNECT_WORDS " &emq:{q}:events");
    expect_refused(&options, "q", EMQ_ENOPERM);
    options = options_of_listener(CONNECT_WORDS " -get " LISTENER_WORDS);
    expect_refused(&options, "q", EMQ_ENOPERM);
}

static void the_connect_path_refuses(void **state) {
    test_server bare;
    int reserved = -1;
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *events = subscribe_to(&options, "q");
    run(server.admin, "DEL", "{emq}:version", NULL);
    expect_refused(&options, "q", EMQ_EFENCE_ABSENT);
    run(server.admin, "SET", "{emq}:version", "echomq:5", NULL);
    expect_refused(&options, "q", EMQ_EFENCE);
    /* the whole path is walked again behind a loss, too */
    kill_subscribers();
    EXPECT_NONE(events, LONG_MS, EMQ_EFENCE);
    emq_events_close(events);
    server_start_bare(&bare, NULL);
    options = options_for_server(&bare);
    expect_refused(&options, "q", EMQ_EMODULE);
    server_stop(&bare);
    options = (emq_client_options)EMQ_CLIENT_OPTIONS_INIT;
    options.port = closed_port(&reserved);
    events = NULL;
    int result = emq_events_open(&events, &options, "q");
    EXPECT_EVENTS(events, result, EMQ_ECONNECT);
    EXPECT_NONE(events, SHORT_MS, EMQ_ECONNECT);
    EXPECT_NONE(events, 0, EMQ_ECONNECT);
    emq_events_close(events);
    (void)close(reserved);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *events = (emq_events *)&server;
    emq_event *event = NULL;
    assert_int_equal(emq_events_open(NULL, &options, "q"), EMQ_EINVAL);
    assert_int_equal(emq_events_open(&events, &options, NULL), EMQ_EINVAL);
    assert_null(events);
    assert_int_equal(emq_events_open(&events, &options, "not:a:queue"), EMQ_EQUEUE);
    assert_null(events);
    assert_int_equal(emq_events_next(&event, NULL, 0), EMQ_EINVAL);
    assert_int_equal(emq_events_reconnect(NULL), EMQ_EINVAL);
    assert_false(emq_events_is_open(NULL));
    options.database = -1;
    expect_refused(&options, "q", EMQ_EINVAL);
    options.database = 0;
    events = subscribe_to(&options, "q");
    assert_int_equal(emq_events_next(NULL, events, 0), EMQ_EINVAL);
    emq_events_close(events);
    emq_event_free(NULL);
    assert_null(emq_event_get_event(NULL, NULL));
    assert_int_equal(emq_event_get_count(NULL), 0);
}

static void a_child_has_no_part_in_it(void **state) {
    int status = -1;
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_events *events = subscribe_to(&options, "q");
    publish("q", "one");
    pid_t child = fork();
    if (child == 0) {
        emq_event *event = NULL;
        int is_right = !emq_events_is_open(events) &&
                       emq_events_next(&event, events, 1000) == EMQ_EFORKED && event == NULL &&
                       emq_events_reconnect(events) == EMQ_EFORKED;
        emq_events_close(events);
        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    EXPECT_MESSAGE(events, 1, 0, 0);
    assert_int_equal(emq_events_get_reconnects(events), 0);
    emq_events_close(events);
}

/* Scripted peers. */

/* Messages that come with the confirmation, in one read or byte by byte, are not lost. */
static void messages_right_behind_the_confirmation_count(void **state) {
    (void)state;
    for (int is_dripped = 0; is_dripped < 2; is_dripped++) {
        peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS("")}};
        script.steps[3] = (peer_step){is_dripped ? PEER_DRIP : PEER_SEND,
                                      PEER_SUBSCRIBED PEER_EVENT("17") PEER_EVENT("19"), 0};
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        emq_events *events = subscribe_to(&options, "q");
        EXPECT_MESSAGE(events, 17, 0, 0);
        EXPECT_MESSAGE(events, 19, 1, 0);
        char *sent = peer_command(p, PEER_HANDSHAKE_COMMANDS);
        assert_string_equal(sent, "SUBSCRIBE emq:{q}:events");
        free(sent);
        emq_events_close(events);
        peer_stop(p);
    }
}

/* Each is dropped with EMQ_EPROTOCOL, and the subscription goes on over the same connection. */
static void what_is_no_message_is_dropped(void **state) {
    (void)state;
    peer *p = start_pusher(PEER_SUBSCRIBED PEER_EVENT("10"));
    emq_client_options options = options_for_peer(p);
    emq_events *events = subscribe_to(&options, "q");
    EXPECT_MESSAGE(events, 10, 0, 0);
    for (size_t i = 0; not_messages[i] != NULL; i++) {
        char right[64];
        push(p, not_messages[i]);
        (void)snprintf(right, sizeof(right), "{\"event\":\"e\",\"job\":\"j\",\"seq\":%zu}",
                       12 + 2 * i);
        push(p, right);
        EXPECT_NONE(events, LONG_MS, EMQ_EPROTOCOL);
        EXPECT_MESSAGE(events, (int64_t)(12 + 2 * i), 1, 0);
    }
    assert_int_equal(peer_connections(p), 1);
    emq_events_close(events);
    peer_stop(p);
}

/* Behind what is no push at all nothing is believed: it is told, and the next call connects anew.
 */
static void a_peer_that_breaks_the_protocol_is_left(void **state) {
    (void)state;
    for (size_t i = 0; not_pushes[i] != NULL; i++) {
        peer *p = start_pusher(PEER_SUBSCRIBED PEER_EVENT("10"));
        emq_client_options options = options_for_peer(p);
        emq_events *events = subscribe_to(&options, "q");
        EXPECT_MESSAGE(events, 10, 0, 0);
        peer_act(p, (peer_step){PEER_SEND, not_pushes[i], 0});
        EXPECT_NONE(events, LONG_MS, EMQ_EPROTOCOL);
        assert_false(emq_events_is_open(events));
        /* the script begins anew */
        EXPECT_MESSAGE(events, 10, EMQ_GAP_UNKNOWN, 1);
        assert_int_equal(peer_connections(p), 2);
        emq_events_close(events);
        peer_stop(p);
    }
}

static void a_wrong_confirmation_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; not_confirmations[i].bytes != NULL; i++) {
        peer *p = start_pusher(not_confirmations[i].bytes);
        emq_client_options options = options_for_peer(p);
        expect_refused(&options, "q", not_confirmations[i].result);
        peer_stop(p);
    }
}

/* It is tried again and again, with pauses, and the call ends by its deadline. */
static void a_peer_that_closes_behind_the_confirmation(void **state) {
    (void)state;
    peer_script script = {.steps = {PEER_HANDSHAKE, {PEER_SEND_AND_CLOSE, PEER_SUBSCRIBED, 0}}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    emq_events *events = subscribe_to(&options, "q");
    while (peer_connections(p) < 4) {
        try_in_vain(events);
    }
    emq_events_close(events);
    peer_stop(p);
}

/* A flood is taken message by message, or dropped one by one, and ends with a close. */
static void floods_are_taken_one_by_one(void **state) {
    static const char *const floods[] = {PEER_EVENT("10"), PEER_MESSAGE "$1\r\n?\r\n"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(PEER_SUBSCRIBED)}};
        script.steps[4] = (peer_step){PEER_FLOOD, floods[i], 0};
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        options.command_timeout_ms = SHORT_MS; /* the flood begins when the connection is tested */
        emq_events *events = subscribe_to(&options, "q");
        for (int k = 0; k < 10000; k++) {
            emq_event *event = NULL;
            int result = emq_events_next(&event, events, LONG_MS);
            EXPECT_EVENTS(events, result, i == 0 ? EMQ_OK : EMQ_EPROTOCOL);
            emq_event_free(event);
        }
        assert_int_equal(emq_events_get_reconnects(events), 0);
        emq_events_close(events);
        peer_stop(p);
    }
}

/* One word without an end: each call ends by its deadline, and gives nothing. */
static void an_endless_word_holds_nobody_up(void **state) {
    char bytes[2048];
    (void)state;
    int n = snprintf(bytes, sizeof(bytes), "%s+%01000d", PEER_SUBSCRIBED, 0);
    peer_script script = {.steps = {PEER_HANDSHAKE, {PEER_DRIP, bytes, (size_t)n}}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    emq_events *events = subscribe_to(&options, "q");
    EXPECT_NONE(events, SHORT_MS, EMQ_EMPTY);
    EXPECT_NONE(events, 0, EMQ_EMPTY);
    assert_int_equal(emq_events_get_reconnects(events), 0);
    emq_events_close(events);
    peer_stop(p);
}

/* A peer that has gone silent is asked, and left when it does not answer. */
static void silence_is_noticed(void **state) {
    (void)state;
    peer *p = start_pusher(PEER_SUBSCRIBED);
    emq_client_options options = options_for_peer(p);
    options.command_timeout_ms = 50;
    emq_events *events = subscribe_to(&options, "q");
    wait_for_reconnects(events, 1);
    char *sent = peer_command(p, PEER_HANDSHAKE_COMMANDS + 1);
    assert_string_equal(sent, "SUBSCRIBE emq:{q}:events");
    free(sent);
    emq_events_close(events);
    peer_stop(p);
}

/* One that answers stays, however little it has to say. */
static void silence_of_a_server_is_no_loss(void **state) {
    char calls[128] = "";
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.command_timeout_ms = 1000;
    run(server.admin, "CONFIG", "RESETSTAT", NULL);
    emq_events *events = subscribe_to(&options, "q");
    while (strncmp(calls, "calls=3,", 8) != 0) {
        try_in_vain(events);
        get_info(calls, sizeof(calls), server.admin, "commandstats", "cmdstat_subscribe");
    }
    publish("q", "one");
    EXPECT_MESSAGE(events, 1, 0, 0);
    assert_int_equal(emq_events_get_reconnects(events), 0);
    emq_events_close(events);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(messages_come_as_they_were_published, clean_server),
        cmocka_unit_test_setup(event_and_job_may_be_any_bytes, clean_server),
        cmocka_unit_test_setup(a_large_message_comes_whole, clean_server),
        cmocka_unit_test_setup(queues_are_apart, clean_server),
        cmocka_unit_test_setup(who_comes_later_misses_nothing_that_is_his, clean_server),
        cmocka_unit_test_setup(a_killed_connection_leaves_a_gap, clean_server),
        cmocka_unit_test_setup(a_loss_before_the_first_message_is_told, clean_server),
        cmocka_unit_test_setup(numbers_that_begin_anew_are_told, clean_server),
        cmocka_unit_test_setup(a_restarted_server_is_found_again, clean_server),
        cmocka_unit_test_setup(a_listener_has_the_listeners_rights, clean_server),
        cmocka_unit_test_setup(a_word_less_is_refused, clean_server),
        cmocka_unit_test_setup(the_connect_path_refuses, clean_server),
        cmocka_unit_test_setup(wrong_arguments_are_refused, clean_server),
        cmocka_unit_test_setup(a_child_has_no_part_in_it, clean_server),
        cmocka_unit_test(messages_right_behind_the_confirmation_count),
        cmocka_unit_test(what_is_no_message_is_dropped),
        cmocka_unit_test(a_peer_that_breaks_the_protocol_is_left),
        cmocka_unit_test(a_wrong_confirmation_is_refused),
        cmocka_unit_test(a_peer_that_closes_behind_the_confirmation),
        cmocka_unit_test(floods_are_taken_one_by_one),
        cmocka_unit_test(an_endless_word_holds_nobody_up),
        cmocka_unit_test(silence_is_noticed),
        cmocka_unit_test_setup(silence_of_a_server_is_no_loss, clean_server),
    };
    return RUN_SERVER_TESTS("events", tests, start_server, stop_server);
}
