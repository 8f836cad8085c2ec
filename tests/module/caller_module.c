/* SPDX-License-Identifier: Apache-2.0 */
/* A second module, for the tests alone: CALLER.CALL name arg... calls a command as modules do, and
 * passes its reply on. The call runs as the user who made it. CALLER.ANSWER name arg... calls it
 * when a member next leaves a sorted set, from within the notification. */
#include <stddef.h>
#include <string.h>
#include <valkeymodule.h>

static int call_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) {
        return ValkeyModule_WrongArity(ctx);
    }
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[1], NULL),
                                                     "!CEv", argv + 2, (size_t)argc - 2);
    if (reply == NULL) {
        return ValkeyModule_ReplyWithError(ctx, "ERR the call was not made");
    }
    (void)ValkeyModule_ReplyWithCallReply(ctx, reply);
    ValkeyModule_FreeCallReply(reply);
    return VALKEYMODULE_OK;
}

#define ANSWER_MAX 16
static ValkeyModuleString *answer[ANSWER_MAX];
static size_t answer_length; /* 0: none is to be given */

static int keep_answer(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2 || argc - 1 > ANSWER_MAX) {
        return ValkeyModule_WrongArity(ctx);
    }
    for (int i = 1; i < argc; i++) {
        ValkeyModule_RetainString(ctx, argv[i]);
        answer[i - 1] = argv[i];
    }
    answer_length = (size_t)argc - 1;
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int give_answer(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    size_t length = answer_length;
    (void)type;
    (void)key;
    if (length == 0 || strcmp(event, "zrem") != 0) {
        return VALKEYMODULE_OK;
    }
    answer_length = 0; /* what is called may make such an event */
    ValkeyModuleString *name = ValkeyModule_CreateString(ctx, "default", strlen("default"));
    ValkeyModuleUser *user = ValkeyModule_GetModuleUserFromUserName(name);
    ValkeyModule_SetContextUser(ctx, user);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(
        ctx, ValkeyModule_StringPtrLen(answer[0], NULL), "!CEv", answer + 1, length - 1);
    ValkeyModule_FreeCallReply(reply);
    ValkeyModule_FreeModuleUser(user);
    ValkeyModule_FreeString(ctx, name);
    for (size_t i = 0; i < length; i++) {
        ValkeyModule_FreeString(ctx, answer[i]);
    }
    return VALKEYMODULE_OK;
}

__attribute__((visibility("default"))) int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx,
                                                               ValkeyModuleString **argv, int argc);

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    if (ValkeyModule_Init(ctx, "caller", 1, VALKEYMODULE_APIVER_1) != VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    if (ValkeyModule_SubscribeToKeyspaceEvents(ctx, VALKEYMODULE_NOTIFY_ZSET, give_answer) !=
            VALKEYMODULE_OK ||
        ValkeyModule_CreateCommand(ctx, "caller.answer", keep_answer, "write", 0, 0, 0) !=
            VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    return ValkeyModule_CreateCommand(ctx, "caller.call", call_command, "write", 0, 0, 0);
}
