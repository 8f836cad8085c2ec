/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

emq_client_options options_for_server(const test_server *server) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.unix_path = server->socket;
    options.connect_timeout_ms = LONG_MS;
    options.command_timeout_ms = LONG_MS;
    return options;
}

emq_client_options options_for_peer(const peer *p) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = peer_port(p);
    options.connect_timeout_ms = LONG_MS;
    options.command_timeout_ms = LONG_MS;
    return options;
}

void expect_result(const char *file, int line, const emq_client *client, int got, int want) {
    if (got != want) {
        print_error("got %s '%s', want %s\n", emq_err_name(got), emq_client_get_error(client),
                    emq_err_name(want));
        _fail(file, line);
    }
    if ((got < 0) != (emq_client_get_error(client)[0] != '\0')) {
        print_error("%s has the sentence '%s'\n", emq_err_name(got), emq_client_get_error(client));
        _fail(file, line);
    }
}

void expect_says(const char *file, int line, const emq_client *client, const char *part) {
    if (strstr(emq_client_get_error(client), part) == NULL) {
        print_error("'%s' does not say '%s'\n", emq_client_get_error(client), part);
        _fail(file, line);
    }
}

void expect_open(const char *file, int line, const emq_client_options *options, int want,
                 const char *says) {
    emq_client *client = NULL;
    int result = emq_client_open(&client, options);
    expect_result(file, line, client, result, want);
    assert_non_null(client);
    assert_int_equal(emq_client_is_open(client), want == EMQ_OK);
    if (says != NULL) {
        expect_says(file, line, client, says);
    }
    emq_client_close(client);
}

emq_client *open_client(const emq_client_options *options) {
    emq_client *client = NULL;
    int result = emq_client_open(&client, options);
    EXPECT_RESULT(client, result, EMQ_OK);
    return client;
}

struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Bound and not listening: a connect is refused, and nobody else gets the port. */
static uint16_t bind_port(int *fd) {
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

uint16_t closed_port(int *reserved_socket) {
    return bind_port(reserved_socket);
}

/* The one place in its queue is taken: the kernel lets everybody else wait. */
uint16_t deaf_port(int sockets[2]) {
    uint16_t port = bind_port(&sockets[0]);
    const struct sockaddr_in address = loopback(port);
    assert_int_equal(listen(sockets[0], 0), 0);
    sockets[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(sockets[1], (const struct sockaddr *)&address, sizeof(address)), 0);
    return port;
}

void run_child(void (*body)(void *), void *data) {
    int status = -1;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        body(data);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) {
        fail_msg("the child's check failed, status %#x: signal %d, line %d and multiples of 256",
                 (unsigned)status, WTERMSIG(status), WEXITSTATUS(status));
    }
}

struct rlimit fixture_limit_descriptors(int room) {
    struct rlimit before;
    int next = dup(STDIN_FILENO); /* the lowest that is free */
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit less = {(rlim_t)(next + room), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    return before;
}

void fixture_restore_descriptors(struct rlimit before) {
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}
