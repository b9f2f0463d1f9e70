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
} fth_checkpoint_content;

/* Writes one checkpoint folder, wherever. */
fth_err fth_checkpoint_write(const char *path, const fth_checkpoint_content *c);

/* Writes step-UPDATE (replacing one of that name) and makes `last` point to it. When it fails
 * (full disk, ...) the earlier checkpoints and the links are as before. */
fth_err fth_checkpoint_save(const char *folder, const fth_checkpoint_content *c);

/* Makes `best` point to step-UPDATE. */
fth_err fth_checkpoint_mark_best(const char *folder, int64_t update);

/* Removes all but the newest keep checkpoints; never those that `last` and `best` point to.
 * keep below 1 keeps all. */
fth_err fth_checkpoint_prune(const char *folder, int64_t keep);

/* Clears what a killed process left behind. To be called when a run starts. */
fth_err fth_checkpoint_clean(const char *folder);

/* The updates that have a checkpoint, ascending: *updates [*n], malloc'd. No folder: none. */
fth_err fth_checkpoint_list(const char *folder, int64_t **updates, size_t *n);

/* What was read. The files' sums were compared, and the moments fit the parameters. */
typedef struct fth_checkpoint {
    fth_model_dir *model;
    fth_st_file *optimizer;
    fth_train_state state;
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
