/* SPDX-License-Identifier: Apache-2.0 */
/* The lines, the refusals and the jobs that the tests of scheduling, leases, failures, sweeps and
 * batches share, and those verbs as data. */
#ifndef EMQ_TESTS_CORE_H
#define EMQ_TESTS_CORE_H

#include "fixture.h"

#define RING BASE "ring"
#define FAILED BASE "metrics:failed"

#define SCHEDULE_JOB(id, payload, mode, ms)                                                        \
    "EMQ.SCHEDULE", "2", ROW(id), SCHEDULE, id, payload, mode, ms
#define EXTEND(id, token, lease) "EMQ.EXTEND", "2", ACTIVE, ROW(id), id, token, lease
#define EXTENDS(lease, ...) "EMQ.EXTENDS", "2", ACTIVE, BASE, lease, __VA_ARGS__
#define PROMOTE(limit) "EMQ.PROMOTE", "3", SCHEDULE, PENDING, BASE, limit
#define RESCHEDULE(id, mode, ms) "EMQ.RESCHEDULE", "2", ROW(id), SCHEDULE, id, mode, ms
#define DELAY(id, token, mode, ms) "EMQ.DELAY", "3", ROW(id), ACTIVE, SCHEDULE, id, token, mode, ms
#define FAIL(id, token, delay, max, error)                                                         \
    "EMQ.FAIL", "5", ACTIVE, SCHEDULE, DEAD, ROW(id), BASE, id, token, delay, max, error
#define REPROCESS(id) "EMQ.REPROCESS", "3", ROW(id), DEAD, PENDING, id
#define REQUEUE(id, token) "EMQ.REQUEUE", "3", ACTIVE, PENDING, ROW(id), id, token
#define ENQUEUES(...) "EMQ.ENQUEUES", "2", PENDING, BASE, __VA_ARGS__
#define CLAIMS(...) "EMQ.CLAIMS", "3", PENDING, ACTIVE, BASE, __VA_ARGS__
#define COMPLETES(...) "EMQ.COMPLETES", "2", ACTIVE, BASE, __VA_ARGS__
#define PAUSE "EMQ.PAUSE", "2", META, BASE
#define RESUME "EMQ.RESUME", "4", META, PENDING, RING, BASE
#define STALLED_CHECK(max, limit) "EMQ.STALLED.CHECK", "4", ACTIVE, PENDING, DEAD, BASE, max, limit

#define GONE "-EMQSTALE job gone"
#define NOT_DEAD "-EMQSTATE not dead"
#define NOT_SCHEDULED "-EMQSTATE not scheduled"
#define MODE "-ERR EMQ mode must be at or in"
#define AT_MS "-ERR EMQ at ms must be an integer from 0 to 9007199254740991"
#define IN_MS "-ERR EMQ in ms must be an integer from 0 to 315360000000"
#define DELAY_MS "-ERR EMQ delay_ms must be an integer from 0 to 315360000000"
#define MAX_FAILURES "-ERR EMQ max_failures must be an integer from 1 to 2147483647"
#define MAX_STALLED "-ERR EMQ max_stalled must be an integer from 1 to 2147483647"
#define LIMIT "-ERR EMQ limit must be an integer from 1 to 10000"
#define MEMBERS "-ERR EMQ members must be an integer from 1 to 1000"
#define COUNT_NO_INTEGER "-ERR hash value is not an integer"
#define COUNT_OVERFLOWS "-ERR increment or decrement would overflow"

#define YEARS_10 "315360000000"
#define AT_MAX "9007199254740991"

#define UNCHANGED(want, ...) EXPECT_UNCHANGED(&server, client, (want), __VA_ARGS__)
#define EFFECTS(effects, want, ...) EXPECT_EFFECTS(&server, (effects), client, (want), __VA_ARGS__)

/* What no number of the protocol may look like, whatever its range. */
#define NO_NUMBERS 12
extern const char *const no_numbers[NO_NUMBERS];

/* Makes an own row of a job, with attempts 3, payload `p` and this server's lease_epoch, and puts
 * the id into a set (NULL: into none). What the row's key held is gone. */
void make_job(const char *id, const char *job_state, const char *set, const char *score);

/* The row's field is this text; `nil` for one that isn't there, otherwise as expect.h writes it. */
#define FIELD(id, field, want) EXPECT(client, (want), "HGET", ROW(id), field)

/* Admits J1, claims it, lets its lease pass and sweeps it back: attempts 1, in pending. */
void sweep_j1_back(void);

/* The call answers this, and the id's score in the set is then exactly the server's time in that
 * command plus `ms`. */
#define EXPECT_AT_NOW_PLUS(key, id, ms, want, ...)                                                 \
    expect_at_now_plus(__FILE__, __LINE__, (key), (id), (ms), (want), __VA_ARGS__,                 \
                       (const char *)NULL)
void expect_at_now_plus(const char *file, int line, const char *key, const char *id, long long ms,
                        const char *want, ...) NULL_AT_THE_END;

/* The commands behind an AOF mark are these; each `@` stands for the id's score in the set now,
 * each `$` for this server's run id. */
#define EXPECT_LOG(mark, key, id, want) expect_log(__FILE__, __LINE__, (mark), (key), (id), (want))
void expect_log(const char *file, int line, long long mark, const char *key, const char *id,
                const char *want);

/* Stops the program's server, keeps its data, and starts it again. */
void restart_server(void);

/* A verb with keys and values that are right, of job J1 with token 1. */
#define CORE_WORDS_MAX 6
typedef struct core_verb {
    const char *name;
    const char *word;
    const char *arity;
    const char *flags;       /* of COMMAND INFO */
    const char *categories;  /* likewise */
    const char *value_count; /* as the shape refusal writes it */
    const char *keys[CORE_WORDS_MAX];
    const char *patterns[CORE_WORDS_MAX];
    const char *values[CORE_WORDS_MAX];
} core_verb;

#define CORE_VERBS 15
extern const core_verb core_verbs[CORE_VERBS];

int count_words(const char *const *words);

/* Builds the verb's line; the word at `place` (0 is the verb's name, 1 the key count; -1: none) is
 * replaced by `with`. */
void core_line(command *line, const core_verb *verb, int place, const char *with);

/* Sends such a line: it answers this and leaves everything as it was. */
#define CORE_UNCHANGED(c, want, verb, place, with)                                                 \
    core_unchanged(__FILE__, __LINE__, (c), (want), (verb), (place), (with))
void core_unchanged(const char *file, int line, redisContext *c, const char *want,
                    const core_verb *verb, int place, const char *with);

#endif
