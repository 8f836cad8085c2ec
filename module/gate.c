/* SPDX-License-Identifier: Apache-2.0 */
/* The load gate: what a host must have, and the words that say what it lacks. */
#include "gate.h"

#include <stdio.h>

const char *const emq_gate_apis[] = {
    "ACLAddLogEntryByUserName",
    "ACLCheckCommandPermissions",
    "ACLCheckChannelPermissions",
    "ACLCheckKeyPermissions",
    "AddACLCategory",
    "Alloc",
    "AvoidReplicaTraffic",
    "BlockClientGetPrivateData",
    "BlockClientOnKeys",
    "CachedMicroseconds",
    "Call",
    "CallReplyArrayElement",
    "CallReplyInteger",
    "CallReplyStringPtr",
    "CloseKey",
    "CreateCommand",
    "CreateDict",
    "CreateString",
    "CreateStringFromLongLong",
    "DeleteKey",
    "DictDelC",
    "DictGet",
    "DictGetC",
    "DictSet",
    "DictSetC",
    "Free",
    "FreeCallReply",
    "FreeDict",
    "FreeModuleUser",
    "FreeServerInfo",
    "FreeString",
    "GetBlockedClientPrivateData",
    "GetBlockedClientReadyKey",
    "GetCommand",
    "GetContextFlags",
    "GetCurrentUserName",
    "GetExpire",
    "GetModuleUserFromUserName",
    "GetSelectedDb",
    "GetServerInfo",
    "GetServerVersion",
    "HashGet",
    "HashSet",
    "InfoAddFieldCString",
    "InfoAddFieldULongLong",
    "InfoAddSection",
    "KeyType",
    "Log",
    "NotifyKeyspaceEvent",
    "OpenKey",
    "PublishMessage",
    "Realloc",
    "RegisterInfoFunc",
    "Replicate",
    "ReplyWithArray",
    "ReplyWithCString",
    "ReplyWithError",
    "ReplyWithLongLong",
    "ReplyWithMap",
    "ReplyWithNull",
    "ReplyWithString",
    "ServerInfoGetFieldC",
    "SetCommandACLCategories",
    "SetCommandInfo",
    "SetDisconnectCallback",
    "SetExpire",
    "SetLRU",
    "SetModuleOptions",
    "SignalKeyAsReady",
    "SignalModifiedKey",
    "StreamAdd",
    "StringDMA",
    "StringPtrLen",
    "StringSet",
    "StringToLongLong",
    "StringTruncate",
    "ZsetAdd",
    "ZsetFirstInScoreRange",
    "ZsetRangeCurrentElement",
    "ZsetRangeEndReached",
    "ZsetRangeNext",
    "ZsetRangeStop",
    "ZsetRem",
    "ZsetScore",
    NULL,
};

const char *const emq_gate_commands[] = {"DEL",    "HDEL", "HSET", "PERSIST", "PUBLISH", "SET",
                                         "SETBIT", "XADD", "ZADD", "ZREM",    NULL};

static const char *find_missing(const char *const *names, int (*has)(void *, const char *),
                                void *data) {
    for (size_t i = 0; names[i] != NULL; i++) {
        if (!has(data, names[i])) {
            return names[i];
        }
    }
    return NULL;
}

int emq_gate_check(char *reason, size_t cap, const emq_gate_host *host) {
    int major = host->version >> 16;
    int minor = host->version >> 8 & 0xff;
    if (major != EMQ_HOST_MAJOR) {
        (void)snprintf(reason, cap, "the host must be Valkey %d, not %d.%d", EMQ_HOST_MAJOR, major,
                       minor);
        return 0;
    }
    const char *missing = find_missing(emq_gate_apis, host->has_api, host->data);
    if (missing != NULL) {
        (void)snprintf(reason, cap, "the host lacks the module API function %s", missing);
        return 0;
    }
    if (host->argument_count != 0) {
        (void)snprintf(reason, cap, "the module takes no arguments, %d given",
                       host->argument_count);
        return 0;
    }
    if (host->is_cluster) {
        (void)snprintf(reason, cap, "cluster mode is not supported: run a standalone server");
        return 0;
    }
    missing = find_missing(emq_gate_commands, host->has_command, host->data);
    if (missing != NULL) {
        (void)snprintf(reason, cap, "the command %s is missing or renamed", missing);
        return 0;
    }
    return 1;
}
