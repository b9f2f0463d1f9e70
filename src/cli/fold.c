/* fold.c: fathom fold MODEL --out MODEL2: the same outputs as a plain Post-LN or Pre-LN model. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/model_path.h"
#include "cli/verb.h"
#include "model/fold.h"
#include "train/weights.h"

#define FOLD_OPTIONS(X) X(STR, out, "", FTH_SHOWN_AS("FOLDER"), "model folder to write")
FTH_OPTIONS(fold_options, "fold", FOLD_OPTIONS)

static fth_err run(const char *folder, const fold_options *o) {
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out FOLDER is missing");
    fth_model from, to = {0};
    float *flat = NULL, *folded = NULL;
    FTH_TRY(fth_weights_read(folder, &from, &flat));
    fth_err err = fth_model_fold(&from, flat, &to, &folded);
    if (err == FTH_OK) err = fth_weights_write(o->out, &to, folded, folder);
    if (err == FTH_OK)
        fprintf(stderr, "%s of step %lld is now plain %s\n", from.method.method->title,
                (long long)from.config.step, to.method.method->title);
    free(flat);
    free(folded);
    fth_model_fini(&from);
    fth_model_fini(&to);
    return err;
}

fth_err fth_verb_fold(int argc, char **argv) {
    fold_options options;
    fth_option_group groups[] = {fold_options_group(&options)};
    const fth_usage usage = {
        "fathom fold", "MODEL --out FOLDER",
        "Writes a plain Post-LN or Pre-LN model that gives the same outputs, for methods "
        "that can be folded (fathom methods says which).",
        1, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) err = fth_model_paths(&parsed, 0, 0);
    if (err == FTH_OK && !done) err = run(parsed.positionals[0], &options);
    fth_parsed_fini(&parsed);
    return err;
}
