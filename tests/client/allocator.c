/* SPDX-License-Identifier: Apache-2.0 */
#include "allocator.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "cmocka_all.h"

#define PATH_ALLOCATIONS_MAX 5000

static atomic_long held;      /* allocations that are not freed */
static atomic_long counted;   /* since they were armed */
static atomic_long fail_from; /* these of them fail; 0: none */
static atomic_long fail_to;

static int is_failing(void) {
    long number = atomic_fetch_add(&counted, 1) + 1;
    return number >= atomic_load(&fail_from) && number <= atomic_load(&fail_to);
}

static void *note(void *memory) {
    if (memory != NULL) {
        atomic_fetch_add(&held, 1);
    }
    return memory;
}

static void *count_malloc(size_t size) {
    return is_failing() ? NULL : note(malloc(size));
}

static void *count_realloc(void *memory, size_t size) {
    if (memory == NULL) {
        return count_malloc(size);
    }
    return is_failing() ? NULL : realloc(memory, size);
}

static void count_free(void *memory) {
    if (memory != NULL) {
        atomic_fetch_sub(&held, 1);
        free(memory);
    }
}

const emq_allocator *allocator_counting(void) {
    static const emq_allocator counting = {sizeof(counting), count_malloc, NULL, count_realloc,
                                           count_free};
    return &counting;
}

void allocator_arm(long from, long to) {
    atomic_store(&counted, 0);
    atomic_store(&fail_to, 0);
    atomic_store(&fail_from, from);
    atomic_store(&fail_to, to);
}

void allocator_disarm(void) {
    atomic_store(&fail_to, 0);
}

long allocator_fails_from(void) {
    return atomic_load(&fail_from);
}

long allocator_counted(void) {
    return atomic_load(&counted);
}

long allocator_held(void) {
    return atomic_load(&held);
}

/* Which allocations fail on the path that runs now. */
static long path_from;
static long path_to;

void allocator_arm_path(void) {
    allocator_arm(path_from, path_to);
}

static void fail_in_path(const char *what, void (*path)(void), long k) {
    long before = allocator_held();
    path();
    allocator_disarm();
    if (allocator_held() != before) {
        fail_msg("allocation %ld of %s: %ld are left", k, what, allocator_held() - before);
    }
    assert_true(k < PATH_ALLOCATIONS_MAX);
}

void allocator_fail_each(const char *what, void (*path)(void)) {
    for (int for_good = 0; for_good <= 1; for_good++) {
        long k = 0;
        do {
            k++;
            path_from = k;
            path_to = for_good ? PATH_ALLOCATIONS_MAX : k;
            fail_in_path(what, path, k);
        } while (allocator_counted() >= k);
        print_message("%s: %ld allocations\n", what, k - 1);
    }
}
