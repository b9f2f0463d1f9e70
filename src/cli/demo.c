/* demo.c: fathom demo: from nothing to translations, with the verbs that a user would type. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/rate.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/unfinished.h"
#include "base/str.h"
#include "figure/training.h"
#include "cli/verb.h"
#include "method/method.h"

#define DEMO_OPTIONS(X)                                                                            \
    X(STR, out, "demo", FTH_SHOWN_AS("FOLDER"), "where everything is written")                     \
    X(STR, pair, "en-de", FTH_SHOWN_AS("SRC-TGT"), "languages: en, de, fr, es")                    \
    X(I64, layers, "50", FTH_RANGE(1, 1000), "of the encoder, and of the decoder")                 \
    X(I64, updates, "640", FTH_MIN(50), "of training")                                             \
    X(BOOL, compare, "false", FTH_ANY, "train the plain method too and draw both")                 \
    X(CHOICE, precision, "auto", FTH_CHOICES("auto|fp32|bf16"),                                    \
      "of the training; auto: bf16 where the CPU has a unit for it")                               \
    X(I64, threads, "", FTH_MIN(1), "CPU threads; default: one for each core")
FTH_OPTIONS(demo_options, "demo", DEMO_OPTIONS)

typedef struct demo {
    const demo_options *o;
    char src[3], tgt[3];
    fth_arena arena;   /* of the words of commands */
    fth_new_dirs made; /* for --out */
} demo;

/* A piece of text that lives as long as the demo. */
static char *text(demo *d, const char *format, ...) {
    va_list args;
    char line[512];
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return fth_arena_strdup(&d->arena, line);
}

static void say(const char *line) {
    fprintf(stderr, "\n== %s\n", line);
}

/* Runs a verb on words; the list ends with NULL. */
static fth_err call(fth_err (*verb)(int, char **), char *const *words) {
    int n = 0;
    while (words[n]) n++;
    return verb(n, (char **)words);
}

static fth_err make_data(demo *d) {
    const char *out = d->o->out;
    char *folder = text(d, "%s/text", out), *data = text(d, "%s/data", out);
    if (!fth_file_exists(folder)) {
        say("the corpus: made up from one seed");
        char *words[] = {"--pair",      text(d, "%s", d->o->pair),
                         "--out",       folder,
                         "--sentences", "40000",
                         "--valid",     "500",
                         "--test",      "500",
                         NULL};
        FTH_TRY(call(fth_verb_corpus, words));
    }
    if (fth_file_exists(data)) return FTH_OK;
    say("the data set: subwords and packed token ids");
    char *words[] = {"--train-src",
                     text(d, "%s/train.%s", folder, d->src),
                     "--train-tgt",
                     text(d, "%s/train.%s", folder, d->tgt),
                     "--valid-src",
                     text(d, "%s/valid.%s", folder, d->src),
                     "--valid-tgt",
                     text(d, "%s/valid.%s", folder, d->tgt),
                     "--vocab-size",
                     "800",
                     "--out",
                     data,
                     NULL};
    return call(fth_verb_prepare, words);
}

/* Options that only the method of the demo takes: a ramp as long as the warm-up, and the branches'
 * rate slowed with it, which a long ramp needs (doc/mathematics.md#branchnorm). */
static int add_schedule(demo *d, const fth_method *m, char **words, int64_t warmup) {
    if (!m->step) return 0;
    words[0] = words[2] = "--method-option";
    words[1] = text(d, "steps=%lld", (long long)warmup);
    words[3] = "branch_lr=alpha";
    return 4;
}

static const char *precision_of(const demo *d) {
    if (strcmp(d->o->precision, "auto") != 0) return d->o->precision;
    return fth_bf16_is_fastest() ? "bf16" : "fp32";
}

/* Small batches: at this depth what counts is the number of updates. 640 of 1,024 tokens learn to
 * translate; 300 of 2,048, which take as long, learn the target language alone. */
static fth_err train(demo *d, const fth_method *m) {
    int64_t updates = d->o->updates, warmup = updates / 4;
    char *layers = text(d, "%lld", (long long)d->o->layers);
    char *words[64] = {text(d, "%s/data", d->o->out),
                       "--save-dir",
                       text(d, "%s/%s", d->o->out, m->id),
                       "--method",
                       text(d, "%s", m->id),
                       "--encoder-layers",
                       layers,
                       "--decoder-layers",
                       layers,
                       "--d-model",
                       "64",
                       "--ffn-dim",
                       "128",
                       "--heads",
                       "4",
                       "--dropout",
                       "0",
                       "--label-smoothing",
                       "0.1",
                       "--max-tokens",
                       "1024",
                       "--max-positions",
                       "64",
                       "--lr",
                       "0.003",
                       "--lr-scheduler",
                       "cosine",
                       "--warmup-updates",
                       text(d, "%lld", (long long)warmup),
                       "--max-update",
                       text(d, "%lld", (long long)updates),
                       "--clip-norm",
                       "1",
                       "--log-interval",
                       "5",
                       "--telemetry",
                       text(d, "%lld", (long long)(updates / 10)),
                       "--validate-interval-updates",
                       text(d, "%lld", (long long)(updates / 5)),
                       "--save-interval-updates",
                       text(d, "%lld", (long long)(updates / 5)),
                       "--keep-last",
                       "1",
                       "--device",
                       "cpu",
                       "--precision",
                       text(d, "%s", precision_of(d))};
    int n = 0;
    while (words[n]) n++;
    n += add_schedule(d, m, words + n, warmup);
    if (d->o->threads > 0) {
        words[n++] = "--threads";
        words[n++] = text(d, "%lld", (long long)d->o->threads);
    }
    return call(fth_verb_train, words);
}

/* Prints how many lines of two files are the same, and some of them with their source. */
static fth_err compare_lines(const char *source, const char *wanted, const char *got) {
    char *a = NULL, *b = NULL, *s = NULL;
    size_t size;
    fth_err err = fth_file_read(wanted, &a, &size);
    if (err == FTH_OK) err = fth_file_read(got, &b, &size);
    if (err == FTH_OK) err = fth_file_read(source, &s, &size);
    int n = 0, same = 0;
    for (char *x = a, *y = b, *z = s; err == FTH_OK && *x && *y && *z; n++) {
        size_t lx = strcspn(x, "\n"), ly = strcspn(y, "\n"), lz = strcspn(z, "\n");
        bool equal = lx == ly && memcmp(x, y, lx) == 0;
        same += equal;
        if (n % 50 == 7) printf("  %.*s\n    %s %.*s\n", (int)lz, z, equal ? "=" : "~", (int)ly, y);
        x += lx + (x[lx] == '\n');
        y += ly + (y[ly] == '\n');
        z += lz + (z[lz] == '\n');
    }
    if (err == FTH_OK) printf("exact match: %.1f %% of %d held-out phrases\n", 100.0 * same / n, n);
    free(a);
    free(b);
    free(s);
    return err;
}

static fth_err translate(demo *d, const fth_method *m) {
    const char *out = d->o->out;
    char *source = text(d, "%s/text/test.%s", out, d->src);
    char *wanted = text(d, "%s/text/test.%s", out, d->tgt);
    char *got = text(d, "%s/%s/test.%s", out, m->id, d->tgt);
    char *generate[] = {text(d, "%s/%s/checkpoints/last", out, m->id),
                        "--input",
                        source,
                        "--output",
                        got,
                        "--beam",
                        "1",
                        "--max-len-b",
                        "60",
                        "--device",
                        "cpu",
                        NULL};
    say("held-out phrases and what the model makes of them (= right, ~ not)");
    FTH_TRY(call(fth_verb_generate, generate));
    FTH_TRY(compare_lines(source, wanted, got));
    char *score[] = {"bleu", "--ref", wanted, "--hyp", got, NULL};
    return call(fth_verb_score, score);
}

/* A method that fails is a result: the demo goes on. */
static fth_err train_and_translate(demo *d, const fth_method *m) {
    char line[160];
    snprintf(line, sizeof line, "%s: %lld encoder and %lld decoder layers", m->title,
             (long long)d->o->layers, (long long)d->o->layers);
    say(line);
    fth_err err = train(d, m);
    if (err == FTH_DIVERGED) {
        fprintf(stderr, "%s\n", fth_error_message());
        return FTH_OK;
    }
    return err == FTH_OK ? translate(d, m) : err;
}

static fth_err run(demo *d) {
    const double begin = fth_now();
    const char *pair = d->o->pair;
    if (strlen(pair) != 5 || pair[2] != '-')
        return fth_fail(FTH_USAGE, "--pair %.40s: must be two languages, as en-de", pair);
    memcpy(d->src, pair, 2);
    memcpy(d->tgt, pair + 3, 2);
    FTH_TRY(fth_new_dirs_make(&d->made, d->o->out));
    FTH_TRY(make_data(d));
    const fth_method *deep = fth_method_find(FTH_DEFAULT_METHOD),
                     *plain = fth_method_plain(FTH_NORM_POST);
    FTH_TRY(train_and_translate(d, deep));
    if (d->o->compare) FTH_TRY(train_and_translate(d, plain));
    const char *runs[] = {text(d, "%s/%s", d->o->out, deep->id),
                          text(d, "%s/%s", d->o->out, plain->id)};
    char *figure = text(d, "%s/demo", d->o->out);
    FTH_TRY(fth_plot_runs(figure, runs, d->o->compare ? 2 : 1));
    printf("pictures: %s.png and %s.svg; %ld s in all\n", figure, figure,
           (long)(fth_now() - begin));
    return FTH_OK;
}

fth_err fth_verb_demo(int argc, char **argv) {
    demo_options options;
    fth_option_group groups[] = {demo_options_group(&options)};
    const fth_usage usage = {
        "fathom demo", "",
        "Makes a corpus, trains a deep model on it, translates phrases that it "
        "has not seen, scores them and draws what happened. A demo that was "
        "stopped goes on where it was.",
        0, 0};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        demo d = {.o = &options};
        err = run(&d);
        fth_new_dirs_fini(&d.made);
        fth_arena_fini(&d.arena);
    }
    fth_parsed_fini(&parsed);
    return err;
}
