/* sum.h: the gradient of several micro-batches, g_1 + g_2 + ..., each made by itself and added in
 * their order, on one rank or on many: the same bits, whoever makes them.
 *
 * Ranks take the batches in turn. After each round every rank gets its slice of all gradients of
 * the round and adds them in the order of the batches; so it has the sum of its own slice, which is
 * what it updates. */
#ifndef FTH_TRAIN_SUM_H
#define FTH_TRAIN_SUM_H

#include "train/trainer.h"

/* Memory of the trainer for the sum of so many batches; fth_trainer_fini frees it. */
fth_err fth_sum_init(fth_trainer *t, int64_t batches);

/* Loss, norm and sum of the gradients; the step's rows go on. */
fth_err fth_sum_batches(fth_trainer *t, const fth_batches *batches, fth_step *step,
                        fth_update *out);

/* The trainer's part of it: loss and gradient of one batch in arenas.grad, alone (fresh) or added
 * to what is there; matrices that are early are updated. sums: of loss and nll. */
fth_err fth_trainer_batch(fth_trainer *t, const fth_batch *batch, const fth_step *step, bool fresh,
                          double sums[2]);

#endif
