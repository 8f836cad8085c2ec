/* SPDX-License-Identifier: Apache-2.0 */
/* A loop with an asynchronous client on it, for tests: what it told, how its requests ended, and
 * running until something is so. */
#ifndef EMQ_TESTS_LOOP_H
#define EMQ_TESTS_LOOP_H

#include <emq/emq.h>
#include <uv.h>

#include "fixture.h"

#define TOLD_MAX 64

/* How one request ended. */
typedef struct outcome {
    int calls; /* of its callback */
    int result;
    emq_id id;
    emq_job *job;
    emq_reply *reply;
    char error[256];
} outcome;

typedef struct test_loop {
    uv_loop_t loop;
    uv_timer_t pulse; /* so that a loop that waits comes round, and a test that hangs ends */
    int pulses;
    emq_async *client;
    int is_inside; /* a call that must not call back */
    int is_closing;
    int closes; /* of the close callback */
    int told;
    emq_async_state states[TOLD_MAX];
    int reasons[TOLD_MAX];
} test_loop;

/* A loop without a client. Stopping it expects that no handle but the pulse is left. */
void loop_start(test_loop *t);
void loop_stop(test_loop *t);

/* Starts a loop and a client on it; `async_options` may be NULL. */
void loop_open(test_loop *t, const emq_client_options *options,
               const emq_async_options *async_options);

/* The same where opening the client may fail: its result. */
int loop_try_open(test_loop *t, const emq_client_options *options,
                  const emq_async_options *async_options);

/* Opens another client on the loop, when the one before is closed; its result. */
int loop_open_again(test_loop *t, const emq_client_options *options,
                    const emq_async_options *async_options);

/* Closes the client, unless the test did, runs the loop to its end, and expects that the client is
 * gone and no handle is left. */
void loop_finish(test_loop *t);

void loop_close_client(test_loop *t);

/* Closes it in a forked child, which has no part in it. */
void loop_close_in_child(test_loop *t);

/* Closes it while files are read, in a child first: it is there until that has ended. */
void loop_close_waits(test_loop *t);

/* Closes the client, unless the test did, and runs the loop until it is gone. */
void loop_end_client(test_loop *t);

/* Runs the loop until it is so, or fails the test. */
void loop_until(test_loop *t, int (*done)(void *data), void *data);

/* Until so many commands, or connections, have come to a peer. */
void loop_until_commands(test_loop *t, peer *p, int commands);
void loop_until_connections(test_loop *t, peer *p, int connections);

void loop_until_state(test_loop *t, emq_async_state state);
void loop_until_told(test_loop *t, emq_async_state state, int reason);

/* Until this many of the outcomes are there. */
void loop_until_ended(test_loop *t, outcome *outcomes, int count);

/* Runs the loop for a few rounds of the pulse, in which something must not happen. */
void loop_rest(test_loop *t);

/* The callback of requests: notes the outcome, which is its user data. */
void note_outcome(emq_request *request, int result, void *user);

/* Submits a request that must be taken; it is returned for emq_request_cancel. */
emq_request *loop_submit(test_loop *t, emq_request *request, outcome *out);

/* Options of clients that try again at once. */
extern const emq_async_options loop_short_pause;

/* The client connects with what memory there is, or fails for the lack of it; then, with enough of
 * it, it opens and works. */
void loop_expect_open_with_memory(test_loop *t);

/* A path for allocator_fail_each: opens a client and ends it. */
void loop_open_without_memory(test_loop *t, const emq_client_options *options);

/* Submits and runs until it has ended. */
outcome do_request(test_loop *t, emq_request *request);

/* Builders that must succeed. */
emq_request *enqueue_request(const char *queue, const void *p, size_t n);
emq_request *claim_request(const char *queue);
emq_request *complete_request(const emq_lease *lease);
emq_request *ping_request(void);

/* The outcome is this one, and came once. */
#define EXPECT_OUTCOME(out, want) expect_outcome(__FILE__, __LINE__, (out), (want))
void expect_outcome(const char *file, int line, const outcome *out, int want);

void outcome_clear(outcome *out);

#endif
