/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the domain checks. They open a key without notification, statistics or touch, and leave
 * only those open that the call keeps (open.h): the checks of what will be written do so. */
#ifndef EMQ_MODULE_READ_H
#define EMQ_MODULE_READ_H

#include "call.h"

/* What a row holds; NULL for a field that is not there, or that was not asked for. */
typedef struct emq_row {
    ValkeyModuleString *state;
    ValkeyModuleString *attempts;
    ValkeyModuleString *payload;
    ValkeyModuleString *lease_epoch;
    ValkeyModuleString *stalled;
    int has_group; /* these fields are there; a value that nobody reads is not made into a string */
    int has_parent;
} emq_row;

typedef enum emq_presence {
    EMQ_PRESENCE_REFUSED, /* another type; the caller has been answered */
    EMQ_ABSENT,
    EMQ_PRESENT,
    EMQ_OTHER_TYPE /* another type; nothing has been answered */
} emq_presence;

/* Refuses with WRONGTYPE. */
int emq_refuse_type(emq_call *call);

/* Reads what a claim needs of a row: attempts and payload. It refuses nothing. */
emq_presence emq_read_row_for_claim(emq_call *call, emq_ref ref, emq_row *row);

/* Reads what settling needs of a row: state, attempts, and whether it has group and parent. A row
 * without attempts is absent to it. It refuses nothing: in a batch one damaged row must not refuse
 * the others. */
emq_presence emq_read_row(emq_call *call, emq_ref ref, emq_row *row);

/* The same of what prolonging a lease needs: attempts and lease_epoch. */
emq_presence emq_read_row_for_lease(emq_call *call, emq_ref ref, emq_row *row);

/* Refuses another type, of which such a look has told. */
emq_presence emq_refuse_other_type(emq_call *call, emq_presence presence);

/* Reads what a sweep needs of a row: state, lease_epoch, stalled, and whether it has group. It
 * refuses nothing: what is no row is absent to it. */
emq_presence emq_read_row_for_sweep(emq_call *call, emq_ref ref, emq_row *row);

/* Tells whether a row's state is this one. */
int emq_row_is(const emq_row *row, const char *state);

/* Tells whether a key exists, whatever its type. */
int emq_exists(emq_call *call, emq_ref ref);

/* Tells whether a key has a time to live, and whether a field of a hash has one of its own. */
int emq_expires(emq_call *call, emq_ref ref);
int emq_field_expires(emq_call *call, emq_ref ref, ValkeyModuleString *field);

/* Checks that a key, which will be written, is absent or of this type; refuses with WRONGTYPE
 * otherwise. */
int emq_check_type(emq_call *call, emq_ref ref, int type);

/* Tells whether a hash has a field; *out is 0 for an absent key. Refuses another type. */
int emq_hash_has(emq_call *call, emq_ref ref, ValkeyModuleString *field, int *out);

/* The counter in a hash field, 0 when it is absent, gone up by so many. Refuses another type and
 * what is no integer that can go up so far. */
int emq_hash_counter(emq_call *call, emq_ref ref, ValkeyModuleString *field, int64_t by,
                     int64_t *out);

/* The same of a string, gone up by one. */
int emq_string_counter(emq_call *call, emq_ref ref, int64_t *out);

/* Opens a string; *bytes is good until *key is closed. Both are empty for an absent key. Refuses
 * another type. */
emq_presence emq_open_string(emq_call *call, emq_ref ref, ValkeyModuleKey **key, emq_slice *bytes);

/* The lowest score of a sorted set that is open; INFINITY when there is none. */
double emq_zset_lowest_of(ValkeyModuleKey *key);

/* The same of one that is not; INFINITY also for another type, which is not refused. */
double emq_zset_lowest(emq_call *call, emq_ref ref);

/* Tells whether a sorted set has a member; *out is 0 for an absent key. Refuses another type. */
int emq_zset_has(emq_call *call, emq_ref ref, ValkeyModuleString *member, int *out);

/* Shows the ids in a sorted set whose score is at most `max_score`, lowest first (by score and then
 * by bytes), each with its row, which the caller may touch. `row` is NULL for an id that can't be
 * part of a key. */
typedef enum emq_visit { EMQ_VISIT_REFUSED, EMQ_VISIT_ON, EMQ_VISIT_ENOUGH } emq_visit;
typedef emq_visit (*emq_visitor)(emq_call *call, ValkeyModuleString *id, const emq_ref *row,
                                 void *data);
typedef struct emq_visiting {
    emq_visitor visit; /* may read other keys */
    void *data;        /* for it */
    double max_score;
    int64_t looks;    /* so many are shown at most */
    int64_t expected; /* so many will be needed, if nothing is wrong with them */
} emq_visiting;

/* Goes on until `visit` answers something else than EMQ_VISIT_ON. Returns 0 after a refusal, its
 * own (another type, a row that the caller may not touch) or the visitor's. */
int emq_visit_ids(emq_call *call, emq_ref set, const emq_visiting *visiting);

/* Refuses a row whose field of this name is no integer. */
int emq_refuse_row_number(emq_call *call, const char *name);

/* The number in a row's field, 0 when it is absent; returns 0 when it is none. */
int emq_row_number(const ValkeyModuleString *value, int64_t *out);

/* The same, counted up by one; returns 0 also when it can't go up. */
int emq_row_next_number(const ValkeyModuleString *value, int64_t *out);

/* Reads one field of a hash; *out is NULL when key or field is absent. Refuses another type. */
int emq_hash_field(emq_call *call, emq_ref ref, ValkeyModuleString *field,
                   ValkeyModuleString **out);

/* A string of the host as a slice; valid as long as the string is. */
emq_slice emq_text(const ValkeyModuleString *string);

#endif
