/* SPDX-License-Identifier: Apache-2.0 */
/* No memory that libemq gives back has the password in it: each block is looked at when it is let
 * go of, with both clients, whether they get in or not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocator.h"
#include "command.h"
#include "loop.h"
#include "server_fixture.h"

#define PASSWORD "a-password-that-nobody-else-has"
#define REPEATED 100000 /* more than a socket takes when nobody reads */

static int start_with_password(void **state) {
    (void)start_server(state);
    run(server.admin, "ACL", "SETUSER", "right", "on", ">" PASSWORD, "~*", "&*", "+@all", NULL);
    run(server.admin, "ACL", "SETUSER", "wrong", "on", ">another", "~*", "&*", "+@all", NULL);
    return 0;
}

static emq_client_options options_of_user(const char *user) {
    emq_client_options options = options_for_server(&server);
    options.username = user;
    options.password = PASSWORD;
    return options;
}

static emq_client_options with_password(emq_client_options options) {
    options.password = PASSWORD;
    return options;
}

static void expect_nothing_seen(void) {
    long blocks = allocator_seen();
    allocator_watch(NULL);
    assert_int_equal(blocks, 0);
}

static void expect_wiped(const emq_client_options *options, int want) {
    emq_client *client = NULL;
    allocator_watch(PASSWORD);
    int result = emq_client_open(&client, options);
    EXPECT_RESULT(client, result, want);
    if (result == EMQ_OK) {
        emq_id id = {{0}};
        EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "x", 1), EMQ_OK);
    }
    emq_client_close(client);
    expect_nothing_seen();
}

static void expect_wiped_async(const emq_client_options *options, emq_async_state state,
                               int reason) {
    test_loop t;
    allocator_watch(PASSWORD);
    loop_open(&t, options, &loop_short_pause);
    loop_until_told(&t, state, reason);
    loop_finish(&t);
    expect_nothing_seen();
}

static void a_connect_that_goes_well_leaves_no_password(void **state) {
    const emq_client_options options = options_of_user("right");
    (void)state;
    expect_wiped(&options, EMQ_OK);
    expect_wiped_async(&options, EMQ_ASYNC_OPEN, EMQ_OK);
}

static void a_url_leaves_none(void **state) {
    char url[SERVER_PATH_MAX * 2];
    emq_client *client = NULL;
    (void)state;
    (void)snprintf(url, sizeof(url), "unix://right:" PASSWORD "@%s", server.socket);
    allocator_watch(PASSWORD);
    int result = emq_client_open_url(&client, url);
    EXPECT_RESULT(client, result, EMQ_OK);
    emq_client_close(client);
    expect_nothing_seen();
}

static void a_refused_one_leaves_none(void **state) {
    const emq_client_options options = options_of_user("wrong");
    (void)state;
    expect_wiped(&options, EMQ_EAUTH);
    expect_wiped_async(&options, EMQ_ASYNC_REFUSED, EMQ_EAUTH);
}

/* The peer says nothing to AUTH, or goes. */
static void one_that_is_not_answered_leaves_none(void **state) {
    static const peer_script script = {.steps = {{PEER_HOLD, NULL, 0}}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = with_password(options_for_peer(p));
    options.connect_timeout_ms = SHORT_MS;
    expect_wiped(&options, EMQ_ECONNTIMEOUT);
    expect_wiped_async(&options, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
    peer_stop(p);
}

static void one_that_is_cut_off_leaves_none(void **state) {
    static const peer_script script = {.steps = {{PEER_CLOSE, NULL, 0}}};
    (void)state;
    peer *p = peer_start(&script);
    const emq_client_options options = with_password(options_for_peer(p));
    expect_wiped(&options, EMQ_ECONNECT);
    expect_wiped_async(&options, EMQ_ASYNC_CLOSED, EMQ_ECONNECT);
    peer_stop(p);
}

/* Listens, and accepts nobody. */
static int listen_deafly(struct sockaddr_un *address) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path, sizeof(address->sun_path), "%s/deaf", server.dir);
    assert_true(fd >= 0 && n > 0 && (size_t)n < sizeof(address->sun_path));
    assert_int_equal(bind(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

static void one_that_sends_a_part_of_it_leaves_none(void **state) {
    struct sockaddr_un address;
    const size_t each = strlen(PASSWORD);
    char *large = malloc(each * REPEATED + 1);
    (void)state;
    assert_non_null(large);
    for (size_t i = 0; i < REPEATED; i++) {
        memcpy(large + i * each, PASSWORD, each + 1);
    }
    int fd = listen_deafly(&address);
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.unix_path = address.sun_path;
    options.password = large;
    options.connect_timeout_ms = SHORT_MS;
    expect_wiped(&options, EMQ_ECONNTIMEOUT);
    expect_wiped_async(&options, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
    (void)close(fd);
    free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connect_that_goes_well_leaves_no_password),
        cmocka_unit_test(a_url_leaves_none),
        cmocka_unit_test(a_refused_one_leaves_none),
        cmocka_unit_test(one_that_is_not_answered_leaves_none),
        cmocka_unit_test(one_that_is_cut_off_leaves_none),
        cmocka_unit_test(one_that_sends_a_part_of_it_leaves_none),
    };
    if (emq_set_allocator(allocator_counting()) != EMQ_OK) {
        (void)fputs("the allocator can't be set\n", stderr);
        return 1;
    }
    return RUN_SERVER_TESTS("client.wiping", tests, start_with_password, stop_server);
}
