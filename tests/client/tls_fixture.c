/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_fixture.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

#define PORTS_TRIED 20

test_server tls_server;
uint16_t tls_port;
char tls_folder[TLS_PATH_MAX];

const char *tls_file(const char *name) {
    static char paths[8][TLS_PATH_MAX * 2];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", tls_folder, name);
    return path;
}

static void make_certificates(void) {
    char words[TLS_PATH_MAX * 3];
    (void)snprintf(tls_folder, sizeof(tls_folder), "%s/tls", tls_server.dir);
    (void)snprintf(words, sizeof(words), "mkdir '%s' && '%s/tests/client/certificates.sh' '%s'",
                   tls_folder, getenv("EMQ_SOURCE_DIR"), tls_folder);
    assert_int_equal(system(words), 0); /* NOLINT(cert-env33-c): a script of this tree */
}

/* Lets the server listen with TLS on a port that is free; 0 when it is built without TLS. */
static int listen_with_tls(void) {
    for (int i = 0; i < PORTS_TRIED; i++) {
        int reserved = -1;
        char port[8];
        tls_port = closed_port(&reserved);
        (void)snprintf(port, sizeof(port), "%u", (unsigned)tls_port);
        (void)close(reserved);
        redisReply *reply =
            call(tls_server.admin, "CONFIG", "SET", "tls-cert-file", tls_file("here.crt"),
                 "tls-key-file", tls_file("server.key"), "tls-ca-cert-file", tls_file("ca.crt"),
                 "tls-auth-clients", "no", "tls-port", port, NULL);
        int is_listening = reply->type == REDIS_REPLY_STATUS;
        int is_unknown = !is_listening && strstr(reply->str, "Unknown option") != NULL;
        freeReplyObject(reply);
        if (is_listening || is_unknown) {
            return is_listening;
        }
    }
    fail_msg("no port could be had");
    return 0;
}

int tls_start_server(void **state) {
    (void)state;
    server_start(&tls_server, NULL);
    make_certificates();
    if (!listen_with_tls()) {
        fail_msg("the server is built without TLS: set VALKEY_SERVER to one that has it");
    }
    return 0;
}

int tls_stop_server(void **state) {
    (void)state;
    server_stop(&tls_server);
    return 0;
}

void tls_show_certificate(const char *name) {
    run(tls_server.admin, "CONFIG", "SET", "tls-cert-file", tls_file(name), NULL);
}

void tls_require_certificate(const char *yes_or_no) {
    run(tls_server.admin, "CONFIG", "SET", "tls-auth-clients", yes_or_no, NULL);
}

void tls_leave_failure(void) {
    assert_null(BIO_new_file(tls_file("absent"), "r"));
    assert_int_not_equal(ERR_peek_error(), 0);
}

emq_client_options tls_fixture_options(const char *host) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.host = host;
    options.port = tls_port;
    options.tls = 1;
    options.tls_ca_file = tls_file("ca.crt");
    options.connect_timeout_ms = LONG_MS;
    options.command_timeout_ms = LONG_MS;
    return options;
}

uint16_t tls_start_sentinel(test_server *sentinel) {
    static char words[5][TLS_PATH_MAX * 2 + 32];
    int reserved = -1;
    uint16_t port = closed_port(&reserved);
    (void)close(reserved);
    (void)snprintf(words[0], sizeof(words[0]), "sentinel monitor main 127.0.0.1 %u 1",
                   (unsigned)tls_port);
    (void)snprintf(words[1], sizeof(words[1]), "tls-port %u", (unsigned)port);
    (void)snprintf(words[2], sizeof(words[2]), "tls-cert-file %s", tls_file("here.crt"));
    (void)snprintf(words[3], sizeof(words[3]), "tls-key-file %s", tls_file("server.key"));
    (void)snprintf(words[4], sizeof(words[4]), "tls-ca-cert-file %s", tls_file("ca.crt"));
    server_start_sentinel(sentinel, "--conf", words[0], "--conf", words[1], "--conf", words[2],
                          "--conf", words[3], "--conf", words[4], "--conf", "tls-auth-clients no",
                          "--conf", "tls-replication yes", NULL);
    return port;
}
