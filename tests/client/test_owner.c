/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of an object, by which a forked child is known. Built twice: with
 * EMQ_TEST_WITHOUT_WIPING the kernel knows no pages that are wiped in a child, and the id of the
 * process is asked for. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "owner.h"

#ifdef EMQ_TEST_WITHOUT_WIPING
int __wrap_madvise(void *page, size_t size, int advice);

int __wrap_madvise(void *page, size_t size, int advice) {
    (void)page;
    (void)size;
    (void)advice;
    errno = EINVAL;
    return -1;
}
#endif

/* The owner of the parent's object, and of the child's. */
typedef struct owners {
    emq_owner parent;
    emq_owner child;
} owners;

static void it_is_the_one_that_set_it(void **state) {
    emq_owner owner = {NULL, 0};
    (void)state;
    assert_int_equal(emq_owner_is_other(&owner), 0); /* nobody's */
    emq_owner_set(&owner);
    assert_int_equal(emq_owner_is_other(&owner), 0);
    emq_owner_clear(&owner);
    assert_int_equal(emq_owner_is_other(&owner), 0);
    emq_owner_clear(&owner);
}

static void check_grandchild(void *data) {
    owners *o = data;
    CHECK_IN_CHILD(emq_owner_is_other(&o->parent));
    CHECK_IN_CHILD(emq_owner_is_other(&o->child));
}

static void check_child(void *data) {
    owners *o = data;
    CHECK_IN_CHILD(emq_owner_is_other(&o->parent));
    emq_owner_set(&o->child);
    CHECK_IN_CHILD(!emq_owner_is_other(&o->child));
    run_child(check_grandchild, o);
    run_child(check_grandchild, o);
    CHECK_IN_CHILD(emq_owner_is_other(&o->parent) && !emq_owner_is_other(&o->child));
    emq_owner_clear(&o->child);
    emq_owner_clear(&o->parent); /* the copy */
}

static void a_child_is_another(void **state) {
    owners o = {{NULL, 0}, {NULL, 0}};
    (void)state;
    emq_owner_set(&o.parent);
    run_child(check_child, &o);
    run_child(check_child, &o);
    assert_int_equal(emq_owner_is_other(&o.parent), 0);
    emq_owner_clear(&o.parent);
}

static void nobodys_stays_nobodys(void *data) {
    owners *o = data;
    CHECK_IN_CHILD(!emq_owner_is_other(&o->parent));
}

static void what_nobody_owns_is_no_others(void **state) {
    owners o = {{NULL, 0}, {NULL, 0}};
    (void)state;
    run_child(nobodys_stays_nobodys, &o);
}

/* clone as the kernel has it: no handler of pthread_atfork is called. */
static void a_child_that_no_handler_hears_of(void **state) {
    int status = -1;
    emq_owner owner = {NULL, 0};
    (void)state;
    emq_owner_set(&owner);
    long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
    if (child == 0) {
        _exit(emq_owner_is_other(&owner) ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid((pid_t)child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(emq_owner_is_other(&owner), 0);
    emq_owner_clear(&owner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_one_that_set_it),
        cmocka_unit_test(a_child_is_another),
        cmocka_unit_test(what_nobody_owns_is_no_others),
        cmocka_unit_test(a_child_that_no_handler_hears_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
