/* SPDX-License-Identifier: Apache-2.0 */
/* The connection is cut at every point of every verb, synchronous and in a pipeline: what the call
 * answers, what is true on the server then, and what the repeat answers. The expectations are in
 * loss.def, and docs/client.md shows them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_fixture.h"
#include "command.h"
#include "cutter.h"
#include "expect.h"
#include "verbs.h"

#define ID_A "JOB0KHTOWnGLuC"

typedef enum loss_advice { SAFE, LOOK, TWICE } loss_advice;

typedef struct loss {
    const char *function;
    const char *probe;
    const char *not_done;
    const char *done;
    const char *done_again;
    const char *note;
    emq_verb_symbol verb;
    int repeated; /* the result of a repeat when it was done */
    loss_advice advice;
} loss;

static const loss losses[] = {
#define EMQ_LOSS(SYMBOL, function, probe, not_done, done, repeated, again, advice, note)           \
    {#function, probe, not_done, done, again, note, EMQ_VERB_##SYMBOL, EMQ_##repeated, advice},
#include "loss.def"
#undef EMQ_LOSS
};

#define LOSSES (sizeof(losses) / sizeof(losses[0]))

static cutter *proxy;
static emq_client_options options;
static emq_pipeline *pipeline;
static char last_error[512];

/* What the calls work on. An id that a call minted is kept for the repeat, as a program would. */
static emq_id made;
static emq_lease lease;
static const emq_id id_a = {ID_A};
static const emq_when now = {EMQ_IN, 0};
static const emq_when later = {EMQ_IN, 3600000};
static const emq_when long_ago = {EMQ_AT, 1};
static const emq_bytes payload = {"p", 1};
static const emq_bytes bitmap = {"bits", 4};
static const uint32_t bit = 7;

static int start_both(void **state) {
    (void)start_server(state);
    proxy = cutter_start(&server);
    return 0;
}

static int stop_both(void **state) {
    cutter_stop(proxy);
    return stop_server(state);
}

/* Through the proxy. */
static int open_pipeline(void **state) {
    (void)clean_server(state);
    options = options_for_server(&server);
    options.unix_path = cutter_socket(proxy);
    client = open_client(&options);
    assert_int_equal(emq_pipeline_new(&pipeline, client), EMQ_OK);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    emq_pipeline_free(pipeline);
    emq_client_close(client);
    pipeline = NULL;
    client = NULL;
    return 0;
}

/* The state that a call starts from. */

static void admit_job(void) {
    emq_id id = id_a;
    EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "p", 1), EMQ_OK);
}

static void lease_job(void) {
    emq_job *job = NULL;
    admit_job();
    EXPECT_RESULT(client, emq_claim(&job, client, "q", 60000), EMQ_OK);
    lease = *emq_job_get_lease(job);
    emq_job_free(job);
}

static void let_lease_lapse(void) {
    lease_job();
    run(server.admin, "ZADD", "emq:{q}:active", "XX", "1", ID_A, NULL);
}

static void schedule_job(emq_when when) {
    emq_id id = id_a;
    EXPECT_RESULT(client, emq_schedule(&id, client, "q", "p", 1, when), EMQ_OK);
}

static void bury_job(void) {
    lease_job();
    EXPECT_RESULT(client, emq_fail(client, &lease, 0, 1, NULL, 0), EMQ_DEAD);
}

static void prepare(emq_verb_symbol verb) {
    memset(&made, 0, sizeof(made));
    switch (verb) {
    case EMQ_VERB_CLAIM:
    case EMQ_VERB_CLAIMS: {
        emq_id other = {{0}};
        admit_job();
        EXPECT_RESULT(client, emq_enqueue(&other, client, "q", "p", 1), EMQ_OK);
        break;
    }
    case EMQ_VERB_COMPLETE:
    case EMQ_VERB_COMPLETES:
    case EMQ_VERB_REQUEUE:
    case EMQ_VERB_FAIL:
    case EMQ_VERB_DELAY:
        lease_job();
        break;
    case EMQ_VERB_EXTEND:
    case EMQ_VERB_EXTENDS:
    case EMQ_VERB_STALLED_CHECK:
        let_lease_lapse();
        break;
    case EMQ_VERB_PROMOTE:
        schedule_job(now);
        break;
    case EMQ_VERB_RESCHEDULE:
        schedule_job(later);
        break;
    case EMQ_VERB_REPROCESS:
        bury_job();
        break;
    case EMQ_VERB_RESUME:
        EXPECT_RESULT(client, emq_pause(client, "q"), EMQ_OK);
        break;
    case EMQ_VERB_TRA_BITCLEAR:
        EXPECT_RESULT(client, emq_tra_bitset(NULL, client, bitmap, &bit, 1), EMQ_OK);
        break;
    case EMQ_VERB_INSTALL:
        run(server.admin, "DEL", "{emq}:version", NULL);
        break;
    default:
        break;
    }
}

/* The call itself. */

static int call_raw(const char *name) {
    emq_reply *reply = NULL;
    int result = emq_client_command(&reply, client, 1, &name, NULL);
    emq_reply_free(reply);
    return result;
}

static int claim_one(void) {
    emq_job *job = NULL;
    int result = emq_claim(&job, client, "q", 60000);
    emq_job_free(job);
    return result;
}

static int claim_many(void) {
    emq_jobs *jobs = NULL;
    int result = emq_claims(&jobs, client, "q", 60000, 1, 0);
    emq_jobs_free(jobs);
    return result;
}

/* A batch of one: the member's result, which tells the call's when that failed. */
static int of_member(int result, int member) {
    if (result < 0) {
        assert_int_equal(member, result);
    }
    return member;
}

static int call_batch(emq_verb_symbol verb) {
    int member = EMQ_EINVAL;
    int result = verb == EMQ_VERB_ENQUEUES  ? emq_enqueues(&member, &made, client, "q", &payload, 1)
                 : verb == EMQ_VERB_EXTENDS ? emq_extends(&member, client, &lease, 1, 60000)
                                            : emq_completes(&member, client, &lease, 1);
    return of_member(result, member);
}

static int call_settle(emq_verb_symbol verb) {
    switch (verb) {
    case EMQ_VERB_COMPLETE:
        return emq_complete(client, &lease);
    case EMQ_VERB_EXTEND:
        return emq_extend(client, &lease, 60000);
    case EMQ_VERB_REQUEUE:
        return emq_requeue(client, &lease);
    case EMQ_VERB_FAIL:
        return emq_fail(client, &lease, 0, 5, "why", 3);
    default:
        return emq_delay(client, &lease, later);
    }
}

static int call_bits(emq_verb_symbol verb) {
    uint32_t found[8];
    size_t count = 0;
    int value = 0;
    switch (verb) {
    case EMQ_VERB_TRA_BITSET:
        return emq_tra_bitset(NULL, client, bitmap, &bit, 1);
    case EMQ_VERB_TRA_BITCLEAR:
        return emq_tra_bitclear(NULL, client, bitmap, &bit, 1);
    case EMQ_VERB_TRA_BITGET:
        return emq_tra_bitget(&value, client, bitmap, &bit, 1);
    default:
        return emq_tra_bitscan(found, &count, client, bitmap, 0, 100, 8);
    }
}

static int call_upkeep(emq_verb_symbol verb) {
    int64_t number = 0;
    switch (verb) {
    case EMQ_VERB_PROMOTE:
        return emq_promote(&number, client, "q", 10);
    case EMQ_VERB_STALLED_CHECK:
        return emq_stalled_check(NULL, NULL, client, "q", 5, 10);
    case EMQ_VERB_RESCHEDULE:
        return emq_reschedule(client, "q", &id_a, long_ago);
    case EMQ_VERB_REPROCESS:
        return emq_reprocess(client, "q", &id_a);
    case EMQ_VERB_PAUSE:
        return emq_pause(client, "q");
    default:
        return emq_resume(client, "q");
    }
}

/* EMQ_EINVAL when the verb has no call here. */
static int call_verb(emq_verb_symbol verb) {
    int64_t number = 0;
    switch (verb) {
    case EMQ_VERB_ENQUEUE:
        return emq_enqueue(&made, client, "q", "p", 1);
    case EMQ_VERB_SCHEDULE:
        return emq_schedule(&made, client, "q", "p", 1, later);
    case EMQ_VERB_CLAIM:
        return claim_one();
    case EMQ_VERB_CLAIMS:
        return claim_many();
    case EMQ_VERB_ENQUEUES:
    case EMQ_VERB_EXTENDS:
    case EMQ_VERB_COMPLETES:
        return call_batch(verb);
    case EMQ_VERB_COMPLETE:
    case EMQ_VERB_EXTEND:
    case EMQ_VERB_REQUEUE:
    case EMQ_VERB_FAIL:
    case EMQ_VERB_DELAY:
        return call_settle(verb);
    case EMQ_VERB_PROMOTE:
    case EMQ_VERB_STALLED_CHECK:
    case EMQ_VERB_RESCHEDULE:
    case EMQ_VERB_REPROCESS:
    case EMQ_VERB_PAUSE:
    case EMQ_VERB_RESUME:
        return call_upkeep(verb);
    case EMQ_VERB_APPEND:
        return emq_append(NULL, &made, client, "q", "s", &(emq_field){payload, payload}, 1);
    case EMQ_VERB_PUBLISH:
        return emq_publish(NULL, client, "q", payload, payload, NULL, 0);
    case EMQ_VERB_FAILURES_INCR:
        return emq_failures_incr(&number, client, "q", "s", "g", "1-1");
    case EMQ_VERB_TRA_BITSET:
    case EMQ_VERB_TRA_BITCLEAR:
    case EMQ_VERB_TRA_BITGET:
    case EMQ_VERB_TRA_BITSCAN:
        return call_bits(verb);
    case EMQ_VERB_INSTALL:
        return emq_install(&options, last_error, sizeof(last_error));
    case EMQ_VERB_VERSION:
    case EMQ_VERB_TRA_INFO:
    case EMQ_VERB_TRA_COMMANDS:
        return call_raw(emq_verbs[verb].name);
    default:
        return EMQ_EINVAL;
    }
}

/* The same in a pipeline: EMQ_EINVAL for the verbs that a pipeline does not take. */

static int add_settle(emq_verb_symbol verb) {
    switch (verb) {
    case EMQ_VERB_COMPLETE:
        return emq_pipeline_complete(pipeline, &lease);
    case EMQ_VERB_COMPLETES:
        return emq_pipeline_completes(pipeline, &lease, 1);
    case EMQ_VERB_EXTEND:
        return emq_pipeline_extend(pipeline, &lease, 60000);
    case EMQ_VERB_EXTENDS:
        return emq_pipeline_extends(pipeline, &lease, 1, 60000);
    case EMQ_VERB_REQUEUE:
        return emq_pipeline_requeue(pipeline, &lease);
    case EMQ_VERB_FAIL:
        return emq_pipeline_fail(pipeline, &lease, 0, 5, "why", 3);
    default:
        return emq_pipeline_delay(pipeline, &lease, later);
    }
}

static int add_admission(emq_verb_symbol verb) {
    switch (verb) {
    case EMQ_VERB_ENQUEUE:
        return emq_pipeline_enqueue(pipeline, &made, "q", "p", 1);
    case EMQ_VERB_SCHEDULE:
        return emq_pipeline_schedule(pipeline, &made, "q", "p", 1, later);
    case EMQ_VERB_APPEND:
        return emq_pipeline_append(pipeline, &made, "q", "s", &(emq_field){payload, payload}, 1);
    default:
        if (emq_id_valid(&made) == 0) {
            assert_int_equal(emq_id_mint(&made, "JOB"), EMQ_OK);
        }
        return emq_pipeline_enqueues(pipeline, &made, "q", &payload, 1);
    }
}

static int add_upkeep(emq_verb_symbol verb) {
    switch (verb) {
    case EMQ_VERB_PROMOTE:
        return emq_pipeline_promote(pipeline, "q", 10);
    case EMQ_VERB_STALLED_CHECK:
        return emq_pipeline_stalled_check(pipeline, "q", 5, 10);
    case EMQ_VERB_RESCHEDULE:
        return emq_pipeline_reschedule(pipeline, "q", &id_a, long_ago);
    case EMQ_VERB_REPROCESS:
        return emq_pipeline_reprocess(pipeline, "q", &id_a);
    case EMQ_VERB_PAUSE:
        return emq_pipeline_pause(pipeline, "q");
    default:
        return emq_pipeline_resume(pipeline, "q");
    }
}

static int add_verb(emq_verb_symbol verb) {
    switch (verb) {
    case EMQ_VERB_ENQUEUE:
    case EMQ_VERB_SCHEDULE:
    case EMQ_VERB_ENQUEUES:
    case EMQ_VERB_APPEND:
        return add_admission(verb);
    case EMQ_VERB_CLAIM:
        return emq_pipeline_claim(pipeline, "q", 60000);
    case EMQ_VERB_CLAIMS:
        return emq_pipeline_claims(pipeline, "q", 60000, 1);
    case EMQ_VERB_COMPLETE:
    case EMQ_VERB_COMPLETES:
    case EMQ_VERB_EXTEND:
    case EMQ_VERB_EXTENDS:
    case EMQ_VERB_REQUEUE:
    case EMQ_VERB_FAIL:
    case EMQ_VERB_DELAY:
        return add_settle(verb);
    case EMQ_VERB_PROMOTE:
    case EMQ_VERB_STALLED_CHECK:
    case EMQ_VERB_RESCHEDULE:
    case EMQ_VERB_REPROCESS:
    case EMQ_VERB_PAUSE:
    case EMQ_VERB_RESUME:
        return add_upkeep(verb);
    case EMQ_VERB_PUBLISH:
        return emq_pipeline_publish(pipeline, "q", payload, payload, NULL, 0);
    case EMQ_VERB_FAILURES_INCR:
        return emq_pipeline_failures_incr(pipeline, "q", "s", "g", "1-1");
    case EMQ_VERB_TRA_BITSET:
        return emq_pipeline_tra_bitset(pipeline, bitmap, &bit, 1);
    case EMQ_VERB_TRA_BITCLEAR:
        return emq_pipeline_tra_bitclear(pipeline, bitmap, &bit, 1);
    case EMQ_VERB_TRA_BITGET:
        return emq_pipeline_tra_bitget(pipeline, bitmap, &bit, 1);
    default:
        return EMQ_EINVAL;
    }
}

static int is_batch(emq_verb_symbol verb) {
    return verb == EMQ_VERB_ENQUEUES || verb == EMQ_VERB_EXTENDS || verb == EMQ_VERB_COMPLETES;
}

static int run_verb(emq_verb_symbol verb) {
    assert_int_equal(add_verb(verb), EMQ_OK);
    (void)emq_pipeline_run(pipeline);
    int result = emq_pipeline_get_result(pipeline, 0);
    if (result >= 0 && is_batch(verb)) {
        return emq_pipeline_get_member(pipeline, 0, 0);
    }
    emq_job_free(emq_pipeline_take_job(pipeline, 0));
    return result;
}

/* The walk from the cut to the repeat. */

typedef struct point_facts {
    const char *name;
    const char *when; /* for the documentation */
    int result;
    int is_done;
} point_facts;

static const point_facts points[CUT_POINTS] = {
    [CUT_IDLE] = {"idle", "before the request was sent whole", EMQ_ECONNECT, 0},
    [CUT_REQUEST] = {"request", "on the request's way to the server", EMQ_ECONNLOST, 0},
    [CUT_ANSWER] = {"answer", "between request and answer", EMQ_ECONNLOST, 1},
    [CUT_HALF] = {"half", "in the middle of the answer", EMQ_ECONNLOST, 1},
    [CUT_AFTER] = {"after", "behind the answer", EMQ_OK, 1},
};

typedef struct walk {
    const loss *row;
    cut_point point;
    int (*call)(emq_verb_symbol verb);
} walk;

static void expect_state(const walk *w, const char *when, const char *want) {
    command line = {0};
    char words[128];
    char *rest = NULL;
    (void)snprintf(words, sizeof(words), "%s", w->row->probe);
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        command_add(&line, word);
    }
    redisReply *reply = command_send(server.admin, &line);
    char *got = reply_to_text(reply);
    if (strcmp(got, want) != 0) {
        fail_msg("%s cut at %s, %s: '%s' is %s, want %s", w->row->function, points[w->point].name,
                 when, w->row->probe, got, want);
    }
    free(got);
    freeReplyObject(reply);
    command_free(&line);
}

static void expect_call(const walk *w, const char *when, int want) {
    int got = w->call(w->row->verb);
    if (got != want) {
        fail_msg("%s cut at %s, %s: got %s, want %s (%s)", w->row->function, points[w->point].name,
                 when, emq_err_name(got), emq_err_name(want), emq_client_get_error(client));
    }
}

/* The fence is missing until the installation is repeated. */
static int has_own_connection(const walk *w) {
    return w->row->verb == EMQ_VERB_INSTALL;
}

static void reconnect(const walk *w) {
    if (!has_own_connection(w)) {
        assert_int_equal(emq_client_is_open(client), 0);
        expect_call(w, "closed", EMQ_ECLOSED);
        EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    }
}

/* A client that has not noticed yet: what it wants to send does not get out. */
static void expect_unsent(const walk *w) {
    if (!has_own_connection(w)) {
        expect_call(w, "unsent", points[CUT_IDLE].result);
    }
}

static void cut_idle(const walk *w) {
    cutter_arm(proxy, CUT_IDLE, "", 0);
    cutter_wait(proxy);
    expect_unsent(w);
}

static void cut_call(const walk *w) {
    cutter_arm(proxy, w->point, emq_verbs[w->row->verb].name, 1);
    expect_call(w, "cut", points[w->point].result);
    cutter_wait(proxy);
}

static void walk_through(const walk *w) {
    int is_done = points[w->point].is_done;
    const char *state = is_done ? w->row->done : w->row->not_done;
    (void)clean_server(NULL);
    prepare(w->row->verb);
    expect_state(w, "before", w->row->not_done);
    if (w->point == CUT_IDLE) {
        cut_idle(w);
    } else {
        cut_call(w);
    }
    expect_state(w, "cut", state);
    if (w->point == CUT_AFTER) {
        expect_unsent(w);
    }
    reconnect(w);
    expect_state(w, "reconnected", state);
    expect_call(w, "repeated", is_done ? w->row->repeated : EMQ_OK);
    expect_state(w, "repeated", is_done ? w->row->done_again : w->row->done);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
}

static void each_verb_is_cut_at_each_point(void **state) {
    (void)state;
    for (size_t i = 0; i < LOSSES; i++) {
        for (int point = 0; point < CUT_POINTS; point++) {
            walk_through(&(walk){&losses[i], (cut_point)point, call_verb});
        }
    }
}

static int is_pipelined(emq_verb_symbol verb) {
    return emq_verbs[verb].family != EMQ_FAMILY_ADMIN && verb != EMQ_VERB_VERSION &&
           verb != EMQ_VERB_TRA_INFO && verb != EMQ_VERB_TRA_COMMANDS &&
           verb != EMQ_VERB_TRA_BITSCAN;
}

static void each_verb_of_a_pipeline_is_cut_at_each_point(void **state) {
    (void)state;
    for (size_t i = 0; i < LOSSES; i++) {
        for (int point = 0; point < CUT_POINTS && is_pipelined(losses[i].verb); point++) {
            walk_through(&(walk){&losses[i], (cut_point)point, run_verb});
        }
    }
}

/* Half of three answers is one and a half. */
static void a_pipeline_keeps_what_was_answered(void **state) {
    static const int lost[] = {EMQ_OK, EMQ_ECONNLOST, EMQ_ECONNLOST};
    emq_id ids[3];
    (void)state;
    for (int round = 0; round < 2; round++) {
        if (round == 0) {
            memset(ids, 0, sizeof(ids));
            cutter_arm(proxy, CUT_HALF, "EMQ.ENQUEUE", 3);
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(emq_pipeline_enqueue(pipeline, &ids[i], "q", "p", 1), EMQ_OK);
        }
        EXPECT_RESULT(client, emq_pipeline_run(pipeline), round == 0 ? EMQ_ECONNLOST : EMQ_OK);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(emq_pipeline_get_result(pipeline, i),
                             round == 0 ? lost[i] : EMQ_DUPLICATE);
        }
        EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    }
    assert_int_equal(get_integer(server.admin, "ZCARD", "emq:{q}:pending", NULL), 3);
}

/* The failed job was promoted in between: it is not failed a second time, nor given back again. */
static void a_lease_that_was_settled_settles_nothing_more(void **state) {
    (void)state;
    lease_job();
    cutter_arm(proxy, CUT_ANSWER, "EMQ.FAIL", 1);
    EXPECT_RESULT(client, emq_fail(client, &lease, 0, 2, "why", 3), EMQ_ECONNLOST);
    cutter_wait(proxy);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    int64_t moved = 0;
    EXPECT_RESULT(client, emq_promote(&moved, client, "q", 10), EMQ_OK);
    assert_int_equal(moved, 1);
    EXPECT_RESULT(client, emq_fail(client, &lease, 0, 2, "why", 3), EMQ_ESTALE);
    EXPECT_RESULT(client, emq_delay(client, &lease, later), EMQ_ESTALE);
    EXPECT_RESULT(client, emq_requeue(client, &lease), EMQ_ESTALE);
    EXPECT(server.admin, "1", "ZCARD", "emq:{q}:pending");
    EXPECT(server.admin, "\"1\"", "HGET", "emq:{q}:job:" ID_A, "failures");
}

static int is_waiting(void *unused) {
    char blocked[16];
    (void)unused;
    return get_info(blocked, sizeof(blocked), server.admin, "clients", "blocked_clients")[0] == '1';
}

static int is_over(void *unused) {
    return !is_waiting(unused);
}

static void *wait_for_work(void *result) {
    emq_jobs *jobs = NULL;
    *(int *)result = emq_claims(&jobs, client, "q", 60000, 1, 3600000);
    emq_jobs_free(jobs);
    return NULL;
}

static void a_wait_that_is_cut_leases_nothing(void **state) {
    pthread_t waiter;
    int result = EMQ_OK;
    (void)state;
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_work, &result), 0);
    wait_until("the claim waits", is_waiting, NULL);
    cutter_arm(proxy, CUT_IDLE, "", 0);
    assert_int_equal(pthread_join(waiter, NULL), 0);
    EXPECT_RESULT(client, result, EMQ_ECONNLOST);
    wait_until("the server has noticed", is_over, NULL);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    admit_job();
    EXPECT(server.admin, "0", "ZCARD", "emq:{q}:active");
    assert_int_equal(claim_one(), EMQ_OK);
}

/* A verb without a row, and a row that the tests do not act on, would be cut nowhere. */
static void every_verb_has_its_expectation(void **state) {
    int rows[EMQ_VERBS] = {0};
    (void)state;
    for (size_t i = 0; i < LOSSES; i++) {
        rows[losses[i].verb]++;
    }
    for (int verb = 0; verb < EMQ_VERBS; verb++) {
        if (rows[verb] != 1) {
            fail_msg("%s has %d rows in loss.def", emq_verbs[verb].name, rows[verb]);
        }
        (void)clean_server(NULL);
        prepare((emq_verb_symbol)verb);
        assert_int_equal(call_verb((emq_verb_symbol)verb), EMQ_OK);
        (void)clean_server(NULL);
        prepare((emq_verb_symbol)verb);
        assert_int_equal(add_verb((emq_verb_symbol)verb) == EMQ_OK,
                         is_pipelined((emq_verb_symbol)verb));
        emq_pipeline_clear(pipeline);
    }
}

/* The tables of the documentation. */

static void append_cells(char **text, const char *const *cells, size_t count) {
    for (size_t i = 0; i < count; i++) {
        append_text(text, cells[i][0] == '\0' ? "| " : i == 0 ? "| `" : "| ");
        append_text(text, cells[i]);
        append_text(text, cells[i][0] == '\0' ? "" : i == 0 ? "` " : " ");
    }
    append_text(text, "|\n");
}

static const char *effect_of_repeat(const loss *row) {
    return strcmp(row->done, row->not_done) == 0     ? "nothing"
           : strcmp(row->done, row->done_again) == 0 ? "done once"
                                                     : "done twice";
}

static char *read_whole(const char *path) {
    char *text = NULL;
    char buffer[4097];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    for (;;) {
        size_t n = fread(buffer, 1, sizeof(buffer) - 1, file);
        if (n == 0) {
            break;
        }
        buffer[n] = '\0';
        append_text(&text, buffer);
    }
    (void)fclose(file);
    assert_non_null(text);
    return text;
}

static void expect_in_documentation(const char *want) {
    char path[SERVER_PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/docs/client.md", getenv("EMQ_SOURCE_DIR"));
    char *page = read_whole(path);
    int is_there = strstr(page, want) != NULL;
    free(page);
    if (!is_there) {
        (void)fprintf(stderr, "docs/client.md needs this table:\n%s", want);
        fail();
    }
}

static void the_documentation_has_the_points(void **state) {
    char *want = NULL;
    (void)state;
    append_text(&want, "| the connection is lost | result | done? |\n|---|---|---|\n");
    for (int i = 0; i < CUT_POINTS; i++) {
        append_text(&want, "| ");
        append_text(&want, points[i].when);
        append_text(&want, points[i].result == EMQ_OK ? " | the call's own" : " | `");
        append_text(&want, points[i].result == EMQ_OK ? "" : emq_err_name(points[i].result));
        append_text(&want, points[i].result == EMQ_OK ? " | " : "` | ");
        append_text(&want, points[i].is_done ? "yes |\n" : "no |\n");
    }
    append_text(&want, "\n"); /* and no row more */
    expect_in_documentation(want);
    free(want);
}

static void the_documentation_has_the_verbs(void **state) {
    static const char *const advice[] = {"yes", "look first", "only where twice does no harm"};
    char *want = NULL;
    (void)state;
    append_text(&want,
                "| call | repeat it? | it was done: the repeat answers | and then it is | |\n"
                "|---|---|---|---|---|\n");
    for (size_t i = 0; i < LOSSES; i++) {
        char result[64];
        const loss *row = &losses[i];
        (void)snprintf(result, sizeof(result), "`%s`", emq_err_name(row->repeated));
        const char *const cells[] = {row->function, advice[row->advice], result,
                                     effect_of_repeat(row), row->note};
        append_cells(&want, cells, 5);
    }
    append_text(&want, "\n");
    expect_in_documentation(want);
    free(want);
}

int main(void) {
#define ON_CLEAN_SERVER(test) cmocka_unit_test_setup_teardown(test, open_pipeline, close_all)
    const struct CMUnitTest tests[] = {
        ON_CLEAN_SERVER(every_verb_has_its_expectation),
        ON_CLEAN_SERVER(each_verb_is_cut_at_each_point),
        ON_CLEAN_SERVER(each_verb_of_a_pipeline_is_cut_at_each_point),
        ON_CLEAN_SERVER(a_pipeline_keeps_what_was_answered),
        ON_CLEAN_SERVER(a_lease_that_was_settled_settles_nothing_more),
        ON_CLEAN_SERVER(a_wait_that_is_cut_leases_nothing),
        cmocka_unit_test(the_documentation_has_the_points),
        cmocka_unit_test(the_documentation_has_the_verbs),
    };
    return RUN_SERVER_TESTS("loss", tests, start_both, stop_both);
}
