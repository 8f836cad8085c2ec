/* SPDX-License-Identifier: Apache-2.0 */
/* Telling systemd; without libsystemd, or where systemd did not ask, nothing is told. */
#ifndef EMQ_LIBEMQ_WORKER_SYSTEMD_H
#define EMQ_LIBEMQ_WORKER_SYSTEMD_H

#include <stdint.h>

/* A line of sd_notify(3), such as "READY=1". */
void emq_systemd_notify(const char *line);

/* Within which time the watchdog wants to be told; 0: not at all. */
int64_t emq_systemd_get_watchdog_ns(void);

#endif
