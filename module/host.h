/* SPDX-License-Identifier: Apache-2.0 */
/* The host's API, and what this module made once at load: strings, the epoch, the counters. */
#ifndef EMQ_MODULE_HOST_H
#define EMQ_MODULE_HOST_H

#include <valkeymodule.h>

#include "verbs.h"

/* Strings that calls need again and again; made at load. */
typedef struct emq_strings {
    ValkeyModuleString *fence_key;
    ValkeyModuleString *wire;
    ValkeyModuleString *state;
    ValkeyModuleString *attempts;
    ValkeyModuleString *payload;
    ValkeyModuleString *lease_epoch;
    ValkeyModuleString *group;
    ValkeyModuleString *parent;
    ValkeyModuleString *failures;
    ValkeyModuleString *last_error;
    ValkeyModuleString *stalled;
    ValkeyModuleString *paused;
    ValkeyModuleString *count;
    ValkeyModuleString *pending;
    ValkeyModuleString *active;
    ValkeyModuleString *scheduled;
    ValkeyModuleString *dead;
    ValkeyModuleString *zero;
    ValkeyModuleString *one;
    ValkeyModuleString *run_id; /* this server process: the epoch of the leases that it gives */
} emq_strings;

#define EMQ_SMALL_NUMBERS 48

/* What this module knows of its host. */
typedef struct emq_host {
    emq_strings strings;
    char server_version[32];
    /* Checks declared and reached keys in one go, so that one selector must cover them all; NULL on
     * a host that lacks it (before 9.1). */
    int (*check_permissions)(ValkeyModuleUser *user, ValkeyModuleString **argv, int argc, int dbid,
                             ValkeyModuleACLLogEntryReason *denial_reason);
    /* The texts "0" to "n": the key count in such a check, and small numbers in rows. */
    ValkeyModuleString *small_numbers[EMQ_SMALL_NUMBERS];
} emq_host;

extern emq_host emq_the_host;

/* Asks the gate; returns 1, or logs the reason and returns 0. */
int emq_host_check(ValkeyModuleCtx *ctx, int argc);

/* Makes what emq_the_host holds; returns 0 when the host can't tell its run_id. */
int emq_host_init(ValkeyModuleCtx *ctx);

/* Frees it, when the module is unloaded or the server ends. */
void emq_host_free(void);

/* The text of a number, where it is one of the small ones; NULL otherwise. */
ValkeyModuleString *emq_small_number(int64_t number);

/* Counters of INFO. */
void emq_stats_count_call(emq_verb_symbol symbol);
void emq_stats_count_refusal(emq_refusal_class class);
void emq_stats_count_lost_effect(void);
void emq_stats_count_wake(void);
void emq_stats_info(ValkeyModuleInfoCtx *info, int for_crash_report);

#endif
