/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses that are drawn, so that clients which lost the same server do not come back in step. */
#include "backoff.h"

#include <stddef.h>
#include <uv.h>

uint32_t emq_backoff_draw(unsigned int doublings, uint32_t min, uint32_t max) {
    uint64_t cap = min;
    uint32_t random = 0;
    for (unsigned int i = 0; i < doublings && cap < max; i++) {
        cap *= 2;
    }
    if (cap > max) {
        cap = max;
    }
    if (uv_random(NULL, NULL, &random, sizeof(random), 0, NULL) != 0) {
        random = (uint32_t)uv_hrtime();
    }
    return (uint32_t)(random % (cap + 1));
}
