/* SPDX-License-Identifier: Apache-2.0 */
/* The command-line tool of the people on call: finds the verb, has its command line read, runs it,
 * and sees to it that what was printed has arrived. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

atomic_int tool_stop; /* the signal may come to any thread of the benchmark */

static void note_signal(int number) {
    tool_stop = number;
}

/* Without SA_RESTART: a read that waits ends. */
void tool_watch_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = note_signal;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        (void)sigaction(signals[i], &action, NULL);
    }
}

/* A full disk, or a reader that has gone, must not pass for an answer. */
static int flush_output(const tool *t, int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    int broken = tool_fail(t, "standard output", EMQ_ESYSTEM, strerror(errno));
    return status > broken ? status : broken;
}

static int run(tool *t, int argc, char **argv) {
    int status = tool_options_read(t, argc, argv);
    if (status == -1) {
        tool_help_print_verb(t->verb);
        return TOOL_DONE;
    }
    return status == TOOL_DONE ? t->verb->run(t) : status;
}

static int run_verb(int argc, char **argv) {
    tool t;
    memset(&t, 0, sizeof(t));
    t.verb = tool_verbs_find(argv[0]);
    if (t.verb == NULL) {
        (void)fputs("emq: there is no verb ", stderr);
        tool_print_bytes(stderr, argv[0], strlen(argv[0]), 0);
        (void)fputs("; see: emq help\n", stderr);
        return TOOL_USAGE;
    }
    int status = flush_output(&t, run(&t, argc, argv));
    tool_close(&t);
    return tool_stop == 0 ? status : 128 + tool_stop;
}

/* A stream that the caller has closed must not become the connection, to which our output would be
 * commands. What takes its number fails as it would. */
static int guard_streams(void) {
    static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd) {
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    static char help[] = "help";
    static char version[] = "version";
    if (!guard_streams()) {
        return TOOL_BROKEN;
    }
    if (argc < 2) {
        tool_help_print();
        return TOOL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        argv[1] = help;
    } else if (strcmp(argv[1], "--version") == 0) {
        argv[1] = version;
    }
    return run_verb(argc - 1, argv + 1);
}
