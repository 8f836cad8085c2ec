/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy between a client and a real server, which cuts the connection at a given point of one
 * request. It reads whole requests and whole answers, so that where it cuts is certain: what it
 * passed on was answered before the client's connection ends, and what it kept never arrived.
 *
 * All other requests, the connect path included, pass through unchanged. */
#ifndef EMQ_TESTS_CUTTER_H
#define EMQ_TESTS_CUTTER_H

#include "server.h"

typedef enum cut_point {
    CUT_IDLE,    /* at once: nothing is under way */
    CUT_REQUEST, /* the request was sent; no byte of it reaches the server */
    CUT_ANSWER,  /* the server has answered; no byte of it reaches the client */
    CUT_HALF,    /* half of the answer's bytes reach the client */
    CUT_AFTER,   /* the whole answer reaches the client */
    CUT_POINTS,  /* of any request */
    CUT_BEHIND   /* the whole answer reaches the client, and nothing of those behind it */
} cut_point;

typedef struct cutter cutter;

/* Listens on a Unix socket of its own beside the server's, and connects to the server for each
 * connection that it accepts. */
cutter *cutter_start(const test_server *server);
void cutter_stop(cutter *c);

const char *cutter_socket(const cutter *c);

/* Cuts once: at the next request of this name ("EMQ.CLAIM"), or at the first of as many of this
 * name that one connection sends in a row, whose answers count as one. What else is sent in the
 * same write shares their fate, but its answers do not count. CUT_IDLE needs no name and cuts what
 * is open now. */
void cutter_arm(cutter *c, cut_point point, const char *name, int requests);

/* Waits until the cut was made; fails the test after two minutes. */
void cutter_wait(cutter *c);

#endif
