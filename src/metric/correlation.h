/* correlation.h: how well one column of numbers follows another, one number a line. */
#ifndef FTH_METRIC_CORRELATION_H
#define FTH_METRIC_CORRELATION_H

#include "base/error.h"
#include "text/text.h"

/* Pearson's r, or Spearman's: the same of the ranks, equal numbers sharing their mean rank. NaN
 * where it is not defined: fewer than two lines, a column of equal numbers. c->n_refs must be 1;
 * names[0] is the file of references, names[1] that of hypotheses, for messages. */
typedef enum fth_correlation { FTH_PEARSON, FTH_SPEARMAN } fth_correlation;
fth_err fth_correlation_corpus(const fth_text_pairs *c, fth_correlation kind,
                               const char *const names[2], double *out);

#endif
