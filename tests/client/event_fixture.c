/* SPDX-License-Identifier: Apache-2.0 */
#include "event_fixture.h"

#include <stdio.h>
#include <string.h>

#include "command.h"

void publish(const char *queue, const char *event) {
    char base[EMQ_KEY_MAX + 1];
    assert_true(emq_key_queue(base, sizeof(base), queue, EMQ_KEY_BASE) > 0);
    run(server.admin, "EMQ.PUBLISH", "1", base, event, "JOB0KHTOWnGLuC", NULL);
}

void kill_subscribers(void) {
    assert_true(get_integer(server.admin, "CLIENT", "KILL", "TYPE", "pubsub", NULL) > 0);
}

emq_client_options options_of_listener(const char *rules) {
    emq_client_options options = options_for_server(&server);
    redisFree(server_connect_as(&server, "listener", rules));
    options.username = "listener";
    options.password = "password";
    return options;
}

peer *start_pusher(const char *pushed) {
    peer_script script = {.steps = {PEER_HANDSHAKE, PEER_SENDS(pushed)}};
    return peer_start(&script);
}

void push(peer *p, const char *json) {
    char bytes[512];
    int n = snprintf(bytes, sizeof(bytes), PEER_MESSAGE "$%zu\r\n%s\r\n", strlen(json), json);
    peer_act(p, (peer_step){PEER_SEND, bytes, (size_t)n});
}

const char *const not_messages[] = {
    "",
    "no JSON",
    "{",
    "[]",
    "7",
    "{}",
    "{\"event\":\"e\",\"job\":\"j\"}",
    "{\"event\":\"e\",\"seq\":2}",
    "{\"job\":\"j\",\"seq\":2}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":\"2\"}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":2.5}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":99999999999999999999}",
    "{\"event\":7,\"job\":\"j\",\"seq\":2}",
    "{\"event\":\"e\",\"job\":null,\"seq\":2}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":2,\"x\":1}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":2,\"x\":{}}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":2,\"x\":\"\xff\"}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":2,\"x\":\"\",\"x\":\"\"}",
    "{\"event\":\"e\",\"event_b64\":\"/w==\",\"job\":\"j\",\"seq\":2}",
    "{\"event_b64\":\"?\",\"job\":\"j\",\"seq\":2}",
    "{\"event_b64\":\"/x==\",\"job\":\"j\",\"seq\":2}",
    "{\"event\":\"e\",\"job\":\"j\",\"seq\":2} and more",
    NULL,
};

const char *const not_pushes[] = {
    "+OK\r\n",
    ":1\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*1\r\n$7\r\nmessage\r\n",
    "*3\r\n$7\r\nmessage\r\n$14\r\nemq:{r}:events\r\n$2\r\n{}\r\n",
    PEER_MESSAGE "$-1\r\n",
    PEER_MESSAGE ":1\r\n",
    "*4\r\n$7\r\nmessage\r\n$14\r\nemq:{q}:events\r\n$2\r\n{}\r\n:1\r\n",
    "*3\r\n*0\r\n*0\r\n*0\r\n",
    PEER_SUBSCRIBED, /* nobody asked again */
    "*3\r\n$11\r\nunsubscribe\r\n$14\r\nemq:{q}:events\r\n:0\r\n",
    "*2000000000\r\n",
    "?\r\n",
    NULL,
};

const wrong_confirmation not_confirmations[] = {
    {"+OK\r\n", EMQ_EPROTOCOL},
    {PEER_EVENT("10"), EMQ_EPROTOCOL},
    {"*3\r\n$9\r\nsubscribe\r\n$14\r\nemq:{r}:events\r\n:1\r\n", EMQ_EPROTOCOL},
    {"*3\r\n$9\r\nsubscribe\r\n$14\r\nemq:{q}:events\r\n:2\r\n", EMQ_EPROTOCOL},
    {"-NOPERM no\r\n", EMQ_ENOPERM},
    {"-ERR unknown\r\n", EMQ_ESERVER},
    {NULL, EMQ_OK},
};
