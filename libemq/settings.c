/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, checks, and structs of an older or newer size. */
#include "settings.h"

#include <string.h>

#include "dial.h"
#include "memory.h"
#include "tls.h"

#define OPTIONS_SIZE_MAX 4096 /* no version's struct is that large: such a size was never set */
#define DEFAULT_HOST "127.0.0.1"
#define DEFAULT_PORT 6379
#define DEFAULT_SENTINEL_PORT 26379
#define DEFAULT_CLIENT_NAME "libemq"
#define DEFAULT_TIMEOUT_MS 5000
#define DEFAULT_MAX_PAYLOAD ((size_t)8 * 1024 * 1024)

void emq_client_options_init(emq_client_options *options) {
    if (options != NULL) {
        *options = (emq_client_options)EMQ_CLIENT_OPTIONS_INIT;
    }
}

int emq_options_read(void *out, size_t out_size, const void *options, size_t size) {
    if (size < sizeof(size) || size > OPTIONS_SIZE_MAX) {
        return EMQ_EINVAL;
    }
    const unsigned char *bytes = options;
    for (size_t i = out_size; i < size; i++) {
        if (bytes[i] != 0) {
            return EMQ_EINVAL;
        }
    }
    memcpy(out, options, size < out_size ? size : out_size);
    return EMQ_OK;
}

static int read_options(emq_client_options *out, const emq_client_options *options) {
    emq_client_options_init(out);
    int result =
        options == NULL ? EMQ_OK : emq_options_read(out, sizeof(*out), options, options->size);
    out->size = sizeof(*out);
    return result;
}

/* What CLIENT SETNAME takes. */
static int client_name_valid(const char *name) {
    for (; *name != '\0'; name++) {
        if (*name < '!' || *name > '~') {
            return 0;
        }
    }
    return 1;
}

/* The sentence names the option, and never its value: a password may stand in the wrong one. */
static int check_address(const emq_client_options *o, emq_text *error) {
    if (o->reserved != 0) {
        return emq_text_fail(error, EMQ_EINVAL, "reserved is not 0");
    }
    if (o->database < 0) {
        return emq_text_fail(error, EMQ_EINVAL, "database is below 0");
    }
    if (o->unix_path != NULL && !emq_unix_path_valid(o->unix_path)) {
        return emq_text_fail(error, EMQ_EINVAL,
                             "unix_path is empty or longer than a socket's path");
    }
    if (o->host != NULL && o->host[0] == '\0') {
        return emq_text_fail(error, EMQ_EINVAL, "host is empty");
    }
    if (o->client_name != NULL && !client_name_valid(o->client_name)) {
        return emq_text_fail(error, EMQ_EINVAL,
                             "client_name has a space or a byte that is not ASCII");
    }
    return EMQ_OK;
}

/* A password has one source at most, and a user needs one. `of` is in front of the options' names.
 */
static int check_password(const char *of, const char *username, const char *password,
                          const char *file, const char *env, emq_text *error) {
    int sources = (password != NULL) + (file != NULL) + (env != NULL);
    if (sources > 1) {
        return emq_text_fail(error, EMQ_EINVAL,
                             "more than one of %spassword, %spassword_file and %spassword_env is "
                             "set",
                             of, of, of);
    }
    if (username != NULL && sources == 0) {
        return emq_text_fail(error, EMQ_EINVAL, "%susername is set without a password", of);
    }
    if (file != NULL && file[0] == '\0') {
        return emq_text_fail(error, EMQ_EINVAL, "%spassword_file is empty", of);
    }
    if (env != NULL && env[0] == '\0') {
        return emq_text_fail(error, EMQ_EINVAL, "%spassword_env is empty", of);
    }
    return EMQ_OK;
}

static int check_passwords(const emq_client_options *o, emq_text *error) {
    int result =
        check_password("", o->username, o->password, o->password_file, o->password_env, error);
    return result != EMQ_OK
               ? result
               : check_password("sentinel_", o->sentinel_username, o->sentinel_password,
                                o->sentinel_password_file, o->sentinel_password_env, error);
}

static int check_sentinels(const emq_client_options *o, emq_text *error) {
    emq_sentinels read;
    int wants_sentinels = o->primary_name != NULL || o->sentinel_username != NULL ||
                          o->sentinel_password != NULL || o->sentinel_password_file != NULL ||
                          o->sentinel_password_env != NULL;
    if (o->sentinels == NULL) {
        return wants_sentinels ? emq_text_fail(error, EMQ_EINVAL,
                                               "an option of Sentinel is set without sentinels")
                               : EMQ_OK;
    }
    if (o->host != NULL || o->port != 0 || o->unix_path != NULL) {
        return emq_text_fail(error, EMQ_EINVAL, "sentinels is set with host, port or unix_path");
    }
    if (o->primary_name == NULL || o->primary_name[0] == '\0') {
        return emq_text_fail(error, EMQ_EINVAL, "primary_name is missing beside sentinels");
    }
    const char *wrong = emq_addresses_read(read.list, EMQ_SENTINELS_MAX, &read.count, o->sentinels);
    return wrong == NULL ? EMQ_OK : emq_text_fail(error, EMQ_EINVAL, "sentinels %s", wrong);
}

/* An option of TLS without TLS would go unheard, and let a connection look safer than it is. */
static int check_tls(const emq_client_options *o, emq_text *error) {
    int wants_tls = o->tls_ca_file != NULL || o->tls_ca_dir != NULL || o->tls_cert_file != NULL ||
                    o->tls_key_file != NULL || o->tls_server_name != NULL || o->tls_insecure != 0;
    if ((o->tls != 0 && o->tls != 1) || (o->tls_insecure != 0 && o->tls_insecure != 1)) {
        return emq_text_fail(error, EMQ_EINVAL, "tls or tls_insecure is neither 0 nor 1");
    }
    if (o->tls == 0 && wants_tls) {
        return emq_text_fail(error, EMQ_EINVAL, "an option of TLS is set without tls");
    }
    if (o->tls != 0 && o->unix_path != NULL) {
        return emq_text_fail(error, EMQ_EINVAL, "tls is set with unix_path");
    }
    if ((o->tls_cert_file == NULL) != (o->tls_key_file == NULL)) {
        return emq_text_fail(error, EMQ_EINVAL, "of tls_cert_file and tls_key_file one is missing");
    }
    if (o->tls_server_name != NULL && o->tls_server_name[0] == '\0') {
        return emq_text_fail(error, EMQ_EINVAL, "tls_server_name is empty");
    }
    return EMQ_OK;
}

int emq_options_check(const emq_client_options *options, emq_text *error) {
    int result = check_address(options, error);
    if (result == EMQ_OK) {
        result = check_passwords(options, error);
    }
    if (result == EMQ_OK) {
        result = check_sentinels(options, error);
    }
    return result == EMQ_OK ? check_tls(options, error) : result;
}

static void fill_defaults(emq_client_options *o) {
    if (o->sentinels == NULL) {
        o->host = o->host != NULL ? o->host : DEFAULT_HOST;
        o->port = o->port != 0 ? o->port : DEFAULT_PORT;
    }
    o->client_name = o->client_name != NULL ? o->client_name : DEFAULT_CLIENT_NAME;
    if (o->connect_timeout_ms == 0) {
        o->connect_timeout_ms = DEFAULT_TIMEOUT_MS;
    }
    if (o->command_timeout_ms == 0) {
        o->command_timeout_ms = DEFAULT_TIMEOUT_MS;
    }
    if (o->max_payload == 0) {
        o->max_payload = DEFAULT_MAX_PAYLOAD;
    }
}

/* Makes the option point to a copy of its own; returns 0 when there is no memory. */
static int keep(char **copy, const char **option) {
    if (*option != NULL) {
        *copy = emq_strdup(*option);
        *option = *copy;
        return *copy != NULL;
    }
    return 1;
}

static int keep_all(emq_settings *s, emq_client_options *o) {
    return keep(&s->host, &o->host) && keep(&s->unix_path, &o->unix_path) &&
           keep(&s->username, &o->username) && keep(&s->password, &o->password) &&
           keep(&s->client_name, &o->client_name) && keep(&s->password_file, &o->password_file) &&
           keep(&s->password_env, &o->password_env) && keep(&s->tls_ca_file, &o->tls_ca_file) &&
           keep(&s->tls_ca_dir, &o->tls_ca_dir) && keep(&s->tls_cert_file, &o->tls_cert_file) &&
           keep(&s->tls_key_file, &o->tls_key_file) &&
           keep(&s->tls_server_name, &o->tls_server_name) && keep(&s->sentinels, &o->sentinels) &&
           keep(&s->primary_name, &o->primary_name) &&
           keep(&s->sentinel_username, &o->sentinel_username) &&
           keep(&s->sentinel_password, &o->sentinel_password) &&
           keep(&s->sentinel_password_file, &o->sentinel_password_file) &&
           keep(&s->sentinel_password_env, &o->sentinel_password_env);
}

/* The list was checked. */
static void read_sentinels(emq_sentinels *list, const char *text) {
    list->count = 0;
    if (text != NULL) {
        (void)emq_addresses_read(list->list, EMQ_SENTINELS_MAX, &list->count, text);
    }
    for (int i = 0; i < list->count; i++) {
        if (list->list[i].port == 0) {
            list->list[i].port = DEFAULT_SENTINEL_PORT;
        }
    }
}

static int load(emq_settings *settings, const emq_client_options *options, emq_text *error) {
    emq_client_options *o = &settings->options;
    int result = read_options(o, options);
    if (result != EMQ_OK) {
        return emq_text_fail(error, result,
                             "the options have a wrong size, or are of a later version");
    }
    result = emq_options_check(o, error);
    if (result != EMQ_OK) {
        return result;
    }
    if (o->tls != 0 && !emq_tls_is_built_in()) {
        return emq_text_fail_plain(error, EMQ_ENOTLS);
    }
    fill_defaults(o);
    read_sentinels(&settings->sentinel_list, o->sentinels);
    return keep_all(settings, o) ? EMQ_OK : emq_text_fail_plain(error, EMQ_ENOMEM);
}

/* The defaults are there all the same: a client with such settings has limits, too. */
int emq_settings_refuse(emq_settings *settings, int result, const emq_text *text) {
    emq_settings_clear(settings);
    fill_defaults(&settings->options);
    settings->refusal = result;
    settings->refusal_text = *text;
    return result;
}

int emq_settings_init(emq_settings *settings, const emq_client_options *options) {
    emq_text error;
    memset(settings, 0, sizeof(*settings));
    int result = load(settings, options, &error);
    return result == EMQ_OK ? EMQ_OK : emq_settings_refuse(settings, result, &error);
}

static void wipe(char *password) {
    if (password != NULL) {
        explicit_bzero(password, strlen(password));
    }
}

void emq_settings_clear(emq_settings *settings) {
    wipe(settings->password);
    wipe(settings->sentinel_password);
    emq_free(settings->host);
    emq_free(settings->unix_path);
    emq_free(settings->username);
    emq_free(settings->password);
    emq_free(settings->client_name);
    emq_free(settings->password_file);
    emq_free(settings->password_env);
    emq_free(settings->tls_ca_file);
    emq_free(settings->tls_ca_dir);
    emq_free(settings->tls_cert_file);
    emq_free(settings->tls_key_file);
    emq_free(settings->tls_server_name);
    emq_free(settings->sentinels);
    emq_free(settings->primary_name);
    emq_free(settings->sentinel_username);
    emq_free(settings->sentinel_password);
    emq_free(settings->sentinel_password_file);
    emq_free(settings->sentinel_password_env);
    memset(settings, 0, sizeof(*settings));
}
