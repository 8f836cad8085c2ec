/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library that is linked. */
#include <emq/version.h>

const char *emq_version(void) {
    return EMQ_VERSION_STRING;
}
