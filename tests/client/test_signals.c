/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: SIGPIPE never reaches the host process, what the host does with it stays as it is, and
 * interrupted system calls change neither a result nor a deadline. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server_fixture.h"
#include "sigpipe.h"

static char socket_path[SERVER_PATH_MAX + 2];

static volatile sig_atomic_t pipes;

static void count_pipe(int number) {
    (void)number;
    pipes++;
}

static int start_with_path(void **state) {
    (void)start_server(state);
    (void)snprintf(socket_path, sizeof(socket_path), "%s/p", server.dir);
    return 0;
}

static int is_pending(void) {
    sigset_t pending;
    assert_int_equal(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE);
}

static int is_blocked(void) {
    sigset_t mask;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    return sigismember(&mask, SIGPIPE);
}

static void change_mask(int how) {
    sigset_t only;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGPIPE);
    assert_int_equal(pthread_sigmask(how, &only, NULL), 0);
}

static void set_handler(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    assert_int_equal(sigaction(SIGPIPE, &action, NULL), 0);
}

static void (*get_handler(void))(int) {
    struct sigaction action;
    assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
    return action.sa_handler;
}

/* A write that raises SIGPIPE, held. */
static void write_into_nothing(void) {
    int pair[2];
    emq_sigpipe saved;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    (void)close(pair[1]);
    emq_sigpipe_hold(&saved);
    ssize_t written = write(pair[0], "x", 1);
    emq_sigpipe_release(&saved, written < 0);
    assert_int_equal(written, -1);
    assert_int_equal(errno, EPIPE); /* kept for the caller */
    (void)close(pair[0]);
}

/* The same through a client: the peer takes nothing any more, which only the write finds out. */
static void call_into_nothing(void) {
    emq_id id = {{0}};
    const peer_script script = {.steps = {PEER_HANDSHAKE}, .unix_path = socket_path};
    (void)unlink(socket_path);
    peer *p = peer_start(&script);
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.unix_path = socket_path;
    options.connect_timeout_ms = LONG_MS;
    options.command_timeout_ms = LONG_MS;
    emq_client *client = open_client(&options);
    peer_act(p, (peer_step){PEER_DEAF, NULL, 0});
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_ECONNECT);
    assert_int_equal(emq_client_is_open(client), 0);
    emq_client_close(client);
    peer_stop(p);
}

static void (*const failing_writes[])(void) = {write_into_nothing, call_into_nothing};

#define WRITES (sizeof(failing_writes) / sizeof(failing_writes[0]))

static void the_default_does_not_kill(void **state) {
    (void)state;
    set_handler(SIG_DFL);
    for (size_t i = 0; i < WRITES; i++) {
        failing_writes[i]();
        assert_int_equal(is_blocked(), 0);
        assert_int_equal(is_pending(), 0);
        assert_ptr_equal(get_handler(), SIG_DFL);
    }
}

static void a_handler_is_not_called(void **state) {
    (void)state;
    pipes = 0;
    set_handler(count_pipe);
    for (size_t i = 0; i < WRITES; i++) {
        failing_writes[i]();
        assert_int_equal(is_blocked(), 0);
        assert_ptr_equal(get_handler(), count_pipe);
    }
    assert_int_equal(pipes, 0);
    (void)raise(SIGPIPE); /* the host's own still arrives */
    assert_int_equal(pipes, 1);
    set_handler(SIG_DFL);
}

static void ignoring_stays_ignoring(void **state) {
    (void)state;
    set_handler(SIG_IGN);
    for (size_t i = 0; i < WRITES; i++) {
        failing_writes[i]();
        assert_int_equal(is_blocked(), 0);
        assert_ptr_equal(get_handler(), SIG_IGN);
    }
    set_handler(SIG_DFL);
}

static void a_mask_stays(void **state) {
    (void)state;
    change_mask(SIG_BLOCK);
    for (size_t i = 0; i < WRITES; i++) {
        failing_writes[i]();
        assert_int_equal(is_blocked(), 1);
        assert_int_equal(is_pending(), 0);
    }
    change_mask(SIG_UNBLOCK);
}

/* One that the host has pending, sent to this thread or to the process, is there once behind it. */
static void a_pending_one_stays(void **state) {
    (void)state;
    set_handler(count_pipe);
    for (int to_process = 0; to_process < 2; to_process++) {
        for (size_t i = 0; i < WRITES; i++) {
            pipes = 0;
            change_mask(SIG_BLOCK);
            if (to_process) {
                assert_int_equal(kill(getpid(), SIGPIPE), 0);
            } else {
                assert_int_equal(raise(SIGPIPE), 0);
            }
            failing_writes[i]();
            assert_int_equal(is_pending(), 1);
            assert_int_equal(pipes, 0);
            change_mask(SIG_UNBLOCK);
            assert_int_equal(pipes, 1);
            assert_int_equal(is_pending(), 0);
        }
    }
    set_handler(SIG_DFL);
}

/* A storm of signals on one thread. */
static atomic_int storm_goes_on;
static atomic_int storm_hits;
static pthread_t storm_target;

static void count_hit(int number) {
    (void)number;
    atomic_fetch_add(&storm_hits, 1);
}

static void *run_storm(void *data) {
    const struct timespec pause = {0, 200000};
    (void)data;
    while (atomic_load(&storm_goes_on)) {
        (void)pthread_kill(storm_target, SIGUSR1);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

static pthread_t start_storm(void) {
    pthread_t storm;
    struct sigaction action = {.sa_handler = count_hit}; /* no SA_RESTART: calls are interrupted */
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    storm_target = pthread_self();
    atomic_store(&storm_hits, 0);
    atomic_store(&storm_goes_on, 1);
    assert_int_equal(pthread_create(&storm, NULL, run_storm, NULL), 0);
    return storm;
}

static void end_storm(pthread_t storm) {
    atomic_store(&storm_goes_on, 0);
    assert_int_equal(pthread_join(storm, NULL), 0);
    assert_true(atomic_load(&storm_hits) > 10);
}

static void interruptions_change_no_result(void **state) {
    size_t size = (size_t)8 * 1024 * 1024;
    char *payload = calloc(1, size);
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.unix_path = NULL;
    options.host = "localhost"; /* with a look-up */
    options.port = (uint16_t)server.port;
    pthread_t storm = start_storm();
    emq_client *client = open_client(&options);
    for (int i = 0; i < 200 || atomic_load(&storm_hits) <= 10; i++) {
        emq_id id = {{0}};
        emq_job *job = NULL;
        size_t n = 0;
        size_t want = i % 20 == 0 ? size : 100;
        EXPECT_RESULT(client, emq_enqueue(&id, client, "q", payload, want), EMQ_OK);
        EXPECT_RESULT(client, emq_claim(&job, client, "q", 60000), EMQ_OK);
        assert_non_null(emq_job_get_payload(job, &n));
        assert_int_equal(n, want);
        EXPECT_RESULT(client, emq_complete(client, emq_job_get_lease(job)), EMQ_OK);
        emq_job_free(job);
        if (i % 50 == 0) {
            EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
        }
    }
    end_storm(storm);
    emq_client_close(client);
    free(payload);
}

/* A wait that began anew with each signal would never end here. */
static void interruptions_stretch_no_deadline(void **state) {
    emq_job *job = NULL;
    int sockets[2];
    (void)state;
    const peer_script script = {.steps = {PEER_HANDSHAKE}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.command_timeout_ms = SHORT_MS;
    emq_client *client = open_client(&options);
    options.port = deaf_port(sockets);
    options.connect_timeout_ms = SHORT_MS;
    pthread_t storm = start_storm();
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ETIMEOUT);
    EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, NULL);
    end_storm(storm);
    (void)close(sockets[1]);
    (void)close(sockets[0]);
    emq_client_close(client);
    peer_stop(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_does_not_kill),
        cmocka_unit_test(a_handler_is_not_called),
        cmocka_unit_test(ignoring_stays_ignoring),
        cmocka_unit_test(a_mask_stays),
        cmocka_unit_test(a_pending_one_stays),
        cmocka_unit_test(interruptions_change_no_result),
        cmocka_unit_test(interruptions_stretch_no_deadline),
    };
    return RUN_SERVER_TESTS("signals", tests, start_with_path, stop_server);
}
