/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, checks, and structs of an older or newer size. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "dial.h"

#define OPTIONS_SIZE_MAX 4096 /* no version's struct is that large: such a size was never set */
#define DEFAULT_HOST "127.0.0.1"
#define DEFAULT_PORT 6379
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

static int options_valid(const emq_client_options *o) {
    if (o->reserved != 0 || o->database < 0) {
        return 0;
    }
    if (o->unix_path != NULL && !emq_unix_path_valid(o->unix_path)) {
        return 0;
    }
    if (o->host != NULL && o->host[0] == '\0') {
        return 0;
    }
    if (o->username != NULL && o->password == NULL) {
        return 0;
    }
    return o->client_name == NULL || client_name_valid(o->client_name);
}

static void fill_defaults(emq_client_options *o) {
    o->host = o->host != NULL ? o->host : DEFAULT_HOST;
    o->port = o->port != 0 ? o->port : DEFAULT_PORT;
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
        *copy = strdup(*option);
        *option = *copy;
        return *copy != NULL;
    }
    return 1;
}

int emq_settings_init(emq_settings *settings, const emq_client_options *options) {
    memset(settings, 0, sizeof(*settings));
    emq_client_options *o = &settings->options;
    int result = read_options(o, options);
    if (result != EMQ_OK) {
        return result;
    }
    if (!options_valid(o)) {
        return EMQ_EINVAL;
    }
    fill_defaults(o);
    if (!keep(&settings->host, &o->host) || !keep(&settings->unix_path, &o->unix_path) ||
        !keep(&settings->username, &o->username) || !keep(&settings->password, &o->password) ||
        !keep(&settings->client_name, &o->client_name)) {
        emq_settings_clear(settings);
        return EMQ_ENOMEM;
    }
    return EMQ_OK;
}

void emq_settings_clear(emq_settings *settings) {
    if (settings->password != NULL) {
        explicit_bzero(settings->password, strlen(settings->password));
    }
    free(settings->host);
    free(settings->unix_path);
    free(settings->username);
    free(settings->password);
    free(settings->client_name);
    memset(settings, 0, sizeof(*settings));
}
