/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's connection is cut while it admits jobs: what it says of those that were admitted, of
 * those that nobody knows of, and of the rest is true on the server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "cutter.h"
#include "expect.h"
#include "server.h"

#define TEXT_MAX 65536

static test_server server;
static cutter *proxy;
static char folder[] = "/tmp/emq-test-XXXXXX";
static char out[TEXT_MAX];
static char err[TEXT_MAX];

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    proxy = cutter_start(&server);
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int stop_server(void **state) {
    char words[64];
    (void)state;
    cutter_stop(proxy);
    server_stop(&server);
    (void)snprintf(words, sizeof(words), "rm -rf %s", folder);
    return system(words);
}

static int clean(void **state) {
    (void)state;
    run(server.admin, "FLUSHALL", NULL);
    run(server.admin, "SET", "{emq}:version", "echomq:6.0.0", NULL);
    return 0;
}

/* Starts `emq ARGUMENTS` with its standard input open for us. */
static FILE *start_tool(const char *arguments) {
    char words[1024];
    const char *tool = getenv("EMQ_TOOL");
    assert_non_null(tool);
    (void)snprintf(words, sizeof(words), "exec '%s' %s --url unix://%s >%s/out 2>%s/err", tool,
                   arguments, cutter_socket(proxy), folder, folder);
    FILE *input = popen(words, "w");
    assert_non_null(input);
    return input;
}

static void read_file(char text[TEXT_MAX], const char *name) {
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, TEXT_MAX - 1, file)] = '\0';
    (void)fclose(file);
}

static void end_tool(FILE *input, int want) {
    int status = pclose(input);
    read_file(out, "out");
    read_file(err, "err");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != want) {
        print_error("status %d instead of %d: %s\n", WEXITSTATUS(status), want, err);
        fail();
    }
}

static void write_lines(FILE *input, const char *lines) {
    assert_true(fputs(lines, input) >= 0);
    assert_int_equal(fflush(input), 0);
}

typedef struct awaited {
    const char *key;
    long long count;
} awaited;

static int has_count(void *data) {
    const awaited *a = data;
    redisReply *reply = redisCommand(server.admin, "ZCARD %s", a->key);
    int has = reply != NULL && reply->integer == a->count;
    freeReplyObject(reply);
    return has;
}

static void wait_for_count(const char *key, long long count) {
    awaited a = {key, count};
    wait_until("the jobs are there", has_count, &a);
}

static long long count_of(const char *key) {
    redisReply *reply = redisCommand(server.admin, "ZCARD %s", key);
    assert_non_null(reply);
    long long count = reply->integer;
    freeReplyObject(reply);
    return count;
}

/* How many lines start so and name a job; all of those must be on the server, or none. */
static int jobs_named(const char *text, const char *start, int are_there) {
    int count = 0;
    char line[256];
    while (sscanf(text, "%255[^\n]", line) == 1) {
        if (strncmp(line, start, strlen(start)) == 0) {
            redisReply *reply =
                redisCommand(server.admin, "EXISTS emq:{q}:job:%s", line + strlen(start));
            assert_non_null(reply);
            assert_int_equal(reply->integer, are_there);
            freeReplyObject(reply);
            count++;
        }
        text += strlen(line);
        text += *text == '\n';
    }
    return count;
}

static void expect_said(const char *part) {
    if (strstr(err, part) == NULL) {
        print_error("'%s' is not in: %s\n", part, err);
        fail();
    }
}

/* Three jobs arrive, then the connection is lost with the next three. */
static void lose(const char *arguments, const char *verb, const char *set, cut_point point,
                 int arrive) {
    FILE *input = start_tool(arguments);
    write_lines(input, "a\nb\nc\n");
    wait_for_count(set, 3);
    cutter_arm(proxy, point, verb, strcmp(verb, "EMQ.SCHEDULE") == 0 ? 3 : 1);
    write_lines(input, "d\ne\nf\n");
    cutter_wait(proxy);
    end_tool(input, 6);
    expect_said("3 admitted; 3 unknown, which may have been admitted; 0 not admitted");
    assert_int_equal(jobs_named(out, "", 1), 3);
    assert_int_equal(count_of(set), arrive ? 6 : 3);
}

static void an_answer_is_lost(void **state) {
    (void)state;
    lose("enqueue q -", "EMQ.ENQUEUES", "emq:{q}:pending", CUT_ANSWER, 1);
    assert_int_equal(jobs_named(err, "emq enqueue: unknown: ", 1), 3);
}

static void a_request_is_lost(void **state) {
    (void)state;
    lose("enqueue q -", "EMQ.ENQUEUES", "emq:{q}:pending", CUT_REQUEST, 0);
    assert_int_equal(jobs_named(err, "emq enqueue: unknown: ", 0), 3);
}

static void answers_of_a_pipeline_are_lost(void **state) {
    (void)state;
    lose("schedule q - --in 1h", "EMQ.SCHEDULE", "emq:{q}:schedule", CUT_ANSWER, 1);
    assert_int_equal(jobs_named(err, "emq schedule: unknown: ", 1), 3);
}

/* Without a word of doubt: what was lost was not sent. */
static void a_connection_is_lost_in_between(void **state) {
    (void)state;
    FILE *input = start_tool("enqueue q - --json");
    write_lines(input, "a\nb\n");
    wait_for_count("emq:{q}:pending", 2);
    cutter_arm(proxy, CUT_IDLE, NULL, 0);
    cutter_wait(proxy);
    write_lines(input, "c\n");
    int status = pclose(input);
    read_file(out, "out");
    read_file(err, "err");
    /* whether the loss is seen before or after the write is the kernel's */
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 6));
    expect_said("\"admitted\":2,");
    assert_int_equal(count_of("emq:{q}:pending"), 2);
    assert_non_null(strstr(out, WEXITSTATUS(status) == 3 ? "EMQ_ECONNECT" : "EMQ_ECONNLOST"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_answer_is_lost, clean),
        cmocka_unit_test_setup(a_request_is_lost, clean),
        cmocka_unit_test_setup(answers_of_a_pipeline_are_lost, clean),
        cmocka_unit_test_setup(a_connection_is_lost_in_between, clean),
    };
    return RUN_SERVER_TESTS("tool.cut", tests, start_server, stop_server);
}
