/* SPDX-License-Identifier: Apache-2.0 */
/* Queues that share a worker's slots: none is left out, whichever way the others are claimed from.
 */
#include <stdatomic.h>
#include <string.h>

#include "command.h"
#include "crew.h"

#define MANY 4000
#define FIRST 200 /* of them, before there is a job for the other queue */
#define BURSTS 300
#define REFUSED 500 /* jobs beside a queue that is */

static emq_client_options client;

static int start_server_of_crew(void **state) {
    (void)start_server(state);
    client = options_for_server(&server);
    return 0;
}

/* How many ran of each queue, and how many of the full one when the other's first did. */
typedef struct turns {
    atomic_int full;
    atomic_int other;
    atomic_int before;
} turns;

static int run_of_full(emq_task *task, void *user) {
    turns *t = user;
    (void)task;
    if (atomic_fetch_add(&t->full, 1) == FIRST) {
        crew_enqueue("other", "x", NULL);
    }
    return EMQ_TASK_COMPLETE;
}

static int run_of_other(emq_task *task, void *user) {
    turns *t = user;
    (void)task;
    if (atomic_fetch_add(&t->other, 1) == 0) {
        atomic_store(&t->before, atomic_load(&t->full));
    }
    return EMQ_TASK_COMPLETE;
}

/* The claims of the full one go with its completes, so that its slots are never seen to be free. */
static void a_queue_that_was_empty_gets_its_turn_beside_a_full_one(void **state) {
    (void)state;
    for (uint32_t slots = 1; slots <= 4; slots *= 4) {
        emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
        turns t;
        (void)crew_clean(NULL);
        memset(&t, 0, sizeof(t));
        works.concurrency = slots;
        crew_enqueue_many("full", MANY);
        emq_worker *worker = crew_open(&client, &works);
        crew_add(worker, "full", run_of_full, &t, NULL);
        crew_add(worker, "other", run_of_other, &t, NULL);
        crew_start(worker);
        CREW_AWAIT(worker, completed, MANY + 1);
        crew_end(worker);
        assert_in_range(atomic_load(&t.before), FIRST, MANY / 2);
    }
}

static void bursts_of_two_queues_are_all_run(void **state) {
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    static int verdict = EMQ_TASK_COMPLETE;
    unsigned long long all = 0;
    (void)state;
    works.concurrency = 4;
    emq_worker *worker = crew_open(&client, &works);
    crew_add(worker, "a", crew_return, &verdict, NULL);
    crew_add(worker, "b", crew_return, &verdict, NULL);
    crew_start(worker);
    for (int i = 0; i < BURSTS; i++) {
        int count_a = 1 + i % 11;
        int count_b = 1 + i % 7;
        crew_enqueue_many("a", count_a);
        crew_enqueue_many("b", count_b);
        all += (unsigned long long)(count_a + count_b);
        CREW_AWAIT(worker, completed, all);
    }
    crew_end(worker);
}

/* Its claimer pauses for long behind each refusal: nobody waits for it. */
static void a_queue_that_is_refused_holds_up_no_other(void **state) {
    emq_client_options limited = client;
    emq_worker_options works = EMQ_WORKER_OPTIONS_INIT;
    static int verdict = EMQ_TASK_COMPLETE;
    (void)state;
    run(server.admin, "ACL", "SETUSER", "sharer", "on", ">password", "+@all", "~emq:{full}*",
        "~{emq}:*", NULL);
    limited.username = "sharer";
    limited.password = "password";
    works.concurrency = 4;
    works.backoff_min_ms = works.backoff_max_ms = 3600000;
    crew_enqueue_many("full", REFUSED);
    emq_worker *worker = crew_open(&limited, &works);
    crew_add(worker, "full", crew_return, &verdict, NULL);
    crew_add(worker, "refused", crew_return, &verdict, NULL);
    crew_start(worker);
    CREW_AWAIT(worker, completed, REFUSED);
    crew_end(worker);
    run(server.admin, "ACL", "DELUSER", "sharer", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_queue_that_was_empty_gets_its_turn_beside_a_full_one, crew_clean),
        cmocka_unit_test_setup(bursts_of_two_queues_are_all_run, crew_clean),
        cmocka_unit_test_setup(a_queue_that_is_refused_holds_up_no_other, crew_clean),
    };
    return RUN_SERVER_TESTS("worker_share", tests, start_server_of_crew, stop_server);
}
