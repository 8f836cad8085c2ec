/* SPDX-License-Identifier: Apache-2.0 */
/* Running a command for a job: see child.h. It is a group of its own, so that what it has started
 * ends with it; it stays a zombie until the group was ended, so that nobody else gets its number.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 20       /* how often it is looked for what no descriptor tells */
#define PIECE_BYTES 4096 /* what a pipe that can be written to takes at once */
#define PIECES 64        /* read in one go */
#define CLOSED (-1)

typedef struct child {
    const child_order *order;
    child_end *end;
    pid_t pid;
    int input;  /* of the command: we write */
    int errors; /* of the command: we read */
    size_t written;
    int64_t timeout_at_ms;
    int64_t kill_at_ms; /* once it was told to stop; 0 before */
    int is_killed;
} child;

static int64_t now_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void close_end(int *fd) {
    if (*fd != CLOSED) {
        (void)close(*fd);
        *fd = CLOSED;
    }
}

static void close_pipe(int ends[2]) {
    close_end(&ends[0]);
    close_end(&ends[1]);
}

static int open_pipe(int ends[2]) {
    if (pipe(ends) != 0) {
        ends[0] = ends[1] = CLOSED;
        return errno;
    }
    for (int i = 0; i < 2; i++) {
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0) {
            return errno;
        }
    }
    return 0;
}

static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none;
    sigset_t usual;
    (void)sigemptyset(&none);
    (void)sigfillset(&usual);
    int result = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    result = result ? result : posix_spawnattr_setpgroup(attributes, 0);
    result = result ? result : posix_spawnattr_setsigmask(attributes, &none);
    return result ? result : posix_spawnattr_setsigdefault(attributes, &usual);
}

static int set_actions(posix_spawn_file_actions_t *actions, const child_order *order, int input,
                       int errors) {
    int result = posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
    if (result == 0 && order->has_no_output) {
        result = posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
    }
    return result ? result : posix_spawn_file_actions_adddup2(actions, errors, STDERR_FILENO);
}

static int spawn(pid_t *pid, const child_order *order, int input, int errors) {
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int result = posix_spawnattr_init(&attributes);
    if (result != 0) {
        return result;
    }
    result = posix_spawn_file_actions_init(&actions);
    if (result == 0) {
        result = set_attributes(&attributes);
        result = result ? result : set_actions(&actions, order, input, errors);
        if (result == 0) {
            result =
                posix_spawnp(pid, order->argv[0], &actions, &attributes, order->argv, order->envp);
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)posix_spawnattr_destroy(&attributes);
    return result;
}

/* One at a time: between a pipe and its close-on-exec flag no other command must start, or it would
 * hold this one's input open. */
static int start(child *c) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    int input[2] = {CLOSED, CLOSED};
    int errors[2] = {CLOSED, CLOSED};
    (void)pthread_mutex_lock(&one_at_a_time);
    int result = open_pipe(input);
    result = result ? result : open_pipe(errors);
    result = result ? result : spawn(&c->pid, c->order, input[0], errors[1]);
    if (result == 0) {
        c->input = input[1];
        c->errors = errors[0];
        input[1] = errors[0] = CLOSED; /* ours */
    }
    close_pipe(input);
    close_pipe(errors);
    (void)pthread_mutex_unlock(&one_at_a_time);
    return result;
}

/* A command that reads no more of its input has had enough of it. */
static void write_input(child *c) {
    const char *from = c->order->input;
    while (c->written < c->order->input_size) {
        ssize_t n = write(c->input, from + c->written, c->order->input_size - c->written);
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            break;
        }
        c->written += (size_t)n;
    }
    close_end(&c->input);
}

static void keep_tail(child_end *end, const char *bytes, size_t n) {
    if (n >= sizeof(end->tail)) {
        bytes += n - sizeof(end->tail);
        n = sizeof(end->tail);
    }
    if (end->tail_size + n > sizeof(end->tail)) {
        size_t dropped = end->tail_size + n - sizeof(end->tail);
        memmove(end->tail, end->tail + dropped, end->tail_size - dropped);
        end->tail_size -= dropped;
    }
    memcpy(end->tail + end->tail_size, bytes, n);
    end->tail_size += n;
}

/* Whether our own standard error takes something without making us wait: whoever reads it may have
 * stopped to, and the command has to be ended in time all the same. */
static int can_pass_on(void) {
    struct pollfd one = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&one, 1, 0) != 0; /* an error is the write's to find */
}

/* One at a time, or another command's words would take the room that was found. */
static void pass_on(const char *bytes, size_t n) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    ssize_t written = 0;
    (void)pthread_mutex_lock(&one_at_a_time);
    while (n > 0 && written >= 0 && can_pass_on()) {
        written = write(STDERR_FILENO, bytes, n);
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        } else if (written < 0 && errno == EINTR) {
            written = 0;
        }
    }
    (void)pthread_mutex_unlock(&one_at_a_time);
}

/* What is there now, at the end whether somebody takes it or not. A command that never stops to
 * speak is looked after all the same. */
static void read_errors(child *c, int is_last) {
    char bytes[PIECE_BYTES];
    for (int i = 0; i < PIECES && c->errors != CLOSED; i++) {
        ssize_t n = read(c->errors, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            close_end(&c->errors);
            return;
        }
        keep_tail(c->end, bytes, (size_t)n);
        pass_on(bytes, (size_t)n);
        if (!is_last && !can_pass_on()) {
            return;
        }
    }
}

/* While nobody takes what the command says, it has to wait with it. */
static void exchange(child *c) {
    int is_taken = c->errors == CLOSED || can_pass_on();
    struct pollfd ends[] = {{.fd = c->input, .events = POLLOUT},
                            {.fd = c->errors, .events = POLLIN}};
    if (!is_taken) {
        ends[1] = (struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT};
    }
    (void)poll(ends, 2, LOOK_MS); /* a closed one is passed over */
    if (c->input != CLOSED && ends[0].revents != 0) {
        write_input(c);
    }
    if (c->errors != CLOSED && is_taken && ends[1].revents != 0) {
        read_errors(c, 0);
    }
}

static void end_group(child *c) {
    if (!c->is_killed) {
        (void)kill(-c->pid, SIGKILL);
        c->is_killed = 1;
    }
}

static void supervise(child *c) {
    int64_t now = now_ms();
    child_advice advice = c->order->ask(c->order->user);
    c->end->is_ended = c->end->is_ended || advice != CHILD_GO_ON;
    if (c->kill_at_ms == 0 && (advice == CHILD_STOP || now >= c->timeout_at_ms)) {
        c->end->is_timed_out = advice == CHILD_GO_ON;
        c->kill_at_ms = now + c->order->grace_ms;
        (void)kill(-c->pid, SIGTERM);
    }
    if (advice == CHILD_KILL || (c->kill_at_ms != 0 && now >= c->kill_at_ms)) {
        end_group(c);
    }
}

static int has_exited(const child *c) {
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == c->pid;
}

/* What the command leaves behind may go on, unless it was told to stop. */
static void finish(child *c) {
    if (c->errors != CLOSED) {
        read_errors(c, 1);
    }
    if (c->kill_at_ms != 0 || c->is_killed) {
        c->is_killed = 0;
        end_group(c);
    }
    while (waitpid(c->pid, &c->end->status, 0) < 0 && errno == EINTR) {
    }
    close_end(&c->input);
    close_end(&c->errors);
}

int child_run(child_end *out, const child_order *order) {
    child c = {.order = order, .end = out, .input = CLOSED, .errors = CLOSED};
    memset(out, 0, sizeof(*out));
    int result = start(&c);
    if (result != 0) {
        return result;
    }
    c.timeout_at_ms = now_ms() + order->timeout_ms;
    (void)fcntl(c.input, F_SETFL, O_NONBLOCK);
    (void)fcntl(c.errors, F_SETFL, O_NONBLOCK);
    while (!has_exited(&c)) {
        exchange(&c);
        supervise(&c);
    }
    finish(&c);
    return 0;
}
