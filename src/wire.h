/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of wire 6 that both halves share: the identity, field names and words of a row, the
 * ranges of values, and the classes of refusals. Nothing here is written a second time elsewhere.
 */
#ifndef EMQ_SRC_WIRE_H
#define EMQ_SRC_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define EMQ_WIRE "echomq:6.0.0"
#define EMQ_WIRE_EPOCH 6
#define EMQ_FENCE_KEY "{emq}:version"
#define EMQ_MODULE_NAME "emq"

/* The namespaces of branded ids. */
#define EMQ_NAMESPACE_LEN 3
#define EMQ_NAMESPACE_JOB "JOB"
#define EMQ_NAMESPACE_EVENT "EVT"

/* Fields of a job row. */
#define EMQ_FIELD_STATE "state"
#define EMQ_FIELD_ATTEMPTS "attempts"
#define EMQ_FIELD_PAYLOAD "payload"
#define EMQ_FIELD_LEASE_EPOCH "lease_epoch"
#define EMQ_FIELD_GROUP "group"
#define EMQ_FIELD_PARENT "parent"
#define EMQ_FIELD_FAILURES "failures"
#define EMQ_FIELD_LAST_ERROR "last_error"
#define EMQ_FIELD_STALLED "stalled"

/* Fields of the hashes that belong to a queue. */
#define EMQ_FIELD_PAUSED "paused"
#define EMQ_FIELD_COUNT "count"

/* The first field of a record in a stream. */
#define EMQ_FIELD_ID "id"

/* The names that a message on the channel always has, and what is put behind a name whose value is
 * base64. */
#define EMQ_MESSAGE_EVENT "event"
#define EMQ_MESSAGE_JOB "job"
#define EMQ_MESSAGE_SEQ "seq"
#define EMQ_MESSAGE_BASE64 "_b64"

/* States of a job. */
#define EMQ_STATE_PENDING "pending"
#define EMQ_STATE_ACTIVE "active"
#define EMQ_STATE_SCHEDULED "scheduled"
#define EMQ_STATE_DEAD "dead"

/* The words of a schedule's mode: at a time, or in a while. */
#define EMQ_MODE_AT "at"
#define EMQ_MODE_IN "in"

/* What a job that stalled too often died of. */
#define EMQ_ERROR_STALLED "stalled"

/* An error text is kept to its first bytes. */
#define EMQ_ERROR_TEXT_MAX 65536

/* A batch has this many members at most. */
#define EMQ_BATCH_MAX 1000

/* A sweep looks at this many ids at most for each that it may move, and this many on top. */
#define EMQ_SWEEP_LOOKS_FACTOR 10
#define EMQ_SWEEP_LOOKS_EXTRA 1000

/* What EMQ.VERSION answers, in this order. */
#define EMQ_FACT_WIRE "wire"
#define EMQ_FACT_EPOCH "epoch"
#define EMQ_FACT_MODULE "module"
#define EMQ_FACT_VERSION "version"
#define EMQ_FACT_MAJOR "major"
#define EMQ_FACT_BUILD "build"
#define EMQ_FACT_SERVER "server"
#define EMQ_FACT_CAPABILITIES "capabilities"

/* What TRA.INFO answers beyond those. */
#define EMQ_FACT_RUN_ID "run_id"
#define EMQ_FACT_API "api"
#define EMQ_FACT_COMMANDS "commands"

/* A scan of bits answers this many at most, when the call does not say how many. */
#define EMQ_BITSCAN_LIMIT 1000
#define EMQ_WORD_LIMIT "LIMIT"

/* A claim looks at this many ids at most before it writes. */
#define EMQ_CLAIM_LOOKS 17

/* The kinds of values that a verb takes after its keys. */
typedef enum emq_value_kind {
    EMQ_VALUE_ID,
    EMQ_VALUE_PAYLOAD,
    EMQ_VALUE_TOKEN,
    EMQ_VALUE_LEASE_MS,
    EMQ_VALUE_COUNT,
    EMQ_VALUE_TIMEOUT_MS,
    EMQ_VALUE_MODE,
    EMQ_VALUE_WHEN,  /* the number after a mode: an AT_MS or an IN_MS */
    EMQ_VALUE_AT_MS, /* the number after the mode `at` */
    EMQ_VALUE_IN_MS, /* the number after the mode `in` */
    EMQ_VALUE_DELAY_MS,
    EMQ_VALUE_MAX_FAILURES,
    EMQ_VALUE_MAX_STALLED,
    EMQ_VALUE_LIMIT,
    EMQ_VALUE_ERROR,
    EMQ_VALUE_RECORD_ID, /* of a stream's record: it is part of no key */
    EMQ_VALUE_FIELD,
    EMQ_VALUE_FIELD_VALUE,
    EMQ_VALUE_EVENT,
    EMQ_VALUE_EVENT_JOB, /* whom a message is about: any text */
    EMQ_VALUE_GROUP,
    EMQ_VALUE_ENTRY_ID,
    EMQ_VALUE_OFFSET, /* of a bit */
    EMQ_VALUE_FROM,
    EMQ_VALUE_TO,
    EMQ_VALUE_LIMIT_WORD, /* the word in front of a limit that may be left out */
} emq_value_kind;

typedef struct emq_value_facts {
    const char *name; /* as it stands in COMMAND DOCS and in refusals */
    int is_integer;   /* then canonical decimal, from min to max */
    int64_t min;
    int64_t max;
} emq_value_facts;

const emq_value_facts *emq_value_get_facts(emq_value_kind kind);

/* Reads canonical decimal: digits only, no sign, no leading zero, within [min, max]. Returns 1 and
 * sets *out, or returns 0. */
int emq_decimal_parse(int64_t *out, const char *text, size_t n, int64_t min, int64_t max);

#define EMQ_DECIMAL_MAX 20 /* bytes of the longest int64 in decimal, sign included, no NUL */

/* How many digits a number has in decimal. */
size_t emq_decimal_length(uint64_t value);

/* Writes an int64 in decimal, no NUL; out has EMQ_DECIMAL_MAX bytes. Returns the bytes written. */
size_t emq_decimal_format(char *out, int64_t value);

/* The classes of refusals: the first word of an error's text, or the first three of `ERR EMQ …`.
 * The module counts by them, the client branches on them: (symbol, class, client result). An entry
 * whose class ends a word early never matches: classes are compared as whole words. The last one,
 * with only two words, is every other `ERR EMQ`: a value out of range or malformed. */
#define EMQ_REFUSAL_TABLE(EMQ_REFUSAL)                                                             \
    EMQ_REFUSAL(WIRE, "EMQWIRE", EMQ_EFENCE)                                                       \
    EMQ_REFUSAL(KIND, "EMQKIND", EMQ_EKIND)                                                        \
    EMQ_REFUSAL(STALE, "EMQSTALE", EMQ_ESTALE)                                                     \
    EMQ_REFUSAL(STATE, "EMQSTATE", EMQ_ESTATE)                                                     \
    EMQ_REFUSAL(LANE, "EMQLANE", EMQ_ELANE)                                                        \
    EMQ_REFUSAL(FLOW, "EMQFLOW", EMQ_EFLOW)                                                        \
    EMQ_REFUSAL(LOCK, "EMQLOCK", EMQ_ELOCK)                                                        \
    EMQ_REFUSAL(WRONGTYPE, "WRONGTYPE", EMQ_EWRONGTYPE)                                            \
    EMQ_REFUSAL(NOPERM, "NOPERM", EMQ_ENOPERM)                                                     \
    EMQ_REFUSAL(SHAPE, "ERR EMQ shape", EMQ_ESHAPE)                                                \
    EMQ_REFUSAL(LAYOUT, "ERR EMQ layout", EMQ_ELAYOUT)                                             \
    EMQ_REFUSAL(WRITE_PAUSED, "ERR EMQ write-paused", EMQ_EWRITEPAUSED)                            \
    EMQ_REFUSAL(VALUE, "ERR EMQ", EMQ_EVALUE)

typedef enum emq_refusal_class {
#define EMQ_REFUSAL_CONSTANT(symbol, class, result) EMQ_REFUSAL_##symbol,
    EMQ_REFUSAL_TABLE(EMQ_REFUSAL_CONSTANT)
#undef EMQ_REFUSAL_CONSTANT
        EMQ_REFUSAL_CLASSES
} emq_refusal_class;

/* Finds the class of an error text; returns EMQ_REFUSAL_CLASSES when it is none of the table. */
emq_refusal_class emq_refusal_classify(const char *text, size_t n);

#endif
