/* SPDX-License-Identifier: Apache-2.0 */
/* The keyspace: the keys of a queue, built from a name and read back from bytes.
 *
 * Every key of queue `q` starts with its base `emq:{q}:`, so all of them share one hash slot. The
 * fence `{emq}:version` is the one key that belongs to no queue.
 */
#ifndef EMQ_KEYSPACE_H
#define EMQ_KEYSPACE_H

#include <emq/error.h>
#include <emq/id.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMQ_QUEUE_MAX 128                      /**< bytes of a queue name, without the NUL */
#define EMQ_KEY_MAX (EMQ_QUEUE_MAX + 128 + 40) /**< bytes of any key, without the NUL */

/** What a key is; docs/protocol.md tells type and content of each. */
typedef enum emq_key_kind {
    EMQ_KEY_BASE,            /**< `emq:{q}:` itself */
    EMQ_KEY_PENDING,         /**< `…pending` */
    EMQ_KEY_ACTIVE,          /**< `…active` */
    EMQ_KEY_SCHEDULE,        /**< `…schedule` */
    EMQ_KEY_DEAD,            /**< `…dead` */
    EMQ_KEY_HELD,            /**< `…held` */
    EMQ_KEY_RING,            /**< `…ring` */
    EMQ_KEY_PAUSED,          /**< `…paused` */
    EMQ_KEY_GLIMIT,          /**< `…glimit` */
    EMQ_KEY_GACTIVE,         /**< `…gactive` */
    EMQ_KEY_GWEIGHT,         /**< `…gweight` */
    EMQ_KEY_WAKE,            /**< `…wake` */
    EMQ_KEY_META,            /**< `…meta` */
    EMQ_KEY_COMPLETED,       /**< `…metrics:completed` */
    EMQ_KEY_FAILED,          /**< `…metrics:failed` */
    EMQ_KEY_OUTBOX,          /**< `…flow:outbox` */
    EMQ_KEY_OUTBOX_BAD,      /**< `…flow:outbox:bad` */
    EMQ_KEY_EVENTS_SEQ,      /**< `…events:seq` */
    EMQ_KEY_EVENTS,          /**< `…events`, a channel */
    EMQ_KEY_JOB,             /**< `…job:<id>` */
    EMQ_KEY_LOGS,            /**< `…job:<id>:logs` */
    EMQ_KEY_DEPENDENCIES,    /**< `…job:<id>:dependencies` */
    EMQ_KEY_PROCESSED,       /**< `…job:<id>:processed` */
    EMQ_KEY_CHILD_FAILED,    /**< `…job:<id>:failed` */
    EMQ_KEY_UNSUCCESSFUL,    /**< `…job:<id>:unsuccessful` */
    EMQ_KEY_LANE,            /**< `…g:<group>:pending` */
    EMQ_KEY_DEDUP,           /**< `…de:<dedup-id>` */
    EMQ_KEY_STREAM,          /**< `…stream:<name>` */
    EMQ_KEY_STREAM_FAILURES, /**< `…stream:<name>:failures` */
    EMQ_KEY_FENCE            /**< `{emq}:version` */
} emq_key_kind;

/** A key taken apart. The strings are empty where the kind has none. */
typedef struct emq_key {
    emq_key_kind kind;
    char queue[EMQ_QUEUE_MAX + 1]; /**< the queue name; empty for the fence */
    char id[EMQ_QUEUE_MAX + 1];    /**< job id, group, dedup id or stream name of a keyed kind */
} emq_key;

/**
 * Tells whether a text is a queue name: 1 to 128 bytes of A-Z a-z 0-9 . _ -, and not "emq".
 *
 * @param queue NUL-terminated; NULL counts as not valid.
 * @return 1 or 0. Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_queue_valid(const char *queue);

/**
 * Builds a key that belongs to a queue as a whole: `emq:{orders}:pending`.
 *
 * @param out   receives the key, NUL-terminated.
 * @param cap   bytes at out; EMQ_KEY_MAX + 1 is always enough.
 * @param queue the queue name.
 * @param kind  any kind without an id (also EMQ_KEY_FENCE, whose queue is not looked at).
 * @return the key's length in bytes (positive); EMQ_EQUEUE; EMQ_EINVAL (NULL argument, a kind that
 *         needs an id, or cap too small: nothing is written then). Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_key_queue(char *out, size_t cap, const char *queue, emq_key_kind kind);

/**
 * Builds the key of a job's row: `emq:{orders}:job:JOB0KHTOWnGLuC`.
 *
 * @param out   receives the key, NUL-terminated.
 * @param cap   bytes at out; EMQ_KEY_MAX + 1 is always enough.
 * @param queue the queue name.
 * @param id    a branded id of namespace JOB.
 * @return the key's length in bytes (positive); EMQ_EQUEUE; EMQ_EINVAL (NULL argument, cap too
 *         small); EMQ_EID_…; EMQ_EKIND (not a JOB). Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_key_job(char *out, size_t cap, const char *queue, const emq_id *id);

/**
 * Builds any other key with an id, a group, a dedup id or a stream name in it.
 *
 * @param out   receives the key, NUL-terminated.
 * @param cap   bytes at out; EMQ_KEY_MAX + 1 is always enough.
 * @param queue the queue name.
 * @param kind  EMQ_KEY_JOB to EMQ_KEY_STREAM_FAILURES.
 * @param id    NUL-terminated. Kinds of a job take a branded JOB id; a group, dedup id or stream
 *              name is 1 to 128 bytes without `:` `{` `}` CR LF.
 * @return the key's length in bytes (positive); EMQ_EQUEUE; EMQ_EINVAL (NULL argument, a kind
 *         without an id, a malformed name, cap too small); EMQ_EID_…; EMQ_EKIND.
 *         Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_key_named(char *out, size_t cap, const char *queue, emq_key_kind kind,
                          const char *id);

/**
 * Takes a key apart, as the exact reverse of the builders: what it accepts, they build.
 *
 * @param out receives the parts; untouched on an error.
 * @param key the bytes, no NUL needed.
 * @param n   their number.
 * @return 0; EMQ_EINVAL (NULL argument); EMQ_EKEY (not a key of wire 6). Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_key_parse(emq_key *out, const char *key, size_t n);

/**
 * The hash slot of a key, as a cluster-aware proxy computes it: CRC16-XMODEM modulo 16384 over the
 * text inside the first non-empty `{…}`, or over the whole key.
 *
 * @param key the bytes.
 * @param n   their number.
 * @return 0 to 16383. Thread-safe. Since 0.1.0.
 */
EMQ_API unsigned emq_key_slot(const char *key, size_t n);

#ifdef __cplusplus
}
#endif

#endif
