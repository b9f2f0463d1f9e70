/* rouge.h: ROUGE-1, -2, -L and -Lsum (Lin, 2004), equal to rouge-score 0.1.2.
 *
 * A text is lower-cased, and its tokens are the runs of a-z and 0-9. The score of a corpus is the
 * mean over its pairs; of several references each pair takes the one with the highest F-measure. */
#ifndef FTH_METRIC_ROUGE_H
#define FTH_METRIC_ROUGE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "metric/signature.h"
#include "text/text.h"

typedef enum fth_rouge_kind {
    FTH_ROUGE_1,
    FTH_ROUGE_2,
    FTH_ROUGE_L,
    FTH_ROUGE_LSUM,
    FTH_ROUGES
} fth_rouge_kind;

typedef struct fth_rouge_options {
    bool stem;           /* tokens of more than three characters are cut down to their stems */
    const char *newline; /* stands for the end of a sentence inside a line; NULL or "": only LF
                            does, which matters for ROUGE-Lsum */
} fth_rouge_options;

typedef struct fth_rouge {
    double precision, recall, fmeasure; /* 0 .. 1 */
} fth_rouge;

/* rouge1, rouge2, rougeL, rougeLsum. */
const char *fth_rouge_name(fth_rouge_kind kind);

fth_err fth_rouge_corpus(const fth_text_pairs *c, const fth_rouge_options *o,
                         fth_rouge out[FTH_ROUGES]);

fth_err fth_rouge_signature(const fth_sig *sig, const fth_rouge_options *o, fth_str *out);

#endif
