/* SPDX-License-Identifier: Apache-2.0 */
/* The incremental AOF file, found through the manifest and read as the commands it holds. */
#include "aof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command.h"

#define LINE_MAX_LENGTH 1024

/* The manifest's last line of type i names the file that is written now. */
static FILE *open_incremental(test_server *server) {
    char folder[SERVER_PATH_MAX];
    char name[SERVER_PATH_MAX] = "";
    char path[SERVER_PATH_MAX * 3];
    char line[LINE_MAX_LENGTH];
    redisReply *reply = call(server->admin, "CONFIG", "GET", "dir", NULL);
    (void)snprintf(folder, sizeof(folder), "%s", reply->element[1]->str);
    freeReplyObject(reply);
    (void)snprintf(path, sizeof(path), "%s/appendonlydir/appendonly.aof.manifest", folder);
    FILE *manifest = fopen(path, "r");
    if (manifest == NULL) {
        fail_msg("cannot read %s", path);
    }
    while (fgets(line, sizeof(line), manifest) != NULL) {
        if (strstr(line, " type i") != NULL) {
            (void)sscanf(line, "file %500s", name);
        }
    }
    (void)fclose(manifest);
    (void)snprintf(path, sizeof(path), "%s/appendonlydir/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("cannot read %s", path);
    }
    return file;
}

long long aof_mark(test_server *server) {
    run(server->admin, "CONFIG", "SET", "appendfsync", "always", NULL);
    FILE *file = open_incremental(server);
    (void)fseek(file, 0, SEEK_END);
    long long mark = ftell(file);
    (void)fclose(file);
    return mark;
}

/* Reads `*<n>` or `$<n>`. */
static long read_count(FILE *file, char what) {
    char line[64];
    if (fgets(line, sizeof(line), file) == NULL) {
        return -1;
    }
    if (line[0] != what) {
        fail_msg("the AOF holds %s where %c was expected", line, what);
    }
    return atol(line + 1);
}

static void append_word(char **text, FILE *file) {
    size_t length = (size_t)read_count(file, '$');
    char *word = malloc(length + 2);
    assert_non_null(word);
    assert_int_equal(fread(word, 1, length + 2, file), length + 2);
    int is_plain = length > 0;
    for (size_t i = 0; i < length; i++) {
        is_plain = is_plain && word[i] > ' ' && word[i] <= '~';
    }
    word[length] = '\0';
    if (is_plain) {
        append_text(text, word);
    } else {
        append_quoted(text, word, length);
    }
    free(word);
}

static char *read_since(test_server *server, long long mark, int with_select) {
    FILE *file = open_incremental(server);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size); /* an AOF may be long */
    const char *before = "";
    assert_non_null(out);
    assert_int_equal(fseek(file, (long)mark, SEEK_SET), 0);
    for (long words = read_count(file, '*'); words > 0; words = read_count(file, '*')) {
        char *line = NULL;
        for (long i = 0; i < words; i++) {
            append_text(&line, i > 0 ? " " : "");
            append_word(&line, file);
        }
        if (with_select || strncasecmp(line, "SELECT ", 7) != 0) {
            (void)fprintf(out, "%s%s", before, line);
            before = "\n";
        }
        free(line);
    }
    (void)fclose(file);
    assert_int_equal(fclose(out), 0);
    return text;
}

char *aof_since(test_server *server, long long mark) {
    return read_since(server, mark, 0);
}

char *aof_since_with_select(test_server *server, long long mark) {
    return read_since(server, mark, 1);
}
