/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronous client: one connection, opened only on a server that serves wire 6.
 *
 * Opening runs the whole connect path: resolve, connect, TLS, AUTH, SELECT, CLIENT SETNAME,
 * EMQ.VERSION (wire, module major, capabilities), GET {emq}:version. Each refusal is an error of
 * its own. Every call has one deadline that the peer can't stretch; after a timeout or a loss the
 * connection is closed for good and calls answer EMQ_ECLOSED until emq_client_reconnect.
 *
 * Thread rule: one client, one thread at a time.
 *
 * Fork rule: a client belongs to the process that opened it. In a forked child every call answers
 * EMQ_EFORKED and touches nothing; emq_client_close frees the child's copy, and the parent's
 * connection goes on.
 */
#ifndef EMQ_CLIENT_H
#define EMQ_CLIENT_H

#include <emq/error.h>
#include <emq/id.h>
#include <emq/job.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open connection. Opaque. */
typedef struct emq_client emq_client;

/**
 * How to reach a server. Fill it with EMQ_CLIENT_OPTIONS_INIT or emq_client_options_init first, so
 * that a field added by a later version has its default. Strings are copied by emq_client_open.
 */
typedef struct emq_client_options {
    size_t size;                 /**< sizeof(emq_client_options), set by the initialisers */
    const char *host;            /**< name or address; NULL means 127.0.0.1 */
    uint16_t port;               /**< 0 means 6379 */
    uint16_t reserved;           /**< 0 */
    int database;                /**< 0 or more; SELECT is sent when it is not 0 */
    const char *unix_path;       /**< a Unix socket; when set, host and port are not looked at */
    const char *username;        /**< NULL means the default user */
    const char *password;        /**< NULL means no AUTH */
    const char *client_name;     /**< for CLIENT LIST; NULL means "libemq"; no spaces */
    uint32_t connect_timeout_ms; /**< for the whole connect path; 0 means 5000 */
    uint32_t command_timeout_ms; /**< for each call; 0 means 5000 */
    size_t max_payload;          /**< largest payload to send, bytes; 0 means 8 MiB */
    const char *password_file;   /**< instead of password: a file, read at each connect */
    const char *password_env;    /**< instead of password: an environment variable's name */
    const char *tls_ca_file;     /**< PEM; NULL and no tls_ca_dir means the system's store */
    const char *tls_ca_dir;      /**< a folder of hashed CA certificates */
    const char *tls_cert_file;   /**< PEM; this client's own certificate, with its chain */
    const char *tls_key_file;    /**< PEM; the key of it; both or neither */
    const char *tls_server_name; /**< the name that the certificate must have; NULL means host */
    int tls;                     /**< 1: TLS, or no connection at all; 0: none */
    int tls_insecure;            /**< 1: any certificate will do. For trying things out only */
    /** "host[:port],…": up to 16 sentinels, port 26379; host, port and unix_path are not set then
     */
    const char *sentinels;
    const char *primary_name;           /**< the name that the sentinels know the primary by */
    const char *sentinel_username;      /**< NULL means the sentinels' default user */
    const char *sentinel_password;      /**< NULL means no AUTH there */
    const char *sentinel_password_file; /**< instead of it: a file, read at each connect */
    const char *sentinel_password_env;  /**< instead of it: an environment variable's name */
} emq_client_options;

#define EMQ_CLIENT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(emq_client_options), NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL,    \
            NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL                 \
    }

/**
 * Sets all options to their defaults, as EMQ_CLIENT_OPTIONS_INIT does.
 *
 * @param options the options. Since 0.1.0.
 */
EMQ_API void emq_client_options_init(emq_client_options *options);

/**
 * Opens a connection: the whole connect path, within connect_timeout_ms.
 *
 * @param out     receives the client on success. On a failure it receives a client too, which is
 *                closed and good for emq_client_get_error, emq_client_reconnect and
 *                emq_client_close; NULL only for EMQ_ENOMEM.
 * @param options how to reach the server; NULL means all defaults.
 * @return 0; EMQ_EINVAL (an option out of range, or a file or variable that it names can't be
 *         used: emq_client_get_error says which one); EMQ_ENOTLS; EMQ_ETLS; EMQ_ERESOLVE;
 * EMQ_ECONNECT; EMQ_ECONNTIMEOUT; with sentinels EMQ_ESENTINEL (none of them named a primary),
 * EMQ_ENOPRIMARY (what they name is none) and EMQ_EPRIMARYNAME (they don't know the name);
 * EMQ_EAUTH; EMQ_EDATABASE; EMQ_EMODULE (no module, another wire or
 * major); EMQ_ECAPABILITY (emq_client_get_error names the missing one); EMQ_EFENCE_ABSENT;
 *         EMQ_EFENCE; EMQ_EWRONGTYPE (the fence is no string); EMQ_ENOPERM; EMQ_EPROTOCOL;
 *         EMQ_ELOADING, EMQ_EMASTERDOWN and the server's other refusals; EMQ_ENOMEM;
 *         EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_client_open(emq_client **out, const emq_client_options *options);

/**
 * Drops the connection, if there is one, and runs the whole connect path again. With sentinels it
 * asks them anew, and so finds the primary of the moment.
 *
 * @param client the client.
 * @return as emq_client_open; EMQ_EFORKED. Since 0.1.0.
 */
EMQ_API int emq_client_reconnect(emq_client *client);

/**
 * Closes the connection and frees the client. In a forked child it closes the child's descriptor
 * and frees the child's memory, which the server and the parent do not notice; there, leave alone a
 * client that another thread was using at the moment of the fork.
 *
 * @param client the client, or NULL. Since 0.1.0.
 */
EMQ_API void emq_client_close(emq_client *client);

/**
 * Tells whether the connection is open, as far as this process knows; in a forked child it is not.
 *
 * @param client the client.
 * @return 1 or 0. Since 0.1.0.
 */
EMQ_API int emq_client_is_open(const emq_client *client);

/**
 * What the last failed call had to say: the server's own text where there is one, else a sentence.
 *
 * @param client the client, or NULL.
 * @return borrowed, NUL-terminated, valid until the next call on this client; "" when the last call
 *         did not fail, and for NULL. Never NULL, and never with the password in it. Since 0.1.0.
 */
EMQ_API const char *emq_client_get_error(const emq_client *client);

/**
 * Admits a job.
 *
 * @param id     in and out: zeroed, an id is minted and stored here; otherwise this JOB id is used.
 *               Keep it: a repeat with the same id after a lost answer is EMQ_DUPLICATE as long as
 *               the job exists, and not a second job.
 * @param client an open client.
 * @param queue  the queue name.
 * @param p      the payload, any bytes; may be NULL when n is 0.
 * @param n      its bytes, at most max_payload.
 * @return 0 admitted; EMQ_DUPLICATE (a job with this id exists; its first payload stays);
 *         EMQ_EINVAL; EMQ_EQUEUE; EMQ_EID_…; EMQ_EKIND; EMQ_ETOOBIG; EMQ_ECLOSED; EMQ_EFORKED;
 * EMQ_ECONNECT (the connection was lost before the request was sent whole: nothing was done);
 * EMQ_ETIMEOUT and EMQ_ECONNLOST (it may have been admitted: repeat with the same id); the server's
 *         refusals; EMQ_EPROTOCOL; EMQ_ENOMEM; EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_enqueue(emq_id *id, emq_client *client, const char *queue, const void *p, size_t n);

/**
 * Claims the oldest pending job, if there is one. Does not wait.
 *
 * @param out      receives the job, yours to free with emq_job_free; NULL unless 0 is returned.
 * @param client   an open client.
 * @param queue    the queue name.
 * @param lease_ms how long the job is yours, by the server's clock, 1 to 2147483647 milliseconds.
 * @return 0; EMQ_EMPTY (nothing pending, or the queue is paused); EMQ_EINVAL; EMQ_EQUEUE;
 *         EMQ_ECLOSED; EMQ_EFORKED; EMQ_ECONNECT (nothing was done, as for emq_enqueue);
 * EMQ_ETIMEOUT and EMQ_ECONNLOST (a job may have been leased: a sweep brings it back after that
 * lease); the server's refusals; EMQ_EPROTOCOL; EMQ_ENOMEM; EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_claim(emq_job **out, emq_client *client, const char *queue, uint32_t lease_ms);

/**
 * Completes a claimed job: its row is removed and the queue's completed count goes up by one.
 *
 * @param client an open client.
 * @param lease  the job's lease.
 * @return 0; EMQ_GONE (completed before, or removed); EMQ_ESTALE (somebody else has claimed it
 *         since, or it was settled or given back under this lease: drop the result; a lease that a
 *         sweep took back is good until somebody claims the job anew); EMQ_ELANE; EMQ_EFLOW;
 * EMQ_EINVAL; EMQ_EQUEUE; EMQ_EID_…; EMQ_EKIND; EMQ_ECLOSED; EMQ_EFORKED; EMQ_ECONNECT (nothing was
 * done, as for emq_enqueue); EMQ_ETIMEOUT and EMQ_ECONNLOST (repeat it: EMQ_GONE then means that it
 * was done); the server's refusals; EMQ_EPROTOCOL; EMQ_ENOMEM; EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_complete(emq_client *client, const emq_lease *lease);

/** What a raw command answered. */
typedef enum emq_reply_type {
    EMQ_REPLY_NIL,
    EMQ_REPLY_INTEGER,
    EMQ_REPLY_STRING,
    EMQ_REPLY_STATUS,
    EMQ_REPLY_ARRAY,
    EMQ_REPLY_ERROR /**< only inside an array; an error as the whole reply is the call's result */
} emq_reply_type;

/** A raw reply. Opaque; freed with emq_reply_free. */
typedef struct emq_reply emq_reply;

/**
 * The raw door: sends any command as arguments and gives its reply, for reads that libemq has no
 * verb for. EVAL, EVALSHA, FCALL, SCRIPT, FUNCTION and MULTI (and their read-only forms) are
 * refused before any wire, as are commands that change what the connection is (SUBSCRIBE, MONITOR,
 * RESET, QUIT, HELLO, AUTH, SELECT, CLIENT REPLY, …).
 *
 * @param out     receives the reply, yours to free; NULL unless 0 is returned.
 * @param client  an open client.
 * @param argc    number of arguments, the command's name included; 1 to 1048576.
 * @param argv    the arguments.
 * @param argvlen their lengths; NULL means that all are NUL-terminated.
 * @return 0; EMQ_EINVAL; EMQ_EFORBIDDEN; EMQ_ETOOBIG (more than 1 GiB); EMQ_ECLOSED; EMQ_EFORKED;
 * EMQ_ECONNECT (nothing was done, as for emq_enqueue); EMQ_ETIMEOUT; EMQ_ECONNLOST; an error of the
 *         server by its class, its text in emq_client_get_error; EMQ_EPROTOCOL; EMQ_ENOMEM;
 *         EMQ_ESYSTEM. Since 0.1.0.
 */
EMQ_API int emq_client_command(emq_reply **out, emq_client *client, int argc,
                               const char *const *argv, const size_t *argvlen);

/** The type of a reply. @param reply a reply. Since 0.1.0. */
EMQ_API emq_reply_type emq_reply_get_type(const emq_reply *reply);

/** The integer of an integer reply, 0 for other types. @param reply a reply. Since 0.1.0. */
EMQ_API int64_t emq_reply_get_integer(const emq_reply *reply);

/**
 * The bytes of a string, a status or an error inside an array.
 *
 * @param reply a reply.
 * @param n     receives the number of bytes; may be NULL.
 * @return borrowed, valid until emq_reply_free; NULL for other types. Since 0.1.0.
 */
EMQ_API const char *emq_reply_get_string(const emq_reply *reply, size_t *n);

/** The number of elements of an array reply, 0 for other types. @param reply a reply. Since 0.1.0.
 */
EMQ_API size_t emq_reply_get_count(const emq_reply *reply);

/**
 * An element of an array reply.
 *
 * @param reply a reply.
 * @param i     0 to emq_reply_get_count - 1.
 * @return borrowed, valid until the outermost reply is freed; NULL outside of the range.
 *         Since 0.1.0.
 */
EMQ_API const emq_reply *emq_reply_get_element(const emq_reply *reply, size_t i);

/** Frees a reply that emq_client_command gave. @param reply a reply, or NULL. Since 0.1.0. */
EMQ_API void emq_reply_free(emq_reply *reply);

/**
 * Writes the fence: `{emq}:version` becomes echomq:6.0.0. Administrative, once per server and
 * database, before ordinary clients connect; needs a user with the right to EMQ.INSTALL. It opens a
 * connection of its own, since emq_client_open refuses a server without the fence.
 *
 * @param options how to reach the server; NULL means all defaults.
 * @param error   receives the text of a failure, cut to cap - 1 bytes; may be NULL when cap is 0.
 * @param cap     bytes at error.
 * @return 0 written; EMQ_DUPLICATE (it was right already); EMQ_EFENCE (it holds another wire, and
 *         stays); EMQ_ETIMEOUT and EMQ_ECONNLOST (repeat it); and what else emq_client_open
 *         returns. Since 0.1.0.
 */
EMQ_API int emq_install(const emq_client_options *options, char *error, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
