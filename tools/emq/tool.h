/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb of the command-line tool shares: its row in the table of verbs, the command line
 * as it was read, the connection, what is printed where, and how the program ends.
 *
 * A verb is a file that defines `const tool_verb verb_<name>` and a line in verbs.def. */
#ifndef EMQ_TOOL_H
#define EMQ_TOOL_H

#include <emq/emq.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How the program ends; docs/tool.md tells what each means for a script. Where several things were
 * asked for, the highest number counts. 128 + signal when a signal asked it to stop. */
enum {
    TOOL_DONE = 0,    /* done as asked */
    TOOL_OTHER = 1,   /* an expected other outcome: empty, duplicate, gone, dead */
    TOOL_USAGE = 2,   /* the command line is wrong; nothing was sent */
    TOOL_RETRY = 3,   /* nothing was done, and the same may work in a while */
    TOOL_REFUSED = 4, /* the server refuses until somebody acts */
    TOOL_STALE = 5,   /* the lease is another holder's, or over */
    TOOL_UNKNOWN = 6, /* sent, and no answer came: it may have been done or not */
    TOOL_BROKEN = 7,  /* a broken answer, no memory, or output that can't be written */
};

/* So that the compiler checks the arguments of what prints. */
#if defined(__GNUC__)
#define TOOL_PRINTF __attribute__((format(printf, 2, 3)))
#define TOOL_VPRINTF __attribute__((format(printf, 2, 0)))
#else
#define TOOL_PRINTF
#define TOOL_VPRINTF
#endif

typedef struct tool tool;

/* An option of a verb beyond --url, --json and --help, which all have. */
typedef struct tool_option {
    const char *name;  /* "lease", for --lease */
    char letter;       /* 'l' for -l as well, or 0 */
    const char *value; /* what its value is called, "TIME"; NULL for a switch */
    const char *help;
} tool_option;

#define TOOL_OPTIONS_MAX 16
#define TOOL_ANY (-1) /* as many arguments as are given */

/* A row of the table of verbs, from which follow the dispatch, all help, the manual page and the
 * completion. */
typedef struct tool_verb {
    const char *name;
    const char *arguments; /* "QUEUE [PAYLOAD]...", "" for none */
    int least;             /* how many arguments at least, and at most */
    int most;
    const char *summary; /* half a sentence, without a full stop */
    const char *details; /* what the help tells beyond; lines of at most 79 bytes, each ended */
    const char *example; /* lines as they are typed, each ended */
    const tool_option *options; /* ended by one without a name; NULL for none */
    int (*run)(tool *t);
} tool_verb;

/* A command line that was read, and the connection of its verb. */
struct tool {
    const tool_verb *verb;
    char *url;                            /* --url alone, a copy; wiped by tool_close */
    int json;                             /* --json */
    const char *values[TOOL_OPTIONS_MAX]; /* by the options of the verb; NULL: not given */
    int argc;                             /* the arguments alone */
    char **argv;
    emq_url *parsed; /* with the password; wiped and freed by tool_close */
    emq_client *client;
};

/* --- the table of verbs (verbs.c) --- */

size_t tool_verbs_count(void);
const tool_verb *tool_verbs_get(size_t i);
const tool_verb *tool_verbs_find(const char *name); /* NULL when there is none */

/* --- help (help.c) --- */

void tool_help_print(void);                       /* of the program */
void tool_help_print_verb(const tool_verb *verb); /* of one verb */

/* --- the command line (options.c) --- */

extern const tool_option tool_common_options[]; /* ended as a verb's */

/* Reads what follows the verb's name. TOOL_DONE; TOOL_USAGE, which was said; -1 when help was asked
 * for. argv[0] is the verb's name. */
int tool_options_read(tool *t, int argc, char **argv);

/* The value of an option, "" for a switch that is set; NULL when it was not given. */
const char *tool_value(const tool *t, const char *option);

/* The rest of these return TOOL_DONE, or TOOL_USAGE and have said why. */

/* The number of an option; `fallback` when it was not given. */
int tool_number(const tool *t, int64_t *out, const char *option, int64_t fallback, int64_t min,
                int64_t max);
/* A length of time, as `500ms`, `30s`, `5m`, `2h`, `1d` or 0, in milliseconds. */
int tool_duration(const tool *t, int64_t *out, const char *option, int64_t fallback_ms, int64_t min,
                  int64_t max);
/* The same of a text that is no option's value; `what` is what it is called. */
int tool_parse_duration(const tool *t, int64_t *out, const char *what, const char *text,
                        int64_t min, int64_t max);
/* The time of --in or --at, of which one must be given. */
int tool_when(const tool *t, emq_when *out);
/* The same of texts, of which one is NULL. */
int tool_parse_when(const tool *t, emq_when *out, const char *in, const char *at);
#define TOOL_IN_MAX INT64_C(315360000000)        /* milliseconds of a length of time */
#define TOOL_AT_MAX INT64_C(9007199254740991)    /* of a moment */
int tool_queue(const tool *t, const char *text); /* checks a queue's name */
int tool_id(const tool *t, emq_id *out, const char *text);
int tool_token(const tool *t, int64_t *out, const char *text);

/* --- running (main.c, connect.c) --- */

/* The signal that asked the program to stop, or 0. Counts for verbs that called tool_watch_signals;
 * the others end by it at once. */
extern atomic_int tool_stop;
void tool_watch_signals(void);

/* The options of the URL, named `emq`; borrowed until tool_close. TOOL_DONE or TOOL_USAGE, said. */
int tool_address(tool *t, emq_client_options *out);
/* Connects to there. TOOL_DONE, or an exit status whose reason was said. */
int tool_connect(tool *t, const emq_client_options *options);
/* The two together. */
int tool_open(tool *t);
void tool_close(tool *t);

/* The exit status of a result. */
int tool_status(int result);
/* Says on standard error what failed and why, as one JSON object with --json, and gives the exit
 * status. `detail` is what the server said, or "". */
int tool_fail(const tool *t, const char *what, int result, const char *detail);
/* The same with what the client has to say. */
int tool_fail_client(const tool *t, const char *what, int result);
/* Says on standard error: which verb it is, and the text. */
void tool_say(const tool *t, const char *format, va_list arguments) TOOL_VPRINTF;
/* Says that the command line is wrong. TOOL_USAGE. */
int tool_usage(const tool *t, const char *format, ...) TOOL_PRINTF;
/* Says something on standard error that is no failure, with --json as a document, too. From any
 * thread. */
void tool_note(const tool *t, const char *format, ...) TOOL_PRINTF;

/* Asks on the terminal whether to go on, unless --yes was given. TOOL_DONE; TOOL_OTHER when the
 * answer was no; TOOL_USAGE when there is no terminal to ask on, said. */
int tool_confirm(const tool *t, const char *format, ...) TOOL_PRINTF;
#define TOOL_OPTION_YES                                                                            \
    { "yes", 'y', NULL, "don't ask before" }

/* --- printing (print.c) --- */

/* Prints one JSON document on a line of its own, and frees it; on standard output, or error. */
void tool_print_json(json_t *object);
void tool_print_json_error(json_t *object);
/* Bytes as a member of an object: a string; where that is no UTF-8, base64 under `<name>_b64`. */
void tool_json_bytes(json_t *object, const char *name, const void *bytes, size_t n);
/* The name of a result, as a member `result`. */
void tool_json_result(json_t *object, int result);

/* Bytes on one line of a terminal or a file: what is no printable UTF-8 is escaped as C does
 * (\n, \x1b, \\). At most `most` bytes of them, then "..."; 0 means all. */
void tool_print_bytes(FILE *to, const void *bytes, size_t n, size_t most);
/* A moment, as 2026-01-02T03:04:05.678Z. */
#define TOOL_TIME_MAX 32
void tool_format_time(char out[TOOL_TIME_MAX], int64_t unix_ms);
/* A length of time in its two greatest units: 1d 2h, 3m 4s, 5.678s. */
void tool_format_age(char out[TOOL_TIME_MAX], int64_t ms);
/* This machine's clock, milliseconds of unix time. */
int64_t tool_now_ms(void);

#endif
