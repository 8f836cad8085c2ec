/* SPDX-License-Identifier: Apache-2.0 */
/* What `emq top` knows of the queues: see top.h. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "top.h"

#define FIRST_CAPACITY 64
/* The clocks of two machines, and sweeps that take turns, are no reason for an alarm. */
#define LATE_MS 2000

const top_column_info top_columns[TOP_COLUMNS] = {
    [TOP_NAME] = {"name", "QUEUE", 0, 'n'},
    [TOP_PENDING] = {"pending", "PENDING", 7, 'p'},
    [TOP_OLDEST] = {"oldest", "OLDEST", 7, 'o'},
    [TOP_ACTIVE] = {"active", "ACTIVE", 7, 'a'},
    [TOP_SCHEDULED] = {"scheduled", "SCHED", 7, 's'},
    [TOP_DEAD] = {"dead", "DEAD", 6, 'd'},
    [TOP_COMPLETED_RATE] = {"completed", "DONE/s", 6, 'c'},
    [TOP_FAILED_RATE] = {"failed", "DIED/s", 6, 'f'},
};

top_column top_column_find(const char *word) {
    top_column i = TOP_NAME;
    while (i < TOP_COLUMNS && strcmp(top_columns[i].word, word) != 0) {
        i++;
    }
    return i;
}

int64_t top_monotonic_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- opening --- */

/* A user without the right to TIME gets this machine's clock. */
static void read_clock(top *all) {
    const char *const words[] = {"TIME"};
    emq_reply *reply = NULL;
    all->clock_ms = 0;
    if (emq_client_command(&reply, all->t->client, 1, words, NULL) == EMQ_OK) {
        const char *seconds = emq_reply_get_string(emq_reply_get_element(reply, 0), NULL);
        const char *us = emq_reply_get_string(emq_reply_get_element(reply, 1), NULL);
        if (seconds != NULL && us != NULL) {
            int64_t ms = strtoll(seconds, NULL, 10) * 1000 + strtoll(us, NULL, 10) / 1000;
            all->clock_ms = ms - tool_now_ms();
        }
    }
    emq_reply_free(reply);
}

int top_open(top *all, tool *t) {
    memset(all, 0, sizeof(*all));
    all->t = t;
    all->window = 1;
    finder_init(&all->finder);
    read_clock(all);
    return emq_pipeline_new(&all->pipeline, t->client);
}

void top_close(top *all) {
    for (size_t i = 0; i < all->count; i++) {
        free(all->rows[i].name);
    }
    free(all->rows);
    free(all->shown);
    finder_clear(&all->finder);
    emq_pipeline_free(all->pipeline);
}

/* The server may be another one now: its keys are looked at anew. */
int top_reconnect(top *all) {
    int result = emq_client_reconnect(all->t->client);
    if (result == EMQ_OK) {
        finder_clear(&all->finder);
        all->taken = 0;
        read_clock(all);
    }
    return result;
}

/* --- which queues there are --- */

static int compare_names(const void *a, const void *b) {
    return strcmp(((const top_row *)a)->name, ((const top_row *)b)->name);
}

static int reserve(top *all) {
    if (all->count < all->capacity) {
        return EMQ_OK;
    }
    size_t capacity = all->capacity == 0 ? FIRST_CAPACITY : all->capacity * 2;
    top_row *rows = realloc(all->rows, capacity * sizeof(*rows));
    if (rows == NULL) {
        return EMQ_ENOMEM;
    }
    all->rows = rows;
    top_row **shown = realloc(all->shown, capacity * sizeof(top_row *));
    if (shown == NULL) {
        return EMQ_ENOMEM;
    }
    all->shown = shown;
    all->capacity = capacity;
    return EMQ_OK;
}

static int add_row(top *all, const char *name) {
    char *copy = reserve(all) == EMQ_OK ? strdup(name) : NULL;
    if (copy == NULL) {
        return EMQ_ENOMEM;
    }
    all->rows[all->count++] = (top_row){
        .name = copy,
        .is_found = 1,
        .sizes = {.oldest_ms = SIZES_NONE, .next_ms = SIZES_NONE, .lease_end_ms = SIZES_NONE},
        .completed_rate = TOP_NO_RATE,
        .failed_rate = TOP_NO_RATE,
        .oldest_ms = SIZES_NONE,
    };
    return EMQ_OK;
}

/* Gives each queue of the finder a row. */
static int take_found(top *all) {
    size_t known = all->count;
    int result = EMQ_OK;
    if (all->finder.count == all->taken) {
        return EMQ_OK;
    }
    for (size_t i = 0; i < all->finder.count && result == EMQ_OK; i++) {
        top_row key = {.name = all->finder.queues[i]};
        top_row *row =
            known == 0 ? NULL : bsearch(&key, all->rows, known, sizeof(key), compare_names);
        if (row != NULL) {
            row->is_found = 1;
        } else {
            result = add_row(all, key.name);
        }
    }
    if (all->count > known) {
        qsort(all->rows, all->count, sizeof(*all->rows), compare_names);
    }
    all->taken = all->finder.count;
    return result;
}

static void end_round(top *all) {
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->rows[i].is_found) {
            all->rows[i].is_found = 0;
            all->rows[kept++] = all->rows[i];
        } else {
            free(all->rows[i].name);
        }
    }
    all->count = kept;
    finder_clear(&all->finder);
    all->taken = 0;
    all->rounds++;
    all->round_at_ms = top_monotonic_ms();
}

int top_find(top *all) {
    int result = finder_step(&all->finder, all->t->client);
    if (result == EMQ_OK) {
        result = take_found(all);
    }
    if (result == EMQ_OK && all->finder.is_done) {
        end_round(all);
    }
    top_arrange(all); /* the rows have moved */
    return result;
}

/* --- the order --- */

/* What a row is ordered by; names are the last resort. */
static double rank(const top_row *row, top_column order) {
    switch (order) {
    case TOP_PENDING:
        return (double)row->sizes.pending;
    case TOP_OLDEST:
        return (double)row->oldest_ms;
    case TOP_ACTIVE:
        return (double)row->sizes.active;
    case TOP_SCHEDULED:
        return (double)row->sizes.scheduled;
    case TOP_DEAD:
        return (double)row->sizes.dead;
    case TOP_COMPLETED_RATE:
        return row->completed_rate;
    case TOP_FAILED_RATE:
        return row->failed_rate;
    default:
        return 0;
    }
}

/* The greatest first; names, which have no rank, from A to Z. */
static int compare_ranks(const void *a, const void *b) {
    const top_row *x = *(top_row *const *)a;
    const top_row *y = *(top_row *const *)b;
    return x->rank < y->rank ? 1 : x->rank > y->rank ? -1 : compare_names(x, y);
}

static int matches(const top *all, const top_row *row) {
    return all->pattern[0] == '\0' || fnmatch(all->pattern, row->name, 0) == 0;
}

static void reverse(top_row **rows, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        top_row *row = rows[i];
        rows[i] = rows[count - 1 - i];
        rows[count - 1 - i] = row;
    }
}

void top_arrange(top *all) {
    all->shown_count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (matches(all, &all->rows[i])) {
            all->rows[i].rank = rank(&all->rows[i], all->order);
            all->shown[all->shown_count++] = &all->rows[i];
        }
    }
    if (all->shown_count > 1) {
        qsort(all->shown, all->shown_count, sizeof(top_row *), compare_ranks);
    }
    if (all->is_reversed) {
        reverse(all->shown, all->shown_count);
    }
}

/* --- reading --- */

static double rate_of(int64_t from, int64_t to, int64_t ms) {
    return ms <= 0 ? TOP_NO_RATE : (double)(to - from) * 1000 / (double)ms;
}

/* Counts that went down belong to a queue that was removed in between: nothing follows from them.
 */
static void take_rates(top_row *row, size_t window, int64_t at_ms) {
    top_reading now = {at_ms, row->sizes.completed, row->sizes.failed};
    const top_reading *last = row->past_count == 0 ? NULL : &row->past[row->past_count - 1];
    if (last != NULL && (now.completed < last->completed || now.failed < last->failed)) {
        row->past_count = 0;
    }
    if (row->past_count > window) {
        memmove(row->past, row->past + 1, window * sizeof(*row->past));
        row->past_count = window;
    }
    row->past[row->past_count++] = now;
    int64_t ms = at_ms - row->past[0].at_ms;
    row->completed_rate = rate_of(row->past[0].completed, now.completed, ms);
    row->failed_rate = rate_of(row->past[0].failed, now.failed, ms);
}

static int64_t passed(int64_t moment_ms, int64_t now_ms) {
    return moment_ms == SIZES_NONE || now_ms - moment_ms < LATE_MS ? 0 : now_ms - moment_ms;
}

/* What follows from the sizes at a moment of the server's clock. */
static void take_flags(top_row *row, int64_t now_ms) {
    const sizes *s = &row->sizes;
    row->read_at_ms = now_ms;
    int64_t oldest_ms = now_ms - s->oldest_ms;
    row->oldest_ms = s->oldest_ms == SIZES_NONE ? SIZES_NONE : oldest_ms < 0 ? 0 : oldest_ms;
    row->lapsed_ms = passed(s->lease_end_ms, now_ms);
    row->overdue_ms = passed(s->next_ms, now_ms);
    row->flags = (s->is_paused ? (unsigned)TOP_PAUSED : 0U) |
                 (row->lapsed_ms != 0 ? (unsigned)TOP_LAPSED : 0U) |
                 (row->overdue_ms != 0 ? (unsigned)TOP_OVERDUE : 0U);
}

static void take_sizes(top *all, top_row *row, const sizes *s, int64_t at_ms) {
    row->sizes = *s;
    if (s->result == EMQ_OK) {
        take_rates(row, all->window, at_ms);
    } else {
        row->past_count = 0;
        row->completed_rate = TOP_NO_RATE;
        row->failed_rate = TOP_NO_RATE;
    }
    take_flags(row, all->read_at_ms + all->clock_ms);
}

static int read_all(top *all, const char **names, sizes *read) {
    for (size_t i = 0; i < all->shown_count; i++) {
        names[i] = all->shown[i]->name;
    }
    int result = sizes_read(read, all->pipeline, names, all->shown_count);
    if (result != EMQ_OK) {
        return result;
    }
    int64_t at_ms = top_monotonic_ms();
    all->read_at_ms = tool_now_ms();
    for (size_t i = 0; i < all->shown_count; i++) {
        take_sizes(all, all->shown[i], &read[i], at_ms);
    }
    return EMQ_OK;
}

int top_read(top *all) {
    const char **names = calloc(all->shown_count + 1, sizeof(*names));
    sizes *read = calloc(all->shown_count + 1, sizeof(*read));
    int result = names == NULL || read == NULL ? EMQ_ENOMEM : read_all(all, names, read);
    free(names);
    free(read);
    top_arrange(all);
    return result;
}

/* --- numbers as text --- */

void top_format_count(char out[TOP_CELL_MAX], int64_t n) {
    static const char units[] = {'\0', 'k', 'M', 'G', 'T', 'P', 'E'};
    size_t unit = 0;
    while (n >= 1000000) {
        n /= 1000;
        unit++;
    }
    (void)snprintf(out, TOP_CELL_MAX, "%d%.1s", (int)n, unit == 0 ? "" : &units[unit]);
}

void top_format_rate(char out[TOP_CELL_MAX], double rate) {
    if (rate < 0) {
        (void)snprintf(out, TOP_CELL_MAX, "-");
    } else if (rate > 0 && rate < 100) {
        (void)snprintf(out, TOP_CELL_MAX, "%.1f", rate);
    } else {
        top_format_count(out, (int64_t)rate);
    }
}

static void format_age(char out[TOP_CELL_MAX], int64_t ms) {
    char age[TOOL_TIME_MAX] = "-";
    if (ms >= 60000) {
        tool_format_age(age, ms);
    } else if (ms != SIZES_NONE) {
        (void)snprintf(age, sizeof(age), "%.*fs", ms < 10000 ? 1 : 0, (double)ms / 1000);
    }
    (void)snprintf(out, TOP_CELL_MAX, "%.*s", TOP_CELL_MAX - 1, age);
}

static void format_marked(char out[TOP_CELL_MAX], int64_t n, int is_marked) {
    top_format_count(out, n);
    size_t length = strlen(out);
    out[length] = is_marked ? '!' : '\0';
    out[length + 1] = '\0';
}

void top_format_cell(char out[TOP_CELL_MAX], const top_row *row, top_column column) {
    switch (column) {
    case TOP_PENDING:
        top_format_count(out, row->sizes.pending);
        break;
    case TOP_OLDEST:
        format_age(out, row->oldest_ms);
        break;
    case TOP_ACTIVE:
        format_marked(out, row->sizes.active, row->lapsed_ms != 0);
        break;
    case TOP_SCHEDULED:
        format_marked(out, row->sizes.scheduled, row->overdue_ms != 0);
        break;
    case TOP_DEAD:
        top_format_count(out, row->sizes.dead);
        break;
    case TOP_COMPLETED_RATE:
        top_format_rate(out, row->completed_rate);
        break;
    case TOP_FAILED_RATE:
        top_format_rate(out, row->failed_rate);
        break;
    default:
        out[0] = '\0';
    }
}
