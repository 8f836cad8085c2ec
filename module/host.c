/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the host once, at load: the gate's look-ups, its version, its run id. */
#include "host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "names.h"
#include "wait.h"

emq_host emq_the_host;

static int has_api(void *data, const char *name) {
    char symbol[64];
    void *function = NULL;
    (void)data;
    (void)snprintf(symbol, sizeof(symbol), "ValkeyModule_%s", name);
    return ValkeyModule_GetApi(symbol, &function) == VALKEYMODULE_OK && function != NULL;
}

/* Every command that is looked up takes arguments: called with none, one that exists is refused for
 * its arity before it runs, and a missing one is unknown. */
static int has_command(void *data, const char *name) {
    errno = 0;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(data, name, "");
    return reply == NULL && errno != ENOENT;
}

int emq_host_check(ValkeyModuleCtx *ctx, int argc) {
    char reason[128];
    /* an API function that the host lacks is a NULL pointer: ask before calling */
    emq_gate_host host = {
        .version = ValkeyModule_GetServerVersion != NULL ? ValkeyModule_GetServerVersion() : 0,
        .argument_count = argc,
        .is_cluster = ValkeyModule_GetContextFlags != NULL &&
                      (ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER) != 0,
        .has_api = has_api,
        .has_command = has_command,
        .data = ctx,
    };
    if (emq_gate_check(reason, sizeof(reason), &host)) {
        return 1;
    }
    if (ValkeyModule_Log != NULL) {
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "load refused: %s", reason);
    }
    return 0;
}

static ValkeyModuleString *make_string(const char *text) {
    return ValkeyModule_CreateString(NULL, text, strlen(text));
}

static void make_strings(emq_strings *strings) {
    *strings = (emq_strings){
        .fence_key = make_string(EMQ_FENCE_KEY),
        .wire = make_string(EMQ_WIRE),
        .state = make_string(EMQ_FIELD_STATE),
        .attempts = make_string(EMQ_FIELD_ATTEMPTS),
        .payload = make_string(EMQ_FIELD_PAYLOAD),
        .lease_epoch = make_string(EMQ_FIELD_LEASE_EPOCH),
        .group = make_string(EMQ_FIELD_GROUP),
        .parent = make_string(EMQ_FIELD_PARENT),
        .failures = make_string(EMQ_FIELD_FAILURES),
        .last_error = make_string(EMQ_FIELD_LAST_ERROR),
        .stalled = make_string(EMQ_FIELD_STALLED),
        .paused = make_string(EMQ_FIELD_PAUSED),
        .count = make_string(EMQ_FIELD_COUNT),
        .pending = make_string(EMQ_STATE_PENDING),
        .active = make_string(EMQ_STATE_ACTIVE),
        .scheduled = make_string(EMQ_STATE_SCHEDULED),
        .dead = make_string(EMQ_STATE_DEAD),
        .zero = make_string("0"),
        .one = make_string("1"),
    };
}

int emq_host_init(ValkeyModuleCtx *ctx) {
    emq_host *host = &emq_the_host;
    ValkeyModuleServerInfoData *info = ValkeyModule_GetServerInfo(ctx, "server");
    const char *run_id = ValkeyModule_ServerInfoGetFieldC(info, "run_id");
    if (run_id == NULL || run_id[0] == '\0') {
        ValkeyModule_FreeServerInfo(ctx, info);
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING,
                         "load refused: the host does not tell its run_id");
        return 0;
    }
    make_strings(&host->strings);
    emq_wait_init();
    host->strings.run_id = make_string(run_id);
    ValkeyModule_FreeServerInfo(ctx, info);
    for (int i = 0; i < EMQ_SMALL_NUMBERS; i++) {
        host->small_numbers[i] = ValkeyModule_CreateStringFromLongLong(NULL, i);
    }
    int version = ValkeyModule_GetServerVersion();
    (void)snprintf(host->server_version, sizeof(host->server_version), "%d.%d.%d", version >> 16,
                   version >> 8 & 0xff, version & 0xff);
    /* asked by name, so that the module also builds against a header that lacks it */
    void *function = NULL;
    if (ValkeyModule_GetApi("ValkeyModule_ACLCheckPermissions", &function) == VALKEYMODULE_OK) {
        memcpy(&host->check_permissions, &function, sizeof(function));
    }
    return 1;
}

ValkeyModuleString *emq_small_number(int64_t number) {
    return number >= 0 && number < EMQ_SMALL_NUMBERS ? emq_the_host.small_numbers[number] : NULL;
}

void emq_host_free(void) {
    emq_strings *s = &emq_the_host.strings;
    emq_wait_free();
    emq_names_free();
    ValkeyModuleString *const all[] = {
        s->fence_key,   s->wire,   s->state,  s->attempts, s->payload,
        s->lease_epoch, s->group,  s->parent, s->failures, s->last_error,
        s->stalled,     s->paused, s->count,  s->pending,  s->active,
        s->scheduled,   s->dead,   s->zero,   s->one,      s->run_id,
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        ValkeyModule_FreeString(NULL, all[i]);
    }
    for (int i = 0; i < EMQ_SMALL_NUMBERS; i++) {
        ValkeyModule_FreeString(NULL, emq_the_host.small_numbers[i]);
    }
}
