/* SPDX-License-Identifier: Apache-2.0 */
/* Many admissions in one call, with ids that are minted here where none are given. */
#include <emq/verbs.h>
#include <string.h>

#include "client.h"
#include "line.h"

/* What is to be sent in this turn: in the first one all jobs, then those whose fresh id was taken.
 */
typedef struct batch {
    size_t count;
    size_t members[EMQ_MEMBERS_MAX]; /* places in the caller's arrays */
    emq_id ids[EMQ_MEMBERS_MAX];
    emq_bytes payloads[EMQ_MEMBERS_MAX];
    unsigned char is_fresh[EMQ_MEMBERS_MAX]; /* by the caller's places */
} batch;

static int check_payloads(const emq_client *client, const emq_bytes *payloads, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (payloads[i].data == NULL && payloads[i].size > 0) {
            return EMQ_EINVAL;
        }
        if (payloads[i].size > client->settings.options.max_payload) {
            return EMQ_ETOOBIG;
        }
    }
    return EMQ_OK;
}

static int check_call(const emq_client *client, const char *queue, const emq_bytes *payloads,
                      size_t count) {
    if (queue == NULL || payloads == NULL || count < 1 || count > EMQ_MEMBERS_MAX) {
        return EMQ_EINVAL;
    }
    return emq_queue_valid(queue) ? check_payloads(client, payloads, count) : EMQ_EQUEUE;
}

/* Mints what is missing. */
static int mint(batch *b) {
    int result = EMQ_OK;
    for (size_t i = 0; i < b->count && result == EMQ_OK; i++) {
        if (b->is_fresh[b->members[i]]) {
            result = emq_id_mint(&b->ids[i], EMQ_NAMESPACE_JOB);
        }
    }
    return result;
}

static void start_batch(batch *b, const emq_id *ids, const emq_bytes *payloads, size_t count) {
    b->count = count;
    for (size_t i = 0; i < count; i++) {
        b->members[i] = i;
        b->ids[i] = ids[i];
        b->payloads[i] = payloads[i];
        b->is_fresh[i] = (unsigned char)emq_id_is_zeroed(&ids[i]);
    }
}

/* Keeps those whose fresh id was somebody else's. */
static void keep_taken(batch *b, const int *results) {
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        size_t place = b->members[i];
        if (b->is_fresh[place] && results[place] == EMQ_DUPLICATE) {
            b->members[kept] = place;
            b->payloads[kept] = b->payloads[i];
            kept++;
        }
    }
    b->count = kept;
}

static void set_results(int *results, const batch *b, int result) {
    for (size_t i = 0; i < b->count; i++) {
        results[b->members[i]] = result;
    }
}

static int send_batch(int *results, emq_client *client, const batch *b, emq_deadline deadline) {
    const emq_question question = {.verb = EMQ_VERB_ENQUEUES, .count = b->count};
    emq_outcome outcome = {0};
    redisReply *reply = NULL;
    int result = emq_client_ask(client, &question, &outcome, &reply, deadline);
    set_results(results, b, result);
    for (size_t i = 0; result == EMQ_OK && i < b->count; i++) {
        results[b->members[i]] = emq_outcome_get_answer(&outcome, &question, i);
    }
    freeReplyObject(reply);
    return result;
}

static int admit_batch(int *results, emq_id *ids, emq_client *client, const char *queue, batch *b,
                       emq_deadline deadline) {
    for (int turn = 0; turn < EMQ_MINTS_MAX; turn++) {
        int result = mint(b);
        if (result == EMQ_OK) {
            result = emq_line_enqueues(&client->line, queue, b->ids, b->payloads, b->count);
        }
        if (result == EMQ_OK && !emq_client_is_open(client)) {
            result = EMQ_ECLOSED;
        }
        if (result != EMQ_OK) {
            set_results(results, b, result);
            return emq_text_fail_plain(&client->error, result);
        }
        for (size_t i = 0; i < b->count; i++) {
            ids[b->members[i]] = b->ids[i];
        }
        result = send_batch(results, client, b, deadline);
        if (result != EMQ_OK) {
            return result;
        }
        keep_taken(b, results);
        if (b->count == 0) {
            return EMQ_OK;
        }
    }
    set_results(results, b, EMQ_EPROTOCOL);
    for (size_t i = 0; i < b->count; i++) {
        memset(&ids[b->members[i]], 0, sizeof(ids[0]));
    }
    return emq_client_fail_mints(client);
}

int emq_enqueues(int *results, emq_id *ids, emq_client *client, const char *queue,
                 const emq_bytes *payloads, size_t count) {
    batch b;
    if (results == NULL || ids == NULL || client == NULL) {
        return EMQ_EINVAL;
    }
    emq_deadline deadline = emq_deadline_in(client->settings.options.command_timeout_ms);
    emq_text_clear(&client->error);
    int result = check_call(client, queue, payloads, count);
    if (result != EMQ_OK) {
        for (size_t i = 0; i < count && count <= EMQ_MEMBERS_MAX; i++) {
            results[i] = result;
        }
        return emq_text_fail_plain(&client->error, result);
    }
    start_batch(&b, ids, payloads, count);
    return admit_batch(results, ids, client, queue, &b, deadline);
}
