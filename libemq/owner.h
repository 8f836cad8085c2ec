/* SPDX-License-Identifier: Apache-2.0 */
/* Which process an object belongs to: a forked child has no part in it. */
#ifndef EMQ_LIBEMQ_OWNER_H
#define EMQ_LIBEMQ_OWNER_H

#include <sys/types.h>

/* The owner of one object; zeroes for one that has none. It knows a child by a page that the kernel
 * wipes in every process with a copy of the memory, however that was made: fork, _Fork, clone. So
 * asking costs no system call; it also tells from the owner a child that came to have the same
 * process id. Where the kernel has no such pages (before Linux 4.14), the process id is asked for.
 */
typedef struct emq_owner {
    int *mark; /* 0 in a child; NULL without such a page, and then: */
    pid_t pid;
} emq_owner;

/* Makes this process the owner. Never fails. */
void emq_owner_set(emq_owner *owner);

/* Whether the object is another process's. One without an owner is nobody else's. Any thread. */
int emq_owner_is_other(const emq_owner *owner);

/* Gives the page back, in a child its own copy; there is no owner then. */
void emq_owner_clear(emq_owner *owner);

#endif
