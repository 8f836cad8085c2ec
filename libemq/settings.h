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

/* 0; EMQ_EINVAL; EMQ_ENOMEM. On an error there is nothing to free. */
int emq_settings_init(emq_settings *settings, const emq_client_options *options);

/* Reads an options struct of `size` bytes into one that holds the defaults. A caller built with
 * older headers has fewer fields, and gets the defaults of the others. One built with newer headers
 * has more: they must be at their default, since they would go unheard. 0; EMQ_EINVAL. */
int emq_options_read(void *out, size_t out_size, const void *options, size_t size);

void emq_settings_clear(emq_settings *settings);

#endif
