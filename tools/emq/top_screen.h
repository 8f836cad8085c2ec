/* SPDX-License-Identifier: Apache-2.0 */
/* The state of `emq top` on the terminal, between what reads and takes keys (top_screen.c) and what
 * draws (top_draw.c). */
#ifndef EMQ_TOOL_TOP_SCREEN_H
#define EMQ_TOOL_TOP_SCREEN_H

#include "top.h"

/* Pairs of colours. */
enum { SCREEN_BAD = 1, SCREEN_ODD = 2 };

typedef enum screen_mode { SCREEN_ROWS, SCREEN_FILTER, SCREEN_HELP } screen_mode;

typedef struct screen {
    top all;
    char address[256]; /* of the server, without a password */
    int64_t interval_ms;
    int64_t next_read_ms; /* these of the monotonic clock */
    int64_t next_find_ms;
    int64_t next_connect_ms;
    int result; /* of the last that failed, until it works again */
    char detail[256];
    int64_t lost_at_ms;
    screen_mode mode;
    char typed[EMQ_QUEUE_MAX + 1]; /* the filter */
    size_t selected;
    char selected_name[EMQ_QUEUE_MAX + 1];
    int name_width;
    size_t first; /* of the rows that are drawn */
    int page;     /* rows that fit */
    int is_held;  /* the numbers stand still */
    int is_over;
} screen;

void screen_draw(screen *s);

#endif
