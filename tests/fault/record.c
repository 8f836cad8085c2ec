/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a worker's log, written and read: see record.h. */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {"run", "end", "told", "completed", "returned", "refused"};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

int64_t record_now_ms(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int record_open(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

int record_write(int fd, record_kind kind, const char *id, int64_t attempt, int value) {
    char line[128];
    int n = snprintf(line, sizeof(line), "%s %s %" PRId64 " %" PRId64 " %d\n", names[kind], id,
                     attempt, record_now_ms(), value);
    ssize_t written = -1;
    do {
        written = write(fd, line, (size_t)n);
    } while (written < 0 && errno == EINTR);
    return written == n ? 0 : -1;
}

void records_add(records *list, const record *r) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 1024;
        list->items = realloc(list->items, list->capacity * sizeof(*list->items));
        if (list->items == NULL) {
            abort();
        }
    }
    list->items[list->count++] = *r;
}

static int parse(record *r, const char *line) {
    char name[16];
    int end = 0;
    int got = sscanf(line, "%15s %14s %" SCNd64 " %" SCNd64 " %d\n%n", name, r->id, &r->attempt,
                     &r->at_ms, &r->value, &end);
    for (size_t i = 0; i < NAME_COUNT && got == 5 && line[end] == '\0'; i++) {
        if (strcmp(name, names[i]) == 0) {
            r->kind = (record_kind)i;
            return 0;
        }
    }
    return -1;
}

int records_read(records *list, const char *path, size_t process) {
    char line[256];
    FILE *file = fopen(path, "r");
    int result = file == NULL ? -1 : 0;
    while (result == 0 && fgets(line, sizeof(line), file) != NULL) {
        record r = {.process = process};
        if (strchr(line, '\n') == NULL) {
            break;
        }
        result = parse(&r, line);
        if (result == 0) {
            records_add(list, &r);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return result;
}

void records_free(records *list) {
    free(list->items);
    *list = (records){0};
}
