/* mixup.h: two pictures as one (mixup, Zhang et al. 2018). Picture i becomes l x_i + (1 - l) x_j
 * with l from Beta(a, a), and its class is that of i with probability l, else that of j: the mean
 * of the loss over these draws is the loss of the paper, l loss(y_i) + (1 - l) loss(y_j).
 * Everything follows from seed, epoch and picture. */
#ifndef FTH_DATA_MIXUP_H
#define FTH_DATA_MIXUP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fth_mixup {
    double a; /* of the Beta distribution; 0: pictures stay by themselves */
    uint64_t seed;
} fth_mixup;

typedef struct fth_mixed {
    int64_t other;    /* j */
    double share;     /* l */
    bool takes_other; /* the class is that of j */
} fth_mixed;

/* What becomes of picture i of n in an epoch. */
fth_mixed fth_mixup_draw(const fth_mixup *m, int64_t epoch, int64_t i, int64_t n);

/* to [count] becomes share times itself and the rest of `other`. */
void fth_mixup_apply(double share, const float *other, int64_t count, float *to);

#endif
