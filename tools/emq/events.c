/* SPDX-License-Identifier: Apache-2.0 */
/* Following a queue's channel: message by message, with what was missed in between. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

#define LOOK_MS 500 /* how often it is looked whether to stop */

typedef struct following {
    const tool *t;
    emq_events *events;
    int64_t left;     /* messages until the end */
    int64_t until_ms; /* when to end; 0: never */
    uint64_t reconnects;
    int last_failure; /* so that a server that stays away is told once */
} following;

static json_t *fields_to_json(const emq_event *event) {
    json_t *fields = json_object();
    for (size_t i = 0; i < emq_event_get_count(event); i++) {
        size_t n = 0;
        const char *value = emq_event_get_value(event, i, &n);
        tool_json_bytes(fields, emq_event_get_name(event, i), value, n);
    }
    return fields;
}

static void print_event_json(const emq_event *event) {
    size_t n = 0;
    json_t *object = json_object();
    int64_t gap = emq_event_get_gap(event);
    (void)json_object_set_new(object, "seq", json_integer(emq_event_get_seq(event)));
    const char *text = emq_event_get_event(event, &n);
    tool_json_bytes(object, "event", text, n);
    text = emq_event_get_job(event, &n);
    tool_json_bytes(object, "job", text, n);
    (void)json_object_set_new(object, "fields", fields_to_json(event));
    (void)json_object_set_new(object, "gap",
                              gap == EMQ_GAP_UNKNOWN ? json_null() : json_integer(gap));
    (void)json_object_set_new(object, "resumed", json_boolean(emq_event_is_resumed(event)));
    tool_print_json(object);
}

static void print_gap(const emq_event *event) {
    int64_t gap = emq_event_get_gap(event);
    if (gap == EMQ_GAP_UNKNOWN) {
        (void)puts("--- messages may be missing here ---");
    } else if (gap > 0) {
        (void)printf("--- %" PRId64 " messages are missing here ---\n", gap);
    }
}

static void print_event(const emq_event *event) {
    size_t n = 0;
    print_gap(event);
    (void)printf("%" PRId64 "  ", emq_event_get_seq(event));
    const char *text = emq_event_get_event(event, &n);
    tool_print_bytes(stdout, text, n, 0);
    (void)fputs("  ", stdout);
    text = emq_event_get_job(event, &n);
    tool_print_bytes(stdout, text, n, 0);
    for (size_t i = 0; i < emq_event_get_count(event); i++) {
        const char *name = emq_event_get_name(event, i);
        (void)fputs("  ", stdout);
        tool_print_bytes(stdout, name, strlen(name), 0);
        (void)putchar('=');
        text = emq_event_get_value(event, i, &n);
        tool_print_bytes(stdout, text, n, 0);
    }
    (void)putchar('\n');
}

/* A loss is told, and goes on being mended; a refusal is the end. */
static int note_failure(following *f, int result) {
    emq_class class = emq_err_class(result);
    const char *detail = emq_events_get_error(f->events);
    if (class != EMQ_CLASS_RETRYABLE && class != EMQ_CLASS_UNKNOWN && class != EMQ_CLASS_PROTOCOL) {
        return tool_fail(f->t, "cannot follow", result, detail);
    }
    if (result != f->last_failure) {
        (void)tool_fail(f->t, "not subscribed, and trying again", result, detail);
        f->last_failure = result;
    }
    return TOOL_DONE;
}

static void note_reconnect(following *f) {
    uint64_t reconnects = emq_events_get_reconnects(f->events);
    if (reconnects != f->reconnects) {
        f->reconnects = reconnects;
        f->last_failure = EMQ_OK;
        if (!f->t->json) { /* there, the next message tells */
            tool_note(f->t, "subscribed again");
        }
    }
}

static int follow_one(following *f) {
    emq_event *event = NULL;
    int result = emq_events_next(&event, f->events, LOOK_MS);
    note_reconnect(f);
    if (result < 0) {
        return note_failure(f, result);
    }
    if (result == EMQ_OK) {
        if (f->t->json) {
            print_event_json(event);
        } else {
            print_event(event);
        }
        f->left--;
        if (fflush(stdout) != 0) {
            f->left = 0; /* nobody reads any more, and main says so */
        }
    }
    emq_event_free(event);
    return TOOL_DONE;
}

static int follow(following *f) {
    int status = TOOL_DONE;
    while (status == TOOL_DONE && f->left > 0 && tool_stop == 0) {
        if (f->until_ms != 0 && tool_now_ms() >= f->until_ms) {
            return TOOL_OTHER;
        }
        status = follow_one(f);
    }
    return status;
}

static int run_events(tool *t) {
    following f = {.t = t};
    emq_client_options options;
    int64_t timeout_ms = 0;
    int status = tool_queue(t, t->argv[0]);
    if (status == TOOL_DONE) {
        status = tool_number(t, &f.left, "count", INT64_MAX, 1, INT64_MAX);
    }
    if (status == TOOL_DONE) {
        status = tool_duration(t, &timeout_ms, "for", 0, 1, TOOL_IN_MAX);
    }
    if (status == TOOL_DONE) {
        status = tool_address(t, &options);
    }
    if (status != TOOL_DONE) {
        return status;
    }
    tool_watch_signals();
    int result = emq_events_open(&f.events, &options, t->argv[0]);
    if (result != EMQ_OK) {
        status = tool_fail(t, "cannot subscribe", result, emq_events_get_error(f.events));
    } else {
        f.until_ms = timeout_ms == 0 ? 0 : tool_now_ms() + timeout_ms;
        status = follow(&f);
    }
    emq_events_close(f.events);
    return status;
}

static const tool_option options[] = {
    {"count", 'c', "N", "end after N messages"},
    {"for", 'f', "TIME", "end after that time, with exit status 1"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_events = {
    .name = "events",
    .arguments = "QUEUE",
    .least = 1,
    .most = 1,
    .summary = "Follow the messages that are published on a queue's channel",
    .details =
        "No verb sends messages by itself: programs publish them, with emq_publish.\n"
        "A message is printed with its number, what happened, to which job, and what else it\n"
        "says. A connection that was lost is opened again; messages that were missed are\n"
        "gone, and a line tells how many. It needs the right to SUBSCRIBE to the channel.\n",
    .example = "emq events orders\n",
    .options = options,
    .run = run_events,
};
