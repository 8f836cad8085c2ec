/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at jobs: peek and dead list those of a set page by page, job shows one. Nothing is
 * changed; what is shown may be over already. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define DEFAULT_JOBS 20
#define PAGE 1000
#define TEXT_SHOWN 60 /* bytes of a payload or an error in a table */

/* --- a row --- */

static json_t *row_to_json(const char *queue, const emq_id *id, const emq_row *row) {
    size_t n = 0;
    int64_t minted_ms = 0;
    json_t *object = json_object();
    (void)json_object_set_new(object, "queue", json_string(queue));
    (void)json_object_set_new(object, "id", json_string(id->text));
    tool_json_bytes(object, "state", emq_row_get_state(row), strlen(emq_row_get_state(row)));
    (void)json_object_set_new(object, "attempts", json_integer(emq_row_get_attempts(row)));
    (void)json_object_set_new(object, "failures", json_integer(emq_row_get_failures(row)));
    (void)json_object_set_new(object, "stalled", json_integer(emq_row_get_stalled(row)));
    (void)emq_id_unix_ms(&minted_ms, id);
    (void)json_object_set_new(object, "minted_ms", json_integer(minted_ms));
    const void *payload = emq_row_get_payload(row, &n);
    if (payload != NULL) {
        tool_json_bytes(object, "payload", payload, n);
    }
    const char *error = emq_row_get_last_error(row, &n);
    if (error != NULL) {
        tool_json_bytes(object, "last_error", error, n);
    }
    const char *lane = emq_row_get_lane(row);
    if (lane != NULL) {
        tool_json_bytes(object, "lane", lane, strlen(lane));
    }
    return object;
}

static void print_age(const char *before, const emq_id *id, const char *behind) {
    char age[TOOL_TIME_MAX];
    int64_t minted_ms = 0;
    (void)emq_id_unix_ms(&minted_ms, id);
    tool_format_age(age, tool_now_ms() - minted_ms);
    (void)printf("%s%s%s", before, age, behind);
}

/* --- peek and dead --- */

typedef struct listing {
    tool *t;
    const char *queue;
    emq_key_kind set;
    int is_newest_first;
    int is_ids_only;
    int64_t most;
    int64_t listed;
    char last[EMQ_QUEUE_MAX + 1]; /* the id that the next page begins behind */
    size_t last_length;           /* 0: the first page */
    int64_t looked_at;            /* members so far, where pages are counted off */
    int64_t score_ms;             /* of the one that is shown, where the score is a time */
    int has_header;               /* it was printed, or is none to print */
} listing;

/* Whether the members have a time: the end of a lease, or when they are due. */
static int has_times(const listing *l) {
    return l->set == EMQ_KEY_ACTIVE || l->set == EMQ_KEY_SCHEDULE;
}

/* One page: the one or the other. */
typedef struct page {
    emq_ids *ids;
    emq_reply *reply;
    size_t step; /* 2: a score behind each member of the reply */
    size_t count;
} page;

static const char *page_get(const page *p, size_t i, size_t *n) {
    return p->ids != NULL ? emq_ids_get_text(p->ids, i, n)
                          : emq_reply_get_string(emq_reply_get_element(p->reply, i * p->step), n);
}

static int64_t page_get_score(const page *p, size_t i) {
    const char *text = p->step != 2
                           ? NULL
                           : emq_reply_get_string(emq_reply_get_element(p->reply, i * 2 + 1), NULL);
    return text == NULL ? 0 : (int64_t)strtod(text, NULL);
}

static void page_clear(page *p) {
    emq_ids_free(p->ids);
    emq_reply_free(p->reply);
}

/* ZRANGE <set> (<last> + BYLEX LIMIT 0 <limit>: the order of the ids. */
static int read_oldest(page *out, listing *l, uint32_t limit) {
    char key[EMQ_KEY_MAX + 1];
    char from[EMQ_QUEUE_MAX + 2];
    char number[16];
    from[0] = l->last_length == 0 ? '-' : '(';
    memcpy(from + 1, l->last, l->last_length);
    int length = emq_key_queue(key, sizeof(key), l->queue, l->set);
    if (length < 0) {
        return length;
    }
    int digits = snprintf(number, sizeof(number), "%" PRIu32, limit);
    const char *const words[] = {"ZRANGE", key, from, "+", "BYLEX", "LIMIT", "0", number};
    const size_t lengths[] = {6, (size_t)length, l->last_length + 1, 1, 5, 5, 1, (size_t)digits};
    int result = emq_client_command(&out->reply, l->t->client, 8, words, lengths);
    out->step = 1;
    out->count = result == EMQ_OK ? emq_reply_get_count(out->reply) : 0;
    return result;
}

/* ZRANGE <set> <from> <to> WITHSCORES: by time. What comes and goes in between shifts the pages. */
static int read_by_time(page *out, listing *l, uint32_t limit) {
    char key[EMQ_KEY_MAX + 1];
    char from[24];
    char to[24];
    const char *const words[] = {"ZRANGE", key, from, to, "WITHSCORES"};
    int length = emq_key_queue(key, sizeof(key), l->queue, l->set);
    if (length < 0) {
        return length;
    }
    (void)snprintf(from, sizeof(from), "%" PRId64, l->looked_at);
    (void)snprintf(to, sizeof(to), "%" PRId64, l->looked_at + limit - 1);
    int result = emq_client_command(&out->reply, l->t->client, 5, words, NULL);
    out->step = 2;
    out->count = result == EMQ_OK ? emq_reply_get_count(out->reply) / 2 : 0;
    l->looked_at += (int64_t)out->count;
    return result;
}

static int read_page(page *out, listing *l, uint32_t limit) {
    memset(out, 0, sizeof(*out));
    if (has_times(l)) {
        return read_by_time(out, l, limit);
    }
    if (!l->is_newest_first) {
        return read_oldest(out, l, limit);
    }
    int result = emq_ids_browse(&out->ids, l->t->client, l->queue, l->set,
                                l->last_length == 0 ? NULL : l->last, l->last_length, limit);
    out->count = emq_ids_get_count(out->ids);
    return result;
}

static const char *time_name(const listing *l) {
    return l->set == EMQ_KEY_ACTIVE ? "lease_end_ms" : "due_ms";
}

/* Once, and not before it is known that something is shown below, or that there is nothing. */
static void print_header(listing *l) {
    if (l->has_header) {
        return;
    }
    l->has_header = 1;
    (void)printf("%-14s  %-10s  %8s  %8s  ", "ID", "AGE", "ATTEMPTS", "FAILURES");
    if (has_times(l)) {
        (void)printf("%-24s  ", l->set == EMQ_KEY_ACTIVE ? "LEASE ENDS" : "DUE");
    }
    (void)puts(l->set == EMQ_KEY_DEAD ? "LAST ERROR" : "PAYLOAD");
}

static void print_job_row(const listing *l, const emq_id *id, const emq_row *row) {
    size_t n = 0;
    if (l->t->json) {
        json_t *object = row_to_json(l->queue, id, row);
        if (has_times(l)) {
            (void)json_object_set_new(object, time_name(l), json_integer(l->score_ms));
        }
        tool_print_json(object);
        return;
    }
    char age[TOOL_TIME_MAX];
    int64_t minted_ms = 0;
    (void)emq_id_unix_ms(&minted_ms, id);
    tool_format_age(age, tool_now_ms() - minted_ms);
    (void)printf("%-14s  %-10s  %8" PRId64 "  %8" PRId64 "  ", id->text, age,
                 emq_row_get_attempts(row), emq_row_get_failures(row));
    if (has_times(l)) {
        tool_format_time(age, l->score_ms);
        (void)printf("%-24s  ", age);
    }
    const char *text =
        l->set == EMQ_KEY_DEAD ? emq_row_get_last_error(row, &n) : emq_row_get_payload(row, &n);
    if (text != NULL) {
        tool_print_bytes(stdout, text, n, TEXT_SHOWN);
    }
    (void)putchar('\n');
}

static void print_bare_id(const listing *l, const char *text, size_t n) {
    if (l->t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "queue", json_string(l->queue));
        tool_json_bytes(object, "id", text, n);
        tool_print_json(object);
    } else {
        tool_print_bytes(stdout, text, n, 0);
        (void)puts(l->is_ids_only ? "" : "  (no branded id)");
    }
}

static int list_one(listing *l, const char *text, size_t n) {
    emq_id id;
    emq_row *row = NULL;
    if (l->is_ids_only || emq_id_parse(&id, text, n) != EMQ_OK) {
        print_header(l);
        print_bare_id(l, text, n);
        l->listed++;
        return TOOL_DONE;
    }
    int result = emq_row_read(&row, l->t->client, l->queue, &id);
    if (result == EMQ_OK) {
        print_header(l);
        print_job_row(l, &id, row);
        l->listed++;
    }
    emq_row_free(row);
    /* one that is gone by now is none of the list */
    return result < 0 ? tool_fail_client(l->t, id.text, result) : TOOL_DONE;
}

static int list_page(listing *l, const page *p) {
    int status = TOOL_DONE;
    for (size_t i = 0; i < p->count && status == TOOL_DONE; i++) {
        size_t n = 0;
        const char *text = page_get(p, i, &n);
        if (text == NULL || n >= sizeof(l->last)) {
            return tool_fail(l->t, "cannot list", EMQ_EPROTOCOL, "a member that is no id");
        }
        l->score_ms = page_get_score(p, i);
        status = list_one(l, text, n);
        memcpy(l->last, text, n);
        l->last_length = n;
    }
    return status;
}

static int list_jobs(listing *l) {
    int status = TOOL_DONE;
    size_t count = PAGE;
    size_t limit = PAGE;
    while (status == TOOL_DONE && count == limit && l->listed < l->most) {
        page p;
        limit = l->most - l->listed < PAGE ? (size_t)(l->most - l->listed) : PAGE;
        int result = read_page(&p, l, (uint32_t)limit);
        count = p.count;
        status =
            result == EMQ_OK ? list_page(l, &p) : tool_fail_client(l->t, "cannot list", result);
        page_clear(&p);
    }
    if (status == TOOL_DONE) {
        print_header(l);
    }
    return status == TOOL_DONE && l->listed == 0 ? TOOL_OTHER : status;
}

static int run_listing(tool *t, emq_key_kind set, int is_newest_first) {
    listing l = {.t = t,
                 .queue = t->argv[0],
                 .set = set,
                 .is_newest_first = is_newest_first,
                 .is_ids_only = tool_value(t, "ids") != NULL};
    l.has_header = t->json || l.is_ids_only;
    int status = tool_queue(t, l.queue);
    if (status == TOOL_DONE) {
        status = tool_number(t, &l.most, "max", DEFAULT_JOBS, 1, INT64_MAX);
    }
    if (status == TOOL_DONE) {
        status = tool_open(t);
    }
    return status == TOOL_DONE ? list_jobs(&l) : status;
}

#define LISTING_DETAILS                                                                            \
    "The age counts from the minting of the id, by the clocks of the two hosts. Exit\n"            \
    "status 1: there is none.\n"

static int run_peek(tool *t) {
    int is_active = tool_value(t, "active") != NULL;
    int is_scheduled = tool_value(t, "scheduled") != NULL;
    int is_newest_first = tool_value(t, "newest") != NULL;
    if (is_active + is_scheduled + is_newest_first > 1) {
        return tool_usage(t, "takes one of --active, --scheduled and --newest");
    }
    return run_listing(t,
                       is_active      ? EMQ_KEY_ACTIVE
                       : is_scheduled ? EMQ_KEY_SCHEDULE
                                      : EMQ_KEY_PENDING,
                       is_newest_first);
}

static const tool_option peek_options[] = {
    {"max", 'n', "N", "so many at most (default 20)"},
    {"newest", 'r', NULL, "the newest pending jobs first"},
    {"active", 'a', NULL, "the leased jobs instead, by the end of their lease"},
    {"scheduled", 's', NULL, "the jobs that wait for a time instead, by it"},
    {"ids", 0, NULL, "the ids alone, without a look at the rows"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_peek = {
    .name = "peek",
    .arguments = "QUEUE",
    .least = 1,
    .most = 1,
    .summary =
        "List pending jobs in the order in which they will be claimed; or leased or due ones",
    .details = LISTING_DETAILS "The token of a lease is the number of attempts.\n",
    .example = "emq peek orders -n 5\n",
    .options = peek_options,
    .run = run_peek,
};

static int run_dead(tool *t) {
    return run_listing(t, EMQ_KEY_DEAD, tool_value(t, "oldest") == NULL);
}

static const tool_option dead_options[] = {
    {"max", 'n', "N", "so many at most (default 20)"},
    {"oldest", 'r', NULL, "the oldest first"},
    {"ids", 0, NULL, "the ids alone, without a look at the rows"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_dead = {
    .name = "dead",
    .arguments = "QUEUE",
    .least = 1,
    .most = 1,
    .summary = "List dead jobs with what went wrong last, the newest first",
    .details = LISTING_DETAILS,
    .example = "emq dead orders --json | jq -r .last_error | sort | uniq -c\n",
    .options = dead_options,
    .run = run_dead,
};

/* --- job --- */

static void print_field(const char *name, const char *text, size_t n) {
    (void)printf("%-11s ", name);
    tool_print_bytes(stdout, text, n, 0);
    (void)putchar('\n');
}

static void print_whole_row(const emq_id *id, const emq_row *row) {
    char minted[TOOL_TIME_MAX];
    int64_t minted_ms = 0;
    size_t n = 0;
    (void)emq_id_unix_ms(&minted_ms, id);
    tool_format_time(minted, minted_ms);
    print_field("id", id->text, EMQ_ID_LEN);
    (void)printf("%-11s %s", "minted", minted);
    print_age(" (", id, " ago)\n");
    print_field("state", emq_row_get_state(row), strlen(emq_row_get_state(row)));
    (void)printf("%-11s %" PRId64 "\n%-11s %" PRId64 "\n%-11s %" PRId64 "\n", "attempts",
                 emq_row_get_attempts(row), "failures", emq_row_get_failures(row), "stalled",
                 emq_row_get_stalled(row));
    const char *lane = emq_row_get_lane(row);
    if (lane != NULL) {
        print_field("lane", lane, strlen(lane));
    }
    const char *error = emq_row_get_last_error(row, &n);
    if (error != NULL) {
        print_field("last error", error, n);
    }
    const char *payload = emq_row_get_payload(row, &n);
    if (payload != NULL) {
        print_field("payload", payload, n);
    }
}

static void show_row(const tool *t, const emq_id *id, const emq_row *row) {
    size_t n = 0;
    if (tool_value(t, "payload") != NULL) {
        const void *payload = emq_row_get_payload(row, &n);
        if (payload != NULL) {
            (void)fwrite(payload, 1, n, stdout);
        }
    } else if (t->json) {
        tool_print_json(row_to_json(t->argv[0], id, row));
    } else {
        print_whole_row(id, row);
    }
}

static int run_job(tool *t) {
    emq_id id;
    emq_row *row = NULL;
    int status = tool_queue(t, t->argv[0]);
    if (status == TOOL_DONE) {
        status = tool_id(t, &id, t->argv[1]);
    }
    if (status == TOOL_DONE) {
        status = tool_open(t);
    }
    if (status != TOOL_DONE) {
        return status;
    }
    int result = emq_row_read(&row, t->client, t->argv[0], &id);
    if (result != EMQ_OK) {
        return tool_fail_client(t, id.text, result);
    }
    show_row(t, &id, row);
    emq_row_free(row);
    return TOOL_DONE;
}

static const tool_option job_options[] = {
    {"payload", 'p', NULL, "the payload alone, as it is"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_job = {
    .name = "job",
    .arguments = "QUEUE ID",
    .least = 2,
    .most = 2,
    .summary = "Show a job's row: state, attempts, failures, last error, payload",
    .details = "Exit status 1: it is gone: completed, removed, or never there.\n",
    .example = "emq job orders JOB0NgWEfAEJfs\n",
    .options = job_options,
    .run = run_job,
};
