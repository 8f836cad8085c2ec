/* SPDX-License-Identifier: Apache-2.0 */
/* The keyspace: one table of key kinds, and building, matching and parsing derived from it. */
#include "keys.h"

#include <limits.h>
#include <string.h>

#include "wire.h"

#define BASE_OPEN "emq:{"
#define BASE_CLOSE "}:"
#define BASE_OPEN_LEN (sizeof(BASE_OPEN) - 1)
#define BASE_CLOSE_LEN (sizeof(BASE_CLOSE) - 1)

typedef enum key_name {
    NAME_NONE,
    NAME_JOB,  /* a branded JOB id */
    NAME_PLAIN /* a group, a dedup id, a stream */
} key_name;

typedef struct key_shape {
    emq_slice before; /* what follows the base */
    key_name name;
    emq_slice after; /* what follows the name */
    const char *pattern;
} key_shape;

#define TEXT(literal)                                                                              \
    { literal, sizeof(literal) - 1 }
#define PLAIN(text)                                                                                \
    { TEXT(text), NAME_NONE, TEXT(""), "emq:{q}:" text }
#define OF_JOB(tail)                                                                               \
    { TEXT("job:"), NAME_JOB, TEXT(tail), "emq:{q}:job:<id>" tail }

static const key_shape shapes[] = {
    [EMQ_KEY_BASE] = PLAIN(""),
    [EMQ_KEY_PENDING] = PLAIN("pending"),
    [EMQ_KEY_ACTIVE] = PLAIN("active"),
    [EMQ_KEY_SCHEDULE] = PLAIN("schedule"),
    [EMQ_KEY_DEAD] = PLAIN("dead"),
    [EMQ_KEY_HELD] = PLAIN("held"),
    [EMQ_KEY_RING] = PLAIN("ring"),
    [EMQ_KEY_PAUSED] = PLAIN("paused"),
    [EMQ_KEY_GLIMIT] = PLAIN("glimit"),
    [EMQ_KEY_GACTIVE] = PLAIN("gactive"),
    [EMQ_KEY_GWEIGHT] = PLAIN("gweight"),
    [EMQ_KEY_WAKE] = PLAIN("wake"),
    [EMQ_KEY_META] = PLAIN("meta"),
    [EMQ_KEY_COMPLETED] = PLAIN("metrics:completed"),
    [EMQ_KEY_FAILED] = PLAIN("metrics:failed"),
    [EMQ_KEY_OUTBOX] = PLAIN("flow:outbox"),
    [EMQ_KEY_OUTBOX_BAD] = PLAIN("flow:outbox:bad"),
    [EMQ_KEY_EVENTS_SEQ] = PLAIN("events:seq"),
    [EMQ_KEY_EVENTS] = PLAIN("events"),
    [EMQ_KEY_JOB] = OF_JOB(""),
    [EMQ_KEY_LOGS] = OF_JOB(":logs"),
    [EMQ_KEY_DEPENDENCIES] = OF_JOB(":dependencies"),
    [EMQ_KEY_PROCESSED] = OF_JOB(":processed"),
    [EMQ_KEY_CHILD_FAILED] = OF_JOB(":failed"),
    [EMQ_KEY_UNSUCCESSFUL] = OF_JOB(":unsuccessful"),
    [EMQ_KEY_LANE] = {TEXT("g:"), NAME_PLAIN, TEXT(":pending"), "emq:{q}:g:<group>:pending"},
    [EMQ_KEY_DEDUP] = {TEXT("de:"), NAME_PLAIN, TEXT(""), "emq:{q}:de:<dedup-id>"},
    [EMQ_KEY_STREAM] = {TEXT("stream:"), NAME_PLAIN, TEXT(""), "emq:{q}:stream:<name>"},
    [EMQ_KEY_STREAM_FAILURES] = {TEXT("stream:"), NAME_PLAIN, TEXT(":failures"),
                                 "emq:{q}:stream:<name>:failures"},
    [EMQ_KEY_FENCE] = {TEXT(""), NAME_NONE, TEXT(""), EMQ_FENCE_KEY}, /* has no base */
};

#define KINDS ((int)(sizeof(shapes) / sizeof(shapes[0])))

static const emq_slice no_name = {"", 0};

emq_slice emq_slice_of(const char *text) {
    return (emq_slice){text, strlen(text)};
}

int emq_slice_equal(emq_slice a, emq_slice b) {
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

int emq_slice_compare(emq_slice a, emq_slice b) {
    int order = memcmp(a.data, b.data, a.length < b.length ? a.length : b.length);
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

/* What can't stand in a name. */
static const unsigned char is_forbidden[UCHAR_MAX + 1] = {
    [':'] = 1, ['{'] = 1, ['}'] = 1, ['\0'] = 1, ['\r'] = 1, ['\n'] = 1,
};

int emq_name_valid(emq_slice name) {
    if (name.length == 0 || name.length > EMQ_QUEUE_MAX) {
        return 0;
    }
    for (size_t i = 0; i < name.length; i++) {
        if (is_forbidden[(unsigned char)name.data[i]]) {
            return 0;
        }
    }
    return 1;
}

static int queue_slice_valid(emq_slice queue) {
    if (queue.length == 0 || queue.length > EMQ_QUEUE_MAX ||
        emq_slice_equal(queue, emq_slice_of(EMQ_MODULE_NAME))) {
        return 0;
    }
    for (size_t i = 0; i < queue.length; i++) {
        char c = queue.data[i];
        int is_word = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_word && c != '.' && c != '_' && c != '-') {
            return 0;
        }
    }
    return 1;
}

int emq_queue_valid(const char *queue) {
    /* one byte more than allowed is enough to know that a name is too long */
    return queue != NULL &&
           queue_slice_valid((emq_slice){queue, strnlen(queue, EMQ_QUEUE_MAX + 1)});
}

int emq_key_find_queue(emq_slice *queue, emq_slice key) {
    if (key.length <= BASE_OPEN_LEN || memcmp(key.data, BASE_OPEN, BASE_OPEN_LEN) != 0) {
        return 0;
    }
    emq_slice rest = {key.data + BASE_OPEN_LEN, key.length - BASE_OPEN_LEN};
    const char *close = memchr(rest.data, BASE_CLOSE[0], rest.length);
    if (close == NULL) {
        return 0;
    }
    emq_slice name = {rest.data, (size_t)(close - rest.data)};
    size_t tail = rest.length - name.length;
    if (tail < BASE_CLOSE_LEN || memcmp(close, BASE_CLOSE, BASE_CLOSE_LEN) != 0 ||
        !emq_name_valid(name)) {
        return 0;
    }
    *queue = name;
    return 1;
}

/* Cuts `text` off the front of `rest`; returns 0 when it isn't there. */
static int skip(emq_slice *rest, emq_slice text) {
    if (rest->length < text.length || memcmp(rest->data, text.data, text.length) != 0) {
        return 0;
    }
    rest->data += text.length;
    rest->length -= text.length;
    return 1;
}

int emq_key_kind_is_named(emq_key_kind kind) {
    return shapes[kind].name != NAME_NONE;
}

/* The test of what stands behind the base. */
static int rest_matches(emq_slice rest, const key_shape *shape, emq_slice id) {
    if (shape->name == NAME_NONE) {
        return emq_slice_equal(rest, shape->before);
    }
    return skip(&rest, shape->before) && skip(&rest, id) && emq_slice_equal(rest, shape->after) &&
           emq_name_valid(id);
}

static int is_fence(emq_slice key) {
    return emq_slice_equal(key, (emq_slice){EMQ_FENCE_KEY, sizeof(EMQ_FENCE_KEY) - 1});
}

int emq_key_matches(emq_slice key, emq_key_kind kind, emq_slice queue, emq_slice id) {
    if (kind == EMQ_KEY_FENCE) {
        return is_fence(key);
    }
    return skip(&key, (emq_slice){BASE_OPEN, BASE_OPEN_LEN}) && skip(&key, queue) &&
           skip(&key, (emq_slice){BASE_CLOSE, BASE_CLOSE_LEN}) &&
           rest_matches(key, &shapes[kind], id);
}

emq_slice emq_key_base_of(emq_slice found_queue) {
    return (emq_slice){found_queue.data - BASE_OPEN_LEN,
                       BASE_OPEN_LEN + found_queue.length + BASE_CLOSE_LEN};
}

int emq_key_matches_base(emq_slice key, emq_key_kind kind, emq_slice base, emq_slice id) {
    return kind == EMQ_KEY_FENCE ? is_fence(key)
                                 : skip(&key, base) && rest_matches(key, &shapes[kind], id);
}

/* Writes the key piece by piece; the pieces of a kind are in the table. */
size_t emq_key_write(char *out, size_t cap, emq_key_kind kind, emq_slice queue, emq_slice id) {
    const key_shape *shape = &shapes[kind];
    emq_slice pieces[] = {
        {BASE_OPEN, BASE_OPEN_LEN},
        queue,
        {BASE_CLOSE, BASE_CLOSE_LEN},
        shape->before,
        shape->name == NAME_NONE ? no_name : id,
        shape->after,
    };
    size_t count = sizeof(pieces) / sizeof(pieces[0]);
    if (kind == EMQ_KEY_FENCE) {
        pieces[0] = emq_slice_of(EMQ_FENCE_KEY);
        count = 1;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (cap - used <= pieces[i].length) {
            return 0;
        }
        memcpy(out + used, pieces[i].data, pieces[i].length);
        used += pieces[i].length;
    }
    out[used] = '\0';
    return used;
}

const char *emq_key_pattern(emq_key_kind kind) {
    return shapes[kind].pattern;
}

const char *emq_key_word(emq_key_kind kind) {
    switch (kind) {
    case EMQ_KEY_BASE:
        return "base";
    case EMQ_KEY_JOB:
        return "row";
    case EMQ_KEY_FENCE:
        return "fence";
    case EMQ_KEY_LANE:
        return "lane";
    default:
        /* `pending` of a set, `logs` of what hangs on a row */
        return shapes[kind].name == NAME_JOB ? shapes[kind].after.data + 1
                                             : shapes[kind].before.data;
    }
}

/* Builds into a buffer of its own first: nothing is written at `out` when it doesn't fit. */
static int build(char *out, size_t cap, emq_key_kind kind, emq_slice queue, emq_slice id) {
    char key[EMQ_KEY_MAX + 1];
    size_t length = emq_key_write(key, sizeof(key), kind, queue, id);
    if (length == 0 || length >= cap) {
        return EMQ_EINVAL;
    }
    memcpy(out, key, length + 1);
    return (int)length;
}

int emq_key_queue(char *out, size_t cap, const char *queue, emq_key_kind kind) {
    if (out == NULL || (int)kind < 0 || (int)kind >= KINDS || emq_key_kind_is_named(kind)) {
        return EMQ_EINVAL;
    }
    if (kind == EMQ_KEY_FENCE) {
        return build(out, cap, kind, no_name, no_name);
    }
    if (!emq_queue_valid(queue)) {
        return queue == NULL ? EMQ_EINVAL : EMQ_EQUEUE;
    }
    return build(out, cap, kind, emq_slice_of(queue), no_name);
}

/* A job id: well-formed, and of the namespace JOB. */
static int check_job_id(emq_slice id) {
    int result = emq_id_parse(NULL, id.data, id.length);
    if (result != EMQ_OK) {
        return result;
    }
    return memcmp(id.data, EMQ_NAMESPACE_JOB, EMQ_NAMESPACE_LEN) == 0 ? EMQ_OK : EMQ_EKIND;
}

int emq_key_named(char *out, size_t cap, const char *queue, emq_key_kind kind, const char *id) {
    if (out == NULL || queue == NULL || id == NULL || (int)kind < 0 || (int)kind >= KINDS ||
        !emq_key_kind_is_named(kind)) {
        return EMQ_EINVAL;
    }
    if (!emq_queue_valid(queue)) {
        return EMQ_EQUEUE;
    }
    emq_slice name = emq_slice_of(id);
    int result = EMQ_OK;
    if (shapes[kind].name == NAME_JOB) {
        result = check_job_id(name);
    } else if (!emq_name_valid(name)) {
        result = EMQ_EINVAL;
    }
    return result == EMQ_OK ? build(out, cap, kind, emq_slice_of(queue), name) : result;
}

int emq_key_job(char *out, size_t cap, const char *queue, const emq_id *id) {
    if (id == NULL) {
        return EMQ_EINVAL;
    }
    char text[EMQ_ID_LEN + 1];
    memcpy(text, id->text, EMQ_ID_LEN);
    text[EMQ_ID_LEN] = '\0'; /* an id without its NUL must not be read beyond its end */
    return emq_key_named(out, cap, queue, EMQ_KEY_JOB, text);
}

/* The name inside a key whose base is cut off already, when the key has this shape. */
static int match_name(emq_slice *name, emq_slice rest, const key_shape *shape) {
    emq_slice after = shape->after;
    if (!skip(&rest, shape->before) || rest.length < after.length) {
        return 0;
    }
    *name = (emq_slice){rest.data, rest.length - after.length};
    emq_slice tail = {rest.data + name->length, after.length};
    if (!emq_slice_equal(tail, after)) {
        return 0;
    }
    switch (shape->name) {
    case NAME_NONE:
        return name->length == 0;
    case NAME_JOB:
        return check_job_id(*name) == EMQ_OK;
    default:
        return emq_name_valid(*name);
    }
}

int emq_key_find_name(emq_slice *name, emq_slice key, emq_key_kind kind, emq_slice queue) {
    return skip(&key, (emq_slice){BASE_OPEN, BASE_OPEN_LEN}) && skip(&key, queue) &&
           skip(&key, (emq_slice){BASE_CLOSE, BASE_CLOSE_LEN}) &&
           match_name(name, key, &shapes[kind]);
}

int emq_key_parse(emq_key *out, const char *key, size_t n) {
    if (out == NULL || key == NULL) {
        return EMQ_EINVAL;
    }
    emq_slice whole = {key, n};
    emq_key parts = {.kind = EMQ_KEY_FENCE};
    if (emq_key_matches(whole, EMQ_KEY_FENCE, no_name, no_name)) {
        *out = parts;
        return EMQ_OK;
    }
    emq_slice queue;
    if (!emq_key_find_queue(&queue, whole) || !queue_slice_valid(queue)) {
        return EMQ_EKEY;
    }
    size_t base = BASE_OPEN_LEN + queue.length + BASE_CLOSE_LEN;
    emq_slice rest = {key + base, n - base};
    for (int kind = 0; kind < EMQ_KEY_FENCE; kind++) {
        emq_slice name;
        if (match_name(&name, rest, &shapes[kind])) {
            parts.kind = (emq_key_kind)kind;
            memcpy(parts.queue, queue.data, queue.length);
            memcpy(parts.id, name.data, name.length);
            *out = parts;
            return EMQ_OK;
        }
    }
    return EMQ_EKEY;
}

unsigned emq_key_slot(const char *key, size_t n) {
    const char *text = key;
    size_t length = n;
    const char *open = n > 0 ? memchr(key, '{', n) : NULL;
    if (open != NULL) {
        size_t rest = n - (size_t)(open + 1 - key);
        const char *close = rest > 0 ? memchr(open + 1, '}', rest) : NULL;
        if (close != NULL && close > open + 1) {
            text = open + 1;
            length = (size_t)(close - text);
        }
    }
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)text[i] << 8;
        for (int bit = 0; bit < CHAR_BIT; bit++) {
            crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
        }
        crc &= 0xFFFFU;
    }
    return crc % 16384U;
}
