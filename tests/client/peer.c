/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted peer: one thread, one connection at a time. */
#include "peer.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmocka_all.h"

#define COMMANDS_MAX 64
#define DRIP_MS 20
#define STOP 's'
#define ACT 'a'

struct peer {
    peer_script script;
    pthread_t thread;
    int listener;
    int orders[2]; /* a pipe: STOP or ACT */
    uint16_t port;
    /* the thread's own: the connection, or -1, and how far it has come */
    int connection;
    redisReader *reader;
    int is_deaf;
    int step;
    size_t came_in;
    char buffer[65536];
    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t acted;
    const peer_step *ordered;
    int connections;
    int commands;
    size_t bytes;
    char *texts[COMMANDS_MAX];
};

static void close_connection(peer *p, int with_reset) {
    const struct linger reset = {1, 0};
    if (p->connection >= 0) {
        if (with_reset) {
            (void)setsockopt(p->connection, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        (void)close(p->connection);
        p->connection = -1;
    }
}

static int is_stopped(peer *p, int wait_ms) {
    struct pollfd waited = {p->orders[0], POLLIN, 0};
    return poll(&waited, 1, wait_ms) != 0;
}

/* Sends all of it; gives up when the connection ends or the peer is stopped. */
static void send_bytes(peer *p, const char *bytes, size_t n) {
    while (n > 0 && p->connection >= 0 && !is_stopped(p, 0)) {
        struct pollfd waited = {p->connection, POLLOUT, 0};
        if (poll(&waited, 1, DRIP_MS) <= 0) {
            continue;
        }
        ssize_t sent = send(p->connection, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return;
        }
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
}

static void drip_bytes(peer *p, const char *bytes, size_t n) {
    for (size_t i = 0; i < n && !is_stopped(p, DRIP_MS); i++) {
        if (send(p->connection, bytes + i, 1, MSG_NOSIGNAL) != 1) {
            return;
        }
    }
}

static void act(peer *p, const peer_step *step) {
    size_t n = step->length != 0 || step->bytes == NULL ? step->length : strlen(step->bytes);
    switch (step->action) {
    case PEER_HOLD:
        break;
    case PEER_SEND:
        send_bytes(p, step->bytes, n);
        break;
    case PEER_DRIP:
        drip_bytes(p, step->bytes, n);
        break;
    case PEER_FLOOD:
        while (!is_stopped(p, 0) && send(p->connection, step->bytes, n, MSG_NOSIGNAL) > 0) {
        }
        break;
    case PEER_SEND_AND_CLOSE:
        send_bytes(p, step->bytes, n);
        close_connection(p, 0);
        break;
    case PEER_CLOSE:
        close_connection(p, 0);
        break;
    case PEER_RESET:
        close_connection(p, 1);
        break;
    case PEER_DEAF:
        p->is_deaf = 1;
        (void)shutdown(p->connection, SHUT_RD);
        break;
    }
}

/* Notes a command; its words are joined, and cut where they are long. */
static void note_command(peer *p, const redisReply *command) {
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < command->elements; i++) {
        const redisReply *word = command->element[i];
        size_t n = word->len < sizeof(text) - 2 - used ? word->len : sizeof(text) - 2 - used;
        if (i > 0) {
            text[used++] = ' ';
        }
        n = n < sizeof(text) - 1 - used ? n : sizeof(text) - 1 - used;
        memcpy(text + used, word->str, n);
        used += n;
    }
    text[used] = '\0';
    (void)pthread_mutex_lock(&p->mutex);
    if (p->commands < COMMANDS_MAX) {
        p->texts[p->commands] = strdup(text);
    }
    p->commands++;
    (void)pthread_mutex_unlock(&p->mutex);
}

static void take_commands(peer *p) {
    void *command = NULL;
    while (p->connection >= 0 && redisReaderGetReply(p->reader, &command) == REDIS_OK &&
           command != NULL) {
        note_command(p, command);
        freeReplyObject(command);
        if (p->step < PEER_STEPS_MAX) {
            act(p, &p->script.steps[p->step++]);
        }
    }
}

static void receive(peer *p) {
    size_t limit = sizeof(p->buffer);
    if (p->script.interrupt_at > p->came_in && p->script.interrupt_at - p->came_in < limit) {
        limit = p->script.interrupt_at - p->came_in;
    }
    ssize_t n = recv(p->connection, p->buffer, limit, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            close_connection(p, 0);
        }
        return;
    }
    p->came_in += (size_t)n;
    (void)pthread_mutex_lock(&p->mutex);
    p->bytes += (size_t)n;
    (void)pthread_mutex_unlock(&p->mutex);
    (void)redisReaderFeed(p->reader, p->buffer, (size_t)n);
    if (p->script.interrupt_at != 0 && p->came_in == p->script.interrupt_at) {
        act(p, &p->script.interrupt);
    }
    take_commands(p);
}

static void accept_connection(peer *p) {
    close_connection(p, 0);
    redisReaderFree(p->reader);
    p->reader = redisReaderCreate();
    p->is_deaf = 0;
    p->step = 0;
    p->came_in = 0;
    p->connection = accept(p->listener, NULL, NULL);
    (void)pthread_mutex_lock(&p->mutex);
    p->connections++;
    (void)pthread_mutex_unlock(&p->mutex);
    act(p, &p->script.greeting);
}

/* Does what the test's thread ordered; returns 0 when that is to stop. */
static int obey(peer *p) {
    char order = STOP;
    if (read(p->orders[0], &order, 1) != 1 || order == STOP) {
        return 0;
    }
    (void)pthread_mutex_lock(&p->mutex);
    act(p, p->ordered);
    p->ordered = NULL;
    (void)pthread_cond_signal(&p->acted);
    (void)pthread_mutex_unlock(&p->mutex);
    return 1;
}

static void *run_peer(void *data) {
    peer *p = data;
    for (;;) {
        struct pollfd waited[] = {{p->orders[0], POLLIN, 0},
                                  {p->listener, POLLIN, 0},
                                  {p->is_deaf ? -1 : p->connection, POLLIN, 0}};
        if (poll(waited, 3, -1) < 0) {
            continue;
        }
        if (waited[0].revents != 0) {
            if (!obey(p)) {
                return NULL;
            }
        } else if (waited[2].revents != 0) {
            receive(p);
        } else if (waited[1].revents != 0) {
            accept_connection(p);
        }
    }
}

static void listen_on_unix(peer *p, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void listen_on_tcp(peer *p) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&address, &length), 0);
    p->port = ntohs(address.sin_port);
}

peer *peer_start(const peer_script *script) {
    peer *p = calloc(1, sizeof(*p));
    assert_non_null(p);
    p->script = *script;
    p->connection = -1;
    p->reader = redisReaderCreate();
    if (script->unix_path != NULL) {
        listen_on_unix(p, script->unix_path);
    } else {
        listen_on_tcp(p);
    }
    assert_int_equal(listen(p->listener, 16), 0);
    assert_int_equal(pipe(p->orders), 0);
    assert_int_equal(pthread_mutex_init(&p->mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&p->acted, NULL), 0);
    assert_int_equal(pthread_create(&p->thread, NULL, run_peer, p), 0);
    return p;
}

void peer_stop(peer *p) {
    const char order = STOP;
    assert_int_equal(write(p->orders[1], &order, 1), 1);
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    close_connection(p, 0);
    (void)close(p->listener);
    (void)close(p->orders[0]);
    (void)close(p->orders[1]);
    redisReaderFree(p->reader);
    for (int i = 0; i < COMMANDS_MAX; i++) {
        free(p->texts[i]);
    }
    (void)pthread_cond_destroy(&p->acted);
    (void)pthread_mutex_destroy(&p->mutex);
    free(p);
}

uint16_t peer_port(const peer *p) {
    return p->port;
}

int peer_connections(peer *p) {
    (void)pthread_mutex_lock(&p->mutex);
    int count = p->connections;
    (void)pthread_mutex_unlock(&p->mutex);
    return count;
}

int peer_commands(peer *p) {
    (void)pthread_mutex_lock(&p->mutex);
    int count = p->commands;
    (void)pthread_mutex_unlock(&p->mutex);
    return count;
}

size_t peer_bytes(peer *p) {
    (void)pthread_mutex_lock(&p->mutex);
    size_t count = p->bytes;
    (void)pthread_mutex_unlock(&p->mutex);
    return count;
}

char *peer_command(peer *p, int number) {
    char *text = NULL;
    (void)pthread_mutex_lock(&p->mutex);
    if (number < p->commands && number < COMMANDS_MAX) {
        text = strdup(p->texts[number]);
    }
    (void)pthread_mutex_unlock(&p->mutex);
    assert_non_null(text);
    return text;
}

void peer_act(peer *p, peer_step step) {
    const char order = ACT;
    (void)pthread_mutex_lock(&p->mutex);
    p->ordered = &step;
    assert_int_equal(write(p->orders[1], &order, 1), 1);
    while (p->ordered != NULL) {
        (void)pthread_cond_wait(&p->acted, &p->mutex);
    }
    (void)pthread_mutex_unlock(&p->mutex);
}
