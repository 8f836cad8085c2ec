/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: takes back lapsed leases and promotes scheduled jobs, together with all the other
 * workers of a queue and without a word among them.
 *
 * It looks at what is due earliest, which costs the server next to nothing, and calls a sweep only
 * when something is due, a little later by chance, and only when a second look still finds it
 * there: most often somebody else was first. Who finds that spreads its chance wider, so that a
 * hundred workers call hardly more often than one; who was first narrows it. Only the server's
 * clock counts. */
#include <emq/verbs.h>

#include "chance.h"
#include "peek.h"
#include "worker.h"

/* The spread of promotions: of a worker that has just started, and the least of one that was not
 * first. One that is first again and again narrows it to nothing. No second one does at the same
 * time: whoever finds that another was first is back at this much. */
#define PROMOTE_SPREAD_MS 10
#define PROMOTE_SPREAD_MAX_MS 400

/* Between two promotions: jobs that are due shortly after each other go together. */
#define PROMOTE_GAP_MS 10

#define REST_MAX_BEATS 16
#define LIMIT 1000

static int64_t in_ms(int64_t now, int64_t ms) {
    return now + ms * EMQ_NS_PER_MS;
}

static uint32_t beat_ms(const emq_work_queue *q) {
    return q->worker->options.sweep_interval_ms;
}

/* When something that is due then is to be seen to. */
static void plan(emq_due *due, int64_t seen_at, int64_t now_ms, int64_t due_ms) {
    due->at = TIME_NEVER;
    if (due_ms != EMQ_PEEK_NONE) {
        /* one more for the milliseconds that both clocks cut off */
        int64_t left_ms = due_ms > now_ms ? due_ms - now_ms + 1 : 0;
        due->at = in_ms(seen_at, left_ms + emq_draw(due->spread_ms));
    }
    if (due->at < due->not_before) {
        due->at = due->not_before;
    }
}

/* A look; 0 when it failed. */
static int look(emq_peek *peek, emq_work_queue *q) {
    emq_worker *worker = q->worker;
    int result = emq_peek_read(peek, worker->keep_link.client, q->name);
    int64_t now = emq_now_ns();
    (void)emq_worker_link_note(&worker->keep_link, result);
    if (result != EMQ_OK) {
        return 0;
    }
    emq_worker_lock(worker);
    worker->server_offset_ms = peek->now_ms - now / EMQ_NS_PER_MS;
    worker->has_offset = 1;
    q->looked_at = now;
    emq_worker_unlock(worker);
    plan(&q->promote, now, peek->now_ms, peek->schedule_ms);
    plan(&q->sweep, now, peek->now_ms, peek->active_ms);
    q->look_at = in_ms(now, beat_ms(q) - emq_draw(beat_ms(q) / 4));
    return 1;
}

/* It was this worker that moved them. */
static void narrow(emq_due *due, uint32_t least) {
    due->spread_ms = due->spread_ms / 2 > least ? due->spread_ms / 2 : least;
    due->rest_ms = 0;
}

/* Somebody else was first. */
static void widen(emq_due *due, uint32_t least, uint32_t most) {
    due->spread_ms = emq_doubled(due->spread_ms, most, 1);
    due->spread_ms = due->spread_ms > least ? due->spread_ms : least;
}

/* What is due is not for this sweep: it must not be swept at again and again. */
static void rest(emq_due *due, uint32_t beat) {
    uint32_t least = beat / 4 + 1;
    due->rest_ms = due->rest_ms == 0 ? least : emq_doubled(due->rest_ms, beat * REST_MAX_BEATS, 1);
    due->not_before = in_ms(emq_now_ns(), due->rest_ms + emq_draw(due->rest_ms));
}

/* One call; how many jobs it moved, or -1. */
static int64_t promote(emq_work_queue *q) {
    emq_worker *worker = q->worker;
    int64_t moved = 0;
    int result = emq_promote(&moved, worker->keep_link.client, q->name, LIMIT);
    (void)emq_worker_link_note(&worker->keep_link, result);
    if (result != EMQ_OK) {
        return -1;
    }
    emq_worker_lock(worker);
    worker->stats.promotions++;
    worker->stats.promoted += (uint64_t)moved;
    emq_worker_unlock(worker);
    return moved;
}

static int64_t sweep(emq_work_queue *q) {
    emq_worker *worker = q->worker;
    emq_ids *recovered = NULL;
    emq_ids *dead = NULL;
    int result = emq_stalled_check(&recovered, &dead, worker->keep_link.client, q->name,
                                   q->options.max_stalled, LIMIT);
    (void)emq_worker_link_note(&worker->keep_link, result);
    size_t back = emq_ids_get_count(recovered);
    size_t buried = emq_ids_get_count(dead);
    emq_ids_free(recovered);
    emq_ids_free(dead);
    if (result != EMQ_OK) {
        return -1;
    }
    emq_worker_lock(worker);
    worker->stats.sweeps++;
    worker->stats.recovered += back;
    worker->stats.stalled += buried;
    emq_worker_unlock(worker);
    return (int64_t)(back + buried);
}

/* Calls as long as there is more; how many jobs were moved, or -1. */
static int64_t repeat(emq_work_queue *q, int64_t (*call)(emq_work_queue *)) {
    int64_t all = 0;
    int64_t moved = call(q);
    for (; moved == LIMIT; moved = call(q)) {
        all += moved;
    }
    return moved < 0 ? -1 : all + moved;
}

static int is_due(const emq_peek *peek, int is_promotion) {
    return (is_promotion ? peek->schedule_ms : peek->active_ms) <= peek->now_ms;
}

/* Sees to what was due: a second look, then the call, and a look at what is next. */
static int see_to(emq_work_queue *q, emq_due *due, int is_promotion) {
    emq_peek peek;
    uint32_t beat = beat_ms(q);
    uint32_t usual = is_promotion ? PROMOTE_SPREAD_MS : beat / 4;
    uint32_t widest = is_promotion ? PROMOTE_SPREAD_MAX_MS : beat;
    if (!look(&peek, q)) {
        return 0;
    }
    if (!is_due(&peek, is_promotion)) {
        widen(due, usual, widest);
        return 1;
    }
    int64_t moved = repeat(q, is_promotion ? promote : sweep);
    due->not_before = is_promotion ? in_ms(emq_now_ns(), PROMOTE_GAP_MS) : 0;
    if (moved < 0 || !look(&peek, q)) {
        return 0;
    }
    if (moved > 0) {
        narrow(due, is_promotion ? 0 : usual);
    } else if (is_due(&peek, is_promotion)) {
        rest(due, beat);
        due->at = due->at < due->not_before ? due->not_before : due->at;
    } else {
        widen(due, usual, widest);
    }
    return 1;
}

static int see_to_queue(emq_work_queue *q, int is_asked) {
    emq_peek peek;
    int64_t now = emq_now_ns();
    if (q->promote.at <= now) {
        return see_to(q, &q->promote, 1);
    }
    if (q->sweep.at <= now) {
        return see_to(q, &q->sweep, 0);
    }
    return is_asked || q->look_at <= now ? look(&peek, q) : 1;
}

static int64_t earliest(const emq_work_queue *q) {
    int64_t at = q->look_at;
    at = q->promote.at < at ? q->promote.at : at;
    return q->sweep.at < at ? q->sweep.at : at;
}

/* With the mutex held: the queue to see to next. A worker has one at least. */
static emq_work_queue *find_next(const emq_worker *worker) {
    emq_work_queue *found = worker->queues;
    for (emq_work_queue *q = found; q != NULL; q = q->next) {
        if (q->look_now) {
            return q;
        }
        if (earliest(q) < earliest(found)) {
            found = q;
        }
    }
    return found;
}

/* Waits until a queue wants something; NULL when the worker stops. */
static emq_work_queue *await_queue(emq_worker *worker, int *is_asked) {
    emq_work_queue *found = NULL;
    emq_worker_lock(worker);
    while (worker->phase == EMQ_PHASE_WORKING) {
        emq_work_queue *next = find_next(worker);
        if (next->look_now || earliest(next) <= emq_now_ns()) {
            *is_asked = next->look_now;
            next->look_now = 0;
            found = next;
            break;
        }
        emq_worker_await(worker, &worker->chores, earliest(next));
    }
    emq_worker_unlock(worker);
    return found;
}

static void begin(emq_worker *worker) {
    for (emq_work_queue *q = worker->queues; q != NULL; q = q->next) {
        q->promote = (emq_due){.at = TIME_NEVER, .spread_ms = PROMOTE_SPREAD_MS};
        q->sweep = (emq_due){.at = TIME_NEVER, .spread_ms = beat_ms(q) / 4};
        q->look_at = 0;
    }
}

void *emq_worker_keep(void *data) {
    emq_worker *worker = data;
    int is_asked = 0;
    begin(worker);
    for (emq_work_queue *q = await_queue(worker, &is_asked); q != NULL;
         q = await_queue(worker, &is_asked)) {
        int result = emq_worker_link_open(&worker->keep_link, &worker->chores, EMQ_PHASE_DRAINING);
        if (result == EMQ_OK) {
            (void)see_to_queue(q, is_asked);
        }
    }
    return NULL;
}
