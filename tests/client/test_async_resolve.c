/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client with a resolver that hangs: the loop goes on, an attempt has its
 * deadline, one look-up at a time runs, and closing does not wait for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "async.h"
#include "gate.h"
#include "loop.h"
#include "watch.h"

static gate resolver = GATE_INIT;

typedef int (*getaddrinfo_fn)(const char *, const char *, const struct addrinfo *,
                              struct addrinfo **);

/* In front of the C library's, for libuv, too. A name that ends in .test is 127.0.0.1. */
EMQ_API int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **out) {
    getaddrinfo_fn real = NULL;
    *(void **)(&real) = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strstr(host, ".test") == NULL || (hints->ai_flags & AI_NUMERICHOST) != 0) {
        return real(host, service, hints, out);
    }
    gate_pass(&resolver);
    return real("127.0.0.1", service, hints, out);
}

static peer *start_peer(void) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS("+PONG\r\n")}};
    return peer_start(&script);
}

static void open_by_name(test_loop *t, const peer *p, uint32_t connect_timeout_ms) {
    emq_client_options options = options_for_peer(p);
    options.host = "queue.test";
    options.connect_timeout_ms = connect_timeout_ms;
    loop_open(t, &options, &loop_short_pause);
}

static void the_loop_goes_on_meanwhile(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    gate_hold(&resolver);
    peer *p = start_peer();
    open_by_name(&t, p, LONG_MS);
    loop_submit(&t, ping_request(), &out);
    loop_until(&t, gate_is_reached, &resolver);
    loop_rest(&t);
    assert_int_equal(out.calls, 0);
    gate_open(&resolver);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_finish(&t);
    peer_stop(p);
}

static int is_told_enough(void *data) {
    const test_loop *t = data;
    return t->told >= 8;
}

/* Attempts come and go, and wait for the one look-up; its answer serves the attempt of that time.
 */
static void one_look_up_serves_many_attempts(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    gate_hold(&resolver);
    peer *p = start_peer();
    open_by_name(&t, p, 100);
    loop_submit(&t, ping_request(), &out);
    loop_until(&t, is_told_enough, &t);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
    assert_int_equal(gate_arrived(&resolver), 1);
    gate_open(&resolver);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_finish(&t);
    peer_stop(p);
}

static int is_gone(void *data) {
    const test_loop *t = data;
    return t->closes > 0;
}

static void closing_does_not_wait_for_it(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    gate_hold(&resolver);
    peer *p = start_peer();
    open_by_name(&t, p, LONG_MS);
    loop_submit(&t, ping_request(), &out);
    loop_until(&t, gate_is_reached, &resolver);
    loop_close_client(&t);
    loop_until(&t, is_gone, &t);
    EXPECT_OUTCOME(&out, EMQ_ECLOSED);
    gate_open(&resolver);
    loop_finish(&t); /* the answer is for nobody */
    assert_int_equal(peer_connections(p), 0);
    peer_stop(p);
}

/* More clients than libuv has threads: some look-ups have not begun when their client is closed. */
static void close_in_child(void *data) {
    test_loop *t = data;
    CHECK_IN_CHILD(emq_async_reconnect(t->client) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_async_close(t->client, NULL, NULL) == EMQ_OK);
}

/* The child has no thread that resolves, and takes nothing from the parent's. */
static void a_child_leaves_it_alone(void **state) {
    test_loop t;
    (void)state;
    const peer_script script = {.steps = {PEER_HANDSHAKE}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.host = "peer.test";
    gate_hold(&resolver);
    loop_open(&t, &options, &loop_short_pause);
    loop_until(&t, gate_is_reached, &resolver);
    run_child(close_in_child, &t);
    gate_open(&resolver);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_finish(&t);
    peer_stop(p);
}

static void a_look_up_that_has_not_begun_is_canceled(void **state) {
    enum { CLIENTS = 8 };
    test_loop t[CLIENTS];
    outcome outs[CLIENTS] = {{0}};
    (void)state;
    gate_hold(&resolver);
    peer *p = start_peer();
    for (int i = 0; i < CLIENTS; i++) {
        open_by_name(&t[i], p, LONG_MS);
        loop_submit(&t[i], ping_request(), &outs[i]);
        loop_rest(&t[i]);
    }
    for (int i = CLIENTS - 1; i >= 0; i--) {
        loop_close_client(&t[i]);
        loop_until(&t[i], is_gone, &t[i]);
        EXPECT_OUTCOME(&outs[i], EMQ_ECLOSED);
    }
    int begun = gate_arrived(&resolver);
    assert_in_range(begun, 1, CLIENTS - 1);
    gate_open(&resolver);
    for (int i = 0; i < CLIENTS; i++) {
        loop_finish(&t[i]);
    }
    assert_int_equal(gate_arrived(&resolver), begun);
    peer_stop(p);
}

static int is_at_second(void *data) {
    const test_loop *t = data;
    return t->client->session.search.current == 1 &&
           t->client->session.stage == EMQ_STAGE_RESOLVING;
}

/* The first sentinel's look-up hangs. When it ends at last, the second one is wanted by now. */
static void an_answer_is_not_taken_for_another_host(void **state) {
    const peer_script server_script = {
        .steps = {PEER_SENDS("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"), PEER_HANDSHAKE}};
    char list[64];
    test_loop t;
    (void)state;
    gate_hold(&resolver);
    peer *server = peer_start(&server_script);
    peer *first = start_peer();
    peer *second = start_liar("127.0.0.1", peer_port(server));
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)snprintf(list, sizeof(list), "first.test:%u,second.test:%u", peer_port(first),
                   peer_port(second));
    options.sentinels = list;
    options.primary_name = "main";
    options.connect_timeout_ms = 6000; /* a third of it is for the first */
    loop_open(&t, &options, &loop_short_pause);
    loop_until(&t, is_at_second, &t);
    gate_open(&resolver);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    assert_int_equal(peer_connections(first), 0);
    assert_int_equal(peer_connections(second), 1);
    loop_finish(&t);
    peer_stop(second);
    peer_stop(first);
    peer_stop(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_goes_on_meanwhile),
        cmocka_unit_test(one_look_up_serves_many_attempts),
        cmocka_unit_test(closing_does_not_wait_for_it),
        cmocka_unit_test(a_child_leaves_it_alone),
        cmocka_unit_test(a_look_up_that_has_not_begun_is_canceled),
        cmocka_unit_test(an_answer_is_not_taken_for_another_host),
    };
    return cmocka_run_group_tests_name("async_resolve", tests, NULL, NULL);
}
