/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that is told to end while it has short and long jobs in hand, a handler that blocks for
 * several leases, a worker that is stopped while somebody else takes its job. */
#include "crew.h"

#include <emq/emq.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR "3600000"
#define LEASE_MS 1500

static const char *program;
static test_server server;
static emq_client *client;

static void admit(emq_id *id, const char *queue, const char *ms) {
    *id = (emq_id){{0}};
    assert_int_equal(emq_enqueue(id, client, queue, ms, strlen(ms)), EMQ_OK);
}

static emq_counts read_counts(const char *queue) {
    emq_counts counts = EMQ_COUNTS_INIT;
    assert_int_equal(emq_counts_read(&counts, client, queue), EMQ_OK);
    return counts;
}

static crew make_crew(const char *queue, unsigned stop_ms) {
    crew c = {.program = program,
              .socket = server.socket,
              .queue = queue,
              .lease_ms = LEASE_MS,
              .concurrency = 4,
              .stop_ms = stop_ms};
    crew_init(&c);
    return c;
}

static size_t count(const crew *c, record_kind kind) {
    records list = {0};
    size_t found = 0;
    crew_read(&list, c);
    for (size_t i = 0; i < list.count; i++) {
        found += list.items[i].kind == kind;
    }
    records_free(&list);
    return found;
}

/* The line of this kind of a process's log; its kind is another one when there is none. */
static record find(const crew *c, size_t process, record_kind kind) {
    records list = {0};
    record found = {.kind = kind == RECORD_RUN ? RECORD_END : RECORD_RUN};
    crew_read(&list, c);
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].process == process && list.items[i].kind == kind) {
            found = list.items[i];
        }
    }
    records_free(&list);
    return found;
}

static int first_runs(void *c) {
    return find(c, 0, RECORD_RUN).kind == RECORD_RUN;
}

static int second_runs(void *c) {
    return find(c, 1, RECORD_RUN).kind == RECORD_RUN;
}

static int has_four_runs(void *c) {
    return count(c, RECORD_RUN) == 4;
}

static int has_an_end(void *c) {
    return count(c, RECORD_END) > 0;
}

/* Two short jobs and two that take an hour: the worker ends, the short ones are done, the long ones
 * are back as if nothing had been, but for their token. */
static void test_stop_with_jobs_in_hand(void **state) {
    (void)state;
    crew c = make_crew("stop", 4000);
    emq_id id[4];
    admit(&id[0], "stop", HOUR);
    admit(&id[1], "stop", "800");
    admit(&id[2], "stop", HOUR);
    admit(&id[3], "stop", "800");
    /* it leaves the threads that block, as a program has to that wants to end */
    assert_int_equal(setenv("TSAN_OPTIONS", "report_thread_leaks=0", 1), 0);
    crew_start(&c, 0);
    assert_int_equal(unsetenv("TSAN_OPTIONS"), 0);
    wait_until("four handlers run", has_four_runs, &c);
    crew_end(&c, 0);
    emq_counts counts = read_counts("stop");
    assert_int_equal(counts.completed, 2);
    assert_int_equal(counts.pending, 2);
    assert_int_equal(counts.active + counts.scheduled + counts.dead, 0);
    for (size_t i = 0; i < 4; i += 2) {
        emq_row *row = NULL;
        assert_int_equal(emq_row_read(&row, client, "stop", &id[i]), EMQ_OK);
        assert_string_equal(emq_row_get_state(row), "pending");
        assert_int_equal(emq_row_get_attempts(row), 1);
        assert_int_equal(emq_row_get_failures(row), 0);
        assert_int_equal(emq_row_get_stalled(row), 0);
        emq_row_free(row);
    }
    assert_int_equal(count(&c, RECORD_COMPLETED), 2);
    assert_int_equal(count(&c, RECORD_END), 2); /* the others still blocked */
    crew_clear(&c);
}

/* Jobs that nobody has in hand are left alone by a worker that ends. */
static void test_stop_leaves_what_waits(void **state) {
    (void)state;
    crew c = make_crew("waiting", 60000);
    emq_id id;
    for (int i = 0; i < 8; i++) {
        admit(&id, "waiting", "1000");
    }
    crew_start(&c, 0);
    wait_until("four handlers run", has_four_runs, &c);
    crew_end(&c, 0);
    emq_counts counts = read_counts("waiting");
    assert_int_equal(counts.completed, count(&c, RECORD_RUN)); /* whatever ran is done */
    assert_int_equal(counts.completed + counts.pending, 8);
    assert_int_equal(counts.active, 0);
    crew_clear(&c);
}

/* Blocks for more than three leases beside a worker that is idle and sweeps: one run, no stall. */
static void test_blocking_handler(void **state) {
    (void)state;
    crew c = make_crew("blocks", 60000);
    emq_id id;
    emq_row *row = NULL;
    admit(&id, "blocks", "5000");
    crew_start(&c, 0);
    crew_start(&c, 1);
    wait_until("the handler has ended", has_an_end, &c);
    if (emq_row_read(&row, client, "blocks", &id) == EMQ_OK) { /* not completed yet */
        assert_int_equal(emq_row_get_stalled(row), 0);
        emq_row_free(row);
    }
    crew_end(&c, 0);
    crew_end(&c, 1);
    assert_int_equal(count(&c, RECORD_RUN), 1);
    assert_int_equal(count(&c, RECORD_TOLD) + count(&c, RECORD_REFUSED), 0);
    assert_int_equal(count(&c, RECORD_COMPLETED), 1);
    assert_int_equal(read_counts("blocks").completed, 1);
    crew_clear(&c);
}

/* Stopped in the middle of its job, which somebody else has by the time that it goes on. */
static crew stop_and_continue(const char *queue, const char *ms) {
    crew c = make_crew(queue, 60000);
    emq_id id;
    c.concurrency =
        1; /* without a free slot it has no claim that waits, and gets nothing meanwhile */
    admit(&id, queue, ms);
    crew_start(&c, 0);
    wait_until("the first worker runs it", first_runs, &c);
    crew_stop(&c, 0, 0);
    crew_start(&c, 1);
    wait_until("the second one runs it", second_runs, &c);
    crew_continue(&c, INT64_MAX);
    crew_end(&c, 0);
    crew_end(&c, 1);
    record completed = find(&c, 1, RECORD_COMPLETED);
    assert_int_equal(completed.kind, RECORD_COMPLETED);
    assert_int_equal(completed.attempt, 2);
    assert_int_equal(count(&c, RECORD_COMPLETED), 1);
    assert_int_equal(read_counts(queue).completed, 1);
    return c;
}

static void test_stopped_worker_is_told(void **state) {
    (void)state;
    crew c = stop_and_continue("told", "3000");
    record end = find(&c, 0, RECORD_END);
    assert_int_equal(end.kind, RECORD_END);
    assert_int_equal(end.value, EMQ_NOTICE_LOST);
    assert_int_equal(find(&c, 0, RECORD_TOLD).kind, RECORD_TOLD);
    crew_clear(&c);
}

/* Its handler returns at once: the settle is refused, or not sent. */
static void test_stopped_worker_settles_late(void **state) {
    (void)state;
    crew c = stop_and_continue("late", "3001");
    assert_int_equal(find(&c, 0, RECORD_END).kind, RECORD_END);
    assert_true(find(&c, 0, RECORD_TOLD).kind == RECORD_TOLD ||
                find(&c, 0, RECORD_REFUSED).value == EMQ_ESTALE);
    crew_clear(&c);
}

static int set_up(void **state) {
    (void)state;
    server_start(&server, NULL);
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.unix_path = server.socket;
    return emq_client_open(&client, &options) == EMQ_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    emq_client_close(client);
    server_stop(&server);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_with_jobs_in_hand),
        cmocka_unit_test(test_stop_leaves_what_waits),
        cmocka_unit_test(test_blocking_handler),
        cmocka_unit_test(test_stopped_worker_is_told),
        cmocka_unit_test(test_stopped_worker_settles_late),
    };
    if (argc != 2) {
        return EXIT_FAILURE;
    }
    program = argv[1];
    return RUN_SERVER_TESTS("stop", tests, set_up, tear_down);
}
