/* SPDX-License-Identifier: Apache-2.0 */
/* Random lines, weighted so that jobs get somewhere and then into every corner. */
#include "generator.h"

#include <stdio.h>
#include <string.h>

#define IDS 5

static uint64_t next_number(generator *g) {
    g->state ^= g->state >> 12;
    g->state ^= g->state << 25;
    g->state ^= g->state >> 27;
    return g->state * UINT64_C(0x2545F4914F6CDD1D);
}

static unsigned below(generator *g, unsigned bound) {
    return (unsigned)((next_number(g) >> 33) % bound);
}

static int one_in(generator *g, unsigned n) {
    return below(g, n) == 0;
}

#define PICK(g, list) (list)[below((g), (unsigned)(sizeof(list) / sizeof((list)[0])))]

void generator_init(generator *g, uint64_t seed) {
    /* seeds that lie side by side must not give sequences that do */
    uint64_t z = seed + UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    *g = (generator){.state = (z ^ (z >> 31)) | 1};
    g->damages = (int)below(g, 2);
    g->restarts = one_in(g, 12);
    g->reloads = 1;
}

/* An id, rather one of a set, if the set has any. */
static const char *pick_id(generator *g, char out[16], const model *m, const char *set) {
    const model_key *key = set == NULL ? NULL : model_find(m, set);
    (void)snprintf(out, 16, "J%u", 1 + below(g, IDS));
    if (key != NULL && key->type == MODEL_ZSET && !one_in(g, 8)) {
        const char *id = key->pairs[below(g, (unsigned)key->count)].name;
        size_t length = strlen(id);
        if (strncmp(id, ID_START, strlen(ID_START)) == 0) {
            (void)snprintf(out, 16, "J%c", id[length - 1]);
        }
    }
    return out;
}

static const char *pick_token(generator *g, const model *m, const char *id) {
    static const char *const wrong[] = {"0", "1", "2", "01", "x", "\"\"", "-1"};
    static char token[32];
    char row[MODEL_NAME_MAX];
    char full[LINE_TEXT_MAX];
    expand_ids(full, id);
    (void)snprintf(row, sizeof(row), "job:%.40s", full);
    const char *right = model_field(m, row, "attempts");
    if (right == NULL || right[0] == '\0' || one_in(g, 10)) {
        return PICK(g, wrong);
    }
    (void)snprintf(token, sizeof(token), "%.30s", right);
    return token;
}

static const char *pick_lease(generator *g) {
    static const char *const some[] = {"3600000", "3600000", "3600000", "1", "1", "2147483647"};
    static const char *const wrong[] = {"0", "01", "2147483648", "+1", "x", "\"\"", "-1"};
    return one_in(g, 40) ? PICK(g, wrong) : PICK(g, some);
}

static const char *pick_when(generator *g) {
    static const char *const some[] = {"in 0",
                                       "in 0",
                                       "in 1",
                                       "in 3600000",
                                       "in 7200000",
                                       "at 0",
                                       "at 1700000000000",
                                       "at 9007199254740991"};
    static const char *const wrong[] = {"on 5", "in 01",           "at -1", "at 9007199254740992",
                                        "in x", "in 315360000001", "IN 5",  "\"\" 5"};
    return one_in(g, 40) ? PICK(g, wrong) : PICK(g, some);
}

static const char *pick_payload(generator *g) {
    static const char *const some[] = {"one", "two", "\"\"", "\\x00\\xff\\x0a"};
    return PICK(g, some);
}

static const char *pick_count(generator *g) {
    static const char *const some[] = {"1", "1", "2", "3", "10"};
    static const char *const wrong[] = {"0", "02", "x", "-1", "99999999999999999999"};
    return one_in(g, 40) ? PICK(g, wrong) : PICK(g, some);
}

/* Behind what is in `out` already: ids that may be held, each with a token. */
static void add_held(generator *g, char *out, int used, const model *m, const char *set,
                     int members) {
    for (int i = 0; i < members; i++) {
        char id[16];
        (void)pick_id(g, id, m, set);
        used += snprintf(out + used, (size_t)(SEQUENCE_LINE_MAX - used), " %s %s", id,
                         pick_token(g, m, id));
    }
}

static void make_extends(generator *g, char *out, const model *m) {
    int members = 1 + (int)below(g, 4);
    int used = snprintf(out, SEQUENCE_LINE_MAX, "extends %s", pick_lease(g));
    add_held(g, out, used, m, "active", members);
}

/* Where a job that can be settled is: leased, or taken back. */
static const char *pick_holder(generator *g) {
    return one_in(g, 4) ? "pending" : "active";
}

static void make_settle(generator *g, char *out, const model *m) {
    char id[16];
    (void)pick_id(g, id, m, pick_holder(g));
    const char *token = pick_token(g, m, id);
    switch (below(g, 8)) {
    case 0:
    case 1:
    case 2:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "fail %s %s %s %s %s", id, token,
                       one_in(g, 3) ? "3600000" : "0", pick_count(g), pick_payload(g));
        break;
    case 3:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "requeue %s %s", id, token);
        break;
    case 4:
    case 5:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "delay %s %s %s", id, token, pick_when(g));
        break;
    default:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "complete %s %s", id, token);
    }
}

static void make_verb(generator *g, char *out, const model *m) {
    char id[16];
    unsigned n = below(g, 100);
    if (n < 16) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "enqueue %s %s",
                       one_in(g, 30) ? "USR0KHTOWnGLuC" : pick_id(g, id, m, NULL), pick_payload(g));
    } else if (n < 24) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "schedule %s %s %s",
                       one_in(g, 30) ? "USR0KHTOWnGLuC" : pick_id(g, id, m, NULL), pick_payload(g),
                       pick_when(g));
    } else if (n < 44) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "claim %s", pick_lease(g));
    } else if (n < 66) {
        make_settle(g, out, m);
    } else if (n < 70) {
        (void)pick_id(g, id, m, "active");
        (void)snprintf(out, SEQUENCE_LINE_MAX, "extend %s %s %s", id, pick_token(g, m, id),
                       pick_lease(g));
    } else if (n < 74) {
        make_extends(g, out, m);
    } else if (n < 82) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "promote %s", pick_count(g));
    } else if (n < 86) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "reschedule %s %s", pick_id(g, id, m, "schedule"),
                       pick_when(g));
    } else if (n < 91) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "reprocess %s", pick_id(g, id, m, "dead"));
    } else {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "stalled.check %s %s", pick_count(g), pick_count(g));
    }
}

static void make_row_damage(generator *g, char *out, const model *m) {
    static const char *const sets[] = {"pending", "active", "schedule", "dead"};
    static const char *const removed[] = {"payload", "attempts", "state", "lease_epoch"};
    static const char *const written[] = {
        "group g",     "parent J9",    "attempts x",    "attempts 9223372036854775807",
        "attempts -3", "attempts 7",   "failures x",    "failures 9223372036854775807",
        "stalled x",   "stalled -2",   "stalled 1",     "lease_epoch another",
        "state dead",  "state active", "state pending", "state scheduled",
        "state x",     "failures 1"};
    char id[16];
    (void)pick_id(g, id, m, PICK(g, sets));
    switch (below(g, 8)) {
    case 0:
    case 4:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! DEL @job:%s", id);
        break;
    case 1:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! HDEL @job:%s %s", id, PICK(g, removed));
        break;
    case 2:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! SET @job:%s x", id);
        break;
    case 3:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! RPUSH @job:%s:logs line", id);
        break;
    default:
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! HSET @job:%s %s", id, PICK(g, written));
    }
}

static void make_set_damage(generator *g, char *out, const model *m) {
    static const char *const keys[] = {
        "pending", "active", "schedule", "dead", "meta", "metrics:completed", "metrics:failed"};
    static const char *const counts[] = {"x", "9223372036854775807", "41"};
    static const char *const scores[] = {"0", "0", "-1", "5", "9007199254740991"};
    char id[16];
    unsigned n = below(g, 8);
    if (n < 2) {
        unsigned set = below(g, 4);
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! ZREM @%s %s", keys[set],
                       pick_id(g, id, m, keys[set]));
    } else if (n < 5) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! ZADD @%s %s %s", keys[below(g, 4)],
                       PICK(g, scores), pick_id(g, id, m, NULL));
    } else if (n == 5) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! SET @%s x", PICK(g, keys));
    } else if (n == 6) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! HSET @%s count %s", keys[5 + below(g, 2)],
                       PICK(g, counts));
    } else {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! DEL @%s", PICK(g, keys));
    }
}

/* A key of the wrong type stops everything else: it does not stay long. */
static int make_repair(generator *g, char *out, const model *m) {
    static const char *const keys[] = {
        "pending", "active", "schedule", "dead", "meta", "metrics:completed", "metrics:failed"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const model_key *key = model_find(m, keys[i]);
        if (key != NULL && key->type == MODEL_STRING && one_in(g, 8)) {
            (void)snprintf(out, SEQUENCE_LINE_MAX, "! DEL @%s", keys[i]);
            return 1;
        }
    }
    return 0;
}

void generator_next(generator *g, char out[SEQUENCE_LINE_MAX], const model *m) {
    if (model_field(m, "meta", "paused") != NULL && one_in(g, 4)) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! HDEL @meta paused");
    } else if (one_in(g, 80)) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "! HSET @meta paused 1");
    } else if (g->damages && make_repair(g, out, m)) {
        return;
    } else if (g->damages && one_in(g, 8)) {
        if (one_in(g, 3)) {
            make_set_damage(g, out, m);
        } else {
            make_row_damage(g, out, m);
        }
    } else if (g->restarts > 0 && one_in(g, 60)) {
        g->restarts--;
        (void)snprintf(out, SEQUENCE_LINE_MAX, "restart");
    } else if (g->reloads > 0 && one_in(g, 60)) {
        g->reloads--;
        (void)snprintf(out, SEQUENCE_LINE_MAX, "reload");
    } else if (one_in(g, 25)) {
        char verb[SEQUENCE_LINE_MAX];
        make_verb(g, verb, m);
        (void)snprintf(out, SEQUENCE_LINE_MAX, "paused %.*s", SEQUENCE_LINE_MAX - 8, verb);
    } else {
        make_verb(g, out, m);
    }
}

void generator_batch(generator *g, char out[SEQUENCE_LINE_MAX], const model *m) {
    int members = 1 + (int)below(g, 6);
    unsigned n = below(g, 3);
    if (n == 0) {
        int used = snprintf(out, SEQUENCE_LINE_MAX, "enqueues");
        for (int i = 0; i < members; i++) {
            char id[16];
            used += snprintf(out + used, (size_t)(SEQUENCE_LINE_MAX - used), " %s %s",
                             pick_id(g, id, m, NULL), pick_payload(g));
        }
    } else if (n == 1) {
        (void)snprintf(out, SEQUENCE_LINE_MAX, "claims %s %d", pick_lease(g), members);
    } else {
        int used = snprintf(out, SEQUENCE_LINE_MAX, "completes");
        add_held(g, out, used, m, pick_holder(g), members);
    }
}
