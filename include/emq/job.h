/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed job, the lease that settles it, and the values that the verbs take and give. */
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

/** Some jobs that were claimed together. Opaque; freed with emq_jobs_free. */
typedef struct emq_jobs emq_jobs;

/** A list of job ids that a server gave. Opaque; freed with emq_ids_free. */
typedef struct emq_ids emq_ids;

/** Bytes that are borrowed from the caller; data may be NULL when size is 0. */
typedef struct emq_bytes {
    const void *data;
    size_t size;
} emq_bytes;

/** A named value of a record or a message. */
typedef struct emq_field {
    emq_bytes name;
    emq_bytes value;
} emq_field;

#define EMQ_ENTRY_MAX 41 /**< bytes of the longest id of a stream's entry, without the NUL */

/** The id of a stream's entry, `<ms>-<seq>`, NUL-terminated. */
typedef struct emq_entry {
    char text[EMQ_ENTRY_MAX + 1];
} emq_entry;

/** How the number of an emq_when counts. */
typedef enum emq_when_mode {
    EMQ_IN = 0, /**< from the server's now */
    EMQ_AT = 1  /**< a unix time, by the server's clock */
} emq_when_mode;

/** A time: `(emq_when){EMQ_IN, 60000}` is in a minute. */
typedef struct emq_when {
    emq_when_mode mode;
    int64_t ms; /**< milliseconds: 0 to 315360000000 with EMQ_IN, 0 to 2^53 - 1 with EMQ_AT */
} emq_when;

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

/** How many jobs there are. @param jobs claimed jobs, or NULL. Since 0.1.0. */
EMQ_API size_t emq_jobs_get_count(const emq_jobs *jobs);

/**
 * One of the jobs, oldest first.
 *
 * @param jobs claimed jobs.
 * @param i    0 to emq_jobs_get_count - 1.
 * @return borrowed, valid until emq_jobs_free; not to be freed by itself. NULL outside of the
 *         range. Since 0.1.0.
 */
EMQ_API const emq_job *emq_jobs_get_job(const emq_jobs *jobs, size_t i);

/**
 * How many jobs were leased with them that can't be handed out, since their id is no branded id
 * (another client enqueued them). They stay leased until somebody removes them.
 *
 * @param jobs claimed jobs, or NULL. Since 0.1.0.
 */
EMQ_API size_t emq_jobs_get_malformed(const emq_jobs *jobs);

/** Frees the jobs, as emq_job_free does. @param jobs claimed jobs, or NULL. Since 0.1.0. */
EMQ_API void emq_jobs_free(emq_jobs *jobs);

/** How many ids there are. @param ids a list, or NULL. Since 0.1.0. */
EMQ_API size_t emq_ids_get_count(const emq_ids *ids);

/**
 * One of the ids, as text: a client that is not this library may have used any text as an id, so
 * that emq_id_parse tells whether it is a branded one.
 *
 * @param ids a list.
 * @param i   0 to emq_ids_get_count - 1.
 * @param n   receives the number of bytes; may be NULL.
 * @return borrowed, NUL-terminated, valid until emq_ids_free; NULL outside of the range.
 *         Since 0.1.0.
 */
EMQ_API const char *emq_ids_get_text(const emq_ids *ids, size_t i, size_t *n);

/** Frees a list. @param ids a list, or NULL. Since 0.1.0. */
EMQ_API void emq_ids_free(emq_ids *ids);

#ifdef __cplusplus
}
#endif

#endif
