/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses between attempts: longer each time, with chance in them. */
#ifndef EMQ_LIBEMQ_BACKOFF_H
#define EMQ_LIBEMQ_BACKOFF_H

#include <stdint.h>

/* Anywhere between nothing and a cap, in milliseconds. The cap is `min`, doubled as often as is
 * said, and `max` at most. */
uint32_t emq_backoff_draw(unsigned int doublings, uint32_t min, uint32_t max);

#endif
