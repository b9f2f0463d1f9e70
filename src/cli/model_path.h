/* model_path.h: a run stands for its best model wherever a model is named. */
#ifndef FTH_CLI_MODEL_PATH_H
#define FTH_CLI_MODEL_PATH_H

#include "base/options.h"

/* Puts RUN/checkpoints/best in the place of a run's folder; other paths stay. FTH_NOT_FOUND for a
 * run that has no best model yet. */
fth_err fth_model_path(const char **path, fth_arena *arena);

/* The same for arguments first to last. */
fth_err fth_model_paths(fth_parsed *parsed, size_t first, size_t last);

#endif
