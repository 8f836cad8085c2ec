/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of a worker: opened again and again, with a pause that grows, and ended from another
 * thread when the worker can't wait. */
#include "worker.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chance.h"

#define FAILURES_MAX 20 /* more of them change no pause */

int emq_worker_link_init(emq_worker_link *link, emq_worker *worker, const char *name) {
    link->worker = worker;
    link->name = name;
    link->cut = -1;
    link->backoff_max_ms = worker->options.backoff_max_ms;
    return emq_client_new(&link->client, &worker->settings.options);
}

/* With the mutex held. */
static void close_cut(emq_worker_link *link) {
    if (link->cut >= 0) {
        (void)close(link->cut);
        link->cut = -1;
    }
}

void emq_worker_link_clear(emq_worker_link *link) {
    emq_client_close(link->client);
    link->client = NULL;
    if (link->worker != NULL) {
        close_cut(link);
    }
}

void emq_worker_link_cut(emq_worker_link *link, int half) {
    if (link->cut >= 0) {
        (void)shutdown(link->cut, half ? SHUT_WR : SHUT_RDWR);
    }
}

static void wake_watch(emq_worker *worker) {
    worker->watch_at = 0;
    (void)pthread_cond_signal(&worker->watching);
}

/* Whether the hook is to be told: of the first failure, and of a refusal that comes behind others,
 * such as a server that is there again without the fence. */
static int is_news(const emq_worker_link *link, int result) {
    return !link->is_failing ||
           (emq_err_class(result) == EMQ_CLASS_SERVER && result != link->result);
}

/* With the mutex held. */
static void note_failure(emq_worker_link *link, int result) {
    emq_worker *worker = link->worker;
    worker->error = link->client->error;
    if (is_news(link, result)) {
        link->trouble = result;
        link->words = link->client->error;
        wake_watch(worker);
    }
    link->result = result;
    link->is_failing = 1;
}

/* Waits out the pause; whether there is still something to do behind it. */
static int pause_first(emq_worker_link *link, pthread_cond_t *wake, emq_worker_phase last) {
    emq_worker *worker = link->worker;
    int64_t until = 0;
    if (link->failures > 0) {
        uint32_t most =
            emq_doubled(worker->options.backoff_min_ms, link->backoff_max_ms, link->failures - 1);
        until = emq_deadline_in(emq_draw(most)).at_ns;
    }
    emq_worker_lock(worker);
    while (worker->phase < last && emq_now_ns() < until) {
        emq_worker_await(worker, wake, until);
    }
    int goes_on = worker->phase < last;
    emq_worker_unlock(worker);
    return goes_on;
}

/* The address that was reached, whatever name or sentinel has led there. */
static void note_peer(emq_worker_link *link) {
    socklen_t length = sizeof(link->peer);
    memset(&link->peer, 0, sizeof(link->peer));
    (void)getpeername(link->client->connection.context->fd, (struct sockaddr *)&link->peer,
                      &length);
}

/* With the mutex held, behind a connect that went well. */
static void note_open(emq_worker_link *link) {
    emq_worker *worker = link->worker;
    link->cut = fcntl(link->client->connection.context->fd, F_DUPFD_CLOEXEC, 0);
    if (link->was_open) {
        worker->stats.reconnects++;
        link->is_regained = 1;
        wake_watch(worker);
    }
    link->was_open = 1;
    link->opened_at = ++worker->logical_clock;
    link->client_id = 0;
    note_peer(link);
    if (worker->phase == EMQ_PHASE_ENDED) {
        emq_worker_link_cut(link, 0);
    }
}

int emq_worker_link_open(emq_worker_link *link, pthread_cond_t *wake, emq_worker_phase last) {
    emq_worker *worker = link->worker;
    if (!pause_first(link, wake, last)) {
        return EMQ_ECLOSED;
    }
    if (emq_client_is_open(link->client)) {
        return EMQ_OK;
    }
    emq_worker_lock(worker);
    close_cut(link);
    emq_worker_unlock(worker);
    emq_deadline deadline = emq_deadline_in(worker->settings.options.connect_timeout_ms);
    deadline.end = &worker->is_over;
    int result = emq_client_connect(link->client, deadline);
    emq_worker_lock(worker);
    if (result == EMQ_OK) {
        note_open(link);
    } else {
        link->failures += link->failures < FAILURES_MAX;
        note_failure(link, result);
    }
    emq_worker_unlock(worker);
    return result;
}

/* The server that answered so is not the one that takes writes now: who does, a new look tells. */
static int is_elsewhere(int result) {
    return result == EMQ_EREADONLY || result == EMQ_EMASTERDOWN;
}

int emq_worker_link_note(emq_worker_link *link, int result) {
    emq_worker *worker = link->worker;
    emq_class class = emq_err_class(result);
    if (is_elsewhere(result)) {
        emq_connection_close(&link->client->connection);
    }
    emq_worker_lock(worker);
    if (!emq_client_is_open(link->client)) {
        link->client_id = 0;
    }
    if (class == EMQ_CLASS_OK || class == EMQ_CLASS_STALE || result == EMQ_EUNBLOCKED) {
        link->failures = 0;
        link->is_failing = 0;
        link->result = EMQ_OK;
    } else {
        link->failures += link->failures < FAILURES_MAX;
        note_failure(link, result);
    }
    emq_worker_unlock(worker);
    return class == EMQ_CLASS_RETRYABLE || class == EMQ_CLASS_UNKNOWN || result == EMQ_ECLOSED;
}

static int is_id_wanted(emq_worker_link *link, const emq_worker_link *other) {
    emq_worker_lock(link->worker);
    int is_wanted = link->asked_at < link->opened_at || link->asked_at < other->opened_at;
    if (is_wanted) {
        link->asked_at = ++link->worker->logical_clock;
        link->client_id = 0;
    }
    emq_worker_unlock(link->worker);
    return is_wanted;
}

void emq_worker_link_learn_id(emq_worker_link *link, const emq_worker_link *other) {
    static const char *const words[] = {"CLIENT", "ID"};
    emq_reply *reply = NULL;
    int64_t id = 0;
    if (!is_id_wanted(link, other)) {
        return;
    }
    if (emq_client_command(&reply, link->client, 2, words, NULL) == EMQ_OK) {
        id = emq_reply_get_integer(reply);
    }
    emq_reply_free(reply);
    emq_worker_lock(link->worker);
    link->client_id = id;
    emq_worker_unlock(link->worker);
}

int emq_worker_link_knows_id(const emq_worker_link *link, const emq_worker_link *other) {
    return link->client_id != 0 && other->opened_at < link->asked_at &&
           memcmp(&link->peer, &other->peer, sizeof(link->peer)) == 0;
}
