/* SPDX-License-Identifier: Apache-2.0 */
/* What this server serves (EMQ.VERSION, TRA.INFO, TRA.COMMANDS), and the brand of a database
 * (EMQ.INSTALL). */
#include <emq/version.h>
#include <string.h>

#include "effects.h"
#include "handlers.h"

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

/* Every row of the table is registered, or the module doesn't load: a token always names a command
 * that is served. */
static void reply_capabilities(ValkeyModuleCtx *ctx) {
    int count = 0;
    for (int i = 0; i < EMQ_VERBS; i++) {
        for (const char *const *token = emq_verbs[i].capabilities; *token != NULL; token++) {
            count++;
        }
    }
    reply_list(ctx, EMQ_FACT_CAPABILITIES, count);
    for (int i = 0; i < EMQ_VERBS; i++) {
        for (const char *const *token = emq_verbs[i].capabilities; *token != NULL; token++) {
            (void)ValkeyModule_ReplyWithCString(ctx, *token);
        }
    }
}

/* What EMQ.VERSION and TRA.INFO both tell. */
#define SHARED_FACTS 7
static void reply_shared(ValkeyModuleCtx *ctx) {
    reply_text(ctx, EMQ_FACT_WIRE, EMQ_WIRE);
    reply_number(ctx, EMQ_FACT_EPOCH, EMQ_WIRE_EPOCH);
    reply_text(ctx, EMQ_FACT_MODULE, EMQ_MODULE_NAME);
    reply_text(ctx, EMQ_FACT_VERSION, EMQ_VERSION_STRING);
    reply_number(ctx, EMQ_FACT_MAJOR, EMQ_VERSION_MAJOR);
    reply_text(ctx, EMQ_FACT_BUILD, EMQ_BUILD);
    reply_text(ctx, EMQ_FACT_SERVER, emq_the_host.server_version);
}

void emq_handle_version(emq_call *call) {
    ValkeyModuleCtx *ctx = call->ctx;
    (void)ValkeyModule_ReplyWithMap(ctx, SHARED_FACTS + 1);
    reply_shared(ctx);
    reply_capabilities(ctx);
}

void emq_handle_install(emq_call *call) {
    emq_ref fence = emq_declared(call, 0);
    switch (emq_read_fence(call, fence)) {
    case EMQ_FENCE_RIGHT:
        (void)ValkeyModule_ReplyWithLongLong(call->ctx, 0);
        break;
    case EMQ_FENCE_ABSENT: {
        emq_writes *writes = emq_begin_writes(call);
        if (writes != NULL) {
            emq_effect_set(writes, fence, emq_the_host.strings.wire);
            (void)ValkeyModule_ReplyWithLongLong(call->ctx, 1);
        }
        break;
    }
    default:
        break;
    }
}

void emq_handle_tra_info(emq_call *call) {
    ValkeyModuleCtx *ctx = call->ctx;
    (void)ValkeyModule_ReplyWithMap(ctx, SHARED_FACTS + 3);
    reply_shared(ctx);
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
