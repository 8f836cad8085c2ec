/* SPDX-License-Identifier: Apache-2.0 */
/* The version of libemq and of the EMQ module: one repository, one number. CMake reads it from
 * here. */
#ifndef EMQ_VERSION_H
#define EMQ_VERSION_H

#include <emq/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMQ_VERSION_MAJOR 0
#define EMQ_VERSION_MINOR 1
#define EMQ_VERSION_PATCH 0
#define EMQ_VERSION_STRING "0.1.0"

/**
 * The version of the library that is linked, which may be newer than these headers.
 *
 * @return "major.minor.patch", a static string; never NULL. Thread-safe. Since 0.1.0.
 */
EMQ_API const char *emq_version(void);

#ifdef __cplusplus
}
#endif

#endif
