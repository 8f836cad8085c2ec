/* SPDX-License-Identifier: Apache-2.0 */
/* Searching the primary. A sentinel gets a share of the time that is left, so that a silent one
 * does not use up what the others need; a server that was named gets half of it, so that there is
 * time to ask again when it is dead and its successor not known yet. */
#include "sentinel.h"

#include <emq/error.h>
#include <stdio.h>
#include <string.h>

#include "chance.h"
#include "decode.h"
#include "line.h"

#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 500
#define PAUSE_LEAST_MS 10

int emq_search_build_ask(emq_ask *ask, const emq_search *search) {
    *ask = (emq_ask){.end = 1};
    return emq_line_primary_address(&ask->lines[0], search->options->primary_name);
}

static void end(emq_search *s, int result, const emq_text *text) {
    s->step = EMQ_SEARCH_FAILED;
    s->result = result;
    s->text = *text;
}

/* The options of the other side: the same TLS and timeouts, an address and a user of its own. */
static void aim_at(emq_search *s, const emq_address *address) {
    s->at = *s->options;
    s->at.host = address->host;
    s->at.port = address->port;
    if (s->step == EMQ_SEARCH_ASK) {
        s->at.username = s->options->sentinel_username;
        s->at.password = s->options->sentinel_password;
        s->at.password_file = s->options->sentinel_password_file;
        s->at.password_env = s->options->sentinel_password_env;
    }
}

/* Most of the sentinels refuse to say, or don't know the name. */
static int is_refused(const emq_search *s) {
    return 2 * s->refusals > s->sentinels->count;
}

/* Nobody named a primary, or there was no time to ask. */
static void give_up_asking(emq_search *s) {
    emq_text text;
    const char *name = s->options->primary_name;
    int result = is_refused(s) ? s->refusal : EMQ_ESENTINEL;
    emq_text_fail(&text, result, "no sentinel named a primary for %.*s: %s", EMQ_TEXT_QUOTE_MAX,
                  name, s->said.bytes[0] != '\0' ? s->said.bytes : "none was asked in time");
    end(s, result, &text);
}

/* What became of a server that was named says more than that nobody could be asked since; that they
 * refuse by now says more than a server that some of them named in an earlier round. */
static void give_up(emq_search *s) {
    int has_clear_word = is_refused(s) && !s->has_named;
    if (s->primary_failure != EMQ_OK && !has_clear_word) {
        end(s, s->primary_failure, &s->primary_said);
    } else {
        give_up_asking(s);
    }
}

/* Asks the sentinel at the place `current`. */
static void ask(emq_search *s) {
    if (emq_deadline_left_ms(s->deadline) == 0) {
        give_up(s);
        return;
    }
    s->step = EMQ_SEARCH_ASK;
    s->until = emq_deadline_share(s->deadline, s->sentinels->count - s->current + 1);
    aim_at(s, &s->sentinels->list[s->current]);
}

/* Stable, so that the order in which they were given stands where nothing speaks against it. */
static void sort_sentinels(emq_search *s) {
    emq_sentinels sorted = {.count = 0};
    for (int rank = EMQ_RANK_NAMED; rank <= EMQ_RANK_FAILED; rank++) {
        for (int i = 0; i < s->sentinels->count; i++) {
            if ((int)s->ranks[i] == rank) {
                sorted.list[sorted.count++] = s->sentinels->list[i];
            }
        }
    }
    *s->sentinels = sorted;
}

static void start_round(emq_search *s) {
    for (int i = 0; i < EMQ_SENTINELS_MAX; i++) {
        s->ranks[i] = EMQ_RANK_NOT_ASKED;
    }
    s->current = 0;
    s->has_named = 0;
    s->refusals = 0;
    s->refusal = EMQ_OK;
    emq_text_clear(&s->said);
    ask(s);
}

void emq_search_start(emq_search *search, emq_settings *settings, emq_deadline deadline) {
    *search = (emq_search){
        .options = &settings->options, .sentinels = &settings->sentinel_list, .deadline = deadline};
    start_round(search);
}

/* All have been asked. */
static void end_round(emq_search *s) {
    sort_sentinels(s);
    if (!s->has_named) {
        give_up(s);
        return;
    }
    uint32_t pause = emq_draw(emq_doubled(PAUSE_MIN_MS, PAUSE_MAX_MS, s->pauses++));
    emq_deadline until = emq_deadline_in(pause < PAUSE_LEAST_MS ? PAUSE_LEAST_MS : pause);
    s->step = EMQ_SEARCH_PAUSE;
    s->until = until.at_ns < s->deadline.at_ns ? until : s->deadline;
}

static void ask_next(emq_search *s) {
    s->current++;
    if (s->current < s->sentinels->count) {
        ask(s);
    } else {
        end_round(s);
    }
}

void emq_search_go_on(emq_search *search) {
    start_round(search);
}

void emq_search_succeed(emq_search *search) {
    sort_sentinels(search);
    search->step = EMQ_SEARCH_FOUND;
}

/* Adds "; HOST port N: TEXT" to what the sentinels said, as far as there is room. */
static void note_saying(emq_search *s, const emq_text *text) {
    const emq_address *from = &s->sentinels->list[s->current];
    size_t used = strlen(s->said.bytes);
    (void)snprintf(s->said.bytes + used, sizeof(s->said.bytes) - used, "%s%s port %u: %.*s",
                   used > 0 ? "; " : "", from->host, (unsigned)from->port, EMQ_TEXT_QUOTE_MAX,
                   text->bytes);
}

/* This process has a failure, or was given options that can't be used: the next sentinel would meet
 * the same. */
static int is_our_own(int result) {
    emq_class class = emq_err_class(result);
    return class == EMQ_CLASS_INTERNAL || class == EMQ_CLASS_USAGE;
}

static void fail_ask(emq_search *s, int result, const emq_text *text) {
    s->ranks[s->current] = EMQ_RANK_FAILED;
    note_saying(s, text);
    if (emq_err_class(result) != EMQ_CLASS_RETRYABLE) {
        s->refusals++;
        if (s->refusal == EMQ_OK || s->refusal == EMQ_EPRIMARYNAME) {
            s->refusal = result;
        }
    }
    ask_next(s);
}

/* Who names a replica knows less than the others; who names a dead server may be the first to know
 * its successor. */
static emq_search_rank rank_word(int failure) {
    return failure == EMQ_ENOPRIMARY ? EMQ_RANK_FAILED : EMQ_RANK_NAMED;
}

/* A refusal for good is the answer, as it is without sentinels. */
static void fail_try(emq_search *s, int result, const emq_text *text) {
    s->primary_failure = result;
    emq_text_fail(&s->primary_said, result, "%s port %u: %s", s->named.host,
                  (unsigned)s->named.port, text->bytes);
    if (emq_err_class(result) != EMQ_CLASS_RETRYABLE) {
        end(s, result, &s->primary_said);
        return;
    }
    s->ranks[s->current] = rank_word(result);
    ask_next(s);
}

void emq_search_fail(emq_search *search, int result, const emq_text *text) {
    result = emq_handshake_result(result);
    if (is_our_own(result)) {
        end(search, result, text);
    } else if (search->step == EMQ_SEARCH_ASK) {
        fail_ask(search, result, text);
    } else {
        fail_try(search, result, text);
    }
}

static int is_same(const emq_address *a, const emq_address *b) {
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void emq_search_take(emq_search *search, const redisReply *reply) {
    emq_address address;
    emq_text text;
    int result = emq_decode_primary_address(&address, reply, &text);
    if (result != EMQ_OK) {
        fail_ask(search, result, &text);
        return;
    }
    if (search->has_named && is_same(&address, &search->named)) {
        /* it was tried just now, on another one's word */
        search->ranks[search->current] = rank_word(search->primary_failure);
        ask_next(search);
        return;
    }
    search->ranks[search->current] = EMQ_RANK_NAMED;
    search->named = address;
    search->has_named = 1;
    search->step = EMQ_SEARCH_TRY;
    search->until = emq_deadline_share(search->deadline, 2);
    aim_at(search, &search->named);
}
