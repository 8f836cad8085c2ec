/* SPDX-License-Identifier: Apache-2.0 */
/* Values and refusals of wire 6: ranges, canonical decimal, and the class of an error text. */
#include "wire.h"

#include <string.h>

const emq_value_facts *emq_value_get_facts(emq_value_kind kind) {
    static const emq_value_facts facts[] = {
        [EMQ_VALUE_ID] = {"id", 0, 0, 0},
        [EMQ_VALUE_PAYLOAD] = {"payload", 0, 0, 0},
        [EMQ_VALUE_TOKEN] = {"token", 0, 0, 0},
        [EMQ_VALUE_LEASE_MS] = {"lease_ms", 1, 1, INT32_MAX},
        [EMQ_VALUE_COUNT] = {"count", 1, 1, EMQ_BATCH_MAX},
        [EMQ_VALUE_TIMEOUT_MS] = {"timeout_ms", 1, 0, 3600000},
        [EMQ_VALUE_MODE] = {"mode", 0, 0, 0},
        [EMQ_VALUE_WHEN] = {"ms", 1, 0, INT64_C(9007199254740991)},
        [EMQ_VALUE_AT_MS] = {"at ms", 1, 0, INT64_C(9007199254740991)},
        [EMQ_VALUE_IN_MS] = {"in ms", 1, 0, INT64_C(315360000000)},
        [EMQ_VALUE_DELAY_MS] = {"delay_ms", 1, 0, INT64_C(315360000000)},
        [EMQ_VALUE_MAX_FAILURES] = {"max_failures", 1, 1, INT32_MAX},
        [EMQ_VALUE_MAX_STALLED] = {"max_stalled", 1, 1, INT32_MAX},
        [EMQ_VALUE_LIMIT] = {"limit", 1, 1, 10000},
        [EMQ_VALUE_ERROR] = {"error", 0, 0, 0},
        [EMQ_VALUE_RECORD_ID] = {"id", 0, 0, 0},
        [EMQ_VALUE_FIELD] = {"field", 0, 0, 0},
        [EMQ_VALUE_FIELD_VALUE] = {"value", 0, 0, 0},
        [EMQ_VALUE_EVENT] = {"event", 0, 0, 0},
        [EMQ_VALUE_EVENT_JOB] = {"job", 0, 0, 0},
        [EMQ_VALUE_GROUP] = {"group", 0, 0, 0},
        [EMQ_VALUE_ENTRY_ID] = {"entry-id", 0, 0, 0},
        [EMQ_VALUE_OFFSET] = {"offset", 1, 0, UINT32_MAX},
        [EMQ_VALUE_FROM] = {"from", 1, 0, UINT32_MAX},
        [EMQ_VALUE_TO] = {"to", 1, 0, UINT32_MAX},
        [EMQ_VALUE_LIMIT_WORD] = {EMQ_WORD_LIMIT, 0, 0, 0},
    };
    return &facts[kind];
}

int emq_decimal_parse(int64_t *out, const char *text, size_t n, int64_t min, int64_t max) {
    if (n == 0 || n > EMQ_DECIMAL_MAX - 1 || (text[0] == '0' && n > 1)) {
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }
        /* nineteen digits at most: no overflow of 64 bits */
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    if (value > INT64_MAX || (int64_t)value < min || (int64_t)value > max) {
        return 0;
    }
    *out = (int64_t)value;
    return 1;
}

size_t emq_decimal_length(uint64_t value) {
    size_t digits = 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10) {
        digits++;
    }
    return digits;
}

size_t emq_decimal_format(char *out, int64_t value) {
    if (value >= 0 && value < 100) { /* most are: the lengths of arguments */
        size_t last = value >= 10 ? 1 : 0;
        out[0] = (char)('0' + value / 10);
        out[last] = (char)('0' + value % 10);
        return last + 1;
    }
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t sign = value < 0 ? 1 : 0;
    size_t n = sign + emq_decimal_length(rest);
    out[0] = '-'; /* the first digit's place where there is none */
    for (size_t i = n; i > sign; i--) {
        out[i - 1] = (char)('0' + rest % 10);
        rest /= 10;
    }
    return n;
}

emq_refusal_class emq_refusal_classify(const char *text, size_t n) {
    static const struct {
        const char *class;
        size_t length;
    } table[] = {
#define EMQ_REFUSAL_ROW(symbol, class, result) {class, sizeof(class) - 1},
        EMQ_REFUSAL_TABLE(EMQ_REFUSAL_ROW)
#undef EMQ_REFUSAL_ROW
    };
    for (size_t i = 0; i < EMQ_REFUSAL_CLASSES; i++) {
        size_t length = table[i].length;
        if (n >= length && memcmp(text, table[i].class, length) == 0 &&
            (n == length || text[length] == ' ')) {
            return (emq_refusal_class)i;
        }
    }
    return EMQ_REFUSAL_CLASSES;
}
