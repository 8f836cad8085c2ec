/* SPDX-License-Identifier: Apache-2.0 */
/* A library without TLS: it refuses the options that ask for it before anything is connected. */
#include <emq/error.h>

#include "tls.h"

int emq_tls_is_built_in(void) {
    return 0;
}

int emq_tls_make(struct ssl_st **ssl, const emq_client_options *options, int is_whole,
                 emq_text *error) {
    (void)ssl;
    (void)options;
    (void)is_whole;
    return emq_text_fail_plain(error, EMQ_ENOTLS);
}

void emq_tls_free(struct ssl_st *ssl) {
    (void)ssl;
}

int emq_tls_begin(struct ssl_st *ssl, redisContext *context, const emq_client_options *options,
                  emq_text *error) {
    (void)ssl;
    (void)options;
    (void)context;
    return emq_text_fail_plain(error, EMQ_ENOTLS);
}

int emq_tls_step(struct ssl_st *ssl, int *wanted, emq_text *error) {
    (void)ssl;
    (void)wanted;
    return emq_text_fail_plain(error, EMQ_ENOTLS);
}

int emq_tls_get_wanted(const struct ssl_st *ssl) {
    (void)ssl;
    return 0;
}

int emq_tls_write(struct ssl_st *ssl, redisContext *context, const char *bytes, size_t n,
                  size_t *sent) {
    (void)ssl;
    (void)context;
    (void)bytes;
    (void)n;
    *sent = 0;
    return REDIS_ERR;
}

int emq_tls_read(struct ssl_st *ssl, redisContext *context) {
    (void)ssl;
    (void)context;
    return REDIS_ERR;
}

const char *emq_tls_get_alert(struct ssl_st *ssl) {
    (void)ssl;
    return NULL;
}
