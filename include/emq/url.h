/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in one string, for programs that get theirs from a setting.
 *
 *   redis://[user:password@]host[:port][/database][?key=value&…]       valkey:// is the same
 *   rediss://…                                                         with TLS; valkeys:// too
 *   redis+sentinel://[user:password@]host[:port],host[:port],…/name[?key=value&…]
 *                          asks sentinels for the primary of that name; so do valkey+sentinel://
 *                          and, with TLS, rediss+sentinel:// and valkeys+sentinel://
 *   unix://[user:password@]/path/of/the/socket[?key=value&…]
 *
 * An IPv6 address stands in brackets. A reserved byte in a user, a password, a path or a value is
 * written %XX: / ? # @ % and, in a value, &. The keys are those of emq_client_options:
 *
 *   db  name  connect_timeout_ms  command_timeout_ms  max_payload  password_file  password_env
 *   tls_ca_file  tls_ca_dir  tls_cert_file  tls_key_file  tls_server_name  tls_insecure (0 or 1)
 *   sentinel_username  sentinel_password  sentinel_password_file  sentinel_password_env
 *
 * Each key may stand once, and one that is not in the list is refused: a misspelled option must not
 * go unheard.
 */
#ifndef EMQ_URL_H
#define EMQ_URL_H

#include <emq/client.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A parsed URL and the strings of its options. Opaque. */
typedef struct emq_url emq_url;

/**
 * Parses a URL. Opens nothing, and reads neither a file nor the environment.
 *
 * @param out   receives the URL, yours to free with emq_url_free; NULL unless 0 is returned.
 * @param url   the URL, NUL-terminated.
 * @param error receives what is wrong with it, cut to cap - 1 bytes: the part or the key, and never
 *              the password; "" on success. May be NULL when cap is 0.
 * @param cap   bytes at error.
 * @return 0; EMQ_EINVAL; EMQ_ENOMEM. Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_url_parse(emq_url **out, const char *url, char *error, size_t cap);

/**
 * The options that a URL stands for. Copy the struct to change what the URL leaves open.
 *
 * @param url a URL.
 * @return borrowed, as are the strings in it, valid until emq_url_free; NULL for NULL. Since 0.1.0.
 */
EMQ_API const emq_client_options *emq_url_get_options(const emq_url *url);

/**
 * Wipes the URL, the password in it included, and frees it.
 *
 * @param url the URL, or NULL. Since 0.1.0.
 */
EMQ_API void emq_url_free(emq_url *url);

/**
 * Opens a connection to where a URL points, as emq_client_open does.
 *
 * @param out receives the client, as emq_client_open tells; for a URL that does not parse it is a
 *            closed one whose emq_client_get_error says why.
 * @param url the URL, NUL-terminated.
 * @return as emq_client_open; EMQ_EINVAL for a URL that does not parse. Since 0.1.0.
 */
EMQ_API int emq_client_open_url(emq_client **out, const char *url);

#ifdef __cplusplus
}
#endif

#endif
