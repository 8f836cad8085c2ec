/* SPDX-License-Identifier: Apache-2.0 */
/* How a claim that waits is served: what wakes it, in which order, how often, with what effects. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "waiting.h"

#define JOB_1 JOB(J1, "p", "1")
#define JOB_2 JOB(J2, "p", "1")
#define JOB_3 JOB(J3, "p", "1")

/* Puts the flag there and takes it away without a verb, so that nobody looks at once. */
static void pause_by_hand(void) {
    run(client, "HSET", META, "paused", "1", NULL);
}

static void resume_by_hand(void) {
    run(client, "HDEL", META, "paused", NULL);
}

/* ---- whether a claim waits ---- */

static void work_answers_at_once(void **state) {
    (void)state;
    EXPECT(client, "[1, 1]", ENQUEUES(J2, "p", J1, "p"));
    EXPECT(client, "[" JOB_1 ", " JOB_2 "]", WAITING_CLAIM("5"));
    assert_int_equal(get_stat("blocked_claims"), 0);
}

static void no_timeout_answers_at_once(void **state) {
    (void)state;
    EXPECT_UNCHANGED(&server, client, "[]", CLAIMS("60000", "5"));
    EXPECT_UNCHANGED(&server, client, "[]", CLAIMS("60000", "5", "0"));
    pause_by_hand();
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT_UNCHANGED(&server, client, "[]", CLAIMS("60000", "5"));
    EXPECT_UNCHANGED(&server, client, "[]", CLAIMS("60000", "5", "0"));
}

static void a_timeout_ends_with_the_empty_array(void **state) {
    (void)state;
    long long before = get_server_ms();
    EXPECT_UNCHANGED(&server, client, "[]", CLAIMS("60000", "5", "200"));
    assert_true(get_server_ms() - before >= 200);
    assert_int_equal(get_stat("blocked_claims"), 0);
    /* and the client is an ordinary one again */
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    EXPECT(client, "[" JOB_1 "]", WAITING_CLAIM("5"));
}

/* ---- order ---- */

static void jobs_one_by_one_go_in_order_of_arrival(void **state) {
    (void)state;
    redisContext *waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = add_waiter("5");
    }
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    WAKES_WITH(waiters[0], "[" JOB_3 "]");
    STILL_WAITING(waiters[1]);
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(waiters[1], "[" JOB_2 "]");
    STILL_WAITING(waiters[2]);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(waiters[2], "[" JOB_1 "]");
}

static void one_transaction_serves_three(void **state) {
    (void)state;
    redisContext *waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = add_waiter("1");
    }
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", ENQUEUE(J3, "p"));
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "p"));
    EXPECT(client, "+QUEUED", ENQUEUE(J2, "p"));
    EXPECT(client, "[1, 1, 1]", "EXEC");
    WAKES_WITH(waiters[0], "[" JOB_1 "]");
    WAKES_WITH(waiters[1], "[" JOB_2 "]");
    WAKES_WITH(waiters[2], "[" JOB_3 "]");
}

/* The last in the line is the one that came back last. */
static void who_comes_back_stands_behind(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(first, "[" JOB_1 "]");
    BLOCK(first, WAITING_CLAIM("1"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(second, "[" JOB_2 "]");
    STILL_WAITING(first);
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    WAKES_WITH(first, "[" JOB_3 "]");
}

static void a_batch_serves_each_with_its_share(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    redisContext *third = add_waiter("1");
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "p", J2, "p"));
    WAKES_WITH(first, "[" JOB_1 "]");
    WAKES_WITH(second, "[" JOB_2 "]");
    STILL_WAITING(third);
}

static void count_is_an_upper_bound(void **state) {
    (void)state;
    char id[16];
    command line = {0};
    redisContext *first = add_waiter("10");
    redisContext *second = add_waiter("10");
    command_add(&line, "EMQ.ENQUEUES");
    command_add(&line, "2");
    command_add(&line, PENDING);
    command_add(&line, BASE);
    for (int i = 0; i < 12; i++) {
        (void)snprintf(id, sizeof(id), "JOB0KHTOWn%04d", i);
        command_add(&line, id);
        command_add(&line, "p");
    }
    freeReplyObject(command_send(client, &line));
    command_free(&line);
    char *want = NULL;
    for (int i = 0; i < 10; i++) {
        char job[64];
        (void)snprintf(job, sizeof(job), "%s[\"JOB0KHTOWn%04d\", \"p\", 1]", i == 0 ? "[" : ", ",
                       i);
        append_text(&want, job);
    }
    append_text(&want, "]");
    WAKES_WITH(first, want);
    free(want);
    WAKES_WITH(second, "[[\"JOB0KHTOWn0010\", \"p\", 1], [\"JOB0KHTOWn0011\", \"p\", 1]]");
    EXPECT(client, "0", "EXISTS", PENDING);
    EXPECT(client, "12", "ZCARD", ACTIVE);
}

/* ---- nobody sleeps while there is work ---- */

static void enqueue(void) {
    EXPECT(client, "1", ENQUEUE(J1, "p"));
}

static void enqueue_batch(void) {
    EXPECT(client, "[1]", ENQUEUES(J1, "p"));
}

/* The one that is new is in the middle. */
static void enqueue_batch_with_duplicates(void) {
    run(client, "HSET", ROW(J2), "state", "dead", "attempts", "0", "payload", "p", NULL);
    EXPECT(client, "[0, 1, 0]", ENQUEUES(J2, "p", J1, "p", J1, "p"));
}

static void make_due(void) {
    make_job(J1, "scheduled", SCHEDULE, "1");
}

static void promote(void) {
    EXPECT(client, "1", PROMOTE("10"));
}

static void make_active(void) {
    make_job(J1, "active", ACTIVE, AT_MAX);
}

static void requeue(void) {
    EXPECT(client, "1", REQUEUE(J1, "3"));
}

static void make_dead(void) {
    make_job(J1, "dead", DEAD, "0");
}

static void reprocess(void) {
    EXPECT(client, "1", REPROCESS(J1));
}

static void make_expired(void) {
    make_job(J1, "active", ACTIVE, "1");
}

static void sweep(void) {
    EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("9", "10"));
}

static void make_nothing(void) {
}

typedef struct admission {
    void (*prepare)(void);
    void (*admit)(void);
    const char *job; /* as the waiter gets it */
} admission;

static const admission admissions[] = {
    {make_nothing, enqueue, JOB_1},
    {make_nothing, enqueue_batch, JOB_1},
    {make_nothing, enqueue_batch_with_duplicates, JOB_1},
    {make_due, promote, JOB(J1, "p", "4")},
    {make_active, requeue, JOB(J1, "p", "4")},
    {make_dead, reprocess, JOB(J1, "p", "4")},
    {make_expired, sweep, JOB(J1, "p", "4")},
};
#define ADMISSIONS (sizeof(admissions) / sizeof(admissions[0]))

static void what_makes_pending_wakes(void **state) {
    for (size_t i = 0; i < ADMISSIONS; i++) {
        char want[128];
        assert_int_equal(clean_slate(state), 0);
        admissions[i].prepare();
        redisContext *waiter = add_waiter("10");
        admissions[i].admit();
        (void)snprintf(want, sizeof(want), "[%s]", admissions[i].job);
        WAKES_WITH(waiter, want);
    }
}

/* The server itself wakes nobody when the set is there already. */
static void what_adds_to_pending_wakes(void **state) {
    for (size_t i = 0; i < ADMISSIONS; i++) {
        char want[128];
        assert_int_equal(clean_slate(state), 0);
        admissions[i].prepare();
        pause_by_hand();
        EXPECT(client, "1", ENQUEUE(J3, "p"));
        redisContext *waiter = add_waiter("10");
        resume_by_hand();
        STILL_WAITING(waiter);
        admissions[i].admit();
        (void)snprintf(want, sizeof(want), "[%s, " JOB_3 "]", admissions[i].job);
        WAKES_WITH(waiter, want);
    }
}

/* Also where the wake comes from a script. */
static void an_admission_by_a_script_wakes(void **state) {
    (void)state;
    redisContext *waiter = add_waiter("10");
    EXPECT(client, "1", "EVAL",
           "server.call('EMQ.ENQUEUE', 2, KEYS[3], KEYS[1], ARGV[2], 'p') "
           "return server.call('EMQ.ENQUEUE', 2, KEYS[2], KEYS[1], ARGV[1], 'p')",
           "3", PENDING, ROW(J1), ROW(J2), J1, J2);
    WAKES_WITH(waiter, "[" JOB_1 ", " JOB_2 "]");
}

static void a_pause_keeps_and_its_end_wakes(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    EXPECT(client, "1", PAUSE);
    redisContext *second = add_waiter("1");
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "p", J2, "p"));
    STILL_WAITING(first);
    STILL_WAITING(second);
    assert_int_equal(get_stat("blocked_claims"), 2);
    EXPECT(client, "1", RESUME);
    WAKES_WITH(first, "[" JOB_1 "]");
    WAKES_WITH(second, "[" JOB_2 "]");
}

/* In one transaction, where the flag is set and gone before anybody looks. */
static void a_pause_and_its_end_in_one_transaction_lose_nothing(void **state) {
    (void)state;
    redisContext *waiter = add_waiter("1");
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", PAUSE);
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "p"));
    EXPECT(client, "+QUEUED", RESUME);
    EXPECT(client, "[1, 1, 1]", "EXEC");
    WAKES_WITH(waiter, "[" JOB_1 "]");
}

static void a_flag_removed_by_hand_is_noticed_at_the_next_admission(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    pause_by_hand();
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    resume_by_hand();
    STILL_WAITING(first);
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    WAKES_WITH(first, "[" JOB_2 "]");
    WAKES_WITH(second, "[" JOB_3 "]");
}

/* ... or by EMQ.RESUME, which finds no flag. */
static void a_resume_without_a_flag_wakes(void **state) {
    (void)state;
    redisContext *waiter = add_waiter("1");
    pause_by_hand();
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    resume_by_hand();
    STILL_WAITING(waiter);
    EXPECT(client, "1", RESUME);
    WAKES_WITH(waiter, "[" JOB_1 "]");
}

static void an_operators_own_command_wakes_when_it_makes_the_key(void **state) {
    (void)state;
    redisContext *waiter = add_waiter("10");
    run(client, "HSET", ROW(J1), "state", "dead", "attempts", "7", "payload", "p", NULL);
    EXPECT(client, "1", "ZADD", PENDING, "0", J1);
    WAKES_WITH(waiter, ONE_JOB(J1, "p", "8"));
    BLOCK(waiter, WAITING_CLAIM("10"));
    run(client, "HSET", ROW(J2), "state", "pending", "attempts", "0", "payload", "p", NULL);
    run(client, "ZADD", BASE "aside", "0", J2, NULL);
    EXPECT(client, "+OK", "RENAME", BASE "aside", PENDING);
    WAKES_WITH(waiter, "[" JOB_2 "]");
}

/* Orphans are no work: the look removes them, and the wait goes on. */
static void a_wake_by_orphans_alone_removes_them_and_waits_on(void **state) {
    (void)state;
    redisContext *waiter = add_waiter("1");
    EXPECT(client, "2", "ZADD", PENDING, "0", J1, "0", J2);
    STILL_WAITING(waiter);
    EXPECT(client, "0", "EXISTS", PENDING);
    EXPECT(client, "1", ENQUEUE(J3, "p"));
    WAKES_WITH(waiter, "[" JOB_3 "]");
}

/* Seventeen orphans in front: there may be work behind them, so the answer is to look again. */
static void a_wake_that_sees_orphans_only_says_look_again(void **state) {
    (void)state;
    char id[16];
    redisContext *waiter = add_waiter("1");
    run(client, "MULTI", NULL);
    for (int i = 0; i < 17; i++) {
        (void)snprintf(id, sizeof(id), "JOB0AHTOWn%04d", i);
        run(client, "ZADD", PENDING, "0", id, NULL);
    }
    run(client, ENQUEUE(J3, "p"), NULL);
    run(client, "EXEC", NULL);
    WAKES_WITH(waiter, "[]");
    EXPECT(client, "[\"" J3 "\"]", "ZRANGE", PENDING, "0", "-1");
    EXPECT(waiter, "[" JOB_3 "]", WAITING_CLAIM("1"));
}

static int is_one_client_held(void *data) {
    char text[32];
    (void)data;
    return atoll(get_info(text, sizeof(text), server.admin, "clients", "blocked_clients")) == 1;
}

/* Nothing would wake the client when the pause ends; the server holds its next claim until then. */
static void paused_writes_end_the_wait_with_the_empty_array(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "p"));
    EXPECT(client, "+QUEUED", "CLIENT", "PAUSE", "100000", "WRITE");
    EXPECT(client, "[1, +OK]", "EXEC");
    WAKES_WITH(first, "[]");
    WAKES_WITH(second, "[]");
    EXPECT(client, "[\"" J1 "\"]", "ZRANGE", PENDING, "0", "-1");
    EXPECT(client, "0", "EXISTS", ACTIVE);
    SEND(first, WAITING_CLAIM("1"));
    wait_until("the server holds the claim", is_one_client_held, NULL);
    STILL_WAITING(first);
    assert_int_equal(get_stat("blocked_claims"), 0);
    run(server.admin, "CLIENT", "UNPAUSE", NULL);
    WAKES_WITH(first, "[" JOB_1 "]");
}

/* ---- nothing twice, nothing lost ---- */

#define MANY_JOBS 200
#define MANY_WAITERS 8

/* Notes the ids of an answer; returns how many they are. */
static int note_ids(const char *answer, int *seen) {
    int count = 0;
    for (const char *at = strstr(answer, "\"JOB"); at != NULL; at = strstr(at + 1, "\"JOB")) {
        int number = atoi(at + 11);
        assert_in_range(number, 0, MANY_JOBS - 1);
        seen[number]++;
        count++;
    }
    return count;
}

/* Sends a burst of 1 to 5 jobs: alone, as a batch, or in a transaction. */
static int send_burst(redisContext *producer, int first) {
    int size = 1 + first % 5;
    int is_batch = first % 2;
    command line = {0};
    size = size > MANY_JOBS - first ? MANY_JOBS - first : size;
    if (is_batch) {
        command_add(&line, "EMQ.ENQUEUES");
        command_add(&line, "2");
        command_add(&line, PENDING);
        command_add(&line, BASE);
    } else {
        SEND(producer, "MULTI");
    }
    for (int i = 0; i < size; i++) {
        char id[16];
        char row[64];
        (void)snprintf(id, sizeof(id), "JOB0KHTOWn%04d", first + i);
        (void)snprintf(row, sizeof(row), ROW("%s"), id);
        if (is_batch) {
            command_add(&line, id);
            command_add(&line, "p");
        } else {
            SEND(producer, "EMQ.ENQUEUE", "2", row, PENDING, id, "p");
        }
    }
    if (is_batch) {
        freeReplyObject(command_send(producer, &line));
    } else {
        SEND(producer, "EXEC");
        for (int i = 0; i < size + 2; i++) {
            free(read_answer(producer));
        }
    }
    command_free(&line);
    return size;
}

static void every_job_is_handed_out_exactly_once(void **state) {
    (void)state;
    static const char *const counts[] = {"1", "2", "3"};
    redisContext *producers[] = {add_client(), add_client()};
    redisContext *waiters[MANY_WAITERS];
    struct pollfd answers[MANY_WAITERS];
    int seen[MANY_JOBS] = {0};
    int sent = 0;
    int handed_out = 0;
    for (int i = 0; i < MANY_WAITERS; i++) {
        waiters[i] = add_client();
        answers[i] = (struct pollfd){.fd = waiters[i]->fd, .events = POLLIN};
        SEND(waiters[i], WAITING_CLAIM(counts[i % 3]));
    }
    while (handed_out < MANY_JOBS) {
        if (sent < MANY_JOBS) {
            sent += send_burst(producers[sent / 7 % 2], sent);
        }
        if (poll(answers, MANY_WAITERS, sent < MANY_JOBS ? 0 : 60000) == 0 && sent == MANY_JOBS) {
            fail_msg("%d of %d jobs were handed out", handed_out, MANY_JOBS);
        }
        for (int i = 0; i < MANY_WAITERS; i++) {
            if ((answers[i].revents & POLLIN) != 0) {
                char *answer = read_answer(waiters[i]);
                handed_out += note_ids(answer, seen);
                free(answer);
                SEND(waiters[i], WAITING_CLAIM(counts[(i + sent) % 3]));
            }
        }
    }
    for (int i = 0; i < MANY_JOBS; i++) {
        assert_int_equal(seen[i], 1);
    }
    wait_blocked(MANY_WAITERS);
    EXPECT(client, "0", "EXISTS", PENDING);
    EXPECT(client, "200", "ZCARD", ACTIVE);
}

/* ---- a new earliest time ---- */

static void a_new_earliest_time_answers_the_longest_waiting(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    redisContext *third = add_waiter("1");
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", "8000000000000"));
    WAKES_WITH(first, "[]");
    STILL_WAITING(second);
    STILL_WAITING(third);
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", "7000000000000"));
    WAKES_WITH(second, "[]");
    STILL_WAITING(third);
    EXPECT(client, "1", RESCHEDULE(J1, "at", "6000000000000"));
    WAKES_WITH(third, "[]");
}

static void a_failure_or_a_delay_can_set_the_earliest_time(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, AT_MAX);
    make_job(J2, "active", ACTIVE, AT_MAX);
    make_job(J3, "scheduled", SCHEDULE, AT_MAX);
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    redisContext *third = add_waiter("1");
    EXPECT(client, "\"scheduled\"", FAIL(J1, "3", "3600000", "9", "e"));
    WAKES_WITH(first, "[]");
    STILL_WAITING(second);
    EXPECT(client, "1", DELAY(J2, "3", "in", "1800000"));
    WAKES_WITH(second, "[]");
    STILL_WAITING(third);
    /* a death schedules nothing */
    make_job(J2, "active", ACTIVE, AT_MAX);
    EXPECT(client, "\"dead\"", FAIL(J2, "3", "0", "1", "e"));
    STILL_WAITING(third);
}

/* Far off, in their order: a wait ends at the earliest time, or soon when that has passed. */
#define FAR(n) "80000000000000" #n

static void a_later_time_wakes_nobody(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", FAR(5)));
    redisContext *waiter = add_waiter("1");
    long long wakes = get_stat("wakes");
    EXPECT(client, "1", SCHEDULE_JOB(J3, "p", "at", FAR(6)));
    EXPECT(client, "1", SCHEDULE_JOB("JOB0KHTOWnGLu4", "p", "at", FAR(5)));
    EXPECT(client, "1", RESCHEDULE(J3, "at", FAR(7)));
    EXPECT(client, "1", RESCHEDULE(J2, "at", FAR(5)));
    EXPECT(client, "0", SCHEDULE_JOB(J3, "p", "at", FAR(1)));
    STILL_WAITING(waiter);
    assert_int_equal(get_stat("wakes"), wakes);
}

static void a_failure_that_is_tried_later_wakes_nobody(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, AT_MAX);
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "in", "3600000"));
    redisContext *waiter = add_waiter("1");
    EXPECT(client, "\"scheduled\"", FAIL(J1, "3", YEARS_10, "9", "e"));
    STILL_WAITING(waiter);
}

/* The lowest score is the only one there, and rises. */
static void an_earliest_time_that_gets_later_wakes_nobody(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", FAR(5)));
    redisContext *waiter = add_waiter("1");
    EXPECT(client, "1", RESCHEDULE(J2, "at", FAR(9)));
    STILL_WAITING(waiter);
    EXPECT(client, "1", RESCHEDULE(J2, "at", FAR(8)));
    WAKES_WITH(waiter, "[]");
}

static void two_earliest_times_in_one_transaction_answer_one(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", SCHEDULE_JOB(J1, "p", "at", "9"));
    EXPECT(client, "+QUEUED", SCHEDULE_JOB(J2, "p", "at", "8"));
    EXPECT(client, "[1, 1]", "EXEC");
    WAKES_WITH(first, "[]");
    STILL_WAITING(second);
}

/* Work goes to the first; the news to whoever then waits longest. */
static void work_and_an_earliest_time_in_one_transaction(void **state) {
    (void)state;
    redisContext *first = add_waiter("1");
    redisContext *second = add_waiter("1");
    redisContext *third = add_waiter("1");
    EXPECT(client, "+OK", "MULTI");
    EXPECT(client, "+QUEUED", ENQUEUE(J1, "p"));
    EXPECT(client, "+QUEUED", SCHEDULE_JOB(J2, "p", "at", "8"));
    EXPECT(client, "[1, 1]", "EXEC");
    WAKES_WITH(first, "[" JOB_1 "]");
    WAKES_WITH(second, "[]");
    STILL_WAITING(third);
}

#define BLIND "+@emq %R~{emq}:version ~" PENDING " ~" ACTIVE " ~" BASE " ~" META " ~" BASE "job:*"

/* The first of those who may know of it. */
static void who_may_not_read_the_schedule_is_passed_over(void **state) {
    (void)state;
    redisContext *blind = add_client_as("blind", BLIND);
    redisContext *reader = add_client_as("reader", BLIND " %R~" SCHEDULE);
    BLOCK(blind, WAITING_CLAIM("1"));
    BLOCK(reader, WAITING_CLAIM("1"));
    redisContext *last = add_waiter("1");
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", "9"));
    WAKES_WITH(reader, "[]");
    STILL_WAITING(blind);
    STILL_WAITING(last);
    EXPECT(client, "[]", "ACL", "LOG");
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(blind, "[" JOB_2 "]");
}

/* News that nobody was there to take is not kept for those who come: they see it themselves. */
static void old_news_answer_nobody(void **state) {
    (void)state;
    redisContext *blind = add_client_as("blind", BLIND);
    BLOCK(blind, WAITING_CLAIM("1"));
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", FAR(8)));
    STILL_WAITING(blind);
    redisContext *reader = add_waiter("1");
    EXPECT(client, "1", RESCHEDULE(J1, "at", FAR(9)));
    EXPECT(client, "1", "DEL", SCHEDULE);
    run(client, "ZADD", SCHEDULE, FAR(8), J1, NULL); /* an operator's is none of the four verbs */
    STILL_WAITING(reader);
    STILL_WAITING(blind);
}

/* ---- a time that nobody tells ---- */

/* So long that nothing of a test ends it. */
#define LONG_CLAIM CLAIMS("60000", "1", "3600000")

static void expect_an_end_by_itself(void) {
    redisContext *waiter = add_client();
    SEND(waiter, LONG_CLAIM);
    WAKES_WITH(waiter, "[]");
    close_client(waiter);
}

/* What is scheduled between a worker's look at `schedule` and its wait tells nobody: the wait ends
 * there by itself. */
static void a_wait_ends_at_the_earliest_time(void **state) {
    (void)state;
    char due[32];
    long long ms = get_server_ms() + 1500;
    (void)snprintf(due, sizeof(due), "%lld", ms);
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", due));
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", FAR(1)));
    redisContext *waiter = add_client();
    SEND(waiter, LONG_CLAIM);
    WAKES_WITH(waiter, "[]");
    assert_true(get_server_ms() >= ms);
    EXPECT(client, "1", PROMOTE("10"));
    EXPECT(client, "[" JOB_1 "]", LONG_CLAIM);
    /* the next one is years away */
    BLOCK(waiter, LONG_CLAIM);
}

/* Somebody else may be there to promote it, or the row may be a lane's: who waits must not spin. */
static void a_time_that_has_passed_is_waited_for_a_second(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", "1"));
    for (int i = 0; i < 2; i++) {
        long long before = get_server_ms();
        expect_an_end_by_itself();
        assert_true(get_server_ms() - before >= 1000);
    }
    /* a shorter wait is what the caller asked for */
    EXPECT_UNCHANGED(&server, client, "[]", CLAIMS("60000", "1", "1"));
}

/* An operator's scores may be anything; one that is no time of this world ends no wait. */
static void odd_times_are_times(void **state) {
    (void)state;
    run(client, "ZADD", SCHEDULE, "-inf", J1, NULL);
    expect_an_end_by_itself();
    run(client, "DEL", SCHEDULE, NULL);
    run(client, "ZADD", SCHEDULE, "1.5", J1, NULL);
    expect_an_end_by_itself();
    run(client, "DEL", SCHEDULE, NULL);
    redisContext *waiter = add_client();
    run(client, "ZADD", SCHEDULE, "inf", J1, NULL);
    BLOCK(waiter, LONG_CLAIM);
    run(client, "SET", SCHEDULE, "no set at all", NULL);
    redisContext *second = add_client();
    BLOCK(second, LONG_CLAIM);
}

/* The one who came first knows of nothing; the other one's wait has ended by then. */
static void who_may_not_read_the_schedule_is_told_nothing(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", "1"));
    redisContext *blind = add_client_as("blind", BLIND);
    BLOCK(blind, LONG_CLAIM);
    expect_an_end_by_itself();
    expect_an_end_by_itself();
    STILL_WAITING(blind);
}

/* ---- no more looks than needed ---- */

static void a_wake_costs_one_look_of_each(void **state) {
    (void)state;
    redisContext *waiters[5];
    EXPECT(client, "1", PAUSE);
    for (int i = 0; i < 5; i++) {
        waiters[i] = add_waiter("1");
    }
    long long wakes = get_stat("wakes");
    EXPECT(client, "1", ENQUEUE(J1, "p")); /* makes the key */
    assert_int_equal(get_stat("wakes"), wakes + 5);
    EXPECT(client, "1", ENQUEUE(J2, "p")); /* finds it there */
    assert_int_equal(get_stat("wakes"), wakes + 10);
    EXPECT(client, "[1, 0]", ENQUEUES(J3, "p", J1, "p"));
    assert_int_equal(get_stat("wakes"), wakes + 15);
    /* what admitted nothing wakes nobody */
    EXPECT(client, "0", ENQUEUE(J3, "p"));
    EXPECT(client, "[0, 0]", ENQUEUES(J3, "p", J1, "p"));
    EXPECT(client, "0", PROMOTE("10"));
    EXPECT(client, "[[], []]", STALLED_CHECK("1", "10"));
    for (int i = 0; i < 10; i++) {
        settle_down();
    }
    assert_int_equal(get_stat("wakes"), wakes + 15);
    for (int i = 0; i < 5; i++) {
        STILL_WAITING(waiters[i]);
    }
    EXPECT(client, "1", RESUME);
    /* the third takes the last job, and the set is gone */
    assert_int_equal(get_stat("wakes"), wakes + 18);
    WAKES_WITH(waiters[2], "[" JOB_3 "]");
    STILL_WAITING(waiters[3]);
    assert_int_equal(get_stat("wakes"), wakes + 18);
}

static void one_job_costs_at_most_one_look_of_each(void **state) {
    (void)state;
    redisContext *waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = add_waiter("1");
    }
    long long wakes = get_stat("wakes");
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(waiters[0], "[" JOB_1 "]");
    /* the set is gone with its only job, so that the server asks nobody else */
    assert_int_equal(get_stat("wakes"), wakes + 1);
    for (int i = 0; i < 10; i++) {
        settle_down();
    }
    assert_int_equal(get_stat("wakes"), wakes + 1);
    assert_int_equal(get_stat("blocked_claims"), 2);
}

/* ---- queues and databases ---- */

#define OTHER "emq:{other}:"
#define OTHER_CLAIMS                                                                               \
    "EMQ.CLAIMS", "3", OTHER "pending", OTHER "active", OTHER, "60000", "1", "60000"

static void a_wake_touches_its_queue_only(void **state) {
    (void)state;
    redisContext *here = add_waiter("1");
    redisContext *there = add_client();
    BLOCK(there, OTHER_CLAIMS);
    long long wakes = get_stat("wakes");
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(here, "[" JOB_1 "]");
    EXPECT(client, "1", SCHEDULE_JOB(J2, "p", "at", "5"));
    STILL_WAITING(there);
    assert_int_equal(get_stat("wakes"), wakes + 1);
    EXPECT(client, "1", "EMQ.ENQUEUE", "2", OTHER "job:" J1, OTHER "pending", J1, "x");
    WAKES_WITH(there, ONE_JOB(J1, "x", "1"));
}

static redisContext *add_client_of_database_1(void) {
    redisContext *c = add_client();
    run(c, "SELECT", "1", NULL);
    run(c, INSTALL, NULL);
    return c;
}

static void a_wake_touches_its_database_only(void **state) {
    (void)state;
    redisContext *producer = add_client_of_database_1();
    redisContext *here = add_waiter("1");
    redisContext *there = add_client_of_database_1();
    BLOCK(there, WAITING_CLAIM("1"));
    long long wakes = get_stat("wakes");
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", FAR(5)));
    WAKES_WITH(here, "[]");
    BLOCK(here, WAITING_CLAIM("1"));
    STILL_WAITING(there);
    assert_int_equal(get_stat("wakes"), wakes + 1);
    EXPECT(producer, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(there, "[" JOB_2 "]");
    STILL_WAITING(here);
    assert_int_equal(get_stat("wakes"), wakes + 2);
    EXPECT(producer, "1", "ZCARD", ACTIVE);
    EXPECT(client, "0", "EXISTS", ACTIVE);
}

/* Who waits in a database gets what a swap brings there. */
static void a_swap_of_databases_wakes(void **state) {
    (void)state;
    redisContext *producer = add_client_of_database_1();
    redisContext *waiter = add_waiter("1");
    EXPECT(producer, "1", ENQUEUE(J1, "p"));
    STILL_WAITING(waiter);
    EXPECT(client, "+OK", "SWAPDB", "0", "1");
    WAKES_WITH(waiter, "[" JOB_1 "]");
    EXPECT(client, "1", "ZCARD", ACTIVE);
    EXPECT(producer, "0", "EXISTS", ACTIVE);
    BLOCK(waiter, WAITING_CLAIM("1"));
    EXPECT(client, "1", ENQUEUE(J2, "p"));
    WAKES_WITH(waiter, "[" JOB_2 "]");
    /* and a wait that goes on through a swap is one of its database still */
    BLOCK(waiter, WAITING_CLAIM("1"));
    EXPECT(client, "+OK", "SWAPDB", "0", "1");
    EXPECT(client, "1", SCHEDULE_JOB(J3, "p", "at", "5"));
    WAKES_WITH(waiter, "[]");
}

/* ---- effects ---- */

static void a_wake_has_the_effects_of_a_claim(void **state) {
    (void)state;
    redisContext *waiter = add_waiter("2");
    long long mark = aof_mark(&server);
    EXPECT(client, "[1, 1]", ENQUEUES(J1, "p", J2, "p"));
    WAKES_WITH(waiter, "[" JOB_1 ", " JOB_2 "]");
    EXPECT_LOG(
        mark, ACTIVE, J1,
        "MULTI\n"
        "HSET " ROW(J1) " state pending attempts 0 payload p\n"
                        "HSET " ROW(J2) " state pending attempts 0 payload p\n"
                                        "ZADD " PENDING " 0 " J1 " 0 " J2 "\n"
                                        "EXEC\n"
                                        "MULTI\n"
                                        "ZREM " PENDING " " J1 " " J2 "\n"
                                        "HSET " ROW(
                                            J1) " state active attempts 1 lease_epoch $\n"
                                                "HSET " ROW(
                                                    J2) " state active attempts 1 lease_epoch $\n"
                                                        "ZADD " ACTIVE " @ " J1 " @ " J2 "\n"
                                                        "EXEC");
    EXPECT(client, "1", COMPLETE(J1, "1"));
    EXPECT(client, "1", COMPLETE(J2, "1"));
}

static void a_look_that_changes_nothing_propagates_nothing(void **state) {
    (void)state;
    EXPECT(client, "1", PAUSE);
    redisContext *waiter = add_waiter("2");
    EXPECT_EFFECTS(&server,
                   "MULTI\nHSET " ROW(J1) " state pending attempts 0 payload p\nZADD " PENDING
                                          " 0 " J1 "\nEXEC",
                   client, "1", ENQUEUE(J1, "p"));
    STILL_WAITING(waiter);
}

static int is_past_due(void *data) {
    return get_server_ms() > *(const long long *)data;
}

static void a_lease_starts_at_the_wake(void **state) {
    (void)state;
    redisContext *waiter = add_waiter("1");
    long long later = get_server_ms() + 200;
    wait_until("time has passed", is_past_due, &later);
    EXPECT(client, "1", ENQUEUE(J1, "p"));
    WAKES_WITH(waiter, "[" JOB_1 "]");
    char score[32];
    long long deadline = atoll(get_text(score, sizeof(score), client, "ZSCORE", ACTIVE, J1, NULL));
    assert_true(deadline > later + 60000);
    assert_true(deadline <= get_server_ms() + 60000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WAITING_TEST(work_answers_at_once),
        WAITING_TEST(no_timeout_answers_at_once),
        WAITING_TEST(a_timeout_ends_with_the_empty_array),
        WAITING_TEST(jobs_one_by_one_go_in_order_of_arrival),
        WAITING_TEST(one_transaction_serves_three),
        WAITING_TEST(who_comes_back_stands_behind),
        WAITING_TEST(a_batch_serves_each_with_its_share),
        WAITING_TEST(count_is_an_upper_bound),
        WAITING_TEST(what_makes_pending_wakes),
        WAITING_TEST(what_adds_to_pending_wakes),
        WAITING_TEST(an_admission_by_a_script_wakes),
        WAITING_TEST(a_pause_keeps_and_its_end_wakes),
        WAITING_TEST(a_pause_and_its_end_in_one_transaction_lose_nothing),
        WAITING_TEST(a_flag_removed_by_hand_is_noticed_at_the_next_admission),
        WAITING_TEST(a_resume_without_a_flag_wakes),
        WAITING_TEST(an_operators_own_command_wakes_when_it_makes_the_key),
        WAITING_TEST(a_wake_by_orphans_alone_removes_them_and_waits_on),
        WAITING_TEST(a_wake_that_sees_orphans_only_says_look_again),
        WAITING_TEST(paused_writes_end_the_wait_with_the_empty_array),
        WAITING_TEST(every_job_is_handed_out_exactly_once),
        WAITING_TEST(a_new_earliest_time_answers_the_longest_waiting),
        WAITING_TEST(a_failure_or_a_delay_can_set_the_earliest_time),
        WAITING_TEST(a_later_time_wakes_nobody),
        WAITING_TEST(a_failure_that_is_tried_later_wakes_nobody),
        WAITING_TEST(an_earliest_time_that_gets_later_wakes_nobody),
        WAITING_TEST(two_earliest_times_in_one_transaction_answer_one),
        WAITING_TEST(work_and_an_earliest_time_in_one_transaction),
        WAITING_TEST(who_may_not_read_the_schedule_is_passed_over),
        WAITING_TEST(old_news_answer_nobody),
        WAITING_TEST(a_wait_ends_at_the_earliest_time),
        WAITING_TEST(a_time_that_has_passed_is_waited_for_a_second),
        WAITING_TEST(odd_times_are_times),
        WAITING_TEST(who_may_not_read_the_schedule_is_told_nothing),
        WAITING_TEST(a_wake_costs_one_look_of_each),
        WAITING_TEST(one_job_costs_at_most_one_look_of_each),
        WAITING_TEST(a_wake_touches_its_queue_only),
        WAITING_TEST(a_wake_touches_its_database_only),
        WAITING_TEST(a_swap_of_databases_wakes),
        WAITING_TEST(a_wake_has_the_effects_of_a_claim),
        WAITING_TEST(a_look_that_changes_nothing_propagates_nothing),
        WAITING_TEST(a_lease_starts_at_the_wake),
    };
    return RUN_SERVER_TESTS("waiting", tests, start_server, stop_server);
}
