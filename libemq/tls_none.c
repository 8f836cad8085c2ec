/* SPDX-License-Identifier: Apache-2.0 */
/* A library without TLS: it refuses the options that ask for it before anything is connected. */
#include "tls.h"

int emq_tls_is_built_in(void) {
    return 0;
}
