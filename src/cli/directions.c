/* directions.c: fathom directions MODEL DATASET: translates and scores every direction. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/device_options.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "data/folder.h"
#include "figure/direction_figure.h"
#include "metric/tok.h"
#include "run/direction_table.h"
#include "train/fits.h"
#include "train/weights.h"

#define DIRECTIONS_OPTIONS(X)                                                                      \
    X(CHOICE, split, "test", FTH_CHOICES("valid|test"), "part of the data set")                    \
    X(I64, sentences, "0", FTH_MIN(0), "of each direction only the first so many; 0: all")         \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"),                                                        \
      "also write the translations, the table in every format, and maps of BLEU, chrF and spBLEU") \
    X(CHOICE, format, "text", FTH_CHOICES("text|csv|markdown|latex|json"), "of the table printed") \
    X(STR, centre, "en", FTH_SHOWN_AS("CODE"),                                                     \
      "the language of the means en-X and X-en, over the directions out of it and into it")        \
    X(STR, spm_model, "", FTH_SHOWN_AS("FILE"),                                                    \
      "the pieces that spBLEU counts; default: those of the data set")                             \
    X(I64, beam, "5", FTH_RANGE(1, 256), "hypotheses kept; 1: greedy")                             \
    X(F64, lenpen, "1", FTH_ANY, "the score is divided by length^lenpen")                          \
    X(F64, max_len_a, "2", FTH_MIN(0), "a translation has at most a * source tokens + b tokens")   \
    X(I64, max_len_b, "10", FTH_MIN(0), "the b of it")                                             \
    X(I64, batch, "64", FTH_RANGE(1, 65536), "sentences at once")                                  \
    X(I64, max_tokens, "8192", FTH_RANGE(1, 16777216), "source tokens at once")                    \
    X(BOOL, quiet, "false", FTH_ANY, "no progress")
FTH_OPTIONS(directions_options, "directions", DIRECTIONS_OPTIONS)

typedef struct work {
    const directions_options *o;
    fth_model model;
    float *flat;
    fth_device *device;
    fth_arenas arenas;
    fth_folder folder;
    fth_dataset *data;
    fth_tokenizer *tokenizer, *pieces; /* pieces NULL: the tokenizer's */
    fth_generator *generator;
    fth_direction_scores scores;
    fth_log log;
} work;

static fth_err open_model(work *w, const char *model, const fth_device_options *d) {
    FTH_TRY(fth_weights_read(model, &w->model, &w->flat));
    if (w->model.config.arch != FTH_ENCDEC)
        return fth_fail(FTH_BAD_INPUT, "%s: its arch is %s; encdec models translate", model,
                        fth_arch_name(w->model.config.arch));
    FTH_TRY(fth_fits(&w->model.config, model, &w->folder, w->data));
    FTH_TRY(fth_device_open(d->device, d->precision, (int)d->threads, &w->device));
    FTH_TRY(fth_arenas_new(w->device, w->model.params.size, 0, 0, &w->arenas));
    return fth_arenas_load(w->device, &w->arenas, w->flat);
}

static fth_err open_generator(work *w, const char *model) {
    const directions_options *o = w->o;
    const fth_generator_spec spec = {.search = {.beam = (int32_t)o->beam,
                                                .lenpen = o->lenpen,
                                                .max_len_a = o->max_len_a,
                                                .max_len_b = o->max_len_b,
                                                .temperature = 1},
                                     .batch = (int32_t)o->batch,
                                     .max_tokens = (int32_t)o->max_tokens,
                                     .input = w->folder.path,
                                     .src = w->tokenizer,
                                     .tgt = w->tokenizer};
    const fth_generator_model one = {model, &w->model, &w->arenas};
    return fth_generator_new(&one, 1, w->device, &spec, &w->generator);
}

static fth_err open_all(work *w, const fth_parsed *parsed, const fth_device_options *d) {
    const char *model = parsed->positionals[0];
    uint64_t unused;
    FTH_TRY(fth_folder_open(&w->folder, parsed->positionals[1]));
    FTH_TRY(fth_folder_split(&w->folder, strcmp(w->o->split, "test") == 0 ? FTH_TEST : FTH_VALID,
                             &w->data));
    if (!w->folder.languages.n)
        return fth_fail(FTH_USAGE,
                        "%s: has one pair of languages; fathom prepare --pairs makes data of many",
                        w->folder.path);
    if (w->o->spm_model[0]) FTH_TRY(fth_tok_spm_load(w->o->spm_model, &w->pieces, &unused));
    FTH_TRY(fth_folder_tokenizer(&w->folder, FTH_SOURCE, &w->tokenizer));
    FTH_TRY(open_model(w, model, d));
    return open_generator(w, model);
}

/* ---- output ---- */

static fth_err write_tables(const work *w) {
    static const struct {
        const char *name;
        fth_table_format format;
    } files[] = {{"scores.txt", FTH_TABLE_TEXT},
                 {"scores.csv", FTH_TABLE_CSV},
                 {"scores.md", FTH_TABLE_MARKDOWN},
                 {"scores.tex", FTH_TABLE_LATEX},
                 {"scores.json", FTH_TABLE_JSON}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fth_str text = {0};
        char *path = fth_strdup_printf("%s/%s", w->o->out, files[i].name);
        fth_err err = path ? fth_direction_table(&w->scores, &w->folder.languages, w->o->centre,
                                                 files[i].format, &text)
                           : fth_fail(FTH_NO_MEMORY, "no memory for a name");
        if (err == FTH_OK) err = fth_file_write(path, text.text, text.length);
        fth_str_fini(&text);
        free(path);
        FTH_TRY(err);
    }
    return FTH_OK;
}

static double score_of(const fth_direction_score *s, int which) {
    return which == 0 ? s->bleu : which == 1 ? s->chrf : s->spbleu;
}

static fth_err draw_map(const work *w, const char *model, int which, double *score) {
    static const char *const names[][2] = {
        {"BLEU", "bleu"}, {"chrF", "chrf"}, {"spBLEU", "spbleu"}};
    const fth_languages *l = &w->folder.languages;
    for (int32_t i = 0; i < l->n_codes * l->n_codes; i++) score[i] = NAN;
    for (int32_t k = 0; k < l->n; k++)
        if (w->scores.of[k].sentences)
            score[l->of[k].source * l->n_codes + l->of[k].target] =
                score_of(&w->scores.of[k], which);
    char *title = fth_strdup_printf("%s of %s", names[which][0], model),
         *path = fth_strdup_printf("%s/%s.svg", w->o->out, names[which][1]);
    const fth_direction_map map = {title, l->codes, score, l->n_codes};
    const fth_err err = title && path ? fth_direction_figure(&map, path)
                                      : fth_fail(FTH_NO_MEMORY, "no memory for a map");
    free(title);
    free(path);
    return err;
}

/* Without gnuplot there are no maps, and that is no failure. */
static fth_err draw_maps(work *w, const char *model) {
    const size_t n = (size_t)w->folder.languages.n_codes;
    double *score = malloc(sizeof *score * n * n);
    fth_err err = score ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a map");
    for (int which = 0; which < 3 && err == FTH_OK; which++) err = draw_map(w, model, which, score);
    free(score);
    if (err != FTH_NOT_FOUND) return err;
    fth_log_warn(&w->log, "%s", fth_error_message());
    return FTH_OK;
}

static fth_err show(work *w, const char *model) {
    static const char *const formats[] = {"text", "csv", "markdown", "latex", "json"};
    int format = 0;
    fth_str text = {0};
    while (strcmp(formats[format], w->o->format) != 0) format++;
    fth_err err = fth_direction_table(&w->scores, &w->folder.languages, w->o->centre,
                                      (fth_table_format)format, &text);
    if (err == FTH_OK) fwrite(text.text, 1, text.length, stdout);
    fth_str_fini(&text);
    if (err != FTH_OK || !w->o->out[0]) return err;
    FTH_TRY(fth_make_dirs(w->o->out));
    FTH_TRY(fth_direction_scores_write(&w->scores, &w->folder.languages, w->o->out));
    FTH_TRY(write_tables(w));
    return draw_maps(w, model);
}

static fth_err run(work *w, const fth_parsed *parsed, const fth_device_options *d) {
    fth_log_init(&w->log, stderr, w->o->quiet);
    FTH_TRY(open_all(w, parsed, d));
    const fth_direction_job job = {.data = &w->folder,
                                   .split = strcmp(w->o->split, "test") == 0 ? FTH_TEST : FTH_VALID,
                                   .sentences = w->o->sentences,
                                   .pieces = w->pieces ? w->pieces : w->tokenizer,
                                   .tokenizer = w->tokenizer,
                                   .log = &w->log};
    FTH_TRY(fth_direction_scores_run(&job, w->generator, &w->scores));
    return show(w, parsed->positionals[0]);
}

static void work_fini(work *w) {
    fth_direction_scores_fini(&w->scores);
    fth_generator_free(w->generator);
    if (w->device) fth_arenas_free(w->device, &w->arenas);
    fth_device_close(w->device);
    fth_tokenizer_free(w->tokenizer);
    fth_tokenizer_free(w->pieces);
    fth_dataset_free(w->data);
    fth_folder_fini(&w->folder);
    free(w->flat);
    fth_model_fini(&w->model);
}

fth_err fth_verb_directions(int argc, char **argv) {
    directions_options options;
    fth_device_options device;
    fth_option_group groups[] = {directions_options_group(&options),
                                 fth_device_options_group(&device)};
    const fth_usage usage = {
        "fathom directions", "MODEL DATASET",
        "Translates the test sentences of every direction of a data set of many languages, and "
        "prints a table of BLEU, chrF and spBLEU with the means over directions.",
        2, 2};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 2, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        work w = {.o = &options};
        err = fth_model_paths(&parsed, 0, 0);
        if (err == FTH_OK) err = run(&w, &parsed, &device);
        work_fini(&w);
    }
    fth_parsed_fini(&parsed);
    return err;
}
