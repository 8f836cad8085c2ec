/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker tells systemd, heard on a socket as systemd has it: ready, alive, stopping. Uses
 * the shared library, which is the one that is built with libsystemd. */
#include <emq/emq.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server.h"

#define PATIENCE_MS 120000

static test_server server;
static int listener = -1;

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

static int handle(emq_task *task, void *user) {
    (void)task;
    (void)user;
    return EMQ_TASK_COMPLETE;
}

static void listen_as_systemd(void) {
    char pid[32];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", server.dir);
    assert_true(n > 0 && (size_t)n < sizeof(address.sun_path));
    listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    assert_int_equal(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
    assert_int_equal(setenv("WATCHDOG_USEC", "300000", 1), 0);
    assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
}

/* Waits for this line; others may come before it. */
static void expect_line(const char *want) {
    char line[128];
    do {
        struct pollfd waited = {listener, POLLIN, 0};
        if (poll(&waited, 1, PATIENCE_MS) != 1) {
            fail_msg("waited in vain for %s", want);
        }
        ssize_t n = recv(listener, line, sizeof(line) - 1, 0);
        assert_true(n >= 0);
        line[n] = '\0';
    } while (strcmp(line, want) != 0);
}

static void systemd_is_told(void **state) {
    emq_client_options client = EMQ_CLIENT_OPTIONS_INIT;
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker *worker = NULL;
    (void)state;
    listen_as_systemd();
    client.unix_path = server.socket;
    options.systemd = 1;
    assert_int_equal(emq_worker_open(&worker, &client, &options), EMQ_OK);
    assert_int_equal(emq_worker_add(worker, "q", handle, NULL, NULL), EMQ_OK);
    assert_int_equal(emq_worker_start(worker), EMQ_OK);
    expect_line("READY=1");
    expect_line("WATCHDOG=1");
    expect_line("WATCHDOG=1");
    assert_int_equal(emq_worker_stop(worker, PATIENCE_MS), EMQ_OK);
    expect_line("STOPPING=1");
    emq_worker_free(worker);
    (void)close(listener);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(systemd_is_told)};
    return RUN_SERVER_TESTS("worker_systemd", tests, start_server, stop_server);
}
