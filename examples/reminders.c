/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduled reminders: a job that becomes ready at a time, can be moved while it waits, and is
 * printed when it is due.
 *
 *     reminders in SECONDS TEXT     prints the reminder's id
 *     reminders at UNIX-TIME TEXT   likewise; both by the server's clock
 *     reminders move ID SECONDS     to a time from now
 *     reminders cancel ID
 *     reminders watch               prints what is due, until SIGTERM
 */
#include <emq/emq.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE "reminders"
#define NEVER_MS INT64_C(315360000000) /* ten years */

/* -1: it is no time. */
static int64_t to_ms(const char *seconds) {
    char *end = NULL;
    double value = strtod(seconds, &end);
    int is_time = end != seconds && *end == '\0' && value >= 0 && value < 1e12;
    return is_time ? (int64_t)(value * 1000) : -1;
}

/* Minted and shown before it is sent: should the answer be lost, the caller repeats under this id,
 * and is told of a duplicate if the first call did arrive. */
static int add(emq_client *client, emq_when when, const char *text) {
    emq_id id = {{0}};
    int result = emq_id_mint(&id, "JOB");
    if (result == EMQ_OK) {
        printf("%s\n", id.text);
        result = emq_schedule(&id, client, QUEUE, text, strlen(text), when);
    }
    return result == EMQ_DUPLICATE ? EMQ_ESTATE : result; /* a fresh id that is taken: try again */
}

/* There is no verb that removes a job which waits: moved out of reach it is as good as cancelled.
 */
static int move(emq_client *client, const char *text, int64_t in_ms) {
    emq_id id;
    int result = emq_id_parse(&id, text, strlen(text));
    if (result == EMQ_OK) {
        result = emq_reschedule(client, QUEUE, &id, (emq_when){EMQ_IN, in_ms});
    }
    if (result == EMQ_GONE || result == EMQ_ESTATE) {
        fprintf(stderr, "reminders: %s is not waiting any more\n", text);
        return EMQ_ESTATE;
    }
    return result;
}

static int print(emq_task *task, void *user) {
    (void)user;
    size_t n = 0;
    const char *text = emq_task_get_payload(task, &n);
    printf("%s: %.*s\n", emq_task_get_id(task)->text, (int)n, text == NULL ? "" : text);
    return fflush(stdout) == 0 ? EMQ_TASK_COMPLETE : EMQ_TASK_FAIL;
}

/* The server runs no timer: a worker that sleeps until the earliest time makes jobs ready. */
static int watch(const emq_client_options *server) {
    char error[256] = "";
    emq_worker *worker = NULL;
    int result = emq_worker_block_signals();
    result = result ? result : emq_worker_open(&worker, server, NULL);
    result = result ? result : emq_worker_add(worker, QUEUE, print, NULL, NULL);
    result = result ? result : emq_worker_start(worker);
    if (result == EMQ_OK) {
        result = emq_worker_run(NULL, worker, 5000);
    } else if (worker != NULL) {
        (void)emq_worker_copy_error(error, sizeof(error), worker);
        fprintf(stderr, "reminders: %s\n", error);
    }
    emq_worker_free(worker);
    return result;
}

static int change(const emq_client_options *server, char **argv) {
    emq_client *client = NULL;
    int result = emq_client_open(&client, server);
    if (result != EMQ_OK) {
        fprintf(stderr, "reminders: %s\n", emq_client_get_error(client));
    } else if (strcmp(argv[1], "in") == 0) {
        result = add(client, (emq_when){EMQ_IN, to_ms(argv[2])}, argv[3]);
    } else if (strcmp(argv[1], "at") == 0) {
        result = add(client, (emq_when){EMQ_AT, to_ms(argv[2])}, argv[3]);
    } else if (strcmp(argv[1], "move") == 0) {
        result = move(client, argv[2], to_ms(argv[3]));
    } else {
        result = move(client, argv[2], NEVER_MS);
    }
    emq_client_close(client);
    return result;
}

/* Which argument of a verb is its time; 0 for none. */
static const struct {
    const char *verb;
    int argc, time;
} uses[] = {{"in", 4, 2}, {"at", 4, 2}, {"move", 4, 3}, {"cancel", 3, 0}, {"watch", 2, 0}};

static int is_right_use(int argc, char **argv) {
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (argc == uses[i].argc && strcmp(argv[1], uses[i].verb) == 0) {
            return uses[i].time == 0 || to_ms(argv[uses[i].time]) >= 0;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *setting = getenv("EMQ_URL");
    char error[256] = "";
    emq_url *url = NULL;
    if (!is_right_use(argc, argv)) {
        fprintf(stderr, "Usage: reminders in SECONDS TEXT | at UNIX-TIME TEXT | move ID SECONDS |"
                        " cancel ID | watch\nEMQ_URL tells where the server is.\n");
        return 2;
    }
    int result =
        emq_url_parse(&url, setting == NULL ? "redis://127.0.0.1" : setting, error, sizeof(error));
    if (result != EMQ_OK) {
        fprintf(stderr, "reminders: EMQ_URL: %s\n", error);
        return 1;
    }
    int watches = strcmp(argv[1], "watch") == 0;
    result = watches ? watch(emq_url_get_options(url)) : change(emq_url_get_options(url), argv);
    if (result != EMQ_OK) {
        fprintf(stderr, "reminders: %s\n", emq_strerror(result));
    }
    emq_url_free(url);
    return result == EMQ_OK ? 0 : 1;
}
