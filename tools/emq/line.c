/* SPDX-License-Identifier: Apache-2.0 */
/* The native line of a verb, printed and not sent: for a person who wants to see it, or to run it
 * with valkey-cli. The lines are libemq's own; here are only their arguments as words. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tool.h"

/* The words behind the verb, taken one by one. What is wrong is said at once; the line that was
 * built of it is then dropped. */
typedef struct words {
    const tool *t;
    int next;
    int status;
    /* of batches; freed at the end */
    size_t count;
    emq_id *ids;
    emq_bytes *payloads;
    emq_lease *leases;
    emq_field *fields;
    uint32_t *offsets;
} words;

static const char *take(words *w) {
    return w->next < w->t->argc ? w->t->argv[w->next++] : "";
}

static void note_status(words *w, int status) {
    w->status = w->status == TOOL_DONE ? status : w->status;
}

static emq_bytes take_bytes(words *w) {
    const char *text = take(w);
    return (emq_bytes){text, strlen(text)};
}

/* `new` mints one. */
static emq_id take_id(words *w, const char *name_space) {
    emq_id id = {{0}};
    const char *text = take(w);
    int result = strcmp(text, "new") == 0 ? emq_id_mint(&id, name_space)
                                          : emq_id_parse(&id, text, strlen(text));
    if (result != EMQ_OK) {
        note_status(w, tool_usage(w->t, "%s: %s", emq_strerror(result), text));
    }
    return id;
}

static int64_t take_token(words *w) {
    int64_t token = 0;
    note_status(w, tool_token(w->t, &token, take(w)));
    return token;
}

static uint32_t take_number(words *w) {
    const char *text = take(w);
    char *end = NULL;
    unsigned long long number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || number > UINT32_MAX) {
        note_status(w, tool_usage(w->t, "no number: %s", text));
        return 0;
    }
    return (uint32_t)number;
}

static int64_t take_time(words *w, int64_t most) {
    int64_t ms = 0;
    note_status(w, tool_parse_duration(w->t, &ms, "this", take(w), 0, most));
    return ms;
}

static uint32_t take_lease_ms(words *w) {
    return (uint32_t)take_time(w, INT32_MAX);
}

/* in TIME, or at MOMENT. */
static emq_when take_when(words *w) {
    emq_when when = {EMQ_IN, 0};
    const char *mode = take(w);
    const char *text = take(w);
    int is_in = strcmp(mode, "in") == 0;
    if (!is_in && strcmp(mode, "at") != 0) {
        note_status(w, tool_usage(w->t, "in TIME or at MOMENT, not %s", mode));
    } else {
        note_status(w, tool_parse_when(w->t, &when, is_in ? text : NULL, is_in ? NULL : text));
    }
    return when;
}

static emq_lease lease_of(words *w, const char *queue) {
    emq_lease lease;
    memset(&lease, 0, sizeof(lease));
    if (tool_queue(w->t, queue) == TOOL_DONE) {
        memcpy(lease.queue, queue, strlen(queue) + 1);
    } else {
        note_status(w, TOOL_USAGE);
    }
    return lease;
}

static emq_lease take_lease(words *w, const char *queue) {
    emq_lease lease = lease_of(w, queue);
    lease.id = take_id(w, "JOB");
    lease.token = take_token(w);
    return lease;
}

/* Room for what is left, in groups of so many words. */
static int reserve(words *w, int group) {
    size_t left = w->t->argc > w->next ? (size_t)(w->t->argc - w->next) : 0;
    w->count = left / (size_t)group;
    w->ids = calloc(w->count + 1, sizeof(*w->ids));
    w->payloads = calloc(w->count + 1, sizeof(*w->payloads));
    w->leases = calloc(w->count + 1, sizeof(*w->leases));
    w->fields = calloc(w->count + 1, sizeof(*w->fields));
    w->offsets = calloc(w->count + 1, sizeof(*w->offsets));
    return w->ids != NULL && w->payloads != NULL && w->leases != NULL && w->fields != NULL &&
                   w->offsets != NULL
               ? EMQ_OK
               : EMQ_ENOMEM;
}

static void words_clear(words *w) {
    free(w->ids);
    free(w->payloads);
    free(w->leases);
    free(w->fields);
    free(w->offsets);
}

/* --- the lines, by their verbs --- */

static int build_version(emq_line *line, words *w) {
    (void)w;
    return emq_line_version(line);
}

static int build_install(emq_line *line, words *w) {
    (void)w;
    return emq_line_install(line);
}

static int build_tra_info(emq_line *line, words *w) {
    (void)w;
    return emq_line_tra_info(line);
}

static int build_tra_commands(emq_line *line, words *w) {
    (void)w;
    return emq_line_tra_commands(line);
}

static int build_enqueue(emq_line *line, words *w) {
    const char *queue = take(w);
    emq_id id = take_id(w, "JOB");
    emq_bytes payload = take_bytes(w);
    return emq_line_enqueue(line, queue, &id, payload.data, payload.size);
}

static int build_schedule(emq_line *line, words *w) {
    const char *queue = take(w);
    emq_id id = take_id(w, "JOB");
    emq_bytes payload = take_bytes(w);
    emq_when when = take_when(w);
    return emq_line_schedule(line, queue, &id, payload.data, payload.size, when);
}

static int build_enqueues(emq_line *line, words *w) {
    const char *queue = take(w);
    int result = reserve(w, 2);
    for (size_t i = 0; i < w->count && result == EMQ_OK; i++) {
        w->ids[i] = take_id(w, "JOB");
        w->payloads[i] = take_bytes(w);
    }
    return result == EMQ_OK ? emq_line_enqueues(line, queue, w->ids, w->payloads, w->count)
                            : result;
}

static int build_claim(emq_line *line, words *w) {
    const char *queue = take(w);
    return emq_line_claim(line, queue, take_lease_ms(w));
}

static int build_claims(emq_line *line, words *w) {
    const char *queue = take(w);
    uint32_t lease_ms = take_lease_ms(w);
    uint32_t max = take_number(w);
    uint32_t timeout_ms = w->next < w->t->argc ? take_lease_ms(w) : 0;
    return emq_line_claims(line, queue, lease_ms, max, timeout_ms);
}

static int build_complete(emq_line *line, words *w) {
    emq_lease lease = take_lease(w, take(w));
    return emq_line_complete(line, &lease);
}

static int build_requeue(emq_line *line, words *w) {
    emq_lease lease = take_lease(w, take(w));
    return emq_line_requeue(line, &lease);
}

static int take_leases(words *w, const char *queue) {
    int result = reserve(w, 2);
    for (size_t i = 0; i < w->count && result == EMQ_OK; i++) {
        w->leases[i] = take_lease(w, queue);
    }
    return result;
}

static int build_completes(emq_line *line, words *w) {
    int result = take_leases(w, take(w));
    return result == EMQ_OK ? emq_line_completes(line, w->leases, w->count) : result;
}

static int build_extend(emq_line *line, words *w) {
    emq_lease lease = take_lease(w, take(w));
    return emq_line_extend(line, &lease, take_lease_ms(w));
}

static int build_extends(emq_line *line, words *w) {
    const char *queue = take(w);
    uint32_t lease_ms = take_lease_ms(w);
    int result = take_leases(w, queue);
    return result == EMQ_OK ? emq_line_extends(line, w->leases, w->count, lease_ms) : result;
}

static int build_delay(emq_line *line, words *w) {
    emq_lease lease = take_lease(w, take(w));
    return emq_line_delay(line, &lease, take_when(w));
}

static int build_fail(emq_line *line, words *w) {
    emq_lease lease = take_lease(w, take(w));
    int64_t delay_ms = take_time(w, TOOL_IN_MAX);
    uint32_t max_failures = take_number(w);
    emq_bytes error = take_bytes(w);
    return emq_line_fail(line, &lease, delay_ms, max_failures, error.data, error.size);
}

static int build_promote(emq_line *line, words *w) {
    const char *queue = take(w);
    return emq_line_promote(line, queue, take_number(w));
}

static int build_stalled_check(emq_line *line, words *w) {
    const char *queue = take(w);
    uint32_t max_stalled = take_number(w);
    return emq_line_stalled_check(line, queue, max_stalled, take_number(w));
}

static int build_reschedule(emq_line *line, words *w) {
    const char *queue = take(w);
    emq_id id = take_id(w, "JOB");
    return emq_line_reschedule(line, queue, &id, take_when(w));
}

static int build_reprocess(emq_line *line, words *w) {
    const char *queue = take(w);
    emq_id id = take_id(w, "JOB");
    return emq_line_reprocess(line, queue, &id);
}

static int build_pause(emq_line *line, words *w) {
    return emq_line_pause(line, take(w));
}

static int build_resume(emq_line *line, words *w) {
    return emq_line_resume(line, take(w));
}

static int take_fields(words *w) {
    int result = reserve(w, 2);
    for (size_t i = 0; i < w->count && result == EMQ_OK; i++) {
        w->fields[i].name = take_bytes(w);
        w->fields[i].value = take_bytes(w);
    }
    return result;
}

static int build_append(emq_line *line, words *w) {
    const char *queue = take(w);
    const char *stream = take(w);
    emq_id id = take_id(w, "EVT");
    int result = take_fields(w);
    return result == EMQ_OK ? emq_line_append(line, queue, stream, &id, w->fields, w->count)
                            : result;
}

static int build_publish(emq_line *line, words *w) {
    const char *queue = take(w);
    emq_bytes event = take_bytes(w);
    emq_bytes job = take_bytes(w);
    int result = take_fields(w);
    return result == EMQ_OK ? emq_line_publish(line, queue, event, job, w->fields, w->count)
                            : result;
}

static int build_failures_incr(emq_line *line, words *w) {
    const char *queue = take(w);
    const char *stream = take(w);
    const char *group = take(w);
    return emq_line_failures_incr(line, queue, stream, group, take(w));
}

static int take_offsets(words *w) {
    int result = reserve(w, 1);
    for (size_t i = 0; i < w->count && result == EMQ_OK; i++) {
        w->offsets[i] = take_number(w);
    }
    return result;
}

static int build_tra_bitset(emq_line *line, words *w) {
    emq_bytes key = take_bytes(w);
    int result = take_offsets(w);
    return result == EMQ_OK ? emq_line_tra_bitset(line, key, w->offsets, w->count) : result;
}

static int build_tra_bitclear(emq_line *line, words *w) {
    emq_bytes key = take_bytes(w);
    int result = take_offsets(w);
    return result == EMQ_OK ? emq_line_tra_bitclear(line, key, w->offsets, w->count) : result;
}

static int build_tra_bitget(emq_line *line, words *w) {
    emq_bytes key = take_bytes(w);
    int result = take_offsets(w);
    return result == EMQ_OK ? emq_line_tra_bitget(line, key, w->offsets, w->count) : result;
}

static int build_tra_bitscan(emq_line *line, words *w) {
    emq_bytes key = take_bytes(w);
    uint32_t from = take_number(w);
    uint32_t to = take_number(w);
    return emq_line_tra_bitscan(line, key, from, to, take_number(w));
}

/* The verbs in the order of the protocol's page, with how many words follow: at least, and in
 * groups of so many beyond; a group of 0 is none, and a negative one may stand once. */
static const struct {
    const char *name;
    int least;
    int group;
    const char *arguments;
    int (*build)(emq_line *line, words *w);
} lines[] = {
    {"EMQ.VERSION", 0, 0, "", build_version},
    {"EMQ.INSTALL", 0, 0, "", build_install},
    {"EMQ.ENQUEUE", 3, 0, "QUEUE ID PAYLOAD", build_enqueue},
    {"EMQ.SCHEDULE", 5, 0, "QUEUE ID PAYLOAD in|at WHEN", build_schedule},
    {"EMQ.CLAIM", 2, 0, "QUEUE LEASE", build_claim},
    {"EMQ.EXTEND", 4, 0, "QUEUE ID TOKEN LEASE", build_extend},
    {"EMQ.EXTENDS", 4, 2, "QUEUE LEASE (ID TOKEN)...", build_extends},
    {"EMQ.COMPLETE", 3, 0, "QUEUE ID TOKEN", build_complete},
    {"EMQ.PROMOTE", 2, 0, "QUEUE LIMIT", build_promote},
    {"EMQ.RESCHEDULE", 4, 0, "QUEUE ID in|at WHEN", build_reschedule},
    {"EMQ.DELAY", 5, 0, "QUEUE ID TOKEN in|at WHEN", build_delay},
    {"EMQ.FAIL", 6, 0, "QUEUE ID TOKEN DELAY MAX-FAILURES ERROR", build_fail},
    {"EMQ.REPROCESS", 2, 0, "QUEUE ID", build_reprocess},
    {"EMQ.REQUEUE", 3, 0, "QUEUE ID TOKEN", build_requeue},
    {"EMQ.STALLED.CHECK", 3, 0, "QUEUE MAX-STALLED LIMIT", build_stalled_check},
    {"EMQ.ENQUEUES", 3, 2, "QUEUE (ID PAYLOAD)...", build_enqueues},
    {"EMQ.CLAIMS", 3, -1, "QUEUE LEASE COUNT [WAIT]", build_claims},
    {"EMQ.COMPLETES", 3, 2, "QUEUE (ID TOKEN)...", build_completes},
    {"EMQ.PAUSE", 1, 0, "QUEUE", build_pause},
    {"EMQ.RESUME", 1, 0, "QUEUE", build_resume},
    {"EMQ.APPEND", 3, 2, "QUEUE STREAM ID [FIELD VALUE]...", build_append},
    {"EMQ.PUBLISH", 3, 2, "QUEUE EVENT JOB [FIELD VALUE]...", build_publish},
    {"EMQ.FAILURES.INCR", 4, 0, "QUEUE STREAM GROUP ENTRY", build_failures_incr},
    {"TRA.INFO", 0, 0, "", build_tra_info},
    {"TRA.COMMANDS", 0, 0, "", build_tra_commands},
    {"TRA.BITSET", 2, 1, "KEY OFFSET...", build_tra_bitset},
    {"TRA.BITCLEAR", 2, 1, "KEY OFFSET...", build_tra_bitclear},
    {"TRA.BITGET", 2, 1, "KEY OFFSET...", build_tra_bitget},
    {"TRA.BITSCAN", 4, 0, "KEY FROM TO LIMIT", build_tra_bitscan},
};

#define LINES (sizeof(lines) / sizeof(lines[0]))
#define PREFIX_LEN 4 /* EMQ. may be left out */

static size_t find_line(const char *name) {
    for (size_t i = 0; i < LINES; i++) {
        if (strcasecmp(lines[i].name, name) == 0 ||
            (strncmp(lines[i].name, "EMQ.", PREFIX_LEN) == 0 &&
             strcasecmp(lines[i].name + PREFIX_LEN, name) == 0)) {
            return i;
        }
    }
    return LINES;
}

static int has_right_count(size_t i, int count) {
    int beyond = count - lines[i].least;
    int group = lines[i].group;
    if (beyond < 0) {
        return 0;
    }
    return beyond == 0 || (group > 0 && beyond % group == 0) || beyond == -group;
}

/* --- printing --- */

static int is_plain(char c) {
    return isalnum((unsigned char)c) || (c != '\0' && strchr("._:/@%+=,-", c) != NULL);
}

/* As a shell takes it; bytes that are not to be seen in the form of bash, zsh and ksh: $'\x1b'. */
static void print_quoted(const char *bytes, size_t n) {
    size_t plain = 0;
    int is_printable = 1;
    for (size_t i = 0; i < n; i++) {
        plain += is_plain(bytes[i]) != 0;
        is_printable = is_printable && bytes[i] >= ' ' && bytes[i] <= '~';
    }
    if (n > 0 && plain == n) {
        (void)fwrite(bytes, 1, n, stdout);
        return;
    }
    (void)fputs(is_printable ? "'" : "$'", stdout);
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\'') {
            (void)fputs(is_printable ? "'\\''" : "\\'", stdout);
        } else if (!is_printable && (bytes[i] < ' ' || bytes[i] > '~')) {
            (void)printf("\\%03o", (unsigned char)bytes[i]);
        } else if (!is_printable && bytes[i] == '\\') {
            (void)fputs("\\\\", stdout);
        } else {
            (void)putchar(bytes[i]);
        }
    }
    (void)putchar('\'');
}

static void print_line(const tool *t, const emq_line *line) {
    json_t *array = json_array();
    for (int i = 0; i < line->argc; i++) {
        if (t->json) {
            json_t *text = json_stringn(line->argv[i], line->argvlen[i]);
            if (text == NULL) { /* no UTF-8 */
                text = json_object();
                tool_json_bytes(text, "argument", line->argv[i], line->argvlen[i]);
            }
            (void)json_array_append_new(array, text);
        } else {
            (void)fputs(i == 0 ? "" : " ", stdout);
            print_quoted(line->argv[i], line->argvlen[i]);
        }
    }
    if (t->json) {
        tool_print_json(array);
    } else {
        (void)putchar('\n');
        json_decref(array);
    }
}

static int list_lines(const tool *t) {
    for (size_t i = 0; i < LINES; i++) {
        if (t->json) {
            json_t *object = json_object();
            (void)json_object_set_new(object, "verb", json_string(lines[i].name));
            (void)json_object_set_new(object, "arguments", json_string(lines[i].arguments));
            tool_print_json(object);
        } else {
            (void)printf("%s%s%s\n", lines[i].name, lines[i].arguments[0] == '\0' ? "" : " ",
                         lines[i].arguments);
        }
    }
    return TOOL_DONE;
}

static int run_line(tool *t) {
    words w = {.t = t, .next = 1};
    emq_line line = EMQ_LINE_INIT;
    if (t->argc == 0) {
        return list_lines(t);
    }
    size_t i = find_line(t->argv[0]);
    if (i == LINES) {
        return tool_usage(t, "there is no native verb %s", t->argv[0]);
    }
    if (!has_right_count(i, t->argc - 1)) {
        return tool_usage(t, "%s takes %s", lines[i].name,
                          lines[i].arguments[0] == '\0' ? "no arguments" : lines[i].arguments);
    }
    int result = lines[i].build(&line, &w);
    int status = w.status;
    if (status == TOOL_DONE && result != EMQ_OK) {
        status = tool_usage(t, "%s: %s", lines[i].name, emq_strerror(result));
    }
    if (status == TOOL_DONE) {
        print_line(t, &line);
    }
    emq_line_clear(&line);
    words_clear(&w);
    return status;
}

const tool_verb verb_line = {
    .name = "line",
    .arguments = "[NATIVE-VERB [ARGUMENT]...]",
    .least = 0,
    .most = TOOL_ANY,
    .summary = "Print the native line of a verb, quoted for a shell; nothing is sent",
    .details =
        "Without arguments: the native verbs, and what each takes. EMQ. may be left out. An\n"
        "ID may be `new`. A LEASE, a DELAY and a WAIT are lengths of time.\n",
    .example = "emq line claim orders 30s\n"
               "emq line enqueue orders new hello | xargs valkey-cli\n",
    .run = run_line,
};
