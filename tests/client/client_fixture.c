/* SPDX-License-Identifier: Apache-2.0 */
#include "client_fixture.h"

emq_client *client;

int open_on_clean_server(void **state) {
    (void)clean_server(state);
    emq_client_options options = options_for_server(&server);
    client = open_client(&options);
    return 0;
}

int close_client(void **state) {
    (void)state;
    emq_client_close(client);
    client = NULL;
    return 0;
}
