/* SPDX-License-Identifier: Apache-2.0 */
/* What a job takes of the server's memory: pending, active, scheduled, and the same hash and member
 * of a sorted set written with bare commands. Leaves an empty server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire.h"

#define WINDOW 100
#define LOOK_NS 50000000 /* between two looks at memory that may still change */
#define LOOKS_MAX 200
#define SAME_LOOKS 2
#define SOON_MS 3600000

/* Waits until connections are gone and tables have grown. */
static long long read_memory(const bench *b, redisContext *link) {
    const struct timespec pause = {0, LOOK_NS};
    long long before = -1;
    int same = 0;
    for (int i = 0; i < LOOKS_MAX; i++) {
        long long now = wire_info(b, link, "memory", "used_memory:");
        int is_alone = wire_info(b, link, "clients", "connected_clients:") == 1;
        same = is_alone && now == before ? same + 1 : 0;
        if (same == SAME_LOOKS) {
            return now;
        }
        before = now;
        (void)nanosleep(&pause, NULL);
    }
    bench_die(b, "the server's memory does not come to rest");
}

/* Appends what admits a job, and returns how many commands that is. */
static size_t append_job(const bench *b, redisContext *link, emq_line *line, const emq_id *id,
                         const char *payload) {
    int result = EMQ_OK;
    if (strcmp(b->contender, "bare") == 0) {
        char key[EMQ_KEY_MAX + 1];
        (void)emq_key_job(key, sizeof(key), BENCH_QUEUE, id);
        const char *row[] = {"HSET", key, "state", "pending", "attempts", "0", "payload", payload};
        const size_t lengths[] = {4, strlen(key), 5, 7, 8, 1, 7, b->payload};
        (void)redisAppendCommandArgv(link, 8, row, lengths);
        (void)emq_key_queue(key, sizeof(key), BENCH_QUEUE, EMQ_KEY_PENDING);
        (void)redisAppendCommandArgv(link, 4, (const char *[]){"ZADD", key, "0", id->text}, NULL);
        return 2;
    }
    if (strcmp(b->contender, "scheduled") == 0) {
        const emq_when when = {EMQ_IN, SOON_MS};
        result = emq_line_schedule(line, BENCH_QUEUE, id, payload, b->payload, when);
    } else {
        result = emq_line_enqueue(line, BENCH_QUEUE, id, payload, b->payload);
    }
    bench_expect(b, result, "building a line", "");
    (void)redisAppendCommandArgv(link, line->argc, line->argv, line->argvlen);
    return 1;
}

static void load(const bench *b) {
    redisContext *link = wire_connect(b);
    emq_id *ids = bench_ids_new(b, b->jobs);
    emq_line line = EMQ_LINE_INIT;
    char *payload = bench_alloc(b, b->payload + 1, 1);
    memset(payload, 'x', b->payload);
    for (size_t first = 0; first < b->jobs; first += WINDOW) {
        size_t commands = 0;
        for (size_t i = first; i < first + WINDOW && i < b->jobs; i++) {
            commands += append_job(b, link, &line, &ids[i], payload);
        }
        for (size_t i = 0; i < commands; i++) {
            freeReplyObject(wire_reply(b, link));
        }
    }
    for (size_t i = 0; i < b->jobs && strcmp(b->contender, "active") == 0; i++) {
        bench_expect(b, emq_line_claim(&line, BENCH_QUEUE, BENCH_LEASE_MS), "emq_line_claim", "");
        (void)redisAppendCommandArgv(link, line.argc, line.argv, line.argvlen);
        freeReplyObject(wire_reply(b, link));
    }
    redisFree(link);
    emq_line_clear(&line);
    free(ids);
    free(payload);
}

void bench_memory(bench *b) {
    redisContext *link = wire_connect(b);
    wire_reset(b, link);
    long long before = read_memory(b, link);
    load(b);
    long long after = read_memory(b, link);
    bench_add_number(b, "bytes", (double)(after - before) / (double)b->jobs);
    /* the fence, a row for each, and one set: all jobs are there */
    long long keys = wire_ask_number(b, link, 1, (const char *[]){"DBSIZE"});
    bench_check(b, keys == (long long)b->jobs + 2, "some jobs are not there");
    wire_reset(b, link);
    redisFree(link);
}
