/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of many queues, read by one pipeline. */
#ifndef EMQ_TOOL_SIZES_H
#define EMQ_TOOL_SIZES_H

#include <emq/emq.h>
#include <jansson.h>

#include "tool.h"

#define SIZES_NONE (-1) /* of oldest_ms, next_ms and lease_end_ms: there is none */
#define SIZES_DETAIL_MAX 256

/* What the commands that an operator may run tell of a queue. A job on its way between two of them
 * may be counted twice or not at all. */
typedef struct sizes {
    int result; /* why they could not be read; the rest is 0 then */
    int64_t pending;
    int64_t active;
    int64_t scheduled;
    int64_t dead;
    int64_t completed;    /* so far */
    int64_t failed;       /* died so far */
    int64_t oldest_ms;    /* when the id of the oldest pending job was minted, unix time */
    int64_t next_ms;      /* when the next scheduled job is due */
    int64_t lease_end_ms; /* when the lease that ends first ends */
    int is_paused;
    char detail[SIZES_DETAIL_MAX]; /* what the server said to `result` */
} sizes;

/* Reads them for all of the queues, through a pipeline of the caller's that is cleared before and
 * after. 0: look at each one's result; or what kept the pipeline from running. */
int sizes_read(sizes *out, emq_pipeline *pipeline, const char *const *queues, size_t count);

/* No jobs, no counts, and not paused: as a queue that doesn't exist. */
int sizes_is_nothing(const sizes *s);
/* Says so, and asks whether the name is meant. */
void sizes_note_nothing(const tool *t, const char *queue);

/* Whether a queue is paused, as a worker may ask, too. A result of emq_client_command. */
int sizes_read_paused(int *out, emq_client *client, const char *queue);

/* Prints why they could not be read, and what the server said. */
void sizes_print_result(const sizes *s);

/* The members of a document about a queue. */
json_t *sizes_to_json(const char *queue, const sizes *s);

#endif
