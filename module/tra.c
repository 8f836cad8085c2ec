/* SPDX-License-Identifier: Apache-2.0 */
/* TRA: the module's own metadata (TRA.INFO, TRA.COMMANDS) and bitmaps (TRA.BITSET, TRA.BITCLEAR,
 * TRA.BITGET, TRA.BITSCAN). Bitmaps are plain strings under any name: they need no fence. */
#include <emq/version.h>
#include <string.h>
#include <strings.h>

#include "bits.h"
#include "effects.h"
#include "handlers.h"
#include "read.h"

/* ---- metadata ---- */

static void reply_text(ValkeyModuleCtx *ctx, const char *name, const char *value) {
    (void)ValkeyModule_ReplyWithCString(ctx, name);
    (void)ValkeyModule_ReplyWithCString(ctx, value);
}

static void reply_number(ValkeyModuleCtx *ctx, const char *name, long long value) {
    (void)ValkeyModule_ReplyWithCString(ctx, name);
    (void)ValkeyModule_ReplyWithLongLong(ctx, value);
}

static void reply_list(ValkeyModuleCtx *ctx, const char *name, int count) {
    (void)ValkeyModule_ReplyWithCString(ctx, name);
    (void)ValkeyModule_ReplyWithArray(ctx, count);
}

void emq_handle_tra_info(emq_call *call) {
    ValkeyModuleCtx *ctx = call->ctx;
    (void)ValkeyModule_ReplyWithMap(ctx, 10);
    reply_text(ctx, EMQ_FACT_MODULE, EMQ_MODULE_NAME);
    reply_text(ctx, EMQ_FACT_VERSION, EMQ_VERSION_STRING);
    reply_text(ctx, EMQ_FACT_WIRE, EMQ_WIRE);
    reply_number(ctx, EMQ_FACT_EPOCH, EMQ_WIRE_EPOCH);
    reply_number(ctx, EMQ_FACT_MAJOR, EMQ_VERSION_MAJOR);
    reply_text(ctx, EMQ_FACT_BUILD, EMQ_BUILD);
    reply_text(ctx, EMQ_FACT_SERVER, emq_the_host.server_version);
    (void)ValkeyModule_ReplyWithCString(ctx, EMQ_FACT_RUN_ID);
    (void)ValkeyModule_ReplyWithString(ctx, emq_the_host.strings.run_id);
    reply_number(ctx, EMQ_FACT_API, VALKEYMODULE_APIVER_1);
    reply_number(ctx, EMQ_FACT_COMMANDS, EMQ_VERBS);
}

/* Words that are separated by single spaces, as a list. */
static void reply_words(ValkeyModuleCtx *ctx, const char *name, char *words) {
    int count = words[0] == '\0' ? 0 : 1;
    for (char *c = words; *c != '\0'; c++) {
        if (*c == ' ') {
            *c = '\0';
            c++;
            count++;
        }
    }
    reply_list(ctx, name, count);
    for (const char *word = words; count > 0; count--) {
        (void)ValkeyModule_ReplyWithCString(ctx, word);
        word += strlen(word) + 1;
    }
}

static void reply_row(ValkeyModuleCtx *ctx, const emq_verb *verb) {
    char words[EMQ_WORDS_MAX];
    int tokens = 0;
    (void)ValkeyModule_ReplyWithMap(ctx, 13);
    reply_text(ctx, "name", verb->name);
    reply_text(ctx, "family", emq_verb_family_word(verb));
    reply_number(ctx, "arity", emq_verb_arity(verb));
    words[0] = '\0';
    (void)emq_verb_flag_words(words, sizeof(words), verb);
    reply_words(ctx, "flags", words);
    words[0] = '\0';
    (void)emq_verb_category_words(words, sizeof(words), verb);
    reply_words(ctx, "categories", words);
    reply_list(ctx, "keys", verb->key_count);
    for (int i = 0; i < verb->key_count; i++) {
        (void)ValkeyModule_ReplyWithCString(ctx, emq_verb_key_pattern(verb, i));
    }
    reply_list(ctx, "values", verb->value_count);
    for (int i = 0; i < verb->value_count; i++) {
        (void)ValkeyModule_ReplyWithCString(ctx, emq_value_get_facts(verb->values[i])->name);
    }
    reply_number(ctx, "least_values", verb->least_values);
    reply_number(ctx, "repeated", verb->repeated);
    while (verb->capabilities[tokens] != NULL) {
        tokens++;
    }
    reply_list(ctx, "capabilities", tokens);
    for (int i = 0; i < tokens; i++) {
        (void)ValkeyModule_ReplyWithCString(ctx, verb->capabilities[i]);
    }
    reply_text(ctx, "summary", verb->summary);
    reply_text(ctx, "complexity", verb->complexity);
    reply_text(ctx, "since", verb->since);
}

void emq_handle_tra_commands(emq_call *call) {
    (void)ValkeyModule_ReplyWithArray(call->ctx, EMQ_VERBS);
    for (int symbol = 0; symbol < EMQ_VERBS; symbol++) {
        reply_row(call->ctx, &emq_verbs[symbol]);
    }
}

/* ---- bitmaps ---- */

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
        ValkeyModule_CloseKey(key);
    }
    return presence != EMQ_PRESENCE_REFUSED;
}

/* Makes the bits so. A call that changes nothing writes nothing, and passes a write pause. */
static void change_bits(emq_call *call, int bit) {
    emq_ref ref = emq_declared(call, 0);
    uint32_t offsets[EMQ_BATCH_MAX] = {0};
    size_t count = 0;
    int is_change = 0;
    if (!read_offsets(call, offsets, &count) ||
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
        ValkeyModule_CloseKey(key);
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
        ValkeyModule_CloseKey(key);
    }
    (void)ValkeyModule_ReplyWithArray(call->ctx, (long)count);
    for (size_t i = 0; i < count; i++) {
        emq_reply_integer(call, found[i]);
    }
    ValkeyModule_Free(found);
}
