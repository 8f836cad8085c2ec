/* SPDX-License-Identifier: Apache-2.0 */
/* The differential cases, each in both modes; then what became of the data: in the AOF, after a
 * restart, on a replica. EMQ_DIFF_CASE runs the cases whose names start so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "harness.h"

static test_server replica;
static char primary_port[16];

static int start_servers(void **state) {
    (void)state;
    server_start(&server, "--conf", "repl-diskless-sync-delay 0", NULL);
    references_load(server.admin);
    (void)snprintf(primary_port, sizeof(primary_port), "%d", server.port);
    server_start(&replica, "--replica-of", primary_port, NULL);
    return 0;
}

static int stop_servers(void **state) {
    (void)state;
    server_stop(&replica);
    server_stop(&server);
    return 0;
}

/* One family of cases in one mode; the family is the name's first word. */
typedef struct family {
    char name[64];
    char prefix[32];
    diff_mode mode;
} family;

static int is_wanted(const diff_case *one, const char *prefix) {
    const char *only = getenv("EMQ_DIFF_CASE");
    return strncmp(one->name, prefix, strlen(prefix)) == 0 &&
           (only == NULL || strncmp(one->name, only, strlen(only)) == 0);
}

static void run_family(void **state) {
    const family *f = *state;
    for (const diff_case *one = diff_cases; one->name != NULL; one++) {
        if (is_wanted(one, f->prefix)) {
            run_case(one, f->mode);
        }
    }
}

/* A delta whose case does not exist would never be looked for. */
static void every_delta_has_its_case(void **state) {
    (void)state;
    for (const delta *d = deltas; d->name != NULL; d++) {
        int found = 0;
        for (const diff_case *one = diff_cases; one->name != NULL; one++) {
            found = found || strcmp(one->name, d->name) == 0;
        }
        if (!found) {
            fail_msg("a delta of no case: %s", d->name);
        }
    }
}

static void the_aof_holds_no_emq_record(void **state) {
    (void)state;
    long long emq = 0;
    long long records = count_records(&server, &emq);
    assert_true(records > 0 || getenv("EMQ_DIFF_CASE") != NULL);
    assert_int_equal(emq, 0);
}

static int is_in_step(void *data) {
    char text[64];
    (void)data;
    return strcmp(get_info(text, sizeof(text), replica.admin, "replication", "master_link_status"),
                  "up") == 0 &&
           get_offset(&replica) == get_offset(&server);
}

static void a_replica_has_the_same_data(void **state) {
    (void)state;
    char here[DIGEST_MAX];
    char there[DIGEST_MAX];
    wait_until("the replica is in step", is_in_step, NULL);
    EXPECT_TEXT(get_digest(there, &replica), get_digest(here, &server));
}

static void a_restart_loads_the_same_data(void **state) {
    (void)state;
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)get_digest(before, &server);
    server_restart(&server);
    EXPECT_TEXT(get_digest(after, &server), before);
}

int main(void) {
    static const char *const prefixes[] = {
        "enqueue:", "schedule:", "claim:", "extend:",    "extends:", "complete:",
        "promote:", "delay:",    "fail:",  "reprocess:", "stalled:", "life:"};
    enum { PREFIXES = sizeof(prefixes) / sizeof(prefixes[0]) };
    static family families[2 * PREFIXES];
    struct CMUnitTest tests[2 * PREFIXES + 4] = {cmocka_unit_test(every_delta_has_its_case)};
    size_t count = 1;
    for (size_t i = 0; i < 2 * PREFIXES; i++) {
        family *f = &families[i];
        f->mode = i < PREFIXES ? APART : TOGETHER;
        (void)snprintf(f->prefix, sizeof(f->prefix), "%s", prefixes[i % PREFIXES]);
        (void)snprintf(f->name, sizeof(f->name), "%s calls %s", f->prefix,
                       f->mode == APART ? "apart" : "together");
        tests[count++] = (struct CMUnitTest){f->name, run_family, NULL, NULL, f};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(the_aof_holds_no_emq_record);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(a_replica_has_the_same_data);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(a_restart_loads_the_same_data);
    return run_server_tests("diff cases", tests, count, start_servers, stop_servers);
}
