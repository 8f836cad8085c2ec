/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.VERSION and EMQ.INSTALL: what this server serves, and the brand of a database. */
#include <emq/version.h>

#include "effects.h"
#include "handlers.h"

static void reply_text_fact(ValkeyModuleCtx *ctx, const char *name, const char *value) {
    (void)ValkeyModule_ReplyWithCString(ctx, name);
    (void)ValkeyModule_ReplyWithCString(ctx, value);
}

static void reply_number_fact(ValkeyModuleCtx *ctx, const char *name, long long value) {
    (void)ValkeyModule_ReplyWithCString(ctx, name);
    (void)ValkeyModule_ReplyWithLongLong(ctx, value);
}

/* Every row of the table is registered, or the module doesn't load: a token always names a command
 * that is served. */
static void reply_capabilities(ValkeyModuleCtx *ctx) {
    long count = 0;
    for (int i = 0; i < EMQ_VERBS; i++) {
        for (const char *const *token = emq_verbs[i].capabilities; *token != NULL; token++) {
            count++;
        }
    }
    (void)ValkeyModule_ReplyWithCString(ctx, EMQ_FACT_CAPABILITIES);
    (void)ValkeyModule_ReplyWithArray(ctx, count);
    for (int i = 0; i < EMQ_VERBS; i++) {
        for (const char *const *token = emq_verbs[i].capabilities; *token != NULL; token++) {
            (void)ValkeyModule_ReplyWithCString(ctx, *token);
        }
    }
}

void emq_handle_version(emq_call *call) {
    ValkeyModuleCtx *ctx = call->ctx;
    (void)ValkeyModule_ReplyWithMap(ctx, 8);
    reply_text_fact(ctx, EMQ_FACT_WIRE, EMQ_WIRE);
    reply_number_fact(ctx, EMQ_FACT_EPOCH, EMQ_WIRE_EPOCH);
    reply_text_fact(ctx, EMQ_FACT_MODULE, EMQ_MODULE_NAME);
    reply_text_fact(ctx, EMQ_FACT_VERSION, EMQ_VERSION_STRING);
    reply_number_fact(ctx, EMQ_FACT_MAJOR, EMQ_VERSION_MAJOR);
    reply_text_fact(ctx, EMQ_FACT_BUILD, EMQ_BUILD);
    reply_text_fact(ctx, EMQ_FACT_SERVER, emq_the_host.server_version);
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
