/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client with a password file that is not to be read in time, as on a network disk
 * that has gone: the loop goes on, an attempt has its deadline, one reading at a time runs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async.h"
#include "gate.h"
#include "loop.h"

#define SLOW "emq-test-slow"

static gate disk = GATE_INIT;

typedef int (*open_fn)(const char *, int, ...);

/* In front of the C library's. */
EMQ_API int open(const char *path, int flags, ...) {
    open_fn real = NULL;
    va_list rest;
    mode_t mode = 0;
    *(void **)(&real) = dlsym(RTLD_NEXT, "open");
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (strstr(path, SLOW) != NULL) {
        gate_pass(&disk);
    }
    return real(path, flags, mode);
}

static char file_name[64];

static int write_file(void **state) {
    (void)state;
    (void)snprintf(file_name, sizeof(file_name), "/tmp/" SLOW ".%ld", (long)getpid());
    FILE *file = fopen(file_name, "w");
    assert_non_null(file);
    assert_true(fputs("password\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    gate_hold(&disk);
    return 0;
}

static int remove_file(void **state) {
    (void)state;
    gate_open(&disk);
    (void)unlink(file_name);
    return 0;
}

static peer *start_peer(void) {
    const peer_script script = {
        .steps = {PEER_SENDS("+OK\r\n"), PEER_HANDSHAKE, PEER_SENDS("+PONG\r\n")}};
    return peer_start(&script);
}

static emq_client_options options_with_file(const peer *p, uint32_t connect_timeout_ms) {
    emq_client_options options = options_for_peer(p);
    options.password_file = file_name;
    options.connect_timeout_ms = connect_timeout_ms;
    return options;
}

static void expect_command(peer *p, const char *want) {
    char *command = peer_command(p, 0);
    assert_string_equal(command, want);
    free(command);
}

/* The request is answered behind an AUTH with the password of the file, and all is over. */
static void expect_served(test_loop *t, outcome *out, peer *p) {
    loop_until_ended(t, out, 1);
    EXPECT_OUTCOME(out, EMQ_OK);
    expect_command(p, "AUTH password");
    outcome_clear(out);
    loop_finish(t);
    peer_stop(p);
}

static void the_loop_goes_on_meanwhile(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer();
    emq_client_options options = options_with_file(p, LONG_MS);
    loop_open(&t, &options, &loop_short_pause);
    loop_submit(&t, ping_request(), &out);
    loop_until(&t, gate_is_reached, &disk);
    loop_rest(&t);
    assert_int_equal(out.calls, 0);
    assert_int_equal(peer_connections(p), 0);
    gate_open(&disk);
    expect_served(&t, &out, p);
}

static int is_told_enough(void *data) {
    const test_loop *t = data;
    return t->told >= 8;
}

/* Attempts come and go, and wait for the one reading; it serves the attempt of that time. */
static void one_reading_serves_many_attempts(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer();
    emq_client_options options = options_with_file(p, 100);
    loop_open(&t, &options, &loop_short_pause);
    loop_submit(&t, ping_request(), &out);
    loop_until(&t, is_told_enough, &t);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
    assert_non_null(strstr(emq_async_get_error(t.client), "files"));
    assert_int_equal(gate_arrived(&disk), 1);
    gate_open(&disk);
    expect_served(&t, &out, p);
}

/* The client is there until the file is read, and not a step longer. */
static void closed_while_it_is_read(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = start_peer();
    emq_client_options options = options_with_file(p, LONG_MS);
    loop_open(&t, &options, NULL);
    loop_submit(&t, ping_request(), &out);
    loop_until(&t, gate_is_reached, &disk);
    loop_close_waits(&t);
    gate_open(&disk);
    loop_finish(&t);
    EXPECT_OUTCOME(&out, EMQ_ECLOSED);
    assert_int_equal(peer_connections(p), 0);
    peer_stop(p);
}

/* More clients than libuv has threads. */
static void a_reading_that_has_not_begun_is_canceled(void **state) {
    enum { CLIENTS = 8 };
    test_loop t[CLIENTS];
    (void)state;
    peer *p = start_peer();
    emq_client_options options = options_with_file(p, LONG_MS);
    for (int i = 0; i < CLIENTS; i++) {
        loop_open(&t[i], &options, NULL);
        loop_rest(&t[i]);
    }
    int begun = gate_arrived(&disk);
    assert_in_range(begun, 1, CLIENTS - 1);
    for (int i = 0; i < CLIENTS; i++) {
        loop_close_client(&t[i]);
    }
    gate_open(&disk);
    for (int i = 0; i < CLIENTS; i++) {
        loop_finish(&t[i]);
    }
    assert_int_equal(gate_arrived(&disk), begun);
    peer_stop(p);
}

static int is_at_second(void *data) {
    const test_loop *t = data;
    return t->client->session.search.current == 1 && t->client->session.stage == EMQ_STAGE_LOADING;
}

/* The file of the sentinels' password is still being read when the one of the servers is wanted:
 * neither is taken for the other one. */
static void each_side_gets_its_own_password(void **state) {
    test_loop t;
    outcome out = {0};
    char list[64];
    char names[64];
    (void)state;
    peer *p = start_peer();
    (void)snprintf(names, sizeof(names), "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%u\r\n",
                   snprintf(NULL, 0, "%u", peer_port(p)), peer_port(p));
    const peer_script asks = {.steps = {PEER_SENDS("+OK\r\n"), {PEER_SEND, names, 0}}};
    peer *sentinel = peer_start(&asks);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u,127.0.0.1:%u", peer_port(sentinel),
                   peer_port(sentinel));
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.sentinels = list;
    options.primary_name = "main";
    options.sentinel_password_file = file_name;
    options.password = "data";
    options.connect_timeout_ms = LONG_MS;
    loop_open(&t, &options, &loop_short_pause);
    loop_submit(&t, ping_request(), &out);
    loop_until(&t, gate_is_reached, &disk);
    t.client->session.connect_by = emq_deadline_in(0); /* its share of the time is over */
    emq_session_on_step(&t.client->session.step);
    loop_until(&t, is_at_second, &t);
    gate_open(&disk);
    loop_until_commands(&t, p, 1);
    expect_command(sentinel, "AUTH password");
    expect_command(p, "AUTH data");
    loop_finish(&t);
    outcome_clear(&out);
    peer_stop(sentinel);
    peer_stop(p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, write_file, remove_file)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_loop_goes_on_meanwhile),      TEST(one_reading_serves_many_attempts),
        TEST(closed_while_it_is_read),         TEST(a_reading_that_has_not_begun_is_canceled),
        TEST(each_side_gets_its_own_password),
    };
    return cmocka_run_group_tests_name("async password", tests, NULL, NULL);
}
