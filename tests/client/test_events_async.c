/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions on a loop: messages, losses and what tells of them, refusals, peers that push what
 * they must not, and closing in every state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "event_fixture.h"
#include "listener.h"

static void listen_to_server(listener *l) {
    const emq_client_options options = options_for_server(&server);
    listener_open(l, &options, "q");
    listener_until_open(l);
}

static void messages_come_as_they_were_published(void **state) {
    listener l;
    size_t n = 0;
    (void)state;
    const emq_client_options options = options_for_server(&server);
    emq_client *publisher = open_client(&options);
    listen_to_server(&l);
    assert_int_equal(l.t.told, 2);
    assert_int_equal(l.t.states[0], EMQ_ASYNC_CONNECTING);
    const emq_field field = {{"any", 3}, {"\xff\0\xfe", 3}};
    assert_int_equal(emq_publish(NULL, publisher, "q", (emq_bytes){"done", 4},
                                 (emq_bytes){"JOB0KHTOWnGLuC", 14}, &field, 1),
                     EMQ_OK);
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    assert_string_equal(emq_event_get_event(l.last, NULL), "done");
    assert_string_equal(emq_event_get_job(l.last, NULL), "JOB0KHTOWnGLuC");
    assert_memory_equal(emq_event_get_field(l.last, "any", &n), "\xff\0\xfe", 3);
    assert_int_equal(n, 3);
    publish("r", "another queue's");
    for (int i = 1; i < MESSAGES_MAX; i++) {
        publish("q", "more");
    }
    for (int i = 1; i < MESSAGES_MAX; i++) {
        EXPECT_MESSAGE(&l, i, i + 1, 0, 0);
    }
    assert_int_equal(l.messages, MESSAGES_MAX);
    assert_int_equal(l.t.told, 2);
    listener_finish(&l);
    emq_client_close(publisher);
}

static void a_large_message_comes_whole(void **state) {
    const size_t size = (size_t)4 * 1024 * 1024;
    listener l;
    size_t n = 0;
    (void)state;
    const emq_client_options options = options_for_server(&server);
    emq_client *publisher = open_client(&options);
    char *big = malloc(size);
    assert_non_null(big);
    memset(big, '\xff', size);
    listen_to_server(&l);
    const emq_field field = {{"big", 3}, {big, size}};
    assert_int_equal(
        emq_publish(NULL, publisher, "q", (emq_bytes){"e", 1}, (emq_bytes){"j", 1}, &field, 1),
        EMQ_OK);
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    assert_memory_equal(emq_event_get_field(l.last, "big", &n), big, size);
    assert_int_equal(n, size);
    listener_finish(&l);
    free(big);
    emq_client_close(publisher);
}

static void a_cut_connection_leaves_a_gap(void **state) {
    listener l;
    (void)state;
    listen_to_server(&l);
    publish("q", "one");
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    kill_subscribers();
    publish("q", "two");
    publish("q", "three");
    listener_until_reconnects(&l, 1);
    assert_int_equal(l.t.states[2], EMQ_ASYNC_CLOSED);
    assert_int_equal(l.t.reasons[2], EMQ_ECONNECT);
    assert_int_equal(l.t.states[3], EMQ_ASYNC_CONNECTING);
    publish("q", "four");
    publish("q", "five");
    EXPECT_MESSAGE(&l, 1, 4, 2, 1);
    EXPECT_MESSAGE(&l, 2, 5, 0, 0);
    /* a loss in which nothing was sent is told, too, and has no gap */
    assert_int_equal(emq_events_async_reconnect(l.events), EMQ_OK);
    listener_until_reconnects(&l, 2);
    publish("q", "six");
    EXPECT_MESSAGE(&l, 3, 6, 0, 1);
    listener_finish(&l);
}

static void a_loss_before_the_first_message_is_told(void **state) {
    listener l;
    (void)state;
    listen_to_server(&l);
    kill_subscribers();
    publish("q", "one");
    listener_until_reconnects(&l, 1);
    publish("q", "two");
    EXPECT_MESSAGE(&l, 0, 2, EMQ_GAP_UNKNOWN, 1);
    listener_finish(&l);
}

static void a_restarted_server_is_found_again(void **state) {
    listener l;
    (void)state;
    listen_to_server(&l);
    publish("q", "one");
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    server_restart(&server);
    publish("q", "two");
    listener_until_reconnects(&l, 1);
    publish("q", "three");
    EXPECT_MESSAGE(&l, 1, 3, 1, 1);
    listener_finish(&l);
}

/* No attempt is made until it is asked for. */
static void a_refusal_is_told_once(void **state) {
    listener l;
    (void)state;
    const emq_client_options options = options_of_listener(CONNECT_WORDS " +subscribe");
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_REFUSED, EMQ_ENOPERM);
    assert_non_null(strstr(emq_events_async_get_error(l.events), "NOPERM"));
    int told = l.t.told;
    loop_rest(&l.t);
    assert_int_equal(l.t.told, told);
    run(server.admin, "ACL", "SETUSER", "listener", "&emq:{q}:events", NULL);
    assert_int_equal(emq_events_async_reconnect(l.events), EMQ_OK);
    listener_until_open(&l);
    publish("q", "one");
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    /* the whole path is walked again behind a loss, too */
    run(server.admin, "DEL", "{emq}:version", NULL);
    kill_subscribers();
    listener_until_told(&l, told, EMQ_ASYNC_REFUSED, EMQ_EFENCE_ABSENT);
    listener_finish(&l);
}

static void a_server_that_is_not_there_is_tried_again(void **state) {
    listener l;
    int reserved = -1;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    options.port = closed_port(&reserved);
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_CLOSED, EMQ_ECONNECT);
    listener_until_told(&l, l.t.told, EMQ_ASYNC_CLOSED, EMQ_ECONNECT);
    assert_int_equal(emq_events_async_get_reconnects(l.events), 0);
    listener_finish(&l);
    (void)close(reserved);
}

static void wrong_arguments_are_refused(void **state) {
    uv_loop_t loop;
    emq_events_async *events = (emq_events_async *)&server;
    listener l;
    emq_events_async_options own = listener_options(&l);
    emq_client_options options = options_for_server(&server);
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(emq_events_async_open(NULL, &loop, &options, "q", &own), EMQ_EINVAL);
    assert_int_equal(emq_events_async_open(&events, NULL, &options, "q", &own), EMQ_EINVAL);
    assert_null(events);
    assert_int_equal(emq_events_async_open(&events, &loop, &options, NULL, &own), EMQ_EINVAL);
    assert_int_equal(emq_events_async_open(&events, &loop, &options, "q", NULL), EMQ_EINVAL);
    assert_int_equal(emq_events_async_open(&events, &loop, &options, "a:b", &own), EMQ_EQUEUE);
    own.backoff_min_ms = 3;
    assert_int_equal(emq_events_async_open(&events, &loop, &options, "q", &own), EMQ_EINVAL);
    own = listener_options(&l);
    own.on_event = NULL;
    assert_int_equal(emq_events_async_open(&events, &loop, &options, "q", &own), EMQ_EINVAL);
    own = listener_options(&l);
    own.size = 1;
    assert_int_equal(emq_events_async_open(&events, &loop, &options, "q", &own), EMQ_EINVAL);
    own = listener_options(&l);
    options.database = -1;
    assert_int_equal(emq_events_async_open(&events, &loop, &options, "q", &own), EMQ_EINVAL);
    assert_null(events);
    assert_int_equal(emq_events_async_close(NULL, NULL, NULL), EMQ_EINVAL);
    assert_int_equal(emq_events_async_reconnect(NULL), EMQ_EINVAL);
    assert_int_equal(emq_events_async_get_state(NULL), EMQ_ASYNC_CLOSED);
    assert_int_equal(emq_events_async_get_reconnects(NULL), 0);
    assert_string_equal(emq_events_async_get_error(NULL), "");
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* Scripted peers. */

static void listen_to_peer(listener *l, const peer *p) {
    const emq_client_options options = options_for_peer(p);
    listener_open(l, &options, "q");
}

/* Messages that come with the confirmation, in one read or byte by byte, are not lost, and come
 * behind the state. */
static void expect_open_before(listener *l) {
    assert_int_equal(l->t.told, 2);
}

static void messages_right_behind_the_confirmation_count(void **state) {
    (void)state;
    for (int is_dripped = 0; is_dripped < 2; is_dripped++) {
        listener l;
        peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS("")}};
        script.steps[3] = (peer_step){is_dripped ? PEER_DRIP : PEER_SEND,
                                      PEER_SUBSCRIBED PEER_EVENT("17") PEER_EVENT("19"), 0};
        peer *p = peer_start(&script);
        listen_to_peer(&l, p);
        l.on_event = expect_open_before;
        EXPECT_MESSAGE(&l, 0, 17, 0, 0);
        EXPECT_MESSAGE(&l, 1, 19, 1, 0);
        char *sent = peer_command(p, PEER_HANDSHAKE_COMMANDS);
        assert_string_equal(sent, "SUBSCRIBE emq:{q}:events");
        free(sent);
        listener_finish(&l);
        peer_stop(p);
    }
}

/* Each is dropped and told, and the subscription goes on over the same connection. */
static void what_is_no_message_is_dropped(void **state) {
    listener l;
    (void)state;
    peer *p = start_pusher(PEER_SUBSCRIBED PEER_EVENT("10"));
    listen_to_peer(&l, p);
    EXPECT_MESSAGE(&l, 0, 10, 0, 0);
    for (int i = 0; not_messages[i] != NULL; i++) {
        char right[64];
        push(p, not_messages[i]);
        (void)snprintf(right, sizeof(right), "{\"event\":\"e\",\"job\":\"j\",\"seq\":%d}",
                       12 + 2 * i);
        push(p, right);
        EXPECT_MESSAGE(&l, 2 + 2 * i, 12 + 2 * i, 1, 0);
        assert_int_equal(l.results[1 + 2 * i], EMQ_EPROTOCOL);
    }
    assert_int_equal(peer_connections(p), 1);
    listener_finish(&l);
    peer_stop(p);
}

/* Behind what is no push at all nothing is believed. */
static void a_peer_that_breaks_the_protocol_is_left(void **state) {
    (void)state;
    for (int i = 0; not_pushes[i] != NULL; i++) {
        listener l;
        peer *p = start_pusher(PEER_SUBSCRIBED PEER_EVENT("10"));
        listen_to_peer(&l, p);
        EXPECT_MESSAGE(&l, 0, 10, 0, 0);
        peer_act(p, (peer_step){PEER_SEND, not_pushes[i], 0});
        /* the script begins anew */
        EXPECT_MESSAGE(&l, 1, 10, EMQ_GAP_UNKNOWN, 1);
        listener_until_told(&l, 0, EMQ_ASYNC_CLOSED, EMQ_EPROTOCOL);
        assert_int_equal(peer_connections(p), 2);
        listener_finish(&l);
        peer_stop(p);
    }
}

static void a_wrong_confirmation_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; not_confirmations[i].bytes != NULL; i++) {
        listener l;
        peer *p = start_pusher(not_confirmations[i].bytes);
        listen_to_peer(&l, p);
        listener_until_told(&l, 0, EMQ_ASYNC_REFUSED, not_confirmations[i].result);
        assert_int_equal(l.messages, 0);
        listener_finish(&l);
        peer_stop(p);
    }
}

/* Each attempt has its deadline, also where only the confirmation is missing. */
static void a_confirmation_that_does_not_come(void **state) {
    listener l;
    (void)state;
    peer_script script = {.steps = {PEER_HANDSHAKE}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.connect_timeout_ms = SHORT_MS;
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
    listener_finish(&l);
    peer_stop(p);
}

static void a_peer_that_closes_behind_the_confirmation(void **state) {
    listener l;
    (void)state;
    peer_script script = {.steps = {PEER_HANDSHAKE, {PEER_SEND_AND_CLOSE, PEER_SUBSCRIBED, 0}}};
    peer *p = peer_start(&script);
    listen_to_peer(&l, p);
    loop_until_connections(&l.t, p, 4);
    listener_finish(&l);
    peer_stop(p);
}

/* One by one, and the loop has its turn. It ends with a close. */
static void floods_are_taken_one_by_one(void **state) {
    static const char *const floods[] = {PEER_EVENT("10"), PEER_MESSAGE "$1\r\n?\r\n"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        listener l;
        peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(PEER_SUBSCRIBED)}};
        script.steps[4] = (peer_step){PEER_FLOOD, floods[i], 0};
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        options.command_timeout_ms = SHORT_MS; /* the flood begins when the connection is tested */
        listener_open(&l, &options, "q");
        listener_until_messages(&l, 20000);
        loop_rest(&l.t);
        assert_int_equal(l.dropped, i == 0 ? 0 : l.messages);
        assert_int_equal(emq_events_async_get_reconnects(l.events), 0);
        listener_finish(&l);
        peer_stop(p);
    }
}

/* One that has been announced as larger than any message: it is given up in the middle. */
static void a_push_that_is_too_large_costs_the_connection(void **state) {
    static char zeros[256 * 1024];
    listener l;
    (void)state;
    memset(zeros, '0', sizeof(zeros));
    peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(PEER_SUBSCRIBED "$400000000\r\n")}};
    script.steps[4] = (peer_step){PEER_FLOOD, zeros, sizeof(zeros)};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.command_timeout_ms = SHORT_MS; /* the flood begins when the connection is tested */
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_CLOSED, EMQ_EPROTOCOL);
    assert_non_null(strstr(emq_events_async_get_error(l.events), "bytes at once"));
    assert_int_equal(l.messages, 0);
    listener_finish(&l);
    peer_stop(p);
}

static void an_endless_word_holds_nobody_up(void **state) {
    char bytes[2048];
    listener l;
    (void)state;
    int n = snprintf(bytes, sizeof(bytes), "%s+%01000d", PEER_SUBSCRIBED, 0);
    peer_script script = {.steps = {PEER_HANDSHAKE, {PEER_DRIP, bytes, (size_t)n}}};
    peer *p = peer_start(&script);
    listen_to_peer(&l, p);
    listener_until_open(&l);
    loop_rest(&l.t);
    assert_int_equal(emq_events_async_get_state(l.events), EMQ_ASYNC_OPEN);
    assert_int_equal(l.messages, 0);
    listener_finish(&l);
    peer_stop(p);
}

/* A peer that has gone silent is asked, and left when it does not answer. */
static void silence_is_noticed(void **state) {
    listener l;
    (void)state;
    peer *p = start_pusher(PEER_SUBSCRIBED);
    emq_client_options options = options_for_peer(p);
    options.command_timeout_ms = 50;
    listener_open(&l, &options, "q");
    listener_until_reconnects(&l, 1);
    listener_until_told(&l, 0, EMQ_ASYNC_CLOSED, EMQ_ECONNECT);
    char *sent = peer_command(p, PEER_HANDSHAKE_COMMANDS + 1);
    assert_string_equal(sent, "SUBSCRIBE emq:{q}:events");
    free(sent);
    listener_finish(&l);
    peer_stop(p);
}

/* One that answers stays, however little it has to say. */
static void silence_of_a_server_is_no_loss(void **state) {
    listener l;
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.command_timeout_ms = 1000;
    run(server.admin, "CONFIG", "RESETSTAT", NULL);
    listener_open(&l, &options, "q");
    listener_until_open(&l);
    loop_until(&l.t, listeners_were_tested, &server);
    publish("q", "one");
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    assert_int_equal(emq_events_async_get_reconnects(l.events), 0);
    listener_finish(&l);
}

/* On a Unix socket, what is written to this peer fails at once, while it goes on sending. */
static void a_flood_on_a_connection_that_takes_nothing(void **state) {
    char path[SERVER_PATH_MAX + 8];
    listener l;
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/deaf", server.dir);
    peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(PEER_SUBSCRIBED)},
                          .unix_path = path};
    peer *p = peer_start(&script);
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.unix_path = path;
    options.command_timeout_ms = 50;
    listener_open(&l, &options, "q");
    listener_until_open(&l);
    peer_act(p, (peer_step){PEER_DEAF, NULL, 0});
    peer_act(p, (peer_step){PEER_SEND, PEER_EVENT("11") PEER_EVENT("12") PEER_EVENT("13"), 0});
    listener_until_reconnects(&l, 1);
    listener_finish(&l);
    peer_stop(p);
    (void)unlink(path);
}

/* Closing, in every state. */

static void before_the_loop_has_run(void **state) {
    listener l;
    (void)state;
    const emq_client_options options = options_for_server(&server);
    listener_open(&l, &options, "q");
    listener_close(&l);
    listener_finish(&l);
    assert_int_equal(l.t.told, 0);
}

static void while_it_resolves(void **state) {
    listener l;
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.host = "localhost";
    options.port = (uint16_t)server.port;
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_CONNECTING, EMQ_OK);
    listener_close(&l);
    listener_finish(&l);
    assert_int_equal(l.t.told, 1);
}

static void while_it_connects(void **state) {
    int sockets[2];
    listener l;
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = deaf_port(sockets);
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_CONNECTING, EMQ_OK);
    loop_rest(&l.t);
    listener_finish(&l);
    assert_int_equal(l.t.told, 1);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
}

/* AUTH, what is asked behind it, and SUBSCRIBE: each is waited for. */
static void on_each_step_of_the_path(void **state) {
    static const peer_script scripts[] = {
        {.steps = {{PEER_HOLD, NULL, 0}}},
        {.steps = {PEER_SENDS(PEER_OK), PEER_SENDS(PEER_OK), {PEER_HOLD, NULL, 0}}},
        {.steps = {PEER_SENDS(PEER_OK), PEER_HANDSHAKE, {PEER_HOLD, NULL, 0}}},
    };
    static const int commands[] = {1, 4, 5};
    (void)state;
    for (int i = 0; i < 3; i++) {
        listener l;
        peer *p = peer_start(&scripts[i]);
        emq_client_options options = options_for_peer(p);
        options.password = "password";
        listener_open(&l, &options, "q");
        loop_until_commands(&l.t, p, commands[i]);
        listener_close(&l);
        listener_finish(&l);
        assert_int_equal(l.t.told, 1);
        peer_stop(p);
    }
}

static void while_it_rests(void **state) {
    listener l;
    int reserved = -1;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    options.port = closed_port(&reserved);
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_CLOSED, EMQ_ECONNECT);
    listener_finish(&l);
    (void)close(reserved);
}

static void while_it_is_refused(void **state) {
    listener l;
    (void)state;
    run(server.admin, "DEL", "{emq}:version", NULL);
    const emq_client_options options = options_for_server(&server);
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_REFUSED, EMQ_EFENCE_ABSENT);
    listener_finish(&l);
}

/* More messages have come in by then, which nobody is told of. */
static void inside_of_a_message(void **state) {
    listener l;
    (void)state;
    peer *p = start_pusher(PEER_SUBSCRIBED PEER_EVENT("11") PEER_EVENT("12") PEER_EVENT("13"));
    listen_to_peer(&l, p);
    l.on_event = listener_close;
    loop_until(&l.t, listener_is_closed, &l);
    assert_int_equal(l.messages, 1);
    listener_finish(&l);
    peer_stop(p);
}

static emq_async_state close_in;

static void close_in_state(listener *l) {
    if (l->t.states[l->t.told - 1] == close_in) {
        listener_close(l);
    }
}

static void inside_of_each_state(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        listener l;
        close_in = (emq_async_state)i;
        peer *p = start_pusher(close_in == EMQ_ASYNC_REFUSED ? "-NOPERM no\r\n"
                                                             : PEER_SUBSCRIBED PEER_EVENT("11"));
        listen_to_peer(&l, p);
        l.on_state = close_in_state;
        if (close_in == EMQ_ASYNC_CLOSED) {
            listener_until_open(&l);
            peer_act(p, (peer_step){PEER_CLOSE, NULL, 0});
        }
        loop_until(&l.t, listener_is_closed, &l);
        assert_int_equal(l.t.states[l.t.told - 1], close_in);
        listener_finish(&l);
        peer_stop(p);
    }
}

static void reconnect_once(listener *l) {
    if (emq_events_async_get_reconnects(l->events) == 0) {
        assert_int_equal(emq_events_async_reconnect(l->events), EMQ_OK);
    }
}

/* What had come in behind the message is dropped with the connection. */
static void a_message_may_reconnect(void **state) {
    listener l;
    (void)state;
    peer *p = start_pusher(PEER_SUBSCRIBED PEER_EVENT("11") PEER_EVENT("13"));
    listen_to_peer(&l, p);
    l.on_event = reconnect_once;
    EXPECT_MESSAGE(&l, 0, 11, 0, 0);
    EXPECT_MESSAGE(&l, 1, 11, EMQ_GAP_UNKNOWN, 1);
    EXPECT_MESSAGE(&l, 2, 13, 1, 0);
    listener_finish(&l);
    peer_stop(p);
}

/* Forks. */

static void note_close(void *user) {
    int *closes = user;
    (*closes)++;
}

/* With the loop made its own, nothing comes; and the copy can be freed. */
static void use_in_child(void *data) {
    listener *l = data;
    int closes = 0;
    int told = l->t.told;
    CHECK_IN_CHILD(uv_loop_fork(&l->t.loop) == 0);
    for (int i = 0; i < 20; i++) {
        (void)uv_run(&l->t.loop, UV_RUN_ONCE);
    }
    CHECK_IN_CHILD(emq_events_async_get_state(l->events) == EMQ_ASYNC_CLOSED);
    CHECK_IN_CHILD(strcmp(emq_events_async_get_error(l->events), emq_strerror(EMQ_EFORKED)) == 0);
    CHECK_IN_CHILD(emq_events_async_reconnect(l->events) == EMQ_EFORKED);
    CHECK_IN_CHILD(l->messages == 1 && l->t.told == told);
    CHECK_IN_CHILD(emq_events_async_close(l->events, note_close, &closes) == EMQ_OK);
    uv_close((uv_handle_t *)&l->t.pulse, NULL);
    CHECK_IN_CHILD(uv_run(&l->t.loop, UV_RUN_DEFAULT) == 0);
    CHECK_IN_CHILD(closes == 1 && l->messages == 1);
    CHECK_IN_CHILD(uv_loop_close(&l->t.loop) == 0);
}

static void a_child_has_no_part_in_it(void **state) {
    listener l;
    (void)state;
    const emq_client_options options = options_for_server(&server);
    listener_open(&l, &options, "q");
    listener_until_open(&l);
    publish("q", "one");
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    publish("q", "two");
    run_child(use_in_child, &l); /* with that message unread */
    EXPECT_MESSAGE(&l, 1, 2, 0, 0);
    assert_int_equal(emq_events_async_get_reconnects(l.events), 0);
    listener_finish(&l);
}

static int is_open(void *data) {
    const listener *l = data;
    return emq_events_async_get_state(l->events) == EMQ_ASYNC_OPEN;
}

static int has_heard(void *data) {
    const listener *l = data;
    return l->messages > 0;
}

/* Several on one loop, beside a client. */
static void many_share_a_loop(void **state) {
    enum { LISTENERS = 8 };
    listener l[LISTENERS];
    outcome out = {0};
    test_loop t;
    (void)state;
    const emq_client_options options = options_for_server(&server);
    loop_open(&t, &options, NULL);
    for (int i = 0; i < LISTENERS; i++) {
        memset(&l[i], 0, sizeof(l[i]));
        const emq_events_async_options own = listener_options(&l[i]);
        assert_int_equal(emq_events_async_open(&l[i].events, &t.loop, &options, "q", &own), EMQ_OK);
    }
    for (int i = 0; i < LISTENERS; i++) {
        loop_until(&t, is_open, &l[i]);
    }
    emq_request *request = NULL;
    assert_int_equal(
        emq_request_publish(&request, "q", (emq_bytes){"e", 1}, (emq_bytes){"j", 1}, NULL, 0),
        EMQ_OK);
    loop_submit(&t, request, &out);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    for (int i = 0; i < LISTENERS; i++) {
        loop_until(&t, has_heard, &l[i]);
        listener_close(&l[i]);
        loop_until(&t, listener_is_closed, &l[i]);
        emq_event_free(l[i].last);
    }
    loop_finish(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(messages_come_as_they_were_published, clean_server),
        cmocka_unit_test_setup(a_large_message_comes_whole, clean_server),
        cmocka_unit_test_setup(a_cut_connection_leaves_a_gap, clean_server),
        cmocka_unit_test_setup(a_loss_before_the_first_message_is_told, clean_server),
        cmocka_unit_test_setup(a_restarted_server_is_found_again, clean_server),
        cmocka_unit_test_setup(a_refusal_is_told_once, clean_server),
        cmocka_unit_test(a_server_that_is_not_there_is_tried_again),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(messages_right_behind_the_confirmation_count),
        cmocka_unit_test(what_is_no_message_is_dropped),
        cmocka_unit_test(a_peer_that_breaks_the_protocol_is_left),
        cmocka_unit_test(a_wrong_confirmation_is_refused),
        cmocka_unit_test(a_confirmation_that_does_not_come),
        cmocka_unit_test(a_peer_that_closes_behind_the_confirmation),
        cmocka_unit_test(floods_are_taken_one_by_one),
        cmocka_unit_test(a_push_that_is_too_large_costs_the_connection),
        cmocka_unit_test(an_endless_word_holds_nobody_up),
        cmocka_unit_test(silence_is_noticed),
        cmocka_unit_test_setup(silence_of_a_server_is_no_loss, clean_server),
        cmocka_unit_test(a_flood_on_a_connection_that_takes_nothing),
        cmocka_unit_test_setup(before_the_loop_has_run, clean_server),
        cmocka_unit_test_setup(while_it_resolves, clean_server),
        cmocka_unit_test(while_it_connects),
        cmocka_unit_test(on_each_step_of_the_path),
        cmocka_unit_test(while_it_rests),
        cmocka_unit_test_setup(while_it_is_refused, clean_server),
        cmocka_unit_test(inside_of_a_message),
        cmocka_unit_test(inside_of_each_state),
        cmocka_unit_test(a_message_may_reconnect),
        cmocka_unit_test_setup(a_child_has_no_part_in_it, clean_server),
        cmocka_unit_test_setup(many_share_a_loop, clean_server),
    };
    return RUN_SERVER_TESTS("events_async", tests, start_server, stop_server);
}
