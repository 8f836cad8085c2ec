/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define LINE_MAX_BYTES 96

/* Short periods, so that a failover takes seconds; but a server that a busy machine keeps from its
 * turn for a moment is not taken for one that is down. */
static void start_sentinel(test_server *sentinel, const test_server *primary) {
    static char monitor[LINE_MAX_BYTES];
    (void)snprintf(monitor, sizeof(monitor), "sentinel monitor " WATCH_NAME " 127.0.0.1 %d 2",
                   primary->port);
    server_start_sentinel(sentinel, "--conf", monitor, "--conf",
                          "sentinel down-after-milliseconds " WATCH_NAME " 4000", "--conf",
                          "sentinel failover-timeout " WATCH_NAME " 4000", NULL);
    run(sentinel->admin, "SENTINEL", "DEBUG", "INFO-PERIOD", "500", "PING-PERIOD", "200",
        "ASK-PERIOD", "200", "PUBLISH-PERIOD", "500", NULL);
}

watch watched;

int start_watch(void **state) {
    static char port[16];
    watch *w = &watched;
    (void)state;
    server_start(&w->servers[0], NULL);
    (void)snprintf(port, sizeof(port), "%d", w->servers[0].port);
    server_start(&w->servers[1], "--replica-of", port, NULL);
    w->list[0] = '\0';
    for (int i = 0; i < WATCH_SENTINELS; i++) {
        size_t used = strlen(w->list);
        start_sentinel(&w->sentinels[i], &w->servers[0]);
        (void)snprintf(w->list + used, sizeof(w->list) - used, "%s127.0.0.1:%d",
                       used > 0 ? "," : "", w->sentinels[i].port);
    }
    watch_settle(w);
    return 0;
}

int stop_watch(void **state) {
    (void)state;
    for (int i = 0; i < WATCH_SENTINELS; i++) {
        server_stop(&watched.sentinels[i]);
    }
    for (int i = 0; i < WATCH_SERVERS; i++) {
        server_stop(&watched.servers[i]);
    }
    return 0;
}

static int says(redisContext *c, const char *what, const char *wanted) {
    redisReply *reply = call(c, "SENTINEL", what, WATCH_NAME, NULL);
    char *text = reply_to_text(reply);
    int is_there = strstr(text, wanted) != NULL;
    freeReplyObject(reply);
    free(text);
    return is_there;
}

static int named_port(const test_server *sentinel) {
    redisReply *reply =
        call(sentinel->admin, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", WATCH_NAME, NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    int port = atoi(reply->element[1]->str);
    freeReplyObject(reply);
    return port;
}

static int is_settled(void *data) {
    watch *w = data;
    int port = named_port(&w->sentinels[0]);
    for (int i = 0; i < WATCH_SENTINELS; i++) {
        redisContext *c = w->sentinels[i].admin;
        if (named_port(&w->sentinels[i]) != port || !says(c, "MASTER", "\"flags\", \"master\"") ||
            !says(c, "MASTER", "\"num-slaves\", \"1\"") ||
            !says(c, "MASTER", "\"num-other-sentinels\", \"2\"") ||
            !says(c, "MASTER", "\"role-reported\", \"master\"") ||
            !says(c, "REPLICAS", "\"flags\", \"slave\"") ||
            !says(c, "REPLICAS", "\"role-reported\", \"slave\"") ||
            !says(c, "REPLICAS", "\"master-link-status\", \"ok\"")) {
            return 0;
        }
    }
    return 1;
}

void watch_settle(watch *w) {
    wait_until("the sentinels find all in order", is_settled, w);
}

typedef struct choice {
    const watch *w;
    int port;
} choice;

static int is_known_to_all(void *data) {
    const choice *c = data;
    int count = 0;
    for (int i = 0; i < WATCH_SENTINELS; i++) {
        count += named_port(&c->w->sentinels[i]) == c->port;
    }
    return count == WATCH_SENTINELS;
}

void watch_agree(const watch *w, const test_server *primary) {
    choice c = {w, primary->port};
    wait_until("all sentinels name the new primary", is_known_to_all, &c);
}

test_server *watch_primary(watch *w) {
    return &w->servers[named_port(&w->sentinels[0]) == w->servers[1].port];
}

test_server *watch_replica(watch *w) {
    return &w->servers[watch_primary(w) == &w->servers[0]];
}

emq_client_options options_for_watch(const watch *w) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.sentinels = w->list;
    options.primary_name = WATCH_NAME;
    options.connect_timeout_ms = LONG_MS;
    options.command_timeout_ms = LONG_MS;
    return options;
}

peer *start_liar(const char *host, int port) {
    static char answer[512]; /* the peer borrows it: one at a time */
    char number[16];
    (void)snprintf(number, sizeof(number), "%d", port);
    (void)snprintf(answer, sizeof(answer), "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(host), host,
                   strlen(number), number);
    const peer_script script = {.steps = {PEER_SENDS(answer)}};
    return peer_start(&script);
}
