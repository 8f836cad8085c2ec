/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of the process, and whether it has been used. */
#include "memory.h"

#include <emq/memory.h>
#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Written once, before anything reads it. */
static emq_allocator allocator = {sizeof(allocator), malloc, calloc, realloc, free};

/* Set by the first allocation and by emq_set_allocator: what was allocated by one allocator must
 * not be freed by another. */
static atomic_int is_settled;

static void settle(void) {
    /* reading is cheaper than writing what is there already */
    if (!atomic_load_explicit(&is_settled, memory_order_relaxed)) {
        atomic_store_explicit(&is_settled, 1, memory_order_relaxed);
    }
}

void *emq_malloc(size_t size) {
    settle();
    return allocator.malloc(size);
}

void *emq_calloc(size_t count, size_t size) {
    settle();
    if (allocator.calloc != NULL) {
        return allocator.calloc(count, size);
    }
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    void *memory = allocator.malloc(count * size);
    if (memory != NULL) {
        memset(memory, 0, count * size);
    }
    return memory;
}

void *emq_realloc(void *memory, size_t size) {
    settle();
    return allocator.realloc(memory, size);
}

char *emq_strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = emq_malloc(size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

void emq_free(void *memory) {
    allocator.free(memory);
}

/* hiredis 0.14 has nothing to set. */
static void set_for_hiredis(void) {
#if HIREDIS_MAJOR >= 1
    hiredisAllocFuncs functions = {.mallocFn = allocator.malloc,
                                   .callocFn = emq_calloc,
                                   .reallocFn = allocator.realloc,
                                   .strdupFn = emq_strdup,
                                   .freeFn = allocator.free};
    (void)hiredisSetAllocators(&functions);
#endif
}

int emq_set_allocator(const emq_allocator *functions) {
    if (functions == NULL || functions->size != sizeof(*functions) || functions->malloc == NULL ||
        functions->realloc == NULL || functions->free == NULL) {
        return EMQ_EINVAL;
    }
    if (atomic_exchange(&is_settled, 1)) {
        return EMQ_EINVAL;
    }
    allocator = *functions;
    set_for_hiredis();
    return EMQ_OK;
}
