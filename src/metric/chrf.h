/* chrf.h: chrF (Popovic, 2015) and chrF++ of a corpus, equal to sacreBLEU 2.
 *
 *     chrF = 100 (1 + beta^2) P R / (beta^2 P + R)
 *
 * P and R are the means over n of the precision and the recall of character n-grams (n = 1 to
 * char_order; white space left out) and word n-grams (1 to word_order; 2 makes chrF++). Of several
 * references each line takes the one that gives it the highest score. */
#ifndef FTH_METRIC_CHRF_H
#define FTH_METRIC_CHRF_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "metric/ngram.h"
#include "metric/signature.h"
#include "text/text.h"

typedef struct fth_chrf_options {
    int char_order; /* 1 .. FTH_MAX_ORDER, usually 6 */
    int word_order; /* 0 .. FTH_MAX_ORDER */
    int beta;       /* usually 2 */
    bool lowercase;
    bool whitespace;    /* count white space among the characters */
    bool eps_smoothing; /* the mean of the F-scores of all orders, as in chrF++.py */
} fth_chrf_options;

static inline size_t fth_chrf_width(const fth_chrf_options *o) {
    return 3 * (size_t)(o->char_order + o->word_order);
}

/* The counts of each line: for each order the n-grams of the hypothesis, of the reference, and the
 * common ones. They may be summed. */
fth_err fth_chrf_stats(const fth_text_pairs *c, const fth_chrf_options *o,
                       double *stats /* [c->n][fth_chrf_width(o)] */);

/* chrF, 0 .. 100, from summed counts. */
double fth_chrf_from_stats(const double *sums, const fth_chrf_options *o);

fth_err fth_chrf_signature(const fth_sig *sig, const fth_chrf_options *o, fth_str *out);

#endif
