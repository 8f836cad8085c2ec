/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a server and not of a queue: version, install, ping. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tool.h"

/* Options that ask for it are refused by a library without, before anything is connected. */
static int has_tls(void) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    emq_pool *pool = NULL;
    options.tls = 1;
    int result = emq_pool_open(&pool, &options, NULL);
    emq_pool_free(pool);
    return result != EMQ_ENOTLS;
}

static int run_version(tool *t) {
    if (t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "tool", json_string(EMQ_VERSION_STRING));
        (void)json_object_set_new(object, "libemq", json_string(emq_version()));
        (void)json_object_set_new(object, "tls", json_boolean(has_tls()));
        tool_print_json(object);
    } else {
        (void)printf("emq %s (libemq %s, %s TLS)\n", EMQ_VERSION_STRING, emq_version(),
                     has_tls() ? "with" : "without");
    }
    return TOOL_DONE;
}

const tool_verb verb_version = {
    .name = "version",
    .arguments = "",
    .least = 0,
    .most = 0,
    .summary = "Print the versions of this tool and its library; no server is asked",
    .details =
        "And whether the library is built with TLS, for rediss:// URLs. What the server runs\n"
        "is told by emq ping.\n",
    .example = "emq version\n",
    .run = run_version,
};

static int run_install(tool *t) {
    char error[512];
    emq_client_options options;
    int status = tool_address(t, &options);
    if (status != TOOL_DONE) {
        return status;
    }
    int result = emq_install(&options, error, sizeof(error));
    if (result < 0) {
        return tool_fail(t, "cannot install", result, error);
    }
    if (t->json) {
        json_t *object = json_object();
        tool_json_result(object, result);
        tool_print_json(object);
    } else {
        (void)puts(result == EMQ_OK ? "installed" : "it was installed already");
    }
    return tool_status(result);
}

const tool_verb verb_install = {
    .name = "install",
    .arguments = "",
    .least = 0,
    .most = 0,
    .summary = "Write the fence, once per database, so that clients may work in it",
    .details = "It needs a user with the right to EMQ.INSTALL. A database that has the fence\n"
               "already stays as it is (exit status 1), as does one of another wire (4).\n",
    .example = "emq install --url redis://admin@queue.internal:6379/0?password_env=PW\n",
    .run = run_install,
};

static json_t *reply_to_json(const emq_reply *reply) {
    size_t n = 0;
    const char *text = emq_reply_get_string(reply, &n);
    if (text != NULL) {
        return json_stringn(text, n);
    }
    if (emq_reply_get_type(reply) != EMQ_REPLY_ARRAY) {
        return json_integer(emq_reply_get_integer(reply));
    }
    json_t *array = json_array();
    for (size_t i = 0; i < emq_reply_get_count(reply); i++) {
        (void)json_array_append_new(array, reply_to_json(emq_reply_get_element(reply, i)));
    }
    return array;
}

/* Names and values, one after the other. */
static json_t *facts_to_json(const emq_reply *reply) {
    json_t *object = json_object();
    for (size_t i = 0; i + 1 < emq_reply_get_count(reply); i += 2) {
        const char *name = emq_reply_get_string(emq_reply_get_element(reply, i), NULL);
        if (name != NULL) {
            (void)json_object_set_new(object, name,
                                      reply_to_json(emq_reply_get_element(reply, i + 1)));
        }
    }
    return object;
}

static const char *fact(const json_t *facts, const char *name) {
    const char *text = json_string_value(json_object_get(facts, name));
    return text == NULL ? "?" : text;
}

static void print_facts(const tool *t, json_t *facts, double ms) {
    if (t->json) {
        (void)json_object_set_new(facts, "round_trip_ms", json_real(ms));
        tool_print_json(facts);
        return;
    }
    (void)printf("server %s, module %s (%s), wire %s: %.3f ms\n", fact(facts, "server"),
                 fact(facts, "version"), fact(facts, "build"), fact(facts, "wire"), ms);
    json_decref(facts);
}

static int ping(tool *t) {
    struct timespec start = {0, 0};
    struct timespec end = {0, 0};
    emq_line line = EMQ_LINE_INIT;
    emq_reply *reply = NULL;
    int result = emq_line_version(&line);
    if (result != EMQ_OK) {
        return tool_fail(t, "cannot ask", result, "");
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    result = emq_client_command(&reply, t->client, line.argc, line.argv, line.argvlen);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    emq_line_clear(&line);
    if (result != EMQ_OK) {
        return tool_fail_client(t, "no answer", result);
    }
    print_facts(t, facts_to_json(reply),
                (double)(end.tv_sec - start.tv_sec) * 1000 +
                    (double)(end.tv_nsec - start.tv_nsec) / 1000000);
    (void)fflush(stdout);
    emq_reply_free(reply);
    return TOOL_DONE;
}

static int run_ping(tool *t) {
    int64_t count = 0;
    int status = tool_number(t, &count, "count", 1, 1, INT32_MAX);
    if (status == TOOL_DONE) {
        status = tool_open(t);
    }
    for (int64_t i = 0; i < count && status == TOOL_DONE; i++) {
        const struct timespec second = {1, 0};
        if (i > 0) {
            (void)nanosleep(&second, NULL);
        }
        status = ping(t);
    }
    return status;
}

static const tool_option ping_options[] = {
    {"count", 'c', "N", "ask so many times, once a second (default 1)"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_ping = {
    .name = "ping",
    .arguments = "",
    .least = 0,
    .most = 0,
    .summary = "Connect as a worker does, and tell what the server runs and how fast it answers",
    .details = "What an EMQ client checks when it connects is checked: the module, its wire and\n"
               "version, the fence. Exit status 3: not reachable, or not ready yet; 4: refused.\n",
    .example = "emq ping --count 5\n",
    .options = ping_options,
    .run = run_ping,
};
