/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the queues of a database: their keys are looked for by SCAN, slice by slice, so that no
 * call keeps the server for long. A queue without keys doesn't exist. */
#ifndef EMQ_TOOL_FINDER_H
#define EMQ_TOOL_FINDER_H

#include <emq/emq.h>

#define FINDER_SLICE 1000 /* keys that the server looks at in one call, about */

typedef struct finder {
    char **queues; /* sorted, each once */
    size_t count;
    size_t capacity;
    uint64_t looked_at; /* keys so far, about */
    int is_done;        /* all keys were looked at */
    char cursor[32];
} finder;

void finder_init(finder *f);

/* Looks at one slice: call it until is_done. 0; a result of emq_client_command; EMQ_ENOMEM;
 * EMQ_EPROTOCOL. */
int finder_step(finder *f, emq_client *client);

/* Begins anew, with no queues. */
void finder_clear(finder *f);

#endif
