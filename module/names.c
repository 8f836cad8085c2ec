/* SPDX-License-Identifier: Apache-2.0 */
/* The kept names: one queue's, made when they are asked for. */
#include "names.h"

#include <string.h>

static char kept_queue[EMQ_QUEUE_MAX];
static size_t kept_length; /* 0: none */
static ValkeyModuleString *kept[EMQ_KEY_FENCE];
static int calls; /* under way, one within the other */

void emq_names_free(void) {
    for (int kind = 0; kind < EMQ_KEY_FENCE; kind++) {
        if (kept[kind] != NULL) {
            ValkeyModule_FreeString(NULL, kept[kind]);
            kept[kind] = NULL;
        }
    }
    kept_length = 0;
}

static void keep(emq_slice queue) {
    emq_names_free();
    memcpy(kept_queue, queue.data, queue.length);
    kept_length = queue.length;
}

void emq_names_enter(void) {
    calls++;
}

void emq_names_leave(void) {
    calls--;
}

ValkeyModuleString *emq_names_lend(emq_slice queue, emq_key_kind kind) {
    if (!emq_slice_equal(queue, (emq_slice){kept_queue, kept_length})) {
        if (calls > 1) {
            return NULL;
        }
        keep(queue);
    }
    if (kept[kind] == NULL) {
        char name[EMQ_KEY_MAX + 1];
        size_t length = emq_key_write(name, sizeof(name), kind, queue, (emq_slice){"", 0});
        kept[kind] = ValkeyModule_CreateString(NULL, name, length);
    }
    return kept[kind];
}
