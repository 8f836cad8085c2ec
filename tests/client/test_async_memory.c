/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client without memory: on each main path every allocation fails in turn, once
 * and for good. Each time every callback runs once, nothing is lost, and the client opens and works
 * as soon as there is memory. With hiredis 1.x its allocations are among them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "command.h"
#include "loop.h"

#define AT_ONCE 4
#define JOBS 4000

static test_server server;
static test_server sentinel;
static test_loop t;

/* libuv's own allocations fail in turn as well, where it survives that. */
static struct {
    int is_armed;
    long counted;
    long fails_at;
} uv;

static int uv_fails(void) {
    return uv.is_armed && ++uv.counted == uv.fails_at;
}

static void *uv_malloc(size_t size) {
    return uv_fails() ? NULL : malloc(size);
}

static void *uv_calloc(size_t count, size_t size) {
    return uv_fails() ? NULL : calloc(count, size);
}

static void *uv_realloc(void *memory, size_t size) {
    return uv_fails() ? NULL : realloc(memory, size);
}

static int start_server(void **state) {
    static char monitor[64];
    (void)state;
    server_start(&server, NULL);
    (void)snprintf(monitor, sizeof(monitor), "sentinel monitor main 127.0.0.1 %d 1", server.port);
    server_start_sentinel(&sentinel, "--conf", monitor, NULL);
    run(server.admin, "ACL", "SETUSER", "tester", "on", ">password", "~*", "&*", "+@all", NULL);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&sentinel);
    server_stop(&server);
    return 0;
}

static emq_client_options get_options(void) {
    emq_client_options options = options_for_server(&server);
    options.username = "tester";
    options.password = "password";
    return options;
}

static emq_client_options get_options_by_name(void) {
    emq_client_options options = get_options();
    options.unix_path = NULL;
    options.host = "localhost";
    options.port = (uint16_t)server.port;
    return options;
}

static void open_path(void) {
    const emq_client_options options = get_options();
    loop_open_without_memory(&t, &options);
}

static void open_by_name_path(void) {
    const emq_client_options options = get_options_by_name();
    loop_open_without_memory(&t, &options);
}

static void open_through_sentinel_path(void) {
    char list[32];
    emq_client_options options = get_options();
    (void)snprintf(list, sizeof(list), "127.0.0.1:%d", sentinel.port);
    options.unix_path = NULL;
    options.sentinels = list;
    options.primary_name = "main";
    loop_open_without_memory(&t, &options);
}

static void opening_survives(void **state) {
    (void)state;
    allocator_fail_each("opening through a sentinel", open_through_sentinel_path);
    allocator_fail_each("opening", open_path);
    allocator_fail_each("opening by name", open_by_name_path);
}

/* libuv ends the process where it has no memory for its table of descriptors, so a client before
 * has the loop make that. */
static void opening_survives_a_loop_without_memory(void **state) {
    const emq_client_options options = get_options_by_name();
    (void)state;
    uv.fails_at = 0;
    do {
        uv.fails_at++;
        uv.counted = 0;
        assert_int_equal(loop_try_open(&t, &options, &loop_short_pause), EMQ_OK);
        loop_expect_open_with_memory(&t);
        loop_end_client(&t);
        uv.is_armed = 1;
        assert_int_equal(loop_open_again(&t, &options, &loop_short_pause), EMQ_OK);
        loop_expect_open_with_memory(&t);
        loop_end_client(&t);
        uv.is_armed = 0;
        loop_finish(&t);
    } while (uv.counted >= uv.fails_at);
    assert_true(uv.fails_at > 1);
}

/* A connection that is there is given up for another one. */
static void reconnect_path(void) {
    const emq_client_options options = get_options();
    loop_open(&t, &options, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    t.told = 0;
    allocator_arm_path();
    assert_int_equal(emq_async_reconnect(t.client), EMQ_OK);
    loop_expect_open_with_memory(&t);
    loop_finish(&t);
}

/* Closing needs no memory at all: with the connection open, and with requests under way. */
static void close_path(void) {
    const emq_client_options options = get_options();
    outcome outs[AT_ONCE] = {0};
    emq_request *requests[AT_ONCE];
    loop_open(&t, &options, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    for (int i = 0; i < AT_ONCE; i++) {
        requests[i] = ping_request();
        loop_submit(&t, requests[i], &outs[i]);
    }
    assert_int_equal(emq_request_cancel(requests[1]), EMQ_OK);
    allocator_arm_path();
    loop_end_client(&t);
    assert_int_equal(allocator_counted(), 0);
    for (int i = 0; i < AT_ONCE; i++) {
        EXPECT_OUTCOME(&outs[i], i == 1 ? EMQ_ECANCELED : EMQ_ECLOSED);
    }
    loop_finish(&t);
}

static void reconnecting_and_closing_survive(void **state) {
    (void)state;
    allocator_fail_each("reconnecting", reconnect_path);
    allocator_fail_each("closing", close_path);
}

/* Requests. */

static const emq_lease lease_a = {"q", {"JOB0KHTOWnGLuC"}, 1};

static int build_enqueue(emq_request **out) {
    return emq_request_enqueue(out, NULL, "q", "payload", 7);
}

static int build_claim(emq_request **out) {
    return emq_request_claim(out, "q", 60000);
}

static int build_claims(emq_request **out) {
    return emq_request_claims(out, "q", 60000, 10, 0);
}

static int build_complete(emq_request **out) {
    return emq_request_complete(out, &lease_a);
}

static int build_extends(emq_request **out) {
    return emq_request_extends(out, &lease_a, 1, 60000);
}

static int build_stalled_check(emq_request **out) {
    return emq_request_stalled_check(out, "q", 1, 10);
}

static int build_append(emq_request **out) {
    static const emq_field field = {{"f", 1}, {"v", 1}};
    return emq_request_append(out, NULL, "q", "s", &field, 1);
}

static int build_command(emq_request **out) {
    static const char *const words[] = {"COMMAND", "INFO", "GET", "SET"};
    return emq_request_command(out, 4, words, NULL);
}

static int build_large(emq_request **out) {
    static char bytes[400 * 1024]; /* more than one slice */
    return emq_request_enqueue(out, NULL, "large", bytes, sizeof(bytes));
}

static int (*const builders[])(emq_request **) = {
    build_enqueue,       build_claim,  build_claims,  build_complete, build_extends,
    build_stalled_check, build_append, build_command, build_large,
};

#define BUILDERS (sizeof(builders) / sizeof(builders[0]))

/* What a request may end in: there was no memory for its answer, or none for the connection. */
static void expect_ended(const outcome *out) {
    if (out->calls != 1 ||
        (out->result < 0 && out->result != EMQ_ENOMEM && out->result != EMQ_ECONNLOST)) {
        fail_msg("allocation %ld: %d calls, %s", allocator_fails_from(), out->calls,
                 emq_err_name(out->result));
    }
}

typedef struct wanted {
    const outcome *outs;
    size_t count;
} wanted;

/* Without memory for good, what was not sent waits for a connection that is not to be had. */
static int is_ended_or_lost(void *data) {
    const wanted *w = data;
    size_t ended = 0;
    for (size_t i = 0; i < w->count; i++) {
        ended += w->outs[i].calls > 0;
    }
    return ended == w->count || t.states[t.told - 1] == EMQ_ASYNC_CLOSED;
}

/* The requests of a list, all at once, from the first byte of their commands to their results. */
static void run_requests(int (*const list[])(emq_request **), size_t count) {
    const emq_client_options options = get_options();
    outcome outs[BUILDERS] = {0};
    int submitted[BUILDERS] = {0};
    loop_open(&t, &options, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    allocator_arm_path();
    for (size_t i = 0; i < count; i++) {
        emq_request *request = NULL;
        int result = list[i](&request);
        assert_int_equal(request != NULL, result == EMQ_OK);
        submitted[i] = result == EMQ_OK;
        if (submitted[i]) {
            assert_int_equal(emq_async_submit(t.client, request, note_outcome, &outs[i]), EMQ_OK);
        } else {
            assert_int_equal(result, EMQ_ENOMEM);
            outs[i].calls = 1;
        }
    }
    wanted w = {outs, count};
    loop_until(&t, is_ended_or_lost, &w);
    allocator_disarm();
    for (size_t i = 0; i < count; i++) {
        loop_until_ended(&t, &outs[i], 1);
        expect_ended(&outs[i]);
        outcome_clear(&outs[i]);
    }
    outcome out = do_request(&t, ping_request());
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
    loop_finish(&t);
}

/* One verb by itself, so that what fails is told. */
static size_t chosen;

static void verb_path(void) {
    run_requests(builders + chosen, 1);
}

static void all_path(void) {
    run_requests(builders, BUILDERS);
}

/* So that no claim is without a job. */
static void fill_queue(void) {
    const emq_client_options options = get_options();
    emq_client *client = open_client(&options);
    for (int i = 0; i < JOBS; i++) {
        emq_id id = {{0}};
        EXPECT_RESULT(client, emq_enqueue(&id, client, "q", "payload", 7), EMQ_OK);
    }
    emq_client_close(client);
}

static void requests_survive(void **state) {
    static const char *const names[BUILDERS] = {"enqueue",  "claim",   "claims",
                                                "complete", "extends", "stalled_check",
                                                "append",   "command", "large enqueue"};
    (void)state;
    fill_queue();
    for (chosen = 0; chosen < BUILDERS; chosen++) {
        allocator_fail_each(names[chosen], verb_path);
    }
    allocator_fail_each("all of them", all_path);
}

/* An id that was minted for a request and is in use: another one is minted, and sent. */
static void mint_again_path(void) {
    const emq_client_options options = get_options();
    emq_request *request = NULL;
    emq_request *other = NULL;
    outcome out = {0};
    loop_open(&t, &options, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    assert_int_equal(build_enqueue(&request), EMQ_OK);
    const emq_id taken = *emq_request_get_id(request);
    assert_int_equal(emq_request_enqueue(&other, &taken, "q", "theirs", 6), EMQ_OK);
    outcome first = do_request(&t, other);
    EXPECT_OUTCOME(&first, EMQ_OK);
    allocator_arm_path();
    loop_submit(&t, request, &out);
    wanted w = {&out, 1};
    loop_until(&t, is_ended_or_lost, &w);
    allocator_disarm();
    loop_until_ended(&t, &out, 1);
    expect_ended(&out);
    if (out.result == EMQ_OK) {
        assert_string_not_equal(out.id.text, taken.text);
    }
    loop_finish(&t);
}

/* From another thread's side: nothing is needed but the request. */
static void mail_path(void) {
    const emq_client_options options = get_options();
    emq_request *request = ping_request();
    outcome out = {0};
    loop_open(&t, &options, &loop_short_pause);
    loop_until_state(&t, EMQ_ASYNC_OPEN);
    allocator_arm_path();
    assert_int_equal(emq_async_submit_threadsafe(t.client, request, note_outcome, &out), EMQ_OK);
    assert_int_equal(allocator_counted(), 0);
    wanted w = {&out, 1};
    loop_until(&t, is_ended_or_lost, &w);
    allocator_disarm();
    loop_until_ended(&t, &out, 1);
    expect_ended(&out);
    outcome_clear(&out);
    loop_finish(&t);
}

static void other_ways_in_survive(void **state) {
    (void)state;
    allocator_fail_each("minting again", mint_again_path);
    allocator_fail_each("submitting from a thread", mail_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives),
        cmocka_unit_test(opening_survives_a_loop_without_memory),
        cmocka_unit_test(reconnecting_and_closing_survive),
        cmocka_unit_test(requests_survive),
        cmocka_unit_test(other_ways_in_survive),
    };
    if (emq_set_allocator(allocator_counting()) != EMQ_OK ||
        uv_replace_allocator(uv_malloc, uv_realloc, uv_calloc, free) != 0) {
        (void)fputs("the allocators can't be set\n", stderr);
        return 1;
    }
    return RUN_SERVER_TESTS("client.async_memory", tests, start_server, stop_server);
}
