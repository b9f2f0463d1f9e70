/* labels.h: scores of classifications, one label a line. */
#ifndef FTH_METRIC_LABELS_H
#define FTH_METRIC_LABELS_H

#include <stddef.h>

#include "base/error.h"
#include "text/text.h"

typedef struct fth_labels {
    size_t n, correct;
    double accuracy; /* correct / n */
    double matthews; /* -1 .. 1, for any number of classes (Gorodkin, 2004); 0 where it is not
                        defined, that is where either side has one class only */
} fth_labels;

/* c->n_refs must be 1. Labels are compared without white space at both ends. */
fth_err fth_labels_corpus(const fth_pairs *c, fth_labels *out);

#endif
