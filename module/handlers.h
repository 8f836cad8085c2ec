/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers, one per row of the verb table: emq_handle_<symbol>. */
#ifndef EMQ_MODULE_HANDLERS_H
#define EMQ_MODULE_HANDLERS_H

#include "call.h"

#define EMQ_VERB(SYMBOL, symbol, ...) void emq_handle_##symbol(emq_call *call);
#include "verbs.def"
#undef EMQ_VERB

#endif
