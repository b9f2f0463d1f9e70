/* main.c: fathom VERB [options]. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/end_by_signal.h"
#include "cli/help.h"
#include "cli/verb.h"

fth_err fth_verb_options(const fth_usage *usage, fth_option_group *groups, size_t n, int argc,
                         char **argv, fth_parsed *parsed, bool *done) {
    *done = false;
    FTH_TRY(fth_options_parse(usage, groups, n, argc, argv, parsed));
    *done = parsed->output.length > 0;
    if (*done) fputs(parsed->output.text, stdout);
    return FTH_OK;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static fth_err run(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        fth_print_help(stderr);
        return fth_fail(FTH_USAGE, "a verb is missing");
    }
    if (is_one_of(word, "help", "--help", "-h")) return fth_help(argc - 2, argv + 2);
    if (is_one_of(word, "version", "--version", "-V")) return fth_version(argc - 2, argv + 2);
    const fth_cli_verb *v = fth_verb_find(word);
    if (v) return v->run(argc - 2, argv + 2);
    if (word[0] == '-') return fth_fail(FTH_USAGE, "%.100s: the verb comes first", word);
    return fth_unknown_verb(word);
}

int main(int argc, char **argv) {
    /* a file beyond the limit is an error of write, which says what failed */
    signal(SIGXFSZ, SIG_IGN);
    fth_end_by_signal();
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
