/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of rights beyond emq/role.h: the documentation, the tests and the command-line tool
 * print what the two write; nobody has a second list. */
#ifndef EMQ_SRC_ROLES_H
#define EMQ_SRC_ROLES_H

#include <emq/role.h>

/* The broad form: every part of a queue's life but what is dangerous, newer verbs included. */
#define EMQ_BROAD_RULES(queue)                                                                     \
    "+client|id +client|setname +client|unblock +get +hgetall +time +zrange +@emq -@dangerous "    \
    "~emq:{" queue "}:* %R~{emq}:version &emq:{" queue "}:events"

#endif
