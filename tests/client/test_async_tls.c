/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on the loop: who is trusted and who is not, peers that don't speak it, and what a handshake
 * may meet, while the loop goes on. */
#include <dirent.h>
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "loop.h"
#include "rekey.h"
#include "relay.h"
#include "tls_fixture.h"

#define LARGE ((size_t)5 * 1024 * 1024) /* more than the sockets and many TLS records hold */
#define AT_ONCE 4

/* In front of libemq's calls; so often they fail. */
static atomic_int readings_to_fail;
static atomic_int lookups_to_fail;

static int is_to_fail(atomic_int *times) {
    if (atomic_load(times) == 0) {
        return 0;
    }
    atomic_fetch_sub(times, 1);
    return 1;
}

struct dirent *__real_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder);
void *__real_readdir64(DIR *folder) __attribute__((weak)); /* its name with large files, or none */
void *__wrap_readdir64(DIR *folder);
X509_LOOKUP *__real_X509_STORE_add_lookup(X509_STORE *store, X509_LOOKUP_METHOD *method);
X509_LOOKUP *__wrap_X509_STORE_add_lookup(X509_STORE *store, X509_LOOKUP_METHOD *method);

struct dirent *__wrap_readdir(DIR *folder) {
    if (is_to_fail(&readings_to_fail)) {
        errno = EIO;
        return NULL;
    }
    return __real_readdir(folder);
}

void *__wrap_readdir64(DIR *folder) {
    if (is_to_fail(&readings_to_fail)) {
        errno = EIO;
        return NULL;
    }
    return __real_readdir64(folder);
}

X509_LOOKUP *__wrap_X509_STORE_add_lookup(X509_STORE *store, X509_LOOKUP_METHOD *method) {
    return is_to_fail(&lookups_to_fail) ? NULL : __real_X509_STORE_add_lookup(store, method);
}

static int clean_server(void **state) {
    (void)state;
    run(tls_server.admin, "FLUSHALL", NULL);
    run(tls_server.admin, "SET", "{emq}:version", "echomq:6.0.0", NULL);
    return 0;
}

/* Opens, and works. */
static void expect_open_loop(const emq_client_options *options) {
    test_loop t;
    loop_open(&t, options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    assert_int_equal(t.told, 2);
    outcome out = do_request(&t, enqueue_request("tls", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_OK);
    loop_finish(&t);
}

static int was_open(const test_loop *t) {
    return emq_async_get_counter(t->client, EMQ_ASYNC_CONNECTS) > 0;
}

/* Is told this state for this reason, with this in the sentence, and never opens. A request that
 * waits is ended by a refusal, and by nothing else. */
static void expect_no_loop(const emq_client_options *options, emq_async_state state, int reason,
                           const char *says) {
    test_loop t;
    outcome out = {0};
    loop_open(&t, options, NULL);
    loop_submit(&t, ping_request(), &out);
    loop_until_told(&t, state, reason);
    if (strstr(emq_async_get_error(t.client), says) == NULL) {
        fail_msg("'%s' is not in '%s'", says, emq_async_get_error(t.client));
    }
    if (state == EMQ_ASYNC_REFUSED) {
        loop_until_ended(&t, &out, 1);
        EXPECT_OUTCOME(&out, reason);
        loop_rest(&t);
        assert_int_equal(emq_async_get_state(t.client), state);
    }
    assert_false(was_open(&t));
    loop_finish(&t);
    EXPECT_OUTCOME(&out, state == EMQ_ASYNC_REFUSED ? reason : EMQ_ECLOSED);
}

static void expect_refusal(const emq_client_options *options, const char *says) {
    expect_no_loop(options, EMQ_ASYNC_REFUSED, EMQ_ETLS, says);
}

static void a_trusted_server_opens_by_name_and_by_address(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("127.0.0.1");
    expect_open_loop(&options);
    options = tls_fixture_options("localhost");
    expect_open_loop(&options);
    options = tls_fixture_options("127.0.0.1");
    options.tls_server_name = "localhost";
    expect_open_loop(&options);
}

static void a_password_goes_through(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    run(tls_server.admin, "CONFIG", "SET", "requirepass", "right", NULL);
    options.password = "wrong";
    expect_no_loop(&options, EMQ_ASYNC_REFUSED, EMQ_EAUTH, "WRONGPASS");
    options.password = "right";
    expect_open_loop(&options);
    run(tls_server.admin, "CONFIG", "SET", "requirepass", "", NULL);
}

static char *make_bytes(size_t n) {
    char *bytes = malloc(n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(i * 31 + i / 251);
    }
    return bytes;
}

static void expect_payload(const outcome *out, const char *bytes, size_t size) {
    size_t n = 0;
    EXPECT_OUTCOME(out, EMQ_OK);
    const void *payload = emq_job_get_payload(out->job, &n);
    assert_int_equal(n, size);
    assert_memory_equal(payload, bytes, n);
}

static void jobs_of_any_size_come_back_whole(void **state) {
    static const size_t sizes[] = {0, 1, 16250, 16383, 16384, 16385, 32768, 70000, LARGE};
    test_loop t;
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    char *bytes = make_bytes(LARGE);
    loop_open(&t, &options, NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        outcome out = do_request(&t, enqueue_request("tls", bytes, sizes[i]));
        EXPECT_OUTCOME(&out, EMQ_OK);
        out = do_request(&t, claim_request("tls"));
        expect_payload(&out, bytes, sizes[i]);
        outcome completed = do_request(&t, complete_request(emq_job_get_lease(out.job)));
        EXPECT_OUTCOME(&completed, EMQ_OK);
        outcome_clear(&out);
    }
    loop_finish(&t);
    free(bytes);
}

/* The requests still go out while the answers come in. */
static void large_payloads_go_both_ways_at_once(void **state) {
    test_loop t;
    outcome outs[AT_ONCE * 3] = {0};
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    char *bytes = make_bytes(LARGE);
    loop_open(&t, &options, NULL);
    for (size_t i = 0; i < AT_ONCE; i++) {
        loop_submit(&t, enqueue_request("tls", bytes, LARGE), &outs[i * 3]);
        loop_submit(&t, claim_request("tls"), &outs[i * 3 + 1]);
        loop_submit(&t, ping_request(), &outs[i * 3 + 2]);
    }
    loop_until_ended(&t, outs, AT_ONCE * 3);
    for (int i = 0; i < AT_ONCE * 3; i++) {
        EXPECT_OUTCOME(&outs[i], EMQ_OK);
        if (i % 3 == 1) {
            expect_payload(&outs[i], bytes, LARGE);
        }
        outcome_clear(&outs[i]);
    }
    assert_true(emq_async_get_counter(t.client, EMQ_ASYNC_BYTES_OUT) > AT_ONCE * LARGE);
    assert_true(emq_async_get_counter(t.client, EMQ_ASYNC_BYTES_IN) > AT_ONCE * LARGE);
    loop_finish(&t);
    free(bytes);
}

/* Behind the handshake TLS goes on having words of its own: a read may bring nothing, and has to
 * write. One request at a time: OpenSSL itself fails when it is to change keys in the middle of a
 * record that is not written whole. */
static void keys_may_change_on_the_way(void **state) {
    test_loop t;
    (void)state;
    rekey *r = rekey_start((uint16_t)tls_server.port);
    emq_client_options options = tls_fixture_options("localhost");
    char *bytes = make_bytes(LARGE);
    options.port = rekey_port(r);
    loop_open(&t, &options, NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        outcome out = do_request(&t, enqueue_request("tls", bytes, LARGE));
        EXPECT_OUTCOME(&out, EMQ_OK);
        out = do_request(&t, claim_request("tls"));
        expect_payload(&out, bytes, LARGE);
        outcome_clear(&out);
    }
    assert_int_equal(t.told, 2);
    assert_true((size_t)rekey_count(r) > AT_ONCE * LARGE / 16384);
    loop_finish(&t);
    rekey_stop(r);
    free(bytes);
}

static void another_authority_is_not_trusted(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_ca_file = tls_file("other-ca.crt");
    expect_refusal(&options, "certificate in certificate chain");
    options.tls_ca_file = NULL; /* those of the system */
    expect_refusal(&options, "certificate in certificate chain");
}

static void another_name_is_not_accepted(void **state) {
    (void)state;
    tls_show_certificate("elsewhere.crt");
    emq_client_options options = tls_fixture_options("localhost");
    expect_refusal(&options, "ostname mismatch");
    options.host = "127.0.0.1";
    expect_refusal(&options, "IP address mismatch");
    options.tls_server_name = "elsewhere.example";
    expect_open_loop(&options);
    tls_show_certificate("here.crt");
}

static void an_expired_certificate_is_not_accepted(void **state) {
    (void)state;
    tls_show_certificate("expired.crt");
    emq_client_options options = tls_fixture_options("localhost");
    expect_refusal(&options, "certificate is refused: certificate has expired");
    options.tls_insecure = 1;
    expect_open_loop(&options);
    tls_show_certificate("here.crt");
}

static void a_certificate_is_shown_where_one_is_required(void **state) {
    (void)state;
    tls_require_certificate("yes");
    emq_client_options options = tls_fixture_options("localhost");
    expect_refusal(&options, "certificate required");
    options.password = "not asked for yet"; /* AUTH is what goes out first then */
    expect_refusal(&options, "certificate required");
    options.password = NULL;
    options.tls_cert_file = tls_file("stranger.crt");
    options.tls_key_file = tls_file("client.key");
    expect_refusal(&options, "unknown ca");
    options.tls_cert_file = tls_file("client.crt");
    expect_open_loop(&options);
    tls_require_certificate("no");
}

/* There the server refuses inside the handshake, not behind it. */
static void an_older_tls_works_as_well(void **state) {
    (void)state;
    run(tls_server.admin, "CONFIG", "SET", "tls-protocols", "TLSv1.2", NULL);
    emq_client_options options = tls_fixture_options("localhost");
    expect_open_loop(&options);
    tls_require_certificate("yes");
    expect_refusal(&options, "alert");
    tls_require_certificate("no");
    run(tls_server.admin, "CONFIG", "SET", "tls-protocols", "TLSv1.1", NULL);
    expect_refusal(&options, "handshake failed");
    run(tls_server.admin, "CONFIG", "SET", "tls-protocols", "TLSv1.2 TLSv1.3", NULL);
}

static void a_file_that_cannot_be_used_is_named(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_ca_file = tls_file("absent.crt");
    expect_no_loop(&options, EMQ_ASYNC_REFUSED, EMQ_EINVAL, "tls_ca_file");
}

/* What this process is short of says nothing of the server: the next attempt may find it. */
static void too_many_open_files_are_no_refusal(void **state) {
    (void)state;
    for (int is_folder = 0; is_folder <= 1; is_folder++) {
        test_loop t;
        outcome out = {0};
        emq_client_options options = tls_fixture_options("127.0.0.1");
        options.tls_ca_file = is_folder ? NULL : tls_file("ca.crt");
        options.tls_ca_dir = is_folder ? tls_file("hashed") : NULL;
        loop_open(&t, &options, &loop_short_pause);
        loop_submit(&t, ping_request(), &out);
        struct rlimit before = fixture_limit_descriptors(is_folder); /* for the socket */
        loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ESYSTEM);
        fixture_restore_descriptors(before);
        loop_until_ended(&t, &out, 1);
        EXPECT_OUTCOME(&out, EMQ_OK);
        outcome_clear(&out);
        loop_finish(&t);
    }
}

/* The same for a folder whose reading breaks off, and for one without memory to note it: each is
 * named for what it is. */
static void a_folder_that_fails_is_no_refusal(void **state) {
    const struct {
        atomic_int *times;
        int reason;
    } cases[] = {{&readings_to_fail, EMQ_ESYSTEM}, {&lookups_to_fail, EMQ_ENOMEM}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_loop t;
        emq_client_options options = tls_fixture_options("127.0.0.1");
        options.tls_ca_file = NULL;
        options.tls_ca_dir = tls_file("hashed");
        atomic_store(cases[i].times, 1);
        loop_open(&t, &options, &loop_short_pause);
        loop_until_told(&t, EMQ_ASYNC_CLOSED, cases[i].reason);
        loop_until_state(&t, EMQ_ASYNC_OPEN);
        loop_finish(&t);
    }
}

/* A file that is not to be read in time, as on a network disk that has gone: a pipe without a
 * writer.
 */
static emq_client_options options_with_slow_file(void) {
    emq_client_options options = tls_fixture_options("localhost");
    options.tls_ca_file = tls_file("pipe");
    (void)unlink(options.tls_ca_file);
    assert_int_equal(mkfifo(options.tls_ca_file, 0600), 0);
    return options;
}

/* Gives what the file should hold to who waits for it. */
static void feed_slow_file(void) {
    char bytes[4096];
    FILE *from = fopen(tls_file("ca.crt"), "r");
    FILE *to = fopen(tls_file("pipe"), "w");
    assert_non_null(from);
    assert_non_null(to);
    size_t n = fread(bytes, 1, sizeof(bytes), from);
    assert_true(n > 0);
    assert_int_equal(fwrite(bytes, 1, n, to), n);
    assert_int_equal(fclose(from), 0);
    assert_int_equal(fclose(to), 0);
}

/* The same in a folder, under the name by which the authority is found there. */
static emq_client_options options_with_slow_folder(void) {
    char name[512];
    struct dirent *entry = NULL;
    emq_client_options options = options_with_slow_file();
    options.tls_ca_file = NULL;
    options.tls_ca_dir = tls_file("slow");
    assert_true(mkdir(options.tls_ca_dir, 0700) == 0 || errno == EEXIST);
    DIR *hashed = opendir(tls_file("hashed"));
    assert_non_null(hashed);
    while ((entry = readdir(hashed)) != NULL && strstr(entry->d_name, ".0") == NULL) {
    }
    assert_non_null(entry);
    (void)snprintf(name, sizeof(name), "%s/%s", options.tls_ca_dir, entry->d_name);
    (void)closedir(hashed);
    assert_true(symlink(tls_file("pipe"), name) == 0 || errno == EEXIST);
    return options;
}

static void expect_loop_goes_on(emq_client_options options) {
    test_loop t;
    outcome out = {0};
    options.connect_timeout_ms = SHORT_MS;
    loop_open(&t, &options, &loop_short_pause);
    loop_submit(&t, ping_request(), &out);
    loop_rest(&t);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT);
    assert_non_null(strstr(emq_async_get_error(t.client), "files"));
    loop_rest(&t); /* the next attempt waits for the same reading */
    feed_slow_file();
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_finish(&t);
}

static void slow_files_do_not_hold_up_the_loop(void **state) {
    (void)state;
    expect_loop_goes_on(options_with_slow_file());
}

static void slow_folders_do_not_hold_up_the_loop(void **state) {
    (void)state;
    expect_loop_goes_on(options_with_slow_folder());
}

/* The client is there until the files are read, and not a step longer. */
static void closed_while_files_are_read(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    emq_client_options options = options_with_slow_file();
    loop_open(&t, &options, NULL);
    loop_submit(&t, ping_request(), &out);
    loop_rest(&t);
    loop_close_waits(&t);
    feed_slow_file();
    loop_finish(&t);
    EXPECT_OUTCOME(&out, EMQ_ECLOSED);
}

static void a_child_has_no_part_in_a_connection(void **state) {
    test_loop t;
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    loop_open(&t, &options, NULL);
    for (int i = 0; i < 3; i++) {
        outcome out = do_request(&t, ping_request());
        EXPECT_OUTCOME(&out, EMQ_OK);
        outcome_clear(&out);
        loop_close_in_child(&t);
    }
    assert_int_equal(t.told, 2);
    loop_finish(&t);
}

/* A refusal is looked at again when that is asked for. */
static void a_reconnect_shakes_hands_again(void **state) {
    test_loop t;
    (void)state;
    tls_show_certificate("expired.crt");
    emq_client_options options = tls_fixture_options("localhost");
    loop_open(&t, &options, NULL);
    loop_until_state(&t, EMQ_ASYNC_REFUSED);
    tls_show_certificate("here.crt");
    assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
    outcome out = do_request(&t, ping_request());
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_finish(&t);
}

/* Both connections are checked, each by its own name. */
static void a_primary_is_found_through_a_sentinel(void **state) {
    char list[32];
    test_server sentinel;
    (void)state;
    (void)snprintf(list, sizeof(list), "localhost:%u", (unsigned)tls_start_sentinel(&sentinel));
    emq_client_options options = tls_fixture_options(NULL);
    options.port = 0;
    options.sentinels = list;
    options.primary_name = "main";
    expect_open_loop(&options);
    options.tls_ca_file = tls_file("other-ca.crt");
    expect_refusal(&options, "localhost port");
    options.tls_ca_file = tls_file("ca.crt");
    tls_show_certificate("elsewhere.crt");
    expect_refusal(&options, "127.0.0.1 port");
    tls_show_certificate("here.crt");
    server_stop(&sentinel);
}

static void a_plain_server_is_not_talked_to(void **state) {
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    options.port = (uint16_t)tls_server.port;
    options.connect_timeout_ms = SHORT_MS;
    expect_no_loop(&options, EMQ_ASYNC_CLOSED, EMQ_ECONNTIMEOUT, "TLS handshake");
}

static void plain_words_to_a_tls_port_fail(void **state) {
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = tls_port;
    options.connect_timeout_ms = LONG_MS;
    expect_no_loop(&options, EMQ_ASYNC_CLOSED, EMQ_ECONNECT, "");
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
    expect_no_loop(&options, want == EMQ_ETLS ? EMQ_ASYNC_REFUSED : EMQ_ASYNC_CLOSED, want, says);
    assert_int_equal(peer_commands(p), 0);
    peer_stop(p);
}

static void peers_without_tls_get_no_password(void **state) {
    static const char record[] = "\x16\x03\x03\x40\x00 and this goes on for longer than is waited";
    (void)state;
    expect_peer((peer_step){.action = PEER_HOLD}, SHORT_MS, EMQ_ECONNTIMEOUT, "handshake");
    expect_peer((peer_step){.action = PEER_CLOSE}, LONG_MS, EMQ_ECONNECT, "handshake");
    /* which may come while it still connects */
    expect_peer((peer_step){.action = PEER_RESET}, LONG_MS, EMQ_ECONNECT, "");
    expect_peer((peer_step){.action = PEER_SEND, .bytes = "-ERR plain\r\n"}, LONG_MS, EMQ_ETLS,
                "handshake failed");
    expect_peer((peer_step){.action = PEER_FLOOD, .bytes = "+OK\r\n+OK\r\n"}, LONG_MS, EMQ_ETLS,
                "handshake failed");
    expect_peer((peer_step){.action = PEER_DRIP, .bytes = record, .length = sizeof(record)},
                SHORT_MS, EMQ_ECONNTIMEOUT, "handshake");
}

/* Beside a handshake that goes nowhere a second client works. */
static void a_handshake_does_not_hold_up_the_loop(void **state) {
    static const peer_script script = {.greeting = {.action = PEER_HOLD}};
    test_loop t;
    emq_async *stuck = NULL;
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = tls_fixture_options("localhost");
    emq_client_options dead = tls_fixture_options("127.0.0.1");
    dead.port = peer_port(p);
    loop_open(&t, &options, NULL);
    assert_int_equal(emq_async_open(&stuck, &t.loop, &dead, NULL), EMQ_OK);
    outcome out = do_request(&t, ping_request());
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_rest(&t);
    assert_int_equal(peer_connections(p), 1);
    assert_int_equal(emq_async_get_state(stuck), EMQ_ASYNC_CONNECTING);
    assert_int_equal(emq_async_close(stuck, NULL, NULL), EMQ_OK);
    loop_finish(&t);
    peer_stop(p);
}

/* Bytes that come one by one: neither the handshake nor what is behind it needs whole records. */
static void bytes_may_come_one_by_one(void **state) {
    test_loop t;
    (void)state;
    relay *r = relay_start(tls_port);
    relay_set(r, 1, SIZE_MAX, RELAY_CLOSE);
    emq_client_options options = tls_fixture_options("localhost");
    options.port = relay_port(r);
    loop_open(&t, &options, NULL);
    outcome enqueued = do_request(&t, enqueue_request("tls", "payload", 7));
    EXPECT_OUTCOME(&enqueued, EMQ_OK);
    outcome claimed = do_request(&t, claim_request("tls"));
    expect_payload(&claimed, "payload", 7);
    outcome_clear(&claimed);
    loop_finish(&t);
    relay_stop(r);
}

/* Where a connection ends or falls silent on the way to being open: the attempt fails, and the next
 * one, on a road that is whole, opens and sends what has waited. */
static void expect_cut(size_t limit, relay_end end) {
    test_loop t;
    outcome out = {0};
    relay *r = relay_start(tls_port);
    relay_set(r, SIZE_MAX, limit, end);
    emq_client_options options = tls_fixture_options("localhost");
    options.port = relay_port(r);
    options.connect_timeout_ms = end == RELAY_HOLD ? SHORT_MS : LONG_MS;
    loop_open(&t, &options, NULL);
    loop_submit(&t, enqueue_request("tls", "p", 1), &out);
    loop_until_told(&t, EMQ_ASYNC_CLOSED, end == RELAY_HOLD ? EMQ_ECONNTIMEOUT : EMQ_ECONNECT);
    assert_false(was_open(&t));
    assert_true(relay_ended(r) > 0);
    relay_set(r, SIZE_MAX, SIZE_MAX, end);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    loop_finish(&t);
    relay_stop(r);
}

static void a_handshake_is_cut_anywhere(void **state) {
    static const size_t limits[] = {1, 5, 100, 127, 128, 300, 600, 700, 900};
    (void)state;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        expect_cut(limits[i], RELAY_CLOSE);
    }
    expect_cut(5, RELAY_HOLD);
    expect_cut(300, RELAY_HOLD);
}

/* However far the connect path has come. */
static void closed_on_the_way(void **state) {
    int was_reached = 0;
    (void)state;
    emq_client_options options = tls_fixture_options("127.0.0.1");
    for (int rounds = 0; !was_reached; rounds++) {
        test_loop t;
        outcome out = {0};
        loop_open(&t, &options, NULL);
        loop_submit(&t, ping_request(), &out);
        for (int i = 0; i < rounds && !was_reached; i++) {
            (void)uv_run(&t.loop, UV_RUN_ONCE);
            was_reached = out.calls > 0;
        }
        loop_finish(&t);
        EXPECT_OUTCOME(&out, was_reached ? EMQ_OK : EMQ_ECLOSED);
        outcome_clear(&out);
    }
}

static void closed_in_the_handshake(void **state) {
    static const peer_script script = {.greeting = {.action = PEER_HOLD}};
    test_loop t;
    outcome out = {0};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = tls_fixture_options("127.0.0.1");
    options.port = peer_port(p);
    loop_open(&t, &options, NULL);
    loop_submit(&t, ping_request(), &out);
    while (peer_connections(p) == 0) {
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
    assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
    while (peer_connections(p) == 1) {
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
    loop_rest(&t);
    loop_finish(&t);
    EXPECT_OUTCOME(&out, EMQ_ECLOSED);
    peer_stop(p);
}

static void a_killed_connection_is_replaced(void **state) {
    test_loop t;
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    loop_open(&t, &options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    for (uint64_t i = 1; i <= 3; i++) {
        run(tls_server.admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
        outcome out = do_request(&t, enqueue_request("tls", "p", 1));
        EXPECT_OUTCOME(&out, EMQ_OK);
        assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_RECONNECTS), i);
    }
    assert_int_equal(get_integer(tls_server.admin, "ZCARD", "emq:{tls}:pending", NULL), 3);
    loop_finish(&t);
}

/* Under a large write, where SIGPIPE would end a process that does not expect it. What was not sent
 * whole is sent again. */
static void a_loss_in_a_large_request_kills_nobody(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    relay *r = relay_start(tls_port);
    emq_client_options options = tls_fixture_options("localhost");
    char *bytes = make_bytes(LARGE);
    options.port = relay_port(r);
    loop_open(&t, &options, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    loop_submit(&t, enqueue_request("tls", bytes, LARGE), &out);
    while (emq_async_get_counter(t.client, EMQ_ASYNC_BYTES_OUT) < LARGE / 10) {
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
    assert_int_equal(out.calls, 0);
    run(tls_server.admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    loop_until_ended(&t, &out, 1);
    EXPECT_OUTCOME(&out, EMQ_OK);
    assert_true(emq_async_get_counter(t.client, EMQ_ASYNC_RECONNECTS) > 0);
    assert_int_equal(get_integer(tls_server.admin, "ZCARD", "emq:{tls}:pending", NULL), 1);
    loop_finish(&t);
    relay_stop(r);
    free(bytes);
}

/* Failures that the host's own use of the TLS library leaves are of no concern to a connection. */
static void failures_of_the_host_are_the_hosts(void **state) {
    test_loop t;
    outcome out = {0};
    (void)state;
    emq_client_options options = tls_fixture_options("localhost");
    loop_open(&t, &options, NULL);
    loop_submit(&t, enqueue_request("tls", "p", 1), &out);
    while (out.calls == 0) {
        tls_leave_failure();
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
    EXPECT_OUTCOME(&out, EMQ_OK);
    assert_int_equal(t.told, 2);
    loop_finish(&t);
}

#define TEST(name) cmocka_unit_test_setup(name, clean_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_trusted_server_opens_by_name_and_by_address),
        TEST(a_password_goes_through),
        TEST(jobs_of_any_size_come_back_whole),
        TEST(large_payloads_go_both_ways_at_once),
        TEST(keys_may_change_on_the_way),
        TEST(another_authority_is_not_trusted),
        TEST(another_name_is_not_accepted),
        TEST(an_expired_certificate_is_not_accepted),
        TEST(a_certificate_is_shown_where_one_is_required),
        TEST(an_older_tls_works_as_well),
        TEST(a_file_that_cannot_be_used_is_named),
        TEST(too_many_open_files_are_no_refusal),
        TEST(a_folder_that_fails_is_no_refusal),
        TEST(slow_files_do_not_hold_up_the_loop),
        TEST(slow_folders_do_not_hold_up_the_loop),
        TEST(closed_while_files_are_read),
        TEST(a_child_has_no_part_in_a_connection),
        TEST(a_reconnect_shakes_hands_again),
        TEST(a_plain_server_is_not_talked_to),
        TEST(a_primary_is_found_through_a_sentinel),
        TEST(plain_words_to_a_tls_port_fail),
        TEST(peers_without_tls_get_no_password),
        TEST(a_handshake_does_not_hold_up_the_loop),
        TEST(bytes_may_come_one_by_one),
        TEST(a_handshake_is_cut_anywhere),
        TEST(closed_on_the_way),
        TEST(closed_in_the_handshake),
        TEST(a_killed_connection_is_replaced),
        TEST(a_loss_in_a_large_request_kills_nobody),
        TEST(failures_of_the_host_are_the_hosts),
    };
    return RUN_SERVER_TESTS("client.async_tls", tests, tls_start_server, tls_stop_server);
}
