/* SPDX-License-Identifier: Apache-2.0 */
/* Capped exponential backoff with jitter. */
#include "backoff.h"

#include <uv.h>

uint32_t emq_backoff_pause(uint32_t min_ms, uint32_t max_ms, unsigned int failures) {
    uint64_t cap = min_ms;
    uint32_t random = 0;
    for (unsigned int i = 0; i < failures && cap < max_ms; i++) {
        cap *= 2;
    }
    if (cap > max_ms) {
        cap = max_ms;
    }
    if (uv_random(NULL, NULL, &random, sizeof(random), 0, NULL) != 0) {
        random = (uint32_t)uv_hrtime();
    }
    return (uint32_t)(random % (cap + 1));
}
