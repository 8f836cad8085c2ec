/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as byte ranges, for both halves: the module matches them in place, the client builds them.
 * No allocation, no copy. The public face is emq/keyspace.h. */
#ifndef EMQ_SRC_KEYS_H
#define EMQ_SRC_KEYS_H

#include <emq/keyspace.h>
#include <stddef.h>

typedef struct emq_slice {
    const char *data;
    size_t length;
} emq_slice;

/* A C string as a slice. */
emq_slice emq_slice_of(const char *text);

int emq_slice_equal(emq_slice a, emq_slice b);

/* Below, equal to or above 0, as a stands to b in the order of bytes. */
int emq_slice_compare(emq_slice a, emq_slice b);

/* The module's rule for queue, id, group and stream names: 1 to 128 bytes without : { } NUL CR LF.
 */
int emq_name_valid(emq_slice name);

/* Finds q in a key that starts with `emq:{q}:`; returns 1 and sets *queue, or returns 0. The name
 * follows the module's rule, which is wider than the client's. */
int emq_key_find_queue(emq_slice *queue, emq_slice key);

/* Tells whether a key is byte for byte the one that kind, queue and id dictate. */
int emq_key_matches(emq_slice key, emq_key_kind kind, emq_slice queue, emq_slice id);

/* The base `emq:{q}:` around a queue that emq_key_find_queue has found, and the same test with it.
 */
emq_slice emq_key_base_of(emq_slice found_queue);
int emq_key_matches_base(emq_slice key, emq_key_kind kind, emq_slice base, emq_slice id);

/* Finds the name in a key of a kind that is named; returns 1 and sets *name, or returns 0 when the
 * key is not one of this kind and queue with a valid name. */
int emq_key_find_name(emq_slice *name, emq_slice key, emq_key_kind kind, emq_slice queue);

/* Tells whether keys of this kind carry an id, a group, a dedup id or a stream name. */
int emq_key_kind_is_named(emq_key_kind kind);

/* Writes the key without any check of the names, NUL-terminated; returns its length, or 0 when cap
 * is too small. EMQ_KEY_MAX + 1 is enough for names of at most EMQ_QUEUE_MAX bytes. */
size_t emq_key_write(char *out, size_t cap, emq_key_kind kind, emq_slice queue, emq_slice id);

/* The key as documentation and refusals show it: "emq:{q}:job:<id>". */
const char *emq_key_pattern(emq_key_kind kind);

/* The key's short name, for the arguments of a command: "pending", "base", "row". */
const char *emq_key_word(emq_key_kind kind);

#endif
