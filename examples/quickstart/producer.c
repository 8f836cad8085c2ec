/* SPDX-License-Identifier: Apache-2.0 */
/* Admits one job for each regular file below a folder. The job's payload is the file's path, as
 * bytes relative to the folder. Folders are read one at a time and paths can have any depth;
 * symbolic links are not followed, and nothing but folders is opened. */
#include "manifest.h"
#include "session.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct producer {
    session session;
    int root;
    int from_list;         /* the paths are given; folders among them are not read */
    tree_path *waiting;    /* folders to be read */
    const char **excluded; /* paths below root that are left out */
    size_t excluded_count;
    manifest failures;
    uint64_t files;   /* regular files, and jobs: one each */
    uint64_t links;   /* symbolic links, not followed */
    uint64_t special; /* fifos, sockets, devices, not opened */
    uint64_t failed;  /* listed with a reason */
} producer;

/* Admits one job, whose id the first call mints. After a lost answer the repeat goes out under the
 * same id: where the first one did arrive, it is a duplicate, which is as good as admitted. */
static int admit(producer *p, const char *path, size_t n) {
    session *s = &p->session;
    retry tries = RETRY_INIT;
    emq_id id = {{0}};
    int result = 0;
    int lost = 0;
    do {
        result = emq_enqueue(&id, s->client, s->queue, path, n);
        lost = lost || emq_err_class(result) == EMQ_CLASS_UNKNOWN;
        if (!lost) {
            id = (emq_id){{0}}; /* nothing of ours has this id: a duplicate would be another's */
        }
    } while (session_try_again(s, &tries, result));
    if (result < 0) {
        if (session_stop == 0) {
            session_report(s, "cannot enqueue", result);
        }
        return -1;
    }
    p->files++;
    return 0;
}

static int list_failure(producer *p, const char *reason, const char *path, size_t n) {
    p->failed++;
    if (manifest_add_failure(&p->failures, reason, n == 0 ? "." : path, n == 0 ? 1 : n) != 0) {
        (void)fprintf(stderr, "producer: cannot write the list of failures: %s\n", strerror(errno));
        return -1;
    }
    return 0;
}

static int is_excluded(const producer *p, const char *path, size_t n) {
    for (size_t i = 0; i < p->excluded_count; i++) {
        if (strlen(p->excluded[i]) == n && memcmp(p->excluded[i], path, n) == 0) {
            return 1;
        }
    }
    return 0;
}

static int push_folder(producer *p, const char *path, size_t n) {
    if (tree_push(&p->waiting, path, n) != 0) {
        (void)fprintf(stderr, "producer: out of memory\n");
        return -1;
    }
    return 0;
}

/* Decides by kind; `fd` and `name` say where the entry is, `path` how it is called from root. */
static int visit(producer *p, int fd, const char *name, const char *path, size_t n) {
    struct stat entry;
    if (is_excluded(p, path, n)) {
        return 0;
    }
    if (fstatat(fd, name, &entry, AT_SYMLINK_NOFOLLOW) != 0) {
        return list_failure(p, tree_reason(errno), path, n);
    }
    switch (entry.st_mode & S_IFMT) {
    case S_IFREG:
        return admit(p, path, n);
    case S_IFDIR:
        return p->from_list ? 0 : push_folder(p, path, n);
    case S_IFLNK:
        p->links++;
        return 0;
    default:
        p->special++;
        return 0;
    }
}

/* Visits the entries of an open folder. `path` has room for one more name. */
static int visit_entries(producer *p, DIR *entries, char *path, size_t n) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (entry == NULL) {
            return errno == 0 ? 0 : list_failure(p, tree_reason(errno), path, n);
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        size_t length = n;
        size_t name_length = strlen(entry->d_name);
        if (n > 0) {
            path[length++] = '/';
        }
        memcpy(path + length, entry->d_name, name_length + 1);
        length += name_length;
        if (session_stop != 0 || visit(p, dirfd(entries), entry->d_name, path, length) != 0) {
            return -1;
        }
        path[n] = '\0';
    }
}

static int read_folder(producer *p, const tree_path *f) {
    int fd = tree_open_folder(p->root, f->path, f->n);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (entries == NULL) {
        const char *reason = tree_reason(errno);
        if (fd >= 0) {
            (void)close(fd);
        }
        return list_failure(p, reason, f->path, f->n);
    }
    char *path = malloc(f->n + 1 + sizeof(((struct dirent *)0)->d_name));
    int result = -1;
    if (path != NULL) {
        memcpy(path, f->path, f->n + 1);
        result = visit_entries(p, entries, path, f->n);
    }
    free(path);
    (void)closedir(entries);
    return result;
}

static int read_waiting_folders(producer *p) {
    int result = 0;
    while (p->waiting != NULL) {
        tree_path *f = tree_pop(&p->waiting);
        if (result == 0) {
            result = read_folder(p, f);
        }
        free(f);
    }
    return result;
}

/* One path of a list: its folders are walked to without following a link either. */
static int visit_listed(producer *p, const char *path, size_t n) {
    char name[256];
    int fd = tree_open_parent(p->root, path, n, name);
    if (fd < 0) {
        const char *reason = errno == EINVAL ? "not a path below the folder" : tree_reason(errno);
        return list_failure(p, reason, path, n);
    }
    int result = visit(p, fd, name, path, n);
    (void)close(fd);
    return result;
}

static int read_list(producer *p, FILE *list) {
    char *path = NULL;
    size_t capacity = 0;
    int result = 0;
    ssize_t n = 0;
    while (result == 0 && session_stop == 0 && (n = getdelim(&path, &capacity, '\0', list)) > 0) {
        if (path[n - 1] == '\0') {
            n--;
        }
        result = visit_listed(p, path, (size_t)n);
    }
    free(path);
    if (result == 0 && ferror(list) && session_stop == 0) {
        (void)fprintf(stderr, "producer: cannot read the list of paths\n");
        return -1;
    }
    return session_stop == 0 ? result : -1;
}

static const char help[] =
    "Usage: producer [OPTION]... FOLDER\n"
    "\n"
    "Enqueues one job for each regular file below FOLDER; the payload is its path from there.\n"
    "Symbolic links are not followed; fifos, sockets and devices are not opened.\n"
    "\n"
    "  --list            take the files from standard input instead: paths relative to FOLDER,\n"
    "                    each with a NUL byte behind it\n"
    "  --exclude PATH    leave out this file or folder, relative to FOLDER; may be repeated\n"
    "  --failures FILE   append what could not be read, with its reason (default standard "
    "error)\n" SESSION_HELP "\n"
    "Prints files=, links=, special= and failed=. Exit status: 0 fine; 1 something could not be\n"
    "read and is listed; 2 wrong use; 3 it gave up; 128 + number after a signal.\n";

typedef struct arguments {
    const char *folder;
    const char *failures;
} arguments;

/* 0; 1 when there is nothing more to do; -1 for a wrong command line. */
static int read_arguments(producer *p, arguments *a, int argc, char **argv) {
    static const struct option options[] = {{"list", no_argument, NULL, 'l'},
                                            {"exclude", required_argument, NULL, 'x'},
                                            {"failures", required_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'H'},
                                            SESSION_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int letter = 0;
    while ((letter = session_next_option(&p->session, argc, argv, options)) != -1) {
        switch (letter) {
        case 'l':
            p->from_list = 1;
            break;
        case 'x':
            p->excluded[p->excluded_count++] = optarg;
            break;
        case 'f':
            a->failures = optarg;
            break;
        case 'H':
            (void)fputs(help, stdout);
            return 1;
        default:
            if (session_option(&p->session, letter, optarg) != 0) {
                return -1;
            }
        }
    }
    if (optind != argc - 1) {
        (void)fputs(help, stderr);
        return -1;
    }
    a->folder = argv[optind];
    return 0;
}

static int produce(producer *p, const arguments *a) {
    p->root = open(a->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->root < 0) {
        (void)fprintf(stderr, "producer: %s: %s\n", a->folder, strerror(errno));
        return EXIT_USAGE;
    }
    if (manifest_open(&p->failures, a->failures) != 0) {
        (void)fprintf(stderr, "producer: %s: %s\n", a->failures, strerror(errno));
        return EXIT_USAGE;
    }
    if (session_open(&p->session) != EMQ_OK) {
        return EXIT_GAVE_UP;
    }
    int result = p->from_list ? read_list(p, stdin) : push_folder(p, "", 0);
    if (read_waiting_folders(p) != 0 || result != 0) {
        return EXIT_GAVE_UP;
    }
    return p->failed == 0 ? EXIT_FINE : EXIT_FAILED;
}

int main(int argc, char **argv) {
    arguments a = {NULL, "/dev/stderr"};
    producer p;
    memset(&p, 0, sizeof(p));
    p.root = p.failures.fd = -1;
    session_init(&p.session, "producer");
    p.excluded = calloc((size_t)argc, sizeof(*p.excluded));
    if (p.excluded == NULL) {
        return EXIT_GAVE_UP;
    }
    int status = read_arguments(&p, &a, argc, argv);
    if (status == 0) {
        status = produce(&p, &a);
        (void)printf("files=%" PRIu64 "\nlinks=%" PRIu64 "\nspecial=%" PRIu64 "\nfailed=%" PRIu64
                     "\n",
                     p.files, p.links, p.special, p.failed);
    } else {
        status = status > 0 ? EXIT_FINE : EXIT_USAGE;
    }
    if (p.root >= 0) {
        (void)close(p.root);
    }
    manifest_close(&p.failures);
    free(p.excluded);
    return session_close(&p.session, status);
}
