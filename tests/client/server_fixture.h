/* SPDX-License-Identifier: Apache-2.0 */
/* The one server of a test program, as fixtures of cmocka. */
#ifndef EMQ_TESTS_CLIENT_SERVER_FIXTURE_H
#define EMQ_TESTS_CLIENT_SERVER_FIXTURE_H

#include "fixture.h"

extern test_server server;

/* Of the group. */
int start_server(void **state);
int stop_server(void **state);

/* Of a test: no data but the fence, and an empty log of refusals. */
int clean_server(void **state);

/* A claim waits on the server, for wait_until. */
int a_claim_waits(void *data);

/* Makes the lease of a job of queue `q` one that has lapsed. */
void let_lapse(const char *id);

#endif
