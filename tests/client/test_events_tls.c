/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions over TLS, on a loop and off it. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "listener.h"
#include "tls_fixture.h"

#define LARGE ((size_t)1024 * 1024) /* many TLS records */

static int clean_server(void **state) {
    (void)state;
    run(tls_server.admin, "FLUSHALL", NULL);
    run(tls_server.admin, "SET", "{emq}:version", "echomq:6.0.0", NULL);
    return 0;
}

static void publish(const char *event) {
    run(tls_server.admin, "EMQ.PUBLISH", "1", "emq:{q}:", event, "j", NULL);
}

static void publish_large(void) {
    char *big = malloc(LARGE + 1);
    assert_non_null(big);
    memset(big, 'x', LARGE);
    big[LARGE] = '\0';
    publish(big);
    free(big);
}

static void messages_come_through(void **state) {
    listener l;
    size_t n = 0;
    (void)state;
    const emq_client_options options = tls_fixture_options("localhost");
    listener_open(&l, &options, "q");
    listener_until_open(&l);
    publish("one");
    publish_large();
    publish("three");
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    EXPECT_MESSAGE(&l, 2, 3, 0, 0);
    assert_string_equal(emq_event_get_event(l.last, NULL), "three");
    run(tls_server.admin, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    publish("four");
    listener_until_reconnects(&l, 1);
    publish_large();
    EXPECT_MESSAGE(&l, 3, 5, 1, 1);
    (void)emq_event_get_event(l.last, &n);
    assert_int_equal(n, LARGE);
    listener_finish(&l);
}

static void silence_is_tested(void **state) {
    listener l;
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.command_timeout_ms = 1000;
    run(tls_server.admin, "CONFIG", "RESETSTAT", NULL);
    listener_open(&l, &options, "q");
    listener_until_open(&l);
    loop_until(&l.t, listeners_were_tested, &tls_server);
    publish("one");
    EXPECT_MESSAGE(&l, 0, 1, 0, 0);
    assert_int_equal(emq_events_async_get_reconnects(l.events), 0);
    listener_finish(&l);
}

static void who_is_not_trusted_is_not_listened_to(void **state) {
    listener l;
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_server_name = "elsewhere.test";
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_REFUSED, EMQ_ETLS);
    listener_finish(&l);
}

static void it_is_closed_while_files_are_read(void **state) {
    listener l;
    (void)state;
    const emq_client_options options = tls_fixture_options("localhost");
    listener_open(&l, &options, "q");
    listener_until_told(&l, 0, EMQ_ASYNC_CONNECTING, EMQ_OK);
    listener_finish(&l);
    assert_int_equal(l.t.told, 1);
}

static void the_synchronous_one_as_well(void **state) {
    emq_events *events = NULL;
    emq_event *event = NULL;
    size_t n = 0;
    (void)state;
    const emq_client_options options = tls_fixture_options("localhost");
    assert_int_equal(emq_events_open(&events, &options, "q"), EMQ_OK);
    publish_large();
    assert_int_equal(emq_events_next(&event, events, LONG_MS), EMQ_OK);
    (void)emq_event_get_event(event, &n);
    assert_int_equal(n, LARGE);
    emq_event_free(event);
    emq_events_close(events);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(messages_come_through, clean_server),
        cmocka_unit_test_setup(silence_is_tested, clean_server),
        cmocka_unit_test(who_is_not_trusted_is_not_listened_to),
        cmocka_unit_test(it_is_closed_while_files_are_read),
        cmocka_unit_test_setup(the_synchronous_one_as_well, clean_server),
    };
    return RUN_SERVER_TESTS("events_tls", tests, tls_start_server, tls_stop_server);
}
