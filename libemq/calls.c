/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronous calls of the verbs: a line, one exchange, one decode. Those that mint ids are in
 * client.c and enqueues.c. */
#include <emq/verbs.h>
#include <string.h>

#include "client.h"
#include "line.h"

/* Where a line is built; the builders take NULL for a mistake. */
static emq_line *line_of(emq_client *client) {
    return client == NULL ? NULL : &client->line;
}

/* Asks with the line that was built with this result. The outcome is the caller's to clear when the
 * verb has anything to take; `kept` receives the reply where the outcome borrows from it. */
static int ask_until(emq_client *client, int built, const emq_question *question,
                     emq_outcome *outcome, redisReply **kept, uint32_t timeout_ms) {
    if (client == NULL) {
        return EMQ_EINVAL;
    }
    emq_text_clear(&client->error);
    if (built != EMQ_OK) {
        (void)emq_text_fail_plain(&client->error, built);
        return built;
    }
    return emq_client_ask(client, question, outcome, kept, emq_deadline_in(timeout_ms));
}

static int ask(emq_client *client, int built, const emq_question *question, emq_outcome *outcome,
               redisReply **kept) {
    uint32_t timeout_ms = client == NULL ? 0 : client->settings.options.command_timeout_ms;
    return ask_until(client, built, question, outcome, kept, timeout_ms);
}

/* The verbs that answer with a result and nothing else. */
static int ask_verdict(emq_client *client, int built, emq_verb_symbol verb) {
    const emq_question question = {.verb = verb};
    emq_outcome outcome = {0};
    return ask(client, built, &question, &outcome, NULL);
}

/* The verbs that answer with a number. */
static int ask_number(int64_t *number, emq_client *client, int built, emq_verb_symbol verb,
                      size_t most) {
    const emq_question question = {.verb = verb, .count = most};
    emq_outcome outcome = {0};
    int result = ask(client, built, &question, &outcome, NULL);
    if (number != NULL) {
        *number = outcome.number;
    }
    return result;
}

int emq_extend(emq_client *client, const emq_lease *lease, uint32_t lease_ms) {
    int built = emq_line_extend(line_of(client), lease, lease_ms);
    return ask_verdict(client, built, EMQ_VERB_EXTEND);
}

int emq_fail(emq_client *client, const emq_lease *lease, int64_t delay_ms, uint32_t max_failures,
             const void *error, size_t n) {
    int built = emq_line_fail(line_of(client), lease, delay_ms, max_failures, error, n);
    return ask_verdict(client, built, EMQ_VERB_FAIL);
}

int emq_delay(emq_client *client, const emq_lease *lease, emq_when when) {
    int built = emq_line_delay(line_of(client), lease, when);
    return ask_verdict(client, built, EMQ_VERB_DELAY);
}

int emq_requeue(emq_client *client, const emq_lease *lease) {
    int built = emq_line_requeue(line_of(client), lease);
    return ask_verdict(client, built, EMQ_VERB_REQUEUE);
}

int emq_reschedule(emq_client *client, const char *queue, const emq_id *id, emq_when when) {
    int built = emq_line_reschedule(line_of(client), queue, id, when);
    return ask_verdict(client, built, EMQ_VERB_RESCHEDULE);
}

int emq_reprocess(emq_client *client, const char *queue, const emq_id *id) {
    int built = emq_line_reprocess(line_of(client), queue, id);
    return ask_verdict(client, built, EMQ_VERB_REPROCESS);
}

int emq_pause(emq_client *client, const char *queue) {
    return ask_verdict(client, emq_line_pause(line_of(client), queue), EMQ_VERB_PAUSE);
}

int emq_resume(emq_client *client, const char *queue) {
    return ask_verdict(client, emq_line_resume(line_of(client), queue), EMQ_VERB_RESUME);
}

int emq_promote(int64_t *moved, emq_client *client, const char *queue, uint32_t limit) {
    if (moved == NULL) {
        return EMQ_EINVAL;
    }
    int built = emq_line_promote(line_of(client), queue, limit);
    return ask_number(moved, client, built, EMQ_VERB_PROMOTE, limit);
}

int emq_publish(int64_t *receivers, emq_client *client, const char *queue, emq_bytes event,
                emq_bytes job, const emq_field *fields, size_t count) {
    int built = emq_line_publish(line_of(client), queue, event, job, fields, count);
    return ask_number(receivers, client, built, EMQ_VERB_PUBLISH, 0);
}

int emq_failures_incr(int64_t *failures, emq_client *client, const char *queue, const char *stream,
                      const char *group, const char *entry) {
    if (failures == NULL) {
        return EMQ_EINVAL;
    }
    int built = emq_line_failures_incr(line_of(client), queue, stream, group, entry);
    return ask_number(failures, client, built, EMQ_VERB_FAILURES_INCR, 0);
}

int emq_tra_bitset(int64_t *changed, emq_client *client, emq_bytes key, const uint32_t *offsets,
                   size_t count) {
    int built = emq_line_tra_bitset(line_of(client), key, offsets, count);
    return ask_number(changed, client, built, EMQ_VERB_TRA_BITSET, count);
}

int emq_tra_bitclear(int64_t *changed, emq_client *client, emq_bytes key, const uint32_t *offsets,
                     size_t count) {
    int built = emq_line_tra_bitclear(line_of(client), key, offsets, count);
    return ask_number(changed, client, built, EMQ_VERB_TRA_BITCLEAR, count);
}

int emq_tra_bitget(int *bits, emq_client *client, emq_bytes key, const uint32_t *offsets,
                   size_t count) {
    const emq_question question = {.verb = EMQ_VERB_TRA_BITGET, .count = count};
    emq_outcome outcome = {0};
    redisReply *reply = NULL;
    if (bits == NULL) {
        return EMQ_EINVAL;
    }
    int built = emq_line_tra_bitget(line_of(client), key, offsets, count);
    int result = ask(client, built, &question, &outcome, &reply);
    for (size_t i = 0; result == EMQ_OK && i < count; i++) {
        bits[i] = emq_outcome_get_answer(&outcome, &question, i);
    }
    freeReplyObject(reply);
    return result;
}

int emq_tra_bitscan(uint32_t *offsets, size_t *found, emq_client *client, emq_bytes key,
                    uint32_t from, uint32_t to, uint32_t limit) {
    const emq_question question = {.verb = EMQ_VERB_TRA_BITSCAN, .count = limit};
    emq_outcome outcome = {0};
    redisReply *reply = NULL;
    if (offsets == NULL || found == NULL) {
        return EMQ_EINVAL;
    }
    *found = 0;
    int built = emq_line_tra_bitscan(line_of(client), key, from, to, limit);
    int result = ask(client, built, &question, &outcome, &reply);
    if (result == EMQ_OK) {
        *found = outcome.list->elements;
        for (size_t i = 0; i < *found; i++) {
            offsets[i] = (uint32_t)outcome.list->element[i]->integer;
        }
    }
    freeReplyObject(reply);
    return result;
}

static void set_all(int *results, size_t count, int result) {
    for (size_t i = 0; results != NULL && i < count && count <= EMQ_MEMBERS_MAX; i++) {
        results[i] = result;
    }
}

int emq_extends(int *results, emq_client *client, const emq_lease *leases, size_t count,
                uint32_t lease_ms) {
    const emq_question question = {.verb = EMQ_VERB_EXTENDS, .count = count};
    emq_outcome outcome = {0};
    redisReply *reply = NULL;
    if (results == NULL) {
        return EMQ_EINVAL;
    }
    int built = emq_line_extends(line_of(client), leases, count, lease_ms);
    int result = ask(client, built, &question, &outcome, &reply);
    if (result == EMQ_OK) {
        result = emq_outcome_get_extended(results, &outcome, leases, count, &client->error);
        result = emq_client_finish(client, reply, result);
    }
    if (result != EMQ_OK) {
        set_all(results, count, result);
    }
    return result;
}

int emq_completes(int *results, emq_client *client, const emq_lease *leases, size_t count) {
    const emq_question question = {.verb = EMQ_VERB_COMPLETES, .count = count};
    emq_outcome outcome = {0};
    redisReply *reply = NULL;
    if (results == NULL) {
        return EMQ_EINVAL;
    }
    int built = emq_line_completes(line_of(client), leases, count);
    int result = ask(client, built, &question, &outcome, &reply);
    set_all(results, count, result);
    for (size_t i = 0; result == EMQ_OK && i < count; i++) {
        results[i] = emq_outcome_get_answer(&outcome, &question, i);
    }
    freeReplyObject(reply);
    return result;
}

int emq_claims(emq_jobs **out, emq_client *client, const char *queue, uint32_t lease_ms,
               uint32_t max, uint32_t timeout_ms) {
    if (out == NULL) {
        return EMQ_EINVAL;
    }
    *out = NULL;
    if (client == NULL || queue == NULL) {
        return EMQ_EINVAL;
    }
    const emq_question question = {
        .verb = EMQ_VERB_CLAIMS, .queue = emq_slice_of(queue), .count = max};
    emq_outcome outcome = {0};
    uint32_t patience_ms = client->settings.options.command_timeout_ms;
    int built = emq_line_claims(&client->line, queue, lease_ms, max, timeout_ms);
    if (built == EMQ_OK && timeout_ms > 0 && patience_ms < timeout_ms + EMQ_WAIT_MARGIN_MS) {
        patience_ms = timeout_ms + EMQ_WAIT_MARGIN_MS;
    }
    int result = ask_until(client, built, &question, &outcome, NULL, patience_ms);
    *out = outcome.jobs;
    return result;
}

/* Gives a list to the caller, or frees the one that was not asked for. */
static void hand_out(emq_ids **out, emq_ids *ids) {
    if (out == NULL) {
        emq_ids_free(ids);
    } else {
        *out = ids;
    }
}

int emq_stalled_check(emq_ids **recovered, emq_ids **dead, emq_client *client, const char *queue,
                      uint32_t max_stalled, uint32_t limit) {
    const emq_question question = {.verb = EMQ_VERB_STALLED_CHECK, .count = limit};
    emq_outcome outcome = {0};
    int built = emq_line_stalled_check(line_of(client), queue, max_stalled, limit);
    int result = ask(client, built, &question, &outcome, NULL);
    hand_out(recovered, outcome.recovered);
    hand_out(dead, outcome.dead);
    return result;
}

int emq_append(emq_entry *entry, emq_id *id, emq_client *client, const char *queue,
               const char *stream, const emq_field *fields, size_t count) {
    const emq_question question = {.verb = EMQ_VERB_APPEND};
    emq_outcome outcome = {0};
    redisReply *reply = NULL;
    emq_id record = {{0}};
    if (id == NULL || client == NULL) {
        return EMQ_EINVAL;
    }
    int is_fresh = memcmp(id, &record, sizeof(record)) == 0;
    int built = is_fresh ? emq_id_mint(&record, EMQ_NAMESPACE_EVENT) : EMQ_OK;
    if (built == EMQ_OK) {
        built =
            emq_line_append(&client->line, queue, stream, is_fresh ? &record : id, fields, count);
    }
    if (built == EMQ_OK && is_fresh) {
        *id = record;
    }
    int result = ask(client, built, &question, &outcome, &reply);
    if (result == EMQ_OK && entry != NULL) {
        memset(entry, 0, sizeof(*entry));
        memcpy(entry->text, outcome.list->str, outcome.list->len);
    }
    freeReplyObject(reply);
    return result;
}
