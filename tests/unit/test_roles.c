/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the roles as text, and that the documentation prints these and no others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "roles.h"

static char rules[EMQ_ROLE_RULES_MAX];

static void names_are_the_documented_ones(void **state) {
    (void)state;
    assert_string_equal(emq_role_name(EMQ_ROLE_PRODUCER), "producer");
    assert_string_equal(emq_role_name(EMQ_ROLE_WORKER), "worker");
    assert_string_equal(emq_role_name(EMQ_ROLE_OPERATOR), "operator");
    assert_string_equal(emq_role_name(EMQ_ROLE_INSTALLER), "installer");
    assert_null(emq_role_name(EMQ_ROLES));
    assert_null(emq_role_name((emq_role)-1));
}

static void an_installer_has_the_fence_and_no_queue(void **state) {
    static const char want[] = "+client|setname +emq.version +emq.install ~{emq}:version";
    (void)state;
    assert_int_equal(emq_role_rules(rules, sizeof(rules), EMQ_ROLE_INSTALLER, NULL), strlen(want));
    assert_string_equal(rules, want);
    assert_int_equal(emq_role_rules(rules, sizeof(rules), EMQ_ROLE_INSTALLER, "{"), strlen(want));
    assert_string_equal(rules, want);
}

/* A name that could be a pattern, or end a word, never gets into a rule. */
static void a_queue_must_have_a_name(void **state) {
    static const char *const names[] = {"", "emq", "*", "a?", "[a]", "a b", "a\\", "a:", NULL};
    (void)state;
    for (int role = EMQ_ROLE_PRODUCER; role < EMQ_ROLE_INSTALLER; role++) {
        assert_int_equal(emq_role_rules(rules, sizeof(rules), (emq_role)role, NULL), EMQ_EINVAL);
        assert_int_equal(emq_role_rules(NULL, sizeof(rules), (emq_role)role, "q"), EMQ_EINVAL);
        assert_int_equal(emq_role_rules(rules, 0, (emq_role)role, "q"), EMQ_EINVAL);
        for (int i = 0; names[i] != NULL; i++) {
            assert_int_equal(emq_role_rules(rules, sizeof(rules), (emq_role)role, names[i]),
                             EMQ_EQUEUE);
            assert_string_equal(rules, "");
        }
    }
    assert_int_equal(emq_role_rules(rules, sizeof(rules), EMQ_ROLES, "q"), EMQ_EINVAL);
}

static void the_room_is_never_exceeded(void **state) {
    char queue[128 + 1];
    (void)state;
    memset(queue, 'q', sizeof(queue) - 1);
    queue[sizeof(queue) - 1] = '\0';
    for (int role = 0; role < EMQ_ROLES; role++) {
        int got = emq_role_rules(rules, sizeof(rules), (emq_role)role, queue);
        assert_true(got > 0);
        size_t length = (size_t)got;
        assert_int_equal(strlen(rules), length);
        /* exact room each time, so that a sanitizer sees a byte too many */
        for (size_t cap = 1; cap <= length + 1; cap++) {
            char *exact = malloc(cap);
            assert_non_null(exact);
            assert_int_equal(emq_role_rules(exact, cap, (emq_role)role, queue),
                             cap > length ? got : EMQ_EINVAL);
            assert_true(cap > length || exact[0] == '\0');
            free(exact);
        }
    }
}

static char *read_page(void) {
    char path[1024];
    const char *root = getenv("EMQ_SOURCE_DIR");
    assert_non_null(root);
    (void)snprintf(path, sizeof(path), "%s/docs/operations.md", root);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size > 0);
    rewind(file);
    char *page = calloc(1, (size_t)size + 1);
    assert_non_null(page);
    assert_int_equal(fread(page, 1, (size_t)size, file), size);
    (void)fclose(file);
    return page;
}

/* The page's line that starts with `start` is this one, and it is the only one. */
static int prints_line(const char *page, const char *start, const char *end) {
    char line[EMQ_ROLE_RULES_MAX + 128];
    (void)snprintf(line, sizeof(line), "\n%s%s\n", start, end);
    const char *found = strstr(page, line);
    char opening[128];
    (void)snprintf(opening, sizeof(opening), "\n%s", start);
    const char *first = strstr(page, opening);
    if (found == NULL || first != found || strstr(found + 1, opening) != NULL) {
        print_error("docs/operations.md must have this line once:\n%s%s\n", start, end);
        return 0;
    }
    return 1;
}

static void the_documentation_prints_them(void **state) {
    (void)state;
    char *page = read_page();
    int missing = 0;
    for (int role = 0; role < EMQ_ROLES; role++) {
        const char *name = emq_role_name((emq_role)role);
        const char *prefix = role == EMQ_ROLE_INSTALLER ? "emq" : "orders";
        char start[128];
        (void)emq_role_rules(rules, sizeof(rules), (emq_role)role, "orders");
        (void)snprintf(start, sizeof(start), "ACL SETUSER %s-%s reset on >change-me ", prefix,
                       name);
        missing += !prints_line(page, start, rules);
        (void)snprintf(start, sizeof(start), "user %s-%s on >change-me ", prefix, name);
        missing += !prints_line(page, start, rules);
    }
    missing += !prints_line(page, "ACL SETUSER orders-service reset on >change-me ",
                            EMQ_BROAD_RULES("orders"));
    free(page);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_documented_ones),
        cmocka_unit_test(an_installer_has_the_fence_and_no_queue),
        cmocka_unit_test(a_queue_must_have_a_name),
        cmocka_unit_test(the_room_is_never_exceeded),
        cmocka_unit_test(the_documentation_prints_them),
    };
    return cmocka_run_group_tests_name("roles", tests, NULL, NULL);
}
