/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a worker: drains, deadlines, a second request, jobs that go back, servers that hang,
 * signals; and that nothing is left behind. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "crew.h"

static emq_client_options client;

static int start_server_of_crew(void **state) {
    (void)start_server(state);
    client = options_for_server(&server);
    client.client_name = "crew";
    return 0;
}

static emq_worker *start(emq_task_handler handler, void *user, uint32_t concurrency,
                         uint32_t prefetch) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    options.concurrency = concurrency;
    options.prefetch = prefetch;
    options.claim_wait_ms = 14000; /* so that nobody just waits for it */
    emq_worker *worker = crew_open(&client, &options);
    crew_add(worker, "q", handler, user, NULL);
    crew_start(worker);
    return worker;
}

static void expect_ended(emq_worker *worker, size_t want_left) {
    size_t left = 99;
    assert_string_equal(emq_err_name(emq_worker_wait(&left, worker, LONG_MS)), "EMQ_OK");
    assert_int_equal(left, want_left);
}

/* How many of the worker's connections the server knows. */
static int count_connections(void) {
    redisReply *list = redisCommand(server.admin, "CLIENT LIST");
    assert_non_null(list);
    int count = 0;
    for (const char *at = strstr(list->str, "name=crew "); at != NULL;
         at = strstr(at + 1, "name=crew ")) {
        count++;
    }
    freeReplyObject(list);
    return count;
}

static int has_no_connection(void *data) {
    (void)data;
    return count_connections() == 0;
}

static int count_entries(const char *path) {
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

static int has_blocked_claim(void *data) {
    (void)data;
    redisReply *list = redisCommand(server.admin, "CLIENT LIST");
    assert_non_null(list);
    int found = strstr(list->str, "flags=b") != NULL;
    freeReplyObject(list);
    return found;
}

static void work_and_end(void) {
    int verdict = 0;
    emq_worker *worker = start(crew_return, &verdict, 4, 0);
    wait_until("the claim waits", has_blocked_claim, NULL);
    crew_enqueue_many("q", 3);
    CREW_AWAIT(worker, completed, 3);
    wait_until("the claim waits", has_blocked_claim, NULL);
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    expect_ended(worker, 0);
    emq_worker_free(worker);
}

static void an_idle_worker_leaves_nothing_behind(void **state) {
    (void)state;
    work_and_end(); /* what a sanitizer starts with the first thread is not the worker's */
    int threads = count_entries("/proc/self/task");
    int files = count_entries("/proc/self/fd");
    work_and_end();
    assert_int_equal(count_entries("/proc/self/task"), threads);
    assert_int_equal(count_entries("/proc/self/fd"), files);
    wait_until("no connection is left", has_no_connection, NULL);
}

static void a_drain_waits_for_handlers(void **state) {
    crew_gate gate = {0};
    (void)state;
    crew_enqueue_many("q", 5);
    emq_worker *worker = start(crew_wait_at_gate, &gate, 2, 2);
    crew_await_int("two run", &gate.arrived, 2);
    CREW_AWAIT(worker, waiting, 2);
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    CREW_AWAIT(worker, requeued, 2); /* what waited goes back at once */
    assert_int_equal(emq_worker_wait(NULL, worker, 50), EMQ_EMPTY);
    assert_int_equal(crew_counts("q").pending, 3);
    atomic_store(&gate.is_open, 1);
    expect_ended(worker, 0);
    assert_int_equal(crew_stats(worker).completed, 2);
    assert_int_equal(atomic_load(&gate.lost), 0);
    assert_int_equal(crew_counts("q").active, 0);
    emq_worker_free(worker);
}

static void expect_given_back(const emq_id *id) {
    emq_row *row = crew_row("q", id);
    assert_string_equal(emq_row_get_state(row), "pending");
    assert_int_equal(emq_row_get_failures(row), 0);
    assert_int_equal(emq_row_get_stalled(row), 0);
    assert_int_equal(emq_row_get_attempts(row), 1);
    emq_row_free(row);
}

static void at_the_deadline_jobs_go_back(void **state) {
    crew_gate gate = {0};
    emq_id id = {{0}};
    (void)state;
    crew_enqueue("q", "x", &id);
    emq_worker *worker = start(crew_wait_at_gate, &gate, 1, 0);
    crew_await_int("it runs", &gate.arrived, 1);
    assert_int_equal(emq_worker_stop(worker, 100), EMQ_OK);
    expect_ended(worker, 1);
    expect_given_back(&id);
    atomic_store(&gate.is_open, 1);
    emq_worker_free(worker); /* waits for the handler */
    assert_int_equal(atomic_load(&gate.passed), 1);
    assert_int_equal(atomic_load(&gate.lost), 1);
    expect_given_back(&id); /* what it returned was not sent */
}

static void a_second_request_ends_it_at_once(void **state) {
    crew_gate gate = {0};
    emq_id id = {{0}};
    (void)state;
    crew_enqueue("q", "x", &id);
    emq_worker *worker = start(crew_wait_at_gate, &gate, 1, 0);
    crew_await_int("it runs", &gate.arrived, 1);
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    assert_int_equal(emq_worker_wait(NULL, worker, 20), EMQ_EMPTY);
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    expect_ended(worker, 1);
    expect_given_back(&id);
    assert_int_equal(emq_worker_stop(worker, 0), EMQ_OK); /* once more does nothing */
    atomic_store(&gate.is_open, 1);
    emq_worker_free(worker);
}

static emq_task *_Atomic kept;

static void kept_tasks_are_waited_for_and_given_back(void **state) {
    (void)state;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start(crew_keep, &kept, 1, 0);
    emq_task *task = crew_take_kept(&kept);
    assert_int_equal(emq_task_get_notice(task), EMQ_NOTICE_NONE);
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    assert_int_equal(emq_task_get_notice(task), EMQ_NOTICE_STOPPING);
    assert_int_equal(emq_worker_wait(NULL, worker, 20), EMQ_EMPTY);
    assert_int_equal(emq_worker_stop(worker, 0), EMQ_OK);
    expect_ended(worker, 0);
    assert_int_equal(emq_task_get_notice(task), EMQ_NOTICE_RETURNED);
    assert_int_equal(emq_task_complete(task), EMQ_ESTALE);
    assert_int_equal(crew_counts("q").pending, 1);
    emq_task_free(task);
    emq_worker_free(worker);
}

static int stop_from_handler(emq_task *task, void *worker) {
    (void)task;
    emq_worker *w = *(emq_worker **)worker;
    return emq_worker_stop(w, LONG_MS) == EMQ_OK && emq_worker_wait(NULL, w, 0) == EMQ_EINVAL
               ? EMQ_TASK_COMPLETE
               : EMQ_TASK_FAIL;
}

static void a_handler_may_stop_its_worker(void **state) {
    emq_worker *worker = NULL;
    (void)state;
    worker = start(stop_from_handler, &worker, 1, 0);
    crew_enqueue("q", "x", NULL);
    expect_ended(worker, 0);
    assert_int_equal(crew_stats(worker).completed, 1);
    emq_worker_free(worker);
}

/* Jobs keep coming while workers come and go: none may be held by a worker that has ended. */

static atomic_int is_producing;

static void *produce(void *data) {
    emq_client *producer = data;
    for (int i = 0; atomic_load(&is_producing); i++) {
        emq_id id = {{0}};
        if (emq_enqueue(&id, producer, "q", "x", 1) != EMQ_OK) {
            return data; /* an enqueue failed */
        }
        crew_nap(i % 3);
    }
    return NULL;
}

static void a_hand_over_in_the_moment_of_a_stop_goes_back(void **state) {
    int verdict = 0;
    void *failure = NULL;
    pthread_t thread;
    uint64_t completed = 0;
    (void)state;
    emq_client *producer = open_client(&client);
    atomic_store(&is_producing, 1);
    assert_int_equal(pthread_create(&thread, NULL, produce, producer), 0);
    for (int i = 0; i < 40; i++) {
        emq_worker *worker = start(crew_return, &verdict, 2, 0);
        CREW_AWAIT(worker, completed, 3);
        assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
        expect_ended(worker, 0);
        completed += crew_stats(worker).completed;
        emq_worker_free(worker);
    }
    atomic_store(&is_producing, 0);
    assert_int_equal(pthread_join(thread, &failure), 0);
    assert_null(failure);
    emq_client_close(producer);
    emq_counts counts = crew_counts("q");
    assert_int_equal(counts.completed, completed);
    print_message("%d completed, %d left leased\n", (int)completed, (int)counts.active);
    assert_int_equal(counts.active, 0);
}

static void a_server_that_hangs_does_not_keep_it(void **state) {
    crew_gate gate = {0};
    (void)state;
    crew_enqueue("q", "x", NULL);
    emq_worker *worker = start(crew_wait_at_gate, &gate, 1, 3);
    crew_await_int("it runs", &gate.arrived, 1);
    wait_until("the claim waits", has_blocked_claim, NULL);
    assert_int_equal(kill((pid_t)server.pid, SIGSTOP), 0);
    assert_int_equal(emq_worker_stop(worker, 10), EMQ_OK);
    expect_ended(worker, 1);
    atomic_store(&gate.is_open, 1);
    emq_worker_free(worker);
    assert_int_equal(kill((pid_t)server.pid, SIGCONT), 0);
    assert_int_equal(crew_counts("q").completed, 0);
}

/* The ids of connections are each server process's own. */

/* The id of the worker's connection whose claim waits; all the others are ended when `ends_others`.
 */
static long long find_claim(int ends_others) {
    redisReply *list = redisCommand(server.admin, "CLIENT LIST");
    assert_non_null(list);
    long long claim = 0;
    for (char *line = strtok(list->str, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        long long id = strtoll(line + strlen("id="), NULL, 10);
        if (strstr(line, " name=crew ") == NULL) {
            continue;
        }
        if (strstr(line, " flags=b") != NULL) {
            claim = id;
        } else if (ends_others) {
            char text[32];
            (void)snprintf(text, sizeof(text), "%lld", id);
            run(server.admin, "CLIENT", "KILL", "ID", text, NULL);
        }
    }
    freeReplyObject(list);
    return claim;
}

/* A connection of that id, which waits for something else. */
static redisContext *wait_as(const test_server *other, long long id) {
    for (;;) {
        redisContext *waiter = server_connect(other);
        redisReply *reply = redisCommand(waiter, "CLIENT ID");
        assert_non_null(reply);
        assert_true(reply->integer <= id);
        int is_it = reply->integer == id;
        freeReplyObject(reply);
        if (is_it) {
            assert_int_equal(redisAppendCommand(waiter, "BLPOP list 0"), REDIS_OK);
            int done = 0;
            while (!done) {
                assert_int_equal(redisBufferWrite(waiter, &done), REDIS_OK);
            }
            return waiter;
        }
        redisFree(waiter);
    }
}

static int is_waiting(void *other) {
    redisReply *info = redisCommand(((test_server *)other)->admin, "INFO clients");
    assert_non_null(info);
    int found = strstr(info->str, "blocked_clients:1\r\n") != NULL;
    freeReplyObject(info);
    return found;
}

/* The claim waits on one server, and what the settler is connected to by now is another one, which
 * calls somebody else by the claim's number. */
static void a_stop_ends_nobody_elses_wait(void **state) {
    static test_server other;
    int verdict = 0;
    char path[SERVER_PATH_MAX + 8];
    (void)state;
    server_start(&other, NULL);
    (void)snprintf(path, sizeof(path), "%s/moving", server.dir);
    assert_int_equal(symlink(server.socket, path), 0);
    client.unix_path = path;
    emq_worker *worker = start(crew_return, &verdict, 1, 0);
    client.unix_path = server.socket;
    wait_until("the claim waits", has_blocked_claim, NULL);
    redisContext *waiter = wait_as(&other, find_claim(0));
    wait_until("somebody waits on the other server", is_waiting, &other);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other.socket, path), 0);
    (void)find_claim(1);
    CREW_AWAIT(worker, reconnects, 1); /* of the renewer, or the keeper */
    crew_end(worker);
    run(other.admin, "RPUSH", "list", "x", NULL);
    redisReply *reply = NULL;
    assert_int_equal(redisGetReply(waiter, (void **)&reply), REDIS_OK);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY); /* a wait that was ended has a nil */
    freeReplyObject(reply);
    redisFree(waiter);
    assert_int_equal(unlink(path), 0);
    server_stop(&other);
}

/* A settler that had to connect again asks the claimers who they are before it goes by that. */
static void a_stop_ends_the_wait_behind_a_reconnect(void **state) {
    int verdict = 0;
    (void)state;
    emq_worker *worker = start(crew_return, &verdict, 1, 0);
    wait_until("the claim waits", has_blocked_claim, NULL);
    (void)find_claim(1);
    crew_enqueue_many("q", 1); /* to be settled on a new connection */
    CREW_AWAIT(worker, completed, 1);
    crew_enqueue_many("q", 1); /* the claim behind it knows of that */
    CREW_AWAIT(worker, completed, 2);
    wait_until("the claim waits", has_blocked_claim, NULL);
    assert_int_equal(crew_calls("client|unblock"), 0);
    crew_end(worker);
    assert_true(crew_calls("client|unblock") > 0);
}

/* Signals, in children, since they are the process's. */

static int run_in_child(int signals, const char *socket_path) {
    int status = -1;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        static crew_gate gate;
        emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
        emq_worker *worker = NULL;
        size_t left = 0;
        options.unix_path = socket_path;
        if (emq_worker_block_signals() != EMQ_OK ||
            emq_worker_open(&worker, &options, NULL) != EMQ_OK ||
            emq_worker_add(worker, "q", crew_wait_at_gate, &gate, NULL) != EMQ_OK ||
            emq_worker_start(worker) != EMQ_OK) {
            _exit(99);
        }
        while (atomic_load(&gate.arrived) == 0) {
            crew_nap(1);
        }
        for (int i = 0; i < signals; i++) {
            (void)kill(getpid(), i == 0 ? SIGTERM : SIGINT);
        }
        if (signals == 1) {
            atomic_store(&gate.is_open, 1);
        }
        int result = emq_worker_run(&left, worker, LONG_MS);
        atomic_store(&gate.is_open, 1);
        emq_worker_free(worker);
        _exit(result == EMQ_OK ? 10 + (int)left : 98);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_signal_drains_and_a_second_ends(void **state) {
    (void)state;
    crew_enqueue("q", "x", NULL);
    assert_int_equal(run_in_child(1, server.socket), 10);
    assert_int_equal(crew_counts("q").completed, 1);
    crew_enqueue("q", "x", NULL);
    assert_int_equal(run_in_child(2, server.socket), 11); /* its handler was left */
    assert_int_equal(crew_counts("q").pending, 1);
}

static void a_run_ends_when_somebody_stops_it(void **state) {
    emq_worker *worker = NULL;
    size_t left = 9;
    (void)state;
    assert_int_equal(emq_worker_run(NULL, NULL, 0), EMQ_EINVAL);
    worker = start(stop_from_handler, &worker, 1, 0);
    crew_enqueue("q", "x", NULL);
    assert_int_equal(emq_worker_run(&left, worker, LONG_MS), EMQ_OK);
    assert_int_equal(left, 0);
    emq_worker_free(worker);
}

typedef struct starter {
    emq_worker *worker;
    pthread_t thread;
    int result;
} starter;

static void *start_it(void *data) {
    starter *s = data;
    s->result = emq_worker_start(s->worker);
    return NULL;
}

/* Whoever calls at the same time is told that it was started already. */
static void it_is_started_once_by_many_callers(void **state) {
    enum { CALLERS = 8 };
    starter starters[CALLERS];
    int verdict = 0;
    int started = 0;
    (void)state;
    emq_worker *worker = crew_open(&client, NULL);
    crew_add(worker, "q", crew_return, &verdict, NULL);
    for (int i = 0; i < CALLERS; i++) {
        starters[i].worker = worker;
        assert_int_equal(pthread_create(&starters[i].thread, NULL, start_it, &starters[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(starters[i].thread, NULL), 0);
        assert_true(starters[i].result == EMQ_OK || starters[i].result == EMQ_EINVAL);
        started += starters[i].result == EMQ_OK;
    }
    assert_int_equal(started, 1);
    crew_enqueue("q", "x", NULL);
    CREW_AWAIT(worker, completed, 1);
    crew_end(worker);
}

/* A sanitizer needs more memory than any limit leaves; ThreadSanitizer lets no child start threads.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_LIMITS 0
#elif defined(__has_feature)
#define HAS_LIMITS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define HAS_LIMITS 1
#endif

#if HAS_LIMITS
#define MANY_QUEUES 250
#define MIB ((rlim_t)1024 * 1024)

/* 0: it could not be started; 1: it could; 2: something else. */
static int start_with_memory(rlim_t mib) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {mib * MIB, mib * MIB};
        int verdict = 0;
        emq_worker *worker = crew_open(&client, NULL);
        for (int i = 0; i < MANY_QUEUES; i++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "q%d", i);
            crew_add(worker, name, crew_return, &verdict, NULL);
        }
        int result = setrlimit(RLIMIT_AS, &limit) == 0 ? emq_worker_start(worker) : EMQ_EINVAL;
        emq_worker_stats stats = crew_stats(worker);
        emq_worker_free(worker);
        _exit(result == EMQ_OK ? 1 : result == EMQ_ESYSTEM && stats.claimed == 0 ? 0 : 2);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Without room for all threads it does not start, and those that were there have claimed nothing.
 */
static void a_start_without_room_for_its_threads_claims_nothing(void **state) {
    int started = 0;
    (void)state;
    for (int i = MANY_QUEUES - 50; i < MANY_QUEUES; i++) { /* the last one is the first to claim */
        char name[16];
        (void)snprintf(name, sizeof(name), "q%d", i);
        crew_enqueue(name, "x", NULL);
    }
    for (rlim_t mib = 1200; mib < 4000 && started == 0; mib += 200) {
        started = start_with_memory(mib);
        assert_true(started == 0 || started == 1);
        for (int i = MANY_QUEUES - 50; i < MANY_QUEUES && started == 0; i++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "q%d", i);
            assert_int_equal(crew_counts(name).pending, 1);
        }
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_idle_worker_leaves_nothing_behind, crew_clean),
        cmocka_unit_test_setup(a_drain_waits_for_handlers, crew_clean),
        cmocka_unit_test_setup(at_the_deadline_jobs_go_back, crew_clean),
        cmocka_unit_test_setup(a_second_request_ends_it_at_once, crew_clean),
        cmocka_unit_test_setup(kept_tasks_are_waited_for_and_given_back, crew_clean),
        cmocka_unit_test_setup(a_handler_may_stop_its_worker, crew_clean),
        cmocka_unit_test_setup(a_hand_over_in_the_moment_of_a_stop_goes_back, crew_clean),
        cmocka_unit_test_setup(a_server_that_hangs_does_not_keep_it, crew_clean),
        cmocka_unit_test_setup(a_stop_ends_nobody_elses_wait, crew_clean),
        cmocka_unit_test_setup(a_stop_ends_the_wait_behind_a_reconnect, crew_clean),
        cmocka_unit_test_setup(a_signal_drains_and_a_second_ends, crew_clean),
        cmocka_unit_test_setup(a_run_ends_when_somebody_stops_it, crew_clean),
        cmocka_unit_test_setup(it_is_started_once_by_many_callers, crew_clean),
#if HAS_LIMITS
        cmocka_unit_test_setup(a_start_without_room_for_its_threads_claims_nothing, crew_clean),
#endif
    };
    return RUN_SERVER_TESTS("worker_stop", tests, start_server_of_crew, stop_server);
}
