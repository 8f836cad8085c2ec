/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting and trying again: see session.h. What may be tried again follows from the error's
 * class alone, so an error that a later version adds finds its place by itself. */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_PATIENCE_MS 30000
#define FIRST_PAUSE_MS 10
#define LONGEST_PAUSE_MS 1000

volatile sig_atomic_t session_stop;

static void note_signal(int number) {
    session_stop = number;
}

void session_init(session *s, const char *program) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = note_signal;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        (void)sigaction(signals[i], &action, NULL);
    }
    memset(s, 0, sizeof(*s));
    s->program = program;
    s->queue = "files";
    s->patience_ms = DEFAULT_PATIENCE_MS;
    emq_client_options_init(&s->options);
    s->options.client_name = program;
}

/* What a terminal would take for a command, or for nothing it knows, is escaped. */
static void print_escaped(const char *text) {
    for (; *text != '\0'; text++) {
        int is_printable = *text >= ' ' && *text <= '~' && *text != '\\';
        (void)fprintf(stderr, is_printable ? "%c" : "\\x%02x", (unsigned char)*text);
    }
}

int session_number(const session *s, unsigned long *out, const char *what, const char *value,
                   unsigned long least, unsigned long most) {
    char *end = NULL;
    errno = 0;
    *out = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || *out < least ||
        *out > most) {
        (void)fprintf(stderr, "%s: %s is a number from %lu to %lu, not ", s->program, what, least,
                      most);
        print_escaped(value);
        (void)fputc('\n', stderr);
        return -1;
    }
    return 0;
}

/* The word that getopt_long stumbled upon: behind it, or still at a letter in it. */
static const char *find_wrong_word(char **argv) {
    const char *next = argv[optind];
    int is_inside = optopt != 0 && next != NULL && next[0] == '-' && next[1] != '-' &&
                    strchr(next, optopt) != NULL;
    return is_inside ? next : argv[optind - 1];
}

int session_next_option(const session *s, int argc, char **argv, const struct option *options) {
    opterr = 0; /* it would print any bytes as they are */
    int letter = getopt_long(argc, argv, ":", options, NULL);
    if (letter != '?' && letter != ':') {
        return letter;
    }
    (void)fprintf(stderr, "%s: ", s->program);
    print_escaped(find_wrong_word(argv));
    (void)fputs(letter == ':' ? " takes a value\n"
                              : " is no option, or takes no value: see --help\n",
                stderr);
    return '?';
}

int session_option(session *s, int letter, const char *value) {
    unsigned long number = 0;
    int result = 0;
    switch (letter) {
    case 's':
        s->options.unix_path = value;
        return 0;
    case 'h':
        s->options.host = value;
        return 0;
    case 'p':
        result = session_number(s, &number, "--port", value, 1, UINT16_MAX);
        s->options.port = (uint16_t)number;
        return result;
    case 'w':
        result = session_number(s, &number, "--patience", value, 0, 86400);
        s->patience_ms = (int64_t)number * 1000;
        return result;
    case 'q':
        if (!emq_queue_valid(value)) {
            (void)fprintf(stderr, "%s: %s: ", s->program, emq_strerror(EMQ_EQUEUE));
            print_escaped(value);
            (void)fputc('\n', stderr);
            return -1;
        }
        s->queue = value;
        return 0;
    default: /* session_next_option has named the wrong option */
        return -1;
    }
}

int session_open(session *s) {
    retry tries = RETRY_INIT;
    int result = emq_client_open(&s->client, &s->options);
    if (result != EMQ_OK && s->client != NULL && session_try_again(s, &tries, result)) {
        return EMQ_OK;
    }
    if (result != EMQ_OK && session_stop == 0) {
        session_report(s, "cannot connect", result);
    }
    return result;
}

static int64_t now_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 1 after a pause; 0 when patience is over. A signal ends the pause early. */
static int pause_before_next(const session *s, retry *tries) {
    int64_t now = now_ms();
    if (tries->give_up_at_ms == 0) {
        tries->give_up_at_ms = now + s->patience_ms;
        tries->pause_ms = FIRST_PAUSE_MS;
    }
    if (now >= tries->give_up_at_ms) {
        return 0;
    }
    struct timespec pause = {tries->pause_ms / 1000, (long)(tries->pause_ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
    tries->pause_ms =
        tries->pause_ms * 2 > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS : tries->pause_ms * 2;
    return 1;
}

static int is_worth_another_try(int result) {
    emq_class class = emq_err_class(result);
    return class == EMQ_CLASS_RETRYABLE || class == EMQ_CLASS_UNKNOWN;
}

int session_try_again(session *s, retry *tries, int result) {
    while (is_worth_another_try(result) && session_stop == 0 && pause_before_next(s, tries)) {
        if (emq_client_is_open(s->client)) {
            return 1;
        }
        result = emq_client_reconnect(s->client);
        if (result == EMQ_OK) {
            return 1;
        }
    }
    return 0;
}

void session_report(const session *s, const char *what, int result) {
    const char *detail = s->client == NULL ? "" : emq_client_get_error(s->client);
    (void)fprintf(stderr, "%s: %s: %s%s%s%s\n", s->program, what, emq_strerror(result),
                  detail[0] == '\0' ? "" : " (", detail, detail[0] == '\0' ? "" : ")");
}

int session_close(session *s, int status) {
    emq_client_close(s->client);
    s->client = NULL;
    return session_stop == 0 ? status : 128 + (int)session_stop;
}
