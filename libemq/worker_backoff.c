/* SPDX-License-Identifier: Apache-2.0 */
/* The pause between a failure and the next try. */
#include "chance.h"
#include "wire.h"
#include "worker.h"

static unsigned int count_doublings(int64_t failures) {
    return failures < 1 ? 0 : failures > 32 ? 32 : (unsigned int)(failures - 1);
}

static int64_t ask_function(const emq_task *task, int64_t failures) {
    const emq_value_facts *facts = emq_value_get_facts(EMQ_VALUE_DELAY_MS);
    const emq_work_queue *q = task->queue;
    int64_t pause = q->options.backoff_function(task, failures, q->user);
    if (pause < facts->min) {
        return facts->min;
    }
    return pause < facts->max ? pause : facts->max;
}

int64_t emq_worker_pause_ms(const emq_task *task, int64_t failures) {
    const emq_worker_queue *options = &task->queue->options;
    uint32_t doubled =
        emq_doubled(options->backoff_base_ms, options->backoff_max_ms, count_doublings(failures));
    switch (options->backoff) {
    case EMQ_BACKOFF_FUNCTION:
        return ask_function(task, failures);
    case EMQ_BACKOFF_FIXED:
        return options->backoff_base_ms;
    case EMQ_BACKOFF_EXPONENTIAL:
        return doubled;
    default:
        return emq_draw(doubled);
    }
}
