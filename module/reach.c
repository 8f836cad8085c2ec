/* SPDX-License-Identifier: Apache-2.0 */
/* The checked accessor: what the caller may reach beyond the declared keys, asked of the server. */
#include "reach.h"

#include <stdio.h>
#include <string.h>

#include "names.h"
#include "read.h"

#define NO_PERMISSION "NOPERM No permissions to access a key"
#define NO_CHANNEL "NOPERM No permissions to access a channel"
#define NO_DATABASE "NOPERM No permissions to access database"
#define KEY_UPDATE (VALKEYMODULE_CMD_KEY_ACCESS | VALKEYMODULE_CMD_KEY_UPDATE)

/* Refuses a key, and leaves the entry in ACL LOG that the server would leave. */
static int refuse_key(emq_call *call, ValkeyModuleString *key) {
    if (call->user_name != NULL) {
        (void)ValkeyModule_ACLAddLogEntryByUserName(call->ctx, call->user_name, key,
                                                    VALKEYMODULE_ACL_LOG_KEY);
    }
    return emq_refuse(call, NO_PERMISSION);
}

void emq_find_user(emq_call *call) {
    call->user_name = emq_own(call, ValkeyModule_GetCurrentUserName(call->ctx));
    if (call->user_name != NULL) {
        call->user = ValkeyModule_GetModuleUserFromUserName(call->user_name);
    }
}

int emq_check_key(emq_call *call, ValkeyModuleString *key, int rights) {
    return (call->user != NULL &&
            ValkeyModule_ACLCheckKeyPermissions(call->user, key, rights) == VALKEYMODULE_OK) ||
           refuse_key(call, key);
}

/* Refuses the first of the keys that no selector of the caller covers; when each is covered by some
 * selector, but no selector covers all, the first one stands for them. */
static int refuse_keys(emq_call *call, ValkeyModuleString *const *keys, int count, int rights) {
    for (int i = 0; i < count && call->user != NULL; i++) {
        if (ValkeyModule_ACLCheckKeyPermissions(call->user, keys[i], rights) != VALKEYMODULE_OK) {
            return refuse_key(call, keys[i]);
        }
    }
    return refuse_key(call, keys[0]);
}

/* Asks for a line of the verb; *reason says what is missing. */
static int is_line_allowed(const emq_call *call, ValkeyModuleString **line, int count,
                           ValkeyModuleACLLogEntryReason *reason) {
    *reason = VALKEYMODULE_ACL_LOG_CMD;
    return emq_the_host.check_permissions(call->user, line, count,
                                          ValkeyModule_GetSelectedDb(call->ctx),
                                          reason) == VALKEYMODULE_OK;
}

/* Asks for the verb with each reached key in turn in the place of its first one. */
static int is_each_allowed(const emq_call *call, ValkeyModuleString **line,
                           ValkeyModuleString *const *reached, int count) {
    ValkeyModuleACLLogEntryReason reason;
    for (int i = 0; i < count; i++) {
        line[2] = reached[i];
        if (!is_line_allowed(call, line, 2 + call->verb->key_count, &reason)) {
            return 0;
        }
    }
    return 1;
}

/* Asks for the verb with the declared keys and then the reached ones as its keys: one selector must
 * cover them all, as it would have to cover the keys of an EVAL. That line has another key count
 * than the call: who may run the verb with this first argument alone is asked in its shape. */
static int is_allowed_with_declared(const emq_call *call, ValkeyModuleString *const *reached,
                                    int count) {
    ValkeyModuleString *line[2 + EMQ_VERB_KEYS_MAX + EMQ_REACHED_TOGETHER];
    ValkeyModuleACLLogEntryReason reason;
    int declared = call->verb->key_count;
    line[0] = call->argv[0];
    line[1] = emq_the_host.small_numbers[declared + count];
    for (int i = 0; i < declared; i++) {
        line[2 + i] = call->argv[2 + i];
    }
    for (int i = 0; i < count; i++) {
        line[2 + declared + i] = reached[i];
    }
    if (is_line_allowed(call, line, 2 + declared + count, &reason)) {
        return 1;
    }
    line[1] = call->argv[1];
    return reason == VALKEYMODULE_ACL_LOG_CMD && is_each_allowed(call, line, reached, count);
}

static int is_allowed(const emq_call *call, ValkeyModuleString *const *keys, int count,
                      int rights) {
    for (int i = 0; i < count; i++) {
        if (ValkeyModule_ACLCheckKeyPermissions(call->user, keys[i], rights) != VALKEYMODULE_OK) {
            return 0;
        }
    }
    return 1;
}

/* Refuses the verb itself, or the database, in the server's words and with its entry in ACL LOG. */
static int refuse_verb(emq_call *call, ValkeyModuleACLLogEntryReason reason) {
    char refusal[EMQ_REFUSAL_MAX];
    /* by its own name, as the server logs it, however the client spelled it */
    ValkeyModuleString *verb =
        emq_own(call, ValkeyModule_CreateString(NULL, call->verb->name, strlen(call->verb->name)));
    (void)ValkeyModule_ACLAddLogEntryByUserName(call->ctx, call->user_name, verb, reason);
    if (reason != VALKEYMODULE_ACL_LOG_CMD) {
        return emq_refuse(call, NO_DATABASE);
    }
    (void)snprintf(refusal, sizeof(refusal),
                   "NOPERM User %.128s has no permissions to run the '%s' command",
                   emq_text(call->user_name).data, call->verb->name);
    return emq_refuse(call, refusal);
}

int emq_check_verb(emq_call *call) {
    ValkeyModuleACLLogEntryReason reason = VALKEYMODULE_ACL_LOG_CMD;
    if (call->user != NULL && (emq_the_host.check_permissions != NULL
                                   ? is_line_allowed(call, call->argv, call->argc, &reason)
                                   : ValkeyModule_ACLCheckCommandPermissions(
                                         call->user, call->argv, call->argc) == VALKEYMODULE_OK)) {
        return 1;
    }
    for (int i = 0; i < call->verb->key_count; i++) {
        if (call->user == NULL ||
            ValkeyModule_ACLCheckKeyPermissions(call->user, call->argv[2 + i], KEY_UPDATE) !=
                VALKEYMODULE_OK) {
            return refuse_key(call, call->argv[2 + i]);
        }
    }
    /* each by some selector, but all by none */
    return reason == VALKEYMODULE_ACL_LOG_KEY ? refuse_key(call, call->argv[2])
                                              : refuse_verb(call, reason);
}

static ValkeyModuleString *build_key(emq_call *call, const emq_reach_key *key) {
    char name[EMQ_KEY_MAX + 1];
    ValkeyModuleString *lent = key->id == NULL ? emq_names_lend(call->queue, key->kind) : NULL;
    if (lent != NULL) {
        return lent;
    }
    emq_slice id = key->id == NULL ? (emq_slice){"", 0} : emq_text(key->id);
    size_t length = emq_key_write(name, sizeof(name), key->kind, call->queue, id);
    return emq_own(call, ValkeyModule_CreateString(NULL, name, length));
}

int emq_may_read(emq_call *call, emq_ref *out, emq_key_kind kind) {
    *out = (emq_ref){.name = build_key(call, &(emq_reach_key){.kind = kind}), .kind = kind};
    return call->user != NULL &&
           ValkeyModule_ACLCheckKeyPermissions(call->user, out->name,
                                               VALKEYMODULE_CMD_KEY_ACCESS) == VALKEYMODULE_OK;
}

int emq_reach_channel(emq_call *call, ValkeyModuleString **out) {
    *out = build_key(call, &(emq_reach_key){.kind = EMQ_KEY_EVENTS});
    if (call->user != NULL &&
        ValkeyModule_ACLCheckChannelPermissions(
            call->user, *out, VALKEYMODULE_CMD_CHANNEL_PUBLISH) == VALKEYMODULE_OK) {
        return 1;
    }
    if (call->user_name != NULL) {
        (void)ValkeyModule_ACLAddLogEntryByUserName(call->ctx, call->user_name, *out,
                                                    VALKEYMODULE_ACL_LOG_CHANNEL);
    }
    return emq_refuse(call, NO_CHANNEL);
}

static int may_write(const emq_call *call, ValkeyModuleString *const *reached, int count) {
    return call->user != NULL &&
           (emq_the_host.check_permissions != NULL ? is_allowed_with_declared(call, reached, count)
                                                   : is_allowed(call, reached, count, KEY_UPDATE));
}

int emq_reach(emq_call *call, emq_ref *out, const emq_reach_key *keys, int count) {
    ValkeyModuleString *written[EMQ_REACH_MAX];
    int written_count = 0;
    for (int i = 0; i < count; i++) {
        out[i] = (emq_ref){.name = build_key(call, &keys[i]), .kind = keys[i].kind};
        if (!keys[i].read_only) {
            written[written_count++] = out[i].name;
        } else if (!emq_check_key(call, out[i].name, VALKEYMODULE_CMD_KEY_ACCESS)) {
            return 0;
        }
    }
    return written_count == 0 || may_write(call, written, written_count) ||
           refuse_keys(call, written, written_count, KEY_UPDATE);
}

/* The keys of some members, asked for in one line. Where that is refused, each member is asked for
 * alone: its keys must be covered with the declared ones, and not with those of another member. */
static int reach_together(emq_call *call, emq_ref *out, const emq_key_kind *kinds, int each,
                          ValkeyModuleString *const *ids, int members) {
    ValkeyModuleString *names[EMQ_REACHED_TOGETHER] = {NULL};
    int count = members * each;
    for (int i = 0; i < count; i++) {
        const emq_reach_key key = {.kind = kinds[i % each], .id = ids[i / each]};
        names[i] = build_key(call, &key);
        out[i] = (emq_ref){.name = names[i], .kind = key.kind};
    }
    if (may_write(call, names, count)) {
        return 1;
    }
    for (int i = 0; i < count; i += each) {
        if (!may_write(call, names + i, each)) {
            return refuse_keys(call, names + i, each, KEY_UPDATE);
        }
    }
    return 1;
}

int emq_may_reach_rows(emq_call *call, emq_ref *out, ValkeyModuleString *const *ids, int count) {
    ValkeyModuleString *names[EMQ_REACHED_TOGETHER] = {NULL};
    for (int i = 0; i < count; i++) {
        const emq_reach_key key = {.kind = EMQ_KEY_JOB, .id = ids[i]};
        if (!emq_name_valid(emq_text(ids[i]))) {
            return 0;
        }
        names[i] = build_key(call, &key);
        out[i] = (emq_ref){.name = names[i], .kind = key.kind};
    }
    return count > 0 && may_write(call, names, count);
}

int emq_reach_members(emq_call *call, emq_ref *out, const emq_key_kind *kinds, int each) {
    int first = 0;
    int left = emq_count_members(call, &first);
    while (left > 0) {
        ValkeyModuleString *ids[EMQ_REACHED_TOGETHER] = {NULL};
        int members = left < EMQ_REACHED_TOGETHER / each ? left : EMQ_REACHED_TOGETHER / each;
        for (int i = 0; i < members; i++, first += call->verb->repeated) {
            ids[i] = emq_value(call, first);
        }
        if (!reach_together(call, out, kinds, each, ids, members)) {
            return 0;
        }
        out += (size_t)members * (size_t)each;
        left -= members;
    }
    return 1;
}
