/* checkpoint.h: the checkpoints of a run (doc/formats.md#a-model-folder).
 *
 * RUN/checkpoints/step-00001000/ is a model folder with optimizer.safetensors (exp_avg.NAME and
 * exp_avg_sq.NAME, F32) and state.json. RUN/checkpoints/last and best are relative symbolic links.
 * `folder` is RUN/checkpoints everywhere below. */
#ifndef FTH_STORE_CHECKPOINT_H
#define FTH_STORE_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "store/model_dir.h"
#include "store/train_state.h"

/* What is written. The config is written with step = state.update. */
typedef struct fth_checkpoint_content {
    fth_model_content model;
    const void *const *exp_avg;    /* [model.n_tensors] first moments, float, in the order of */
    const void *const *exp_avg_sq; /*                   model.tensors; second moments */
    fth_train_state state;
    const char *options; /* lines "key: value" of the run; NULL: none */
} fth_checkpoint_content;

/* Writes one checkpoint folder, wherever. */
fth_err fth_checkpoint_write(const char *path, const fth_checkpoint_content *c);

/* Writes step-UPDATE, replacing one of that name: with what its state knows it appears in one step,
 * and all else is derived from it (fth_checkpoint_settle). When it fails (full disk, ...) the
 * earlier checkpoints are as before. */
fth_err fth_checkpoint_save(const char *folder, const fth_checkpoint_content *c);

/* What follows from the newest whole checkpoint. */
typedef struct fth_settled {
    int64_t last; /* its update */
    int64_t best; /* the update of the best; -1: there is none yet */
    int64_t keep; /* how many of the newest to keep, beside the best; below 1: all */
    int64_t stop; /* the update of one that only a signal caused, not to be kept; 0: none */
} fth_settled;

/* Makes the links `last` and `best` point where they must and removes what need not be kept.
 * Checkpoints newer than `last` are damaged ones and stay as they are. After every save, and when a
 * run starts: a process may have been killed before it came to this. */
fth_err fth_checkpoint_settle(const char *folder, const fth_settled *s);

/* Clears what a killed process left behind. To be called when a run starts. */
fth_err fth_checkpoint_clean(const char *folder);

/* The updates that have a checkpoint, ascending: *updates [*n], malloc'd. No folder: none. */
fth_err fth_checkpoint_list(const char *folder, int64_t **updates, size_t *n);

/* What was read. The files' sums were compared, and the moments fit the parameters. */
typedef struct fth_checkpoint {
    fth_model_dir *model;
    fth_st_file *optimizer;
    fth_train_state state;
    char *options; /* lines "key: value" of the run; NULL: version 0.1.0 kept none */
} fth_checkpoint;

fth_err fth_checkpoint_open(const char *path, fth_checkpoint **out);
void fth_checkpoint_close(fth_checkpoint *c);

/* Opens the model of a checkpoint, or a plain model folder. Where there is a state.json, the sums
 * are compared (the optimizer's aside). */
fth_err fth_checkpoint_open_model(const char *path, fth_model_dir **out);

/* Told of every damaged checkpoint that is passed over, in one line. */
typedef void fth_checkpoint_warn(void *context, const char *text);

/* Opens the newest checkpoint that is whole. FTH_NOT_FOUND: there is none at all; FTH_BAD_INPUT:
 * all are damaged. */
fth_err fth_checkpoint_find(const char *folder, fth_checkpoint_warn *warn, void *context,
                            fth_checkpoint **out);

#endif
