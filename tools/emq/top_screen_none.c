/* SPDX-License-Identifier: Apache-2.0 */
/* `emq top` on the terminal, in a tool that was built without ncurses: how to get it. */
#include "top.h"

int top_screen_run(tool *t, const char *order, const char *pattern, int64_t interval_ms) {
    (void)order;
    (void)pattern;
    (void)interval_ms;
    return tool_usage(t, "this emq was built without ncurses, and cannot draw; --batch prints "
                         "lines. To draw, build it where pkg-config finds ncursesw "
                         "(Debian: libncurses-dev)");
}
