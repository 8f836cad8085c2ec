/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs: what verbs.def lists, as data. */
#include <string.h>

#include "tool.h"

#define TOOL_VERB(name) extern const tool_verb verb_##name;
#include "verbs.def"
#undef TOOL_VERB

static const tool_verb *const verbs[] = {
#define TOOL_VERB(name) &verb_##name,
#include "verbs.def"
#undef TOOL_VERB
};

size_t tool_verbs_count(void) {
    return sizeof(verbs) / sizeof(verbs[0]);
}

const tool_verb *tool_verbs_get(size_t i) {
    return verbs[i];
}

const tool_verb *tool_verbs_find(const char *name) {
    for (size_t i = 0; i < tool_verbs_count(); i++) {
        if (strcmp(verbs[i]->name, name) == 0) {
            return verbs[i];
        }
    }
    return NULL;
}
