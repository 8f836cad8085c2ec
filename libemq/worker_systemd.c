/* SPDX-License-Identifier: Apache-2.0 */
/* Telling systemd through libsystemd. */
#include "worker_systemd.h"

#include <systemd/sd-daemon.h>

#define NS_PER_US 1000

void emq_systemd_notify(const char *line) {
    (void)sd_notify(0, line); /* whether anybody listens is the unit's affair */
}

int64_t emq_systemd_get_watchdog_ns(void) {
    uint64_t us = 0;
    int is_wanted = sd_watchdog_enabled(0, &us) > 0 && us <= INT64_MAX / NS_PER_US;
    return is_wanted ? (int64_t)us * NS_PER_US : 0;
}
