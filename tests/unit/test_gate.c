/* SPDX-License-Identifier: Apache-2.0 */
/* The load gate, asked about every host that it must refuse. */
#include "gate.h"

#include <string.h>

#include "cmocka_all.h"

#define VALKEY(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))

/* What is asked for and must not be found; NULL: nothing is missing. */
typedef struct lack {
    const char *api;
    const char *command;
} lack;

static int has_api(void *data, const char *name) {
    const lack *missing = data;
    return missing->api == NULL || strcmp(missing->api, name) != 0;
}

static int has_command(void *data, const char *name) {
    const lack *missing = data;
    return missing->command == NULL || strcmp(missing->command, name) != 0;
}

static emq_gate_host good_host(lack *missing) {
    return (emq_gate_host){.version = VALKEY(9, 1, 2),
                           .has_api = has_api,
                           .has_command = has_command,
                           .data = missing};
}

/* The gate refuses and its reason names this. */
static void refuses(const emq_gate_host *host, const char *names) {
    char reason[256] = "";
    assert_int_equal(emq_gate_check(reason, sizeof(reason), host), 0);
    if (strstr(reason, names) == NULL) {
        fail_msg("the reason does not name %s: %s", names, reason);
    }
}

static void accepts(const emq_gate_host *host) {
    char reason[256] = "";
    assert_int_equal(emq_gate_check(reason, sizeof(reason), host), 1);
}

static void a_good_host_is_accepted(void **state) {
    lack missing = {0};
    emq_gate_host host = good_host(&missing);
    (void)state;
    accepts(&host);
}

static void hosts_by_their_version(void **state) {
    lack missing = {0};
    emq_gate_host host = good_host(&missing);
    (void)state;
    static const int accepted[] = {VALKEY(9, 0, 0), VALKEY(9, 0, 1), VALKEY(9, 1, 2),
                                   VALKEY(9, 9, 0), VALKEY(9, 255, 255)};
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        host.version = accepted[i];
        accepts(&host);
    }
    host.version = VALKEY(7, 2, 0);
    refuses(&host, "7.2");
    host.version = VALKEY(8, 1, 0);
    refuses(&host, "8.1");
    host.version = VALKEY(8, 255, 255);
    refuses(&host, "8.255");
    host.version = VALKEY(10, 0, 0);
    refuses(&host, "10.0");
    host.version = 0;
    refuses(&host, "9");
}

static void each_api_is_required(void **state) {
    lack missing = {0};
    emq_gate_host host = good_host(&missing);
    size_t count = 0;
    (void)state;
    for (; emq_gate_apis[count] != NULL; count++) {
        missing.api = emq_gate_apis[count];
        refuses(&host, missing.api);
    }
    assert_true(count > 10);
    /* what the host can do without: the module works on 9.0.0, which lacks it */
    missing.api = "ACLCheckPermissions";
    accepts(&host);
}

/* What the module replicates must be there under its name, or a replay would do something else. */
static void each_replicated_command_is_required(void **state) {
    static const char *const annex_1[] = {"HSET", "ZADD", "ZREM",    "DEL",   "SET",
                                          "HDEL", "XADD", "PUBLISH", "SETBIT"};
    lack missing = {0};
    emq_gate_host host = good_host(&missing);
    (void)state;
    for (size_t i = 0; emq_gate_commands[i] != NULL; i++) {
        missing.command = emq_gate_commands[i];
        refuses(&host, missing.command);
    }
    for (size_t i = 0; i < sizeof(annex_1) / sizeof(annex_1[0]); i++) {
        missing.command = annex_1[i];
        refuses(&host, annex_1[i]);
    }
}

static void lists_hold_nothing_twice(void **state) {
    (void)state;
    for (size_t i = 0; emq_gate_apis[i] != NULL; i++) {
        for (size_t j = i + 1; emq_gate_apis[j] != NULL; j++) {
            assert_string_not_equal(emq_gate_apis[i], emq_gate_apis[j]);
        }
    }
}

static void arguments_are_refused(void **state) {
    lack missing = {0};
    emq_gate_host host = good_host(&missing);
    (void)state;
    host.argument_count = 1;
    refuses(&host, "argument");
    host.argument_count = 7;
    refuses(&host, "7");
}

static void cluster_mode_is_refused(void **state) {
    lack missing = {0};
    emq_gate_host host = good_host(&missing);
    (void)state;
    host.is_cluster = 1;
    refuses(&host, "cluster");
}

static void reasons_come_in_their_order(void **state) {
    lack missing = {"OpenKey", "ZREM"};
    emq_gate_host host = good_host(&missing);
    (void)state;
    host.version = VALKEY(8, 1, 0);
    host.argument_count = 1;
    host.is_cluster = 1;
    refuses(&host, "8.1");
    host.version = VALKEY(9, 0, 0);
    refuses(&host, "OpenKey");
    missing.api = NULL;
    refuses(&host, "argument");
    host.argument_count = 0;
    refuses(&host, "cluster");
    host.is_cluster = 0;
    refuses(&host, "ZREM");
    missing.command = NULL;
    accepts(&host);
}

static void a_reason_is_cut_to_its_room(void **state) {
    lack missing = {0};
    emq_gate_host host = good_host(&missing);
    char reason[8];
    (void)state;
    memset(reason, '#', sizeof(reason));
    host.is_cluster = 1;
    assert_int_equal(emq_gate_check(reason, 4, &host), 0);
    assert_int_equal(reason[3], '\0');
    assert_int_equal(reason[4], '#');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_host_is_accepted),
        cmocka_unit_test(hosts_by_their_version),
        cmocka_unit_test(each_api_is_required),
        cmocka_unit_test(each_replicated_command_is_required),
        cmocka_unit_test(lists_hold_nothing_twice),
        cmocka_unit_test(arguments_are_refused),
        cmocka_unit_test(cluster_mode_is_refused),
        cmocka_unit_test(reasons_come_in_their_order),
        cmocka_unit_test(a_reason_is_cut_to_its_room),
    };
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
