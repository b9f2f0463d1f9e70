/* methods.c: fathom methods [ID]: what each method is, in one line or in full. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/verb.h"
#include "method/method.h"

#define METHODS_OPTIONS(X)                                                                         \
    X(BOOL, markdown, "false", FTH_ANY, "print all of them as Markdown (doc/methods.md)")
FTH_OPTIONS(methods_options, "methods", METHODS_OPTIONS)

static void list(void) {
    printf("%-13s %-5s %s\n", "id", "folds", "equation");
    for (const fth_method *const *m = fth_methods(); *m; m++)
        printf("%-13s %-5s %s\n", (*m)->id, (*m)->fold ? "yes" : "no", (*m)->equation);
    printf("\n%s is the default. folds: fathom fold makes plain Post-LN or Pre-LN of it. \"fathom "
           "methods ID\" "
           "explains one, with its options.\n",
           FTH_DEFAULT_METHOD);
    printf("Every method goes with every front and head. An encoder (--arch enc) has the heads");
    for (int head = FTH_HEAD_NEXT_TOKEN + 1; fth_head_name((fth_head_id)head); head++)
        printf(" %s", fth_head_name((fth_head_id)head));
    printf(", on text and on pictures.\n");
}

static void explain(const fth_method *m) {
    printf("%s: %s\n\n", m->id, m->title);
    printf("  paper       %s\n", m->paper);
    printf("  equation    %s\n", m->equation);
    printf("  parameters  %s beyond those of a plain Transformer\n", m->extra);
    printf("  fold        %s\n", m->export_to);
    printf("  training    %s\n", m->advice);
    if (!m->options) {
        printf("\nIt takes no options.\n");
        return;
    }
    printf("\noptions (--method-option KEY=VALUE, or method_options of config.json):\n");
    for (const fth_option_spec *o = m->options; o->key; o++) {
        printf("  %-15s %s; %s", o->key, o->help, o->kind);
        if (strncmp(o->kind, "number", 6) == 0) printf(" from %g to %g", o->min, o->max);
        printf(" (default: %s)\n", o->fallback);
    }
}

static void markdown(void) {
    printf("# Methods\n\nEvery method of `--method`, with its options. `G` is a sub-layer, `D` "
           "dropout, "
           "`LN` a\nlayer norm, `x` the residual stream. Made by `fathom methods --markdown`.\n\n"
           "| id | equation | extra parameters | fold to plain Post-LN or Pre-LN |\n"
           "| --- | --- | --- | --- |\n");
    for (const fth_method *const *m = fth_methods(); *m; m++)
        printf("| `%s` | `%s` | %s | %s |\n", (*m)->id, (*m)->equation, (*m)->extra,
               (*m)->export_to);
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        printf("\n## `%s`: %s\n\n%s.\n\nTraining: %s.\n", (*m)->id, (*m)->title, (*m)->paper,
               (*m)->advice);
        if (!(*m)->options) continue;
        printf("\n| option | values | default | meaning |\n| --- | --- | --- | --- |\n");
        for (const fth_option_spec *o = (*m)->options; o->key; o++) {
            printf("| `%s` | ", o->key);
            for (const char *c = o->kind; *c; c++) printf(*c == '|' ? " or " : "%c", *c);
            printf(" | %s | %s |\n", o->fallback, o->help);
        }
    }
}

static fth_err unknown(const char *id) {
    fth_config c = fth_config_default();
    fth_method_state state;
    snprintf(c.method, sizeof c.method, "%s", id);
    fth_err err = fth_method_resolve(&c, &state); /* its message has the nearest name */
    return err != FTH_OK ? err : fth_fail(FTH_USAGE, "method %.40s does not exist", id);
}

fth_err fth_verb_methods(int argc, char **argv) {
    methods_options options;
    fth_option_group groups[] = {methods_options_group(&options)};
    const fth_usage usage = {"fathom methods", "[ID]",
                             "Lists the methods that hold deep models together, or explains one.",
                             0, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        const fth_method *m = parsed.n_positionals ? fth_method_find(parsed.positionals[0]) : NULL;
        if (options.markdown)
            markdown();
        else if (!parsed.n_positionals)
            list();
        else if (m)
            explain(m);
        else
            err = unknown(parsed.positionals[0]);
    }
    fth_parsed_fini(&parsed);
    return err;
}
