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

static int open_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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

int emq_dial_start(int *fd, const struct sockaddr *address, socklen_t length) {
    int opened = open_socket(address->sa_family);
    if (opened < 0) {
        return errno;
    }
    /* an interrupted connect goes on by itself */
    int failure = connect(opened, address, length) == 0 ? 0 : errno;
    if (failure != 0 && failure != EINPROGRESS && failure != EINTR) {
        (void)close(opened);
        return failure;
    }
    *fd = opened;
    return 0;
}

int emq_dial_finish(int fd) {
    int failure = 0;
    socklen_t length = sizeof(failure);
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    socklen_t own_length = sizeof(own);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &own_length) != 0) {
        return errno;
    }
    if (failure == 0 && own.ss_family != AF_UNIX) {
        if (is_connected_to_itself(fd)) {
            return ECONNREFUSED;
        }
        tune_tcp(fd);
    }
    return failure;
}

/* Connects to one address; returns 0 and sets *fd, or an errno. */
static int dial_address(int *fd, const struct sockaddr *address, socklen_t length,
                        emq_deadline deadline) {
    int opened = -1;
    int failure = emq_dial_start(&opened, address, length);
    if (failure != 0) {
        return failure;
    }
    int events = emq_poll(opened, POLLOUT, deadline);
    if (events == 0) {
        failure = TIMED_OUT;
    } else {
        failure = events < 0 ? errno : emq_dial_finish(opened);
    }
    if (failure != 0) {
        (void)close(opened);
        return failure;
    }
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

int emq_is_shortage(int failure) {
    return failure == EMFILE || failure == ENFILE || failure == ENOBUFS || failure == ENOMEM;
}

int emq_dial_fail(emq_text *error, int failure, const char *where) {
    int result = emq_is_shortage(failure) ? EMQ_ESYSTEM : EMQ_ECONNECT;
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
        failure = dial_address(fd, a->ai_addr, a->ai_addrlen, emq_deadline_share(deadline, left--));
    }
    freeaddrinfo(addresses);
    if (failure == 0) {
        return EMQ_OK;
    }
    if (emq_deadline_left_ms(deadline) == 0) {
        return emq_text_fail(error, EMQ_ETIMEOUT, "%s port %u did not answer in time",
                             endpoint->host, (unsigned)endpoint->port);
    }
    return emq_dial_fail(error, failure, endpoint->host);
}

int emq_unix_path_valid(const char *path) {
    struct sockaddr_un address;
    size_t length = strnlen(path, sizeof(address.sun_path));
    return length > 0 && length < sizeof(address.sun_path);
}

void emq_unix_address(struct sockaddr_un *address, const char *path) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, strlen(path) + 1); /* the options were checked */
}

static int dial_unix(int *fd, const char *path, emq_deadline deadline, emq_text *error) {
    struct sockaddr_un address;
    emq_unix_address(&address, path);
    for (;;) {
        int failure =
            dial_address(fd, (const struct sockaddr *)&address, sizeof(address), deadline);
        int left = emq_deadline_left_ms(deadline);
        if (failure == 0) {
            return EMQ_OK;
        }
        if (failure == TIMED_OUT || (failure == EAGAIN && left == 0)) {
            return emq_text_fail(error, EMQ_ETIMEOUT, "%s did not answer in time", path);
        }
        if (failure != EAGAIN) {
            return emq_dial_fail(error, failure, path);
        }
        (void)poll(NULL, 0, left < EMQ_UNIX_RETRY_MS ? left : EMQ_UNIX_RETRY_MS);
    }
}

int emq_dial(int *fd, const emq_endpoint *endpoint, emq_deadline deadline, emq_text *error) {
    return endpoint->unix_path != NULL ? dial_unix(fd, endpoint->unix_path, deadline, error)
                                       : dial_tcp(fd, endpoint, deadline, error);
}
