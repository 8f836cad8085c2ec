/* SPDX-License-Identifier: Apache-2.0 */
/* What every example does before its own work: read from the command line how to reach the queue,
 * connect, try again where that can help, and stop when asked to. */
#ifndef EXAMPLES_SESSION_H
#define EXAMPLES_SESSION_H

#include <emq/emq.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>

/** How a program ends; 128 + signal when a signal asked it to stop. */
enum {
    EXIT_FINE = 0,    /**< everything done */
    EXIT_FAILED = 1,  /**< everything done, and some files are listed with a reason */
    EXIT_USAGE = 2,   /**< wrong command line */
    EXIT_GAVE_UP = 3, /**< the work could not be finished; standard error tells why */
};

/* clang-format off */
/** The options that session_option understands, for the table of getopt_long. */
#define SESSION_OPTIONS                                                                            \
    {"socket", required_argument, NULL, 's'},                                                      \
    {"host", required_argument, NULL, 'h'},                                                        \
    {"port", required_argument, NULL, 'p'},                                                        \
    {"queue", required_argument, NULL, 'q'},                                                       \
    {"patience", required_argument, NULL, 'w'}
/* clang-format on */

#define SESSION_HELP                                                                               \
    "  --socket PATH     the server's Unix socket; or:\n"                                          \
    "  --host HOST       its name or address (default 127.0.0.1)\n"                                \
    "  --port PORT       its port (default 6379)\n"                                                \
    "  --queue NAME      the queue (default files)\n"                                              \
    "  --patience S      for how many seconds a failed call is tried again (default 30)\n"

/** A program's connection to its queue. */
typedef struct session {
    const char *program; /**< for messages */
    const char *queue;
    emq_client_options options;
    emq_client *client;
    int64_t patience_ms; /**< how long one call is tried again */
} session;

/** The tries of one call: start with RETRY_INIT, one for each call. */
typedef struct retry {
    int64_t give_up_at_ms; /**< 0 until the first failure */
    uint32_t pause_ms;
} retry;

#define RETRY_INIT                                                                                 \
    { 0, 0 }

/** The signal that asked this program to stop, or 0. */
extern volatile sig_atomic_t session_stop;

/** Sets the defaults, and from now on SIGINT, SIGTERM and SIGHUP set session_stop. */
void session_init(session *s, const char *program);

/** getopt_long for a table that ends with SESSION_OPTIONS, which says itself what is wrong. */
int session_next_option(const session *s, int argc, char **argv, const struct option *options);

/** Takes one option of SESSION_OPTIONS. 0; -1 when the value is wrong, which it has said. */
int session_option(session *s, int letter, const char *value);

/** Reads the number of an option. 0; -1 when it is none or out of range, which it has said. */
int session_number(const session *s, unsigned long *out, const char *what, const char *value,
                   unsigned long least, unsigned long most);

/** Connects, with patience. 0, or an error that has been reported. */
int session_open(session *s);

/**
 * After a call failed: whether it should be made again. Waits, longer each time, and reconnects
 * where the connection is gone. Gives up when patience is over, at a stop signal, and at once on
 * errors that waiting can't mend.
 *
 *     retry tries = RETRY_INIT;
 *     do {
 *         result = emq_complete(s->client, lease);
 *     } while (session_try_again(s, &tries, result));
 */
int session_try_again(session *s, retry *tries, int result);

/** Says on standard error what failed and why. */
void session_report(const session *s, const char *what, int result);

/** Frees the connection and gives the exit status: that of a stop signal, if one came. */
int session_close(session *s, int status);

#endif
