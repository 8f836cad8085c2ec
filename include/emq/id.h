/* SPDX-License-Identifier: Apache-2.0 */
/* Branded ids: 14 bytes that name a job or a record, and sort by the time they were minted.
 *
 * Three capital letters (the namespace: JOB for jobs, EVT for bus records) and eleven base62 digits
 * of a 63-bit snowflake: milliseconds since 2024-01-01 UTC (41 bits), node (10 bits), sequence (12
 * bits). Inside one namespace byte order is numeric order.
 */
#ifndef EMQ_ID_H
#define EMQ_ID_H

#include <emq/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMQ_ID_LEN 14                 /**< bytes of a branded id, without the closing NUL */
#define EMQ_ID_EPOCH_MS 1704067200000 /**< unix time of the snowflakes' zero, milliseconds */
#define EMQ_ID_NODE_MAX 1023          /**< the largest node number */

/** A branded id, NUL-terminated. All bytes zero means "no id": emq_enqueue mints one then. */
typedef struct emq_id {
    char text[EMQ_ID_LEN + 1];
} emq_id;

/**
 * Mints a new id, strictly greater than every id minted before in this process, also when the clock
 * steps back; above 4096 ids in one millisecond it borrows from the next.
 *
 * The node number is drawn at random once per process and again in a forked child, unless
 * emq_id_set_node chose one in that process.
 *
 * @param out       receives the id.
 * @param name_space three letters A to Z, for example "JOB".
 * @return 0; EMQ_EINVAL (NULL argument); EMQ_EID_NAMESPACE; EMQ_EID_RANGE (the clock is outside of
 *         what an id can hold: 2024 to 2093); EMQ_ESYSTEM (no clock). Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_id_mint(emq_id *out, const char *name_space);

/**
 * Chooses the node number of the ids minted from now on, for fleets that number their hosts.
 *
 * @param node 0 to EMQ_ID_NODE_MAX.
 * @return 0; EMQ_EINVAL. Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_id_set_node(unsigned node);

/**
 * Reads an id from bytes. Checked in this order: length, namespace, charset, range.
 *
 * @param out  receives the id; may be NULL to check only. Untouched on an error.
 * @param text the bytes, no NUL needed.
 * @param n    their number.
 * @return 0; EMQ_EINVAL (text is NULL); EMQ_EID_LENGTH; EMQ_EID_NAMESPACE; EMQ_EID_CHARSET;
 *         EMQ_EID_RANGE. Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_id_parse(emq_id *out, const char *text, size_t n);

/**
 * Tells whether an id is well-formed, whatever its namespace.
 *
 * @param id the id; NULL counts as not valid.
 * @return 1 or 0. Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_id_valid(const emq_id *id);

/**
 * Makes the id of a snowflake.
 *
 * @param out        receives the id.
 * @param name_space three letters A to Z.
 * @param snowflake  0 to 2^63 - 1.
 * @return 0; EMQ_EINVAL (NULL argument); EMQ_EID_NAMESPACE; EMQ_EID_RANGE. Thread-safe. Since
 * 0.1.0.
 */
EMQ_API int emq_id_from_snowflake(emq_id *out, const char *name_space, uint64_t snowflake);

/**
 * The snowflake inside an id.
 *
 * @param out receives it.
 * @param id  the id.
 * @return 0; EMQ_EINVAL (NULL argument); what emq_id_parse returns for a malformed id.
 *         Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_id_to_snowflake(uint64_t *out, const emq_id *id);

/**
 * When an id was minted, by the clock of the process that minted it.
 *
 * @param out receives unix time in milliseconds.
 * @param id  the id.
 * @return as emq_id_to_snowflake. Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_id_unix_ms(int64_t *out, const emq_id *id);

#ifdef __cplusplus
}
#endif

#endif
