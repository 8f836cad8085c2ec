/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses. getaddrinfo has no deadline and can't be interrupted, so a name is looked up
 * in a thread of its own. A caller who gives up leaves the look-up to that thread: whoever of the
 * two is the last to let go of it frees it, so a late answer touches nothing that is gone. A silent
 * name server would let such threads pile up, so that there is an end to their number. */
#include "resolve.h"

#include <emq/error.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "memory.h"

#define ABANDONED_MAX 16

/* How many look-ups of this process nobody waits for, in the lower half; the upper half is the
 * process, since a forked child has none of its parent's threads. */
static _Atomic uint64_t abandoned;

static uint32_t count_of(uint64_t value) {
    return value >> 32 == (uint64_t)getpid() ? (uint32_t)value : 0;
}

static uint32_t count_abandoned(void) {
    return count_of(atomic_load(&abandoned));
}

static void change_abandoned(int by) {
    uint64_t value = atomic_load(&abandoned);
    uint64_t next = 0;
    do {
        next = (uint64_t)getpid() << 32 | (count_of(value) + (uint32_t)by);
    } while (!atomic_compare_exchange_weak(&abandoned, &value, next));
}

typedef struct lookup {
    atomic_int holders;
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    int is_answered;
    int is_abandoned;
    int code; /* of getaddrinfo */
    struct addrinfo *addresses;
    char service[EMQ_SERVICE_MAX];
    char host[];
} lookup;

static int look_up(struct addrinfo **out, const char *host, const char *service, int flags) {
    const struct addrinfo hints = {
        .ai_flags = flags, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    *out = NULL;
    return getaddrinfo(host, service, &hints, out);
}

static lookup *lookup_new(const char *host, const char *service) {
    size_t length = strlen(host);
    lookup *l = emq_calloc(1, sizeof(*l) + length + 1);
    if (l == NULL) {
        return NULL;
    }
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&l->answered, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&l->mutex, NULL);
    atomic_init(&l->holders, 2);
    memcpy(l->host, host, length + 1);
    memcpy(l->service, service, strlen(service) + 1);
    return l;
}

static void lookup_free(lookup *l) {
    if (l->addresses != NULL) {
        freeaddrinfo(l->addresses);
    }
    (void)pthread_cond_destroy(&l->answered);
    (void)pthread_mutex_destroy(&l->mutex);
    emq_free(l);
}

static void lookup_release(lookup *l) {
    if (atomic_fetch_sub(&l->holders, 1) == 1) {
        lookup_free(l);
    }
}

static void *run_lookup(void *data) {
    lookup *l = data;
    struct addrinfo *addresses = NULL;
    int code = look_up(&addresses, l->host, l->service, AI_NUMERICSERV);
    (void)pthread_mutex_lock(&l->mutex);
    l->code = code;
    l->addresses = addresses;
    l->is_answered = 1;
    if (l->is_abandoned) {
        change_abandoned(-1);
    }
    (void)pthread_cond_signal(&l->answered);
    (void)pthread_mutex_unlock(&l->mutex);
    lookup_release(l);
    return NULL;
}

/* The thread takes no signals: they are the host's. */
static int start_thread(lookup *l) {
    sigset_t all;
    sigset_t mask;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return 0;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
    int failed = pthread_create(&thread, &attributes, run_lookup, l);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    (void)pthread_attr_destroy(&attributes);
    return failed == 0;
}

/* Takes the answer out; returns 0 when the deadline passed before there was one. */
static int await_answer(lookup *l, int *code, struct addrinfo **addresses, emq_deadline deadline) {
    (void)pthread_mutex_lock(&l->mutex);
    while (!l->is_answered && emq_deadline_left_ms(deadline) > 0) {
        const struct timespec until = emq_deadline_timespec(emq_deadline_slice(deadline));
        (void)pthread_cond_timedwait(&l->answered, &l->mutex, &until);
    }
    int is_answered = l->is_answered;
    if (is_answered) {
        *code = l->code;
        *addresses = l->addresses;
        l->addresses = NULL;
    } else {
        l->is_abandoned = 1;
        change_abandoned(1);
    }
    (void)pthread_mutex_unlock(&l->mutex);
    return is_answered;
}

static int resolve_name(int *code, struct addrinfo **out, const char *host, const char *service,
                        emq_deadline deadline, emq_text *error) {
    if (count_abandoned() >= ABANDONED_MAX) {
        return emq_text_fail(error, EMQ_ERESOLVE,
                             "%s was not looked up: the name server owes %d answers already", host,
                             ABANDONED_MAX);
    }
    lookup *l = lookup_new(host, service);
    if (l == NULL) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    if (!start_thread(l)) {
        lookup_free(l);
        return emq_text_fail(error, EMQ_ESYSTEM, "no thread could be started to resolve %s", host);
    }
    int is_answered = await_answer(l, code, out, deadline);
    lookup_release(l);
    return is_answered ? EMQ_OK
                       : emq_text_fail(error, EMQ_ETIMEOUT, "resolving %s took too long", host);
}

int emq_resolve_fail(emq_text *error, int code, const char *host) {
    if (code == EAI_MEMORY) {
        return emq_text_fail_plain(error, EMQ_ENOMEM);
    }
    return emq_text_fail(error, EMQ_ERESOLVE, "%s: %s", host, gai_strerror(code));
}

int emq_resolve_address(struct addrinfo **out, const char *host, uint16_t port) {
    char service[EMQ_SERVICE_MAX];
    emq_resolve_service(service, port);
    return look_up(out, host, service, AI_NUMERICHOST | AI_NUMERICSERV);
}

void emq_resolve_service(char service[EMQ_SERVICE_MAX], uint16_t port) {
    (void)snprintf(service, EMQ_SERVICE_MAX, "%u", (unsigned)port);
}

int emq_resolve(struct addrinfo **out, const char *host, uint16_t port, emq_deadline deadline,
                emq_text *error) {
    char service[EMQ_SERVICE_MAX];
    emq_resolve_service(service, port);
    int code = emq_resolve_address(out, host, port);
    if (code == EAI_NONAME) {
        int result = resolve_name(&code, out, host, service, deadline, error);
        if (result != EMQ_OK) {
            return result;
        }
    }
    return code == 0 ? EMQ_OK : emq_resolve_fail(error, code, host);
}
