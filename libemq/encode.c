/* SPDX-License-Identifier: Apache-2.0 */
/* Lines as bytes. */
#include "encode.h"

#include <string.h>

#include "memory.h"
#include "wire.h"

#define FRAME_MAX (EMQ_DECIMAL_MAX + 5) /* a sign, a number, and two ends of line */
#define CAPACITY_MIN ((size_t)4096)

size_t emq_encoded_size_max(const emq_line *line) {
    size_t size = FRAME_MAX;
    for (int i = 0; i < line->argc; i++) {
        if (line->argvlen[i] > SIZE_MAX - FRAME_MAX - size) {
            return SIZE_MAX;
        }
        size += line->argvlen[i] + FRAME_MAX;
    }
    return size;
}

static size_t frame_length(size_t number) {
    return 1 + emq_decimal_length(number) + 2;
}

size_t emq_encoded_offset(const emq_line *line, int index) {
    size_t offset = frame_length((size_t)line->argc);
    for (int i = 0; i < index; i++) {
        offset += frame_length(line->argvlen[i]) + line->argvlen[i] + 2;
    }
    return offset + frame_length(line->argvlen[index]);
}

/* Makes room for so many more bytes. */
static int reserve(emq_buffer *buffer, size_t n) {
    if (n <= buffer->capacity - buffer->length) {
        return EMQ_OK;
    }
    if (n > SIZE_MAX / 2 - buffer->length) {
        return EMQ_ENOMEM;
    }
    size_t capacity = buffer->capacity < CAPACITY_MIN ? CAPACITY_MIN : buffer->capacity;
    while (capacity < buffer->length + n) {
        capacity *= 2;
    }
    char *bytes = emq_realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        return EMQ_ENOMEM;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return EMQ_OK;
}

static char *put_frame(char *next, char sign, size_t number) {
    *next++ = sign;
    next += emq_decimal_format(next, (int64_t)number);
    *next++ = '\r';
    *next++ = '\n';
    return next;
}

/* Writes a line, for which there is room; returns where it ends. */
static char *put_line(char *next, const emq_line *line) {
    next = put_frame(next, '*', (size_t)line->argc);
    for (int i = 0; i < line->argc; i++) {
        next = put_frame(next, '$', line->argvlen[i]);
        memcpy(next, line->argv[i], line->argvlen[i]);
        next += line->argvlen[i];
        *next++ = '\r';
        *next++ = '\n';
    }
    return next;
}

int emq_buffer_append(emq_buffer *buffer, const char *bytes, size_t n) {
    int result = reserve(buffer, n);
    if (result == EMQ_OK) {
        memcpy(buffer->bytes + buffer->length, bytes, n);
        buffer->length += n;
    }
    return result;
}

int emq_buffer_append_line(emq_buffer *buffer, const emq_line *line) {
    int result = reserve(buffer, emq_encoded_size_max(line));
    if (result == EMQ_OK) {
        char *end = put_line(buffer->bytes + buffer->length, line);
        buffer->length = (size_t)(end - buffer->bytes);
    }
    return result;
}

int emq_encode_line(char **out, size_t *length, const emq_line *line) {
    *out = emq_malloc(emq_encoded_size_max(line));
    if (*out == NULL) {
        return EMQ_ENOMEM;
    }
    *length = (size_t)(put_line(*out, line) - *out);
    return EMQ_OK;
}

void emq_buffer_drop(emq_buffer *buffer, size_t n) {
    buffer->length -= n;
    if (n > 0 && buffer->length > 0) {
        memmove(buffer->bytes, buffer->bytes + n, buffer->length);
    }
}

void emq_buffer_clear(emq_buffer *buffer) {
    emq_free(buffer->bytes);
    *buffer = (emq_buffer){NULL, 0, 0};
}

void emq_buffer_wipe(emq_buffer *buffer) {
    if (buffer->bytes != NULL) {
        explicit_bzero(buffer->bytes, buffer->capacity);
    }
    emq_buffer_clear(buffer);
}
