/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: many threads share few clients, in the order of their arrival; broken clients are
 * replaced; nobody waits beyond a deadline, and a close waits for nobody. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "command.h"
#include "server_fixture.h"

#define THREADS 64
#define ROUNDS 10
#define JOBS_MAX 100000
#define LEASE_MS 5000

static emq_pool *pool;

static void open_pool(const emq_client_options *client, uint32_t max_clients,
                      uint32_t idle_check_ms) {
    emq_pool_options options = EMQ_POOL_OPTIONS_INIT;
    options.max_clients = max_clients;
    options.idle_check_ms = idle_check_ms;
    options.checkout_timeout_ms = LONG_MS;
    assert_int_equal(emq_pool_open(&pool, client, &options), EMQ_OK);
    assert_non_null(pool);
}

static void open_server_pool(uint32_t max_clients) {
    emq_client_options client = options_for_server(&server);
    open_pool(&client, max_clients, 0);
}

static emq_client *acquire(void) {
    emq_client *client = NULL;
    int result = emq_pool_acquire(&client, pool, 0);
    if (result != EMQ_OK) {
        fail_msg("acquire: %s", emq_err_name(result));
    }
    assert_int_equal(emq_client_is_open(client), 1);
    assert_string_equal(emq_client_get_error(client), "");
    return client;
}

static void expect_no_client(uint32_t timeout_ms, int want, const char *says) {
    emq_client *client = (emq_client *)(void *)&client; /* to see that it is set */
    char error[256];
    int result = emq_pool_acquire(&client, pool, timeout_ms);
    assert_string_equal(emq_err_name(result), emq_err_name(want));
    assert_null(client);
    assert_int_equal(emq_pool_copy_error(error, sizeof(error), pool), EMQ_OK);
    if (strstr(error, says) == NULL) {
        fail_msg("'%s' does not say '%s'", error, says);
    }
}

static void release(emq_client *client) {
    assert_int_equal(emq_pool_release(pool, client), EMQ_OK);
}

static emq_pool_stats get_stats(void) {
    emq_pool_stats stats = EMQ_POOL_STATS_INIT;
    assert_int_equal(emq_pool_get_stats(&stats, pool), EMQ_OK);
    return stats;
}

static void expect_counts(uint32_t open, uint32_t in_use, uint32_t waiting) {
    emq_pool_stats stats = get_stats();
    assert_int_equal(stats.open, open);
    assert_int_equal(stats.in_use, in_use);
    assert_int_equal(stats.waiting, waiting);
}

static void nap(long ms) {
    const struct timespec time = {0, ms * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Many threads. A job's payload is its number; each number must be completed once. */
static atomic_int jobs;
static atomic_int completions;
static atomic_int completed[JOBS_MAX];
static atomic_int is_restarted;
static atomic_int failures; /* cmocka's own assertions belong to the main thread */

static void note_failure(const char *what, int result) {
    print_error("%s: %s\n", what, emq_err_name(result));
    atomic_fetch_add(&failures, 1);
}

static int is_worth_repeating(int result) {
    emq_class class = emq_err_class(result);
    return class == EMQ_CLASS_RETRYABLE || class == EMQ_CLASS_UNKNOWN || result == EMQ_ECLOSED;
}

/* Borrows a client until it gets one that is good. */
static emq_client *borrow(void) {
    for (;;) {
        emq_client *client = NULL;
        int result = emq_pool_acquire(&client, pool, 0);
        if (result == EMQ_OK) {
            return client;
        }
        if (!is_worth_repeating(result)) {
            note_failure("acquire", result);
            return NULL;
        }
        nap(10);
    }
}

static void give_back(emq_client *client) {
    int result = emq_pool_release(pool, client);
    if (result != EMQ_OK) {
        note_failure("release", result);
    }
}

/* Repeats with the same id until it is known to be there. */
static void put_job(void) {
    emq_id id = {{0}};
    int number = atomic_fetch_add(&jobs, 1);
    int is_repeat = 0;
    for (;;) {
        emq_client *client = borrow();
        if (client == NULL || number >= JOBS_MAX) {
            note_failure("no client, or too many jobs", EMQ_EINVAL);
            return;
        }
        int result = emq_enqueue(&id, client, "q", &number, sizeof(number));
        give_back(client);
        if (result == EMQ_OK || (result == EMQ_DUPLICATE && is_repeat)) {
            return;
        }
        if (!is_worth_repeating(result)) {
            note_failure("enqueue", result);
            return;
        }
        is_repeat = 1;
    }
}

static void note_completion(const emq_job *job) {
    size_t n = 0;
    int number = -1;
    const void *payload = emq_job_get_payload(job, &n);
    if (payload != NULL && n == sizeof(number)) {
        memcpy(&number, payload, n);
    }
    if (number < 0 || number >= JOBS_MAX) {
        note_failure("the payload is another", EMQ_EINVAL);
        return;
    }
    atomic_fetch_add(&completed[number], 1);
    atomic_fetch_add(&completions, 1);
}

/* Settles through any client. Nobody sweeps meanwhile, so that no other holder can come up: a job
 * that is gone at a repeat was completed by the first try. */
static void settle_job(const emq_job *job) {
    int is_repeat = 0;
    for (;;) {
        emq_client *client = borrow();
        if (client == NULL) {
            return;
        }
        int result = emq_complete(client, emq_job_get_lease(job));
        give_back(client);
        if (result == EMQ_OK || (result == EMQ_GONE && is_repeat)) {
            note_completion(job);
            return;
        }
        if (!is_worth_repeating(result)) {
            note_failure("complete", result);
            return;
        }
        is_repeat = 1;
    }
}

/* Takes a job and completes it; returns 0 when there is none. */
static int take_job(void) {
    emq_client *client = borrow();
    emq_job *job = NULL;
    if (client == NULL) {
        return 0;
    }
    int result = emq_claim(&job, client, "q", LEASE_MS);
    give_back(client);
    if (result == EMQ_OK) {
        settle_job(job);
        emq_job_free(job);
    } else if (result != EMQ_EMPTY && !is_worth_repeating(result)) {
        note_failure("claim", result);
    }
    return result != EMQ_EMPTY;
}

static void *run_all_three(void *data) {
    (void)data;
    for (int i = 0; i < ROUNDS; i++) {
        put_job();
        (void)take_job();
    }
    while (take_job()) {
    }
    return NULL;
}

static void *run_producer(void *data) {
    (void)data;
    for (int i = 0; i < ROUNDS || !atomic_load(&is_restarted); i++) {
        put_job();
        nap(20);
    }
    return NULL;
}

static void *run_worker(void *data) {
    (void)data;
    for (;;) {
        int was_restarted = atomic_load(&is_restarted);
        if (!take_job() && was_restarted) {
            return NULL;
        }
        if (!was_restarted) {
            nap(20);
        }
    }
}

static void start_threads(pthread_t threads[THREADS], void *(*body)(void *)) {
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, body, NULL), 0);
    }
}

static void join_threads(pthread_t threads[THREADS]) {
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&failures), 0);
}

static void reset_jobs(void) {
    (void)clean_server(NULL);
    atomic_store(&jobs, 0);
    atomic_store(&completions, 0);
    atomic_store(&failures, 0);
    memset(completed, 0, sizeof(completed));
}

static void expect_each_once(void) {
    int count = atomic_load(&jobs);
    assert_int_equal(atomic_load(&completions), count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(atomic_load(&completed[i]), 1);
    }
}

static void many_threads_share_few_clients(void **state) {
    pthread_t threads[THREADS];
    (void)state;
    reset_jobs();
    open_server_pool(5);
    start_threads(threads, run_all_three);
    join_threads(threads);
    assert_int_equal(atomic_load(&jobs), THREADS * ROUNDS);
    expect_each_once();
    emq_pool_stats stats = get_stats();
    assert_in_range(stats.open, 1, 5);
    assert_int_equal(stats.in_use, 0);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.timeouts, 0);
    assert_int_equal(stats.replaced, 0);
    emq_pool_free(pool);
}

static int have_jobs(void *data) {
    return atomic_load(&jobs) >= *(int *)data;
}

static int have_completions(void *data) {
    return atomic_load(&completions) >= *(int *)data;
}

/* Runs threads, and restarts the server while all of them are at work. */
static void run_through_restart(void *(*body)(void *), int (*reached)(void *)) {
    pthread_t threads[THREADS];
    int some = 2 * THREADS;
    atomic_store(&is_restarted, 0);
    start_threads(threads, body);
    wait_until("all are at work", reached, &some);
    server_restart(&server);
    atomic_store(&is_restarted, 1);
    join_threads(threads);
}

static int sweep_and_complete(void *data) {
    redisReply *reply = call(server.admin, "EMQ.STALLED.CHECK", "4", "emq:{q}:active",
                             "emq:{q}:pending", "emq:{q}:dead", "emq:{q}:", "100", "100", NULL);
    (void)data;
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
    while (take_job()) {
    }
    return atomic_load(&completions) >= atomic_load(&jobs);
}

/* Claims whose answer was lost come back with a sweep, behind the rest. */
static void a_restart_loses_and_doubles_nothing(void **state) {
    (void)state;
    reset_jobs();
    open_server_pool(16);
    run_through_restart(run_producer, have_jobs);
    run_through_restart(run_worker, have_completions);
    wait_until("the lost claims came back", sweep_and_complete, NULL);
    expect_each_once();
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(get_stats().in_use, 0);
    emq_pool_free(pool);
}

static void connections_are_opened_as_needed_and_kept(void **state) {
    emq_client *client[4];
    (void)state;
    open_server_pool(4);
    expect_counts(0, 0, 0);
    emq_client *first = acquire();
    expect_counts(1, 1, 0);
    for (int i = 0; i < 5; i++) {
        release(first);
        expect_counts(1, 0, 0);
        assert_ptr_equal(acquire(), first);
    }
    release(first);
    for (int i = 0; i < 4; i++) {
        client[i] = acquire();
        expect_counts((uint32_t)i + 1, (uint32_t)i + 1, 0);
    }
    for (int i = 0; i < 4; i++) {
        release(client[i]);
    }
    expect_counts(4, 0, 0);
    /* the last one that came back, so that the others stay idle */
    assert_ptr_equal(acquire(), client[3]);
    release(client[3]);
    assert_int_equal(get_stats().replaced, 0);
    emq_pool_free(pool);
}

/* Threads that wait for a client, and write down in which order they got it. */
typedef struct waiting {
    pthread_t thread;
    uint32_t timeout_ms;
    int result;
    int place; /* in the order of success, from 0 */
} waiting;

static atomic_int served;

static void *run_waiting(void *data) {
    waiting *w = data;
    emq_client *client = NULL;
    w->result = emq_pool_acquire(&client, pool, w->timeout_ms);
    if (w->result == EMQ_OK) {
        w->place = atomic_fetch_add(&served, 1);
        give_back(client);
    }
    return NULL;
}

static int are_waiting(void *data) {
    return get_stats().waiting == *(uint32_t *)data;
}

/* Starts one behind the others, and returns when it stands in line. */
static void start_waiting(waiting *w, uint32_t timeout_ms, uint32_t count) {
    *w = (waiting){.timeout_ms = timeout_ms, .result = EMQ_EINVAL, .place = -1};
    assert_int_equal(pthread_create(&w->thread, NULL, run_waiting, w), 0);
    wait_until("it stands in line", are_waiting, &count);
}

static void join_waiting(const waiting *w, int want) {
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    assert_string_equal(emq_err_name(w->result), emq_err_name(want));
}

static void who_comes_first_is_served_first(void **state) {
    waiting line[THREADS];
    (void)state;
    open_server_pool(1);
    emq_client *client = acquire();
    atomic_store(&served, 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        start_waiting(&line[i], LONG_MS, i + 1);
    }
    release(client);
    for (int i = 0; i < THREADS; i++) {
        join_waiting(&line[i], EMQ_OK);
        assert_int_equal(line[i].place, i);
    }
    expect_counts(1, 0, 0);
    emq_pool_free(pool);
}

/* A place that becomes free belongs to the line, also when somebody else comes at that moment. */
static void nobody_pushes_in(void **state) {
    waiting line;
    (void)state;
    open_server_pool(1);
    for (int i = 0; i < 20; i++) {
        emq_client *client = acquire();
        atomic_store(&served, 0);
        start_waiting(&line, LONG_MS, 1);
        release(client);
        client = acquire();
        assert_int_equal(atomic_load(&served), 1);
        release(client);
        join_waiting(&line, EMQ_OK);
    }
    emq_pool_free(pool);
}

static void waiting_ends_at_the_deadline(void **state) {
    (void)state;
    open_server_pool(1);
    emq_client *client = acquire();
    expect_no_client(SHORT_MS, EMQ_EPOOLTIMEOUT, "all 1 clients stayed in use");
    assert_int_equal(emq_err_class(EMQ_EPOOLTIMEOUT), EMQ_CLASS_RETRYABLE);
    assert_int_equal(get_stats().timeouts, 1);
    expect_counts(1, 1, 0);
    release(client);
    release(acquire());
    emq_pool_free(pool);
}

static void the_default_deadline_is_the_pools(void **state) {
    emq_pool_options options = EMQ_POOL_OPTIONS_INIT;
    emq_client_options client_options = options_for_server(&server);
    (void)state;
    options.max_clients = 1;
    options.checkout_timeout_ms = SHORT_MS;
    assert_int_equal(emq_pool_open(&pool, &client_options, &options), EMQ_OK);
    emq_client *client = NULL;
    assert_int_equal(emq_pool_acquire(&client, pool, LONG_MS), EMQ_OK);
    expect_no_client(0, EMQ_EPOOLTIMEOUT, "in use");
    release(client);
    emq_pool_free(pool);
}

/* Who gives up leaves the line in order: at its head, inside, and at its end. */
static void who_gives_up_leaves_the_line_whole(void **state) {
    (void)state;
    for (int impatient = 0; impatient < 3; impatient++) {
        waiting line[4];
        uint32_t left = 2;
        open_server_pool(1);
        emq_client *client = acquire();
        atomic_store(&served, 0);
        for (uint32_t i = 0; i < 3; i++) {
            /* long enough for the others to come */
            start_waiting(&line[i], (int)i == impatient ? 3000 : LONG_MS, i + 1);
        }
        wait_until("one has given up", are_waiting, &left);
        start_waiting(&line[3], LONG_MS, 3);
        release(client);
        int place = 0;
        for (int i = 0; i < 4; i++) {
            join_waiting(&line[i], i == impatient ? EMQ_EPOOLTIMEOUT : EMQ_OK);
            assert_int_equal(line[i].place, i == impatient ? -1 : place++);
        }
        expect_counts(1, 0, 0);
        emq_pool_free(pool);
    }
}

static void closing_sends_the_waiting_away(void **state) {
    waiting line[8];
    emq_id id = {{0}};
    (void)state;
    open_server_pool(2);
    emq_client *client = acquire();
    emq_client *other = acquire();
    for (uint32_t i = 0; i < 8; i++) {
        start_waiting(&line[i], LONG_MS, i + 1);
    }
    emq_pool_close(pool);
    for (int i = 0; i < 8; i++) {
        join_waiting(&line[i], EMQ_ECLOSED);
    }
    expect_no_client(LONG_MS, EMQ_ECLOSED, "closed");
    /* what is out goes on working */
    EXPECT_RESULT(client, emq_enqueue(&id, client, "closing", "p", 1), EMQ_OK);
    expect_counts(2, 2, 0);
    emq_pool_close(pool);
    release(client);
    expect_counts(1, 1, 0);
    assert_int_equal(emq_pool_release(pool, client), EMQ_EINVAL);
    /* the memory stays for the one that is still out */
    emq_pool_free(pool);
    EXPECT_RESULT(other, emq_enqueue(&id, other, "closing", "p", 1), EMQ_DUPLICATE);
    release(other);
}

static void closing_closes_what_is_idle(void **state) {
    emq_client *client[3];
    (void)state;
    open_server_pool(3);
    for (int i = 0; i < 3; i++) {
        client[i] = acquire();
    }
    release(client[0]);
    release(client[2]);
    emq_pool_close(pool);
    expect_counts(1, 1, 0);
    release(client[1]);
    expect_counts(0, 0, 0);
    emq_pool_free(pool);
}

static void *free_when_closed(void *data) {
    emq_client *client = NULL;
    int result = EMQ_OK;
    while ((result = emq_pool_acquire(&client, pool, LONG_MS)) == EMQ_OK) {
        (void)emq_pool_release(pool, client);
    }
    *(int *)data = result;
    emq_pool_free(pool);
    return NULL;
}

/* A close that still closes idle clients holds the pool, whoever hears of it and frees that. */
static void a_close_outlives_the_free_of_another_thread(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        emq_client *clients[8];
        int result = EMQ_OK;
        open_server_pool(8);
        for (int c = 0; c < 8; c++) {
            clients[c] = acquire();
        }
        for (int c = 0; c < 8; c++) {
            release(clients[c]);
        }
        assert_int_equal(pthread_create(&thread, NULL, free_when_closed, &result), 0);
        emq_pool_close(pool);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(result, EMQ_ECLOSED);
    }
}

static void what_is_not_out_is_not_taken_back(void **state) {
    emq_client_options options = options_for_server(&server);
    (void)state;
    open_server_pool(2);
    emq_client *client = acquire();
    emq_client *other = acquire();
    emq_client *foreign = open_client(&options);
    release(client);
    assert_int_equal(emq_pool_release(pool, client), EMQ_EINVAL);
    assert_int_equal(emq_pool_release(pool, foreign), EMQ_EINVAL);
    assert_int_equal(emq_pool_release(pool, NULL), EMQ_EINVAL);
    expect_counts(2, 1, 0);
    assert_ptr_equal(acquire(), client);
    release(client);
    release(other);
    expect_counts(2, 0, 0);
    emq_client_close(foreign);
    emq_pool_free(pool);
}

/* A refusal is the acquirer's, and takes no place: more of them than places change nothing. */
static void a_refusal_frees_its_place(void **state) {
    int reserved = -1;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    options.port = closed_port(&reserved);
    open_pool(&options, 2, 0);
    for (int i = 0; i < 5; i++) {
        expect_no_client(LONG_MS, EMQ_ECONNECT, "connection refused");
        expect_counts(0, 0, 0);
    }
    emq_pool_free(pool);
    (void)close(reserved);
}

/* Also for those who wait behind it: each is told for itself. */
static void refusals_reach_everybody_in_line(void **state) {
    waiting line[THREADS];
    int reserved = -1;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    options.port = closed_port(&reserved);
    open_pool(&options, 2, 0);
    for (int i = 0; i < THREADS; i++) {
        line[i] = (waiting){.timeout_ms = LONG_MS};
        assert_int_equal(pthread_create(&line[i].thread, NULL, run_waiting, &line[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        join_waiting(&line[i], EMQ_ECONNECT);
    }
    expect_counts(0, 0, 0);
    emq_pool_free(pool);
    (void)close(reserved);
}

/* Accepts and never answers: whichever of the two deadlines comes first ends it. */
static void a_silent_peer_keeps_nobody(void **state) {
    const peer_script script = {.greeting = {PEER_HOLD, NULL, 0}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    open_pool(&options, 1, 0);
    expect_no_client(SHORT_MS, EMQ_ECONNTIMEOUT,
                     "connected, but the server did not answer in time");
    expect_counts(0, 0, 0);
    emq_pool_free(pool);
    options.connect_timeout_ms = SHORT_MS;
    open_pool(&options, 1, 0);
    expect_no_client(LONG_MS, EMQ_ECONNTIMEOUT, "");
    expect_counts(0, 0, 0);
    assert_int_equal(get_stats().timeouts, 0);
    emq_pool_free(pool);
    peer_stop(p);
}

/* The silence comes while the client is out: it goes back closed, and the next one is connected. */
static void a_closed_client_is_replaced(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, {PEER_HOLD, NULL, 0}}};
    emq_id id = {{0}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    options.command_timeout_ms = SHORT_MS;
    open_pool(&options, 1, 0);
    emq_client *client = acquire();
    for (int i = 1; i <= 3; i++) {
        EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_ETIMEOUT);
        expect_counts(1, 1, 0);
        release(client);
        expect_counts(0, 0, 0);
        client = acquire();
        expect_counts(1, 1, 0);
        assert_int_equal(get_stats().replaced, i);
        assert_int_equal(peer_connections(p), 1 + i);
    }
    release(client);
    emq_pool_free(pool);
    peer_stop(p);
}

static int has_input(void *data) {
    const emq_client *client = data;
    struct pollfd looked_at = {client->connection.context->fd, POLLIN, 0};
    return poll(&looked_at, 1, 0) > 0;
}

/* Both an end and bytes that nobody asked for make an idle connection useless. */
static void an_idle_connection_is_looked_at(void **state) {
    static const peer_step ends[] = {{PEER_CLOSE, NULL, 0}, {PEER_SEND, "+OK\r\n", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const peer_script script = {.steps = {PEER_HANDSHAKE}};
        peer *p = peer_start(&script);
        emq_client_options options = options_for_peer(p);
        open_pool(&options, 1, 1);
        emq_client *client = acquire();
        release(client);
        nap(5);
        client = acquire();
        assert_int_equal(peer_connections(p), 1);
        release(client);
        peer_act(p, ends[i]);
        wait_until("it has come", has_input, client);
        nap(5);
        client = acquire();
        assert_int_equal(peer_connections(p), 2);
        assert_int_equal(get_stats().replaced, 1);
        release(client);
        emq_pool_free(pool);
        peer_stop(p);
    }
}

static void looking_can_be_switched_off(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE}};
    emq_id id = {{0}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    open_pool(&options, 1, EMQ_POOL_NO_IDLE_CHECK);
    emq_client *client = acquire();
    release(client);
    peer_act(p, (peer_step){PEER_CLOSE, NULL, 0});
    wait_until("it has come", has_input, client);
    client = acquire();
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_ECONNECT);
    release(client);
    emq_pool_free(pool);
    peer_stop(p);
}

static void expect_refused(const emq_client_options *client, const emq_pool_options *options) {
    emq_pool *made = (emq_pool *)(void *)&made; /* to see that it is set */
    assert_int_equal(emq_pool_open(&made, client, options), EMQ_EINVAL);
    assert_null(made);
}

static void options_are_checked(void **state) {
    emq_pool_options good = EMQ_POOL_OPTIONS_INIT;
    emq_pool_options by_function;
    emq_client_options client = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    memset(&by_function, 0xff, sizeof(by_function));
    emq_pool_options_init(&by_function);
    emq_pool_options_init(NULL);
    assert_memory_equal(&by_function, &good, sizeof(good));
    emq_pool_options bad = good;
    bad.max_clients = EMQ_POOL_CLIENTS_MAX + 1;
    expect_refused(NULL, &bad);
    bad = good;
    bad.reserved = 1;
    expect_refused(NULL, &bad);
    bad = good;
    bad.size = 0;
    expect_refused(NULL, &bad);
    client.database = -1;
    expect_refused(&client, &good);
    assert_int_equal(emq_pool_open(NULL, NULL, NULL), EMQ_EINVAL);
    assert_int_equal(emq_pool_open(&pool, NULL, NULL), EMQ_OK);
    emq_pool_free(pool);
}

static void missing_arguments_are_survived(void **state) {
    emq_client *client = NULL;
    emq_pool_stats stats = EMQ_POOL_STATS_INIT;
    char error[4];
    (void)state;
    assert_int_equal(emq_pool_open(&pool, NULL, NULL), EMQ_OK);
    assert_int_equal(emq_pool_acquire(NULL, pool, 1), EMQ_EINVAL);
    assert_int_equal(emq_pool_acquire(&client, NULL, 1), EMQ_EINVAL);
    assert_int_equal(emq_pool_release(NULL, NULL), EMQ_EINVAL);
    assert_int_equal(emq_pool_get_stats(NULL, pool), EMQ_EINVAL);
    assert_int_equal(emq_pool_get_stats(&stats, NULL), EMQ_EINVAL);
    stats.size = 0;
    assert_int_equal(emq_pool_get_stats(&stats, pool), EMQ_EINVAL);
    assert_int_equal(emq_pool_copy_error(error, 0, pool), EMQ_EINVAL);
    assert_int_equal(emq_pool_copy_error(NULL, 1, pool), EMQ_EINVAL);
    assert_int_equal(emq_pool_copy_error(error, 1, NULL), EMQ_EINVAL);
    emq_pool_close(NULL);
    emq_pool_free(NULL);
    emq_pool_close(pool);
    expect_no_client(1, EMQ_ECLOSED, "the pool is closed");
    assert_int_equal(emq_pool_copy_error(error, sizeof(error), pool), EMQ_OK);
    assert_string_equal(error, "the");
    emq_pool_free(pool);
}

/* The struct of another version: an older one is filled to its end, a newer one cleared behind it.
 */
static void stats_have_their_size(void **state) {
    struct {
        emq_pool_stats stats;
        uint64_t more;
    } newer = {EMQ_POOL_STATS_INIT, 7};
    (void)state;
    assert_int_equal(emq_pool_open(&pool, NULL, NULL), EMQ_OK);
    newer.stats.size = sizeof(newer);
    assert_int_equal(emq_pool_get_stats(&newer.stats, pool), EMQ_OK);
    assert_int_equal(newer.more, 0);
    assert_int_equal(newer.stats.size, sizeof(newer));
    emq_pool_stats older = EMQ_POOL_STATS_INIT;
    older.size = offsetof(emq_pool_stats, timeouts);
    older.timeouts = 7;
    older.open = 7;
    assert_int_equal(emq_pool_get_stats(&older, pool), EMQ_OK);
    assert_int_equal(older.timeouts, 7);
    assert_int_equal(older.open, 0);
    emq_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_share_few_clients),
        cmocka_unit_test(a_restart_loses_and_doubles_nothing),
        cmocka_unit_test(connections_are_opened_as_needed_and_kept),
        cmocka_unit_test(who_comes_first_is_served_first),
        cmocka_unit_test(nobody_pushes_in),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(the_default_deadline_is_the_pools),
        cmocka_unit_test(who_gives_up_leaves_the_line_whole),
        cmocka_unit_test(closing_sends_the_waiting_away),
        cmocka_unit_test(closing_closes_what_is_idle),
        cmocka_unit_test(a_close_outlives_the_free_of_another_thread),
        cmocka_unit_test(what_is_not_out_is_not_taken_back),
        cmocka_unit_test(a_refusal_frees_its_place),
        cmocka_unit_test(refusals_reach_everybody_in_line),
        cmocka_unit_test(a_silent_peer_keeps_nobody),
        cmocka_unit_test(a_closed_client_is_replaced),
        cmocka_unit_test(an_idle_connection_is_looked_at),
        cmocka_unit_test(looking_can_be_switched_off),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(missing_arguments_are_survived),
        cmocka_unit_test(stats_have_their_size),
    };
    return RUN_SERVER_TESTS("pool", tests, start_server, stop_server);
}
