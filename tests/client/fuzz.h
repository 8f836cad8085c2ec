/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets for libFuzzer share. */
#ifndef EMQ_TESTS_CLIENT_FUZZ_H
#define EMQ_TESTS_CLIENT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for every input: an abort is what libFuzzer reports and keeps. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
