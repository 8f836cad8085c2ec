/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers by chance. */
#include "chance.h"

#include <uv.h>

uint32_t emq_draw(uint32_t most) {
    uint32_t random = 0;
    if (uv_random(NULL, NULL, &random, sizeof(random), 0, NULL) != 0) {
        random = (uint32_t)uv_hrtime();
    }
    return (uint32_t)(random % ((uint64_t)most + 1));
}

uint32_t emq_doubled(uint32_t base, uint32_t max, unsigned int times) {
    uint64_t value = base;
    for (unsigned int i = 0; i < times && value < max; i++) {
        value *= 2;
    }
    return value < max ? (uint32_t)value : max;
}
