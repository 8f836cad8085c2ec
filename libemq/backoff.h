/* SPDX-License-Identifier: Apache-2.0 */
/* The pauses between attempts to connect. */
#ifndef EMQ_LIBEMQ_BACKOFF_H
#define EMQ_LIBEMQ_BACKOFF_H

#include <stdint.h>

#define EMQ_BACKOFF_MIN_MS 50
#define EMQ_BACKOFF_MAX_MS 5000

/* Anywhere between nothing and a cap, which doubles with each failure in a row before this one:
 * clients that lost the same server do not come back in step. */
uint32_t emq_backoff_pause(uint32_t min_ms, uint32_t max_ms, unsigned int failures);

#endif
