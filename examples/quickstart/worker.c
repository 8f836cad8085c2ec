/* SPDX-License-Identifier: Apache-2.0 */
/* Works the jobs of the producer: claims a path, computes the file's SHA-256, writes the line, and
 * only then completes the job. Whatever happens between the two, a job is never completed without
 * its line; done twice it gives the same line twice, which merging makes one. Every few seconds it
 * takes back the leases of workers that died.
 *
 * A file that can't be hashed is a result too: it goes to the list of failures, with its reason,
 * and its job is completed. */
#include "digest.h"
#include "manifest.h"
#include "session.h"
#include "tree.h"
#include "upkeep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The lease is chosen before the job is known, so it has to be enough for the largest file. */
#define DEFAULT_LEASE_SECONDS 3600

/* How long the server may hold back the answer that there is no job. A stop signal and the file of
 * --finished are looked at in between. */
#define WAIT_MS 250

typedef struct worker {
    session session; /* settles and sweeps */
    session claims;  /* waits for work: a call that waits holds up all others of its client */
    upkeep upkeep;
    int root;
    uint32_t lease_ms;
    const char *finished; /* once this file exists, an empty queue is the end */
    digest *digest;
    manifest part;
    manifest failures;
    uint64_t jobs;
    uint64_t failed;
    uint64_t bytes;
    int64_t microseconds; /* from the first claim to the end */
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
static int write_line(worker *w, const emq_job *job) {
    char hex[DIGEST_HEX + 1];
    size_t n = 0;
    const char *path = emq_job_get_payload(job, &n);
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

/* Completes the job, more than once if need be: "gone" then says that an earlier try arrived. */
static int settle(worker *w, const emq_lease *lease) {
    session *s = &w->session;
    retry tries = RETRY_INIT;
    int result = 0;
    do {
        result = emq_complete(s->client, lease);
    } while (session_try_again(s, &tries, result));
    if (emq_err_class(result) == EMQ_CLASS_STALE) {
        return 0; /* somebody else holds the job now, and will write the same line */
    }
    if (result < 0) {
        session_report(s, "cannot complete a job", result);
        return -1;
    }
    w->jobs++;
    return 0;
}

/* Waits for the next job. 0; 1 when there will be none; -1 when it gave up.
 *
 * "Empty" says no more than: look again. A wait that the server ended, for a role change or because
 * somebody unblocked it, is tried again like a connection that was lost. */
static int next_job(emq_jobs **jobs, worker *w) {
    session *s = &w->claims;
    retry tries = RETRY_INIT;
    while (session_stop == 0 && upkeep_run(&w->upkeep, &w->session) == 0) {
        /* asked before the claim: a job that came in between is seen by the next round */
        int finished = w->finished != NULL && access(w->finished, F_OK) == 0;
        int result = emq_claims(jobs, s->client, s->queue, w->lease_ms, 1, finished ? 0 : WAIT_MS);
        if (result == EMQ_OK) {
            return 0;
        }
        if (result == EMQ_EMPTY && finished) {
            return 1;
        }
        if (result == EMQ_EMPTY) {
            tries = (retry)RETRY_INIT;
        } else if (!session_try_again(s, &tries, result)) {
            if (session_stop == 0) {
                session_report(s, "cannot claim a job", result);
            }
            return -1;
        }
    }
    return -1;
}

static int64_t now_us(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int work(worker *w) {
    for (;;) {
        emq_jobs *jobs = NULL;
        int result = next_job(&jobs, w);
        if (result != 0) {
            return result < 0 ? EXIT_GAVE_UP : w->failed > 0 ? EXIT_FAILED : EXIT_FINE;
        }
        const emq_job *job = emq_jobs_get_job(jobs, 0);
        result = write_line(w, job);
        if (result == 0) {
            result = settle(w, emq_job_get_lease(job));
        }
        emq_jobs_free(jobs);
        if (result != 0) {
            return EXIT_GAVE_UP;
        }
    }
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
    "  --lease SECONDS   how long a claimed job is held, at least what the largest file takes\n"
    "                    (default 3600)\n" SESSION_HELP "\n"
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
                                            {"help", no_argument, NULL, 'H'},
                                            SESSION_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int letter = 0;
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
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
    w->claims = w->session;
    if (session_open(&w->session) != EMQ_OK || session_open(&w->claims) != EMQ_OK) {
        return EXIT_GAVE_UP;
    }
    upkeep_init(&w->upkeep);
    int64_t start = now_us();
    int status = work(w);
    w->microseconds = now_us() - start;
    return status;
}

int main(int argc, char **argv) {
    arguments a = {NULL, NULL, NULL};
    worker w;
    memset(&w, 0, sizeof(w));
    w.root = w.part.fd = w.failures.fd = -1;
    w.lease_ms = DEFAULT_LEASE_SECONDS * 1000;
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
    (void)session_close(&w.claims, status);
    return session_close(&w.session, status);
}
