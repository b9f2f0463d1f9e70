/* help.c: fathom help: the verbs, the options of one, manual pages, completion for shells. */
#include "cli/help.h"

#include <string.h>

#include "base/nearest.h"
#include "base/option_pages.h"
#include "cli/verb.h"

const fth_cli_verb fth_cli_verbs[] = {
#define VERB(name, about) {#name, about, fth_verb_##name},
#include "cli/verbs.def"
#undef VERB
    {NULL, NULL, NULL}};

enum { N_VERBS = sizeof fth_cli_verbs / sizeof *fth_cli_verbs - 1 };

static const char summary[] = "Trains and runs Transformers hundreds to a thousand layers deep.";

const fth_cli_verb *fth_verb_find(const char *name) {
    const fth_cli_verb *v = fth_cli_verbs;
    while (v->name && strcmp(name, v->name) != 0) v++;
    return v->name ? v : NULL;
}

fth_err fth_unknown_verb(const char *word) {
    const char *names[N_VERBS + 1];
    for (size_t i = 0; i < N_VERBS; i++) names[i] = fth_cli_verbs[i].name;
    const char *meant = fth_nearest(word, names, N_VERBS);
    if (meant) return fth_fail(FTH_USAGE, "%.100s: unknown verb; did you mean %s?", word, meant);
    return fth_fail(FTH_USAGE, "%.100s: unknown verb; \"fathom --help\" lists them", word);
}

void fth_print_help(FILE *out) {
    fprintf(out, "usage: fathom VERB [options]\n\n%s\n\nverbs:\n", summary);
    for (const fth_cli_verb *v = fth_cli_verbs; v->name; v++)
        fprintf(out, "  %-10s %s\n", v->name, v->about);
    fputs("\n\"fathom help VERB\" lists the options of a verb with their defaults; \"fathom help\n"
          "--format man|bash|zsh|fish\" prints manual pages and completion for shells.\n"
          "\"fathom version\" prints the version, with --verbose what it was built with.\n",
          out);
}

/* A verb with --help=FORMAT. */
static fth_err page_of(const fth_cli_verb *v, const char *format) {
    char option[32];
    char *words[] = {option, NULL};
    snprintf(option, sizeof option, "--help=%s", format);
    return v->run(1, words);
}

static fth_err all_pages(const char *format) {
    for (const fth_cli_verb *v = fth_cli_verbs; v->name; v++) FTH_TRY(page_of(v, format));
    return FTH_OK;
}

/* ---- what stands around the parts of the verbs ---- */

static fth_err man(void) {
    fth_str s = {0};
    fth_err err = fth_str_addf(&s, ".TH FATHOM 1 \"\" \"fathom " FATHOM_VERSION
                                   "\" \"fathom\"\n.SH NAME\nfathom \\- ");
    if (err == FTH_OK) err = fth_add_roff(summary, &s);
    if (err == FTH_OK)
        err = fth_str_addf(&s, "\n.SH SYNOPSIS\n.B fathom\n.I VERB\n[options]\n.SH VERBS\n");
    for (const fth_cli_verb *v = fth_cli_verbs; v->name && err == FTH_OK; v++) {
        err = fth_str_addf(&s, ".TP\n.BR fathom\\-%s (1)\n", v->name);
        if (err == FTH_OK) err = fth_add_roff(v->about, &s);
        if (err == FTH_OK) err = fth_str_addf(&s, "\n");
    }
    if (err == FTH_OK)
        err =
            fth_str_addf(&s, ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nfailed while running\n.TP\n2\n"
                             "wrong usage or bad input\n.TP\n3\ntraining diverged\n.TP\n"
                             "130, 143\nstopped by a signal, after saving a checkpoint\n");
    if (err == FTH_OK) fputs(s.text, stdout);
    fth_str_fini(&s);
    return err;
}

static void print_names(const char *before, const char *after) {
    for (const fth_cli_verb *v = fth_cli_verbs; v->name; v++)
        printf("%s%s%s", before, v->name, after);
}

static fth_err bash(void) {
    fputs("# Completion of fathom for bash.\n_fathom() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local options= words=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"",
          stdout);
    print_names("", " ");
    fputs("help version\"\n    else case ${COMP_WORDS[1]} in\n", stdout);
    FTH_TRY(all_pages("bash"));
    fputs("    esac fi\n"
          "    if [ -n \"$words\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    elif [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "    fi\n}\ncomplete -o default -F _fathom fathom\n",
          stdout);
    return FTH_OK;
}

static fth_err zsh(void) {
    fth_str s = {0};
    fth_err err = fth_str_addf(&s, "#compdef fathom\n# Completion of fathom for zsh.\n_fathom() {\n"
                                   "    local -a verbs=(");
    for (const fth_cli_verb *v = fth_cli_verbs; v->name && err == FTH_OK; v++) {
        err = fth_str_addf(&s, "\n        '%s:", v->name);
        if (err == FTH_OK) err = fth_add_quoted(v->about, false, &s);
        if (err == FTH_OK) err = fth_str_addf(&s, "'");
    }
    if (err == FTH_OK)
        err = fth_str_addf(&s, ")\n    if (( CURRENT == 2 )); then\n"
                               "        _describe verb verbs\n        return\n    fi\n"
                               "    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                               "    case $verb in\n");
    if (err == FTH_OK) fputs(s.text, stdout);
    fth_str_fini(&s);
    if (err == FTH_OK) err = all_pages("zsh");
    if (err == FTH_OK) fputs("    esac\n}\n_fathom \"$@\"\n", stdout);
    return err;
}

static fth_err fish(void) {
    puts("# Completion of fathom for fish.");
    for (const fth_cli_verb *v = fth_cli_verbs; v->name; v++) {
        printf("complete -c fathom -n __fish_use_subcommand -f -a %s -d '", v->name);
        for (const char *at = v->about; *at; at++) printf(*at == '\'' ? "\\%c" : "%c", *at);
        puts("'");
    }
    return all_pages("fish");
}

static fth_err page(const char *format, const char *verb) {
    static const struct part {
        const char *format;
        fth_err (*print)(void);
    } parts[] = {{"man", man}, {"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    if (verb && strcmp(format, "man") == 0) {
        const fth_cli_verb *v = fth_verb_find(verb);
        return v ? page_of(v, format) : fth_unknown_verb(verb);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !verb; i++)
        if (strcmp(format, parts[i].format) == 0) return parts[i].print();
    return fth_fail(FTH_USAGE,
                    "help --format %.40s: must be man [VERB], or one of bash, zsh, fish alone",
                    format);
}

fth_err fth_help(int argc, char **argv) {
    static char option[] = "--help";
    char *words[] = {option, NULL};
    const char *format = NULL;
    if (argc > 0 && strncmp(argv[0], "--format=", 9) == 0)
        format = argv[0] + 9;
    else if (argc > 1 && strcmp(argv[0], "--format") == 0)
        format = (++argv, argc--, argv[0]);
    if (format) return page(format, argc > 1 ? argv[1] : NULL);
    if (argc == 0) {
        fth_print_help(stdout);
        return FTH_OK;
    }
    const fth_cli_verb *v = fth_verb_find(argv[0]);
    return v ? v->run(1, words) : fth_unknown_verb(argv[0]);
}
