/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs beyond enqueue, claim and complete on a server: every outcome of each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_fixture.h"
#include "command.h"

#define ID_A "JOB0KHTOWnGLuC"
#define ID_B "JOB0NgWEfAEJfs"
#define ROW_A "emq:{q}:job:" ID_A

static const emq_id id_a = {ID_A};
static const emq_when now = {EMQ_IN, 0};
static const emq_when later = {EMQ_IN, 3600000};
static const emq_bytes bitmap = {"bits", 4};

#define EXPECT_CALL(want, call) EXPECT_RESULT(client, (call), (want))
#define EXPECT_FIELD(key, field, want)                                                             \
    do {                                                                                           \
        char text[64];                                                                             \
        assert_string_equal(                                                                       \
            get_text(text, sizeof(text), server.admin, "HGET", (key), (field), NULL), (want));     \
    } while (0)

static emq_lease claim(void) {
    emq_job *job = NULL;
    EXPECT_CALL(EMQ_OK, emq_claim(&job, client, "q", 60000));
    assert_non_null(job);
    emq_lease lease = *emq_job_get_lease(job);
    emq_job_free(job);
    return lease;
}

/* Admits job A and claims it. */
static emq_lease make_lease(void) {
    emq_id id = id_a;
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", "p", 1));
    return claim();
}

static long long count(const char *set) {
    return get_integer(server.admin, "ZCARD", set, NULL);
}

static void scheduled_jobs_are_promoted(void **state) {
    int64_t moved = -1;
    emq_id id = {{0}};
    emq_id known = id_a;
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_schedule(&id, client, "q", "p", 1, later));
    assert_int_equal(emq_id_valid(&id), 1);
    EXPECT_CALL(EMQ_OK, emq_schedule(&known, client, "q", "", 0, now));
    EXPECT_CALL(EMQ_DUPLICATE, emq_schedule(&known, client, "q", "p", 1, now));
    EXPECT_CALL(EMQ_OK, emq_promote(&moved, client, "q", 10));
    assert_int_equal(moved, 1);
    EXPECT_CALL(EMQ_OK, emq_reschedule(client, "q", &id, (emq_when){EMQ_AT, 1}));
    EXPECT_CALL(EMQ_ESTATE, emq_reschedule(client, "q", &id_a, now));
    EXPECT_CALL(EMQ_OK, emq_promote(&moved, client, "q", 10));
    assert_int_equal(moved, 1);
    EXPECT_CALL(EMQ_OK, emq_promote(&moved, client, "q", 10));
    assert_int_equal(moved, 0);
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_CALL(EMQ_GONE, emq_reschedule(client, "q", &id_a, now));
}

static void a_lease_is_prolonged(void **state) {
    (void)state;
    emq_lease lease = make_lease();
    EXPECT_CALL(EMQ_OK, emq_extend(client, &lease, 2000000000));
    assert_true(
        get_integer(server.admin, "ZCOUNT", "emq:{q}:active", "1000000000000", "+inf", NULL) == 1);
    lease.token++;
    EXPECT_CALL(EMQ_ESTALE, emq_extend(client, &lease, 1));
    EXPECT_SAYS(client, "EMQSTALE extend token mismatch");
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_CALL(EMQ_GONE, emq_extend(client, &lease, 1));
}

static void a_failed_job_is_tried_again_and_dies(void **state) {
    int64_t moved = 0;
    (void)state;
    emq_lease lease = make_lease();
    EXPECT_CALL(EMQ_OK, emq_fail(client, &lease, 0, 2, "first \0 error", 13));
    EXPECT_CALL(EMQ_ESTALE, emq_fail(client, &lease, 0, 2, NULL, 0));
    EXPECT_FIELD(ROW_A, "failures", "1");
    EXPECT_CALL(EMQ_OK, emq_promote(&moved, client, "q", 1));
    lease = claim();
    EXPECT_CALL(EMQ_DEAD, emq_fail(client, &lease, 0, 2, NULL, 0));
    assert_int_equal(emq_err_class(EMQ_DEAD), EMQ_CLASS_OK);
    assert_int_equal(count("emq:{q}:dead"), 1);
    EXPECT_CALL(EMQ_OK, emq_reprocess(client, "q", &id_a));
    EXPECT_CALL(EMQ_ESTATE, emq_reprocess(client, "q", &id_a));
    lease = claim();
    assert_int_equal(lease.token, 3);
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_CALL(EMQ_EJOBGONE, emq_fail(client, &lease, 0, 2, NULL, 0));
    EXPECT_CALL(EMQ_GONE, emq_reprocess(client, "q", &id_a));
}

static void a_job_is_given_back(void **state) {
    (void)state;
    emq_lease lease = make_lease();
    EXPECT_CALL(EMQ_OK, emq_requeue(client, &lease));
    EXPECT_CALL(EMQ_ESTALE, emq_requeue(client, &lease));
    lease = claim();
    EXPECT_CALL(EMQ_OK, emq_delay(client, &lease, later));
    EXPECT_CALL(EMQ_ESTALE, emq_delay(client, &lease, later));
    assert_int_equal(count("emq:{q}:schedule"), 1);
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_CALL(EMQ_GONE, emq_requeue(client, &lease));
    EXPECT_CALL(EMQ_EJOBGONE, emq_delay(client, &lease, now));
}

/* Takes the lease of job A away, as if it had lapsed. */
static void lapsed_leases_are_swept(void **state) {
    emq_ids *recovered = NULL;
    emq_ids *dead = NULL;
    size_t n = 0;
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_stalled_check(&recovered, &dead, client, "q", 2, 10));
    assert_int_equal(emq_ids_get_count(recovered) + emq_ids_get_count(dead), 0);
    assert_null(emq_ids_get_text(recovered, 0, NULL));
    emq_ids_free(recovered);
    emq_ids_free(dead);
    (void)make_lease();
    let_lapse(ID_A);
    EXPECT_CALL(EMQ_OK, emq_stalled_check(&recovered, NULL, client, "q", 2, 10));
    assert_int_equal(emq_ids_get_count(recovered), 1);
    assert_string_equal(emq_ids_get_text(recovered, 0, &n), ID_A);
    assert_int_equal(n, EMQ_ID_LEN);
    emq_ids_free(recovered);
    (void)claim();
    let_lapse(ID_A);
    EXPECT_CALL(EMQ_OK, emq_stalled_check(NULL, &dead, client, "q", 2, 10));
    assert_int_equal(emq_ids_get_count(dead), 1);
    assert_string_equal(emq_ids_get_text(dead, 0, NULL), ID_A);
    emq_ids_free(dead);
    EXPECT_CALL(EMQ_EINVAL, emq_stalled_check(NULL, NULL, client, "q", 0, 10));
}

static void a_batch_is_admitted(void **state) {
    int results[3] = {9, 9, 9};
    emq_id ids[3] = {{{0}}, {ID_A}, {ID_A}};
    const emq_bytes payloads[3] = {{"one", 3}, {"two", 3}, {"three", 5}};
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_enqueues(results, ids, client, "q", payloads, 3));
    assert_int_equal(emq_id_valid(&ids[0]), 1);
    assert_int_equal(results[0], EMQ_OK);
    assert_int_equal(results[1], EMQ_OK);
    assert_int_equal(results[2], EMQ_DUPLICATE);
    EXPECT_FIELD(ROW_A, "payload", "two");
    EXPECT_CALL(EMQ_OK, emq_enqueues(results, ids, client, "q", payloads, 3));
    assert_int_equal(results[0], EMQ_DUPLICATE);
    assert_int_equal(count("emq:{q}:pending"), 2);
    run(server.admin, "DEL", "{emq}:version", NULL);
    EXPECT_CALL(EMQ_EFENCE_ABSENT, emq_enqueues(results, ids, client, "q", payloads, 3));
    assert_int_equal(results[2], EMQ_EFENCE_ABSENT);
}

static void a_batch_is_claimed_prolonged_and_completed(void **state) {
    static int results[1000];
    static emq_id ids[1000];
    static emq_bytes payloads[1000];
    static emq_lease leases[1000];
    emq_jobs *jobs = NULL;
    (void)state;
    memset(ids, 0, sizeof(ids));
    for (int i = 0; i < 1000; i++) {
        payloads[i] = (emq_bytes){&payloads[i], sizeof(size_t)};
    }
    EXPECT_CALL(EMQ_EMPTY, emq_claims(&jobs, client, "q", 60000, 1000, 0));
    assert_null(jobs);
    EXPECT_CALL(EMQ_OK, emq_enqueues(results, ids, client, "q", payloads, 1000));
    EXPECT_CALL(EMQ_OK, emq_claims(&jobs, client, "q", 60000, 1000, 1000));
    assert_int_equal(emq_jobs_get_count(jobs), 1000);
    for (size_t i = 0; i < 1000; i++) {
        size_t n = 0;
        leases[i] = *emq_job_get_lease(emq_jobs_get_job(jobs, i));
        assert_string_equal(leases[i].id.text, ids[i].text);
        assert_non_null(emq_job_get_payload(emq_jobs_get_job(jobs, i), &n));
        assert_int_equal(n, sizeof(size_t));
    }
    emq_jobs_free(jobs);
    leases[7].token++;
    EXPECT_CALL(EMQ_OK, emq_extends(results, client, leases, 1000, 120000));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(results[i], i == 7 ? EMQ_ESTALE : EMQ_OK);
    }
    char row[EMQ_KEY_MAX + 1];
    assert_true(emq_key_job(row, sizeof(row), "q", &ids[3]) > 0);
    run(server.admin, "HSET", row, "group", "g", NULL);
    assert_true(emq_key_job(row, sizeof(row), "q", &ids[5]) > 0);
    run(server.admin, "DEL", row, NULL);
    EXPECT_CALL(EMQ_OK, emq_completes(results, client, leases, 1000));
    for (int i = 0; i < 1000; i++) {
        int want = i == 3 ? EMQ_ENOTFLAT : i == 5 ? EMQ_GONE : i == 7 ? EMQ_ESTALE : EMQ_OK;
        assert_int_equal(results[i], want);
    }
}

typedef struct waiting {
    emq_client *client;
    uint32_t timeout_ms;
    emq_jobs *jobs;
    int result;
} waiting;

static void *wait_for_jobs(void *data) {
    waiting *w = data;
    w->result = emq_claims(&w->jobs, w->client, "q", 60000, 5, w->timeout_ms);
    return NULL;
}

/* Starts a claim that waits on a client of its own, and returns when the server has it waiting. */
static void start_waiting(waiting *w, pthread_t *thread, uint32_t timeout_ms) {
    emq_client_options options = options_for_server(&server);
    options.command_timeout_ms = SHORT_MS; /* the wait has a deadline of its own */
    options.client_name = "waits";
    *w = (waiting){.client = open_client(&options), .timeout_ms = timeout_ms, .result = 1};
    assert_int_equal(pthread_create(thread, NULL, wait_for_jobs, w), 0);
    wait_until("a claim waits", a_claim_waits, NULL);
}

static void a_claim_waits_for_work(void **state) {
    waiting w;
    pthread_t thread;
    emq_id id = id_a;
    (void)state;
    start_waiting(&w, &thread, 600000);
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", "p", 1));
    assert_int_equal(pthread_join(thread, NULL), 0);
    EXPECT_RESULT(w.client, w.result, EMQ_OK);
    assert_int_equal(emq_jobs_get_count(w.jobs), 1);
    emq_jobs_free(w.jobs);
    EXPECT_RESULT(w.client, emq_claims(&w.jobs, w.client, "q", 1, 1, 1), EMQ_EMPTY);
    emq_client_close(w.client);
}

static void a_wait_is_ended_by_the_server(void **state) {
    waiting w;
    pthread_t thread;
    char list[4096];
    (void)state;
    start_waiting(&w, &thread, 600000);
    const char *found =
        strstr(get_text(list, sizeof(list), server.admin, "CLIENT", "LIST", NULL), " name=waits");
    assert_non_null(found);
    while (found > list && found[-1] != '\n') {
        found--;
    }
    char id[32];
    assert_int_equal(sscanf(found, "id=%31[0-9]", id), 1);
    run(server.admin, "CLIENT", "UNBLOCK", id, "ERROR", NULL);
    assert_int_equal(pthread_join(thread, NULL), 0);
    EXPECT_RESULT(w.client, w.result, EMQ_EUNBLOCKED);
    assert_int_equal(emq_err_class(EMQ_EUNBLOCKED), EMQ_CLASS_RETRYABLE);
    assert_null(w.jobs);
    emq_client_close(w.client);
}

/* Another client has enqueued under an id that this library would not have taken. */
static void a_job_with_a_malformed_id_is_named(void **state) {
    emq_job *job = NULL;
    emq_jobs *jobs = NULL;
    (void)state;
    run(server.admin, "EMQ.ENQUEUE", "2", "emq:{q}:job:JOBx", "emq:{q}:pending", "JOBx", "p", NULL);
    EXPECT_CALL(EMQ_EBADJOB, emq_claim(&job, client, "q", 60000));
    EXPECT_SAYS(client, "JOBx");
    assert_null(job);
    assert_int_equal(emq_client_is_open(client), 1);
    run(server.admin, "EMQ.ENQUEUE", "2", "emq:{q}:job:JOBy", "emq:{q}:pending", "JOBy", "p", NULL);
    EXPECT_CALL(EMQ_EBADJOB, emq_claims(&jobs, client, "q", 60000, 10, 0));
    EXPECT_SAYS(client, "JOBy");
    assert_null(jobs);
    run(server.admin, "EMQ.ENQUEUE", "2", "emq:{q}:job:JOBz", "emq:{q}:pending", "JOBz", "p", NULL);
    emq_id id = id_a;
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", "p", 1));
    EXPECT_CALL(EMQ_OK, emq_claims(&jobs, client, "q", 60000, 10, 0));
    assert_int_equal(emq_jobs_get_count(jobs), 1);
    assert_int_equal(emq_jobs_get_malformed(jobs), 1);
    emq_jobs_free(jobs);
}

static void a_queue_is_paused_and_resumed(void **state) {
    emq_job *job = NULL;
    emq_id id = id_a;
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", "p", 1));
    EXPECT_CALL(EMQ_OK, emq_pause(client, "q"));
    EXPECT_CALL(EMQ_OK, emq_pause(client, "q"));
    EXPECT_CALL(EMQ_EMPTY, emq_claim(&job, client, "q", 1));
    EXPECT_CALL(EMQ_OK, emq_resume(client, "q"));
    EXPECT_CALL(EMQ_OK, emq_resume(client, "q"));
    (void)claim();
}

static void records_are_appended(void **state) {
    emq_id id = {{0}};
    emq_id older = {"EVT00000000001"};
    emq_entry entry;
    int64_t failures = 0;
    const emq_field field = {{"f\0", 2}, {"v", 1}};
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_append(&entry, &id, client, "q", "s", &field, 1));
    assert_memory_equal(id.text, "EVT", 3);
    EXPECT_CALL(EMQ_EORDER, emq_append(NULL, &id, client, "q", "s", NULL, 0));
    EXPECT_CALL(EMQ_EORDER, emq_append(NULL, &older, client, "q", "s", NULL, 0));
    assert_int_equal(get_integer(server.admin, "XLEN", "emq:{q}:stream:s", NULL), 1);
    EXPECT_CALL(EMQ_OK, emq_failures_incr(&failures, client, "q", "s", "g", entry.text));
    EXPECT_CALL(EMQ_OK, emq_failures_incr(&failures, client, "q", "s", "g", entry.text));
    assert_int_equal(failures, 2);
    EXPECT_CALL(EMQ_EVALUE, emq_failures_incr(&failures, client, "q", "s", "g", "1"));
    assert_int_equal(failures, 0);
}

static void messages_are_published(void **state) {
    int64_t receivers = -1;
    const emq_bytes event = {"done", 4};
    const emq_bytes job = {ID_A, EMQ_ID_LEN};
    const emq_field good = {{"f", 1}, {"v", 1}};
    const emq_field taken = {{"seq", 3}, {"v", 1}};
    (void)state;
    redisContext *listener = server_connect(&server);
    freeReplyObject(call(listener, "SUBSCRIBE", "emq:{q}:events", NULL));
    EXPECT_CALL(EMQ_OK, emq_publish(&receivers, client, "q", event, job, &good, 1));
    assert_int_equal(receivers, 1);
    redisReply *message = NULL;
    assert_int_equal(redisGetReply(listener, (void **)&message), REDIS_OK);
    assert_string_equal(message->element[2]->str,
                        "{\"event\":\"done\",\"job\":\"" ID_A "\",\"seq\":1,\"f\":\"v\"}");
    freeReplyObject(message);
    redisFree(listener);
    EXPECT_CALL(EMQ_EVALUE, emq_publish(NULL, client, "q", event, job, &taken, 1));
}

static void bits_are_set_read_and_cleared(void **state) {
    const uint32_t offsets[3] = {1, 9, 9};
    int64_t changed = -1;
    int bits[3] = {9, 9, 9};
    uint32_t set[10];
    size_t found = 9;
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_tra_bitset(&changed, client, bitmap, offsets, 3));
    assert_int_equal(changed, 2);
    EXPECT_CALL(EMQ_OK, emq_tra_bitscan(set, &found, client, bitmap, 0, UINT32_MAX, 10));
    assert_int_equal(found, 2);
    assert_int_equal(set[0], 1);
    assert_int_equal(set[1], 9);
    EXPECT_CALL(EMQ_OK, emq_tra_bitclear(&changed, client, bitmap, offsets, 1));
    assert_int_equal(changed, 1);
    EXPECT_CALL(EMQ_OK, emq_tra_bitget(bits, client, bitmap, offsets, 2));
    assert_int_equal(bits[0], 0);
    assert_int_equal(bits[1], 1);
    run(server.admin, "DEL", "bits", NULL);
    run(server.admin, "LPUSH", "bits", "x", NULL);
    EXPECT_CALL(EMQ_EWRONGTYPE, emq_tra_bitscan(set, &found, client, bitmap, 0, 1, 1));
    assert_int_equal(found, 0);
}

/* A fresh id of a batch that another process has used is minted again; an id that was given is not.
 */
static void fresh_ids_of_a_batch_are_minted_again(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS("*3\r\n:0\r\n:0\r\n:1\r\n"),
                                          PEER_SENDS("*1\r\n:1\r\n")}};
    int results[3];
    emq_id ids[3] = {{{0}}, {ID_A}, {{0}}};
    const emq_bytes payloads[3] = {{"first", 5}, {"second", 6}, {"third", 5}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    emq_client *other = open_client(&options);
    EXPECT_RESULT(other, emq_enqueues(results, ids, other, "q", payloads, 3), EMQ_OK);
    assert_int_equal(results[0], EMQ_OK);
    assert_int_equal(results[1], EMQ_DUPLICATE);
    assert_int_equal(results[2], EMQ_OK);
    assert_string_equal(ids[1].text, ID_A);
    char want[128];
    char *again = peer_command(p, PEER_HANDSHAKE_COMMANDS + 1);
    (void)snprintf(want, sizeof(want), "EMQ.ENQUEUES 2 emq:{q}:pending emq:{q}: %s first",
                   ids[0].text);
    assert_string_equal(again, want);
    free(again);
    emq_client_close(other);
    peer_stop(p);
}

static void a_server_that_knows_every_fresh_id_is_broken(void **state) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS("*1\r\n:0\r\n"),
                                          PEER_SENDS("*1\r\n:0\r\n"), PEER_SENDS("*1\r\n:0\r\n"),
                                          PEER_SENDS("*1\r\n:0\r\n"), PEER_SENDS("*1\r\n:0\r\n"),
                                          PEER_SENDS("*1\r\n:0\r\n"), PEER_SENDS("*1\r\n:0\r\n"),
                                          PEER_SENDS("*1\r\n:0\r\n")}};
    int result = EMQ_OK;
    emq_id id = {{0}};
    const emq_bytes payload = {"p", 1};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    emq_client *other = open_client(&options);
    EXPECT_RESULT(other, emq_enqueues(&result, &id, other, "q", &payload, 1), EMQ_EPROTOCOL);
    assert_int_equal(result, EMQ_EPROTOCOL);
    assert_int_equal(id.text[0], 0);
    assert_int_equal(emq_client_is_open(other), 0);
    assert_int_equal(peer_commands(p), PEER_HANDSHAKE_COMMANDS + 8);
    emq_client_close(other);
    peer_stop(p);
}

/* A wrong call sends nothing and leaves the connection alone. */
static void wrong_calls_are_refused(void **state) {
    emq_lease lease = {"q", {ID_A}, 1};
    emq_id id = {{0}};
    int results[2] = {0, 0};
    emq_jobs *jobs = NULL;
    const emq_bytes missing = {NULL, 1};
    (void)state;
    EXPECT_CALL(EMQ_EINVAL, emq_delay(client, &lease, (emq_when){EMQ_IN, -1}));
    EXPECT_CALL(EMQ_EINVAL, emq_schedule(&id, client, "q", "p", 1, (emq_when){EMQ_IN, -1}));
    assert_int_equal(id.text[0], 0);
    EXPECT_CALL(EMQ_EQUEUE, emq_promote(&(int64_t){0}, client, "a b", 1));
    EXPECT_CALL(EMQ_EINVAL, emq_claims(&jobs, client, "q", 1, 0, 0));
    EXPECT_CALL(EMQ_EINVAL, emq_completes(results, client, NULL, 1));
    assert_int_equal(results[0], EMQ_EINVAL);
    EXPECT_CALL(EMQ_EINVAL, emq_enqueues(results, &id, client, "q", &missing, 1));
    assert_int_equal(results[0], EMQ_EINVAL);
    EXPECT_CALL(EMQ_EINVAL, emq_extend(client, NULL, 1));
    assert_int_equal(emq_extend(NULL, &lease, 1), EMQ_EINVAL);
    assert_int_equal(emq_claims(NULL, client, "q", 1, 1, 0), EMQ_EINVAL);
    assert_int_equal(emq_promote(NULL, client, "q", 1), EMQ_EINVAL);
    assert_int_equal(emq_pause(NULL, "q"), EMQ_EINVAL);
    assert_int_equal(emq_append(NULL, NULL, client, "q", "s", NULL, 0), EMQ_EINVAL);
    EXPECT_CALL(EMQ_EINVAL, emq_append(NULL, &id, client, "q", "a:b", NULL, 0));
    assert_int_equal(id.text[0], 0);
    assert_int_equal(emq_client_is_open(client), 1);
}

static void a_closed_client_sends_nothing(void **state) {
    emq_lease lease = {"q", {ID_A}, 1};
    emq_id ids[2] = {{{0}}, {{0}}};
    int results[2] = {0, 0};
    const emq_bytes payloads[2] = {{"", 0}, {"", 0}};
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    emq_client *closed = NULL;
    (void)state;
    options.unix_path = "/nowhere";
    assert_int_equal(emq_client_open(&closed, &options), EMQ_ECONNECT);
    EXPECT_RESULT(closed, emq_extend(closed, &lease, 1), EMQ_ECLOSED);
    EXPECT_RESULT(closed, emq_extends(results, closed, &lease, 1, 1), EMQ_ECLOSED);
    EXPECT_RESULT(closed, emq_enqueues(results, ids, closed, "q", payloads, 2), EMQ_ECLOSED);
    assert_int_equal(results[1], EMQ_ECLOSED);
    assert_int_equal(ids[0].text[0], 0);
    emq_client_close(closed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_on_clean_server, close_client)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(scheduled_jobs_are_promoted),
        TEST(a_lease_is_prolonged),
        TEST(a_failed_job_is_tried_again_and_dies),
        TEST(a_job_is_given_back),
        TEST(lapsed_leases_are_swept),
        TEST(a_batch_is_admitted),
        TEST(a_batch_is_claimed_prolonged_and_completed),
        TEST(a_claim_waits_for_work),
        TEST(a_wait_is_ended_by_the_server),
        TEST(a_job_with_a_malformed_id_is_named),
        TEST(a_queue_is_paused_and_resumed),
        TEST(records_are_appended),
        TEST(messages_are_published),
        TEST(bits_are_set_read_and_cleared),
        TEST(fresh_ids_of_a_batch_are_minted_again),
        TEST(a_server_that_knows_every_fresh_id_is_broken),
        TEST(wrong_calls_are_refused),
        TEST(a_closed_client_sends_nothing),
    };
    return RUN_SERVER_TESTS("client.every_verb", tests, start_server, stop_server);
}
