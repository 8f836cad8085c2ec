/* SPDX-License-Identifier: Apache-2.0 */
#include "listener.h"

#include <string.h>

#include "command.h"

static void note_event(listener *l, emq_event *event) {
    int i = l->messages < MESSAGES_MAX ? l->messages : MESSAGES_MAX - 1;
    l->seqs[i] = emq_event_get_seq(event);
    l->gaps[i] = emq_event_get_gap(event);
    l->resumed[i] = emq_event_is_resumed(event);
    emq_event_free(l->last);
    l->last = event;
}

static void on_event(emq_events_async *events, emq_event *event, int result, void *user) {
    listener *l = user;
    assert_false(l->t.is_inside);
    assert_false(l->t.is_closing);
    assert_ptr_equal(events, l->events);
    assert_int_equal(event != NULL, result == EMQ_OK);
    assert_int_equal(emq_events_async_get_state(events), EMQ_ASYNC_OPEN);
    assert_int_equal(result < 0, emq_events_async_get_error(events)[0] != '\0');
    l->results[l->messages < MESSAGES_MAX ? l->messages : MESSAGES_MAX - 1] = result;
    if (result == EMQ_OK) {
        note_event(l, event);
    } else {
        l->dropped++;
    }
    l->messages++;
    if (l->on_event != NULL) {
        l->on_event(l);
    }
}

static void on_state(emq_events_async *events, emq_async_state state, int reason, void *user) {
    listener *l = user;
    assert_false(l->t.is_inside);
    assert_false(l->t.is_closing);
    assert_int_equal(emq_events_async_get_state(events), state);
    assert_int_equal(reason < 0 && state != EMQ_ASYNC_OPEN,
                     emq_events_async_get_error(events)[0] != '\0');
    if (l->t.told < TOLD_MAX) {
        l->t.states[l->t.told] = state;
        l->t.reasons[l->t.told] = reason;
        l->t.told++;
    }
    if (l->on_state != NULL) {
        l->on_state(l);
    }
}

emq_events_async_options listener_options(listener *l) {
    emq_events_async_options options = EMQ_EVENTS_ASYNC_OPTIONS_INIT;
    options.on_event = on_event;
    options.on_state = on_state;
    options.user = l;
    options.backoff_min_ms = 1;
    options.backoff_max_ms = 2;
    return options;
}

void listener_start(listener *l) {
    memset(l, 0, sizeof(*l));
    loop_start(&l->t);
}

int listener_try_open(listener *l, const emq_client_options *options, const char *queue) {
    const emq_events_async_options own = listener_options(l);
    l->t.is_inside = 1;
    int result = emq_events_async_open(&l->events, &l->t.loop, options, queue, &own);
    l->t.is_inside = 0;
    assert_int_equal(l->events != NULL, result == EMQ_OK);
    return result;
}

void listener_open(listener *l, const emq_client_options *options, const char *queue) {
    listener_start(l);
    assert_int_equal(listener_try_open(l, options, queue), EMQ_OK);
    assert_int_equal(emq_events_async_get_state(l->events), EMQ_ASYNC_CONNECTING);
}

static void on_closed(void *user) {
    listener *l = user;
    assert_false(l->t.is_inside);
    l->t.closes++;
}

void listener_close(listener *l) {
    int was_inside = l->t.is_inside;
    l->t.is_inside = 1;
    assert_int_equal(emq_events_async_close(l->events, on_closed, l), EMQ_OK);
    assert_int_equal(emq_events_async_close(l->events, on_closed, l), EMQ_ECLOSED);
    assert_int_equal(emq_events_async_reconnect(l->events), EMQ_ECLOSED);
    l->t.is_inside = was_inside;
    l->t.is_closing = 1;
}

int listener_is_closed(void *data) {
    const listener *l = data;
    return l->t.closes > 0;
}

void listener_finish(listener *l) {
    if (!l->t.is_closing) {
        listener_close(l);
    }
    loop_until(&l->t, listener_is_closed, l);
    loop_stop(&l->t);
    assert_int_equal(l->t.closes, 1);
    emq_event_free(l->last);
}

typedef struct wanted {
    const listener *l;
    emq_async_state state;
    int reason;
    int count;
} wanted;

static int is_told(void *data) {
    const wanted *w = data;
    for (int i = w->count; i < w->l->t.told; i++) {
        if (w->l->t.states[i] == w->state && w->l->t.reasons[i] == w->reason) {
            return 1;
        }
    }
    return 0;
}

void listener_until_told(listener *l, int behind, emq_async_state state, int reason) {
    wanted w = {l, state, reason, behind};
    loop_until(&l->t, is_told, &w);
}

void listener_until_open(listener *l) {
    listener_until_told(l, 0, EMQ_ASYNC_OPEN, EMQ_OK);
}

static int has_messages(void *data) {
    const wanted *w = data;
    return w->l->messages >= w->count;
}

void listener_until_messages(listener *l, int count) {
    wanted w = {.l = l, .count = count};
    loop_until(&l->t, has_messages, &w);
}

static int has_reconnects(void *data) {
    const wanted *w = data;
    return emq_events_async_get_reconnects(w->l->events) >= (uint64_t)w->count &&
           emq_events_async_get_state(w->l->events) == EMQ_ASYNC_OPEN;
}

void listener_until_reconnects(listener *l, int count) {
    wanted w = {.l = l, .count = count};
    loop_until(&l->t, has_reconnects, &w);
}

int listeners_were_tested(void *server) {
    char calls[128];
    redisContext *admin = ((const test_server *)server)->admin;
    get_info(calls, sizeof(calls), admin, "commandstats", "cmdstat_subscribe");
    return strncmp(calls, "calls=3,", 8) == 0;
}

void expect_message(const char *file, int line, listener *l, int i, int64_t seq, int64_t gap,
                    int resumed) {
    listener_until_messages(l, i + 1);
    if (l->results[i] != EMQ_OK || l->seqs[i] != seq || l->gaps[i] != gap ||
        l->resumed[i] != resumed) {
        print_error("message %d: %s, seq %lld, gap %lld, resumed %d\n", i,
                    emq_err_name(l->results[i]), (long long)l->seqs[i], (long long)l->gaps[i],
                    l->resumed[i]);
        _fail(file, line);
    }
}
