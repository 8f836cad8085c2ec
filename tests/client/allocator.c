/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "allocator.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

#define PATH_ALLOCATIONS_MAX 5000

static atomic_long held;      /* allocations that are not freed */
static atomic_long counted;   /* since they were armed */
static atomic_long fail_from; /* these of them fail; 0: none */
static atomic_long fail_to;

static _Thread_local const char *watched; /* in memory that is let go of; NULL: nothing is */
static _Thread_local long seen;

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

/* While memory is watched it is handed out empty: what is found in it was written by its owner. */
static void *allocate(size_t size) {
    return watched != NULL ? calloc(1, size) : malloc(size);
}

static void look_at(void *memory) {
    if (watched != NULL &&
        memmem(memory, malloc_usable_size(memory), watched, strlen(watched)) != NULL) {
        seen++;
    }
}

static void *count_malloc(size_t size) {
    return is_failing() ? NULL : note(allocate(size));
}

/* A block that grows always moves while memory is watched, as it may at any time. */
static void *move(void *memory, size_t size) {
    size_t had = malloc_usable_size(memory);
    void *moved = allocate(size);
    if (moved != NULL) {
        memcpy(moved, memory, had < size ? had : size);
        look_at(memory);
        free(memory);
    }
    return moved;
}

static void *count_realloc(void *memory, size_t size) {
    if (memory == NULL) {
        return count_malloc(size);
    }
    if (is_failing()) {
        return NULL;
    }
    return watched != NULL ? move(memory, size) : realloc(memory, size);
}

static void count_free(void *memory) {
    if (memory != NULL) {
        atomic_fetch_sub(&held, 1);
        look_at(memory);
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

void allocator_watch(const char *text) {
    seen = 0;
    watched = text;
}

long allocator_seen(void) {
    return seen;
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
