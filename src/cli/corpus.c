/* corpus.c: fathom corpus: phrase pairs in real languages, or pictures with label maps, made up
 * from a seed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/option_uses.h"
#include "cli/verb.h"
#include "corpus/corpus.h"
#include "corpus/shapes.h"

#define CORPUS_OPTIONS(X)                                                                          \
    X(STR, pair, "en-de", FTH_SHOWN_AS("PAIR"),                                                    \
      "source and target language: two of en, de, fr, es with a dash")                             \
    X(CHOICE, images, "", FTH_CHOICES("shapes"),                                                   \
      "pictures in place of phrases: circles, squares and triangles, and maps of where they are")  \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"),                                                        \
      "where the files go; - prints training pairs, separated by a tab, without end or until "     \
      "--sentences")                                                                               \
    X(I64, seed, "1", FTH_MIN(0), "same seed, same phrases")                                       \
    X(I64, sentences, "20000", FTH_MIN(0), "phrases for training; 1000 of pictures")               \
    X(I64, valid, "500", FTH_MIN(0), "phrases for validation, all different; 100 of pictures")     \
    X(I64, test, "500", FTH_MIN(0), "phrases for the test, all different; 100 of pictures")        \
    X(CHOICE, level, "full", FTH_CHOICES("simple|full"),                                           \
      "simple: numbers, times, dates, prices and a handful of sentences")                          \
    X(BOOL, force, "false", FTH_ANY, "replace files that are there already")
FTH_OPTIONS(corpus_options, "corpus", CORPUS_OPTIONS)

/* limit < 0: until nobody reads any more. */
static fth_err print_pairs(fth_corpus *c, int64_t limit) {
    for (int64_t n = 0; n != limit; n++) {
        const char *source, *target;
        FTH_TRY(fth_corpus_next_even(c, FTH_CORPUS_TRAIN, &source, &target));
        if (printf("%s\t%s\n", source, target) < 0)
            return fth_fail(FTH_IO, "standard output: cannot write: %s", strerror(errno));
    }
    return FTH_OK;
}

static fth_err write_pictures(const corpus_options *o, const fth_option_group *group) {
    static const char *const of_phrases[] = {"pair", "level", NULL};
    static const char *const fields[FTH_CORPUS_SPLITS] = {"sentences", "valid", "test"};
    const int64_t asked[FTH_CORPUS_SPLITS] = {o->sentences, o->valid, o->test};
    int64_t count[FTH_CORPUS_SPLITS] = {1000, 100, 100};
    fth_log log;
    FTH_TRY(fth_refuse_options(group, 1, of_phrases, "is for phrases; there are pictures"));
    for (int s = 0; s < FTH_CORPUS_SPLITS; s++)
        if (fth_option_was_set(group, 1, fields[s])) count[s] = asked[s];
    if (strcmp(o->out, "-") == 0) return fth_fail(FTH_USAGE, "--out -: pictures need a folder");
    fth_log_init(&log, stderr, false);
    return fth_shapes_write((uint64_t)o->seed, o->out, count, o->force, &log);
}

static fth_err run(const corpus_options *o, const fth_option_group *group) {
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out FOLDER is missing");
    if (o->images[0]) return write_pictures(o, group);
    const bool has_sentences = fth_option_was_set(group, 1, "sentences");
    fth_corpus *c = NULL;
    FTH_TRY(fth_corpus_new(&c, o->pair, (uint64_t)o->seed, o->level));
    fth_err err;
    if (strcmp(o->out, "-") == 0) {
        err = print_pairs(c, has_sentences ? o->sentences : -1);
    } else {
        const int64_t count[FTH_CORPUS_SPLITS] = {o->sentences, o->valid, o->test};
        fth_log log;
        fth_log_init(&log, stderr, false);
        err = fth_corpus_write(c, o->out, count, o->force, &log);
    }
    fth_corpus_free(c);
    return err;
}

fth_err fth_verb_corpus(int argc, char **argv) {
    corpus_options options;
    fth_option_group groups[] = {corpus_options_group(&options)};
    const fth_usage usage = {
        "fathom corpus", "--pair en-de|--images shapes --out FOLDER",
        "Makes up phrase pairs in English, German, French and Spanish: numbers, dates, times, "
        "prices, measures and short sentences around them. Writes train, valid and test files, a "
        "phrase a line, that never share a phrase. Or pictures with maps of their classes, for "
        "fathom prepare --label-maps.",
        0, 0};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (!err && !done) err = run(&options, groups);
    fth_parsed_fini(&parsed);
    return err;
}
