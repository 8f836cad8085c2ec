/* SPDX-License-Identifier: Apache-2.0 */
/* A library without TLS: it refuses the options that ask for it before anything is connected. */
#include <emq/error.h>

#include "tls.h"

int emq_tls_is_built_in(void) {
    return 0;
}

int emq_tls_start(struct ssl_st **ssl, redisContext *context, const emq_client_options *options,
                  emq_deadline deadline, emq_text *error) {
    (void)ssl;
    (void)context;
    (void)options;
    (void)deadline;
    return emq_text_fail_plain(error, EMQ_ENOTLS);
}

void emq_tls_prepare(void) {
}

int emq_tls_has_pending(const struct ssl_st *ssl) {
    (void)ssl;
    return 0;
}

const char *emq_tls_get_alert(struct ssl_st *ssl) {
    (void)ssl;
    return NULL;
}
