/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a message of a queue's channel. */
#include <string.h>

#include "event.h"
#include "fuzz.h"

/* There are so many bytes, and a NUL behind them. */
static void read_bytes(const char *bytes, size_t n) {
    volatile char last = 0;
    MUST(bytes != NULL && bytes[n] == '\0');
    for (size_t i = 0; i < n; i++) {
        last = bytes[i];
    }
    (void)last;
}

static void read_event(const emq_event *event, const uint8_t *data, size_t size) {
    size_t n = 0;
    const char *bytes = emq_event_get_event(event, &n);
    read_bytes(bytes, n);
    bytes = emq_event_get_job(event, &n);
    read_bytes(bytes, n);
    bytes = emq_event_get_text(event, &n);
    MUST(n == size && (n == 0 || memcmp(bytes, data, n) == 0));
    read_bytes(bytes, n);
    for (size_t i = 0; i < emq_event_get_count(event); i++) {
        const char *name = emq_event_get_name(event, i);
        read_bytes(name, strlen(name));
        bytes = emq_event_get_value(event, i, &n);
        read_bytes(bytes, n);
        MUST(emq_event_get_field(event, name, NULL) != NULL);
    }
    MUST(emq_event_get_gap(event) == 0);
    MUST(!emq_event_is_resumed(event));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    emq_text error;
    emq_event *event = NULL;
    emq_text_clear(&error);
    int result = emq_event_parse(&event, (const char *)data, size, &error);
    MUST(result == EMQ_OK || result == EMQ_EPROTOCOL);
    MUST((result == EMQ_OK) == (event != NULL));
    MUST((result == EMQ_OK) == (error.bytes[0] == '\0'));
    if (event != NULL) {
        read_event(event, data, size);
    }
    emq_event_free(event);
    return 0;
}
