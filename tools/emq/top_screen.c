/* SPDX-License-Identifier: Apache-2.0 */
/* `emq top` on the terminal: what is read in between, and what the keys do. One thread: no call of
 * the server takes longer than its time limit, and no signal handler touches the terminal. */
#include "top_screen.h"

#include <ctype.h>
#include <curses.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#define LIMIT_MS 2000 /* of a call, where the URL leaves it open: so long may a key wait */
#define AGAIN_MS 1000 /* between two attempts to connect */
#define SLICE_MS 50   /* between two slices in the background */
#define ROUND_MS 2000 /* between two rounds of looking for queues */
#define ESCAPE_MS 25

/* --- what is read, and when --- */

/* A connection that is lost comes back; what the server refuses for good is the end. */
static void note_failure(screen *s, int result) {
    if (s->result == EMQ_OK) {
        s->lost_at_ms = top_monotonic_ms();
    }
    s->result = result;
    (void)snprintf(s->detail, sizeof(s->detail), "%s", emq_client_get_error(s->all.t->client));
    emq_class class = emq_err_class(result);
    s->is_over = emq_client_is_open(s->all.t->client) && class != EMQ_CLASS_RETRYABLE &&
                 class != EMQ_CLASS_UNKNOWN;
    s->next_connect_ms = top_monotonic_ms() + AGAIN_MS;
}

static void connect_again(screen *s) {
    if (top_monotonic_ms() < s->next_connect_ms) {
        return;
    }
    int result = top_reconnect(&s->all);
    if (result != EMQ_OK) {
        note_failure(s, result);
    }
    s->next_read_ms = 0;
    s->next_find_ms = 0;
}

/* The first round goes as fast as it can. */
static int find_some(screen *s) {
    uint64_t rounds = s->all.rounds;
    int result = top_find(&s->all);
    int64_t pause_ms = s->all.rounds != rounds ? ROUND_MS : rounds == 0 ? 0 : SLICE_MS;
    s->next_find_ms = top_monotonic_ms() + pause_ms;
    if (rounds == 0 && s->all.rounds != 0) {
        s->next_read_ms = 0; /* all of them, and now */
    }
    return result;
}

static int read_some(screen *s) {
    s->next_read_ms = top_monotonic_ms() + s->interval_ms;
    int result = top_read(&s->all);
    if (result == EMQ_OK) {
        s->result = EMQ_OK;
    }
    return result;
}

static void work(screen *s) {
    if (!emq_client_is_open(s->all.t->client)) {
        connect_again(s);
        return;
    }
    int64_t now_ms = top_monotonic_ms();
    int result = EMQ_OK;
    if (now_ms >= s->next_find_ms) {
        result = find_some(s);
    }
    if (result == EMQ_OK && now_ms >= s->next_read_ms && !s->is_held) {
        result = read_some(s);
    }
    if (result != EMQ_OK) {
        note_failure(s, result);
        s->next_read_ms = s->next_connect_ms;
        s->next_find_ms = s->next_connect_ms;
    }
}

static int64_t time_to_work(const screen *s) {
    int64_t next_ms = s->next_find_ms;
    if (!emq_client_is_open(s->all.t->client)) {
        next_ms = s->next_connect_ms;
    } else if (!s->is_held && s->next_read_ms < next_ms) {
        next_ms = s->next_read_ms;
    }
    int64_t left_ms = next_ms - top_monotonic_ms();
    return left_ms < 0 ? 0 : left_ms < AGAIN_MS ? left_ms : AGAIN_MS;
}

/* --- the selected row --- */

/* Whoever did not move stays at the top; who did stays with the queue, also while it is hidden. */
static void find_selected(screen *s) {
    size_t count = s->all.shown_count;
    if (s->selected_name[0] == '\0') {
        s->selected = 0;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(s->all.shown[i]->name, s->selected_name) == 0) {
            s->selected = i;
            return;
        }
    }
    if (s->selected >= count) {
        s->selected = count == 0 ? 0 : count - 1;
    }
}

static void select_row(screen *s, int64_t to) {
    int64_t last = (int64_t)s->all.shown_count - 1;
    to = to > last ? last : to;
    s->selected = to < 0 ? 0 : (size_t)to;
    const char *name = to <= 0 ? "" : s->all.shown[s->selected]->name;
    (void)snprintf(s->selected_name, sizeof(s->selected_name), "%s", name);
}

/* --- keys --- */

static void set_pattern(screen *s) {
    int is_pattern = strpbrk(s->typed, "*?[") != NULL;
    const char *around = s->typed[0] == '\0' || is_pattern ? "" : "*";
    (void)snprintf(s->all.pattern, sizeof(s->all.pattern), "%s%s%s", around, s->typed, around);
    top_arrange(&s->all);
    s->next_read_ms = 0; /* of the others there are no numbers yet */
}

static void take_filter_key(screen *s, int key) {
    size_t length = strlen(s->typed);
    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        s->mode = SCREEN_ROWS;
        return;
    }
    if (key == 27) { /* Escape */
        s->typed[0] = '\0';
        s->mode = SCREEN_ROWS;
    } else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length > 0) {
        s->typed[length - 1] = '\0';
    } else if (key == 21) { /* Control-U */
        s->typed[0] = '\0';
    } else if (key > ' ' && key < 127 && length + 1 < sizeof(s->typed)) {
        s->typed[length] = (char)key;
        s->typed[length + 1] = '\0';
    } else {
        return;
    }
    set_pattern(s);
}

/* 1: it was one of these. */
static int take_move_key(screen *s, int key) {
    int64_t at = (int64_t)s->selected;
    int64_t page = s->page > 1 ? s->page : 1;
    switch (key) {
    case KEY_UP:
    case 'k':
        select_row(s, at - 1);
        return 1;
    case KEY_DOWN:
    case 'j':
        select_row(s, at + 1);
        return 1;
    case KEY_PPAGE:
        select_row(s, at - page);
        return 1;
    case KEY_NPAGE:
        select_row(s, at + page);
        return 1;
    case KEY_HOME:
    case 'g':
        select_row(s, 0);
        return 1;
    case KEY_END:
    case 'G':
        select_row(s, INT64_MAX);
        return 1;
    default:
        return 0;
    }
}

/* 1: it was one of these. The same column again turns it round. */
static int take_order_key(screen *s, int key) {
    top_column order = s->all.order;
    if (key == '<' || key == KEY_LEFT) {
        order = order == 0 ? TOP_COLUMNS - 1 : order - 1;
    } else if (key == '>' || key == KEY_RIGHT) {
        order = order + 1 == TOP_COLUMNS ? 0 : order + 1;
    } else if (key == 'r') {
        s->all.is_reversed = !s->all.is_reversed;
        top_arrange(&s->all);
        return 1;
    } else {
        for (order = TOP_NAME; order < TOP_COLUMNS && top_columns[order].key != key; order++) {
        }
    }
    if (order == TOP_COLUMNS) {
        return 0;
    }
    s->all.is_reversed = order == s->all.order && !s->all.is_reversed;
    s->all.order = order;
    top_arrange(&s->all);
    return 1;
}

static void take_row_key(screen *s, int key) {
    if (take_move_key(s, key) || take_order_key(s, key)) {
        return;
    }
    switch (key) {
    case 'q':
    case 'Q':
        s->is_over = 1;
        break;
    case 'h':
    case '?':
    case KEY_F(1):
        s->mode = SCREEN_HELP;
        break;
    case '/':
        s->mode = SCREEN_FILTER;
        break;
    case 27:
        s->typed[0] = '\0';
        set_pattern(s);
        break;
    case ' ':
        s->is_held = !s->is_held;
        break;
    default:
        break;
    }
}

static void take_key(screen *s, int key) {
    if (key == 12 || key == KEY_RESIZE) { /* Control-L */
        (void)clearok(curscr, TRUE);
    } else if (s->mode == SCREEN_HELP) {
        s->is_over = key == 'q' || key == 'Q';
        s->mode = SCREEN_ROWS;
    } else if (s->mode == SCREEN_FILTER) {
        take_filter_key(s, key);
    } else {
        take_row_key(s, key);
    }
}

/* Waits for keys, at most until there is something to read. A terminal that went away ends it. */
static void take_keys(screen *s) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (tool_stop == 0) {
        (void)poll(&input, 1, (int)time_to_work(s));
    }
    if ((input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        s->is_over = 1;
        return;
    }
    for (int key = getch(); key != ERR && !s->is_over; key = getch()) {
        find_selected(s);
        take_key(s, key);
    }
}

/* --- the terminal --- */

/* Control-\ ends it as the other signals do, and not with the terminal as it is. */
static void watch_quit(void) {
    struct sigaction action;
    if (sigaction(SIGTERM, NULL, &action) == 0) {
        (void)sigaction(SIGQUIT, &action, NULL);
    }
}

/* Asked before newterm, which leaves memory behind when it does not know it. */
static int is_known(void) {
    int reason = 0;
    if (setupterm(NULL, STDOUT_FILENO, &reason) != OK) {
        return 0;
    }
    (void)del_curterm(cur_term);
    return 1;
}

static void begin_terminal(void) {
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)nodelay(stdscr, TRUE);
    (void)keypad(stdscr, TRUE);
    (void)set_escdelay(ESCAPE_MS);
    (void)curs_set(0);
    if (has_colors() && getenv("NO_COLOR") == NULL) {
        (void)start_color();
        (void)use_default_colors();
        (void)init_pair(SCREEN_BAD, COLOR_RED, -1);
        (void)init_pair(SCREEN_ODD, COLOR_YELLOW, -1);
    }
}

static void run(screen *s) {
    while (!s->is_over && tool_stop == 0) {
        work(s);
        find_selected(s);
        screen_draw(s);
        take_keys(s);
    }
}

static int run_on_terminal(screen *s) {
    (void)setlocale(LC_CTYPE, "");
    watch_quit();
    SCREEN *terminal = is_known() ? newterm(NULL, stdout, stdin) : NULL;
    if (terminal == NULL) {
        const char *name = getenv("TERM");
        return tool_usage(s->all.t, "cannot draw on a terminal of the type '%s': --batch can",
                          name == NULL ? "" : name);
    }
    begin_terminal();
    run(s);
    (void)endwin();
    delscreen(terminal);
    int is_refused = s->result != EMQ_OK && emq_client_is_open(s->all.t->client);
    return is_refused ? tool_fail(s->all.t, "cannot read the queues", s->result, s->detail)
                      : TOOL_DONE;
}

/* With short time limits, where the URL leaves them open. */
static int connect_first(screen *s, tool *t) {
    emq_client_options options;
    int status = tool_address(t, &options);
    if (status != TOOL_DONE) {
        return status;
    }
    if (options.command_timeout_ms == 0) {
        options.command_timeout_ms = LIMIT_MS;
    }
    if (options.connect_timeout_ms == 0) {
        options.connect_timeout_ms = LIMIT_MS;
    }
    if (options.unix_path != NULL) {
        (void)snprintf(s->address, sizeof(s->address), "%s", options.unix_path);
    } else if (options.sentinels != NULL) {
        (void)snprintf(s->address, sizeof(s->address), "%s of %s", options.primary_name,
                       options.sentinels);
    } else {
        (void)snprintf(s->address, sizeof(s->address), "%s:%u",
                       options.host == NULL ? "127.0.0.1" : options.host,
                       options.port == 0 ? 6379U : (unsigned)options.port);
    }
    return tool_connect(t, &options);
}

int top_screen_run(tool *t, const char *order, const char *pattern, int64_t interval_ms) {
    screen s = {.interval_ms = interval_ms};
    int status = connect_first(&s, t);
    if (status != TOOL_DONE) {
        return status;
    }
    int result = top_open(&s.all, t);
    s.all.window = TOP_PAST;
    s.all.order = top_column_find(order);
    (void)snprintf(s.typed, sizeof(s.typed), "%s", pattern);
    (void)snprintf(s.all.pattern, sizeof(s.all.pattern), "%s", pattern);
    status = result == EMQ_OK ? run_on_terminal(&s) : tool_fail(t, "cannot go on", result, "");
    top_close(&s.all);
    return status;
}
