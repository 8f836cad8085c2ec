/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous client and forks: a child has no part in the parent's connection, whatever it
 * does with its copy of the client and of the loop. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async.h"
#include "command.h"
#include "loop.h"

#define ROUNDS 20

static test_server server;

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

/* A client with a request that waits, and what the child finds in its copy. */
typedef struct scene {
    test_loop t;
    emq_request *waiting; /* submitted */
    outcome out;          /* of it */
    emq_request *own;     /* not submitted */
} scene;

static void open_scene(scene *s, const emq_client_options *options, emq_request *request) {
    static const emq_async_options long_pause = {
        .size = sizeof(emq_async_options), .backoff_min_ms = LONG_MS, .backoff_max_ms = LONG_MS};
    memset(s, 0, sizeof(*s));
    loop_open(&s->t, options, &long_pause);
    s->waiting = loop_submit(&s->t, request, &s->out);
    s->own = ping_request();
}

static void close_scene(scene *s) {
    emq_request_free(s->own);
    loop_finish(&s->t);
    outcome_clear(&s->out);
}

static long long connection_id(test_loop *t) {
    static const char *const words[] = {"CLIENT", "ID"};
    emq_request *request = NULL;
    assert_int_equal(emq_request_command(&request, 2, words, NULL), EMQ_OK);
    outcome out = do_request(t, request);
    EXPECT_OUTCOME(&out, EMQ_OK);
    long long id = emq_reply_get_integer(out.reply);
    outcome_clear(&out);
    return id;
}

/* What children do. */

static void use(void *data) {
    scene *s = data;
    emq_async *client = s->t.client;
    outcome *out = &s->out;
    CHECK_IN_CHILD(emq_async_get_state(client) == EMQ_ASYNC_CLOSED);
    CHECK_IN_CHILD(strcmp(emq_async_get_error(client), emq_strerror(EMQ_EFORKED)) == 0);
    CHECK_IN_CHILD(emq_async_submit(client, s->own, note_outcome, out) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_async_submit_threadsafe(client, s->own, note_outcome, out) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_request_cancel(s->waiting) == EMQ_EFORKED);
    CHECK_IN_CHILD(emq_async_reconnect(client) == EMQ_EFORKED);
    emq_request_free(s->own);
    CHECK_IN_CHILD(out->calls == 0);
}

static void close_at_once(void *data) {
    scene *s = data;
    use(data);
    CHECK_IN_CHILD(emq_async_close(s->t.client, NULL, NULL) == EMQ_OK);
    CHECK_IN_CHILD(emq_async_close(s->t.client, NULL, NULL) == EMQ_ECLOSED);
    CHECK_IN_CHILD(s->out.calls == 0);
}

/* With the loop made its own. */
static void run_loop(void *data) {
    scene *s = data;
    int told = s->t.told;
    CHECK_IN_CHILD(uv_loop_fork(&s->t.loop) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        (void)uv_run(&s->t.loop, UV_RUN_ONCE);
    }
    use(data);
    CHECK_IN_CHILD(s->t.told == told);
}

static void note_close(void *user) {
    int *closes = user;
    (*closes)++;
}

static void end_loop(void *data) {
    scene *s = data;
    int closes = 0;
    CHECK_IN_CHILD(uv_loop_fork(&s->t.loop) == 0);
    CHECK_IN_CHILD(emq_async_close(s->t.client, note_close, &closes) == EMQ_OK);
    CHECK_IN_CHILD(s->out.calls == 0);
    uv_close((uv_handle_t *)&s->t.pulse, NULL);
    CHECK_IN_CHILD(uv_run(&s->t.loop, UV_RUN_DEFAULT) == 0);
    CHECK_IN_CHILD(closes == 1);
    CHECK_IN_CHILD(s->out.calls == 1 && s->out.result == EMQ_EFORKED);
    CHECK_IN_CHILD(uv_loop_close(&s->t.loop) == 0);
}

static void (*const bodies[])(void *) = {use, close_at_once, run_loop, end_loop};

static void run_children(scene *s) {
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        run_child(bodies[i], s);
    }
    assert_int_equal(s->out.calls, 0);
}

/* Where parents are. */

static emq_request *waiting_claim(void) {
    emq_request *request = NULL;
    assert_int_equal(emq_request_claims(&request, "q", 60000, 1, LONG_MS), EMQ_OK);
    return request;
}

/* Neither a byte nor an end, and the loop still watches: the answer comes, on the very connection.
 */
static void a_child_has_no_part_in_a_connection(void **state) {
    (void)state;
    emq_client_options by_path = options_for_server(&server);
    emq_client *other = open_client(&by_path);
    for (int over_tcp = 0; over_tcp < 2; over_tcp++) {
        scene s;
        emq_id id = {{0}};
        emq_client_options options = by_path;
        if (over_tcp) {
            options.unix_path = NULL;
            options.port = (uint16_t)server.port;
        }
        open_scene(&s, &options, ping_request());
        loop_until_ended(&s.t, &s.out, 1);
        outcome_clear(&s.out);
        long long connection = connection_id(&s.t);
        s.waiting = loop_submit(&s.t, waiting_claim(), &s.out);
        loop_rest(&s.t);
        run_children(&s);
        EXPECT_RESULT(other, emq_enqueue(&id, other, "q", "p", 1), EMQ_OK);
        loop_until_ended(&s.t, &s.out, 1);
        EXPECT_OUTCOME(&s.out, EMQ_OK);
        assert_int_equal(connection_id(&s.t), connection);
        assert_int_equal(s.t.told, 2);
        close_scene(&s);
    }
    emq_client_close(other);
}

/* Before the loop has run, in the connect, and in the pause behind it. */
static void a_child_has_no_part_in_an_attempt(void **state) {
    scene s;
    int sockets[2];
    int reserved = -1;
    (void)state;
    emq_client_options options = options_for_server(&server);
    open_scene(&s, &options, ping_request());
    run_children(&s);
    loop_until_ended(&s.t, &s.out, 1);
    EXPECT_OUTCOME(&s.out, EMQ_OK);
    close_scene(&s);
    options.unix_path = NULL;
    options.port = deaf_port(sockets);
    open_scene(&s, &options, ping_request());
    loop_rest(&s.t);
    run_children(&s);
    assert_int_equal(emq_async_get_state(s.t.client), EMQ_ASYNC_CONNECTING);
    close_scene(&s);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
    options.port = closed_port(&reserved);
    open_scene(&s, &options, ping_request());
    loop_until_state(&s.t, EMQ_ASYNC_CLOSED);
    run_children(&s);
    assert_int_equal(emq_async_get_state(s.t.client), EMQ_ASYNC_CLOSED);
    close_scene(&s);
    (void)close(reserved);
}

/* On the connect path: what the peer says behind the fork is the parent's to read. */
static void a_child_has_no_part_in_a_handshake(void **state) {
    scene s;
    const peer_script script = {.steps = {{PEER_HOLD, NULL, 0}, {PEER_HOLD, NULL, 0}}};
    (void)state;
    peer *p = peer_start(&script);
    emq_client_options options = options_for_peer(p);
    open_scene(&s, &options, ping_request());
    while (peer_commands(p) < PEER_HANDSHAKE_COMMANDS) {
        (void)uv_run(&s.t.loop, UV_RUN_ONCE);
    }
    peer_act(p, (peer_step)PEER_SENDS(PEER_OK PEER_VERSION));
    run_children(&s);
    peer_act(p, (peer_step)PEER_SENDS(PEER_WIRE));
    loop_until_state(&s.t, EMQ_ASYNC_OPEN);
    assert_int_equal(peer_connections(p), 1);
    close_scene(&s);
    peer_stop(p);
}

/* What another thread held at the moment of the fork is held for ever in the child. */
static void a_lock_that_was_held_holds_up_no_child(void **state) {
    scene s;
    outcome mailed = {0};
    (void)state;
    emq_client_options options = options_for_server(&server);
    open_scene(&s, &options, ping_request());
    assert_int_equal(emq_async_submit_threadsafe(s.t.client, ping_request(), note_outcome, &mailed),
                     EMQ_OK);
    run_child(end_loop, &s);
    uv_mutex_lock(&s.t.client->mutex);
    run_child(close_at_once, &s);
    run_child(end_loop, &s);
    uv_mutex_unlock(&s.t.client->mutex);
    loop_until_ended(&s.t, &mailed, 1);
    EXPECT_OUTCOME(&mailed, EMQ_OK);
    outcome_clear(&mailed);
    close_scene(&s);
}

/* From inside a callback, while others are due: they are the parent's, with what they got. */

#define CLAIMS 3

typedef struct forks {
    test_loop t;
    outcome claimed[CLAIMS];
    int forked;
} forks;

static void close_in_callback(void *data) {
    forks *f = data;
    int closes = 0;
    CHECK_IN_CHILD(uv_loop_fork(&f->t.loop) == 0);
    CHECK_IN_CHILD(emq_async_close(f->t.client, note_close, &closes) == EMQ_OK);
    emq_session_settle(&f->t.client->session); /* as behind the callback */
    uv_close((uv_handle_t *)&f->t.pulse, NULL);
    CHECK_IN_CHILD(uv_run(&f->t.loop, UV_RUN_DEFAULT) == 0);
    CHECK_IN_CHILD(closes == 1);
    for (int i = 0; i < CLAIMS; i++) {
        CHECK_IN_CHILD(f->claimed[i].calls == 1 && f->claimed[i].result == EMQ_EFORKED);
    }
}

static void go_on_in_callback(void *data) {
    forks *f = data;
    emq_session_settle(&f->t.client->session);
    for (int i = 0; i < CLAIMS; i++) {
        CHECK_IN_CHILD(f->claimed[i].calls == 0);
    }
}

static void fork_in_callback(emq_request *request, int result, void *user) {
    forks *f = user;
    (void)request;
    assert_int_equal(result, EMQ_OK);
    f->forked++;
    run_child(go_on_in_callback, f);
    run_child(close_in_callback, f);
}

static int has_forked(void *data) {
    const forks *f = data;
    return f->forked > 0;
}

static void a_child_of_a_callback_gets_no_results(void **state) {
    static const char *const words[] = {"PING"};
    forks f = {.forked = 0};
    emq_request *request = NULL;
    (void)state;
    emq_client_options options = options_for_server(&server);
    run(server.admin, "DEL", "emq:{q}:pending", NULL);
    loop_open(&f.t, &options, NULL);
    loop_until_state(&f.t, EMQ_ASYNC_OPEN);
    for (int i = 0; i < CLAIMS; i++) {
        outcome out = do_request(&f.t, enqueue_request("q", "p", 1));
        EXPECT_OUTCOME(&out, EMQ_OK);
    }
    assert_int_equal(emq_request_command(&request, 1, words, NULL), EMQ_OK);
    assert_int_equal(emq_async_submit(f.t.client, request, fork_in_callback, &f), EMQ_OK);
    for (int i = 0; i < CLAIMS; i++) {
        loop_submit(&f.t, claim_request("q"), &f.claimed[i]);
    }
    loop_until(&f.t, has_forked, &f);
    loop_until_ended(&f.t, f.claimed, CLAIMS);
    for (int i = 0; i < CLAIMS; i++) {
        EXPECT_OUTCOME(&f.claimed[i], EMQ_OK);
        outcome_clear(&f.claimed[i]);
    }
    loop_finish(&f.t);
}

/* A loop of its own, and a client on it. */
static void work_in_child(void *data) {
    const emq_client_options *options = data;
    uv_loop_t loop;
    emq_async *client = NULL;
    emq_request *request = NULL;
    outcome out = {0};
    int closes = 0;
    CHECK_IN_CHILD(uv_loop_init(&loop) == 0);
    CHECK_IN_CHILD(emq_async_open(&client, &loop, options, NULL) == EMQ_OK);
    CHECK_IN_CHILD(emq_request_enqueue(&request, NULL, "own", "p", 1) == EMQ_OK);
    CHECK_IN_CHILD(emq_async_submit(client, request, note_outcome, &out) == EMQ_OK);
    while (out.calls == 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    CHECK_IN_CHILD(out.result == EMQ_OK);
    CHECK_IN_CHILD(emq_async_close(client, note_close, &closes) == EMQ_OK);
    CHECK_IN_CHILD(uv_run(&loop, UV_RUN_DEFAULT) == 0 && closes == 1);
    CHECK_IN_CHILD(uv_loop_close(&loop) == 0);
}

static void a_child_opens_clients_of_its_own(void **state) {
    scene s;
    (void)state;
    emq_client_options options = options_for_server(&server);
    open_scene(&s, &options, ping_request());
    loop_until_ended(&s.t, &s.out, 1);
    run_child(work_in_child, &options);
    assert_true(connection_id(&s.t) > 0);
    close_scene(&s);
}

static void another_program_inherits_nothing(void **state) {
    scene s;
    (void)state;
    emq_client_options options = options_for_server(&server);
    open_scene(&s, &options, ping_request());
    loop_until_ended(&s.t, &s.out, 1);
    int fd = s.t.client->session.link->fd;
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_no_part_in_a_connection),
        cmocka_unit_test(a_child_has_no_part_in_an_attempt),
        cmocka_unit_test(a_child_has_no_part_in_a_handshake),
        cmocka_unit_test(a_lock_that_was_held_holds_up_no_child),
        cmocka_unit_test(a_child_of_a_callback_gets_no_results),
        cmocka_unit_test(a_child_opens_clients_of_its_own),
        cmocka_unit_test(another_program_inherits_nothing),
    };
    return RUN_SERVER_TESTS("client.async_process", tests, start_server, stop_server);
}
