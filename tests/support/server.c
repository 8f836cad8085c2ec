/* SPDX-License-Identifier: Apache-2.0 */
/* Runs tools/server.sh and keeps what it said; a guardian process stops what a dead test left. */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

#define OUTPUT_MAX 65536
#define GUARDED_MAX 64
#define WAIT_SECONDS 60
#define EXIT_SANITIZER 3 /* server.sh stop: a sanitizer or the server itself reported an error */

static int guardian_pipe = -1;
static int unclean_stops;

static const char *get_setting(const char *name) {
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0') {
        print_error("the environment lacks %s: run the tests through ctest\n", name);
        exit(EXIT_FAILURE);
    }
    return value;
}

static void script_path(char *out, size_t cap) {
    (void)snprintf(out, cap, "%s/tools/server.sh", get_setting("EMQ_SOURCE_DIR"));
}

/* ---- the guardian ---- */

static void exec_stop(char *dir) {
    char script[SERVER_PATH_MAX];
    char stop[] = "stop";
    script_path(script, sizeof(script));
    char *const argv[] = {script, stop, dir, NULL};
    (void)execv(script, argv);
    _exit(127);
}

/* Lives until the pipe's other end is closed, and then stops the servers that are still noted. */
static void guard(int input) {
    static char dirs[GUARDED_MAX][SERVER_PATH_MAX];
    FILE *lines = fdopen(input, "r");
    char line[SERVER_PATH_MAX + 2];
    while (lines != NULL && fgets(line, sizeof(line), lines) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *wanted = line[0] == '+' ? "" : line + 1;
        for (int i = 0; i < GUARDED_MAX; i++) {
            if (strcmp(dirs[i], wanted) == 0) {
                const char *noted = line[0] == '+' ? line + 1 : "";
                (void)snprintf(dirs[i], sizeof(dirs[i]), "%.*s", SERVER_PATH_MAX - 1, noted);
                break;
            }
        }
    }
    for (int i = 0; i < GUARDED_MAX; i++) {
        pid_t child = dirs[i][0] == '\0' ? -1 : fork();
        if (child == 0) {
            exec_stop(dirs[i]);
        }
        if (child > 0) {
            (void)waitpid(child, NULL, 0);
            (void)rmdir(dirs[i]); /* one in which nothing was started yet */
        }
    }
    _exit(0);
}

/* Nobody may wait for the guardian: it has a session of its own and none of our files. */
static void detach(void) {
    (void)setsid();
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && null >= 0; fd++) {
        (void)dup2(null, fd);
    }
}

static void start_guardian(void) {
    int ends[2];
    if (guardian_pipe >= 0) {
        return;
    }
    if (pipe(ends) != 0) {
        fail_msg("pipe: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[1]);
        detach();
        if (fork() == 0) {
            guard(ends[0]);
        }
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    (void)close(ends[0]);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    guardian_pipe = ends[1];
}

static void tell_guardian(char what, const char *dir) {
    char line[SERVER_PATH_MAX + 2];
    int length = snprintf(line, sizeof(line), "%c%s\n", what, dir);
    start_guardian();
    if (write(guardian_pipe, line, (size_t)length) != length) {
        fail_msg("the guardian of the servers is gone");
    }
}

/* ---- running server.sh ---- */

/* The script's output goes to a file, since a server may hold a pipe open. */
static int run_script(char *output, size_t cap, const char *const *arguments) {
    char script[SERVER_PATH_MAX];
    char *argv[SERVER_ARGUMENTS_MAX + 16] = {script};
    script_path(script, sizeof(script));
    for (int i = 0; arguments[i] != NULL; i++) {
        argv[i + 1] = strdup(arguments[i]);
    }
    FILE *file = tmpfile();
    assert_non_null(file);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(fileno(file), STDOUT_FILENO);
        (void)dup2(fileno(file), STDERR_FILENO);
        (void)execv(script, argv);
        _exit(127);
    }
    assert_true(child > 0);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    rewind(file);
    output[fread(output, 1, cap - 1, file)] = '\0';
    (void)fclose(file);
    for (int i = 1; argv[i] != NULL; i++) {
        free(argv[i]);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Finds `name=value` at the start of a line. */
static int read_line_value(char *out, size_t cap, const char *output, const char *name) {
    size_t length = strlen(name);
    for (const char *line = output; line != NULL && *line != '\0';) {
        if (strncmp(line, name, length) == 0 && line[length] == '=') {
            const char *value = line + length + 1;
            (void)snprintf(out, cap, "%.*s", (int)strcspn(value, "\r\n"), value);
            return 1;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return 0;
}

static int try_start(test_server *server, char *output, size_t cap) {
    const char *arguments[SERVER_ARGUMENTS_MAX + 12] = {"start", "--dir", server->dir, "--test",
                                                        "--flavour"};
    int count = 5;
    arguments[count++] = get_setting("EMQ_SERVER_FLAVOUR");
    for (int i = 0; i < server->argument_count; i++) {
        arguments[count++] = server->arguments[i];
    }
    arguments[count] = NULL;
    return run_script(output, cap, arguments);
}

static redisContext *connect_to(const test_server *server) {
    redisContext *c = redisConnectUnix(server->socket);
    if (c == NULL || c->err != 0) {
        fail_msg("cannot connect to %s: %s", server->socket, c == NULL ? "no memory" : c->errstr);
    }
    return c;
}

static void start(test_server *server) {
    static char output[OUTPUT_MAX];
    char number[32];
    if (try_start(server, output, sizeof(output)) != 0) {
        fail_msg("the server did not start:\n%s", output);
    }
    int complete = read_line_value(server->socket, sizeof(server->socket), output, "socket") &&
                   read_line_value(server->log, sizeof(server->log), output, "log") &&
                   read_line_value(number, sizeof(number), output, "port");
    server->port = complete ? atoi(number) : 0;
    complete = complete && read_line_value(number, sizeof(number), output, "pid");
    if (!complete) {
        fail_msg("server.sh did not say how to reach the server:\n%s", output);
    }
    server->pid = atol(number);
    server->admin = connect_to(server);
}

/* An empty folder of its own, noted with the guardian before anything runs in it. */
static void make_folder(test_server *server) {
    const char *parent = getenv("TMPDIR");
    (void)snprintf(server->dir, sizeof(server->dir), "%s/emq-test-XXXXXX",
                   parent == NULL || parent[0] == '\0' ? P_tmpdir : parent);
    if (mkdtemp(server->dir) == NULL) {
        fail_msg("mkdtemp %s: %s", server->dir, strerror(errno));
    }
    tell_guardian('+', server->dir);
}

static void take_arguments(test_server *server, va_list extra) {
    const char *argument = NULL;
    while ((argument = va_arg(extra, const char *)) != NULL) {
        assert_true(server->argument_count < SERVER_ARGUMENTS_MAX);
        server->arguments[server->argument_count++] = argument;
    }
}

static void add_module(test_server *server) {
    server->arguments[server->argument_count++] = "--module";
    server->arguments[server->argument_count++] = get_setting("EMQ_MODULE");
}

void server_start(test_server *server, ...) {
    va_list extra;
    *server = (test_server){0};
    add_module(server);
    va_start(extra, server);
    take_arguments(server, extra);
    va_end(extra);
    make_folder(server);
    start(server);
}

static void start_without_module(test_server *server, const char *option, va_list extra) {
    *server = (test_server){0};
    server->arguments[server->argument_count++] = option;
    take_arguments(server, extra);
    make_folder(server);
    start(server);
}

void server_start_bare(test_server *server, ...) {
    va_list extra;
    va_start(extra, server);
    start_without_module(server, "--no-fence", extra);
    va_end(extra);
}

void server_start_sentinel(test_server *server, ...) {
    va_list extra;
    va_start(extra, server);
    start_without_module(server, "--sentinel", extra);
    va_end(extra);
}

/* Adds the server's own log to what the script said. */
static void append_log(char *output, size_t cap, const char *dir) {
    char path[SERVER_PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/log", dir);
    FILE *log = fopen(path, "r");
    size_t used = strlen(output);
    if (log != NULL) {
        output[used + fread(output + used, 1, cap - 1 - used, log)] = '\0';
        (void)fclose(log);
    }
}

void server_start_fails(char *output, size_t cap, ...) {
    static char said[OUTPUT_MAX];
    test_server server = {0};
    va_list extra;
    va_start(extra, cap);
    take_arguments(&server, extra);
    va_end(extra);
    make_folder(&server);
    int status = try_start(&server, output, cap);
    append_log(output, cap, server.dir);
    int stopped = run_script(said, sizeof(said), (const char *const[]){"stop", server.dir, NULL});
    tell_guardian('-', server.dir);
    if (status == 0) {
        fail_msg("a server started that must not start");
    }
    if (stopped == EXIT_SANITIZER) {
        fail_msg("a sanitizer reported:\n%s", said);
    }
}

/* A server that is gone already crashed; what it wrote last says where. */
static int has_crashed(const test_server *server) {
    static char log[OUTPUT_MAX];
    if (kill((pid_t)server->pid, 0) == 0) {
        return 0;
    }
    log[0] = '\0';
    append_log(log, sizeof(log), server->dir);
    print_error("the server ended by itself; its log:\n%s\n", log);
    return 1;
}

static void stop(test_server *server, const char *keep) {
    static char output[OUTPUT_MAX];
    int crashed = has_crashed(server);
    if (server->admin != NULL) {
        redisFree(server->admin);
        server->admin = NULL;
    }
    int status =
        run_script(output, sizeof(output), (const char *const[]){"stop", server->dir, keep, NULL});
    server->pid = 0;
    if (status != 0 || crashed) {
        unclean_stops++;
        fail_msg("the server ended with a report (server.sh stop: %d%s):\n%s", status,
                 status == EXIT_SANITIZER ? ", a sanitizer's" : "", output);
    }
}

void server_stop(test_server *server) {
    if (server->pid != 0) {
        stop(server, NULL);
        tell_guardian('-', server->dir);
    }
}

/* Whoever has it as a child may not have noticed yet: a process that ended works in no folder. */
static int is_gone(void *data) {
    const test_server *server = data;
    char path[64];
    char folder[SERVER_PATH_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%ld/cwd", server->pid);
    return readlink(path, folder, sizeof(folder)) < 0;
}

void server_kill(test_server *server) {
    assert_int_equal(kill((pid_t)server->pid, SIGKILL), 0);
    wait_until("the killed server is gone", is_gone, server);
    redisFree(server->admin);
    server->admin = NULL;
}

void server_revive(test_server *server) {
    start(server);
}

void server_restart(test_server *server) {
    stop(server, "--keep");
    start(server);
}

void server_crash(test_server *server) {
    static char output[OUTPUT_MAX];
    (void)kill((pid_t)server->pid, SIGKILL);
    redisFree(server->admin);
    server->admin = NULL;
    /* waits until it is gone */
    int status = run_script(output, sizeof(output),
                            (const char *const[]){"stop", server->dir, "--keep", NULL});
    if (status != 0) {
        fail_msg("server.sh stop after a SIGKILL: %d\n%s", status, output);
    }
    start(server);
}

redisContext *server_connect(const test_server *server) {
    return connect_to(server);
}

redisContext *server_connect_as(const test_server *server, const char *user, const char *rules) {
    command line = {0};
    command_add(&line, "ACL");
    command_add(&line, "SETUSER");
    command_add(&line, user);
    command_add(&line, "reset");
    command_add(&line, "on");
    command_add(&line, ">password");
    char *words = strdup(rules);
    char *rest = words;
    /* a selector in parentheses is one word, spaces and all */
    while (*rest != '\0') {
        size_t length = *rest == '(' ? strcspn(rest, ")") + 1 : strcspn(rest, " ");
        command_add_bytes(&line, rest, length);
        rest += length;
        rest += strspn(rest, " ");
    }
    free(words);
    redisReply *reply = command_send(server->admin, &line);
    command_free(&line);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("ACL SETUSER %s %s: %s", user, rules, reply->str);
    }
    freeReplyObject(reply);
    redisContext *c = connect_to(server);
    run(c, "AUTH", user, "password", NULL);
    return c;
}

void wait_until(const char *what, int (*done)(void *data), void *data) {
    const struct timespec pause = {0, 10 * 1000 * 1000};
    struct timespec start_time;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &start_time);
    while (!done(data)) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start_time.tv_sec > WAIT_SECONDS) {
            fail_msg("waited in vain until %s", what);
        }
        (void)nanosleep(&pause, NULL);
    }
}

int run_server_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                     CMFixtureFunction setup, CMFixtureFunction teardown) {
    int failed = _cmocka_run_group_tests(name, tests, count, setup, teardown);
    return failed != 0 || unclean_stops != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
