/* SPDX-License-Identifier: Apache-2.0 */
#include "server_fixture.h"

#include <string.h>

#include "command.h"

test_server server;

int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    return 0;
}

int stop_server(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

int clean_server(void **state) {
    (void)state;
    run(server.admin, "FLUSHALL", NULL);
    run(server.admin, "EMQ.INSTALL", "1", "{emq}:version", NULL);
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    return 0;
}

int a_claim_waits(void *data) {
    char text[32];
    (void)data;
    return strcmp(get_info(text, sizeof(text), server.admin, "emq", "emq_blocked_claims"), "1") ==
           0;
}

void let_lapse(const char *id) {
    run(server.admin, "ZADD", "emq:{q}:active", "1", id, NULL);
}
