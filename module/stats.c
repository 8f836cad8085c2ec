/* SPDX-License-Identifier: Apache-2.0 */
/* The INFO section: calls per verb, refusals per class, and effects that could not be logged. */
#include <ctype.h>
#include <emq/version.h>
#include <stdio.h>

#include "host.h"
#include "wait.h"

static unsigned long long calls[EMQ_VERBS];
static unsigned long long refusals[EMQ_REFUSAL_CLASSES];
static unsigned long long lost_effects;
static unsigned long long wakes;

void emq_stats_count_call(emq_verb_symbol symbol) {
    calls[symbol]++;
}

void emq_stats_count_refusal(emq_refusal_class class) {
    if (class < EMQ_REFUSAL_CLASSES) {
        refusals[class]++;
    }
}

void emq_stats_count_lost_effect(void) {
    lost_effects++;
}

void emq_stats_count_wake(void) {
    wakes++;
}

/* INFO field names are lower-case words: calls_enqueue, refused_wrongtype. */
static const char *field_name(char *out, size_t cap, const char *prefix, const char *word) {
    (void)snprintf(out, cap, "%s_%s", prefix, word);
    for (char *c = out; *c != '\0'; c++) {
        if (*c == '.') {
            *c = '_';
        } else {
            *c = (char)tolower((unsigned char)*c);
        }
    }
    return out;
}

void emq_stats_info(ValkeyModuleInfoCtx *info, int for_crash_report) {
    static const char *const classes[] = {
#define EMQ_REFUSAL_NAME(symbol, class, result) #symbol,
        EMQ_REFUSAL_TABLE(EMQ_REFUSAL_NAME)
#undef EMQ_REFUSAL_NAME
    };
    char name[64];
    (void)for_crash_report;
    (void)ValkeyModule_InfoAddSection(info, "module");
    (void)ValkeyModule_InfoAddFieldCString(info, "wire", EMQ_WIRE);
    (void)ValkeyModule_InfoAddFieldCString(info, "version", EMQ_VERSION_STRING);
    (void)ValkeyModule_InfoAddFieldCString(info, "build", EMQ_BUILD);
    (void)ValkeyModule_InfoAddFieldULongLong(info, "lost_effects", lost_effects);
    (void)ValkeyModule_InfoAddFieldULongLong(info, "blocked_claims", emq_wait_count());
    (void)ValkeyModule_InfoAddFieldULongLong(info, "wakes", wakes);
    (void)ValkeyModule_InfoAddSection(info, "calls");
    for (size_t i = 0; i < EMQ_VERBS; i++) {
        field_name(name, sizeof(name), "calls", emq_verb_word(&emq_verbs[i]));
        (void)ValkeyModule_InfoAddFieldULongLong(info, name, calls[i]);
    }
    (void)ValkeyModule_InfoAddSection(info, "refusals");
    for (size_t i = 0; i < EMQ_REFUSAL_CLASSES; i++) {
        field_name(name, sizeof(name), "refused", classes[i]);
        (void)ValkeyModule_InfoAddFieldULongLong(info, name, refusals[i]);
    }
}
