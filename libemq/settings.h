/* SPDX-License-Identifier: Apache-2.0 */
/* A client's own copy of its options, checked and with the defaults filled in. */
#ifndef EMQ_LIBEMQ_SETTINGS_H
#define EMQ_LIBEMQ_SETTINGS_H

#include <emq/client.h>

typedef struct emq_settings {
    emq_client_options options; /* its strings are the ones below, or NULL */
    char *host;
    char *unix_path;
    char *username;
    char *password;
    char *client_name;
} emq_settings;

/* No version's struct is that large: such a size was never set. */
#define EMQ_OPTIONS_SIZE_MAX 4096

/* Copies options of any version over `out`, which holds the defaults and has `own` bytes; both
 * begin with their size. NULL means all defaults. 0 or EMQ_EINVAL. */
int emq_options_read(void *out, size_t own, const void *options);

/* 0; EMQ_EINVAL; EMQ_ENOMEM. On an error there is nothing to free. */
int emq_settings_init(emq_settings *settings, const emq_client_options *options);

void emq_settings_clear(emq_settings *settings);

#endif
