/* ter.h: translation edit rate (Snover et al., 2006) of a corpus, equal to sacreBLEU 2.
 *
 *     TER = 100 * edits / reference words
 *
 * Edits are insertions, deletions and substitutions of words and shifts of runs of words; each line
 * takes the reference with the fewest, and the mean length of its references. */
#ifndef FTH_METRIC_TER_H
#define FTH_METRIC_TER_H

#include "base/error.h"
#include "base/str.h"
#include "metric/signature.h"
#include "text/text.h"
#include "metric/tok.h"

enum { FTH_TER_STATS = 2 };

/* The edits and the mean reference length of each line. They may be summed. */
fth_err fth_ter_stats(const fth_text_pairs *c, const fth_tercom_options *o,
                      double *stats /* [c->n][FTH_TER_STATS] */);

/* TER from summed counts; it may exceed 100. */
double fth_ter_from_stats(const double *sums /* [FTH_TER_STATS] */);

fth_err fth_ter_signature(const fth_sig *sig, const fth_tercom_options *o, fth_str *out);

#endif
