/* SPDX-License-Identifier: Apache-2.0 */
/* Native lines: the command line of a verb as arguments, built and not sent.
 *
 * `EMQ.<VERB> numkeys key… value…`. For programs that bring their own connection (a proxy, another
 * event loop, a pipeline of their own) and for looking at what libemq would send.
 */
#ifndef EMQ_LINE_H
#define EMQ_LINE_H

#include <emq/error.h>
#include <emq/id.h>
#include <emq/job.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A command line. Start with EMQ_LINE_INIT; a line may be built again and again and keeps its
 * memory for the next time, until emq_line_clear. A payload is not copied: it is borrowed from the
 * caller and must live as long as the line is used.
 */
typedef struct emq_line {
    int argc;           /**< number of arguments, the verb's name included */
    const char **argv;  /**< the arguments; may hold any byte */
    size_t *argvlen;    /**< their lengths in bytes */
    void *memory;       /**< the line's own; not for callers */
    size_t memory_size; /**< the line's own; not for callers */
} emq_line;

#ifdef __cplusplus
#define EMQ_LINE_INIT                                                                              \
    {}
#else
#define EMQ_LINE_INIT                                                                              \
    { 0, NULL, NULL, NULL, 0 }
#endif

/**
 * Builds the line of emq_enqueue.
 *
 * @param out   the line; built anew.
 * @param queue the queue name.
 * @param id    a JOB id; not minted here.
 * @param p     the payload, borrowed; may be NULL when n is 0.
 * @param n     its bytes.
 * @return 0; EMQ_EINVAL; EMQ_EQUEUE; EMQ_EID_…; EMQ_EKIND; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_line_enqueue(emq_line *out, const char *queue, const emq_id *id, const void *p,
                             size_t n);

/**
 * Builds the line of emq_claim.
 *
 * @param out      the line; built anew.
 * @param queue    the queue name.
 * @param lease_ms how long the job is held, 1 to 2147483647 milliseconds.
 * @return 0; EMQ_EINVAL; EMQ_EQUEUE; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_line_claim(emq_line *out, const char *queue, uint32_t lease_ms);

/**
 * Builds the line of emq_complete.
 *
 * @param out   the line; built anew.
 * @param lease the lease of the job.
 * @return 0; EMQ_EINVAL; EMQ_EQUEUE; EMQ_EID_…; EMQ_EKIND; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_line_complete(emq_line *out, const emq_lease *lease);

/**
 * Builds the line of emq_install: `EMQ.INSTALL 1 {emq}:version`.
 *
 * @param out the line; built anew.
 * @return 0; EMQ_EINVAL; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_line_install(emq_line *out);

/**
 * Builds the line of the version question: `EMQ.VERSION`.
 *
 * @param out the line; built anew.
 * @return 0; EMQ_EINVAL; EMQ_ENOMEM. Since 0.1.0.
 */
EMQ_API int emq_line_version(emq_line *out);

/*
 * The lines of the other verbs. Each takes what the function of its name in emq/verbs.h takes: see
 * there for the values and their ranges. `out` is built anew; what is given as pointer and length
 * (payloads, errors, fields, groups, keys of bitmaps) is borrowed, all else is copied. Nothing is
 * minted. Results: 0; EMQ_EINVAL; EMQ_EQUEUE; EMQ_EID_…; EMQ_EKIND; EMQ_ENOMEM. Since 0.1.0.
 */

/** The line of emq_schedule; `id` as for emq_line_enqueue. */
EMQ_API int emq_line_schedule(emq_line *out, const char *queue, const emq_id *id, const void *p,
                              size_t n, emq_when when);
/** The line of emq_enqueues. */
EMQ_API int emq_line_enqueues(emq_line *out, const char *queue, const emq_id *ids,
                              const emq_bytes *payloads, size_t count);
/** The line of emq_claims; without a timeout when that is 0. */
EMQ_API int emq_line_claims(emq_line *out, const char *queue, uint32_t lease_ms, uint32_t max,
                            uint32_t timeout_ms);
/** The line of emq_extend. */
EMQ_API int emq_line_extend(emq_line *out, const emq_lease *lease, uint32_t lease_ms);
/** The line of emq_extends. */
EMQ_API int emq_line_extends(emq_line *out, const emq_lease *leases, size_t count,
                             uint32_t lease_ms);
/** The line of emq_completes. */
EMQ_API int emq_line_completes(emq_line *out, const emq_lease *leases, size_t count);
/** The line of emq_delay. */
EMQ_API int emq_line_delay(emq_line *out, const emq_lease *lease, emq_when when);
/** The line of emq_fail; an error of more than 65536 bytes is cut. */
EMQ_API int emq_line_fail(emq_line *out, const emq_lease *lease, int64_t delay_ms,
                          uint32_t max_failures, const void *error, size_t n);
/** The line of emq_requeue. */
EMQ_API int emq_line_requeue(emq_line *out, const emq_lease *lease);
/** The line of emq_promote. */
EMQ_API int emq_line_promote(emq_line *out, const char *queue, uint32_t limit);
/** The line of emq_reschedule. */
EMQ_API int emq_line_reschedule(emq_line *out, const char *queue, const emq_id *id, emq_when when);
/** The line of emq_reprocess. */
EMQ_API int emq_line_reprocess(emq_line *out, const char *queue, const emq_id *id);
/** The line of emq_stalled_check. */
EMQ_API int emq_line_stalled_check(emq_line *out, const char *queue, uint32_t max_stalled,
                                   uint32_t limit);
/** The line of emq_pause. */
EMQ_API int emq_line_pause(emq_line *out, const char *queue);
/** The line of emq_resume. */
EMQ_API int emq_line_resume(emq_line *out, const char *queue);
/** The line of emq_append; `id` is an EVT id. */
EMQ_API int emq_line_append(emq_line *out, const char *queue, const char *stream, const emq_id *id,
                            const emq_field *fields, size_t count);
/** The line of emq_publish. */
EMQ_API int emq_line_publish(emq_line *out, const char *queue, emq_bytes event, emq_bytes job,
                             const emq_field *fields, size_t count);
/** The line of emq_failures_incr. */
EMQ_API int emq_line_failures_incr(emq_line *out, const char *queue, const char *stream,
                                   const char *group, const char *entry);
/** `TRA.INFO`: facts of the module, its host and its build. */
EMQ_API int emq_line_tra_info(emq_line *out);
/** `TRA.COMMANDS`: the table of the module's commands. */
EMQ_API int emq_line_tra_commands(emq_line *out);
/** The line of emq_tra_bitset. */
EMQ_API int emq_line_tra_bitset(emq_line *out, emq_bytes key, const uint32_t *offsets,
                                size_t count);
/** The line of emq_tra_bitclear. */
EMQ_API int emq_line_tra_bitclear(emq_line *out, emq_bytes key, const uint32_t *offsets,
                                  size_t count);
/** The line of emq_tra_bitget. */
EMQ_API int emq_line_tra_bitget(emq_line *out, emq_bytes key, const uint32_t *offsets,
                                size_t count);
/** The line of emq_tra_bitscan. */
EMQ_API int emq_line_tra_bitscan(emq_line *out, emq_bytes key, uint32_t from, uint32_t to,
                                 uint32_t limit);

/**
 * Gives the line's memory back; the line is as EMQ_LINE_INIT then.
 *
 * @param line a line, or NULL. Since 0.1.0.
 */
EMQ_API void emq_line_clear(emq_line *line);

#ifdef __cplusplus
}
#endif

#endif
