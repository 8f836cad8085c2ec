/* SPDX-License-Identifier: Apache-2.0 */
/* A pool: shares synchronous clients among threads.
 *
 * A thread acquires a client, uses it alone for as many calls as it likes, and releases it.
 * Connections are opened when they are first needed, and kept. A client that was closed by a
 * failure is released like any other: the pool connects it anew for the thread that gets it next.
 * Who waits is served in the order of arrival.
 *
 * Thread rule: every function here may be called by any thread at any time, until emq_pool_free.
 *
 * Fork rule: a pool belongs to the process that made it. In a forked child every call answers
 * EMQ_EFORKED and emq_pool_close does nothing; emq_pool_free frees the child's copy, and the
 * parent's connections go on.
 */
#ifndef EMQ_POOL_H
#define EMQ_POOL_H

#include <emq/client.h>
#include <emq/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A pool of clients. Opaque. */
typedef struct emq_pool emq_pool;

/** The largest max_clients. */
#define EMQ_POOL_CLIENTS_MAX 4096

/** An idle_check_ms that means: never look at an idle connection. */
#define EMQ_POOL_NO_IDLE_CHECK UINT32_MAX

/** How a pool works. Start from EMQ_POOL_OPTIONS_INIT or emq_pool_options_init. */
typedef struct emq_pool_options {
    size_t size;                  /**< sizeof(emq_pool_options), set by the initialisers */
    uint32_t max_clients;         /**< 1 to EMQ_POOL_CLIENTS_MAX; 0 means 8 */
    uint32_t checkout_timeout_ms; /**< for emq_pool_acquire with 0; 0 means 5000 */
    /** A connection that lay idle at least that long is looked at before it is handed out, without
     * a round trip: one that the server has closed is replaced. It does not find a server that
     * hangs. 0 means 1000; EMQ_POOL_NO_IDLE_CHECK: not at all. */
    uint32_t idle_check_ms;
    uint32_t reserved; /**< 0 */
} emq_pool_options;

#define EMQ_POOL_OPTIONS_INIT                                                                      \
    { sizeof(emq_pool_options), 0, 0, 0, 0 }

/**
 * Sets all options to their defaults, as EMQ_POOL_OPTIONS_INIT does.
 *
 * @param options the options. Since 0.1.0.
 */
EMQ_API void emq_pool_options_init(emq_pool_options *options);

/**
 * Makes a pool. Connects to nothing yet: what is wrong with the server, emq_pool_acquire tells.
 *
 * @param out     receives the pool, yours to free with emq_pool_free; NULL unless 0 is returned.
 * @param client  how its clients reach the server, copied; NULL means all defaults.
 * @param options how the pool works; NULL means all defaults.
 * @return 0; EMQ_EINVAL (an option out of range); EMQ_ENOTLS; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_pool_open(emq_pool **out, const emq_client_options *client,
                          const emq_pool_options *options);

/**
 * Borrows an open client, for this thread alone. Waits while all are in use; then connects in this
 * thread where no open connection is left over. All of it ends at one deadline; connecting ends at
 * connect_timeout_ms as well.
 *
 * @param out        receives the client, which must go back with emq_pool_release, whatever happens
 *                   to it: never close it with emq_client_close. NULL unless 0 is returned.
 * @param pool       the pool.
 * @param timeout_ms how long at most, milliseconds; 0 means checkout_timeout_ms.
 * @return 0; EMQ_EINVAL; EMQ_EPOOLTIMEOUT (all clients stayed in use; nothing was sent);
 *         EMQ_ECLOSED (the pool is closed, or was while this call waited); EMQ_EFORKED; what
 * emq_client_open returns when connecting fails (the place is free again, and nothing goes back).
 * The sentence is in emq_pool_copy_error. Since 0.1.0.
 */
EMQ_API int emq_pool_acquire(emq_client **out, emq_pool *pool, uint32_t timeout_ms);

/**
 * Gives a client back, open or closed, from any thread. It must not be touched afterwards. When the
 * pool is closed, this closes the client.
 *
 * @param pool   the pool that it came from.
 * @param client the client.
 * @return 0; EMQ_EINVAL: NULL, a client of somewhere else, or one that was given back already and
 *         is not out again (nothing is done); EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_pool_release(emq_pool *pool, emq_client *client);

/**
 * Closes the pool, and waits for nobody: from now on acquiring is refused, who waits is sent away
 * with EMQ_ECLOSED, idle clients are closed. Clients that are in use go on working, and are closed
 * when they are released. Closing again does nothing.
 *
 * @param pool the pool, or NULL. Since 0.1.0.
 */
EMQ_API void emq_pool_close(emq_pool *pool);

/**
 * Closes the pool and frees it, and waits for nobody: the memory stays until the last client that
 * is in use was released, and the last call that had begun has ended. No new call may begin but
 * emq_pool_release. In a forked child it frees the pool and the clients that were idle; those that
 * were out at the moment of the fork stay as they are.
 *
 * @param pool the pool, or NULL. Since 0.1.0.
 */
EMQ_API void emq_pool_free(emq_pool *pool);

/** What a pool is doing, and has done. */
typedef struct emq_pool_stats {
    size_t size;       /**< sizeof(emq_pool_stats), set by EMQ_POOL_STATS_INIT */
    uint32_t open;     /**< connections: idle ones, and those that were open when handed out */
    uint32_t in_use;   /**< clients that are handed out, or being connected for a thread */
    uint32_t waiting;  /**< threads that wait for a client */
    uint32_t reserved; /**< 0 */
    uint64_t timeouts; /**< EMQ_EPOOLTIMEOUT, so far */
    uint64_t replaced; /**< broken connections that were replaced, so far */
} emq_pool_stats;

#define EMQ_POOL_STATS_INIT                                                                        \
    { sizeof(emq_pool_stats), 0, 0, 0, 0, 0, 0 }

/**
 * Tells what the pool is doing: all numbers of one moment.
 *
 * @param out  the numbers; its size must be set. A larger struct of a later version is cleared
 *             behind what this version knows.
 * @param pool the pool.
 * @return 0; EMQ_EINVAL; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_pool_get_stats(emq_pool_stats *out, emq_pool *pool);

/**
 * Copies the sentence of the acquire that failed last, of any thread.
 *
 * @param error receives it, NUL-terminated and cut to cap - 1 bytes; "" when none has failed.
 * @param cap   bytes at error, 1 or more.
 * @param pool  the pool.
 * @return 0; EMQ_EINVAL; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_pool_copy_error(char *error, size_t cap, emq_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
