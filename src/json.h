/* SPDX-License-Identifier: Apache-2.0 */
/* The few pieces of JSON that a message on the channel is made of. Pure: bytes in, bytes out, no
 * allocation and no host, so that they can be tested alone. */
#ifndef EMQ_SRC_JSON_H
#define EMQ_SRC_JSON_H

#include "keys.h"

/* Where JSON is written. With no room (data is NULL) the bytes are only counted. */
typedef struct emq_json {
    char *data;
    size_t length;
} emq_json;

/* Tells whether bytes are valid UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. */
int emq_utf8_valid(emq_slice text);

/* Writes bytes as they are: braces, commas, numbers. */
void emq_json_raw(emq_json *out, emq_slice bytes);

/* Writes the inside of a string, escaped; the text is valid UTF-8. */
void emq_json_text(emq_json *out, emq_slice text);

/* Writes bytes as base64 (RFC 4648, section 4, with padding), which needs no escape. */
void emq_json_base64(emq_json *out, emq_slice bytes);

#endif
