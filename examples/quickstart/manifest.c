/* SPDX-License-Identifier: Apache-2.0 */
/* Writing manifest lines: see manifest.h. */
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int manifest_open(manifest *m, const char *path) {
    m->line = NULL;
    m->capacity = 0;
    m->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return m->fd < 0 ? -1 : 0;
}

static int make_room(manifest *m, size_t size) {
    if (size > m->capacity) {
        char *line = realloc(m->line, size * 2);
        if (line == NULL) {
            return -1;
        }
        m->line = line;
        m->capacity = size * 2;
    }
    return 0;
}

/* The three bytes that sha256sum escapes; without them a line is a line and a name is itself. */
static char escape_of(char byte) {
    switch (byte) {
    case '\\':
        return '\\';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    default:
        return '\0';
    }
}

static size_t put_path(char *out, const char *path, size_t n, int *escaped) {
    size_t length = 0;
    if (n == 1 && path[0] == '-') { /* sha256sum takes this name for its standard input */
        path = "./-";
        n = 3;
    }
    for (size_t i = 0; i < n; i++) {
        char letter = escape_of(path[i]);
        if (letter == '\0') {
            out[length++] = path[i];
            continue;
        }
        out[length++] = '\\';
        out[length++] = letter;
        *escaped = 1;
    }
    return length;
}

/* One write for the whole line, so that a process that is killed leaves it out or has it in. Where
 * the disk is full and a part of the line came through, that part is taken back. */
static int append(const manifest *m, const char *line, size_t n) {
    ssize_t written = -1;
    do {
        written = write(m->fd, line, n);
    } while (written < 0 && errno == EINTR);
    if (written == (ssize_t)n) {
        return 0;
    }
    if (written > 0) {
        struct stat now;
        if (fstat(m->fd, &now) == 0) {
            (void)!ftruncate(m->fd, now.st_size - written);
        }
        errno = ENOSPC;
    }
    return -1;
}

int manifest_add(manifest *m, const char *hex, const char *path, size_t n) {
    size_t digest_length = strlen(hex);
    /* backslash, digest, two spaces, every byte escaped (or `-` as `./-`), line break */
    if (make_room(m, digest_length + 2 * n + 6) != 0) {
        return -1;
    }
    int escaped = 0;
    char *start = m->line + 1;
    size_t length = (size_t)(stpcpy(stpcpy(start, hex), "  ") - start);
    length += put_path(start + length, path, n, &escaped);
    start[length++] = '\n';
    if (escaped) {
        *--start = '\\';
        length++;
    }
    return append(m, start, length);
}

int manifest_add_failure(manifest *m, const char *reason, const char *path, size_t n) {
    size_t length = strlen(reason);
    if (make_room(m, length + 2 * n + 4) != 0) {
        return -1;
    }
    int escaped = 0;
    memcpy(m->line, reason, length);
    m->line[length++] = '\t';
    length += put_path(m->line + length, path, n, &escaped);
    m->line[length++] = '\n';
    return append(m, m->line, length);
}

void manifest_close(manifest *m) {
    if (m->fd >= 0) {
        (void)close(m->fd);
    }
    free(m->line);
    m->line = NULL;
    m->fd = -1;
}
