/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark's driver: one measurement of one contender on a server that runs, as one line of
 * JSON. bench/run.sh starts the servers, interleaves the rounds and makes the report. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(bench *b);
} measures[] = {
    {"client", bench_client}, {"latency", bench_latency}, {"lifecycle", bench_lifecycle},
    {"memory", bench_memory}, {"sweep", bench_sweep},     {"verbs", bench_verbs},
};

#define MEASURES (sizeof(measures) / sizeof(measures[0]))

static int usage(void) {
    (void)fputs("Usage: emq_bench MEASURE CONTENDER [NAME=VALUE]...\n"
                "Names: cell host path scripts port pid round jobs payload in_flight connections\n"
                "       pending queues waiters\n"
                "Measures:",
                stderr);
    for (size_t i = 0; i < MEASURES; i++) {
        (void)fprintf(stderr, " %s", measures[i].name);
    }
    (void)fputc('\n', stderr);
    return 2;
}

static int read_number(size_t *out, const char *text) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = (size_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/* Sets what one argument names. */
static int read_argument(bench *b, const char *argument) {
    const struct {
        const char *name;
        const char **text;
        size_t *number;
    } names[] = {
        {"cell", &b->cell, NULL},
        {"host", &b->host, NULL},
        {"path", &b->path, NULL},
        {"scripts", &b->scripts, NULL},
        {"port", NULL, &b->port},
        {"pid", NULL, &b->pid},
        {"round", NULL, &b->round},
        {"jobs", NULL, &b->jobs},
        {"payload", NULL, &b->payload},
        {"in_flight", NULL, &b->in_flight},
        {"connections", NULL, &b->connections},
        {"pending", NULL, &b->pending},
        {"queues", NULL, &b->queues},
        {"waiters", NULL, &b->waiters},
    };
    const char *value = strchr(argument, '=');
    for (size_t i = 0; value != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i].name);
        if (length != (size_t)(value - argument) || memcmp(names[i].name, argument, length) != 0) {
            continue;
        }
        if (names[i].text != NULL) {
            *names[i].text = value + 1;
            return 1;
        }
        return read_number(names[i].number, value + 1);
    }
    return 0;
}

static int run(bench *b) {
    for (size_t i = 0; i < MEASURES; i++) {
        if (strcmp(measures[i].name, b->measure) == 0) {
            measures[i].run(b);
            return 0;
        }
    }
    return usage();
}

int main(int argc, char **argv) {
    bench b = {.cell = "?",
               .jobs = 10000,
               .round = 1,
               .payload = 100,
               .in_flight = 1,
               .connections = 1,
               .queues = 1};
    for (int i = 3; i < argc; i++) {
        if (!read_argument(&b, argv[i])) {
            (void)fprintf(stderr, "bench: what is %s?\n", argv[i]);
            return usage();
        }
    }
    if (argc < 3) {
        return usage();
    }
    b.measure = argv[1];
    b.contender = argv[2];
    b.result = json_pack("{s:s, s:I, s:I}", "cell", b.cell, "round", (json_int_t)b.round, "jobs",
                         (json_int_t)b.jobs);
    bench_check(&b, b.result != NULL, "no memory");
    bench_check(&b, b.jobs > 0 && b.in_flight > 0 && b.connections > 0 && b.queues > 0,
                "a count of 0");
    int status = run(&b);
    if (status == 0 && (json_dumpf(b.result, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) != 0 ||
                        puts("") < 0 || fflush(stdout) != 0)) {
        status = 1;
    }
    json_decref(b.result);
    return status;
}
