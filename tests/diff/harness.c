/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a case, the declared fields and the declared deltas. */
#include "harness.h"

#include <dirent.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define IDS 10
#define CASE_LINE_MAX 512

test_server server;

/* The two fields that a native row has and the reference's has not: what they must hold. */
typedef struct declared_fields {
    char lease_epoch[IDS][64]; /* "": the field must not be there */
    int failures[IDS];         /* 0: likewise */
} declared_fields;

typedef struct running {
    const diff_case *one;
    diff_mode mode;
    side reference;
    side native;
    declared_fields fields;
    int step;
    int is_last;
    const char *line;
} running;

const char *get_run_id(char out[64]) {
    return get_info(out, 64, server.admin, "server", "run_id");
}

/* ---- the calls ---- */

static void keep_reply(side *s, const redisReply *reply) {
    free(s->reply);
    s->reply = reply_text(reply);
}

static void send_and_keep(side *s, const command *line) {
    redisReply *reply = command_send(server.admin, line);
    keep_reply(s, reply);
    freeReplyObject(reply);
}

/* The host's steps of the reference: it reads the pause flag in a round trip before it claims.
 * Returns 1 when that was the whole call. */
static int run_host_steps(side *s, const diff_verb *verb) {
    char meta[128];
    if (strcmp(verb->word, "claim") != 0) {
        return 0;
    }
    (void)snprintf(meta, sizeof(meta), "%smeta", s->base);
    redisReply *reply = call(server.admin, "HEXISTS", meta, "paused", NULL);
    int ends = reply->type == REDIS_REPLY_ERROR || reply->integer != 0;
    free(s->reply);
    s->reply = reply->type == REDIS_REPLY_ERROR ? reply_text(reply) : strdup("[]");
    freeReplyObject(reply);
    return ends;
}

static void call_apart(running *r, const command *reference, const command *native, int by_host) {
    r->reference.from = server_now(server.admin);
    if (!by_host) {
        send_and_keep(&r->reference, reference);
    }
    r->native.from = r->reference.to = server_now(server.admin);
    send_and_keep(&r->native, native);
    r->native.to = server_now(server.admin);
}

static void queue_line(const command *line) {
    redisReply *reply = command_send(server.admin, line);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

static void call_together(running *r, const command *reference, const command *native,
                          int by_host) {
    run(server.admin, "MULTI", NULL);
    if (!by_host) {
        queue_line(reference);
    }
    queue_line(native);
    run(server.admin, "TIME", NULL);
    redisReply *reply = call(server.admin, "EXEC", NULL);
    size_t own = by_host ? 0 : 1;
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, own + 2);
    if (!by_host) {
        keep_reply(&r->reference, reply->element[0]);
    }
    keep_reply(&r->native, reply->element[own]);
    r->reference.from = r->reference.to = r->native.from = r->native.to =
        time_of(reply->element[own + 1]);
    freeReplyObject(reply);
}

static void run_verb(running *r, const diff_verb *verb, const words *line) {
    command reference = {0};
    command native = {0};
    if (verb->script == NULL) {
        fail_msg("%s has no twin", verb->name);
    }
    build_reference(&reference, verb, r->reference.base, line);
    build_native(&native, verb, r->native.base, line);
    int by_host = run_host_steps(&r->reference, verb);
    if (r->mode == APART) {
        call_apart(r, &reference, &native, by_host);
    } else {
        call_together(r, &reference, &native, by_host);
    }
    command_free(&reference);
    command_free(&native);
}

static void run_plain(side *s, const words *line) {
    command plain = {0};
    build_plain(&plain, s->base, line);
    redisReply *reply = command_send(server.admin, &plain);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", line->word[1], reply->str);
    }
    keep_reply(s, reply);
    freeReplyObject(reply);
    command_free(&plain);
}

/* ---- the declared fields ---- */

static int id_index(const char *id) {
    size_t length = strlen(id);
    return length > 0 && id[length - 1] >= '1' && id[length - 1] <= '9' ? id[length - 1] - '0' : 0;
}

static void set_epoch(running *r, int id, const char *epoch) {
    (void)snprintf(r->fields.lease_epoch[id], sizeof(r->fields.lease_epoch[id]), "%s", epoch);
}

static int reply_names(const char *reply, const char *id) {
    char full[LINE_TEXT_MAX];
    expand_ids(full, id);
    return strstr(reply, full) != NULL;
}

/* What a step of the native side does to the two fields, told by its reply. */
static void follow_fields(running *r, const diff_verb *verb, const words *line) {
    const char *word = verb->word;
    const char *reply = r->native.reply;
    char run_id[64];
    int id = verb->id_index < 0 ? 0 : id_index(line->word[1 + verb->id_index]);
    int done = strcmp(reply, "1") == 0;
    (void)get_run_id(run_id);
    if (strcmp(word, "claim") == 0 && strncmp(reply, "[\"", 2) == 0) {
        char claimed[16] = "";
        (void)snprintf(claimed, sizeof(claimed), "%.14s", reply + 2);
        set_epoch(r, id_index(claimed), run_id);
    } else if (strcmp(word, "extend") == 0 && done) {
        set_epoch(r, id, run_id);
    } else if (strcmp(word, "extends") == 0 && reply[0] == '[') {
        for (int i = 2; i < line->count; i += 2) {
            if (!reply_names(reply, line->word[i])) {
                set_epoch(r, id_index(line->word[i]), run_id);
            }
        }
    } else if (strcmp(word, "fail") == 0 && reply[0] == '"') {
        set_epoch(r, id, "");
        r->fields.failures[id]++;
    } else if (strcmp(word, "delay") == 0 && done) {
        set_epoch(r, id, "");
    } else if (strcmp(word, "reprocess") == 0 && done) {
        set_epoch(r, id, "");
        r->fields.failures[id] = 0;
    } else if (strcmp(word, "stalled.check") == 0 && reply[0] == '[') {
        const char *dead = strstr(reply, "], [");
        for (int i = 1; i < IDS && dead != NULL; i++) {
            char name[3] = {'J', (char)('0' + i), '\0'};
            if (reply_names(dead, name)) {
                set_epoch(r, i, "");
            }
        }
    }
}

static void fail_step(const running *r, const char *what) {
    print_error("case \"%s\" (%s), step %d: %s\n", r->one->name,
                r->mode == APART ? "apart" : "together", r->step, r->line);
    fail_msg("%s", what);
}

static void check_field(const running *r, const char *id, const char *field, const char *want) {
    char path[128];
    (void)snprintf(path, sizeof(path), "job:%s hash %s", id, field);
    const char *got = snapshot_get(&r->native.state, path);
    if (want[0] == '\0' ? got != NULL : got == NULL || strcmp(got, want) != 0) {
        print_error("  %s: %s where %s was expected\n", path, got == NULL ? "nothing" : got,
                    want[0] == '\0' ? "nothing" : want);
        fail_step(r, "a declared field is not as declared");
    }
}

/* Checks the declared fields of every row, and takes them out of both snapshots. */
static void check_and_mask_fields(running *r) {
    for (int i = 1; i < IDS; i++) {
        char id[ID_TEXT_MAX];
        char path[128];
        char count[16] = "";
        (void)snprintf(id, sizeof(id), ID_START "%d", i);
        (void)snprintf(path, sizeof(path), "job:%s hash state", id);
        if (snapshot_get(&r->native.state, path) == NULL) {
            set_epoch(r, i, "");
            r->fields.failures[i] = 0;
            continue;
        }
        if (r->fields.failures[i] > 0) {
            (void)snprintf(count, sizeof(count), "%d", r->fields.failures[i]);
        }
        check_field(r, id, "lease_epoch", r->fields.lease_epoch[i]);
        check_field(r, id, "failures", count);
    }
    snapshot_drop(&r->native.state, " hash lease_epoch");
    snapshot_drop(&r->native.state, " hash failures");
}

/* ---- the declared deltas ---- */

static int texts_equal(const char *got, const char *want) {
    char full[LINE_TEXT_MAX];
    if (got == NULL || want == NULL) {
        return got == want;
    }
    expand_ids(full, want);
    return strcmp(got, full) == 0;
}

static int is_declared_difference(const delta *d, const difference *found) {
    char where[LINE_TEXT_MAX];
    expand_ids(where, d->where);
    return strcmp(where, found->where) == 0 && texts_equal(found->reference, d->reference) &&
           texts_equal(found->native, d->native);
}

static int find_delta(const running *r, const difference *found) {
    for (const delta *d = deltas; r->is_last && d->name != NULL; d++) {
        if (strcmp(d->name, r->one->name) == 0 && is_declared_difference(d, found)) {
            return 1;
        }
    }
    return 0;
}

static void check_differences(const running *r, const differences *found) {
    int declared = 0;
    for (int i = 0; i < found->count; i++) {
        if (!find_delta(r, &found->list[i])) {
            differences_print(found);
            fail_step(r, "an undeclared difference");
        }
    }
    for (const delta *d = deltas; r->is_last && d->name != NULL; d++) {
        if (strcmp(d->name, r->one->name) != 0) {
            continue;
        }
        int occurs = 0;
        for (int i = 0; i < found->count; i++) {
            occurs = occurs || is_declared_difference(d, &found->list[i]);
        }
        if (!occurs) {
            differences_print(found);
            print_error("  declared: %s\n", d->where);
            fail_step(r, "a declared delta does not occur");
        }
        declared++;
    }
    assert_int_equal(declared, found->count);
}

/* ---- the steps ---- */

static void wait_for_time(long long past) {
    const struct timespec pause = {0, 300 * 1000};
    while (server_now(server.admin) <= past) {
        (void)nanosleep(&pause, NULL);
    }
}

/* Runs what is no verb. Returns 0 when it is one. */
static int run_other(running *r, const words *line) {
    const char *word = line->word[0];
    if (strcmp(word, "!") == 0) {
        run_plain(&r->reference, line);
        run_plain(&r->native, line);
    } else if (strcmp(word, "wait") == 0) {
        wait_for_time(r->native.to + 1);
    } else if (strcmp(word, "restart") == 0) {
        server_restart(&server);
    } else if (strcmp(word, "epoch") == 0) {
        char text[LINE_TEXT_MAX];
        words plain;
        (void)snprintf(text, sizeof(text), "! HSET @job:%s lease_epoch %s", line->word[1],
                       line->word[2]);
        words_split(&plain, text);
        run_plain(&r->native, &plain);
        set_epoch(r, id_index(line->word[1]), line->word[2]);
        free(r->native.reply);
        r->native.reply = strdup(r->reference.reply);
    } else {
        return 0;
    }
    return 1;
}

static void run_step(running *r) {
    words line;
    differences found;
    long long span = -1;
    words_split(&line, r->line);
    if (!run_other(r, &line)) {
        const diff_verb *verb = find_verb(line.word[0]);
        if (verb == NULL) {
            fail_step(r, "no such verb");
        }
        run_verb(r, verb, &line);
        follow_fields(r, verb, &line);
        span = line_span(verb, &line);
    }
    snapshot_free(&r->reference.state);
    snapshot_free(&r->native.state);
    snapshot_take(&r->reference.state, server.admin, r->reference.base);
    snapshot_take(&r->native.state, server.admin, r->native.base);
    check_and_mask_fields(r);
    sides_compare(&found, &r->reference, &r->native, r->step, span);
    check_differences(r, &found);
    differences_free(&found);
}

void run_case(const diff_case *one, diff_mode mode) {
    static int number;
    running r = {
        .one = one, .mode = mode, .reference.reply = strdup(""), .native.reply = strdup("")};
    number++;
    (void)snprintf(r.reference.base, sizeof(r.reference.base), "emq:{case%d.reference}:", number);
    (void)snprintf(r.native.base, sizeof(r.native.base), "emq:{case%d.native}:", number);
    for (const char *at = one->lines; at != NULL && *at != '\0';) {
        char line[CASE_LINE_MAX];
        size_t length = strcspn(at, "\n");
        assert_true(length < sizeof(line));
        (void)snprintf(line, sizeof(line), "%.*s", (int)length, at);
        at = at[length] == '\0' ? NULL : at + length + 1;
        r.line = line;
        r.step++;
        r.is_last = at == NULL || *at == '\0';
        run_step(&r);
    }
    side_free(&r.reference);
    side_free(&r.native);
}

/* ---- the AOF ---- */

/* Counts in one file: records are `*<words>`, then `$<length>` and the bytes of each word. */
static void count_in_file(const char *path, long long *records, long long *emq) {
    char line[64];
    char word[8];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("cannot read %s", path);
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        assert_int_equal(line[0], '*');
        long words_left = atol(line + 1);
        for (int first = 1; words_left > 0; words_left--, first = 0) {
            assert_non_null(fgets(line, sizeof(line), file));
            assert_int_equal(line[0], '$');
            long length = atol(line + 1);
            size_t kept = fread(word, 1, length < 4 ? (size_t)length : 4, file);
            assert_int_equal(fseek(file, length + 2 - (long)kept, SEEK_CUR), 0);
            *emq += first && kept == 4 && strncasecmp(word, "EMQ.", 4) == 0;
        }
        (*records)++;
    }
    (void)fclose(file);
}

long long count_records(test_server *of, long long *emq) {
    char folder[SERVER_PATH_MAX + 32];
    long long records = 0;
    *emq = 0;
    (void)snprintf(folder, sizeof(folder), "%s/appendonlydir", of->dir);
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        if (strstr(file->d_name, ".incr.aof") != NULL) {
            char path[SERVER_PATH_MAX * 2];
            (void)snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
            count_in_file(path, &records, emq);
        }
    }
    (void)closedir(files);
    return records;
}
