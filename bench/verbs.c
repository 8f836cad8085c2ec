/* SPDX-License-Identifier: Apache-2.0 */
/* What each verb costs the server: all jobs are enqueued, then claimed, then completed, by
 * connections that always have calls under way. */
#include <stdlib.h>

#include "wire.h"

typedef struct window {
    redisContext *link;
    size_t first;
    size_t count; /* 0: nothing is under way */
} window;

/* Sends the next calls of a phase on this connection, if there are any. */
static size_t send_next(wire *w, window *win, wire_phase phase, size_t next) {
    size_t left = w->calls - next;
    win->first = next;
    win->count = left < w->b->in_flight ? left : w->b->in_flight;
    if (win->count > 0) {
        wire_send(w, win->link, phase, win->first, win->count);
    }
    return next + win->count;
}

static void run_phase(wire *w, window *windows, wire_phase phase) {
    const size_t connections = w->b->connections;
    size_t next = 0;
    for (size_t c = 0; c < connections; c++) {
        next = send_next(w, &windows[c], phase, next);
    }
    for (size_t c = 0, idle = 0; idle < connections; c = (c + 1) % connections) {
        if (windows[c].count == 0) {
            idle++;
            continue;
        }
        idle = 0;
        wire_receive(w, windows[c].link, phase, windows[c].first, windows[c].count);
        next = send_next(w, &windows[c], phase, next);
    }
}

void bench_verbs(bench *b) {
    wire w;
    wire_open(&w, b);
    window *windows = bench_alloc(b, b->connections, sizeof(*windows));
    for (size_t c = 0; c < b->connections; c++) {
        windows[c].link = wire_connect(b);
    }
    for (wire_phase phase = WIRE_ENQUEUE; phase < WIRE_PHASES; phase++) {
        bench_clock start = bench_clock_read(b);
        run_phase(&w, windows, phase);
        bench_add_clock(b, wire_phase_names[phase], bench_clock_since(b, start));
    }
    for (size_t c = 0; c < b->connections; c++) {
        redisFree(windows[c].link);
    }
    free(windows);
    wire_close(&w);
}
