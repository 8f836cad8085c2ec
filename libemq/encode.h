/* SPDX-License-Identifier: Apache-2.0 */
/* Lines as bytes: requests one behind the other in a buffer that is kept. */
#ifndef EMQ_LIBEMQ_ENCODE_H
#define EMQ_LIBEMQ_ENCODE_H

#include <emq/line.h>

typedef struct emq_buffer {
    char *bytes;
    size_t length;
    size_t capacity;
} emq_buffer;

/* Bytes that a line may take when it is encoded, at most; SIZE_MAX when they can't be counted. */
size_t emq_encoded_size_max(const emq_line *line);

/* Where the bytes of an argument stand in the line that is encoded, from its start. */
size_t emq_encoded_offset(const emq_line *line, int index);

/* Appends bytes, or a line. 0; EMQ_ENOMEM. */
int emq_buffer_append(emq_buffer *buffer, const char *bytes, size_t n);
int emq_buffer_append_line(emq_buffer *buffer, const emq_line *line);

/* A line by itself: `*out` is to be freed with emq_free. 0; EMQ_ENOMEM. */
int emq_encode_line(char **out, size_t *length, const emq_line *line);

/* Takes so many bytes away from its start. */
void emq_buffer_drop(emq_buffer *buffer, size_t n);

void emq_buffer_clear(emq_buffer *buffer);

/* Of one that may have held a password: nothing of it is left in its memory. A buffer that grows
 * leaves what it had behind, so a password is the first thing in it. */
void emq_buffer_wipe(emq_buffer *buffer);

#endif
