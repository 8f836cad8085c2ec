/* SPDX-License-Identifier: Apache-2.0 */
/* URLs. One copy of the text is cut and decoded in place, since decoding only shrinks it; the
 * options point into that copy, and the host to a place beside it. No sentence quotes a part that
 * may hold the password: not even when a byte of it was forgotten to be encoded, so that it looks
 * like another part. */
#include "url.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "address.h"
#include "memory.h"
#include "settings.h"

#define KEY_MAX 32 /* bytes of an unknown key that are quoted */

struct emq_url {
    emq_client_options options;
    emq_address address; /* of the server, when it has one */
    size_t size;         /* bytes at text */
    char *text;
};

typedef enum place { PLACE_SERVER, PLACE_SENTINELS, PLACE_SOCKET } place;

static const struct scheme {
    const char *prefix;
    place place;
    int tls;
} schemes[] = {
    {"redis://", PLACE_SERVER, 0},
    {"valkey://", PLACE_SERVER, 0},
    {"rediss://", PLACE_SERVER, 1},
    {"valkeys://", PLACE_SERVER, 1},
    {"redis+sentinel://", PLACE_SENTINELS, 0},
    {"valkey+sentinel://", PLACE_SENTINELS, 0},
    {"rediss+sentinel://", PLACE_SENTINELS, 1},
    {"valkeys+sentinel://", PLACE_SENTINELS, 1},
    {"unix://", PLACE_SOCKET, 0},
};

/* What a key's value is, and where it goes. */
typedef enum key_kind { KIND_TEXT, KIND_DATABASE, KIND_MS, KIND_BYTES, KIND_FLAG } key_kind;

#define AT(field) offsetof(emq_client_options, field)
static const struct key {
    const char *name;
    key_kind kind;
    size_t at;
} keys[] = {
    {"db", KIND_DATABASE, AT(database)},
    {"name", KIND_TEXT, AT(client_name)},
    {"connect_timeout_ms", KIND_MS, AT(connect_timeout_ms)},
    {"command_timeout_ms", KIND_MS, AT(command_timeout_ms)},
    {"max_payload", KIND_BYTES, AT(max_payload)},
    {"password_file", KIND_TEXT, AT(password_file)},
    {"password_env", KIND_TEXT, AT(password_env)},
    {"tls_ca_file", KIND_TEXT, AT(tls_ca_file)},
    {"tls_ca_dir", KIND_TEXT, AT(tls_ca_dir)},
    {"tls_cert_file", KIND_TEXT, AT(tls_cert_file)},
    {"tls_key_file", KIND_TEXT, AT(tls_key_file)},
    {"tls_server_name", KIND_TEXT, AT(tls_server_name)},
    {"tls_insecure", KIND_FLAG, AT(tls_insecure)},
    {"sentinel_username", KIND_TEXT, AT(sentinel_username)},
    {"sentinel_password", KIND_TEXT, AT(sentinel_password)},
    {"sentinel_password_file", KIND_TEXT, AT(sentinel_password_file)},
    {"sentinel_password_env", KIND_TEXT, AT(sentinel_password_env)},
};
#define KEYS ((int)(sizeof(keys) / sizeof(keys[0])))
#define KEY_DATABASE 0

/* The parts of a URL, cut out of its text; NULL where there is none. */
typedef struct parts {
    const struct scheme *scheme;
    char *userinfo;
    char *address; /* host and port */
    char *path;    /* behind the slash; with it for a Unix socket */
    char *query;
    unsigned seen; /* the keys that stood there, a bit each */
} parts;

static int refuse(emq_text *error, const char *what) {
    return emq_text_fail(error, EMQ_EINVAL, "the URL %s", what);
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes a part in place. */
static int decode(char *part, emq_text *error) {
    char *to = part;
    for (const char *from = part; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_value(from[1]);
        int low = high < 0 ? -1 : hex_value(from[2]);
        if (low < 0) {
            return refuse(error, "has a % without two hexadecimal digits behind it");
        }
        if (high == 0 && low == 0) {
            return refuse(error, "has a NUL byte in it (%00)");
        }
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return EMQ_OK;
}

/* Cuts the text at the first of these bytes; what is behind it, or NULL. */
static char *cut_at(char *text, char separator) {
    char *found = strchr(text, separator);
    if (found == NULL) {
        return NULL;
    }
    *found = '\0';
    return found + 1;
}

static int check_bytes(const char *text, emq_text *error) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7f) {
            return refuse(error, "has a space or a control byte in it: write it as %XX");
        }
        if (*text == '#') {
            return refuse(error, "has a # in it: write it as %23");
        }
    }
    return EMQ_OK;
}

/* Cuts the text into its parts; nothing is decoded yet. */
static int split(parts *p, char *text, emq_text *error) {
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncasecmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) == 0) {
            p->scheme = &schemes[i];
        }
    }
    if (p->scheme == NULL) {
        return refuse(error,
                      "starts with none of redis:// valkey:// rediss:// valkeys:// (or one of "
                      "these with +sentinel, as valkey+sentinel://) unix://");
    }
    int result = check_bytes(text, error);
    if (result != EMQ_OK) {
        return result;
    }
    char *authority = text + strlen(p->scheme->prefix);
    size_t length = strcspn(authority, "/?");
    if (strchr(authority + length, '@') != NULL) {
        return refuse(error, "has an @ behind the address: write / ? # @ in a user or a password, "
                             "and @ elsewhere, as %XX");
    }
    p->query = cut_at(authority, '?');
    p->path = cut_at(authority, '/');
    p->address = authority;
    char *at = strrchr(authority, '@');
    if (at != NULL) {
        *at = '\0';
        p->userinfo = authority;
        p->address = at + 1;
    }
    return EMQ_OK;
}

static int read_userinfo(emq_client_options *o, char *userinfo, emq_text *error) {
    if (userinfo == NULL) {
        return EMQ_OK;
    }
    char *password = cut_at(userinfo, ':');
    if ((password == NULL && *userinfo == '\0') || (password != NULL && *password == '\0')) {
        return refuse(error, "has an empty user or password in front of the @");
    }
    int result = decode(userinfo, error);
    if (result == EMQ_OK && password != NULL) {
        result = decode(password, error);
    }
    o->username = *userinfo != '\0' ? userinfo : NULL;
    o->password = password;
    return result;
}

static int read_server(emq_url *url, parts *p, emq_text *error) {
    emq_client_options *o = &url->options;
    uint64_t number = 0;
    int result = decode(p->address, error);
    if (result != EMQ_OK) {
        return result;
    }
    const char *wrong = emq_address_read(&url->address, p->address, strlen(p->address));
    if (wrong != NULL) {
        return refuse(error, wrong);
    }
    o->host = url->address.host;
    o->port = url->address.port;
    if (p->path == NULL || *p->path == '\0') {
        return EMQ_OK;
    }
    if (!emq_number_read(&number, p->path, strlen(p->path), INT_MAX)) {
        return refuse(error, "has a path that is no database number");
    }
    o->database = (int)number;
    p->seen |= 1U << KEY_DATABASE;
    return EMQ_OK;
}

/* What is wrong with the list is told when the options are checked. */
static int read_sentinels(emq_url *url, const parts *p, emq_text *error) {
    if (p->path == NULL || *p->path == '\0') {
        return refuse(error, "has no name of a primary (valkey+sentinel://host,host/name)");
    }
    if (strchr(p->path, '/') != NULL) {
        return refuse(error, "has more than the name of a primary behind its hosts");
    }
    int result = decode(p->address, error);
    if (result == EMQ_OK) {
        result = decode(p->path, error);
    }
    url->options.sentinels = p->address;
    url->options.primary_name = p->path;
    return result;
}

static int read_socket(emq_url *url, const parts *p, emq_text *error) {
    if (*p->address != '\0' || p->path == NULL || *p->path == '\0') {
        return refuse(error, "has no absolute path of a socket (unix:///path/of/the/socket)");
    }
    int result = decode(p->path, error);
    /* the slash was cut: a byte in front of the path is there to take it back */
    p->path[-1] = '/';
    url->options.unix_path = p->path - 1;
    return result;
}

static int read_place(emq_url *url, parts *p, emq_text *error) {
    switch (p->scheme->place) {
    case PLACE_SERVER:
        return read_server(url, p, error);
    case PLACE_SENTINELS:
        return read_sentinels(url, p, error);
    default:
        return read_socket(url, p, error);
    }
}

static int find_key(const char *name) {
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Stores a value; returns 0 when it is out of range. */
static int store(emq_client_options *o, const struct key *key, const char *value) {
    static const uint64_t limits[] = {[KIND_DATABASE] = INT_MAX,
                                      [KIND_MS] = UINT32_MAX,
                                      [KIND_BYTES] = SIZE_MAX,
                                      [KIND_FLAG] = 1};
    void *field = (char *)o + key->at;
    uint64_t number = 0;
    if (key->kind == KIND_TEXT) {
        *(const char **)field = value;
        return *value != '\0';
    }
    if (!emq_number_read(&number, value, strlen(value), limits[key->kind])) {
        return 0;
    }
    switch (key->kind) {
    case KIND_MS: /* 0 would mean the default */
        *(uint32_t *)field = (uint32_t)number;
        return number > 0;
    case KIND_BYTES:
        *(size_t *)field = (size_t)number;
        return number > 0;
    default:
        *(int *)field = (int)number;
        return 1;
    }
}

static int read_pair(emq_client_options *o, unsigned *seen, char *pair, emq_text *error) {
    char *value = cut_at(pair, '=');
    int result = decode(pair, error);
    if (result == EMQ_OK && value != NULL) {
        result = decode(value, error);
    }
    if (result != EMQ_OK) {
        return result;
    }
    int i = find_key(pair);
    if (i < 0 && (*seen & 1U << find_key("sentinel_password")) != 0) {
        return refuse(error, "has an unknown key behind sentinel_password: write & in it as %26");
    }
    if (i < 0) {
        return emq_text_fail(error, EMQ_EINVAL, "the URL has an unknown key: %.*s", KEY_MAX, pair);
    }
    if ((*seen & 1U << i) != 0) {
        return emq_text_fail(error, EMQ_EINVAL, "the URL gives %s twice", keys[i].name);
    }
    *seen |= 1U << i;
    if (value == NULL || !store(o, &keys[i], value)) {
        return emq_text_fail(error, EMQ_EINVAL, "the URL has no value, or one out of range, for %s",
                             keys[i].name);
    }
    return EMQ_OK;
}

static int read_query(emq_client_options *o, parts *p, emq_text *error) {
    int result = EMQ_OK;
    char *pair = p->query != NULL && *p->query != '\0' ? p->query : NULL;
    while (pair != NULL && result == EMQ_OK) {
        char *next = cut_at(pair, '&');
        result = read_pair(o, &p->seen, pair, error);
        pair = next;
    }
    return result;
}

static int parse(emq_url *url, emq_text *error) {
    emq_client_options *o = &url->options;
    parts p = {.scheme = NULL};
    int result = split(&p, url->text, error);
    if (result != EMQ_OK) {
        return result;
    }
    o->tls = p.scheme->tls;
    result = read_userinfo(o, p.userinfo, error);
    if (result == EMQ_OK) {
        result = read_place(url, &p, error);
    }
    if (result == EMQ_OK) {
        result = read_query(o, &p, error);
    }
    return result == EMQ_OK ? emq_options_check(o, error) : result;
}

int emq_url_parse_text(emq_url **out, const char *text, emq_text *error) {
    *out = NULL;
    if (text == NULL) {
        return emq_text_fail(error, EMQ_EINVAL, "the URL is missing");
    }
    emq_url *url = emq_calloc(1, sizeof(*url));
    char *copy = url == NULL ? NULL : emq_strdup(text);
    if (copy == NULL) {
        emq_free(url);
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    emq_client_options_init(&url->options);
    url->text = copy;
    url->size = strlen(text) + 1;
    int result = parse(url, error);
    if (result != EMQ_OK) {
        emq_url_free(url);
        return result;
    }
    *out = url;
    return EMQ_OK;
}

int emq_url_parse(emq_url **out, const char *url, char *error, size_t cap) {
    emq_text text;
    if (out == NULL || (error == NULL && cap > 0)) {
        return EMQ_EINVAL;
    }
    emq_text_clear(&text);
    int result = emq_url_parse_text(out, url, &text);
    if (cap > 0) {
        (void)snprintf(error, cap, "%s", text.bytes);
    }
    return result;
}

const emq_client_options *emq_url_get_options(const emq_url *url) {
    return url == NULL ? NULL : &url->options;
}

void emq_url_free(emq_url *url) {
    if (url != NULL) {
        explicit_bzero(url->text, url->size);
        emq_free(url->text);
        explicit_bzero(url, sizeof(*url)); /* a password that was taken for a host */
        emq_free(url);
    }
}
