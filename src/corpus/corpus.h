/* corpus.h: phrase pairs in real languages, made up endlessly, without any download.
 *
 * A meaning (a number, a date, a clock time, a price, a measure, a short sentence around them) is
 * drawn from a seed and said by each language in one way only, so that the target of a pair is a
 * function of its source in every direction. A phrase belongs to train, valid or test by a hash of
 * its text, whatever the seed and the pair: the splits never share a phrase, however many are
 * drawn. Same seed, same bytes, on every machine. doc/corpus.md shows what comes out. */
#ifndef FTH_CORPUS_CORPUS_H
#define FTH_CORPUS_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"

typedef enum fth_corpus_split {
    FTH_CORPUS_TRAIN, /* nine phrases of ten */
    FTH_CORPUS_VALID, /* one of twenty */
    FTH_CORPUS_TEST,  /* one of twenty */
    FTH_CORPUS_SPLITS
} fth_corpus_split;

typedef struct fth_corpus fth_corpus;

/* pair: two different ones of en, de, fr, es with a dash, source first: "en-de".
 * level: "simple" (numbers, times, dates, prices, a handful of sentences) or "full". */
fth_err fth_corpus_new(fth_corpus **out, const char *pair, uint64_t seed, const char *level);
void fth_corpus_free(fth_corpus *c);

/* "en" and "de" for "en-de": side 0 is the source, side 1 the target. */
const char *fth_corpus_code_of(const fth_corpus *c, int side);

/* The next phrase of a split, UTF-8 without a line end; it may have come before. What one split
 * gives does not depend on what is asked of the others. The texts are views, valid until the next
 * call. */
fth_err fth_corpus_next(fth_corpus *c, fth_corpus_split split, const char **source,
                        const char **target);

/* How many different phrases the next two functions give of a split. */
size_t fth_corpus_room(const fth_corpus *c, fth_corpus_split split);

/* The same, but never a phrase that has already come (16 to 32 bytes of memory for each).
 * FTH_BAD_INPUT when the room of the split is used up. */
fth_err fth_corpus_next_new(fth_corpus *c, fth_corpus_split split, const char **source,
                            const char **target);

/* A new phrase as long as there is room; then a new pass begins, again without repetition. */
fth_err fth_corpus_next_even(fth_corpus *c, fth_corpus_split split, const char **source,
                             const char **target);

/* Writes count[split] phrases to FOLDER/train.<source>, train.<target>, valid.*, test.*, a phrase a
 * line: all six files or none. Valid and test have no phrase twice, train only when there are fewer
 * different ones than asked for. Existing files are an error unless force is set. log, if not NULL,
 * is told of the progress. */
fth_err fth_corpus_write(fth_corpus *c, const char *folder, const int64_t count[FTH_CORPUS_SPLITS],
                         bool force, fth_log *log);

#endif
