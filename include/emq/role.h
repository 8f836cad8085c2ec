/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: the smallest ACL rules with which a user can do his part on one queue. For programs and
 * people that make users; the documentation prints the same. */
#ifndef EMQ_ROLE_H
#define EMQ_ROLE_H

#include <emq/error.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Who a user is to a queue. */
typedef enum emq_role {
    EMQ_ROLE_PRODUCER,  /**< admits jobs */
    EMQ_ROLE_WORKER,    /**< claims and settles them, and runs the sweeps */
    EMQ_ROLE_OPERATOR,  /**< looks, and sets right what went wrong */
    EMQ_ROLE_INSTALLER, /**< writes the fence: of a database, not of a queue */
    EMQ_ROLES           /**< how many there are */
} emq_role;

#define EMQ_ROLE_RULES_MAX 8192 /**< bytes of any role's rules, the NUL included */

/**
 * The role's name.
 *
 * @param role a role.
 * @return "producer" and so on, static; NULL when it is none. Thread-safe. Since 0.1.0.
 */
EMQ_API const char *emq_role_name(emq_role role);

/**
 * Writes the rules of a role for one queue, separated by single spaces, as they stand behind
 * `ACL SETUSER name reset on >password`.
 *
 * @param out   receives them, NUL-terminated; "" on an error, where there is room.
 * @param cap   bytes at out; EMQ_ROLE_RULES_MAX is always enough.
 * @param role  the role.
 * @param queue the queue name; not looked at for EMQ_ROLE_INSTALLER, for which NULL will do.
 * @return the length in bytes (positive); EMQ_EQUEUE; EMQ_EINVAL (NULL argument, no role, or cap
 *         too small). Thread-safe. Since 0.1.0.
 */
EMQ_API int emq_role_rules(char *out, size_t cap, emq_role role, const char *queue);

#ifdef __cplusplus
}
#endif

#endif
