/* SPDX-License-Identifier: Apache-2.0 */
/* TLS, where the library is built with it. */
#ifndef EMQ_LIBEMQ_TLS_H
#define EMQ_LIBEMQ_TLS_H

/* Tells whether this library can speak TLS. */
int emq_tls_is_built_in(void);

#endif
