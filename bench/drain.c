/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and completes jobs in batches through libemq, and checks that each is there once. */
#include "wire.h"

#include <stdlib.h>

static void complete_all(const bench *b, emq_client *client, bench_ledger *ledger,
                         const emq_jobs *jobs) {
    emq_lease leases[EMQ_MEMBERS_MAX];
    int results[EMQ_MEMBERS_MAX];
    const size_t count = emq_jobs_get_count(jobs);
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        const emq_job *job = emq_jobs_get_job(jobs, i);
        const void *payload = emq_job_get_payload(job, &size);
        leases[i] = *emq_job_get_lease(job);
        bench_ledger_claim(ledger, b, bench_payload_read(b, payload, size));
    }
    bench_expect(b, emq_completes(results, client, leases, count), "emq_completes",
                 emq_client_get_error(client));
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        const void *payload = emq_job_get_payload(emq_jobs_get_job(jobs, i), &size);
        bench_expect(b, results[i], "completing a job", "");
        bench_ledger_complete(ledger, b, bench_payload_read(b, payload, size));
    }
}

void bench_drain_some(const bench *b, emq_client *client, bench_ledger *ledger, size_t max) {
    emq_jobs *jobs = NULL;
    int result = emq_claims(&jobs, client, BENCH_QUEUE, BENCH_LEASE_MS, (uint32_t)max, 0);
    bench_expect(b, result, "emq_claims", emq_client_get_error(client));
    complete_all(b, client, ledger, jobs);
    emq_jobs_free(jobs);
}

void bench_drain(const bench *b) {
    bench_ledger ledger;
    bench_ledger_open(&ledger, b);
    emq_client *client = bench_open(b);
    while (ledger.completed < b->jobs) {
        bench_drain_some(b, client, &ledger, EMQ_MEMBERS_MAX);
    }
    emq_client_close(client);
    bench_ledger_close(&ledger, b);
    wire_check_server(b);
}
