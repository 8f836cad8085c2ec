/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding the replies of the connect path: AUTH, ROLE, SELECT, CLIENT SETNAME, EMQ.VERSION, the
 * fence; and of a sentinel. */
#include <emq/version.h>
#include <string.h>

#include "decode.h"
#include "decode_common.h"
#include "keys.h"
#include "result.h"
#include "verbs.h"

static int is_name(const redisReply *reply, const char *name) {
    return emq_slice_equal((emq_slice){reply->str, reply->len}, emq_slice_of(name));
}

static int decode_ok(const redisReply *reply, const char *command, int result_of_refusal,
                     emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        int result = emq_decode_error(reply, error);
        return result == EMQ_ESERVER ? result_of_refusal : result;
    }
    if (reply == NULL || reply->type != REDIS_REPLY_STATUS || !is_name(reply, "OK")) {
        return emq_decode_surprise(command, "OK", error);
    }
    return EMQ_OK;
}

/* Also behind a NUL byte. */
static int contains(const redisReply *reply, const char *word) {
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= reply->len; i++) {
        if (memcmp(reply->str + i, word, length) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A server quotes the arguments of a command that it doesn't know, in part: such a text is never
 * repeated, nor one with the whole password in it. */
int emq_decode_auth(const redisReply *reply, const char *password, emq_text *error) {
    int result = decode_ok(reply, "AUTH", EMQ_EAUTH, error);
    if (result == EMQ_OK || reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return result;
    }
    if (emq_error_is_unknown_command(reply->str, reply->len) ||
        (password[0] != '\0' && contains(reply, password))) {
        return emq_text_fail_plain(error, result);
    }
    return result;
}

int emq_decode_select(const redisReply *reply, emq_text *error) {
    return decode_ok(reply, "SELECT", EMQ_EDATABASE, error);
}

/* The name is a help for operators: a user who may not set one can work all the same. */
int emq_decode_client_name(const redisReply *reply, emq_text *error) {
    int result = decode_ok(reply, "CLIENT SETNAME", EMQ_ESERVER, error);
    if (result == EMQ_ENOPERM) {
        emq_text_clear(error);
        return EMQ_OK;
    }
    return result;
}

int emq_decode_fence(const redisReply *reply, emq_text *error) {
    static const char get_fence[] = "GET " EMQ_FENCE_KEY;
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    if (reply != NULL && reply->type == REDIS_REPLY_NIL) {
        return emq_text_fail(
            error, EMQ_EFENCE_ABSENT,
            "expected %s but %s is absent: an administrator runs EMQ.INSTALL 1 %s once", EMQ_WIRE,
            EMQ_FENCE_KEY, EMQ_FENCE_KEY);
    }
    if (reply == NULL || reply->type != REDIS_REPLY_STRING) {
        return emq_decode_surprise(get_fence, "a string or nil", error);
    }
    if (!emq_slice_equal((emq_slice){reply->str, reply->len}, emq_slice_of(EMQ_WIRE))) {
        return emq_text_fail(error, EMQ_EFENCE, "expected %s found %.*s", EMQ_WIRE,
                             emq_quote_length(reply->len), reply->str);
    }
    return EMQ_OK;
}

int emq_decode_role(const redisReply *reply, emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        !emq_reply_is_text(reply->element[0])) {
        return emq_decode_surprise("ROLE", "an array that begins with the role", error);
    }
    const redisReply *role = reply->element[0];
    if (!emq_slice_equal((emq_slice){role->str, role->len}, emq_slice_of("master"))) {
        return emq_text_fail(error, EMQ_ENOPRIMARY, "it is no primary: its role is %.*s",
                             emq_quote_length(role->len), role->str);
    }
    return EMQ_OK;
}

/* A host and a port, both as text. Returns 0 for what is none. */
static int take_address(emq_address *out, const redisReply *host, const redisReply *port) {
    uint64_t number = 0;
    if (!emq_reply_is_text(host) || !emq_reply_is_text(port) || host->len > EMQ_HOST_MAX ||
        !emq_number_read(&number, port->str, port->len, UINT16_MAX) || number == 0) {
        return 0;
    }
    memcpy(out->host, host->str, host->len);
    out->host[host->len] = '\0';
    out->port = (uint16_t)number;
    return strlen(out->host) == host->len && emq_host_valid(out->host);
}

int emq_decode_primary_address(emq_address *out, const redisReply *reply, emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_error(reply, error);
    }
    if (reply != NULL && reply->type == REDIS_REPLY_NIL) {
        return emq_text_fail(error, EMQ_EPRIMARYNAME, "knows no primary of this name");
    }
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        !take_address(out, reply->element[0], reply->element[1])) {
        return emq_decode_surprise("SENTINEL GET-MASTER-ADDR-BY-NAME", "a host and a port", error);
    }
    return EMQ_OK;
}

/* The facts of EMQ.VERSION that a client compares; others are passed over. */
typedef struct version_facts {
    const redisReply *wire;
    const redisReply *major;
    const redisReply *capabilities;
} version_facts;

static int is_text_array(const redisReply *reply) {
    if (reply->type != REDIS_REPLY_ARRAY) {
        return 0;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (!emq_reply_is_text(reply->element[i])) {
            return 0;
        }
    }
    return 1;
}

/* Notes one fact; a second one of the same name, or one of another type, is a broken answer. */
static int take_fact(version_facts *facts, const redisReply *name, const redisReply *value) {
    const redisReply **place = NULL;
    int well_typed = 0;
    if (is_name(name, EMQ_FACT_WIRE)) {
        place = &facts->wire;
        well_typed = emq_reply_is_text(value);
    } else if (is_name(name, EMQ_FACT_MAJOR)) {
        place = &facts->major;
        well_typed = value->type == REDIS_REPLY_INTEGER;
    } else if (is_name(name, EMQ_FACT_CAPABILITIES)) {
        place = &facts->capabilities;
        well_typed = is_text_array(value);
    } else {
        return 1;
    }
    if (*place != NULL || !well_typed) {
        return 0;
    }
    *place = value;
    return 1;
}

static int read_facts(version_facts *facts, const redisReply *reply, emq_text *error) {
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements % 2 != 0) {
        return emq_decode_surprise(emq_verbs[EMQ_VERB_VERSION].name, "a flat list of pairs", error);
    }
    for (size_t i = 0; i < reply->elements; i += 2) {
        const redisReply *name = reply->element[i];
        const redisReply *value = reply->element[i + 1];
        if (!emq_reply_is_text(name) || value == NULL || !take_fact(facts, name, value)) {
            return emq_text_fail(error, EMQ_EPROTOCOL, "%s: fact %zu is malformed or given twice",
                                 emq_verbs[EMQ_VERB_VERSION].name, i / 2 + 1);
        }
    }
    return EMQ_OK;
}

static int lacks_fact(const char *name, emq_text *error) {
    return emq_text_fail(error, EMQ_EPROTOCOL, "%s lacks the fact %s",
                         emq_verbs[EMQ_VERB_VERSION].name, name);
}

static int has_capability(const redisReply *capabilities, const char *token) {
    for (size_t i = 0; i < capabilities->elements; i++) {
        if (is_name(capabilities->element[i], token)) {
            return 1;
        }
    }
    return 0;
}

/* Every token of the job core's rows is required. */
static int check_capabilities(const redisReply *capabilities, emq_text *error) {
    for (int i = 0; i < EMQ_VERBS; i++) {
        const emq_verb *verb = &emq_verbs[i];
        for (int t = 0; verb->family == EMQ_FAMILY_CORE && verb->capabilities[t] != NULL; t++) {
            if (!has_capability(capabilities, verb->capabilities[t])) {
                return emq_text_fail(error, EMQ_ECAPABILITY, "the module lacks the capability %s",
                                     verb->capabilities[t]);
            }
        }
    }
    return EMQ_OK;
}

/* Wire and major are judged before anything is asked of the other facts: a module of another wire
 * may well have others. */
int emq_decode_version(const redisReply *reply, emq_text *error) {
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        return emq_decode_verb_error(reply, error);
    }
    version_facts facts = {NULL, NULL, NULL};
    int result = read_facts(&facts, reply, error);
    if (result != EMQ_OK) {
        return result;
    }
    if (facts.wire == NULL) {
        return lacks_fact(EMQ_FACT_WIRE, error);
    }
    if (!is_name(facts.wire, EMQ_WIRE)) {
        return emq_text_fail(error, EMQ_EMODULE,
                             "the module speaks another wire: expected %s found %.*s", EMQ_WIRE,
                             emq_quote_length(facts.wire->len), facts.wire->str);
    }
    if (facts.major == NULL) {
        return lacks_fact(EMQ_FACT_MAJOR, error);
    }
    if (facts.major->integer != EMQ_VERSION_MAJOR) {
        return emq_text_fail(error, EMQ_EMODULE,
                             "the module has another major: expected %d found %lld",
                             EMQ_VERSION_MAJOR, facts.major->integer);
    }
    return facts.capabilities == NULL ? lacks_fact(EMQ_FACT_CAPABILITIES, error)
                                      : check_capabilities(facts.capabilities, error);
}
