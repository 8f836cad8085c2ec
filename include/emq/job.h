/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed job, and the lease that settles it. */
#ifndef EMQ_JOB_H
#define EMQ_JOB_H

#include <emq/id.h>
#include <emq/keyspace.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What is needed to settle a claimed job: a plain value of fixed size. Copy it to another thread or
 * send it to another process and settle there.
 */
typedef struct emq_lease {
    char queue[EMQ_QUEUE_MAX + 1]; /**< the queue, NUL-terminated */
    emq_id id;                     /**< the job */
    int64_t token;                 /**< the fencing token: the job's attempts at this claim */
} emq_lease;

/** A claimed job: id, payload, attempts. Opaque; freed with emq_job_free. */
typedef struct emq_job emq_job;

/**
 * The lease of a job.
 *
 * @param job a claimed job.
 * @return borrowed, valid until emq_job_free. Thread-safe for reading. Since 0.1.0.
 */
EMQ_API const emq_lease *emq_job_get_lease(const emq_job *job);

/**
 * The payload of a job: the bytes that were enqueued.
 *
 * @param job a claimed job.
 * @param n   receives the number of bytes; may be NULL.
 * @return borrowed, valid until emq_job_free; followed by a NUL that is not counted. An empty
 *         payload is a pointer to that NUL with n = 0; NULL means that the row has no payload (it
 *         was damaged by hand). Since 0.1.0.
 */
EMQ_API const void *emq_job_get_payload(const emq_job *job, size_t *n);

/**
 * How often the job was claimed, this claim included.
 *
 * @param job a claimed job.
 * @return 1 or more, for a row that was not damaged by hand. Since 0.1.0.
 */
EMQ_API int64_t emq_job_get_attempts(const emq_job *job);

/**
 * Frees a job. Its lease is not given back: settle it first, or a sweep
 * (EMQ.STALLED.CHECK) takes it back once it has lapsed.
 *
 * @param job a claimed job, or NULL. Since 0.1.0.
 */
EMQ_API void emq_job_free(emq_job *job);

#ifdef __cplusplus
}
#endif

#endif
