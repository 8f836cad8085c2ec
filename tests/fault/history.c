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

/* The id of a row's key ` emq:{queue}:job:<id>`; what follows it in `rest`. */
static int read_id(char id[RECORD_ID_SIZE], const char **rest, const char *key,
                   const char *prefix) {
    const char *start = key + strlen(prefix);
    if (strncmp(key, prefix, strlen(prefix)) != 0 || strcspn(start, " \n") != RECORD_ID_SIZE - 1) {
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

/* Whether every job that the line names is one of them. */
static int note_line(history *all, size_t jobs, const char *line, const char *prefix) {
    char id[RECORD_ID_SIZE];
    const char *rest = NULL;
    int is_end =
        strncmp(line, "DEL ", 4) == 0; /* of several rows, where they were completed together */
    if (!is_end && strncmp(line, "HSET ", 5) != 0) {
        return 1;
    }
    const char *end = line + strcspn(line, "\n");
    for (const char *key = strchr(line, ' '); key != NULL && key < end;
         key = strchr(key + 1, ' ')) {
        if (read_id(id, &rest, key, prefix)) {
            history *h = bsearch(id, all, jobs, sizeof(*all), by_text);
            if (h == NULL) {
                return 0;
            }
            h->ends += is_end;
            note_state(h, rest);
        }
        if (!is_end) {
            break; /* values follow */
        }
    }
    return 1;
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
        line += *line == '\n';
        if (!note_line(all, jobs, line, prefix)) {
            free(all);
            return NULL;
        }
    }
    return all;
}
