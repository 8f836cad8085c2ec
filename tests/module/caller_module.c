/* SPDX-License-Identifier: Apache-2.0 */
/* A second module, for the tests alone: CALLER.CALL name arg... calls a command as modules do, and
 * passes its reply on. The call runs as the user who made it. */
#include <stddef.h>
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

__attribute__((visibility("default"))) int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx,
                                                               ValkeyModuleString **argv, int argc);

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    if (ValkeyModule_Init(ctx, "caller", 1, VALKEYMODULE_APIVER_1) != VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    return ValkeyModule_CreateCommand(ctx, "caller.call", call_command, "write", 0, 0, 0);
}
