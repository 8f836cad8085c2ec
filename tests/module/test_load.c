/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: what refuses it, with the reason in the log; loading at runtime and unloading. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static char output[65536];

static const char *get_module(void) {
    const char *path = getenv("EMQ_MODULE");
    assert_non_null(path);
    return path;
}

/* One line of the log has the module's name and this text. */
static void expect_logged(const char *log, const char *text) {
    for (const char *line = log; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        size_t length = strcspn(line, "\n");
        const char *name = strstr(line, "<emq>");
        const char *reason = strstr(line, text);
        if (name != NULL && name < line + length && reason != NULL && reason < line + length) {
            return;
        }
    }
    fail_msg("no line of the log says \"%s\":\n%s", text, log);
}

static void arguments_end_the_server(void **state) {
    char line[1024];
    (void)state;
    (void)snprintf(line, sizeof(line), "loadmodule \"%s\" fast", get_module());
    server_start_fails(output, sizeof(output), "--no-fence", "--conf", line, NULL);
    expect_logged(output, "argument");
    (void)snprintf(line, sizeof(line), "loadmodule \"%s\" \"\"", get_module());
    server_start_fails(output, sizeof(output), "--no-fence", "--conf", line, NULL);
    expect_logged(output, "argument");
}

static void cluster_mode_ends_the_server(void **state) {
    (void)state;
    server_start_fails(output, sizeof(output), "--no-fence", "--module", get_module(), "--conf",
                       "cluster-enabled yes", NULL);
    expect_logged(output, "cluster");
}

/* A command that the module replicates under a name that the server doesn't know would be lost. */
static void a_renamed_command_ends_the_server(void **state) {
    static const char *const names[] = {"ZREM", "HSET", "ZADD", "DEL", "SET", "HDEL"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char line[128];
        (void)snprintf(line, sizeof(line), "rename-command %s renamed.%s", names[i], names[i]);
        server_start_fails(output, sizeof(output), "--no-fence", "--module", get_module(), "--conf",
                           line, NULL);
        expect_logged(output, names[i]);
    }
    server_start_fails(output, sizeof(output), "--no-fence", "--module", get_module(), "--conf",
                       "rename-command ZREM \"\"", NULL);
    expect_logged(output, "ZREM");
}

/* The log of a running server. */
static const char *read_log(const test_server *s) {
    FILE *file = fopen(s->log, "r");
    assert_non_null(file);
    output[fread(output, 1, sizeof(output) - 1, file)] = '\0';
    (void)fclose(file);
    return output;
}

#define REFUSED_LOAD "-ERR Error loading the extension. Please check the server logs."

static void expect_listed(redisContext *c, const char *path) {
    redisReply *reply = call(c, "MODULE", "LIST", NULL);
    int found = 0;
    for (size_t i = 0; i < reply->elements; i++) {
        char *text = reply_to_text(reply->element[i]);
        char want[1024];
        (void)snprintf(want, sizeof(want),
                       "[\"name\", \"emq\", \"ver\", 100, \"path\", \"%s\", \"args\", []]",
                       path == NULL ? "" : path);
        found += strstr(text, "\"emq\"") != NULL;
        if (path != NULL && strstr(text, "\"emq\"") != NULL) {
            EXPECT_TEXT(text, want);
        }
        free(text);
    }
    freeReplyObject(reply);
    assert_int_equal(found, path != NULL);
}

static void loading_at_runtime(void **state) {
    test_server s;
    (void)state;
    server_start_bare(&s, "--conf", "enable-module-command local", NULL);
    redisContext *c = s.admin;
    EXPECT(c, REFUSED_LOAD, "MODULE", "LOAD", get_module(), "one");
    expect_logged(read_log(&s), "argument");
    EXPECT(c, REFUSED_LOAD, "MODULE", "LOAD", get_module(), "one", "two");
    EXPECT(c, REFUSED_LOAD, "MODULE", "LOADEX", get_module(), "ARGS", "one");
    expect_listed(c, NULL);
    EXPECT(c, "+OK", "MODULE", "LOAD", get_module());
    expect_listed(c, get_module());
    EXPECT(c, REFUSED_LOAD, "MODULE", "LOAD", get_module()); /* it is there already */
    expect_listed(c, get_module());
    EXPECT(c, "1", INSTALL);
    EXPECT(c, "1", ENQUEUE(J1, "p"));
    server_stop(&s);
}

/* The data are plain keys: they outlive the module, and a module loaded again serves them. */
static void unloading_and_loading_again(void **state) {
    test_server s;
    (void)state;
    server_start_bare(&s, "--conf", "enable-module-command local", NULL);
    redisContext *c = s.admin;
    for (int i = 0; i < 3; i++) {
        EXPECT(c, "+OK", "MODULE", "LOAD", get_module());
        run(c, INSTALL, NULL);
        EXPECT(c, "1", ENQUEUE(J1, "p"));
        EXPECT(c, "+OK", "MODULE", "UNLOAD", "emq");
        expect_listed(c, NULL);
        redisReply *reply = call(c, CLAIM("1000"), NULL);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
        EXPECT(c, "+OK", "MODULE", "LOAD", get_module());
        EXPECT(c, "[\"" J1 "\", \"p\", 1]", CLAIM("1000"));
        EXPECT(c, "1", COMPLETE(J1, "1"));
        redisContext *worker = server_connect_as(&s, "worker", "~emq:* %R~{emq}:version +@emq");
        EXPECT(worker, "[]", CLAIM("1000"));
        redisFree(worker);
        EXPECT(c, "+OK", "MODULE", "UNLOAD", "emq");
    }
    server_stop(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_end_the_server),
        cmocka_unit_test(cluster_mode_ends_the_server),
        cmocka_unit_test(a_renamed_command_ends_the_server),
        cmocka_unit_test(loading_at_runtime),
        cmocka_unit_test(unloading_and_loading_again),
    };
    return RUN_SERVER_TESTS("load", tests, NULL, NULL);
}
