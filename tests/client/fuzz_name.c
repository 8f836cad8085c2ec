/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a key, as an id and as a number: what is accepted is what is built of its parts, and
 * what is refused leaves nothing behind. */
#include <emq/id.h>
#include <emq/keyspace.h>
#include <string.h>

#include "fuzz.h"
#include "keys.h"
#include "wire.h"

#define UNTOUCHED 0x5a

static int is_untouched(const void *memory, size_t n) {
    const unsigned char *bytes = memory;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != UNTOUCHED) {
            return 0;
        }
    }
    return 1;
}

static void try_key(const char *bytes, size_t n) {
    char built[EMQ_KEY_MAX + 1];
    emq_key key;
    memset(&key, UNTOUCHED, sizeof(key));
    int result = emq_key_parse(&key, bytes, n);
    if (result != EMQ_OK) {
        MUST(result == EMQ_EKEY);
        MUST(is_untouched(&key, sizeof(key)));
        return;
    }
    int length = emq_key_kind_is_named(key.kind)
                     ? emq_key_named(built, sizeof(built), key.queue, key.kind, key.id)
                     : emq_key_queue(built, sizeof(built), key.queue, key.kind);
    MUST(length > 0 && (size_t)length == n);
    MUST(memcmp(built, bytes, n) == 0);
}

static void try_id(const char *bytes, size_t n) {
    emq_id id;
    emq_id again;
    uint64_t snowflake = 0;
    char name_space[4] = "";
    memset(&id, UNTOUCHED, sizeof(id));
    int result = emq_id_parse(&id, bytes, n);
    MUST(result == emq_id_parse(NULL, bytes, n));
    if (result != EMQ_OK) {
        MUST(result == EMQ_EID_LENGTH || result == EMQ_EID_NAMESPACE || result == EMQ_EID_CHARSET ||
             result == EMQ_EID_RANGE);
        MUST(is_untouched(&id, sizeof(id)));
        return;
    }
    MUST(n == EMQ_ID_LEN && memcmp(id.text, bytes, n) == 0 && id.text[n] == '\0');
    MUST(emq_id_to_snowflake(&snowflake, &id) == EMQ_OK);
    memcpy(name_space, id.text, 3);
    MUST(emq_id_from_snowflake(&again, name_space, snowflake) == EMQ_OK);
    MUST(memcmp(&again, &id, sizeof(id)) == 0);
}

static void try_number(const char *bytes, size_t n) {
    char built[EMQ_DECIMAL_MAX];
    int64_t number = -1;
    if (emq_decimal_parse(&number, bytes, n, 0, INT64_MAX)) {
        MUST(emq_decimal_format(built, number) == n && memcmp(built, bytes, n) == 0);
    } else {
        MUST(number == -1);
    }
}

/* A copy of its own, so that a byte too far is noticed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = malloc(size + (size == 0));
    MUST(bytes != NULL);
    if (size > 0) {
        memcpy(bytes, data, size);
    }
    try_key(bytes, size);
    try_id(bytes, size);
    try_number(bytes, size);
    free(bytes);
    return 0;
}
