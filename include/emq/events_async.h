/* SPDX-License-Identifier: Apache-2.0 */
/* Event subscription on a libuv loop: the messages of a queue's channel, each told by a callback.
 *
 * A subscription has a connection of its own, which it opens again by itself when it is lost, as
 * the asynchronous client does, and never blocks the loop. What was sent meanwhile is gone; the
 * messages' numbers tell that they are missing (emq_event_get_gap).
 *
 * Thread rule: everything on the loop's thread. A message belongs to nobody but you, and may be
 * read from any thread.
 *
 * Forks: as for the asynchronous client. In a child nothing is told, emq_events_async_reconnect
 * answers EMQ_EFORKED, and emq_events_async_close frees the child's copy once the loop runs, behind
 * uv_loop_fork.
 */
#ifndef EMQ_EVENTS_ASYNC_H
#define EMQ_EVENTS_ASYNC_H

#include <emq/async.h>
#include <emq/client.h>
#include <emq/events.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A subscription on a loop. Opaque; ended with emq_events_async_close. */
typedef struct emq_events_async emq_events_async;

/**
 * Told of each message, on the loop's thread, never from inside another call. The next one is not
 * read before this returns, so that a slow callback holds up the server's side and needs no memory.
 *
 * @param events the subscription; the callback may reconnect and close it.
 * @param event  the message, yours to free with emq_event_free; NULL unless result is 0.
 * @param result 0; EMQ_EPROTOCOL (a message that is none of EMQ.PUBLISH's) or EMQ_ENOMEM: it was
 *               dropped, its number counts as missed, and the subscription goes on. Its sentence is
 *               emq_events_async_get_error.
 * @param user   of the options.
 */
typedef void (*emq_events_async_fn)(emq_events_async *events, emq_event *event, int result,
                                    void *user);

/**
 * Told of each change of state, on the loop's thread, never from inside another call.
 *
 * @param events the subscription; the callback may reconnect and close it.
 * @param state  the state that it is in now: EMQ_ASYNC_OPEN means subscribed.
 * @param reason why: 0, or the result that ended the attempt or the connection. Its sentence is
 *               emq_events_async_get_error.
 * @param user   of the options.
 */
typedef void (*emq_events_async_state_fn)(emq_events_async *events, emq_async_state state,
                                          int reason, void *user);

/** How a subscription behaves. Fill it with EMQ_EVENTS_ASYNC_OPTIONS_INIT or
 * emq_events_async_options_init first. */
typedef struct emq_events_async_options {
    size_t size;                  /**< sizeof(emq_events_async_options), set by the initialisers */
    emq_events_async_fn on_event; /**< must be set */
    emq_events_async_state_fn on_state; /**< NULL: nobody is told */
    void *user;                         /**< for both */
    uint32_t backoff_min_ms; /**< as in emq_async_options: the first pause before a reconnect is at
                                  most this long; 0 means 50 */
    uint32_t backoff_max_ms; /**< no pause is longer; 0 means 5000. EMQ_EINVAL below
                                  backoff_min_ms, so below 50 where that is 0 */
} emq_events_async_options;

#define EMQ_EVENTS_ASYNC_OPTIONS_INIT                                                              \
    { sizeof(emq_events_async_options), NULL, NULL, NULL, 0, 0 }

/**
 * Sets all options to their defaults, as EMQ_EVENTS_ASYNC_OPTIONS_INIT does.
 *
 * @param options the options. Since 0.1.0.
 */
EMQ_API void emq_events_async_options_init(emq_events_async_options *options);

/**
 * Makes a subscription and starts to connect it: the whole path of emq_client_open, then SUBSCRIBE,
 * within connect_timeout_ms for each attempt. Nothing is resolved or sent before the loop runs.
 *
 * The subscription keeps the loop alive until emq_events_async_close. A server that refuses it (no
 * right to SUBSCRIBE or to the channel, another fence, no module) is told by on_state with
 * EMQ_ASYNC_REFUSED, and no further attempt is made until emq_events_async_reconnect.
 *
 * @param out           receives the subscription, yours to end with emq_events_async_close; NULL on
 *                      an error.
 * @param loop          an initialised loop, which must outlive the subscription.
 * @param options       how to reach the server, copied; NULL means all defaults.
 *                      command_timeout_ms is the time of silence behind which the connection is
 *                      tested, and that in which the server has to answer the test; each is looked
 *                      at once in that time, and so may last up to twice as long.
 * @param queue         the queue name.
 * @param async_options how the subscription behaves.
 * @return 0; EMQ_EINVAL (an option out of range, no on_event); EMQ_EQUEUE; EMQ_ENOTLS; EMQ_ENOMEM.
 *         Loop's thread. Since 0.1.0.
 */
EMQ_API int emq_events_async_open(emq_events_async **out, struct uv_loop_s *loop,
                                  const emq_client_options *options, const char *queue,
                                  const emq_events_async_options *async_options);

/**
 * Ends a subscription, in whatever state it is: no other callback runs any more, then `callback`
 * does, then the memory is freed; on the loop, and not from inside this call. No handle is left on
 * the loop. A look-up of a host name that can't be interrupted keeps the loop running until the
 * resolver is done; `callback` doesn't wait for it. It does wait for files that are being read, of
 * TLS or a password.
 *
 * @param events   the subscription. It may be used until `callback` has run.
 * @param callback told when it is gone; may be NULL.
 * @param user     for the callback.
 * @return 0; EMQ_EINVAL; EMQ_ECLOSED (it is being closed already; `callback` is not called).
 *         Loop's thread, also from inside any callback. Since 0.1.0.
 */
EMQ_API int emq_events_async_close(emq_events_async *events, emq_async_close_fn callback,
                                   void *user);

/**
 * Drops the connection, if there is one, and subscribes again at once, whatever the state: the way
 * out of EMQ_ASYNC_REFUSED.
 *
 * @param events the subscription.
 * @return 0; EMQ_EINVAL; EMQ_ECLOSED (it is being closed); EMQ_EFORKED. Loop's thread. Since
 *         0.1.0.
 */
EMQ_API int emq_events_async_reconnect(emq_events_async *events);

/** The state of a subscription; EMQ_ASYNC_CLOSED in a forked child. @param events it, or NULL.
 * Loop's thread. Since 0.1.0. */
EMQ_API emq_async_state emq_events_async_get_state(const emq_events_async *events);

/**
 * Why the subscription is not open, or, in on_event, what is wrong with a message.
 *
 * @param events the subscription, or NULL.
 * @return borrowed, NUL-terminated, valid until the callback returns or the next one runs; "" while
 *         nothing is wrong.
 *         Loop's thread. Since 0.1.0.
 */
EMQ_API const char *emq_events_async_get_error(const emq_events_async *events);

/**
 * How often it was subscribed again after a loss.
 *
 * @param events the subscription.
 * @return the number of times; 0 for NULL. Loop's thread. Since 0.1.0.
 */
EMQ_API uint64_t emq_events_async_get_reconnects(const emq_events_async *events);

#ifdef __cplusplus
}
#endif

#endif
