/* SPDX-License-Identifier: Apache-2.0 */
/* The pool. One mutex guards it, and is never held while something waits: connecting and closing
 * happen outside. A place that becomes free is handed to the thread that waits longest, by name, so
 * that nobody who comes later can take it. */
#include <emq/pool.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"

#include "client.h"
#include "condition.h"

#define DEFAULT_CLIENTS 8
#define DEFAULT_CHECKOUT_MS 5000
#define DEFAULT_IDLE_CHECK_MS 1000
#define STATS_SIZE_MAX 4096 /* no version's struct is that large: such a size was never set */

typedef enum slot_state {
    SLOT_EMPTY, /* no client */
    SLOT_IDLE,
    SLOT_TAKEN, /* by a thread that is still inside of emq_pool_acquire */
    SLOT_OUT
} slot_state;

/* A place for a client. In states TAKEN and OUT the client belongs to one thread. */
typedef struct slot {
    emq_client *client;
    slot_state state;
    int is_open;
    emq_deadline look; /* idle: from then on the connection is looked at */
} slot;

/* A thread that waits; lies on its stack. */
typedef struct waiter {
    struct waiter *next;
    pthread_cond_t changed;
    slot *given;
    int is_sent_away;
} waiter;

struct emq_pool {
    emq_owner owner; /* in a child the mutex may be locked for ever: nothing is touched there */
    pthread_mutex_t mutex;
    emq_settings settings; /* of the clients */
    emq_pool_options options;
    int is_closed;
    uint32_t references; /* the program's own, calls that go on, clients that are out */
    waiter *first;       /* who waits longest */
    waiter **end;
    emq_pool_stats stats;
    emq_text error;
    slot slots[];
};

void emq_pool_options_init(emq_pool_options *options) {
    if (options != NULL) {
        *options = (emq_pool_options)EMQ_POOL_OPTIONS_INIT;
    }
}

static int read_options(emq_pool_options *out, const emq_pool_options *options) {
    emq_pool_options_init(out);
    if (options != NULL && emq_options_read(out, sizeof(*out), options, options->size) != EMQ_OK) {
        return EMQ_EINVAL;
    }
    out->size = sizeof(*out);
    if (out->reserved != 0 || out->max_clients > EMQ_POOL_CLIENTS_MAX) {
        return EMQ_EINVAL;
    }
    if (out->max_clients == 0) {
        out->max_clients = DEFAULT_CLIENTS;
    }
    if (out->checkout_timeout_ms == 0) {
        out->checkout_timeout_ms = DEFAULT_CHECKOUT_MS;
    }
    if (out->idle_check_ms == 0) {
        out->idle_check_ms = DEFAULT_IDLE_CHECK_MS;
    }
    return EMQ_OK;
}

int emq_pool_open(emq_pool **out, const emq_client_options *client,
                  const emq_pool_options *options) {
    emq_pool_options own;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    int result = read_options(&own, options);
    if (result != EMQ_OK) {
        return result;
    }
    emq_pool *pool = emq_calloc(1, sizeof(*pool) + own.max_clients * sizeof(pool->slots[0]));
    if (pool == NULL) {
        return EMQ_ENOMEM;
    }
    result = emq_settings_init(&pool->settings, client);
    if (result != EMQ_OK) {
        emq_free(pool);
        return result;
    }
    if (pthread_mutex_init(&pool->mutex, NULL) != 0) {
        emq_settings_clear(&pool->settings);
        emq_free(pool);
        return EMQ_ENOMEM;
    }
    emq_owner_set(&pool->owner);
    pool->options = own;
    pool->references = 1;
    pool->end = &pool->first;
    pool->stats.size = sizeof(pool->stats);
    *out = pool;
    return EMQ_OK;
}

static int is_forked(const emq_pool *pool) {
    return emq_owner_is_other(&pool->owner);
}

static void lock(emq_pool *pool) {
    (void)pthread_mutex_lock(&pool->mutex);
}

static void unlock(emq_pool *pool) {
    (void)pthread_mutex_unlock(&pool->mutex);
}

/* Unlocks and gives up references; the last one takes the pool with it. */
static void unlock_and_drop(emq_pool *pool, uint32_t references) {
    pool->references -= references;
    int is_last = pool->references == 0;
    unlock(pool);
    if (is_last) {
        (void)pthread_mutex_destroy(&pool->mutex);
        emq_settings_clear(&pool->settings);
        emq_owner_clear(&pool->owner);
        emq_free(pool);
    }
}

/* Open connections come first, the one used last before the others, so that those which are not
 * needed stay idle; then what has a client already. NULL when all are in use. */
static slot *find_free(emq_pool *pool) {
    slot *best = NULL;
    for (uint32_t i = 0; i < pool->options.max_clients; i++) {
        slot *s = &pool->slots[i];
        if (s->state != SLOT_IDLE && s->state != SLOT_EMPTY) {
            continue;
        }
        if (best == NULL || s->is_open > best->is_open ||
            (s->is_open == best->is_open &&
             (s->state > best->state ||
              (s->state == best->state && s->look.at_ns > best->look.at_ns)))) {
            best = s;
        }
    }
    return best;
}

/* Gives a place to the thread that waits longest, or leaves it as it is. */
static void pass_on(emq_pool *pool, slot *s, slot_state state) {
    waiter *w = pool->first;
    s->state = state;
    if (w == NULL) {
        pool->stats.in_use--;
        return;
    }
    pool->first = w->next;
    if (pool->first == NULL) {
        pool->end = &pool->first;
    }
    pool->stats.waiting--;
    s->state = SLOT_TAKEN;
    w->given = s;
    (void)pthread_cond_signal(&w->changed);
}

static void leave_queue(emq_pool *pool, const waiter *w) {
    waiter **link = &pool->first;
    while (*link != w) {
        link = &(*link)->next;
    }
    *link = w->next;
    if (w->next == NULL) {
        pool->end = link;
    }
    pool->stats.waiting--;
}

/* Waits in line for a place. */
static int await_slot(slot **out, emq_pool *pool, emq_deadline deadline) {
    const struct timespec until = emq_deadline_timespec(deadline);
    waiter w = {.next = NULL};
    if (!emq_condition_init(&w.changed)) {
        return emq_text_fail_plain(&pool->error, EMQ_ESYSTEM);
    }
    *pool->end = &w;
    pool->end = &w.next;
    pool->stats.waiting++;
    int waited = 0;
    while (w.given == NULL && !w.is_sent_away && waited == 0) {
        waited = pthread_cond_timedwait(&w.changed, &pool->mutex, &until);
    }
    (void)pthread_cond_destroy(&w.changed);
    *out = w.given;
    if (w.given != NULL) {
        return EMQ_OK;
    }
    if (w.is_sent_away) {
        return EMQ_ECLOSED;
    }
    leave_queue(pool, &w);
    pool->stats.timeouts++;
    return emq_text_fail(&pool->error, EMQ_EPOOLTIMEOUT, "all %u clients stayed in use",
                         (unsigned)pool->options.max_clients);
}

static int take_slot(slot **out, emq_pool *pool, emq_deadline deadline) {
    if (pool->is_closed) {
        return EMQ_ECLOSED;
    }
    *out = find_free(pool);
    if (*out == NULL) {
        return await_slot(out, pool, deadline);
    }
    (*out)->state = SLOT_TAKEN;
    pool->stats.in_use++;
    return EMQ_OK;
}

/* Between calls there is nothing to read: what is there is an end, or belongs to nobody. */
static int is_usable(const emq_pool *pool, const slot *s) {
    if (!emq_client_is_open(s->client)) {
        return 0;
    }
    if (pool->options.idle_check_ms == EMQ_POOL_NO_IDLE_CHECK ||
        emq_deadline_left_ms(s->look) > 0) {
        return 1;
    }
    struct pollfd looked_at = {s->client->connection.context->fd, POLLIN, 0};
    return poll(&looked_at, 1, 0) == 0;
}

/* Outside of the lock: makes the client of a place that this thread has taken an open one. */
static int prepare(const emq_pool *pool, slot *s, emq_deadline deadline, int *is_replaced,
                   emq_text *error) {
    emq_client *client = s->client;
    int result = EMQ_OK;
    if (client == NULL) {
        result = emq_client_new(&client, &pool->settings.options);
        s->client = client;
    } else if (is_usable(pool, s)) {
        emq_text_clear(&client->error);
        return EMQ_OK;
    } else {
        *is_replaced = 1;
    }
    if (client == NULL) {
        return emq_text_fail_plain(error, result);
    }
    emq_deadline own = emq_deadline_in(pool->settings.options.connect_timeout_ms);
    result = emq_client_connect(client, own.at_ns < deadline.at_ns ? own : deadline);
    if (result != EMQ_OK) {
        *error = client->error;
    }
    return result;
}

/* Empties a place that this thread has taken, and returns the client that was in it. */
static emq_client *vacate(emq_pool *pool, slot *s) {
    emq_client *client = s->client;
    s->client = NULL;
    s->is_open = 0;
    pass_on(pool, s, SLOT_EMPTY);
    return client;
}

static void hand_out(emq_client **out, slot *s) {
    s->state = SLOT_OUT;
    s->is_open = 1;
    *out = s->client;
}

/* With a place taken: ends with a client in *out, whose reference is the call's own, or without
 * either. */
static int finish_acquire(emq_client **out, emq_pool *pool, slot *s, emq_deadline deadline) {
    emq_text error;
    int is_replaced = 0;
    unlock(pool);
    emq_text_clear(&error);
    int result = prepare(pool, s, deadline, &is_replaced, &error);
    lock(pool);
    if (pool->is_closed) {
        result = emq_text_fail(&error, EMQ_ECLOSED, "the pool is closed");
    }
    if (result == EMQ_OK) {
        pool->stats.replaced += (uint64_t)is_replaced;
        hand_out(out, s);
        unlock(pool);
        return EMQ_OK;
    }
    pool->error = error;
    emq_client *broken = vacate(pool, s);
    unlock_and_drop(pool, 1);
    emq_client_close(broken);
    return result;
}

int emq_pool_acquire(emq_client **out, emq_pool *pool, uint32_t timeout_ms) {
    slot *s = NULL;
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (pool == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(pool)) {
        return EMQ_EFORKED;
    }
    emq_deadline deadline =
        emq_deadline_in(timeout_ms != 0 ? timeout_ms : pool->options.checkout_timeout_ms);
    lock(pool);
    pool->references++;
    int result = take_slot(&s, pool, deadline);
    if (result == EMQ_OK) {
        return finish_acquire(out, pool, s, deadline);
    }
    if (result == EMQ_ECLOSED) {
        emq_text_fail(&pool->error, result, "the pool is closed");
    }
    unlock_and_drop(pool, 1);
    return result;
}

/* By address alone: a client that is not out may be gone. While a thread connects, the place's
 * client is its own, so that the state must be asked first. */
static slot *find_out(emq_pool *pool, const emq_client *client) {
    for (uint32_t i = 0; i < pool->options.max_clients; i++) {
        if (pool->slots[i].state == SLOT_OUT && pool->slots[i].client == client) {
            return &pool->slots[i];
        }
    }
    return NULL;
}

int emq_pool_release(emq_pool *pool, emq_client *client) {
    emq_client *closed = NULL;
    if (pool == NULL || client == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(pool)) {
        return EMQ_EFORKED;
    }
    lock(pool);
    slot *s = find_out(pool, client);
    if (s == NULL) {
        unlock(pool);
        return EMQ_EINVAL;
    }
    if (pool->is_closed) {
        closed = vacate(pool, s);
    } else {
        s->is_open = emq_client_is_open(client);
        s->look = emq_deadline_in(pool->options.idle_check_ms);
        pass_on(pool, s, SLOT_IDLE);
    }
    unlock_and_drop(pool, 1);
    emq_client_close(closed);
    return EMQ_OK;
}

static void send_waiters_away(emq_pool *pool) {
    for (waiter *w = pool->first; w != NULL; w = w->next) {
        w->is_sent_away = 1;
        (void)pthread_cond_signal(&w->changed);
    }
    pool->first = NULL;
    pool->end = &pool->first;
    pool->stats.waiting = 0;
}

/* Takes an idle client out of its place; NULL when there is none. */
static emq_client *take_idle(emq_pool *pool) {
    for (uint32_t i = 0; i < pool->options.max_clients; i++) {
        slot *s = &pool->slots[i];
        if (s->state == SLOT_IDLE) {
            emq_client *client = s->client;
            *s = (slot){.state = SLOT_EMPTY};
            return client;
        }
    }
    return NULL;
}

/* Closes the pool and gives up references. The call has one of its own, since the lock is given up
 * in between: who is told that the pool is closed may free it then. */
static void close_and_drop(emq_pool *pool, uint32_t references) {
    lock(pool);
    pool->references++;
    pool->is_closed = 1;
    send_waiters_away(pool);
    for (emq_client *idle = take_idle(pool); idle != NULL; idle = take_idle(pool)) {
        unlock(pool);
        emq_client_close(idle);
        lock(pool);
    }
    unlock_and_drop(pool, references + 1);
}

/* In a child the threads are gone that used the rest: what they were doing can't be known. */
static void free_copy(emq_pool *pool) {
    for (emq_client *idle = take_idle(pool); idle != NULL; idle = take_idle(pool)) {
        emq_client_close(idle);
    }
    emq_settings_clear(&pool->settings);
    emq_owner_clear(&pool->owner);
    emq_free(pool);
}

void emq_pool_close(emq_pool *pool) {
    if (pool != NULL && !is_forked(pool)) {
        close_and_drop(pool, 0);
    }
}

void emq_pool_free(emq_pool *pool) {
    if (pool == NULL) {
        return;
    }
    if (is_forked(pool)) {
        free_copy(pool);
    } else {
        close_and_drop(pool, 1);
    }
}

static uint32_t count_open(const emq_pool *pool) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->options.max_clients; i++) {
        count += (uint32_t)pool->slots[i].is_open;
    }
    return count;
}

int emq_pool_get_stats(emq_pool_stats *out, emq_pool *pool) {
    if (out == NULL || pool == NULL || out->size < sizeof(out->size) ||
        out->size > STATS_SIZE_MAX) {
        return EMQ_EINVAL;
    }
    if (is_forked(pool)) {
        return EMQ_EFORKED;
    }
    size_t size = out->size;
    lock(pool);
    emq_pool_stats stats = pool->stats;
    stats.open = count_open(pool);
    unlock(pool);
    stats.size = size;
    memset(out, 0, size);
    memcpy(out, &stats, size < sizeof(stats) ? size : sizeof(stats));
    return EMQ_OK;
}

int emq_pool_copy_error(char *error, size_t cap, emq_pool *pool) {
    if (error == NULL || cap == 0 || pool == NULL) {
        return EMQ_EINVAL;
    }
    if (is_forked(pool)) {
        return EMQ_EFORKED;
    }
    lock(pool);
    (void)snprintf(error, cap, "%s", pool->error.bytes);
    unlock(pool);
    return EMQ_OK;
}
