/* SPDX-License-Identifier: Apache-2.0 */
/* Claimed jobs and lists of ids: what they tell, and their end. */
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

size_t emq_jobs_get_count(const emq_jobs *jobs) {
    return jobs == NULL ? 0 : jobs->count;
}

const emq_job *emq_jobs_get_job(const emq_jobs *jobs, size_t i) {
    return i < emq_jobs_get_count(jobs) ? &jobs->jobs[i] : NULL;
}

size_t emq_jobs_get_malformed(const emq_jobs *jobs) {
    return jobs == NULL ? 0 : jobs->malformed;
}

void emq_jobs_free(emq_jobs *jobs) {
    for (size_t i = 0; i < emq_jobs_get_count(jobs); i++) {
        freeReplyObject(jobs->jobs[i].payload);
    }
    emq_free(jobs);
}

static const redisReply *inside(const emq_ids *ids) {
    return (const redisReply *)ids;
}

size_t emq_ids_get_count(const emq_ids *ids) {
    return ids == NULL ? 0 : inside(ids)->elements;
}

const char *emq_ids_get_text(const emq_ids *ids, size_t i, size_t *n) {
    const redisReply *id = i < emq_ids_get_count(ids) ? inside(ids)->element[i] : NULL;
    if (n != NULL) {
        *n = id == NULL ? 0 : id->len;
    }
    return id == NULL ? NULL : id->str;
}

void emq_ids_free(emq_ids *ids) {
    freeReplyObject(ids);
}
