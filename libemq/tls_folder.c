/* SPDX-License-Identifier: Apache-2.0 */
/* Reading folders of authorities. */
#include "tls_folder.h"

#include <dirent.h>
#include <emq/error.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dial.h"

int emq_tls_find_shortage(void) {
    unsigned long first = ERR_peek_error();
    return ERR_GET_LIB(first) == ERR_LIB_SYS && emq_is_shortage(ERR_GET_REASON(first))
               ? ERR_GET_REASON(first)
               : 0;
}

int emq_tls_fail_shortage(emq_text *error, int failure) {
    return emq_text_fail(error, EMQ_ESYSTEM, "the files of TLS cannot be read (errno %d)", failure);
}

/* Whether OpenSSL would find an authority under this name: hash, dot, number. */
static int is_hashed(const char *name) {
    size_t digits = strspn(name, "0123456789abcdef");
    if (digits != 8 || name[8] != '.' || name[9] == '\0') {
        return 0;
    }
    return name[9 + strspn(name + 9, "0123456789")] == '\0';
}

static int take_file(X509_LOOKUP *into, const char *folder, const char *name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        return 0;
    }
    ERR_clear_error();
    int is_taken = X509_load_cert_file(into, path, X509_FILETYPE_PEM) > 0;
    int shortage = is_taken ? 0 : emq_tls_find_shortage();
    ERR_clear_error();
    return shortage;
}

/* The next entry. NULL at the end; when the reading broke off, *failure is the errno of that. */
static const struct dirent *read_entry(DIR *folder, int *failure) {
    errno = 0;
    const struct dirent *entry = readdir(folder);
    *failure = entry == NULL ? errno : 0;
    return entry;
}

/* 0, or an errno. */
static int take_folder(X509_LOOKUP *into, const char *path) {
    const struct dirent *entry = NULL;
    int failure = 0;
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return emq_is_shortage(errno) ? errno : 0;
    }
    while (failure == 0 && (entry = read_entry(folder, &failure)) != NULL) {
        if (is_hashed(entry->d_name)) {
            failure = take_file(into, path, entry->d_name);
        }
    }
    (void)closedir(folder);
    return failure;
}

int emq_tls_take_folders(SSL_CTX *context, const char *list, emq_text *error) {
    char path[PATH_MAX];
    int failure = 0;
    X509_LOOKUP *into = X509_STORE_add_lookup(SSL_CTX_get_cert_store(context), X509_LOOKUP_file());
    if (into == NULL) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    while (failure == 0 && *list != '\0') {
        size_t n = strcspn(list, ":");
        if (n > 0 && n < sizeof(path)) {
            memcpy(path, list, n);
            path[n] = '\0';
            failure = take_folder(into, path);
        }
        list += n + (list[n] == ':');
    }
    return failure == 0 ? EMQ_OK : emq_tls_fail_shortage(error, failure);
}

int emq_tls_take_system_folders(SSL_CTX *context, emq_text *error) {
    const char *set = getenv(X509_get_default_cert_dir_env());
    return emq_tls_take_folders(context, set != NULL ? set : X509_get_default_cert_dir(), error);
}
