/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes (work.c), each with a log of its own: started, killed, stopped, continued,
 * ended. They end with the test that started them, however that ends. */
#ifndef EMQ_TESTS_CREW_H
#define EMQ_TESTS_CREW_H

#include "record.h"
#include "server.h"

#include <sys/types.h>

#define CREW_MAX 16
#define CREW_PROCESSES_MAX 20000

typedef struct crew_member {
    pid_t pid;
    size_t process;       /* the number of its log */
    int64_t continues_at; /* it is stopped until then; 0: it is not */
} crew_member;

typedef struct crew {
    const char *program;
    const char *socket;
    const char *queue;
    unsigned lease_ms;
    unsigned concurrency;
    unsigned stop_ms; /* what handlers have after SIGTERM */
    size_t count;
    crew_member members[CREW_MAX];
    size_t processes; /* started so far */
    unsigned char killed[CREW_PROCESSES_MAX];
    char dir[SERVER_PATH_MAX]; /* of the logs */
} crew;

/* Makes the folder of the logs; the fields before `count` are the caller's. */
void crew_init(crew *c);

void crew_start(crew *c, size_t place);

/* SIGKILL; its place can be started anew. */
void crew_kill(crew *c, size_t place);

/* SIGSTOP, until crew_continue finds that the time is over. */
void crew_stop(crew *c, size_t place, int64_t ms);
void crew_continue(crew *c, int64_t now_ms);

/* How many are stopped. */
size_t crew_count_stopped(const crew *c);

/* SIGTERM, and waits for the end, which must come within a minute or two and be a good one. */
void crew_end(crew *c, size_t place);

/* Reads all logs. */
void crew_read(records *out, const crew *c);

/* Removes the logs. */
void crew_clear(crew *c);

#endif
