/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests of the worker. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "crew.h"

void crew_nap(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

int crew_clean(void **state) {
    (void)clean_server(state);
    run(server.admin, "CONFIG", "RESETSTAT", NULL);
    return 0;
}

void crew_enqueue(const char *queue, const char *payload, emq_id *id) {
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    emq_id own = {{0}};
    int result = emq_enqueue(id == NULL ? &own : id, client, queue, payload, strlen(payload));
    EXPECT_RESULT(client, result, EMQ_OK);
    emq_client_close(client);
}

void crew_enqueue_many(const char *queue, int count) {
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    char payload[32];
    for (int i = 0; i < count; i++) {
        emq_id id = {{0}};
        int n = snprintf(payload, sizeof(payload), "%d", i);
        EXPECT_RESULT(client, emq_enqueue(&id, client, queue, payload, (size_t)n), EMQ_OK);
    }
    emq_client_close(client);
}

emq_counts crew_counts(const char *queue) {
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    emq_counts counts = EMQ_COUNTS_INIT;
    EXPECT_RESULT(client, emq_counts_read(&counts, client, queue), EMQ_OK);
    emq_client_close(client);
    return counts;
}

long long crew_calls(const char *name) {
    char line[64];
    long long calls = 0;
    redisReply *reply = redisCommand(server.admin, "INFO commandstats");
    assert_non_null(reply);
    (void)snprintf(line, sizeof(line), "cmdstat_%s:calls=", name);
    const char *found = strstr(reply->str, line);
    if (found != NULL) {
        calls = strtoll(found + strlen(line), NULL, 10);
    }
    freeReplyObject(reply);
    return calls;
}

emq_row *crew_row(const char *queue, const emq_id *id) {
    emq_client_options options = options_for_server(&server);
    emq_client *client = open_client(&options);
    emq_row *row = NULL;
    EXPECT_RESULT(client, emq_row_read(&row, client, queue, id), EMQ_OK);
    emq_client_close(client);
    return row;
}

emq_worker *crew_open(const emq_client_options *client, const emq_worker_options *options) {
    emq_worker *worker = NULL;
    int result = emq_worker_open(&worker, client, options);
    assert_string_equal(emq_err_name(result), "EMQ_OK");
    assert_non_null(worker);
    return worker;
}

void crew_add(emq_worker *worker, const char *queue, emq_task_handler handler, void *user,
              const emq_worker_queue *options) {
    int result = emq_worker_add(worker, queue, handler, user, options);
    assert_string_equal(emq_err_name(result), "EMQ_OK");
}

void crew_start(emq_worker *worker) {
    char error[256];
    int result = emq_worker_start(worker);
    assert_int_equal(emq_worker_copy_error(error, sizeof(error), worker), EMQ_OK);
    if (result != EMQ_OK) {
        fail_msg("start: %s: %s", emq_err_name(result), error);
    }
}

void crew_end(emq_worker *worker) {
    size_t left = 1;
    assert_int_equal(emq_worker_stop(worker, LONG_MS), EMQ_OK);
    assert_string_equal(emq_err_name(emq_worker_wait(&left, worker, LONG_MS)), "EMQ_OK");
    emq_worker_free(worker);
}

emq_worker_stats crew_stats(emq_worker *worker) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    assert_int_equal(emq_worker_get_stats(&stats, worker), EMQ_OK);
    return stats;
}

typedef struct awaited {
    emq_worker *worker;
    size_t offset;
    size_t size;
    unsigned long long count;
    unsigned long long seen;
} awaited;

static int has_counted(void *data) {
    awaited *a = data;
    emq_worker_stats stats = crew_stats(a->worker);
    const char *at = (const char *)&stats + a->offset;
    if (a->size == sizeof(uint32_t)) {
        uint32_t value = 0;
        memcpy(&value, at, sizeof(value));
        a->seen = value;
    } else {
        uint64_t value = 0;
        memcpy(&value, at, sizeof(value));
        a->seen = value;
    }
    return a->seen >= a->count;
}

void crew_await(emq_worker *worker, const char *name, size_t offset, size_t size,
                unsigned long long count) {
    awaited a = {worker, offset, size, count, 0};
    wait_until(name, has_counted, &a);
}

typedef struct awaited_int {
    atomic_int *value;
    int count;
} awaited_int;

static int has_come(void *data) {
    const awaited_int *a = data;
    return atomic_load(a->value) >= a->count;
}

void crew_await_int(const char *what, atomic_int *value, int count) {
    awaited_int a = {value, count};
    wait_until(what, has_come, &a);
}

int crew_return(emq_task *task, void *user) {
    (void)task;
    return *(int *)user;
}

int crew_wait_at_gate(emq_task *task, void *gate) {
    crew_gate *g = gate;
    atomic_fetch_add(&g->arrived, 1);
    while (!atomic_load(&g->is_open)) {
        crew_nap(2);
    }
    if (emq_task_is_lost(task)) {
        atomic_fetch_add(&g->lost, 1);
    }
    atomic_fetch_add(&g->passed, 1);
    return EMQ_TASK_COMPLETE;
}

int crew_keep(emq_task *task, void *kept) {
    emq_task *_Atomic *place = kept;
    atomic_store(place, task);
    return EMQ_TASK_LATER;
}

static int is_kept(void *kept) {
    emq_task *_Atomic *place = kept;
    return atomic_load(place) != NULL;
}

emq_task *crew_take_kept(void *kept) {
    emq_task *_Atomic *place = kept;
    wait_until("a task was kept", is_kept, kept);
    return atomic_exchange(place, NULL);
}
