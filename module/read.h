/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the domain checks. They open a key without notification, statistics or touch, and close
 * it again before they return. */
#ifndef EMQ_MODULE_READ_H
#define EMQ_MODULE_READ_H

#include "call.h"

/* What a row holds; NULL for a field that is not there. */
typedef struct emq_row {
    ValkeyModuleString *state;
    ValkeyModuleString *attempts;
    ValkeyModuleString *payload;
    ValkeyModuleString *lease_epoch;
    ValkeyModuleString *group;
    ValkeyModuleString *parent;
} emq_row;

typedef enum emq_presence { EMQ_PRESENCE_REFUSED, EMQ_ABSENT, EMQ_PRESENT } emq_presence;

/* Reads what a claim needs of a row: attempts and payload. */
emq_presence emq_read_row_for_claim(emq_call *call, emq_ref ref, emq_row *row);

/* Reads what settling needs of a row: everything but the payload. A row without attempts is absent
 * to it. */
emq_presence emq_read_row_for_settle(emq_call *call, emq_ref ref, emq_row *row);

/* Tells whether a key exists, whatever its type. */
int emq_exists(emq_call *call, emq_ref ref);

/* Checks that a key is absent or of this type; refuses with WRONGTYPE otherwise. */
int emq_check_type(emq_call *call, emq_ref ref, int type);

/* Tells whether a hash has a field; *out is 0 for an absent key. Refuses another type. */
int emq_hash_has(emq_call *call, emq_ref ref, ValkeyModuleString *field, int *out);

/* The counter in a hash field, 0 when it is absent. Refuses another type and what is no integer
 * that can go up by one. */
int emq_hash_counter(emq_call *call, emq_ref ref, ValkeyModuleString *field, int64_t *out);

/* Tells whether a sorted set has a member; *out is 0 for an absent key. Refuses another type. */
int emq_zset_has(emq_call *call, emq_ref ref, ValkeyModuleString *member, int *out);

/* The lowest members of a sorted set, at most `max`, by score and then by bytes; *count is 0 for an
 * absent key. Refuses another type. */
int emq_zset_lowest(emq_call *call, emq_ref ref, ValkeyModuleString **members, int max, int *count);

/* A string of the host as a slice; valid as long as the string is. */
emq_slice emq_text(const ValkeyModuleString *string);

/* The row's attempts as an integer, 0 when they are absent; refuses when they are none. */
int emq_row_attempts(emq_call *call, const emq_row *row, int64_t *out);

/* The attempts of the next claim; refuses also when they can't go up by one. */
int emq_row_next_attempts(emq_call *call, const emq_row *row, int64_t *out);

#endif
