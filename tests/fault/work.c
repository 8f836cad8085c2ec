/* SPDX-License-Identifier: Apache-2.0 */
/* The worker process that the tests kill and stop: a payload is how many milliseconds its handler
 * blocks. Every fact goes to the log (record.h) at once.
 *
 *     fault_work SOCKET QUEUE LOG LEASE-MS CONCURRENCY STOP-MS
 *
 * Works until SIGTERM; what is in hand then has STOP-MS. Exit status 0; 1 when it can't work, or
 * can't write its log. */
#include "record.h"

#include <emq/emq.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define TELL_MS 60000 /* to be told that a lease is lost, on a slow machine */

static int log_fd;

static void note(const emq_task *task, record_kind kind, int value) {
    if (record_write(log_fd, kind, emq_task_get_id(task)->text, emq_task_get_attempts(task),
                     value) != 0) {
        perror("fault_work: the log");
        _exit(1); /* a log with a gap would prove anything */
    }
}

static void sleep_ms(unsigned long ms) {
    struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* Blocks for the whole time, whatever happens meanwhile. One of an even time that finds its lease
 * over, since its process was stopped, goes on until it is told that the lease is lost, or has it
 * again; one of an odd time returns at once, so that late settles are sent. */
static int handle(emq_task *task, void *user) {
    (void)user;
    const char *payload = emq_task_get_payload(task, NULL);
    unsigned long ms = strtoul(payload == NULL ? "0" : payload, NULL, 10);
    note(task, RECORD_RUN, 0);
    sleep_ms(ms);
    int64_t end = record_now_ms() + TELL_MS;
    while (ms % 2 == 0 && emq_task_get_lease_left_ms(task) == 0 && !emq_task_is_lost(task) &&
           record_now_ms() < end) {
        sleep_ms(10);
    }
    note(task, RECORD_END, (int)emq_task_get_notice(task));
    return EMQ_TASK_COMPLETE;
}

static void on_event(const emq_worker_event *event, void *user) {
    (void)user;
    switch (event->kind) {
    case EMQ_WORKER_SUCCESS:
        note(event->task, RECORD_COMPLETED, event->result);
        break;
    case EMQ_WORKER_RETURN:
        note(event->task, RECORD_RETURNED, event->result);
        break;
    case EMQ_WORKER_FAILURE:
        note(event->task, RECORD_REFUSED, event->result);
        break;
    case EMQ_WORKER_LOST: /* by the renewer, or by the settle's answer */
        note(event->task, event->result < 0 ? RECORD_REFUSED : RECORD_TOLD,
             event->result < 0 ? event->result : event->notice);
        break;
    default:
        break;
    }
}

static uint32_t number(const char *text) {
    return (uint32_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv) {
    emq_worker *worker = NULL;
    size_t left = 0;
    if (argc != 7) {
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* no test leaves it behind */
    log_fd = record_open(argv[3]);
    emq_client_options client = EMQ_CLIENT_OPTIONS_INIT;
    client.unix_path = argv[1];
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    options.concurrency = number(argv[5]);
    options.sweep_interval_ms = 500;
    options.backoff_max_ms = 200; /* the server comes back soon */
    options.hook = on_event;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    queue.lease_ms = number(argv[4]);
    int result = log_fd < 0 ? EMQ_ESYSTEM : emq_worker_block_signals();
    result = result ? result : emq_worker_open(&worker, &client, &options);
    result = result ? result : emq_worker_add(worker, argv[2], handle, NULL, &queue);
    result = result ? result : emq_worker_start(worker);
    result = result ? result : emq_worker_run(&left, worker, number(argv[6]));
    if (result != EMQ_OK) {
        (void)fprintf(stderr, "fault_work: %s\n", emq_strerror(result));
    }
    if (left > 0) { /* handlers that go on blocking */
        _exit(result == EMQ_OK ? 0 : 1);
    }
    emq_worker_free(worker);
    return result == EMQ_OK ? 0 : 1;
}
