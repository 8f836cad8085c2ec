/* SPDX-License-Identifier: Apache-2.0 */
/* The load gate: decides whether this module may run in this host. Pure: the host is described by
 * values and two look-ups, so that every refusal can be tested without a server. */
#ifndef EMQ_MODULE_GATE_H
#define EMQ_MODULE_GATE_H

#include <stddef.h>

#define EMQ_HOST_MAJOR 9

typedef struct emq_gate_host {
    int version;        /* 0x00MMmmpp, as the host reports it; 0 when it can't be asked */
    int argument_count; /* module arguments given at load */
    int is_cluster;
    int (*has_api)(void *data, const char *name);     /* is this module API function present? */
    int (*has_command)(void *data, const char *name); /* is this command there under its name? */
    void *data;                                       /* passed to both look-ups */
} emq_gate_host;

/* Checks version, API, arguments, cluster mode and commands, in this order. Returns 1 when the
 * module may load; otherwise 0 with a reason in `reason` (NUL-terminated, cut to cap). */
int emq_gate_check(char *reason, size_t cap, const emq_gate_host *host);

/* The API functions that this module calls, and the commands that it replicates; both lists end in
 * NULL. */
extern const char *const emq_gate_apis[];
extern const char *const emq_gate_commands[];

#endif
