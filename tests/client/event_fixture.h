/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of subscriptions share: messages on the program's server, and a peer that pushes.
 */
#ifndef EMQ_TESTS_CLIENT_EVENT_FIXTURE_H
#define EMQ_TESTS_CLIENT_EVENT_FIXTURE_H

#include "server_fixture.h"

/* Publishes one message. */
void publish(const char *queue, const char *event);

/* Cuts the connections of all who listen. */
void kill_subscribers(void);

/* The words of docs/operations.md: the connect path's, and the listener's. */
#define CONNECT_WORDS "+client|setname +get +emq.version %R~{emq}:version"
#define LISTENER_WORDS "+subscribe &emq:{q}:events"

/* Options of a user who has these rules. */
emq_client_options options_of_listener(const char *rules);

/* What is pushed; the number has two digits. */
/* clang-format off */
#define PEER_SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$14\r\nemq:{q}:events\r\n:1\r\n"
#define PEER_MESSAGE "*3\r\n$7\r\nmessage\r\n$14\r\nemq:{q}:events\r\n"
#define PEER_EVENT(seq) PEER_MESSAGE "$32\r\n{\"event\":\"e\",\"job\":\"j\",\"seq\":" seq "}\r\n"
/* clang-format on */

/* A peer that is good up to SUBSCRIBE, and then sends this. */
peer *start_pusher(const char *pushed);

/* Has it push a message of this text. */
void push(peer *p, const char *json);

/* Texts that are no messages, and bytes that are no push; NULL at the end. */
extern const char *const not_messages[];
extern const char *const not_pushes[];

/* Answers to SUBSCRIBE that are none, and what they end in. */
typedef struct wrong_confirmation {
    const char *bytes;
    int result;
} wrong_confirmation;
extern const wrong_confirmation not_confirmations[];

#endif
