/* SPDX-License-Identifier: Apache-2.0 */
/* Setting right: dead jobs are made pending again, sweeps run by hand, claims stopped and let go
 * on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sizes.h"
#include "tool.h"

#define DEFAULT_LIMIT 1000
#define LIMIT_MAX 10000
#define DEFAULT_MAX_STALLED 3
#define PAGE 1000

/* Opens behind the check of the queue that all verbs here name first. */
static int open_queue(tool *t) {
    int status = tool_queue(t, t->argv[0]);
    return status == TOOL_DONE ? tool_open(t) : status;
}

/* A count as the whole answer: "12 promoted". */
static void print_count(const tool *t, const char *name, int64_t count) {
    if (t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "queue", json_string(t->argv[0]));
        (void)json_object_set_new(object, name, json_integer(count));
        tool_print_json(object);
    } else {
        (void)printf("%" PRId64 " %s\n", count, name);
    }
}

/* --- jobs that are named --- */

/* What is done to each of them. */
typedef struct change {
    tool *t;
    const char *past;
    int (*make)(const struct change *c, const emq_id *id);
    emq_when when;
} change;

static int change_one(const change *c, const emq_id *id) {
    tool *t = c->t;
    int result = c->make(c, id);
    if (t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "queue", json_string(t->argv[0]));
        (void)json_object_set_new(object, "id", json_string(id->text));
        tool_json_result(object, result);
        tool_print_json(object);
    } else if (result >= 0) {
        (void)printf("%s %s\n", id->text, result == EMQ_OK ? c->past : "gone");
    }
    return result < 0 ? tool_fail_client(t, id->text, result) : tool_status(result);
}

/* The ids behind the queue, all of which are read before anything is sent. */
static int change_given(const change *c) {
    tool *t = c->t;
    emq_id id;
    int worst = tool_queue(t, t->argv[0]);
    for (int i = 1; i < t->argc && worst == TOOL_DONE; i++) {
        worst = tool_id(t, &id, t->argv[i]);
    }
    if (worst == TOOL_DONE) {
        worst = tool_open(t);
    }
    for (int i = 1; i < t->argc && emq_client_is_open(t->client); i++) {
        (void)tool_id(t, &id, t->argv[i]);
        int status = change_one(c, &id);
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int do_reschedule(const change *c, const emq_id *id) {
    return emq_reschedule(c->t->client, c->t->argv[0], id, c->when);
}

static int run_reschedule(tool *t) {
    change c = {.t = t, .past = "scheduled", .make = do_reschedule};
    int status = tool_when(t, &c.when);
    return status == TOOL_DONE ? change_given(&c) : status;
}

static const tool_option reschedule_options[] = {
    {"in", 0, "TIME", "how long from now, as 30s, 5m, 2h, 1d"},
    {"at", 0, "MOMENT", "when, as 2026-01-02T03:04:05Z or @UNIX-SECONDS"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_reschedule = {
    .name = "reschedule",
    .arguments = "QUEUE ID...",
    .least = 2,
    .most = TOOL_ANY,
    .summary = "Give scheduled jobs another time",
    .details = "Exit status 1: a job is gone; 4: a job is not scheduled.\n",
    .example = "emq reschedule orders JOB0NgWEfAEJfs --in 0\n",
    .options = reschedule_options,
    .run = run_reschedule,
};

/* --- reprocess --- */

static int do_reprocess(const change *c, const emq_id *id) {
    return emq_reprocess(c->t->client, c->t->argv[0], id);
}

typedef struct revival {
    tool *t;
    emq_pipeline *pipeline;
    int64_t left;
    int64_t revived;
    int64_t passed_over; /* a row that can't be revived so, an id that is none */
    int status;          /* the worst so far */
    char last[EMQ_QUEUE_MAX + 1];
    size_t last_length;
} revival;

/* Adds one, and remembers where the next page begins. */
static int add_dead(revival *r, const char *text, size_t n) {
    emq_id id;
    if (n >= sizeof(r->last)) {
        return EMQ_EPROTOCOL;
    }
    memcpy(r->last, text, n);
    r->last_length = n;
    int result = emq_id_parse(&id, text, n);
    if (result == EMQ_OK) {
        result = emq_pipeline_reprocess(r->pipeline, r->t->argv[0], &id);
    }
    if (result == EMQ_ENOMEM) {
        return result;
    }
    r->passed_over += result != EMQ_OK;
    return EMQ_OK;
}

/* The first refusal is told; one keeps none of the others from being revived. Those that somebody
 * else has revived meanwhile are none of ours. */
static void account_for(revival *r, size_t i) {
    int result = emq_pipeline_get_result(r->pipeline, i);
    r->revived += result == EMQ_OK;
    r->passed_over += result < 0;
    if (result < 0 && r->status == TOOL_DONE) {
        r->status = tool_fail(r->t, "one of them", result, emq_pipeline_get_error(r->pipeline, i));
    }
}

static int revive_page(revival *r, const emq_ids *ids) {
    int result = EMQ_OK;
    for (size_t i = 0; i < emq_ids_get_count(ids) && result == EMQ_OK; i++) {
        size_t n = 0;
        const char *text = emq_ids_get_text(ids, i, &n);
        result = add_dead(r, text, n);
    }
    if (result != EMQ_OK || emq_pipeline_get_count(r->pipeline) == 0) {
        return result;
    }
    result = emq_pipeline_run(r->pipeline);
    for (size_t i = 0; i < emq_pipeline_get_count(r->pipeline); i++) {
        account_for(r, i);
    }
    return result;
}

static void revive(revival *r) {
    int result = EMQ_OK;
    size_t count = PAGE;
    size_t limit = PAGE;
    while (result == EMQ_OK && count == limit && r->left > 0) {
        emq_ids *ids = NULL;
        limit = r->left < PAGE ? (size_t)r->left : PAGE;
        result =
            emq_ids_browse(&ids, r->t->client, r->t->argv[0], EMQ_KEY_DEAD,
                           r->last_length == 0 ? NULL : r->last, r->last_length, (uint32_t)limit);
        count = emq_ids_get_count(ids);
        r->left -= (int64_t)count;
        if (result == EMQ_OK) {
            result = revive_page(r, ids);
        }
        emq_ids_free(ids);
        emq_pipeline_clear(r->pipeline);
    }
    if (result != EMQ_OK) {
        int status = tool_fail_client(r->t, "cannot go on", result);
        r->status = status > r->status ? status : r->status;
    }
}

/* Whether to go on with so many. TOOL_OTHER: there are none, or the answer is no. */
static int confirm_revival(const revival *r, int64_t dead) {
    int64_t count = dead < r->left ? dead : r->left;
    if (count == 0) {
        print_count(r->t, "reprocessed", 0);
        return TOOL_OTHER;
    }
    return tool_confirm(r->t, "Make %" PRId64 " dead job%s of %s pending again?", count,
                        count == 1 ? "" : "s", r->t->argv[0]);
}

static int reprocess_all(tool *t) {
    revival r = {.t = t};
    emq_counts counts = EMQ_COUNTS_INIT;
    int status = tool_number(t, &r.left, "max", INT64_MAX, 1, INT64_MAX);
    if (status == TOOL_DONE) {
        status = open_queue(t);
    }
    if (status != TOOL_DONE) {
        return status;
    }
    int result = emq_counts_read(&counts, t->client, t->argv[0]);
    if (result != EMQ_OK) {
        return tool_fail_client(t, "cannot count", result);
    }
    status = confirm_revival(&r, counts.dead);
    if (status != TOOL_DONE) {
        return status;
    }
    result = emq_pipeline_new(&r.pipeline, t->client);
    if (result != EMQ_OK) {
        return tool_fail(t, "cannot go on", result, "");
    }
    revive(&r);
    emq_pipeline_free(r.pipeline);
    if (r.passed_over > 0) {
        tool_note(t, "%" PRId64 " were passed over", r.passed_over);
    }
    print_count(t, "reprocessed", r.revived);
    return r.status == TOOL_DONE && r.revived == 0 ? TOOL_OTHER : r.status;
}

static int run_reprocess(tool *t) {
    int is_all = tool_value(t, "all") != NULL;
    if (is_all != (t->argc == 1)) {
        return tool_usage(t, "takes ids, or --all for the whole dead set");
    }
    change c = {.t = t, .past = "pending", .make = do_reprocess};
    return is_all ? reprocess_all(t) : change_given(&c);
}

static const tool_option reprocess_options[] = {
    {"all", 'a', NULL, "all dead jobs, the newest first; asks before"},
    {"max", 'n', "N", "with --all: so many at most"},
    TOOL_OPTION_YES,
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_reprocess = {
    .name = "reprocess",
    .arguments = "QUEUE [ID]...",
    .least = 1,
    .most = TOOL_ANY,
    .summary = "Make dead jobs pending again, their budgets anew",
    .details = "Exit status 1: a job is gone, or the dead set is empty; 4: a job is not dead.\n",
    .example = "emq reprocess orders JOB0NgWEfAEJfs\n"
               "emq reprocess orders --all --max 100 --yes\n",
    .options = reprocess_options,
    .run = run_reprocess,
};

/* --- promote and sweep --- */

static int run_promote(tool *t) {
    int64_t limit = 0;
    int64_t moved = 0;
    int status = tool_number(t, &limit, "limit", DEFAULT_LIMIT, 1, LIMIT_MAX);
    if (status == TOOL_DONE) {
        status = open_queue(t);
    }
    if (status != TOOL_DONE) {
        return status;
    }
    int result = emq_promote(&moved, t->client, t->argv[0], (uint32_t)limit);
    if (result != EMQ_OK) {
        return tool_fail_client(t, "cannot promote", result);
    }
    print_count(t, "promoted", moved);
    return TOOL_DONE;
}

static const tool_option promote_options[] = {
    {"limit", 'n', "N", "so many at most, 1 to 10000 (default 1000)"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_promote = {
    .name = "promote",
    .arguments = "QUEUE",
    .least = 1,
    .most = 1,
    .summary = "Make the scheduled jobs that are due pending, as workers do",
    .details = "When as many as the limit were promoted there may be more.\n",
    .example = "emq promote orders\n",
    .options = promote_options,
    .run = run_promote,
};

static json_t *ids_to_json(const emq_ids *ids) {
    json_t *array = json_array();
    for (size_t i = 0; i < emq_ids_get_count(ids); i++) {
        size_t n = 0;
        const char *text = emq_ids_get_text(ids, i, &n);
        json_t *id = json_stringn(text, n);
        (void)json_array_append_new(array, id != NULL ? id : json_string("?"));
    }
    return array;
}

static void print_ids(const emq_ids *ids, const char *word) {
    for (size_t i = 0; i < emq_ids_get_count(ids); i++) {
        size_t n = 0;
        const char *text = emq_ids_get_text(ids, i, &n);
        tool_print_bytes(stdout, text, n, 0);
        (void)printf(" %s\n", word);
    }
}

static void print_sweep(const tool *t, const emq_ids *recovered, const emq_ids *dead) {
    if (t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "queue", json_string(t->argv[0]));
        (void)json_object_set_new(object, "recovered", ids_to_json(recovered));
        (void)json_object_set_new(object, "dead", ids_to_json(dead));
        tool_print_json(object);
        return;
    }
    print_ids(recovered, "recovered");
    print_ids(dead, "dead");
    (void)printf("%zu recovered, %zu dead\n", emq_ids_get_count(recovered),
                 emq_ids_get_count(dead));
}

static int run_sweep(tool *t) {
    int64_t limit = 0;
    int64_t max_stalled = 0;
    emq_ids *recovered = NULL;
    emq_ids *dead = NULL;
    int status = tool_number(t, &limit, "limit", DEFAULT_LIMIT, 1, LIMIT_MAX);
    if (status == TOOL_DONE) {
        status = tool_number(t, &max_stalled, "max-stalled", DEFAULT_MAX_STALLED, 1, INT32_MAX);
    }
    if (status == TOOL_DONE) {
        status = open_queue(t);
    }
    if (status != TOOL_DONE) {
        return status;
    }
    int result = emq_stalled_check(&recovered, &dead, t->client, t->argv[0], (uint32_t)max_stalled,
                                   (uint32_t)limit);
    if (result != EMQ_OK) {
        return tool_fail_client(t, "cannot sweep", result);
    }
    print_sweep(t, recovered, dead);
    emq_ids_free(recovered);
    emq_ids_free(dead);
    return TOOL_DONE;
}

static const tool_option sweep_options[] = {
    {"max-stalled", 'm', "N", "a job is a dead letter at so many stalls (default 3)"},
    {"limit", 'n', "N", "so many at most, 1 to 10000 (default 1000)"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_sweep = {
    .name = "sweep",
    .arguments = "QUEUE",
    .least = 1,
    .most = 1,
    .summary = "Take back the leases that have lapsed, as workers do",
    .details = "Their jobs are pending again, or dead when they stalled too often. When as many\n"
               "as the limit were taken back there may be more.\n",
    .example = "emq sweep orders\n",
    .options = sweep_options,
    .run = run_sweep,
};

/* --- pause and resume --- */

/* One that was never used may be a slip of the hand. Asked before anything makes it be there. */
static int is_unused(const tool *t, const char *queue) {
    emq_pipeline *pipeline = NULL;
    sizes found = {.result = EMQ_OK};
    int result = emq_pipeline_new(&pipeline, t->client);
    if (result == EMQ_OK) {
        result = sizes_read(&found, pipeline, &queue, 1);
    }
    emq_pipeline_free(pipeline);
    return result == EMQ_OK && found.result == EMQ_OK && sizes_is_nothing(&found);
}

static int switch_claims(tool *t, int (*call)(emq_client *, const char *), const char *past) {
    for (int i = 0; i < t->argc; i++) {
        if (tool_queue(t, t->argv[i]) != TOOL_DONE) {
            return TOOL_USAGE;
        }
    }
    int status = tool_open(t);
    for (int i = 0; i < t->argc && status == TOOL_DONE; i++) {
        int has_doubt = is_unused(t, t->argv[i]);
        int result = call(t->client, t->argv[i]);
        if (result != EMQ_OK) {
            return tool_fail_client(t, t->argv[i], result);
        }
        if (t->json) {
            json_t *object = json_object();
            (void)json_object_set_new(object, "queue", json_string(t->argv[i]));
            tool_json_result(object, result);
            tool_print_json(object);
        } else {
            (void)printf("%s %s\n", t->argv[i], past);
        }
        if (has_doubt) {
            sizes_note_nothing(t, t->argv[i]);
        }
    }
    return status;
}

static int run_pause(tool *t) {
    return switch_claims(t, emq_pause, "paused");
}

const tool_verb verb_pause = {
    .name = "pause",
    .arguments = "QUEUE...",
    .least = 1,
    .most = TOOL_ANY,
    .summary = "Stop the claims of queues; admitting and settling go on",
    .details =
        "What is in hand is finished by those who hold it. A queue that is paused already\n"
        "stays so. One that has no jobs and no counts is paused, too, and that is said: its\n"
        "name may be a slip.\n",
    .example = "emq pause orders\n",
    .run = run_pause,
};

static int run_resume(tool *t) {
    return switch_claims(t, emq_resume, "resumed");
}

const tool_verb verb_resume = {
    .name = "resume",
    .arguments = "QUEUE...",
    .least = 1,
    .most = TOOL_ANY,
    .summary = "Let the claims of paused queues go on",
    .details = NULL,
    .example = "emq resume orders\n",
    .run = run_resume,
};
