/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching files below a folder without ever following a symbolic link, on any component of the
 * path, and whatever happens to the tree meanwhile. Paths are bytes, relative to that folder. */
#ifndef EXAMPLES_TREE_H
#define EXAMPLES_TREE_H

#include <stddef.h>
#include <sys/stat.h>

/** One file, held between looking at it and looking again. */
typedef struct tree_file {
    int fd;           /**< open for reading */
    int folder;       /**< the folder that it is in */
    char name[256];   /**< its name there */
    struct stat seen; /**< as it was when it was opened */
} tree_file;

/** A path with its length, in a list: the last one in is the first one out. */
typedef struct tree_path {
    struct tree_path *next;
    size_t n;
    char path[];
} tree_path;

/** Puts a copy of a path in front of a list. @return 0; -1 without memory. */
int tree_push(tree_path **list, const char *path, size_t n);

/** Takes the first path out of a list that is not empty; to be freed with free. */
tree_path *tree_pop(tree_path **list);

/**
 * Opens a folder for openat and fdopendir, component by component: no link is followed, and a path
 * may be longer than PATH_MAX.
 *
 * @param root an open folder.
 * @param path relative, without `..`; empty for root itself.
 * @param n    its bytes.
 * @return a descriptor; -1 with errno (EINVAL: not a path below root).
 */
int tree_open_folder(int root, const char *path, size_t n);

/**
 * Opens the folder that a path's last component is in.
 *
 * @param name receives the last component.
 * @return as tree_open_folder.
 */
int tree_open_parent(int root, const char *path, size_t n, char name[256]);

/**
 * Opens a regular file. Anything else is looked at, and not opened.
 *
 * @return NULL, or the reason why not, as a static or thread-local text.
 */
const char *tree_open_file(tree_file *file, int root, const char *path, size_t n);

/**
 * Whether the file is still what was opened: same file under its name, same size and time.
 *
 * @return NULL, or what happened to it.
 */
const char *tree_check_file(const tree_file *file);

void tree_close_file(tree_file *file);

/** The reason of a failed file operation, for a list that people read. */
const char *tree_reason(int error);

#endif
