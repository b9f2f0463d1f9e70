/* profile.h: sets the learned residual scales of a method from one batch
 * (doc/mathematics.md#one-form-for-all). */
#ifndef FTH_TRAIN_PROFILE_H
#define FTH_TRAIN_PROFILE_H

#include "train/trainer.h"

/* Does the method ask for it? */
bool fth_profile_wanted(const fth_model *model);

/* One forward pass with dropout on. Sub-layer by sub-layer of each stack, from r = 1: omega_i = r,
 * then r = sqrt(Var(omega_i x) + Var(D(G_i(x)))). Nothing but the omegas changes. */
fth_err fth_profile(fth_trainer *t, const fth_batch *batch, const int64_t capacity[FTH_N_EXTENTS]);

#endif
