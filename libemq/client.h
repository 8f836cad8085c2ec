/* SPDX-License-Identifier: Apache-2.0 */
/* The client from the inside: settings, connection, and what the last call had to say. */
#ifndef EMQ_LIBEMQ_CLIENT_H
#define EMQ_LIBEMQ_CLIENT_H

#include <emq/client.h>

#include "connection.h"
#include "decode.h"
#include "settings.h"

struct emq_client {
    emq_settings settings;
    emq_connection connection;
    emq_line line; /* kept, so that a call allocates no line of its own */
    emq_text error;
};

/* A client that is not connected yet: 0; EMQ_EINVAL or EMQ_ENOTLS, with a client that says why and
 * stays closed; EMQ_ENOMEM, with none. */
int emq_client_new(emq_client **out, const emq_client_options *options);

/* Runs the whole connect path under a deadline of the caller's. */
int emq_client_connect(emq_client *client, emq_deadline deadline);

/* EMQ_EFORKED in a forked child, else EMQ_OK. */
int emq_client_check_process(emq_client *client);

/* Sends one line under the deadline of a call; on success the reply is the caller's. */
int emq_client_exchange(emq_client *client, const emq_line *line, redisReply **reply,
                        emq_deadline deadline);

/* Whether such an answer ends the connection: one that broke the protocol, since nothing behind it
 * can be trusted; with sentinels also a server's that became a replica, since they know a better
 * one. */
int emq_client_ends_connection(const emq_client *client, int result);

/* Ends a call: frees the reply, and closes the connection where the answer ends it. Returns the
 * result. */
int emq_client_finish(emq_client *client, redisReply *reply, int result);

/* Sends client->line under a deadline and decodes the answer. `kept` receives the reply when the
 * result is no error, for outcomes that borrow from it; may be NULL. */
int emq_client_ask(emq_client *client, const emq_question *question, emq_outcome *outcome,
                   redisReply **kept, emq_deadline deadline);

/* Admits one job under an id that is minted here and stored before it is sent; mints again where it
 * turns out to be taken. SCHEDULE when there is a time. */
int emq_client_admit_fresh(emq_id *id, emq_client *client, const char *queue, const void *p,
                           size_t n, const emq_when *when, emq_deadline deadline);

/* How often a fresh id is minted before a call gives up; then the connection is closed, and this is
 * its sentence. */
#define EMQ_MINTS_MAX 8
int emq_client_fail_mints(emq_client *client);

/* All bytes zero: an id is to be minted. */
int emq_id_is_zeroed(const emq_id *id);

#endif
