/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a test program and what brings it back to nothing between two tests. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

test_server server;
redisContext *client;

const char *const types[TYPES] = {"string", "list", "set", "zset", "hash", "stream"};

int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    client = server_connect(&server);
    return 0;
}

int stop_server(void **state) {
    (void)state;
    if (client != NULL) {
        redisFree(client);
        client = NULL;
    }
    server_stop(&server);
    return 0;
}

int clean_slate(void **state) {
    (void)state;
    run(server.admin, "CLIENT", "UNPAUSE", NULL);
    run(server.admin, "CONFIG", "SET", "maxmemory", "0", NULL);
    run(server.admin, "FLUSHALL", NULL);
    run(server.admin, "ACL", "LOG", "RESET", NULL);
    run(server.admin, INSTALL, NULL);
    /* a test that failed half-way may have left a transaction open */
    redisFree(client);
    client = server_connect(&server);
    return 0;
}

const char *get_run_id(void) {
    static char run_id[64];
    return get_info(run_id, sizeof(run_id), server.admin, "server", "run_id");
}

void lease_j1(void) {
    EXPECT(client, "1", ENQUEUE(J1, "payload"));
    EXPECT(client, "[\"" J1 "\", \"payload\", 1]", CLAIM("60000"));
}

void make_typed(const char *key, const char *type) {
    run(client, "DEL", key, NULL);
    if (strcmp(type, "string") == 0) {
        run(client, "SET", key, "x", NULL);
    } else if (strcmp(type, "list") == 0) {
        run(client, "RPUSH", key, "x", NULL);
    } else if (strcmp(type, "set") == 0) {
        run(client, "SADD", key, "x", NULL);
    } else if (strcmp(type, "zset") == 0) {
        run(client, "ZADD", key, "0", J1, NULL);
    } else if (strcmp(type, "hash") == 0) {
        run(client, "HSET", key, "x", "y", NULL);
    } else {
        run(client, "XADD", key, "*", "x", "y", NULL);
    }
}

typedef struct expiry {
    long long at;
} expiry;

static int is_past(void *data) {
    const expiry *e = data;
    redisReply *now = call(client, "TIME", NULL);
    long long ms = atoll(now->element[0]->str) * 1000 + atoll(now->element[1]->str) / 1000;
    freeReplyObject(now);
    return ms > e->at;
}

int is_before_9_1(void) {
    char release[64];
    (void)get_info(release, sizeof(release), server.admin, "server", "valkey_version");
    return strncmp(release, "9.0.", 4) == 0;
}

void pass_expiry(const char *key) {
    run(server.admin, "DEBUG", "SET-ACTIVE-EXPIRE", "0", NULL);
    run(client, "PEXPIRE", key, "20", NULL);
    expiry e = {get_integer(client, "PEXPIRETIME", key, NULL)};
    if (e.at > 0) {
        wait_until("the key is past its time", is_past, &e);
    }
}

int read_acl_log(char *object, size_t cap) {
    redisReply *reply = call(server.admin, "ACL", "LOG", NULL);
    int count = (int)reply->elements;
    object[0] = '\0';
    for (size_t i = 0; count > 0 && i + 1 < reply->element[0]->elements; i += 2) {
        redisReply *const *entry = reply->element[0]->element;
        if (strcmp(entry[i]->str, "object") == 0) {
            (void)snprintf(object, cap, "%s", entry[i + 1]->str);
        }
        if (strcmp(entry[i]->str, "reason") == 0) {
            assert_string_equal(entry[i + 1]->str, "key");
        }
    }
    freeReplyObject(reply);
    return count;
}
