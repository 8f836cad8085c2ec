/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a verb, and how failures are told: text for people, JSON for machines, an exit
 * status for scripts, which follows from the class of the result alone. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define NOTE_MAX 1024
#define DEFAULT_URL "redis://127.0.0.1:6379"

static const struct {
    const char *word;
    int status;
} classes[] = {
    [EMQ_CLASS_OK] = {"ok", TOOL_OTHER},
    [EMQ_CLASS_RETRYABLE] = {"retryable", TOOL_RETRY},
    [EMQ_CLASS_UNKNOWN] = {"unknown", TOOL_UNKNOWN},
    [EMQ_CLASS_STALE] = {"stale", TOOL_STALE},
    [EMQ_CLASS_USAGE] = {"usage", TOOL_USAGE},
    [EMQ_CLASS_SERVER] = {"server", TOOL_REFUSED},
    [EMQ_CLASS_PROTOCOL] = {"protocol", TOOL_BROKEN},
    [EMQ_CLASS_INTERNAL] = {"internal", TOOL_BROKEN},
};

int tool_status(int result) {
    return result == EMQ_OK ? TOOL_DONE : classes[emq_err_class(result)].status;
}

static void fail_json(const tool *t, const char *what, int result, const char *detail) {
    json_t *object = json_object();
    (void)json_object_set_new(object, "error", json_string(emq_err_name(result)));
    (void)json_object_set_new(object, "class", json_string(classes[emq_err_class(result)].word));
    (void)json_object_set_new(object, "status", json_integer(tool_status(result)));
    (void)json_object_set_new(object, "verb", json_string(t->verb->name));
    (void)json_object_set_new(object, "what", json_string(what));
    (void)json_object_set_new(object, "message", json_string(emq_strerror(result)));
    tool_json_bytes(object, "detail", detail, strlen(detail));
    tool_print_json_error(object);
}

int tool_fail(const tool *t, const char *what, int result, const char *detail) {
    (void)fflush(stdout); /* in the order in which it happened */
    if (t->json) {
        fail_json(t, what, result, detail);
        return tool_status(result);
    }
    (void)fprintf(stderr, "emq %s: ", t->verb->name);
    tool_print_bytes(stderr, what, strlen(what), 0);
    (void)fprintf(stderr, ": %s", emq_strerror(result));
    if (detail[0] != '\0' && strcmp(detail, emq_strerror(result)) != 0) {
        (void)fprintf(stderr, " (");
        tool_print_bytes(stderr, detail, strlen(detail), 0);
        (void)fprintf(stderr, ")");
    }
    (void)fputc('\n', stderr);
    return tool_status(result);
}

int tool_fail_client(const tool *t, const char *what, int result) {
    return tool_fail(t, what, result, emq_client_get_error(t->client));
}

void tool_say(const tool *t, const char *format, va_list arguments) {
    char text[NOTE_MAX];
    (void)fflush(stdout);
    (void)fprintf(stderr, "emq %s: ", t->verb->name);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the caller has started it */
    (void)vsnprintf(text, sizeof(text), format, arguments);
    tool_print_bytes(stderr, text, strlen(text), 0);
}

static void note_json(const tool *t, const char *note) {
    json_t *object = json_object();
    (void)json_object_set_new(object, "verb", json_string(t->verb->name));
    tool_json_bytes(object, "note", note, strlen(note));
    tool_print_json_error(object);
}

/* A line at a time, whatever other threads have to say. */
void tool_note(const tool *t, const char *format, ...) {
    char note[NOTE_MAX];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, in the line above */
    (void)vsnprintf(note, sizeof(note), format, arguments);
    va_end(arguments);
    if (t->json) {
        note_json(t, note);
        return;
    }
    (void)fflush(stdout);
    flockfile(stderr);
    (void)fprintf(stderr, "emq %s: ", t->verb->name);
    tool_print_bytes(stderr, note, strlen(note), 0);
    (void)fputc('\n', stderr);
    funlockfile(stderr);
}

int tool_usage(const tool *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tool_say(t, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "\nemq %s: see: emq help %s\n", t->verb->name, t->verb->name);
    return TOOL_USAGE;
}

int tool_address(tool *t, emq_client_options *out) {
    char error[512];
    const char *from = "--url";
    const char *url = t->url;
    if (url == NULL) {
        from = "EMQ_URL";
        url = getenv("EMQ_URL");
    }
    if (url == NULL || url[0] == '\0') {
        url = DEFAULT_URL;
    }
    int result = emq_url_parse(&t->parsed, url, error, sizeof(error));
    if (result != EMQ_OK) {
        return tool_fail(t, from, result, error);
    }
    *out = *emq_url_get_options(t->parsed);
    if (out->client_name == NULL) {
        out->client_name = "emq";
    }
    return TOOL_DONE;
}

int tool_connect(tool *t, const emq_client_options *options) {
    int result = emq_client_open(&t->client, options);
    return result == EMQ_OK ? TOOL_DONE : tool_fail_client(t, "cannot connect", result);
}

int tool_open(tool *t) {
    emq_client_options options;
    int status = tool_address(t, &options);
    return status == TOOL_DONE ? tool_connect(t, &options) : status;
}

void tool_close(tool *t) {
    emq_client_close(t->client);
    emq_url_free(t->parsed);
    if (t->url != NULL) {
        memset(t->url, '*', strlen(t->url));
    }
    free(t->url);
}

/* Reads one line of the terminal; only a whole "y" or "yes" is a yes. */
static int is_yes(void) {
    char answer[16];
    if (fgets(answer, sizeof(answer), stdin) == NULL) {
        return 0;
    }
    answer[strcspn(answer, "\n")] = '\0';
    return strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0;
}

int tool_confirm(const tool *t, const char *format, ...) {
    va_list arguments;
    if (tool_value(t, "yes") != NULL) {
        return TOOL_DONE;
    }
    if (!isatty(STDIN_FILENO)) {
        return tool_usage(t, "has to be confirmed: standard input is no terminal, so say --yes");
    }
    va_start(arguments, format);
    tool_say(t, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, " [y/N] ");
    if (is_yes()) {
        return TOOL_DONE;
    }
    tool_note(t, "nothing was done");
    return TOOL_OTHER;
}
