/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the ACL rules of a role: who runs which verb stands here, the keys follow from the verb's
 * row and from what its handler reaches beyond it. */
#include "roles.h"

#include <emq/keyspace.h>
#include <string.h>

#include "keys.h"
#include "verbs.h"

#define PRODUCER (1U << EMQ_ROLE_PRODUCER)
#define WORKER (1U << EMQ_ROLE_WORKER)
#define OPERATOR (1U << EMQ_ROLE_OPERATOR)
#define INSTALLER (1U << EMQ_ROLE_INSTALLER)

#define KINDS (EMQ_KEY_FENCE + 1)

/* Sets of key kinds. */
#define KIND(kind) (1ULL << (kind))
#define NONE 0ULL
#define ROWS KIND(EMQ_KEY_JOB) /* the pattern of rows covers what hangs on a row, too */

/* What a verb reaches beyond its declared keys, as its handler asks for it. A verb that is missing
 * here belongs to no role. */
typedef struct grant {
    unsigned roles;
    unsigned long long written;
    unsigned long long read;
} grant;

static const grant grants[EMQ_VERBS] = {
    [EMQ_VERB_VERSION] = {PRODUCER | WORKER | OPERATOR | INSTALLER, NONE, NONE},
    [EMQ_VERB_INSTALL] = {INSTALLER, NONE, NONE},
    [EMQ_VERB_ENQUEUE] = {PRODUCER, NONE, NONE},
    [EMQ_VERB_ENQUEUES] = {PRODUCER, ROWS, NONE},
    [EMQ_VERB_SCHEDULE] = {PRODUCER, NONE, NONE},
    [EMQ_VERB_PUBLISH] = {PRODUCER, KIND(EMQ_KEY_EVENTS_SEQ), NONE},
    [EMQ_VERB_CLAIM] = {WORKER, ROWS, KIND(EMQ_KEY_META)},
    [EMQ_VERB_CLAIMS] = {WORKER, ROWS, KIND(EMQ_KEY_META) | KIND(EMQ_KEY_SCHEDULE)},
    [EMQ_VERB_EXTEND] = {WORKER, NONE, NONE},
    [EMQ_VERB_EXTENDS] = {WORKER, ROWS, NONE},
    [EMQ_VERB_COMPLETE] = {WORKER, ROWS | KIND(EMQ_KEY_PENDING) | KIND(EMQ_KEY_COMPLETED), NONE},
    [EMQ_VERB_COMPLETES] = {WORKER, ROWS | KIND(EMQ_KEY_PENDING) | KIND(EMQ_KEY_COMPLETED), NONE},
    [EMQ_VERB_FAIL] = {WORKER, KIND(EMQ_KEY_PENDING) | KIND(EMQ_KEY_FAILED), NONE},
    [EMQ_VERB_DELAY] = {WORKER, KIND(EMQ_KEY_PENDING), NONE},
    [EMQ_VERB_REQUEUE] = {WORKER, NONE, NONE},
    [EMQ_VERB_PROMOTE] = {WORKER | OPERATOR, ROWS, NONE},
    [EMQ_VERB_STALLED_CHECK] = {WORKER | OPERATOR, ROWS | KIND(EMQ_KEY_FAILED), NONE},
    [EMQ_VERB_REPROCESS] = {OPERATOR, NONE, NONE},
    [EMQ_VERB_RESCHEDULE] = {OPERATOR, NONE, NONE},
    [EMQ_VERB_PAUSE] = {OPERATOR, NONE, NONE},
    [EMQ_VERB_RESUME] = {OPERATOR, NONE, NONE},
};

/* The server's own commands that a role runs, and the keys that it reads with them alone. The
 * client names its connection; it, and every verb, reads the fence. */
static const struct {
    const char *name;
    const char *commands;
    unsigned long long read;
} roles[EMQ_ROLES] = {
    [EMQ_ROLE_PRODUCER] = {"producer", "+client|setname +get", KIND(EMQ_KEY_FENCE)},
    [EMQ_ROLE_WORKER] = {"worker",
                         "+client|id +client|setname +client|unblock +get +hgetall +time +zrange",
                         KIND(EMQ_KEY_FENCE)},
    [EMQ_ROLE_OPERATOR] = {"operator",
                           "+client|setname +get +hgetall +lrange +scan +time +zcard +zrange",
                           KIND(EMQ_KEY_FENCE) | KIND(EMQ_KEY_COMPLETED)},
    [EMQ_ROLE_INSTALLER] = {"installer", "+client|setname", NONE},
};

const char *emq_role_name(emq_role role) {
    return (int)role >= 0 && role < EMQ_ROLES ? roles[role].name : NULL;
}

typedef struct text {
    char *bytes;
    size_t cap;
    size_t length;
    int is_full;
} text;

static void add(text *out, const char *more) {
    size_t length = strlen(more);
    if (out->is_full || out->cap - out->length <= length) {
        out->is_full = 1;
        return;
    }
    memcpy(out->bytes + out->length, more, length + 1);
    out->length += length;
}

/* The server lists commands in small letters, and so do we. */
static void add_verb(text *out, const emq_verb *verb) {
    size_t start = out->length;
    add(out, " +");
    add(out, verb->name);
    for (size_t i = start; i < out->length; i++) {
        if (out->bytes[i] >= 'A' && out->bytes[i] <= 'Z') {
            out->bytes[i] = (char)(out->bytes[i] - 'A' + 'a');
        }
    }
}

static void add_key(text *out, const char *sign, emq_key_kind kind, const char *queue) {
    char pattern[EMQ_KEY_MAX + 1];
    (void)emq_key_write(pattern, sizeof(pattern), kind, emq_slice_of(queue), emq_slice_of("*"));
    add(out, sign);
    add(out, pattern);
}

static unsigned long long declared_kinds(const emq_verb *verb) {
    unsigned long long kinds = NONE;
    for (int i = 0; i < verb->key_count; i++) {
        kinds |= KIND(verb->keys[i]);
    }
    return kinds;
}

static int write_rules(text *line, emq_role role, const char *queue) {
    unsigned long long written = NONE;
    unsigned long long read = roles[role].read;
    unsigned flags = 0;
    add(line, roles[role].commands);
    for (int i = 0; i < EMQ_VERBS; i++) {
        if ((grants[i].roles & (1U << role)) != 0) {
            add_verb(line, &emq_verbs[i]);
            written |= declared_kinds(&emq_verbs[i]) | grants[i].written;
            read |= grants[i].read;
            flags |= emq_verbs[i].flags;
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        if ((written & KIND(kind)) != 0) {
            add_key(line, " ~", (emq_key_kind)kind, queue);
        } else if ((read & KIND(kind)) != 0) {
            add_key(line, " %R~", (emq_key_kind)kind, queue);
        }
    }
    if ((flags & EMQ_FLAG_PUBSUB) != 0) {
        add_key(line, " &", EMQ_KEY_EVENTS, queue);
    }
    return line->is_full ? EMQ_EINVAL : (int)line->length;
}

int emq_role_rules(char *out, size_t cap, emq_role role, const char *queue) {
    text line = {out, cap, 0, 0};
    if (out == NULL || cap == 0) {
        return EMQ_EINVAL;
    }
    out[0] = '\0';
    if (emq_role_name(role) == NULL || (queue == NULL && role != EMQ_ROLE_INSTALLER)) {
        return EMQ_EINVAL;
    }
    if (role != EMQ_ROLE_INSTALLER && !emq_queue_valid(queue)) {
        return EMQ_EQUEUE;
    }
    int length = write_rules(&line, role, role == EMQ_ROLE_INSTALLER ? "" : queue);
    if (length < 0) {
        out[0] = '\0';
    }
    return length;
}
