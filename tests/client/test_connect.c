/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting: servers in every state that the connect path must tell apart, addresses that don't
 * answer, names that don't resolve. */
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "server_fixture.h"

#define FENCE "{emq}:version"
#define WORKER_RULES                                                                               \
    "+@emq -@dangerous ~emq:{q}:* %R~{emq}:version +hello +auth +client|setname +client|setinfo "  \
    "+select +ping +get"

static void each_way_to_the_server_opens(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.unix_path = NULL;
    options.port = (uint16_t)server.port;
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.host = "127.0.0.1";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.host = "localhost";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
}

static void the_connection_has_its_name(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.client_name = "worker-7";
    emq_client *client = open_client(&options);
    const char *const words[] = {"CLIENT", "GETNAME"};
    emq_reply *reply = NULL;
    EXPECT_RESULT(client, emq_client_command(&reply, client, 2, words, NULL), EMQ_OK);
    assert_string_equal(emq_reply_get_string(reply, NULL), "worker-7");
    emq_reply_free(reply);
    emq_client_close(client);
}

static void another_brand_is_refused(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    char error[256];
    run(server.admin, "SET", FENCE, "echomq:5.0.0", NULL);
    EXPECT_OPEN(&options, EMQ_EFENCE, "expected echomq:6.0.0 found echomq:5.0.0");
    assert_int_equal(emq_install(&options, error, sizeof(error)), EMQ_EFENCE);
    assert_string_equal(error, "EMQWIRE expected echomq:6.0.0 found echomq:5.0.0");
    char value[64];
    assert_string_equal(get_text(value, sizeof(value), server.admin, "GET", FENCE, NULL),
                        "echomq:5.0.0");
    run(server.admin, "SET", FENCE, "echomq:6.0.0", NULL);
}

static void a_fence_of_another_type_is_refused(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    run(server.admin, "DEL", FENCE, NULL);
    run(server.admin, "LPUSH", FENCE, "echomq:6.0.0", NULL);
    EXPECT_OPEN(&options, EMQ_EWRONGTYPE, "WRONGTYPE");
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_EWRONGTYPE);
    run(server.admin, "DEL", FENCE, NULL);
    run(server.admin, "SET", FENCE, "echomq:6.0.0", NULL);
}

static void an_absent_fence_is_refused_until_installed(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    run(server.admin, "DEL", FENCE, NULL);
    EXPECT_OPEN(&options, EMQ_EFENCE_ABSENT, "{emq}:version is absent");
    char error[64] = "untouched";
    assert_int_equal(emq_install(&options, error, sizeof(error)), EMQ_OK);
    assert_string_equal(error, "");
    assert_int_equal(emq_install(&options, error, sizeof(error)), EMQ_DUPLICATE);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
}

static void a_fence_belongs_to_its_database(void **state) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    (void)state;
    emq_client_options other = options_for_server(&server);
    other.database = 3;
    EXPECT_OPEN(&other, EMQ_EFENCE_ABSENT, NULL);
    assert_int_equal(emq_install(&other, NULL, 0), EMQ_OK);
    emq_client *there = open_client(&other);
    emq_client_options options = options_for_server(&server);
    emq_client *here = open_client(&options);
    EXPECT_RESULT(there, emq_enqueue(&id, there, "q", "p", 1), EMQ_OK);
    EXPECT_RESULT(here, emq_claim(&job, here, "q", 1000), EMQ_EMPTY);
    EXPECT_RESULT(there, emq_claim(&job, there, "q", 1000), EMQ_OK);
    EXPECT_RESULT(there, emq_complete(there, emq_job_get_lease(job)), EMQ_OK);
    emq_job_free(job);
    emq_client_close(here);
    emq_client_close(there);
}

static void an_unknown_database_is_refused(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.database = 100000;
    EXPECT_OPEN(&options, EMQ_EDATABASE, "out of range");
}

static void a_server_without_the_module_is_refused(void **state) {
    (void)state;
    test_server bare;
    server_start_bare(&bare, NULL);
    emq_client_options options = options_for_server(&bare);
    EXPECT_OPEN(&options, EMQ_EMODULE, "the server has no EMQ module");
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_EMODULE);
    server_stop(&bare);
}

static void passwords_are_told_apart(void **state) {
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.password = "wrong";
    EXPECT_OPEN(&options, EMQ_EAUTH, "without any password configured");
    run(server.admin, "CONFIG", "SET", "requirepass", "right", NULL);
    EXPECT_OPEN(&options, EMQ_EAUTH, "WRONGPASS");
    options.username = "nobody";
    EXPECT_OPEN(&options, EMQ_EAUTH, "WRONGPASS");
    options.username = NULL;
    options.password = NULL;
    EXPECT_OPEN(&options, EMQ_EAUTH, "NOAUTH");
    options.database = 3;
    EXPECT_OPEN(&options, EMQ_EAUTH, "NOAUTH");
    options.database = 0;
    options.password = "right";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.username = "default";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    run(server.admin, "CONFIG", "SET", "requirepass", "", NULL);
}

static void users_have_the_rights_they_have(void **state) {
    static const struct {
        const char *rules;
        int result;
        const char *says;
    } cases[] = {
        {WORKER_RULES, EMQ_OK, NULL},
        {WORKER_RULES " -client", EMQ_OK, NULL},
        {WORKER_RULES " -emq.version", EMQ_ENOPERM, "NOPERM"},
        {WORKER_RULES " -get", EMQ_ENOPERM, "NOPERM"},
        {WORKER_RULES " resetkeys ~emq:{q}:*", EMQ_ENOPERM, "NOPERM"},
        {WORKER_RULES " off", EMQ_EAUTH, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        /* the rules are set through a connection that a user who is off can't have */
        redisContext *c = server_connect_as(&server, "worker", WORKER_RULES);
        redisFree(c);
        char *rules = strdup(cases[i].rules);
        run(server.admin, "ACL", "SETUSER", "worker", NULL);
        for (char *rest = NULL, *word = strtok_r(rules, " ", &rest); word != NULL;
             word = strtok_r(NULL, " ", &rest)) {
            run(server.admin, "ACL", "SETUSER", "worker", word, NULL);
        }
        free(rules);
        emq_client_options options = options_for_server(&server);
        options.username = "worker";
        options.password = "password";
        EXPECT_OPEN(&options, cases[i].result, cases[i].says);
        /* installing is for administrators; a worker's right to the fence is to read it */
        assert_int_equal(emq_install(&options, NULL, 0),
                         cases[i].result == EMQ_EAUTH ? EMQ_EAUTH : EMQ_ENOPERM);
    }
    run(server.admin, "ACL", "DELUSER", "worker", NULL);
}

static int is_loading(void *data) {
    char value[16];
    return strcmp(get_info(value, sizeof(value), data, "persistence", "loading"), "1") == 0;
}

static int is_loaded(void *data) {
    return !is_loading(data);
}

/* A server that loads slowly is told from one that is ready, on the connect path and behind it. */
static void a_loading_server_is_retryable(void **state) {
    emq_job *job = NULL;
    (void)state;
    redisContext *control = server_connect(&server);
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    run(server.admin, "DEBUG", "POPULATE", "20000", "filler", "100", NULL);
    run(server.admin, "CONFIG", "SET", "loading-process-events-interval-bytes", "1024",
        "key-load-delay", "1000", NULL);
    assert_int_equal(redisAppendCommand(server.admin, "DEBUG RELOAD"), REDIS_OK);
    int sent = 0;
    while (!sent) {
        assert_int_equal(redisBufferWrite(server.admin, &sent), REDIS_OK);
    }
    wait_until("the server loads", is_loading, control);
    EXPECT_OPEN(&options, EMQ_ELOADING, "LOADING");
    assert_int_equal(emq_err_class(EMQ_ELOADING), EMQ_CLASS_RETRYABLE);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_ELOADING);
    assert_int_equal(emq_client_is_open(client), 1);
    run(control, "CONFIG", "SET", "key-load-delay", "0", NULL);
    redisReply *reply = NULL;
    assert_int_equal(redisGetReply(server.admin, (void **)&reply), REDIS_OK);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    wait_until("the server has loaded", is_loaded, control);
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 1000), EMQ_EMPTY);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    emq_client_close(client);
    (void)clean_server(NULL);
    redisFree(control);
}

static void replicas_are_told_apart(void **state) {
    char port[16];
    int reserved = -1;
    emq_id id = {{0}};
    (void)state;
    (void)snprintf(port, sizeof(port), "%u", (unsigned)closed_port(&reserved));
    emq_client_options options = options_for_server(&server);
    run(server.admin, "REPLICAOF", "127.0.0.1", port, NULL);
    emq_client *client = open_client(&options);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_EREADONLY);
    assert_int_equal(emq_client_is_open(client), 1);
    emq_client_close(client);
    run(server.admin, "CONFIG", "SET", "replica-serve-stale-data", "no", NULL);
    EXPECT_OPEN(&options, EMQ_EMASTERDOWN, "MASTERDOWN");
    run(server.admin, "CONFIG", "SET", "replica-serve-stale-data", "yes", NULL);
    run(server.admin, "REPLICAOF", "NO", "ONE", NULL);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    (void)close(reserved);
}

static void a_full_server_is_retryable(void **state) {
    char limit[16];
    (void)state;
    run(server.admin, "CONFIG", "SET", "maxclients", "1", NULL);
    emq_client_options options = options_for_server(&server);
    EXPECT_OPEN(&options, EMQ_ECONNECT, "max number of clients reached");
    options.unix_path = NULL;
    options.port = (uint16_t)server.port;
    EXPECT_OPEN(&options, EMQ_ECONNECT, "max number of clients reached");
    (void)snprintf(limit, sizeof(limit), "%d", 1000);
    run(server.admin, "CONFIG", "SET", "maxclients", limit, NULL);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
}

static void a_closed_port_is_refused(void **state) {
    int reserved = -1;
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.connect_timeout_ms = LONG_MS;
    options.port = closed_port(&reserved);
    EXPECT_OPEN(&options, EMQ_ECONNECT, "connection refused");
    options.host = "::1";
    EXPECT_OPEN(&options, EMQ_ECONNECT, "::1");
    options.host = "localhost";
    EXPECT_OPEN(&options, EMQ_ECONNECT, "localhost");
    options.unix_path = "/nonexistent/socket";
    EXPECT_OPEN(&options, EMQ_ECONNECT, "no such socket");
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_ECONNECT);
    (void)close(reserved);
}

static void a_port_that_accepts_nothing_times_out(void **state) {
    int sockets[2];
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.connect_timeout_ms = SHORT_MS;
    options.port = deaf_port(sockets);
    EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, "did not answer in time");
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_ECONNTIMEOUT);
    (void)close(sockets[1]);
    (void)close(sockets[0]);
}

/* The resolver of this program: names below .test are answered here, all else by the system. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int is_held;  /* look-ups wait */
    int finished; /* look-ups of .test that have ended */
    uint16_t ports[3];
    int port_count;
} resolver = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {0}, 0};

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);

/* A list of 127.0.0.1 at each port of the resolver. */
static int answer_ports(const struct addrinfo *hints, struct addrinfo **out) {
    struct addrinfo **end = out;
    for (int i = 0; i < resolver.port_count; i++) {
        char service[8];
        (void)snprintf(service, sizeof(service), "%u", (unsigned)resolver.ports[i]);
        int code = __real_getaddrinfo("127.0.0.1", service, hints, end);
        if (code != 0) {
            return code;
        }
        end = &(*end)->ai_next;
    }
    return resolver.port_count > 0 ? 0 : EAI_NONAME;
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out) {
    const char *end = strstr(host, ".test");
    if (end == NULL || (hints->ai_flags & AI_NUMERICHOST) != 0) {
        return __real_getaddrinfo(host, service, hints, out);
    }
    (void)pthread_mutex_lock(&resolver.mutex);
    while (resolver.is_held) {
        (void)pthread_cond_wait(&resolver.changed, &resolver.mutex);
    }
    int code = answer_ports(hints, out);
    resolver.finished++;
    (void)pthread_mutex_unlock(&resolver.mutex);
    return code;
}

static void set_resolver(int is_held, int count, uint16_t a, uint16_t b) {
    (void)pthread_mutex_lock(&resolver.mutex);
    resolver.is_held = is_held;
    resolver.port_count = count;
    resolver.ports[0] = a;
    resolver.ports[1] = b;
    (void)pthread_cond_broadcast(&resolver.changed);
    (void)pthread_mutex_unlock(&resolver.mutex);
}

static int get_finished(void) {
    (void)pthread_mutex_lock(&resolver.mutex);
    int finished = resolver.finished;
    (void)pthread_mutex_unlock(&resolver.mutex);
    return finished;
}

static int has_finished(void *data) {
    const int *want = data;
    return get_finished() >= *want;
}

static void an_unknown_name_is_refused(void **state) {
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.connect_timeout_ms = LONG_MS;
    options.host = "unknown.test";
    set_resolver(0, 0, 0, 0);
    EXPECT_OPEN(&options, EMQ_ERESOLVE, "unknown.test: ");
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_ERESOLVE);
}

/* The system's resolver says so itself: a name with an empty label is none. */
static void a_malformed_name_is_refused(void **state) {
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.connect_timeout_ms = LONG_MS;
    options.host = "a..b";
    EXPECT_OPEN(&options, EMQ_ERESOLVE, "a..b");
}

/* The answer comes when the client and its options are gone already. */
static void a_slow_resolver_keeps_nobody(void **state) {
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    char *host = strdup("slow.test");
    int want = get_finished() + 3;
    options.connect_timeout_ms = SHORT_MS;
    options.host = host;
    set_resolver(1, 1, (uint16_t)server.port, 0);
    EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, "resolving slow.test took too long");
    EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, NULL);
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_ECONNTIMEOUT);
    free(host);
    assert_int_equal(get_finished(), want - 3);
    set_resolver(0, 1, (uint16_t)server.port, 0);
    wait_until("the late answers have come", has_finished, &want);
    options.host = "slow.test";
    options.connect_timeout_ms = LONG_MS;
    EXPECT_OPEN(&options, EMQ_OK, NULL);
}

static int is_open_again(void *data) {
    emq_client *client = NULL;
    int result = emq_client_open(&client, data);
    emq_client_close(client);
    return result == EMQ_OK;
}

#ifndef __SANITIZE_THREAD__ /* which lets no child of threads start threads */
/* The threads are the parent's: a child may look up. */
static void look_up_in_child(const emq_client_options *options) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        emq_client *client = NULL;
        int result = emq_client_open(&client, options);
        _exit(result == EMQ_OK ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#endif

/* Each call that gave up leaves a thread behind, until there are enough of them. */
static void a_silent_name_server_does_not_pile_up_threads(void **state) {
    const int most = 16;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    emq_client_options by_name = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    by_name.host = "localhost";
    by_name.port = (uint16_t)server.port;
    by_name.connect_timeout_ms = LONG_MS;
    options.host = "silent.test";
    set_resolver(1, 1, (uint16_t)server.port, 0);
    for (int i = 0; i < most; i++) {
        options.connect_timeout_ms = 20;
        EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, "resolving silent.test took too long");
    }
    options.connect_timeout_ms = LONG_MS;
    EXPECT_OPEN(&options, EMQ_ERESOLVE, "owes 16 answers already");
    EXPECT_OPEN(&by_name, EMQ_ERESOLVE, "localhost was not looked up");
#ifndef __SANITIZE_THREAD__
    look_up_in_child(&by_name);
#endif
    by_name.host = "127.0.0.1"; /* needs no look-up */
    EXPECT_OPEN(&by_name, EMQ_OK, NULL);
    set_resolver(0, 1, (uint16_t)server.port, 0);
    wait_until("names are looked up again", is_open_again, &options);
}

static void each_address_is_tried(void **state) {
    int reserved = -1;
    int deaf[2];
    (void)state;
    uint16_t good = (uint16_t)server.port;
    uint16_t closed = closed_port(&reserved);
    uint16_t swallowing = deaf_port(deaf);
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.host = "many.test";
    options.connect_timeout_ms = LONG_MS;
    set_resolver(0, 2, closed, good);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    set_resolver(0, 2, closed, closed);
    EXPECT_OPEN(&options, EMQ_ECONNECT, "connection refused");
    /* one that swallows everything leaves time for the next */
    options.connect_timeout_ms = 8000;
    set_resolver(0, 2, swallowing, good);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.connect_timeout_ms = SHORT_MS;
    set_resolver(0, 2, swallowing, swallowing);
    EXPECT_OPEN(&options, EMQ_ECONNTIMEOUT, "many.test");
    (void)close(deaf[1]);
    (void)close(deaf[0]);
    (void)close(reserved);
}

static void reconnecting_runs_the_whole_path(void **state) {
    emq_id id = {{0}};
    (void)state;
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    run(server.admin, "SET", FENCE, "echomq:7.0.0", NULL);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_EFENCE);
    assert_int_equal(emq_client_is_open(client), 0);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_ECLOSED);
    run(server.admin, "SET", FENCE, "echomq:6.0.0", NULL);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    emq_client_close(client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_to_the_server_opens),
        cmocka_unit_test(the_connection_has_its_name),
        cmocka_unit_test(another_brand_is_refused),
        cmocka_unit_test(a_fence_of_another_type_is_refused),
        cmocka_unit_test(an_absent_fence_is_refused_until_installed),
        cmocka_unit_test(a_fence_belongs_to_its_database),
        cmocka_unit_test(an_unknown_database_is_refused),
        cmocka_unit_test(a_server_without_the_module_is_refused),
        cmocka_unit_test(passwords_are_told_apart),
        cmocka_unit_test(users_have_the_rights_they_have),
        cmocka_unit_test(replicas_are_told_apart),
        cmocka_unit_test(a_full_server_is_retryable),
        cmocka_unit_test(a_loading_server_is_retryable),
        cmocka_unit_test(a_closed_port_is_refused),
        cmocka_unit_test(a_port_that_accepts_nothing_times_out),
        cmocka_unit_test(an_unknown_name_is_refused),
        cmocka_unit_test(a_malformed_name_is_refused),
        cmocka_unit_test(a_slow_resolver_keeps_nobody),
        cmocka_unit_test(a_silent_name_server_does_not_pile_up_threads),
        cmocka_unit_test(each_address_is_tried),
        cmocka_unit_test(reconnecting_runs_the_whole_path),
    };
    return RUN_SERVER_TESTS("connect", tests, start_server, stop_server);
}
