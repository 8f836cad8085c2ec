/* SPDX-License-Identifier: Apache-2.0 */
/* Every verb through the asynchronous client: its results on a server, and what becomes of it when
 * the connection is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async.h"
#include "command.h"
#include "loop.h"
#include "server_fixture.h"

#define ID_A "JOB0KHTOWnGLuC"
#define ID_B "JOB0NgWEfAEJfs"
#define ROW_A "emq:{q}:job:" ID_A
#define ANSWER_ID "$14\r\n" ID_A "\r\n"
#define ANSWER_JOB "*3\r\n" ANSWER_ID "$7\r\npayload\r\n:1\r\n"
#define MEMBERS 3

/* How a request ended, and all that can be read from it. */
typedef struct answer {
    outcome out;
    int64_t number;
    emq_jobs *jobs;
    emq_ids *recovered;
    emq_ids *dead;
    char entry[EMQ_ENTRY_MAX + 1];
    int members[MEMBERS + 1]; /* and one outside of the batches */
    uint32_t offsets[MEMBERS];
} answer;

static test_loop t; /* on the server */
static answer last;

static const emq_id id_a = {ID_A};
static const emq_id both[2] = {{ID_A}, {ID_B}};
static const emq_bytes payloads[2] = {{"one", 3}, {"two", 3}};
static const emq_lease lease_a = {"q", {ID_A}, 1};
static const emq_lease leases[2] = {{"q", {ID_A}, 1}, {"q", {ID_B}, 1}};
static const emq_when now = {EMQ_IN, 0};
static const emq_when later = {EMQ_IN, 3600000};
static const emq_bytes event = {"done", 4};
static const emq_bytes event_job = {ID_A, EMQ_ID_LEN};
static const emq_bytes bitmap = {"bits", 4};
static const uint32_t offsets[2] = {3, 4294967295};
static const emq_field field = {{"f", 1}, {"v", 1}};

/* There are as many as the number says, and none for other requests. */
static void note_offsets(answer *a, const emq_request *request) {
    uint32_t offset = 0;
    size_t found = 0;
    while (emq_request_get_offset(&offset, request, found) == EMQ_OK) {
        assert_true(found < MEMBERS);
        a->offsets[found++] = offset;
    }
    assert_true(found == 0 || found == (size_t)emq_request_get_number(request));
}

static void note_answer(emq_request *request, int result, void *user) {
    answer *a = user;
    const emq_jobs *jobs = emq_request_get_jobs(request);
    int has_jobs = emq_request_take_jobs(&a->jobs, request) == EMQ_OK;
    assert_ptr_equal(a->jobs, jobs);
    assert_int_equal(has_jobs, jobs != NULL);
    int has_recovered = emq_request_take_recovered(&a->recovered, request) == EMQ_OK;
    int has_dead = emq_request_take_dead(&a->dead, request) == EMQ_OK;
    assert_int_equal(has_recovered, a->recovered != NULL);
    assert_int_equal(has_dead, has_recovered);
    emq_jobs *no_jobs = NULL;
    emq_ids *no_ids = NULL;
    assert_int_equal(emq_request_take_jobs(&no_jobs, request), EMQ_EMPTY);
    assert_int_equal(emq_request_take_recovered(&no_ids, request), EMQ_EMPTY);
    assert_int_equal(emq_request_take_dead(&no_ids, request), EMQ_EMPTY);
    a->number = emq_request_get_number(request);
    if (emq_request_get_entry(request) != NULL) {
        (void)snprintf(a->entry, sizeof(a->entry), "%s", emq_request_get_entry(request));
    }
    for (size_t i = 0; i <= MEMBERS; i++) {
        a->members[i] = emq_request_get_member(request, i);
    }
    note_offsets(a, request);
    assert_null(emq_request_get_reply(request));
    note_outcome(request, result, &a->out);
}

static void clear_answer(answer *a) {
    outcome_clear(&a->out);
    emq_jobs_free(a->jobs);
    emq_ids_free(a->recovered);
    emq_ids_free(a->dead);
    *a = (answer){.number = 0};
}

static void submit(test_loop *loop, emq_request *request, answer *a) {
    assert_int_equal(emq_async_submit(loop->client, request, note_answer, a), EMQ_OK);
}

static void run_request(const char *file, int line, emq_request *request, int want) {
    clear_answer(&last);
    submit(&t, request, &last);
    loop_until_ended(&t, &last.out, 1);
    expect_outcome(file, line, &last.out, want);
}

/* The call builds `request`, which ends like this; the rest of what it answered is in `last`. */
#define EXPECT_ANSWER(want, call)                                                                  \
    do {                                                                                           \
        emq_request *request = NULL;                                                               \
        assert_int_equal((call), EMQ_OK);                                                          \
        run_request(__FILE__, __LINE__, request, (want));                                          \
    } while (0)

#define EXPECT_SAYS_LAST(part) assert_non_null(strstr(last.out.error, (part)))

static int open_loop(void **state) {
    (void)clean_server(state);
    emq_client_options options = options_for_server(&server);
    loop_open(&t, &options, NULL);
    return 0;
}

static int close_loop(void **state) {
    (void)state;
    clear_answer(&last);
    loop_finish(&t);
    return 0;
}

static long long count(const char *set) {
    return get_integer(server.admin, "ZCARD", set, NULL);
}

static emq_lease claim(void) {
    EXPECT_ANSWER(EMQ_OK, emq_request_claim(&request, "q", 60000));
    return *emq_job_get_lease(last.out.job);
}

/* Admits job A and claims it. */
static emq_lease make_lease(void) {
    EXPECT_ANSWER(EMQ_OK, emq_request_enqueue(&request, &id_a, "q", "p", 1));
    return claim();
}

/* On a server. */

static void scheduled_jobs_are_promoted(void **state) {
    (void)state;
    EXPECT_ANSWER(EMQ_OK, emq_request_schedule(&request, NULL, "q", "p", 1, later));
    emq_id id = last.out.id;
    assert_int_equal(emq_id_valid(&id), 1);
    EXPECT_ANSWER(EMQ_OK, emq_request_schedule(&request, &id_a, "q", "", 0, now));
    assert_string_equal(last.out.id.text, ID_A);
    EXPECT_ANSWER(EMQ_DUPLICATE, emq_request_schedule(&request, &id_a, "q", "p", 1, now));
    EXPECT_ANSWER(EMQ_OK, emq_request_promote(&request, "q", 10));
    assert_int_equal(last.number, 1);
    assert_int_equal(last.members[0], EMQ_EINVAL); /* no batch */
    EXPECT_ANSWER(EMQ_OK, emq_request_reschedule(&request, "q", &id, (emq_when){EMQ_AT, 1}));
    EXPECT_ANSWER(EMQ_ESTATE, emq_request_reschedule(&request, "q", &id_a, now));
    EXPECT_ANSWER(EMQ_OK, emq_request_promote(&request, "q", 10));
    assert_int_equal(last.number, 1);
    EXPECT_ANSWER(EMQ_OK, emq_request_promote(&request, "q", 10));
    assert_int_equal(last.number, 0);
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_ANSWER(EMQ_GONE, emq_request_reschedule(&request, "q", &id_a, now));
}

/* A fresh id that is in use is somebody else's: another one is sent, with its payload and time. */
static void a_scheduled_job_is_never_taken_for_a_repeat(void **state) {
    emq_request *mine = NULL;
    char row[64];
    char text[16];
    (void)state;
    assert_int_equal(emq_request_schedule(&mine, NULL, "q", "mine", 4, (emq_when){EMQ_AT, 77}),
                     EMQ_OK);
    emq_id taken = *emq_request_get_id(mine);
    EXPECT_ANSWER(EMQ_OK, emq_request_enqueue(&request, &taken, "q", "theirs", 6));
    run_request(__FILE__, __LINE__, mine, EMQ_OK);
    assert_string_not_equal(last.out.id.text, taken.text);
    (void)snprintf(row, sizeof(row), "emq:{q}:job:%s", last.out.id.text);
    get_text(text, sizeof(text), server.admin, "HGET", row, "payload", NULL);
    assert_string_equal(text, "mine");
    get_text(text, sizeof(text), server.admin, "ZSCORE", "emq:{q}:schedule", last.out.id.text,
             NULL);
    assert_string_equal(text, "77");
}

static void a_lease_is_prolonged(void **state) {
    (void)state;
    emq_lease lease = make_lease();
    EXPECT_ANSWER(EMQ_OK, emq_request_extend(&request, &lease, 2000000000));
    assert_true(
        get_integer(server.admin, "ZCOUNT", "emq:{q}:active", "1000000000000", "+inf", NULL) == 1);
    lease.token++;
    EXPECT_ANSWER(EMQ_ESTALE, emq_request_extend(&request, &lease, 1));
    EXPECT_SAYS_LAST("EMQSTALE extend token mismatch");
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_ANSWER(EMQ_GONE, emq_request_extend(&request, &lease, 1));
}

static void a_failed_job_is_tried_again_and_dies(void **state) {
    (void)state;
    emq_lease lease = make_lease();
    EXPECT_ANSWER(EMQ_OK, emq_request_fail(&request, &lease, 0, 2, "first \0 error", 13));
    EXPECT_ANSWER(EMQ_ESTALE, emq_request_fail(&request, &lease, 0, 2, NULL, 0));
    EXPECT_ANSWER(EMQ_OK, emq_request_promote(&request, "q", 1));
    lease = claim();
    EXPECT_ANSWER(EMQ_DEAD, emq_request_fail(&request, &lease, 0, 2, NULL, 0));
    assert_int_equal(count("emq:{q}:dead"), 1);
    EXPECT_ANSWER(EMQ_OK, emq_request_reprocess(&request, "q", &id_a));
    EXPECT_ANSWER(EMQ_ESTATE, emq_request_reprocess(&request, "q", &id_a));
    lease = claim();
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_ANSWER(EMQ_EJOBGONE, emq_request_fail(&request, &lease, 0, 2, NULL, 0));
    EXPECT_ANSWER(EMQ_GONE, emq_request_reprocess(&request, "q", &id_a));
}

static void a_job_is_given_back(void **state) {
    (void)state;
    emq_lease lease = make_lease();
    EXPECT_ANSWER(EMQ_OK, emq_request_requeue(&request, &lease));
    EXPECT_ANSWER(EMQ_ESTALE, emq_request_requeue(&request, &lease));
    lease = claim();
    EXPECT_ANSWER(EMQ_OK, emq_request_delay(&request, &lease, later));
    EXPECT_ANSWER(EMQ_ESTALE, emq_request_delay(&request, &lease, later));
    assert_int_equal(count("emq:{q}:schedule"), 1);
    run(server.admin, "DEL", ROW_A, NULL);
    EXPECT_ANSWER(EMQ_GONE, emq_request_requeue(&request, &lease));
    EXPECT_ANSWER(EMQ_EJOBGONE, emq_request_delay(&request, &lease, now));
}

static void lapsed_leases_are_swept(void **state) {
    (void)state;
    EXPECT_ANSWER(EMQ_OK, emq_request_stalled_check(&request, "q", 2, 10));
    assert_non_null(last.recovered);
    assert_int_equal(emq_ids_get_count(last.recovered) + emq_ids_get_count(last.dead), 0);
    (void)make_lease();
    let_lapse(ID_A);
    EXPECT_ANSWER(EMQ_OK, emq_request_stalled_check(&request, "q", 2, 10));
    assert_int_equal(emq_ids_get_count(last.recovered), 1);
    assert_string_equal(emq_ids_get_text(last.recovered, 0, NULL), ID_A);
    (void)claim();
    let_lapse(ID_A);
    EXPECT_ANSWER(EMQ_OK, emq_request_stalled_check(&request, "q", 2, 10));
    assert_int_equal(emq_ids_get_count(last.recovered), 0);
    assert_string_equal(emq_ids_get_text(last.dead, 0, NULL), ID_A);
}

static void a_batch_goes_all_the_way(void **state) {
    static const emq_id ids[MEMBERS] = {{ID_A}, {ID_B}, {ID_A}};
    static const emq_bytes three[MEMBERS] = {{"one", 3}, {"two", 3}, {"", 0}};
    emq_lease held[MEMBERS];
    (void)state;
    EXPECT_ANSWER(EMQ_EMPTY, emq_request_claims(&request, "q", 60000, 10, 0));
    assert_null(last.jobs);
    EXPECT_ANSWER(EMQ_OK, emq_request_enqueues(&request, ids, "q", three, MEMBERS));
    assert_int_equal(last.members[0], EMQ_OK);
    assert_int_equal(last.members[1], EMQ_OK);
    assert_int_equal(last.members[2], EMQ_DUPLICATE);
    assert_int_equal(last.members[MEMBERS], EMQ_EINVAL);
    EXPECT_ANSWER(EMQ_OK, emq_request_claims(&request, "q", 60000, 10, 0));
    assert_int_equal(emq_jobs_get_count(last.jobs), 2);
    for (size_t i = 0; i < 2; i++) {
        size_t n = 0;
        held[i] = *emq_job_get_lease(emq_jobs_get_job(last.jobs, i));
        assert_string_equal(held[i].queue, "q");
        assert_memory_equal(emq_job_get_payload(emq_jobs_get_job(last.jobs, i), &n), three[i].data,
                            3);
        assert_int_equal(n, 3);
    }
    held[2] = held[0];
    held[2].token++;
    EXPECT_ANSWER(EMQ_OK, emq_request_extends(&request, held + 1, 2, 60000));
    assert_int_equal(last.members[0], EMQ_OK);
    assert_int_equal(last.members[1], EMQ_ESTALE);
    assert_int_equal(last.members[2], EMQ_EINVAL);
    EXPECT_ANSWER(EMQ_OK, emq_request_completes(&request, held + 1, 2));
    assert_int_equal(last.members[0], EMQ_OK);
    assert_int_equal(last.members[1], EMQ_ESTALE);
    EXPECT_ANSWER(EMQ_OK, emq_request_complete(&request, &held[0]));
    EXPECT_ANSWER(EMQ_OK, emq_request_completes(&request, held, 2));
    assert_int_equal(last.members[0], EMQ_GONE);
    assert_int_equal(last.members[1], EMQ_GONE);
}

/* The members of a batch that was refused have its result. */
static void a_refused_batch_has_one_result(void **state) {
    (void)state;
    (void)make_lease();
    run(server.admin, "DEL", "{emq}:version", NULL);
    EXPECT_ANSWER(EMQ_EFENCE_ABSENT, emq_request_enqueues(&request, both, "q", payloads, 2));
    assert_int_equal(last.members[1], EMQ_EFENCE_ABSENT);
    EXPECT_ANSWER(EMQ_EFENCE_ABSENT, emq_request_extends(&request, leases, 2, 1));
    assert_int_equal(last.members[0], EMQ_EFENCE_ABSENT);
    EXPECT_ANSWER(EMQ_EFENCE_ABSENT, emq_request_completes(&request, leases, 2));
    assert_int_equal(last.members[1], EMQ_EFENCE_ABSENT);
    assert_int_equal(last.members[2], EMQ_EINVAL);
}

static void a_job_with_a_malformed_id_is_named(void **state) {
    (void)state;
    run(server.admin, "EMQ.ENQUEUE", "2", "emq:{q}:job:JOBx", "emq:{q}:pending", "JOBx", "p", NULL);
    EXPECT_ANSWER(EMQ_EBADJOB, emq_request_claims(&request, "q", 60000, 10, 0));
    EXPECT_SAYS_LAST("JOBx");
    assert_null(last.jobs);
    assert_int_equal(emq_async_get_state(t.client), EMQ_ASYNC_OPEN);
}

static void a_queue_is_paused_and_resumed(void **state) {
    (void)state;
    EXPECT_ANSWER(EMQ_OK, emq_request_enqueue(&request, &id_a, "q", "p", 1));
    EXPECT_ANSWER(EMQ_OK, emq_request_pause(&request, "q"));
    EXPECT_ANSWER(EMQ_OK, emq_request_pause(&request, "q"));
    EXPECT_ANSWER(EMQ_EMPTY, emq_request_claim(&request, "q", 1));
    EXPECT_ANSWER(EMQ_EMPTY, emq_request_claims(&request, "q", 1, 1, 0));
    EXPECT_ANSWER(EMQ_OK, emq_request_resume(&request, "q"));
    EXPECT_ANSWER(EMQ_OK, emq_request_resume(&request, "q"));
    (void)claim();
}

static void bits_are_set_read_and_cleared(void **state) {
    const uint32_t wanted[3] = {2, 3, 4};
    (void)state;
    EXPECT_ANSWER(EMQ_OK, emq_request_tra_bitset(&request, bitmap, wanted, 2));
    assert_int_equal(last.number, 2);
    EXPECT_ANSWER(EMQ_OK, emq_request_tra_bitclear(&request, bitmap, wanted, 1));
    assert_int_equal(last.number, 1);
    EXPECT_ANSWER(EMQ_OK, emq_request_tra_bitset(&request, bitmap, wanted + 1, 2));
    assert_int_equal(last.number, 1);
    EXPECT_ANSWER(EMQ_OK, emq_request_tra_bitget(&request, bitmap, wanted, 3));
    assert_int_equal(last.members[0], 0);
    assert_int_equal(last.members[1], 1);
    assert_int_equal(last.members[2], 1);
    assert_int_equal(last.members[3], EMQ_EINVAL);
    EXPECT_ANSWER(EMQ_OK, emq_request_tra_bitscan(&request, bitmap, 0, UINT32_MAX, 10));
    assert_int_equal(last.number, 2);
    assert_int_equal(last.offsets[0], 3);
    assert_int_equal(last.offsets[1], 4);
    EXPECT_ANSWER(EMQ_OK, emq_request_tra_bitscan(&request, bitmap, 5, UINT32_MAX, 10));
    assert_int_equal(last.number, 0);
    run(server.admin, "DEL", "bits", NULL);
    run(server.admin, "LPUSH", "bits", "x", NULL);
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_tra_bitset(&request, bitmap, offsets, 1));
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_tra_bitget(&request, bitmap, offsets, 1));
    assert_int_equal(last.members[0], EMQ_EWRONGTYPE);
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_tra_bitscan(&request, bitmap, 0, 1, 1));
}

/* What is stored under another type of key is refused in the server's words. */
static void a_wrong_type_is_refused(void **state) {
    (void)state;
    run(server.admin, "SET", "emq:{q}:pending", "x", NULL);
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_claims(&request, "q", 1, 1, 0));
    EXPECT_SAYS_LAST("WRONGTYPE");
    run(server.admin, "SET", "emq:{q}:meta", "x", NULL);
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_pause(&request, "q"));
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_resume(&request, "q"));
    run(server.admin, "SET", "emq:{q}:schedule", "x", NULL);
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_promote(&request, "q", 1));
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_schedule(&request, NULL, "q", "p", 1, now));
    run(server.admin, "SET", "emq:{q}:active", "x", NULL);
    EXPECT_ANSWER(EMQ_EWRONGTYPE, emq_request_stalled_check(&request, "q", 1, 1));
    assert_null(last.recovered);
}

static void records_are_appended(void **state) {
    static const emq_id older = {"EVT00000000001"};
    char entry[EMQ_ENTRY_MAX + 1];
    (void)state;
    EXPECT_ANSWER(EMQ_OK, emq_request_append(&request, NULL, "q", "s", &field, 1));
    assert_memory_equal(last.out.id.text, "EVT", 3);
    assert_non_null(strchr(last.entry, '-'));
    emq_id id = last.out.id;
    (void)snprintf(entry, sizeof(entry), "%s", last.entry);
    EXPECT_ANSWER(EMQ_EORDER, emq_request_append(&request, &id, "q", "s", NULL, 0));
    assert_string_equal(last.entry, "");
    EXPECT_ANSWER(EMQ_EORDER, emq_request_append(&request, &older, "q", "s", NULL, 0));
    assert_int_equal(get_integer(server.admin, "XLEN", "emq:{q}:stream:s", NULL), 1);
    EXPECT_ANSWER(EMQ_OK, emq_request_failures_incr(&request, "q", "s", "g", entry));
    EXPECT_ANSWER(EMQ_OK, emq_request_failures_incr(&request, "q", "s", "g", entry));
    assert_int_equal(last.number, 2);
    EXPECT_ANSWER(EMQ_EVALUE, emq_request_failures_incr(&request, "q", "s", "g", "1"));
    assert_int_equal(last.number, 0);
}

static void messages_are_published(void **state) {
    const emq_field taken = {{"seq", 3}, {"v", 1}};
    (void)state;
    redisContext *listener = server_connect(&server);
    freeReplyObject(call(listener, "SUBSCRIBE", "emq:{q}:events", NULL));
    EXPECT_ANSWER(EMQ_OK, emq_request_publish(&request, "q", event, event_job, &field, 1));
    assert_int_equal(last.number, 1);
    redisReply *message = NULL;
    assert_int_equal(redisGetReply(listener, (void **)&message), REDIS_OK);
    assert_string_equal(message->element[2]->str,
                        "{\"event\":\"done\",\"job\":\"" ID_A "\",\"seq\":1,\"f\":\"v\"}");
    freeReplyObject(message);
    redisFree(listener);
    EXPECT_ANSWER(EMQ_EVALUE, emq_request_publish(&request, "q", event, event_job, &taken, 1));
}

/* A claim that waits. */

/* On a client of its own, whose deadlines are shorter than the wait. */
static void start_waiting(test_loop *own, answer *a) {
    emq_client_options options = options_for_server(&server);
    emq_request *request = NULL;
    options.command_timeout_ms = SHORT_MS;
    options.client_name = "waits";
    loop_open(own, &options, NULL);
    assert_int_equal(emq_request_claims(&request, "q", 60000, 5, 600000), EMQ_OK);
    emq_request_set_timeout(request, 1);
    submit(own, request, a);
    assert_true(emq_deadline_left_ms(request->deadline) > 600000);
    loop_until(own, a_claim_waits, NULL);
}

static void a_claim_waits_for_work(void **state) {
    test_loop own;
    answer a = {.number = 0};
    emq_request *second = NULL;
    (void)state;
    start_waiting(&own, &a);
    EXPECT_ANSWER(EMQ_OK, emq_request_enqueue(&request, &id_a, "q", "p", 1));
    loop_until_ended(&own, &a.out, 1);
    EXPECT_OUTCOME(&a.out, EMQ_OK);
    assert_int_equal(emq_jobs_get_count(a.jobs), 1);
    assert_int_equal(emq_jobs_get_malformed(a.jobs), 0);
    clear_answer(&a);
    assert_int_equal(emq_request_claims(&second, "q", 1, 1, 1), EMQ_OK);
    submit(&own, second, &a);
    loop_until_ended(&own, &a.out, 1);
    EXPECT_OUTCOME(&a.out, EMQ_EMPTY);
    loop_finish(&own);
}

static void a_wait_is_ended_by_the_server(void **state) {
    test_loop own;
    answer a = {.number = 0};
    char list[4096];
    char id[32];
    (void)state;
    start_waiting(&own, &a);
    const char *found =
        strstr(get_text(list, sizeof(list), server.admin, "CLIENT", "LIST", NULL), " name=waits");
    assert_non_null(found);
    while (found > list && found[-1] != '\n') {
        found--;
    }
    assert_int_equal(sscanf(found, "id=%31[0-9]", id), 1);
    run(server.admin, "CLIENT", "UNBLOCK", id, "ERROR", NULL);
    loop_until_ended(&own, &a.out, 1);
    EXPECT_OUTCOME(&a.out, EMQ_EUNBLOCKED);
    assert_null(a.jobs);
    clear_answer(&a);
    loop_finish(&own);
}

/* Wrong calls. */

#define EXPECT_REFUSED(want, call)                                                                 \
    do {                                                                                           \
        emq_request *request = (emq_request *)&server;                                             \
        assert_int_equal((call), (want));                                                          \
        assert_null(request);                                                                      \
    } while (0)

static void wrong_admissions_and_claims_are_refused(void **state) {
    const emq_when never = {EMQ_IN, -1};
    const emq_bytes missing = {NULL, 1};
    const emq_id events[1] = {{"EVT0KHTOWnGLuC"}};
    const emq_id zeroed[1] = {{{0}}};
    (void)state;
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_schedule(&request, NULL, "q", "p", 1, never));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_schedule(&request, NULL, NULL, "p", 1, now));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_schedule(&request, NULL, "q", NULL, 1, now));
    EXPECT_REFUSED(EMQ_EQUEUE, emq_request_schedule(&request, NULL, "a b", "p", 1, now));
    EXPECT_REFUSED(EMQ_EKIND, emq_request_schedule(&request, events, "q", "p", 1, now));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_enqueues(&request, both, "q", &missing, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_enqueues(&request, both, "q", payloads, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_enqueues(&request, both, "q", payloads, 1001));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_enqueues(&request, NULL, "q", payloads, 2));
    EXPECT_REFUSED(EMQ_EKIND, emq_request_enqueues(&request, events, "q", payloads, 1));
    emq_request *unexpected = NULL;
    assert_int_not_equal(emq_request_enqueues(&unexpected, zeroed, "q", payloads, 1), EMQ_OK);
    assert_null(unexpected); /* nothing is minted for a batch */
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_claim(&request, "q", 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_claims(&request, "q", 0, 1, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_claims(&request, "q", 1, 0, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_claims(&request, "q", 1, 1001, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_claims(&request, "q", 1, 1, 3600001));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_claims(&request, NULL, 1, 1, 0));
    EXPECT_REFUSED(EMQ_EQUEUE, emq_request_claims(&request, "a b", 1, 1, 0));
}

static void wrong_leases_are_refused(void **state) {
    emq_lease two_queues[2] = {lease_a, lease_a};
    emq_lease damaged = lease_a;
    (void)state;
    two_queues[1].queue[0] = 'r';
    damaged.id.text[5] = '!';
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_complete(&request, NULL));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_completes(&request, NULL, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_completes(&request, two_queues, 2));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_extend(&request, NULL, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_extend(&request, &lease_a, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_extends(&request, two_queues, 2, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_extends(&request, leases, 0, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_fail(&request, &lease_a, -1, 1, NULL, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_fail(&request, &lease_a, 0, 0, NULL, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_fail(&request, &lease_a, 0, 1, NULL, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_delay(&request, &lease_a, (emq_when){EMQ_IN, -1}));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_requeue(&request, NULL));
    EXPECT_REFUSED(emq_id_parse(NULL, damaged.id.text, EMQ_ID_LEN),
                   emq_request_requeue(&request, &damaged));
}

static void other_wrong_calls_are_refused(void **state) {
    const emq_bytes missing = {NULL, 1};
    (void)state;
    EXPECT_REFUSED(EMQ_EQUEUE, emq_request_promote(&request, "a b", 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_promote(&request, "q", 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_stalled_check(&request, "q", 0, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_stalled_check(&request, "q", 1, 10001));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_reschedule(&request, "q", NULL, now));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_reprocess(&request, "q", NULL));
    EXPECT_REFUSED(EMQ_EQUEUE, emq_request_pause(&request, ""));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_resume(&request, NULL));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_append(&request, NULL, "q", "a:b", NULL, 0));
    EXPECT_REFUSED(EMQ_EKIND, emq_request_append(&request, &id_a, "q", "s", NULL, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_append(&request, NULL, "q", "s", NULL, 1));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_publish(&request, "q", missing, event_job, NULL, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_failures_incr(&request, "q", "s", "a:b", "1-1"));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_tra_bitset(&request, missing, offsets, 2));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_tra_bitclear(&request, bitmap, offsets, 0));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_tra_bitget(&request, bitmap, NULL, 2));
    EXPECT_REFUSED(EMQ_EINVAL, emq_request_tra_bitscan(&request, bitmap, 0, 1, 0));
    assert_int_equal(emq_request_schedule(NULL, NULL, "q", "p", 1, now), EMQ_EINVAL);
    assert_int_equal(emq_request_claims(NULL, "q", 1, 1, 0), EMQ_EINVAL);
    assert_int_equal(emq_request_extends(NULL, leases, 2, 1), EMQ_EINVAL);
    assert_int_equal(emq_request_append(NULL, NULL, "q", "s", NULL, 0), EMQ_EINVAL);
    assert_int_equal(emq_request_pause(NULL, "q"), EMQ_EINVAL);
    assert_int_equal(emq_request_tra_bitscan(NULL, bitmap, 0, 1, 1), EMQ_EINVAL);
}

/* What was not answered has nothing to read, and nobody is not asked. */
static void there_is_nothing_to_read_before_the_answer(void **state) {
    emq_request *request = NULL;
    emq_jobs *jobs = NULL;
    emq_ids *ids = NULL;
    (void)state;
    assert_int_equal(emq_request_enqueues(&request, both, "q", payloads, 2), EMQ_OK);
    assert_int_equal(emq_request_get_member(request, 0), EMQ_EINVAL);
    assert_int_equal(emq_request_get_number(request), 0);
    assert_null(emq_request_get_id(request));
    assert_null(emq_request_get_jobs(request));
    assert_int_equal(emq_request_take_jobs(&jobs, request), EMQ_EMPTY);
    assert_int_equal(emq_request_take_recovered(&ids, request), EMQ_EMPTY);
    assert_int_equal(emq_request_take_dead(NULL, request), EMQ_EINVAL);
    emq_request_free(request);
    assert_int_equal(emq_request_append(&request, NULL, "q", "s", NULL, 0), EMQ_OK);
    assert_null(emq_request_get_entry(request));
    assert_memory_equal(emq_request_get_id(request)->text, "EVT", 3);
    emq_request_free(request);
    assert_int_equal(emq_request_extends(&request, leases, 2, 1), EMQ_OK);
    assert_int_equal(emq_request_get_member(request, 1), EMQ_EINVAL);
    emq_request_free(request);
    uint32_t offset = 1;
    assert_int_equal(emq_request_tra_bitscan(&request, bitmap, 0, 1, 1), EMQ_OK);
    assert_int_equal(emq_request_get_offset(&offset, request, 0), EMQ_EINVAL);
    assert_int_equal(offset, 0);
    assert_int_equal(emq_request_get_offset(NULL, request, 0), EMQ_EINVAL);
    emq_request_free(request);
    assert_int_equal(emq_request_get_offset(&offset, NULL, 0), EMQ_EINVAL);
    assert_int_equal(emq_request_get_member(NULL, 0), EMQ_EINVAL);
    assert_int_equal(emq_request_get_number(NULL), 0);
    assert_null(emq_request_get_entry(NULL));
    assert_null(emq_request_get_jobs(NULL));
    assert_int_equal(emq_request_take_jobs(&jobs, NULL), EMQ_EINVAL);
    assert_int_equal(emq_request_take_recovered(&ids, NULL), EMQ_EINVAL);
    assert_int_equal(emq_request_take_dead(&ids, NULL), EMQ_EINVAL);
}

static void a_payload_that_is_too_large_is_not_taken(void **state) {
    test_loop own;
    outcome out = {0};
    emq_request *request = NULL;
    const emq_bytes one_large[2] = {{"four", 4}, {"three", 3}};
    (void)state;
    emq_client_options options = options_for_server(&server);
    options.max_payload = 3;
    loop_open(&own, &options, NULL);
    assert_int_equal(emq_request_enqueues(&request, both, "q", one_large, 2), EMQ_OK);
    assert_int_equal(emq_async_submit(own.client, request, note_outcome, &out), EMQ_ETOOBIG);
    emq_request_free(request);
    assert_int_equal(emq_request_schedule(&request, NULL, "q", "four", 4, now), EMQ_OK);
    assert_int_equal(emq_async_submit(own.client, request, note_outcome, &out), EMQ_ETOOBIG);
    emq_request_free(request);
    assert_int_equal(out.calls, 0);
    loop_finish(&own);
}

/* Losses. */

#define BUILD(name, call)                                                                          \
    static emq_request *build_##name(void) {                                                       \
        emq_request *request = NULL;                                                               \
        assert_int_equal((call), EMQ_OK);                                                          \
        return request;                                                                            \
    }

BUILD(enqueue, emq_request_enqueue(&request, &id_a, "q", "p", 1))
BUILD(schedule, emq_request_schedule(&request, &id_a, "q", "p", 1, later))
BUILD(enqueues, emq_request_enqueues(&request, both, "q", payloads, 2))
BUILD(claim, emq_request_claim(&request, "q", 60000))
BUILD(claims, emq_request_claims(&request, "q", 60000, 10, 1000))
BUILD(complete, emq_request_complete(&request, &lease_a))
BUILD(completes, emq_request_completes(&request, leases, 2))
BUILD(extend, emq_request_extend(&request, &lease_a, 60000))
BUILD(extends, emq_request_extends(&request, leases, 2, 60000))
BUILD(fail, emq_request_fail(&request, &lease_a, 0, 1, "error", 5))
BUILD(delay, emq_request_delay(&request, &lease_a, later))
BUILD(requeue, emq_request_requeue(&request, &lease_a))
BUILD(promote, emq_request_promote(&request, "q", 10))
BUILD(stalled_check, emq_request_stalled_check(&request, "q", 2, 10))
BUILD(reschedule, emq_request_reschedule(&request, "q", &id_a, later))
BUILD(reprocess, emq_request_reprocess(&request, "q", &id_a))
BUILD(pause, emq_request_pause(&request, "q"))
BUILD(resume, emq_request_resume(&request, "q"))
BUILD(append, emq_request_append(&request, NULL, "q", "s", &field, 1))
BUILD(publish, emq_request_publish(&request, "q", event, event_job, &field, 1))
BUILD(tra_bitset, emq_request_tra_bitset(&request, bitmap, offsets, 2))
BUILD(tra_bitclear, emq_request_tra_bitclear(&request, bitmap, offsets, 2))
BUILD(tra_bitget, emq_request_tra_bitget(&request, bitmap, offsets, 2))
BUILD(tra_bitscan, emq_request_tra_bitscan(&request, bitmap, 0, 100, 2))
BUILD(failures_incr, emq_request_failures_incr(&request, "q", "s", "g", "1-1"))

/* A verb, an answer that it may get, the result of that, and how often it is sent when the
 * connection is lost between request and answer. */
static const struct {
    emq_request *(*build)(void);
    emq_verb_symbol verb;
    const char *answer;
    int result;
    int times;
} cases[] = {
    {build_enqueue, EMQ_VERB_ENQUEUE, ":1\r\n", EMQ_OK, 1},
    {build_schedule, EMQ_VERB_SCHEDULE, ":0\r\n", EMQ_DUPLICATE, 1},
    {build_enqueues, EMQ_VERB_ENQUEUES, "*2\r\n:1\r\n:0\r\n", EMQ_OK, 1},
    {build_claim, EMQ_VERB_CLAIM, ANSWER_JOB, EMQ_OK, 1},
    {build_claims, EMQ_VERB_CLAIMS, "*1\r\n" ANSWER_JOB, EMQ_OK, 1},
    {build_complete, EMQ_VERB_COMPLETE, ":0\r\n", EMQ_GONE, 2},
    {build_completes, EMQ_VERB_COMPLETES, "*2\r\n:1\r\n:-1\r\n", EMQ_OK, 1},
    {build_extend, EMQ_VERB_EXTEND, ":1\r\n", EMQ_OK, 1},
    {build_extends, EMQ_VERB_EXTENDS, "*1\r\n" ANSWER_ID, EMQ_OK, 1},
    {build_fail, EMQ_VERB_FAIL, "$4\r\ndead\r\n", EMQ_DEAD, 1},
    {build_delay, EMQ_VERB_DELAY, ":1\r\n", EMQ_OK, 1},
    {build_requeue, EMQ_VERB_REQUEUE, ":-1\r\n", EMQ_GONE, 2},
    {build_promote, EMQ_VERB_PROMOTE, ":10\r\n", EMQ_OK, 1},
    {build_stalled_check, EMQ_VERB_STALLED_CHECK, "*2\r\n*1\r\n" ANSWER_ID "*0\r\n", EMQ_OK, 1},
    {build_reschedule, EMQ_VERB_RESCHEDULE, ":1\r\n", EMQ_OK, 1},
    {build_reprocess, EMQ_VERB_REPROCESS, ":1\r\n", EMQ_OK, 1},
    {build_pause, EMQ_VERB_PAUSE, ":1\r\n", EMQ_OK, 1},
    {build_resume, EMQ_VERB_RESUME, ":1\r\n", EMQ_OK, 1},
    {build_append, EMQ_VERB_APPEND, "$3\r\n1-1\r\n", EMQ_OK, 1},
    {build_publish, EMQ_VERB_PUBLISH, ":0\r\n", EMQ_OK, 1},
    {build_failures_incr, EMQ_VERB_FAILURES_INCR, ":1\r\n", EMQ_OK, 1},
    {build_tra_bitset, EMQ_VERB_TRA_BITSET, ":2\r\n", EMQ_OK, 1},
    {build_tra_bitclear, EMQ_VERB_TRA_BITCLEAR, ":0\r\n", EMQ_OK, 1},
    {build_tra_bitget, EMQ_VERB_TRA_BITGET, "*2\r\n:1\r\n:0\r\n", EMQ_OK, 1},
    {build_tra_bitscan, EMQ_VERB_TRA_BITSCAN, "*2\r\n:3\r\n:8\r\n", EMQ_OK, 1},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* So that a verb that is new has its row above. Those that administer are sent as raw commands. */
static void every_verb_is_a_request(void **state) {
    (void)state;
    for (int verb = 0; verb < EMQ_VERBS; verb++) {
        int is_raw = verb == EMQ_VERB_INSTALL || verb == EMQ_VERB_VERSION ||
                     verb == EMQ_VERB_TRA_INFO || verb == EMQ_VERB_TRA_COMMANDS;
        int found = 0;
        for (size_t i = 0; i < CASES; i++) {
            found += (int)cases[i].verb == verb;
        }
        if (found != !is_raw) {
            fail_msg("%s has %d requests", emq_verbs[verb].name, found);
        }
    }
}

static peer *start_peer(test_loop *own, peer_step first, const emq_async_options *async_options) {
    const peer_script script = {.steps = {PEER_HANDSHAKE, first}};
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    loop_open(own, &options, async_options);
    return p;
}

static void expect_command(peer *p, int number, const char *name) {
    char *words = peer_command(p, number);
    assert_non_null(words);
    words[strcspn(words, " ")] = '\0';
    assert_string_equal(words, name);
    free(words);
}

/* The command of this verb was sent so often, once on each connection, and then no more: what is
 * submitted now is the next one. */
static void expect_sent(test_loop *own, peer *p, emq_verb_symbol verb, int times) {
    outcome ping = {0};
    int commands = (times + 1) * PEER_HANDSHAKE_COMMANDS + times + 1;
    loop_submit(own, ping_request(), &ping);
    loop_until_commands(own, p, commands);
    for (int i = 1; i <= times; i++) {
        expect_command(p, i * PEER_HANDSHAKE_COMMANDS + i - 1, emq_verbs[verb].name);
    }
    expect_command(p, commands - 1, "PING");
    loop_finish(own);
    outcome_clear(&ping);
    peer_stop(p);
}

static void a_loss_before_the_request_costs_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        test_loop own;
        answer a = {.number = 0};
        peer *p = start_peer(&own, (peer_step){PEER_SEND, cases[i].answer, 0}, &loop_short_pause);
        loop_until_state(&own, EMQ_ASYNC_OPEN);
        peer_act(p, (peer_step){PEER_CLOSE, NULL, 0});
        submit(&own, cases[i].build(), &a);
        loop_until_ended(&own, &a.out, 1);
        EXPECT_OUTCOME(&a.out, cases[i].result);
        assert_int_equal(peer_connections(p), 2);
        assert_int_equal(peer_commands(p), 2 * PEER_HANDSHAKE_COMMANDS + 1);
        expect_command(p, 2 * PEER_HANDSHAKE_COMMANDS, emq_verbs[cases[i].verb].name);
        clear_answer(&a);
        loop_finish(&own);
        peer_stop(p);
    }
}

static void a_loss_before_the_answer_is_an_unknown_outcome(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        test_loop own;
        answer a = {.number = 0};
        peer *p = start_peer(&own, (peer_step){PEER_CLOSE, NULL, 0}, &loop_short_pause);
        submit(&own, cases[i].build(), &a);
        loop_until_ended(&own, &a.out, 1);
        EXPECT_OUTCOME(&a.out, EMQ_ECONNLOST);
        assert_int_equal(a.number, 0);
        assert_null(a.jobs);
        assert_null(a.recovered);
        assert_string_equal(a.entry, "");
        expect_sent(&own, p, cases[i].verb, cases[i].times);
        clear_answer(&a);
    }
}

static void a_loss_behind_the_answer_changes_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        test_loop own;
        answer a = {.number = 0};
        peer *p = start_peer(&own, (peer_step){PEER_SEND_AND_CLOSE, cases[i].answer, 0},
                             &loop_short_pause);
        submit(&own, cases[i].build(), &a);
        loop_until_ended(&own, &a.out, 1);
        EXPECT_OUTCOME(&a.out, cases[i].result);
        loop_until_told(&own, EMQ_ASYNC_CLOSED, EMQ_ECONNLOST);
        expect_sent(&own, p, cases[i].verb, 1);
        clear_answer(&a);
    }
}

static void nothing_is_sent_twice_when_that_is_off(void **state) {
    emq_async_options async_options = loop_short_pause;
    (void)state;
    async_options.complete_once = 1;
    for (size_t i = 0; i < CASES; i++) {
        if (cases[i].times > 1) {
            test_loop own;
            answer a = {.number = 0};
            peer *p = start_peer(&own, (peer_step){PEER_CLOSE, NULL, 0}, &async_options);
            submit(&own, cases[i].build(), &a);
            loop_until_ended(&own, &a.out, 1);
            EXPECT_OUTCOME(&a.out, EMQ_ECONNLOST);
            expect_sent(&own, p, cases[i].verb, 1);
            clear_answer(&a);
        }
    }
}

/* An answer that is none ends the connection; the next request has a new one. */
static void a_broken_answer_is_believed_of_no_verb(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        test_loop own;
        answer a = {.number = 0};
        peer *p = start_peer(&own, (peer_step)PEER_SENDS("+what?\r\n"), &loop_short_pause);
        submit(&own, cases[i].build(), &a);
        loop_until_ended(&own, &a.out, 1);
        EXPECT_OUTCOME(&a.out, EMQ_EPROTOCOL);
        assert_non_null(strstr(a.out.error, emq_verbs[cases[i].verb].name));
        assert_null(a.jobs);
        expect_sent(&own, p, cases[i].verb, 1);
        clear_answer(&a);
    }
}

static void a_lease_that_was_not_asked_about_breaks_the_answer(void **state) {
    test_loop own;
    answer a = {.number = 0};
    (void)state;
    peer *p = start_peer(&own, (peer_step)PEER_SENDS("*1\r\n$14\r\nJOB0KHTOWnGLuD\r\n"),
                         &loop_short_pause);
    submit(&own, build_extends(), &a);
    loop_until_ended(&own, &a.out, 1);
    EXPECT_OUTCOME(&a.out, EMQ_EPROTOCOL);
    assert_int_equal(a.members[0], EMQ_EPROTOCOL);
    clear_answer(&a);
    expect_sent(&own, p, EMQ_VERB_EXTENDS, 1);
}

#define ON_SERVER(name) cmocka_unit_test_setup_teardown(name, open_loop, close_loop)
#define TEST(name) cmocka_unit_test(name)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_SERVER(scheduled_jobs_are_promoted),
        ON_SERVER(a_scheduled_job_is_never_taken_for_a_repeat),
        ON_SERVER(a_lease_is_prolonged),
        ON_SERVER(a_failed_job_is_tried_again_and_dies),
        ON_SERVER(a_job_is_given_back),
        ON_SERVER(lapsed_leases_are_swept),
        ON_SERVER(a_batch_goes_all_the_way),
        ON_SERVER(a_refused_batch_has_one_result),
        ON_SERVER(a_job_with_a_malformed_id_is_named),
        ON_SERVER(a_queue_is_paused_and_resumed),
        ON_SERVER(bits_are_set_read_and_cleared),
        ON_SERVER(a_wrong_type_is_refused),
        ON_SERVER(records_are_appended),
        ON_SERVER(messages_are_published),
        ON_SERVER(a_claim_waits_for_work),
        ON_SERVER(a_wait_is_ended_by_the_server),
        TEST(every_verb_is_a_request),
        TEST(wrong_admissions_and_claims_are_refused),
        TEST(wrong_leases_are_refused),
        TEST(other_wrong_calls_are_refused),
        TEST(there_is_nothing_to_read_before_the_answer),
        TEST(a_payload_that_is_too_large_is_not_taken),
        TEST(a_loss_before_the_request_costs_nothing),
        TEST(a_loss_before_the_answer_is_an_unknown_outcome),
        TEST(a_loss_behind_the_answer_changes_nothing),
        TEST(nothing_is_sent_twice_when_that_is_off),
        TEST(a_broken_answer_is_believed_of_no_verb),
        TEST(a_lease_that_was_not_asked_about_breaks_the_answer),
    };
    return RUN_SERVER_TESTS("client.async_verbs", tests, start_server, stop_server);
}
