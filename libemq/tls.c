/* SPDX-License-Identifier: Apache-2.0 */
/* TLS through hiredis_ssl and OpenSSL. hiredis checks the chain alone, so the SSL object is made
 * here, with the name that the certificate must have, and given to it. */
#include "tls.h"

#include <arpa/inet.h>
#include <emq/error.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dial.h"
#include "sigpipe.h"
#include "tls_folder.h"

int emq_tls_is_built_in(void) {
    return 1;
}

/* The thread's queue of failures may hold some of the host program's own, which would be taken for
 * one of this write. hiredis would keep a copy of the bytes, which may be a password. */
int emq_tls_write(struct ssl_st *ssl, redisContext *context, const char *bytes, size_t n,
                  size_t *sent) {
    emq_sigpipe saved;
    *sent = 0;
    if (n == 0) {
        return REDIS_OK;
    }
    ERR_clear_error();
    emq_sigpipe_hold(&saved);
    int is_written = SSL_write_ex(ssl, bytes, n, sent) == 1;
    int failure = is_written ? SSL_ERROR_NONE : SSL_get_error(ssl, 0);
    int cause = errno;
    int is_failed = failure != SSL_ERROR_NONE && failure != SSL_ERROR_WANT_READ &&
                    failure != SSL_ERROR_WANT_WRITE;
    emq_sigpipe_release(&saved, is_failed);
    if (!is_failed) {
        return REDIS_OK;
    }
    context->err = REDIS_ERR_IO;
    (void)snprintf(context->errstr, sizeof(context->errstr), "a write failed (errno %d)", cause);
    return REDIS_ERR;
}

/* It may write, as any call on a TLS connection. */
int emq_tls_read(struct ssl_st *ssl, redisContext *context) {
    emq_sigpipe saved;
    int result = REDIS_OK;
    ERR_clear_error();
    emq_sigpipe_hold(&saved);
    do {
        result = redisBufferRead(context);
    } while (result == REDIS_OK && SSL_pending(ssl) > 0);
    emq_sigpipe_release(&saved, 1);
    return result;
}

static const char *get_reason(void) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason != NULL ? reason : "no reason given";
}

static int fail_file(emq_text *error, const char *option, const char *path) {
    int shortage = emq_tls_find_shortage();
    if (shortage != 0) {
        return emq_tls_fail_shortage(error, shortage);
    }
    return emq_text_fail(error, EMQ_EINVAL, "%s %.*s cannot be used: %s", option,
                         EMQ_TEXT_QUOTE_MAX, path, get_reason());
}

/* OpenSSL takes the system's authorities as far as it can read them, and does not tell. */
static int trust_system(SSL_CTX *context, int is_whole, emq_text *error) {
    int is_set = is_whole ? SSL_CTX_set_default_verify_file(context)
                          : SSL_CTX_set_default_verify_paths(context);
    if (is_set != 1) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    int result = is_whole ? emq_tls_take_system_folders(context, error) : EMQ_OK;
    if (result != EMQ_OK) {
        return result;
    }
    if (sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(context))) > 0) {
        return EMQ_OK;
    }
    const char *path = getenv(X509_get_default_cert_file_env());
    int fd =
        open(path != NULL ? path : X509_get_default_cert_file(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && emq_is_shortage(errno)) {
        return emq_tls_fail_shortage(error, errno);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return EMQ_OK;
}

static int trust(SSL_CTX *context, const emq_client_options *o, int is_whole, emq_text *error) {
    if (o->tls_ca_dir != NULL && access(o->tls_ca_dir, R_OK | X_OK) != 0) {
        return emq_text_fail(error, EMQ_EINVAL, "tls_ca_dir %.*s cannot be read (errno %d)",
                             EMQ_TEXT_QUOTE_MAX, o->tls_ca_dir, errno);
    }
    if (o->tls_ca_file == NULL && o->tls_ca_dir == NULL) {
        return trust_system(context, is_whole, error);
    }
    const char *later = is_whole ? NULL : o->tls_ca_dir;
    if ((o->tls_ca_file != NULL || later != NULL) &&
        SSL_CTX_load_verify_locations(context, o->tls_ca_file, later) != 1) {
        return o->tls_ca_file != NULL ? fail_file(error, "tls_ca_file", o->tls_ca_file)
                                      : fail_file(error, "tls_ca_dir", o->tls_ca_dir);
    }
    int is_due = is_whole && o->tls_ca_dir != NULL;
    return is_due ? emq_tls_take_folders(context, o->tls_ca_dir, error) : EMQ_OK;
}

/* A key with a passphrase is refused: the library would ask for it on the terminal. */
static int give_no_passphrase(char *buffer, int size, int for_writing, void *data) {
    (void)buffer;
    (void)size;
    (void)for_writing;
    (void)data;
    return -1;
}

static int identify(SSL_CTX *context, const emq_client_options *o, emq_text *error) {
    if (o->tls_cert_file == NULL) {
        return EMQ_OK;
    }
    SSL_CTX_set_default_passwd_cb(context, give_no_passphrase);
    if (SSL_CTX_use_certificate_chain_file(context, o->tls_cert_file) != 1) {
        return fail_file(error, "tls_cert_file", o->tls_cert_file);
    }
    if (SSL_CTX_use_PrivateKey_file(context, o->tls_key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        return fail_file(error, "tls_key_file", o->tls_key_file);
    }
    return EMQ_OK;
}

static int is_address(const char *name) {
    struct in6_addr ignored;
    return inet_pton(AF_INET, name, &ignored) == 1 || inet_pton(AF_INET6, name, &ignored) == 1;
}

/* The name that the certificate must have. An address has to be in it as an address. The zone of an
 * IPv6 address is this machine's own affair. */
static int expect_name(SSL *ssl, const emq_client_options *o) {
    char name[256];
    const char *wanted = o->tls_server_name != NULL ? o->tls_server_name : o->host;
    size_t length = strchr(wanted, ':') != NULL ? strcspn(wanted, "%") : strlen(wanted);
    X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
    if (length >= sizeof(name)) {
        return 0;
    }
    memcpy(name, wanted, length);
    name[length] = '\0';
    if (is_address(name)) {
        return X509_VERIFY_PARAM_set1_ip_asc(rules, name) == 1;
    }
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(rules, name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

static int configure(SSL_CTX *context, const emq_client_options *o, int is_whole, emq_text *error) {
    int result = EMQ_OK;
    SSL_CTX_set_verify(context, o->tls_insecure != 0 ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* the buffer of requests may move between two tries of one write */
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        return emq_text_fail(error, EMQ_ETLS, "TLS 1.2 is not to be had: %s", get_reason());
    }
    if (o->tls_insecure == 0) {
        result = trust(context, o, is_whole, error);
    }
    return result == EMQ_OK ? identify(context, o, error) : result;
}

int emq_tls_make(struct ssl_st **ssl, const emq_client_options *options, int is_whole,
                 emq_text *error) {
    *ssl = NULL;
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    int result = configure(context, options, is_whole, error);
    if (result == EMQ_OK) {
        *ssl = SSL_new(context);
        result = *ssl != NULL ? EMQ_OK : emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    SSL_CTX_free(context); /* the SSL object holds it as long as it needs it */
    return result;
}

void emq_tls_free(struct ssl_st *ssl) {
    SSL_free(ssl);
}

static int is_end_of_file(unsigned long failure) {
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    if (ERR_GET_LIB(failure) == ERR_LIB_SSL &&
        ERR_GET_REASON(failure) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        return 1;
    }
#endif
    return failure == 0;
}

/* What a handshake stands for that ended with this SSL_ERROR value. */
static int fail_handshake(SSL *ssl, int status, emq_text *error) {
    long verdict = SSL_get_verify_result(ssl);
    int shortage = emq_tls_find_shortage(); /* folders may be read when they are needed */
    if (shortage != 0) {
        return emq_tls_fail_shortage(error, shortage);
    }
    if (verdict != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) {
        return emq_text_fail(error, EMQ_ETLS, "the server's certificate is refused: %s",
                             X509_verify_cert_error_string(verdict));
    }
    if (status != SSL_ERROR_SSL || is_end_of_file(ERR_peek_error())) {
        return emq_text_fail(error, EMQ_ECONNECT, "the connection was lost in the TLS handshake");
    }
    return emq_text_fail(error, EMQ_ETLS, "the TLS handshake failed: %s", get_reason());
}

/* hiredis takes the object and makes the first step of the handshake, which can be the whole of it
 * with a peer that is near; when it fails, the object stays ours, and OpenSSL knows why. */
int emq_tls_begin(struct ssl_st *ssl, redisContext *context, const emq_client_options *options,
                  emq_text *error) {
    emq_sigpipe saved;
    ERR_clear_error();
    if (!expect_name(ssl, options)) {
        SSL_free(ssl);
        return emq_text_fail(error, EMQ_EINVAL, "%s is no name that a certificate can have",
                             options->tls_server_name != NULL ? "tls_server_name" : "host");
    }
    emq_sigpipe_hold(&saved);
    int failed = redisInitiateSSL(context, ssl) != REDIS_OK;
    emq_sigpipe_release(&saved, 1);
    if (!failed) {
        return EMQ_OK;
    }
    int status = ERR_peek_error() != 0 ? SSL_ERROR_SSL : SSL_ERROR_SYSCALL;
    int result = context->err == REDIS_ERR_OOM ? emq_text_fail_plain(error, EMQ_ENOMEM)
                                               : fail_handshake(ssl, status, error);
    SSL_free(ssl);
    return result;
}

int emq_tls_step(struct ssl_st *ssl, int *wanted, emq_text *error) {
    emq_sigpipe saved;
    ERR_clear_error();
    emq_sigpipe_hold(&saved);
    int status = SSL_get_error(ssl, SSL_do_handshake(ssl));
    emq_sigpipe_release(&saved, 1);
    if (status != SSL_ERROR_NONE && status != SSL_ERROR_WANT_READ &&
        status != SSL_ERROR_WANT_WRITE) {
        return fail_handshake(ssl, status, error);
    }
    *wanted = status == SSL_ERROR_NONE ? 0 : emq_tls_get_wanted(ssl);
    return EMQ_OK;
}

int emq_tls_get_wanted(const struct ssl_st *ssl) {
    switch (SSL_want(ssl)) {
    case SSL_READING:
        return POLLIN;
    case SSL_WRITING:
        return POLLOUT;
    default:
        return 0;
    }
}

static const char *find_alert(void) {
    unsigned long failure = ERR_peek_last_error();
    int is_alert =
        ERR_GET_LIB(failure) == ERR_LIB_SSL && ERR_GET_REASON(failure) >= SSL_AD_REASON_OFFSET;
    return is_alert ? ERR_reason_error_string(failure) : NULL;
}

/* With TLS 1.3 a server refuses a client's certificate behind the handshake, and a write may fail
 * before that alert was read. */
const char *emq_tls_get_alert(struct ssl_st *ssl) {
    char ignored[1];
    emq_sigpipe saved;
    const char *alert = find_alert();
    if (alert != NULL) {
        return alert;
    }
    ERR_clear_error();
    emq_sigpipe_hold(&saved);
    (void)SSL_read(ssl, ignored, sizeof(ignored));
    emq_sigpipe_release(&saved, 1);
    return find_alert();
}
