/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and ending worker processes: see crew.h. */
#include "crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_MS 120000

static void log_path(char *out, size_t cap, const crew *c, size_t process) {
    (void)snprintf(out, cap, "%s/%zu.log", c->dir, process);
}

void crew_init(crew *c) {
    const char *parent = getenv("TMPDIR");
    (void)snprintf(c->dir, sizeof(c->dir), "%s/emq-fault-XXXXXX", parent == NULL ? "/tmp" : parent);
    if (mkdtemp(c->dir) == NULL) {
        fail_msg("mkdtemp: %s", strerror(errno));
    }
}

static void text_of(char out[16], unsigned number) {
    (void)snprintf(out, 16, "%u", number);
}

static void run_worker(const crew *c, const char *path) {
    char lease[16];
    char concurrency[16];
    char stop[16];
    text_of(lease, c->lease_ms);
    text_of(concurrency, c->concurrency);
    text_of(stop, c->stop_ms);
    (void)execl(c->program, c->program, c->socket, c->queue, path, lease, concurrency, stop,
                (char *)NULL);
    _exit(127);
}

void crew_start(crew *c, size_t place) {
    char path[SERVER_PATH_MAX + 32];
    assert_true(place < CREW_MAX && c->processes < CREW_PROCESSES_MAX);
    log_path(path, sizeof(path), c, c->processes);
    int log = record_open(path); /* it is there, also when the process comes to nothing */
    assert_true(log >= 0);
    (void)close(log);
    pid_t pid = fork();
    if (pid == 0) {
        run_worker(c, path);
    }
    assert_true(pid > 0);
    c->members[place] = (crew_member){.pid = pid, .process = c->processes++};
    c->count = place >= c->count ? place + 1 : c->count;
}

static int reap(crew_member *m) {
    int status = 0;
    while (waitpid(m->pid, &status, 0) < 0 && errno == EINTR) {
    }
    m->pid = 0;
    return status;
}

void crew_kill(crew *c, size_t place) {
    crew_member *m = &c->members[place];
    (void)kill(m->pid, SIGKILL);
    int status = reap(m);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fail_msg("worker %zu ended by itself: status %d", m->process, status);
    }
    c->killed[m->process] = 1;
}

void crew_stop(crew *c, size_t place, int64_t ms) {
    crew_member *m = &c->members[place];
    (void)kill(m->pid, SIGSTOP);
    m->continues_at = record_now_ms() + ms;
}

void crew_continue(crew *c, int64_t now_ms) {
    for (size_t i = 0; i < c->count; i++) {
        crew_member *m = &c->members[i];
        if (m->continues_at != 0 && m->continues_at <= now_ms) {
            m->continues_at = 0;
            (void)kill(m->pid, SIGCONT);
        }
    }
}

size_t crew_count_stopped(const crew *c) {
    size_t stopped = 0;
    for (size_t i = 0; i < c->count; i++) {
        stopped += c->members[i].continues_at != 0;
    }
    return stopped;
}

void crew_end(crew *c, size_t place) {
    crew_member *m = &c->members[place];
    int64_t give_up_at = record_now_ms() + END_MS;
    int status = 0;
    pid_t ended = 0;
    (void)kill(m->pid, SIGTERM);
    while ((ended = waitpid(m->pid, &status, WNOHANG)) == 0 && record_now_ms() < give_up_at) {
        (void)nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    if (ended != m->pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("worker %zu does not end as it should: status %d%s", m->process, status,
                 ended == 0 ? ", still running" : "");
    }
    m->pid = 0;
}

void crew_read(records *out, const crew *c) {
    char path[SERVER_PATH_MAX + 32];
    for (size_t i = 0; i < c->processes; i++) {
        log_path(path, sizeof(path), c, i);
        if (records_read(out, path, i) != 0) {
            fail_msg("%s: not the log of a worker", path);
        }
    }
}

void crew_clear(crew *c) {
    char path[SERVER_PATH_MAX + 32];
    for (size_t i = 0; i < c->processes; i++) {
        log_path(path, sizeof(path), c, i);
        (void)unlink(path);
    }
    (void)rmdir(c->dir);
}
