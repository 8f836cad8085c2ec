/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed job: what it tells, and its end. */
#include "job.h"

#include "memory.h"

const emq_lease *emq_job_get_lease(const emq_job *job) {
    return job == NULL ? NULL : &job->lease;
}

const void *emq_job_get_payload(const emq_job *job, size_t *n) {
    int present = job != NULL && job->payload->type == REDIS_REPLY_STRING;
    if (n != NULL) {
        *n = present ? job->payload->len : 0;
    }
    return present ? job->payload->str : NULL;
}

int64_t emq_job_get_attempts(const emq_job *job) {
    return job == NULL ? 0 : job->lease.token;
}

void emq_job_free(emq_job *job) {
    if (job != NULL) {
        freeReplyObject(job->payload);
        emq_free(job);
    }
}
