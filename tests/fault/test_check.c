/* SPDX-License-Identifier: Apache-2.0 */
/* The check bites: a true log passes, and each way of falsifying it breaks its rule. */
#include "check.h"

#include <emq/emq.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"

#define A "JOB0000000000A"
#define B "JOB0000000000B"
#define C "JOB0000000000C"

/* Process 0 was killed; process 1 was stopped and continued. */
static const unsigned char killed[] = {1, 0};
static const char ids[][RECORD_ID_SIZE] = {A, B, C};

/* A: killed in its first run, completed in its second. B: stopped in its first run, told, completed
 * by another. C: three lapsed runs, dead. */
static const record true_log[] = {
    {RECORD_RUN, A, 1, 10, 0, 0},
    {RECORD_RUN, A, 2, 30, 0, 1},
    {RECORD_END, A, 2, 40, 0, 1},
    {RECORD_COMPLETED, A, 2, 41, 0, 1},
    {RECORD_RUN, B, 1, 10, 0, 1},
    {RECORD_RUN, B, 2, 20, 0, 1},
    {RECORD_END, B, 2, 25, 0, 1},
    {RECORD_COMPLETED, B, 2, 26, 0, 1},
    {RECORD_TOLD, B, 1, 50, EMQ_NOTICE_LOST, 1},
    {RECORD_END, B, 1, 51, EMQ_NOTICE_LOST, 1},
    {RECORD_RUN, C, 1, 10, 0, 0},
    {RECORD_RUN, C, 2, 20, 0, 0},
    {RECORD_RUN, C, 3, 30, 0, 1},
    {RECORD_END, C, 3, 40, 0, 1},
    {RECORD_REFUSED, C, 3, 41, EMQ_ESTALE, 1},
};
#define TRUE_COUNT (sizeof(true_log) / sizeof(true_log[0]))

/* The same in the server's words. */
static const char true_aof[] = "HSET emq:{q}:job:" A " state pending attempts 0 payload x\n"
                               "ZADD emq:{q}:pending 0 " A "\n"
                               "HSET emq:{q}:job:" A " state active attempts 1 lease_epoch 9\n"
                               "HSET emq:{q}:job:" A " state pending stalled 1\n"
                               "HSET emq:{q}:job:" A " state active attempts 2 lease_epoch 9\n"
                               "HSET emq:{other}:job:" A " state active attempts 7 lease_epoch 9\n"
                               "HSET emq:{q}:job:" B " state active attempts 1 lease_epoch 9\n"
                               "HSET emq:{q}:job:" B " state active attempts 2 lease_epoch 9\n"
                               "DEL emq:{q}:job:" A " emq:{q}:job:" B " emq:{q}:job:" B ":logs\n"
                               "HSET emq:{q}:job:" C " state active attempts 3 lease_epoch 9\n"
                               "HSET emq:{q}:job:" C " state dead stalled 3 last_error stalled";

typedef struct world {
    record lines[TRUE_COUNT + 4];
    check_dead dead;
    check_input input;
} world;

static history server_side[3];

static void make_world(world *w) {
    history *read = history_read(true_aof, "q", ids, 3);
    assert_non_null(read);
    memcpy(server_side, read, sizeof(server_side));
    free(read);
    memcpy(w->lines, true_log, sizeof(true_log));
    w->dead = (check_dead){C, 3, 3};
    w->input = (check_input){
        .log = {w->lines, TRUE_COUNT, 0},
        .ids = ids,
        .jobs = 3,
        .server = server_side,
        .dead = &w->dead,
        .dead_count = 1,
        .completed = 2,
        .killed = killed,
        .processes = 2,
        .losses = 4,
        .max_stalled = 3,
    };
}

static void add(world *w, record line) {
    w->lines[w->input.log.count++] = line;
}

/* Takes a line of the true log out. */
static void drop(world *w, record_kind kind, const char *id, int64_t attempt) {
    for (size_t i = 0; i < w->input.log.count; i++) {
        if (w->lines[i].kind == kind && strcmp(w->lines[i].id, id) == 0 &&
            w->lines[i].attempt == attempt) {
            w->lines[i] = w->lines[--w->input.log.count];
            return;
        }
    }
    fail_msg("no such line");
}

static check_report report;

static void breaks(world *w, check_rule rule) {
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    assert_true(check(&report, &w->input, nowhere) > 0);
    assert_true(report.broken[rule] > 0);
    (void)fclose(nowhere);
}

static void test_true_log_passes(void **state) {
    (void)state;
    world w;
    make_world(&w);
    assert_int_equal(check(&report, &w.input, stderr), 0);
    assert_int_equal(report.runs, 7);
    assert_int_equal(report.again, 4);
    assert_int_equal(report.cut, 3);
    assert_int_equal(report.told, 1);
    assert_int_equal(report.refused, 1);
    assert_int_equal(report.completed, 2);
    assert_int_equal(report.unseen, 0);
    /* a claim that is lost before its handler starts is a claim without a run */
    make_world(&w);
    drop(&w, RECORD_RUN, C, 1);
    add(&w, (record){RECORD_TOLD, C, 1, 12, EMQ_NOTICE_LOST, 1});
    drop(&w, RECORD_RUN, A, 1);
    assert_int_equal(check(&report, &w.input, stderr), 0);
    assert_int_equal(report.unseen, 2);
    assert_int_equal(report.runs, 5);
}

static void test_counts(void **state) {
    (void)state;
    world w;
    make_world(&w);
    w.input.left = 1;
    breaks(&w, CHECK_COUNTS);
    make_world(&w);
    w.input.completed = 3; /* one twice */
    breaks(&w, CHECK_COUNTS);
    make_world(&w);
    w.input.dead_count = 0; /* C is gone, and was never completed */
    breaks(&w, CHECK_NOT_SETTLED);
    breaks(&w, CHECK_COUNTS);
}

static void test_runs(void **state) {
    (void)state;
    world w;
    make_world(&w);
    w.input.jobs = 2;
    breaks(&w, CHECK_STRANGER);
    make_world(&w);
    add(&w, (record){RECORD_RUN, A, 2, 31, 0, 0});
    breaks(&w, CHECK_TOKEN_TWICE);
    make_world(&w);
    drop(&w, RECORD_RUN, A, 2);
    breaks(&w, CHECK_ORPHAN);
    make_world(&w);
    drop(&w, RECORD_END, B, 1); /* its process lives */
    breaks(&w, CHECK_UNFINISHED);
    make_world(&w);
    drop(&w, RECORD_END, A, 2);
    breaks(&w, CHECK_NEVER_RAN);
    make_world(&w);
    w.input.losses = 3;
    breaks(&w, CHECK_TOO_MANY_RUNS);
}

static void test_completions(void **state) {
    (void)state;
    world w;
    make_world(&w);
    add(&w, (record){RECORD_COMPLETED, B, 1, 52, 0, 1}); /* the late settle was taken */
    breaks(&w, CHECK_COMPLETED_TWICE);
    breaks(&w, CHECK_RUN_AFTERWARDS);
    breaks(&w, CHECK_COMPLETED_LOST);
    make_world(&w);
    add(&w, (record){RECORD_RUN, A, 3, 50, 0, 0});
    breaks(&w, CHECK_RUN_AFTERWARDS);
    make_world(&w);
    drop(&w, RECORD_COMPLETED, A, 2);
    breaks(&w, CHECK_NOT_SETTLED);
    breaks(&w, CHECK_NEVER_RAN);
    make_world(&w);
    add(&w, (record){RECORD_COMPLETED, C, 3, 42, 0, 1});
    breaks(&w, CHECK_DEAD_AND_DONE);
}

static void test_lost_leases(void **state) {
    (void)state;
    world w;
    make_world(&w);
    drop(&w, RECORD_TOLD, B, 1);
    drop(&w, RECORD_END, B, 1);
    add(&w, (record){RECORD_END, B, 1, 51, EMQ_NOTICE_NONE, 1}); /* it was told nothing */
    breaks(&w, CHECK_NOT_TOLD);
    make_world(&w);
    drop(&w, RECORD_REFUSED, C, 3);
    breaks(&w, CHECK_NOT_TOLD);
    make_world(&w);
    w.dead.stalled = 2;
    breaks(&w, CHECK_DEAD_TOO_EARLY);
}

static void test_server_side(void **state) {
    (void)state;
    world w;
    make_world(&w);
    assert_int_equal(server_side[0].claims, 2);
    assert_int_equal(server_side[0].stalls, 1);
    assert_int_equal(server_side[0].ends, 1);
    assert_int_equal(server_side[2].stalls, 3);
    server_side[1].ends = 2;
    breaks(&w, CHECK_COMPLETED_TWICE);
    make_world(&w);
    server_side[1].ends = 0;
    breaks(&w, CHECK_COUNTS);
    make_world(&w);
    server_side[1].claims = 1;
    breaks(&w, CHECK_WITNESS);
    make_world(&w);
    server_side[2].ends = 1;
    breaks(&w, CHECK_DEAD_AND_DONE);
    make_world(&w);
    server_side[2].stalls = 2;
    breaks(&w, CHECK_DEAD_TOO_EARLY);
    assert_null(history_read("DEL emq:{q}:job:" A " emq:{q}:job:JOB0000000000Z", "q", ids, 3));
}

/* What is written is what is read, and a line without its end is none. */
static void test_records(void **state) {
    (void)state;
    char path[] = "/tmp/emq-record-XXXXXX";
    int fd = mkstemp(path);
    records list = {0};
    assert_true(fd >= 0);
    for (int kind = RECORD_RUN; kind <= RECORD_REFUSED; kind++) {
        assert_int_equal(record_write(fd, (record_kind)kind, A, 7, -50), 0);
    }
    assert_int_equal(write(fd, "run JOB00", 9), 9);
    assert_int_equal(records_read(&list, path, 3), 0);
    assert_int_equal(list.count, RECORD_REFUSED + 1);
    for (size_t i = 0; i < list.count; i++) {
        assert_int_equal(list.items[i].kind, i);
        assert_string_equal(list.items[i].id, A);
        assert_int_equal(list.items[i].attempt, 7);
        assert_int_equal(list.items[i].value, -50);
        assert_int_equal(list.items[i].process, 3);
    }
    assert_int_equal(write(fd, "\n", 1), 1); /* now it is a line, and no record */
    assert_int_equal(records_read(&list, path, 3), -1);
    records_free(&list);
    (void)close(fd);
    (void)unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true_log_passes),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_completions),
        cmocka_unit_test(test_server_side),
        cmocka_unit_test(test_lost_leases),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
