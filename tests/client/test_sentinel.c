/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that find their primary through sentinels: three real ones, which watch a primary and its
 * replica, through failovers of every kind; and scripted ones that lie or say nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "command.h"
#include "watch.h"

/* Long enough for a slow machine, and short enough to try again in time for the next failover. */
#define CONNECT_MS 6000

/* The port of the server at the other end, as it tells it; a failover may end the connection before
 * that. */
static int ask_port(int *port, emq_client *client) {
    const char *const words[] = {"CONFIG", "GET", "port"};
    emq_reply *reply = NULL;
    int result = emq_client_command(&reply, client, 3, words, NULL);
    if (result == EMQ_OK) {
        *port = atoi(emq_reply_get_string(emq_reply_get_element(reply, 1), NULL));
    }
    emq_reply_free(reply);
    return result;
}

static int port_of(emq_client *client) {
    int port = 0;
    EXPECT_RESULT(client, ask_port(&port, client), EMQ_OK);
    return port;
}

static void expect_at_primary(emq_client *client) {
    assert_int_equal(port_of(client), watch_primary(&watched)->port);
}

static void expect_opens_at_primary(const emq_client_options *options) {
    emq_client *client = open_client(options);
    expect_at_primary(client);
    emq_client_close(client);
}

/* Where the sentinels are asked first now. */
static unsigned first_sentinel(const emq_client *client) {
    return client->settings.sentinel_list.list[0].port;
}

static void it_opens_on_the_primary(void **state) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    emq_client *client = open_client(&options);
    expect_at_primary(client);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "open", "p", 1), EMQ_OK);
    EXPECT_RESULT(client, emq_claim(&job, client, "open", 30000), EMQ_OK);
    EXPECT_RESULT(client, emq_complete(client, emq_job_get_lease(job)), EMQ_OK);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    emq_job_free(job);
    emq_client_close(client);
    assert_int_equal(emq_install(&options, NULL, 0), EMQ_DUPLICATE);
}

static void a_url_says_the_same(void **state) {
    char url[WATCH_LIST_MAX + 128];
    emq_client *client = NULL;
    (void)state;
    (void)snprintf(url, sizeof(url), "valkey+sentinel://%s/" WATCH_NAME "?connect_timeout_ms=%d",
                   watched.list, LONG_MS);
    EXPECT_RESULT(client, emq_client_open_url(&client, url), EMQ_OK);
    expect_at_primary(client);
    emq_client_close(client);
}

static void pool_and_subscription_go_the_same_way(void **state) {
    emq_pool *pool = NULL;
    emq_client *client = NULL;
    emq_events *events = NULL;
    emq_event *event = NULL;
    int64_t receivers = 0;
    const emq_bytes name = {"done", 4};
    const emq_bytes job = {"JOB0KHTOWnGLuC", 14};
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    assert_int_equal(emq_pool_open(&pool, &options, NULL), EMQ_OK);
    assert_int_equal(emq_pool_acquire(&client, pool, LONG_MS), EMQ_OK);
    expect_at_primary(client);
    assert_int_equal(emq_events_open(&events, &options, "told"), EMQ_OK);
    EXPECT_RESULT(client, emq_publish(&receivers, client, "told", name, job, NULL, 0), EMQ_OK);
    assert_int_equal(emq_events_next(&event, events, LONG_MS), EMQ_OK);
    emq_event_free(event);
    emq_events_close(events);
    emq_pool_release(pool, client);
    emq_pool_free(pool);
}

static void an_unknown_name_is_told(void **state) {
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    options.primary_name = "nobody";
    EXPECT_OPEN(&options, EMQ_EPRIMARYNAME, "knows no primary of this name");
    assert_int_equal(emq_err_class(EMQ_EPRIMARYNAME), EMQ_CLASS_SERVER);
}

static void no_sentinel_is_an_error_of_its_own(void **state) {
    char list[64];
    int reserved = -1;
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    uint16_t port = closed_port(&reserved);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u,[::1]:%u", port, port);
    options.sentinels = list;
    EXPECT_OPEN(&options, EMQ_ESENTINEL, "refused");
    assert_int_equal(emq_err_class(EMQ_ESENTINEL), EMQ_CLASS_RETRYABLE);
    (void)close(reserved);
}

/* Puts one address in front of the real list. */
static void put_first(char *out, size_t cap, unsigned port) {
    (void)snprintf(out, cap, "127.0.0.1:%u,%s", port, watched.list);
}

static void a_dead_one_is_passed_over_and_comes_last(void **state) {
    char list[WATCH_LIST_MAX + 32];
    int reserved = -1;
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    uint16_t port = closed_port(&reserved);
    put_first(list, sizeof(list), port);
    options.sentinels = list;
    emq_client *client = open_client(&options);
    expect_at_primary(client);
    assert_int_not_equal(first_sentinel(client), port);
    assert_int_equal(client->settings.sentinel_list.list[3].port, port);
    emq_client_close(client);
    (void)close(reserved);
}

static void a_silent_one_gets_a_share_of_the_time(void **state) {
    const peer_script silent = {.steps = {{PEER_HOLD, NULL, 0}}};
    char list[WATCH_LIST_MAX + 32];
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    peer *p = peer_start(&silent);
    put_first(list, sizeof(list), peer_port(p));
    options.sentinels = list;
    options.connect_timeout_ms = CONNECT_MS;
    emq_client *client = open_client(&options);
    expect_at_primary(client);
    assert_int_equal(peer_connections(p), 1);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    assert_int_equal(peer_connections(p), 1); /* it is not asked first any more */
    emq_client_close(client);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u", peer_port(p));
    options.connect_timeout_ms = SHORT_MS;
    EXPECT_OPEN(&options, EMQ_ESENTINEL, "did not answer in time");
    peer_stop(p);
}

static void a_stopped_sentinel_is_passed_over(void **state) {
    char first[32];
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    options.connect_timeout_ms = CONNECT_MS;
    const test_server *stopped = &watched.sentinels[0];
    assert_int_equal(kill((pid_t)stopped->pid, SIGSTOP), 0);
    emq_client *client = open_client(&options);
    assert_int_equal(port_of(client), watched.servers[0].port);
    assert_int_equal(first_sentinel(client), watched.sentinels[1].port);
    emq_client_close(client);
    (void)snprintf(first, sizeof(first), "127.0.0.1:%d", stopped->port);
    options.sentinels = first;
    options.connect_timeout_ms = SHORT_MS;
    EXPECT_OPEN(&options, EMQ_ESENTINEL, "did not answer in time");
    assert_int_equal(kill((pid_t)stopped->pid, SIGCONT), 0);
    watch_settle(&watched);
}

static void one_that_names_a_replica_is_not_believed(void **state) {
    char list[WATCH_LIST_MAX + 32];
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    peer *liar = start_liar("127.0.0.1", watch_replica(&watched)->port);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u", peer_port(liar));
    options.sentinels = list;
    options.connect_timeout_ms = 1000;
    EXPECT_OPEN(&options, EMQ_ENOPRIMARY, "its role is slave");
    assert_int_equal(emq_err_class(EMQ_ENOPRIMARY), EMQ_CLASS_RETRYABLE);
    assert_in_range(peer_connections(liar), 2, 100); /* it was asked again, with pauses */
    put_first(list, sizeof(list), peer_port(liar));
    options.connect_timeout_ms = LONG_MS;
    emq_client *client = open_client(&options);
    expect_at_primary(client);
    assert_int_not_equal(first_sentinel(client), peer_port(liar));
    emq_client_close(client);
    peer_stop(liar);
}

static void a_primary_may_have_a_name(void **state) {
    char list[32];
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    peer *p = start_liar("localhost", watch_primary(&watched)->port);
    (void)snprintf(list, sizeof(list), "localhost:%u", peer_port(p));
    options.sentinels = list;
    expect_opens_at_primary(&options);
    peer_stop(p);
}

/* A sentinel is asked as its own user, the server as another. */
static void sentinels_have_users_of_their_own(void **state) {
    char list[32];
    char url[256];
    emq_client *client = NULL;
    redisContext *admin = watched.sentinels[1].admin;
    (void)state;
    run(admin, "ACL", "SETUSER", "asker", "on", ">asking", "+sentinel|get-master-addr-by-name",
        NULL);
    run(admin, "ACL", "SETUSER", "nobody", "on", ">nothing", NULL);
    run(admin, "ACL", "SETUSER", "default", ">closed", NULL);
    emq_client_options options = options_for_watch(&watched);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%d", watched.sentinels[1].port);
    options.sentinels = list;
    EXPECT_OPEN(&options, EMQ_EAUTH, "NOAUTH");
    EXPECT_OPEN(&options, EMQ_EAUTH, list + 10); /* it says which one */
    options.sentinel_password = "wrong";
    EXPECT_OPEN(&options, EMQ_EAUTH, "WRONGPASS");
    options.sentinel_password = "closed";
    expect_opens_at_primary(&options);
    options.sentinel_username = "nobody";
    options.sentinel_password = "nothing";
    EXPECT_OPEN(&options, EMQ_ENOPERM, "NOPERM");
    options.sentinel_username = "asker";
    options.sentinel_password = "asking";
    expect_opens_at_primary(&options);
    options.sentinel_password = NULL;
    options.sentinel_password_env = "EMQ_TEST_SENTINEL_PASSWORD";
    EXPECT_OPEN(&options, EMQ_EINVAL, "EMQ_TEST_SENTINEL_PASSWORD");
    assert_int_equal(setenv("EMQ_TEST_SENTINEL_PASSWORD", "asking", 1), 0);
    expect_opens_at_primary(&options);
    (void)snprintf(url, sizeof(url),
                   "redis+sentinel://%s/" WATCH_NAME
                   "?sentinel_username=asker&sentinel_password=asking&connect_timeout_ms=%d",
                   list, LONG_MS);
    EXPECT_RESULT(client, emq_client_open_url(&client, url), EMQ_OK);
    emq_client_close(client);
    run(admin, "ACL", "SETUSER", "default", "resetpass", "nopass", NULL);
    run(admin, "ACL", "DELUSER", "asker", "nobody", NULL);
}

static void a_user_of_the_server_needs_the_right_to_role(void **state) {
    redisContext *admin = watch_primary(&watched)->admin;
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    options.username = "worker";
    options.password = "password";
    redisFree(server_connect_as(watch_primary(&watched), "worker",
                                "+emq.version +get +client|setname %R~{emq}:version"));
    EXPECT_OPEN(&options, EMQ_ENOPERM, "role");
    run(admin, "ACL", "SETUSER", "worker", "+role", NULL);
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.password = "wrong";
    EXPECT_OPEN(&options, EMQ_EAUTH, "WRONGPASS");
    run(admin, "ACL", "DELUSER", "worker", NULL);
}

/* ---- a server that changes its role under an open client; its sentinel is a scripted one ---- */

static void a_demoted_server_ends_the_connection(void **state) {
    test_server server;
    char list[32];
    char nowhere[16];
    int reserved = -1;
    emq_id id = {{0}};
    emq_pipeline *pipeline = NULL;
    (void)state;
    server_start(&server, NULL);
    peer *p = start_liar("127.0.0.1", server.port);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u", peer_port(p));
    (void)snprintf(nowhere, sizeof(nowhere), "%u", closed_port(&reserved));
    emq_client_options options = options_for_watch(&watched);
    options.sentinels = list;
    emq_client *client = open_client(&options);
    assert_int_equal(emq_pipeline_new(&pipeline, client), EMQ_OK);
    run(server.admin, "REPLICAOF", "127.0.0.1", nowhere, NULL);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_EREADONLY);
    assert_int_equal(emq_client_is_open(client), 0);
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_ECLOSED);
    run(server.admin, "REPLICAOF", "NO", "ONE", NULL);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    run(server.admin, "REPLICAOF", "127.0.0.1", nowhere, NULL);
    assert_int_equal(emq_pipeline_enqueue(pipeline, &id, "q", "p", 1), EMQ_OK);
    assert_int_equal(emq_pipeline_run(pipeline), EMQ_OK);
    assert_int_equal(emq_pipeline_get_result(pipeline, 0), EMQ_EREADONLY);
    assert_int_equal(emq_client_is_open(client), 0);
    emq_pipeline_free(pipeline);
    emq_client_close(client);
    (void)close(reserved);
    peer_stop(p);
    server_stop(&server);
}

/* ---- failovers ---- */

typedef struct follower {
    emq_client *client;
    emq_id id;
    int from; /* the port that it must leave */
    int result;
} follower;

/* One turn of the loop that docs/client.md shows. */
static int has_followed(void *data) {
    follower *f = data;
    int port = 0;
    int is_open = emq_client_is_open(f->client);
    f->result = is_open ? EMQ_OK : emq_client_reconnect(f->client);
    f->result = f->result ? f->result : emq_enqueue(&f->id, f->client, "jobs", "p", 1);
    f->result = f->result >= 0 ? ask_port(&port, f->client) : f->result;
    if (f->result >= 0) {
        return port != f->from;
    }
    emq_class class = emq_err_class(f->result);
    if (class != EMQ_CLASS_RETRYABLE && class != EMQ_CLASS_UNKNOWN) {
        fail_msg("%s '%s'", emq_err_name(f->result), emq_client_get_error(f->client));
    }
    return 0;
}

static void start_following(follower *f) {
    emq_client_options options = options_for_watch(&watched);
    options.connect_timeout_ms = CONNECT_MS;
    options.command_timeout_ms = CONNECT_MS;
    watch_settle(&watched);
    *f = (follower){.client = open_client(&options)};
    f->from = watch_primary(&watched)->port;
    assert_int_equal(port_of(f->client), f->from);
}

/* The job was admitted on the new primary, under the id that it had all the time. */
static void finish_following(follower *f) {
    emq_row *row = NULL;
    wait_until("the client is at the new primary", has_followed, f);
    EXPECT_RESULT(f->client, emq_row_read(&row, f->client, "jobs", &f->id), EMQ_OK);
    emq_row_free(row);
    emq_client_close(f->client);
}

static void a_failover_by_hand_is_followed(void **state) {
    follower f;
    (void)state;
    start_following(&f);
    run(watched.sentinels[0].admin, "SENTINEL", "FAILOVER", WATCH_NAME, NULL);
    finish_following(&f);
    watch_settle(&watched);
}

static void expect_refused(const test_server *old) {
    char list[32];
    emq_client_options options = options_for_watch(&watched);
    peer *liar = start_liar("127.0.0.1", old->port);
    (void)snprintf(list, sizeof(list), "127.0.0.1:%u", peer_port(liar));
    options.sentinels = list;
    options.connect_timeout_ms = 1000;
    EXPECT_OPEN(&options, EMQ_ENOPRIMARY, "its role is slave");
    peer_stop(liar);
}

/* For a while the old one says that it is a primary: nobody is sent to it once the sentinels know
 * of the other. */
static void a_killed_primary_is_left_and_not_met_again(void **state) {
    follower f;
    (void)state;
    watch_settle(&watched);
    test_server *old = watch_primary(&watched);
    const test_server *heir = watch_replica(&watched);
    start_following(&f);
    server_kill(old);
    finish_following(&f);
    watch_agree(&watched, heir);
    server_revive(old);
    emq_client_options options = options_for_watch(&watched);
    emq_client *client = open_client(&options);
    assert_int_equal(port_of(client), heir->port);
    emq_client_close(client);
    watch_settle(&watched);
    assert_ptr_equal(watch_primary(&watched), heir);
    expect_refused(old);
}

static void a_stopped_primary_is_left(void **state) {
    follower f;
    (void)state;
    watch_settle(&watched);
    test_server *old = watch_primary(&watched);
    start_following(&f);
    assert_int_equal(kill((pid_t)old->pid, SIGSTOP), 0);
    finish_following(&f);
    assert_int_equal(kill((pid_t)old->pid, SIGCONT), 0);
    watch_settle(&watched);
    assert_ptr_not_equal(watch_primary(&watched), old);
}

/* Who has a connection keeps it; who looks for one is told. */
static void without_sentinels_nobody_is_found(void **state) {
    emq_id id = {{0}};
    (void)state;
    emq_client_options options = options_for_watch(&watched);
    emq_client *client = open_client(&options);
    for (int i = 0; i < WATCH_SENTINELS; i++) {
        server_stop(&watched.sentinels[i]);
    }
    EXPECT_RESULT(client, emq_enqueue(&id, client, "jobs", "p", 1), EMQ_OK);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_ESENTINEL);
    emq_client_close(client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_on_the_primary),
        cmocka_unit_test(a_url_says_the_same),
        cmocka_unit_test(pool_and_subscription_go_the_same_way),
        cmocka_unit_test(an_unknown_name_is_told),
        cmocka_unit_test(no_sentinel_is_an_error_of_its_own),
        cmocka_unit_test(a_dead_one_is_passed_over_and_comes_last),
        cmocka_unit_test(a_silent_one_gets_a_share_of_the_time),
        cmocka_unit_test(a_stopped_sentinel_is_passed_over),
        cmocka_unit_test(one_that_names_a_replica_is_not_believed),
        cmocka_unit_test(a_primary_may_have_a_name),
        cmocka_unit_test(sentinels_have_users_of_their_own),
        cmocka_unit_test(a_user_of_the_server_needs_the_right_to_role),
        cmocka_unit_test(a_demoted_server_ends_the_connection),
        cmocka_unit_test(a_failover_by_hand_is_followed),
        cmocka_unit_test(a_killed_primary_is_left_and_not_met_again),
        cmocka_unit_test(a_stopped_primary_is_left),
        cmocka_unit_test(without_sentinels_nobody_is_found),
    };
    return RUN_SERVER_TESTS("sentinel", tests, start_watch, stop_watch);
}
