/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that wait for work: sent claims whose answer comes when something wakes them.
 *
 * Every client of a test is one of `add_client`, and is closed behind it; then nobody may be left
 * blocked in the server. */
#ifndef EMQ_TESTS_WAITING_H
#define EMQ_TESTS_WAITING_H

#include "core.h"

#define WAITING_TEST(function)                                                                     \
    cmocka_unit_test_setup_teardown(function, clean_slate, expect_nobody_waits)

/* A claim that waits for a minute: nothing but a wake answers it within a test. */
#define WAITING_CLAIM(count) CLAIMS("60000", count, "60000")

/* The answer of one job, and an element of an answer of several. */
#define JOB(id, payload, attempts) "[\"" id "\", \"" payload "\", " attempts "]"
#define ONE_JOB(id, payload, attempts) "[" JOB(id, payload, attempts) "]"

#define UNBLOCKED "-UNBLOCKED client unblocked via CLIENT UNBLOCK"
#define CLOSED "closed"

redisContext *add_client(void);
redisContext *add_client_as(const char *user, const char *rules);
void close_client(redisContext *c);
int expect_nobody_waits(void **state);

/* The number of an INFO field of the module: `blocked_claims`, `wakes`. */
long long get_stat(const char *name);

/* Sends a line without waiting for its answer. */
#define SEND(c, ...) send_line((c), __VA_ARGS__, (const char *)NULL)
void send_line(redisContext *c, ...) NULL_AT_THE_END;

/* Sends a claim, and returns when its client is blocked; an answer fails the test. */
#define BLOCK(c, ...) block_client(__FILE__, __LINE__, (c), __VA_ARGS__, (const char *)NULL)
void block_client(const char *file, int line, redisContext *c, ...) NULL_AT_THE_END;

/* A new client of the default user, blocked by WAITING_CLAIM. */
redisContext *add_waiter(const char *count);

/* Waits until so many claims are blocked. */
void wait_blocked(long long count);

/* All that was sent before is done, and this client has no answer. */
#define STILL_WAITING(c) still_waiting(__FILE__, __LINE__, (c))
void still_waiting(const char *file, int line, redisContext *c);
int has_answer(redisContext *c);

/* Two round trips: whatever earlier calls woke has been answered. */
void settle_down(void);

/* The answer that a client waits for, when it comes, as text (the caller frees it), or `closed`.
 * A minute without any fails the test. */
char *read_answer(redisContext *c);

/* ... is this. */
#define WAKES_WITH(c, want) wakes_with(__FILE__, __LINE__, (c), (want))
void wakes_with(const char *file, int line, redisContext *c, const char *want);

/* The server's clock. */
long long get_server_ms(void);

#endif
