/* SPDX-License-Identifier: Apache-2.0 */
/* What operators do to a queue as a whole: EMQ.PAUSE and EMQ.RESUME. */
#include "effects.h"
#include "handlers.h"
#include "read.h"

void emq_handle_pause(emq_call *call) {
    const emq_strings *strings = &emq_the_host.strings;
    emq_ref meta = emq_declared(call, 0);
    int paused = 0;
    if (!emq_hash_has(call, meta, strings->paused, &paused)) {
        return;
    }
    if (!paused) {
        emq_writes *writes = emq_begin_writes(call);
        if (writes == NULL) {
            return;
        }
        const emq_field flag = {strings->paused, strings->one};
        emq_effect_hset(writes, meta, &flag, 1);
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
