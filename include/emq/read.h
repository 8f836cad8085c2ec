/* SPDX-License-Identifier: Apache-2.0 */
/* Reads: a job's row, the sizes of a queue, and its jobs page by page. They are plain commands of
 * the server and change nothing; what they tell may be over by the time it is read. The rules of
 * an operator give the rights: HGETALL, ZCARD and ZRANGE on the queue's keys.
 *
 * What every function here can return besides what it names: as in emq/verbs.h.
 */
#ifndef EMQ_READ_H
#define EMQ_READ_H

#include <emq/client.h>
#include <emq/id.h>
#include <emq/job.h>
#include <emq/keyspace.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A job's row as it stood when it was read. Opaque; freed with emq_row_free. */
typedef struct emq_row emq_row;

/**
 * Reads a job's row.
 *
 * @param out    receives it, yours to free with emq_row_free; NULL unless 0 is returned.
 * @param client an open client.
 * @param queue  the queue name.
 * @param id     the job.
 * @return 0; EMQ_GONE (completed, removed, or never there). Since 0.1.0.
 */
EMQ_API int emq_row_read(emq_row **out, emq_client *client, const char *queue, const emq_id *id);

/** `pending`, `active`, `scheduled` or `dead`; borrowed. "" in a damaged row. Since 0.1.0. */
EMQ_API const char *emq_row_get_state(const emq_row *row);

/** How often it was claimed: the token of its lease. -1 in a damaged row. Since 0.1.0. */
EMQ_API int64_t emq_row_get_attempts(const emq_row *row);

/** How many of its attempts failed. -1 in a damaged row. Since 0.1.0. */
EMQ_API int64_t emq_row_get_failures(const emq_row *row);

/** How often its lease lapsed. -1 in a damaged row. Since 0.1.0. */
EMQ_API int64_t emq_row_get_stalled(const emq_row *row);

/**
 * Its payload.
 *
 * @param row a row.
 * @param n   receives the number of bytes; may be NULL.
 * @return borrowed, as emq_job_get_payload. Since 0.1.0.
 */
EMQ_API const void *emq_row_get_payload(const emq_row *row, size_t *n);

/**
 * What went wrong last.
 *
 * @param row a row.
 * @param n   receives the number of bytes; may be NULL.
 * @return borrowed, followed by a NUL that is not counted; NULL when nothing did. Since 0.1.0.
 */
EMQ_API const char *emq_row_get_last_error(const emq_row *row, size_t *n);

/** The lane that it belongs to; borrowed. NULL for a flat job. Since 0.1.0. */
EMQ_API const char *emq_row_get_lane(const emq_row *row);

/** Frees a row. @param row a row, or NULL. Since 0.1.0. */
EMQ_API void emq_row_free(emq_row *row);

/** The sizes of a queue. Fill it with EMQ_COUNTS_INIT first: it carries its size. */
typedef struct emq_counts {
    size_t size;       /**< sizeof(emq_counts) */
    int64_t pending;   /**< ready to run */
    int64_t active;    /**< leased */
    int64_t scheduled; /**< waiting for a time */
    int64_t dead;      /**< dead letters */
    int64_t completed; /**< how many were completed so far */
    int64_t failed;    /**< how many died so far */
    int paused;        /**< 1 when the whole queue is paused */
} emq_counts;

#define EMQ_COUNTS_INIT                                                                            \
    { sizeof(emq_counts), 0, 0, 0, 0, 0, 0, 0 }

/**
 * Reads the sizes of a queue: one write, several commands, so that a job on its way may be counted
 * twice or not at all.
 *
 * @param out    filled with EMQ_COUNTS_INIT; receives them.
 * @param client an open client.
 * @param queue  the queue name.
 * @return 0; EMQ_EVALUE (a count was damaged by hand). Since 0.1.0.
 */
EMQ_API int emq_counts_read(emq_counts *out, emq_client *client, const char *queue);

/**
 * Lists the pending or the dead jobs of a queue, newest first, page by page. Jobs that come and go
 * in between don't shift the pages.
 *
 * @param out    receives the ids, yours to free with emq_ids_free; NULL unless 0 is returned. Fewer
 *               than limit: it was the last page.
 * @param client an open client.
 * @param queue  the queue name.
 * @param set    EMQ_KEY_PENDING or EMQ_KEY_DEAD.
 * @param before the last id of the page before (emq_ids_get_text); NULL for the first page.
 * @param n      its bytes.
 * @param limit  how many at most, 1 to 10000.
 * @return 0. Since 0.1.0.
 */
EMQ_API int emq_ids_browse(emq_ids **out, emq_client *client, const char *queue, emq_key_kind set,
                           const char *before, size_t n, uint32_t limit);

#ifdef __cplusplus
}
#endif

#endif
