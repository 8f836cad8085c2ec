/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueue, claim and complete over bare hiredis: by the native verbs, by their batches, by the
 * reference scripts, and as the bare commands whose effects they have. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <hiredis/hiredis.h>

#include "bench.h"

typedef enum wire_phase { WIRE_ENQUEUE, WIRE_CLAIM, WIRE_COMPLETE, WIRE_PHASES } wire_phase;

extern const char *const wire_phase_names[WIRE_PHASES];

#define WIRE_BATCH 32       /* members of a batch */
#define WIRE_COMMANDS_MAX 5 /* of one call */

typedef struct wire_side wire_side;

typedef struct wire {
    bench *b;
    const wire_side *side;
    size_t calls; /* of each phase */
    emq_id *ids;
    char *payloads;
    emq_line line;
    bench_ledger ledger;
    char scripts[WIRE_PHASES][41];
    char run_id[41];
} wire;

redisContext *wire_connect(const bench *b);

/* The reply to the commands that were appended; an error ends the program. Free it. */
redisReply *wire_reply(const bench *b, redisContext *link);
redisReply *wire_ask(const bench *b, redisContext *link, int argc, const char **argv);
long long wire_ask_number(const bench *b, redisContext *link, int argc, const char **argv);

/* A number of a section of INFO; `name` is with its colon. */
long long wire_info(const bench *b, redisContext *link, const char *section, const char *name);

/* Empties the server, but for the fence. */
void wire_reset(const bench *b, redisContext *link);

/* Brings the number of jobs that wait behind those of a run to what was asked for. Their ids come
 * behind every minted one, so that no claim of a run takes them. */
void wire_fill(const bench *b);

/* Makes the jobs of a run, and those that wait behind them. */
void wire_open(wire *w, bench *b);
/* Checks that each job was delivered and that the queues are as they were. */
void wire_close(wire *w);

/* Checks that the jobs of a run are completed and that nothing but what waits behind them is left.
 */
void wire_check_server(const bench *b);

/* Makes calls first to first + count - 1: writes them at once, and reads the answers. */
void wire_send(wire *w, redisContext *link, wire_phase phase, size_t first, size_t count);
void wire_receive(wire *w, redisContext *link, wire_phase phase, size_t first, size_t count);

/* The name of a queue: BENCH_QUEUE, or with a number behind it where there are several. */
void wire_queue_name(char *out, size_t cap, const bench *b, size_t i);

#endif
