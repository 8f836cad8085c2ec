/* SPDX-License-Identifier: Apache-2.0 */
#include "relay.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"

#define CHUNK_MAX ((size_t)16 * 1024)
#define TURN_MS 20

struct relay {
    pthread_t thread;
    int listener;
    uint16_t port;
    uint16_t target;
    atomic_int is_stopping;
    atomic_int ended;
    atomic_size_t chunk;
    atomic_size_t limit;
    atomic_int end;
};

static int send_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return 0;
        }
        bytes += sent;
        n -= (size_t)sent;
    }
    return 1;
}

/* Passes one piece on; returns its size, or 0 when either side has ended. */
static size_t pass(int from, int to, size_t most) {
    char bytes[CHUNK_MAX];
    ssize_t n = recv(from, bytes, most < sizeof(bytes) ? most : sizeof(bytes), 0);
    return n > 0 && send_all(to, bytes, (size_t)n) ? (size_t)n : 0;
}

static int is_readable(int fd) {
    struct pollfd waited = {fd, POLLIN, 0};
    return poll(&waited, 1, TURN_MS) > 0;
}

/* Until the client has gone. */
static void hold(relay *r, int client) {
    char bytes[CHUNK_MAX];
    atomic_fetch_add(&r->ended, 1);
    while (!atomic_load(&r->is_stopping) &&
           (!is_readable(client) || recv(client, bytes, sizeof(bytes), 0) > 0)) {
    }
}

static void serve(relay *r, int client, int server) {
    size_t chunk = atomic_load(&r->chunk);
    size_t left = atomic_load(&r->limit);
    struct pollfd waited[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    while (left > 0 && !atomic_load(&r->is_stopping)) {
        size_t n = 1;
        if (poll(waited, 2, TURN_MS) <= 0) {
            continue;
        }
        if (waited[0].revents != 0) {
            n = pass(client, server, chunk);
        }
        if (n > 0 && waited[1].revents != 0) {
            n = pass(server, client, chunk < left ? chunk : left);
            left -= left == SIZE_MAX ? 0 : n;
        }
        if (n == 0) {
            return;
        }
    }
    if (atomic_load(&r->end) == RELAY_HOLD) {
        hold(r, client);
    } else {
        atomic_fetch_add(&r->ended, 1);
    }
}

static void *run_relay(void *data) {
    relay *r = data;
    const struct sockaddr_in target = loopback(r->target);
    while (!atomic_load(&r->is_stopping)) {
        if (!is_readable(r->listener)) {
            continue;
        }
        int client = accept(r->listener, NULL, NULL);
        int server = socket(AF_INET, SOCK_STREAM, 0);
        if (client >= 0 && connect(server, (const struct sockaddr *)&target, sizeof(target)) == 0) {
            serve(r, client, server);
        }
        (void)close(client);
        (void)close(server);
    }
    return NULL;
}

relay *relay_start(uint16_t port) {
    relay *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    r->target = port;
    relay_set(r, CHUNK_MAX, SIZE_MAX, RELAY_CLOSE);
    r->port = closed_port(&r->listener);
    assert_int_equal(listen(r->listener, SOMAXCONN), 0);
    assert_int_equal(pthread_create(&r->thread, NULL, run_relay, r), 0);
    return r;
}

void relay_stop(relay *r) {
    atomic_store(&r->is_stopping, 1);
    assert_int_equal(pthread_join(r->thread, NULL), 0);
    (void)close(r->listener);
    free(r);
}

uint16_t relay_port(const relay *r) {
    return r->port;
}

void relay_set(relay *r, size_t chunk, size_t limit, relay_end end) {
    atomic_store(&r->chunk, chunk);
    atomic_store(&r->limit, limit);
    atomic_store(&r->end, end);
}

int relay_ended(relay *r) {
    return atomic_load(&r->ended);
}
