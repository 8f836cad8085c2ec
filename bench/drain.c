/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the jobs of a run out of the queue again, and checks that each was there once. */
#include "wire.h"

#include <stdlib.h>

#define MEMBERS 500

static void complete_all(const bench *b, emq_client *client, bench_ledger *ledger,
                         const emq_jobs *jobs) {
    emq_lease leases[MEMBERS];
    int results[MEMBERS];
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

void bench_drain(const bench *b) {
    bench_ledger ledger;
    bench_ledger_open(&ledger, b);
    emq_client *client = bench_open(b);
    emq_jobs *jobs = NULL;
    while (ledger.completed < b->jobs) {
        int result = emq_claims(&jobs, client, BENCH_QUEUE, BENCH_LEASE_MS, MEMBERS, 0);
        bench_expect(b, result, "emq_claims", emq_client_get_error(client));
        complete_all(b, client, &ledger, jobs);
        emq_jobs_free(jobs);
    }
    emq_client_close(client);
    bench_ledger_close(&ledger, b);
    wire_check_server(b);
}
