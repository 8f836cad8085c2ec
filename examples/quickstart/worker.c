/* SPDX-License-Identifier: Apache-2.0 */
/* Works the jobs of the producer: computes the SHA-256 of the file that a payload names, writes the
 * line, and only then lets the job be completed. Whatever happens between the two, a job is never
 * completed without its line; done twice it gives the same line twice, which merging makes one. The
 * rest is emq_worker's: claiming, renewing the leases, completing, taking back what a worker that
 * died had in hand.
 *
 * A file that can't be hashed is a result too: it goes to the list of failures, with its reason,
 * and its job is completed. */
#include "digest.h"
#include "manifest.h"
#include "session.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long what a dead worker had in hand is out of reach. A live one renews its leases. */
#define DEFAULT_LEASE_SECONDS 5

/* Jobs that wait in the worker, so that the handler need not wait for the next claim. */
#define PREFETCH 32

/* How often a stop signal is looked for, and whether all is done. */
#define LOOK_MS 100
#define LOOK_OFTEN_MS 10 /* when no more jobs will come */

#define NEVER UINT64_MAX

typedef struct worker {
    session session; /* looks how the queue stands */
    emq_worker *runtime;
    int root;
    uint32_t lease_ms;
    const char *finished; /* once this file exists, an empty queue is the end */
    uint64_t hang_after;  /* jobs, for the quickstart's --kill-one */
    int is_idle;          /* the last look found nothing left */
    /* the handler's */
    digest *digest;
    manifest part;
    manifest failures;
    uint64_t lines;
    uint64_t failed;
    uint64_t bytes;
    int has_failed; /* it could not write a line */
    /* the report's */
    uint64_t jobs;
    int64_t microseconds; /* from the start to the end */
} worker;

/* Hashes one file. NULL, or the reason why there is no digest. */
static const char *hash(worker *w, char hex[DIGEST_HEX + 1], const char *path, size_t n) {
    tree_file file;
    /* such a file can be hashed, but sha256sum could never open it to verify the manifest */
    if (n >= PATH_MAX) {
        return "its path is longer than programs can open";
    }
    const char *reason = tree_open_file(&file, w->root, path, n);
    if (reason == NULL) {
        reason = digest_file(w->digest, hex, &w->bytes, &file);
        tree_close_file(&file);
    }
    return reason;
}

/* Writes the job's line to one of the two files. */
static int write_line(worker *w, const emq_task *task) {
    char hex[DIGEST_HEX + 1];
    size_t n = 0;
    const char *path = emq_task_get_payload(task, &n);
    if (path == NULL) {
        path = "";
    }
    const char *reason = hash(w, hex, path, n);
    w->failed += reason != NULL;
    int result = reason == NULL ? manifest_add(&w->part, hex, path, n)
                                : manifest_add_failure(&w->failures, reason, path, n);
    if (result != 0) {
        (void)fprintf(stderr, "worker: cannot write its part: %s\n", strerror(errno));
    }
    return result;
}

/* One thread runs this. A line that can't be written ends the worker, which gives back what it has
 * in hand. */
static int handle(emq_task *task, void *user) {
    worker *w = user;
    if (!w->has_failed && write_line(w, task) != 0) {
        w->has_failed = 1;
        (void)emq_worker_stop(w->runtime, 0);
    }
    if (w->lines++ == w->hang_after) {
        (void)raise(SIGSTOP); /* the whole process, with jobs in hand: somebody is to kill it */
    }
    return w->has_failed ? EMQ_TASK_REQUEUE : EMQ_TASK_COMPLETE;
}

/* What trying again can't mend ends the worker. */
static void note(const emq_worker_event *event, void *user) {
    worker *w = user;
    int refused = event->kind == EMQ_WORKER_TROUBLE || event->kind == EMQ_WORKER_FAILURE;
    emq_class class = emq_err_class(event->result);
    if (refused && class != EMQ_CLASS_RETRYABLE && class != EMQ_CLASS_UNKNOWN) {
        (void)fprintf(stderr, "worker: %s (%s)\n", emq_strerror(event->result), event->text);
        (void)emq_worker_stop(w->runtime, 0);
    }
}

static int start(worker *w) {
    char text[256] = "";
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    options.prefetch = PREFETCH;
    options.hook = note;
    options.hook_user = w;
    queue.lease_ms = w->lease_ms;
    queue.max_run_ms = EMQ_WORKER_UNLIMITED; /* a file may have any size */
    int result = emq_worker_open(&w->runtime, &w->session.options, &options);
    if (result == EMQ_OK) {
        result = emq_worker_add(w->runtime, w->session.queue, handle, w, &queue);
    }
    if (result == EMQ_OK) {
        result = emq_worker_start(w->runtime);
    }
    if (result != EMQ_OK) {
        if (w->runtime != NULL) {
            (void)emq_worker_copy_error(text, sizeof(text), w->runtime);
        }
        (void)fprintf(stderr, "worker: cannot start: %s (%s)\n", emq_strerror(result), text);
    }
    return result;
}

/* Whether there is nothing left to do: no job in any set, twice, since one that moves from one set
 * to another may be seen in none. Also finds out when the server is gone for good. 0 or 1; -1 when
 * it gave up. */
static int is_done(worker *w) {
    session *s = &w->session;
    emq_counts counts = EMQ_COUNTS_INIT;
    retry tries = RETRY_INIT;
    int result = 0;
    /* asked first: a job that came in between is seen by the next look */
    int finished = w->finished != NULL && access(w->finished, F_OK) == 0;
    do {
        result = emq_counts_read(&counts, s->client, s->queue);
    } while (session_try_again(s, &tries, result));
    if (result != EMQ_OK) {
        if (session_stop == 0) {
            session_report(s, "cannot look at the queue", result);
        }
        return session_stop == 0 ? -1 : 0;
    }
    int was_idle = w->is_idle;
    w->is_idle = finished && counts.pending + counts.active + counts.scheduled == 0;
    return was_idle && w->is_idle;
}

/* Until all is done, or somebody wants it to end: then jobs in hand are finished, and those that
 * wait go back. */
static int work(worker *w) {
    int done = 0;
    while (session_stop == 0 && done == 0) {
        int finished = w->finished != NULL && access(w->finished, F_OK) == 0;
        uint32_t pause_ms = finished ? LOOK_OFTEN_MS : LOOK_MS;
        if (emq_worker_wait(NULL, w->runtime, pause_ms) == EMQ_OK) {
            return EXIT_GAVE_UP; /* it has ended by itself */
        }
        done = is_done(w);
    }
    (void)emq_worker_stop(w->runtime, done < 0 ? 0 : EMQ_WORKER_UNLIMITED);
    (void)emq_worker_wait(NULL, w->runtime, EMQ_WORKER_UNLIMITED);
    return done < 0 ? EXIT_GAVE_UP : EXIT_FINE;
}

static int64_t now_us(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static const char help[] =
    "Usage: worker [OPTION]... --part FILE --failures FILE FOLDER\n"
    "\n"
    "Claims job after job; a payload is the path of a file below FOLDER, whose SHA-256 is "
    "appended\n"
    "to the part as a line of sha256sum. What can't be hashed is appended to the failures, with "
    "its\n"
    "reason. Works until it gets SIGTERM; the job in hand is finished first.\n"
    "\n"
    "  --part FILE       the manifest lines, appended\n"
    "  --failures FILE   reason and path of each file without a line, appended\n"
    "  --finished FILE   once this file exists, end when the queue is empty\n"
    "  --lease SECONDS   how long what a worker that died had in hand is out of reach (default 5)\n"
    "  --hang-after N    behind N jobs, stop (SIGSTOP) with the next ones in hand, to be "
    "killed\n" SESSION_HELP "\n"
    "Prints jobs=, failed=, bytes= and microseconds=. Exit status: 0 fine; 1 some files are among\n"
    "the failures; 2 wrong use; 3 it gave up; 128 + number after a signal.\n";

typedef struct arguments {
    const char *folder;
    const char *part;
    const char *failures;
} arguments;

static int read_lease(worker *w, const char *value) {
    unsigned long seconds = 0;
    int result = session_number(&w->session, &seconds, "--lease", value, 1, 2147483);
    w->lease_ms = (uint32_t)(seconds * 1000);
    return result;
}

static int read_hang_after(worker *w, const char *value) {
    unsigned long jobs = 0;
    int result = session_number(&w->session, &jobs, "--hang-after", value, 0, ULONG_MAX);
    w->hang_after = jobs;
    return result;
}

static int take_option(worker *w, arguments *a, int letter, const char *value) {
    switch (letter) {
    case 'o':
        a->part = value;
        return 0;
    case 'f':
        a->failures = value;
        return 0;
    case 'F':
        w->finished = value;
        return 0;
    case 'L':
        return read_lease(w, value);
    case 'K':
        return read_hang_after(w, value);
    case 'H':
        (void)fputs(help, stdout);
        return 1;
    default:
        return session_option(&w->session, letter, value);
    }
}

/* 0; 1 when there is nothing more to do; -1 for a wrong command line. */
static int read_arguments(worker *w, arguments *a, int argc, char **argv) {
    static const struct option options[] = {{"part", required_argument, NULL, 'o'},
                                            {"failures", required_argument, NULL, 'f'},
                                            {"finished", required_argument, NULL, 'F'},
                                            {"lease", required_argument, NULL, 'L'},
                                            {"hang-after", required_argument, NULL, 'K'},
                                            {"help", no_argument, NULL, 'H'},
                                            SESSION_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int letter = 0;
    while ((letter = session_next_option(&w->session, argc, argv, options)) != -1) {
        int result = take_option(w, a, letter, optarg);
        if (result != 0) {
            return result;
        }
    }
    if (optind != argc - 1 || a->part == NULL || a->failures == NULL) {
        (void)fputs(help, stderr);
        return -1;
    }
    a->folder = argv[optind];
    return 0;
}

static int open_files(worker *w, const arguments *a) {
    const char *name = a->folder;
    w->root = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = w->root < 0 ? -1 : 0;
    if (result == 0) {
        name = a->part;
        result = manifest_open(&w->part, name);
    }
    if (result == 0) {
        name = a->failures;
        result = manifest_open(&w->failures, name);
    }
    if (result != 0) {
        (void)fprintf(stderr, "worker: %s: %s\n", name, strerror(errno));
    }
    return result;
}

static int run(worker *w, const arguments *a) {
    if (open_files(w, a) != 0) {
        return EXIT_USAGE;
    }
    w->digest = digest_new();
    if (w->digest == NULL) {
        (void)fprintf(stderr, "worker: OpenSSL has no SHA-256 here\n");
        return EXIT_GAVE_UP;
    }
    if (session_open(&w->session) != EMQ_OK) {
        return EXIT_GAVE_UP;
    }
    int64_t begin = now_us();
    int status = start(w) == EMQ_OK ? work(w) : EXIT_GAVE_UP;
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    if (emq_worker_get_stats(&stats, w->runtime) == EMQ_OK) {
        w->jobs = stats.completed;
    }
    w->microseconds = now_us() - begin;
    emq_worker_free(w->runtime); /* no handler runs any more */
    return status == EXIT_FINE && w->failed > 0 ? EXIT_FAILED : status;
}

int main(int argc, char **argv) {
    arguments a = {NULL, NULL, NULL};
    worker w;
    memset(&w, 0, sizeof(w));
    w.root = w.part.fd = w.failures.fd = -1;
    w.lease_ms = DEFAULT_LEASE_SECONDS * 1000;
    w.hang_after = NEVER;
    session_init(&w.session, "worker");
    int status = read_arguments(&w, &a, argc, argv);
    if (status == 0) {
        status = run(&w, &a);
        (void)printf("jobs=%" PRIu64 "\nfailed=%" PRIu64 "\nbytes=%" PRIu64
                     "\nmicroseconds=%" PRId64 "\n",
                     w.jobs, w.failed, w.bytes, w.microseconds);
    } else {
        status = status > 0 ? EXIT_FINE : EXIT_USAGE;
    }
    if (w.root >= 0) {
        (void)close(w.root);
    }
    digest_free(w.digest);
    manifest_close(&w.part);
    manifest_close(&w.failures);
    return session_close(&w.session, status);
}
