/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator: where libemq's memory comes from, for programs that count or place it. */
#ifndef EMQ_MEMORY_H
#define EMQ_MEMORY_H

#include <emq/error.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Functions with the meaning of the C library's, callable from any thread. A failing one returns
 * NULL; libemq then answers EMQ_ENOMEM.
 */
typedef struct emq_allocator {
    size_t size; /**< sizeof(emq_allocator) */
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size); /**< may be NULL: malloc, and zeroes */
    void *(*realloc)(void *memory, size_t size);
    void (*free)(void *memory); /**< takes NULL, too */
} emq_allocator;

/**
 * Sets the allocator of the whole process, once, before any other function of libemq is called.
 *
 * Where hiredis has an allocator of its own (since 1.0), it is set too, for every user of hiredis
 * in this process: nobody else may have used hiredis before. hiredis 0.14 takes its memory from the
 * C library, and ends the process when it gets none for some of its parts. What the C library
 * itself allocates (a look-up of a name, a thread), and what jansson needs while a message of a
 * subscription is read, is not affected; nor is the page of each client, pool and worker by which a
 * forked child is known, which comes from the kernel.
 *
 * @param allocator the functions, copied.
 * @return 0; EMQ_EINVAL: a function other than calloc is missing, another size, a second call, or
 *         libemq has allocated already. Not thread-safe. Since 0.1.0.
 */
EMQ_API int emq_set_allocator(const emq_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
