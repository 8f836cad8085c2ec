/* SPDX-License-Identifier: Apache-2.0 */
/* Eight worker processes on one queue, of which every 200 ms one is killed and replaced, or stopped
 * for longer than its leases and continued; the server is restarted in the middle, once as an
 * operator does and once by SIGKILL. What the processes wrote down is held to the queue's promises.
 *
 * EMQ_FAULT_JOBS says how many jobs (default 1200; 10000 is the long form), EMQ_FAULT_SEED which
 * order of events. */
#include "aof.h"
#include "check.h"
#include "crew.h"

#include <emq/emq.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUE "chaos"
#define DEFAULT_JOBS 1200
#define LONG_JOBS 10000
#define LONG_EVENTS 150
#define SHORT_EVENTS 20
#define MEMBERS 8
#define CONCURRENCY 4
#define LEASE_MS 2000
#define STOP_MS 5000 /* SIGSTOP: longer than a lease */
#define EVENT_MS 200
#define STOPPED_MAX 5 /* so that somebody works on */
#define MAX_STALLED 3 /* the worker's default */
#define GIVE_UP_MS (20 * 60 * 1000)
#define BATCH 500

static const char *program;
static test_server server;
static crew workers;
static emq_client *client;
static char (*ids)[RECORD_ID_SIZE];
static size_t jobs;
static unsigned random_state;

typedef struct events {
    size_t kills;
    size_t stops;
    size_t restarts;
} events;

static unsigned draw(unsigned below) {
    return (unsigned)rand_r(&random_state) % below;
}

static unsigned long read_number(const char *name, unsigned long otherwise) {
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? otherwise : strtoul(text, NULL, 10);
}

static void connect_client(void) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.unix_path = server.socket;
    options.command_timeout_ms = 60000;
    emq_client_close(client);
    int result = emq_client_open(&client, &options);
    if (result != EMQ_OK) {
        fail_msg("%s: %s", emq_err_name(result), emq_client_get_error(client));
    }
}

/* ---- jobs ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Handlers take 20 to 200 ms. */
static void admit(void) {
    static emq_id batch[BATCH];
    static char texts[BATCH][8];
    static emq_bytes payloads[BATCH];
    static int results[BATCH];
    for (size_t done = 0; done < jobs;) {
        size_t count = jobs - done < BATCH ? jobs - done : BATCH;
        memset(batch, 0, sizeof(batch));
        for (size_t i = 0; i < count; i++) {
            int n = snprintf(texts[i], sizeof(texts[i]), "%u", 20 + draw(181));
            payloads[i] = (emq_bytes){texts[i], (size_t)n};
        }
        assert_int_equal(emq_enqueues(results, batch, client, QUEUE, payloads, count), EMQ_OK);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(results[i], EMQ_OK);
            memcpy(ids[done++], batch[i].text, RECORD_ID_SIZE);
        }
    }
    qsort(ids, jobs, sizeof(*ids), by_text);
}

static emq_counts read_counts(void) {
    emq_counts counts = EMQ_COUNTS_INIT;
    int result = emq_counts_read(&counts, client, QUEUE);
    if (result != EMQ_OK) {
        fail_msg("%s: %s", emq_err_name(result), emq_client_get_error(client));
    }
    return counts;
}

/* ---- events ---- */

/* A member that is not stopped. */
static size_t draw_victim(void) {
    size_t place = 0;
    do {
        place = draw(MEMBERS);
    } while (workers.members[place].continues_at != 0);
    return place;
}

static void make_event(events *e) {
    size_t place = draw_victim();
    if (draw(2) == 0 && crew_count_stopped(&workers) < STOPPED_MAX) {
        crew_stop(&workers, place, STOP_MS);
        e->stops++;
    } else {
        crew_kill(&workers, place);
        crew_start(&workers, place);
        e->kills++;
    }
}

static void restart_server(events *e) {
    if (e->restarts++ % 2 == 0) {
        server_restart(&server);
    } else {
        server_crash(&server);
    }
    connect_client();
}

/* A job on its way may be counted in no set: only a second look is sure. */
static int is_done(int64_t *last_seen) {
    emq_counts counts = read_counts();
    int64_t left = counts.pending + counts.active + counts.scheduled;
    int done = left == 0 && *last_seen == 0;
    *last_seen = left;
    return done;
}

static void make_trouble(events *e) {
    int64_t left = -1;
    int64_t next = record_now_ms();
    const int64_t give_up_at = next + GIVE_UP_MS;
    while (!is_done(&left)) {
        size_t settled = left < 0 ? 0 : jobs - (size_t)left;
        if (settled * 3 >= jobs * (e->restarts + 1) && e->restarts < 2) {
            restart_server(e);
        }
        next += EVENT_MS;
        int64_t now = record_now_ms();
        if (now < next) {
            (void)nanosleep(&(struct timespec){0, (long)(next - now) * 1000000}, NULL);
        } else {
            next = now; /* a slow machine, or a restart */
        }
        crew_continue(&workers, record_now_ms());
        if (left != 0) {
            make_event(e);
        }
        if (record_now_ms() > give_up_at) {
            fail_msg("%" PRId64 " jobs are left", left);
        }
    }
}

/* ---- the proof ---- */

static check_dead *read_dead(size_t *count) {
    emq_ids *list = NULL;
    assert_int_equal(emq_ids_browse(&list, client, QUEUE, EMQ_KEY_DEAD, NULL, 0, 10000), EMQ_OK);
    *count = emq_ids_get_count(list);
    check_dead *dead = calloc(*count + 1, sizeof(*dead));
    assert_non_null(dead);
    for (size_t i = 0; i < *count; i++) {
        size_t n = 0;
        emq_id id;
        emq_row *row = NULL;
        const char *text = emq_ids_get_text(list, i, &n);
        assert_int_equal(emq_id_parse(&id, text, n), EMQ_OK);
        assert_int_equal(emq_row_read(&row, client, QUEUE, &id), EMQ_OK);
        memcpy(dead[i].id, id.text, RECORD_ID_SIZE);
        dead[i].attempts = emq_row_get_attempts(row);
        dead[i].stalled = emq_row_get_stalled(row);
        emq_row_free(row);
    }
    emq_ids_free(list);
    qsort(dead, *count, sizeof(*dead), by_text);
    return dead;
}

static void tell(const check_report *report, const events *e, size_t dead) {
    print_message(
        "%zu jobs: %zu killed, %zu stopped, %zu restarts; %zu runs, %zu of them again; "
        "%zu cut, %zu told at their end, %zu settles refused; %zu claims without a run; "
        "%zu completed, %zu more without hearing of it, %zu dead (%zu of them with a claim "
        "without a run)\n",
        jobs, e->kills, e->stops, e->restarts, report->runs, report->again, report->cut,
        report->told, report->refused, report->unseen, report->completed, report->unsure, dead,
        report->dead_unseen);
}

static void prove(const events *e) {
    check_report report;
    size_t dead_count = 0;
    records log = {0};
    emq_counts counts = read_counts();
    check_dead *dead = read_dead(&dead_count);
    crew_read(&log, &workers);
    char *commands = aof_since(&server, 0);
    history *server_side = history_read(commands, QUEUE, (const char(*)[RECORD_ID_SIZE])ids, jobs);
    assert_non_null(server_side);
    check_input input = {
        .log = log,
        .ids = (const char(*)[RECORD_ID_SIZE])ids,
        .jobs = jobs,
        .server = server_side,
        .dead = dead,
        .dead_count = dead_count,
        .completed = counts.completed,
        .left = counts.pending + counts.active + counts.scheduled,
        .killed = workers.killed,
        .processes = workers.processes,
        /* a restart is an event for every process */
        .losses = (int64_t)((e->kills + e->stops + e->restarts * MEMBERS) * CONCURRENCY),
        .max_stalled = MAX_STALLED,
    };
    size_t broken = check(&report, &input, stderr);
    tell(&report, e, dead_count);
    records_free(&log);
    free(dead);
    free(server_side);
    free(commands);
    assert_int_equal(broken, 0);
    assert_int_equal(counts.failed, dead_count);
    /* it must have been a test of something */
    assert_true(e->kills + e->stops >= (jobs >= LONG_JOBS ? LONG_EVENTS : SHORT_EVENTS));
    assert_int_equal(e->restarts, 2);
    assert_true(report.cut > 0 && report.told + report.refused > 0);
}

static void test_chaos(void **state) {
    (void)state;
    events e = {0};
    connect_client();
    admit();
    workers = (crew){.program = program,
                     .socket = server.socket,
                     .queue = QUEUE,
                     .lease_ms = LEASE_MS,
                     .concurrency = CONCURRENCY,
                     .stop_ms = 60000};
    crew_init(&workers);
    for (size_t i = 0; i < MEMBERS; i++) {
        crew_start(&workers, i);
    }
    make_trouble(&e);
    crew_continue(&workers, INT64_MAX);
    for (size_t i = 0; i < MEMBERS; i++) {
        crew_end(&workers, i);
    }
    prove(&e);
    crew_clear(&workers);
}

static int set_up(void **state) {
    (void)state;
    jobs = read_number("EMQ_FAULT_JOBS", DEFAULT_JOBS);
    random_state = (unsigned)read_number("EMQ_FAULT_SEED", (unsigned long)time(NULL));
    print_message("EMQ_FAULT_JOBS=%zu EMQ_FAULT_SEED=%u\n", jobs, random_state);
    ids = calloc(jobs, sizeof(*ids));
    /* a settle that was answered must be there after a SIGKILL; the AOF holds the whole history */
    server_start(&server, "--conf", "appendfsync always", "--conf", "auto-aof-rewrite-percentage 0",
                 NULL);
    return ids == NULL ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    emq_client_close(client);
    server_stop(&server);
    free(ids);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chaos)};
    if (argc != 2) {
        return EXIT_FAILURE;
    }
    program = argv[1];
    return RUN_SERVER_TESTS("chaos", tests, set_up, tear_down);
}
