/* SPDX-License-Identifier: Apache-2.0 */
#include "rekey.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls_fixture.h"

#define PIECE ((size_t)16 * 1024)
#define TURN_MS 20

struct rekey {
    pthread_t thread;
    SSL_CTX *context;
    int listener;
    uint16_t port;
    struct sockaddr_in target;
    atomic_int is_stopping;
    atomic_int count;
};

/* What came may be an answer of TLS alone. */
static int pass_on(SSL *client, int server) {
    char bytes[PIECE];
    do {
        int n = SSL_read(client, bytes, (int)sizeof(bytes));
        if (n <= 0 && SSL_get_error(client, n) == SSL_ERROR_WANT_READ) {
            return 1;
        }
        if (n <= 0 || send(server, bytes, (size_t)n, MSG_NOSIGNAL) != n) {
            return 0;
        }
    } while (SSL_pending(client) > 0);
    return 1;
}

static int write_all(rekey *r, SSL *client, const char *bytes, int n) {
    struct pollfd waited = {SSL_get_fd(client), POLLOUT, 0};
    int written = SSL_write(client, bytes, n);
    while (written <= 0 && SSL_get_error(client, written) == SSL_ERROR_WANT_WRITE &&
           !atomic_load(&r->is_stopping)) {
        (void)poll(&waited, 1, TURN_MS);
        written = SSL_write(client, bytes, n);
    }
    return written == n;
}

static int pass_back(rekey *r, SSL *client, int server) {
    char bytes[PIECE];
    ssize_t n = recv(server, bytes, sizeof(bytes), 0);
    if (n <= 0 || SSL_key_update(client, SSL_KEY_UPDATE_REQUESTED) != 1 ||
        !write_all(r, client, bytes, (int)n)) {
        return 0;
    }
    atomic_fetch_add(&r->count, 1);
    return 1;
}

static void serve(rekey *r, SSL *client, int server) {
    struct pollfd waited[] = {{SSL_get_fd(client), POLLIN, 0}, {server, POLLIN, 0}};
    int goes_on = SSL_accept(client) == 1 && fcntl(SSL_get_fd(client), F_SETFL, O_NONBLOCK) == 0;
    while (goes_on && !atomic_load(&r->is_stopping)) {
        if (poll(waited, 2, TURN_MS) > 0) {
            goes_on = waited[0].revents == 0 || pass_on(client, server);
            goes_on = goes_on && (waited[1].revents == 0 || pass_back(r, client, server));
        }
    }
}

static void *run_rekey(void *data) {
    rekey *r = data;
    struct pollfd waited = {r->listener, POLLIN, 0};
    while (!atomic_load(&r->is_stopping)) {
        if (poll(&waited, 1, TURN_MS) <= 0) {
            continue;
        }
        int accepted = accept(r->listener, NULL, NULL);
        int server = socket(AF_INET, SOCK_STREAM, 0);
        SSL *client = SSL_new(r->context);
        if (client != NULL && SSL_set_fd(client, accepted) == 1 &&
            connect(server, (const struct sockaddr *)&r->target, sizeof(r->target)) == 0) {
            serve(r, client, server);
        }
        SSL_free(client);
        (void)close(accepted);
        (void)close(server);
    }
    return NULL;
}

static SSL_CTX *make_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_non_null(context);
    assert_int_equal(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION), 1);
    assert_int_equal(SSL_CTX_use_certificate_chain_file(context, tls_file("here.crt")), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(context, tls_file("server.key"), SSL_FILETYPE_PEM),
                     1);
    return context;
}

rekey *rekey_start(uint16_t port) {
    rekey *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    r->context = make_context();
    r->target = loopback(port);
    r->port = closed_port(&r->listener);
    assert_int_equal(listen(r->listener, SOMAXCONN), 0);
    assert_int_equal(pthread_create(&r->thread, NULL, run_rekey, r), 0);
    return r;
}

void rekey_stop(rekey *r) {
    atomic_store(&r->is_stopping, 1);
    assert_int_equal(pthread_join(r->thread, NULL), 0);
    (void)close(r->listener);
    SSL_CTX_free(r->context);
    free(r);
}

uint16_t rekey_port(const rekey *r) {
    return r->port;
}

int rekey_count(rekey *r) {
    return atomic_load(&r->count);
}
