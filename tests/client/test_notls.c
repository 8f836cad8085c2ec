/* SPDX-License-Identifier: Apache-2.0 */
/* A library without TLS: it says so at once, and connects to nobody. */
#include <stdio.h>
#include <string.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_is_refused_before_anything_is_connected),
    };
    return cmocka_run_group_tests_name("client.notls", tests, NULL, NULL);
}
