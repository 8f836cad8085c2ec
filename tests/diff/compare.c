/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of two sides. */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long long time_of(const redisReply *reply) {
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    return atoll(reply->element[0]->str) * 1000 + atoll(reply->element[1]->str) / 1000;
}

long long server_now(redisContext *c) {
    redisReply *reply = call(c, "TIME", NULL);
    long long now = time_of(reply);
    freeReplyObject(reply);
    return now;
}

char *reply_text(const redisReply *reply) {
    char *text = reply_to_text(reply);
    char *position = text[0] == '-' ? strstr(text, " script: ") : NULL;
    if (position != NULL) {
        *position = '\0';
    }
    return text;
}

static int is_timed(const char *path) {
    return strncmp(path, "active zset ", 12) == 0 || strncmp(path, "schedule zset ", 14) == 0;
}

static score_note *find_note(side *s, const char *path) {
    for (int i = 0; i < s->note_count; i++) {
        if (strcmp(s->notes[i].path, path) == 0) {
            return &s->notes[i];
        }
    }
    return NULL;
}

/* The note of a score that has not changed since. */
static score_note *find_valid_note(side *s, const entry *e) {
    score_note *note = find_note(s, e->path);
    return note != NULL && strcmp(note->raw, e->value) == 0 ? note : NULL;
}

static void write_note(side *s, const entry *e, int step, long long span) {
    score_note *note = find_note(s, e->path);
    if (note == NULL) {
        assert_true(s->note_count < SIDE_NOTES_MAX);
        note = &s->notes[s->note_count++];
        note->path = strdup(e->path);
        note->raw = NULL;
    }
    free(note->raw);
    note->raw = strdup(e->value);
    note->step = step;
    note->span = span;
}

static int is_in_window(const side *s, const entry *e, long long span) {
    char *end = NULL;
    long long score = strtoll(e->value, &end, 10);
    return span >= 0 && *end == '\0' && score >= s->from + span && score <= s->to + span;
}

/* Two scores are equal when the same earlier step wrote both, when both lie in the window of this
 * step, or as numbers. */
static int scores_match(side *reference, const entry *r, side *native, const entry *n, int step,
                        long long span) {
    const score_note *a = find_valid_note(reference, r);
    const score_note *b = find_valid_note(native, n);
    if (a != NULL && b != NULL && a->step == b->step && a->span == b->span) {
        return 1;
    }
    if (is_in_window(reference, r, span) && is_in_window(native, n, span)) {
        write_note(reference, r, step, span);
        write_note(native, n, step, span);
        return 1;
    }
    return strcmp(r->value, n->value) == 0;
}

/* A value as a difference shows it: a score by its time, if it has one. */
static char *show(side *s, const entry *e, int step, long long span) {
    char text[64];
    if (e == NULL) {
        return NULL;
    }
    if (is_timed(e->path)) {
        const score_note *note = find_valid_note(s, e);
        if (note == NULL && is_in_window(s, e, span)) {
            write_note(s, e, step, span);
            note = find_valid_note(s, e);
        }
        if (note != NULL) {
            if (note->step == step) {
                (void)snprintf(text, sizeof(text), "now+%lld", note->span);
            } else {
                (void)snprintf(text, sizeof(text), "step %d's now+%lld", note->step, note->span);
            }
            return strdup(text);
        }
    }
    return strdup(e->value);
}

static void add_difference(differences *out, const char *where, char *reference, char *native) {
    if (out->count == DIFFERENCES_MAX) {
        fail_msg("too many differences");
    }
    out->list[out->count++] = (difference){strdup(where), reference, native};
}

void sides_compare(differences *out, side *reference, side *native, int step, long long span) {
    const snapshot *a = &reference->state;
    const snapshot *b = &native->state;
    size_t i = 0;
    size_t j = 0;
    out->count = 0;
    if (strcmp(reference->reply, native->reply) != 0) {
        add_difference(out, "reply", strdup(reference->reply), strdup(native->reply));
    }
    while (i < a->count || j < b->count) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : strcmp(a->entries[i].path, b->entries[j].path);
        const entry *r = order <= 0 ? &a->entries[i++] : NULL;
        const entry *n = order >= 0 ? &b->entries[j++] : NULL;
        int equal = r != NULL && n != NULL &&
                    (is_timed(r->path) ? scores_match(reference, r, native, n, step, span)
                                       : strcmp(r->value, n->value) == 0);
        if (!equal) {
            add_difference(out, r != NULL ? r->path : n->path, show(reference, r, step, span),
                           show(native, n, step, span));
        }
    }
}

void differences_print(const differences *d) {
    for (int i = 0; i < d->count; i++) {
        const difference *one = &d->list[i];
        print_error("  %s: reference %s, native %s\n", one->where,
                    one->reference == NULL ? "(nothing)" : one->reference,
                    one->native == NULL ? "(nothing)" : one->native);
    }
}

void differences_free(differences *d) {
    for (int i = 0; i < d->count; i++) {
        free(d->list[i].where);
        free(d->list[i].reference);
        free(d->list[i].native);
    }
    d->count = 0;
}

void side_free(side *s) {
    free(s->reply);
    s->reply = NULL;
    snapshot_free(&s->state);
    for (int i = 0; i < s->note_count; i++) {
        free(s->notes[i].path);
        free(s->notes[i].raw);
    }
    s->note_count = 0;
}
