/* SPDX-License-Identifier: Apache-2.0 */
/* A worker whose handler is a command: its payload on standard input, exit status 0 completes, any
 * other fails. The worker runtime claims, keeps the leases, settles and sweeps; here are the
 * commands, the signals and what is told. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "sizes.h"
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
#define SENTENCE_MAX 512

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
    /* the last trouble with claims; of the thread that calls the hook, too */
    pthread_mutex_t mutex;
    int trouble;
    char trouble_text[SENTENCE_MAX];
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

static void note_trouble(work *w, const emq_worker_event *event) {
    (void)pthread_mutex_lock(&w->mutex);
    w->trouble = event->result;
    (void)snprintf(w->trouble_text, sizeof(w->trouble_text), "%s", event->text);
    (void)pthread_mutex_unlock(&w->mutex);
}

static void hook(const emq_worker_event *event, void *user) {
    work *w = user;
    if (event->kind == EMQ_WORKER_TROUBLE && event->queue != NULL) {
        note_trouble(w, event);
    }
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

/* Why it ends by itself. */
typedef enum work_end {
    END_NONE, /* it goes on, or a signal ends it */
    END_EMPTY,
    END_PAUSED,  /* there are pending jobs, which nobody can claim */
    END_REFUSED, /* the server refuses the claims, or the looks for the end, until somebody acts */
} work_end;

/* What a look found, and what it goes by. */
typedef struct work_look {
    work_end end;
    int result; /* of END_REFUSED */
    int is_own; /* its words are those of our own client */
    uint64_t claimed;
} work_look;

static int is_refusal(int result) {
    return emq_err_class(result) == EMQ_CLASS_SERVER;
}

/* What there is to claim. A server that is away for a while ends nothing. */
static void look_at_queue(work_look *out, const work *w) {
    emq_client *client = w->t->client;
    const char *queue = w->t->argv[0];
    emq_ids *ids = NULL;
    int is_paused = 0;
    int result = emq_client_is_open(client) ? EMQ_OK : emq_client_reconnect(client);
    if (result == EMQ_OK) {
        result = emq_ids_browse(&ids, client, queue, EMQ_KEY_PENDING, NULL, 0, 1);
    }
    if (result == EMQ_OK && emq_ids_get_count(ids) == 0) {
        out->end = END_EMPTY;
    } else if (result == EMQ_OK) {
        result = sizes_read_paused(&is_paused, client, queue);
        out->end = is_paused ? END_PAUSED : END_NONE;
    }
    if (is_refusal(result)) {
        out->end = END_REFUSED;
        out->result = result;
        out->is_own = 1;
    }
    emq_ids_free(ids);
}

/* While something is in hand it does not end by itself. */
static work_look look_once(const work *w) {
    work_look found = {.end = END_NONE};
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    emq_worker_health health = EMQ_WORKER_HEALTH_INIT;
    (void)emq_worker_get_stats(&stats, w->worker);
    found.claimed = stats.claimed;
    if (stats.running + stats.waiting + stats.settling > 0) {
        return found;
    }
    (void)emq_worker_get_health(&health, w->worker, NULL);
    if (is_refusal(health.result)) {
        found.end = END_REFUSED;
        found.result = health.result;
    } else if (w->ends_when_empty) {
        look_at_queue(&found, w);
    }
    return found;
}

/* Between a claim and the moment when it is counted a look means nothing: it takes two that find
 * the same. */
static int is_end(work_look *last, const work *w) {
    work_look now = look_once(w);
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    (void)emq_worker_get_stats(&stats, w->worker);
    int is_same = now.end != END_NONE && now.end == last->end && now.claimed == last->claimed &&
                  now.claimed == stats.claimed;
    *last = now;
    return is_same;
}

/* Until a signal has stopped the worker, or it has come to an end by itself; and it has ended. */
static work_look wait_for_end(const work *w) {
    sigset_t set;
    work_look found = {.end = END_NONE};
    int is_stopping = 0;
    uint32_t drain_ms = (uint32_t)(w->grace_ms + MARGIN_MS);
    const struct timespec pause = {0, LOOK_MS * 1000000L};
    signals_of(&set);
    while (emq_worker_wait(NULL, w->worker, 0) != EMQ_OK) {
        int is_told = sigtimedwait(&set, NULL, &pause) > 0; /* the second time: at once */
        if (is_told && !is_stopping) {
            found.end = END_NONE;
        }
        if (!is_told && !is_stopping) {
            is_told = is_end(&found, w);
        }
        if (is_told) {
            is_stopping = 1;
            (void)emq_worker_stop(w->worker, drain_ms);
        }
    }
    return found;
}

/* An exit status, and what there is to say of it. */
static int tell_end(work *w, const work_look *found) {
    char text[SENTENCE_MAX] = "";
    if (found->end == END_PAUSED) {
        tool_note(w->t, "%s is paused, and has pending jobs: emq resume", w->t->argv[0]);
        return TOOL_OTHER;
    }
    if (found->end != END_REFUSED) {
        return TOOL_DONE;
    }
    if (found->is_own) {
        return tool_fail_client(w->t, "cannot look for jobs", found->result);
    }
    (void)pthread_mutex_lock(&w->mutex);
    if (w->trouble == found->result) {
        memcpy(text, w->trouble_text, sizeof(text));
    }
    (void)pthread_mutex_unlock(&w->mutex);
    return tool_fail(w->t, "cannot claim", found->result, text);
}

static int fail_worker(const work *w, const char *what, int result) {
    char error[SENTENCE_MAX] = "";
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
        work_look found = wait_for_end(w);
        tell_counters(w);
        status = tell_end(w, &found);
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
              .mutex = PTHREAD_MUTEX_INITIALIZER,
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
    .arguments = "QUEUE [--] COMMAND [ARGUMENT]...",
    .least = 2,
    .most = TOOL_ANY,
    .summary = "Run a command for each job, with the payload on its standard input",
    .details =
        "Exit status 0 completes the job. Any other counts a failure, with the end of what\n"
        "the command wrote to standard error as the error's text; it is tried again behind a\n"
        "pause that grows, and is a dead letter at --max-failures. EMQ_JOB_ID, EMQ_JOB_QUEUE\n"
        "and EMQ_JOB_ATTEMPTS are in the command's environment. The -- may be left out where\n"
        "no argument of the command begins with -.\n"
        "\n"
        "SIGTERM, SIGINT and SIGHUP end it: no further claims, and SIGTERM for the commands\n"
        "that run, each with all that it has started; SIGKILL behind the grace period, or at\n"
        "once with a second signal. A command that still ends with 0 has completed its job;\n"
        "the jobs of the others go back without a failure. Then it ends with status 0. It\n"
        "sweeps and promotes as every worker does.\n"
        "\n"
        "When the server refuses the claims until somebody acts (a right, the fence, the\n"
        "module) it finishes what is in hand, and ends with status 4; a server that is away\n"
        "is waited for. With --until-empty, a paused queue with pending jobs is status 1.\n",
    .example = "emq work orders -j 4 --timeout 5m -- ./handle-order --fast\n",
    .options = options,
    .run = run_work,
};
