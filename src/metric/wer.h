/* wer.h: word and character error rates, equal to jiwer 4.
 *
 *     rate = (substitutions + deletions + insertions) / (hits + substitutions + deletions)
 *
 * over all lines. Words are what spaces separate; a run of two or more white space characters
 * counts as a space, a single other one (a tab) does not. Characters are code points, spaces
 * included, of the line without white space at both ends.
 *
 * Normalised, lines are compared as they are spoken: in lower case, and with spaces for punctuation
 * and symbols (categories P and S of Unicode); an apostrophe between two other characters stays. */
#ifndef FTH_METRIC_WER_H
#define FTH_METRIC_WER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "metric/align.h"
#include "metric/signature.h"
#include "text/text.h"

typedef struct fth_wer_options {
    bool characters; /* the character error rate */
    bool lowercase;
    bool normalize;
} fth_wer_options;

typedef struct fth_wer {
    double score; /* a ratio; with empty references only: the number of insertions */
    fth_edits edits;
} fth_wer;

/* c->n_refs must be 1. */
fth_err fth_wer_corpus(const fth_text_pairs *c, const fth_wer_options *o, fth_wer *out);

fth_err fth_wer_signature(const fth_sig *sig, const fth_wer_options *o, fth_str *out);

#endif
