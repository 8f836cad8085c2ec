/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client on a server: the verbs, many at once, restarts, other threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "loop.h"
#include "server_fixture.h"

static void open_on_server(test_loop *t, const emq_async_options *async_options) {
    emq_client_options options = options_for_server(&server);
    loop_open(t, &options, async_options);
}

static void a_job_goes_all_the_way(void **state) {
    test_loop t;
    (void)state;
    open_on_server(&t, NULL);
    outcome out = do_request(&t, claim_request("q"));
    EXPECT_OUTCOME(&out, EMQ_EMPTY);
    outcome enqueued = do_request(&t, enqueue_request("q", "pay\0load", 8));
    EXPECT_OUTCOME(&enqueued, EMQ_OK);
    outcome claimed = do_request(&t, claim_request("q"));
    EXPECT_OUTCOME(&claimed, EMQ_OK);
    size_t n = 0;
    assert_memory_equal(emq_job_get_payload(claimed.job, &n), "pay\0load", 8);
    assert_int_equal(n, 8);
    const emq_lease *lease = emq_job_get_lease(claimed.job);
    assert_string_equal(lease->id.text, enqueued.id.text);
    assert_string_equal(lease->queue, "q");
    out = do_request(&t, complete_request(lease));
    EXPECT_OUTCOME(&out, EMQ_OK);
    out = do_request(&t, complete_request(lease));
    EXPECT_OUTCOME(&out, EMQ_GONE);
    assert_int_equal(t.told, 2);
    assert_int_equal(t.states[0], EMQ_ASYNC_CONNECTING);
    assert_int_equal(t.states[1], EMQ_ASYNC_OPEN);
    outcome_clear(&claimed);
    loop_finish(&t);
}

static void a_raw_command_gives_its_reply(void **state) {
    test_loop t;
    emq_request *request = NULL;
    (void)state;
    open_on_server(&t, NULL);
    outcome out = do_request(&t, ping_request());
    EXPECT_OUTCOME(&out, EMQ_OK);
    assert_string_equal(emq_reply_get_string(out.reply, NULL), "PONG");
    outcome_clear(&out);
    const char *const wrong[] = {"GET"};
    assert_int_equal(emq_request_command(&request, 1, wrong, NULL), EMQ_OK);
    out = do_request(&t, request);
    EXPECT_OUTCOME(&out, EMQ_ESERVER);
    assert_non_null(strstr(out.error, "wrong number of arguments"));
    const char *const script[] = {"EVAL", "return 1", "0"};
    assert_int_equal(emq_request_command(&request, 3, script, NULL), EMQ_EFORBIDDEN);
    assert_null(request);
    loop_finish(&t);
}

static void a_repeat_is_a_duplicate(void **state) {
    test_loop t;
    emq_id id;
    emq_request *request = NULL;
    (void)state;
    assert_int_equal(emq_id_mint(&id, "JOB"), EMQ_OK);
    open_on_server(&t, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(emq_request_enqueue(&request, &id, "q", "p", 1), EMQ_OK);
        assert_string_equal(emq_request_get_id(request)->text, id.text);
        outcome out = do_request(&t, request);
        EXPECT_OUTCOME(&out, i == 0 ? EMQ_OK : EMQ_DUPLICATE);
    }
    loop_finish(&t);
}

/* An id that was minted for the request and is in use is somebody else's. */
static void a_fresh_job_is_never_taken_for_a_repeat(void **state) {
    test_loop t;
    emq_request *request = enqueue_request("q", "mine", 4);
    emq_id taken = *emq_request_get_id(request);
    emq_request *other = NULL;
    (void)state;
    open_on_server(&t, NULL);
    assert_int_equal(emq_request_enqueue(&other, &taken, "q", "theirs", 6), EMQ_OK);
    outcome out = do_request(&t, other);
    EXPECT_OUTCOME(&out, EMQ_OK);
    out = do_request(&t, request);
    EXPECT_OUTCOME(&out, EMQ_OK);
    assert_string_not_equal(out.id.text, taken.text);
    char row[64];
    char payload[16];
    (void)snprintf(row, sizeof(row), "emq:{q}:job:%s", out.id.text);
    get_text(payload, sizeof(payload), server.admin, "HGET", row, "payload", NULL);
    assert_string_equal(payload, "mine");
    loop_finish(&t);
}

/* Read at each connect, as the synchronous client does. */
static void a_password_comes_from_the_environment(void **state) {
    test_loop t;
    emq_client_options options = options_for_server(&server);
    (void)state;
    run(server.admin, "ACL", "SETUSER", "tester", "on", ">from outside", "~*", "+@all", NULL);
    assert_int_equal(setenv("EMQ_TEST_PASSWORD", "from outside", 1), 0);
    options.username = "tester";
    options.password_env = "EMQ_TEST_PASSWORD";
    loop_open(&t, &options, NULL);
    outcome out = do_request(&t, claim_request("q"));
    EXPECT_OUTCOME(&out, EMQ_EMPTY);
    loop_finish(&t);
    assert_int_equal(unsetenv("EMQ_TEST_PASSWORD"), 0);
    loop_open(&t, &options, NULL);
    out = do_request(&t, claim_request("q"));
    EXPECT_OUTCOME(&out, EMQ_EINVAL);
    assert_non_null(strstr(out.error, "EMQ_TEST_PASSWORD"));
    loop_finish(&t);
    run(server.admin, "ACL", "DELUSER", "tester", NULL);
}

static void wrong_requests_are_not_built(void **state) {
    emq_request *request = NULL;
    emq_lease lease = {"q", {"JOB"}, 1};
    (void)state;
    assert_int_equal(emq_request_claim(&request, "a b", 1), EMQ_EQUEUE);
    assert_int_equal(emq_request_claim(&request, "q", 0), EMQ_EINVAL);
    assert_int_equal(emq_request_claim(NULL, "q", 1), EMQ_EINVAL);
    assert_int_equal(emq_request_complete(&request, NULL), EMQ_EINVAL);
    assert_int_equal(emq_request_complete(&request, &lease), EMQ_EID_LENGTH);
    assert_int_equal(emq_request_enqueue(&request, NULL, NULL, "p", 1), EMQ_EINVAL);
    assert_int_equal(emq_request_enqueue(&request, NULL, "q", NULL, 1), EMQ_EINVAL);
    assert_int_equal(emq_request_command(&request, 0, NULL, NULL), EMQ_EINVAL);
    assert_null(request);
    emq_request_free(claim_request("q")); /* one that is not submitted is its builder's */
}

static void wrong_options_open_nothing(void **state) {
    uv_loop_t loop;
    emq_async *client = NULL;
    emq_async_options options = EMQ_ASYNC_OPTIONS_INIT;
    emq_client_options wrong = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    options.backoff_min_ms = 100;
    options.backoff_max_ms = 99;
    assert_int_equal(emq_async_open(&client, &loop, NULL, &options), EMQ_EINVAL);
    options.backoff_min_ms = 0; /* which is 50 */
    options.backoff_max_ms = 49;
    assert_int_equal(emq_async_open(&client, &loop, NULL, &options), EMQ_EINVAL);
    emq_async_options_init(&options);
    options.size = 1;
    assert_int_equal(emq_async_open(&client, &loop, NULL, &options), EMQ_EINVAL);
    wrong.database = -1;
    assert_int_equal(emq_async_open(&client, &loop, &wrong, NULL), EMQ_EINVAL);
    assert_int_equal(emq_async_open(&client, NULL, NULL, NULL), EMQ_EINVAL);
    assert_null(client);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* So many enqueues, so many at once: each is answered once, and each job is there once. */
#define JOBS 10000
#define AT_ONCE 64

typedef struct crowd {
    test_loop t;
    int submitted;
    int ended;
    int in_flight;
    int most;
} crowd;

static void submit_more(crowd *c);

static void on_enqueued(emq_request *request, int result, void *user) {
    crowd *c = user;
    (void)request;
    assert_int_equal(result, EMQ_OK);
    c->ended++;
    c->in_flight--;
    submit_more(c);
}

static void submit_more(crowd *c) {
    while (c->submitted < JOBS && c->in_flight < AT_ONCE) {
        assert_int_equal(emq_async_submit(c->t.client,
                                          enqueue_request("q", &c->submitted, sizeof(c->submitted)),
                                          on_enqueued, c),
                         EMQ_OK);
        c->submitted++;
        c->in_flight++;
        c->most = c->in_flight > c->most ? c->in_flight : c->most;
    }
}

static int are_all_enqueued(void *data) {
    const crowd *c = data;
    return c->ended == JOBS;
}

static void many_enqueues_are_each_done_once(void **state) {
    crowd c = {.ended = 0};
    (void)state;
    open_on_server(&c.t, NULL);
    submit_more(&c);
    loop_until(&c.t, are_all_enqueued, &c);
    assert_int_equal(c.most, AT_ONCE);
    assert_int_equal(c.in_flight, 0);
    assert_int_equal(get_integer(server.admin, "ZCARD", "emq:{q}:pending", NULL), JOBS);
    assert_int_equal(emq_async_get_counter(c.t.client, EMQ_ASYNC_REQUESTS), JOBS);
    assert_int_equal(emq_async_get_counter(c.t.client, EMQ_ASYNC_CONNECTS), 1);
    assert_true(emq_async_get_counter(c.t.client, EMQ_ASYNC_BYTES_OUT) > (uint64_t)JOBS * 50);
    assert_true(emq_async_get_counter(c.t.client, EMQ_ASYNC_BYTES_IN) > (uint64_t)JOBS * 4);
    loop_finish(&c.t);
}

static void large_payloads_go_through(void **state) {
    const size_t size = (size_t)8 * 1024 * 1024;
    enum { COUNT = 4 };
    test_loop t;
    outcome outs[COUNT] = {{0}};
    char *payload = malloc(size + 1);
    (void)state;
    memset(payload, 'x', size + 1);
    open_on_server(&t, NULL);
    emq_request *too_big = enqueue_request("q", payload, size + 1);
    assert_int_equal(emq_async_submit(t.client, too_big, note_outcome, NULL), EMQ_ETOOBIG);
    emq_request_free(too_big);
    for (int i = 0; i < COUNT; i++) {
        loop_submit(&t, enqueue_request("q", payload, size), &outs[i]);
    }
    loop_until_ended(&t, outs, COUNT);
    for (int i = 0; i < COUNT; i++) {
        EXPECT_OUTCOME(&outs[i], EMQ_OK);
    }
    outcome out = do_request(&t, claim_request("q"));
    EXPECT_OUTCOME(&out, EMQ_OK);
    size_t n = 0;
    assert_memory_equal(emq_job_get_payload(out.job, &n), payload, size);
    assert_int_equal(n, size);
    outcome_clear(&out);
    free(payload);
    loop_finish(&t);
}

/* What the server does to the client. */

static void a_restarted_server_is_found_again(void **state) {
    test_loop t;
    (void)state;
    open_on_server(&t, NULL);
    outcome enqueued = do_request(&t, enqueue_request("q", "p", 1));
    EXPECT_OUTCOME(&enqueued, EMQ_OK);
    outcome claimed = do_request(&t, claim_request("q"));
    EXPECT_OUTCOME(&claimed, EMQ_OK);
    server_restart(&server);
    outcome out = do_request(&t, complete_request(emq_job_get_lease(claimed.job)));
    EXPECT_OUTCOME(&out, EMQ_OK); /* the end was seen before anything was sent */
    assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_CONNECTS), 2);
    assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_RECONNECTS), 1);
    outcome_clear(&claimed);
    loop_finish(&t);
}

static void a_killed_connection_is_replaced(void **state) {
    test_loop t;
    (void)state;
    open_on_server(&t, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    for (uint64_t i = 1; i <= 5; i++) {
        run(server.admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
        outcome out = do_request(&t, enqueue_request("q", "p", 1));
        EXPECT_OUTCOME(&out, EMQ_OK);
        assert_int_equal(emq_async_get_counter(t.client, EMQ_ASYNC_RECONNECTS), i);
    }
    assert_int_equal(get_integer(server.admin, "ZCARD", "emq:{q}:pending", NULL), 5);
    loop_finish(&t);
}

/* The connect path runs again, whole: a fence that was changed meanwhile is noticed. */
static void a_reconnect_looks_at_the_fence(void **state) {
    test_loop t;
    (void)state;
    open_on_server(&t, NULL);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    run(server.admin, "SET", "{emq}:version", "echomq:5.0.0", NULL);
    run(server.admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    outcome out = do_request(&t, enqueue_request("q", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_EFENCE);
    loop_until_told(&t, EMQ_ASYNC_REFUSED, EMQ_EFENCE);
    run(server.admin, "SET", "{emq}:version", "echomq:6.0.0", NULL);
    assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
    out = do_request(&t, enqueue_request("q", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_OK);
    loop_finish(&t);
}

static void a_user_and_a_database_are_chosen(void **state) {
    test_loop t;
    (void)state;
    redisFree(server_connect_as(&server, "worker",
                                "+@emq +select ~emq:{q}:* %R~{emq}:version +get +client|setname"));
    run(server.admin, "SELECT", "3", NULL);
    run(server.admin, "SET", "{emq}:version", "echomq:6.0.0", NULL);
    emq_client_options options = options_for_server(&server);
    options.username = "worker";
    options.password = "password";
    options.database = 3;
    loop_open(&t, &options, NULL);
    outcome out = do_request(&t, enqueue_request("q", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_OK);
    assert_int_equal(get_integer(server.admin, "ZCARD", "emq:{q}:pending", NULL), 1);
    out = do_request(&t, enqueue_request("other", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_ENOPERM);
    out = do_request(&t, enqueue_request("q", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_OK); /* a refused request leaves the connection as it is */
    run(server.admin, "SELECT", "0", NULL);
    run(server.admin, "ACL", "DELUSER", "worker", NULL);
    loop_finish(&t);
}

static void tcp_is_as_good_as_a_socket_file(void **state) {
    test_loop t;
    (void)state;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.host = "localhost";
    options.port = (uint16_t)server.port;
    loop_open(&t, &options, NULL);
    outcome out = do_request(&t, enqueue_request("q", "p", 1));
    EXPECT_OUTCOME(&out, EMQ_OK);
    loop_finish(&t);
}

/* Other threads. */
#define THREADS 4
#define JOBS_EACH 500

typedef struct producers {
    test_loop t;
    atomic_int ended; /* callbacks, which are all on the loop's thread */
    atomic_int refused;
    pthread_t loop_thread;
    int is_closed;
} producers;

static void on_produced(emq_request *request, int result, void *user) {
    producers *p = user;
    (void)request;
    assert_true(pthread_equal(pthread_self(), p->loop_thread));
    assert_true(result == EMQ_OK || (p->is_closed && result == EMQ_ECLOSED));
    (void)atomic_fetch_add(&p->ended, 1);
}

static void *produce(void *data) {
    producers *p = data;
    for (int i = 0; i < JOBS_EACH; i++) {
        emq_request *request = NULL;
        if (emq_request_enqueue(&request, NULL, "q", &i, sizeof(i)) != EMQ_OK) {
            return NULL;
        }
        int result = EMQ_EOVERLOAD;
        while (result == EMQ_EOVERLOAD) {
            result = emq_async_submit_threadsafe(p->t.client, request, on_produced, p);
        }
        if (result != EMQ_OK) {
            emq_request_free(request);
            (void)atomic_fetch_add(&p->refused, 1);
        }
    }
    return p;
}

static int have_all_ended(void *data) {
    producers *p = data;
    return atomic_load(&p->ended) + atomic_load(&p->refused) == THREADS * JOBS_EACH;
}

static void produce_in_threads(producers *p, pthread_t threads[THREADS]) {
    p->loop_thread = pthread_self();
    atomic_init(&p->ended, 0);
    atomic_init(&p->refused, 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, produce, p), 0);
    }
}

static void join_all(producers *p, const pthread_t threads[THREADS]) {
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, p);
    }
}

static void threads_submit_to_one_client(void **state) {
    producers p;
    pthread_t threads[THREADS];
    emq_async_options async_options = EMQ_ASYNC_OPTIONS_INIT;
    (void)state;
    async_options.max_requests = 100;
    p.is_closed = 0;
    open_on_server(&p.t, &async_options);
    produce_in_threads(&p, threads);
    loop_until(&p.t, have_all_ended, &p);
    join_all(&p, threads);
    assert_int_equal(atomic_load(&p.ended), THREADS * JOBS_EACH);
    assert_int_equal(get_integer(server.admin, "ZCARD", "emq:{q}:pending", NULL),
                     THREADS * JOBS_EACH);
    loop_finish(&p.t);
}

/* The close callback waits for nobody: the client lives until the loop runs again, and the threads
 * are joined before that. */
static void a_client_is_closed_under_its_threads(void **state) {
    producers p;
    pthread_t threads[THREADS];
    (void)state;
    p.is_closed = 0;
    open_on_server(&p.t, NULL);
    loop_until_state(&p.t, EMQ_ASYNC_OPEN);
    produce_in_threads(&p, threads);
    for (int i = 0; i < 10; i++) {
        (void)uv_run(&p.t.loop, UV_RUN_NOWAIT);
    }
    p.is_closed = 1;
    loop_close_client(&p.t);
    join_all(&p, threads);
    loop_finish(&p.t);
    assert_true(have_all_ended(&p));
}

#define TEST(name) cmocka_unit_test_setup(name, clean_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_job_goes_all_the_way),
        TEST(a_raw_command_gives_its_reply),
        TEST(a_repeat_is_a_duplicate),
        TEST(a_fresh_job_is_never_taken_for_a_repeat),
        TEST(a_password_comes_from_the_environment),
        TEST(wrong_requests_are_not_built),
        TEST(wrong_options_open_nothing),
        TEST(many_enqueues_are_each_done_once),
        TEST(large_payloads_go_through),
        TEST(a_restarted_server_is_found_again),
        TEST(a_killed_connection_is_replaced),
        TEST(a_reconnect_looks_at_the_fence),
        TEST(a_user_and_a_database_are_chosen),
        TEST(tcp_is_as_good_as_a_socket_file),
        TEST(threads_submit_to_one_client),
        TEST(a_client_is_closed_under_its_threads),
    };
    return RUN_SERVER_TESTS("async", tests, start_server, stop_server);
}
