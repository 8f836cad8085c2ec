/* SPDX-License-Identifier: Apache-2.0 */
/* What operators do to a queue as a whole: EMQ.PAUSE and EMQ.RESUME. */
#include "effects.h"
#include "handlers.h"
#include "read.h"

/* Writes what makes the pause hold until it is ended. */
static void pause(emq_writes *writes, emq_ref meta, int key_expires, ValkeyModuleString *value) {
    if (key_expires) {
        emq_effect_persist(writes, meta);
    }
    if (value != NULL) {
        const emq_field flag = {emq_the_host.strings.paused, value};
        emq_effect_hset(writes, meta, &flag, 1);
    }
}

/* A flag with a time to live, its own or the key's, would end by itself: that time goes. */
void emq_handle_pause(emq_call *call) {
    const emq_strings *strings = &emq_the_host.strings;
    emq_ref meta = emq_declared(call, 0);
    ValkeyModuleString *flag = NULL;
    if (!emq_hash_field(call, meta, strings->paused, &flag)) {
        return;
    }
    int key_expires = emq_expires(call, meta);
    ValkeyModuleString *value = flag == NULL ? strings->one : NULL;
    if (flag != NULL && emq_field_expires(call, meta, strings->paused)) {
        value = flag; /* written again, it stays */
    }
    if (key_expires || value != NULL) {
        emq_writes *writes = emq_begin_writes(call);
        if (writes == NULL) {
            return;
        }
        pause(writes, meta, key_expires, value);
    }
    emq_reply_integer(call, 1);
}

/* Those who wait look again also when the flag was gone already: it may have been removed by hand,
 * which wakes nobody. */
void emq_handle_resume(emq_call *call) {
    emq_ref meta = emq_declared(call, 0);
    ValkeyModuleString *flag = emq_the_host.strings.paused;
    int paused = 0;
    if (!emq_hash_has(call, meta, flag, &paused)) {
        return;
    }
    if (paused) {
        emq_writes *writes = emq_begin_writes(call);
        if (writes == NULL) {
            return;
        }
        emq_effect_hdel(writes, meta, &flag, 1);
    }
    emq_signal_ready(call, emq_declared(call, 1));
    emq_reply_integer(call, 1);
}
