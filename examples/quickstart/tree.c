/* SPDX-License-Identifier: Apache-2.0 */
/* Safe access below a folder: see tree.h. */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* O_NONBLOCK: should a fifo take the file's place right before the open, nobody hangs on it. */
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
#define FOLDER_FLAGS (O_RDONLY | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC)

int tree_push(tree_path **list, const char *path, size_t n) {
    tree_path *first = malloc(sizeof(*first) + n + 1);
    if (first == NULL) {
        return -1;
    }
    memcpy(first->path, path, n);
    first->path[n] = '\0';
    first->n = n;
    first->next = *list;
    *list = first;
    return 0;
}

tree_path *tree_pop(tree_path **list) {
    tree_path *first = *list;
    *list = first->next;
    return first;
}

/* Takes the next component off a path. 0, or an errno. */
static int next_component(char out[256], const char **path, size_t *n) {
    const char *slash = memchr(*path, '/', *n);
    size_t length = slash == NULL ? *n : (size_t)(slash - *path);
    if (length > 255) {
        return ENAMETOOLONG;
    }
    memcpy(out, *path, length);
    out[length] = '\0';
    *path += slash == NULL ? length : length + 1;
    *n -= slash == NULL ? length : length + 1;
    /* an absolute path starts with an empty component */
    int inside = length > 0 && strlen(out) == length && strcmp(out, ".") != 0 &&
                 strcmp(out, "..") != 0 && (slash == NULL || *n > 0);
    return inside ? 0 : EINVAL;
}

static int replace_fd(int *fd, int next) {
    int error = errno;
    (void)close(*fd);
    errno = error;
    *fd = next;
    return next;
}

int tree_open_folder(int root, const char *path, size_t n) {
    char name[256];
    int folder = openat(root, ".", FOLDER_FLAGS);
    while (folder >= 0 && n > 0) {
        int error = next_component(name, &path, &n);
        if (error != 0) {
            (void)close(folder);
            errno = error;
            return -1;
        }
        (void)replace_fd(&folder, openat(folder, name, FOLDER_FLAGS));
    }
    return folder;
}

int tree_open_parent(int root, const char *path, size_t n, char name[256]) {
    size_t cut = n;
    while (cut > 0 && path[cut - 1] != '/') {
        cut--;
    }
    const char *last = path + cut;
    size_t length = n - cut;
    int error = cut == 1 ? EINVAL : next_component(name, &last, &length);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return tree_open_folder(root, path, cut == 0 ? 0 : cut - 1);
}

/* What is there instead of a regular file. */
static const char *other_kind(mode_t mode) {
    return S_ISLNK(mode)   ? "became a symbolic link"
           : S_ISDIR(mode) ? "became a folder"
                           : "became a special file";
}

static int same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static const char *open_in_folder(tree_file *file) {
    if (fstatat(file->folder, file->name, &file->seen, AT_SYMLINK_NOFOLLOW) != 0) {
        return tree_reason(errno);
    }
    if (!S_ISREG(file->seen.st_mode)) {
        return other_kind(file->seen.st_mode);
    }
    struct stat looked_at = file->seen;
    file->fd = openat(file->folder, file->name, FILE_FLAGS);
    if (file->fd < 0 || fstat(file->fd, &file->seen) != 0) {
        return errno == ELOOP ? other_kind(S_IFLNK) : tree_reason(errno);
    }
    if (!S_ISREG(file->seen.st_mode) || !same_file(&file->seen, &looked_at)) {
        return "was replaced while it was opened";
    }
    return NULL;
}

const char *tree_open_file(tree_file *file, int root, const char *path, size_t n) {
    file->fd = -1;
    file->folder = tree_open_parent(root, path, n, file->name);
    if (file->folder < 0) {
        return errno == EINVAL ? "not a path below the folder" : tree_reason(errno);
    }
    const char *reason = open_in_folder(file);
    if (reason != NULL) {
        tree_close_file(file);
    }
    return reason;
}

const char *tree_check_file(const tree_file *file) {
    struct stat open_one;
    struct stat named;
    if (fstat(file->fd, &open_one) != 0) {
        return tree_reason(errno);
    }
    if (fstatat(file->folder, file->name, &named, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? "vanished while it was hashed" : tree_reason(errno);
    }
    if (!same_file(&open_one, &named)) {
        return "was replaced while it was hashed";
    }
    if (open_one.st_size != file->seen.st_size ||
        open_one.st_mtim.tv_sec != file->seen.st_mtim.tv_sec ||
        open_one.st_mtim.tv_nsec != file->seen.st_mtim.tv_nsec) {
        return "changed while it was hashed";
    }
    return NULL;
}

void tree_close_file(tree_file *file) {
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    if (file->folder >= 0) {
        (void)close(file->folder);
    }
    file->fd = file->folder = -1;
}

const char *tree_reason(int error) {
    switch (error) {
    case ENOENT:
        return "vanished";
    case ENOTDIR: /* O_DIRECTORY on a link, or a file where a folder was */
    case ELOOP:
        return "a folder on its path became something else";
    default:
        return strerror(error);
    }
}
