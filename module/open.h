/* SPDX-License-Identifier: Apache-2.0 */
/* Opening keys: quietly to look, and to write. A key that a call looks at and may write is opened
 * once for both, and kept until the call ends: looking a name up costs as much as most of what is
 * done with it. */
#ifndef EMQ_MODULE_OPEN_H
#define EMQ_MODULE_OPEN_H

#include "call.h"

/* Keeps a key open from the first look at it until the call ends. Where no more can be kept, it is
 * opened for each look and each effect. */
void emq_keep(emq_call *call, emq_ref ref);

/* Keeps one row of many, of EMQ_BATCH_MAX at most, which is found again by this reference, and
 * copies of it, alone: so the call must not name the row a second time. */
void emq_keep_row(emq_call *call, emq_ref *ref);

/* Opens a key to look at it: no expiry, notification, statistics or touch. NULL: there is none. */
ValkeyModuleKey *emq_open_to_look(emq_call *call, emq_ref ref);
void emq_close_looked(emq_call *call, emq_ref ref, ValkeyModuleKey *key);

/* Opens a key to write it, and closes it again; those who watch it are told when it is `changed`.
 */
ValkeyModuleKey *emq_open_to_write(emq_writes *writes, emq_ref ref);
void emq_close_written(emq_writes *writes, emq_ref ref, ValkeyModuleKey *key, int changed);

/* Closes what is kept; it tells nobody. */
void emq_close_kept(emq_writes *writes);

#endif
