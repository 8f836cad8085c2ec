/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a primary on a loop. Each step is an attempt of its own, to a sentinel or to a
 * server. The next one begins when the loop comes round, and so never under the feet of the code
 * that has lost the last one. */
#include "async.h"

void emq_async_start_search(emq_async *client) {
    emq_search_start(&client->search, &client->settings, client->connect_by);
    client->told = client->error;
    emq_async_plan_search(client);
}

void emq_async_plan_search(emq_async *client) {
    int is_pause = client->search.step == EMQ_SEARCH_PAUSE;
    emq_async_drop(client);
    client->error = client->told; /* it belongs to the state, which has not changed */
    client->is_searching = 1;
    client->stage = EMQ_STAGE_SEARCHING;
    uv_update_time(client->loop);
    (void)uv_timer_start(&client->step, emq_async_on_step,
                         is_pause ? (uint64_t)emq_deadline_left_ms(client->search.until) : 0, 0);
}

void emq_async_go_on_searching(emq_async *client) {
    emq_search *search = &client->search;
    if (search->step == EMQ_SEARCH_PAUSE) {
        emq_search_go_on(search);
    }
    if (search->step == EMQ_SEARCH_FAILED) {
        client->is_searching = 0;
        client->error = search->text;
        emq_async_lose(client, search->result);
        return;
    }
    client->aim = &search->at;
    client->connect_by = search->until;
    emq_async_attempt(client);
}

void emq_async_fail_search(emq_async *client, int result) {
    emq_search_fail(&client->search, result, &client->error);
    emq_async_plan_search(client);
}

int emq_async_is_at_sentinel(const emq_async *client) {
    return client->is_searching && client->search.step == EMQ_SEARCH_ASK;
}

void emq_async_take_address(emq_async *client, const redisReply *reply) {
    emq_search_take(&client->search, reply);
    emq_async_plan_search(client);
}

void emq_async_end_search(emq_async *client) {
    if (client->is_searching) {
        client->is_searching = 0;
        emq_search_succeed(&client->search);
    }
}
