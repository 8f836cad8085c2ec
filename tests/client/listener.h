/* SPDX-License-Identifier: Apache-2.0 */
/* A loop with a subscription on it, for tests: what was told, and running until something is so. */
#ifndef EMQ_TESTS_LISTENER_H
#define EMQ_TESTS_LISTENER_H

#include "loop.h"

#define MESSAGES_MAX 64

typedef struct listener listener;

/* What was told of a subscription. */
struct listener {
    test_loop t; /* its states are this subscription's */
    emq_events_async *events;
    int messages; /* that came, those that were dropped included */
    int dropped;
    int results[MESSAGES_MAX];
    int64_t seqs[MESSAGES_MAX];
    int64_t gaps[MESSAGES_MAX];
    int resumed[MESSAGES_MAX];
    emq_event *last;
    void (*on_event)(listener *l); /* what a test does inside of the callbacks */
    void (*on_state)(listener *l);
};

/* Options whose callbacks note into the listener, with short pauses. */
emq_events_async_options listener_options(listener *l);

/* Starts a loop, and tries to put a subscription on it. */
void listener_start(listener *l);
int listener_try_open(listener *l, const emq_client_options *options, const char *queue);

/* The same for one that must open. */
void listener_open(listener *l, const emq_client_options *options, const char *queue);

/* Closes the subscription; nothing may be told behind that. */
void listener_close(listener *l);
int listener_is_closed(void *data);

/* Closes it, unless the test did, and expects that nothing is left on the loop. */
void listener_finish(listener *l);

/* Until it is told, behind so many states that were told before. */
void listener_until_told(listener *l, int behind, emq_async_state state, int reason);

void listener_until_open(listener *l);
void listener_until_messages(listener *l, int count);
void listener_until_reconnects(listener *l, int count);

/* The server, since its CONFIG RESETSTAT, was subscribed to and asked for it twice more. */
int listeners_were_tested(void *server);

/* The message of that number in the order of arrival is this one. */
#define EXPECT_MESSAGE(l, i, seq, gap, resumed)                                                    \
    expect_message(__FILE__, __LINE__, (l), (i), (seq), (gap), (resumed))
void expect_message(const char *file, int line, listener *l, int i, int64_t seq, int64_t gap,
                    int resumed);

#endif
