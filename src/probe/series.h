/* series.h: the checkpoints that an analysis of a whole run looks at (fth_series of probe.h). */
#ifndef FTH_PROBE_SERIES_H
#define FTH_PROBE_SERIES_H

#include "probe/probe.h"

void fth_series_fini(fth_series *s);

/* A run folder: all its checkpoints. Unless there is one of step 0, theta_0 is drawn by the run's
 * seed, or is `init` (a model folder; NULL: none). */
fth_err fth_series_of_run(fth_series *s, const char *run, const char *init);

/* Model folders, in any order; the lowest step is theta_0 unless init is given. */
fth_err fth_series_of_models(fth_series *s, const char *const *folders, int32_t n,
                             const char *init);

/* Is this folder a run (it has checkpoints) and not a model? */
bool fth_is_run(const char *folder);

/* Parameters of checkpoint i into flat [params.size] of a model that fits all. */
fth_err fth_series_weights(const fth_series *s, int32_t i, const fth_model *model, float *flat);

#endif
