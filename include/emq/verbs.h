/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of wire 6 beyond emq_enqueue, emq_claim and emq_complete, over an open client.
 *
 * What every function here can return besides what it names, as those three do: EMQ_EINVAL (an
 * argument is missing or out of its range), EMQ_EQUEUE, EMQ_EID_… and EMQ_EKIND before anything is
 * sent; EMQ_ETOOBIG; EMQ_ECLOSED; EMQ_ECONNECT (nothing was done); EMQ_ETIMEOUT and EMQ_ECONNLOST
 * (it may have been done or not); the server's refusals; EMQ_EPROTOCOL; EMQ_ENOMEM; EMQ_ESYSTEM.
 * After a refusal the connection is open, after the others of this list it may be closed.
 *
 * Thread rule: one client, one thread at a time. Since 0.1.0, all of them.
 */
#ifndef EMQ_VERBS_H
#define EMQ_VERBS_H

#include <emq/client.h>
#include <emq/id.h>
#include <emq/job.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMQ_MEMBERS_MAX 1000 /**< members of a batch: jobs, leases or offsets of one call */

/* Admitting. */

/**
 * Admits a job that becomes ready at a time. It runs after the first emq_promote past that time.
 *
 * @param id     as for emq_enqueue: zeroed, one is minted.
 * @param client an open client.
 * @param queue  the queue name.
 * @param p      the payload; may be NULL when n is 0.
 * @param n      its bytes, at most max_payload.
 * @param when   the time.
 * @return 0; EMQ_DUPLICATE (a job with this id exists). Since 0.1.0.
 */
EMQ_API int emq_schedule(emq_id *id, emq_client *client, const char *queue, const void *p, size_t n,
                         emq_when when);

/**
 * Admits many jobs at once.
 *
 * @param results  receives one for each job: 0, EMQ_DUPLICATE, or the negative result of this
 *                 function where nothing is known.
 * @param ids      one for each job, in and out: those that are zeroed are minted, as by
 * emq_enqueue. They are in place before anything is sent: repeat with them after an unknown
 *                 outcome.
 * @param client   an open client.
 * @param queue    the queue name.
 * @param payloads one for each job, each at most max_payload.
 * @param count    1 to EMQ_MEMBERS_MAX.
 * @return 0: look at the results. Since 0.1.0.
 */
EMQ_API int emq_enqueues(int *results, emq_id *ids, emq_client *client, const char *queue,
                         const emq_bytes *payloads, size_t count);

/* Claiming. */

/**
 * Claims the oldest pending jobs, and waits for work when told to. A call that waits holds up
 * whatever else the client would do, and a server may end it with a refusal behind its answer: give
 * it a client of its own.
 *
 * @param out        receives the jobs, yours to free with emq_jobs_free; NULL unless 0 is returned.
 * @param client     an open client.
 * @param queue      the queue name.
 * @param lease_ms   how long they are yours, 1 to 2147483647 milliseconds.
 * @param max        how many at most, 1 to EMQ_MEMBERS_MAX.
 * @param timeout_ms how long the server waits for the first one, 0 (not at all) to 3600000
 *                   milliseconds. The call's own deadline is then two seconds more at least.
 * @return 0; EMQ_EMPTY (look again: nothing came, the queue is paused, or a scheduled job has
 * become the earliest); EMQ_EBADJOB (none of those leased can be handed out; where some can, 0, and
 * emq_jobs_get_malformed tells how many can't); EMQ_EUNBLOCKED (the server ended the wait; nothing
 * was leased). Since 0.1.0.
 */
EMQ_API int emq_claims(emq_jobs **out, emq_client *client, const char *queue, uint32_t lease_ms,
                       uint32_t max, uint32_t timeout_ms);

/* Settling and prolonging. A lease settles its job until somebody else claims that, or until it was
 * settled or given back under this lease: EMQ_ESTALE from then on, unless the job is gone. That the
 * lease's time has passed, or that a sweep has taken it back, does not keep it from settling. */

/**
 * Prolongs a lease, from the server's now.
 *
 * @param client   an open client.
 * @param lease    the job's lease.
 * @param lease_ms 1 to 2147483647 milliseconds.
 * @return 0; EMQ_GONE; EMQ_ESTALE (another holder's; settled or given back; or taken back by a
 * sweep, which leaves the job to be settled but not to be prolonged). Since 0.1.0.
 */
EMQ_API int emq_extend(emq_client *client, const emq_lease *lease, uint32_t lease_ms);

/**
 * Prolongs many leases of one queue to one deadline.
 *
 * @param results  receives one for each lease: 0; EMQ_ESTALE (gone, or as for emq_extend); or the
 *                 negative result of this function where nothing is known.
 * @param client   an open client.
 * @param leases   the leases.
 * @param count    1 to EMQ_MEMBERS_MAX.
 * @param lease_ms 1 to 2147483647 milliseconds.
 * @return 0: look at the results; EMQ_EINVAL (also: leases of different queues). Since 0.1.0.
 */
EMQ_API int emq_extends(int *results, emq_client *client, const emq_lease *leases, size_t count,
                        uint32_t lease_ms);

/**
 * Completes many claimed jobs of one queue.
 *
 * @param results receives one for each lease: 0; EMQ_GONE; EMQ_ESTALE (or a row that can't be
 * used); EMQ_ENOTFLAT (a lane or flow row); or the negative result of this function where nothing
 * is known.
 * @param client  an open client.
 * @param leases  the leases.
 * @param count   1 to EMQ_MEMBERS_MAX.
 * @return 0: look at the results; EMQ_EINVAL (also: leases of different queues). Since 0.1.0.
 */
EMQ_API int emq_completes(int *results, emq_client *client, const emq_lease *leases, size_t count);

/**
 * Counts a failed attempt of a claimed job: it is tried again later, or dead when the budget is
 * used up. Don't repeat it after an unknown outcome unless EMQ_ESTALE as its answer is all right.
 *
 * @param client       an open client.
 * @param lease        the job's lease.
 * @param delay_ms     until it may be tried again, 0 to 315360000000 milliseconds.
 * @param max_failures the job is dead at this many, 1 to 2147483647.
 * @param error        what went wrong, any bytes; may be NULL when n is 0.
 * @param n            its bytes; those behind the first 65536 are cut off.
 * @return 0 (scheduled again); EMQ_DEAD (a dead letter now); EMQ_ESTALE; EMQ_EJOBGONE; EMQ_ELANE;
 *         EMQ_EFLOW. Since 0.1.0.
 */
EMQ_API int emq_fail(emq_client *client, const emq_lease *lease, int64_t delay_ms,
                     uint32_t max_failures, const void *error, size_t n);

/**
 * Gives a claimed job back for later, without counting a failure.
 *
 * @param client an open client.
 * @param lease  the job's lease.
 * @param when   when it becomes ready.
 * @return 0; EMQ_ESTALE; EMQ_EJOBGONE; EMQ_ELANE. Since 0.1.0.
 */
EMQ_API int emq_delay(emq_client *client, const emq_lease *lease, emq_when when);

/**
 * Gives a claimed job back at once, without counting a failure.
 *
 * @param client an open client.
 * @param lease  the job's lease.
 * @return 0; EMQ_GONE; EMQ_ESTALE; EMQ_ELANE. Since 0.1.0.
 */
EMQ_API int emq_requeue(emq_client *client, const emq_lease *lease);

/* Upkeep: the server runs no timer, so that some client calls these two every few seconds. */

/**
 * Makes the scheduled jobs that are due pending.
 *
 * @param moved  receives how many.
 * @param client an open client.
 * @param queue  the queue name.
 * @param limit  how many at most, 1 to 10000.
 * @return 0. Since 0.1.0.
 */
EMQ_API int emq_promote(int64_t *moved, emq_client *client, const char *queue, uint32_t limit);

/**
 * Takes back the leases that have lapsed: their jobs are pending again, or dead when they stalled
 * too often.
 *
 * @param recovered   receives the ids of those that are pending, yours to free with emq_ids_free;
 *                    NULL unless 0 is returned. May be NULL itself.
 * @param dead        likewise, of those that are dead.
 * @param client      an open client.
 * @param queue       the queue name.
 * @param max_stalled a job is dead at this many stalls, 1 to 2147483647.
 * @param limit       how many at most, 1 to 10000.
 * @return 0. Since 0.1.0.
 */
EMQ_API int emq_stalled_check(emq_ids **recovered, emq_ids **dead, emq_client *client,
                              const char *queue, uint32_t max_stalled, uint32_t limit);

/* Jobs that nobody holds. */

/**
 * Gives a scheduled job another time.
 *
 * @param client an open client.
 * @param queue  the queue name.
 * @param id     the job.
 * @param when   the time.
 * @return 0; EMQ_GONE; EMQ_ESTATE (not scheduled). Since 0.1.0.
 */
EMQ_API int emq_reschedule(emq_client *client, const char *queue, const emq_id *id, emq_when when);

/**
 * Makes a dead job pending again, its budgets anew.
 *
 * @param client an open client.
 * @param queue  the queue name.
 * @param id     the job.
 * @return 0; EMQ_GONE; EMQ_ESTATE (not dead); EMQ_ELANE. Since 0.1.0.
 */
EMQ_API int emq_reprocess(emq_client *client, const char *queue, const emq_id *id);

/**
 * Pauses a queue: its claims answer empty, or wait. Admitting and settling go on.
 *
 * @param client an open client.
 * @param queue  the queue name.
 * @return 0, also when it was paused already. Since 0.1.0.
 */
EMQ_API int emq_pause(emq_client *client, const char *queue);

/**
 * Ends a queue's pause.
 *
 * @param client an open client.
 * @param queue  the queue name.
 * @return 0, also when it was not paused. Since 0.1.0.
 */
EMQ_API int emq_resume(emq_client *client, const char *queue);

/* The bus. */

/**
 * Appends a record to a stream, at the place that its id dictates.
 *
 * @param entry  receives the id of the stream's entry; may be NULL.
 * @param id     in and out: zeroed, an EVT id is minted; otherwise this EVT id is used.
 * @param client an open client.
 * @param queue  the queue name.
 * @param stream the stream's name, 1 to 128 bytes without `:` `{` `}` CR LF.
 * @param fields the record's fields, any bytes; may be NULL when count is 0.
 * @param count  their number, at most 65536.
 * @return 0; EMQ_EORDER (the stream has this record already, or a younger one; in a repeat after an
 *         unknown outcome that may be this one). Since 0.1.0.
 */
EMQ_API int emq_append(emq_entry *entry, emq_id *id, emq_client *client, const char *queue,
                       const char *stream, const emq_field *fields, size_t count);

/**
 * Sends a numbered message to whoever listens on the queue's channel.
 *
 * @param receivers receives how many got it from this server; may be NULL.
 * @param client    an open client.
 * @param queue     the queue name.
 * @param event     what happened, any text.
 * @param job       to which job, any text.
 * @param fields    more of it; the names are distinct UTF-8. May be NULL when count is 0.
 * @param count     their number, at most 65536.
 * @return 0; EMQ_EVALUE (a field's name). Since 0.1.0.
 */
EMQ_API int emq_publish(int64_t *receivers, emq_client *client, const char *queue, emq_bytes event,
                        emq_bytes job, const emq_field *fields, size_t count);

/**
 * Counts a failed delivery of a stream's entry to a group.
 *
 * @param failures receives the new count.
 * @param client   an open client.
 * @param queue    the queue name.
 * @param stream   the stream's name.
 * @param group    the group's name, 1 to 128 bytes without `:` `{` `}` CR LF.
 * @param entry    the id of the stream's entry, `<ms>-<seq>`.
 * @return 0; EMQ_EVALUE (the entry's id). Since 0.1.0.
 */
EMQ_API int emq_failures_incr(int64_t *failures, emq_client *client, const char *queue,
                              const char *stream, const char *group, const char *entry);

/* Bitmaps: plain strings under any key. */

/**
 * Sets bits.
 *
 * @param changed receives how many were not set before; may be NULL.
 * @param client  an open client.
 * @param key     the key, any bytes.
 * @param offsets which; offset 0 is the highest bit of the first byte.
 * @param count   1 to EMQ_MEMBERS_MAX.
 * @return 0. Since 0.1.0.
 */
EMQ_API int emq_tra_bitset(int64_t *changed, emq_client *client, emq_bytes key,
                           const uint32_t *offsets, size_t count);

/** Clears bits, as emq_tra_bitset sets them. Since 0.1.0. */
EMQ_API int emq_tra_bitclear(int64_t *changed, emq_client *client, emq_bytes key,
                             const uint32_t *offsets, size_t count);

/**
 * Reads bits.
 *
 * @param bits    receives 1 or 0 for each offset.
 * @param client  an open client.
 * @param key     the key, any bytes.
 * @param offsets which.
 * @param count   1 to EMQ_MEMBERS_MAX.
 * @return 0. Since 0.1.0.
 */
EMQ_API int emq_tra_bitget(int *bits, emq_client *client, emq_bytes key, const uint32_t *offsets,
                           size_t count);

/**
 * Lists the bits that are set in a range, ascending.
 *
 * @param offsets receives them; has room for limit.
 * @param found   receives their number. When it is limit there may be more: go on behind the last.
 * @param client  an open client.
 * @param key     the key, any bytes.
 * @param from    the first offset of the range.
 * @param to      its last.
 * @param limit   how many at most, 1 to 10000.
 * @return 0. Since 0.1.0.
 */
EMQ_API int emq_tra_bitscan(uint32_t *offsets, size_t *found, emq_client *client, emq_bytes key,
                            uint32_t from, uint32_t to, uint32_t limit);

#ifdef __cplusplus
}
#endif

#endif
