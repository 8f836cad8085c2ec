/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that are open: for one look, for one effect, or kept for both.
 *
 * A kept key is opened for writing before the guard, but as quietly as for a look. The module tells
 * the server by itself which keys have changed (main.c), so that closing one tells nobody. */
#include "open.h"

/* No expiry, no notification, no statistics, no touch: a check leaves no trace. */
#define QUIET_READ (VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NOEFFECTS)

/* The same with the touch. */
#define TOUCHING_READ                                                                              \
    (VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NONOTIFY | VALKEYMODULE_OPEN_KEY_NOSTATS |          \
     VALKEYMODULE_OPEN_KEY_NOEXPIRE)

/* The name of a key is one string throughout a call. */
static emq_kept *find_kept(emq_writes *writes, emq_ref ref) {
    if (ref.row > 0) {
        return &writes->rows[ref.row - 1];
    }
    for (size_t i = 0; i < writes->kept_count; i++) {
        if (writes->kept[i].name == ref.name) {
            return &writes->kept[i];
        }
    }
    return NULL;
}

static int is_empty(ValkeyModuleKey *key) {
    return ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_EMPTY;
}

void emq_keep(emq_call *call, emq_ref ref) {
    emq_writes *writes = &call->writes;
    if (writes->kept_count < EMQ_KEPT_MAX && find_kept(writes, ref) == NULL) {
        writes->kept[writes->kept_count++] = (emq_kept){.name = ref.name};
    }
}

void emq_keep_row(emq_call *call, emq_ref *ref) {
    emq_writes *writes = &call->writes;
    if (writes->row_count == EMQ_BATCH_MAX) {
        return; /* what is kept must stay in the processor's reach */
    }
    if (writes->row_count == writes->row_capacity) {
        writes->row_capacity =
            writes->row_capacity == 0 ? EMQ_REACHED_TOGETHER : 2 * writes->row_capacity;
        writes->rows =
            ValkeyModule_Realloc(writes->rows, writes->row_capacity * sizeof(*writes->rows));
    }
    writes->rows[writes->row_count++] = (emq_kept){.name = ref->name};
    ref->row = writes->row_count;
}

/* A key that is not there, or that has expired and not gone yet, is opened anew for its effect. */
ValkeyModuleKey *emq_open_to_look(emq_call *call, emq_ref ref) {
    emq_kept *kept = find_kept(&call->writes, ref);
    if (kept == NULL) {
        return ValkeyModule_OpenKey(call->ctx, ref.name, QUIET_READ);
    }
    if (kept->key == NULL) {
        ValkeyModuleKey *key =
            ValkeyModule_OpenKey(call->ctx, ref.name, QUIET_READ | VALKEYMODULE_WRITE);
        if (is_empty(key)) {
            ValkeyModule_CloseKey(key);
            return NULL;
        }
        kept->key = key;
    }
    return kept->key;
}

void emq_close_looked(emq_call *call, emq_ref ref, ValkeyModuleKey *key) {
    if (key != NULL && find_kept(&call->writes, ref) == NULL) {
        ValkeyModule_CloseKey(key);
    }
}

ValkeyModuleKey *emq_open_to_write(emq_writes *writes, emq_ref ref) {
    emq_kept *kept = find_kept(writes, ref);
    if (kept != NULL && kept->key != NULL) {
        return kept->key;
    }
    ValkeyModuleKey *key =
        ValkeyModule_OpenKey(writes->ctx, ref.name, VALKEYMODULE_READ | VALKEYMODULE_WRITE);
    if (kept != NULL) {
        kept->key = key;
    }
    return key;
}

/* A kept key was opened without a touch; its effect is one. Where the server counts how often a key
 * is used, it alone knows what one more use comes to: it is looked up once more. */
static void touch(emq_writes *writes, emq_ref ref, ValkeyModuleKey *key) {
    if (ValkeyModule_SetLRU(key, 0) != VALKEYMODULE_OK) {
        ValkeyModule_CloseKey(ValkeyModule_OpenKey(writes->ctx, ref.name, TOUCHING_READ));
    }
}

void emq_close_written(emq_writes *writes, emq_ref ref, ValkeyModuleKey *key, int changed) {
    emq_kept *kept = find_kept(writes, ref);
    int stays = kept != NULL && !is_empty(key);
    if (changed) {
        (void)ValkeyModule_SignalModifiedKey(writes->ctx, ref.name);
    }
    if (stays && changed) {
        touch(writes, ref, key);
    }
    if (kept != NULL && !stays) {
        kept->key = NULL;
    }
    if (!stays) {
        ValkeyModule_CloseKey(key);
    }
}

void emq_close_kept(emq_writes *writes) {
    for (size_t i = 0; i < writes->kept_count; i++) {
        ValkeyModule_CloseKey(writes->kept[i].key);
    }
    for (unsigned i = 0; i < writes->row_count; i++) {
        ValkeyModule_CloseKey(writes->rows[i].key);
    }
    if (writes->rows != NULL) {
        ValkeyModule_Free(writes->rows);
    }
    writes->kept_count = 0;
    writes->row_count = 0;
}
