/* SPDX-License-Identifier: Apache-2.0 */
/* URLs from the inside: the sentence as the library keeps it. */
#ifndef EMQ_LIBEMQ_URL_H
#define EMQ_LIBEMQ_URL_H

#include <emq/url.h>

#include "text.h"

/* As emq_url_parse. */
int emq_url_parse_text(emq_url **out, const char *url, emq_text *error);

#endif
