/* data.c: fathom data: what is in a data set, and whether it is sound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/option_uses.h"
#include "cli/verb.h"
#include "data/describe.h"
#include "data/folder.h"

#define DATA_OPTIONS(X)                                                                            \
    X(BOOL, json, "false", FTH_ANY, "info: print dataset.json")                                    \
    X(CHOICE, split, "train", FTH_CHOICES("train|valid|test"), "show: of which split")             \
    X(I64, first, "0", FTH_MIN(0), "show: the first sentence, counted from 0")                     \
    X(I64, count, "10", FTH_MIN(1), "show: how many")                                              \
    X(CHOICE, as, "text", FTH_CHOICES("text|pieces|ids|labels"),                                   \
      "show: how tokens are written; or the labels in their place")
FTH_OPTIONS(data_options, "data", DATA_OPTIONS)

static fth_err info(const fth_folder *f, const data_options *o) {
    fth_str text = {0};
    fth_err err = o->json ? fth_json_write(f->json, 2, &text) : fth_describe_folder(f, &text);
    if (!err) fwrite(text.text, 1, text.length, stdout);
    if (!err && text.length && text.text[text.length - 1] != '\n') fputc('\n', stdout);
    fth_str_fini(&text);
    return err;
}

static fth_err check_first(const fth_dataset *d, const data_options *o) {
    if (o->first < d->sentences) return FTH_OK;
    return fth_fail(FTH_USAGE, "--first %lld: %s has %lld sentences, counted from 0",
                    (long long)o->first, d->path, (long long)d->sentences);
}

static fth_err show_range(const fth_dataset *d, const fth_tokenizer *const t[2],
                          const data_options *o) {
    fth_err err = FTH_OK;
    fth_str line = {0};
    fth_show_as as = strcmp(o->as, "ids") == 0      ? FTH_SHOW_IDS
                     : strcmp(o->as, "pieces") == 0 ? FTH_SHOW_PIECES
                                                    : FTH_SHOW_TEXT;
    FTH_TRY_OR(err, check_first(d, o), end);
    for (int64_t i = o->first; !err && i < d->sentences && i - o->first < o->count; i++) {
        fth_str_clear(&line);
        err = fth_describe_sentence(d, i, t, as, &line);
        if (!err) fwrite(line.text, 1, line.length, stdout);
    }
end:
    fth_str_fini(&line);
    return err;
}

static fth_err show_labels(const fth_folder *f, const fth_dataset *d, const data_options *o) {
    fth_err err = check_first(d, o);
    fth_str line = {0};
    for (int64_t i = o->first; !err && i < d->sentences && i - o->first < o->count; i++) {
        fth_str_clear(&line);
        err = fth_describe_label(f, d, i, &line);
        if (!err) fwrite(line.text, 1, line.length, stdout);
    }
    fth_str_fini(&line);
    return err;
}

static fth_err show(const fth_folder *f, const data_options *o) {
    fth_err err;
    fth_dataset *d = NULL;
    fth_tokenizer *t[2] = {NULL, NULL};
    int split = 0;
    while (strcmp(fth_split_name(split), o->split) != 0) split++;
    FTH_TRY_OR(err, fth_folder_split(f, split, &d), end);
    if (strcmp(o->as, "labels") == 0) {
        err = show_labels(f, d, o);
        goto end;
    }
    for (int i = 0; i < 1 + f->separate; i++)
        FTH_TRY_OR(err, fth_folder_tokenizer(f, i, &t[i]), end);
    const fth_tokenizer *by_side[2] = {t[0], t[f->separate]};
    err = show_range(d, by_side, o);
end:
    for (int i = 0; i < 2; i++) fth_tokenizer_free(t[i]);
    fth_dataset_free(d);
    return err;
}

static fth_err run(const char *what, const char *path, const data_options *o,
                   const fth_option_group *group) {
    static const fth_option_use uses[] = {{"json", " info "},
                                          {"split", " show "},
                                          {"first", " show "},
                                          {"count", " show "},
                                          {"as", " show "}};
    static const char *const words[] = {"info", "show", "check"};
    int which = 0;
    while (which < 3 && strcmp(words[which], what) != 0) which++;
    if (which == 3) return fth_fail(FTH_USAGE, "data %s: must be info, show or check", what);
    FTH_TRY(fth_check_uses(group, 1, uses, sizeof uses / sizeof *uses, what));
    fth_folder folder;
    FTH_TRY(fth_folder_open(&folder, path));
    fth_err err = which == 0   ? info(&folder, o)
                  : which == 1 ? show(&folder, o)
                               : fth_folder_check(&folder);
    if (!err && which == 2) printf("%s: sound\n", path);
    fth_folder_fini(&folder);
    return err;
}

fth_err fth_verb_data(int argc, char **argv) {
    data_options options;
    fth_option_group groups[] = {data_options_group(&options)};
    const fth_usage usage = {"fathom data", "info|show|check DATASET",
                             "info: splits and counts; show: sentences; check: reads every byte "
                             "and compares check sums.",
                             2, 2};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done)
        err = run(parsed.positionals[0], parsed.positionals[1], &options, groups);
    fth_parsed_fini(&parsed);
    return err;
}
