/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelining: many verbs in one write, and their results by position.
 *
 *     emq_pipeline_new        once, on an open client
 *     emq_pipeline_<verb>     adds an entry; nothing is sent
 *     emq_pipeline_run        sends all entries and reads all answers, under one deadline
 *     emq_pipeline_get_…      what came of entry 0, 1, 2, …
 *
 * Entries are independent: an error in one hides nothing of the others. They are no transaction.
 * Payloads and all else are copied when an entry is added. The first entry that is added after a
 * run starts the next one: what was borrowed from the last run ends then.
 *
 * Thread rule: a pipeline belongs to its client, and the two are used by one thread at a time.
 */
#ifndef EMQ_PIPELINE_H
#define EMQ_PIPELINE_H

#include <emq/client.h>
#include <emq/job.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMQ_PIPELINE_ENTRIES_MAX 10000                    /**< entries of one run */
#define EMQ_PIPELINE_BYTES_MAX ((size_t)64 * 1024 * 1024) /**< bytes of one run, as sent */

/** Verbs that are sent together. Opaque. */
typedef struct emq_pipeline emq_pipeline;

/**
 * Makes a pipeline.
 *
 * @param out    receives it, yours to free with emq_pipeline_free before the client is closed; NULL
 *               unless 0 is returned.
 * @param client an open client.
 * @return 0; EMQ_EINVAL; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_pipeline_new(emq_pipeline **out, emq_client *client);

/** Frees a pipeline and what was not taken from it. @param p a pipeline, or NULL. Since 0.1.0. */
EMQ_API void emq_pipeline_free(emq_pipeline *p);

/** Drops all entries. @param p a pipeline. Since 0.1.0. */
EMQ_API void emq_pipeline_clear(emq_pipeline *p);

/** How many entries there are. @param p a pipeline, or NULL. Since 0.1.0. */
EMQ_API size_t emq_pipeline_get_count(const emq_pipeline *p);

/*
 * Adding. Each takes what the function of its name in emq/client.h and emq/verbs.h takes. Results:
 * 0, and the entry's position is emq_pipeline_get_count - 1; EMQ_EOVERLOAD (full: run it first);
 * EMQ_EINVAL, EMQ_EQUEUE, EMQ_EID_…, EMQ_EKIND, EMQ_ETOOBIG and EMQ_ENOMEM, as there. Since 0.1.0.
 */

/**
 * Adds emq_enqueue. A zeroed id is minted and stored at once, so that it can be repeated with after
 * an unknown outcome. Should it be taken, the run mints another: emq_pipeline_get_id has the one
 * that counts.
 */
EMQ_API int emq_pipeline_enqueue(emq_pipeline *p, emq_id *id, const char *queue,
                                 const void *payload, size_t n);
/** Adds emq_schedule; its id as for emq_pipeline_enqueue. */
EMQ_API int emq_pipeline_schedule(emq_pipeline *p, emq_id *id, const char *queue,
                                  const void *payload, size_t n, emq_when when);
/** Adds emq_enqueues, without minting: every id is given. Results by emq_pipeline_get_member. */
EMQ_API int emq_pipeline_enqueues(emq_pipeline *p, const emq_id *ids, const char *queue,
                                  const emq_bytes *payloads, size_t count);
/** Adds emq_claim; its job by emq_pipeline_take_job. */
EMQ_API int emq_pipeline_claim(emq_pipeline *p, const char *queue, uint32_t lease_ms);
/** Adds emq_claims, without waiting; its jobs by emq_pipeline_take_jobs. */
EMQ_API int emq_pipeline_claims(emq_pipeline *p, const char *queue, uint32_t lease_ms,
                                uint32_t max);
/** Adds emq_complete. */
EMQ_API int emq_pipeline_complete(emq_pipeline *p, const emq_lease *lease);
/** Adds emq_completes; results by emq_pipeline_get_member. */
EMQ_API int emq_pipeline_completes(emq_pipeline *p, const emq_lease *leases, size_t count);
/** Adds emq_extend. */
EMQ_API int emq_pipeline_extend(emq_pipeline *p, const emq_lease *lease, uint32_t lease_ms);
/** Adds emq_extends; results by emq_pipeline_get_member. */
EMQ_API int emq_pipeline_extends(emq_pipeline *p, const emq_lease *leases, size_t count,
                                 uint32_t lease_ms);
/** Adds emq_fail. */
EMQ_API int emq_pipeline_fail(emq_pipeline *p, const emq_lease *lease, int64_t delay_ms,
                              uint32_t max_failures, const void *error, size_t n);
/** Adds emq_delay. */
EMQ_API int emq_pipeline_delay(emq_pipeline *p, const emq_lease *lease, emq_when when);
/** Adds emq_requeue. */
EMQ_API int emq_pipeline_requeue(emq_pipeline *p, const emq_lease *lease);
/** Adds emq_promote; how many were moved by emq_pipeline_get_number. */
EMQ_API int emq_pipeline_promote(emq_pipeline *p, const char *queue, uint32_t limit);
/** Adds emq_stalled_check; its ids by emq_pipeline_take_recovered and emq_pipeline_take_dead. */
EMQ_API int emq_pipeline_stalled_check(emq_pipeline *p, const char *queue, uint32_t max_stalled,
                                       uint32_t limit);
/** Adds emq_reschedule. */
EMQ_API int emq_pipeline_reschedule(emq_pipeline *p, const char *queue, const emq_id *id,
                                    emq_when when);
/** Adds emq_reprocess. */
EMQ_API int emq_pipeline_reprocess(emq_pipeline *p, const char *queue, const emq_id *id);
/** Adds emq_publish; its receivers by emq_pipeline_get_number. */
EMQ_API int emq_pipeline_publish(emq_pipeline *p, const char *queue, emq_bytes event, emq_bytes job,
                                 const emq_field *fields, size_t count);
/** Adds emq_pause. */
EMQ_API int emq_pipeline_pause(emq_pipeline *p, const char *queue);
/** Adds emq_resume. */
EMQ_API int emq_pipeline_resume(emq_pipeline *p, const char *queue);
/** Adds emq_append; a zeroed id is minted and stored at once. The entry in the stream by
 * emq_pipeline_get_entry. */
EMQ_API int emq_pipeline_append(emq_pipeline *p, emq_id *id, const char *queue, const char *stream,
                                const emq_field *fields, size_t count);
/** Adds emq_failures_incr; the new count by emq_pipeline_get_number. */
EMQ_API int emq_pipeline_failures_incr(emq_pipeline *p, const char *queue, const char *stream,
                                       const char *group, const char *entry);
/** Adds emq_tra_bitset; how many bits changed by emq_pipeline_get_number. */
EMQ_API int emq_pipeline_tra_bitset(emq_pipeline *p, emq_bytes key, const uint32_t *offsets,
                                    size_t count);
/** Adds emq_tra_bitclear; likewise. */
EMQ_API int emq_pipeline_tra_bitclear(emq_pipeline *p, emq_bytes key, const uint32_t *offsets,
                                      size_t count);
/** Adds emq_tra_bitget; the bits, 1 or 0, by emq_pipeline_get_member. */
EMQ_API int emq_pipeline_tra_bitget(emq_pipeline *p, emq_bytes key, const uint32_t *offsets,
                                    size_t count);

/** Adds any command, as emq_client_command sends it, EMQ_EFORBIDDEN included; its reply by
 * emq_pipeline_take_reply. */
EMQ_API int emq_pipeline_command(emq_pipeline *p, int argc, const char *const *argv,
                                 const size_t *argvlen);

/**
 * Sends all entries and reads their answers, within the client's command_timeout_ms.
 *
 * @param p a pipeline.
 * @return 0: every entry was answered, look at their results. Else what kept some from being
 *         answered, which is also their result: EMQ_ECLOSED; EMQ_EFORKED; EMQ_ECONNECT (nothing of
 *         them was done); EMQ_ETIMEOUT, EMQ_ECONNLOST and EMQ_EPROTOCOL (some may have been done);
 * EMQ_ENOMEM; EMQ_ESYSTEM. Also EMQ_EINVAL (run already). Since 0.1.0.
 */
EMQ_API int emq_pipeline_run(emq_pipeline *p);

/**
 * The result of an entry, as its function would have returned it.
 *
 * @param p a pipeline that was run.
 * @param i 0 to emq_pipeline_get_count - 1.
 * @return the result. When the connection was lost: EMQ_ECONNECT for those that were not sent whole
 *         (nothing was done), EMQ_ECONNLOST or EMQ_ETIMEOUT for those that were and had no answer.
 *         EMQ_EINVAL outside of the range, and before the run. Since 0.1.0.
 */
EMQ_API int emq_pipeline_get_result(const emq_pipeline *p, size_t i);

/**
 * What a failed entry has to say, as emq_client_get_error.
 *
 * @param p a pipeline that was run.
 * @param i the entry.
 * @return borrowed, NUL-terminated, valid until the next call with this pipeline; "" when the entry
 *         did not fail. Never NULL. Since 0.1.0.
 */
EMQ_API const char *emq_pipeline_get_error(emq_pipeline *p, size_t i);

/** The number that an entry answered; 0 where there is none. Since 0.1.0. */
EMQ_API int64_t emq_pipeline_get_number(const emq_pipeline *p, size_t i);

/**
 * The id of an enqueue, a schedule or an append.
 *
 * @param p a pipeline.
 * @param i the entry.
 * @return borrowed, valid until the next entry is added; NULL for other entries. Since 0.1.0.
 */
EMQ_API const emq_id *emq_pipeline_get_id(const emq_pipeline *p, size_t i);

/**
 * The id of the entry in the stream that an append has made.
 *
 * @param p a pipeline that was run.
 * @param i the entry.
 * @return borrowed, NUL-terminated, valid until the next entry is added; NULL where there is none.
 *         Since 0.1.0.
 */
EMQ_API const char *emq_pipeline_get_entry(const emq_pipeline *p, size_t i);

/**
 * The result of a member of a batch (enqueues, extends, completes), or a bit (tra_bitget).
 *
 * @param p      a pipeline that was run.
 * @param i      the entry.
 * @param member 0 to the batch's count - 1.
 * @return its result; the entry's own result when that is an error; EMQ_EINVAL outside of the range
 *         and for other entries. Since 0.1.0.
 */
EMQ_API int emq_pipeline_get_member(const emq_pipeline *p, size_t i, size_t member);

/** Takes the job of a claim: yours to free with emq_job_free. NULL the second time, and where there
 * is none. Since 0.1.0. */
EMQ_API emq_job *emq_pipeline_take_job(emq_pipeline *p, size_t i);

/** Takes the jobs of claims: yours to free with emq_jobs_free. NULL likewise. Since 0.1.0. */
EMQ_API emq_jobs *emq_pipeline_take_jobs(emq_pipeline *p, size_t i);

/** Takes the ids that a stalled_check recovered: yours to free with emq_ids_free. NULL likewise.
 * Since 0.1.0. */
EMQ_API emq_ids *emq_pipeline_take_recovered(emq_pipeline *p, size_t i);

/** Takes the ids that a stalled_check buried. NULL likewise. Since 0.1.0. */
EMQ_API emq_ids *emq_pipeline_take_dead(emq_pipeline *p, size_t i);

/** Takes the reply of a command: yours to free with emq_reply_free. NULL likewise, and where the
 * server refused it. Since 0.1.0. */
EMQ_API emq_reply *emq_pipeline_take_reply(emq_pipeline *p, size_t i);

#ifdef __cplusplus
}
#endif

#endif
