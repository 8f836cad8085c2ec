/* SPDX-License-Identifier: Apache-2.0 */
/* A library without TLS: it says so at once, and connects to nobody. */
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "fixture.h"

static void tls_is_refused_before_anything_is_connected(void **state) {
    static const peer_script script = {.greeting = {.action = PEER_HOLD}};
    emq_client *client = NULL;
    char url[64];
    char error[128];
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.tls = 1;
    EXPECT_OPEN(&options, EMQ_ENOTLS, "without TLS");
    assert_int_equal(emq_install(&options, error, sizeof(error)), EMQ_ENOTLS);
    assert_non_null(strstr(error, "without TLS"));
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%u", (unsigned)peer_port(p));
    assert_int_equal(emq_client_open_url(&client, url), EMQ_ENOTLS);
    assert_int_equal(emq_client_reconnect(client), EMQ_ENOTLS);
    EXPECT_SAYS(client, "without TLS");
    emq_client_close(client);
    assert_int_equal(emq_err_class(EMQ_ENOTLS), EMQ_CLASS_USAGE);
    assert_int_equal(peer_connections(p), 0);
    peer_stop(p);
}

/* In plain the password would be there for all to read. */
static void the_loop_has_no_tls_either(void **state) {
    static const peer_script script = {.greeting = {.action = PEER_HOLD}};
    uv_loop_t loop;
    emq_async *client = NULL;
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.tls = 1;
    options.password = "SECRET";
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(emq_async_open(&client, &loop, &options, NULL), EMQ_ENOTLS);
    assert_null(client);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(peer_connections(p), 0);
    peer_stop(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_is_refused_before_anything_is_connected),
        cmocka_unit_test(the_loop_has_no_tls_either),
    };
    return cmocka_run_group_tests_name("client.notls", tests, NULL, NULL);
}
