/* schedule.h: learning rates (doc/mathematics.md#optimiser-and-rates). */
#ifndef FTH_TRAIN_SCHEDULE_H
#define FTH_TRAIN_SCHEDULE_H

#include <stdint.h>

#include "base/error.h"

typedef enum fth_schedule_kind {
    FTH_INVERSE_SQRT,
    FTH_INVERSE_SQRT_NOWARMUP,
    FTH_CONSTANT,
    FTH_LINEAR,
    FTH_COSINE,
    FTH_POLYNOMIAL,
    FTH_WSD /* warm-up, stable, decay */
} fth_schedule_kind;

typedef struct fth_schedule {
    fth_schedule_kind kind;
    double lr;       /* peak */
    double lr_start; /* where the ramp begins */
    int64_t warmup;  /* updates of the ramp */
    int64_t total;   /* updates of the run: all but inverse_sqrt and constant end there */
    double lr_end;   /* polynomial and wsd: the rate there */
    double power;    /* polynomial */
    int64_t decay;   /* wsd: updates of the way down to it, the last ones */
} fth_schedule;

/* By the name of --lr-scheduler. */
fth_err fth_schedule_find(const char *name, fth_schedule_kind *out);

/* Rate of update t, from 1. */
double fth_schedule_lr(const fth_schedule *s, int64_t t);

#endif
