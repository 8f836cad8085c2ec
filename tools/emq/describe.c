/* SPDX-License-Identifier: Apache-2.0 */
/* What can be told without a server: what a key is, and the rules of a role. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

/* --- key --- */

/* What lies under a key; docs/protocol.md tells more. */
static const struct {
    const char *name;
    const char *type;
    const char *content;
} kinds[] = {
    [EMQ_KEY_BASE] = {"base", "none", "the name of the queue among keys; nothing lies under it"},
    [EMQ_KEY_PENDING] = {"pending", "zset", "ids of jobs that are ready to run"},
    [EMQ_KEY_ACTIVE] = {"active", "zset", "ids of leased jobs, by the end of their lease"},
    [EMQ_KEY_SCHEDULE] = {"schedule", "zset", "ids of jobs that wait for a time, by it"},
    [EMQ_KEY_DEAD] = {"dead", "zset", "ids of dead letters"},
    [EMQ_KEY_HELD] = {"held", "zset", "ids of flow parents that wait for children"},
    [EMQ_KEY_RING] = {"ring", "list", "lanes that can be served"},
    [EMQ_KEY_PAUSED] = {"paused", "set", "lanes that are paused"},
    [EMQ_KEY_GLIMIT] = {"glimit", "hash", "how much of a lane may be in flight"},
    [EMQ_KEY_GACTIVE] = {"gactive", "hash", "how much of a lane is in flight"},
    [EMQ_KEY_GWEIGHT] = {"gweight", "hash", "the weights of lanes"},
    [EMQ_KEY_WAKE] = {"wake", "list", "tokens that wake who waits for a lane"},
    [EMQ_KEY_META] = {"meta", "hash", "whether the queue is paused"},
    [EMQ_KEY_COMPLETED] = {"metrics:completed", "hash", "how many jobs were completed"},
    [EMQ_KEY_FAILED] = {"metrics:failed", "hash", "how many jobs have died"},
    [EMQ_KEY_OUTBOX] = {"flow:outbox", "list", "outcomes for parents in other queues"},
    [EMQ_KEY_OUTBOX_BAD] = {"flow:outbox:bad", "list", "outcomes that could not be read"},
    [EMQ_KEY_EVENTS_SEQ] = {"events:seq", "string", "the number of the last message"},
    [EMQ_KEY_EVENTS] = {"events", "channel", "messages about the queue"},
    [EMQ_KEY_JOB] = {"job", "hash", "a job's row"},
    [EMQ_KEY_LOGS] = {"logs", "list", "a job's log lines"},
    [EMQ_KEY_DEPENDENCIES] = {"dependencies", "string", "how many children a flow parent awaits"},
    [EMQ_KEY_PROCESSED] = {"processed", "hash", "results of a flow parent's children"},
    [EMQ_KEY_CHILD_FAILED] = {"failed", "hash", "errors of children that failed the parent"},
    [EMQ_KEY_UNSUCCESSFUL] = {"unsuccessful", "hash", "errors of children that were tolerated"},
    [EMQ_KEY_LANE] = {"lane", "zset", "ids that wait in a lane"},
    [EMQ_KEY_DEDUP] = {"dedup", "string", "the job that was admitted under an idempotency key"},
    [EMQ_KEY_STREAM] = {"stream", "stream", "records of the bus"},
    [EMQ_KEY_STREAM_FAILURES] = {"stream failures", "hash", "failed deliveries of records"},
    [EMQ_KEY_FENCE] = {"fence", "string", "the wire that this database is branded for"},
};

#define SEQUENCE_BITS 12
#define NODE_BITS 10

/* What an id tells of itself. */
typedef struct id_facts {
    int is_branded;
    int64_t minted_ms;
    unsigned node;
    unsigned sequence;
} id_facts;

static id_facts read_id(const char *text) {
    emq_id id;
    uint64_t snowflake = 0;
    id_facts facts = {0, 0, 0, 0};
    if (emq_id_parse(&id, text, strlen(text)) == EMQ_OK &&
        emq_id_to_snowflake(&snowflake, &id) == EMQ_OK) {
        facts.is_branded = 1;
        (void)emq_id_unix_ms(&facts.minted_ms, &id);
        facts.sequence = (unsigned)(snowflake & ((1U << SEQUENCE_BITS) - 1));
        facts.node = (unsigned)(snowflake >> SEQUENCE_BITS & ((1U << NODE_BITS) - 1));
    }
    return facts;
}

static void add_id(json_t *object, const char *id) {
    id_facts facts = read_id(id);
    (void)json_object_set_new(object, "id", json_string(id));
    if (facts.is_branded) {
        (void)json_object_set_new(object, "minted_ms", json_integer(facts.minted_ms));
        (void)json_object_set_new(object, "node", json_integer(facts.node));
        (void)json_object_set_new(object, "sequence", json_integer(facts.sequence));
    }
}

static void print_id(const char *id) {
    char minted[TOOL_TIME_MAX];
    id_facts facts = read_id(id);
    (void)printf("%-9s %s\n", "id", id);
    if (facts.is_branded) {
        tool_format_time(minted, facts.minted_ms);
        (void)printf("%-9s %s\n%-9s %u\n%-9s %u\n", "minted", minted, "node", facts.node,
                     "sequence", facts.sequence);
    }
}

static void print_key(const tool *t, const char *text, const emq_key *key) {
    unsigned slot = emq_key_slot(text, strlen(text));
    if (t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "key", json_string(text));
        (void)json_object_set_new(object, "kind", json_string(kinds[key->kind].name));
        (void)json_object_set_new(object, "type", json_string(kinds[key->kind].type));
        if (key->queue[0] != '\0') {
            (void)json_object_set_new(object, "queue", json_string(key->queue));
        }
        if (key->id[0] != '\0') {
            add_id(object, key->id);
        }
        (void)json_object_set_new(object, "slot", json_integer(slot));
        tool_print_json(object);
        return;
    }
    (void)printf("%-9s %s (%s): %s\n", "kind", kinds[key->kind].name, kinds[key->kind].type,
                 kinds[key->kind].content);
    if (key->queue[0] != '\0') {
        (void)printf("%-9s %s\n", "queue", key->queue);
    }
    if (key->id[0] != '\0') {
        print_id(key->id);
    }
    (void)printf("%-9s %u\n", "slot", slot);
}

static void print_bare_id(const tool *t, const char *text) {
    if (t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "kind", json_string("id"));
        add_id(object, text);
        tool_print_json(object);
    } else {
        print_id(text);
    }
}

static int run_key(tool *t) {
    for (int i = 0; i < t->argc; i++) {
        emq_key key;
        if (i > 0 && !t->json) {
            (void)putchar('\n');
        }
        if (emq_id_parse(NULL, t->argv[i], strlen(t->argv[i])) == EMQ_OK) {
            print_bare_id(t, t->argv[i]);
        } else if (emq_key_parse(&key, t->argv[i], strlen(t->argv[i])) == EMQ_OK) {
            print_key(t, t->argv[i], &key);
        } else {
            return tool_usage(t, "%s: %s", emq_strerror(EMQ_EKEY), t->argv[i]);
        }
    }
    return TOOL_DONE;
}

const tool_verb verb_key = {
    .name = "key",
    .arguments = "KEY...",
    .least = 1,
    .most = TOOL_ANY,
    .summary = "Tell what a key or an id is: queue, kind, mint time, node; no server is asked",
    .example = "emq key 'emq:{orders}:job:JOB0NgWEfAEJfs'\n",
    .run = run_key,
};

/* --- acl --- */

#define PASSWORD "change-me"

static int find_role(emq_role *out, const char *name) {
    for (int role = 0; role < EMQ_ROLES; role++) {
        if (strcmp(emq_role_name((emq_role)role), name) == 0) {
            *out = (emq_role)role;
            return 1;
        }
    }
    return 0;
}

static void print_rules(const tool *t, emq_role role, const char *user, const char *rules) {
    if (t->json) {
        json_t *object = json_object();
        (void)json_object_set_new(object, "role", json_string(emq_role_name(role)));
        (void)json_object_set_new(object, "user", json_string(user));
        (void)json_object_set_new(object, "rules", json_string(rules));
        tool_print_json(object);
    } else if (tool_value(t, "rules") != NULL) {
        (void)puts(rules);
    } else if (tool_value(t, "file") != NULL) {
        (void)printf("user %s on >" PASSWORD " %s\n", user, rules);
    } else {
        (void)printf("ACL SETUSER %s reset on >" PASSWORD " %s\n", user, rules);
    }
}

static int run_acl(tool *t) {
    char rules[EMQ_ROLE_RULES_MAX];
    char name[EMQ_QUEUE_MAX + 32];
    emq_role role = EMQ_ROLE_PRODUCER;
    if (!find_role(&role, t->argv[0])) {
        return tool_usage(t, "there is no role %s", t->argv[0]);
    }
    const char *queue = t->argc > 1 ? t->argv[1] : NULL;
    if ((queue == NULL) != (role == EMQ_ROLE_INSTALLER)) {
        return tool_usage(t, "every role but installer is one on a QUEUE");
    }
    int status = queue == NULL ? TOOL_DONE : tool_queue(t, queue);
    if (status != TOOL_DONE) {
        return status;
    }
    const char *user = tool_value(t, "user");
    if (user == NULL) {
        (void)snprintf(name, sizeof(name), "%s-%s", queue == NULL ? "emq" : queue, t->argv[0]);
        user = name;
    }
    int length = emq_role_rules(rules, sizeof(rules), role, queue);
    if (length < 0) {
        return tool_fail(t, "cannot write the rules", length, "");
    }
    print_rules(t, role, user, rules);
    return TOOL_DONE;
}

static const tool_option acl_options[] = {
    {"user", 'u', "NAME", "the user's name (default QUEUE-ROLE)"},
    {"file", 'f', NULL, "as a line of an ACL file"},
    {"rules", 'r', NULL, "the rules alone"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_acl = {
    .name = "acl",
    .arguments = "producer|worker|operator|installer [QUEUE]",
    .least = 1,
    .most = 2,
    .summary = "Print the smallest rights with which a user can do its part on a queue",
    .details = "No server is asked. The password in the line is to be changed.\n",
    .example = "emq acl worker orders\n",
    .options = acl_options,
    .run = run_acl,
};
