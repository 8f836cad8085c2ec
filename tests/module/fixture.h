/* SPDX-License-Identifier: Apache-2.0 */
/* One server for a test program, a clean slate for each test, and the words that tests share. */
#ifndef EMQ_TESTS_FIXTURE_H
#define EMQ_TESTS_FIXTURE_H

#include "aof.h"
#include "expect.h"

/* The server of this program, and a client's connection to it as the default user. */
extern test_server server;
extern redisContext *client;

int start_server(void **state);
int stop_server(void **state);

/* Every database empty, the fence installed in database 0, writes running, one user. */
int clean_slate(void **state);

#define TEST(function) cmocka_unit_test_setup(function, clean_slate)

#define FENCE "{emq}:version"
#define WIRE "echomq:6.0.0"

#define BASE "emq:{q}:"
#define PENDING BASE "pending"
#define ACTIVE BASE "active"
#define SCHEDULE BASE "schedule"
#define DEAD BASE "dead"
#define META BASE "meta"
#define COMPLETED BASE "metrics:completed"
#define ROW(id) BASE "job:" id
#define LOGS(id) ROW(id) ":logs"

/* Ids in their order. */
#define J1 "JOB0KHTOWnGLu1"
#define J2 "JOB0KHTOWnGLu2"
#define J3 "JOB0KHTOWnGLu3"
#define USER "USR0KHTOWnGLuC"

/* The lines of the verbs. */
#define ENQUEUE(id, payload) "EMQ.ENQUEUE", "2", ROW(id), PENDING, id, payload
#define CLAIM(lease) "EMQ.CLAIM", "3", PENDING, ACTIVE, BASE, lease
#define COMPLETE(id, token) "EMQ.COMPLETE", "3", ACTIVE, ROW(id), BASE, id, token
#define INSTALL "EMQ.INSTALL", "1", FENCE

/* The refusals that have no variable part. */
#define WRONGTYPE "-WRONGTYPE Operation against a key holding the wrong kind of value"
#define FENCE_ABSENT "-EMQWIRE expected echomq:6.0.0 but {emq}:version is absent"
#define FENCE_FOUND "-EMQWIRE expected echomq:6.0.0 found "
#define KIND "-EMQKIND job id must be JOB-namespaced"
#define PAUSED "-ERR EMQ write-paused"
#define MISMATCH "-EMQSTALE complete token mismatch"
#define LOST "-EMQSTALE complete lease lost"
#define LANE "-EMQLANE lane row: use the EMQ.GROUP verb"
#define FLOW "-EMQFLOW flow row: use the EMQ.FLOW verb"
#define ATTEMPTS "-ERR EMQ row attempts is not an integer"
#define LEASE_MS "-ERR EMQ lease_ms must be an integer from 1 to 2147483647"
#define NO_KEY "-NOPERM No permissions to access a key"

/* The server's run_id. */
const char *get_run_id(void);

/* Admits job J1 and claims it: attempts 1, in active. */
void lease_j1(void);

/* Makes a key of the named type (string list set zset hash stream), in place of what was there. */
void make_typed(const char *key, const char *type);

/* Waits until a key that was given a time to live is past it, without touching the key. */
void pass_expiry(const char *key);

#define TYPES 6
extern const char *const types[TYPES];

#endif
