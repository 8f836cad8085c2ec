/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how a queue stands. libemq has no verb for this, so plain reads go through its raw door,
 * with keys that libemq builds. */
#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Asks one thing about one key of the queue. A key that isn't there counts 0. */
static int ask(session *s, int64_t *out, const char *command, emq_key_kind kind,
               const char *field) {
    char key[EMQ_KEY_MAX + 1];
    int result = emq_key_queue(key, sizeof(key), s->queue, kind);
    if (result < 0) {
        return result;
    }
    const char *argv[] = {command, key, field};
    emq_reply *reply = NULL;
    retry tries = RETRY_INIT;
    do {
        result = emq_client_command(&reply, s->client, field == NULL ? 2 : 3, argv, NULL);
    } while (session_try_again(s, &tries, result));
    if (result != EMQ_OK) {
        return result;
    }
    const char *text = emq_reply_get_string(reply, NULL);
    *out = text != NULL ? strtoll(text, NULL, 10) : emq_reply_get_integer(reply);
    emq_reply_free(reply);
    return EMQ_OK;
}

static int print_counts(session *s) {
    static const struct {
        const char *label;
        const char *command;
        emq_key_kind kind;
        const char *field;
    } questions[] = {{"pending", "ZCARD", EMQ_KEY_PENDING, NULL},
                     {"active", "ZCARD", EMQ_KEY_ACTIVE, NULL},
                     {"completed", "HGET", EMQ_KEY_COMPLETED, "count"}};
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        int64_t count = 0;
        int result = ask(s, &count, questions[i].command, questions[i].kind, questions[i].field);
        if (result != EMQ_OK) {
            session_report(s, "cannot read the counts", result);
            return EXIT_GAVE_UP;
        }
        (void)printf("%s=%" PRId64 "\n", questions[i].label, count);
    }
    return EXIT_FINE;
}

static const char help[] = "Usage: counts [OPTION]...\n"
                           "\n"
                           "Prints pending=, active= and completed= of a queue.\n"
                           "\n" SESSION_HELP;

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"help", no_argument, NULL, 'H'}, SESSION_OPTIONS, {NULL, 0, NULL, 0}};
    session s;
    session_init(&s, "counts");
    int letter = 0;
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
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
