/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations on replies and on what a call changed. Texts are those of command.h. */
#ifndef EMQ_TESTS_EXPECT_H
#define EMQ_TESTS_EXPECT_H

#include "command.h"

#define DIGEST_MAX 64

/* The digest of every database. */
const char *get_digest(char *out, test_server *server);

/* What the server has propagated so far to AOF and replicas. */
long long get_offset(test_server *server);

/* The reply is exactly this. */
#define EXPECT(c, want, ...)                                                                       \
    expect_reply(__FILE__, __LINE__, (c), (want), __VA_ARGS__, (const char *)NULL)

/* The reply is exactly this, the data of the server are as before, and nothing was propagated. */
#define EXPECT_UNCHANGED(server, c, want, ...)                                                     \
    expect_unchanged(__FILE__, __LINE__, (server), (c), (want), __VA_ARGS__, (const char *)NULL)

/* The reply is exactly this, and exactly these commands reached the AOF: one a line, words
 * separated by single spaces, a word in quotes where it is empty or holds other than printable
 * ASCII. SELECT records are left out. */
#define EXPECT_EFFECTS(server, effects, c, want, ...)                                              \
    expect_effects(__FILE__, __LINE__, (server), (effects), (c), (want), __VA_ARGS__,              \
                   (const char *)NULL)

/* Two texts are equal; says both when not. */
#define EXPECT_TEXT(got, want) expect_text(__FILE__, __LINE__, (got), (want))

void expect_reply(const char *file, int line, redisContext *c, const char *want,
                  ...) NULL_AT_THE_END;
void expect_unchanged(const char *file, int line, test_server *server, redisContext *c,
                      const char *want, ...) NULL_AT_THE_END;
void expect_effects(const char *file, int line, test_server *server, const char *effects,
                    redisContext *c, const char *want, ...) NULL_AT_THE_END;
void expect_text(const char *file, int line, const char *got, const char *want);

#endif
