/* SPDX-License-Identifier: Apache-2.0 */
/* `emq top` on the terminal: how it looks. On a small terminal the rows stay, and what is around
 * them goes first. */
#include <curses.h>
#include <inttypes.h>
#include <string.h>

#include "top_screen.h"

#define TITLE_LINES 2  /* title, totals; the header is below them */
#define BOTTOM_LINES 2 /* the selected queue, keys */
#define SMALL_LINES 7  /* below that many, they are left out */
#define NAME_MIN 12
#define NAME_USUAL 20
#define NOTE_WIDTH 7 /* " paused" */
#define LINE_BYTES 512

static chtype colour(int pair) {
    return has_colors() ? (chtype)COLOR_PAIR(pair) : 0;
}

/* Text, cut to what is left of the line. */
static void put(int y, int x, chtype attributes, const char *text) {
    if (y >= 0 && y < LINES && x >= 0 && x < COLS) {
        (void)attrset((int)attributes);
        (void)mvaddnstr(y, x, text, COLS - x);
        (void)attrset(A_NORMAL);
    }
}

static void put_line(int y, chtype attributes, const char *text) {
    char line[LINE_BYTES];
    int width = COLS < LINE_BYTES ? COLS : LINE_BYTES - 1;
    (void)snprintf(line, sizeof(line), "%-*.*s", width, width, text);
    put(y, 0, attributes, line);
}

/* In seconds, minutes and seconds, and so on. */
static void format_since(char out[TOOL_TIME_MAX], int64_t ms) {
    if (ms < 60000) {
        (void)snprintf(out, TOOL_TIME_MAX, "%" PRId64 "s", ms / 1000);
    } else {
        tool_format_age(out, ms);
    }
}

/* --- above the rows --- */

static void draw_title(const screen *s) {
    char line[LINE_BYTES];
    char time[TOOL_TIME_MAX] = "";
    if (s->result != EMQ_OK) {
        const char *why = s->detail[0] != '\0' ? s->detail : emq_strerror(s->result);
        format_since(time, top_monotonic_ms() - s->lost_at_ms);
        (void)snprintf(line, sizeof(line), "NO CONNECTION for %s, trying again: %s", time, why);
        put_line(0, A_REVERSE | A_BOLD | colour(SCREEN_BAD), line);
        return;
    }
    (void)snprintf(line, sizeof(line), "emq top  %s", s->address);
    put_line(0, A_BOLD, line);
    if (s->all.read_at_ms != 0) {
        tool_format_time(time, s->all.read_at_ms);
        (void)snprintf(line, sizeof(line), " %s%.8sZ", s->is_held ? "HELD at " : "", time + 11);
        put(0, COLS - (int)strlen(line), s->is_held ? A_REVERSE : A_BOLD, line);
    }
}

static void add_up(top_row *sum, const top_row *row) {
    sum->sizes.pending += row->sizes.pending;
    sum->sizes.active += row->sizes.active;
    sum->sizes.scheduled += row->sizes.scheduled;
    sum->sizes.dead += row->sizes.dead;
    sum->completed_rate += row->completed_rate > 0 ? row->completed_rate : 0;
    sum->failed_rate += row->failed_rate > 0 ? row->failed_rate : 0;
    sum->past_count += row->past_count;
}

static void draw_totals(const screen *s) {
    static const top_column columns[] = {TOP_PENDING, TOP_ACTIVE,         TOP_SCHEDULED,
                                         TOP_DEAD,    TOP_COMPLETED_RATE, TOP_FAILED_RATE};
    static const char *const words[] = {"pending", "active", "sched", "dead", "done/s", "died/s"};
    char line[LINE_BYTES];
    top_row sum = {.name = NULL};
    if (s->all.rounds == 0) {
        (void)snprintf(line, sizeof(line), "looking for queues: %zu among %" PRIu64 " keys",
                       s->all.count, s->all.finder.looked_at);
        put_line(1, 0, line);
        return;
    }
    for (size_t i = 0; i < s->all.shown_count; i++) {
        add_up(&sum, s->all.shown[i]);
    }
    int length = snprintf(line, sizeof(line), "%zu queue%s", s->all.shown_count,
                          s->all.shown_count == 1 ? "" : "s");
    if (s->all.pattern[0] != '\0') {
        length += snprintf(line + length, sizeof(line) - (size_t)length, " of %zu: %s",
                           s->all.count, s->all.pattern);
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        char cell[TOP_CELL_MAX];
        top_format_cell(cell, &sum, columns[i]);
        length += snprintf(line + length, sizeof(line) - (size_t)length, "  %s %s", cell, words[i]);
    }
    put_line(1, 0, line);
}

/* --- the rows --- */

static int numbers_width(void) {
    int width = NOTE_WIDTH;
    for (top_column i = TOP_NAME + 1; i < TOP_COLUMNS; i++) {
        width += top_columns[i].width + 1;
    }
    return width;
}

/* As much as the names take, so that the eye finds their numbers. */
static int name_width(const screen *s) {
    int room = COLS - numbers_width();
    int width = NAME_USUAL;
    for (size_t i = 0; i < s->all.shown_count; i++) {
        int length = (int)strlen(s->all.shown[i]->name) + 1;
        width = length > width ? length : width;
    }
    width = width > room ? room : width;
    return width < NAME_MIN ? NAME_MIN : width;
}

/* The column of the order has a star; turned round, a `^`. */
static void draw_header(const screen *s, int y) {
    int x = 0;
    put_line(y, A_REVERSE, "");
    for (top_column i = TOP_NAME; i < TOP_COLUMNS; i++) {
        char title[TOP_CELL_MAX + 2];
        int width = i == TOP_NAME ? s->name_width : top_columns[i].width + 1;
        int is_order = i == s->all.order;
        const char *mark = !is_order ? "" : s->all.is_reversed ? "^" : "*";
        (void)snprintf(title, sizeof(title), "%s%s", mark, top_columns[i].title);
        int at = i == TOP_NAME ? 0 : x + width - (int)strlen(title);
        put(y, at, A_REVERSE | (is_order ? A_BOLD | A_UNDERLINE : 0), title);
        x += width;
    }
}

/* The middle of a long name is left out: the ends are what names differ by. */
static void format_name(char *out, size_t cap, const char *name, int width) {
    int length = (int)strlen(name);
    if (length <= width) {
        (void)snprintf(out, cap, "%s", name);
        return;
    }
    int head = (width - 2) / 2;
    int tail = width - 2 - head;
    (void)snprintf(out, cap, "%.*s..%s", head, name, name + length - tail);
}

static chtype cell_attributes(const top_row *row, top_column column) {
    switch (column) {
    case TOP_ACTIVE:
        return row->lapsed_ms != 0 ? A_BOLD | colour(SCREEN_BAD) : 0;
    case TOP_SCHEDULED:
        return row->overdue_ms != 0 ? A_BOLD | colour(SCREEN_ODD) : 0;
    case TOP_DEAD:
        return row->sizes.dead != 0 ? colour(SCREEN_BAD) : 0;
    case TOP_FAILED_RATE:
        return row->failed_rate > 0 ? A_BOLD | colour(SCREEN_BAD) : 0;
    default:
        return 0;
    }
}

static void draw_numbers(const screen *s, const top_row *row, int y, chtype line) {
    int x = s->name_width;
    for (top_column i = TOP_NAME + 1; i < TOP_COLUMNS; i++) {
        char cell[TOP_CELL_MAX] = "-";
        if (row->past_count != 0) {
            top_format_cell(cell, row, i);
        }
        x += top_columns[i].width + 1;
        put(y, x - (int)strlen(cell), line | cell_attributes(row, i), cell);
    }
    if ((row->flags & TOP_PAUSED) != 0) {
        put(y, x + 1, line | A_BOLD | colour(SCREEN_ODD), "paused");
    }
}

/* Old numbers are dim, while there is no connection. */
static void draw_row(const screen *s, size_t i, int y) {
    const top_row *row = s->all.shown[i];
    char name[EMQ_QUEUE_MAX + 1];
    chtype line = i == s->selected ? A_REVERSE : s->result != EMQ_OK ? A_DIM : 0;
    format_name(name, sizeof(name), row->name, s->name_width - 1);
    put_line(y, line, name);
    if (row->sizes.result != EMQ_OK) {
        put(y, s->name_width + 1, line | colour(SCREEN_BAD), emq_strerror(row->sizes.result));
    } else {
        draw_numbers(s, row, y, line);
    }
}

static void draw_rows(screen *s, int y, int lines) {
    s->page = lines;
    size_t room = lines < 1 ? 1 : (size_t)lines;
    if (s->selected < s->first) {
        s->first = s->selected;
    } else if (s->selected >= s->first + room) {
        s->first = s->selected - room + 1;
    }
    size_t count = s->all.shown_count;
    if (s->first > 0 && s->first + room > count) {
        s->first = count < room ? 0 : count - room;
    }
    for (size_t i = 0; i < room && s->first + i < count; i++) {
        draw_row(s, s->first + i, y + (int)i);
    }
    if (count == 0 && s->all.rounds != 0) {
        put(y + 1, 2, 0,
            s->all.count == 0 ? "no queue has a key in this database"
                              : "no queue matches the filter: Esc clears it");
    }
}

/* --- below the rows --- */

static void append(char line[LINE_BYTES], const char *before, int64_t ms, const char *after) {
    char since[TOOL_TIME_MAX];
    size_t length = strlen(line);
    format_since(since, ms);
    (void)snprintf(line + length, LINE_BYTES - length, "%s%s%s", before, since, after);
}

/* How a queue stands, in words and with the whole name; or what the server said. */
static void describe(char line[LINE_BYTES], const top_row *row) {
    if (row->sizes.result != EMQ_OK) {
        (void)snprintf(line, LINE_BYTES, "%s: %s", row->name, row->sizes.detail);
        return;
    }
    (void)snprintf(line, LINE_BYTES, "%s:%s", row->name,
                   (row->flags & TOP_PAUSED) != 0 ? " PAUSED;" : "");
    if (row->lapsed_ms != 0) {
        append(line, " LEASE LAPSED ", row->lapsed_ms, " ago;");
    }
    if (row->overdue_ms != 0) {
        append(line, " JOB OVERDUE ", row->overdue_ms, ";");
    } else if (row->sizes.next_ms > row->read_at_ms) {
        append(line, " next due in ", row->sizes.next_ms - row->read_at_ms, ";");
    }
    size_t length = strlen(line);
    (void)snprintf(line + length, LINE_BYTES - length, " so far %" PRId64 " done, %" PRId64 " died",
                   row->sizes.completed, row->sizes.failed);
}

static void draw_selected(const screen *s, int y) {
    char line[LINE_BYTES] = "";
    if (s->selected < s->all.shown_count) {
        describe(line, s->all.shown[s->selected]);
    }
    put_line(y, 0, line);
}

static void draw_keys(const screen *s, int y) {
    char line[LINE_BYTES];
    if (s->mode == SCREEN_FILTER) {
        (void)snprintf(line, sizeof(line), "filter: %s_   (Enter keeps it, Esc clears it)",
                       s->typed);
        put_line(y, A_BOLD, line);
        return;
    }
    put_line(y, A_DIM, "q quit  h help  / filter  < > sort by  r reverse  space hold  arrows move");
}

static void draw_help(void) {
    static const char *const lines[] = {
        "< >, or a letter   sort by the column before or behind; n name, p pending,",
        "                   o oldest, a active, s scheduled, d dead, c done/s, f died/s",
        "r                  reverse the order (as the column's letter does)",
        "/                  filter: text anywhere in the name, or a pattern with * ? [",
        "arrows j k, page   move; also Home g, End G. A queue stays selected",
        "space              hold the numbers, and let them go on",
        "Control-L          draw anew",
        "q                  quit",
        "",
        "PENDING  ready to run            OLDEST  age of the oldest of them",
        "ACTIVE   leased; ! a lease has lapsed, and no sweep took it back: no worker?",
        "SCHED    wait for a time; ! one is overdue, and nobody promoted it: no worker?",
        "DEAD     dead letters: emq dead QUEUE shows why, emq reprocess revives them",
        "DONE/s   completed, DIED/s buried, a second, over the last five readings",
        "paused   no claims are served: emq resume QUEUE",
        "",
        "any key goes back",
    };
    put_line(0, A_BOLD, "emq top: keys and columns");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        put((int)i + 2, 1, 0, lines[i]);
    }
}

void screen_draw(screen *s) {
    int is_small = LINES < SMALL_LINES;
    int above = is_small ? 0 : TITLE_LINES;
    int bottom = is_small ? 0 : BOTTOM_LINES;
    s->name_width = name_width(s);
    (void)erase();
    if (s->mode == SCREEN_HELP) {
        draw_help();
    } else {
        draw_header(s, above);
        draw_rows(s, above + 1, LINES - above - 1 - bottom);
        if (!is_small || s->result != EMQ_OK) {
            draw_title(s);
        }
        if (!is_small) {
            draw_totals(s);
            draw_selected(s, LINES - 2);
        }
        if (!is_small || s->mode == SCREEN_FILTER) {
            draw_keys(s, LINES - 1);
        }
    }
    (void)refresh();
}
