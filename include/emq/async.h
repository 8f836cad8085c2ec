/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client: one connection that belongs to a libuv loop.
 *
 * One request object per operation. It is built (emq_request_claim), submitted (emq_async_submit),
 * and answered by its callback: exactly once, on the loop's thread, and never from inside the call
 * that submitted it. Requests are sent in the order in which they were submitted, without waiting
 * for each other's answers.
 *
 * The client connects by itself, and again after a loss. Reading files, resolving, connecting, the
 * TLS handshake and the connect path never block the loop.
 *
 * Thread rule: everything on the loop's thread, but emq_async_submit_threadsafe, and the building
 * of a request, which any thread can do.
 *
 * Forks: a client is its process's. In a child everything answers EMQ_EFORKED but emq_async_close,
 * which frees the child's copy once the loop runs, and for that uv_loop_fork comes first; see
 * docs/client.md, Forks.
 */
#ifndef EMQ_ASYNC_H
#define EMQ_ASYNC_H

#include <emq/client.h>
#include <emq/error.h>
#include <emq/id.h>
#include <emq/job.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s;

/** A client on a loop. Opaque; ended with emq_async_close. */
typedef struct emq_async emq_async;

/** One operation. Opaque; the client's own from a successful submit on. */
typedef struct emq_request emq_request;

/** Where a client is. */
typedef enum emq_async_state {
    EMQ_ASYNC_CONNECTING, /**< an attempt runs: resolving, connecting, or the connect path */
    EMQ_ASYNC_OPEN,       /**< requests go out */
    EMQ_ASYNC_CLOSED,     /**< an attempt failed or the connection was lost; the next one waits */
    EMQ_ASYNC_REFUSED     /**< the server is not the right one, has the wrong certificate, or
                               refuses this user: no further attempt until emq_async_reconnect */
} emq_async_state;

/** What a client counts, since it was opened. */
typedef enum emq_async_counter {
    EMQ_ASYNC_CONNECTS,   /**< connections that came to be open */
    EMQ_ASYNC_RECONNECTS, /**< those of them that were not the first */
    EMQ_ASYNC_REQUESTS,   /**< requests that were submitted */
    EMQ_ASYNC_BYTES_IN,   /**< bytes that were received, without those of TLS */
    EMQ_ASYNC_BYTES_OUT,  /**< bytes that were sent, likewise */
    EMQ_ASYNC_OVERLOADS,  /**< submits that were turned down with EMQ_EOVERLOAD */
    EMQ_ASYNC_TIMEOUTS    /**< requests whose deadline passed */
} emq_async_counter;

/**
 * Told of each change of state, on the loop's thread, never from inside another call.
 *
 * @param client the client; the callback may submit, reconnect and close.
 * @param state  the state that it is in now.
 * @param reason why: 0, or the result that ended the attempt or the connection. Its sentence is
 *               emq_async_get_error.
 * @param user   of the options.
 */
typedef void (*emq_async_state_fn)(emq_async *client, emq_async_state state, int reason,
                                   void *user);

/** Told that a client is gone: its memory is freed when this returns. @param user of the call. */
typedef void (*emq_async_close_fn)(void *user);

/**
 * Told how a request ended. The request is freed when this returns.
 *
 * @param request the request, for emq_request_get_… and emq_request_take_…; the callback may
 *                submit, cancel other requests, and close the client.
 * @param result  its result: what the synchronous call of the verb returns, or
 *                EMQ_ECONNTIMEOUT (not sent by its deadline: nothing was done),
 *                EMQ_ETIMEOUT (sent, and not answered by its deadline),
 *                EMQ_ECONNLOST (sent, and the connection was lost before the answer),
 *                EMQ_ECANCELED, EMQ_ECLOSED (emq_async_close came first), EMQ_EFORKED (it came
 * first in a forked child: how it ends is the parent's), or, for one that was not sent when the
 * client came to be refused, the result of that refusal.
 * @param user    of the submit.
 */
typedef void (*emq_request_fn)(emq_request *request, int result, void *user);

/** How a client behaves. Fill it with EMQ_ASYNC_OPTIONS_INIT or emq_async_options_init first. */
typedef struct emq_async_options {
    size_t size;                 /**< sizeof(emq_async_options), set by the initialisers */
    emq_async_state_fn on_state; /**< NULL: nobody is told */
    void *user;                  /**< for on_state */
    uint32_t max_requests;       /**< submitted and not answered yet; 0 means 4096 */
    uint32_t backoff_min_ms;     /**< the first pause before a reconnect is at most this long; 0
                                      means 50. It doubles with each failure. */
    uint32_t backoff_max_ms;     /**< no pause is longer; 0 means 5000. EMQ_EINVAL below
                                      backoff_min_ms, so below 50 where that is 0 */
    uint32_t complete_once;      /**< 1: a COMPLETE or REQUEUE whose answer was lost is not sent
                                      once more */
    size_t max_bytes; /**< of requests not answered yet, as they are sent; 0 means 64 MiB.
                           A single request may be larger when nothing else waits. */
} emq_async_options;

#define EMQ_ASYNC_OPTIONS_INIT                                                                     \
    { sizeof(emq_async_options), NULL, NULL, 0, 0, 0, 0, 0 }

/**
 * Sets all options to their defaults, as EMQ_ASYNC_OPTIONS_INIT does.
 *
 * @param options the options. Since 0.1.0.
 */
EMQ_API void emq_async_options_init(emq_async_options *options);

/**
 * Makes a client and starts to connect it. Nothing is resolved or sent before the loop runs;
 * requests can be submitted at once, and go out when the connection is open.
 *
 * The client keeps the loop alive until emq_async_close.
 *
 * @param out           receives the client, yours to end with emq_async_close; NULL on an error.
 * @param loop          an initialised loop, which must outlive the client.
 * @param options       how to reach the server; NULL means all defaults. connect_timeout_ms is for
 *                      each attempt, command_timeout_ms the deadline of a request that has none of
 *                      its own. Strings are copied.
 * @param async_options how the client behaves; NULL means all defaults.
 * @return 0; EMQ_EINVAL (an option out of range); EMQ_ENOTLS (TLS is asked for, and libemq is built
 *         without it); EMQ_ENOMEM; EMQ_ESYSTEM. Loop's thread. Since 0.1.0.
 */
EMQ_API int emq_async_open(emq_async **out, struct uv_loop_s *loop,
                           const emq_client_options *options,
                           const emq_async_options *async_options);

/**
 * Ends a client, in whatever state it is. Each request that was submitted gets its callback
 * (EMQ_ECLOSED; in a forked child EMQ_EFORKED), then `callback` runs, then the memory is freed; all
 * on the loop, and none from inside this call. The client leaves no handle on the loop. A look-up
 * of a host name that can't be interrupted keeps the loop running until the resolver is done; the
 * callbacks don't wait for it. They do wait for files that are being read, of TLS or a password.
 *
 * @param client   the client. It may be used until `callback` has run; submits answer EMQ_ECLOSED.
 * @param callback told when it is gone; may be NULL.
 * @param user     for the callback.
 * @return 0; EMQ_EINVAL; EMQ_ECLOSED (it is being closed already; `callback` is not called).
 *         Loop's thread, also from inside any callback. Since 0.1.0.
 */
EMQ_API int emq_async_close(emq_async *client, emq_async_close_fn callback, void *user);

/**
 * Drops the connection, if there is one, and connects at once, whatever the state: the way out of
 * EMQ_ASYNC_REFUSED. What was sent and not answered ends in EMQ_ECONNLOST, or is sent once more, as
 * after any loss.
 *
 * @param client the client.
 * @return 0; EMQ_EINVAL; EMQ_ECLOSED (it is being closed); EMQ_EFORKED. Loop's thread. Since 0.1.0.
 */
EMQ_API int emq_async_reconnect(emq_async *client);

/** The state of a client; EMQ_ASYNC_CLOSED in a forked child. @param client the client. Loop's
 * thread. Since 0.1.0. */
EMQ_API emq_async_state emq_async_get_state(const emq_async *client);

/**
 * Why the client is not open: the server's own text where there is one, else a sentence.
 *
 * @param client the client, or NULL.
 * @return borrowed, NUL-terminated, valid until the next change of state; "" while it is open, and
 *         before the first failure. Loop's thread. Since 0.1.0.
 */
EMQ_API const char *emq_async_get_error(const emq_async *client);

/**
 * One of the client's counters.
 *
 * @param client  the client.
 * @param counter which one.
 * @return its value; 0 for an unknown one. Loop's thread. Since 0.1.0.
 */
EMQ_API uint64_t emq_async_get_counter(const emq_async *client, emq_async_counter counter);

/**
 * Submits a request.
 *
 * @param client   the client.
 * @param request  a request that was not submitted yet. On success it is the client's, and gone
 *                 when its callback has run; on a failure it stays yours, and may be submitted
 *                 again.
 * @param callback told how it ended; must not be NULL.
 * @param user     for the callback.
 * @return 0; EMQ_EINVAL; EMQ_EOVERLOAD (max_requests or max_bytes is reached); EMQ_ETOOBIG (the
 *         payload is larger than max_payload); EMQ_ECLOSED (the client is refused, or being
 *         closed); EMQ_EFORKED. Loop's thread, also from inside any callback. Since 0.1.0.
 */
EMQ_API int emq_async_submit(emq_async *client, emq_request *request, emq_request_fn callback,
                             void *user);

/**
 * The same from any thread. The callback runs on the loop's thread, and may have run before this
 * returns: after a success the request must not be touched here.
 *
 * The client must not be gone: join or stop the threads that submit before its close callback runs.
 * Until then they get EMQ_ECLOSED.
 *
 * @param client   the client.
 * @param request  as for emq_async_submit.
 * @param callback as for emq_async_submit.
 * @param user     for the callback.
 * @return as emq_async_submit. A client that is refused takes the request and ends it with the
 *         refusal's result. Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_async_submit_threadsafe(emq_async *client, emq_request *request,
                                        emq_request_fn callback, void *user);

/**
 * Builds the request of emq_enqueue. The payload is copied.
 *
 * @param out   receives the request, yours until it is submitted; NULL on an error.
 * @param id    a JOB id; NULL or zeroed: one is minted. emq_request_get_id tells it.
 * @param queue the queue name.
 * @param p     the payload; may be NULL when n is 0.
 * @param n     its bytes.
 * @return 0; EMQ_EINVAL; EMQ_EQUEUE; EMQ_EID_…; EMQ_EKIND; EMQ_ETOOBIG (more than 1 GiB);
 *         EMQ_ENOMEM; EMQ_ESYSTEM. Any thread. Since 0.1.0.
 */
EMQ_API int emq_request_enqueue(emq_request **out, const emq_id *id, const char *queue,
                                const void *p, size_t n);

/**
 * Builds the request of emq_claim. The callback finds the job with emq_request_get_job or takes it
 * with emq_request_take_job. Where a claim was sent and its answer is not waited for (canceled,
 * timed out, lost, closed), a job that it may have leased comes back with the first sweep after
 * that lease has lapsed.
 *
 * @param out      as for emq_request_enqueue.
 * @param queue    the queue name.
 * @param lease_ms how long the job is held, 1 to 2147483647 milliseconds.
 * @return 0; EMQ_EINVAL; EMQ_EQUEUE; EMQ_ENOMEM. Any thread. Since 0.1.0.
 */
EMQ_API int emq_request_claim(emq_request **out, const char *queue, uint32_t lease_ms);

/**
 * Builds the request of emq_complete. When its answer is lost it is sent once more, unless the
 * client's options say complete_once: under its token that is harmless, and EMQ_GONE then means
 * done or removed.
 *
 * @param out   as for emq_request_enqueue.
 * @param lease the lease of the job; copied.
 * @return 0; EMQ_EINVAL; EMQ_EQUEUE; EMQ_EID_…; EMQ_EKIND; EMQ_ENOMEM. Any thread. Since 0.1.0.
 */
EMQ_API int emq_request_complete(emq_request **out, const emq_lease *lease);

/*
 * The other verbs. Each builds the request of the function of its name in emq/verbs.h, and takes
 * what that takes: see there for values, ranges, and the results that the callback can get. What is
 * given is copied. `out` is as for emq_request_enqueue. Results of all of them: 0; EMQ_EINVAL;
 * EMQ_EQUEUE, EMQ_EID_… and EMQ_EKIND where there are queues and ids; EMQ_ETOOBIG (more than
 * 1 GiB); EMQ_ENOMEM; EMQ_ESYSTEM. Any thread. Since 0.1.0.
 *
 * After a loss none of them is sent a second time, but emq_request_requeue.
 */

/** Builds emq_schedule; its id as for emq_request_enqueue. */
EMQ_API int emq_request_schedule(emq_request **out, const emq_id *id, const char *queue,
                                 const void *p, size_t n, emq_when when);
/** Builds emq_enqueues, without minting: every id is given. Results by emq_request_get_member. */
EMQ_API int emq_request_enqueues(emq_request **out, const emq_id *ids, const char *queue,
                                 const emq_bytes *payloads, size_t count);
/**
 * Builds emq_claims; its jobs by emq_request_take_jobs. With a timeout it holds up every request
 * behind it, so that it belongs on a client of its own. Its deadline is then timeout_ms and two
 * seconds more at least, whatever emq_request_set_timeout and command_timeout_ms say.
 */
EMQ_API int emq_request_claims(emq_request **out, const char *queue, uint32_t lease_ms,
                               uint32_t max, uint32_t timeout_ms);
/** Builds emq_completes; results by emq_request_get_member. */
EMQ_API int emq_request_completes(emq_request **out, const emq_lease *leases, size_t count);
/** Builds emq_extend. */
EMQ_API int emq_request_extend(emq_request **out, const emq_lease *lease, uint32_t lease_ms);
/** Builds emq_extends; results by emq_request_get_member. */
EMQ_API int emq_request_extends(emq_request **out, const emq_lease *leases, size_t count,
                                uint32_t lease_ms);
/** Builds emq_fail. */
EMQ_API int emq_request_fail(emq_request **out, const emq_lease *lease, int64_t delay_ms,
                             uint32_t max_failures, const void *error, size_t n);
/** Builds emq_delay. */
EMQ_API int emq_request_delay(emq_request **out, const emq_lease *lease, emq_when when);
/**
 * Builds emq_requeue. When its answer is lost it is sent once more, as emq_request_complete is:
 * EMQ_ESTALE then means that the first was done, or that the lease was lost before.
 */
EMQ_API int emq_request_requeue(emq_request **out, const emq_lease *lease);
/** Builds emq_promote; how many were moved by emq_request_get_number. */
EMQ_API int emq_request_promote(emq_request **out, const char *queue, uint32_t limit);
/** Builds emq_stalled_check; its ids by emq_request_take_recovered and emq_request_take_dead. */
EMQ_API int emq_request_stalled_check(emq_request **out, const char *queue, uint32_t max_stalled,
                                      uint32_t limit);
/** Builds emq_reschedule. */
EMQ_API int emq_request_reschedule(emq_request **out, const char *queue, const emq_id *id,
                                   emq_when when);
/** Builds emq_reprocess. */
EMQ_API int emq_request_reprocess(emq_request **out, const char *queue, const emq_id *id);
/** Builds emq_pause. */
EMQ_API int emq_request_pause(emq_request **out, const char *queue);
/** Builds emq_resume. */
EMQ_API int emq_request_resume(emq_request **out, const char *queue);
/** Builds emq_append; NULL or zeroed, its id is minted, and emq_request_get_id tells it. The entry
 * in the stream by emq_request_get_entry. */
EMQ_API int emq_request_append(emq_request **out, const emq_id *id, const char *queue,
                               const char *stream, const emq_field *fields, size_t count);
/** Builds emq_publish; its receivers by emq_request_get_number. */
EMQ_API int emq_request_publish(emq_request **out, const char *queue, emq_bytes event,
                                emq_bytes job, const emq_field *fields, size_t count);
/** Builds emq_failures_incr; the new count by emq_request_get_number. */
EMQ_API int emq_request_failures_incr(emq_request **out, const char *queue, const char *stream,
                                      const char *group, const char *entry);
/** Builds emq_tra_bitset; how many bits changed by emq_request_get_number. */
EMQ_API int emq_request_tra_bitset(emq_request **out, emq_bytes key, const uint32_t *offsets,
                                   size_t count);
/** Builds emq_tra_bitclear; likewise. */
EMQ_API int emq_request_tra_bitclear(emq_request **out, emq_bytes key, const uint32_t *offsets,
                                     size_t count);
/** Builds emq_tra_bitget; the bits, 1 or 0, by emq_request_get_member. */
EMQ_API int emq_request_tra_bitget(emq_request **out, emq_bytes key, const uint32_t *offsets,
                                   size_t count);
/** Builds emq_tra_bitscan; how many offsets were found by emq_request_get_number, and each of them
 * by emq_request_get_offset. */
EMQ_API int emq_request_tra_bitscan(emq_request **out, emq_bytes key, uint32_t from, uint32_t to,
                                    uint32_t limit);

/**
 * Builds a raw request, as emq_client_command sends it: what is refused there is refused here. A
 * command that blocks on the server holds up every request behind it.
 *
 * @param out     as for emq_request_enqueue.
 * @param argc    number of arguments, the command's name included; 1 to 1048576.
 * @param argv    the arguments; copied.
 * @param argvlen their lengths; NULL means that all are NUL-terminated.
 * @return 0; EMQ_EINVAL; EMQ_EFORBIDDEN; EMQ_ETOOBIG (more than 1 GiB); EMQ_ENOMEM. Any thread.
 *         Since 0.1.0.
 */
EMQ_API int emq_request_command(emq_request **out, int argc, const char *const *argv,
                                const size_t *argvlen);

/**
 * Gives a request a deadline of its own, counted from its submit. That of a claims which waits is
 * never shorter than its wait and two seconds more.
 *
 * @param request    a request that was not submitted yet.
 * @param timeout_ms milliseconds; 0 means the client's command_timeout_ms. Since 0.1.0.
 */
EMQ_API void emq_request_set_timeout(emq_request *request, uint32_t timeout_ms);

/**
 * Cancels a request: its callback gets EMQ_ECANCELED, not from inside this call. One that was not
 * sent is not sent any more. One that was sent may be done all the same; its answer is dropped.
 *
 * @param request a submitted request whose callback has not returned; for one that has its result
 *                already nothing happens. One of emq_async_submit_threadsafe can be canceled when
 *                the loop's thread has learned that its submit has returned.
 * @return 0; EMQ_EINVAL (not submitted); EMQ_EFORKED. Loop's thread. Since 0.1.0.
 */
EMQ_API int emq_request_cancel(emq_request *request);

/** Frees a request that was not submitted. @param request a request, or NULL. Since 0.1.0. */
EMQ_API void emq_request_free(emq_request *request);

/**
 * What a failed request has to say: the server's own text where there is one, else a sentence.
 *
 * @param request a request, in its callback.
 * @return borrowed, NUL-terminated; "" when it did not fail. Since 0.1.0.
 */
EMQ_API const char *emq_request_get_error(const emq_request *request);

/**
 * The id of an enqueue, a schedule or an append. Where that of a job was minted and turned out to
 * be in use, another one is minted and sent: read it in the callback.
 *
 * @param request a request.
 * @return borrowed; NULL for other requests. Since 0.1.0.
 */
EMQ_API const emq_id *emq_request_get_id(const emq_request *request);

/**
 * The job that a claim got.
 *
 * @param request a request, in its callback.
 * @return borrowed; NULL when there is none. Since 0.1.0.
 */
EMQ_API const emq_job *emq_request_get_job(const emq_request *request);

/**
 * Takes that job out of the request.
 *
 * @param out     receives the job, yours to free with emq_job_free; NULL when there is none.
 * @param request a request, in its callback.
 * @return 0; EMQ_EINVAL; EMQ_EMPTY (there is none, or it was taken). Since 0.1.0.
 */
EMQ_API int emq_request_take_job(emq_job **out, emq_request *request);

/**
 * The jobs that claims got.
 *
 * @param request a request, in its callback.
 * @return borrowed; NULL when there are none. Since 0.1.0.
 */
EMQ_API const emq_jobs *emq_request_get_jobs(const emq_request *request);

/**
 * Takes those jobs out of the request.
 *
 * @param out     receives the jobs, yours to free with emq_jobs_free; NULL when there are none.
 * @param request a request, in its callback.
 * @return 0; EMQ_EINVAL; EMQ_EMPTY (there are none, or they were taken). Since 0.1.0.
 */
EMQ_API int emq_request_take_jobs(emq_jobs **out, emq_request *request);

/**
 * Takes the ids of the jobs that a stalled_check made pending again.
 *
 * @param out     receives them, yours to free with emq_ids_free; NULL when there is no such list.
 * @param request a request, in its callback.
 * @return 0, also when the list has no id in it; EMQ_EINVAL; EMQ_EMPTY (there is no such list, or
 *         it was taken). Since 0.1.0.
 */
EMQ_API int emq_request_take_recovered(emq_ids **out, emq_request *request);

/**
 * Takes the ids of the jobs that a stalled_check found dead.
 *
 * @param out     as for emq_request_take_recovered.
 * @param request as there.
 * @return as there. Since 0.1.0.
 */
EMQ_API int emq_request_take_dead(emq_ids **out, emq_request *request);

/**
 * The number that a promote, a publish, a failures_incr, a tra_bitset or a tra_bitclear was
 * answered, and how many offsets a tra_bitscan has found.
 *
 * @param request a request, in its callback.
 * @return the number; 0 where there is none. Since 0.1.0.
 */
EMQ_API int64_t emq_request_get_number(const emq_request *request);

/**
 * The result of a member of a batch: enqueues, completes, extends; or a bit, of a tra_bitget.
 *
 * @param request a request, in its callback.
 * @param member  0 to the batch's count - 1.
 * @return its result, or 1 or 0 for a bit; the request's own when that is an error; EMQ_EINVAL
 *         outside of the range and for other requests. Since 0.1.0.
 */
EMQ_API int emq_request_get_member(const emq_request *request, size_t member);

/**
 * One of the offsets that a tra_bitscan has found, ascending.
 *
 * @param offset  receives it; 0 on an error.
 * @param request a request, in its callback.
 * @param index   0 to emq_request_get_number - 1.
 * @return 0; EMQ_EINVAL (outside of the range, and for other requests). Since 0.1.0.
 */
EMQ_API int emq_request_get_offset(uint32_t *offset, const emq_request *request, size_t index);

/**
 * The id of the entry in the stream that an append has made.
 *
 * @param request a request, in its callback.
 * @return borrowed, NUL-terminated; NULL where there is none. Since 0.1.0.
 */
EMQ_API const char *emq_request_get_entry(const emq_request *request);

/**
 * The reply of a raw request.
 *
 * @param request a request, in its callback.
 * @return borrowed; NULL when there is none. Since 0.1.0.
 */
EMQ_API const emq_reply *emq_request_get_reply(const emq_request *request);

/**
 * Takes that reply out of the request.
 *
 * @param out     receives the reply, yours to free with emq_reply_free; NULL when there is none.
 * @param request a request, in its callback.
 * @return 0; EMQ_EINVAL; EMQ_EMPTY (there is none, or it was taken). Since 0.1.0.
 */
EMQ_API int emq_request_take_reply(emq_reply **out, emq_request *request);

#ifdef __cplusplus
}
#endif

#endif
