/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a write verb, on its way through the corridor:
 *
 *   shape -> layout -> fence -> domain checks -> write guard -> effects
 *
 * The dispatcher walks the first three and hands the handler an emq_call. A handler opens a key
 * only through an emq_ref, which only emq_declared and emq_reach make (so every key is checked
 * against the caller's rights), and writes only with an emq_writes, which only emq_begin_writes
 * gives.
 *
 * Functions that can refuse answer the caller themselves and return 0; the handler then returns.
 */
#ifndef EMQ_MODULE_CALL_H
#define EMQ_MODULE_CALL_H

#include "host.h"
#include "keys.h"
#include "verbs.h"

/* The most keys that one emq_reach takes. */
#define EMQ_REACH_MAX 4

/* The longest text of a refusal: a fence's value is cut at 128 bytes, a pattern is shorter. */
#define EMQ_REFUSAL_MAX 256

/* Keys of several jobs that are asked for in one line. */
#define EMQ_REACHED_TOGETHER 32

/* Strings that a call makes without allocating room for them; sweeps and batches make more. */
#define EMQ_OWNED_INLINE 16

/* Keys that a call keeps open: a row, the sets it leaves and enters, a counter. */
#define EMQ_KEPT_MAX 4

/* Notifications that are queued without allocating; sweeps queue more. */
#define EMQ_EVENTS_INLINE 8

/* A key that the caller may touch. */
typedef struct emq_ref {
    ValkeyModuleString *name;
    emq_key_kind kind;
    unsigned row; /* its place among the kept rows, counted from 1; 0: it is none of them */
} emq_ref;

/* A keyspace notification that waits until the last write is done. */
typedef struct emq_event {
    int type;
    const char *name;
    ValkeyModuleString *key;
} emq_event;

/* A key that is kept open (open.h); NULL until the first look at it, and when it is gone. */
typedef struct emq_kept {
    ValkeyModuleString *name;
    ValkeyModuleKey *key;
} emq_kept;

/* The proof that the write guard passed. */
typedef struct emq_writes {
    ValkeyModuleCtx *ctx;
    emq_kept kept[EMQ_KEPT_MAX];
    size_t kept_count;
    emq_kept *rows; /* allocated: those that a batch or a sweep keeps */
    unsigned row_count;
    unsigned row_capacity;
    emq_event first_events[EMQ_EVENTS_INLINE];
    emq_event *more_events; /* allocated, when the first ones are used up */
    size_t event_count;
    size_t more_capacity;
    ValkeyModuleString *ready; /* a `pending` that got members: those who wait for it look again */
    ValkeyModuleString *due;   /* a `schedule` that got a new earliest time */
} emq_writes;

typedef struct emq_call emq_call;
typedef struct emq_waiter emq_waiter; /* wait.c */
typedef void (*emq_handler)(emq_call *call);

struct emq_call {
    ValkeyModuleCtx *ctx;
    const emq_verb *verb;
    emq_handler handler;
    ValkeyModuleString **argv;
    int argc;
    int first_key;   /* where the keys begin in argv */
    int value_count; /* the values that the caller gave */
    emq_slice queue;
    ValkeyModuleString *user_name; /* NULL: nobody, who has no rights */
    ValkeyModuleUser *user;
    emq_waiter *waiter; /* of a blocked client that looks again; NULL in a call */
    int stays_blocked;  /* what a look of a blocked client came to: no reply */
    emq_writes writes;
    ValkeyModuleString *first_owned[EMQ_OWNED_INLINE]; /* freed when the call is done */
    ValkeyModuleString **more_owned;                   /* allocated, when those are used up */
    size_t owned_count;
    size_t more_capacity;
};

/* Walks the corridor up to the handler and cleans up behind it. */
int emq_dispatch(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, emq_verb_symbol symbol,
                 emq_handler handler);

/* The same for a blocked client that looks again: all is checked anew, also what the server checks
 * before a call. Returns 1 when the client was answered, 0 when it stays blocked. */
int emq_dispatch_again(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                       emq_verb_symbol symbol, emq_handler handler, emq_waiter *waiter);

/* Gives the call a string that the host made for it, to be freed when the call is done. Returns it;
 * NULL stays NULL. Every such string goes through here, or is freed where it was made. */
ValkeyModuleString *emq_own(emq_call *call, ValkeyModuleString *string);

/* Frees what was given to the call. */
void emq_free_owned(emq_call *call);

/* Refuses the call with an error text; counted by its class. Always returns 0. */
int emq_refuse(emq_call *call, const char *text);

/* Refuses with the texts for a number out of its range, and for a wrong number of keys or values.
 */
int emq_refuse_range(emq_call *call, const char *what, int64_t min, int64_t max);
int emq_refuse_shape(emq_call *call);

/* The value at this place, as the caller sent it. */
ValkeyModuleString *emq_value(const emq_call *call, int index);

/* The value at this place as an integer in the range of its kind; refuses otherwise. */
int emq_value_integer(emq_call *call, int index, int64_t *out);

/* The same, as another kind of value than its place in the table says: for values that repeat. */
int emq_value_integer_of(emq_call *call, int index, emq_value_kind kind, int64_t *out);

/* The kind door: the first three bytes of a job id; refuses another kind. */
int emq_check_job_kind(emq_call *call, ValkeyModuleString *id);

/* Tells whether each member's id is above the one in front of it, as minted ids are: then none
 * stands in the batch twice. */
int emq_members_ascend(const emq_call *call);

/* How many members the repeated values make, and the place of the first one's id. */
int emq_count_members(const emq_call *call, int *first);

/* A batch has 1 to EMQ_BATCH_MAX members; refuses a larger one. */
int emq_check_batch_size(emq_call *call);

/* The time that a mode and a number name, in server milliseconds: the values at mode_index and the
 * one after it. Refuses a wrong mode first, then the number. */
int emq_value_when(emq_call *call, int mode_index, int64_t *out);

/* A declared key: the server has checked it already. */
emq_ref emq_declared(const emq_call *call, int index);

/* A key of this queue beyond the declared ones, with the rights that touching it needs. */
typedef struct emq_reach_key {
    emq_key_kind kind;
    ValkeyModuleString *id; /* for a kind that is named; NULL otherwise */
    int read_only;
} emq_reach_key;

/* The queue's key of a kind, which has no name in it, to be read only. Returns 0 when the caller
 * may not; refuses nothing and logs nothing. */
int emq_may_read(emq_call *call, emq_ref *out, emq_key_kind kind);

/* The checked accessor: builds 1 to EMQ_REACH_MAX keys and checks the caller's rights on them;
 * refuses with NOPERM and an entry in ACL LOG. Every id must be a valid name (emq_name_valid). */
int emq_reach(emq_call *call, emq_ref *out, const emq_reach_key *keys, int count);

/* The same for the members of a batch: `each` keys of these kinds for each id, which are written.
 * `out` gets those of the first member, then those of the second. Refused like one call of
 * emq_reach for each member. */
int emq_reach_members(emq_call *call, emq_ref *out, const emq_key_kind *kinds, int each);

/* Tells whether the caller may write the rows of these ids, 1 to EMQ_REACHED_TOGETHER, all
 * together: only then `out` holds them. Where he may not, or one is no name, each is to be reached
 * alone. Refuses nothing and logs nothing. */
int emq_may_reach_rows(emq_call *call, emq_ref *out, ValkeyModuleString *const *ids, int count);

/* The queue's channel, to publish on it; refused as a channel. */
int emq_reach_channel(emq_call *call, ValkeyModuleString **out);

/* Checks the fence; refuses when it does not hold this wire. */
int emq_check_fence(emq_call *call);

/* What the fence holds: EMQ_FENCE_ABSENT, _RIGHT, or _REFUSED (another value, another type or no
 * right to it; the caller has been answered). */
typedef enum emq_fence_state {
    EMQ_FENCE_REFUSED,
    EMQ_FENCE_ABSENT,
    EMQ_FENCE_RIGHT
} emq_fence_state;
emq_fence_state emq_read_fence(emq_call *call, emq_ref fence);

/* The write guard: NULL, with the refusal sent, while writes are paused. Every read and every check
 * comes before it. A blocked client that looks again is answered with the empty array there:
 * nothing would wake it when the pause ends, and the server holds its next call until then. */
emq_writes *emq_begin_writes(emq_call *call);

/* Lets the claims that wait for this `pending` look again, when the call is done. */
void emq_signal_ready(emq_call *call, emq_ref pending);

/* Replies with an integer, or with the empty array. */
void emq_reply_integer(emq_call *call, int64_t value);
void emq_reply_empty(emq_call *call);

/* A number as a string of the host. */
ValkeyModuleString *emq_number_text(emq_call *call, int64_t number);

/* Server time of this command in milliseconds, the same that TIME answers in it. */
int64_t emq_now_ms(void);

#endif
