/* SPDX-License-Identifier: Apache-2.0 */
/* Two servers with the module, one the other's replica, and three sentinels that watch them under
 * the name "main". Any of the servers may be the primary of the moment. A failover ends the `admin`
 * connections of the servers. */
#ifndef EMQ_TESTS_WATCH_H
#define EMQ_TESTS_WATCH_H

#include <emq/emq.h>

#include "fixture.h"

#define WATCH_NAME "main"
#define WATCH_SERVERS 2
#define WATCH_SENTINELS 3
#define WATCH_LIST_MAX 256

typedef struct watch {
    test_server servers[WATCH_SERVERS];
    test_server sentinels[WATCH_SENTINELS];
    char list[WATCH_LIST_MAX]; /* of the sentinels, as the option has it */
} watch;

/* The one of a test program that needs one; the setup and teardown of its tests. */
extern watch watched;
int start_watch(void **state);
int stop_watch(void **state);

/* Waits until all sentinels agree on a primary, and find nothing wrong with it, its replica and
 * each other. */
void watch_settle(watch *w);

/* Waits until all sentinels name this server, whatever else they find. */
void watch_agree(const watch *w, const test_server *primary);

/* The servers as the sentinels see them. */
test_server *watch_primary(watch *w);
test_server *watch_replica(watch *w);

emq_client_options options_for_watch(const watch *w);

/* A sentinel that names this port, whatever is there; a scripted one that stands for one that
 * lies, or has not heard. */
peer *start_liar(const char *host, int port);

#endif
