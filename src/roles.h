/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: the smallest ACL rules with which a user can do his part on one queue. The documentation,
 * the tests and the command-line tool print what this writes; nobody has a second list. */
#ifndef EMQ_SRC_ROLES_H
#define EMQ_SRC_ROLES_H

#include <stddef.h>

typedef enum emq_role {
    EMQ_ROLE_PRODUCER,  /* admits jobs */
    EMQ_ROLE_WORKER,    /* claims and settles them, and runs the sweeps */
    EMQ_ROLE_OPERATOR,  /* looks, and sets right what went wrong */
    EMQ_ROLE_INSTALLER, /* writes the fence: of a database, not of a queue */
    EMQ_ROLES
} emq_role;

/* The role's name: "producer". Static. */
const char *emq_role_name(emq_role role);

/* Writes the rules of a role for one queue, separated by single spaces, as they stand behind
 * `ACL SETUSER name reset on >password`. NUL-terminates, and returns the bytes written without the
 * NUL; 0 when the queue's name is not valid (an installer needs none: NULL will do) or cap is too
 * small, for which EMQ_ROLE_RULES_MAX is always enough. */
#define EMQ_ROLE_RULES_MAX 8192
size_t emq_role_rules(char *out, size_t cap, emq_role role, const char *queue);

/* The broad form: every part of a queue's life but what is dangerous, newer verbs included. */
#define EMQ_BROAD_RULES(queue)                                                                     \
    "+client|id +client|setname +client|unblock +get +hgetall +time +zrange +@emq -@dangerous "    \
    "~emq:{" queue "}:* %R~{emq}:version &emq:{" queue "}:events"

#endif
