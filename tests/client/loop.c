/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"

#define PULSE_MS 10
#define PULSES_MAX (LONG_MS / PULSE_MS)
#define PULSES_OF_REST 5

const emq_async_options loop_short_pause = {
    .size = sizeof(emq_async_options), .backoff_min_ms = 1, .backoff_max_ms = 2};

static void on_pulse(uv_timer_t *timer) {
    test_loop *t = timer->data;
    t->pulses++;
}

static void on_state(emq_async *client, emq_async_state state, int reason, void *user) {
    test_loop *t = user;
    assert_false(t->is_inside);
    assert_int_equal(emq_async_get_state(client), state);
    assert_int_equal(reason < 0 && state != EMQ_ASYNC_OPEN, emq_async_get_error(client)[0] != '\0');
    if (t->told < TOLD_MAX) {
        t->states[t->told] = state;
        t->reasons[t->told] = reason;
        t->told++;
    }
}

void loop_start(test_loop *t) {
    memset(t, 0, sizeof(*t));
    assert_int_equal(uv_loop_init(&t->loop), 0);
    assert_int_equal(uv_timer_init(&t->loop, &t->pulse), 0);
    t->pulse.data = t;
    assert_int_equal(uv_timer_start(&t->pulse, on_pulse, PULSE_MS, PULSE_MS), 0);
}

void loop_stop(test_loop *t) {
    uv_close((uv_handle_t *)&t->pulse, NULL);
    assert_int_equal(uv_run(&t->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&t->loop), 0);
}

int loop_open_again(test_loop *t, const emq_client_options *options,
                    const emq_async_options *async_options) {
    emq_async_options own = EMQ_ASYNC_OPTIONS_INIT;
    if (async_options != NULL) {
        own = *async_options;
    }
    own.on_state = on_state;
    own.user = t;
    t->told = 0;
    t->closes = 0;
    t->is_inside = 1;
    int result = emq_async_open(&t->client, &t->loop, options, &own);
    t->is_inside = 0;
    t->is_closing = result != EMQ_OK;
    return result;
}

int loop_try_open(test_loop *t, const emq_client_options *options,
                  const emq_async_options *async_options) {
    loop_start(t);
    return loop_open_again(t, options, async_options);
}

void loop_open(test_loop *t, const emq_client_options *options,
               const emq_async_options *async_options) {
    assert_int_equal(loop_try_open(t, options, async_options), EMQ_OK);
}

static void on_close(void *user) {
    test_loop *t = user;
    assert_false(t->is_inside);
    t->closes++;
    t->client = NULL;
}

void loop_close_client(test_loop *t) {
    int was_inside = t->is_inside;
    t->is_inside = 1;
    assert_int_equal(emq_async_close(t->client, on_close, t), EMQ_OK);
    t->is_inside = was_inside;
    t->is_closing = 1;
}

static void close_in_child(void *data) {
    const test_loop *t = data;
    CHECK_IN_CHILD(emq_async_reconnect(t->client) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_async_close(t->client, NULL, NULL) == EMQ_OK);
}

void loop_close_in_child(test_loop *t) {
    run_child(close_in_child, t);
}

void loop_close_waits(test_loop *t) {
    loop_close_in_child(t);
    assert_int_equal(emq_async_reconnect(t->client), EMQ_OK);
    loop_rest(t);
    loop_close_client(t);
    loop_rest(t);
    assert_int_equal(t->closes, 0);
}

static int is_closed(void *data) {
    const test_loop *t = data;
    return t->closes > 0;
}

void loop_end_client(test_loop *t) {
    if (!t->is_closing) {
        loop_close_client(t);
    }
    if (t->client != NULL) {
        loop_until(t, is_closed, t);
    }
}

void loop_finish(test_loop *t) {
    int was_open = t->client != NULL || t->closes > 0;
    loop_end_client(t);
    loop_stop(t);
    assert_int_equal(t->closes, was_open);
}

void loop_until(test_loop *t, int (*done)(void *data), void *data) {
    t->pulses = 0;
    while (!done(data)) {
        (void)uv_run(&t->loop, UV_RUN_ONCE);
        if (t->pulses > PULSES_MAX) {
            fail_msg("the loop waits in vain");
        }
    }
}

typedef struct wanted {
    const test_loop *t;
    emq_async_state state;
    int reason;
    outcome *outcomes;
    int count;
} wanted;

static int is_in_state(void *data) {
    const wanted *w = data;
    return emq_async_get_state(w->t->client) == w->state && w->t->told > 0 &&
           w->t->states[w->t->told - 1] == w->state;
}

typedef struct arrival {
    peer *p;
    int commands;
    int connections;
} arrival;

static int has_arrived(void *data) {
    const arrival *a = data;
    return peer_commands(a->p) >= a->commands && peer_connections(a->p) >= a->connections;
}

void loop_until_commands(test_loop *t, peer *p, int commands) {
    arrival a = {.p = p, .commands = commands};
    loop_until(t, has_arrived, &a);
}

void loop_until_connections(test_loop *t, peer *p, int connections) {
    arrival a = {.p = p, .connections = connections};
    loop_until(t, has_arrived, &a);
}

void loop_until_state(test_loop *t, emq_async_state state) {
    wanted w = {.t = t, .state = state};
    loop_until(t, is_in_state, &w);
}

static int is_told(void *data) {
    const wanted *w = data;
    for (int i = 0; i < w->t->told; i++) {
        if (w->t->states[i] == w->state && w->t->reasons[i] == w->reason) {
            return 1;
        }
    }
    return 0;
}

void loop_until_told(test_loop *t, emq_async_state state, int reason) {
    wanted w = {.t = t, .state = state, .reason = reason};
    loop_until(t, is_told, &w);
}

static int has_ended(void *data) {
    const wanted *w = data;
    for (int i = 0; i < w->count; i++) {
        if (w->outcomes[i].calls == 0) {
            return 0;
        }
    }
    return 1;
}

void loop_until_ended(test_loop *t, outcome *outcomes, int count) {
    wanted w = {.outcomes = outcomes, .count = count};
    loop_until(t, has_ended, &w);
}

static int has_rested(void *data) {
    const test_loop *t = data;
    return t->pulses >= PULSES_OF_REST;
}

void loop_rest(test_loop *t) {
    loop_until(t, has_rested, t);
}

void note_outcome(emq_request *request, int result, void *user) {
    outcome *out = user;
    out->calls++;
    out->result = result;
    if (emq_request_get_id(request) != NULL) {
        out->id = *emq_request_get_id(request);
    }
    (void)emq_request_take_job(&out->job, request);
    (void)emq_request_take_reply(&out->reply, request);
    (void)snprintf(out->error, sizeof(out->error), "%s", emq_request_get_error(request));
    assert_int_equal(result < 0, out->error[0] != '\0');
}

emq_request *loop_submit(test_loop *t, emq_request *request, outcome *out) {
    int calls = out->calls;
    assert_int_equal(emq_async_submit(t->client, request, note_outcome, out), EMQ_OK);
    assert_int_equal(out->calls, calls);
    return request;
}

outcome do_request(test_loop *t, emq_request *request) {
    outcome out = {0};
    loop_submit(t, request, &out);
    loop_until_ended(t, &out, 1);
    return out;
}

static int is_open_or_closed(void *data) {
    const test_loop *t = data;
    for (int i = 0; i < t->told; i++) {
        if (t->states[i] != EMQ_ASYNC_CONNECTING) {
            return 1;
        }
    }
    return 0;
}

void loop_expect_open_with_memory(test_loop *t) {
    loop_until(t, is_open_or_closed, t);
    allocator_disarm();
    for (int i = 0; i < t->told; i++) {
        if (t->states[i] != EMQ_ASYNC_CONNECTING && t->reasons[i] != EMQ_OK &&
            t->reasons[i] != EMQ_ENOMEM) {
            fail_msg("allocation %ld: %s", allocator_fails_from(), emq_err_name(t->reasons[i]));
        }
    }
    loop_until_state(t, EMQ_ASYNC_OPEN);
    outcome out = do_request(t, ping_request());
    EXPECT_OUTCOME(&out, EMQ_OK);
    outcome_clear(&out);
}

void loop_open_without_memory(test_loop *t, const emq_client_options *options) {
    allocator_arm_path();
    int result = loop_try_open(t, options, &loop_short_pause);
    if (result == EMQ_OK) {
        loop_expect_open_with_memory(t);
    } else {
        allocator_disarm();
        assert_int_equal(result, EMQ_ENOMEM);
        assert_null(t->client);
    }
    loop_finish(t);
}

emq_request *enqueue_request(const char *queue, const void *p, size_t n) {
    emq_request *request = NULL;
    assert_int_equal(emq_request_enqueue(&request, NULL, queue, p, n), EMQ_OK);
    return request;
}

emq_request *claim_request(const char *queue) {
    emq_request *request = NULL;
    assert_int_equal(emq_request_claim(&request, queue, 60000), EMQ_OK);
    return request;
}

emq_request *complete_request(const emq_lease *lease) {
    emq_request *request = NULL;
    assert_int_equal(emq_request_complete(&request, lease), EMQ_OK);
    return request;
}

emq_request *ping_request(void) {
    emq_request *request = NULL;
    assert_int_equal(emq_request_command(&request, 1, (const char *const[]){"PING"}, NULL), EMQ_OK);
    return request;
}

void expect_outcome(const char *file, int line, const outcome *out, int want) {
    if (out->calls != 1 || out->result != want) {
        print_error("%d calls, %s '%s', want %s\n", out->calls, emq_err_name(out->result),
                    out->error, emq_err_name(want));
        _fail(file, line);
    }
}

void outcome_clear(outcome *out) {
    emq_job_free(out->job);
    emq_reply_free(out->reply);
    memset(out, 0, sizeof(*out));
}
