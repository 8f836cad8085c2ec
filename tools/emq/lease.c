/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in hand: claim, and what becomes of a lease. claim prints a lease as `QUEUE ID TOKEN`, which
 * the others take as their arguments, or line by line from standard input. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed.h"
#include "tool.h"

#define DEFAULT_LEASE_MS 30000
#define DEFAULT_MAX_FAILURES 10
#define LEASE_LINE_MAX 4096 /* with a payload behind the tab it would be more */
#define PAYLOAD_SHOWN 60

/* --- claim --- */

typedef struct claim {
    int64_t lease_ms;
    int64_t max;
    int64_t wait_ms;
    int shows_payload;
    const char *output; /* a file for the payload, or NULL */
} claim;

static void print_job_json(const emq_job *job) {
    const emq_lease *lease = emq_job_get_lease(job);
    int64_t minted_ms = 0;
    size_t n = 0;
    const void *payload = emq_job_get_payload(job, &n);
    json_t *object = json_object();
    (void)json_object_set_new(object, "queue", json_string(lease->queue));
    (void)json_object_set_new(object, "id", json_string(lease->id.text));
    (void)json_object_set_new(object, "token", json_integer(lease->token));
    (void)json_object_set_new(object, "attempts", json_integer(emq_job_get_attempts(job)));
    (void)emq_id_unix_ms(&minted_ms, &lease->id);
    (void)json_object_set_new(object, "minted_ms", json_integer(minted_ms));
    tool_json_bytes(object, "payload", payload, n);
    tool_print_json(object);
}

static void print_job(const tool *t, const claim *c, const emq_job *job) {
    if (t->json) {
        print_job_json(job);
        return;
    }
    const emq_lease *lease = emq_job_get_lease(job);
    size_t n = 0;
    const void *payload = emq_job_get_payload(job, &n);
    (void)printf("%s %s %" PRId64, lease->queue, lease->id.text, lease->token);
    if (c->shows_payload && payload != NULL) {
        (void)putchar('\t');
        tool_print_bytes(stdout, payload, n, isatty(STDOUT_FILENO) ? PAYLOAD_SHOWN : 0);
    }
    (void)putchar('\n');
}

static int write_payload(const tool *t, const claim *c, const emq_job *job) {
    size_t n = 0;
    const void *payload = emq_job_get_payload(job, &n);
    FILE *file = fopen(c->output, "w");
    int is_written = file != NULL && (n == 0 || fwrite(payload, 1, n, file) == n);
    if (file != NULL && fclose(file) != 0) {
        is_written = 0;
    }
    return is_written ? TOOL_DONE : tool_fail(t, c->output, EMQ_ESYSTEM, strerror(errno));
}

static int print_jobs(const tool *t, const claim *c, const emq_jobs *jobs) {
    for (size_t i = 0; i < emq_jobs_get_count(jobs); i++) {
        print_job(t, c, emq_jobs_get_job(jobs, i));
    }
    if (emq_jobs_get_malformed(jobs) > 0) {
        return tool_fail(t, "some were leased that can't be handed out", EMQ_EBADJOB, "");
    }
    return c->output == NULL ? TOOL_DONE : write_payload(t, c, emq_jobs_get_job(jobs, 0));
}

static int claim_now(tool *t, const claim *c) {
    emq_jobs *jobs = NULL;
    int result = emq_claims(&jobs, t->client, t->argv[0], (uint32_t)c->lease_ms, (uint32_t)c->max,
                            (uint32_t)c->wait_ms);
    if (result != EMQ_OK) {
        return tool_fail_client(t, "cannot claim", result);
    }
    int status = print_jobs(t, c, jobs);
    emq_jobs_free(jobs);
    return status;
}

static int run_claim(tool *t) {
    claim c = {.shows_payload = tool_value(t, "payload") != NULL,
               .output = tool_value(t, "output")};
    int status = tool_queue(t, t->argv[0]);
    if (status == TOOL_DONE) {
        status = tool_duration(t, &c.lease_ms, "lease", DEFAULT_LEASE_MS, 1, INT32_MAX);
    }
    if (status == TOOL_DONE) {
        status = tool_number(t, &c.max, "max", 1, 1, EMQ_MEMBERS_MAX);
    }
    if (status == TOOL_DONE) {
        status = tool_duration(t, &c.wait_ms, "wait", 0, 0, 3600000);
    }
    if (status == TOOL_DONE && c.output != NULL && c.max != 1) {
        status = tool_usage(t, "--output takes the payload of one job");
    }
    if (status == TOOL_DONE) {
        status = tool_open(t);
    }
    return status == TOOL_DONE ? claim_now(t, &c) : status;
}

static const tool_option claim_options[] = {
    {"lease", 'l', "TIME", "how long it is yours, by the server's clock (default 30s)"},
    {"max", 'n', "N", "claim up to N jobs (default 1)"},
    {"wait", 'w', "TIME", "wait so long for the first one (default 0)"},
    {"payload", 'p', NULL, "print the payload, too, behind a tab and escaped"},
    {"output", 'o', "FILE", "write the payload to FILE, as it is"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_claim = {
    .name = "claim",
    .arguments = "QUEUE",
    .least = 1,
    .most = 1,
    .summary = "Lease the oldest pending jobs, and print their leases",
    .details = "A lease is printed as QUEUE ID TOKEN, which complete, fail, requeue, delay and\n"
               "extend take. A lease that nobody settles comes back with the first sweep behind\n"
               "its end, as a stall. Exit status 1: there is nothing to claim, or the queue is\n"
               "paused.\n",
    .example = "emq claim orders --lease 5m --payload\n"
               "emq claim orders -n 10 | emq complete -\n",
    .options = claim_options,
    .run = run_claim,
};

/* --- settling --- */

/* What is done to each lease. */
typedef struct settling {
    tool *t;
    const char *past; /* what is said of a lease that it was done to */
    int (*settle)(const struct settling *s, const emq_lease *lease);
    emq_when when;
    int64_t lease_ms;
    int64_t delay_ms;
    int64_t max_failures;
    const char *error;
} settling;

static void print_settled(const settling *s, const emq_lease *lease, int result) {
    if (s->t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "queue", json_string(lease->queue));
        (void)json_object_set_new(object, "id", json_string(lease->id.text));
        (void)json_object_set_new(object, "token", json_integer(lease->token));
        tool_json_result(object, result);
        tool_print_json(object);
    } else if (result >= 0) {
        (void)printf("%s %s\n", lease->id.text,
                     result == EMQ_OK     ? s->past
                     : result == EMQ_GONE ? "gone"
                                          : "dead");
    }
}

static int settle_one(const settling *s, const emq_lease *lease) {
    int result = s->settle(s, lease);
    print_settled(s, lease, result);
    return result < 0 ? tool_fail_client(s->t, lease->id.text, result) : tool_status(result);
}

static int parse_lease(const tool *t, emq_lease *out, const char *queue, const char *id,
                       const char *token) {
    memset(out, 0, sizeof(*out));
    int status = tool_queue(t, queue);
    if (status == TOOL_DONE) {
        memcpy(out->queue, queue, strlen(queue) + 1);
        status = tool_id(t, &out->id, id);
    }
    return status == TOOL_DONE ? tool_token(t, &out->token, token) : status;
}

/* A line as claim printed it, with or without a payload behind a tab. */
static int settle_line(const settling *s, const char *line, size_t n, size_t number) {
    char text[LEASE_LINE_MAX];
    const char *tab = memchr(line, '\t', n);
    size_t length = tab == NULL ? n : (size_t)(tab - line);
    char *rest = NULL;
    emq_lease lease;
    if (length >= sizeof(text)) {
        length = sizeof(text) - 1;
    }
    memcpy(text, line, length);
    text[length] = '\0';
    const char *queue = strtok_r(text, " ", &rest);
    const char *id = strtok_r(NULL, " ", &rest);
    const char *token = strtok_r(NULL, " ", &rest);
    if (token == NULL || strtok_r(NULL, " ", &rest) != NULL) {
        return tool_usage(s->t, "line %zu of standard input is no lease: QUEUE ID TOKEN", number);
    }
    int status = parse_lease(s->t, &lease, queue, id, token);
    if (status != TOOL_DONE) {
        tool_note(s->t, "line %zu of standard input is no lease", number);
        return status;
    }
    return settle_one(s, &lease);
}

/* A lease that can't be settled keeps none of the others from it; a lost connection does. */
static int settle_input(const settling *s) {
    feed f;
    const char *line = NULL;
    size_t n = 0;
    size_t number = 0;
    int status = TOOL_DONE;
    feed_result next = FEED_RECORD;
    feed_init(&f, STDIN_FILENO, '\n', (size_t)16 * 1024 * 1024);
    while (emq_client_is_open(s->t->client) &&
           (next = feed_next(&f, &line, &n, 1)) == FEED_RECORD) {
        int one = settle_line(s, line, n, ++number);
        status = one > status ? one : status;
        (void)fflush(stdout);
    }
    if (!emq_client_is_open(s->t->client)) {
        tool_note(s->t, "the connection is lost: nothing behind this lease was settled");
    }
    if (next == FEED_ERROR || next == FEED_TOO_BIG) {
        status = tool_fail(s->t, "standard input", EMQ_ESYSTEM, strerror(errno));
    }
    feed_clear(&f);
    return status;
}

static int run_settling(settling *s) {
    tool *t = s->t;
    emq_lease lease;
    int is_input = t->argc == 1 && strcmp(t->argv[0], "-") == 0;
    if (!is_input && t->argc != 3) {
        return tool_usage(t, "takes a lease, QUEUE ID TOKEN, or - for standard input");
    }
    int status = is_input ? TOOL_DONE : parse_lease(t, &lease, t->argv[0], t->argv[1], t->argv[2]);
    if (status == TOOL_DONE) {
        status = tool_open(t);
    }
    if (status != TOOL_DONE) {
        return status;
    }
    return is_input ? settle_input(s) : settle_one(s, &lease);
}

#define LEASE_ARGUMENTS "QUEUE ID TOKEN|-"
#define LEASE_READ                                                                                 \
    "The lease is one that emq claim printed; - reads leases from standard input, one a\n"         \
    "line. "
#define LEASE_DETAILS LEASE_READ "Exit status 1: the job is gone; 5: the lease is stale.\n"

static int do_complete(const settling *s, const emq_lease *lease) {
    return emq_complete(s->t->client, lease);
}

static int run_complete(tool *t) {
    settling s = {.t = t, .past = "completed", .settle = do_complete};
    return run_settling(&s);
}

const tool_verb verb_complete = {
    .name = "complete",
    .arguments = LEASE_ARGUMENTS,
    .least = 1,
    .most = 3,
    .summary = "Complete claimed jobs: they are done, and their rows are removed",
    .details = LEASE_DETAILS,
    .example = "emq complete orders JOB0NgWEfAEJfs 1\n",
    .run = run_complete,
};

static int do_fail(const settling *s, const emq_lease *lease) {
    return emq_fail(s->t->client, lease, s->delay_ms, (uint32_t)s->max_failures, s->error,
                    strlen(s->error));
}

static int run_fail(tool *t) {
    settling s = {.t = t, .past = "scheduled", .settle = do_fail, .error = tool_value(t, "error")};
    s.error = s.error == NULL ? "failed by hand" : s.error;
    int status = tool_duration(t, &s.delay_ms, "delay", 0, 0, TOOL_IN_MAX);
    if (status == TOOL_DONE) {
        status =
            tool_number(t, &s.max_failures, "max-failures", DEFAULT_MAX_FAILURES, 1, INT32_MAX);
    }
    return status == TOOL_DONE ? run_settling(&s) : status;
}

static const tool_option fail_options[] = {
    {"error", 'e', "TEXT", "what went wrong (default: failed by hand)"},
    {"delay", 'd', "TIME", "until it may be tried again (default 0)"},
    {"max-failures", 'm', "N", "it is a dead letter at so many failures (default 10)"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_fail = {
    .name = "fail",
    .arguments = LEASE_ARGUMENTS,
    .least = 1,
    .most = 3,
    .summary = "Count a failed attempt of claimed jobs: they are tried again, or dead",
    .details =
        LEASE_READ "Exit status 1: it is a dead letter now; 5: the job is gone, or the lease is\n"
                   "stale.\n",
    .example = "emq fail orders JOB0NgWEfAEJfs 1 --error 'no such order' --delay 5m\n",
    .options = fail_options,
    .run = run_fail,
};

static int do_requeue(const settling *s, const emq_lease *lease) {
    return emq_requeue(s->t->client, lease);
}

static int run_requeue(tool *t) {
    settling s = {.t = t, .past = "pending", .settle = do_requeue};
    return run_settling(&s);
}

const tool_verb verb_requeue = {
    .name = "requeue",
    .arguments = LEASE_ARGUMENTS,
    .least = 1,
    .most = 3,
    .summary = "Give claimed jobs back at once, without counting a failure",
    .details = LEASE_DETAILS,
    .example = "emq requeue orders JOB0NgWEfAEJfs 1\n",
    .run = run_requeue,
};

static int do_delay(const settling *s, const emq_lease *lease) {
    return emq_delay(s->t->client, lease, s->when);
}

static int run_delay(tool *t) {
    settling s = {.t = t, .past = "scheduled", .settle = do_delay};
    int status = tool_when(t, &s.when);
    return status == TOOL_DONE ? run_settling(&s) : status;
}

static const tool_option delay_options[] = {
    {"in", 0, "TIME", "how long from now, as 30s, 5m, 2h, 1d"},
    {"at", 0, "MOMENT", "when, as 2026-01-02T03:04:05Z or @UNIX-SECONDS"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_delay = {
    .name = "delay",
    .arguments = LEASE_ARGUMENTS,
    .least = 1,
    .most = 3,
    .summary = "Give claimed jobs back for later, without counting a failure",
    .details = LEASE_READ "Exit status 5: the job is gone, or the lease is stale.\n",
    .example = "emq delay orders JOB0NgWEfAEJfs 1 --in 10m\n",
    .options = delay_options,
    .run = run_delay,
};

static int do_extend(const settling *s, const emq_lease *lease) {
    return emq_extend(s->t->client, lease, (uint32_t)s->lease_ms);
}

static int run_extend(tool *t) {
    settling s = {.t = t, .past = "extended", .settle = do_extend};
    int status = tool_duration(t, &s.lease_ms, "lease", DEFAULT_LEASE_MS, 1, INT32_MAX);
    return status == TOOL_DONE ? run_settling(&s) : status;
}

static const tool_option extend_options[] = {
    {"lease", 'l', "TIME", "how long it is yours, from now (default 30s)"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_extend = {
    .name = "extend",
    .arguments = LEASE_ARGUMENTS,
    .least = 1,
    .most = 3,
    .summary = "Prolong leases, from now",
    .details = LEASE_DETAILS,
    .example = "emq extend orders JOB0NgWEfAEJfs 1 --lease 10m\n",
    .options = extend_options,
    .run = run_extend,
};
