/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a verb, read by its row of the table, and the values in it: numbers, lengths
 * of time, moments, queues, ids. What is wrong is said with the option's name. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool.h"

#define LONG_BASE 256 /* above every letter */
#define COMMON_COUNT 3

const tool_option tool_common_options[] = {
    {"url", 0, "URL", "the server (default: EMQ_URL, or redis://127.0.0.1:6379)"},
    {"json", 0, NULL, "JSON for machines, one document a line"},
    {"help", 'h', NULL, "this help"},
    {NULL, 0, NULL, NULL},
};

enum { COMMON_URL, COMMON_JSON, COMMON_HELP };

static size_t options_count(const tool_verb *verb) {
    size_t count = 0;
    while (verb->options != NULL && verb->options[count].name != NULL) {
        count++;
    }
    return count;
}

/* What getopt_long wants, for the options of a verb and, behind them, the common ones. */
typedef struct option_table {
    struct option longs[TOOL_OPTIONS_MAX + COMMON_COUNT + 1];
    char letters[1 + 2 * (TOOL_OPTIONS_MAX + COMMON_COUNT) + 1];
    int index_of[LONG_BASE]; /* by letter: the option's index + 1 */
} option_table;

static void add_option(option_table *table, size_t i, const tool_option *option) {
    table->longs[i].name = option->name;
    table->longs[i].has_arg = option->value == NULL ? no_argument : required_argument;
    table->longs[i].val = LONG_BASE + (int)i;
    if (option->letter != 0) {
        size_t n = strlen(table->letters);
        table->letters[n] = option->letter;
        table->letters[n + 1] = option->value == NULL ? '\0' : ':';
        table->index_of[(unsigned char)option->letter] = (int)i + 1;
    }
}

static void take_url(tool *t, char *value) {
    free(t->url);
    t->url = strdup(value);
    memset(value, '*', strlen(value)); /* the list of processes shows it; it may have a password */
}

static int take_common(tool *t, size_t which, char *value) {
    switch (which) {
    case COMMON_URL:
        take_url(t, value);
        return TOOL_DONE;
    case COMMON_JSON:
        t->json = 1;
        return TOOL_DONE;
    default:
        return -1;
    }
}

/* A word may begin several options, and is none of them then. */
static int is_ambiguous(const option_table *table, const char *word, size_t n) {
    int begun = 0;
    for (const struct option *o = table->longs; o->name != NULL; o++) {
        begun += strncmp(o->name, word, n) == 0;
    }
    return begun > 1;
}

/* Of a word up to its `=`: what follows may have a password. */
static int say_unknown(const tool *t, const option_table *table, const char *word) {
    int n = (int)strcspn(word, "=");
    if (is_ambiguous(table, word + 2, (size_t)n - 2)) {
        return tool_usage(t, "several options begin with %.*s", n, word);
    }
    return tool_usage(t, "there is no option %.*s", n, word);
}

/* `found` is what getopt_long gave for the word. */
static int say_wrong_option(const tool *t, const option_table *table, int found, const char *word) {
    char name[64];
    if (found == '?' && optopt == 0) {
        return say_unknown(t, table, word);
    }
    if (found == '?' && optopt < LONG_BASE) {
        return tool_usage(t, "there is no option -%c", optopt);
    }
    if (optopt < LONG_BASE) {
        (void)snprintf(name, sizeof(name), "-%c", optopt);
    } else {
        (void)snprintf(name, sizeof(name), "--%s", table->longs[optopt - LONG_BASE].name);
    }
    return tool_usage(t, "%s takes %s value", name, found == ':' ? "a" : "no");
}

static int read_options(tool *t, int argc, char **argv) {
    option_table table;
    memset(&table, 0, sizeof(table));
    table.letters[0] = ':'; /* tells a missing value apart */
    opterr = 0;             /* getopt_long would print any bytes as they are */
    size_t own = options_count(t->verb);
    for (size_t i = 0; i < own; i++) {
        add_option(&table, i, &t->verb->options[i]);
    }
    for (size_t i = 0; i < COMMON_COUNT; i++) {
        add_option(&table, own + i, &tool_common_options[i]);
    }
    int found = 0;
    while ((found = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
        if (found == '?' || found == ':') {
            return say_wrong_option(t, &table, found, argv[optind - 1]);
        }
        size_t i = (size_t)(found < LONG_BASE ? table.index_of[found] - 1 : found - LONG_BASE);
        if (i < own) {
            t->values[i] = optarg == NULL ? "" : optarg;
            continue;
        }
        int status = take_common(t, i - own, optarg);
        if (status != TOOL_DONE) {
            return status;
        }
    }
    return TOOL_DONE;
}

int tool_options_read(tool *t, int argc, char **argv) {
    int status = read_options(t, argc, argv);
    if (status != TOOL_DONE) {
        return status;
    }
    t->argc = argc - optind;
    t->argv = argv + optind;
    if (t->argc < t->verb->least || (t->verb->most != TOOL_ANY && t->argc > t->verb->most)) {
        return tool_usage(t, "takes %s",
                          t->verb->arguments[0] == '\0' ? "no arguments" : t->verb->arguments);
    }
    return TOOL_DONE;
}

const char *tool_value(const tool *t, const char *option) {
    for (size_t i = 0; t->verb->options != NULL && t->verb->options[i].name != NULL; i++) {
        if (strcmp(t->verb->options[i].name, option) == 0) {
            return t->values[i];
        }
    }
    return NULL;
}

/* Digits, as many as there are, that make a number of at most INT64_MAX. NULL, or where they end.
 */
static const char *read_digits(int64_t *out, const char *text) {
    char *end = NULL;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return text[0] < '0' || text[0] > '9' || errno != 0 ? NULL : end;
}

int tool_number(const tool *t, int64_t *out, const char *option, int64_t fallback, int64_t min,
                int64_t max) {
    const char *value = tool_value(t, option);
    *out = fallback;
    if (value == NULL) {
        return TOOL_DONE;
    }
    const char *end = read_digits(out, value);
    if (end == NULL || *end != '\0' || *out < min || *out > max) {
        return tool_usage(t, "--%s is a number from %lld to %lld, not %s", option, (long long)min,
                          (long long)max, value);
    }
    return TOOL_DONE;
}

/* The milliseconds of a unit; 0 when it is none. */
static int64_t unit_ms(const char *unit) {
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(units[i].name, unit) == 0) {
            return units[i].ms;
        }
    }
    return 0;
}

int tool_parse_duration(const tool *t, int64_t *out, const char *what, const char *text,
                        int64_t min, int64_t max) {
    int64_t number = 0;
    const char *unit = read_digits(&number, text);
    int64_t each = unit == NULL ? 0 : unit_ms(unit);
    if (unit != NULL && *unit == '\0' && number == 0) {
        each = 1; /* nothing is nothing in any unit */
    }
    if (each == 0 || number > INT64_MAX / each) {
        return tool_usage(t, "%s is a length of time, as 500ms, 30s, 5m, 2h or 1d, not %s", what,
                          text);
    }
    *out = number * each;
    if (*out < min || *out > max) {
        return tool_usage(t, "%s is %lldms to %lldms, not %s", what, (long long)min, (long long)max,
                          text);
    }
    return TOOL_DONE;
}

int tool_duration(const tool *t, int64_t *out, const char *option, int64_t fallback_ms, int64_t min,
                  int64_t max) {
    char what[64];
    const char *value = tool_value(t, option);
    *out = fallback_ms;
    (void)snprintf(what, sizeof(what), "--%s", option);
    return value == NULL ? TOOL_DONE : tool_parse_duration(t, out, what, value, min, max);
}

/* Exactly so many digits. */
static int take_number(const char **at, int digits, int *out) {
    *out = 0;
    for (int i = 0; i < digits; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9') {
            return 0;
        }
        *out = *out * 10 + (c - '0');
    }
    *at += digits;
    return 1;
}

static int take_char(const char **at, char c) {
    if (**at != c) {
        return 0;
    }
    (*at)++;
    return 1;
}

/* 2026-01-02T03:04[:05[.678]]; the day must exist. */
static int take_clock(const char **at, int64_t *ms) {
    struct tm tm;
    memset(&tm, 0, sizeof(tm));
    int thousandths = 0;
    if (!take_number(at, 4, &tm.tm_year) || !take_char(at, '-') ||
        !take_number(at, 2, &tm.tm_mon) || !take_char(at, '-') ||
        !take_number(at, 2, &tm.tm_mday) || !take_char(at, 'T') ||
        !take_number(at, 2, &tm.tm_hour) || !take_char(at, ':') ||
        !take_number(at, 2, &tm.tm_min)) {
        return 0;
    }
    if (take_char(at, ':') && !take_number(at, 2, &tm.tm_sec)) {
        return 0;
    }
    if (take_char(at, '.') && !take_number(at, 3, &thousandths)) {
        return 0;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    struct tm normal = tm;
    time_t seconds = timegm(&normal);
    *ms = (int64_t)seconds * 1000 + thousandths;
    return normal.tm_mon == tm.tm_mon && normal.tm_mday == tm.tm_mday &&
           normal.tm_hour == tm.tm_hour && normal.tm_min == tm.tm_min && normal.tm_sec == tm.tm_sec;
}

/* Z, or how far the clock is ahead: +02:00. */
static int take_zone(const char **at, int64_t *ms) {
    if (take_char(at, 'Z')) {
        return 1;
    }
    int sign = **at == '-' ? -1 : 1;
    int hours = 0;
    int minutes = 0;
    if ((!take_char(at, '+') && !take_char(at, '-')) || !take_number(at, 2, &hours) ||
        !take_char(at, ':') || !take_number(at, 2, &minutes)) {
        return 0;
    }
    *ms -= sign * (hours * INT64_C(3600000) + minutes * INT64_C(60000));
    return 1;
}

static int parse_moment(int64_t *ms, const char *text) {
    const char *at = text;
    if (take_char(&at, '@')) {
        const char *end = read_digits(ms, at);
        if (end == NULL || *end != '\0' || *ms > INT64_MAX / 1000) {
            return 0;
        }
        *ms *= 1000;
        return 1;
    }
    return take_clock(&at, ms) && take_zone(&at, ms) && *at == '\0';
}

int tool_parse_when(const tool *t, emq_when *out, const char *in, const char *at) {
    if ((in == NULL) == (at == NULL)) {
        return tool_usage(t, "takes one of --in TIME and --at MOMENT");
    }
    out->mode = in == NULL ? EMQ_AT : EMQ_IN;
    if (in != NULL) {
        return tool_parse_duration(t, &out->ms, "--in", in, 0, TOOL_IN_MAX);
    }
    if (!parse_moment(&out->ms, at) || out->ms < 0 || out->ms > TOOL_AT_MAX) {
        return tool_usage(
            t, "--at is a moment, as 2026-01-02T03:04:05Z, ...+02:00 or @1767323045, not %s", at);
    }
    return TOOL_DONE;
}

int tool_when(const tool *t, emq_when *out) {
    return tool_parse_when(t, out, tool_value(t, "in"), tool_value(t, "at"));
}

int tool_queue(const tool *t, const char *text) {
    return emq_queue_valid(text) ? TOOL_DONE
                                 : tool_usage(t, "%s: %s", emq_strerror(EMQ_EQUEUE), text);
}

int tool_id(const tool *t, emq_id *out, const char *text) {
    int result = emq_id_parse(out, text, strlen(text));
    if (result == EMQ_OK && strncmp(text, "JOB", 3) != 0) {
        result = EMQ_EKIND;
    }
    return result == EMQ_OK ? TOOL_DONE : tool_usage(t, "%s: %s", emq_strerror(result), text);
}

int tool_token(const tool *t, int64_t *out, const char *text) {
    const char *end = read_digits(out, text);
    return end != NULL && *end == '\0' && *out > 0
               ? TOOL_DONE
               : tool_usage(t, "a token is a number from 1, as claim printed it, not %s", text);
}
