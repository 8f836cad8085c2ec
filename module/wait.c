/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for work: blocking, the four callbacks of a blocked client, and the signals. */
#include "wait.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "read.h"

/* Blocked clients of one queue in one database. */
typedef struct waiting_queue {
    size_t count;
    size_t readers; /* those of them who wait for `schedule` as well */
    int is_due;     /* `schedule` has a new earliest time, of which nobody who waits knows yet */
    size_t name_length;
    char name[]; /* in `queues` */
} waiting_queue;

struct emq_waiter {
    emq_verb_symbol symbol;
    emq_handler handler;
    int is_reader;
    waiting_queue *queue; /* NULL: it waits no more */
};

static ValkeyModuleDict *queues; /* a waiting_queue for each queue that somebody waits for */
static unsigned long long waiter_count;

/* A queue's name in `queues`: its database and its base. */
#define NAME_MAX_LENGTH (16 + EMQ_KEY_MAX + 1)

static size_t write_name(char *out, ValkeyModuleCtx *ctx, emq_slice queue) {
    int n = snprintf(out, NAME_MAX_LENGTH, "%d:", ValkeyModule_GetSelectedDb(ctx));
    memcpy(out + n, queue.data, queue.length);
    return (size_t)n + queue.length;
}

static waiting_queue *find_queue(char *name, size_t length) {
    return ValkeyModule_DictGetC(queues, name, length, NULL);
}

unsigned long long emq_wait_count(void) {
    return waiter_count;
}

static waiting_queue *find_queue_of_key(ValkeyModuleCtx *ctx, const ValkeyModuleString *key) {
    char name[NAME_MAX_LENGTH];
    emq_slice queue;
    if (waiter_count == 0 || !emq_key_find_queue(&queue, emq_text(key))) {
        return NULL;
    }
    return find_queue(name, write_name(name, ctx, queue));
}

int emq_wait_has_readers(ValkeyModuleCtx *ctx, const ValkeyModuleString *key) {
    const waiting_queue *queue = find_queue_of_key(ctx, key);
    return queue != NULL && queue->readers > 0;
}

static void leave(emq_waiter *waiter) {
    waiting_queue *queue = waiter->queue;
    if (queue == NULL) {
        return;
    }
    waiter_count--;
    queue->readers -= waiter->is_reader != 0;
    if (--queue->count == 0) {
        (void)ValkeyModule_DictDelC(queues, queue->name, queue->name_length, NULL);
        ValkeyModule_Free(queue);
    }
    waiter->queue = NULL;
}

/* The server calls this whenever a key that the client waits for may have become ready. */
static int on_ready(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    emq_waiter *waiter = ValkeyModule_GetBlockedClientPrivateData(ctx);
    emq_stats_count_wake();
    if (!emq_dispatch_again(ctx, argv, argc, waiter->symbol, waiter->handler, waiter)) {
        return VALKEYMODULE_ERR;
    }
    leave(waiter);
    return VALKEYMODULE_OK;
}

/* Also CLIENT UNBLOCK, in the form that is like a timeout. */
static int on_timeout(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    leave(ValkeyModule_GetBlockedClientPrivateData(ctx));
    return ValkeyModule_ReplyWithArray(ctx, 0);
}

/* The client is gone before it was served. */
static void on_disconnect(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *blocked) {
    (void)ctx;
    leave(ValkeyModule_BlockClientGetPrivateData(blocked));
}

/* Comes once for each blocked client, however its wait ended. */
static void on_free(ValkeyModuleCtx *ctx, void *data) {
    emq_waiter *waiter = data;
    (void)ctx;
    leave(waiter);
    ValkeyModule_Free(waiter);
}

/* NULL when the queue has as many waiters as it may. */
static emq_waiter *join(const emq_call *call, int is_reader) {
    char name[NAME_MAX_LENGTH];
    size_t length = write_name(name, call->ctx, call->queue);
    waiting_queue *queue = find_queue(name, length);
    if (queue == NULL) {
        queue = ValkeyModule_Alloc(sizeof(*queue) + length);
        *queue = (waiting_queue){.name_length = length};
        memcpy(queue->name, name, length);
        (void)ValkeyModule_DictSetC(queues, name, length, queue);
    } else if (queue->count >= EMQ_WAITERS_MAX) {
        return NULL;
    }
    emq_waiter *waiter = ValkeyModule_Alloc(sizeof(*waiter));
    waiter->symbol = (emq_verb_symbol)(call->verb - emq_verbs);
    waiter->handler = call->handler;
    waiter->queue = queue;
    waiter->is_reader = is_reader;
    queue->count++;
    queue->readers += is_reader != 0;
    queue->is_due = 0; /* who comes now looks at `schedule` itself */
    waiter_count++;
    return waiter;
}

/* What was scheduled between the caller's look at `schedule` and this call told nobody: no wait
 * goes beyond the earliest time. Where that has passed already, somebody else may be about to
 * promote it, or it is not EMQ.PROMOTE's to move: the wait is short then, and not none. */
static int64_t cut_timeout(emq_call *call, emq_ref schedule, int64_t timeout_ms) {
    double left = ceil(emq_zset_lowest(call, schedule) - (double)emq_now_ms());
    double longest = left < EMQ_WAIT_OVERDUE_MS ? EMQ_WAIT_OVERDUE_MS : left;
    return longest < (double)timeout_ms ? (int64_t)longest : timeout_ms;
}

/* `schedule` is waited for as well, where the caller may read it: a new earliest time there is news
 * to a client that sleeps until the one it knows. */
static int block(emq_call *call, int64_t timeout_ms) {
    const int never = VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA |
                      VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING;
    /* asked first: the server would answer an error by itself, or end */
    if ((ValkeyModule_GetContextFlags(call->ctx) & never) != 0) {
        return 0;
    }
    emq_ref schedule;
    int is_reader = emq_may_read(call, &schedule, EMQ_KEY_SCHEDULE);
    emq_waiter *waiter = join(call, is_reader);
    if (waiter == NULL) {
        return 0;
    }
    ValkeyModuleString *keys[2] = {emq_declared(call, 0).name};
    int key_count = 1;
    if (is_reader) {
        keys[key_count++] = schedule.name;
        timeout_ms = cut_timeout(call, schedule, timeout_ms);
    }
    ValkeyModuleBlockedClient *blocked = ValkeyModule_BlockClientOnKeys(
        call->ctx, on_ready, on_timeout, on_free, timeout_ms, keys, key_count, waiter);
    if (blocked == NULL) {
        on_free(call->ctx, waiter);
        return 0;
    }
    ValkeyModule_SetDisconnectCallback(blocked, on_disconnect);
    return 1;
}

/* Of those who wait, the first that looks takes the news, and no other. */
static int take_due(emq_call *call) {
    waiting_queue *queue = call->waiter->queue;
    emq_ref schedule;
    if (!queue->is_due ||
        emq_slice_equal(emq_text(ValkeyModule_GetBlockedClientReadyKey(call->ctx)),
                        emq_text(emq_declared(call, 0).name)) ||
        !emq_may_read(call, &schedule, EMQ_KEY_SCHEDULE)) {
        return 0;
    }
    queue->is_due = 0;
    return 1;
}

void emq_wait(emq_call *call, int64_t timeout_ms) {
    if (call->waiter != NULL && !take_due(call)) {
        call->stays_blocked = 1;
        return;
    }
    if (call->waiter != NULL || timeout_ms == 0 || !block(call, timeout_ms)) {
        emq_reply_empty(call);
    }
}

void emq_wait_signal(emq_call *call) {
    const emq_writes *writes = &call->writes;
    if (waiter_count == 0) {
        return;
    }
    if (writes->ready != NULL) {
        ValkeyModule_SignalKeyAsReady(call->ctx, writes->ready);
    }
    waiting_queue *queue = writes->due == NULL ? NULL : find_queue_of_key(call->ctx, writes->due);
    if (queue != NULL) {
        queue->is_due = 1;
        ValkeyModule_SignalKeyAsReady(call->ctx, writes->due);
    }
}

void emq_wait_init(void) {
    queues = ValkeyModule_CreateDict(NULL);
    waiter_count = 0;
}

void emq_wait_free(void) {
    ValkeyModule_FreeDict(NULL, queues);
}
