/* SPDX-License-Identifier: Apache-2.0 */
/* A request from the inside: the command as it is sent, how its reply is decoded, and its result.
 *
 * A verb is one function in request_verbs.c: its emq_line_<verb> is handed to emq_request_make
 * together with the question that its answer is read by. */
#ifndef EMQ_LIBEMQ_REQUEST_H
#define EMQ_LIBEMQ_REQUEST_H

#include <emq/async.h>
#include <emq/line.h>
#include <hiredis/hiredis.h>

#include "deadline.h"
#include "decode.h"
#include "text.h"

/* Where a submitted request is. */
typedef enum emq_request_place {
    EMQ_PLACE_OWN,    /* its builder's */
    EMQ_PLACE_MAIL,   /* from another thread, not seen by the loop yet */
    EMQ_PLACE_QUEUE,  /* no byte of it was sent on this connection */
    EMQ_PLACE_FLIGHT, /* given to the connection; its reply has this place among the replies */
    EMQ_PLACE_NOWHERE
} emq_request_place;

struct emq_request {
    emq_request *previous; /* in the queue or in flight */
    emq_request *next;
    emq_request *next_done; /* among those whose callback is due */
    emq_async *client;
    emq_request_place place;
    int is_done;   /* it has its result */
    int is_called; /* and the callback has run */
    int is_held;   /* it counts among those that are not answered yet */

    char *command; /* kept until the end: it may have to be sent again */
    size_t length;
    size_t given;        /* bytes that the connection was given */
    uint64_t end_at;     /* where its last byte is in the stream of the connection */
    int may_repeat;      /* harmless when it is sent twice */
    int is_repeated;     /* and it was */
    int mints;           /* how many ids were minted for it */
    int has_id;          /* an admission of one job, or an append */
    emq_when when;       /* of a schedule */
    size_t payload_at;   /* in the command, of an admission of one job */
    size_t payload_size; /* of a batch: the largest */

    uint32_t timeout_ms;
    uint32_t least_ms; /* no deadline is shorter: the server may wait that long */
    emq_deadline deadline;
    int is_raw;               /* any command: there is no question */
    emq_question question;    /* its queue is the one below */
    emq_extension *extension; /* of EXTENDS */
    emq_request_fn callback;
    void *user;

    int result;
    emq_id id;
    char queue[EMQ_QUEUE_MAX + 1];
    emq_outcome outcome;
    redisReply *reply; /* of a raw command, or kept because the outcome borrows from it */
    emq_text error;
};

typedef struct emq_request_list {
    emq_request *first;
    emq_request *last;
} emq_request_list;

/* Makes a request of a line that was just built: `result` is what building it returned. The line is
 * cleared, whatever happens. No question means a raw command. */
int emq_request_make(emq_request **out, int result, emq_line *line, const emq_question *question);

/* Gives the request the queue that its leases or another admission need: one that a line was built
 * with. */
void emq_request_keep_queue(emq_request *request, const char *queue);

/* Decodes the reply into the request. *reply may be taken: then it is set to NULL. */
int emq_request_decode(emq_request *request, redisReply **reply);

/* The line that admits a job: SCHEDULE when there is a time. */
int emq_request_line_admission(emq_line *line, const char *queue, const emq_id *id, const void *p,
                               size_t n, const emq_when *when);

/* Gives an admission whose minted id is in use a fresh one. */
int emq_request_mint_again(emq_request *request);

void emq_request_list_add(emq_request_list *list, emq_request *request);
void emq_request_list_add_first(emq_request_list *list, emq_request *request);
void emq_request_list_remove(emq_request_list *list, emq_request *request);

#endif
