/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with a pool of threads: prints each job's payload, `sleep MS` after a pause, and fails
 * those that start with `fail`. Claiming, renewing leases, settling, trying again, sweeping and
 * stopping are emq_worker's; what is left is the work, which has to be safe to repeat. */
#include <emq/emq.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STOP_MS 10000 /* what a handler may take after SIGTERM */

/* Work that takes its time looks now and then whether it is still wanted. */
static int pause_ms(const emq_task *task, unsigned long ms) {
    while (ms > 0 && !emq_task_is_lost(task)) {
        unsigned long step = ms < 100 ? ms : 100;
        struct timespec pause = {0, (long)step * 1000000};
        (void)nanosleep(&pause, NULL);
        ms -= step;
    }
    return emq_task_is_lost(task) ? -1 : 0;
}

/* Runs on several threads at once: what it shares with itself needs a lock, as stdio has one. */
static int handle(emq_task *task, void *user) {
    (void)user;
    size_t n = 0;
    const char *payload = emq_task_get_payload(task, &n); /* a NUL is behind it */
    if (payload == NULL || strncmp(payload, "fail", 4) == 0) {
        static const char why[] = "it asked for it";
        (void)emq_task_set_error(task, why, sizeof(why) - 1);
        return EMQ_TASK_FAIL; /* again behind the backoff; dead at max_failures */
    }
    if (strncmp(payload, "sleep ", 6) == 0 && pause_ms(task, strtoul(payload + 6, NULL, 10)) != 0) {
        return EMQ_TASK_COMPLETE; /* the lease is lost: nothing is sent, whatever is returned */
    }
    printf("%s attempt %" PRId64 ": %.*s\n", emq_task_get_id(task)->text,
           emq_task_get_attempts(task), (int)n, payload);
    return fflush(stdout) == 0 ? EMQ_TASK_COMPLETE : EMQ_TASK_REQUEUE;
}

/* What an operator wants to read; a program of yours counts and logs in its own way. */
static void note(const emq_worker_event *event, void *user) {
    (void)user;
    const char *id = event->task == NULL ? "" : emq_task_get_id(event->task)->text;
    switch (event->kind) {
    case EMQ_WORKER_FAILURE:
        fprintf(stderr, "worker: %s %s\n", id, event->result == 0 ? "failed" : "is dead");
        break;
    case EMQ_WORKER_LOST:
        fprintf(stderr, "worker: %s: the lease is lost\n", id);
        break;
    case EMQ_WORKER_TROUBLE:
        fprintf(stderr, "worker: %s: %s\n", emq_strerror(event->result), event->text);
        break;
    case EMQ_WORKER_RECONNECT:
        fprintf(stderr, "worker: connected again\n");
        break;
    default:
        break;
    }
}

static int report(emq_worker *worker) {
    emq_worker_stats stats = EMQ_WORKER_STATS_INIT;
    int result = emq_worker_get_stats(&stats, worker);
    fprintf(stderr,
            "worker: %" PRIu64 " completed, %" PRIu64 " failed, %" PRIu64 " dead, %" PRIu64
            " given back\n",
            stats.completed, stats.failed, stats.dead, stats.requeued);
    return result;
}

int main(int argc, char **argv) {
    const char *url = getenv("EMQ_URL");
    char error[256] = "";
    emq_url *address = NULL;
    emq_worker *worker = NULL;
    if (argc < 2 || argc > 3 || argv[1][0] == '-' || !emq_queue_valid(argv[1])) {
        fprintf(stderr, "Usage: worker QUEUE [THREADS]\nEMQ_URL tells where the server is.\n");
        return 2;
    }
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    options.concurrency = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 4;
    options.hook = note;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    queue.max_failures = 3;
    queue.backoff_base_ms = 100; /* impatient, to be looked at */
    /* first of all, so that no thread takes the signals that emq_worker_run waits for */
    int result = emq_worker_block_signals();
    result = result ? result
                    : emq_url_parse(&address, url == NULL ? "redis://127.0.0.1" : url, error,
                                    sizeof(error));
    result = result ? result : emq_worker_open(&worker, emq_url_get_options(address), &options);
    result = result ? result : emq_worker_add(worker, argv[1], handle, NULL, &queue);
    result = result ? result : emq_worker_start(worker);
    if (result != EMQ_OK && worker != NULL) {
        (void)emq_worker_copy_error(error, sizeof(error), worker);
    }
    size_t left = 0;
    result = result ? result : emq_worker_run(&left, worker, STOP_MS); /* until SIGTERM or SIGINT */
    if (result != EMQ_OK) {
        fprintf(stderr, "worker: %s %s\n", emq_strerror(result), error);
    } else {
        result = report(worker);
    }
    if (left > 0) { /* handlers that don't come back; their jobs were given back */
        _Exit(1);
    }
    emq_worker_free(worker);
    emq_url_free(address);
    return result == EMQ_OK ? 0 : 1;
}
