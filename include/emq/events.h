/* SPDX-License-Identifier: Apache-2.0 */
/* Event subscription: the messages that EMQ.PUBLISH sends on a queue's channel, one after the
 * other.
 *
 * A subscription has a connection of its own, which it opens again by itself when it is lost.
 * Messages that were sent meanwhile are gone: the server keeps none. Their numbers tell that they
 * are missing (emq_event_get_gap), so that no loss goes unnoticed.
 *
 * Thread rule: one subscription, one thread at a time; different ones are independent. A message
 * belongs to nobody but you, and may be read from any thread.
 *
 * Fork rule: as for a client. In a forked child every call answers EMQ_EFORKED; emq_events_close
 * frees the child's copy.
 */
#ifndef EMQ_EVENTS_H
#define EMQ_EVENTS_H

#include <emq/client.h>
#include <emq/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A subscription to the channel of a queue. Opaque. */
typedef struct emq_events emq_events;

/** A message. Opaque; freed with emq_event_free. */
typedef struct emq_event emq_event;

/**
 * Subscribes to a queue's channel on a new connection: the whole connect path of emq_client_open,
 * then SUBSCRIBE, all within connect_timeout_ms. Messages count from then on.
 *
 * @param out     receives the subscription on success. On a failure it receives one too, which is
 *                not connected and good for emq_events_get_error, emq_events_next and
 *                emq_events_reconnect (which try again), and emq_events_close; NULL only for
 *                EMQ_ENOMEM, and when out or the queue is refused.
 * @param options how to reach the server, copied; NULL means all defaults. command_timeout_ms is
 *                the time of silence behind which the connection is tested, and that in which the
 *                server has to answer the test.
 * @param queue   the queue name.
 * @return 0; EMQ_EQUEUE; EMQ_EINVAL; EMQ_ENOPERM (also: no right to SUBSCRIBE, or to the channel);
 *         and what else emq_client_open returns. Since 0.1.0.
 */
EMQ_API int emq_events_open(emq_events **out, const emq_client_options *options, const char *queue);

/**
 * Waits for the next message.
 *
 * When the connection is lost, the call opens and subscribes again as long as its time lasts, with
 * pauses in between that are drawn at random below a cap, which doubles from 50 ms up to 5 s. So
 * give a call at least the time that a connect takes: with a timeout of 0 nothing is reconnected,
 * and emq_events_reconnect is there for it.
 *
 * @param out        receives the message, yours to free; NULL unless 0 is returned.
 * @param events     the subscription.
 * @param timeout_ms how long to wait, milliseconds; 0 takes what has come in already.
 * @return 0; EMQ_EMPTY (subscribed, and no message in that time); EMQ_EPROTOCOL (a message that is
 *         none of EMQ.PUBLISH's: it is dropped and the subscription goes on, so that its number
 *         counts as missed; or a peer that breaks the protocol: connected anew by the next call);
 *         EMQ_ECONNECT, EMQ_ECONNTIMEOUT, EMQ_ERESOLVE, EMQ_ELOADING and the others of class
 *         EMQ_CLASS_RETRYABLE (not subscribed at the end of that time; the next call goes on
 *         trying); a refusal, as emq_events_open returns it, as soon as it comes (the next call
 *         tries again, after a pause); EMQ_EINVAL; EMQ_EFORKED; EMQ_ENOMEM (a message may have been
 *         dropped, as above); EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_events_next(emq_event **out, emq_events *events, uint32_t timeout_ms);

/**
 * Drops the connection, if there is one, and opens and subscribes again at once, within
 * connect_timeout_ms. What had come in and was not taken yet is dropped, and counts as missed.
 *
 * @param events the subscription.
 * @return as emq_events_open; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_events_reconnect(emq_events *events);

/**
 * Tells whether it is subscribed, as far as this process knows.
 *
 * @param events the subscription.
 * @return 1 or 0. Since 0.1.0.
 */
EMQ_API int emq_events_is_open(const emq_events *events);

/**
 * How often it was subscribed again after a loss. A change tells of a loss even when no message has
 * come since.
 *
 * @param events the subscription.
 * @return the number of times; 0 for NULL. Since 0.1.0.
 */
EMQ_API uint64_t emq_events_get_reconnects(const emq_events *events);

/**
 * What the last failed call had to say, as emq_client_get_error.
 *
 * @param events the subscription, or NULL.
 * @return borrowed, NUL-terminated, valid until the next call on it; never NULL. Since 0.1.0.
 */
EMQ_API const char *emq_events_get_error(const emq_events *events);

/** Closes the connection and frees the subscription. Messages that were taken stay.
 * @param events the subscription, or NULL. Since 0.1.0. */
EMQ_API void emq_events_close(emq_events *events);

/**
 * What happened, as the publisher named it.
 *
 * @param event a message.
 * @param n     receives the number of bytes; may be NULL.
 * @return borrowed, any bytes, also none, with a NUL behind them; NULL for NULL. Since 0.1.0.
 */
EMQ_API const char *emq_event_get_event(const emq_event *event, size_t *n);

/**
 * The job that it happened to, as the publisher named it; it need not be a branded id.
 *
 * @param event a message.
 * @param n     receives the number of bytes; may be NULL.
 * @return borrowed, any bytes, also none, with a NUL behind them; NULL for NULL. Since 0.1.0.
 */
EMQ_API const char *emq_event_get_job(const emq_event *event, size_t *n);

/** The number of the message on its channel. @param event a message. Since 0.1.0. */
EMQ_API int64_t emq_event_get_seq(const emq_event *event);

/** Messages may be missing, and nobody can say how many. */
#define EMQ_GAP_UNKNOWN INT64_C(-1)

/**
 * How many messages were missed between the one before and this one, by their numbers.
 *
 * @param event a message.
 * @return 0 when none is missing; their number; EMQ_GAP_UNKNOWN when the numbers began anew (a
 *         FLUSHDB, a server that lost its data), or when the connection was lost before there was
 *         a message. Since 0.1.0.
 */
EMQ_API int64_t emq_event_get_gap(const emq_event *event);

/**
 * Tells whether this is the first message behind a loss of the connection. Where numbers may begin
 * anew, that is to be looked at as well: a channel whose numbers began anew during a loss may have
 * come to just the number that was expected.
 *
 * @param event a message.
 * @return 1 or 0. Since 0.1.0.
 */
EMQ_API int emq_event_is_resumed(const emq_event *event);

/** The number of further fields. @param event a message. Since 0.1.0. */
EMQ_API size_t emq_event_get_count(const emq_event *event);

/**
 * The name of a further field.
 *
 * @param event a message.
 * @param i     0 to emq_event_get_count - 1, in the publisher's order.
 * @return borrowed, UTF-8, NUL-terminated; NULL outside of the range. Since 0.1.0.
 */
EMQ_API const char *emq_event_get_name(const emq_event *event, size_t i);

/**
 * The value of a further field, as it was published: what the message holds in base64 is decoded.
 *
 * @param event a message.
 * @param i     0 to emq_event_get_count - 1.
 * @param n     receives the number of bytes; may be NULL.
 * @return borrowed, any bytes, also none, with a NUL behind them; NULL outside of the range.
 *         Since 0.1.0.
 */
EMQ_API const char *emq_event_get_value(const emq_event *event, size_t i, size_t *n);

/**
 * The value of the further field of that name.
 *
 * @param event a message.
 * @param name  the name, as it was published (without `_b64`). A publisher's own name that ends so
 *              can't be told from the sender's mark when its value is the base64 of what is not
 *              UTF-8: don't use such names.
 * @param n     receives the number of bytes, 0 where there is none; may be NULL.
 * @return as emq_event_get_value; NULL when there is no such field. Since 0.1.0.
 */
EMQ_API const char *emq_event_get_field(const emq_event *event, const char *name, size_t *n);

/**
 * The message as it came: one JSON object.
 *
 * @param event a message.
 * @param n     receives the number of bytes; may be NULL.
 * @return borrowed, with a NUL behind it; NULL for NULL. Since 0.1.0.
 */
EMQ_API const char *emq_event_get_text(const emq_event *event, size_t *n);

/** Frees a message. @param event a message, or NULL. Since 0.1.0. */
EMQ_API void emq_event_free(emq_event *event);

#ifdef __cplusplus
}
#endif

#endif
