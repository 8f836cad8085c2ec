/* SPDX-License-Identifier: Apache-2.0 */
/* Effects of the verbs, as protocol.md gives them, counted by job: see history.h. */
#include "history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b) {
    return strcmp(a, b);
}

/* The job of `<command> <prefix><id>…`; what follows the id in `rest`. */
static int read_id(char id[RECORD_ID_SIZE], const char **rest, const char *line,
                   const char *command, const char *prefix) {
    size_t n = strlen(command);
    if (strncmp(line, command, n) != 0 || strncmp(line + n, prefix, strlen(prefix)) != 0) {
        return 0;
    }
    const char *start = line + n + strlen(prefix);
    if (strcspn(start, " \n") != RECORD_ID_SIZE - 1) {
        return 0;
    }
    memcpy(id, start, RECORD_ID_SIZE - 1);
    id[RECORD_ID_SIZE - 1] = '\0';
    *rest = start + RECORD_ID_SIZE - 1;
    return 1;
}

static void note_state(history *h, const char *rest) {
    int64_t number = 0;
    if (sscanf(rest, " state active attempts %" SCNd64, &number) == 1) {
        h->claims = number;
    } else if (sscanf(rest, " state pending stalled %" SCNd64, &number) == 1 ||
               sscanf(rest, " state dead stalled %" SCNd64, &number) == 1) {
        h->stalls = number;
    }
}

history *history_read(const char *commands, const char *queue, const char (*ids)[RECORD_ID_SIZE],
                      size_t jobs) {
    char prefix[256];
    history *all = calloc(jobs + 1, sizeof(*all));
    (void)snprintf(prefix, sizeof(prefix), " emq:{%s}:job:", queue);
    for (size_t i = 0; i < jobs && all != NULL; i++) {
        memcpy(all[i].id, ids[i], RECORD_ID_SIZE);
    }
    for (const char *line = commands; line != NULL && all != NULL; line = strchr(line, '\n')) {
        char id[RECORD_ID_SIZE];
        const char *rest = NULL;
        line += *line == '\n';
        int is_end = read_id(id, &rest, line, "DEL", prefix);
        if (!is_end && !read_id(id, &rest, line, "HSET", prefix)) {
            continue;
        }
        history *h = bsearch(id, all, jobs, sizeof(*all), by_text);
        if (h == NULL) {
            free(all);
            return NULL;
        }
        h->ends += is_end;
        note_state(h, rest);
    }
    return all;
}
