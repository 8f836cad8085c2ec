/* SPDX-License-Identifier: Apache-2.0 */
/* TLS: who is trusted and who is not, and peers that don't speak it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"
#include "relay.h"
#include "tls_fixture.h"

#define LARGE ((size_t)5 * 1024 * 1024) /* more than the sockets and many TLS records hold */

static void a_trusted_server_opens_by_name_and_by_address(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("127.0.0.1");
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options = tls_fixture_options("localhost");
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options = tls_fixture_options("127.0.0.1");
    options.tls_server_name = "localhost";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
}

static void a_url_opens(void **state) {
    (void)state;
    char url[TLS_PATH_MAX * 3];
    emq_client *client = NULL;
    (void)snprintf(url, sizeof(url), "valkeys://localhost:%u?tls_ca_file=%s", (unsigned)tls_port,
                   tls_file("ca.crt"));
    int result = emq_client_open_url(&client, url);
    EXPECT_RESULT(client, result, EMQ_OK);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    emq_client_close(client);
}

static void a_password_goes_through(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    run(tls_server.admin, "CONFIG", "SET", "requirepass", "right", NULL);
    options.password = "wrong";
    EXPECT_OPEN(&options, EMQ_EAUTH, "WRONGPASS");
    options.password = "right";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    run(tls_server.admin, "CONFIG", "SET", "requirepass", "", NULL);
}

static void jobs_of_any_size_come_back_whole(void **state) {
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 70000, LARGE};
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    emq_client *client = open_client(&options);
    char *bytes = malloc(LARGE);
    assert_non_null(bytes);
    for (size_t i = 0; i < LARGE; i++) {
        bytes[i] = (char)(i * 31 + i / 251);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        emq_id id = {{0}};
        emq_job *job = NULL;
        size_t n = 0;
        EXPECT_RESULT(client, emq_enqueue(&id, client, "tls", bytes, sizes[i]), EMQ_OK);
        EXPECT_RESULT(client, emq_claim(&job, client, "tls", LONG_MS), EMQ_OK);
        const void *payload = emq_job_get_payload(job, &n);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(payload, bytes, n);
        EXPECT_RESULT(client, emq_complete(client, emq_job_get_lease(job)), EMQ_OK);
        emq_job_free(job);
    }
    free(bytes);
    emq_client_close(client);
}

static void another_authority_is_not_trusted(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_ca_file = tls_file("other-ca.crt");
    EXPECT_OPEN(&options, EMQ_ETLS, "certificate in certificate chain");
    options.tls_ca_file = NULL; /* those of the system */
    EXPECT_OPEN(&options, EMQ_ETLS, "certificate in certificate chain");
    options.tls_ca_dir = tls_folder; /* not hashed: holds nobody */
    EXPECT_OPEN(&options, EMQ_ETLS, "certificate in certificate chain");
    assert_int_equal(emq_err_class(EMQ_ETLS), EMQ_CLASS_SERVER);
}

static void authorities_come_from_a_folder_or_from_the_system(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_ca_file = NULL;
    options.tls_ca_dir = tls_file("hashed");
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.tls_ca_dir = NULL;
    assert_int_equal(setenv("SSL_CERT_FILE", tls_file("ca.crt"), 1), 0); /* OpenSSL's own */
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
    EXPECT_OPEN(&options, EMQ_ETLS, "certificate in certificate chain");
}

/* There is room for the socket, and for no file. */
static void too_many_open_files_are_nobodys_refusal(void **state) {
    (void)state;
    const char *file = tls_file("ca.crt");
    const char *folder = tls_file("hashed");
    const struct {
        const char *file, *folder, *system, *cert;
    } cases[] = {{.file = file},
                 {.folder = folder},
                 {.system = file},
                 {.folder = folder, .cert = tls_file("client.crt")}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        emq_client *client = NULL;
        emq_client_options options = tls_fixture_options("127.0.0.1");
        options.tls_ca_file = cases[i].file;
        options.tls_ca_dir = cases[i].folder;
        options.tls_cert_file = cases[i].cert;
        options.tls_key_file = cases[i].cert != NULL ? tls_file("client.key") : NULL;
        if (cases[i].system != NULL) {
            assert_int_equal(setenv("SSL_CERT_FILE", cases[i].system, 1), 0);
        }
        struct rlimit before = fixture_limit_descriptors(1);
        int result = emq_client_open(&client, &options);
        fixture_restore_descriptors(before);
        EXPECT_RESULT(client, result, EMQ_ESYSTEM);
        EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
        emq_client_close(client);
        assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
    }
}

static void another_name_is_not_accepted(void **state) {
    (void)state;
    tls_show_certificate("elsewhere.crt");
    emq_client_options options = tls_fixture_options("localhost");
    EXPECT_OPEN(&options, EMQ_ETLS, "ostname mismatch");
    options.host = "127.0.0.1";
    EXPECT_OPEN(&options, EMQ_ETLS, "IP address mismatch");
    options.tls_server_name = "elsewhere.example";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.tls_server_name = "nowhere.example";
    EXPECT_OPEN(&options, EMQ_ETLS, "ostname mismatch");
    tls_show_certificate("here.crt");
    options.tls_server_name = "127.0.0.2";
    EXPECT_OPEN(&options, EMQ_ETLS, "IP address mismatch");
}

static void an_expired_certificate_is_not_accepted(void **state) {
    (void)state;
    tls_show_certificate("expired.crt");
    emq_client_options options = tls_fixture_options("localhost");
    EXPECT_OPEN(&options, EMQ_ETLS, "certificate is refused: certificate has expired");
    tls_show_certificate("here.crt");
}

static void insecure_takes_any_certificate(void **state) {
    (void)state;
    tls_show_certificate("expired.crt");
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_ca_file = NULL;
    options.tls_insecure = 1;
    options.tls_server_name = "nowhere.example";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    tls_show_certificate("here.crt");
}

static void a_certificate_is_shown_where_one_is_required(void **state) {
    (void)state;
    tls_require_certificate("yes");
    emq_client_options options = tls_fixture_options("localhost");
    EXPECT_OPEN(&options, EMQ_ETLS, "certificate required");
    options.tls_cert_file = tls_file("stranger.crt");
    options.tls_key_file = tls_file("client.key");
    EXPECT_OPEN(&options, EMQ_ETLS, "unknown ca");
    options.tls_cert_file = tls_file("client.crt");
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    tls_require_certificate("no");
}

/* There the server refuses inside the handshake, not behind it. */
static void an_older_tls_works_as_well(void **state) {
    (void)state;
    run(tls_server.admin, "CONFIG", "SET", "tls-protocols", "TLSv1.2", NULL);
    emq_client_options options = tls_fixture_options("localhost");
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    tls_require_certificate("yes");
    EXPECT_OPEN(&options, EMQ_ETLS, "alert");
    tls_require_certificate("no");
    run(tls_server.admin, "CONFIG", "SET", "tls-protocols", "TLSv1.1", NULL);
    EXPECT_OPEN(&options, EMQ_ETLS, "handshake failed");
    run(tls_server.admin, "CONFIG", "SET", "tls-protocols", "TLSv1.2 TLSv1.3", NULL);
}

static void files_that_cannot_be_used_are_named(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_ca_file = tls_file("absent.crt");
    EXPECT_OPEN(&options, EMQ_EINVAL, "tls_ca_file");
    options.tls_ca_file = tls_file("server.key");
    EXPECT_OPEN(&options, EMQ_EINVAL, "tls_ca_file");
    options.tls_ca_file = NULL;
    options.tls_ca_dir = tls_file("absent");
    EXPECT_OPEN(&options, EMQ_EINVAL, "tls_ca_dir");
    options = tls_fixture_options("localhost");
    options.tls_cert_file = tls_file("absent.crt");
    options.tls_key_file = tls_file("client.key");
    EXPECT_OPEN(&options, EMQ_EINVAL, "tls_cert_file");
    options.tls_cert_file = tls_file("client.crt");
    options.tls_key_file = tls_file("absent.key");
    EXPECT_OPEN(&options, EMQ_EINVAL, "tls_key_file");
    options.tls_key_file = tls_file("server.key"); /* of another certificate */
    EXPECT_OPEN(&options, EMQ_EINVAL, "tls_key_file");
    options.tls_key_file = tls_file("locked.key"); /* and nobody is asked for the passphrase */
    EXPECT_OPEN(&options, EMQ_EINVAL, "tls_key_file");
}

static void a_plain_server_is_not_talked_to(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.port = (uint16_t)tls_server.port;
    options.connect_timeout_ms = SHORT_MS;
    EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, "TLS handshake");
}

static void plain_words_to_a_tls_port_fail(void **state) {
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = tls_port;
    options.connect_timeout_ms = LONG_MS;
    EXPECT_OPEN(&options, EMQ_ECONNECT, NULL);
}

/* Tells whether the first thing that a client says has this name in it, as servers that have
 * several certificates need it. Nobody accepts the connection before the client has given up. */
static int says_name(const char *host, const char *server_name, const char *name) {
    char bytes[4096];
    int reserved = -1;
    emq_client_options options = tls_fixture_options(host);
    options.port = closed_port(&reserved);
    assert_int_equal(listen(reserved, 1), 0);
    options.tls_server_name = server_name;
    options.connect_timeout_ms = SHORT_MS;
    EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, "handshake");
    int accepted = accept(reserved, NULL, NULL);
    assert_true(accepted >= 0);
    ssize_t n = recv(accepted, bytes, sizeof(bytes), 0);
    assert_true(n > 0);
    (void)close(accepted);
    (void)close(reserved);
    for (size_t i = 0; i + strlen(name) <= (size_t)n; i++) {
        if (memcmp(bytes + i, name, strlen(name)) == 0) {
            return 1;
        }
    }
    return 0;
}

static void the_server_is_told_which_name_is_meant(void **state) {
    (void)state;
    assert_true(says_name("127.0.0.1", "elsewhere.example", "elsewhere.example"));
    assert_true(says_name("localhost", NULL, "localhost"));
    assert_false(says_name("127.0.0.1", NULL, "127.0.0.1")); /* an address is no such name */
}

/* A peer that does this when it is connected to, and never sees a command: nothing falls back. */
static void expect_peer(peer_step greeting, uint32_t timeout_ms, int want, const char *says) {
    const peer_script script = {.greeting = greeting};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.tls = 1;
    options.tls_ca_file = tls_file("ca.crt");
    options.password = "SECRET";
    options.connect_timeout_ms = timeout_ms;
    EXPECT_OPEN(&options, want, says);
    assert_int_equal(peer_commands(p), 0);
    assert_int_equal(peer_connections(p), 1);
    peer_stop(p);
}

static void peers_without_tls_get_no_password(void **state) {
    (void)state;
    expect_peer((peer_step){.action = PEER_HOLD}, SHORT_MS, EMQ_ECONNTIMEOUT, "handshake");
    expect_peer((peer_step){.action = PEER_CLOSE}, LONG_MS, EMQ_ECONNECT, "handshake");
    /* which may come while it still connects */
    expect_peer((peer_step){.action = PEER_RESET}, LONG_MS, EMQ_ECONNECT, NULL);
    expect_peer((peer_step){.action = PEER_SEND, .bytes = "-ERR plain\r\n"}, LONG_MS, EMQ_ETLS,
                "handshake failed");
    expect_peer((peer_step){.action = PEER_SEND, .bytes = "+OK\r\n+OK\r\n"}, LONG_MS, EMQ_ETLS,
                "handshake failed");
    expect_peer((peer_step){.action = PEER_FLOOD, .bytes = "+OK\r\n+OK\r\n"}, LONG_MS, EMQ_ETLS,
                "handshake failed");
}

/* An address that answers in bytes, each in time: the deadline is one for all of them. */
static void a_dripping_handshake_ends_at_the_deadline(void **state) {
    static const char record[] = "\x16\x03\x03\x40\x00 and this goes on for longer than is waited";
    (void)state;
    expect_peer((peer_step){.action = PEER_DRIP, .bytes = record, .length = sizeof(record)},
                SHORT_MS, EMQ_ECONNTIMEOUT, "handshake");
}

static void a_lost_connection_is_told_and_kills_nobody(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.client_name = "to-be-lost";
    emq_client *client = open_client(&options);
    emq_id id = {{0}};
    run(tls_server.admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "tls", "p", 1), EMQ_ECONNECT);
    assert_int_equal(emq_client_is_open(client), 0);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "tls", "p", 1), EMQ_OK);
    emq_client_close(client);
}

/* They are of no concern to a connection. Records come in pieces, so that reads have to wait. */
static void failures_of_the_host_are_the_hosts(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    relay *r = relay_start(tls_port);
    relay_set(r, 1, SIZE_MAX, RELAY_CLOSE);
    options.port = relay_port(r);
    emq_client *client = open_client(&options);
    emq_pipeline *p = NULL;
    emq_id id = {{0}};
    tls_leave_failure();
    EXPECT_RESULT(client, emq_enqueue(&id, client, "tls", "p", 1), EMQ_OK);
    assert_int_equal(emq_pipeline_new(&p, client), EMQ_OK);
    assert_int_equal(emq_pipeline_claim(p, "tls", LONG_MS), EMQ_OK);
    assert_int_equal(emq_pipeline_pause(p, "tls"), EMQ_OK);
    assert_int_equal(emq_pipeline_resume(p, "tls"), EMQ_OK);
    tls_leave_failure();
    EXPECT_RESULT(client, emq_pipeline_run(p), EMQ_OK);
    tls_leave_failure();
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    emq_pipeline_free(p);
    emq_client_close(client);
    relay_stop(r);
}

/* Both connections are checked: the sentinel's certificate by the name that it has in the list, the
 * server's by the one that the sentinel gives. */
static void a_primary_is_found_through_a_sentinel_with_tls(void **state) {
    char list[32];
    char url[TLS_PATH_MAX * 3];
    test_server sentinel;
    emq_client *client = NULL;
    (void)state;
    uint16_t port = tls_start_sentinel(&sentinel);
    (void)snprintf(list, sizeof(list), "localhost:%u", (unsigned)port);
    (void)snprintf(url, sizeof(url), "valkeys+sentinel://%s/main?tls_ca_file=%s", list,
                   tls_file("ca.crt"));
    EXPECT_RESULT(client, emq_client_open_url(&client, url), EMQ_OK);
    emq_client_close(client);
    emq_client_options options = tls_fixture_options(NULL);
    options.port = 0;
    options.sentinels = list;
    options.primary_name = "main";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.tls_ca_file = tls_file("other-ca.crt");
    EXPECT_OPEN(&options, EMQ_ETLS, list + sizeof("localhost:") - 1);
    options.tls_ca_file = tls_file("ca.crt");
    tls_show_certificate("elsewhere.crt");
    EXPECT_OPEN(&options, EMQ_ETLS, "127.0.0.1 port");
    tls_show_certificate("here.crt");
    server_stop(&sentinel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trusted_server_opens_by_name_and_by_address),
        cmocka_unit_test(a_url_opens),
        cmocka_unit_test(a_password_goes_through),
        cmocka_unit_test(jobs_of_any_size_come_back_whole),
        cmocka_unit_test(another_authority_is_not_trusted),
        cmocka_unit_test(authorities_come_from_a_folder_or_from_the_system),
        cmocka_unit_test(too_many_open_files_are_nobodys_refusal),
        cmocka_unit_test(another_name_is_not_accepted),
        cmocka_unit_test(an_expired_certificate_is_not_accepted),
        cmocka_unit_test(insecure_takes_any_certificate),
        cmocka_unit_test(a_certificate_is_shown_where_one_is_required),
        cmocka_unit_test(an_older_tls_works_as_well),
        cmocka_unit_test(files_that_cannot_be_used_are_named),
        cmocka_unit_test(a_plain_server_is_not_talked_to),
        cmocka_unit_test(plain_words_to_a_tls_port_fail),
        cmocka_unit_test(the_server_is_told_which_name_is_meant),
        cmocka_unit_test(peers_without_tls_get_no_password),
        cmocka_unit_test(a_dripping_handshake_ends_at_the_deadline),
        cmocka_unit_test(a_lost_connection_is_told_and_kills_nobody),
        cmocka_unit_test(failures_of_the_host_are_the_hosts),
        cmocka_unit_test(a_primary_is_found_through_a_sentinel_with_tls),
    };
    return RUN_SERVER_TESTS("client.tls", tests, tls_start_server, tls_stop_server);
}
