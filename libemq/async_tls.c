/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of the asynchronous client: its files are read in a thread of the loop's pool, its handshake
 * is stepped by the loop. */
#include "async.h"
#include "memory.h"
#include "tls.h"

static void free_load(emq_load *load) {
    emq_tls_free(load->ssl);
    emq_free(load);
}

/* In the thread. */
static void read_files(uv_work_t *work) {
    emq_load *load = work->data;
    load->result = emq_tls_make(&load->ssl, &load->client->settings.options, &load->error);
}

static void go_on(emq_async *client, emq_load *load) {
    if (load->result == EMQ_OK) {
        client->ssl = load->ssl;
        load->ssl = NULL;
        emq_async_seek(client);
    } else {
        client->error = load->error;
        emq_async_lose(client, load->result);
    }
}

/* It may have been canceled; then the client is being closed. */
static void on_read(uv_work_t *work, int status) {
    emq_load *load = work->data;
    emq_async *client = load->client;
    if (client == NULL) {
        free_load(load);
        return;
    }
    client->load = NULL;
    if (status == 0 && client->stage == EMQ_STAGE_LOADING && !emq_async_is_anothers(client)) {
        go_on(client, load);
        emq_async_settle(client);
    }
    free_load(load);
    emq_async_handle_closed(client);
}

/* A reading that an earlier attempt gave up waiting for may still run: then this attempt waits for
 * it. */
void emq_async_load(emq_async *client) {
    client->stage = EMQ_STAGE_LOADING;
    if (client->load != NULL) {
        return;
    }
    emq_load *load = emq_calloc(1, sizeof(*load));
    if (load == NULL) {
        emq_async_lose(client, emq_text_fail_plain(&client->error, EMQ_ENOMEM));
        return;
    }
    load->client = client;
    load->work.data = load;
    if (uv_queue_work(client->loop, &load->work, read_files, on_read) != 0) {
        emq_free(load);
        emq_async_lose(client, emq_text_fail_plain(&client->error, EMQ_ESYSTEM));
        return;
    }
    client->load = load;
    client->handles++;
}

/* Closing waits for a reading that has begun. A child has no thread that would end it. */
void emq_async_unload(emq_async *client) {
    emq_tls_free(client->ssl);
    client->ssl = NULL;
    if (client->load == NULL || !client->is_closing) {
        return;
    }
    if (emq_async_is_anothers(client)) {
        client->load->client = NULL;
        client->load = NULL;
        client->handles--;
    } else {
        (void)uv_cancel((uv_req_t *)&client->load->work);
    }
}

void emq_async_on_shaking(emq_async *client) {
    int is_done = 0;
    int result = emq_link_shake(client->link, &is_done);
    if (result != EMQ_OK) {
        emq_async_lose(client, result);
    } else if (is_done) {
        emq_async_introduce(client);
    }
}

void emq_async_start_tls(emq_async *client) {
    client->stage = EMQ_STAGE_SHAKING;
    int result = emq_link_start_tls(client->link);
    if (result != EMQ_OK) {
        emq_async_lose(client, result);
    } else {
        emq_async_on_shaking(client);
    }
}
