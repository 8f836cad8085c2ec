/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a manifest, in the very form that sha256sum writes and `sha256sum -c` reads, and lines
 * of a list of failures. A line is written whole or not at all. */
#ifndef EXAMPLES_MANIFEST_H
#define EXAMPLES_MANIFEST_H

#include <stddef.h>

/** A file that lines are appended to, and the memory of the current line. */
typedef struct manifest {
    int fd;
    char *line;
    size_t capacity;
} manifest;

/** Opens or makes the file. 0, or -1 with errno. */
int manifest_open(manifest *m, const char *path);

/**
 * Appends `<hex>  <path>`, with sha256sum's escapes when the path has a backslash or a line break.
 *
 * @return 0; -1 with errno, and then nothing of the line is in the file.
 */
int manifest_add(manifest *m, const char *hex, const char *path, size_t n);

/** Appends `<reason><tab><path>`, the path escaped in the same way. */
int manifest_add_failure(manifest *m, const char *reason, const char *path, size_t n);

void manifest_close(manifest *m);

#endif
