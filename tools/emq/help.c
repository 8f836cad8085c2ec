/* SPDX-License-Identifier: Apache-2.0 */
/* Help, from the table of verbs: for people, for the completion (--list), and for the manual page
 * (--man), which the build makes of it. */
#include <stdio.h>
#include <string.h>

#include "tool.h"

#define NAME_COLUMN 12
#define OPTION_COLUMN 24

void tool_help_print(void) {
    (void)printf("Usage: emq VERB [OPTION]... [ARGUMENT]...\n"
                 "\n"
                 "Looks at the queues of an EMQ server, and sets right what went wrong.\n"
                 "\n");
    for (size_t i = 0; i < tool_verbs_count(); i++) {
        const tool_verb *verb = tool_verbs_get(i);
        (void)printf("  %-*s%s\n", NAME_COLUMN, verb->name, verb->summary);
    }
    (void)printf("\n"
                 "The server is that of --url or EMQ_URL (default redis://127.0.0.1:6379).\n"
                 "More about a verb: emq help VERB\n");
}

static void print_option(const tool_option *option) {
    char text[80];
    char letter[] = "-?, ";
    letter[1] = option->letter;
    (void)snprintf(text, sizeof(text), "%s--%s%s%s", option->letter == 0 ? "    " : letter,
                   option->name, option->value == NULL ? "" : " ",
                   option->value == NULL ? "" : option->value);
    (void)printf("  %-*s%s\n", OPTION_COLUMN, text, option->help);
}

static void for_each_option(const tool_verb *verb, void (*print)(const tool_option *)) {
    for (const tool_option *o = verb->options; o != NULL && o->name != NULL; o++) {
        print(o);
    }
    for (const tool_option *o = tool_common_options; o->name != NULL; o++) {
        print(o);
    }
}

/* Lines, each with this in front. */
static void print_lines(const char *indent, const char *lines) {
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");
        (void)printf("%s%.*s\n", n == 0 ? "" : indent, (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

void tool_help_print_verb(const tool_verb *verb) {
    (void)printf("Usage: emq %s [OPTION]...%s%s\n\n%s.\n", verb->name,
                 verb->arguments[0] == '\0' ? "" : " ", verb->arguments, verb->summary);
    if (verb->details != NULL) {
        (void)printf("\n");
        print_lines("", verb->details);
    }
    (void)printf("\n");
    for_each_option(verb, print_option);
    (void)printf("\nExample:\n");
    print_lines("  ", verb->example);
}

/* --- for the completion: one word a line, what it is behind a tab; `=` for an option's value ---
 */

static void list_option(const tool_option *option) {
    (void)printf("--%s%s\t%s\n", option->name, option->value == NULL ? "" : "=", option->help);
}

static void list_verbs(void) {
    for (size_t i = 0; i < tool_verbs_count(); i++) {
        const tool_verb *verb = tool_verbs_get(i);
        (void)printf("%s\t%s\n", verb->name, verb->summary);
    }
}

/* --- for the manual page --- */

/* A dash that is typed, and a backslash; a line must not start with a dot or a quote. */
static void print_roff(const char *text, size_t n) {
    if (n > 0 && (text[0] == '.' || text[0] == '\'')) {
        (void)printf("\\&");
    }
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\') {
            (void)printf("\\e");
        } else if (text[i] == '-') {
            (void)printf("\\-");
        } else {
            (void)putchar(text[i]);
        }
    }
}

static void print_roff_lines(const char *lines) {
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");
        if (n == 0) {
            (void)printf(".PP");
        }
        print_roff(lines, n);
        (void)printf("\n");
        lines += n + (lines[n] == '\n');
    }
}

static void man_option(const tool_option *option) {
    (void)printf(".TP\n");
    if (option->letter != 0) {
        (void)printf("\\fB\\-%c\\fR, ", option->letter);
    }
    (void)printf("\\fB\\-\\-");
    print_roff(option->name, strlen(option->name));
    (void)printf("\\fR");
    if (option->value != NULL) {
        (void)printf(" \\fI%s\\fR", option->value);
    }
    (void)printf("\n");
    print_roff(option->help, strlen(option->help));
    (void)printf("\n");
}

static void man_verb(const tool_verb *verb) {
    (void)printf(".SS \"emq %s%s%s\"\n", verb->name, verb->arguments[0] == '\0' ? "" : " ",
                 verb->arguments);
    print_roff(verb->summary, strlen(verb->summary));
    (void)printf(".\n");
    if (verb->details != NULL) {
        (void)printf(".PP\n");
        print_roff_lines(verb->details);
    }
    for (const tool_option *o = verb->options; o != NULL && o->name != NULL; o++) {
        man_option(o);
    }
    (void)printf(".PP\n.nf\n.RS\n");
    print_roff_lines(verb->example);
    (void)printf(".RE\n.fi\n");
}

static void print_man(void) {
    (void)printf(".SH OPTIONS OF EVERY VERB\n");
    for (const tool_option *o = tool_common_options; o->name != NULL; o++) {
        man_option(o);
    }
    (void)printf(".SH VERBS\n");
    for (size_t i = 0; i < tool_verbs_count(); i++) {
        man_verb(tool_verbs_get(i));
    }
}

static int help_about(const tool *t, const tool_verb *verb) {
    if (tool_value(t, "man") != NULL) {
        print_man();
    } else if (tool_value(t, "list") != NULL && verb != NULL) {
        for_each_option(verb, list_option);
    } else if (tool_value(t, "list") != NULL) {
        list_verbs();
    } else if (verb != NULL) {
        tool_help_print_verb(verb);
    } else {
        tool_help_print();
    }
    return TOOL_DONE;
}

static int run(tool *t) {
    const tool_verb *verb = NULL;
    if (t->argc > 0) {
        verb = tool_verbs_find(t->argv[0]);
        if (verb == NULL) {
            return tool_usage(t, "there is no verb %s", t->argv[0]);
        }
    }
    return help_about(t, verb);
}

static const tool_option options[] = {
    {"list", 'l', NULL, "the words alone, for a completion: verbs, or options of VERB"},
    {"man", 0, NULL, "the verbs' part of the manual page"},
    {NULL, 0, NULL, NULL},
};

const tool_verb verb_help = {
    .name = "help",
    .arguments = "[VERB]",
    .least = 0,
    .most = 1,
    .summary = "Tell what there is, or more about one verb",
    .example = "emq help claim\n",
    .options = options,
    .run = run,
};
