/* trainer_files.h: checkpoints between the trainer's device and the disk. */
#ifndef FTH_RUN_TRAINER_FILES_H
#define FTH_RUN_TRAINER_FILES_H

#include "store/checkpoint.h"
#include "train/trainer.h"

/* Saves parameters, moments, state and the run's options as RUN/checkpoints/step-N. Every rank
 * calls it, rank 0 writes. */
fth_err fth_save_checkpoint(const char *folder, fth_trainer *t, const fth_train_state *state,
                            const char *options, const char *tokenizer_from);

/* Writes the model as it is as a model folder. */
fth_err fth_save_model(const char *path, const fth_trainer *t, const char *tokenizer_from);

/* Loads parameters and moments of an open checkpoint. Every rank calls it, c is NULL on all but
 * rank 0. */
fth_err fth_save_load(const fth_checkpoint *c, fth_trainer *t);

/* Gives all ranks the parameters of rank 0. */
fth_err fth_save_spread(fth_trainer *t);

#endif
