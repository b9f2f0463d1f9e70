/* export.c: fathom export MODEL --to FORMAT --out FOLDER: a model for another program. */
#include <stdio.h>
#include <string.h>

#include "cli/model_path.h"
#include "cli/verb.h"
#include "exchange/exchange.h"

#define EXPORT_OPTIONS(X)                                                                          \
    X(CHOICE, to, "", FTH_CHOICES(FTH_EXPORT_NAMES), "the program that is to read it")             \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"), "folder to write")                                     \
    X(CHOICE, storage, "fp32", FTH_CHOICES("fp32|bf16|int8"),                                      \
      "of the weights; int8 for ctranslate2 alone")                                                \
    X(BOOL, check, "true", FTH_ANY,                                                                \
      "read back what was written, run it on 8 made-up sentences and compare")
FTH_OPTIONS(export_options, "export", EXPORT_OPTIONS)

static fth_err run(const char *folder, const export_options *o) {
    if (!o->to[0]) return fth_fail(FTH_USAGE, "--to is missing: " FTH_EXPORT_NAMES);
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out FOLDER is missing");
    const fth_storage_kind storage = strcmp(o->storage, "bf16") == 0   ? FTH_STORE_BF16
                                     : strcmp(o->storage, "int8") == 0 ? FTH_STORE_INT8
                                                                       : FTH_STORE_F32;
    const fth_export_spec spec = {folder, o->to, o->out, storage, o->check};
    fth_check_result check;
    FTH_TRY(fth_export(&spec, &check));
    if (check.made)
        fprintf(stderr, "read back and run: logits differ by %.3g at most, the largest is %.3g\n",
                check.difference, check.largest);
    return FTH_OK;
}

fth_err fth_verb_export(int argc, char **argv) {
    export_options options;
    fth_option_group groups[] = {export_options_group(&options)};
    const fth_usage usage = {
        "fathom export", "MODEL --to FORMAT --out FOLDER",
        "Writes a model for another program, with its tokenizer, settings of generation and a "
        "README. Methods that fold are written as plain Post-LN or Pre-LN.",
        1, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) err = fth_model_paths(&parsed, 0, 0);
    if (err == FTH_OK && !done) err = run(parsed.positionals[0], &options);
    fth_parsed_fini(&parsed);
    return err;
}
