/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueue, claim and complete on a server: every outcome, and what never reaches the wire. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client_fixture.h"
#include "command.h"
#include "random.h"

#define ID_A "JOB0KHTOWnGLuC"
#define ID_B "JOB0NgWEfAEJfs"
#define ROW_A "emq:{q}:job:" ID_A
#define LARGEST ((size_t)8 * 1024 * 1024) /* of the default options */

#define EXPECT_CALL(want, call) EXPECT_RESULT(client, (call), (want))

static void enqueue(const char *id_text, const void *p, size_t n, int want) {
    emq_id id;
    memcpy(id.text, id_text, sizeof(id.text));
    EXPECT_CALL(want, emq_enqueue(&id, client, "q", p, n));
    assert_string_equal(id.text, id_text);
}

/* Claims a job that must be there; the caller frees it. */
static emq_job *claim(void) {
    emq_job *job = NULL;
    EXPECT_CALL(EMQ_OK, emq_claim(&job, client, "q", 60000));
    assert_non_null(job);
    return job;
}

static void claim_nothing(int want) {
    emq_job *job = (emq_job *)(void *)&job;
    EXPECT_CALL(want, emq_claim(&job, client, "q", 60000));
    assert_null(job);
}

static void a_job_goes_all_the_way(void **state) {
    emq_id id = {{0}};
    (void)state;
    claim_nothing(EMQ_EMPTY);
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", "payload", 7));
    assert_int_equal(emq_id_valid(&id), 1);
    assert_memory_equal(id.text, "JOB", 3);
    emq_job *job = claim();
    const emq_lease *lease = emq_job_get_lease(job);
    assert_string_equal(lease->queue, "q");
    assert_string_equal(lease->id.text, id.text);
    assert_int_equal(lease->token, 1);
    assert_int_equal(emq_job_get_attempts(job), 1);
    claim_nothing(EMQ_EMPTY);
    EXPECT_CALL(EMQ_OK, emq_complete(client, lease));
    EXPECT_CALL(EMQ_GONE, emq_complete(client, lease));
    emq_job_free(job);
    assert_int_equal(get_integer(server.admin, "DBSIZE", NULL), 2); /* the fence and the count */
}

static void a_lease_settles_elsewhere(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    emq_job *job = claim();
    const emq_lease lease = *emq_job_get_lease(job);
    emq_job_free(job);
    emq_client_options options = options_for_server(&server);
    emq_client *other = open_client(&options);
    EXPECT_RESULT(other, emq_complete(other, &lease), EMQ_OK);
    emq_client_close(other);
}

static void a_repeat_is_a_duplicate(void **state) {
    size_t n = 0;
    (void)state;
    enqueue(ID_A, "first", 5, EMQ_OK);
    enqueue(ID_A, "second", 6, EMQ_DUPLICATE);
    emq_job *job = claim();
    enqueue(ID_A, "third", 5, EMQ_DUPLICATE);
    assert_memory_equal(emq_job_get_payload(job, &n), "first", 6);
    assert_int_equal(n, 5);
    EXPECT_CALL(EMQ_OK, emq_complete(client, emq_job_get_lease(job)));
    enqueue(ID_A, "fourth", 6, EMQ_OK);
    emq_job_free(job);
}

static void jobs_come_in_the_order_of_their_ids(void **state) {
    emq_id ids[100];
    (void)state;
    memset(ids, 0, sizeof(ids));
    for (int i = 0; i < 100; i++) {
        EXPECT_CALL(EMQ_OK, emq_enqueue(&ids[i], client, "q", &i, sizeof(i)));
    }
    for (int i = 0; i < 100; i++) {
        emq_job *job = claim();
        assert_string_equal(emq_job_get_lease(job)->id.text, ids[i].text);
        assert_memory_equal(emq_job_get_payload(job, NULL), &i, sizeof(i));
        emq_job_free(job);
    }
}

static void queues_are_apart(void **state) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    (void)state;
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q-1._Z", "p", 1));
    claim_nothing(EMQ_EMPTY);
    EXPECT_CALL(EMQ_OK, emq_claim(&job, client, "q-1._Z", 1));
    assert_string_equal(emq_job_get_lease(job)->queue, "q-1._Z");
    emq_job_free(job);
}

/* Payloads of every size, of bytes of every value, come back as they were. */
static void payloads_are_opaque(void **state) {
    static const size_t sizes[] = {0,     1,     2,      15,      16383,       16384,
                                   16385, 65536, 999999, 1048576, LARGEST - 1, LARGEST};
    unsigned char *payload = malloc(LARGEST);
    (void)state;
    assert_non_null(payload);
    for (size_t i = 0; i < LARGEST; i++) {
        payload[i] = (unsigned char)(i < 256 ? i : random_below(256));
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = 1;
        enqueue(ID_A, payload, sizes[i], EMQ_OK);
        emq_job *job = claim();
        const char *got = emq_job_get_payload(job, &n);
        assert_int_equal(n, sizes[i]);
        assert_non_null(got);
        assert_int_equal(memcmp(got, payload, n), 0);
        assert_int_equal(got[n], '\0');
        EXPECT_CALL(EMQ_OK, emq_complete(client, emq_job_get_lease(job)));
        emq_job_free(job);
    }
    free(payload);
}

static void bytes_that_look_like_the_protocol_are_bytes(void **state) {
    static const char payload[] = "\r\n$-1\r\n*0\r\n-ERR no\r\n\0%s%n";
    size_t n = 0;
    (void)state;
    enqueue(ID_A, payload, sizeof(payload), EMQ_OK);
    emq_job *job = claim();
    assert_memory_equal(emq_job_get_payload(job, &n), payload, sizeof(payload));
    assert_int_equal(n, sizeof(payload));
    emq_job_free(job);
}

static void no_payload_is_told_from_an_empty_one(void **state) {
    size_t n = 1;
    (void)state;
    enqueue(ID_A, NULL, 0, EMQ_OK);
    emq_job *job = claim();
    assert_string_equal(emq_job_get_payload(job, &n), "");
    assert_int_equal(n, 0);
    emq_job_free(job);
    run(server.admin, "HDEL", ROW_A, "payload", NULL);
    run(server.admin, "ZADD", "emq:{q}:pending", "0", ID_A, NULL);
    job = claim();
    assert_null(emq_job_get_payload(job, &n));
    assert_int_equal(n, 0);
    assert_int_equal(emq_job_get_attempts(job), 2);
    emq_job_free(job);
}

static void somebody_else_has_claimed_since(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    emq_job *first = claim();
    /* the lease lapsed, and a sweep gave the job back */
    run(server.admin, "ZREM", "emq:{q}:active", ID_A, NULL);
    run(server.admin, "HSET", ROW_A, "state", "pending", NULL);
    run(server.admin, "ZADD", "emq:{q}:pending", "0", ID_A, NULL);
    emq_job *second = claim();
    assert_int_equal(emq_job_get_attempts(second), 2);
    EXPECT_CALL(EMQ_ESTALE, emq_complete(client, emq_job_get_lease(first)));
    EXPECT_SAYS(client, "EMQSTALE complete token mismatch");
    assert_int_equal(emq_err_class(EMQ_ESTALE), EMQ_CLASS_STALE);
    EXPECT_CALL(EMQ_OK, emq_complete(client, emq_job_get_lease(second)));
    assert_string_equal(emq_client_get_error(client), "");
    emq_job_free(first);
    emq_job_free(second);
}

static void a_lost_lease_is_stale(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    emq_job *job = claim();
    run(server.admin, "ZREM", "emq:{q}:active", ID_A, NULL);
    EXPECT_CALL(EMQ_ESTALE, emq_complete(client, emq_job_get_lease(job)));
    EXPECT_SAYS(client, "EMQSTALE complete lease lost");
    emq_job_free(job);
}

static void lane_and_flow_rows_are_refused(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    emq_job *job = claim();
    run(server.admin, "HSET", ROW_A, "group", "g", NULL);
    EXPECT_CALL(EMQ_ELANE, emq_complete(client, emq_job_get_lease(job)));
    EXPECT_SAYS(client, "EMQLANE");
    run(server.admin, "HDEL", ROW_A, "group", NULL);
    run(server.admin, "HSET", ROW_A, "parent", ID_B, NULL);
    EXPECT_CALL(EMQ_EFLOW, emq_complete(client, emq_job_get_lease(job)));
    EXPECT_SAYS(client, "EMQFLOW");
    run(server.admin, "HDEL", ROW_A, "parent", NULL);
    EXPECT_CALL(EMQ_OK, emq_complete(client, emq_job_get_lease(job)));
    emq_job_free(job);
}

static void a_paused_queue_is_empty(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    run(server.admin, "HSET", "emq:{q}:meta", "paused", "1", NULL);
    claim_nothing(EMQ_EMPTY);
    run(server.admin, "HDEL", "emq:{q}:meta", "paused", NULL);
    emq_job_free(claim());
}

static void the_servers_refusals_have_their_result(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    emq_job *job = claim();
    run(server.admin, "SET", "emq:{q}:pending", "no set", NULL);
    claim_nothing(EMQ_EWRONGTYPE);
    enqueue(ID_B, "p", 1, EMQ_EWRONGTYPE);
    run(server.admin, "DEL", "emq:{q}:pending", NULL);
    run(server.admin, "HSET", ROW_A, "attempts", "many", NULL);
    run(server.admin, "ZADD", "emq:{q}:pending", "0", ID_A, NULL);
    claim_nothing(EMQ_EVALUE);
    EXPECT_SAYS(client, "row attempts is not an integer");
    run(server.admin, "HSET", ROW_A, "attempts", "1", NULL);
    run(server.admin, "CONFIG", "SET", "maxmemory", "1", NULL);
    enqueue(ID_B, "p", 1, EMQ_EOOM);
    claim_nothing(EMQ_EOOM);
    EXPECT_CALL(EMQ_OK, emq_complete(client, emq_job_get_lease(job)));
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
    run(server.admin, "CONFIG", "SET", "min-replicas-to-write", "1", NULL);
    enqueue(ID_B, "p", 1, EMQ_ENOREPLICAS);
    run(server.admin, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
    run(server.admin, "DEL", "{emq}:version", NULL);
    enqueue(ID_B, "p", 1, EMQ_EFENCE_ABSENT);
    run(server.admin, "SET", "{emq}:version", "echomq:5.0.0", NULL);
    enqueue(ID_B, "p", 1, EMQ_EFENCE);
    EXPECT_SAYS(client, "EMQWIRE expected echomq:6.0.0 found echomq:5.0.0");
    run(server.admin, "SET", "{emq}:version", "echomq:6.0.0", NULL);
    assert_int_equal(emq_client_is_open(client), 1);
    enqueue(ID_B, "p", 1, EMQ_OK);
    emq_job_free(job);
}

static void a_right_that_is_missing_is_told(void **state) {
    (void)state;
    redisFree(server_connect_as(&server, "producer",
                                "+@emq ~emq:{q}:* %R~{emq}:version +get +client|setname"));
    emq_client_options options = options_for_server(&server);
    emq_id id = {{0}};
    options.username = "producer";
    options.password = "password";
    emq_client *producer = open_client(&options);
    EXPECT_RESULT(producer, emq_enqueue(&id, producer, "q", "p", 1), EMQ_OK);
    memset(&id, 0, sizeof(id));
    EXPECT_RESULT(producer, emq_enqueue(&id, producer, "other", "p", 1), EMQ_ENOPERM);
    EXPECT_SAYS(producer, "NOPERM");
    assert_int_equal(emq_client_is_open(producer), 1);
    emq_client_close(producer);
    run(server.admin, "ACL", "DELUSER", "producer", NULL);
}

static void a_busy_server_is_retryable(void **state) {
    (void)state;
    redisContext *control = server_connect(&server);
    run(server.admin, "CONFIG", "SET", "busy-reply-threshold", "1", NULL);
    redisContext *script = server_connect(&server);
    int sent = 0;
    assert_int_equal(redisAppendCommand(script, "EVAL %s 0", "while true do end"), REDIS_OK);
    while (!sent) {
        assert_int_equal(redisBufferWrite(script, &sent), REDIS_OK);
    }
    redisReply *reply = call(control, "PING", NULL);
    while (reply->type != REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        reply = call(control, "PING", NULL);
    }
    freeReplyObject(reply);
    claim_nothing(EMQ_EBUSY);
    emq_client_options options = options_for_server(&server);
    EXPECT_OPEN(&options, EMQ_EBUSY, "BUSY");
    run(control, "SCRIPT", "KILL", NULL);
    assert_int_equal(redisGetReply(script, (void **)&reply), REDIS_OK); /* it has ended */
    freeReplyObject(reply);
    redisFree(script);
    claim_nothing(EMQ_EMPTY);
    run(server.admin, "CONFIG", "SET", "busy-reply-threshold", "5000", NULL);
    redisFree(control);
}

/* What the server has executed so far of the EMQ commands. */
static char *get_calls(void) {
    redisReply *reply = call(server.admin, "INFO", "commandstats", NULL);
    char *calls = NULL;
    char *rest = NULL;
    for (char *line = strtok_r(reply->str, "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        if (strncasecmp(line, "cmdstat_emq", 11) == 0) {
            append_text(&calls, line);
        }
    }
    freeReplyObject(reply);
    assert_non_null(calls); /* the connect path has asked for the version */
    return calls;
}

static void wrong_calls_never_reach_the_server(void **state) {
    static const char *const queues[] = {"", "emq", "a b", "{q}", "q:"};
    static const char *const ids[] = {"JOB", "job0KHTOWnGLuC", "JOB0KHTOWnGLu*", "JOBzzzzzzzzzzz",
                                      "USR0KHTOWnGLuC"};
    static const int results[] = {EMQ_EID_LENGTH, EMQ_EID_NAMESPACE, EMQ_EID_CHARSET, EMQ_EID_RANGE,
                                  EMQ_EKIND};
    emq_job *job = NULL;
    (void)state;
    char *before = get_calls();
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        emq_id id = {{0}};
        EXPECT_CALL(EMQ_EQUEUE, emq_enqueue(&id, client, queues[i], "p", 1));
        assert_string_equal(id.text, ""); /* nothing is minted for a call that can't be made */
        EXPECT_CALL(EMQ_EQUEUE, emq_claim(&job, client, queues[i], 1));
        emq_lease lease = {"", {ID_A}, 1};
        (void)snprintf(lease.queue, sizeof(lease.queue), "%s", queues[i]);
        EXPECT_CALL(EMQ_EQUEUE, emq_complete(client, &lease));
    }
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        emq_lease lease = {"q", {{0}}, 1};
        memcpy(lease.id.text, ids[i], strlen(ids[i]));
        EXPECT_CALL(results[i], emq_enqueue(&lease.id, client, "q", "p", 1));
        EXPECT_CALL(results[i], emq_complete(client, &lease));
    }
    emq_id id = {{0}};
    EXPECT_CALL(EMQ_EINVAL, emq_claim(&job, client, "q", 0));
    EXPECT_CALL(EMQ_EINVAL, emq_claim(&job, client, NULL, 1));
    EXPECT_CALL(EMQ_EINVAL, emq_enqueue(&id, client, NULL, "p", 1));
    EXPECT_CALL(EMQ_EINVAL, emq_enqueue(&id, client, "q", NULL, 1));
    EXPECT_CALL(EMQ_EINVAL, emq_complete(client, NULL));
    assert_int_equal(emq_enqueue(NULL, client, "q", "p", 1), EMQ_EINVAL);
    assert_int_equal(emq_claim(NULL, client, "q", 1), EMQ_EINVAL);
    char *after = get_calls();
    assert_string_equal(after, before);
    free(before);
    free(after);
}

static void a_payload_too_big_never_reaches_the_server(void **state) {
    char *payload = calloc(1, LARGEST + 1);
    emq_id id = {{0}};
    (void)state;
    char *before = get_calls();
    EXPECT_CALL(EMQ_ETOOBIG, emq_enqueue(&id, client, "q", payload, LARGEST + 1));
    assert_string_equal(id.text, "");
    char *after = get_calls();
    assert_string_equal(after, before);
    emq_client_options options = options_for_server(&server);
    options.max_payload = 3;
    emq_client *small = open_client(&options);
    EXPECT_RESULT(small, emq_enqueue(&id, small, "q", payload, 4), EMQ_ETOOBIG);
    EXPECT_RESULT(small, emq_enqueue(&id, small, "q", payload, 3), EMQ_OK);
    emq_client_close(small);
    free(before);
    free(after);
    free(payload);
}

/* The server ends the connection of a payload that is more than it takes. */
static void a_payload_that_the_server_refuses(void **state) {
    char *payload = calloc(1, LARGEST);
    emq_id id = {{0}};
    (void)state;
    run(server.admin, "CONFIG", "SET", "proto-max-bulk-len", "1mb", NULL);
    int result = emq_enqueue(&id, client, "q", payload, LARGEST);
    /* its words arrive, or the end of the connection overtakes them */
    assert_true(result == EMQ_ESERVER || result == EMQ_ECONNECT || result == EMQ_ECONNLOST);
    assert_int_equal(emq_client_is_open(client), 0);
    run(server.admin, "CONFIG", "SET", "proto-max-bulk-len", "512mb", NULL);
    EXPECT_CALL(EMQ_OK, emq_client_reconnect(client));
    EXPECT_CALL(EMQ_OK, emq_enqueue(&id, client, "q", payload, LARGEST));
    free(payload);
}

static void a_held_write_times_out(void **state) {
    emq_id id = {{0}};
    emq_id again;
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.command_timeout_ms = SHORT_MS;
    emq_client *hasty = open_client(&options);
    run(server.admin, "CLIENT", "PAUSE", "1000000", "WRITE", NULL);
    EXPECT_RESULT(hasty, emq_enqueue(&id, hasty, "q", "p", 1), EMQ_ETIMEOUT);
    assert_int_equal(emq_err_class(EMQ_ETIMEOUT), EMQ_CLASS_UNKNOWN);
    assert_int_equal(emq_id_valid(&id), 1); /* to repeat with */
    again = id;
    EXPECT_RESULT(hasty, emq_enqueue(&id, hasty, "q", "p", 1), EMQ_ECLOSED);
    assert_memory_equal(&id, &again, sizeof(id));
    run(server.admin, "CLIENT", "UNPAUSE", NULL);
    emq_client_close(hasty);
    /* the server gave the held command up with its connection, or ran it: a repeat is safe */
    int result = emq_enqueue(&id, client, "q", "p", 1);
    assert_true(result == EMQ_OK || result == EMQ_DUPLICATE);
    emq_job_free(claim());
    claim_nothing(EMQ_EMPTY);
}

static void a_killed_connection_is_noticed(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    run(server.admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    claim_nothing(EMQ_ECONNECT);
    assert_int_equal(emq_err_class(EMQ_ECONNECT), EMQ_CLASS_RETRYABLE);
    assert_int_equal(emq_client_is_open(client), 0);
    claim_nothing(EMQ_ECLOSED);
    EXPECT_CALL(EMQ_OK, emq_client_reconnect(client));
    emq_job *job = claim();
    assert_int_equal(emq_job_get_attempts(job), 1); /* nothing was claimed in between */
    emq_job_free(job);
}

static void a_restarted_server_is_found_again(void **state) {
    (void)state;
    enqueue(ID_A, "p", 1, EMQ_OK);
    emq_job *job = claim();
    server_restart(&server);
    EXPECT_CALL(EMQ_ECONNECT, emq_complete(client, emq_job_get_lease(job)));
    EXPECT_CALL(EMQ_ECLOSED, emq_complete(client, emq_job_get_lease(job)));
    EXPECT_CALL(EMQ_OK, emq_client_reconnect(client));
    EXPECT_CALL(EMQ_OK, emq_complete(client, emq_job_get_lease(job)));
    emq_job_free(job);
}

/* Producers and consumers in threads of their own: each job is completed exactly once. */
#define THREADS 4
#define JOBS_EACH 200

static void *produce_and_consume(void *data) {
    int *completed = data;
    emq_client *own = NULL;
    emq_client_options options = options_for_server(&server);
    if (emq_client_open(&own, &options) != EMQ_OK) {
        return NULL;
    }
    for (int i = 0; i < JOBS_EACH; i++) {
        emq_id id = {{0}};
        emq_job *job = NULL;
        if (emq_enqueue(&id, own, "q", &i, sizeof(i)) != EMQ_OK ||
            emq_claim(&job, own, "q", 60000) != EMQ_OK ||
            emq_complete(own, emq_job_get_lease(job)) != EMQ_OK) {
            emq_job_free(job);
            break;
        }
        emq_job_free(job);
        (*completed)++;
    }
    emq_client_close(own);
    return NULL;
}

static void threads_have_clients_of_their_own(void **state) {
    pthread_t threads[THREADS];
    int completed[THREADS] = {0};
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, produce_and_consume, &completed[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(completed[i], JOBS_EACH);
    }
    assert_int_equal(get_integer(server.admin, "DBSIZE", NULL), 2);
    char count[32];
    assert_string_equal(get_text(count, sizeof(count), server.admin, "HGET",
                                 "emq:{q}:metrics:completed", "count", NULL),
                        "800");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_on_clean_server, close_client)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_job_goes_all_the_way),
        TEST(a_lease_settles_elsewhere),
        TEST(a_repeat_is_a_duplicate),
        TEST(jobs_come_in_the_order_of_their_ids),
        TEST(queues_are_apart),
        TEST(payloads_are_opaque),
        TEST(bytes_that_look_like_the_protocol_are_bytes),
        TEST(no_payload_is_told_from_an_empty_one),
        TEST(somebody_else_has_claimed_since),
        TEST(a_lost_lease_is_stale),
        TEST(lane_and_flow_rows_are_refused),
        TEST(a_paused_queue_is_empty),
        TEST(the_servers_refusals_have_their_result),
        TEST(a_right_that_is_missing_is_told),
        TEST(a_busy_server_is_retryable),
        TEST(wrong_calls_never_reach_the_server),
        TEST(a_payload_too_big_never_reaches_the_server),
        TEST(a_payload_that_the_server_refuses),
        TEST(a_held_write_times_out),
        TEST(a_killed_connection_is_noticed),
        TEST(a_restarted_server_is_found_again),
        TEST(threads_have_clients_of_their_own),
    };
    return RUN_SERVER_TESTS("verbs", tests, start_server, stop_server);
}
