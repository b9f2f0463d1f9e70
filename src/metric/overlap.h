/* overlap.h: intersection over union of the classes of pictures: a line is a picture, its words are
 * the numbers of its classes. */
#ifndef FTH_METRIC_OVERLAP_H
#define FTH_METRIC_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "text/text.h"

enum { FTH_OVERLAP_CLASSES = 1 << 20 }; /* numbers of classes are below */

/* One class over all pictures. */
typedef struct fth_overlap_class {
    int64_t both, ref, hyp; /* places where both, the reference, the hypothesis have it */
} fth_overlap_class;

typedef struct fth_overlap {
    fth_overlap_class *of; /* [n] by number */
    size_t n;
    double mean; /* of both / (ref + hyp - both) over the classes that occur; NaN: none does */
} fth_overlap;

/* Places where the reference is -1 are left out. c->n_refs must be 1; names as in correlation.h. */
fth_err fth_overlap_corpus(const fth_text_pairs *c, const char *const names[2], fth_overlap *out);
void fth_overlap_fini(fth_overlap *o);

/* NaN where the class does not occur. */
double fth_overlap_of(const fth_overlap *o, size_t class);

#endif
