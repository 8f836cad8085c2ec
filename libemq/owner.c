/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of an object, by a page that is wiped in children. */
#include "owner.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Whether the kernel takes this advice; one that takes any (an emulator's) does not know it. */
static int will_be_wiped(void *page) {
#ifdef MADV_WIPEONFORK
    return madvise(page, page_size(), -1) != 0 && madvise(page, page_size(), MADV_WIPEONFORK) == 0;
#else
    (void)page;
    return 0;
#endif
}

static int *make_mark(void) {
    int *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return NULL;
    }
    if (!will_be_wiped(page)) {
        (void)munmap(page, page_size());
        return NULL;
    }
    *page = 1;
    return page;
}

void emq_owner_set(emq_owner *owner) {
    *owner = (emq_owner){make_mark(), getpid()};
}

int emq_owner_is_other(const emq_owner *owner) {
    if (owner->mark != NULL) {
        return *owner->mark == 0;
    }
    return owner->pid != 0 && owner->pid != getpid();
}

void emq_owner_clear(emq_owner *owner) {
    if (owner->mark != NULL) {
        (void)munmap(owner->mark, page_size());
    }
    *owner = (emq_owner){NULL, 0};
}
