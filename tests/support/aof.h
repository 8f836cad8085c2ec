/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the commands in a server's incremental AOF file. */
#ifndef EMQ_TESTS_AOF_H
#define EMQ_TESTS_AOF_H

#include "server.h"

/* Where the AOF ends now. The server is set to write it before it answers. */
long long aof_mark(test_server *server);

/* The commands behind a mark, one a line, written as expect.h tells; the caller frees the text. */
char *aof_since(test_server *server, long long mark);

/* The same with the SELECT records. */
char *aof_since_with_select(test_server *server, long long mark);

#endif
