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

#define OOM "-OOM command not allowed when used memory > 'maxmemory'."

/* Writes pause inside a transaction, in front of the verb: there the server holds nothing back any
 * more, and the module's guard is what stands. The one reply of the verb is `want`. */
#define WHILE_PAUSED(want, ...)                                                                    \
    do {                                                                                           \
        char before_[DIGEST_MAX];                                                                  \
        char after_[DIGEST_MAX];                                                                   \
        (void)get_digest(before_, &server);                                                        \
        long long offset_ = get_offset(&server);                                                   \
        EXPECT(client, "+OK", "MULTI");                                                            \
        EXPECT(client, "+QUEUED", "CLIENT", "PAUSE", "100000", "WRITE");                           \
        EXPECT(client, "+QUEUED", __VA_ARGS__);                                                    \
        EXPECT(client, "[+OK, " want "]", "EXEC");                                                 \
        assert_int_equal(get_offset(&server), offset_);                                            \
        EXPECT_TEXT(get_digest(after_, &server), before_);                                         \
        EXPECT(server.admin, "+OK", "CLIENT", "UNPAUSE");                                          \
    } while (0)

/* The rights that the documentation gives to a worker. */
#define WORKER "~emq:{q}:* %R~{emq}:version +@emq -@dangerous"

/* The number of entries in ACL LOG, and the object of the newest, which must be about a key. */
int read_acl_log(char *object, size_t cap);

/* A user with these rules is refused for this key, and nothing but a log entry is left behind. */
#define REFUSED_FOR(key, rules, ...)                                                               \
    do {                                                                                           \
        char object_[256];                                                                         \
        redisContext *user_ = server_connect_as(&server, "tester", (rules));                       \
        run(server.admin, "ACL", "LOG", "RESET", NULL);                                            \
        expect_unchanged(__FILE__, __LINE__, &server, user_, NO_KEY, __VA_ARGS__,                  \
                         (const char *)NULL);                                                      \
        assert_int_equal(read_acl_log(object_, sizeof(object_)), 1);                               \
        EXPECT_TEXT(object_, (key));                                                               \
        redisFree(user_);                                                                          \
    } while (0)

#define ALLOWED(want, rules, ...)                                                                  \
    do {                                                                                           \
        char object_[256];                                                                         \
        redisContext *user_ = server_connect_as(&server, "tester", (rules));                       \
        run(server.admin, "ACL", "LOG", "RESET", NULL);                                            \
        expect_reply(__FILE__, __LINE__, user_, (want), __VA_ARGS__, (const char *)NULL);          \
        assert_int_equal(read_acl_log(object_, sizeof(object_)), 0);                               \
        redisFree(user_);                                                                          \
    } while (0)

/* Checking declared and reached keys together, and users of single databases, are there from 9.1.
 */
int is_before_9_1(void);

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
