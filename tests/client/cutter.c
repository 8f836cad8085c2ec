/* SPDX-License-Identifier: Apache-2.0 */
#include "cutter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINKS 4
#define PATIENCE_SECONDS 120

/* One connection of a client, and the one to the server that goes with it. */
typedef struct cut_link {
    int client; /* -1: a free place */
    int server;
    redisReader *requests; /* what the client said */
    redisReader *answers;  /* what the server said since the request to cut at */
    char *held;            /* requests that were not passed on yet, or answers likewise */
    size_t held_size;
    int matched; /* requests of the armed name so far */
    int answered;
} cut_link;

struct cutter {
    char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct sockaddr_un server;
    int listener;
    int wake[2]; /* a byte: the armed cut has changed; closed: the end */
    pthread_t thread;
    cut_link links[LINKS]; /* the thread's own */
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    int is_armed;
    cut_point point;
    char name[32];
    int requests;
};

static int connect_to(const struct sockaddr_un *address) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static void close_link(cut_link *l) {
    if (l->client >= 0) {
        (void)close(l->client);
        (void)close(l->server);
        redisReaderFree(l->requests);
        redisReaderFree(l->answers);
        free(l->held);
    }
    memset(l, 0, sizeof(*l));
    l->client = l->server = -1;
}

static void accept_link(cutter *c) {
    int client = accept(c->listener, NULL, NULL);
    for (int i = 0; client >= 0 && i < LINKS; i++) {
        cut_link *l = &c->links[i];
        if (l->client < 0) {
            l->server = connect_to(&c->server);
            if (l->server >= 0) {
                l->client = client;
                l->requests = redisReaderCreate();
                l->answers = redisReaderCreate();
                return;
            }
        }
    }
    if (client >= 0) {
        (void)close(client);
    }
}

/* Small messages between two processes that read: blocking, and whole or not at all. */
static void pass(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return; /* the reading side sees the end of it */
        }
        bytes += sent;
        n -= (size_t)sent;
    }
}

static void hold(cut_link *l, const char *bytes, size_t n) {
    char *grown = realloc(l->held, l->held_size + n);
    if (grown != NULL) {
        memcpy(grown + l->held_size, bytes, n);
        l->held = grown;
        l->held_size += n;
    }
}

static void pass_held(cut_link *l, int fd, size_t n) {
    pass(fd, l->held, n);
    l->held_size = 0;
}

/* How many whole replies (requests are of the same form) a reader has, counting only those of a
 * name when there is one. */
static int count_whole(redisReader *reader, const char *name, int *whole) {
    void *reply = NULL;
    int named = 0;
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply != NULL) {
        const redisReply *r = reply;
        (*whole)++;
        named += name != NULL && r->type == REDIS_REPLY_ARRAY && r->elements > 0 &&
                 strcasecmp(r->element[0]->str, name) == 0;
        freeReplyObject(reply);
        reply = NULL;
    }
    return named;
}

static void cut(cutter *c, cut_link *l) {
    close_link(l);
    c->is_armed = 0;
    (void)pthread_cond_broadcast(&c->changed);
}

/* Nothing is passed on before it is known to be no part of a request to cut at. */
static void take_requests(cutter *c, cut_link *l, const char *bytes, size_t n) {
    int whole = 0;
    (void)redisReaderFeed(l->requests, bytes, n);
    hold(l, bytes, n);
    int named = count_whole(l->requests, c->is_armed ? c->name : NULL, &whole);
    l->matched += named;
    if (l->matched > 0 && l->matched < c->requests) {
        return; /* the rest of them is on its way */
    }
    if (l->matched > 0 && c->point == CUT_REQUEST) {
        cut(c, l);
        return;
    }
    if (whole > 0) {
        pass_held(l, l->server, l->held_size);
    }
}

/* Reads on until it has all answers that count; how many of the bytes that takes. Others may follow
 * in the same packet. */
static size_t read_answers(cut_link *l, int wanted, const char *bytes, size_t n) {
    size_t used = 0;
    while (used < n && l->answered < wanted) {
        (void)redisReaderFeed(l->answers, bytes + used, 1);
        (void)count_whole(l->answers, NULL, &l->answered);
        used++;
    }
    return used;
}

static void take_answers(cutter *c, cut_link *l, const char *bytes, size_t n) {
    if (l->matched == 0) {
        pass(l->client, bytes, n);
        return;
    }
    size_t counting = l->held_size + read_answers(l, c->requests, bytes, n);
    hold(l, bytes, n);
    if (l->answered == c->requests) {
        size_t passed = c->point == CUT_AFTER    ? l->held_size
                        : c->point == CUT_BEHIND ? counting
                        : c->point == CUT_HALF   ? counting / 2
                                                 : 0;
        pass_held(l, l->client, passed);
        cut(c, l);
    }
}

static void serve_link(cutter *c, cut_link *l, int fd) {
    char bytes[65536];
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n <= 0) {
        close_link(l);
    } else if (fd == l->client) {
        take_requests(c, l, bytes, (size_t)n);
    } else {
        take_answers(c, l, bytes, (size_t)n);
    }
}

static void cut_idle(cutter *c) {
    if (c->is_armed && c->point == CUT_IDLE) {
        for (int i = 0; i < LINKS; i++) {
            cut(c, &c->links[i]);
        }
    }
}

/* A byte on the wake pipe, or its end: 0. */
static int is_awake(cutter *c) {
    char byte = 0;
    return read(c->wake[0], &byte, 1) == 1;
}

static void *serve(void *data) {
    cutter *c = data;
    int is_running = 1;
    while (is_running) {
        struct pollfd fds[2 + 2 * LINKS] = {{c->wake[0], POLLIN, 0}, {c->listener, POLLIN, 0}};
        for (int i = 0; i < LINKS; i++) {
            fds[2 + 2 * i] = (struct pollfd){c->links[i].client, POLLIN, 0};
            fds[3 + 2 * i] = (struct pollfd){c->links[i].server, POLLIN, 0};
        }
        (void)poll(fds, 2 + 2 * LINKS, -1);
        (void)pthread_mutex_lock(&c->mutex);
        for (int i = 0; i < 2 * LINKS; i++) {
            cut_link *l = &c->links[i / 2];
            if (fds[2 + i].revents != 0 && l->client >= 0) {
                serve_link(c, l, fds[2 + i].fd);
            }
        }
        if (fds[1].revents != 0) {
            accept_link(c);
        }
        if (fds[0].revents != 0) {
            is_running = is_awake(c);
            cut_idle(c);
        }
        (void)pthread_mutex_unlock(&c->mutex);
    }
    return NULL;
}

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    return address;
}

cutter *cutter_start(const test_server *server) {
    cutter *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    for (int i = 0; i < LINKS; i++) {
        c->links[i].client = c->links[i].server = -1;
    }
    c->server = address_of(server->socket);
    int n = snprintf(c->socket, sizeof(c->socket), "%s/cut", server->dir);
    assert_true(n > 0 && (size_t)n < sizeof(c->socket));
    const struct sockaddr_un own = address_of(c->socket);
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(c->listener, (const struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(listen(c->listener, LINKS), 0);
    assert_int_equal(pipe(c->wake), 0);
    assert_int_equal(pthread_mutex_init(&c->mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&c->changed, NULL), 0);
    assert_int_equal(pthread_create(&c->thread, NULL, serve, c), 0);
    return c;
}

void cutter_stop(cutter *c) {
    if (c == NULL) {
        return;
    }
    (void)close(c->wake[1]);
    (void)pthread_join(c->thread, NULL);
    for (int i = 0; i < LINKS; i++) {
        close_link(&c->links[i]);
    }
    (void)close(c->listener);
    (void)close(c->wake[0]);
    (void)unlink(c->socket);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->mutex);
    free(c);
}

const char *cutter_socket(const cutter *c) {
    return c->socket;
}

void cutter_arm(cutter *c, cut_point point, const char *name, int requests) {
    (void)pthread_mutex_lock(&c->mutex);
    c->is_armed = 1;
    c->point = point;
    c->requests = requests;
    (void)snprintf(c->name, sizeof(c->name), "%s", name);
    (void)pthread_mutex_unlock(&c->mutex);
    assert_int_equal(write(c->wake[1], "", 1), 1);
}

void cutter_wait(cutter *c) {
    struct timespec until;
    int result = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    (void)pthread_mutex_lock(&c->mutex);
    while (c->is_armed && result == 0) {
        result = pthread_cond_timedwait(&c->changed, &c->mutex, &until);
    }
    int is_armed = c->is_armed;
    (void)pthread_mutex_unlock(&c->mutex);
    if (is_armed) {
        fail_msg("no cut was made at %s", c->name);
    }
}
