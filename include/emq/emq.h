/* SPDX-License-Identifier: Apache-2.0 */
/* libemq: the C client of the EMQ job queue (wire 6). Including this header brings in all the
 * others.
 *
 * Conventions, valid for every function of the library:
 *  - The result is an int: 0 is "done as asked", a positive value is an expected other outcome
 *    (EMQ_DUPLICATE, EMQ_EMPTY, EMQ_GONE), a negative value is an error. See emq/error.h.
 *  - Out-parameters come first. `T **out` is yours to free; what a `_get_` function returns is
 *    borrowed and lives as long as the object that it came from.
 *  - A byte string is a pointer and a length; it may hold any byte, also NUL. Queue names are
 *    NUL-terminated.
 *  - A handle is used by one thread at a time; different handles are independent. An emq_pool is
 *    for all threads.
 */
#ifndef EMQ_EMQ_H
#define EMQ_EMQ_H

#include <emq/async.h>
#include <emq/client.h>
#include <emq/error.h>
#include <emq/events.h>
#include <emq/events_async.h>
#include <emq/export.h>
#include <emq/id.h>
#include <emq/job.h>
#include <emq/keyspace.h>
#include <emq/line.h>
#include <emq/memory.h>
#include <emq/pipeline.h>
#include <emq/pool.h>
#include <emq/read.h>
#include <emq/role.h>
#include <emq/url.h>
#include <emq/verbs.h>
#include <emq/version.h>
#include <emq/worker.h>

#endif
