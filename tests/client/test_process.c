/* SPDX-License-Identifier: Apache-2.0 */
/* What the client does to its process: nothing that a fork or an exec would carry on, and no signal
 * is taken. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "command.h"
#include "server_fixture.h"

#define DESCRIPTORS 256

static long long connection_id(emq_client *client) {
    static const char *const words[] = {"CLIENT", "ID"};
    emq_reply *reply = NULL;
    EXPECT_RESULT(client, emq_client_command(&reply, client, 2, words, NULL), EMQ_OK);
    long long id = emq_reply_get_integer(reply);
    emq_reply_free(reply);
    return id;
}

/* A lease, and the client that got it. */
typedef struct held {
    emq_client *client;
    emq_job *job;
    emq_pool *pool;
    emq_client *out; /* of the pool */
} held;

static void use_in_child(void *data) {
    static const char *const words[] = {"PING"};
    held *h = data;
    emq_id fresh = {{0}};
    emq_id given = {{"JOB0KHTOWnGLuC"}};
    emq_job *job = NULL;
    emq_reply *reply = NULL;
    CHECK_IN_CHILD(!emq_client_is_open(h->client));
    CHECK_IN_CHILD(emq_enqueue(&fresh, h->client, "q", "p", 1) == EMQ_EFORKED);
    CHECK_IN_CHILD(strcmp(emq_client_get_error(h->client), emq_strerror(EMQ_EFORKED)) == 0);
    CHECK_IN_CHILD(emq_enqueue(&given, h->client, "q", "p", 1) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_claim(&job, h->client, "q", 1000) == EMQ_EFORKED && job == NULL);
    CHECK_IN_CHILD(emq_complete(h->client, emq_job_get_lease(h->job)) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_client_command(&reply, h->client, 1, words, NULL) == EMQ_EFORKED);
    emq_pipeline *p = NULL;
    CHECK_IN_CHILD(emq_pipeline_new(&p, h->client) == EMQ_OK);
    CHECK_IN_CHILD(emq_pipeline_claim(p, "q", 1000) == EMQ_OK);
    CHECK_IN_CHILD(emq_pipeline_run(p) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_pipeline_get_result(p, 0) == EMQ_EFORKED);
    CHECK_IN_CHILD(strcmp(emq_pipeline_get_error(p, 0), emq_strerror(EMQ_EFORKED)) == 0);
    emq_pipeline_free(p);
    CHECK_IN_CHILD(emq_client_reconnect(h->client) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_err_class(EMQ_EFORKED) == EMQ_CLASS_USAGE);
    int fd = h->client->connection.context->fd;
    emq_client_close(h->client);
    CHECK_IN_CHILD(fcntl(fd, F_GETFD) == -1);
}

/* Neither a byte nor an end: the very connection goes on. */
static void a_child_has_no_part_in_a_client(void **state) {
    (void)state;
    for (int over_tcp = 0; over_tcp < 2; over_tcp++) {
        emq_id id = {{0}};
        emq_client_options options = options_for_server(&server);
        if (over_tcp) {
            options.unix_path = NULL;
            options.port = (uint16_t)server.port;
        }
        held h = {.client = open_client(&options)};
        long long connection = connection_id(h.client);
        EXPECT_RESULT(h.client, emq_enqueue(&id, h.client, "q", "p", 1), EMQ_OK);
        EXPECT_RESULT(h.client, emq_claim(&h.job, h.client, "q", 60000), EMQ_OK);
        for (int i = 0; i < 3; i++) {
            run_child(use_in_child, &h);
        }
        EXPECT_RESULT(h.client, emq_complete(h.client, emq_job_get_lease(h.job)), EMQ_OK);
        assert_int_equal(connection_id(h.client), connection);
        emq_job_free(h.job);
        emq_client_close(h.client);
    }
}

static void use_closed_in_child(void *data) {
    emq_client *client = data;
    emq_id id = {{0}};
    CHECK_IN_CHILD(emq_enqueue(&id, client, "q", "p", 1) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_client_reconnect(client) == EMQ_EFORKED);
    emq_client_close(client);
}

static void a_closed_client_is_the_parents_too(void **state) {
    int reserved = -1;
    emq_client *client = NULL;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    options.port = closed_port(&reserved);
    int result = emq_client_open(&client, &options);
    EXPECT_RESULT(client, result, EMQ_ECONNECT);
    run_child(use_closed_in_child, client);
    emq_client_close(client);
    (void)close(reserved);
}

static void use_pool_in_child(void *data) {
    held *h = data;
    emq_client *client = NULL;
    emq_id id = {{0}};
    emq_pool_stats stats = EMQ_POOL_STATS_INIT;
    char error[64];
    CHECK_IN_CHILD(emq_pool_acquire(&client, h->pool, 100) == EMQ_EFORKED && client == NULL);
    CHECK_IN_CHILD(emq_enqueue(&id, h->out, "q", "p", 1) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_pool_release(h->pool, h->out) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_pool_get_stats(&stats, h->pool) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_pool_copy_error(error, sizeof(error), h->pool) == EMQ_EFORKED);
    emq_pool_close(h->pool);
    emq_pool_free(h->pool);
}

static void a_child_has_no_part_in_a_pool(void **state) {
    emq_client_options options = options_for_server(&server);
    emq_pool_stats stats = EMQ_POOL_STATS_INIT;
    held h = {.client = NULL};
    (void)state;
    assert_int_equal(emq_pool_open(&h.pool, &options, NULL), EMQ_OK);
    assert_int_equal(emq_pool_acquire(&h.client, h.pool, LONG_MS), EMQ_OK);
    assert_int_equal(emq_pool_acquire(&h.out, h.pool, LONG_MS), EMQ_OK);
    long long idle = connection_id(h.client);
    long long out = connection_id(h.out);
    assert_int_equal(emq_pool_release(h.pool, h.client), EMQ_OK);
    for (int i = 0; i < 3; i++) {
        run_child(use_pool_in_child, &h);
    }
    assert_int_equal(connection_id(h.out), out);
    assert_int_equal(emq_pool_acquire(&h.client, h.pool, LONG_MS), EMQ_OK);
    assert_int_equal(connection_id(h.client), idle);
    assert_int_equal(emq_pool_get_stats(&stats, h.pool), EMQ_OK);
    assert_int_equal(stats.in_use, 2);
    assert_int_equal(stats.replaced, 0);
    assert_int_equal(emq_pool_release(h.pool, h.client), EMQ_OK);
    assert_int_equal(emq_pool_release(h.pool, h.out), EMQ_OK);
    emq_pool_free(h.pool);
}

static void work_in_child(void *data) {
    const emq_client_options *options = data;
    emq_client *client = NULL;
    emq_job *job = NULL;
    emq_id id = {{0}};
    CHECK_IN_CHILD(emq_client_open(&client, options) == EMQ_OK);
    CHECK_IN_CHILD(emq_enqueue(&id, client, "own", "p", 1) == EMQ_OK);
    CHECK_IN_CHILD(emq_claim(&job, client, "own", 60000) == EMQ_OK);
    CHECK_IN_CHILD(emq_complete(client, emq_job_get_lease(job)) == EMQ_OK);
    emq_job_free(job);
    emq_client_close(client);
}

static void a_child_opens_clients_of_its_own(void **state) {
    emq_client_options options = options_for_server(&server);
    (void)state;
    emq_client *client = open_client(&options);
    run_child(work_in_child, &options);
    (void)connection_id(client);
    emq_client_close(client);
}

static int is_descriptor(int fd) {
    return fcntl(fd, F_GETFD) != -1;
}

static void note_descriptors(char noted[DESCRIPTORS]) {
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        noted[fd] = (char)is_descriptor(fd);
    }
}

/* Starts another program, which says what it has inherited; returns that, for the caller to free.
 */
static char *ask_other_program(void) {
    int ends[2];
    char *text = calloc(1, 65536);
    size_t n = 0;
    ssize_t got = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/bin/sh", "sh", "-c", "ls -l /proc/$$/fd", (char *)NULL);
        _exit(1);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], text + n, 65535 - n)) > 0) {
        n += (size_t)got;
    }
    (void)close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return text;
}

/* Every descriptor that is new is closed by an exec, and never blocks. Returns how many. */
static int check_new_descriptors(const char noted[DESCRIPTORS], const char *inherited) {
    int count = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct stat what;
        char name[64];
        if (noted[fd] || !is_descriptor(fd)) {
            continue;
        }
        count++;
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        assert_int_equal(fstat(fd, &what), 0);
        assert_true(S_ISSOCK(what.st_mode));
        (void)snprintf(name, sizeof(name), "socket:[%llu]", (unsigned long long)what.st_ino);
        assert_null(strstr(inherited, name));
    }
    return count;
}

static void another_program_inherits_nothing(void **state) {
    char noted[DESCRIPTORS];
    emq_client *client[4];
    emq_pool *pool = NULL;
    (void)state;
    emq_client_options by_path = options_for_server(&server);
    emq_client_options by_address = by_path;
    by_address.unix_path = NULL;
    by_address.port = (uint16_t)server.port;
    emq_client_options by_name = by_address;
    by_name.host = "localhost";
    note_descriptors(noted);
    client[0] = open_client(&by_path);
    client[1] = open_client(&by_address);
    client[2] = open_client(&by_name);
    assert_int_equal(emq_pool_open(&pool, &by_address, NULL), EMQ_OK);
    assert_int_equal(emq_pool_acquire(&client[3], pool, LONG_MS), EMQ_OK);
    EXPECT_RESULT(client[1], emq_client_reconnect(client[1]), EMQ_OK);
    char *inherited = ask_other_program();
    assert_non_null(strstr(inherited, "->")); /* it has said something */
    assert_int_equal(check_new_descriptors(noted, inherited), 4);
    free(inherited);
    assert_int_equal(emq_pool_release(pool, client[3]), EMQ_OK);
    emq_pool_free(pool);
    for (int i = 0; i < 3; i++) {
        emq_client_close(client[i]);
    }
    assert_int_equal(check_new_descriptors(noted, ""), 0);
}

/* A failure leaves no descriptor behind, wherever on the path it happens. */
static void a_failed_open_leaves_no_descriptor(void **state) {
    char noted[DESCRIPTORS];
    int sockets[2];
    int reserved = -1;
    const peer_script script = {.steps = {{PEER_CLOSE, NULL, 0}}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    emq_client_options refused = EMQ_CLIENT_OPTIONS_INIT;
    emq_client_options silent = EMQ_CLIENT_OPTIONS_INIT;
    emq_client_options nowhere = EMQ_CLIENT_OPTIONS_INIT;
    refused.port = closed_port(&reserved);
    silent.port = deaf_port(sockets);
    silent.connect_timeout_ms = SHORT_MS;
    nowhere.unix_path = "/nonexistent/socket";
    EXPECT_OPEN(&options, EMQ_ECONNECT, NULL); /* so that the peer has its descriptors */
    emq_client *client = NULL;
    note_descriptors(noted);
    EXPECT_OPEN(&refused, EMQ_ECONNECT, NULL);
    EXPECT_OPEN(&silent, EMQ_ECONNTIMEOUT, NULL);
    EXPECT_OPEN(&nowhere, EMQ_ECONNECT, NULL);
    int result = emq_client_open(&client, &refused);
    EXPECT_RESULT(client, result, EMQ_ECONNECT);
    assert_int_equal(check_new_descriptors(noted, ""), 0); /* before the close, too */
    emq_client_close(client);
    (void)close(sockets[1]);
    (void)close(sockets[0]);
    (void)close(reserved);
    peer_stop(p);
}

static void read_handlers(struct sigaction handlers[], int count) {
    memset(handlers, 0, (size_t)count * sizeof(handlers[0]));
    for (int i = 1; i < count; i++) {
        (void)sigaction(i, NULL, &handlers[i]); /* fails for those that the C library keeps */
    }
}

#define SIGNALS 65

static void no_signal_is_taken(void **state) {
    static struct sigaction before[SIGNALS];
    static struct sigaction after[SIGNALS];
    emq_id id = {{0}};
    emq_pool *pool = NULL;
    emq_client *client = NULL;
    emq_client_options options = options_for_server(&server);
    (void)state;
    options.unix_path = NULL;
    options.host = "localhost";
    options.port = (uint16_t)server.port;
    read_handlers(before, SIGNALS);
    assert_int_equal(emq_pool_open(&pool, &options, NULL), EMQ_OK);
    assert_int_equal(emq_pool_acquire(&client, pool, LONG_MS), EMQ_OK);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "signals", "p", 1), EMQ_OK);
    read_handlers(after, SIGNALS);
    for (int i = 1; i < SIGNALS; i++) {
        assert_ptr_equal(before[i].sa_handler, after[i].sa_handler);
        assert_int_equal(before[i].sa_flags, after[i].sa_flags);
    }
    assert_int_equal(emq_pool_release(pool, client), EMQ_OK);
    emq_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_no_part_in_a_client),
        cmocka_unit_test(a_closed_client_is_the_parents_too),
        cmocka_unit_test(a_child_has_no_part_in_a_pool),
        cmocka_unit_test(a_child_opens_clients_of_its_own),
        cmocka_unit_test(another_program_inherits_nothing),
        cmocka_unit_test(a_failed_open_leaves_no_descriptor),
        cmocka_unit_test(no_signal_is_taken),
    };
    return RUN_SERVER_TESTS("process", tests, start_server, stop_server);
}
