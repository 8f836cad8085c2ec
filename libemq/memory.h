/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of libemq's own goes through these. */
#ifndef EMQ_LIBEMQ_MEMORY_H
#define EMQ_LIBEMQ_MEMORY_H

#include <stddef.h>

/* As their namesakes of the C library. */
void *emq_malloc(size_t size);
void *emq_calloc(size_t count, size_t size);
void *emq_realloc(void *memory, size_t size);
char *emq_strdup(const char *text);
void emq_free(void *memory);

#endif
