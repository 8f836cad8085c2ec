/* SPDX-License-Identifier: Apache-2.0 */
/* A web server on 127.0.0.1 for the webhook example. Prints its port; appends `path body key` of
 * each POST to a file; ends when its standard input does.
 *
 *     http_server LOG FIXED
 *
 * /ok answers 200; /flaky answers 503 twice and then 200; everything else answers 404 until the
 * file FIXED exists, and then 200. */
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BODY_MAX 256

typedef struct call {
    char body[BODY_MAX];
    size_t n;
} call;

static FILE *calls;
static const char *fixed;
static int flaky_calls;

static unsigned judge(const char *path) {
    if (strcmp(path, "/ok") == 0) {
        return MHD_HTTP_OK;
    }
    if (strcmp(path, "/flaky") == 0) {
        return ++flaky_calls < 3 ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
    }
    return access(fixed, F_OK) == 0 ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND;
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data, size_t *n,
                              void **state) {
    (void)user, (void)method, (void)version;
    call *c = *state;
    if (c == NULL) { /* the headers are there, the body is not */
        *state = calloc(1, sizeof(*c));
        return *state == NULL ? MHD_NO : MHD_YES;
    }
    if (*n > 0) {
        size_t room = BODY_MAX - 1 - c->n;
        size_t taken = *n < room ? *n : room;
        memcpy(c->body + c->n, data, taken);
        c->n += taken;
        *n = 0;
        return MHD_YES;
    }
    const char *key = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Idempotency-Key");
    (void)fprintf(calls, "%s %s %s\n", path, c->body, key == NULL ? "-" : key);
    (void)fflush(calls);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(connection, judge(path), response);
    MHD_destroy_response(response);
    return result;
}

static void forget(void *user, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code) {
    (void)user, (void)connection, (void)code;
    free(*state);
    *state = NULL;
}

int main(int argc, char **argv) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    calls = argc == 3 ? fopen(argv[1], "a") : NULL;
    fixed = argc == 3 ? argv[2] : NULL;
    /* one thread: what the answers share needs no lock */
    struct MHD_Daemon *daemon =
        calls == NULL ? NULL
                      : MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer,
                                         NULL, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
                                         MHD_OPTION_NOTIFY_COMPLETED, forget, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        daemon == NULL ? NULL : MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (info == NULL) {
        (void)fprintf(stderr, "the web server does not start\n");
        return 1;
    }
    printf("%d\n", (int)info->port);
    (void)fflush(stdout);
    while (getchar() != EOF) {
    }
    MHD_stop_daemon(daemon);
    (void)fclose(calls);
    return 0;
}
