/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting: each address in turn, with a share of the time that is left, so that one that
 * swallows everything does not use up what the others need. */
#include "dial.h"

#include <emq/error.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "resolve.h"

#define TIMED_OUT ETIMEDOUT
#define UNIX_RETRY_MS 10

static int open_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Waits for a started connect; returns 0 or an errno. */
static int await_connected(int fd, emq_deadline deadline) {
    int events = emq_poll(fd, POLLOUT, deadline);
    if (events == 0) {
        return TIMED_OUT;
    }
    int failure = 0;
    socklen_t length = sizeof(failure);
    if (events < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0) {
        return errno;
    }
    return failure;
}

/* Connects; returns 0 or an errno. */
static int connect_socket(int fd, const struct sockaddr *address, socklen_t length,
                          emq_deadline deadline) {
    if (connect(fd, address, length) == 0) {
        return 0;
    }
    /* an interrupted connect goes on by itself */
    return errno == EINPROGRESS || errno == EINTR ? await_connected(fd, deadline) : errno;
}

/* A connect to a closed port of the ephemeral range can meet itself. Such a connection echoes what
 * is sent, and keeps the server from its own port. */
static int is_connected_to_itself(int fd) {
    struct sockaddr_storage own;
    struct sockaddr_storage peer;
    socklen_t own_length = sizeof(own);
    socklen_t peer_length = sizeof(peer);
    memset(&own, 0, sizeof(own));
    memset(&peer, 0, sizeof(peer));
    return getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0 &&
           own_length == peer_length && memcmp(&own, &peer, own_length) == 0;
}

/* Both help, neither is needed: a failure is no reason to refuse the connection. */
static void tune_tcp(int fd) {
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* Tries one address; returns 0 and sets *fd, or an errno. */
static int dial_address(int *fd, const struct addrinfo *address, emq_deadline deadline) {
    int opened = open_socket(address->ai_family);
    if (opened < 0) {
        return errno;
    }
    int failure = connect_socket(opened, address->ai_addr, address->ai_addrlen, deadline);
    if (failure == 0 && is_connected_to_itself(opened)) {
        failure = ECONNREFUSED;
    }
    if (failure != 0) {
        (void)close(opened);
        return failure;
    }
    tune_tcp(opened);
    *fd = opened;
    return 0;
}

static int count_addresses(const struct addrinfo *addresses) {
    int count = 0;
    for (; addresses != NULL; addresses = addresses->ai_next) {
        count++;
    }
    return count;
}

/* strerror is not thread-safe everywhere, and strerror_r comes in two kinds. */
static const char *describe(int failure) {
    switch (failure) {
    case ECONNREFUSED:
        return "connection refused";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "no route";
    case ENOENT:
        return "no such socket";
    case EACCES:
    case EPERM:
        return "not permitted";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case TIMED_OUT:
        return "no answer";
    default:
        return "cannot connect";
    }
}

static int fail_to_connect(emq_text *error, int failure, const char *where) {
    int result = EMQ_ECONNECT;
    if (failure == EMFILE || failure == ENFILE || failure == ENOBUFS || failure == ENOMEM) {
        result = EMQ_ESYSTEM;
    }
    return emq_text_fail(error, result, "%s: %s (errno %d)", where, describe(failure), failure);
}

static int dial_tcp(int *fd, const emq_endpoint *endpoint, emq_deadline deadline, emq_text *error) {
    struct addrinfo *addresses = NULL;
    int result = emq_resolve(&addresses, endpoint->host, endpoint->port, deadline, error);
    if (result != EMQ_OK) {
        return result;
    }
    int left = count_addresses(addresses);
    int failure = ECONNREFUSED;
    for (const struct addrinfo *a = addresses; a != NULL && failure != 0; a = a->ai_next) {
        failure = dial_address(fd, a, emq_deadline_share(deadline, left--));
    }
    freeaddrinfo(addresses);
    if (failure == 0) {
        return EMQ_OK;
    }
    if (emq_deadline_left_ms(deadline) == 0) {
        return emq_text_fail(error, EMQ_ETIMEOUT, "%s port %u did not answer in time",
                             endpoint->host, (unsigned)endpoint->port);
    }
    return fail_to_connect(error, failure, endpoint->host);
}

int emq_unix_path_valid(const char *path) {
    struct sockaddr_un address;
    size_t length = strnlen(path, sizeof(address.sun_path));
    return length > 0 && length < sizeof(address.sun_path);
}

/* A Unix socket whose backlog is full says "try again" at once, and nothing tells when. */
static int connect_unix(int fd, const struct sockaddr_un *address, emq_deadline deadline) {
    for (;;) {
        int failure =
            connect_socket(fd, (const struct sockaddr *)address, sizeof(*address), deadline);
        if (failure != EAGAIN) {
            return failure;
        }
        int left = emq_deadline_left_ms(deadline);
        if (left == 0) {
            return TIMED_OUT;
        }
        (void)poll(NULL, 0, left < UNIX_RETRY_MS ? left : UNIX_RETRY_MS);
    }
}

static int dial_unix(int *fd, const char *path, emq_deadline deadline, emq_text *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1); /* the options were checked */
    int opened = open_socket(AF_UNIX);
    int failure = opened < 0 ? errno : connect_unix(opened, &address, deadline);
    if (failure == 0) {
        *fd = opened;
        return EMQ_OK;
    }
    if (opened >= 0) {
        (void)close(opened);
    }
    if (failure == TIMED_OUT) {
        return emq_text_fail(error, EMQ_ETIMEOUT, "%s did not answer in time", path);
    }
    return fail_to_connect(error, failure, path);
}

int emq_dial(int *fd, const emq_endpoint *endpoint, emq_deadline deadline, emq_text *error) {
    return endpoint->unix_path != NULL ? dial_unix(fd, endpoint->unix_path, deadline, error)
                                       : dial_tcp(fd, endpoint, deadline, error);
}
