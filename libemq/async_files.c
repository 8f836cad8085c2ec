/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a session, those of TLS and the one of the password, which a thread of the loop's
 * pool reads: a disk may be slow. */
#include "async_session.h"
#include "memory.h"
#include "tls.h"

static void free_load(emq_load *load) {
    emq_tls_free(load->ssl);
    emq_secret_clear(&load->secret);
    emq_free(load);
}

/* In the thread. */
static void read_files(uv_work_t *work) {
    emq_load *load = work->data;
    const emq_client_options *options = &load->session->settings.options;
    load->result = EMQ_OK;
    if (load->password_file != NULL) {
        load->result = emq_secret_read_file(&load->secret, load->password_file, &load->error);
    }
    if (load->result == EMQ_OK && options->tls != 0) {
        load->result = emq_tls_make(&load->ssl, options, 1, &load->error);
    }
}

static void go_on(emq_session *session, emq_load *load) {
    if (load->password_file != session->aim->password_file) {
        emq_session_load(session); /* it began for a sentinel, or for the server behind it */
    } else if (load->result == EMQ_OK) {
        session->ssl = load->ssl;
        load->ssl = NULL;
        session->secret = load->secret;
        load->secret = (emq_secret){NULL, 0};
        emq_session_seek(session);
    } else {
        session->error = load->error;
        emq_session_lose(session, load->result);
    }
}

/* It may have been canceled; then the session is being closed. */
static void on_read(uv_work_t *work, int status) {
    emq_load *load = work->data;
    emq_session *session = load->session;
    if (session == NULL) {
        free_load(load);
        return;
    }
    session->load = NULL;
    if (status == 0 && session->stage == EMQ_STAGE_LOADING && !emq_session_is_anothers(session)) {
        go_on(session, load);
        emq_session_settle(session);
    }
    free_load(load);
    emq_session_handle_closed(session);
}

/* A reading that an earlier attempt gave up waiting for may still run: then this attempt waits for
 * it. */
void emq_session_load(emq_session *session) {
    session->stage = EMQ_STAGE_LOADING;
    if (session->load != NULL) {
        return;
    }
    emq_load *load = emq_calloc(1, sizeof(*load));
    if (load == NULL) {
        emq_session_lose(session, emq_text_fail_plain(&session->error, EMQ_ENOMEM));
        return;
    }
    load->session = session;
    load->password_file = session->aim->password_file;
    load->work.data = load;
    if (uv_queue_work(session->loop, &load->work, read_files, on_read) != 0) {
        emq_free(load);
        emq_session_lose(session, emq_text_fail_plain(&session->error, EMQ_ESYSTEM));
        return;
    }
    session->load = load;
    session->handles++;
}

/* Closing waits for a reading that has begun. A child has no thread that would end it. */
void emq_session_unload(emq_session *session) {
    emq_tls_free(session->ssl);
    session->ssl = NULL;
    if (session->load == NULL || !session->is_closing) {
        return;
    }
    if (emq_session_is_anothers(session)) {
        session->load->session = NULL;
        session->load = NULL;
        session->handles--;
    } else {
        (void)uv_cancel((uv_req_t *)&session->load->work);
    }
}
