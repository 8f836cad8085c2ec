/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside of the tree, C and C++ alike: one job goes all the way. */
#include <emq/emq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run_job(emq_client *client) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    emq_line line = EMQ_LINE_INIT;
    size_t n = 0;
    int result = emq_line_claim(&line, "install", 1000);
    int words = line.argc;
    emq_line_clear(&line);
    if (result == EMQ_OK && words == 6) {
        result = emq_enqueue(&id, client, "install", "pay\0load", 8);
    }
    if (result == EMQ_OK) {
        result = emq_claim(&job, client, "install", 30000);
    }
    if (result != EMQ_OK) {
        return result;
    }
    const void *payload = emq_job_get_payload(job, &n);
    int is_mine = strcmp(emq_job_get_lease(job)->id.text, id.text) == 0 && n == 8 &&
                  memcmp(payload, "pay\0load", 8) == 0;
    result = emq_complete(client, emq_job_get_lease(job));
    emq_job_free(job);
    return is_mine ? result : EMQ_EPROTOCOL;
}

int main(void) {
    const char *port = getenv("EMQ_PORT");
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    emq_client *client = NULL;
    options.port = (uint16_t)(port == NULL ? 0 : strtoul(port, NULL, 10));
    int result = emq_client_open(&client, &options);
    if (result == EMQ_OK) {
        result = run_job(client);
    }
    if (result == EMQ_OK) {
        printf("%s: enqueued, claimed, completed\n", emq_version());
    } else {
        fprintf(stderr, "%s: %s\n", emq_err_name(result), emq_client_get_error(client));
    }
    emq_client_close(client);
    return result == EMQ_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
