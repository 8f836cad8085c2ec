/* SPDX-License-Identifier: Apache-2.0 */
/* The model: a small keyspace, and the verbs upon it. */
#include "model.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLAIM_LOOKS 17
#define WRONG_TYPE "-WRONGTYPE Operation against a key holding the wrong kind of value"
#define NO_INTEGER "-ERR hash value is not an integer"
#define OVERFLOWS "-ERR increment or decrement would overflow"
#define PAUSED "-ERR EMQ write-paused"
#define GONE "-EMQSTALE job gone"

/* ---- the keyspace ---- */

void model_init(model *m, const char *run_id) {
    memset(m, 0, sizeof(*m));
    (void)snprintf(m->run_id, sizeof(m->run_id), "%s", run_id);
}

static model_key *find(model *m, const char *name) {
    for (int i = 0; i < MODEL_KEYS_MAX; i++) {
        if (m->keys[i].name[0] != '\0' && strcmp(m->keys[i].name, name) == 0) {
            return &m->keys[i];
        }
    }
    return NULL;
}

const model_key *model_find(const model *m, const char *name) {
    for (int i = 0; i < MODEL_KEYS_MAX; i++) {
        if (m->keys[i].name[0] != '\0' && strcmp(m->keys[i].name, name) == 0) {
            return &m->keys[i];
        }
    }
    return NULL;
}

static model_key *make(model *m, const char *name, model_type type) {
    model_key *key = find(m, name);
    for (int i = 0; key == NULL; i++) {
        assert_true(i < MODEL_KEYS_MAX);
        if (m->keys[i].name[0] == '\0') {
            key = &m->keys[i];
            (void)snprintf(key->name, sizeof(key->name), "%s", name);
            key->type = type;
            key->count = 0;
        }
    }
    return key;
}

static void delete_key(model *m, const char *name) {
    model_key *key = find(m, name);
    if (key != NULL) {
        key->name[0] = '\0';
    }
}

static model_pair *find_pair(model_key *key, const char *name) {
    for (int i = 0; key != NULL && i < key->count; i++) {
        if (strcmp(key->pairs[i].name, name) == 0) {
            return &key->pairs[i];
        }
    }
    return NULL;
}

static void remove_pair(model *m, const char *key_name, const char *name) {
    model_key *key = find(m, key_name);
    model_pair *pair = find_pair(key, name);
    if (pair != NULL) {
        int at = (int)(pair - key->pairs);
        key->count--;
        memmove(pair, pair + 1, (size_t)(key->count - at) * sizeof(*pair));
        if (key->count == 0) {
            delete_key(m, key_name);
        }
    }
}

static void insert_pair(model_key *key, int at, const model_pair *pair) {
    assert_true(key->count < MODEL_PAIRS_MAX);
    memmove(&key->pairs[at + 1], &key->pairs[at], (size_t)(key->count - at) * sizeof(*pair));
    key->pairs[at] = *pair;
    key->count++;
}

static void hset(model *m, const char *name, const char *field, const char *value) {
    model_key *key = make(m, name, MODEL_HASH);
    model_pair pair = {.score = 0};
    model_pair *old = find_pair(key, field);
    (void)snprintf(pair.name, sizeof(pair.name), "%s", field);
    (void)snprintf(pair.value, sizeof(pair.value), "%s", value);
    if (old != NULL) {
        *old = pair;
    } else {
        insert_pair(key, key->count, &pair);
    }
}

static void hset_number(model *m, const char *name, const char *field, long long value) {
    char text[32];
    (void)snprintf(text, sizeof(text), "%lld", value);
    hset(m, name, field, text);
}

static void zadd(model *m, const char *name, long long score, const char *member) {
    model_pair pair = {.score = score};
    int at = 0;
    remove_pair(m, name, member);
    model_key *key = make(m, name, MODEL_ZSET);
    (void)snprintf(pair.name, sizeof(pair.name), "%s", member);
    while (at < key->count &&
           (key->pairs[at].score < score ||
            (key->pairs[at].score == score && strcmp(key->pairs[at].name, member) < 0))) {
        at++;
    }
    insert_pair(key, at, &pair);
}

/* Absent, or of this type. */
static int is_or_absent(const model *m, const char *name, model_type type) {
    const model_key *key = model_find(m, name);
    return key == NULL || key->type == type;
}

int model_is_member(const model *m, const char *set, const char *id) {
    const model_key *key = model_find(m, set);
    for (int i = 0; key != NULL && key->type == MODEL_ZSET && i < key->count; i++) {
        if (strcmp(key->pairs[i].name, id) == 0) {
            return 1;
        }
    }
    return 0;
}

const char *model_field(const model *m, const char *name, const char *field) {
    const model_key *key = model_find(m, name);
    for (int i = 0; key != NULL && key->type == MODEL_HASH && i < key->count; i++) {
        if (strcmp(key->pairs[i].name, field) == 0) {
            return key->pairs[i].value;
        }
    }
    return NULL;
}

static int field_is(const model *m, const char *name, const char *field, const char *value) {
    const char *got = model_field(m, name, field);
    return got != NULL && strcmp(got, value) == 0;
}

void model_state(snapshot *out, const model *m) {
    static const char *const types[] = {"string", "hash", "zset", "list"};
    *out = (snapshot){0};
    for (int i = 0; i < MODEL_KEYS_MAX; i++) {
        const model_key *key = &m->keys[i];
        for (int j = 0; key->name[0] != '\0' && j < key->count; j++) {
            char path[3 * MODEL_NAME_MAX];
            char score[32];
            const model_pair *pair = &key->pairs[j];
            (void)snprintf(path, sizeof(path), "%s %s %s", key->name, types[key->type], pair->name);
            (void)snprintf(score, sizeof(score), "%lld", pair->score);
            snapshot_add(out, path, key->type == MODEL_ZSET ? score : pair->value);
        }
    }
    snapshot_sort(out);
}

/* ---- numbers and texts ---- */

/* A whole number as the server reads one: canonical decimal, perhaps with a minus. */
static int parse_number(const char *text, long long *out) {
    char again[32];
    char *end = NULL;
    errno = 0;
    *out = strtoll(text, &end, 10);
    (void)snprintf(again, sizeof(again), "%lld", *out);
    return errno == 0 && strcmp(again, text) == 0;
}

static char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *pattern, ...) {
    char text[2048];
    va_list values;
    va_start(values, pattern);
    (void)vsnprintf(text, sizeof(text), pattern, values);
    va_end(values);
    return strdup(text);
}

/* A value of the protocol: 1 and *out, or 0 and the refusal. */
static int parse_value(const char *text, const char *what, long long min, long long max,
                       long long *out, char **refusal) {
    if (parse_number(text, out) && text[0] != '-' && *out >= min && *out <= max) {
        return 1;
    }
    *refusal = format("-ERR EMQ %s must be an integer from %lld to %lld", what, min, max);
    return 0;
}

static int parse_when(const char *mode, const char *ms, long long now, long long *out,
                      char **refusal) {
    if (strcmp(mode, "at") == 0) {
        return parse_value(ms, "at ms", 0, 9007199254740991, out, refusal);
    }
    if (strcmp(mode, "in") != 0) {
        *refusal = strdup("-ERR EMQ mode must be at or in");
        return 0;
    }
    if (!parse_value(ms, "in ms", 0, 315360000000, out, refusal)) {
        return 0;
    }
    *out += now;
    return 1;
}

static int parse_lease(const char *text, long long *out, char **refusal) {
    return parse_value(text, "lease_ms", 1, INT_MAX, out, refusal);
}

/* A word of a line as a text of the model. */
static const char *value_of(char out[LINE_TEXT_MAX], const words *line, int index) {
    if (index >= line->count || strcmp(line->word[index], "\"\"") == 0) {
        out[0] = '\0';
    } else {
        expand_ids(out, line->word[index]);
    }
    return out;
}

static void row_name(char out[MODEL_NAME_MAX], const char *id) {
    (void)snprintf(out, MODEL_NAME_MAX, "job:%.40s", id);
}

/* One call; the values are texts of the model. */
typedef struct step {
    model *m;
    const char *word;
    char values[8][LINE_TEXT_MAX];
    const words *line;
    long long now;
    int paused;
    char row[MODEL_NAME_MAX]; /* of the id in value 0 */
} step;

/* ---- admission ---- */

static char *admit(step *s, const char *state, const char *set, long long score) {
    if (model_find(s->m, s->row) != NULL) {
        return strdup("0");
    }
    if (!is_or_absent(s->m, set, MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    if (s->paused) {
        return strdup(PAUSED);
    }
    hset(s->m, s->row, "state", state);
    hset(s->m, s->row, "attempts", "0");
    hset(s->m, s->row, "payload", s->values[1]);
    zadd(s->m, set, score, s->values[0]);
    return strdup("1");
}

static int is_job(const step *s) {
    return strncmp(s->values[0], "JOB", 3) == 0;
}

#define KIND "-EMQKIND job id must be JOB-namespaced"

static char *enqueue(step *s) {
    return is_job(s) ? admit(s, "pending", "pending", 0) : strdup(KIND);
}

static char *schedule(step *s) {
    char *refusal = NULL;
    long long when = 0;
    if (!is_job(s)) {
        return strdup(KIND);
    }
    return parse_when(s->values[2], s->values[3], s->now, &when, &refusal)
               ? admit(s, "scheduled", "schedule", when)
               : refusal;
}

/* ---- claim ---- */

static void remove_orphans(model *m, int count) {
    for (int i = 0; i < count; i++) {
        char name[MODEL_NAME_MAX];
        (void)snprintf(name, sizeof(name), "%s", find(m, "pending")->pairs[0].name);
        remove_pair(m, "pending", name);
    }
}

static char *lease_out(step *s, const char *id, long long attempts, long long lease_ms) {
    const char *payload = model_field(s->m, s->row, "payload");
    char *reply = payload == NULL ? format("[\"%s\", nil, %lld]", id, attempts)
                                  : format("[\"%s\", \"%s\", %lld]", id, payload, attempts);
    remove_pair(s->m, "pending", id);
    hset(s->m, s->row, "state", "active");
    hset_number(s->m, s->row, "attempts", attempts);
    hset(s->m, s->row, "lease_epoch", s->m->run_id);
    zadd(s->m, "active", s->now + lease_ms, id);
    return reply;
}

static char *claim(step *s) {
    char *refusal = NULL;
    char id[MODEL_NAME_MAX];
    long long lease_ms = 0;
    long long attempts = 0;
    if (!parse_lease(s->values[0], &lease_ms, &refusal)) {
        return refusal;
    }
    if (!is_or_absent(s->m, "meta", MODEL_HASH)) {
        return strdup(WRONG_TYPE);
    }
    if (model_field(s->m, "meta", "paused") != NULL) {
        return strdup("[]");
    }
    const model_key *pending = model_find(s->m, "pending");
    if (pending == NULL) {
        return strdup("[]");
    }
    if (pending->type != MODEL_ZSET) {
        return strdup(WRONG_TYPE);
    }
    int orphans = 0;
    for (; orphans < pending->count && orphans < CLAIM_LOOKS; orphans++) {
        row_name(s->row, pending->pairs[orphans].name);
        if (model_find(s->m, s->row) != NULL) {
            break;
        }
    }
    if (orphans == pending->count || orphans == CLAIM_LOOKS) {
        if (!s->paused) {
            remove_orphans(s->m, orphans);
        }
        return strdup(s->paused ? PAUSED : "[]");
    }
    (void)snprintf(id, sizeof(id), "%s", pending->pairs[orphans].name);
    if (model_find(s->m, s->row)->type != MODEL_HASH) {
        return strdup(WRONG_TYPE);
    }
    const char *text = model_field(s->m, s->row, "attempts");
    if (text != NULL && (!parse_number(text, &attempts) || attempts == LLONG_MAX)) {
        return strdup("-ERR EMQ row attempts is not an integer");
    }
    if (!is_or_absent(s->m, "active", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    if (s->paused) {
        return strdup(PAUSED);
    }
    remove_orphans(s->m, orphans);
    return lease_out(s, id, attempts + 1, lease_ms);
}

/* ---- leases ---- */

static void prolong(step *s, const char *row, const char *id, long long lease_ms) {
    zadd(s->m, "active", s->now + lease_ms, id);
    hset(s->m, row, "lease_epoch", s->m->run_id);
}

static char *extend(step *s) {
    char *refusal = NULL;
    long long lease_ms = 0;
    if (!parse_lease(s->values[2], &lease_ms, &refusal)) {
        return refusal;
    }
    if (!is_or_absent(s->m, s->row, MODEL_HASH)) {
        return strdup(WRONG_TYPE);
    }
    const char *attempts = model_field(s->m, s->row, "attempts");
    if (attempts == NULL) {
        return strdup("-1");
    }
    if (strcmp(attempts, s->values[1]) != 0) {
        return strdup("-EMQSTALE extend token mismatch");
    }
    if (!is_or_absent(s->m, "active", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    if (!model_is_member(s->m, "active", s->values[0])) {
        return strdup("-EMQSTALE extend lease lost");
    }
    if (s->paused) {
        return strdup(PAUSED);
    }
    prolong(s, s->row, s->values[0], lease_ms);
    return strdup("1");
}

static int can_extend(const model *m, const char *row, const char *id, const char *token) {
    return field_is(m, row, "attempts", token) && model_is_member(m, "active", id);
}

static char *extends(step *s) {
    char *reply = NULL;
    long long lease_ms = 0;
    int extended = 0;
    if (!parse_lease(s->values[0], &lease_ms, &reply)) {
        return reply;
    }
    if (!is_or_absent(s->m, "active", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    append_text(&reply, "[");
    for (int i = 2; i + 1 < s->line->count; i += 2) {
        char id[LINE_TEXT_MAX];
        char token[LINE_TEXT_MAX];
        char row[MODEL_NAME_MAX];
        row_name(row, value_of(id, s->line, i));
        if (can_extend(s->m, row, id, value_of(token, s->line, i + 1))) {
            extended++;
            if (!s->paused) {
                prolong(s, row, id, lease_ms);
            }
        } else {
            append_text(&reply, reply[1] == '\0' ? "" : ", ");
            append_quoted(&reply, id, strlen(id));
        }
    }
    append_text(&reply, "]");
    if (extended > 0 && s->paused) {
        free(reply);
        reply = strdup(PAUSED);
    }
    return reply;
}

/* ---- settling ---- */

/* Checks whether the caller may settle; the set that holds the job, or NULL and the reply. */
static const char *find_holder(step *s, const char *word, const char *gone, int refuses_flow,
                               char **reply) {
    long long attempts = 0;
    const char *holder = NULL;
    const model *m = s->m;
    *reply = NULL;
    if (!is_or_absent(m, s->row, MODEL_HASH)) {
        *reply = strdup(WRONG_TYPE);
        return NULL;
    }
    const char *text = model_field(m, s->row, "attempts");
    if (text == NULL) {
        *reply = strdup(gone);
    } else if (model_field(m, s->row, "group") != NULL) {
        *reply = strdup("-EMQLANE lane row: use the EMQ.GROUP verb");
    } else if (refuses_flow && model_field(m, s->row, "parent") != NULL) {
        *reply = strdup("-EMQFLOW flow row: use the EMQ.FLOW verb");
    } else if (strcmp(text, s->values[1]) != 0) {
        *reply = format("-EMQSTALE %s token mismatch", word);
    } else if (!parse_number(text, &attempts)) {
        *reply = strdup("-ERR EMQ row attempts is not an integer");
    }
    if (*reply != NULL) {
        return NULL;
    }
    if (field_is(m, s->row, "state", "active")) {
        holder = "active";
    } else if (field_is(m, s->row, "state", "pending") &&
               model_field(m, s->row, "lease_epoch") != NULL) {
        holder = "pending";
    }
    if (attempts >= 1 && holder != NULL && !is_or_absent(m, holder, MODEL_ZSET)) {
        *reply = strdup(WRONG_TYPE);
        return NULL;
    }
    if (attempts < 1 || holder == NULL || !model_is_member(m, holder, s->values[0])) {
        *reply = format("-EMQSTALE %s lease lost", word);
        return NULL;
    }
    return holder;
}

/* The count of a metric: 1 and *out, or 0 and the refusal. */
static int read_count(const model *m, const char *key, long long *out, char **refusal) {
    const char *text = model_field(m, key, "count");
    *out = 0;
    if (!is_or_absent(m, key, MODEL_HASH)) {
        *refusal = strdup(WRONG_TYPE);
    } else if (text != NULL && !parse_number(text, out)) {
        *refusal = strdup(NO_INTEGER);
    } else if (*out == LLONG_MAX) {
        *refusal = strdup(OVERFLOWS);
    } else {
        return 1;
    }
    return 0;
}

static char *complete(step *s) {
    char *reply = NULL;
    char logs[MODEL_NAME_MAX + 8];
    long long count = 0;
    const char *holder = find_holder(s, "complete", "0", 1, &reply);
    if (holder == NULL || !read_count(s->m, "metrics:completed", &count, &reply)) {
        return reply;
    }
    if (s->paused) {
        return strdup(PAUSED);
    }
    remove_pair(s->m, holder, s->values[0]);
    delete_key(s->m, s->row);
    (void)snprintf(logs, sizeof(logs), "%s:logs", s->row);
    delete_key(s->m, logs);
    hset_number(s->m, "metrics:completed", "count", count + 1);
    return strdup("1");
}

static void release(step *s, const char *holder) {
    remove_pair(s->m, holder, s->values[0]);
    remove_pair(s->m, s->row, "lease_epoch");
}

/* Back into a set, when that is a set and writes are not paused. */
static char *give_back(step *s, const char *holder, const char *state, const char *set,
                       long long score) {
    if (!is_or_absent(s->m, set, MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    if (s->paused) {
        return strdup(PAUSED);
    }
    release(s, holder);
    hset(s->m, s->row, "state", state);
    zadd(s->m, set, score, s->values[0]);
    return strdup("1");
}

static char *delay(step *s) {
    char *reply = NULL;
    long long when = 0;
    if (!is_job(s)) {
        return strdup(KIND);
    }
    if (!parse_when(s->values[2], s->values[3], s->now, &when, &reply)) {
        return reply;
    }
    const char *holder = find_holder(s, "delay", GONE, 0, &reply);
    return holder == NULL ? reply : give_back(s, holder, "scheduled", "schedule", when);
}

static char *requeue(step *s) {
    char *reply = NULL;
    const char *holder = find_holder(s, "requeue", "-1", 0, &reply);
    return holder == NULL ? reply : give_back(s, holder, "pending", "pending", 0);
}

static char *bury(step *s, const char *holder, long long failures) {
    char *reply = NULL;
    long long count = 0;
    if (!is_or_absent(s->m, "dead", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    if (!read_count(s->m, "metrics:failed", &count, &reply)) {
        return reply;
    }
    reply = give_back(s, holder, "dead", "dead", 0);
    if (strcmp(reply, "1") == 0) {
        hset(s->m, s->row, "last_error", s->values[4]);
        hset_number(s->m, s->row, "failures", failures);
        hset_number(s->m, "metrics:failed", "count", count + 1);
        free(reply);
        reply = strdup("\"dead\"");
    }
    return reply;
}

static char *fail_job(step *s) {
    char *reply = NULL;
    long long delay_ms = 0;
    long long max = 0;
    long long failures = 0;
    if (!parse_value(s->values[2], "delay_ms", 0, 315360000000, &delay_ms, &reply) ||
        !parse_value(s->values[3], "max_failures", 1, INT_MAX, &max, &reply)) {
        return reply;
    }
    const char *holder = find_holder(s, "retry", GONE, 1, &reply);
    if (holder == NULL) {
        return reply;
    }
    const char *text = model_field(s->m, s->row, "failures");
    if (text != NULL && (!parse_number(text, &failures) || failures == LLONG_MAX)) {
        return strdup("-ERR EMQ row failures is not an integer");
    }
    failures++;
    if (failures >= max) {
        return bury(s, holder, failures);
    }
    reply = give_back(s, holder, "scheduled", "schedule", s->now + delay_ms);
    if (strcmp(reply, "1") == 0) {
        hset(s->m, s->row, "last_error", s->values[4]);
        hset_number(s->m, s->row, "failures", failures);
        free(reply);
        reply = strdup("\"scheduled\"");
    }
    return reply;
}

/* ---- jobs that nobody holds ---- */

/* The job is in this state and set; NULL, or the reply. */
static char *check_state(step *s, const char *state, const char *set) {
    if (!field_is(s->m, s->row, "state", state)) {
        return format("-EMQSTATE not %s", state);
    }
    if (!is_or_absent(s->m, set, MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    return model_is_member(s->m, set, s->values[0]) ? NULL : format("-EMQSTATE not %s", state);
}

static char *check_row(step *s) {
    if (!is_or_absent(s->m, s->row, MODEL_HASH)) {
        return strdup(WRONG_TYPE);
    }
    return model_field(s->m, s->row, "attempts") == NULL ? strdup("-1") : NULL;
}

static char *reschedule(step *s) {
    char *reply = NULL;
    long long when = 0;
    if (!parse_when(s->values[1], s->values[2], s->now, &when, &reply) ||
        (reply = check_row(s)) != NULL ||
        (reply = check_state(s, "scheduled", "schedule")) != NULL) {
        return reply;
    }
    if (s->paused) {
        return strdup(PAUSED);
    }
    zadd(s->m, "schedule", when, s->values[0]);
    return strdup("1");
}

static char *reprocess(step *s) {
    static const char *const forgotten[] = {"last_error", "failures", "stalled", "lease_epoch"};
    char *reply = check_row(s);
    if (reply != NULL) {
        return reply;
    }
    if (model_field(s->m, s->row, "group") != NULL) {
        return strdup("-EMQLANE lane row: use the EMQ.GROUP verb");
    }
    if ((reply = check_state(s, "dead", "dead")) != NULL) {
        return reply;
    }
    if (!is_or_absent(s->m, "pending", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    if (s->paused) {
        return strdup(PAUSED);
    }
    remove_pair(s->m, "dead", s->values[0]);
    for (int i = 0; i < 4; i++) {
        remove_pair(s->m, s->row, forgotten[i]);
    }
    hset(s->m, s->row, "state", "pending");
    zadd(s->m, "pending", 0, s->values[0]);
    return strdup("1");
}

/* ---- sweeps ---- */

typedef struct sweep {
    char moved[MODEL_PAIRS_MAX][MODEL_NAME_MAX];
    int moved_count;
    char dropped[MODEL_PAIRS_MAX][MODEL_NAME_MAX];
    int dropped_count;
} sweep;

/* What is due, lowest first, until the limit is reached. */
static void find_due(sweep *out, const model *m, const char *set, const char *state, long long now,
                     long long limit) {
    const model_key *key = model_find(m, set);
    out->moved_count = 0;
    out->dropped_count = 0;
    for (int i = 0;
         key != NULL && i < key->count && key->pairs[i].score <= now && out->moved_count < limit;
         i++) {
        char row[MODEL_NAME_MAX];
        const char *id = key->pairs[i].name;
        row_name(row, id);
        if (!field_is(m, row, "state", state)) {
            (void)snprintf(out->dropped[out->dropped_count++], MODEL_NAME_MAX, "%s", id);
        } else if (model_field(m, row, "group") == NULL) {
            (void)snprintf(out->moved[out->moved_count++], MODEL_NAME_MAX, "%s", id);
        }
    }
}

static void drop_all(model *m, const char *set, const sweep *found) {
    for (int i = 0; i < found->dropped_count; i++) {
        remove_pair(m, set, found->dropped[i]);
    }
}

static void make_pending(model *m, const char *from, const char *id) {
    char row[MODEL_NAME_MAX];
    row_name(row, id);
    remove_pair(m, from, id);
    hset(m, row, "state", "pending");
    zadd(m, "pending", 0, id);
}

static char *promote(step *s) {
    static sweep found;
    char *reply = NULL;
    long long limit = 0;
    if (!parse_value(s->values[0], "limit", 1, 10000, &limit, &reply)) {
        return reply;
    }
    if (!is_or_absent(s->m, "schedule", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    find_due(&found, s->m, "schedule", "scheduled", s->now, limit);
    if (found.moved_count > 0 && !is_or_absent(s->m, "pending", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    if (found.moved_count + found.dropped_count > 0 && s->paused) {
        return strdup(PAUSED);
    }
    for (int i = 0; i < found.moved_count; i++) {
        make_pending(s->m, "schedule", found.moved[i]);
    }
    drop_all(s->m, "schedule", &found);
    return format("%d", found.moved_count);
}

/* The stall that this lease would be: 0 when another server process gave it. */
static long long next_stall(const model *m, const char *row) {
    const char *epoch = model_field(m, row, "lease_epoch");
    const char *text = model_field(m, row, "stalled");
    long long stalled = 0;
    if (epoch != NULL && strcmp(epoch, m->run_id) != 0) {
        return 0;
    }
    if (text == NULL || !parse_number(text, &stalled) || stalled < 0 || stalled == LLONG_MAX) {
        stalled = 0;
    }
    return stalled + 1;
}

static void take_back(model *m, const char *id, long long stall, int dies) {
    char row[MODEL_NAME_MAX];
    row_name(row, id);
    if (stall > 0) {
        hset_number(m, row, "stalled", stall);
    }
    if (!dies) {
        make_pending(m, "active", id);
        return;
    }
    remove_pair(m, "active", id);
    hset(m, row, "state", "dead");
    hset(m, row, "last_error", "stalled");
    remove_pair(m, row, "lease_epoch");
    zadd(m, "dead", 0, id);
}

static char *stalled_check(step *s) {
    static sweep found;
    char *reply = NULL;
    char *lists[2] = {NULL, NULL};
    long long max = 0;
    long long limit = 0;
    long long count = 0;
    long long stalls[MODEL_PAIRS_MAX];
    int dying = 0;
    if (!parse_value(s->values[0], "max_stalled", 1, INT_MAX, &max, &reply) ||
        !parse_value(s->values[1], "limit", 1, 10000, &limit, &reply)) {
        return reply;
    }
    if (!is_or_absent(s->m, "active", MODEL_ZSET)) {
        return strdup(WRONG_TYPE);
    }
    find_due(&found, s->m, "active", "active", s->now, limit);
    for (int i = 0; i < found.moved_count; i++) {
        char row[MODEL_NAME_MAX];
        row_name(row, found.moved[i]);
        stalls[i] = next_stall(s->m, row);
        dying += stalls[i] >= max;
    }
    if ((dying < found.moved_count && !is_or_absent(s->m, "pending", MODEL_ZSET)) ||
        (dying > 0 && !is_or_absent(s->m, "dead", MODEL_ZSET))) {
        return strdup(WRONG_TYPE);
    }
    if (dying > 0 && !read_count(s->m, "metrics:failed", &count, &reply)) {
        return reply;
    }
    if (found.moved_count + found.dropped_count > 0 && s->paused) {
        return strdup(PAUSED);
    }
    append_text(&lists[0], "");
    append_text(&lists[1], "");
    for (int i = 0; i < found.moved_count; i++) {
        int dies = stalls[i] >= max;
        append_text(&lists[dies], lists[dies][0] == '\0' ? "" : ", ");
        append_quoted(&lists[dies], found.moved[i], strlen(found.moved[i]));
        take_back(s->m, found.moved[i], stalls[i], dies);
    }
    drop_all(s->m, "active", &found);
    if (dying > 0) {
        hset_number(s->m, "metrics:failed", "count", count + dying);
    }
    reply = format("[[%s], [%s]]", lists[0], lists[1]);
    free(lists[0]);
    free(lists[1]);
    return reply;
}

char *model_call(model *m, const diff_verb *verb, const words *line, long long now,
                 int writes_paused) {
    static const struct {
        const char *word;
        char *(*run)(step *s);
    } verbs[] = {
        {"enqueue", enqueue},
        {"schedule", schedule},
        {"claim", claim},
        {"extend", extend},
        {"extends", extends},
        {"complete", complete},
        {"promote", promote},
        {"reschedule", reschedule},
        {"delay", delay},
        {"fail", fail_job},
        {"reprocess", reprocess},
        {"requeue", requeue},
        {"stalled.check", stalled_check},
    };
    static step s;
    s.m = m;
    s.line = line;
    s.now = now;
    s.paused = writes_paused;
    for (int i = 0; i < 8; i++) {
        (void)value_of(s.values[i], line, 1 + i);
    }
    row_name(s.row, s.values[0]);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].word, verb->word) == 0) {
            return verbs[i].run(&s);
        }
    }
    fail_msg("the model does not know %s", verb->word);
    return NULL;
}

/* ---- plain commands ---- */

static void plain_pairs(model *m, const char *command_name, const char *key, const words *line) {
    for (int i = 3; i < line->count; i++) {
        char first[LINE_TEXT_MAX];
        char second[LINE_TEXT_MAX];
        (void)value_of(first, line, i);
        if (strcmp(command_name, "HSET") == 0) {
            hset(m, key, first, value_of(second, line, ++i));
        } else if (strcmp(command_name, "ZADD") == 0) {
            zadd(m, key, strtoll(first, NULL, 10), value_of(second, line, ++i));
        } else if (strcmp(command_name, "RPUSH") == 0) {
            model_key *list = make(m, key, MODEL_LIST);
            model_pair pair = {.score = 0};
            (void)snprintf(pair.name, sizeof(pair.name), "%d", list->count + 1);
            (void)snprintf(pair.value, sizeof(pair.value), "%.100s", first);
            insert_pair(list, list->count, &pair);
        } else {
            remove_pair(m, key, first);
        }
    }
}

void model_plain(model *m, const words *line) {
    static const struct {
        const char *name;
        model_type type;
    } commands[] = {{"HSET", MODEL_HASH},
                    {"HDEL", MODEL_HASH},
                    {"ZADD", MODEL_ZSET},
                    {"ZREM", MODEL_ZSET},
                    {"RPUSH", MODEL_LIST}};
    char key[LINE_TEXT_MAX];
    char value[LINE_TEXT_MAX];
    const char *name = line->word[1];
    assert_int_equal(line->word[2][0], '@');
    expand_ids(key, line->word[2] + 1);
    if (strcmp(name, "DEL") == 0) {
        delete_key(m, key);
        return;
    }
    if (strcmp(name, "SET") == 0) {
        model_pair pair = {.score = 0};
        delete_key(m, key);
        (void)snprintf(pair.value, sizeof(pair.value), "%.100s", value_of(value, line, 3));
        insert_pair(make(m, key, MODEL_STRING), 0, &pair);
        return;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            if (is_or_absent(m, key, commands[i].type)) {
                plain_pairs(m, name, key, line);
            }
            return;
        }
    }
    fail_msg("the model does not know %s", name);
}

/* ---- where the reference deviates ---- */

/* Refusals of the native verbs that the scripts do not know, or make after their first write. */
static const char *find_refusal_deviation(const char *reply) {
    static const struct {
        const char *part;
        const char *reason;
    } refusals[] = {
        {"-ERR EMQ ", "numbers, modes and row numbers are checked"},
        {"-WRONGTYPE", "types are checked before the first write"},
        {NO_INTEGER, "counts are checked before the first write"},
        {OVERFLOWS, "counts are checked before the first write"},
        {"-EMQLANE", "lane rows belong to other verbs"},
        {"-EMQFLOW", "flow rows belong to other verbs"},
        {"lease lost", "only the holder settles and extends"},
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (reply[0] == '-' && strstr(reply, refusals[i].part) != NULL) {
            return refusals[i].reason;
        }
    }
    return NULL;
}

static const char *find_sweep_deviation(const model *m, const char *set, const char *state,
                                        long long now, long long limit) {
    const model_key *key = model_find(m, set);
    int counts_stalls = strcmp(set, "active") == 0;
    for (int i = 0; key != NULL && i < key->count && i < limit && key->pairs[i].score <= now; i++) {
        char row[MODEL_NAME_MAX];
        long long stalled = 0;
        row_name(row, key->pairs[i].name);
        const char *text = model_field(m, row, "stalled");
        if (!field_is(m, row, "state", state)) {
            return "a sweep drops what does not belong there";
        }
        if (model_field(m, row, "group") != NULL) {
            return "a sweep passes lane rows over";
        }
        if (counts_stalls && next_stall(m, row) == 0) {
            return "a restart is no stall";
        }
        if (counts_stalls && text != NULL && (!parse_number(text, &stalled) || stalled < 0)) {
            return "a damaged stall count starts anew";
        }
    }
    return NULL;
}

static const char *find_settle_deviation(const model *m, const char *verb, const char *row,
                                         const char *id, const char *max_text, const char *reply) {
    char logs[MODEL_NAME_MAX + 8];
    (void)snprintf(logs, sizeof(logs), "%s:logs", row);
    if (strcmp(verb, "complete") == 0 && model_find(m, logs) != NULL) {
        return "log lines go with the row";
    }
    if (reply[0] == '-' || strcmp(reply, "0") == 0 || field_is(m, row, "state", "active")) {
        /* refused and gone, or the ordinary path; the budget is looked at below */
    } else if (strcmp(verb, "delay") == 0) {
        return "a late delay takes the job out of pending";
    } else if (model_is_member(m, "active", id)) {
        return "the set that the state names holds the job";
    }
    if (strcmp(verb, "fail") == 0 && reply[0] == '"') {
        long long attempts = strtoll(model_field(m, row, "attempts"), NULL, 10);
        int dies_there = attempts >= strtoll(max_text, NULL, 10);
        return dies_there == (strcmp(reply, "\"dead\"") == 0) ? NULL : "the budget counts failures";
    }
    return NULL;
}

static const char *find_extends_deviation(const model *m, const words *line) {
    for (int i = 2; i + 1 < line->count; i += 2) {
        char id[LINE_TEXT_MAX];
        char token[LINE_TEXT_MAX];
        char row[MODEL_NAME_MAX];
        row_name(row, value_of(id, line, i));
        (void)value_of(token, line, i + 1);
        if (!is_or_absent(m, row, MODEL_HASH)) {
            return "a damaged row does not stop a batch";
        }
        if (field_is(m, row, "attempts", token) && !model_is_member(m, "active", id)) {
            return "only the holder settles and extends";
        }
    }
    return NULL;
}

static const char *find_reprocess_deviation(const model *m, const char *row, const char *id) {
    if (model_find(m, row) != NULL && model_field(m, row, "attempts") == NULL) {
        return "a row without attempts is gone";
    }
    if (model_field(m, row, "stalled") != NULL) {
        return "budgets start anew";
    }
    if (model_find(m, row) != NULL && !is_or_absent(m, "dead", MODEL_ZSET)) {
        return "the row is asked before its set";
    }
    return model_is_member(m, "dead", id) && !field_is(m, row, "state", "dead")
               ? "a job is dead when its row says so"
               : NULL;
}

const char *model_deviation(const model *m, const diff_verb *verb, const words *line, long long now,
                            const char *reply) {
    char id[LINE_TEXT_MAX];
    char max_text[LINE_TEXT_MAX];
    char row[MODEL_NAME_MAX];
    const char *word = verb->word;
    const char *reason = find_refusal_deviation(reply);
    if (verb->script == NULL) {
        return "no twin";
    }
    if (reason != NULL) {
        return reason;
    }
    row_name(row, value_of(id, line, 1));
    if (strcmp(word, "claim") == 0) {
        const model_key *pending = model_find(m, "pending");
        if (pending != NULL && model_field(m, "meta", "paused") == NULL) {
            row_name(row, pending->pairs[0].name);
            return model_find(m, row) == NULL ? "ids without a row are not handed out" : NULL;
        }
        return NULL;
    }
    if (strcmp(word, "promote") == 0) {
        return find_sweep_deviation(m, "schedule", "scheduled", now, strtoll(id, NULL, 10));
    }
    if (strcmp(word, "stalled.check") == 0) {
        return find_sweep_deviation(m, "active", "active", now,
                                    strtoll(value_of(id, line, 2), NULL, 10));
    }
    if (strcmp(word, "extends") == 0) {
        return find_extends_deviation(m, line);
    }
    if (strcmp(word, "reprocess") == 0) {
        return find_reprocess_deviation(m, row, id);
    }
    if (strcmp(word, "complete") == 0 || strcmp(word, "fail") == 0 || strcmp(word, "delay") == 0) {
        return find_settle_deviation(m, word, row, id, value_of(max_text, line, 4), reply);
    }
    return NULL;
}

/* ---- invariants ---- */

static const struct {
    const char *set;
    const char *state;
} places[] = {
    {"pending", "pending"}, {"active", "active"}, {"schedule", "scheduled"}, {"dead", "dead"}};

static const char *check_row_invariants(const model *m, const char *id) {
    char row[MODEL_NAME_MAX];
    int found = 0;
    row_name(row, id);
    int has_row = model_find(m, row) != NULL;
    for (int i = 0; i < 4; i++) {
        if (model_is_member(m, places[i].set, id)) {
            found++;
            if (!field_is(m, row, "state", places[i].state)) {
                return "a row's state agrees with the set that holds the job";
            }
        }
    }
    if (found != (has_row ? 1 : 0)) {
        return "a job is in exactly one of the four sets, or its row is gone";
    }
    if (has_row && model_field(m, row, "payload") == NULL) {
        return "every row has a payload";
    }
    if (has_row && model_field(m, row, "attempts") == NULL) {
        return "every row has attempts";
    }
    if (field_is(m, row, "state", "active") && model_field(m, row, "lease_epoch") == NULL) {
        return "a leased row has a lease_epoch";
    }
    return NULL;
}

const char *model_find_broken_invariant(const model *m) {
    const char *broken = NULL;
    for (int i = 0; i < MODEL_KEYS_MAX && broken == NULL; i++) {
        const model_key *key = &m->keys[i];
        if (strncmp(key->name, "job:", 4) == 0 && strchr(key->name + 4, ':') == NULL) {
            broken = check_row_invariants(m, key->name + 4);
        }
        for (int j = 0;
             key->name[0] != '\0' && key->type == MODEL_ZSET && j < key->count && broken == NULL;
             j++) {
            int is_timed = strcmp(key->name, "active") == 0 || strcmp(key->name, "schedule") == 0;
            broken = check_row_invariants(m, key->pairs[j].name);
            if (broken == NULL && !is_timed && key->pairs[j].score != 0) {
                broken = "pending and dead have the score 0";
            }
        }
    }
    return broken;
}
