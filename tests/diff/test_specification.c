/* SPDX-License-Identifier: Apache-2.0 */
/* EMQ.RESCHEDULE and EMQ.REQUEUE have no scripted twin: each case here states the last step's reply
 * and everything that the queue then holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "harness.h"

#define HOUR "3600000"
#define LEASED "enqueue J1 hello\nclaim " HOUR "\n"
#define SWEPT "enqueue J1 hello\nclaim 1\nwait\nstalled.check 9 10\n"
#define DEAD LEASED "fail J1 1 1000 1 broken\n"
#define SCHEDULED "schedule J1 hello in " HOUR "\n"
#define PAYLOAD "job:J1 hash payload = hello\n"
#define EPOCH "job:J1 hash lease_epoch = <run_id>\n"
#define STILL_LEASED(more)                                                                         \
    "active zset J1 = now+3600000\njob:J1 hash attempts = 1\n" EPOCH more PAYLOAD                  \
    "job:J1 hash state = active\n"
#define STILL_SCHEDULED                                                                            \
    "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = scheduled\n"                         \
    "schedule zset J1 = now+3600000\n"
#define PENDING_AGAIN(more)                                                                        \
    "job:J1 hash attempts = 1\n" more PAYLOAD "job:J1 hash state = pending\npending zset J1 = 0\n"

typedef struct specification {
    const char *lines;
    const char *reply;
    const char *state; /* now+<span>: by the window of the last call that had this span */
} specification;

static const specification specifications[] = {
    /* reschedule: another time, and nothing else changes */
    {SCHEDULED "reschedule J1 in 7200000", "1",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = scheduled\n"
     "schedule zset J1 = now+7200000\n"},
    {SCHEDULED "reschedule J1 in 0", "1",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = scheduled\n"
     "schedule zset J1 = now+0\n"},
    {SCHEDULED "reschedule J1 at 1700000000000", "1",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = scheduled\n"
     "schedule zset J1 = 1700000000000\n"},
    {"schedule J1 hello at 7\nreschedule J1 at 7", "1",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = scheduled\nschedule zset J1 = 7\n"},
    {LEASED "fail J1 1 1000 5 broken\nreschedule J1 in " HOUR, "1",
     "job:J1 hash attempts = 1\njob:J1 hash failures = 1\njob:J1 hash last_error = broken\n" PAYLOAD
     "job:J1 hash state = scheduled\nschedule zset J1 = now+3600000\n"},
    {SCHEDULED "! HSET @job:J1 group g\nreschedule J1 at 5", "1",
     "job:J1 hash attempts = 0\njob:J1 hash group = g\n" PAYLOAD "job:J1 hash state = scheduled\n"
     "schedule zset J1 = 5\n"},
    /* it is promoted at its new time */
    {SCHEDULED "reschedule J1 in 0\nwait\npromote 10", "1",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = pending\npending zset J1 = 0\n"},
    /* refusals leave everything as it was */
    {SCHEDULED "reschedule J1 until 5", "-ERR EMQ mode must be at or in", STILL_SCHEDULED},
    {SCHEDULED "reschedule J1 in 05", "-ERR EMQ in ms must be an integer from 0 to 315360000000",
     STILL_SCHEDULED},
    {SCHEDULED "reschedule J1 at 9007199254740992",
     "-ERR EMQ at ms must be an integer from 0 to 9007199254740991", STILL_SCHEDULED},
    {"reschedule J1 until 5", "-ERR EMQ mode must be at or in", ""},
    {"reschedule J1 at 5", "-1", ""},
    {SCHEDULED "! HDEL @job:J1 attempts\nreschedule J1 at 5", "-1",
     PAYLOAD "job:J1 hash state = scheduled\nschedule zset J1 = now+3600000\n"},
    {"! SET @job:J1 x\nreschedule J1 at 5",
     "-WRONGTYPE Operation against a key holding the wrong kind of value", "job:J1 string  = x\n"},
    {LEASED "reschedule J1 at 5", "-EMQSTATE not scheduled", STILL_LEASED("")},
    {SCHEDULED "! ZREM @schedule J1\nreschedule J1 at 5", "-EMQSTATE not scheduled",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = scheduled\n"},
    {SCHEDULED "! HSET @job:J1 state pending\nreschedule J1 at 5", "-EMQSTATE not scheduled",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = pending\n"
     "schedule zset J1 = now+3600000\n"},

    /* requeue: back to pending, without its lease, at the same attempts */
    {LEASED "requeue J1 1", "1", PENDING_AGAIN("")},
    {LEASED "requeue J1 1\nrequeue J1 1", "-EMQSTALE requeue lease lost", PENDING_AGAIN("")},
    {LEASED "requeue J1 1\ncomplete J1 1", "-EMQSTALE complete lease lost", PENDING_AGAIN("")},
    {LEASED "requeue J1 1\nclaim " HOUR, "[\"J1\", \"hello\", 2]",
     "active zset J1 = now+3600000\njob:J1 hash attempts = 2\n" EPOCH PAYLOAD
     "job:J1 hash state = active\n"},
    {"enqueue J1 hello\nclaim 1\nwait\nrequeue J1 1", "1", PENDING_AGAIN("")},
    {SWEPT "requeue J1 1", "1", PENDING_AGAIN("") "job:J1 hash stalled = 1\n"},
    {LEASED "fail J1 1 0 5 broken\nwait\npromote 1\nclaim " HOUR "\nrequeue J1 2", "1",
     "job:J1 hash attempts = 2\njob:J1 hash failures = 1\njob:J1 hash last_error = broken\n" PAYLOAD
     "job:J1 hash state = pending\npending zset J1 = 0\n"},
    {LEASED "enqueue J2 b\n! DEL @job:J2\nrequeue J1 1", "1",
     PENDING_AGAIN("") "pending zset J2 = 0\n"},
    {LEASED "! HSET @job:J1 parent J2\nrequeue J1 1", "1",
     PENDING_AGAIN("job:J1 hash parent = J2\n")},
    /* refusals */
    {"requeue J1 1", "-1", ""},
    {LEASED "requeue J1 2", "-EMQSTALE requeue token mismatch", STILL_LEASED("")},
    {LEASED "requeue J1 01", "-EMQSTALE requeue token mismatch", STILL_LEASED("")},
    {LEASED "! HSET @job:J1 group g\nrequeue J1 2", "-EMQLANE lane row: use the EMQ.GROUP verb",
     STILL_LEASED("job:J1 hash group = g\n")},
    {LEASED "! ZREM @active J1\nrequeue J1 1", "-EMQSTALE requeue lease lost",
     "job:J1 hash attempts = 1\n" EPOCH PAYLOAD "job:J1 hash state = active\n"},
    {"enqueue J1 hello\nrequeue J1 0", "-EMQSTALE requeue lease lost",
     "job:J1 hash attempts = 0\n" PAYLOAD "job:J1 hash state = pending\npending zset J1 = 0\n"},
    {DEAD "requeue J1 1", "-EMQSTALE requeue lease lost",
     "dead zset J1 = 0\njob:J1 hash attempts = 1\njob:J1 hash failures = 1\n"
     "job:J1 hash last_error = broken\n" PAYLOAD "job:J1 hash state = dead\n"
     "metrics:failed hash count = 1\n"},
    {LEASED "! HDEL @job:J1 attempts\nrequeue J1 1", "-1",
     "active zset J1 = now+3600000\n" EPOCH PAYLOAD "job:J1 hash state = active\n"},
    {"! SET @job:J1 x\nrequeue J1 1",
     "-WRONGTYPE Operation against a key holding the wrong kind of value", "job:J1 string  = x\n"},
    {LEASED "! SET @pending x\nrequeue J1 1",
     "-WRONGTYPE Operation against a key holding the wrong kind of value",
     STILL_LEASED("") "pending string  = x\n"},
};

static int start_server(void **state) {
    (void)state;
    server_start(&server, NULL);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

/* The time that a call may have seen, for each span that was used last. */
#define SPANS_MAX 8
typedef struct window {
    long long span;
    long long from;
    long long to;
} window;

typedef struct session {
    char base[64];
    char *reply;
    window windows[SPANS_MAX];
    int window_count;
    long long last;
} session;

static void note_window(session *s, long long span, long long from, long long to) {
    int i = 0;
    while (i < s->window_count && s->windows[i].span != span) {
        i++;
    }
    assert_true(i < SPANS_MAX);
    s->windows[i] = (window){span, from, to};
    s->window_count += i == s->window_count;
}

static void run_line(session *s, const char *text) {
    words line;
    command sent = {0};
    words_split(&line, text);
    const diff_verb *verb = find_verb(line.word[0]);
    if (strcmp(line.word[0], "wait") == 0) {
        while (server_now(server.admin) <= s->last + 1) {
        }
        return;
    }
    long long from = server_now(server.admin);
    if (verb != NULL) {
        build_native(&sent, verb, s->base, &line);
    } else {
        assert_string_equal(line.word[0], "!");
        build_plain(&sent, s->base, &line);
    }
    redisReply *reply = command_send(server.admin, &sent);
    s->last = server_now(server.admin);
    free(s->reply);
    s->reply = reply_text(reply);
    freeReplyObject(reply);
    command_free(&sent);
    if (verb != NULL && line_span(verb, &line) >= 0) {
        note_window(s, line_span(verb, &line), from, s->last);
    }
}

/* A score as now+<span> when it lies in that span's window. */
static const char *show_score(char out[64], const session *s, const char *value) {
    long long score = strtoll(value, NULL, 10);
    for (int i = 0; i < s->window_count; i++) {
        const window *w = &s->windows[i];
        if (score >= w->from + w->span && score <= w->to + w->span) {
            (void)snprintf(out, 64, "now+%lld", w->span);
            return out;
        }
    }
    return value;
}

static char *state_text(const session *s) {
    char run_id[64];
    char *text = NULL;
    snapshot state;
    (void)get_run_id(run_id);
    snapshot_take(&state, server.admin, s->base);
    append_text(&text, "");
    for (size_t i = 0; i < state.count; i++) {
        char score[64];
        const entry *e = &state.entries[i];
        const char *value = strcmp(e->value, run_id) == 0 ? "<run_id>" : e->value;
        if (strncmp(e->path, "active zset", 11) == 0 ||
            strncmp(e->path, "schedule zset", 13) == 0) {
            value = show_score(score, s, e->value);
        }
        append_text(&text, e->path);
        append_text(&text, " = ");
        append_text(&text, value);
        append_text(&text, "\n");
    }
    snapshot_free(&state);
    return text;
}

/* Sorts the lines of a wanted state as a snapshot is sorted. */
static char *sort_lines(const char *lines) {
    char copy[LINE_TEXT_MAX];
    snapshot sorted = {0};
    char *text = NULL;
    char *rest = NULL;
    expand_ids(copy, lines);
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        snapshot_add(&sorted, line, "");
    }
    snapshot_sort(&sorted);
    append_text(&text, "");
    for (size_t i = 0; i < sorted.count; i++) {
        append_text(&text, sorted.entries[i].path);
        append_text(&text, "\n");
    }
    snapshot_free(&sorted);
    return text;
}

static void check_specification(const specification *one, int number) {
    session s = {.reply = strdup("")};
    char lines[LINE_TEXT_MAX];
    char reply[LINE_TEXT_MAX];
    char *rest = NULL;
    (void)snprintf(s.base, sizeof(s.base), "emq:{specification%d}:", number);
    (void)snprintf(lines, sizeof(lines), "%s", one->lines);
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        run_line(&s, line);
    }
    char *got = state_text(&s);
    char *want = sort_lines(one->state);
    expand_ids(reply, one->reply);
    if (strcmp(s.reply, reply) != 0 || strcmp(got, want) != 0) {
        print_error("after:\n%s\n", one->lines);
    }
    EXPECT_TEXT(s.reply, reply);
    EXPECT_TEXT(got, want);
    free(got);
    free(want);
    free(s.reply);
}

static void check_all(const char *verb) {
    int checked = 0;
    for (size_t i = 0; i < sizeof(specifications) / sizeof(specifications[0]); i++) {
        if (strstr(specifications[i].lines, verb) != NULL) {
            check_specification(&specifications[i], (int)i);
            checked++;
        }
    }
    assert_true(checked > 10);
}

static void reschedule_is_as_specified(void **state) {
    (void)state;
    check_all("reschedule ");
}

static void requeue_is_as_specified(void **state) {
    (void)state;
    check_all("requeue ");
}

/* In one transaction the time is the same: due means at or before now. */
static void what_is_due_this_instant_is_promoted(void **state) {
    (void)state;
    static const char *const lines[] = {"schedule J1 hello in 0", "promote 10"};
    run(server.admin, "MULTI", NULL);
    for (int i = 0; i < 2; i++) {
        words line;
        command sent = {0};
        words_split(&line, lines[i]);
        build_native(&sent, find_verb(line.word[0]), "emq:{instant}:", &line);
        redisReply *queued = command_send(server.admin, &sent);
        assert_int_equal(queued->type, REDIS_REPLY_STATUS);
        freeReplyObject(queued);
        command_free(&sent);
    }
    EXPECT(server.admin, "[1, 1]", "EXEC");
}

static void the_aof_holds_no_emq_record(void **state) {
    (void)state;
    long long emq = 0;
    assert_true(count_records(&server, &emq) > 0);
    assert_int_equal(emq, 0);
}

static void a_restart_loads_the_same_data(void **state) {
    (void)state;
    char before[DIGEST_MAX];
    char after[DIGEST_MAX];
    (void)get_digest(before, &server);
    server_restart(&server);
    EXPECT_TEXT(get_digest(after, &server), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reschedule_is_as_specified),
        cmocka_unit_test(requeue_is_as_specified),
        cmocka_unit_test(what_is_due_this_instant_is_promoted),
        cmocka_unit_test(the_aof_holds_no_emq_record),
        cmocka_unit_test(a_restart_loads_the_same_data),
    };
    return RUN_SERVER_TESTS("diff specification", tests, start_server, stop_server);
}
