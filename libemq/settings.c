/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, checks, and structs of an older or newer size. */
#include "settings.h"

#include <string.h>

#include "dial.h"
#include "memory.h"

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

/* A caller built with older headers has fewer fields, and gets the defaults of the others. One
 * built with newer headers has more: they must be at their default, since they would go unheard. */
int emq_options_read(void *out, size_t own, const void *options) {
    if (options == NULL) {
        return EMQ_OK;
    }
    const unsigned char *bytes = options;
    size_t size = 0;
    memcpy(&size, options, sizeof(size));
    if (size < sizeof(size) || size > EMQ_OPTIONS_SIZE_MAX) {
        return EMQ_EINVAL;
    }
    for (size_t i = own; i < size; i++) {
        if (bytes[i] != 0) {
            return EMQ_EINVAL;
        }
    }
    memcpy(out, options, size < own ? size : own);
    memcpy(out, &own, sizeof(own));
    return EMQ_OK;
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
        *copy = emq_strdup(*option);
        *option = *copy;
        return *copy != NULL;
    }
    return 1;
}

int emq_settings_init(emq_settings *settings, const emq_client_options *options) {
    memset(settings, 0, sizeof(*settings));
    emq_client_options *o = &settings->options;
    emq_client_options_init(o);
    int result = emq_options_read(o, sizeof(*o), options);
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
    emq_free(settings->host);
    emq_free(settings->unix_path);
    emq_free(settings->username);
    emq_free(settings->password);
    emq_free(settings->client_name);
    memset(settings, 0, sizeof(*settings));
}
