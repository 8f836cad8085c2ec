/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a primary on a loop. Each step is an attempt of its own, to a sentinel or to a
 * server. The next one begins when the loop comes round, and so never under the feet of the code
 * that has lost the last one. */
#include "async_session.h"

/* The next step begins when the loop comes round. */
static void plan(emq_session *session) {
    int is_pause = session->search.step == EMQ_SEARCH_PAUSE;
    emq_session_drop(session);
    session->error = session->told; /* it belongs to the state, which has not changed */
    session->is_searching = 1;
    session->stage = EMQ_STAGE_SEARCHING;
    uv_update_time(session->loop);
    (void)uv_timer_start(&session->step, emq_session_on_step,
                         is_pause ? (uint64_t)emq_deadline_left_ms(session->search.until) : 0, 0);
}

void emq_session_start_search(emq_session *session) {
    emq_search_start(&session->search, &session->settings, session->connect_by);
    session->told = session->error;
    plan(session);
}

void emq_session_go_on_searching(emq_session *session) {
    emq_search *search = &session->search;
    if (search->step == EMQ_SEARCH_PAUSE) {
        emq_search_go_on(search);
    }
    if (search->step == EMQ_SEARCH_FAILED) {
        session->is_searching = 0;
        session->error = search->text;
        emq_session_lose(session, search->result);
        return;
    }
    session->aim = &search->at;
    session->connect_by = search->until;
    emq_session_attempt(session);
}

void emq_session_fail_search(emq_session *session, int result) {
    emq_search_fail(&session->search, result, &session->error);
    plan(session);
}

int emq_session_is_at_sentinel(const emq_session *session) {
    return session->is_searching && session->search.step == EMQ_SEARCH_ASK;
}

void emq_session_take_address(emq_session *session, const redisReply *reply) {
    emq_search_take(&session->search, reply);
    plan(session);
}

void emq_session_end_search(emq_session *session) {
    if (session->is_searching) {
        session->is_searching = 0;
        emq_search_succeed(&session->search);
    }
}
