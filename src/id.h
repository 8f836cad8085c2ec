/* SPDX-License-Identifier: Apache-2.0 */
/* Minting with a given clock: what emq_id_mint does after it has read the time. */
#ifndef EMQ_SRC_ID_H
#define EMQ_SRC_ID_H

#include <emq/id.h>

int emq_id_mint_at(emq_id *out, const char *name_space, int64_t unix_ms);

#endif
