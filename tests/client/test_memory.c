/* SPDX-License-Identifier: Apache-2.0 */
/* Running out of memory: on each main path every allocation fails in turn, once and for good. Each
 * time there is a clean answer, nothing is lost, and what is still there goes on working. */
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "allocator.h"
#include "client.h"
#include "command.h"
#include "listener.h"
#include "memory.h"
#include "server_fixture.h"

#define PATH_ALLOCATIONS_MAX 5000

static test_server sentinel;

static int start_servers(void **state) {
    static char monitor[64];
    (void)start_server(state);
    (void)snprintf(monitor, sizeof(monitor), "sentinel monitor main 127.0.0.1 %d 1", server.port);
    server_start_sentinel(&sentinel, "--conf", monitor, NULL);
    run(server.admin, "ACL", "SETUSER", "tester", "on", ">password", "~*", "&*", "+@all", NULL);
    return 0;
}

static int stop_servers(void **state) {
    server_stop(&sentinel);
    return stop_server(state);
}

static emq_client_options get_options(void) {
    emq_client_options options = options_for_server(&server);
    options.username = "tester";
    options.password = "password";
    return options;
}

static int is_clean(int result) {
    return result == EMQ_OK || result == EMQ_ENOMEM;
}

static void expect_clean(const char *what, int result) {
    if (!is_clean(result)) {
        fail_msg("allocation %ld of %s: %s", allocator_fails_from(), what, emq_err_name(result));
    }
}

static int is_all_free(void *data) {
    return allocator_held() == *(long *)data;
}

/* Runs a path with the first allocation failing, the second, and so on, until none fails any more.
 * It answers the first result that is not 0. A look-up may let go of its memory a little later. */
static void fail_each_in_turn(const char *what, int (*path)(void), int for_good) {
    long k = 1;
    for (;; k++) {
        long before = allocator_held();
        allocator_arm(k, for_good ? PATH_ALLOCATIONS_MAX : k);
        int result = path();
        allocator_disarm();
        expect_clean(what, result);
        wait_until("everything is free", is_all_free, &before);
        if (allocator_counted() < k) {
            assert_int_equal(result, EMQ_OK);
            break;
        }
        assert_true(k < PATH_ALLOCATIONS_MAX);
    }
    assert_true(k > 1);
    print_message("%s: %ld allocations\n", what, k - 1);
}

static void fail_each(const char *what, int (*path)(void)) {
    fail_each_in_turn(what, path, 0);
    fail_each_in_turn(what, path, 1);
}

static int open_and_close(const emq_client_options *options) {
    emq_client *client = NULL;
    int result = emq_client_open(&client, options);
    assert_int_equal(client != NULL, result == EMQ_OK);
    emq_client_close(client);
    return result;
}

static int open_through_sentinel_path(void) {
    char list[32];
    emq_client_options options = get_options();
    (void)snprintf(list, sizeof(list), "127.0.0.1:%d", sentinel.port);
    options.unix_path = NULL;
    options.sentinels = list;
    options.primary_name = "main";
    return open_and_close(&options);
}

static int open_path(void) {
    const emq_client_options options = get_options();
    return open_and_close(&options);
}

static int open_by_name_path(void) {
    emq_client_options options = get_options();
    options.unix_path = NULL;
    options.host = "localhost";
    options.port = (uint16_t)server.port;
    return open_and_close(&options);
}

static void opening_survives(void **state) {
    (void)state;
    fail_each("opening", open_path);
    fail_each("opening by name", open_by_name_path);
    fail_each("opening through a sentinel", open_through_sentinel_path);
}

static int install_path(void) {
    const emq_client_options options = get_options();
    char error[128];
    int result = emq_install(&options, error, sizeof(error));
    assert_int_equal(result < 0, error[0] != '\0');
    return result == EMQ_DUPLICATE ? EMQ_OK : result;
}

static void installing_survives(void **state) {
    (void)state;
    fail_each("installing", install_path);
}

/* The verbs, on a client that is there already. What the failure closed is reconnected. */
static emq_client *client;
static emq_lease lease;

static int enqueue(void) {
    emq_id id = {{0}};
    return emq_enqueue(&id, client, "q", "payload", 7);
}

static int claim(void) {
    emq_job *job = NULL;
    int result = emq_claim(&job, client, "q", 60000);
    assert_int_equal(job != NULL, result == EMQ_OK);
    emq_job_free(job);
    return result;
}

/* One that is gone does as well. */
static int complete(void) {
    int result = emq_complete(client, &lease);
    return result == EMQ_GONE ? EMQ_OK : result;
}

static int command_call(void) {
    static const char *const words[] = {"COMMAND", "INFO", "GET", "SET"};
    emq_reply *reply = NULL;
    int result = emq_client_command(&reply, client, 4, words, NULL);
    assert_int_equal(reply != NULL, result == EMQ_OK);
    emq_reply_free(reply);
    return result;
}

static int reconnect(void) {
    return emq_client_reconnect(client);
}

/* A call with one allocation failing, behind a line that is new, so that its memory is needed, too.
 */
static void fail_each_call(const char *what, int (*body)(void)) {
    const emq_client_options options = get_options();
    long k = 1;
    for (int is_done = 0; !is_done; k++) {
        long before = allocator_held();
        client = open_client(&options);
        allocator_arm(k, k);
        int result = body();
        allocator_disarm();
        is_done = allocator_counted() < k;
        expect_clean(what, result);
        assert_int_equal(result < 0, emq_client_get_error(client)[0] != '\0');
        if (!emq_client_is_open(client)) {
            assert_int_equal(result, EMQ_ENOMEM);
            EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
        }
        /* the same once more, now that there is memory */
        assert_int_equal(body(), EMQ_OK);
        emq_client_close(client);
        wait_until("everything is free", is_all_free, &before);
        assert_true(k < PATH_ALLOCATIONS_MAX);
    }
    assert_true(k > 2);
    print_message("%s: %ld allocations\n", what, k - 2);
}

static void calls_survive(void **state) {
    const emq_client_options options = get_options();
    (void)state;
    client = open_client(&options);
    for (int i = 0; i < 500; i++) { /* so that no claim is without a job */
        assert_int_equal(enqueue(), EMQ_OK);
    }
    emq_job *job = NULL;
    assert_int_equal(emq_claim(&job, client, "q", 60000), EMQ_OK);
    lease = *emq_job_get_lease(job);
    emq_job_free(job);
    emq_client_close(client);
    fail_each_call("enqueue", enqueue);
    fail_each_call("claim", claim);
    fail_each_call("complete", complete);
    fail_each_call("command", command_call);
    fail_each_call("reconnect", reconnect);
}

/* Opens, acquires twice, uses, releases. A failed acquire takes no place. */
static int pool_path(void) {
    const emq_client_options options = get_options();
    emq_pool *pool = NULL;
    emq_client *got = NULL;
    emq_pool_stats stats = EMQ_POOL_STATS_INIT;
    emq_id id = {{0}};
    int result = emq_pool_open(&pool, &options, NULL);
    assert_int_equal(pool != NULL, result == EMQ_OK);
    if (result != EMQ_OK) {
        return result;
    }
    result = emq_pool_acquire(&got, pool, LONG_MS);
    assert_int_equal(got != NULL, result == EMQ_OK);
    if (result == EMQ_OK) {
        result = emq_enqueue(&id, got, "pool", "p", 1);
        assert_int_equal(emq_pool_release(pool, got), EMQ_OK);
    }
    assert_int_equal(emq_pool_get_stats(&stats, pool), EMQ_OK);
    assert_int_equal(stats.in_use, 0);
    allocator_disarm();
    assert_int_equal(emq_pool_acquire(&got, pool, LONG_MS), EMQ_OK);
    assert_int_equal(emq_pool_release(pool, got), EMQ_OK);
    emq_pool_free(pool);
    return result;
}

static void pools_survive(void **state) {
    (void)state;
    fail_each("the pool", pool_path);
}

/* Without an allocation, so that it is not among those that are counted. The words are short:
 * jansson reads on behind one of 14 bytes or more when there is no memory for it to grow. */
static void publish(void) {
    static const char words[] = "EMQ.PUBLISH 1 emq:{q}: done job text one any \"\\xff\\xfe\"\r\n";
    char answer[64] = "";
    int fd = server.admin->fd;
    assert_int_equal(send(fd, words, sizeof(words) - 1, 0), sizeof(words) - 1);
    ssize_t n = 0;
    while (strchr(answer, '\n') == NULL) {
        struct pollfd waited = {fd, POLLIN, 0};
        assert_int_equal(poll(&waited, 1, LONG_MS), 1);
        ssize_t got = recv(fd, answer + n, sizeof(answer) - 1 - (size_t)n, MSG_DONTWAIT);
        assert_true(got > 0);
        n += got;
    }
    assert_int_equal(answer[0], ':');
}

static void check_event(const emq_event *event) {
    size_t n = 0;
    assert_string_equal(emq_event_get_event(event, NULL), "done");
    assert_memory_equal(emq_event_get_field(event, "any", &n), "\xff\xfe", 2);
    assert_int_equal(n, 2);
}

/* What is lacking memory is no broken message, and the next one comes. */
static int events_path(void) {
    const emq_client_options options = get_options();
    emq_events *events = NULL;
    emq_event *event = NULL;
    int result = emq_events_open(&events, &options, "q");
    if (result == EMQ_OK) {
        publish();
        result = emq_events_next(&event, events, LONG_MS);
        assert_int_equal(event != NULL, result == EMQ_OK);
        assert_int_equal(result < 0, emq_events_get_error(events)[0] != '\0');
    }
    allocator_disarm();
    if (event != NULL) {
        check_event(event);
        emq_event_free(event);
    }
    if (events != NULL) {
        assert_true(emq_events_is_open(events) || emq_events_reconnect(events) == EMQ_OK);
        publish();
        assert_int_equal(emq_events_next(&event, events, LONG_MS), EMQ_OK);
        check_event(event);
        emq_event_free(event);
    }
    emq_events_close(events);
    return result;
}

static void events_survive(void **state) {
    (void)state;
    fail_each("a subscription", events_path);
}

/* On a loop; a message that gets no memory is told, and a connection that gets none is made again.
 */
static listener heard;

static int is_result_there(void *data) {
    (void)data;
    return heard.messages > 0 || (heard.t.told > 0 && heard.t.reasons[heard.t.told - 1] < 0);
}

/* Publishes as soon as somebody listens. */
static void publish_when_open(listener *l) {
    if (l->t.states[l->t.told - 1] == EMQ_ASYNC_OPEN) {
        publish();
    }
}

static int loop_path(void) {
    const emq_client_options options = get_options();
    listener_start(&heard);
    heard.on_state = publish_when_open;
    int result = listener_try_open(&heard, &options, "q");
    if (result == EMQ_OK) {
        loop_until(&heard.t, is_result_there, NULL);
        result = heard.messages > 0 ? heard.results[0] : heard.t.reasons[heard.t.told - 1];
    }
    allocator_disarm();
    if (heard.events != NULL) {
        assert_int_equal(emq_events_async_reconnect(heard.events), EMQ_OK);
        int messages = heard.messages;
        listener_until_messages(&heard, messages + 1);
        assert_int_equal(heard.results[messages], EMQ_OK);
        check_event(heard.last);
        listener_finish(&heard);
    } else {
        loop_stop(&heard.t);
    }
    return result;
}

static void events_on_a_loop_survive(void **state) {
    (void)state;
    fail_each("a subscription on a loop", loop_path);
}

static int line_path(void) {
    emq_line line = EMQ_LINE_INIT;
    int result = emq_line_claim(&line, "q", 1000);
    emq_line_clear(&line);
    return result;
}

static void lines_survive(void **state) {
    (void)state;
    fail_each("a line", line_path);
}

/* Ends the building of a request; it is there when it was built. */
static int end_request(int result, emq_request *request) {
    assert_int_equal(request != NULL, result == EMQ_OK);
    emq_request_free(request);
    return result;
}

/* One that is made of a line, one that keeps a payload, one that keeps leases. */
static int request_path(void) {
    const emq_lease leases[2] = {{"q", {"JOB0KHTOWnGLuC"}, 1}, {"q", {"JOB0NgWEfAEJfs"}, 1}};
    emq_request *request = NULL;
    int built = emq_request_claims(&request, "q", 1000, 10, 1000);
    int result = end_request(built, request);
    if (result == EMQ_OK) {
        const emq_when when = {EMQ_IN, 1000};
        built = emq_request_schedule(&request, &leases[0].id, "q", "payload", 7, when);
        result = end_request(built, request);
    }
    if (result == EMQ_OK) {
        built = emq_request_extends(&request, leases, 2, 1000);
        result = end_request(built, request);
    }
    return result;
}

static void requests_survive(void **state) {
    (void)state;
    fail_each("a request", request_path);
}

static int do_nothing(emq_task *task, void *user) {
    (void)task;
    (void)user;
    return EMQ_TASK_COMPLETE;
}

static int worker_path(void) {
    const emq_client_options options = get_options();
    emq_worker *worker = NULL;
    int result = emq_worker_open(&worker, &options, NULL);
    if (result == EMQ_OK) {
        result = emq_worker_add(worker, "q", do_nothing, NULL, NULL);
    }
    emq_worker_free(worker);
    return result;
}

static void wait_a_moment(void) {
    const struct timespec moment = {0, 50 * 1000000};
    (void)nanosleep(&moment, NULL);
}

static emq_worker_stats stats_of(emq_worker *worker) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    assert_int_equal(emq_worker_get_stats(&stats, worker), EMQ_OK);
    return stats;
}

static int has_completed_ten(void *worker) {
    return stats_of(worker).completed >= 10;
}

/* Whatever a worker was doing when memory ran out, it goes on when there is some again. Jobs that
 * it could not take in lapse, and come back. */
static void workers_survive(void **state) {
    emq_client_options options = get_options();
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    emq_worker *worker = NULL;
    (void)state;
    fail_each("a worker", worker_path);
    run(server.admin, "FLUSHALL", NULL);
    run(server.admin, "EMQ.INSTALL", "1", "{emq}:version", NULL);
    emq_client *producer = open_client(&options);
    works.sweep_interval_ms = 100;
    works.backoff_max_ms = 50;
    queue.lease_ms = 1000;
    queue.max_stalled = 1000;
    queue.max_attempts = EMQ_WORKER_UNLIMITED;
    assert_int_equal(emq_worker_open(&worker, &options, &works), EMQ_OK);
    assert_int_equal(emq_worker_add(worker, "q", do_nothing, NULL, &queue), EMQ_OK);
    assert_int_equal(emq_worker_start(worker), EMQ_OK);
    for (int i = 0; i < 10; i++) {
        emq_id id = {{0}};
        EXPECT_RESULT(producer, emq_enqueue(&id, producer, "q", "x", 1), EMQ_OK);
        allocator_arm(1, 5L * i);
        wait_a_moment();
        allocator_disarm();
    }
    wait_until("all are completed", has_completed_ten, worker);
    emq_worker_free(worker);
    emq_client_close(producer);
}

/* Without a calloc, that is made from the others. */
static void cleared_memory_is_clear(void **state) {
    long before = allocator_held();
    (void)state;
    unsigned char *memory = emq_calloc(1000, 3);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(memory[i], 0);
    }
    assert_int_equal(allocator_held(), before + 1);
    emq_free(memory);
    assert_null(emq_calloc(SIZE_MAX / 2, 3));
    assert_int_equal(allocator_held(), before);
}

static void the_allocator_is_set_once(void **state) {
    (void)state;
    assert_int_equal(emq_set_allocator(allocator_counting()), EMQ_EINVAL);
}

/* Before anything else, as a program would. What reads the messages has an allocator of its own. */
static int set_allocator(void) {
    json_set_alloc_funcs(allocator_counting()->malloc, allocator_counting()->free);
    emq_allocator bad = *allocator_counting();
    int refused = emq_set_allocator(NULL) == EMQ_EINVAL;
    bad.size = 0;
    refused += emq_set_allocator(&bad) == EMQ_EINVAL;
    bad = *allocator_counting();
    bad.malloc = NULL;
    refused += emq_set_allocator(&bad) == EMQ_EINVAL;
    bad = *allocator_counting();
    bad.realloc = NULL;
    refused += emq_set_allocator(&bad) == EMQ_EINVAL;
    bad = *allocator_counting();
    bad.free = NULL;
    refused += emq_set_allocator(&bad) == EMQ_EINVAL;
    return refused == 5 && emq_set_allocator(allocator_counting()) == EMQ_OK;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives),
        cmocka_unit_test(installing_survives),
        cmocka_unit_test(calls_survive),
        cmocka_unit_test(pools_survive),
        cmocka_unit_test(events_survive),
        cmocka_unit_test(events_on_a_loop_survive),
        cmocka_unit_test(lines_survive),
        cmocka_unit_test(requests_survive),
        cmocka_unit_test(workers_survive),
        cmocka_unit_test(cleared_memory_is_clear),
        cmocka_unit_test(the_allocator_is_set_once),
    };
    if (!set_allocator()) {
        (void)fputs("the allocator can't be set\n", stderr);
        return 1;
    }
    return RUN_SERVER_TESTS("memory", tests, start_servers, stop_servers);
}
