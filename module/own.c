/* SPDX-License-Identifier: Apache-2.0 */
/* The strings that a call makes, which live as long as it. The host's automatic memory would do the
 * same, but it also follows each key that is opened, and looks for it again when it is closed. */
#include "call.h"

ValkeyModuleString *emq_own(emq_call *call, ValkeyModuleString *string) {
    if (string == NULL) {
        return NULL;
    }
    size_t index = call->owned_count++;
    if (index < EMQ_OWNED_INLINE) {
        call->first_owned[index] = string;
        return string;
    }
    index -= EMQ_OWNED_INLINE;
    if (index == call->more_capacity) {
        call->more_capacity = index == 0 ? EMQ_OWNED_INLINE : 2 * index;
        call->more_owned = ValkeyModule_Realloc(call->more_owned,
                                                call->more_capacity * sizeof(ValkeyModuleString *));
    }
    call->more_owned[index] = string;
    return string;
}

void emq_free_owned(emq_call *call) {
    for (size_t i = 0; i < call->owned_count; i++) {
        ValkeyModule_FreeString(NULL, i < EMQ_OWNED_INLINE
                                          ? call->first_owned[i]
                                          : call->more_owned[i - EMQ_OWNED_INLINE]);
    }
    if (call->more_owned != NULL) {
        ValkeyModule_Free(call->more_owned);
    }
}
