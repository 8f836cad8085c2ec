/* SPDX-License-Identifier: Apache-2.0 */
/* A worker whose handler is a command: its payload on standard input, exit status 0 completes, any
 * other fails. The worker runtime claims, keeps the leases, settles and sweeps; here are the
 * commands, the signals and what is told. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "tool.h"

#define DEFAULT_LEASE_MS 30000
#define DEFAULT_TIMEOUT_MS 3600000
#define DEFAULT_GRACE_MS 10000
#define DEFAULT_BACKOFF_MS 1000
#define DEFAULT_MAX_FAILURES 10
#define MARGIN_MS 10000 /* for what comes behind the end of a command: its settle */
#define AGAIN_MS 1000   /* until a command is tried again that could not be started */
#define LOOK_MS 200
#define ERROR_MAX (CHILD_TAIL_MAX + 64)

extern char **environ;

typedef struct work {
    tool *t;
    emq_worker *worker;
    emq_client_options address;
    char **command;
    int64_t jobs;
    int64_t lease_ms;
    int64_t timeout_ms;
    int64_t grace_ms;
    int64_t backoff_ms;
    int64_t max_failures;
    int is_verbose;
    int ends_when_empty;
} work;

/* --- one job --- */

#define JOB_VARIABLES 3
#define VARIABLE_MAX (EMQ_QUEUE_MAX + 32)

/* Our environment, with the job's in front, so that it counts; NULL without memory. */
static char **make_environment(char variables[JOB_VARIABLES][VARIABLE_MAX], const emq_task *task) {
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **all = calloc(count + JOB_VARIABLES + 1, sizeof(*all));
    if (all == NULL) {
        return NULL;
    }
    (void)snprintf(variables[0], VARIABLE_MAX, "EMQ_JOB_ID=%s", emq_task_get_id(task)->text);
    (void)snprintf(variables[1], VARIABLE_MAX, "EMQ_JOB_QUEUE=%s", emq_task_get_queue(task));
    (void)snprintf(variables[2], VARIABLE_MAX, "EMQ_JOB_ATTEMPTS=%" PRId64,
                   emq_task_get_attempts(task));
    size_t used = 0;
    for (; used < JOB_VARIABLES; used++) {
        all[used] = variables[used];
    }
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "EMQ_JOB_", strlen("EMQ_JOB_")) != 0) {
            all[used++] = environ[i];
        }
    }
    return all;
}

/* What a job that is not ours any more runs for is for nothing. */
static child_advice ask_task(void *user) {
    switch (emq_task_get_notice(user)) {
    case EMQ_NOTICE_NONE:
        return CHILD_GO_ON;
    case EMQ_NOTICE_RETURNED:
        return CHILD_KILL;
    default:
        return CHILD_STOP;
    }
}

/* Why it ended, as far as we know. */
static void describe_end(char *text, size_t cap, const child_end *end) {
    if (end->is_timed_out) {
        (void)snprintf(text, cap, "timed out");
    } else if (WIFSIGNALED(end->status)) {
        (void)snprintf(text, cap, "killed by signal %d", WTERMSIG(end->status));
    } else {
        (void)snprintf(text, cap, "exit status %d", WEXITSTATUS(end->status));
    }
}

static int is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* That, and what it said last, without the white space around. Its length: it may hold any byte. */
static size_t describe(char text[ERROR_MAX], const child_end *end) {
    describe_end(text, ERROR_MAX - CHILD_TAIL_MAX, end);
    size_t used = strlen(text);
    const char *said = end->tail;
    size_t length = end->tail_size;
    while (length > 0 && is_space(said[length - 1])) {
        length--;
    }
    while (length > 0 && is_space(said[0])) {
        said++;
        length--;
    }
    if (length > 0) {
        text[used++] = ':';
        text[used++] = ' ';
        memcpy(text + used, said, length);
        used += length;
    }
    return used;
}

static int judge(emq_task *task, const child_end *end) {
    char text[ERROR_MAX];
    if (WIFEXITED(end->status) && WEXITSTATUS(end->status) == 0) {
        return EMQ_TASK_COMPLETE;
    }
    if (end->is_ended) { /* by us: no failure of its own */
        return EMQ_TASK_REQUEUE;
    }
    (void)emq_task_set_error(task, text, describe(text, end));
    return EMQ_TASK_FAIL;
}

static int handle(emq_task *task, void *user) {
    const work *w = user;
    char variables[JOB_VARIABLES][VARIABLE_MAX];
    child_end end;
    child_order order = {.argv = w->command,
                         .timeout_ms = w->timeout_ms,
                         .grace_ms = w->grace_ms,
                         .has_no_output = w->t->json,
                         .ask = ask_task,
                         .user = task};
    char **environment = make_environment(variables, task);
    order.envp = environment;
    order.input = emq_task_get_payload(task, &order.input_size);
    int result = environment == NULL ? ENOMEM : child_run(&end, &order);
    free(environment);
    if (result != 0) {
        char text[256];
        (void)strerror_r(result, text, sizeof(text));
        tool_note(w->t, "%s: cannot run %s: %s", emq_task_get_id(task)->text, w->command[0], text);
        (void)emq_task_set_delay(task, AGAIN_MS);
        return EMQ_TASK_DELAY;
    }
    return judge(task, &end);
}

/* --- what is told --- */

static const char *event_word(int kind) {
    static const char *const words[] = {
        [EMQ_WORKER_START] = "start",     [EMQ_WORKER_SUCCESS] = "success",
        [EMQ_WORKER_FAILURE] = "failure", [EMQ_WORKER_RETURN] = "return",
        [EMQ_WORKER_LOST] = "lost",       [EMQ_WORKER_RECONNECT] = "reconnect",
        [EMQ_WORKER_TROUBLE] = "trouble", [EMQ_WORKER_HEALTH] = "health",
    };
    int is_known = kind >= EMQ_WORKER_START && kind <= EMQ_WORKER_HEALTH;
    return is_known ? words[kind] : "other";
}

static void tell_json(const emq_worker_event *event) {
    json_t *object = json_object();
    (void)json_object_set_new(object, "event", json_string(event_word(event->kind)));
    tool_json_result(object, event->result);
    if (event->queue != NULL) {
        (void)json_object_set_new(object, "queue", json_string(event->queue));
    }
    if (event->task != NULL) {
        (void)json_object_set_new(object, "id", json_string(emq_task_get_id(event->task)->text));
        (void)json_object_set_new(object, "attempts",
                                  json_integer(emq_task_get_attempts(event->task)));
        (void)json_object_set_new(object, "ran_ms", json_integer(event->ran_us / 1000));
    }
    if (event->text[0] != '\0') {
        tool_json_bytes(object, "text", event->text, strlen(event->text));
    }
    tool_print_json(object);
    (void)fflush(stdout);
}

static void tell(const work *w, const emq_worker_event *event) {
    int is_quiet = event->kind == EMQ_WORKER_START || event->kind == EMQ_WORKER_SUCCESS;
    if (is_quiet && !w->is_verbose) {
        return;
    }
    const char *said = event->text;
    if (said[0] == '\0' && event->result != EMQ_OK) {
        said = emq_strerror(event->result);
    }
    tool_note(w->t, "%s%s%s%s%s", event->task == NULL ? "" : emq_task_get_id(event->task)->text,
              event->task == NULL ? "" : ": ", event_word(event->kind), said[0] == '\0' ? "" : ": ",
              said);
}

static void hook(const emq_worker_event *event, void *user) {
    const work *w = user;
    if (w->t->json) {
        tell_json(event);
    } else {
        tell(w, event);
    }
}

static void tell_counters(const work *w) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    (void)emq_worker_get_stats(&stats, w->worker);
    tool_note(w->t,
              "%" PRIu64 " completed, %" PRIu64 " failed (%" PRIu64 " of them dead), %" PRIu64
              " given back, %" PRIu64 " lost",
              stats.completed, stats.failed, stats.dead, stats.requeued + stats.delayed,
              stats.lost + stats.refused + stats.unsettled);
}

/* --- the whole --- */

static void signals_of(sigset_t *set) {
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
}

/* Nothing is in hand, and nothing can be claimed. */
static int is_empty(const work *w) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    emq_ids *ids = NULL;
    (void)emq_worker_get_stats(&stats, w->worker);
    if (stats.running + stats.waiting + stats.settling > 0) {
        return 0;
    }
    if (!emq_client_is_open(w->t->client) && emq_client_reconnect(w->t->client) != EMQ_OK) {
        return 0;
    }
    int result = emq_ids_browse(&ids, w->t->client, w->t->argv[0], EMQ_KEY_PENDING, NULL, 0, 1);
    int is_none = result == EMQ_OK && emq_ids_get_count(ids) == 0;
    emq_ids_free(ids);
    return is_none;
}

/* Between a claim and the moment when it is counted an empty look means nothing: it takes two. */
static int is_empty_again(const work *w, uint64_t *claimed) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    if (!is_empty(w)) {
        *claimed = UINT64_MAX;
        return 0;
    }
    (void)emq_worker_get_stats(&stats, w->worker);
    int is_again = *claimed == stats.claimed;
    *claimed = stats.claimed;
    return is_again;
}

/* Until a signal has stopped the worker, or it is out of work, and it has ended. */
static void wait_for_end(const work *w) {
    sigset_t set;
    uint64_t claimed = UINT64_MAX;
    int is_stopping = 0;
    uint32_t drain_ms = (uint32_t)(w->grace_ms + MARGIN_MS);
    const struct timespec pause = {0, LOOK_MS * 1000000L};
    signals_of(&set);
    while (emq_worker_wait(NULL, w->worker, 0) != EMQ_OK) {
        int is_told = sigtimedwait(&set, NULL, &pause) > 0; /* the second time: at once */
        if (!is_stopping && w->ends_when_empty) {
            is_told = is_told || is_empty_again(w, &claimed);
        }
        if (is_told) {
            is_stopping = 1;
            (void)emq_worker_stop(w->worker, drain_ms);
        }
    }
}

static int fail_worker(const work *w, const char *what, int result) {
    char error[512] = "";
    if (w->worker != NULL) {
        (void)emq_worker_copy_error(error, sizeof(error), w->worker);
    }
    return tool_fail(w->t, what, result, error);
}

static int run_worker(work *w) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    sigset_t set;
    options.concurrency = (uint32_t)w->jobs;
    options.systemd = 1;
    options.hook = hook;
    options.hook_user = w;
    queue.lease_ms = (uint32_t)w->lease_ms;
    queue.max_run_ms = (uint32_t)(w->timeout_ms + w->grace_ms + MARGIN_MS);
    queue.max_failures = (uint32_t)w->max_failures;
    queue.backoff_base_ms = (uint32_t)w->backoff_ms;
    signals_of(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a command that does not read its input */
    int result = emq_worker_open(&w->worker, &w->address, &options);
    if (result == EMQ_OK) {
        result = emq_worker_add(w->worker, w->t->argv[0], handle, w, &queue);
    }
    if (result == EMQ_OK) {
        result = emq_worker_start(w->worker);
    }
    int status = TOOL_DONE;
    if (result != EMQ_OK) {
        status = fail_worker(w, "cannot work", result);
    } else {
        wait_for_end(w);
        tell_counters(w);
    }
    emq_worker_free(w->worker);
    return status;
}

static int is_executable(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

/* Whether the command is there, before any job is claimed for it. */
static int find_command(const char *name) {
    const char *path = getenv("PATH");
    char full[4096];
    if (strchr(name, '/') != NULL || path == NULL) {
        return is_executable(name);
    }
    while (*path != '\0') {
        size_t n = strcspn(path, ":");
        (void)snprintf(full, sizeof(full), "%.*s%s%s", (int)n, path, n == 0 ? "" : "/", name);
        if (is_executable(full)) {
            return 1;
        }
        path += n + (path[n] == ':');
    }
    return 0;
}

static int read_limits(work *w) {
    const tool *t = w->t;
    int status = tool_number(t, &w->jobs, "jobs", 1, 1, EMQ_WORKER_CONCURRENCY_MAX);
    if (status == TOOL_DONE) {
        status = tool_duration(t, &w->lease_ms, "lease", DEFAULT_LEASE_MS, 1000, INT32_MAX);
    }
    if (status == TOOL_DONE) {
        status = tool_duration(t, &w->timeout_ms, "timeout", DEFAULT_TIMEOUT_MS, 1,
                               INT64_C(30) * 86400 * 1000);
    }
    if (status == TOOL_DONE) {
        status = tool_duration(t, &w->grace_ms, "grace", DEFAULT_GRACE_MS, 0, 3600000);
    }
    if (status == TOOL_DONE) {
        status = tool_duration(t, &w->backoff_ms, "backoff", DEFAULT_BACKOFF_MS, 1, INT32_MAX);
    }
    if (status == TOOL_DONE) {
        status =
            tool_number(t, &w->max_failures, "max-failures", DEFAULT_MAX_FAILURES, 1, INT32_MAX);
    }
    return status;
}

static int run_work(tool *t) {
    work w = {.t = t,
              .command = t->argv + 1,
              .is_verbose = tool_value(t, "verbose") != NULL,
              .ends_when_empty = tool_value(t, "until-empty") != NULL};
    int status = tool_queue(t, t->argv[0]);
    if (status == TOOL_DONE) {
        status = read_limits(&w);
    }
    if (status == TOOL_DONE && !find_command(w.command[0])) {
        status = tool_usage(t, "there is no command %s", w.command[0]);
    }
    if (status == TOOL_DONE) {
        status = tool_address(t, &w.address);
    }
    if (status == TOOL_DONE && w.ends_when_empty) {
        status = tool_connect(t, &w.address);
    }
    return status == TOOL_DONE ? run_worker(&w) : status;
}

static const tool_option options[] = {
    {"jobs", 'j', "N", "run up to N commands at once (default 1)"},
    {"timeout", 't', "TIME", "how long a command may run (default 1h)"},
    {"grace", 'g', "TIME", "from SIGTERM to SIGKILL (default 10s)"},
    {"max-failures", 'm', "N", "a job is a dead letter at so many failures (default 10)"},
    {"backoff", 'b', "TIME", "before the first retry; doubled each time, with jitter (default 1s)"},
    {"lease", 'l', "TIME", "of a claim, renewed while the command runs (default 30s)"},
    {"until-empty", 'e', NULL, "end when there is nothing to claim any more"},
    {"verbose", 'v', NULL, "tell of each job, and not of failures alone"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_work = {
    .name = "work",
    .arguments = "QUEUE -- COMMAND [ARGUMENT]...",
    .least = 2,
    .most = TOOL_ANY,
    .summary = "Run a command for each job, with the payload on its standard input",
    .details =
        "Exit status 0 completes the job. Any other counts a failure, with the end of what\n"
        "the command wrote to standard error as the error's text; it is tried again behind a\n"
        "pause that grows, and is a dead letter at --max-failures. EMQ_JOB_ID, EMQ_JOB_QUEUE\n"
        "and EMQ_JOB_ATTEMPTS are in the command's environment.\n"
        "\n"
        "SIGTERM, SIGINT and SIGHUP end it: no further claims, and SIGTERM for the commands\n"
        "that run, each with all that it has started; SIGKILL behind the grace period, or at\n"
        "once with a second signal. A command that still ends with 0 has completed its job;\n"
        "the jobs of the others go back without a failure. Then it ends with status 0. It\n"
        "sweeps and promotes as every worker does.\n",
    .example = "emq work orders -j 4 --timeout 5m -- ./handle-order --fast\n",
    .options = options,
    .run = run_work,
};
