/* SPDX-License-Identifier: Apache-2.0 */
#include <emq/emq.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *port = getenv("EMQ_PORT");
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.port = port == NULL ? 6379 : (uint16_t)strtoul(port, NULL, 10);
    emq_client *client = NULL;
    emq_job *job = NULL;
    emq_id id = {{0}}; /* zeroed: emq_enqueue mints one */
    int result = emq_client_open(&client, &options);
    result = result ? result : emq_enqueue(&id, client, "greetings", "hello", 5);
    result = result ? result : emq_claim(&job, client, "greetings", 30000);
    if (result == EMQ_OK) {
        printf("%s: %s\n", emq_job_get_lease(job)->id.text,
               (const char *)emq_job_get_payload(job, NULL));
        result = emq_complete(client, emq_job_get_lease(job));
    }
    if (result != EMQ_OK) {
        fprintf(stderr, "%s: %s\n", emq_err_name(result), emq_client_get_error(client));
    }
    emq_job_free(job);
    emq_client_close(client);
    return result == EMQ_OK ? 0 : 1;
}
