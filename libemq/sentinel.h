/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the primary that a set of sentinels watches: which sentinel is asked next, what
 * its answer means, when to try the server that it named, and when to give up. Pure: it opens
 * nothing and waits for nothing. A transport does one step after the other and tells how it ended.
 *
 * A round asks each sentinel in turn. The first server that is reached and says of itself that it
 * is the primary ends the search. When some sentinel named a server that was not, a failover may be
 * going on: then the next round follows after a pause, until the deadline. */
#ifndef EMQ_LIBEMQ_SENTINEL_H
#define EMQ_LIBEMQ_SENTINEL_H

#include <hiredis/hiredis.h>

#include "deadline.h"
#include "handshake.h"
#include "settings.h"

typedef enum emq_search_step {
    EMQ_SEARCH_ASK,   /* ask the sentinel */
    EMQ_SEARCH_TRY,   /* run the connect path, with ROLE, on the server that was named */
    EMQ_SEARCH_PAUSE, /* wait */
    EMQ_SEARCH_FOUND, /* the server is the primary, and its connection is open */
    EMQ_SEARCH_FAILED /* see result and text */
} emq_search_step;

/* What came of a sentinel in this round; those that did best are asked first in the next one. */
typedef enum emq_search_rank {
    EMQ_RANK_NAMED, /* it named a server that nothing is known against */
    EMQ_RANK_NOT_ASKED,
    EMQ_RANK_FAILED /* it did not answer, named nothing, or named what is no primary */
} emq_search_rank;

typedef struct emq_search {
    emq_search_step step;
    emq_deadline until;    /* when the step is to have ended */
    emq_client_options at; /* ASK and TRY: the options with which to reach the other side */
    int result;            /* FAILED: why */
    emq_text text;
    /* its own */
    const emq_client_options *options;
    emq_sentinels *sentinels;
    emq_deadline deadline;
    int current; /* the sentinel that is asked, or whose word is tried */
    emq_search_rank ranks[EMQ_SENTINELS_MAX];
    emq_address named; /* the server that was named last in this round */
    int has_named;
    int refusals;        /* sentinels of this round that refuse to say, or don't know the name */
    int refusal;         /* the gravest of them */
    emq_text said;       /* what the sentinels of this round said */
    int primary_failure; /* of the last server that was tried, in any round; 0: none was */
    emq_text primary_said;
    unsigned int pauses;
} emq_search;

/* Begins one. Options and settings are borrowed; the order of the sentinels in the settings changes
 * with what they answer. */
void emq_search_start(emq_search *search, emq_settings *settings, emq_deadline deadline);

/* ASK: the question, as the only thing that is asked behind AUTH; its answer goes to
 * emq_search_take. 0; EMQ_ENOMEM. The ask is cleared in both cases. */
int emq_search_build_ask(emq_ask *ask, const emq_search *search);

/* ASK: an answer came. The next step is set. */
void emq_search_take(emq_search *search, const redisReply *reply);

/* ASK or TRY: it failed before there was an answer, or the server is not the right one. */
void emq_search_fail(emq_search *search, int result, const emq_text *text);

/* TRY: the connection is open, and ROLE said that the server is the primary. */
void emq_search_succeed(emq_search *search);

/* PAUSE: it is over. */
void emq_search_go_on(emq_search *search);

#endif
