/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's rights, as the dispatcher asks for them; emq_reach and the like are in call.h. */
#ifndef EMQ_MODULE_REACH_H
#define EMQ_MODULE_REACH_H

#include "call.h"

/* One look-up of the user serves the whole call. Nobody (a call without a user) has no rights. */
void emq_find_user(emq_call *call);

/* What the server checks before a call, but not before it wakes a blocked client: the right to the
 * verb and to the declared keys, which may have been withdrawn in between. */
int emq_check_verb(emq_call *call);

/* Checks these rights on one key; refuses with NOPERM and an entry in ACL LOG. */
int emq_check_key(emq_call *call, ValkeyModuleString *key, int rights);

#endif
