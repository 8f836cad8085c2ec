/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords. They are read at each connect, so that one which was changed needs no new client. */
#include "secret.h"

#include <emq/error.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

#define NAME_MAX_QUOTED EMQ_TEXT_QUOTE_MAX

/* Room for one byte more than a file may have, and for the NUL. */
#define FILE_ROOM (EMQ_PASSWORD_FILE_MAX + 2)

static int allocate(emq_secret *secret, size_t size, emq_text *error) {
    secret->bytes = emq_calloc(1, size);
    secret->size = size;
    return secret->bytes != NULL ? EMQ_OK : emq_text_fail_plain(error, EMQ_ENOMEM);
}

void emq_secret_clear(emq_secret *secret) {
    if (secret->bytes != NULL) {
        explicit_bzero(secret->bytes, secret->size);
        emq_free(secret->bytes);
    }
    *secret = (emq_secret){NULL, 0};
}

static int copy(emq_secret *secret, const char *password, emq_text *error) {
    size_t size = strlen(password) + 1;
    int result = allocate(secret, size, error);
    if (result == EMQ_OK) {
        memcpy(secret->bytes, password, size);
    }
    return result;
}

static int fail_file(emq_text *error, int result, const char *path, const char *what) {
    return emq_text_fail(error, result, "password_file %.*s %s", NAME_MAX_QUOTED, path, what);
}

static int fail_errno(emq_text *error, const char *path, int failure) {
    switch (failure) {
    case ENOENT:
    case ENOTDIR:
        return fail_file(error, EMQ_EINVAL, path, "does not exist");
    case EACCES:
    case EPERM:
        return fail_file(error, EMQ_EINVAL, path, "may not be read");
    default:
        return emq_text_fail(error, EMQ_ESYSTEM, "password_file %.*s cannot be read (errno %d)",
                             NAME_MAX_QUOTED, path, failure);
    }
}

/* Reads until the end or until the room is used up; returns the bytes, or -1 (errno). */
static ssize_t read_all(int fd, char *bytes, size_t room) {
    size_t length = 0;
    while (length < room) {
        ssize_t n = read(fd, bytes + length, room - length);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -1 : (ssize_t)length;
        }
        length += (size_t)n;
    }
    return (ssize_t)length;
}

static int read_open_file(emq_secret *secret, int fd, const char *path, emq_text *error) {
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return fail_errno(error, path, errno);
    }
    if (!S_ISREG(about.st_mode)) { /* a pipe could keep a connect waiting for ever */
        return fail_file(error, EMQ_EINVAL, path, "is no regular file");
    }
    ssize_t n = read_all(fd, secret->bytes, FILE_ROOM - 1);
    if (n < 0) {
        return fail_errno(error, path, errno);
    }
    size_t length = (size_t)n;
    if (length > EMQ_PASSWORD_FILE_MAX) {
        return fail_file(error, EMQ_EINVAL, path, "has more than 64 KiB");
    }
    if (length > 0 && secret->bytes[length - 1] == '\n') {
        secret->bytes[--length] = '\0';
    }
    if (length == 0) {
        return fail_file(error, EMQ_EINVAL, path, "is empty");
    }
    if (strlen(secret->bytes) != length) {
        return fail_file(error, EMQ_EINVAL, path, "has a NUL byte in it");
    }
    return EMQ_OK;
}

int emq_secret_read_file(emq_secret *secret, const char *path, emq_text *error) {
    *secret = (emq_secret){NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return fail_errno(error, path, errno);
    }
    int result = allocate(secret, FILE_ROOM, error);
    if (result == EMQ_OK) {
        result = read_open_file(secret, fd, path, error);
    }
    (void)close(fd);
    if (result != EMQ_OK) {
        emq_secret_clear(secret);
    }
    return result;
}

static int read_environment(emq_secret *secret, const char *name, emq_text *error) {
    const char *password = getenv(name);
    if (password == NULL || password[0] == '\0') {
        return emq_text_fail(error, EMQ_EINVAL, "the environment variable %.*s is %s",
                             NAME_MAX_QUOTED, name, password == NULL ? "not set" : "empty");
    }
    return copy(secret, password, error);
}

int emq_secret_load(emq_secret *secret, const emq_client_options *options, emq_text *error) {
    *secret = (emq_secret){NULL, 0};
    if (options->password_file != NULL) {
        return emq_secret_read_file(secret, options->password_file, error);
    }
    if (options->password_env != NULL) {
        return read_environment(secret, options->password_env, error);
    }
    return options->password != NULL ? copy(secret, options->password, error) : EMQ_OK;
}
