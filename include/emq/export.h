/* SPDX-License-Identifier: Apache-2.0 */
/* The one macro that marks what libemq.so exports. Everything without it stays inside. */
#ifndef EMQ_EXPORT_H
#define EMQ_EXPORT_H

#if defined(__GNUC__)
#define EMQ_API __attribute__((visibility("default")))
#else
#define EMQ_API
#endif

#endif
