/* SPDX-License-Identifier: Apache-2.0 */
/* The sides that speak to the server without libemq's transport, and what they leave behind. */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_MAX 8192
#define FILL_BATCH 500 /* of the jobs that wait behind those of a run */
#define SCORE "4102444800000"

const char *const wire_phase_names[WIRE_PHASES] = {"enqueue", "claim", "complete"};

struct wire_side {
    const char *name;
    size_t members;               /* jobs of one call */
    size_t commands[WIRE_PHASES]; /* and its replies */
    void (*append[WIRE_PHASES])(wire *w, redisContext *link, wire_phase phase, size_t call);
    void (*take[WIRE_PHASES])(wire *w, size_t call, redisReply **replies);
};

void wire_queue_name(char *out, size_t cap, const bench *b, size_t i) {
    if (b->queues == 1) {
        (void)snprintf(out, cap, "%s", BENCH_QUEUE);
    } else {
        (void)snprintf(out, cap, "%s-%06zu", BENCH_QUEUE, i % b->queues);
    }
}

redisContext *wire_connect(const bench *b) {
    redisContext *link = b->path != NULL
                             ? redisConnectUnix(b->path)
                             : redisConnect(b->host == NULL ? "127.0.0.1" : b->host, (int)b->port);
    if (link == NULL || link->err != 0) {
        bench_die(b, "cannot connect: %s", link == NULL ? "no memory" : link->errstr);
    }
    return link;
}

redisReply *wire_reply(const bench *b, redisContext *link) {
    void *reply = NULL;
    if (redisGetReply(link, &reply) != REDIS_OK) {
        bench_die(b, "the connection was lost: %s", link->errstr);
    }
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR) {
        bench_die(b, "the server refuses: %s", ((redisReply *)reply)->str);
    }
    return reply;
}

redisReply *wire_ask(const bench *b, redisContext *link, int argc, const char **argv) {
    bench_check(b, redisAppendCommandArgv(link, argc, argv, NULL) == REDIS_OK, "no memory");
    return wire_reply(b, link);
}

long long wire_ask_number(const bench *b, redisContext *link, int argc, const char **argv) {
    redisReply *reply = wire_ask(b, link, argc, argv);
    long long number =
        reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10) : reply->integer;
    freeReplyObject(reply);
    return number;
}

static void append(wire *w, redisContext *link, int argc, const char **argv,
                   const size_t *lengths) {
    bench_check(w->b, redisAppendCommandArgv(link, argc, argv, lengths) == REDIS_OK, "no memory");
}

static const char *payload_of(const wire *w, size_t job) {
    return w->payloads + job * w->b->payload;
}

static emq_lease lease_of(const wire *w, size_t call, size_t job) {
    emq_lease lease = {.id = w->ids[job], .token = 1};
    wire_queue_name(lease.queue, sizeof(lease.queue), w->b, call);
    return lease;
}

static void expect_number(const wire *w, const redisReply *reply, long long wanted) {
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer != wanted) {
        bench_die(w->b, "an answer is not %lld", wanted);
    }
}

static void note_claim(wire *w, const redisReply *payload) {
    size_t job = bench_payload_read(w->b, payload->str, payload->len);
    bench_ledger_claim(&w->ledger, w->b, job);
}

/* The native verbs: their lines are libemq's. */

static void build_line(wire *w, wire_phase phase, size_t call) {
    emq_lease lease = lease_of(w, call, call);
    int result = EMQ_OK;
    switch (phase) {
    case WIRE_ENQUEUE:
        result =
            emq_line_enqueue(&w->line, lease.queue, &lease.id, payload_of(w, call), w->b->payload);
        break;
    case WIRE_CLAIM:
        result = emq_line_claim(&w->line, lease.queue, BENCH_LEASE_MS);
        break;
    case WIRE_COMPLETE:
    case WIRE_PHASES:
        result = emq_line_complete(&w->line, &lease);
        break;
    }
    bench_expect(w->b, result, "building a line", "");
}

static void native(wire *w, redisContext *link, wire_phase phase, size_t call) {
    build_line(w, phase, call);
    append(w, link, w->line.argc, w->line.argv, w->line.argvlen);
}

static void take_enqueued(wire *w, size_t call, redisReply **replies) {
    (void)call;
    expect_number(w, replies[0], 1);
}

static void take_claimed(wire *w, size_t call, redisReply **replies) {
    (void)call;
    bench_check(w->b, replies[0]->elements == 3, "a claim found nothing");
    note_claim(w, replies[0]->element[1]);
}

static void take_completed(wire *w, size_t call, redisReply **replies) {
    expect_number(w, replies[0], 1);
    bench_ledger_complete(&w->ledger, w->b, call);
}

/* The reference scripts take the same tail. */

static void script(wire *w, redisContext *link, wire_phase phase, size_t call) {
    const char *argv[16] = {"EVALSHA", w->scripts[phase]};
    size_t lengths[16] = {7, 40};
    build_line(w, phase, call);
    for (int i = 1; i < w->line.argc; i++) {
        argv[i + 1] = w->line.argv[i];
        lengths[i + 1] = w->line.argvlen[i];
    }
    append(w, link, w->line.argc + 1, argv, lengths);
}

/* Batches. */

static void batch_enqueue(wire *w, redisContext *link, wire_phase phase, size_t call) {
    (void)phase;
    emq_bytes payloads[WIRE_BATCH];
    emq_lease lease = lease_of(w, call, call);
    for (size_t i = 0; i < WIRE_BATCH; i++) {
        payloads[i] = (emq_bytes){payload_of(w, call * WIRE_BATCH + i), w->b->payload};
    }
    bench_expect(
        w->b,
        emq_line_enqueues(&w->line, lease.queue, w->ids + call * WIRE_BATCH, payloads, WIRE_BATCH),
        "emq_line_enqueues", "");
    append(w, link, w->line.argc, w->line.argv, w->line.argvlen);
}

static void batch_claim(wire *w, redisContext *link, wire_phase phase, size_t call) {
    (void)phase;
    emq_lease lease = lease_of(w, call, call);
    bench_expect(w->b, emq_line_claims(&w->line, lease.queue, BENCH_LEASE_MS, WIRE_BATCH, 0),
                 "emq_line_claims", "");
    append(w, link, w->line.argc, w->line.argv, w->line.argvlen);
}

static void batch_complete(wire *w, redisContext *link, wire_phase phase, size_t call) {
    (void)phase;
    emq_lease leases[WIRE_BATCH];
    for (size_t i = 0; i < WIRE_BATCH; i++) {
        leases[i] = lease_of(w, call, call * WIRE_BATCH + i);
    }
    bench_expect(w->b, emq_line_completes(&w->line, leases, WIRE_BATCH), "emq_line_completes", "");
    append(w, link, w->line.argc, w->line.argv, w->line.argvlen);
}

static void check_members(const wire *w, const redisReply *reply) {
    bench_check(w->b, reply->elements == WIRE_BATCH, "a batch has too few answers");
}

static void take_batch_enqueued(wire *w, size_t call, redisReply **replies) {
    (void)call;
    check_members(w, replies[0]);
    for (size_t i = 0; i < WIRE_BATCH; i++) {
        expect_number(w, replies[0]->element[i], 1);
    }
}

static void take_batch_claimed(wire *w, size_t call, redisReply **replies) {
    (void)call;
    check_members(w, replies[0]);
    for (size_t i = 0; i < WIRE_BATCH; i++) {
        bench_check(w->b, replies[0]->element[i]->elements == 3, "a claim found nothing");
        note_claim(w, replies[0]->element[i]->element[1]);
    }
}

static void take_batch_completed(wire *w, size_t call, redisReply **replies) {
    check_members(w, replies[0]);
    for (size_t i = 0; i < WIRE_BATCH; i++) {
        expect_number(w, replies[0]->element[i], 1);
        bench_ledger_complete(&w->ledger, w->b, call * WIRE_BATCH + i);
    }
}

/* The bare commands with the same effects. */

typedef struct bare_keys {
    char row[EMQ_KEY_MAX + 1];
    char set[EMQ_KEY_MAX + 1];
    char other_set[EMQ_KEY_MAX + 1];
} bare_keys;

static bare_keys keys_of(const wire *w, size_t call, emq_key_kind set, emq_key_kind other_set) {
    bare_keys keys;
    emq_lease lease = lease_of(w, call, call);
    (void)emq_key_job(keys.row, sizeof(keys.row), lease.queue, &lease.id);
    (void)emq_key_queue(keys.set, sizeof(keys.set), lease.queue, set);
    (void)emq_key_queue(keys.other_set, sizeof(keys.other_set), lease.queue, other_set);
    return keys;
}

#define APPEND(w, link, ...)                                                                       \
    append(w, link, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                 \
           (const char *[]){__VA_ARGS__}, NULL)

static void bare_enqueue(wire *w, redisContext *link, wire_phase phase, size_t call) {
    (void)phase;
    bare_keys keys = keys_of(w, call, EMQ_KEY_PENDING, EMQ_KEY_PENDING);
    const char *argv[] = {"HSET",     keys.row, "state",   "pending",
                          "attempts", "0",      "payload", payload_of(w, call)};
    const size_t lengths[] = {4, strlen(keys.row), 5, 7, 8, 1, 7, w->b->payload};
    append(w, link, 8, argv, lengths);
    APPEND(w, link, "ZADD", keys.set, "0", w->ids[call].text);
}

/* The ids are known, so that the second half need not wait for the first: that is less than a
 * queue made of these commands would pay. */
static void bare_claim(wire *w, redisContext *link, wire_phase phase, size_t call) {
    (void)phase;
    bare_keys keys = keys_of(w, call, EMQ_KEY_PENDING, EMQ_KEY_ACTIVE);
    const char *id = w->ids[call].text;
    APPEND(w, link, "ZRANGE", keys.set, "0", "0");
    APPEND(w, link, "HMGET", keys.row, "state", "attempts", "payload");
    APPEND(w, link, "ZREM", keys.set, id);
    APPEND(w, link, "HSET", keys.row, "state", "active", "attempts", "1", "lease_epoch", w->run_id);
    APPEND(w, link, "ZADD", keys.other_set, SCORE, id);
}

static void bare_complete(wire *w, redisContext *link, wire_phase phase, size_t call) {
    (void)phase;
    bare_keys keys = keys_of(w, call, EMQ_KEY_ACTIVE, EMQ_KEY_COMPLETED);
    APPEND(w, link, "ZREM", keys.set, w->ids[call].text);
    APPEND(w, link, "DEL", keys.row);
    APPEND(w, link, "HINCRBY", keys.other_set, "count", "1");
}

static void take_bare_enqueued(wire *w, size_t call, redisReply **replies) {
    (void)call;
    expect_number(w, replies[0], 3);
    expect_number(w, replies[1], 1);
}

static void take_bare_claimed(wire *w, size_t call, redisReply **replies) {
    (void)call;
    bench_check(w->b, replies[0]->elements == 1 && replies[1]->elements == 3,
                "a claim found nothing");
    note_claim(w, replies[1]->element[2]);
    expect_number(w, replies[2], 1);
    expect_number(w, replies[3], 1);
    expect_number(w, replies[4], 1);
}

static void take_bare_completed(wire *w, size_t call, redisReply **replies) {
    expect_number(w, replies[0], 1);
    expect_number(w, replies[1], 1);
    bench_ledger_complete(&w->ledger, w->b, call);
}

static const wire_side sides[] = {
    {"native",
     1,
     {1, 1, 1},
     {native, native, native},
     {take_enqueued, take_claimed, take_completed}},
    {"batch",
     WIRE_BATCH,
     {1, 1, 1},
     {batch_enqueue, batch_claim, batch_complete},
     {take_batch_enqueued, take_batch_claimed, take_batch_completed}},
    {"script",
     1,
     {1, 1, 1},
     {script, script, script},
     {take_enqueued, take_claimed, take_completed}},
    {"bare",
     1,
     {2, 5, 3},
     {bare_enqueue, bare_claim, bare_complete},
     {take_bare_enqueued, take_bare_claimed, take_bare_completed}},
};

void wire_send(wire *w, redisContext *link, wire_phase phase, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) {
        w->side->append[phase](w, link, phase, first + i);
    }
    int done = 0;
    while (!done) {
        if (redisBufferWrite(link, &done) != REDIS_OK) {
            bench_die(w->b, "the connection was lost: %s", link->errstr);
        }
    }
}

void wire_receive(wire *w, redisContext *link, wire_phase phase, size_t first, size_t count) {
    redisReply *replies[WIRE_COMMANDS_MAX];
    const size_t commands = w->side->commands[phase];
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < commands; c++) {
            replies[c] = wire_reply(w->b, link);
        }
        w->side->take[phase](w, first + i, replies);
        for (size_t c = 0; c < commands; c++) {
            freeReplyObject(replies[c]);
        }
    }
}

/* Before and after. */

static void load_script(wire *w, redisContext *link, wire_phase phase) {
    char path[4096];
    char text[SCRIPT_MAX] = "";
    (void)snprintf(path, sizeof(path), "%s/%s.lua", w->b->scripts, wire_phase_names[phase]);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        bench_die(w->b, "cannot read %s", path);
    }
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[length] = '\0';
    redisReply *reply = wire_ask(w->b, link, 3, (const char *[]){"SCRIPT", "LOAD", text});
    (void)snprintf(w->scripts[phase], sizeof(w->scripts[phase]), "%s", reply->str);
    freeReplyObject(reply);
}

static void read_run_id(wire *w, redisContext *link) {
    redisReply *reply = wire_ask(w->b, link, 2, (const char *[]){"INFO", "server"});
    const char *found = reply->str == NULL ? NULL : strstr(reply->str, "run_id:");
    if (found == NULL) {
        bench_die(w->b, "the server tells no run_id");
    }
    memcpy(w->run_id, found + strlen("run_id:"), sizeof(w->run_id) - 1);
    freeReplyObject(reply);
}

long long wire_info(const bench *b, redisContext *link, const char *section, const char *name) {
    redisReply *reply = wire_ask(b, link, 2, (const char *[]){"INFO", section});
    const char *found = reply->str == NULL ? NULL : strstr(reply->str, name);
    if (found == NULL) {
        bench_die(b, "the server does not tell %s", name);
    }
    long long value = strtoll(found + strlen(name), NULL, 10);
    freeReplyObject(reply);
    return value;
}

void wire_reset(const bench *b, redisContext *link) {
    emq_line line = EMQ_LINE_INIT;
    freeReplyObject(wire_ask(b, link, 2, (const char *[]){"FLUSHALL", "SYNC"}));
    bench_expect(b, emq_line_install(&line), "emq_line_install", "");
    (void)redisAppendCommandArgv(link, line.argc, line.argv, line.argvlen);
    freeReplyObject(wire_reply(b, link));
    emq_line_clear(&line);
}

static long long count_of(const bench *b, redisContext *link, const char *command, size_t queue,
                          emq_key_kind kind) {
    char name[EMQ_QUEUE_MAX + 1];
    char key[EMQ_KEY_MAX + 1];
    wire_queue_name(name, sizeof(name), b, queue);
    (void)emq_key_queue(key, sizeof(key), name, kind);
    return wire_ask_number(b, link, 2, (const char *[]){command, key});
}

void wire_fill(const bench *b) {
    char name[EMQ_QUEUE_MAX + 1];
    emq_line line = EMQ_LINE_INIT;
    redisContext *link = wire_connect(b);
    wire_queue_name(name, sizeof(name), b, 0);
    size_t there = (size_t)count_of(b, link, "ZCARD", 0, EMQ_KEY_PENDING);
    bench_check(b, there <= b->pending, "there are jobs in the queue");
    char *payload = bench_alloc(b, b->payload + 1, 1);
    memset(payload, 'x', b->payload);
    while (there < b->pending) {
        emq_id ids[FILL_BATCH];
        emq_bytes payloads[FILL_BATCH];
        size_t count = b->pending - there < FILL_BATCH ? b->pending - there : FILL_BATCH;
        for (size_t i = 0; i < count; i++) {
            (void)snprintf(ids[i].text, sizeof(ids[i].text), "JOB9%010zu",
                           (there + i) % 10000000000U);
            payloads[i] = (emq_bytes){payload, b->payload};
        }
        bench_expect(b, emq_line_enqueues(&line, name, ids, payloads, count), "emq_line_enqueues",
                     "");
        bench_check(b, redisAppendCommandArgv(link, line.argc, line.argv, line.argvlen) == REDIS_OK,
                    "no memory");
        freeReplyObject(wire_reply(b, link));
        there += count;
    }
    free(payload);
    emq_line_clear(&line);
    redisFree(link);
}

void wire_open(wire *w, bench *b) {
    *w = (wire){.b = b, .line = EMQ_LINE_INIT};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        if (strcmp(sides[i].name, b->contender) == 0) {
            w->side = &sides[i];
        }
    }
    bench_check(b, w->side != NULL, "no such contender");
    bench_check(b, b->jobs % (w->side->members * b->queues) == 0,
                "the jobs must fill all batches and queues");
    w->calls = b->jobs / w->side->members;
    w->ids = bench_ids_new(b, b->jobs);
    w->payloads = bench_payloads_new(b);
    bench_ledger_open(&w->ledger, b);
    redisContext *link = wire_connect(b);
    for (wire_phase phase = WIRE_ENQUEUE; b->scripts != NULL && phase < WIRE_PHASES; phase++) {
        load_script(w, link, phase);
    }
    read_run_id(w, link);
    redisFree(link);
    wire_fill(b);
}

/* The count of completed jobs is checked and taken away. */
static void check_queue(const bench *b, redisContext *link, size_t queue) {
    char name[EMQ_QUEUE_MAX + 1];
    char key[EMQ_KEY_MAX + 1];
    const size_t pending = queue == 0 ? b->pending : 0;
    const size_t jobs = b->jobs / b->queues;
    wire_queue_name(name, sizeof(name), b, queue);
    (void)emq_key_queue(key, sizeof(key), name, EMQ_KEY_COMPLETED);
    long long completed = wire_ask_number(b, link, 3, (const char *[]){"HGET", key, "count"});
    if (completed != (long long)jobs ||
        count_of(b, link, "ZCARD", queue, EMQ_KEY_PENDING) != (long long)pending ||
        count_of(b, link, "EXISTS", queue, EMQ_KEY_ACTIVE) != 0) {
        bench_die(b, "%lld of %zu jobs are completed, or some are left", completed, jobs);
    }
    (void)wire_ask_number(b, link, 2, (const char *[]){"DEL", key});
}

void wire_check_server(const bench *b) {
    redisContext *link = wire_connect(b);
    for (size_t queue = 0; queue < b->queues; queue++) {
        check_queue(b, link, queue);
    }
    /* the fence, and what waits: its rows and its set */
    const long long keys = 1 + (b->pending > 0 ? 1 + (long long)b->pending : 0);
    bench_check(b, wire_ask_number(b, link, 1, (const char *[]){"DBSIZE"}) == keys,
                "the server holds keys that nobody needs");
    redisFree(link);
}

void wire_close(wire *w) {
    wire_check_server(w->b);
    bench_ledger_close(&w->ledger, w->b);
    emq_line_clear(&w->line);
    free(w->ids);
    free(w->payloads);
}
