/* main.c: fathom VERB [options]. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/guard.h"
#include "cli/verb.h"

static const struct verb {
    const char *name, *about;
    fth_err (*run)(int argc, char **argv);
} verbs[] = {
#define VERB(name, about) {#name, about, fth_verb_##name},
#include "cli/verbs.def"
#undef VERB
    {NULL, NULL, NULL}};

enum { N_VERBS = sizeof verbs / sizeof *verbs - 1 };

fth_err fth_verb_options(const fth_usage *usage, fth_option_group *groups, size_t n, int argc,
                         char **argv, fth_parsed *parsed, bool *done) {
    *done = false;
    FTH_TRY(fth_options_parse(usage, groups, n, argc, argv, parsed));
    *done = parsed->output.length > 0;
    if (*done) fputs(parsed->output.text, stdout);
    return FTH_OK;
}

static void print_help(FILE *out) {
    fputs("usage: fathom VERB [options]\n\n"
          "Trains and runs Transformers hundreds to a thousand layers deep.\n\nverbs:\n",
          out);
    for (const struct verb *v = verbs; v->name; v++)
        fprintf(out, "  %-10s %s\n", v->name, v->about);
    fputs("\n\"fathom help VERB\" lists the options of a verb with their defaults.\n"
          "\"fathom version\" prints the version.\n",
          out);
}

static fth_err unknown_verb(const char *word) {
    const char *names[N_VERBS + 1];
    for (size_t i = 0; i < N_VERBS; i++) names[i] = verbs[i].name;
    const char *meant = fth_nearest(word, names, N_VERBS);
    if (meant) return fth_fail(FTH_USAGE, "%.100s: unknown verb; did you mean %s?", word, meant);
    return fth_fail(FTH_USAGE, "%.100s: unknown verb; \"fathom --help\" lists them", word);
}

static const struct verb *find(const char *word) {
    const struct verb *v = verbs;
    while (v->name && strcmp(word, v->name) != 0) v++;
    return v->name ? v : NULL;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* "fathom help train" is "fathom train --help". */
static fth_err help(int argc, char **argv) {
    static char option[] = "--help";
    char *words[] = {option, NULL};
    if (argc == 0) {
        print_help(stdout);
        return FTH_OK;
    }
    const struct verb *v = find(argv[0]);
    return v ? v->run(1, words) : unknown_verb(argv[0]);
}

static fth_err run(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        print_help(stderr);
        return fth_fail(FTH_USAGE, "a verb is missing");
    }
    if (is_one_of(word, "help", "--help", "-h")) return help(argc - 2, argv + 2);
    if (is_one_of(word, "version", "--version", "-V")) {
        puts("fathom " FATHOM_VERSION);
        return FTH_OK;
    }
    const struct verb *v = find(word);
    if (v) return v->run(argc - 2, argv + 2);
    if (word[0] == '-') return fth_fail(FTH_USAGE, "%.100s: the verb comes first", word);
    return unknown_verb(word);
}

int main(int argc, char **argv) {
    /* a file beyond the limit is an error of write, which says what failed */
    signal(SIGXFSZ, SIG_IGN);
    fth_guard();
    fth_err err = run(argc, argv);
    /* a full disk may show itself only now; results that are not there must not look like
     * success */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        int reason = errno;
        if (!err) err = fth_fail(FTH_IO, "standard output: cannot write: %s", strerror(reason));
    }
    if (err && *fth_error_message()) fprintf(stderr, "fathom: %s\n", fth_error_message());
    return fth_exit_status(err);
}
