/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a session: its handshake is stepped by the loop. */
#include "async_session.h"

void emq_session_on_shaking(emq_session *session) {
    int is_done = 0;
    int result = emq_link_shake(session->link, &is_done);
    if (result != EMQ_OK) {
        emq_session_lose(session, result);
    } else if (is_done) {
        emq_session_introduce(session);
    }
}

void emq_session_start_tls(emq_session *session) {
    session->stage = EMQ_STAGE_SHAKING;
    int result = emq_link_start_tls(session->link);
    if (result != EMQ_OK) {
        emq_session_lose(session, result);
    } else {
        emq_session_on_shaking(session);
    }
}
