/* SPDX-License-Identifier: Apache-2.0 */
/* The module's way in: the load gate, the registration of every row of the verb table, INFO. */
#include <emq/version.h>
#include <errno.h>
#include <string.h>

#include "handlers.h"
#include "host.h"

/* With hidden visibility the load symbols are exported by hand; emq.map keeps all others in. */
#define EMQ_MODULE_EXPORT __attribute__((visibility("default")))

#define MODULE_VERSION (EMQ_VERSION_MAJOR * 10000 + EMQ_VERSION_MINOR * 100 + EMQ_VERSION_PATCH)

/* The command that the server calls, for each row. */
#define EMQ_VERB(SYMBOL, symbol, ...)                                                              \
    static int command_##symbol(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {       \
        return emq_dispatch(ctx, argv, argc, EMQ_VERB_##SYMBOL, emq_handle_##symbol);              \
    }
#include "verbs.def"
#undef EMQ_VERB

static const ValkeyModuleCmdFunc commands[] = {
#define EMQ_VERB(SYMBOL, symbol, ...) command_##symbol,
#include "verbs.def"
#undef EMQ_VERB
};

/* EVAL's key-spec: the key count is argument 1 and the keys follow it. */
static ValkeyModuleCommandKeySpec key_specs[] = {
    {
        .flags =
            VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS | VALKEYMODULE_CMD_KEY_UPDATE,
        .begin_search_type = VALKEYMODULE_KSPEC_BS_INDEX,
        .bs.index = {.pos = 1},
        .find_keys_type = VALKEYMODULE_KSPEC_FK_KEYNUM,
        .fk.keynum = {.keynumidx = 0, .firstkey = 1, .keystep = 1},
    },
    {0},
};

/* A plain key at argument 1: one that is written, and one that is only read. */
#define PLAIN_KEY(flags_)                                                                          \
    {                                                                                              \
        .flags = (flags_), .begin_search_type = VALKEYMODULE_KSPEC_BS_INDEX,                       \
        .bs.index = {.pos = 1}, .find_keys_type = VALKEYMODULE_KSPEC_FK_RANGE,                     \
        .fk.range = {.lastkey = 0, .keystep = 1, .limit = 0},                                      \
    }

static ValkeyModuleCommandKeySpec plain_written[] = {
    PLAIN_KEY(VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS | VALKEYMODULE_CMD_KEY_UPDATE),
    {0},
};

static ValkeyModuleCommandKeySpec plain_read[] = {
    PLAIN_KEY(VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS),
    {0},
};

static ValkeyModuleCommandKeySpec *find_key_specs(const emq_verb *verb) {
    if (verb->key_count == 0) {
        return NULL;
    }
    if (emq_verb_counts_keys(verb)) {
        return key_specs;
    }
    return (verb->flags & EMQ_FLAG_WRITE) != 0 ? plain_written : plain_read;
}

/* What COMMAND DOCS tells of a verb's arguments. Each list has a zeroed end. */
typedef struct described_arguments {
    ValkeyModuleCommandArg all[1 + EMQ_VERB_KEYS_MAX + EMQ_VERB_VALUES_MAX + 1];
    ValkeyModuleCommandArg group[EMQ_VERB_VALUES_MAX + 1]; /* values that come together */
} described_arguments;

static ValkeyModuleCommandArg describe_value(const emq_verb *verb, int index) {
    const emq_value_facts *facts = emq_value_get_facts(verb->values[index]);
    return (ValkeyModuleCommandArg){.name = facts->name,
                                    .type = facts->is_integer ? VALKEYMODULE_ARG_TYPE_INTEGER
                                                              : VALKEYMODULE_ARG_TYPE_STRING,
                                    .key_spec_index = -1};
}

/* The values, of which the last may be optional or repeat: as one argument, or several as a block.
 */
static void describe_values(ValkeyModuleCommandArg *out, ValkeyModuleCommandArg *group,
                            const emq_verb *verb) {
    int repeats = verb->repeated > 0;
    int alone = repeats ? verb->value_count - verb->repeated : verb->least_values;
    int flags = (repeats ? VALKEYMODULE_CMD_ARG_MULTIPLE : 0) |
                (alone >= verb->least_values ? VALKEYMODULE_CMD_ARG_OPTIONAL : 0);
    int together = verb->value_count - alone;
    for (int i = 0; i < alone; i++) {
        *out++ = describe_value(verb, i);
    }
    for (int i = 0; i < together; i++) {
        group[i] = describe_value(verb, alone + i);
    }
    if (together == 1) {
        *out = group[0];
    } else if (together > 1) {
        *out = (ValkeyModuleCommandArg){.name = repeats ? "member" : "option",
                                        .type = VALKEYMODULE_ARG_TYPE_BLOCK,
                                        .key_spec_index = -1,
                                        .subargs = group};
    }
    if (together > 0) {
        out->flags = flags;
    }
}

/* COMMAND DOCS shows the key count, each key with its pattern, and the values. */
static void describe_arguments(described_arguments *described, const emq_verb *verb) {
    ValkeyModuleCommandArg *out = described->all;
    if (emq_verb_counts_keys(verb)) {
        *out++ = (ValkeyModuleCommandArg){
            .name = "numkeys", .type = VALKEYMODULE_ARG_TYPE_INTEGER, .key_spec_index = -1};
    }
    for (int i = 0; i < verb->key_count; i++) {
        *out++ = (ValkeyModuleCommandArg){.name = emq_verb_key_word(verb, i),
                                          .type = VALKEYMODULE_ARG_TYPE_KEY,
                                          .key_spec_index = 0,
                                          .display_text = emq_verb_key_pattern(verb, i)};
    }
    describe_values(out, described->group, verb);
}

static int register_verb(ValkeyModuleCtx *ctx, int symbol) {
    const emq_verb *verb = &emq_verbs[symbol];
    char flags[EMQ_WORDS_MAX];
    char categories[EMQ_WORDS_MAX];
    described_arguments arguments;
    emq_verb_flag_words(flags, sizeof(flags), verb);
    emq_verb_category_words(categories, sizeof(categories), verb);
    memset(&arguments, 0, sizeof(arguments));
    describe_arguments(&arguments, verb);
    const ValkeyModuleCommandInfo info = {
        .version = VALKEYMODULE_COMMAND_INFO_VERSION,
        .summary = verb->summary,
        .complexity = verb->complexity,
        .since = verb->since,
        .arity = emq_verb_arity(verb),
        .key_specs = find_key_specs(verb),
        .args = arguments.all[0].name != NULL ? arguments.all : NULL,
    };
    if (ValkeyModule_CreateCommand(ctx, verb->name, commands[symbol], flags, 0, 0, 0) !=
        VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    ValkeyModuleCommand *command = ValkeyModule_GetCommand(ctx, verb->name);
    if (command == NULL || ValkeyModule_SetCommandInfo(command, &info) != VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    return ValkeyModule_SetCommandACLCategories(command, categories);
}

static int refuse_load(ValkeyModuleCtx *ctx, const char *what) {
    ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "load refused: cannot register %s", what);
    return VALKEYMODULE_ERR;
}

/* The server keeps a category when its module is unloaded: a second load finds it there. */
static int register_category(ValkeyModuleCtx *ctx) {
    errno = 0;
    return ValkeyModule_AddACLCategory(ctx, EMQ_MODULE_NAME) == VALKEYMODULE_OK || errno == EBUSY;
}

static int register_all(ValkeyModuleCtx *ctx) {
    if (!register_category(ctx)) {
        return refuse_load(ctx, "the ACL category " EMQ_MODULE_NAME);
    }
    if (ValkeyModule_RegisterInfoFunc(ctx, emq_stats_info) != VALKEYMODULE_OK) {
        return refuse_load(ctx, "the INFO section");
    }
    for (int symbol = 0; symbol < EMQ_VERBS; symbol++) {
        if (register_verb(ctx, symbol) != VALKEYMODULE_OK) {
            return refuse_load(ctx, emq_verbs[symbol].name);
        }
    }
    /* This module keeps no data of its own: the dataset is all there is. So it holds up neither
     * slot migration nor a replica's loading beside its old data. The gate has looked up each
     * command that is replicated: the server need not do it again with each effect. A key is opened
     * for writing before it is known whether it will be written: effects tell by themselves. */
    ValkeyModule_SetModuleOptions(ctx, VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION |
                                           VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD |
                                           VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS |
                                           VALKEYMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED |
                                           VALKEYMODULE_OPTIONS_SKIP_COMMAND_VALIDATION);
    return VALKEYMODULE_OK;
}

EMQ_MODULE_EXPORT int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv,
                                          int argc);

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    if (ValkeyModule_Init(ctx, EMQ_MODULE_NAME, MODULE_VERSION, VALKEYMODULE_APIVER_1) !=
        VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    if (!emq_host_check(ctx, argc) || !emq_host_init(ctx)) {
        return VALKEYMODULE_ERR;
    }
    if (register_all(ctx) != VALKEYMODULE_OK) {
        emq_host_free();
        return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

EMQ_MODULE_EXPORT int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx);

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    (void)ctx;
    emq_host_free();
    return VALKEYMODULE_OK;
}
