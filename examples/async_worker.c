/* SPDX-License-Identifier: Apache-2.0 */
/* A worker inside of a libuv loop that has other things to do. A payload is a number of
 * milliseconds, and a timer stands for the work. One connection waits for jobs, since a claim that
 * waits holds up what is sent behind it; the other one settles, renews and takes back leases. */
#include <emq/emq.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define SLOTS 8
#define LEASE_MS 3000
#define WAIT_MS 1000 /* of a claim; a stop waits for it, and works what it brings */

typedef struct slot { /* a job in hand, from its claim until its settle is answered */
    uv_timer_t work;
    emq_lease lease; /* without a token the slot is free */
} slot;

static uv_loop_t loop;
static emq_async *claims, *settles;
static const char *queue;
static slot slots[SLOTS];
static uv_timer_t beat, again;
static uv_signal_t terminated;
static uint32_t room = SLOTS;
static int waiting, stopping, renewing; /* a claim is out; SIGTERM came; renewals that are out */
static void look_again(unsigned in_ms);

/* Through a pointer, so that the request may be built among the arguments. */
static void submit(emq_async *client, int built, emq_request **request, emq_request_fn done,
                   void *user) {
    if (built != EMQ_OK || emq_async_submit(client, *request, done, user) != EMQ_OK) {
        emq_request_free(*request);
        done(NULL, EMQ_ECLOSED, user);
    }
}

static void ignore(emq_request *request, int result, void *user) {
    (void)request, (void)result, (void)user; /* the next beat does it again */
}

static void on_settled(emq_request *request, int result, void *user) {
    slot *s = user;
    (void)request;
    printf("%s %s\n", s->lease.id.text, emq_strerror(result));
    s->lease.token = 0;
    room++;
    look_again(0);
}

static void on_worked(uv_timer_t *timer) {
    slot *s = (slot *)timer; /* its first member */
    emq_request *request = NULL;
    submit(settles, emq_request_complete(&request, &s->lease), &request, on_settled, s);
}

static void on_claimed(emq_request *request, int result, void *user) {
    const emq_jobs *jobs = result == EMQ_OK ? emq_request_get_jobs(request) : NULL;
    slot *s = user; /* a claim asks for no more than there are free slots */
    waiting = 0;
    for (size_t i = 0; i < emq_jobs_get_count(jobs); i++, room--) {
        const char *payload = emq_job_get_payload(emq_jobs_get_job(jobs, i), NULL);
        while (s->lease.token != 0) {
            s++;
        }
        s->lease = *emq_job_get_lease(emq_jobs_get_job(jobs, i));
        uv_timer_start(&s->work, on_worked, payload ? strtoul(payload, NULL, 10) : 0, 0);
    }
    look_again(result < 0 ? 200 : 0); /* the client connects by itself */
}

static void look(uv_timer_t *timer) {
    emq_request *request = NULL;
    (void)timer;
    if (stopping && !waiting && room == SLOTS) {
        uv_stop(&loop);
    } else if (!stopping && !waiting && room > 0) {
        waiting = 1;
        int built = emq_request_claims(&request, queue, LEASE_MS, room, WAIT_MS);
        submit(claims, built, &request, on_claimed, slots);
    }
}

static void look_again(unsigned in_ms) { /* from the loop, never from inside of a callback */
    uv_timer_start(&again, look, in_ms, 0);
}

/* A job whose lease is lost may be somebody else's by now: its work is given up at once. */
static void on_renewed(emq_request *request, int result, void *user) {
    slot *s = user;
    renewing--;
    if ((result == EMQ_ESTALE || result == EMQ_GONE) && uv_is_active((uv_handle_t *)&s->work)) {
        uv_timer_stop(&s->work);
        on_settled(request, result, s);
    }
}

static void on_beat(uv_timer_t *timer) {
    emq_request *request = NULL;
    (void)timer;
    submit(settles, emq_request_promote(&request, queue, 100), &request, ignore, NULL);
    int built = emq_request_stalled_check(&request, queue, 3, 100); /* dead at the third stall */
    submit(settles, built, &request, ignore, NULL);
    for (slot *s = renewing > 0 ? slots + SLOTS : slots; s < slots + SLOTS; s++) {
        if (uv_is_active((uv_handle_t *)&s->work)) {
            renewing++;
            built = emq_request_extend(&request, &s->lease, LEASE_MS);
            submit(settles, built, &request, on_renewed, s);
        }
    }
}

static void on_signal(uv_signal_t *handle, int number) {
    (void)handle, (void)number;
    stopping = 1;
    look_again(0);
}

int main(int argc, char **argv) {
    const char *address = getenv("EMQ_URL") ? getenv("EMQ_URL") : "redis://127.0.0.1";
    emq_url *url = NULL;
    queue = argc == 2 && argv[1][0] != '-' ? argv[1] : "";
    int result = emq_queue_valid(queue) ? emq_url_parse(&url, address, NULL, 0) : EMQ_EQUEUE;
    uv_loop_init(&loop);
    result = result ? result : emq_async_open(&claims, &loop, emq_url_get_options(url), NULL);
    result = result ? result : emq_async_open(&settles, &loop, emq_url_get_options(url), NULL);
    if (result != EMQ_OK) {
        fprintf(stderr, "Usage: async_worker QUEUE; EMQ_URL tells where the server is\n");
        return 2;
    }
    for (int i = 0; i < SLOTS; i++) {
        uv_timer_init(&loop, &slots[i].work);
    }
    uv_timer_init(&loop, &again);
    uv_timer_init(&loop, &beat);
    uv_timer_start(&beat, on_beat, LEASE_MS / 3, LEASE_MS / 3);
    uv_signal_init(&loop, &terminated);
    uv_signal_start(&terminated, on_signal, SIGTERM);
    look_again(0);
    uv_run(&loop, UV_RUN_DEFAULT); /* here your loop goes on as ever */
    (void)emq_async_close(claims, NULL, NULL);
    (void)emq_async_close(settles, NULL, NULL);
    uv_close((uv_handle_t *)&beat, NULL);
    uv_close((uv_handle_t *)&terminated, NULL);
    uv_run(&loop, UV_RUN_DEFAULT); /* until both are gone */
    emq_url_free(url);
    return 0;
}
