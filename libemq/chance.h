/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers by chance: so that clients which saw the same thing don't act in step. */
#ifndef EMQ_LIBEMQ_CHANCE_H
#define EMQ_LIBEMQ_CHANCE_H

#include <stdint.h>

/* Anywhere between 0 and `most`. */
uint32_t emq_draw(uint32_t most);

/* `base`, doubled `times` times, but not above `max`. */
uint32_t emq_doubled(uint32_t base, uint32_t max, unsigned int times);

#endif
