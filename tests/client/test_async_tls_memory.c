/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on the loop without memory: every allocation of libemq and of hiredis fails in turn on the
 * way to an open connection. OpenSSL's own do not. */
#include <stdio.h>

#include "allocator.h"
#include "loop.h"
#include "tls_fixture.h"

static void open_path(void) {
    const emq_client_options options = tls_fixture_options("localhost");
    test_loop t;
    loop_open_without_memory(&t, &options);
}

static void opening_survives(void **state) {
    (void)state;
    allocator_fail_each("opening with TLS", open_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives),
    };
    if (emq_set_allocator(allocator_counting()) != EMQ_OK) {
        (void)fputs("the allocator can't be set\n", stderr);
        return 1;
    }
    return RUN_SERVER_TESTS("client.async_tls_memory", tests, tls_start_server, tls_stop_server);
}
