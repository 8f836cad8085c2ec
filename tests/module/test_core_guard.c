/* SPDX-License-Identifier: Apache-2.0 */
/* Paused writes and full memory, for the verbs of scheduling, leases, failures and sweeps. */
#include "core.h"

static void paused_writes_refuse_what_would_write(void **state) {
    (void)state;
    WHILE_PAUSED(PAUSED, SCHEDULE_JOB(J1, "p", "at", "5"));
    make_job(J1, "active", ACTIVE, "1");
    WHILE_PAUSED(PAUSED, EXTEND(J1, "3", "1000"));
    WHILE_PAUSED(PAUSED, EXTENDS("1000", J1, "3", J2, "1"));
    WHILE_PAUSED(PAUSED, DELAY(J1, "3", "at", "5"));
    WHILE_PAUSED(PAUSED, FAIL(J1, "3", "0", "9", "e"));
    WHILE_PAUSED(PAUSED, FAIL(J1, "3", "0", "1", "e"));
    WHILE_PAUSED(PAUSED, REQUEUE(J1, "3"));
    WHILE_PAUSED(PAUSED, STALLED_CHECK("1", "1"));
    WHILE_PAUSED(PAUSED, STALLED_CHECK("9", "1"));
    make_job(J2, "scheduled", SCHEDULE, "1");
    WHILE_PAUSED(PAUSED, PROMOTE("1"));
    WHILE_PAUSED(PAUSED, RESCHEDULE(J2, "at", "5"));
    make_job(J3, "dead", DEAD, "0");
    WHILE_PAUSED(PAUSED, REPROCESS(J3));
    /* and afterwards all of it works */
    EXPECT(client, "1", EXTEND(J1, "3", "1000"));
    EXPECT(client, "1", RESCHEDULE(J2, "at", "5"));
    EXPECT(client, "1", PROMOTE("1"));
    EXPECT(client, "1", REPROCESS(J3));
    EXPECT(client, "1", REQUEUE(J1, "3"));
}

/* Dropping alone is a write, too. */
static void paused_writes_refuse_to_drop(void **state) {
    (void)state;
    run(client, "ZADD", SCHEDULE, "1", J1, NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    WHILE_PAUSED(PAUSED, PROMOTE("1"));
    WHILE_PAUSED(PAUSED, STALLED_CHECK("1", "1"));
}

static void paused_writes_do_not_refuse_what_writes_nothing(void **state) {
    (void)state;
    EXPECT(client, "1", SCHEDULE_JOB(J1, "p", "at", AT_MAX));
    WHILE_PAUSED("0", SCHEDULE_JOB(J1, "p", "at", "5"));
    WHILE_PAUSED("-1", EXTEND(J2, "1", "1000"));
    WHILE_PAUSED("[\"" J1 "\", \"" J2 "\"]", EXTENDS("1000", J1, "9", J2, "1"));
    WHILE_PAUSED("0", PROMOTE("10"));
    WHILE_PAUSED("-1", RESCHEDULE(J2, "at", "5"));
    WHILE_PAUSED("-1", REPROCESS(J2));
    WHILE_PAUSED("-1", REQUEUE(J2, "1"));
    WHILE_PAUSED("[[], []]", STALLED_CHECK("1", "1"));
    /* a lane row that is passed over is no write */
    make_job(J2, "scheduled", SCHEDULE, "1");
    run(client, "HSET", ROW(J2), "group", "g", NULL);
    WHILE_PAUSED("0", PROMOTE("10"));
}

static void every_refusal_comes_before_the_guard(void **state) {
    (void)state;
    WHILE_PAUSED(KIND, SCHEDULE_JOB(USER, "p", "at", "5"));
    WHILE_PAUSED(MODE, SCHEDULE_JOB(J1, "p", "on", "5"));
    WHILE_PAUSED(AT_MS, SCHEDULE_JOB(J1, "p", "at", "x"));
    WHILE_PAUSED(LIMIT, PROMOTE("0"));
    WHILE_PAUSED(MAX_STALLED, STALLED_CHECK("0", "1"));
    WHILE_PAUSED(GONE, FAIL(J1, "1", "0", "1", "e"));
    make_job(J1, "active", ACTIVE, "1");
    WHILE_PAUSED("-EMQSTALE retry token mismatch", FAIL(J1, "1", "0", "1", "e"));
    make_typed(FAILED, "string");
    WHILE_PAUSED(WRONGTYPE, FAIL(J1, "3", "0", "1", "e"));
    WHILE_PAUSED(WRONGTYPE, STALLED_CHECK("1", "1"));
    make_typed(DEAD, "string");
    WHILE_PAUSED(WRONGTYPE, FAIL(J1, "3", "0", "1", "e"));
    WHILE_PAUSED(WRONGTYPE, STALLED_CHECK("1", "1"));
    make_typed(PENDING, "string");
    WHILE_PAUSED(WRONGTYPE, REQUEUE(J1, "3"));
    WHILE_PAUSED(WRONGTYPE, STALLED_CHECK("9", "1"));
    make_typed(SCHEDULE, "string");
    WHILE_PAUSED(WRONGTYPE, DELAY(J1, "3", "at", "5"));
    WHILE_PAUSED(WRONGTYPE, FAIL(J1, "3", "0", "9", "e"));
    WHILE_PAUSED(WRONGTYPE, SCHEDULE_JOB(J2, "p", "at", "5"));
    run(client, "DEL", SCHEDULE, NULL);
    make_job(J2, "scheduled", SCHEDULE, "1");
    WHILE_PAUSED(WRONGTYPE, PROMOTE("1"));
    run(client, "DEL", DEAD, NULL);
    make_job(J3, "dead", DEAD, "0");
    WHILE_PAUSED(WRONGTYPE, REPROCESS(J3));
    run(client, "DEL", ACTIVE, NULL);
    WHILE_PAUSED("-EMQSTALE extend lease lost", EXTEND(J1, "3", "1000"));
    make_typed(ACTIVE, "string");
    WHILE_PAUSED(WRONGTYPE, EXTENDS("1000", J1, "3"));
}

/* At maxmemory nothing is admitted; everything that settles, extends or sweeps works, so that a
 * full server can be worked empty. */
static void full_memory_stops_admission_alone(void **state) {
    (void)state;
    make_job(J1, "active", ACTIVE, "9999999999999");
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    EXPECT_UNCHANGED(&server, client, OOM, SCHEDULE_JOB(J2, "p", "at", "5"));
    EXPECT_UNCHANGED(&server, client, OOM, SCHEDULE_JOB(J1, "p", "at", "5"));
    EXPECT(client, "1", EXTEND(J1, "3", "60000"));
    EXPECT(client, "[]", EXTENDS("60000", J1, "3"));
    EXPECT(client, "1", DELAY(J1, "3", "at", "5"));
    EXPECT(client, "1", RESCHEDULE(J1, "at", "6"));
    EXPECT(client, "1", PROMOTE("1"));
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
    run(client, CLAIM("60000"), NULL);
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    EXPECT(client, "1", REQUEUE(J1, "4"));
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
    run(client, CLAIM("60000"), NULL);
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    EXPECT(client, "\"scheduled\"", FAIL(J1, "5", "0", "2", "e"));
    EXPECT(client, "1", PROMOTE("1"));
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
    run(client, CLAIM("60000"), NULL);
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    EXPECT(client, "\"dead\"", FAIL(J1, "6", "0", "2", "e"));
    EXPECT(client, "1", REPROCESS(J1));
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
    run(client, CLAIM("60000"), NULL);
    run(client, "ZADD", ACTIVE, "1", J1, NULL);
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    EXPECT(client, "[[\"" J1 "\"], []]", STALLED_CHECK("2", "1"));
    EXPECT(client, "1", COMPLETE(J1, "7"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(paused_writes_refuse_what_would_write),
        TEST(paused_writes_refuse_to_drop),
        TEST(paused_writes_do_not_refuse_what_writes_nothing),
        TEST(every_refusal_comes_before_the_guard),
        TEST(full_memory_stops_admission_alone),
    };
    return RUN_SERVER_TESTS("core_guard", tests, start_server, stop_server);
}
