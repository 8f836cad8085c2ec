/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed job from the inside: the lease, and the reply element that holds the payload. */
#ifndef EMQ_LIBEMQ_JOB_H
#define EMQ_LIBEMQ_JOB_H

#include <emq/job.h>
#include <hiredis/hiredis.h>

struct emq_job {
    emq_lease lease;
    redisReply *payload; /* taken out of the reply, so that no byte is copied */
};

struct emq_jobs {
    size_t count;
    size_t malformed;
    emq_job jobs[];
};

/* An emq_ids is an array of strings under another name. */

#endif
