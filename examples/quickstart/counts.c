/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how a queue stands. */
#include "session.h"

#include <inttypes.h>
#include <stdio.h>

static int print_counts(session *s) {
    emq_counts counts = EMQ_COUNTS_INIT;
    retry tries = RETRY_INIT;
    int result = 0;
    do {
        result = emq_counts_read(&counts, s->client, s->queue);
    } while (session_try_again(s, &tries, result));
    if (result != EMQ_OK) {
        session_report(s, "cannot read the counts", result);
        return EXIT_GAVE_UP;
    }
    (void)printf("pending=%" PRId64 "\nactive=%" PRId64 "\nscheduled=%" PRId64 "\ndead=%" PRId64
                 "\ncompleted=%" PRId64 "\n",
                 counts.pending, counts.active, counts.scheduled, counts.dead, counts.completed);
    return EXIT_FINE;
}

static const char help[] =
    "Usage: counts [OPTION]...\n"
    "\n"
    "Prints pending=, active=, scheduled=, dead= and completed= of a queue.\n"
    "\n" SESSION_HELP;

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"help", no_argument, NULL, 'H'}, SESSION_OPTIONS, {NULL, 0, NULL, 0}};
    session s;
    session_init(&s, "counts");
    int letter = 0;
    while ((letter = session_next_option(&s, argc, argv, options)) != -1) {
        if (letter == 'H') {
            (void)fputs(help, stdout);
            return EXIT_FINE;
        }
        if (session_option(&s, letter, optarg) != 0) {
            return EXIT_USAGE;
        }
    }
    if (optind != argc) {
        (void)fputs(help, stderr);
        return EXIT_USAGE;
    }
    int status = session_open(&s) == EMQ_OK ? print_counts(&s) : EXIT_GAVE_UP;
    if (fflush(stdout) != 0 || ferror(stdout)) { /* a full disk must not pass for an answer */
        perror("counts: standard output");
        status = EXIT_GAVE_UP;
    }
    return session_close(&s, status);
}
