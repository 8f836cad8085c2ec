/* SPDX-License-Identifier: Apache-2.0 */
/* A build without libsystemd: nothing is told. */
#include "worker_systemd.h"

void emq_systemd_notify(const char *line) {
    (void)line;
}

int64_t emq_systemd_get_watchdog_ns(void) {
    return 0;
}
