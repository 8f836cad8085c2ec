/* SPDX-License-Identifier: Apache-2.0 */
/* Effects: each function changes a key and replicates the plain command that does the same, with
 * absolute values, so that the two can't drift. The keyspace notification that the plain command
 * would send is queued and sent after the last write. They need the token of the write guard.
 *
 * All checks are done by then: types are right, and nothing here can refuse. */
#ifndef EMQ_MODULE_EFFECTS_H
#define EMQ_MODULE_EFFECTS_H

#include "call.h"

typedef struct emq_field {
    ValkeyModuleString *name;
    ValkeyModuleString *value;
} emq_field;

#define EMQ_FIELDS_MAX 4

/* SET key value */
void emq_effect_set(emq_writes *writes, emq_ref ref, ValkeyModuleString *value);

/* HSET key field value …, 1 to EMQ_FIELDS_MAX fields */
void emq_effect_hset(emq_writes *writes, emq_ref ref, const emq_field *fields, int count);

/* HDEL key field …, 1 to EMQ_FIELDS_MAX fields, which are all there */
void emq_effect_hdel(emq_writes *writes, emq_ref ref, ValkeyModuleString **fields, int count);

/* PERSIST key, which has a time to live */
void emq_effect_persist(emq_writes *writes, emq_ref ref);

/* ZADD key score member */
void emq_effect_zadd(emq_writes *writes, emq_ref ref, int64_t score, ValkeyModuleString *member);

/* ZADD key score member score member …, all at one score; one command for all of them */
void emq_effect_zadd_all(emq_writes *writes, emq_ref ref, int64_t score,
                         ValkeyModuleString **members, size_t count);

/* ZREM key member …; all members are there */
void emq_effect_zrem(emq_writes *writes, emq_ref ref, ValkeyModuleString **members, size_t count);

/* DEL key …; all keys exist */
void emq_effect_del(emq_writes *writes, const emq_ref *refs, size_t count);

/* XADD key id field value …; `fields` holds 2 * count strings. The one effect that the server may
 * refuse, when the id is not above the stream's last or the record is too large: returns 0 then,
 * with nothing written and errno set by the server. */
int emq_effect_xadd(emq_writes *writes, emq_ref ref, const ValkeyModuleStreamID *id,
                    ValkeyModuleString *id_text, ValkeyModuleString **fields, size_t count);

/* PUBLISH channel message: to the subscribers here and on replicas, never to the AOF. Returns the
 * number of receivers here. */
int emq_effect_publish(emq_writes *writes, ValkeyModuleString *channel,
                       ValkeyModuleString *message);

/* SETBIT key offset bit, for each bit that is not so yet; an offset that comes again counts once.
 * The string grows, or comes into being, only where a bit is set. Returns how many bits changed. */
size_t emq_effect_setbit(emq_writes *writes, emq_ref ref, const uint32_t *offsets, size_t count,
                         int bit);

/* Sends the queued notifications, in the order of the effects, and forgets them. */
void emq_effects_notify(emq_writes *writes);

#endif
