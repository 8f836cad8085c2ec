/* SPDX-License-Identifier: Apache-2.0 */
/* Branded ids: base62 of a snowflake behind a namespace; minting is lock-free and never goes back.
 */
#include "id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define DIGITS (EMQ_ID_LEN - EMQ_NAMESPACE_LEN)
#define BASE 62
#define NODE_SHIFT 12
#define MS_SHIFT 22
#define SEQUENCE_MASK ((UINT64_C(1) << NODE_SHIFT) - 1)
#define NODE_UNSET UINT32_MAX
#define SNOWFLAKE_MAX ((uint64_t)INT64_MAX)

static const char alphabet[BASE + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* The last snowflake that this process minted, and the node number of the next ones. */
static _Atomic uint64_t last_minted;
static _Atomic uint32_t node_number = NODE_UNSET;

/* The node number of the process that this one was forked from: never drawn here. */
static _Atomic uint32_t parent_node = NODE_UNSET;

/* The alphabet backwards, from '0' to 'z'. A table, since the digits of ids are as good as drawn by
 * chance: branches on them are mispredicted. */
static int digit_value(char c) {
    static const signed char values[] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  -1, -1, -1, -1, -1, -1, -1, 10, 11,
        12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
        31, 32, 33, 34, 35, -1, -1, -1, -1, -1, -1, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61};
    size_t place = (size_t)(unsigned char)c - '0';
    return place < sizeof(values) ? values[place] : -1;
}

static int namespace_valid(const char *text) {
    for (int i = 0; i < EMQ_NAMESPACE_LEN; i++) {
        if (text[i] < 'A' || text[i] > 'Z') {
            return 0;
        }
    }
    return 1;
}

/* Reads the eleven digits; the caller has checked the length. 62^11 is above 2^64, and 62^10 far
 * below: only the last digit can carry the number past 2^63 - 1, out of range. */
static int read_digits(uint64_t *out, const char *digits) {
    uint64_t value = 0;
    uint64_t rest = 0;
    for (int i = 0; i < DIGITS; i++) {
        int digit = digit_value(digits[i]);
        if (digit < 0) {
            return EMQ_EID_CHARSET;
        }
        rest = value;
        value = value * BASE + (uint64_t)digit;
    }
    *out = value;
    return rest > SNOWFLAKE_MAX / BASE || value > SNOWFLAKE_MAX ? EMQ_EID_RANGE : EMQ_OK;
}

static int parse(uint64_t *snowflake, const char *text, size_t n) {
    if (n != EMQ_ID_LEN) {
        return EMQ_EID_LENGTH;
    }
    if (!namespace_valid(text)) {
        return EMQ_EID_NAMESPACE;
    }
    return read_digits(snowflake, text + EMQ_NAMESPACE_LEN);
}

int emq_id_parse(emq_id *out, const char *text, size_t n) {
    if (text == NULL) {
        return EMQ_EINVAL;
    }
    uint64_t snowflake = 0;
    int result = parse(&snowflake, text, n);
    if (result == EMQ_OK && out != NULL) {
        memcpy(out->text, text, EMQ_ID_LEN);
        out->text[EMQ_ID_LEN] = '\0';
    }
    return result;
}

int emq_id_to_snowflake(uint64_t *out, const emq_id *id) {
    if (out == NULL || id == NULL) {
        return EMQ_EINVAL;
    }
    uint64_t snowflake = 0;
    int result = parse(&snowflake, id->text, strnlen(id->text, sizeof(id->text)));
    if (result == EMQ_OK) {
        *out = snowflake;
    }
    return result;
}

int emq_id_valid(const emq_id *id) {
    uint64_t snowflake = 0;
    return emq_id_to_snowflake(&snowflake, id) == EMQ_OK;
}

int emq_id_unix_ms(int64_t *out, const emq_id *id) {
    uint64_t snowflake = 0;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    int result = emq_id_to_snowflake(&snowflake, id);
    if (result == EMQ_OK) {
        *out = (int64_t)(snowflake >> MS_SHIFT) + EMQ_ID_EPOCH_MS;
    }
    return result;
}

int emq_id_from_snowflake(emq_id *out, const char *name_space, uint64_t snowflake) {
    if (out == NULL || name_space == NULL) {
        return EMQ_EINVAL;
    }
    if (strnlen(name_space, EMQ_NAMESPACE_LEN + 1) != EMQ_NAMESPACE_LEN ||
        !namespace_valid(name_space)) {
        return EMQ_EID_NAMESPACE;
    }
    if (snowflake > SNOWFLAKE_MAX) {
        return EMQ_EID_RANGE;
    }
    memcpy(out->text, name_space, EMQ_NAMESPACE_LEN);
    for (int i = EMQ_ID_LEN - 1; i >= EMQ_NAMESPACE_LEN; i--) {
        out->text[i] = alphabet[snowflake % BASE];
        snowflake /= BASE;
    }
    out->text[EMQ_ID_LEN] = '\0';
    return EMQ_OK;
}

/* A child must not mint its parent's ids: it draws a node of its own. */
static void forget_node(void) {
    uint32_t node = atomic_exchange(&node_number, NODE_UNSET);
    if (node != NODE_UNSET) {
        atomic_store(&parent_node, node);
    }
}

static void watch_forks(void) {
    (void)pthread_atfork(NULL, NULL, forget_node);
}

static uint32_t get_node(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint32_t node = atomic_load(&node_number);
    if (node != NODE_UNSET) {
        return node;
    }
    (void)pthread_once(&once, watch_forks);
    uint32_t drawn = 0;
    if (getentropy(&drawn, sizeof(drawn)) != 0) {
        struct timespec now = {0};
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        drawn = (uint32_t)now.tv_nsec ^ ((uint32_t)getpid() << 7);
    }
    drawn &= EMQ_ID_NODE_MAX;
    if (drawn == atomic_load(&parent_node)) {
        drawn = (drawn + 1) & EMQ_ID_NODE_MAX;
    }
    /* two threads may draw at once: the first one's number counts */
    return atomic_compare_exchange_strong(&node_number, &node, drawn) ? drawn : node;
}

int emq_id_set_node(unsigned node) {
    if (node > EMQ_ID_NODE_MAX) {
        return EMQ_EINVAL;
    }
    (void)get_node(); /* so that forks are watched from now on */
    atomic_store(&node_number, node);
    return EMQ_OK;
}

/* The snowflake after `last`, at or after `ms`. With another node than before it starts in a new
 * millisecond, since the node's bits weigh more than the sequence's. */
static uint64_t next_snowflake(uint64_t last, uint64_t ms, uint64_t node) {
    uint64_t last_ms = last >> MS_SHIFT;
    uint64_t last_node = (last >> NODE_SHIFT) & EMQ_ID_NODE_MAX;
    if (ms > last_ms) {
        return ms << MS_SHIFT | node << NODE_SHIFT;
    }
    if (node == last_node && (last & SEQUENCE_MASK) < SEQUENCE_MASK) {
        return last + 1;
    }
    return (last_ms + 1) << MS_SHIFT | node << NODE_SHIFT;
}

int emq_id_mint_at(emq_id *out, const char *name_space, int64_t unix_ms) {
    const int64_t last_ms = (int64_t)(SNOWFLAKE_MAX >> MS_SHIFT);
    int64_t ms = unix_ms - EMQ_ID_EPOCH_MS;
    if (ms < 0 || ms > last_ms) {
        return EMQ_EID_RANGE;
    }
    /* the namespace is looked at first, so that a refusal uses up no number */
    int result = emq_id_from_snowflake(out, name_space, 0);
    if (result != EMQ_OK) {
        return result;
    }
    uint64_t last = atomic_load(&last_minted);
    uint64_t next = 0;
    do {
        next = next_snowflake(last, (uint64_t)ms, get_node());
        if (next > SNOWFLAKE_MAX) {
            return EMQ_EID_RANGE;
        }
    } while (!atomic_compare_exchange_weak(&last_minted, &last, next));
    return emq_id_from_snowflake(out, name_space, next);
}

int emq_id_mint(emq_id *out, const char *name_space) {
    struct timespec now = {0};
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return EMQ_ESYSTEM;
    }
    return emq_id_mint_at(out, name_space, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}
