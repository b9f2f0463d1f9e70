/* import.c: fathom import FOLDER --from FORMAT --out MODEL: a model of another program. */
#include <stdio.h>

#include "cli/verb.h"
#include "exchange/exchange.h"

#define IMPORT_OPTIONS(X)                                                                          \
    X(CHOICE, from, "", FTH_CHOICES(FTH_IMPORT_NAMES), "the program that wrote it")                \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"), "model folder to write")
FTH_OPTIONS(import_options, "import", IMPORT_OPTIONS)

static void say(void *context, const char *text) {
    (void)context;
    fprintf(stderr, "fathom: %s\n", text);
}

static fth_err run(const char *folder, const import_options *o) {
    if (!o->from[0]) return fth_fail(FTH_USAGE, "--from is missing: " FTH_IMPORT_NAMES);
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out FOLDER is missing");
    return fth_import(o->from, folder, o->out, say, NULL);
}

fth_err fth_verb_import(int argc, char **argv) {
    import_options options;
    fth_option_group groups[] = {import_options_group(&options)};
    const fth_usage usage = {
        "fathom import", "FOLDER --from FORMAT --out MODEL",
        "Makes a model folder of a model that another program wrote: config.json and "
        "model.safetensors. What fathom cannot compute exactly is refused.",
        1, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) err = run(parsed.positionals[0], &options);
    fth_parsed_fini(&parsed);
    return err;
}
