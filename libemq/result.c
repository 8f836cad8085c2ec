/* SPDX-License-Identifier: Apache-2.0 */
/* Results: their names, classes and sentences, and the result of a server's error text. */
#include "result.h"

#include <string.h>

#include "wire.h"

typedef struct result_row {
    int result;
    emq_class class;
    const char *name;
    const char *text;
} result_row;

static const result_row rows[] = {
#define EMQ_RESULT_ROW(name, number, class, text) {number, EMQ_CLASS_##class, "EMQ_" #name, text},
    EMQ_RESULT_TABLE(EMQ_RESULT_ROW)
#undef EMQ_RESULT_ROW
};

static const result_row *find_row(int result) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].result == result) {
            return &rows[i];
        }
    }
    return NULL;
}

const char *emq_strerror(int result) {
    const result_row *row = find_row(result);
    return row == NULL ? "unknown result" : row->text;
}

const char *emq_err_name(int result) {
    const result_row *row = find_row(result);
    return row == NULL ? "EMQ_?" : row->name;
}

emq_class emq_err_class(int result) {
    const result_row *row = find_row(result);
    return row == NULL ? EMQ_CLASS_INTERNAL : row->class;
}

/* Texts that say more than their class does. Compared as whole words at the start. */
static const struct {
    const char *start;
    int result;
} special_texts[] = {
    {"EMQWIRE expected " EMQ_WIRE " but " EMQ_FENCE_KEY " is absent", EMQ_EFENCE_ABSENT},
    {"EMQSTALE job gone", EMQ_EJOBGONE},
    {"ERR The ID specified in XADD is equal or smaller", EMQ_EORDER},
};

/* The server's own refusals. A server that is full turns a connection away before it asks for
 * anything, so that one is as good as a refused connect. */
static const struct {
    const char *start;
    int result;
} server_texts[] = {
    {"LOADING", EMQ_ELOADING},     {"MASTERDOWN", EMQ_EMASTERDOWN},
    {"READONLY", EMQ_EREADONLY},   {"OOM", EMQ_EOOM},
    {"MISCONF", EMQ_EMISCONF},     {"NOREPLICAS", EMQ_ENOREPLICAS},
    {"TRYAGAIN", EMQ_ETRYAGAIN},   {"BUSY", EMQ_EBUSY},
    {"UNBLOCKED", EMQ_EUNBLOCKED}, {"NOAUTH", EMQ_EAUTH},
    {"WRONGPASS", EMQ_EAUTH},      {"ERR max number of clients reached", EMQ_ECONNECT},
};

static int starts_with_words(const char *text, size_t n, const char *words) {
    size_t length = strlen(words);
    return n >= length && memcmp(text, words, length) == 0 && (n == length || text[length] == ' ');
}

static int result_of_refusal(emq_refusal_class class) {
    static const int results[] = {
#define EMQ_REFUSAL_RESULT(symbol, class, result) result,
        EMQ_REFUSAL_TABLE(EMQ_REFUSAL_RESULT)
#undef EMQ_REFUSAL_RESULT
    };
    return results[class];
}

int emq_result_of_error(const char *text, size_t n) {
    for (size_t i = 0; i < sizeof(special_texts) / sizeof(special_texts[0]); i++) {
        if (starts_with_words(text, n, special_texts[i].start)) {
            return special_texts[i].result;
        }
    }
    emq_refusal_class class = emq_refusal_classify(text, n);
    if (class != EMQ_REFUSAL_CLASSES) {
        return result_of_refusal(class);
    }
    for (size_t i = 0; i < sizeof(server_texts) / sizeof(server_texts[0]); i++) {
        if (starts_with_words(text, n, server_texts[i].start)) {
            return server_texts[i].result;
        }
    }
    return EMQ_ESERVER;
}

int emq_error_is_unknown_command(const char *text, size_t n) {
    return starts_with_words(text, n, "ERR unknown command");
}
