/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers that must come before it, in the order that it wants. */
#ifndef EMQ_TESTS_CMOCKA_ALL_H
#define EMQ_TESTS_CMOCKA_ALL_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
