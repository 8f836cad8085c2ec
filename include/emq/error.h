/* SPDX-License-Identifier: Apache-2.0 */
/* Results and errors: one table of every value that a libemq function can return, with its class.
 *
 * Branch on single values where you handle one case (EMQ_EMPTY, EMQ_ESTALE), and on the class where
 * you decide what to do next (retry, give up, report). The numbers are stable: a value never
 * changes its meaning, new ones are added.
 */
#ifndef EMQ_ERROR_H
#define EMQ_ERROR_H

#include <emq/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a caller can do about a result. */
typedef enum emq_class {
    EMQ_CLASS_OK = 0,        /**< done as asked, or an expected other outcome (result >= 0) */
    EMQ_CLASS_RETRYABLE = 1, /**< nothing was done; the same call may succeed after a while */
    EMQ_CLASS_UNKNOWN = 2,   /**< sent, but no answer came: it may have been done or not */
    EMQ_CLASS_STALE = 3,     /**< the lease is no longer yours: drop the job's result */
    EMQ_CLASS_USAGE = 4,     /**< the call itself is wrong; nothing was sent, or it was refused */
    EMQ_CLASS_SERVER = 5,    /**< the server refuses, and goes on refusing until somebody acts */
    EMQ_CLASS_PROTOCOL = 6,  /**< the peer answered something that wire 6 does not allow */
    EMQ_CLASS_INTERNAL = 7   /**< out of memory, or a failing system call, in this process */
} emq_class;

/* clang-format off */
/**
 * Every result: EMQ_RESULT(name, number, class, text).
 *
 * The table is public so that a program or a binding can build its own exceptions from it.
 */
#define EMQ_RESULT_TABLE(EMQ_RESULT)                                                               \
    EMQ_RESULT(OK, 0, OK, "done")                                                                  \
    EMQ_RESULT(DUPLICATE, 1, OK, "a job with this id exists already; nothing was written")         \
    EMQ_RESULT(EMPTY, 2, OK, "no job can be claimed now")                                          \
    EMQ_RESULT(GONE, 3, OK, "the job is gone: it was completed or removed")                        \
    EMQ_RESULT(DEAD, 4, OK, "the job failed too often: it is a dead letter now")                   \
    EMQ_RESULT(EINVAL, -1, USAGE, "an argument is missing or out of its range")                    \
    EMQ_RESULT(EQUEUE, -2, USAGE, "not a queue name: 1 to 128 of A-Z a-z 0-9 . _ -, and not emq")  \
    EMQ_RESULT(EID_LENGTH, -3, USAGE, "a branded id has exactly 14 bytes")                         \
    EMQ_RESULT(EID_NAMESPACE, -4, USAGE, "a branded id starts with three letters A to Z")          \
    EMQ_RESULT(EID_CHARSET, -5, USAGE, "a branded id ends in eleven of 0-9 A-Z a-z")               \
    EMQ_RESULT(EID_RANGE, -6, USAGE, "the number in the branded id is above 2^63 - 1")             \
    EMQ_RESULT(EKIND, -7, USAGE, "the id has another namespace than this verb takes")              \
    EMQ_RESULT(EKEY, -8, USAGE, "not a key of an EMQ queue")                                       \
    EMQ_RESULT(ETOOBIG, -9, USAGE, "the payload is larger than max_payload")                       \
    EMQ_RESULT(EFORBIDDEN, -10, USAGE, "not sent: a script, MULTI, or it changes the connection")  \
    EMQ_RESULT(ECLOSED, -11, USAGE, "the connection is closed; reconnect first")                   \
    EMQ_RESULT(ENOTLS, -12, USAGE, "this libemq is built without TLS")                             \
    EMQ_RESULT(EFORKED, -15, USAGE, "it belongs to the process that this one was forked from")     \
    EMQ_RESULT(ERESOLVE, -20, RETRYABLE, "the host name could not be resolved")                    \
    EMQ_RESULT(ECONNECT, -21, RETRYABLE, "the connection was refused or failed")                   \
    EMQ_RESULT(ECONNTIMEOUT, -22, RETRYABLE, "the server was not ready within connect_timeout_ms") \
    EMQ_RESULT(ELOADING, -23, RETRYABLE, "the server is loading its data")                         \
    EMQ_RESULT(EMASTERDOWN, -24, RETRYABLE, "the replica has lost its primary")                    \
    EMQ_RESULT(EREADONLY, -25, RETRYABLE, "the server is a read-only replica")                     \
    EMQ_RESULT(EOOM, -26, RETRYABLE, "the server is at maxmemory and takes no new data")           \
    EMQ_RESULT(EMISCONF, -27, RETRYABLE, "the server cannot persist and refuses writes")           \
    EMQ_RESULT(ENOREPLICAS, -28, RETRYABLE, "the server has too few good replicas")                \
    EMQ_RESULT(ETRYAGAIN, -29, RETRYABLE, "the server asks to try again")                          \
    EMQ_RESULT(EBUSY, -30, RETRYABLE, "the server is busy with a script")                          \
    EMQ_RESULT(EWRITEPAUSED, -31, RETRYABLE, "writes are paused on the server")                    \
    EMQ_RESULT(EUNBLOCKED, -32, RETRYABLE, "the blocked call was ended by the server")             \
    EMQ_RESULT(EOVERLOAD, -33, RETRYABLE, "too much is waiting to be sent")                        \
    EMQ_RESULT(EPOOLTIMEOUT, -35, RETRYABLE, "no client of the pool became free in time")          \
    EMQ_RESULT(ESENTINEL, -36, RETRYABLE, "no sentinel named a primary")                           \
    EMQ_RESULT(ENOPRIMARY, -37, RETRYABLE, "the server that the sentinels name is no primary")     \
    EMQ_RESULT(ETIMEOUT, -40, UNKNOWN, "no answer within the deadline; it may have been done")     \
    EMQ_RESULT(ECONNLOST, -41, UNKNOWN, "the connection was lost; it may have been done")          \
    EMQ_RESULT(ECANCELED, -42, UNKNOWN, "canceled; if it was sent, it may have been done")         \
    EMQ_RESULT(ESTALE, -50, STALE, "the lease is stale: another holder's, or over")                \
    EMQ_RESULT(EJOBGONE, -51, STALE, "the job is gone")                                            \
    EMQ_RESULT(EFENCE_ABSENT, -60, SERVER, "{emq}:version is absent: EMQ.INSTALL was never run")   \
    EMQ_RESULT(EFENCE, -61, SERVER, "{emq}:version holds another wire")                            \
    EMQ_RESULT(EMODULE, -62, SERVER, "the server has no EMQ module of this wire and major")        \
    EMQ_RESULT(ECAPABILITY, -63, SERVER, "the module lacks a capability that this client needs")   \
    EMQ_RESULT(EAUTH, -64, SERVER, "user or password refused, or missing")                         \
    EMQ_RESULT(ENOPERM, -65, SERVER, "the user has no right to this command or key")               \
    EMQ_RESULT(EWRONGTYPE, -66, SERVER, "a key of the queue has another type")                     \
    EMQ_RESULT(ESHAPE, -67, SERVER, "the server expects other keys or values for this verb")       \
    EMQ_RESULT(ELAYOUT, -68, SERVER, "the server expects another key for this verb")               \
    EMQ_RESULT(EVALUE, -69, SERVER, "the server refuses a value: out of range or malformed")       \
    EMQ_RESULT(ESTATE, -70, SERVER, "the job is in another state than the verb needs")             \
    EMQ_RESULT(ELANE, -71, SERVER, "a lane row: it is settled by the EMQ.GROUP verbs")             \
    EMQ_RESULT(EFLOW, -72, SERVER, "a flow row: it is settled by the EMQ.FLOW verbs")              \
    EMQ_RESULT(ELOCK, -73, SERVER, "the job is leased")                                            \
    EMQ_RESULT(ESERVER, -74, SERVER, "the server refused; see the server's own text")              \
    EMQ_RESULT(EDATABASE, -75, SERVER, "the database cannot be selected")                          \
    EMQ_RESULT(EBADJOB, -76, SERVER, "a leased job has an id that is no branded id")               \
    EMQ_RESULT(ENOTFLAT, -77, SERVER, "a lane or flow row: verbs of its own settle it")            \
    EMQ_RESULT(EORDER, -78, SERVER, "the stream has this record or a younger one already")         \
    EMQ_RESULT(ETLS, -79, SERVER, "TLS failed: not trusted, another name, or refused")             \
    EMQ_RESULT(EPRIMARYNAME, -81, SERVER, "the sentinels do not know a primary of this name")      \
    EMQ_RESULT(EPROTOCOL, -80, PROTOCOL, "the peer's answer is not one that wire 6 allows")        \
    EMQ_RESULT(ENOMEM, -90, INTERNAL, "out of memory")                                             \
    EMQ_RESULT(ESYSTEM, -91, INTERNAL, "a system call failed")
/* clang-format on */

/** The results as constants: EMQ_OK, EMQ_DUPLICATE, …, EMQ_ESYSTEM. */
enum {
#define EMQ_RESULT_CONSTANT(name, number, class, text) EMQ_##name = (number),
    EMQ_RESULT_TABLE(EMQ_RESULT_CONSTANT)
#undef EMQ_RESULT_CONSTANT
};

/**
 * A sentence for a result.
 *
 * @param result any value that a libemq function returned.
 * @return a static string, never NULL; for an unknown number "unknown result".
 *         Thread-safe. Since 0.1.0.
 */
EMQ_API const char *emq_strerror(int result);

/**
 * The name of a result, as it stands in the source: "EMQ_ESTALE".
 *
 * @param result any value that a libemq function returned.
 * @return a static string, never NULL; for an unknown number "EMQ_?".
 *         Thread-safe. Since 0.1.0.
 */
EMQ_API const char *emq_err_name(int result);

/**
 * The class of a result: what can be done about it.
 *
 * @param result any value that a libemq function returned.
 * @return its class; EMQ_CLASS_INTERNAL for an unknown number. Thread-safe. Since 0.1.0.
 */
EMQ_API emq_class emq_err_class(int result);

#ifdef __cplusplus
}
#endif

#endif
