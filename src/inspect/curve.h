/* curve.h: a number against the update, in bounded memory.
 *
 * A point covers `stride` values in a row: their mean, the smallest and the largest, so that a peak
 * between two points is never lost. When the points are used up, neighbours are joined. */
#ifndef FTH_INSPECT_CURVE_H
#define FTH_INSPECT_CURVE_H

#include <stdint.h>

#include "base/error.h"

enum { FTH_CURVE_POINTS = 1200, FTH_CURVE_NAME = 40 };

typedef struct fth_point {
    int64_t first, last;    /* updates that it covers */
    double mean, low, high; /* of the finite values; NAN when there are none */
    int64_t finite, faults; /* how many values were finite, and how many were not */
} fth_point;

typedef struct fth_curve {
    char name[FTH_CURVE_NAME]; /* "train.loss" */
    fth_point *point;          /* [FTH_CURVE_POINTS] the first n are used */
    int32_t n;
    int64_t stride;
    double newest; /* the value that came last, whatever it was */
} fth_curve;

fth_err fth_curve_init(fth_curve *c, const char *name);
void fth_curve_fini(fth_curve *c);

void fth_curve_add(fth_curve *c, int64_t update, double value);

/* A run went on from this update: what it had logged beyond is void. */
void fth_curve_rewind(fth_curve *c, int64_t update);

/* The smallest finite value and the update from which its point begins; NAN when there is none. */
double fth_curve_lowest(const fth_curve *c, int64_t *update);

#endif
