/* SPDX-License-Identifier: Apache-2.0 */
/* Private servers for tests, through tools/server.sh. Every server that a test program started is
 * stopped when that program ends, however it ends: a guardian process outlives it and sees to it.
 *
 * The environment that ctest gives is used: EMQ_SOURCE_DIR, EMQ_MODULE, EMQ_SERVER_FLAVOUR. */
#ifndef EMQ_TESTS_SERVER_H
#define EMQ_TESTS_SERVER_H

#include <hiredis/hiredis.h>

#include "cmocka_all.h"

#define SERVER_PATH_MAX 512
#define SERVER_ARGUMENTS_MAX 32

/* So that the compiler sees a forgotten NULL at the end of a list. */
#if defined(__GNUC__)
#define NULL_AT_THE_END __attribute__((sentinel))
#else
#define NULL_AT_THE_END
#endif

typedef struct test_server {
    char dir[SERVER_PATH_MAX];
    char socket[SERVER_PATH_MAX];
    char log[SERVER_PATH_MAX];
    int port;
    long pid;
    redisContext *admin; /* a connection of the default user; open while the server runs */
    const char *arguments[SERVER_ARGUMENTS_MAX];
    int argument_count;
} test_server;

/* Starts a server with the module and the fence. The extra arguments of `tools/server.sh start` end
 * in NULL; `--dir`, `--flavour` and `--test` are given already. Fails the test when the server does
 * not start. The arguments are kept by reference, for a restart. */
void server_start(test_server *server, ...) NULL_AT_THE_END;

/* The same without the module: a server as an operator who forgot it would run it. */
void server_start_bare(test_server *server, ...) NULL_AT_THE_END;

/* A sentinel; what it watches is told by `--conf` lines. */
void server_start_sentinel(test_server *server, ...) NULL_AT_THE_END;

/* Tries to start one and expects that to fail; what server.sh and the server said is left in
 * `output` (NUL-terminated, cut to cap). */
void server_start_fails(char *output, size_t cap, ...) NULL_AT_THE_END;

/* Stops and removes it; does nothing when it isn't running. Fails the test when the server did not
 * end cleanly or a sanitizer reported something. */
void server_stop(test_server *server);

/* Ends it as a crash of its host would, and keeps its data for server_revive. */
void server_kill(test_server *server);
void server_revive(test_server *server);

/* Stops it, keeps its data, and starts it again with the same arguments. */
void server_restart(test_server *server);

/* The same by SIGKILL: what it did not get to its AOF is lost. */
void server_crash(test_server *server);

/* A new connection as the default user; the caller frees it. */
redisContext *server_connect(const test_server *server);

/* A new connection as a user who has exactly these ACL rules (words separated by spaces). */
redisContext *server_connect_as(const test_server *server, const char *user, const char *rules);

/* Waits until `done(data)` answers non-zero; fails the test after a minute. */
void wait_until(const char *what, int (*done)(void *data), void *data);

/* Runs a group of tests; the result of main. A server that did not end cleanly counts as a failure,
 * also when it was stopped in a group teardown. */
int run_server_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                     CMFixtureFunction setup, CMFixtureFunction teardown);

#define RUN_SERVER_TESTS(name, tests, setup, teardown)                                             \
    run_server_tests((name), (tests), sizeof(tests) / sizeof((tests)[0]), (setup), (teardown))

#endif
