/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what a peer sends: hiredis reads them within libemq's limits, and each decoder gets
 * what comes out of it as the answer to its question.
 *
 * The first byte says which decoder, the second how many members the question has. The reads have
 * no decoder that stands alone; they are called as programs call them, and the transport that they
 * use is this file's: it answers out of the same bytes. */
#include <emq/read.h>
#include <string.h>

#include "client.h"
#include "decode.h"
#include "feed.h"
#include "fuzz.h"
#include "job.h"
#include "reply_limits.h"

#define QUEUE "orders"
#define PASSWORD "s3cret"
#define REPLIES_MAX 64 /* of one input */

static const emq_id job_id = {"JOB0KHTOWnGLuC"};

/* The bytes that are left, and the reader that takes replies out of them. */
static struct {
    redisReader *reader;
    emq_limits limits;
    size_t count; /* of the members, or the most that may be answered */
} peer;

static redisReply *next_reply(void) {
    void *reply = NULL;
    return redisReaderGetReply(peer.reader, &reply) == REDIS_OK ? reply : NULL;
}

/* What a decoder may answer to a reply that is no error: an outcome, or that the wire doesn't allow
 * it. To an error it answers an error of the server's, and never that it was broken. */
static void check_result(const redisReply *reply, int result, const emq_text *error) {
    int is_error = reply->type == REDIS_REPLY_ERROR;
    MUST(strcmp(emq_err_name(result), "EMQ_?") != 0);
    MUST((result < 0) == (error->bytes[0] != '\0'));
    MUST(result >= 0 || (result == EMQ_EPROTOCOL) != is_error || result == EMQ_EBADJOB);
    MUST(!is_error || result < 0);
    for (const char *c = error->bytes; *c != '\0'; c++) {
        MUST((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
}

/* Verbs. */

static void check_job(const emq_job *job) {
    size_t n = 0;
    const emq_lease *lease = emq_job_get_lease(job);
    MUST(emq_id_valid(&lease->id));
    MUST(strcmp(lease->queue, QUEUE) == 0);
    const char *payload = emq_job_get_payload(job, &n);
    MUST(payload == NULL ? n == 0 : payload[n] == '\0');
}

static void check_ids(const emq_ids *ids) {
    for (size_t i = 0; i < emq_ids_get_count(ids); i++) {
        size_t n = 0;
        const char *text = emq_ids_get_text(ids, i, &n);
        MUST(text != NULL && text[n] == '\0');
    }
}

static void check_members(const emq_outcome *outcome, const emq_question *question) {
    emq_lease leases[256];
    int results[256];
    emq_text error;
    if (question->verb != EMQ_VERB_EXTENDS) {
        for (size_t i = 0; i < question->count; i++) {
            int result = emq_outcome_get_answer(outcome, question, i);
            MUST(result >= 0 || result == EMQ_ESTALE || result == EMQ_ENOTFLAT);
        }
        return;
    }
    for (size_t i = 0; i < question->count; i++) {
        leases[i] = (emq_lease){QUEUE, job_id, (int64_t)i};
    }
    emq_text_clear(&error);
    int result = emq_outcome_get_extended(results, outcome, leases, question->count, &error);
    MUST(result == EMQ_OK || result == EMQ_EPROTOCOL);
    for (size_t i = 0; i < question->count; i++) {
        MUST(results[i] == EMQ_OK || results[i] == EMQ_ESTALE);
    }
}

static void check_outcome(const emq_outcome *outcome, const emq_question *question) {
    if (outcome->job != NULL) {
        check_job(outcome->job);
    }
    MUST(emq_jobs_get_count(outcome->jobs) <= question->count);
    for (size_t i = 0; i < emq_jobs_get_count(outcome->jobs); i++) {
        check_job(emq_jobs_get_job(outcome->jobs, i));
    }
    MUST(emq_ids_get_count(outcome->recovered) + emq_ids_get_count(outcome->dead) <=
         question->count);
    check_ids(outcome->recovered);
    check_ids(outcome->dead);
    if (emq_question_has_members(question)) {
        check_members(outcome, question);
    }
}

static void try_verb(redisReply *reply, unsigned int verb) {
    static const emq_outcome nothing = {0};
    const emq_question question = {(emq_verb_symbol)verb, {QUEUE, sizeof(QUEUE) - 1}, peer.count};
    emq_outcome outcome = {0};
    emq_text error;
    emq_text_clear(&error);
    int result = emq_decode_verb(&outcome, &question, reply, &error);
    if (result == EMQ_EINVAL && reply->type != REDIS_REPLY_ERROR) {
        /* VERSION and the tables have decoders of their own, or none */
        MUST(verb == EMQ_VERB_VERSION || verb == EMQ_VERB_TRA_INFO ||
             verb == EMQ_VERB_TRA_COMMANDS);
    } else {
        check_result(reply, result, &error);
    }
    if (result < 0) {
        MUST(memcmp(&outcome, &nothing, sizeof(nothing)) == 0);
    } else if (result == EMQ_OK) {
        check_outcome(&outcome, &question);
    }
    emq_outcome_clear(&outcome);
}

/* The connect path, and any command. */

static int decode_auth(const redisReply *reply, emq_text *error) {
    int result = emq_decode_auth(reply, PASSWORD, error);
    MUST(strstr(error->bytes, PASSWORD) == NULL);
    return result;
}

static int decode_primary_address(const redisReply *reply, emq_text *error) {
    emq_address address = {"", 0};
    int result = emq_decode_primary_address(&address, reply, error);
    MUST(result != EMQ_OK || (emq_host_valid(address.host) && address.port != 0));
    return result;
}

static int (*const decoders[])(const redisReply *, emq_text *) = {
    emq_decode_version,     decode_auth,      emq_decode_select, emq_decode_role,
    emq_decode_client_name, emq_decode_fence, emq_decode_raw,    decode_primary_address,
};
#define DECODERS (sizeof(decoders) / sizeof(decoders[0]))

static void try_decoder(const redisReply *reply, unsigned int number) {
    emq_text error;
    emq_text_clear(&error);
    int result = decoders[number](reply, &error);
    if (result == EMQ_OK && reply->type == REDIS_REPLY_ERROR) {
        MUST(decoders[number] == emq_decode_client_name); /* a user who may not set one */
    } else if (emq_err_class(result) == EMQ_CLASS_SERVER || result == EMQ_ENOPRIMARY) {
        MUST(error.bytes[0] != '\0'); /* a fence, a version or a role that is another one */
    } else {
        check_result(reply, result, &error);
    }
}

/* What is pushed on a subscription's connection. */
static void try_pushed(const redisReply *reply, emq_feed *feed) {
    emq_event *event = NULL;
    emq_text error;
    int is_broken = 0;
    emq_text_clear(&error);
    feed->is_asked = 1;
    int result = emq_feed_read(&event, feed, reply, &is_broken, &error);
    MUST((result == EMQ_OK) == (event != NULL));
    MUST(result == EMQ_OK || result == EMQ_EMPTY || is_broken || result == EMQ_EPROTOCOL);
    MUST(!is_broken || result < 0);
    MUST((result < 0) == (error.bytes[0] != '\0'));
    MUST(event == NULL || emq_event_get_gap(event) >= EMQ_GAP_UNKNOWN);
    emq_event_free(event);
    (void)emq_feed_confirm(feed, reply, &error);
}

static void try_feed(void) {
    emq_feed feed;
    redisReply *reply = NULL;
    MUST(emq_feed_init(&feed, QUEUE) == EMQ_OK);
    for (int i = 0; i < REPLIES_MAX && (reply = next_reply()) != NULL; i++) {
        try_pushed(reply, &feed);
        freeReplyObject(reply);
    }
    emq_feed_clear(&feed);
}

/* Reads. */

int emq_client_exchange(emq_client *client, const emq_line *line, redisReply **reply,
                        emq_deadline deadline) {
    return emq_connection_exchange(&client->connection, line, 1, reply, deadline, &client->error);
}

int emq_connection_exchange(emq_connection *connection, const emq_line *lines, int count,
                            redisReply **replies, emq_deadline deadline, emq_text *error) {
    (void)connection;
    (void)lines;
    (void)deadline;
    for (int i = 0; i < count; i++) {
        replies[i] = next_reply();
        if (replies[i] == NULL) {
            for (; i >= 0; i--) {
                freeReplyObject(replies[i]);
                replies[i] = NULL;
            }
            return emq_text_fail_plain(error, EMQ_ECONNLOST);
        }
    }
    return EMQ_OK;
}

int emq_client_finish(emq_client *client, redisReply *reply, int result) {
    (void)client;
    freeReplyObject(reply);
    return result;
}

static int read_row(emq_client *client) {
    emq_row *row = (emq_row *)client;
    size_t n = 0;
    int result = emq_row_read(&row, client, QUEUE, &job_id);
    MUST((result == EMQ_OK) == (row != NULL));
    if (row != NULL) {
        MUST(emq_row_get_state(row) != NULL);
        MUST(emq_row_get_attempts(row) >= -1);
        MUST(emq_row_get_failures(row) >= -1);
        MUST(emq_row_get_stalled(row) >= -1);
        const char *payload = emq_row_get_payload(row, &n);
        MUST(payload == NULL ? n == 0 : payload[n] == '\0');
        const char *last_error = emq_row_get_last_error(row, &n);
        MUST(last_error == NULL ? n == 0 : last_error[n] == '\0');
        (void)emq_row_get_lane(row);
    }
    emq_row_free(row);
    return result;
}

static int read_counts(emq_client *client) {
    const emq_counts before = EMQ_COUNTS_INIT;
    emq_counts counts = EMQ_COUNTS_INIT;
    int result = emq_counts_read(&counts, client, QUEUE);
    MUST(result == EMQ_OK || memcmp(&counts, &before, sizeof(counts)) == 0);
    MUST(counts.pending >= 0 && counts.active >= 0 && counts.scheduled >= 0 && counts.dead >= 0);
    MUST(counts.completed >= 0 && counts.failed >= 0);
    MUST(counts.paused == 0 || counts.paused == 1);
    return result;
}

static int read_page(emq_client *client) {
    emq_ids *ids = (emq_ids *)client;
    uint32_t limit = (uint32_t)peer.count + 1;
    int result = emq_ids_browse(&ids, client, QUEUE, EMQ_KEY_PENDING, NULL, 0, limit);
    MUST((result == EMQ_OK) == (ids != NULL));
    MUST(emq_ids_get_count(ids) <= limit);
    check_ids(ids);
    emq_ids_free(ids);
    return result;
}

static int (*const reads[])(emq_client *) = {read_row, read_counts, read_page};
#define READS (sizeof(reads) / sizeof(reads[0]))

static void try_read(unsigned int number) {
    static emq_client client;
    int result = reads[number](&client);
    MUST((result < 0) == (client.error.bytes[0] != '\0'));
    emq_line_clear(&client.line);
}

/* Each reply of the bytes is decoded, until they end or are none. */
static void try_all(unsigned int number) {
    redisReply *reply = NULL;
    for (int i = 0; i < REPLIES_MAX && (reply = next_reply()) != NULL; i++) {
        if (number < EMQ_VERBS) {
            try_verb(reply, number);
        } else {
            try_decoder(reply, number - EMQ_VERBS);
        }
        freeReplyObject(reply);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    unsigned int number = data[0] % (EMQ_VERBS + DECODERS + READS + 1);
    peer.count = data[1];
    peer.reader = redisReaderCreate();
    MUST(peer.reader != NULL);
    emq_limits_set(&peer.limits, peer.reader);
    MUST(redisReaderFeed(peer.reader, (const char *)data + 2, size - 2) == REDIS_OK);
    if (number < EMQ_VERBS + DECODERS) {
        try_all(number);
    } else if (number == EMQ_VERBS + DECODERS + READS) {
        try_feed();
    } else {
        try_read(number - EMQ_VERBS - (unsigned int)DECODERS);
    }
    redisReaderFree(peer.reader);
    return 0;
}
