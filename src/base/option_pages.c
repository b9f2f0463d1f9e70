/* option_pages.c: each format is a function that adds one option, between a beginning and an
 * end. */
#include "base/option_pages.h"

#include <string.h>

#include "base/option_value.h"

/* The options that every verb has. */
static const struct general {
    const char *name, *word, *about;
} general[] = {
    {"config", "FILE",
     "read options from a YAML file, \"max-tokens: 4096\" for --max-tokens 4096; later files win "
     "over earlier ones, the command line over all"},
    {"dump-config", NULL, "print the resulting options as YAML and exit"},
    {"help", NULL, "print a summary of the options and exit"}};
enum { N_GENERAL = sizeof general / sizeof *general };

fth_err fth_add_roff(const char *text, fth_str *out) {
    for (const char *start = text; *text; text++) {
        if (text == start && (*text == '.' || *text == '\'')) FTH_TRY(fth_str_addf(out, "\\&"));
        if (*text == '\\')
            FTH_TRY(fth_str_addf(out, "\\e"));
        else if (*text == '-')
            FTH_TRY(fth_str_addf(out, "\\-"));
        else
            FTH_TRY(fth_str_add(out, text, 1));
    }
    return FTH_OK;
}

fth_err fth_add_quoted(const char *text, bool colons, fth_str *out) {
    for (; *text; text++) {
        if (*text == '\'')
            FTH_TRY(fth_str_addf(out, "'\\''"));
        else if (colons && strchr("[]:\\", *text))
            FTH_TRY(fth_str_addf(out, "\\%c", *text));
        else
            FTH_TRY(fth_str_add(out, text, 1));
    }
    return FTH_OK;
}

/* The name of a verb: what follows "fathom ". */
static const char *verb_of(const fth_usage *usage) {
    const char *blank = strchr(usage->command, ' ');
    return blank ? blank + 1 : usage->command;
}

/* ---- a manual page ---- */

static fth_err man_option(const char *name, const char *word, bool on_off, const char *about,
                          fth_str *out) {
    FTH_TRY(fth_str_addf(out, ".TP\n\\fB\\-\\-%s", on_off ? "[no\\-]" : ""));
    FTH_TRY(fth_add_roff(name, out));
    FTH_TRY(fth_str_addf(out, "\\fR"));
    if (word) {
        FTH_TRY(fth_str_addf(out, " \\fI"));
        FTH_TRY(fth_add_roff(word, out));
        FTH_TRY(fth_str_addf(out, "\\fR"));
    }
    FTH_TRY(fth_str_addf(out, "\n"));
    FTH_TRY(fth_add_roff(about, out));
    return fth_str_addf(out, "\n");
}

static fth_err man_group(const fth_option_group *g, fth_str *out) {
    fth_err err = FTH_OK;
    fth_str about = {0};
    FTH_TRY(fth_str_addf(out, ".SS "));
    FTH_TRY(fth_add_roff(g->title, out));
    FTH_TRY(fth_str_addf(out, "\n"));
    for (size_t i = 0; i < g->count && err == FTH_OK; i++) {
        const fth_option *o = &g->table[i];
        char name[FTH_OPTION_NAME_SIZE];
        fth_option_name(o, name);
        fth_str_clear(&about);
        err = fth_option_about(o, &about);
        if (err == FTH_OK)
            err = man_option(name, fth_option_word(o), o->kind == FTH_OPTION_BOOL, about.text, out);
    }
    fth_str_fini(&about);
    return err;
}

static fth_err man_page(const fth_usage *usage, const fth_option_group *groups, size_t n,
                        fth_str *out) {
    const char *verb = verb_of(usage);
    FTH_TRY(fth_str_addf(out,
                         ".TH \"FATHOM\\-%s\" 1 \"\" \"fathom " FATHOM_VERSION "\" \"fathom\"\n"
                         ".SH NAME\nfathom\\-%s \\- ",
                         verb, verb));
    const size_t first = strcspn(usage->summary, ".");
    fth_str line = {0};
    fth_err err = fth_str_add(&line, usage->summary, first);
    if (err == FTH_OK) err = fth_add_roff(line.text, out);
    fth_str_fini(&line);
    FTH_TRY(err);
    FTH_TRY(fth_str_addf(out, "\n.SH SYNOPSIS\n.B %s\n", usage->command));
    FTH_TRY(fth_add_roff(usage->arguments, out));
    FTH_TRY(fth_str_addf(out, "%s[options]\n.SH DESCRIPTION\n", *usage->arguments ? " " : ""));
    FTH_TRY(fth_add_roff(usage->summary, out));
    FTH_TRY(fth_str_addf(out, "\n.SH OPTIONS\n"));
    for (size_t g = 0; g < n; g++) FTH_TRY(man_group(&groups[g], out));
    FTH_TRY(fth_str_addf(out, ".SS general\n"));
    for (int i = 0; i < N_GENERAL; i++)
        FTH_TRY(man_option(general[i].name, general[i].word, false, general[i].about, out));
    return fth_str_addf(out, ".SH SEE ALSO\n.BR fathom (1)\n");
}

/* ---- completion ---- */

/* Adds the words of "a|b|c" with blanks between. */
static fth_err add_words(const char *choices, fth_str *out) {
    for (; *choices; choices++) FTH_TRY(fth_str_add(out, *choices == '|' ? " " : choices, 1));
    return FTH_OK;
}

static fth_err bash_names(const fth_option_group *g, fth_str *out) {
    for (size_t i = 0; i < g->count; i++) {
        char name[FTH_OPTION_NAME_SIZE];
        fth_option_name(&g->table[i], name);
        FTH_TRY(fth_str_addf(out, "--%s ", name));
        if (g->table[i].kind == FTH_OPTION_BOOL) FTH_TRY(fth_str_addf(out, "--no-%s ", name));
    }
    return FTH_OK;
}

static fth_err bash_choices(const fth_option_group *g, fth_str *out) {
    for (size_t i = 0; i < g->count; i++) {
        char name[FTH_OPTION_NAME_SIZE];
        if (!g->table[i].rule.choices) continue;
        fth_option_name(&g->table[i], name);
        FTH_TRY(fth_str_addf(out, "        --%s) words=\"", name));
        FTH_TRY(add_words(g->table[i].rule.choices, out));
        FTH_TRY(fth_str_addf(out, "\" ;;\n"));
    }
    return FTH_OK;
}

static fth_err bash_case(const fth_usage *usage, const fth_option_group *groups, size_t n,
                         fth_str *out) {
    FTH_TRY(fth_str_addf(out, "    %s)\n        options=\"", verb_of(usage)));
    for (size_t g = 0; g < n; g++) FTH_TRY(bash_names(&groups[g], out));
    FTH_TRY(fth_str_addf(out, "--config --dump-config --help\"\n        case $before in\n"));
    for (size_t g = 0; g < n; g++) FTH_TRY(bash_choices(&groups[g], out));
    return fth_str_addf(out, "        esac\n        ;;\n");
}

/* '--name[about]:WORD:action' of zsh's _arguments. */
static fth_err zsh_option(const char *prefix, const fth_option *o, fth_str *out) {
    char name[FTH_OPTION_NAME_SIZE];
    fth_option_name(o, name);
    FTH_TRY(fth_str_addf(out, " \\\n            '%s--%s%s[", o->kind == FTH_OPTION_LIST ? "*" : "",
                         prefix, name));
    FTH_TRY(fth_add_quoted(o->help, true, out));
    FTH_TRY(fth_str_addf(out, "]"));
    if (o->kind != FTH_OPTION_BOOL) {
        FTH_TRY(fth_str_addf(out, ":"));
        FTH_TRY(fth_add_quoted(fth_option_word(o), true, out));
        FTH_TRY(fth_str_addf(out, ":"));
        if (o->rule.choices) {
            FTH_TRY(fth_str_addf(out, "("));
            FTH_TRY(add_words(o->rule.choices, out));
            FTH_TRY(fth_str_addf(out, ")"));
        } else if (o->kind == FTH_OPTION_STR) {
            FTH_TRY(fth_str_addf(out, "_files"));
        }
    }
    return fth_str_addf(out, "'");
}

static fth_err zsh_case(const fth_usage *usage, const fth_option_group *groups, size_t n,
                        fth_str *out) {
    FTH_TRY(fth_str_addf(out, "    %s)\n        _arguments", verb_of(usage)));
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const fth_option *o = &groups[g].table[i];
            FTH_TRY(zsh_option("", o, out));
            if (o->kind == FTH_OPTION_BOOL) FTH_TRY(zsh_option("no-", o, out));
        }
    return fth_str_addf(out, " \\\n            '*--config[options from a YAML file]:FILE:_files'"
                             " \\\n            '--dump-config[print the options as YAML]'"
                             " \\\n            '--help[print the options]' \\\n"
                             "            '*:file:_files'\n        ;;\n");
}

static fth_err fish_option(const char *verb, const char *prefix, const fth_option *o,
                           fth_str *out) {
    char name[FTH_OPTION_NAME_SIZE];
    fth_option_name(o, name);
    FTH_TRY(fth_str_addf(out, "complete -c fathom -n '__fish_seen_subcommand_from %s' -l %s%s -d '",
                         verb, prefix, name));
    for (const char *at = o->help; *at; at++)
        FTH_TRY(fth_str_addf(out, strchr("'\\", *at) ? "\\%c" : "%c", *at));
    FTH_TRY(fth_str_addf(out, "'"));
    if (o->rule.choices) {
        FTH_TRY(fth_str_addf(out, " -x -a '"));
        FTH_TRY(add_words(o->rule.choices, out));
        FTH_TRY(fth_str_addf(out, "'"));
    } else if (o->kind == FTH_OPTION_STR) {
        FTH_TRY(fth_str_addf(out, " -r"));
    } else if (o->kind != FTH_OPTION_BOOL) {
        FTH_TRY(fth_str_addf(out, " -x"));
    }
    return fth_str_addf(out, "\n");
}

static fth_err fish_lines(const fth_usage *usage, const fth_option_group *groups, size_t n,
                          fth_str *out) {
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const fth_option *o = &groups[g].table[i];
            FTH_TRY(fish_option(verb_of(usage), "", o, out));
            if (o->kind == FTH_OPTION_BOOL) FTH_TRY(fish_option(verb_of(usage), "no-", o, out));
        }
    return FTH_OK;
}

fth_err fth_options_page(const char *format, const fth_usage *usage, const fth_option_group *groups,
                         size_t n, fth_str *out) {
    if (strcmp(format, "man") == 0) return man_page(usage, groups, n, out);
    if (strcmp(format, "bash") == 0) return bash_case(usage, groups, n, out);
    if (strcmp(format, "zsh") == 0) return zsh_case(usage, groups, n, out);
    if (strcmp(format, "fish") == 0) return fish_lines(usage, groups, n, out);
    return fth_fail(FTH_USAGE, "--help=%.40s: must be one of man, bash, zsh, fish", format);
}
