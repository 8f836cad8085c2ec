/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted peer: listens on 127.0.0.1 or a Unix socket, reads commands and does for each what the
 * script says. For peers that misbehave; what a server does is tested with a server.
 *
 * It serves one connection at a time, and a new one begins the script anew. */
#ifndef EMQ_TESTS_PEER_H
#define EMQ_TESTS_PEER_H

#include <stddef.h>
#include <stdint.h>

typedef enum peer_action {
    PEER_HOLD, /* says nothing */
    PEER_SEND,
    PEER_DRIP,  /* sends a byte, waits, sends the next */
    PEER_FLOOD, /* sends it again and again, until the other side has gone */
    PEER_SEND_AND_CLOSE,
    PEER_CLOSE,
    PEER_RESET, /* closes with a TCP reset */
    PEER_DEAF   /* stops reading: on a Unix socket, what is written to it fails at once */
} peer_action;

typedef struct peer_step {
    peer_action action;
    const char *bytes; /* NUL-terminated unless length is set */
    size_t length;
} peer_step;

#define PEER_STEPS_MAX 16

typedef struct peer_script {
    peer_step greeting;              /* done when a connection is accepted */
    peer_step steps[PEER_STEPS_MAX]; /* one for each command; behind the last one it holds */
    /* When set: done as soon as that many bytes of a connection have come in, whole commands or
     * not, and nothing is read until it is done. */
    size_t interrupt_at;
    peer_step interrupt;
    const char *unix_path; /* instead of 127.0.0.1 */
} peer_script;

typedef struct peer peer;

peer *peer_start(const peer_script *script);
void peer_stop(peer *p);

uint16_t peer_port(const peer *p);

/* How many connections were accepted, and how many whole commands and bytes came in on all of them.
 */
int peer_connections(peer *p);
int peer_commands(peer *p);
size_t peer_bytes(peer *p);

/* The command of that number, words separated by spaces; the caller frees it. */
char *peer_command(peer *p, int number);

/* Does something on the connection that is open now, and returns when it is done; for a peer that
 * has nothing else to do. */
void peer_act(peer *p, peer_step step);

/* What a good server answers to CLIENT SETNAME, EMQ.VERSION and GET. */
#define PEER_OK "+OK\r\n"
#define PEER_FACTS(wire, major, capabilities)                                                      \
    "*6\r\n$4\r\nwire\r\n" wire "$5\r\nmajor\r\n" major "$12\r\ncapabilities\r\n" capabilities
#define PEER_WIRE "$12\r\nechomq:6.0.0\r\n"
#define PEER_LATER_TOKENS                                                                          \
    "$8\r\nschedule\r\n$6\r\nextend\r\n$7\r\nextends\r\n$7\r\npromote\r\n"                         \
    "$10\r\nreschedule\r\n$5\r\ndelay\r\n$4\r\nfail\r\n$9\r\nreprocess\r\n$7\r\nrequeue\r\n$"      \
    "13\r\nstalled.check\r\n"
#define PEER_CAPABILITIES                                                                          \
    "*14\r\n$7\r\nenqueue\r\n$5\r\nclaim\r\n$11\r\nclaim.pause\r\n$"                               \
    "8\r\ncomplete\r\n" PEER_LATER_TOKENS
#define PEER_VERSION PEER_FACTS(PEER_WIRE, ":0\r\n", PEER_CAPABILITIES)

/* clang-format off */
#define PEER_SENDS(text) {PEER_SEND, (text), 0}
#define PEER_HANDSHAKE PEER_SENDS(PEER_OK), PEER_SENDS(PEER_VERSION), PEER_SENDS(PEER_WIRE)
/* clang-format on */
#define PEER_HANDSHAKE_COMMANDS 3

#endif
