/* SPDX-License-Identifier: Apache-2.0 */
/* What the client's tests share: options, clients that must open, results told by name. */
#ifndef EMQ_TESTS_CLIENT_FIXTURE_H
#define EMQ_TESTS_CLIENT_FIXTURE_H

#include <emq/emq.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "peer.h"
#include "server.h"

/* A deadline for calls that must not run into it, and one for those that must. */
#define LONG_MS 120000
#define SHORT_MS 300

emq_client_options options_for_server(const test_server *server);
emq_client_options options_for_peer(const peer *p);

/* Opens a client or fails the test. */
emq_client *open_client(const emq_client_options *options);

/* Tries to open and expects this result, with this in the sentence (NULL: anything). */
#define EXPECT_OPEN(options, want, says) expect_open(__FILE__, __LINE__, (options), (want), (says))

/* The result is this one; `client` gives its sentence when not. */
#define EXPECT_RESULT(client, got, want) expect_result(__FILE__, __LINE__, (client), (got), (want))

/* The client's sentence has this in it. */
#define EXPECT_SAYS(client, part) expect_says(__FILE__, __LINE__, (client), (part))

void expect_open(const char *file, int line, const emq_client_options *options, int want,
                 const char *says);
void expect_result(const char *file, int line, const emq_client *client, int got, int want);
void expect_says(const char *file, int line, const emq_client *client, const char *part);

/* Runs a child that must end with 0: else with the line of the check that failed. */
void run_child(void (*body)(void *), void *data);

/* An exit status has eight bits, of which 0 must not come out. */
#define CHECK_IN_CHILD(condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            _exit(__LINE__ % 256 != 0 ? __LINE__ % 256 : 1);                                       \
        }                                                                                          \
    } while (0)

struct sockaddr_in loopback(uint16_t port);

/* A port of 127.0.0.1 on which nobody listens, for as long as the socket is not closed. */
uint16_t closed_port(int *reserved_socket);

/* A port that accepts nothing: a connect to it waits. Ends when both sockets are closed. */
uint16_t deaf_port(int sockets[2]);

/* Leaves this process room for so many descriptors more, until it is given back. */
struct rlimit fixture_limit_descriptors(int room);
void fixture_restore_descriptors(struct rlimit before);

#endif
