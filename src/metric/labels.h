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

/* How the F-scores of classes, 2 tp / (2 tp + fp + fn), become one number: that of one class, their
 * mean over all classes of references and hypotheses, or that of all counts together. */
typedef enum fth_f1_average { FTH_F1_BINARY, FTH_F1_MACRO, FTH_F1_MICRO } fth_f1_average;

/* `positive` is the class of FTH_F1_BINARY. NaN where neither side has it. c->n_refs must be 1. */
fth_err fth_f1_corpus(const fth_text_pairs *c, fth_f1_average average, fth_text positive,
                      double *out);

/* c->n_refs must be 1. Labels are compared without white space at both ends. */
fth_err fth_labels_corpus(const fth_text_pairs *c, fth_labels *out);

#endif
