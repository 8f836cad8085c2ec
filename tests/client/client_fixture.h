/* SPDX-License-Identifier: Apache-2.0 */
/* A client on the program's server for each test, as fixtures of cmocka. */
#ifndef EMQ_TESTS_CLIENT_CLIENT_FIXTURE_H
#define EMQ_TESTS_CLIENT_CLIENT_FIXTURE_H

#include "server_fixture.h"

extern emq_client *client;

int open_on_clean_server(void **state);
int close_client(void **state);

#endif
