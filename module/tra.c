/* SPDX-License-Identifier: Apache-2.0 */
/* TRA: bitmaps (TRA.BITSET, TRA.BITCLEAR, TRA.BITGET, TRA.BITSCAN). They are plain strings under
 * any name, and need no fence. */
#include <strings.h>

#include "bits.h"
#include "effects.h"
#include "handlers.h"
#include "open.h"
#include "read.h"

/* The offsets that a call names; `out` has room for EMQ_BATCH_MAX of them. */
static int read_offsets(emq_call *call, uint32_t *out, size_t *count) {
    if (call->value_count > EMQ_BATCH_MAX) {
        return emq_refuse_range(call, "offsets", 1, EMQ_BATCH_MAX);
    }
    *count = (size_t)call->value_count;
    for (int i = 0; i < call->value_count; i++) {
        int64_t offset = 0;
        if (!emq_value_integer_of(call, i, EMQ_VALUE_OFFSET, &offset)) {
            return 0;
        }
        out[i] = (uint32_t)offset;
    }
    return 1;
}

/* Tells whether one of the bits is not so yet; refuses another type. */
static int find_change(emq_call *call, emq_ref ref, const uint32_t *offsets, size_t count, int bit,
                       int *out) {
    ValkeyModuleKey *key = NULL;
    emq_slice bytes = {"", 0};
    emq_presence presence = emq_open_string(call, ref, &key, &bytes);
    *out = 0;
    for (size_t i = 0; i < count && !*out && presence != EMQ_PRESENCE_REFUSED; i++) {
        *out = emq_bit_get(bytes.data, bytes.length, offsets[i]) != bit;
    }
    if (presence == EMQ_PRESENT) {
        emq_close_looked(call, ref, key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

/* proto-max-bulk-len, which the key API does not know. It can't be below this, so that most calls
 * need not ask. */
#define BULK_LENGTH_LEAST ((size_t)1024 * 1024)
static int64_t get_bulk_length(emq_call *call) {
    int64_t most = INT64_MAX;
    size_t length = 0;
    ValkeyModuleCallReply *pair =
        ValkeyModule_Call(call->ctx, "CONFIG", "cc", "GET", "proto-max-bulk-len");
    ValkeyModuleCallReply *value =
        pair == NULL ? NULL : ValkeyModule_CallReplyArrayElement(pair, 1);
    const char *text = value == NULL ? NULL : ValkeyModule_CallReplyStringPtr(value, &length);
    if (text != NULL) {
        (void)emq_decimal_parse(&most, text, length, 0, INT64_MAX);
    }
    if (pair != NULL) {
        ValkeyModule_FreeCallReply(pair);
    }
    return most;
}

/* No string gets longer than the server allows; SETBIT's own words. */
static int check_length(emq_call *call, const uint32_t *offsets, size_t count) {
    size_t last = 0;
    for (size_t i = 0; i < count; i++) {
        last = emq_bit_byte(offsets[i]) > last ? emq_bit_byte(offsets[i]) : last;
    }
    return last < BULK_LENGTH_LEAST || (int64_t)last < get_bulk_length(call) ||
           emq_refuse(call, "ERR bit offset is not an integer or out of range");
}

/* Makes the bits so. A call that changes nothing writes nothing, and passes a write pause. */
static void change_bits(emq_call *call, int bit) {
    emq_ref ref = emq_declared(call, 0);
    uint32_t offsets[EMQ_BATCH_MAX] = {0};
    size_t count = 0;
    int is_change = 0;
    if (!read_offsets(call, offsets, &count) || (bit && !check_length(call, offsets, count)) ||
        !find_change(call, ref, offsets, count, bit, &is_change)) {
        return;
    }
    if (!is_change) {
        emq_reply_integer(call, 0);
        return;
    }
    emq_writes *writes = emq_begin_writes(call);
    if (writes != NULL) {
        emq_reply_integer(call, (int64_t)emq_effect_setbit(writes, ref, offsets, count, bit));
    }
}

void emq_handle_tra_bitset(emq_call *call) {
    change_bits(call, 1);
}

void emq_handle_tra_bitclear(emq_call *call) {
    change_bits(call, 0);
}

void emq_handle_tra_bitget(emq_call *call) {
    uint32_t offsets[EMQ_BATCH_MAX] = {0};
    size_t count = 0;
    ValkeyModuleKey *key = NULL;
    emq_slice bytes = {"", 0};
    if (!read_offsets(call, offsets, &count)) {
        return;
    }
    emq_presence presence = emq_open_string(call, emq_declared(call, 0), &key, &bytes);
    if (presence == EMQ_PRESENCE_REFUSED) {
        return;
    }
    (void)ValkeyModule_ReplyWithArray(call->ctx, (long)count);
    for (size_t i = 0; i < count; i++) {
        emq_reply_integer(call, emq_bit_get(bytes.data, bytes.length, offsets[i]));
    }
    if (presence == EMQ_PRESENT) {
        emq_close_looked(call, emq_declared(call, 0), key);
    }
}

/* The range and the limit of a scan: from to [LIMIT n]. */
static int read_range(emq_call *call, int64_t *from, int64_t *to, int64_t *limit) {
    const int with_limit = 4;
    *limit = EMQ_BITSCAN_LIMIT;
    if (call->value_count == with_limit) {
        emq_slice word = emq_text(emq_value(call, 2));
        if (word.length != sizeof(EMQ_WORD_LIMIT) - 1 ||
            strncasecmp(word.data, EMQ_WORD_LIMIT, word.length) != 0) {
            return emq_refuse_shape(call);
        }
    }
    return emq_value_integer(call, 0, from) && emq_value_integer(call, 1, to) &&
           (call->value_count < with_limit || emq_value_integer(call, 3, limit));
}

void emq_handle_tra_bitscan(emq_call *call) {
    int64_t from = 0;
    int64_t to = 0;
    int64_t limit = 0;
    ValkeyModuleKey *key = NULL;
    emq_slice bytes = {"", 0};
    if (!read_range(call, &from, &to, &limit)) {
        return;
    }
    emq_presence presence = emq_open_string(call, emq_declared(call, 0), &key, &bytes);
    if (presence == EMQ_PRESENCE_REFUSED) {
        return;
    }
    uint32_t *found = ValkeyModule_Alloc((size_t)limit * sizeof(*found));
    size_t count =
        emq_bits_scan(bytes.data, bytes.length, (uint32_t)from, (uint32_t)to, found, (size_t)limit);
    if (presence == EMQ_PRESENT) {
        emq_close_looked(call, emq_declared(call, 0), key);
    }
    (void)ValkeyModule_ReplyWithArray(call->ctx, (long)count);
    for (size_t i = 0; i < count; i++) {
        emq_reply_integer(call, found[i]);
    }
    ValkeyModule_Free(found);
}
