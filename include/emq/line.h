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
