/* SPDX-License-Identifier: Apache-2.0 */
/* TLS and memory. On the loop every allocation of libemq and of hiredis fails in turn on the way to
 * an open connection, OpenSSL's own do not. And no memory is given back with the password in it. */
#include <stdio.h>

#include "allocator.h"
#include "command.h"
#include "loop.h"
#include "tls_fixture.h"

#define PASSWORD "a-password-that-nobody-else-has"

static void open_path(void) {
    const emq_client_options options = tls_fixture_options("localhost");
    test_loop t;
    loop_open_without_memory(&t, &options);
}

static void opening_survives(void **state) {
    (void)state;
    allocator_fail_each("opening with TLS", open_path);
}

static void expect_nothing_seen(void) {
    long blocks = allocator_seen();
    allocator_watch(NULL);
    assert_int_equal(blocks, 0);
}

static void no_memory_is_given_back_with_the_password_in_it(void **state) {
    emq_client_options options = tls_fixture_options("localhost");
    emq_client *client = NULL;
    test_loop t;
    (void)state;
    options.password = PASSWORD;
    run(tls_server.admin, "CONFIG", "SET", "requirepass", PASSWORD, NULL);
    allocator_watch(PASSWORD);
    int result = emq_client_open(&client, &options);
    EXPECT_RESULT(client, result, EMQ_OK);
    emq_client_close(client);
    expect_nothing_seen();
    allocator_watch(PASSWORD);
    loop_open(&t, &options, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_finish(&t);
    expect_nothing_seen();
    run(tls_server.admin, "CONFIG", "SET", "requirepass", "", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives),
        cmocka_unit_test(no_memory_is_given_back_with_the_password_in_it),
    };
    if (emq_set_allocator(allocator_counting()) != EMQ_OK) {
        (void)fputs("the allocator can't be set\n", stderr);
        return 1;
    }
    return RUN_SERVER_TESTS("client.async_tls_memory", tests, tls_start_server, tls_stop_server);
}
