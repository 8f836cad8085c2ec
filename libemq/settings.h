/* SPDX-License-Identifier: Apache-2.0 */
/* A client's own copy of its options, checked and with the defaults filled in. */
#ifndef EMQ_LIBEMQ_SETTINGS_H
#define EMQ_LIBEMQ_SETTINGS_H

#include <emq/client.h>

#include "address.h"
#include "text.h"

/* The sentinels in the order in which they are asked, which changes with what they answer. */
#define EMQ_SENTINELS_MAX 16
typedef struct emq_sentinels {
    int count; /* 0: a server is reached without any */
    emq_address list[EMQ_SENTINELS_MAX];
} emq_sentinels;

typedef struct emq_settings {
    emq_client_options options; /* its strings are the ones below, or NULL */
    char *host;
    char *unix_path;
    char *username;
    char *password;
    char *client_name;
    char *password_file;
    char *password_env;
    char *tls_ca_file;
    char *tls_ca_dir;
    char *tls_cert_file;
    char *tls_key_file;
    char *tls_server_name;
    char *sentinels;
    char *primary_name;
    char *sentinel_username;
    char *sentinel_password;
    char *sentinel_password_file;
    char *sentinel_password_env;
    emq_sentinels sentinel_list;
    int refusal; /* EMQ_OK, or what emq_settings_init answered, with its sentence */
    emq_text refusal_text;
} emq_settings;

/* Says which option is out of range. 0; EMQ_EINVAL. */
int emq_options_check(const emq_client_options *options, emq_text *error);

/* 0; EMQ_EINVAL; EMQ_ENOTLS; EMQ_ENOMEM. On an error there is nothing to free, and `refusal` and
 * its sentence stay readable. */
int emq_settings_init(emq_settings *settings, const emq_client_options *options);

/* Reads an options struct of `size` bytes into one that holds the defaults. A caller built with
 * older headers has fewer fields, and gets the defaults of the others. One built with newer headers
 * has more: they must be at their default, since they would go unheard. 0; EMQ_EINVAL. */
int emq_options_read(void *out, size_t out_size, const void *options, size_t size);

/* Makes settings that only say why they were refused; returns the result. */
int emq_settings_refuse(emq_settings *settings, int result, const emq_text *text);

void emq_settings_clear(emq_settings *settings);

#endif
